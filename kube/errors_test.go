package kube

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strings"
	"syscall"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/steadyprobe/steadyprobe/churn"
)

func TestReasons(t *testing.T) {
	web := schema.GroupResource{Group: "apps", Resource: "deployments"}
	status := func(code int32) error {
		return &apierrors.StatusError{ErrStatus: metav1.Status{Code: code, Message: "said by the server"}}
	}
	dial := &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}
	for _, tc := range []struct {
		name  string
		err   error
		want  churn.Reason
		where bool // the cluster is named
	}{
		{"forbidden", apierrors.NewForbidden(web, "web", errors.New("no")), churn.Forbidden, false},
		{"credentials not known", apierrors.NewUnauthorized("no"), churn.Forbidden, true},
		{"not found", apierrors.NewNotFound(web, "web"), churn.NotFound, false},
		{"conflict", apierrors.NewConflict(web, "web", errors.New("changed")), churn.Conflict, false},
		{"invalid", status(422), churn.Refused, false},
		{"too many", apierrors.NewTooManyRequests("later", 3), churn.Unreachable, true},
		{"timeout", apierrors.NewTimeoutError("slow", 1), churn.Unreachable, true},
		{"server timeout", apierrors.NewServerTimeout(web, "get", 1), churn.Unreachable, true},
		{"gone", apierrors.NewResourceExpired("old"), churn.Unreachable, true},
		{"500", status(500), churn.Unreachable, true},
		{"502 of a proxy", status(502), churn.Unreachable, true},
		{"503", apierrors.NewServiceUnavailable("starting"), churn.Unreachable, true},
		{"bad request", status(400), churn.Other, false},
		{"method not allowed", status(405), churn.Other, false},
		{"refused connection", &url.Error{Op: "Get", URL: "https://bob:secret@api:6443/x?token=secret", Err: dial}, churn.Unreachable, true},
		{"no answer in time", context.DeadlineExceeded, churn.Unreachable, true},
		{"ours", wrong(churn.Refused, "no"), churn.Refused, false},
		{"ours, wrapped", fmt.Errorf("asking: %w", wrong(churn.Conflict, "no")), churn.Conflict, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c := &client{where: "cluster https://api:6443"}
			err := c.explain("scaling", "deployments.apps/web", tc.err)
			var got *churn.Error
			if !errors.As(err, &got) || got.Reason != tc.want {
				t.Fatalf("%v, want reason %v", err, tc.want)
			}
			if named := strings.Contains(err.Error(), c.where); named != tc.where {
				t.Errorf("%v: names the cluster: %v, want %v", err, named, tc.where)
			}
			if !strings.HasPrefix(err.Error(), "scaling deployments.apps/web: "+tc.want.String()) {
				t.Errorf("%v, want what was done first, then the reason", err)
			}
			if strings.Contains(err.Error(), "secret") {
				t.Errorf("%v shows a secret", err)
			}
		})
	}
	if err := (&client{}).explain("scaling", "x", nil); err != nil {
		t.Errorf("no error becomes %v", err)
	}
}

func TestRetryAfter(t *testing.T) {
	for _, tc := range []struct {
		name string
		err  error
		want time.Duration
	}{
		{"429", apierrors.NewTooManyRequests("later", 3), 3 * time.Second},
		{"429 without a time", apierrors.NewTooManyRequests("later", 0), 0},
		{"an hour is not waited for", apierrors.NewTooManyRequests("later", 3600), 30 * time.Second},
		{"503", apierrors.NewServiceUnavailable("starting"), 0},
		{"504 is no such answer", apierrors.NewTimeoutError("slow", 7), 0},
		{"none", nil, 0},
		{"no answer", errors.New("x"), 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if got := retryAfter(tc.err); got != tc.want {
				t.Errorf("%v, want %v", got, tc.want)
			}
		})
	}
	c := &client{}
	if err := c.held(); err != nil {
		t.Errorf("before any answer: %v", err)
	}
	c.heed(apierrors.NewTooManyRequests("later", 3))
	c.heed(apierrors.NewTooManyRequests("later", 1)) // the longer one holds
	if err := c.held(); reasonOf(err) != churn.Unreachable || !strings.Contains(err.Error(), "another 3s") && !strings.Contains(err.Error(), "another 2.") {
		t.Errorf("after Retry-After: 3: %v, want no call for 3s", err)
	}
}
