package kube

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
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
			if text := err.Error(); !strings.HasPrefix(text, "scaling deployments.apps/web: ") || !strings.Contains(text, tc.want.String()+": ") {
				t.Errorf("%v, want what was done first, and the reason", err)
			}
			if tc.name == "ours, wrapped" && !strings.Contains(err.Error(), ": asking: conflict: no") {
				t.Errorf("%v, want all that was said", err)
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
	answer := func(status int, after string) *http.Response {
		return &http.Response{StatusCode: status, Header: http.Header{"Retry-After": {after}}}
	}
	for _, tc := range []struct {
		name   string
		answer *http.Response
		want   time.Duration
	}{
		{"429", answer(429, "3"), 3 * time.Second},
		{"503", answer(503, "1"), time.Second},
		{"429 without a time", answer(429, ""), 0},
		{"a date", answer(429, "Tue, 01 Dec 2026 00:00:00 GMT"), 0},
		{"less than nothing", answer(429, "-3"), 0},
		{"an hour is not waited for", answer(429, "3600"), 30 * time.Second},
		{"200", answer(200, "3"), 0},
		{"500", answer(500, "3"), 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := &courtesy{}
				c.heed(tc.answer)
				c.heed(answer(429, "1")) // the longer one holds
				want := max(tc.want, time.Second)
				time.Sleep(want - time.Millisecond)
				if err := c.held(); reasonOf(err) != churn.Unreachable || !strings.Contains(err.Error(), "left alone for another 1ms") {
					t.Errorf("1 ms before %v: %v, want no call", want, err)
				}
				time.Sleep(time.Millisecond)
				if err := c.held(); err != nil {
					t.Errorf("after %v: %v, want calls again", want, err)
				}
			})
		})
	}
}
