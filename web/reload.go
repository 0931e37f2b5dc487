package web

import (
	"context"
	"errors"
	"net/http"
)

const pathReload = "-/reload"

// reload serves requests for a reload, by the methods that Prometheus takes. A
// page of another site cannot make a browser ask for one.
func reload(o *Options) http.Handler {
	answer := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.Method != http.MethodPost && r.Method != http.MethodPut:
			w.Header().Set("Allow", "POST, PUT")
			writeText(w, http.StatusMethodNotAllowed, []byte("Only POST and PUT reload the configuration.\n"))
		case o.Reload == nil:
			writeText(w, http.StatusForbidden, []byte("Reloading over HTTP is not enabled: start steadyprobe with --web.enable-lifecycle, or send it SIGHUP.\n"))
		default:
			o.reload(w, r)
		}
	})
	return http.NewCrossOriginProtection().Handler(answer)
}

// reload waits for what comes of it. Who cannot wait any longer leaves it going
// on.
func (o *Options) reload(w http.ResponseWriter, r *http.Request) {
	text, err := o.Reload(r.Context())
	switch {
	case err == nil:
		writeText(w, http.StatusOK, []byte(text+"\n"))
	case errors.Is(err, context.Canceled):
		// Nobody reads it.
	default:
		writeText(w, http.StatusInternalServerError, []byte("The configuration was not reloaded, and nothing has changed:\n"+err.Error()+"\n"))
	}
}
