// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package await_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/capacitorset/liqo-broker/pkg/await"
)

// TestUntil looks at what comes sooner, later or never.
func TestUntil(t *testing.T) {
	const timeout = 10 * time.Second
	canceled := errors.New("somebody pressed a key")
	for name, tc := range map[string]struct {
		reason string
		// look is called with how many looks there were before.
		look func(ctx context.Context, before int) error
		// interrupted is after what time ctx ends; zero for not.
		interrupted time.Duration
		wantSaid    []string
		wantErr     string
		wantAfter   time.Duration
	}{
		"There": {reason: "what is there is not awaited", look: func(context.Context, int) error { return nil }},
		"Comes": {
			reason: "what is missing is said once, by its first line",
			look: func(_ context.Context, before int) error {
				return []error{errors.New("no tunnel\nlong story"), errors.New("no tunnel\nlonger story"), errors.New("no pod"), nil}[before]
			},
			wantSaid: []string{"no tunnel", "no pod"}, wantAfter: 1500 * time.Millisecond,
		},
		"Never": {
			reason: "it is not awaited for ever", look: func(context.Context, int) error { return errors.New("no pod") },
			wantSaid: []string{"no pod"}, wantErr: "not so after 10s: no pod", wantAfter: timeout,
		},
		"Cut": {
			reason: "a look that the end of the time cuts says nothing of what is missing",
			look: func(ctx context.Context, before int) error {
				if before == 0 {
					return errors.New("no pod")
				}
				<-ctx.Done()
				return ctx.Err()
			},
			wantSaid: []string{"no pod"}, wantErr: "not so after 10s: no pod", wantAfter: timeout,
		},
		"Hopeless": {
			reason: "what no waiting mends ends it",
			look: func(context.Context, int) error {
				return errors.Join(errors.New("no pod"), await.Hopeless(errors.New("no such image")))
			},
			wantErr: "no pod\nno such image",
		},
		"Interrupted": {
			reason: "whoever waits may stop", look: func(context.Context, int) error { return errors.New("no pod") },
			interrupted: time.Second + time.Millisecond, wantSaid: []string{"no pod"}, wantErr: "interrupted: " + canceled.Error(),
			wantAfter: time.Second + time.Millisecond,
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancelCause(t.Context())
				defer cancel(nil)
				if tc.interrupted > 0 {
					time.AfterFunc(tc.interrupted, func() { cancel(canceled) })
				}
				var said []string
				looks, begin := 0, time.Now()
				err := await.Until(ctx, timeout, func(ctx context.Context) error {
					looks++
					return tc.look(ctx, looks-1)
				}, func(missing string) { said = append(said, missing) })
				got := ""
				if err != nil {
					got = err.Error()
				}
				if got != tc.wantErr {
					t.Errorf("%s: error %q, want %q", tc.reason, got, tc.wantErr)
				}
				if after := time.Since(begin); after != tc.wantAfter {
					t.Errorf("%s: it took %s, want %s", tc.reason, after, tc.wantAfter)
				}
				if !slices.Equal(said, tc.wantSaid) {
					t.Errorf("%s: it says %q, want %q", tc.reason, said, tc.wantSaid)
				}
			})
		})
	}
}
