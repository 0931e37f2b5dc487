package web

import (
	_ "embed" // what the page loads
	"net/http"
)

// What the page loads; relative, as all its links.
const (
	pathStyle  = "page.css"
	pathScript = "page.js"
	pathIcon   = "icon.svg"
)

//go:embed page.css
var pageStyle []byte

//go:embed page.js
var pageScript []byte

//go:embed icon.svg
var pageIcon []byte

func registerAssets(mux *http.ServeMux) {
	for _, a := range []struct {
		path, kind string
		content    []byte
	}{
		{pathStyle, "text/css; charset=utf-8", pageStyle},
		{pathScript, "text/javascript; charset=utf-8", pageScript},
		{pathIcon, "image/svg+xml", pageIcon},
	} {
		mux.HandleFunc("GET /"+a.path, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", a.kind)
			_, _ = w.Write(a.content)
		})
	}
}
