// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package federation

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestUntil(t *testing.T) {
	notYet := errors.New("not yet")
	cases := map[string]struct {
		after  int
		want   error
		reason string
	}{
		"AtOnce": {after: 0, reason: "What is so already needs no waiting."},
		"Later":  {after: 5, reason: "What becomes so in time is no error."},
		"Never":  {after: 1000, want: notYet, reason: "The last reason says what was missing."},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				calls := 0
				err := Until(t.Context(), 10*time.Second, func(context.Context) error {
					if calls++; calls > tc.after {
						return nil
					}
					return notYet
				})
				if !errors.Is(err, tc.want) {
					t.Errorf("%s\nUntil(...): got error %v, want %v", tc.reason, err, tc.want)
				}
			})
		})
	}
}

// TestUntilLeavesTime looks half of the time at most: what it waits for is done by the same processors.
func TestUntilLeavesTime(t *testing.T) {
	for took, most := range map[time.Duration]int{0: 21, time.Second: 6, 4 * time.Second: 2, time.Minute: 1} {
		synctest.Test(t, func(t *testing.T) {
			calls := 0
			_ = Until(t.Context(), 10*time.Second, func(ctx context.Context) error {
				calls++
				select {
				case <-time.After(took):
				case <-ctx.Done():
				}
				return errors.New("not yet")
			})
			if calls > most {
				t.Errorf("of calls that take %s there are %d in 10 s, want %d at most", took, calls, most)
			}
		})
	}
}

func TestProgressNamesTheStep(t *testing.T) {
	var out strings.Builder
	broken := errors.New("broken")
	err := NewProgress(&out).Step(t.Context(), "mend it", func(context.Context) error { return broken })
	if !errors.Is(err, broken) || !strings.Contains(err.Error(), "mend it") {
		t.Errorf("Step(...): got error %v, want one that names the step and wraps the cause", err)
	}
	if !strings.Contains(out.String(), "mend it") {
		t.Errorf("Step(...) wrote %q, which does not name the step", out.String())
	}
}

func TestWithFlags(t *testing.T) {
	cases := map[string]struct {
		args   []string
		flags  []string
		want   []string
		reason string
	}{
		"Add": {
			args: []string{"--a=1", "--b"}, flags: []string{"--c=3"},
			want:   []string{"--a=1", "--b", "--c=3"},
			reason: "A missing flag is added, the others stay.",
		},
		"ReplaceAll": {
			args: []string{"--c=1", "--a=1", "--c=2"}, flags: []string{"--c=3"},
			want:   []string{"--a=1", "--c=3"},
			reason: "What a flag was before is gone.",
		},
		"Several": {
			args: []string{"--c=1", "--a=1"}, flags: []string{"--c=3", "--c=4"},
			want:   []string{"--a=1", "--c=3", "--c=4"},
			reason: "A flag that may be given several times keeps all its values.",
		},
		"Same": {
			args: []string{"--a=1", "--c=3"}, flags: []string{"--c=3"},
			want:   []string{"--a=1", "--c=3"},
			reason: "Setting a flag to what it is changes nothing.",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, withFlags(tc.args, tc.flags)); diff != "" {
				t.Errorf("%s\nwithFlags(...): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}
