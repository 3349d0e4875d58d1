// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func TestPatiently(t *testing.T) {
	secrets := schema.GroupResource{Resource: "secrets"}
	cases := map[string]struct {
		reason string
		err    error
		passes bool
	}{
		"NotReached": {"the API server is away", &url.Error{Op: "Get", URL: "https://10.0.0.1", Err: errors.New("connection refused")}, true},
		"Slow":       {"nobody answered in time", fmt.Errorf("read: %w", context.DeadlineExceeded), true},
		"Overloaded": {"it asks to come back", apierrors.NewTooManyRequests("later", 1), true},
		"Starting":   {"it is not complete", apierrors.NewInternalError(errors.New("post-start hook")), true},
		"Faster":     {"somebody else has just created it", apierrors.NewAlreadyExists(secrets, "s"), true},
		"Missing":    {"the Secret that a flag names", apierrors.NewNotFound(secrets, "s"), false},
		"NoRight":    {"a Role is missing", apierrors.NewForbidden(secrets, "s", errors.New("no")), false},
		"Unreadable": {"an identity that is none", errors.New("no PEM"), false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				attempts := 0
				err := Patiently(t.Context(), logr.Discard(), func() error {
					if attempts++; attempts < 20 {
						return fmt.Errorf("ask: %w", tc.err)
					}
					return nil
				})
				if want := tc.passes; want != (err == nil) || want != (attempts == 20) {
					t.Errorf("%s: %d attempts and error %v, want it to pass: %t", tc.reason, attempts, err, want)
				}
			})
		})
	}
	t.Run("Stopped", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			if err := Patiently(ctx, logr.Discard(), func() error { return context.DeadlineExceeded }); err == nil {
				t.Error("a step that never succeeded did")
			}
		})
	})
}
