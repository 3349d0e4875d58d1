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
)

const (
	// speedRounds is how often each Deployment is made; the median counts. With -short it is made once.
	speedRounds = 3
	// shownCosts is how many rows of each kind of cost are printed.
	shownCosts = 15
)

// A distance is how far away pods run.
type distance struct {
	name string
	// to is the cluster that the consumer offloads to; nil if it does not.
	to *federation.Cluster
}

// TestSpeed makes Deployments of the consumer, of 1, 10 and 30 pods, whose pods stay at home, go to a provider, and go to the same
// provider through the broker. It prints how long it takes until all of them are ready, and what that costs each program, as a page of
// Markdown, and into the file that LIQO_BROKER_SPEED_REPORT names.
func TestSpeed(t *testing.T) {
	start(t, v1alpha1.ModeOrchestrated)
	toggle(t, fed.ProviderB, false)
	distances := []distance{{"local", nil}, {"one hop", fed.ProviderA}, {"two hops", fed.Broker}}
	report := &strings.Builder{}
	fmt.Fprintf(report, "| pods | local | one hop | two hops | two hops / one hop |\n|---|---|---|---|---|\n")
	last := map[string]federation.Cost{}
	made := 0
	const most = 30
	rounds := speedRounds
	if testing.Short() {
		rounds = 1
	}
	for _, pods := range []int{1, 10, most} {
		medians := map[string]time.Duration{}
		took := map[string][]time.Duration{}
		for range rounds {
			for _, d := range distances { // In turns: what the machine does besides concerns all.
				made++ // A namespace of a new name: of one that comes back, caches have to be told first that it was gone.
				one, cost := deployTimed(t, fmt.Sprintf("speed-%d", made), d, pods)
				t.Logf("%d pods, %s: %.1f s", pods, d.name, one.Seconds())
				took[d.name] = append(took[d.name], one)
				last[d.name] = cost
			}
		}
		for name, all := range took {
			slices.Sort(all)
			medians[name] = all[len(all)/2]
		}
		fmt.Fprintf(report, "| %d | %.1f s | %.1f s | %.1f s | %.2f |\n", pods, medians["local"].Seconds(), medians["one hop"].Seconds(),
			medians["two hops"].Seconds(), medians["two hops"].Seconds()/medians["one hop"].Seconds())
	}
	for _, d := range distances {
		printCost(report, d.name, most, last[d.name])
	}
	t.Log("\n" + report.String())
	if file := os.Getenv("LIQO_BROKER_SPEED_REPORT"); file != "" {
		if err := os.WriteFile(file, []byte(report.String()), 0o600); err != nil {
			t.Error(err)
		}
	}
}

// deployTimed returns how long it takes until a Deployment in a new namespace is ready, and what it costs.
func deployTimed(t *testing.T, namespace string, d distance, pods int) (time.Duration, federation.Cost) {
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
	return took, after.Less(before)
}

// printCost prints what costs the most for each pod.
func printCost(out io.Writer, name string, pods int, cost federation.Cost) {
	fmt.Fprintf(out, "\n%s, %d pods:\n\n| processor, for each pod | ms |\n|---|---|\n", name, pods)
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
