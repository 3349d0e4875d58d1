// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package twin

import (
	"context"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/record"
	"k8s.io/client-go/util/flowcontrol"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/capacitorset/liqo-broker/pkg/core/placement"
	"github.com/capacitorset/liqo-broker/pkg/liqo"
	"github.com/capacitorset/liqo-broker/pkg/snapshot"
)

// A provider that cannot make a namespace is tried again ever more seldom: who
// used the name may have gone. What lasts for a shorter time than the patience
// is no refusal: a namespace that was deleted a moment ago is in its own way.
const (
	refusalPatience = 10 * time.Second
	firstRefusal    = 5 * time.Minute
	maxRefusal      = time.Hour
)

// Planner decides about twin namespaces by what is read of them, and by what is remembered
// and stands in no object. Who carries a plan out and who tells people of it ask the same
// Planner, so that both speak of the same plan. It may be used concurrently.
type Planner struct {
	recorder record.EventRecorder
	clock    clock.PassiveClock
	memory   *memory

	mu       sync.Mutex // Of the refusals: each is noted once.
	refusals *flowcontrol.Backoff
}

// NewPlanner returns a Planner that remembers nothing yet.
func NewPlanner(recorder record.EventRecorder, now clock.PassiveClock) *Planner {
	return &Planner{
		recorder: recorder, clock: now, refusals: flowcontrol.NewBackOff(firstRefusal, maxRefusal), memory: newMemory(),
	}
}

// Plan adds what is remembered to what was read of a namespace, and decides. It also returns when
// to decide again although nothing changes; zero for never.
func (p *Planner) Plan(ctx context.Context, ns *corev1.Namespace, twin *snapshot.Twin) (plan placement.Plan, again time.Duration) {
	again = p.noteRefusals(ctx, ns, twin)
	now := p.clock.Now()
	again = placement.Sooner(again, p.memory.recall(now, ns.Name, twin))
	plan = placement.Decide(now, twin.Snapshot)
	return plan, placement.Sooner(again, plan.Wait)
}

// forget forgets a namespace that is gone.
func (p *Planner) forget(namespace string) { p.memory.forget(namespace) }

// noteRefusals marks the providers on which the namespace cannot be made, and
// returns when to look at them again; zero for never.
func (p *Planner) noteRefusals(ctx context.Context, ns *corev1.Namespace, twin *snapshot.Twin) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.refusals.GC()
	var again time.Duration
	now := p.refusals.Clock.Now()
	for i := range twin.Snapshot.Providers {
		provider := &twin.Snapshot.Providers[i]
		id := string(ns.UID) + "/" + string(provider.ID)
		if since, refused := twin.Refused[provider.ID]; refused && !p.refusals.IsInBackOffSinceUpdate(id, now) {
			if wait := refusalPatience - now.Sub(since); wait > 0 {
				again = placement.Sooner(again, wait)
				continue
			}
			p.refusals.Next(id, now)
			ctrl.LoggerFrom(ctx).Info("A provider cannot make the namespace: it may have another one of that name",
				"provider", provider.ID, "name", liqo.RemoteNamespace(twin.Offloading))
			p.recorder.Eventf(twin.Offloading, corev1.EventTypeWarning, reasonRefused,
				"A provider cannot make the namespace %s, which may exist there already; no pods go there",
				liqo.RemoteNamespace(twin.Offloading))
		}
		if p.refusals.IsInBackOffSinceUpdate(id, now) {
			provider.Namespace = placement.Refused
			again = placement.Sooner(again, p.refusals.Get(id))
		}
	}
	return again
}
