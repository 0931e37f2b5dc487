package web

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

// node is an element of a page.
type node struct{ *html.Node }

// loadPage returns the page's document.
func loadPage(t *testing.T, h http.Handler) node {
	t.Helper()
	r := ask(h, "GET", "/")
	if r.StatusCode != 200 {
		t.Fatalf("status %d: %s", r.StatusCode, body(t, r))
	}
	root, err := html.Parse(r.Body)
	if err != nil {
		t.Fatal(err)
	}
	return node{root}
}

// all returns the elements below n that are of a kind, in their order.
func (n node) all(kinds ...atom.Atom) (found []node) {
	for d := range n.Descendants() {
		if d.Type == html.ElementNode && (len(kinds) == 0 || slices.Contains(kinds, d.DataAtom)) {
			found = append(found, node{d})
		}
	}
	return found
}

func (n node) attribute(name string) string {
	for _, a := range n.Attr {
		if a.Key == name {
			return a.Val
		}
	}
	return ""
}

// id returns the element with an id, and fails where there is none.
func (n node) id(t *testing.T, id string) node {
	t.Helper()
	for _, e := range n.all() {
		if e.attribute("id") == id {
			return e
		}
	}
	t.Fatalf("there is no #%s", id)
	return node{}
}

// text returns what is in n as one line.
func (n node) text() string {
	var b strings.Builder
	for d := range n.Descendants() {
		if d.Type == html.TextNode {
			b.WriteString(d.Data + " ")
		}
	}
	return strings.Join(strings.Fields(b.String()), " ")
}

// section returns the section with a heading.
func (n node) section(t *testing.T, heading string) node {
	t.Helper()
	for _, s := range n.all(atom.Section) {
		if h := s.all(atom.H2); len(h) == 1 && h[0].text() == heading {
			return s
		}
	}
	t.Fatalf("there is no section %q", heading)
	return node{}
}

// rows returns the texts of the cells of all rows of a table's bodies.
func (n node) rows() (rows []string) {
	for _, b := range n.all(atom.Tbody) {
		for _, r := range b.all(atom.Tr) {
			var cells []string
			for _, c := range r.all(atom.Th, atom.Td) {
				cells = append(cells, c.text())
			}
			rows = append(rows, strings.Join(cells, " | "))
		}
	}
	return rows
}
