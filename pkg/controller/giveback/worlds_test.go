// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package giveback

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/capacitorset/liqo-broker/test/worlds"
)

// anyWorkload gives the pods of a workload back again and again, by a clock that is ahead of that of the API server or
// behind it: each pod waits no less than the one that it replaces, and no longer than the longest time.
func anyWorkload(t *testing.T, r *rand.Rand) {
	type pod struct {
		made, since time.Time
		before      time.Duration // How long the one waited that it replaces.
	}
	p, at := patience{}, began
	first := time.Duration(5+r.IntN(300)) * time.Second
	ahead := time.Duration(r.IntN(6000)-3000) * time.Millisecond
	pods := make([]pod, 1+r.IntN(5))
	for i := range pods {
		pods[i] = pod{made: at.Truncate(time.Second), since: at}
	}
	for range 200 {
		at = at.Add(time.Duration(1+r.IntN(60_000)) * time.Millisecond)
		for i := range pods {
			wait := p.of("web", pods[i].made, first)
			if wait < max(first, pods[i].before) || wait > max(longest, first) {
				t.Fatalf("a pod waits %s; the one before waited %s, and the first one %s", wait, pods[i].before, first)
			}
			if at.Add(ahead).Sub(pods[i].since) < wait {
				continue
			}
			p.note("web", pods[i].made, at.Add(ahead), wait)
			again := at.Add(time.Duration(r.IntN(1500)) * time.Millisecond)
			pods[i] = pod{made: again.Truncate(time.Second), since: again, before: wait}
		}
	}
	for i := range 1000 {
		p.note(fmt.Sprint(i), at, at.Add(time.Duration(i)*time.Minute), first)
	}
	if most := int(2*longest/time.Minute) + 2; len(p) > most {
		t.Errorf("%d workloads are remembered, want %d at most", len(p), most)
	}
}

// TestAnyWorkload gives back the pods of random workloads.
func TestAnyWorkload(t *testing.T) {
	worlds.Run(t, func(t *testing.T, seed uint64) { anyWorkload(t, rand.New(rand.NewPCG(seed, 1))) })
}
