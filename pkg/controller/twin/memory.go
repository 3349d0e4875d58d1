// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package twin

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/capacitorset/liqo-broker/pkg/placement"
	"github.com/capacitorset/liqo-broker/pkg/registry"
)

// A consumer has this long to make another pod for one that it was given back, or that
// went in another way. Until then its workload counts with the copies that it had.
const replaceTime = time.Minute

// memory knows what no object says of the copies in twin namespaces: since when they
// serve by the broker's own clock, because the time in their conditions is that of the
// provider; and how many there were a while ago. It may be used concurrently.
type memory struct {
	mu         sync.Mutex
	namespaces map[string]past
}

// past is what is remembered of a namespace.
type past struct {
	served map[types.UID]time.Time // By pod; zero for longer than the namespace is watched.
	most   map[string]peak         // By workload.
}

// peak is the largest number of copies of a workload, and when there were so many last.
type peak struct {
	copies int
	at     time.Time
}

func newMemory() *memory { return &memory{namespaces: map[string]past{}} }

// recall adds to the copies of a namespace what is remembered of them, and remembers
// them. Pods that are ready when the namespace is seen for the first time are taken to
// serve for long. It returns when less will be remembered; zero for never.
func (m *memory) recall(now time.Time, namespace string, twin *registry.Namespace) (wait time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	before, watched := m.namespaces[namespace]
	after := past{served: map[types.UID]time.Time{}, most: map[string]peak{}}
	copies := map[string]int{}
	for i := range twin.Snapshot.Copies {
		c := &twin.Snapshot.Copies[i]
		copies[c.Workload]++
		if !c.Ready {
			continue
		}
		uid := twin.Pods[c.Pod].UID
		since, served := before.served[uid]
		if !served && watched {
			since = now
		}
		after.served[uid], c.ReadySince = since, since
	}
	for workload, count := range copies {
		most := before.most[workload]
		rest := replaceTime - now.Sub(most.at)
		if count >= most.copies || rest <= 0 {
			after.most[workload] = peak{count, now}
			continue
		}
		after.most[workload] = most
		wait = placement.Sooner(wait, rest)
		for range most.copies - count {
			twin.Snapshot.Copies = append(twin.Snapshot.Copies, placement.Copy{Workload: workload, Missing: true})
		}
	}
	m.namespaces[namespace] = after
	return wait
}

// forget drops a namespace that is gone.
func (m *memory) forget(namespace string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.namespaces, namespace)
}
