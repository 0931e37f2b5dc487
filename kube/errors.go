package kube

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/steadyprobe/steadyprobe/churn"
)

// reasonOf returns the reason of a call that failed.
func reasonOf(err error) churn.Reason {
	var known *churn.Error
	if errors.As(err, &known) {
		return known.Reason
	}
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return churn.Unreachable // no answer, or none that is one
	}
	switch code := status.Status().Code; {
	case code == http.StatusUnauthorized, code == http.StatusForbidden:
		return churn.Forbidden
	case code == http.StatusNotFound:
		return churn.NotFound
	case code == http.StatusConflict:
		return churn.Conflict
	case code == http.StatusUnprocessableEntity:
		return churn.Refused // by the server: it breaks a rule of the resource
	case code == http.StatusTooManyRequests, code == http.StatusRequestTimeout, code == http.StatusGone, code >= 500:
		return churn.Unreachable
	default:
		return churn.Other
	}
}

// explain returns an error that says what was done to what, and which cluster
// it was where that may be the reason. It never contains more of an address
// than the server's.
func (c *client) explain(doing, what string, err error) error {
	if err == nil {
		return nil
	}
	var request *url.Error
	if errors.As(err, &request) { // it names the whole URL, which may hold a user
		err = request.Err
	}
	reason := reasonOf(err)
	var known *churn.Error
	switch {
	case errors.As(err, &known):
		return fmt.Errorf("%s %s: %w", doing, what, err)
	case reason == churn.Unreachable, apierrors.IsUnauthorized(err):
		known = &churn.Error{Reason: reason, Err: fmt.Errorf("%s: %w", c.where, err)}
	default:
		known = &churn.Error{Reason: reason, Err: err}
	}
	return fmt.Errorf("%s %s: %w", doing, what, known)
}

// ended reports whether a call failed because its caller had enough of it.
func ended(ctx context.Context, err error) bool {
	return err != nil && errors.Is(ctx.Err(), context.Canceled)
}
