// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/capacitorset/liqo-broker/pkg/api/v1alpha1"
	"github.com/capacitorset/liqo-broker/test/federation"
)

// All journeys share one federation, and spend most of their time waiting for Kubernetes. This file says which of them wait side by
// side. A journey begins with one of
//
//	start(t, mode)     it has the federation to itself;
//	together(t, mode)  it runs beside other journeys of the same mode;
//	last(t)            it leaves something behind that no other journey may meet.
//
// The test runner takes those that are alone first, in the order of the files. Then come the ones of mode Aggregated together, then those
// of mode Orchestrated together, and those that are last, one after the other.
//
// A journey may run together with others if it
//
//   - has namespaces of its own, and binds its policies to these by name: pin keeps pods on one provider, where one that is alone would
//     switch the others off;
//   - leaves as they are: links, processes, peerings, webhooks, the mode, and which providers are on;
//   - depends on nothing that pods of others change: what is free on providers, the traffic of a cluster, where the scheduler puts
//     pods that may run on several providers, and how soon the consumer hears of a pod that is ready: the broker counts on 2 s.

// A turn is a part of the run in which journeys run side by side.
type turn int

const (
	turnAggregated turn = iota
	turnOrchestrated
	turnLast
	turns
)

// abreast is how many journeys run side by side. Two cores run four clusters: more would not end earlier, and with more they have nothing
// left to do, while gateways lose their leases.
const abreast = 3

// A crowd lets journeys run turn by turn.
type crowd struct {
	mu      sync.Mutex
	changed *sync.Cond
	// left is how many journeys of a turn have not ended, and running how many run.
	left    [turns]int
	running int
}

// journeys are those that do not run alone.
var journeys = newCrowd()

func newCrowd() *crowd {
	c := &crowd{}
	c.changed = sync.NewCond(&c.mu)
	return c
}

// enroll makes later turns wait for a journey that will enter.
func (c *crowd) enroll(of turn) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.left[of]++
}

// enter waits until a journey may run.
func (c *crowd) enter(of turn) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for !c.open(of) {
		c.changed.Wait()
	}
	c.running++
}

// open reports whether a journey may run now. The caller holds the lock.
func (c *crowd) open(of turn) bool {
	for earlier := range of {
		if c.left[earlier] > 0 {
			return false
		}
	}
	return c.running == 0 || of != turnLast && c.running < abreast
}

// leave notes that a journey has ended.
func (c *crowd) leave(of turn) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.left[of]--
	c.running--
	c.changed.Broadcast()
}

// together gives a test a broker that serves the consumer in a mode, with all providers on, beside other tests.
func together(t *testing.T, mode v1alpha1.Mode) {
	t.Helper()
	queue(t, map[v1alpha1.Mode]turn{v1alpha1.ModeAggregated: turnAggregated, v1alpha1.ModeOrchestrated: turnOrchestrated}[mode])
	start(t, mode)
}

// last makes a test run when all others have ended, and nothing of theirs is left.
func last(t *testing.T) {
	t.Helper()
	queue(t, turnLast)
	if err := removals.wait(); err != nil {
		t.Error(err)
	}
}

// queue waits until it is a test's turn. The time that the test runner prints is longer by this.
func queue(t *testing.T, of turn) {
	t.Helper()
	journeys.enroll(of)
	t.Parallel()
	t.Cleanup(func() { journeys.leave(of) })
	journeys.enter(of)
	began := time.Now()
	t.Cleanup(func() { t.Logf("%s took %.1f s when it was its turn", t.Name(), time.Since(began).Seconds()) })
}

// pin keeps the pods of a namespace of the consumer on a provider until the test ends.
func pin(t *testing.T, namespace string, to *federation.Cluster) {
	t.Helper()
	bind(t, "pin-"+namespace, to, fmt.Sprintf("{scope: Namespaces, namespaces: {names: [%s]}}", namespace))
}

// removals are the namespaces of journeys that have ended, on their way out: no pod is left in them.
var removals removing

type removing struct {
	mu    sync.Mutex
	group *errgroup.Group // Nil if none has gone since the last wait.
}

// add empties a namespace of the consumer, and lets it go while the next journey runs.
func (r *removing) add(ctx context.Context, f *federation.Federation, namespace string) error {
	if err := f.Empty(ctx, namespace); err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.group == nil {
		r.group = new(errgroup.Group)
	}
	r.group.Go(func() error {
		if err := f.Removed(ctx, namespace); err != nil {
			return fmt.Errorf("remove namespace %s: %w", namespace, err)
		}
		return nil
	})
	return nil
}

// wait returns when all namespaces are gone, with an error if one of them stays. It says that once: who has heard it fails, and is run
// again by itself.
func (r *removing) wait() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.group == nil {
		return nil
	}
	group := r.group
	r.group = nil
	return group.Wait()
}

// removeAtEnd removes namespaces of the consumer when the test has ended, and now what a run that was stopped left of them. If it has
// failed, it says first what is there: what stayed would take the journeys after it the processors.
func removeAtEnd(t *testing.T, namespaces ...string) {
	t.Helper()
	each := func(do func(namespace string) error) error {
		var group errgroup.Group
		for _, namespace := range namespaces {
			group.Go(func() error { return do(namespace) })
		}
		return group.Wait()
	}
	t.Cleanup(func() {
		if t.Failed() {
			for _, namespace := range namespaces {
				t.Log(evidence(context.WithoutCancel(t.Context()), namespace))
			}
		}
		ctx, f := context.WithoutCancel(t.Context()), fed
		if err := each(func(namespace string) error { return removals.add(ctx, f, namespace) }); err != nil {
			t.Errorf("empty namespaces %v: %v", namespaces, err)
		}
	})
	if err := each(func(namespace string) error { return fed.Remove(t.Context(), namespace) }); err != nil {
		t.Fatal(err)
	}
}

// evidence returns what the clusters show after a journey that failed: the pods of its namespace and of Liqo, the peerings, and what the
// broker's daemon wrote last of the namespace.
func evidence(ctx context.Context, namespace string) string {
	const most = 30
	var shown strings.Builder
	ask := func(c *federation.Cluster, about string, args ...string) {
		out, err := c.Kubectl(ctx, args...)
		if err != nil {
			out = err.Error()
		}
		lines := slices.DeleteFunc(strings.Split(out, "\n"), func(line string) bool { return !strings.Contains(line, about) })
		fmt.Fprintf(&shown, "%s: kubectl %s\n", c.Name, strings.Join(args, " "))
		for _, line := range lines[max(0, len(lines)-most):] {
			fmt.Fprintf(&shown, "  %s\n", line)
		}
	}
	for _, c := range fed.Clusters() {
		ask(c, namespace, "get", "pods", "--all-namespaces", "--output=wide")
		ask(c, "liqo", "get", "pods", "--all-namespaces")
		ask(c, "", "get", "foreignclusters")
	}
	ask(fed.Broker, namespace, "logs", "--namespace=liqo-broker", "--selector=app.kubernetes.io/name=liqo-broker", "--tail=1000")
	return shown.String()
}
