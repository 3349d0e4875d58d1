// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capacitorset/liqo-broker/pkg/api/v1alpha1"
	"github.com/capacitorset/liqo-broker/test/federation"
	"github.com/capacitorset/liqo-broker/test/percentile"
)

const (
	// speedRounds is how often each Deployment is made; the median counts. With -short it is made once.
	speedRounds = 3
	// manyPods are the most of a Deployment, of which costs are counted.
	manyPods = 30
	// idleFor is how long it is counted what clusters take that have nothing to do.
	idleFor = time.Minute
	// shownCosts is how many rows of each kind of cost are printed.
	shownCosts = 15
	// tripPods of a Deployment are connected to, tripTimes each.
	tripPods, tripTimes = 5, 10
	// goalMemory is how many MiB the agent and the transit may have while pods run.
	goalMemory = 64
)

// A distance is how far away pods run.
type distance struct {
	name string
	// to is the cluster that the consumer offloads to; nil if it does not.
	to *federation.Cluster
}

// farness is what is measured of one distance.
type farness struct {
	took map[int][]time.Duration // By the number of pods.
	// net are the costs of manyPods, without what is used anyway.
	net   []federation.Cost
	trips []time.Duration
}

// cost returns that of the round which cost the median of a processor.
func (f *farness) cost() federation.Cost {
	byProcessor := slices.SortedFunc(slices.Values(f.net), func(a, b federation.Cost) int {
		one, _ := a.Sum()
		other, _ := b.Sum()
		return int(one - other)
	})
	return byProcessor[len(byProcessor)/2]
}

// TestSpeed makes Deployments of the consumer, of 1, 10 and 30 pods, whose pods stay at home, go to a provider, and go to the same
// provider through the broker. It prints how long it takes until all of them are ready, what that costs each program, how long the way to
// the pods is, and what memory our programs have meanwhile, as a page of Markdown, and into the file that LIQO_BROKER_SPEED_REPORT names.
// With Liqo 1.x, where the first hop is Liqo alone, it fails where a goal is missed.
func TestSpeed(t *testing.T) {
	start(t, v1alpha1.ModeOrchestrated)
	toggle(t, fed.ProviderB, false)
	eventually(t, 2*time.Minute, fed.CheckOffer)
	distances := []distance{{"local", nil}, {"one hop", fed.ProviderA}, {"two hops", fed.Broker}}
	measured := map[string]*farness{}
	for _, d := range distances {
		measured[d.name] = &farness{took: map[int][]time.Duration{}}
	}
	sizes, rounds, made := []int{1, 10, manyPods}, speedRounds, 0
	if testing.Short() {
		rounds = 1
	}
	var idle federation.Cost
	residents := map[string]int{}
	for _, pods := range sizes {
		if pods == manyPods {
			idle = costOfIdling(t) // By now all that begins has begun.
		}
		for range rounds {
			for _, d := range distances { // In turns: what the machine does besides concerns all.
				made++ // A namespace of a new name: of one that comes back, caches have to be told first that it was gone.
				of, namespace := measured[d.name], fmt.Sprintf("speed-%d", made)
				took, cost := deployTimed(t, namespace, d, pods, func() {
					if pods == manyPods && d.to != nil {
						of.trips = append(of.trips, roundTrips(t, namespace)...)
						noteResidents(t, residents)
					}
				})
				t.Logf("%d pods, %s: %.1f s", pods, d.name, took.Seconds())
				of.took[pods] = append(of.took[pods], took)
				if pods == manyPods {
					of.net = append(of.net, cost.Net(took, idle, idleFor))
				}
			}
		}
	}

	report := &strings.Builder{}
	fmt.Fprintf(report, "With Liqo %s:\n\n", fed.Broker.Line.Name())
	printTimes(report, sizes, distances, measured)
	missed := printHops(report, distances, measured, idle)
	missed = append(missed, printResidents(report, residents)...)
	for _, d := range distances {
		printCost(report, d.name, manyPods, measured[d.name].cost())
	}
	publish(t, "LIQO_BROKER_SPEED_REPORT", report.String(), missed)
}

// publish prints a report, and writes it into the file that a variable of the environment names. Where goals are held, the test fails for
// each that is missed.
func publish(t *testing.T, variable, report string, missed []string) {
	t.Helper()
	t.Log("\n" + report)
	if file := os.Getenv(variable); file != "" {
		if err := os.WriteFile(file, []byte(report), 0o600); err != nil {
			t.Error(err)
		}
	}
	if fed.Broker.Has(federation.HeldGoals) {
		for _, goal := range missed {
			t.Error(goal)
		}
	}
}

// costOfIdling returns what the clusters take in idleFor while nobody wants anything.
func costOfIdling(t *testing.T) federation.Cost {
	t.Helper()
	before, err := fed.Cost(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	time.Sleep(idleFor)
	after, err := fed.Cost(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return after.Less(before)
}

// roundTrips returns how long TCP connections from the consumer to pods of a Deployment take.
func roundTrips(t *testing.T, namespace string) []time.Duration {
	t.Helper()
	pods, err := fed.Copies(t.Context(), namespace)
	if err != nil {
		t.Fatal(err)
	}
	var took []time.Duration
	for _, pod := range pods[:min(len(pods), tripPods)] {
		for range tripTimes {
			one, err := fed.RoundTrip(t.Context(), pod.Address[fed.Consumer.Name])
			if err != nil {
				t.Fatal(err)
			}
			took = append(took, one)
		}
	}
	return took
}

// noteResidents notes the most memory that each of our programs has had.
func noteResidents(t *testing.T, most map[string]int) {
	t.Helper()
	all, err := fed.Residents(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range all {
		what := r.Cluster + ": " + r.Program
		most[what] = max(most[what], r.MiB)
	}
}

// deployTimed returns how long it takes until a Deployment in a new namespace is ready, and what it costs. Then it calls a function while
// the pods run.
func deployTimed(t *testing.T, namespace string, d distance, pods int, meanwhile func()) (time.Duration, federation.Cost) {
	t.Helper()
	ctx := t.Context()
	defer func() {
		if err := fed.Remove(context.WithoutCancel(ctx), namespace); err != nil {
			t.Error(err)
		}
	}()
	// What was removed before may have kept the machine so busy that Liqo begins again: without it nothing can be offloaded.
	if _, err := fed.Consumer.Kubectl(ctx, "rollout", "status", "--namespace=liqo", "deployment/liqo-controller-manager",
		"--timeout=2m"); err != nil {
		t.Fatal(err)
	}
	if err := fed.DeployTo(ctx, namespace, d.to, 0); err != nil {
		t.Fatal(err)
	}
	// All are to find room on one provider.
	if _, err := fed.Consumer.Kubectl(ctx, "set", "resources", "--namespace="+namespace, "deployment/"+federation.Web,
		"--requests=cpu=10m"); err != nil {
		t.Fatal(err)
	}
	before, err := fed.Cost(ctx)
	if err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	if err := fed.Scale(ctx, namespace, federation.Web, pods); err != nil {
		t.Fatal(err)
	}
	for deadline := began.Add(5 * time.Minute); ; time.Sleep(50 * time.Millisecond) {
		var web appsv1.Deployment
		if err := fed.Consumer.Get(ctx, client.ObjectKey{Namespace: namespace, Name: federation.Web}, &web); err != nil {
			t.Fatal(err)
		}
		if int(web.Status.ReadyReplicas) == pods {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("%d of %d pods are ready, %s", web.Status.ReadyReplicas, pods, d.name)
		}
	}
	took := time.Since(began)
	after, err := fed.Cost(ctx)
	if err != nil {
		t.Fatal(err)
	}
	meanwhile()
	return took, after.Less(before)
}

// printTimes prints how long Deployments take until they are ready.
func printTimes(out io.Writer, sizes []int, distances []distance, measured map[string]*farness) {
	fmt.Fprintf(out, "| pods | local | one hop | two hops | two hops / one hop |\n|---|---|---|---|---|\n")
	for _, pods := range sizes {
		fmt.Fprintf(out, "| %d |", pods)
		var medians []float64
		for _, d := range distances {
			median := percentile.Of(measured[d.name].took[pods], 50).Seconds()
			medians = append(medians, median)
			fmt.Fprintf(out, " %.1f s |", median)
		}
		fmt.Fprintf(out, " %.2f |\n", medians[2]/medians[1])
	}
}

// printHops prints what each hop adds, and returns which goals are missed: the second one is to cost no more than the first.
func printHops(out io.Writer, distances []distance, measured map[string]*farness, idle federation.Cost) (missed []string) {
	idleCPU, idleRequests := idle.Sum()
	fmt.Fprintf(out, "\nFor each of %d pods, without what the clusters take anyway, %.0f ms of a processor and %.1f requests a second:\n\n"+
		"| | local | one hop | two hops | the first hop | the second hop |\n|---|---|---|---|---|---|\n", manyPods,
		float64(idleCPU.Milliseconds())/idleFor.Seconds(), idleRequests/idleFor.Seconds())
	var cpu, requests []float64
	for _, d := range distances {
		used, asked := measured[d.name].cost().Sum()
		cpu, requests = append(cpu, float64(used.Milliseconds())/manyPods), append(requests, asked/manyPods)
	}
	for _, row := range []struct {
		name string
		of   []float64
	}{{"ms of a processor", cpu}, {"requests to API servers", requests}} {
		first, second := row.of[1]-row.of[0], row.of[2]-row.of[1]
		fmt.Fprintf(out, "| %s | %.1f | %.1f | %.1f | %.1f | %.1f |\n", row.name, row.of[0], row.of[1], row.of[2], first, second)
		if second > first {
			missed = append(missed, fmt.Sprintf("the second hop takes %.1f %s for each pod, want no more than the %.1f of the first", second,
				row.name, first))
		}
	}
	near, far := percentile.Of(measured[distances[1].name].trips, 50), percentile.Of(measured[distances[2].name].trips, 50)
	fmt.Fprintf(out, "\nA TCP connection takes %.2f ms one hop away and %.2f ms two hops away: the broker adds %.2f ms.\n", near.Seconds()*1e3,
		far.Seconds()*1e3, (far-near).Seconds()*1e3)
	return missed
}

// printResidents prints what memory our programs have while pods run, and returns which goals are missed.
func printResidents(out io.Writer, residents map[string]int) (missed []string) {
	fmt.Fprintf(out, "\n| memory while %d pods run | MiB |\n|---|---|\n", manyPods)
	for _, what := range slices.Sorted(maps.Keys(residents)) {
		fmt.Fprintf(out, "| %s | %d |\n", what, residents[what])
		bounded := strings.HasSuffix(what, ": network-manager agent") || strings.HasSuffix(what, ": network-manager transit")
		if bounded && residents[what] > goalMemory {
			missed = append(missed, fmt.Sprintf("%s has %d MiB, want at most %d", what, residents[what], goalMemory))
		}
	}
	return missed
}

// printCost prints what costs the most for each pod.
func printCost(out io.Writer, name string, pods int, cost federation.Cost) {
	fmt.Fprintf(out, "\n%s, %d pods, without what the clusters take anyway:\n\n| processor, for each pod | ms |\n|---|---|\n", name, pods)
	programs := slices.SortedFunc(maps.Keys(cost.CPU), func(a, b string) int { return int(cost.CPU[b] - cost.CPU[a]) })
	var sum time.Duration
	for i, program := range programs {
		sum += cost.CPU[program]
		if i < shownCosts {
			fmt.Fprintf(out, "| %s | %.0f |\n", program, float64(cost.CPU[program].Milliseconds())/float64(pods))
		}
	}
	fmt.Fprintf(out, "| all | %.0f |\n\n| requests, for each pod | |\n|---|---|\n", float64(sum.Milliseconds())/float64(pods))
	requests := slices.SortedFunc(maps.Keys(cost.Requests), func(a, b string) int { return int(cost.Requests[b] - cost.Requests[a]) })
	var count float64
	for i, request := range requests {
		count += cost.Requests[request]
		if i < shownCosts {
			fmt.Fprintf(out, "| %s | %.1f |\n", request, cost.Requests[request]/float64(pods))
		}
	}
	fmt.Fprintf(out, "| all | %.1f |\n", count/float64(pods))
}
