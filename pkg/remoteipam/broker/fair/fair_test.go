// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package fair

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// work is how long the lock is held.
const work = time.Millisecond

// TestTurns lets one party want the lock all the time, and another once.
func TestTurns(t *testing.T) {
	cases := map[string]struct {
		reason  string
		parties int // That want the lock all the time, with ten callers each.
		want    time.Duration
	}{
		"Alone":   {"nobody is in the way", 0, 0},
		"One":     {"who has it finishes, and nobody else comes before", 1, work},
		"Several": {"who has it finishes, and each of the others is let in once", 5, 5 * work},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, stop := context.WithCancel(t.Context())
				var lock Lock[int]
				var all sync.WaitGroup
				for party := range tc.parties {
					for range 10 {
						all.Go(func() {
							for {
								release, err := lock.Acquire(ctx, party)
								if err != nil {
									return
								}
								time.Sleep(work)
								release()
							}
						})
					}
				}
				time.Sleep(100*work + work/2)
				began := time.Now()
				release, err := lock.Acquire(ctx, -1)
				if err != nil {
					t.Fatal(err)
				}
				release()
				if took := time.Since(began); took > tc.want {
					t.Errorf("%s: waited %s, want %s at most", tc.reason, took, tc.want)
				}
				stop()
				all.Wait()
			})
		})
	}
}

// TestGivenUp lets callers give up, some at the moment in which they get the lock.
func TestGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var lock Lock[string]
		held := 0
		var mu sync.Mutex
		var all sync.WaitGroup
		for i := range 100 {
			all.Go(func() {
				ctx, cancel := context.WithTimeout(t.Context(), time.Duration(i/10)*work)
				defer cancel()
				release, err := lock.Acquire(ctx, string(rune('a'+i%3)))
				if err != nil {
					if !errors.Is(err, context.DeadlineExceeded) {
						t.Errorf("Acquire(): %v", err)
					}
					return
				}
				mu.Lock()
				if held++; held > 1 {
					t.Error("two hold the lock")
				}
				mu.Unlock()
				time.Sleep(work)
				mu.Lock()
				held--
				mu.Unlock()
				release()
			})
		}
		all.Wait()
		release, err := lock.Acquire(t.Context(), "last")
		if err != nil {
			t.Fatalf("the lock is lost: %v", err)
		}
		release()
		if len(lock.waiting)+len(lock.turns) > 0 || lock.held {
			t.Errorf("left behind: %v, %v, %t", lock.waiting, lock.turns, lock.held)
		}
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := lock.Acquire(ended, "late"); !errors.Is(err, context.Canceled) {
			t.Errorf("a caller that has given up got the lock: %v", err)
		}
	})
}
