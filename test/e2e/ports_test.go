// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"fmt"
	"maps"
	"net"
	"slices"
	"strconv"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/capacitorset/liqo-broker/pkg/api/v1alpha1"
	"github.com/capacitorset/liqo-broker/test/federation"
)

// TestEveryPortKnowsItsCallers finds the ports on which the broker's pods listen, and asks each without an identity from a pod of each
// peer.
func TestEveryPortKnowsItsCallers(t *testing.T) {
	together(t, v1alpha1.ModeOrchestrated)
	const closed = federation.Closed
	daemon := map[int]answer{
		7000: {"http://%s/", closed},                               // The resource plugin: Liqo's controller manager alone.
		8000: {"https://%s/api/toggle?id=any&enable=false", "401"}, // The HTTP API.
		8080: {"https://%s/metrics", closed},                       // Metrics.
		8081: {"http://%s/healthz", closed},                        // Probes.
		9443: {"https://%s/place-pods", closed},                    // Webhooks: no address of a peer.
	}
	manager := map[int]answer{
		6000: {"http://%s/", closed},         // Liqo's IPAM, which the guard closes.
		6001: {"https://%s/", closed},        // The remote IPAM: no handshake without a certificate.
		6002: {"https://%s/metrics", closed}, // Metrics.
		6003: {"http://%s/healthz", closed},  // Probes.
	}
	kubelet := map[int]answer{10250: {"https://%s/pods", "401"}}

	daemons, err := fed.Daemon().Pods(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	targets := map[*corev1.Pod]map[int]answer{}
	if !fed.Broker.Has(federation.Fenced) {
		targets[networkManager(t)] = manager
	} else {
		daemon = map[int]answer{8000: {"https://%s/", closed}, 8080: daemon[8080], 8081: daemon[8081], 9443: daemon[9443]}
		kubelet = map[int]answer{10250: {"https://%s/pods", closed}}
		transit, err := fed.Transit().Pod(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		targets[transit] = map[int]answer{6003: {"http://%s/healthz", closed}}
	}
	for _, pod := range daemons {
		targets[pod] = daemon
	}
	for _, pod := range virtualKubelets(t) {
		targets[pod] = kubelet
	}
	if len(targets) < 5 {
		t.Fatalf("the broker has %d pods of the project, want a daemon, a network manager and three virtual kubelets", len(targets))
	}
	for target, want := range targets {
		t.Run(target.Name, func(t *testing.T) {
			t.Parallel()
			checkPorts(t, target, want)
		})
	}
}

// checkPorts fails unless a pod of the broker listens on some ports and on no others, and each answers the peers as it should.
func checkPorts(t *testing.T, target *corev1.Pod, want map[int]answer) {
	t.Helper()
	ports, err := fed.Broker.Listening(target)
	if err != nil {
		t.Fatal(err)
	}
	if target.Labels["app.kubernetes.io/name"] == "network-manager" {
		want = withLiqosMetrics(want, ports)
	}
	if !slices.Equal(ports, slices.Sorted(maps.Keys(want))) {
		t.Errorf("%s listens on %v, want %v", target.Name, ports, slices.Sorted(maps.Keys(want)))
	}
	for _, peer := range []*federation.Cluster{fed.Consumer, fed.ProviderA, fed.ProviderB} {
		caller, address := pod(t, peer, "default", "tools"), seen(t, peer, fed.Broker, target.Status.PodIP)
		for _, port := range ports {
			url := fmt.Sprintf(want[port].url, net.JoinHostPort(address, strconv.Itoa(port)))
			if got, err := peer.Ask(t.Context(), caller, url); err != nil || got != want[port].status {
				t.Errorf("%s answers %s of %s with %s, want %s: %v", target.Name, url, peer.Name, got, want[port].status, err)
			}
		}
	}
}

// withLiqosMetrics adds the port of the metrics of Liqo's own network manager, which name no cluster: it is another one each time
// (--metrics-bind-addr=:0 in liqo/cmd/liqonet/flags.go@v0.9.4).
func withLiqosMetrics(want map[int]answer, ports []int) map[int]answer {
	const ephemeral = 32768 // net.ipv4.ip_local_port_range
	all := maps.Clone(want)
	for _, port := range ports {
		if port >= ephemeral && len(all) == len(want) {
			all[port] = answer{"http://%s/metrics", "200"}
		}
	}
	return all
}

// answer is what a port answers to a stranger's GET: a status, or nothing.
type answer struct{ url, status string }
