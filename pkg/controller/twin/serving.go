// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package twin

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/capacitorset/liqo-broker/pkg/registry"
)

// serving remembers since when pods serve, by the broker's own clock: what their
// conditions say is the time of their provider. It may be used concurrently.
type serving struct {
	mu    sync.Mutex
	since map[string]map[types.UID]time.Time // By namespace and pod; zero for longer than it is watched.
}

func newServing() *serving { return &serving{since: map[string]map[types.UID]time.Time{}} }

// note writes into the copies of a namespace since when they serve. Pods that are ready
// when the namespace is seen for the first time are taken to serve for long.
func (s *serving) note(now time.Time, namespace string, twin *registry.Namespace) {
	s.mu.Lock()
	defer s.mu.Unlock()
	before, watched := s.since[namespace]
	after := map[types.UID]time.Time{}
	for i := range twin.Snapshot.Copies {
		c := &twin.Snapshot.Copies[i]
		if !c.Ready {
			continue
		}
		uid := twin.Pods[c.Pod].UID
		since, served := before[uid]
		if !served && watched {
			since = now
		}
		after[uid], c.ReadySince = since, since
	}
	s.since[namespace] = after
}

// forget drops a namespace that is gone.
func (s *serving) forget(namespace string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.since, namespace)
}
