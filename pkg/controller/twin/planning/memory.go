// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package planning

import (
	"maps"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
	"github.com/capacitorset/liqo-broker/pkg/core/placement"
	"github.com/capacitorset/liqo-broker/pkg/snapshot"
)

// A consumer has this long to make another pod for one that it was given back, or that
// went in another way. Until then its workload counts with the copies that it had.
const replaceTime = time.Minute

// A pod that is evened out onto a provider has PlaceTime until it is placed there. If it
// is not, something but its requests is in the way, as a volume or what the pod requires,
// and no copy of its workload is evened out onto the provider for declineTime.
const (
	PlaceTime   = 30 * time.Second
	declineTime = time.Hour
)

// memory knows what no object says of the copies in twin namespaces: since when they
// serve by the broker's own clock, because the time in their conditions is that of the
// provider; how many there were a while ago; and where copies waited in vain. It may be used
// concurrently.
type memory struct {
	mu         sync.Mutex
	namespaces map[string]past
}

// past is what is remembered of a namespace.
type past struct {
	served map[types.UID]time.Time // By pod; zero for longer than the namespace is watched.
	most   map[string]peak         // By workload.
	waits  map[types.UID]time.Time // Since when pods wait that may not go everywhere.
	// declined tells when copies waited for providers in vain, by workload.
	declined map[string]map[cluster.ID]time.Time
}

// peak is the largest number of copies of a workload, and when there were so many last.
type peak struct {
	copies int
	at     time.Time
}

func newMemory() *memory { return &memory{namespaces: map[string]past{}} }

// recall adds to the copies of a namespace what is remembered of them, and remembers
// them. It returns when less will be remembered; zero for never.
func (m *memory) recall(now time.Time, namespace string, twin *snapshot.Twin) (wait time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	before, watched := m.namespaces[namespace]
	m.namespaces[namespace], wait = next(now, before, watched, twin)
	return wait
}

// peek does the same and remembers nothing.
func (m *memory) peek(now time.Time, namespace string, twin *snapshot.Twin) (wait time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	before, watched := m.namespaces[namespace]
	_, wait = next(now, before, watched, twin)
	return wait
}

// has reports whether something is remembered of a namespace.
func (m *memory) has(namespace string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	_, watched := m.namespaces[namespace]
	return watched
}

// next adds to the copies of a namespace what is remembered of them, and returns what is to be
// remembered from now on, and when that will be less. It leaves before as it is. Pods that are
// ready when the namespace was not watched before are taken to serve for long.
func next(now time.Time, before past, watched bool, twin *snapshot.Twin) (after past, wait time.Duration) {
	after = past{served: map[types.UID]time.Time{}, most: map[string]peak{}}
	if twin.Snapshot.Level {
		wait = after.leveled(now, before, twin)
	}
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
	return after, wait
}

// leveled remembers on which providers copies waited in vain while they could go nowhere
// else, and tells the namespace. It returns when to look at those that wait.
func (p *past) leveled(now time.Time, before past, twin *snapshot.Twin) (wait time.Duration) {
	s := &twin.Snapshot
	p.waits, p.declined = map[types.UID]time.Time{}, map[string]map[cluster.ID]time.Time{}
	for workload, at := range before.declined {
		at = maps.Clone(at)
		maps.DeleteFunc(at, func(_ cluster.ID, at time.Time) bool { return now.Sub(at).Abs() >= declineTime })
		if len(at) > 0 {
			p.declined[workload] = at
		}
	}
	for _, c := range s.Copies {
		if c.Missing {
			continue
		}
		uid := twin.Pods[c.Pod].UID
		since, waited := before.waits[uid]
		switch {
		case c.Spot == placement.OnProvider && waited:
			delete(p.declined[c.Workload], c.Provider) // It took one.
		case c.Spot != placement.Nowhere || c.Leaving || c.Outdated || len(s.Placing) >= len(s.Selected):
		default:
			if !waited {
				since = now
			}
			p.waits[uid] = since
			if rest := PlaceTime - now.Sub(since); rest > 0 {
				wait = placement.Sooner(wait, rest)
				continue
			}
			for _, id := range s.Placing {
				if p.declined[c.Workload] == nil {
					p.declined[c.Workload] = map[cluster.ID]time.Time{}
				}
				p.declined[c.Workload][id] = now
			}
		}
	}
	s.Declined = make(map[string][]cluster.ID, len(p.declined))
	for workload, at := range p.declined {
		s.Declined[workload] = slices.Collect(maps.Keys(at))
	}
	return wait
}

// forgetNamespace drops a namespace that is gone.
func (m *memory) forgetNamespace(namespace string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.namespaces, namespace)
}
