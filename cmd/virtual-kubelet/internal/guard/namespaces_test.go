// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/liqotech/liqo/pkg/virtualKubelet/reflection/manager"
)

// lateHandler starts its namespaces, one after the other, after Start has returned.
type lateHandler struct {
	namespaces []string
	group      sync.WaitGroup
}

func (h *lateHandler) Start(_ context.Context, to manager.NamespaceStartStopper) {
	h.group.Go(func() {
		for _, name := range h.namespaces {
			time.Sleep(time.Second)
			to.StartNamespace(name, "twin-of-"+name)
		}
	})
}

// started notes what was started.
type started struct {
	mu    sync.Mutex
	names []string
}

func (s *started) StartNamespace(local, _ string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.names = append(s.names, local)
}

func (*started) StopNamespace(string, string) {}

func (s *started) all() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.names)
}

func TestNamespacesAreStartedFirst(t *testing.T) {
	cases := map[string]struct {
		reason    string
		offloaded []string
		err       error
		starts    []string
		want      []string
		failures  int
	}{
		"All": {
			reason: "pods of a namespace that is not started would be ended", offloaded: []string{"a", "b"}, starts: []string{"a", "b"},
			want: []string{"a", "b"},
		},
		"None": {reason: "nothing is offloaded", starts: []string{"later"}},
		"Unreadable": {
			reason: "a virtual kubelet that cannot read the list must start all the same", err: errors.New("no answer"), starts: []string{"a"},
			failures: 1,
		},
		"Gone": {
			reason: "a namespace that is not offloaded any more must not hold up the others", offloaded: []string{"a", "gone"},
			starts: []string{"a"}, want: []string{"a"}, failures: 1,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				late, got, failures := &lateHandler{namespaces: tc.starts}, &started{}, 0
				handler := &knownNamespaces{
					NamespaceHandler: late,
					offloaded:        func(context.Context) ([]string, error) { return tc.offloaded, tc.err },
					failed:           func(error) { failures++ },
				}
				handler.Start(t.Context(), got)
				if names := got.all(); !slices.Equal(names, tc.want) {
					t.Errorf("%s: %v are started, want %v", tc.reason, names, tc.want)
				}
				if failures != tc.failures {
					t.Errorf("%s: %d failures were told, want %d", tc.reason, failures, tc.failures)
				}
				late.group.Wait()
			})
		})
	}
}
