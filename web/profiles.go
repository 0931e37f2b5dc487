package web

import (
	"net/http"
	"net/http/pprof"
)

const pathProfiles = "debug/pprof/"

// maxProfiles is how many ask for a profile at once.
const maxProfiles = 2

// registerProfiles adds the profiles of the Go runtime to mux, as pprof reads
// them. They tell what the process is made of and cost it time, so that they are
// there only where they are asked for. The command line is left out: it is
// nobody's business.
func registerProfiles(mux *http.ServeMux) {
	for path, h := range map[string]http.HandlerFunc{"": pprof.Index, "profile": pprof.Profile, "symbol": pprof.Symbol, "trace": pprof.Trace} {
		mux.Handle("GET /"+pathProfiles+path, limited(maxProfiles, tooMany, h))
	}
	mux.HandleFunc("GET /"+pathProfiles+"cmdline", http.NotFound)
}
