// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"maps"
	"testing"
	"time"

	"github.com/capacitorset/liqo-broker/pkg/api/v1alpha1"
	"github.com/capacitorset/liqo-broker/test/federation"
)

// TestSlowAPIServers makes the API servers of a provider, of the broker and of the consumer slow, one after the other, for 20 seconds or
// for as many as LIQO_BROKER_SLOW_SECONDS says. None of the project's programs is started again, no pod is replaced though no policy
// says that they stay, nobody answers but who is asked, and all is as before soon after.
func TestSlowAPIServers(t *testing.T) {
	duration := secondsOf(t, "LIQO_BROKER_SLOW_SECONDS", 20*time.Second)
	start(t, v1alpha1.ModeOrchestrated)
	deploy(t, faultNamespace, federation.Web, faultReplicas)
	for _, slow := range []*federation.Cluster{fed.ProviderA, fed.Broker, fed.Consumer} {
		t.Run(slow.Name, func(t *testing.T) {
			pods := bothPaths(t)
			checkAddresses(t, pods)
			started := ownRestarts(t)
			watch := newFaultWatch(t, pods)
			defer watch.prober.Stop()
			defer watch.tell(t)

			began := time.Now()
			end, err := slow.SlowAPIServer(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			time.Sleep(duration)
			if err := end(); err != nil {
				t.Fatal(err)
			}
			healed := watch.untilHealed(t, pods, time.Now())
			watch.prober.Stop()
			t.Logf("all was as before after %.1f s", healed.Seconds())
			if now := ownRestarts(t); !maps.Equal(started, now) {
				t.Errorf("programs were started again: %v, before %v", now, started)
			}
			for target, answers := range watch.prober.Answers(began, time.Now()) {
				if answers.Requests == 0 || answers.Wrong > 0 || sparedBySlow(slow, watch, target) && answers.Gap > quiet {
					t.Errorf("%v: %d requests, %d answers of others, none for %s", target, answers.Requests, answers.Wrong, answers.Gap)
				}
				t.Logf("%v: %d requests, %d without an answer, none for %.1f s", target, answers.Requests, answers.Errors, answers.Gap.Seconds())
			}
		})
	}
}

// sparedBySlow reports whether a target answers all the time while the API server of a cluster is slow.
func sparedBySlow(slow *federation.Cluster, watch *faultWatch, target federation.Target) bool {
	if direct() {
		// Liqo's gateway ends when it cannot renew its lease for 5 s, and the broker's carries what is relayed.
		return slow != fed.Broker || target.Path == federation.PathDirect
	}
	// Gateways of Liqo 1.x have no lease while a tunnel has one alone. Its virtual kubelet may call a node not ready whose API server, or
	// that behind it, does not answer, so that the Service loses pods that answer.
	return target != watch.service
}

func ownRestarts(t *testing.T) map[string]int {
	t.Helper()
	restarts, err := fed.OwnRestarts(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if len(restarts) == 0 {
		t.Fatal("none of the project's programs runs")
	}
	return restarts
}
