// Refreshes the page: fetches it again and puts its <main> in place of the old
// one. Whoever has no JavaScript sees the same page and reloads it by hand.
"use strict";

(() => {
  const every = 5000; // ms
  const patience = 10000; // ms until an answer counts as none
  const gone = document.getElementById("gone");
  const news = document.getElementById("news");
  let timer = 0;
  let busy = false;

  // parts returns what of main has a state of its own, by id.
  const parts = (main, selector) => [...main.querySelectorAll(selector)].filter((e) => e.id);

  const swap = (main) => {
    const old = document.querySelector("main");
    const { scrollX, scrollY } = window;
    const focused = old.contains(document.activeElement) ? document.activeElement.id : "";
    const before = document.getElementById("verdict")?.textContent;
    for (const e of parts(old, "details[open]")) {
      main.querySelector("#" + CSS.escape(e.id))?.setAttribute("open", "");
    }
    const shifts = parts(old, ".wide").map((e) => [e.id, e.scrollLeft]);
    old.replaceWith(main);
    for (const [id, left] of shifts) {
      const e = document.getElementById(id);
      if (e) e.scrollLeft = left;
    }
    window.scrollTo({ left: scrollX, top: scrollY, behavior: "instant" });
    if (focused) document.getElementById(focused)?.focus({ preventScroll: true });
    const after = document.getElementById("verdict")?.textContent;
    if (after !== before) news.textContent = after;
  };

  // selecting tells whether somebody is about to copy something.
  const selecting = () => {
    const s = document.getSelection();
    return s && !s.isCollapsed && document.querySelector("main").contains(s.anchorNode);
  };

  const refresh = async () => {
    const signal = AbortSignal.timeout(patience);
    const answer = await fetch(location.pathname + location.search, { cache: "no-store", signal });
    if (!answer.ok) throw new Error("status " + answer.status);
    const page = new DOMParser().parseFromString(await answer.text(), "text/html");
    const main = page.querySelector("main");
    if (!main || !page.body.dataset.version) throw new Error("another page");
    if (page.body.dataset.version !== document.body.dataset.version) {
      location.reload(); // another version has another style
      return;
    }
    gone.hidden = true;
    // Pictures are loaded before they are shown, so that nothing flickers.
    const next = document.importNode(main, true);
    const late = new Promise((resolve) => setTimeout(resolve, every));
    await Promise.race([Promise.allSettled([...next.querySelectorAll("img")].map((i) => i.decode())), late]);
    if (!selecting()) swap(next);
  };

  const tick = async () => {
    clearTimeout(timer);
    if (busy || document.hidden) return;
    busy = true;
    try {
      await refresh();
    } catch (err) {
      // Said once, or it would be read out again and again.
      if (gone.hidden) gone.textContent = "steadyprobe does not answer (" + (err.message || err.name) +
        "): what is below is old. It is asked again every " + every / 1000 + " s.";
      gone.hidden = false;
    }
    busy = false;
    if (!document.hidden) timer = setTimeout(tick, every);
  };

  document.addEventListener("visibilitychange", tick);
  timer = setTimeout(tick, every);
})();
