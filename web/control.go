package web

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"time"
)

// Control is what can be asked of a churn.
type Control string

// What can be asked of a churn.
const (
	Pause   Control = "pause"   // puts the baseline back, and waits until it is resumed
	Resume  Control = "resume"  // ends a pause or a stop, with a fresh baseline
	Restore Control = "restore" // puts the baseline back also over somebody else's change, then pauses
)

// Controls returns all that can be asked of a churn.
func Controls() []Control { return []Control{Pause, Resume, Restore} }

// controlLimit is how long a churn may take to accept: it writes a note first,
// where it keeps one.
const controlLimit = 20 * time.Second

// ControlError is why a churn does not do what it was asked for, though there
// is nothing wrong with it: it is for another instance to do.
type ControlError struct{ Message string }

// Error returns the sentence for whoever asked.
func (e *ControlError) Error() string { return e.Message }

func forbidden(message string) *apiError {
	return &apiError{http.StatusForbidden, "forbidden", message}
}

// control returns what asks a churn for something. A browser is not to be
// talked into it by another site: this is all that keeps it from it where the
// endpoint needs no password, or the browser knows it.
func (a *api) control(do Control) func(*http.Request) (any, error) {
	origins := http.NewCrossOriginProtection()
	return func(r *http.Request) (any, error) {
		if !a.options.Lifecycle {
			return nil, forbidden("churns cannot be controlled over HTTP; start the daemon with --web.enable-lifecycle to allow it")
		}
		if err := origins.Check(r); err != nil {
			return nil, forbidden("the request comes from a page of another site; ask without a browser, or from this one")
		}
		name := r.PathValue("name")
		if _, found := a.churnNamed(name); !found {
			return nil, a.noChurn(name)
		}
		ctx, cancel := context.WithTimeout(r.Context(), controlLimit)
		defer cancel()
		err := a.options.ControlChurn(ctx, name, do)
		told, elsewhere := errors.AsType[*ControlError](err)
		switch {
		case elsewhere:
			return nil, &apiError{http.StatusConflict, "conflict", told.Message}
		case err != nil:
			a.options.Logger.Warn("A churn was not controlled", "churn", name, "asked_for", string(do), "err", err)
			return nil, &apiError{http.StatusServiceUnavailable, "unavailable", err.Error()}
		}
		a.options.Logger.Info("A churn is controlled over HTTP", "churn", name, "asked_for", string(do), "by", r.RemoteAddr)
		if c, found := a.churnNamed(name); found {
			return c.whole(), nil
		}
		return nil, a.noChurn(name)
	}
}

func (a *api) churnNamed(name string) (Churn, bool) {
	churns := a.options.Churns()
	if i := slices.IndexFunc(churns, func(c Churn) bool { return c.Name == name }); i >= 0 {
		return churns[i], true
	}
	return Churn{}, false
}

// noChurn says which churns there are.
func (a *api) noChurn(name string) error {
	churns := a.options.Churns()
	names := make([]string, len(churns))
	for i := range churns {
		names[i] = churns[i].Name
	}
	return noneNamed("churn", name, names)
}
