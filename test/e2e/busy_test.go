// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/capacitorset/liqo-broker/pkg/api/v1alpha1"
	"github.com/capacitorset/liqo-broker/test/federation"
	"github.com/capacitorset/liqo-broker/test/percentile"
	"github.com/capacitorset/liqo-broker/test/walk"
)

const (
	// busyPods are so many, each of which takes what it gets of a processor, that more than enough of them are on each.
	busyPods = 12
	// busyFor is how long answers are counted in each turn.
	busyFor = 30 * time.Second
	// stockShare takes from Liqo's gateway what patches/liqo-install/gateway-resources.json gives it, but for its lease.
	stockShare = `{"spec": {"template": {"spec": {"priorityClassName": null, "containers": [{"name": "gateway", "resources": {"requests": null}}]}}}}`
)

// TestBusyNode makes the broker's node busy, and prints how long the slowest hundredth of requests to pods takes, direct and by the broker,
// with the share that its gateway has and without, in turns: what the machine does besides concerns all. With it, the relay may take twice
// as long as the direct path.
func TestBusyNode(t *testing.T) {
	needs(t, federation.GatewayShare)
	start(t, v1alpha1.ModeOrchestrated)
	deploy(t, faultNamespace, federation.Web, faultReplicas)
	pods := bothPaths(t)
	checkAddresses(t, pods)
	broker := func(args ...string) {
		t.Helper()
		if said, err := fed.Broker.Kubectl(t.Context(), args...); err != nil {
			t.Fatal(err, said)
		}
	}
	broker("--namespace=default", "create", "deployment", "busy", "--image=lab.local/tools:1", fmt.Sprintf("--replicas=%d", busyPods),
		"--", "sh", "-c", "while :; do :; done")
	walk.KubectlAtEnd(t, fed.Broker, "--namespace=default", "delete", "deployment", "busy")
	broker("--namespace=default", "rollout", "status", "deployment", "busy", "--timeout=3m")

	// Each turn begins when all answer again: a gateway that is changed starts again.
	slowest := map[bool]map[federation.Path][]time.Duration{true: {}, false: {}}
	for _, has := range []bool{true, false, false, true} {
		if has {
			if err := fed.InstallBroker(t.Context(), federation.NewProgress(t.Output())); err != nil {
				t.Fatal(err)
			}
		} else {
			broker("--namespace=liqo", "patch", "deployment", "liqo-gateway", "--patch", stockShare)
			broker("--namespace=liqo", "rollout", "status", "deployment", "liqo-gateway", "--timeout=3m")
		}
		checkAddresses(t, bothPaths(t))
		for path, took := range slowestOf(t, pods) {
			t.Logf("with its share: %t, %s: %d ms", has, path, took.Milliseconds())
			slowest[has][path] = append(slowest[has][path], took)
		}
	}
	relay, direct := slices.Min(slowest[true][federation.PathRelay]), slices.Min(slowest[true][federation.PathDirect])
	if relay > 2*direct {
		t.Errorf("by the broker the slowest hundredth takes %s, and directly %s: want at most twice that", relay, direct)
	}
}

// slowestOf asks pods for a while, and returns how long the slowest hundredth of the answers takes on each path.
func slowestOf(t *testing.T, pods []federation.Copy) map[federation.Path]time.Duration {
	t.Helper()
	prober, err := fed.NewProber(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, pod := range pods {
		prober.Add(federation.Target{Pod: pod.Name, Address: pod.Address[fed.Consumer.Name] + ":8080", Path: pod.Path})
	}
	began := time.Now()
	time.Sleep(busyFor)
	took := prober.Took(began, time.Now())
	prober.Stop()
	slowest := map[federation.Path]time.Duration{}
	for path, all := range took {
		slowest[path] = percentile.Of(all, 99)
	}
	return slowest
}
