// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

// Package planning decides about the twin namespaces of consumers by what is read of them, and by what is remembered and stands in no
// object; explains what is decided; and foresees what becomes of the pods on a provider that is to be drained.
//
// It changes nothing in a cluster, and does not know a manager: package twin carries its plans out. The rules are in package placement.
package planning

import (
	"context"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/record"
	"k8s.io/client-go/util/flowcontrol"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
	"github.com/capacitorset/liqo-broker/pkg/core/grant"
	"github.com/capacitorset/liqo-broker/pkg/core/placement"
	"github.com/capacitorset/liqo-broker/pkg/liqo"
	"github.com/capacitorset/liqo-broker/pkg/snapshot"
)

// A provider that cannot make a namespace is tried again ever more seldom: who
// used the name may have gone. What lasts for a shorter time than the patience
// is no refusal: a namespace that was deleted a moment ago is in its own way.
const (
	RefusalPatience = 10 * time.Second
	FirstRefusal    = 5 * time.Minute
	maxRefusal      = time.Hour
)

// Planner decides about twin namespaces by what is read of them, and by what is remembered
// and stands in no object. Who carries a plan out and who tells people of it ask the same
// Planner, so that both speak of the same plan. It may be used concurrently.
type Planner struct {
	recorder record.EventRecorder
	clock    clock.Clock
	memory   *memory
	views    func(consumer cluster.ID) grant.Views

	mu       sync.Mutex // Of the refusals: each is noted once.
	refusals *flowcontrol.Backoff
}

// NewPlanner returns a Planner that remembers nothing yet. The views tell which providers a consumer has told that it can reach: new pods
// go to no others. Without them nobody is asked.
func NewPlanner(recorder record.EventRecorder, now clock.Clock, views func(consumer cluster.ID) grant.Views) *Planner {
	if views == nil {
		views = func(cluster.ID) grant.Views { return grant.Views{} }
	}
	refusals := flowcontrol.NewBackOff(FirstRefusal, maxRefusal)
	refusals.Clock = now
	return &Planner{recorder: recorder, clock: now, refusals: refusals, memory: newMemory(), views: views}
}

// Plan adds what is remembered to what was read of a namespace, decides, and remembers what it
// saw. It also returns when to decide again although nothing changes; zero for never.
func (p *Planner) Plan(ctx context.Context, ns *corev1.Namespace, twin *snapshot.Twin) (plan placement.Plan, again time.Duration) {
	p.noteRefusals(ctx, ns, twin)
	return p.decide(ns, twin, p.memory.recall)
}

// Preview returns what Plan would return at this moment. It remembers nothing and tells nobody.
func (p *Planner) Preview(ns *corev1.Namespace, twin *snapshot.Twin) (plan placement.Plan, again time.Duration) {
	return p.decide(ns, twin, p.memory.peek)
}

// Remembers reports whether the namespace was planned before. Without that, pods that are ready
// are taken to serve for long, and nobody knows where others waited in vain.
func (p *Planner) Remembers(namespace string) bool { return p.memory.has(namespace) }

// decide decides with what some function adds of the memory.
func (p *Planner) decide(
	ns *corev1.Namespace, twin *snapshot.Twin, remembered func(time.Time, string, *snapshot.Twin) time.Duration,
) (plan placement.Plan, again time.Duration) {
	now, again := p.complete(ns, twin, remembered)
	plan = placement.Decide(now, twin.Snapshot)
	return plan, placement.Sooner(again, plan.Wait)
}

// Foresee returns what becomes of the pods of a namespace that are on a provider, if nothing else changes. It remembers nothing and tells
// nobody.
func (p *Planner) Foresee(ns *corev1.Namespace, twin *snapshot.Twin, on cluster.ID) []placement.Prospect {
	now, _ := p.complete(ns, twin, p.memory.peek)
	return placement.Foresee(now, twin.Snapshot, on)
}

// complete adds to what was read of a namespace what is known besides, and returns the time, and when to look again.
func (p *Planner) complete(
	ns *corev1.Namespace, twin *snapshot.Twin, remembered func(time.Time, string, *snapshot.Twin) time.Duration,
) (now time.Time, again time.Duration) {
	again = placement.Sooner(p.markRefusing(ns, twin), p.markUnreached(ns, twin))
	now = p.clock.Now()
	return now, placement.Sooner(again, remembered(now, ns.Name, twin))
}

// ForgetNamespace forgets a namespace that is gone.
func (p *Planner) ForgetNamespace(namespace string) { p.memory.forgetNamespace(namespace) }

// noteRefusals notes the providers on which the namespace cannot be made: each of them is then
// left alone for a while.
func (p *Planner) noteRefusals(ctx context.Context, ns *corev1.Namespace, twin *snapshot.Twin) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.refusals.GC()
	now := p.refusals.Clock.Now()
	for i := range twin.Snapshot.Providers {
		provider := twin.Snapshot.Providers[i].ID
		since, refused := twin.Refused[provider]
		if id := refusalID(ns, provider); refused && now.Sub(since) >= RefusalPatience && !p.refusals.IsInBackOffSinceUpdate(id, now) {
			p.refusals.Next(id, now)
			ctrl.LoggerFrom(ctx).Info("A provider cannot create the namespace: it may have another one of that name",
				"provider", provider, "name", twin.Offloading.RemoteName)
			p.recorder.Eventf(twin.Offloading.Object, corev1.EventTypeWarning, ReasonRefused,
				"A provider cannot create the namespace %s, which may exist there already; no pods go there",
				twin.Offloading.RemoteName)
		}
	}
}

// markRefusing marks the providers on which the namespace cannot be made, and
// returns when to look at them again; zero for never.
func (p *Planner) markRefusing(ns *corev1.Namespace, twin *snapshot.Twin) (again time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.refusals.Clock.Now()
	for i := range twin.Snapshot.Providers {
		provider := &twin.Snapshot.Providers[i]
		id := refusalID(ns, provider.ID)
		since, refused := twin.Refused[provider.ID]
		noted, wait := p.refusals.IsInBackOffSinceUpdate(id, now), RefusalPatience-now.Sub(since)
		switch {
		case noted:
			again = placement.Sooner(again, p.refusals.Get(id))
		case refused && wait > 0:
			again = placement.Sooner(again, wait)
		}
		if noted || refused && wait <= 0 {
			provider.Namespace = placement.Refused
		}
	}
	return again
}

// markUnreached marks the providers of which the consumer has not told that it can reach them, and returns when to look at them again; zero
// for never.
func (p *Planner) markUnreached(ns *corev1.Namespace, twin *snapshot.Twin) (again time.Duration) {
	consumer, _ := liqo.TwinOf(ns)
	views := p.views(consumer)
	twin.Snapshot.NeedsViews = views.Asked
	for i := range twin.Snapshot.Providers {
		provider := &twin.Snapshot.Providers[i]
		provider.ViewUnknown = !views.Knows(provider.ID)
	}
	return views.Turns()
}

func refusalID(ns *corev1.Namespace, provider cluster.ID) string {
	return string(ns.UID) + "/" + string(provider)
}
