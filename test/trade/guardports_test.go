// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package trade

import (
	"fmt"
	"maps"
	"net"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capacitorset/liqo-broker/pkg/liqo"
	v09 "github.com/capacitorset/liqo-broker/pkg/liqo/v09"
	"github.com/capacitorset/liqo-broker/test/federation"
)

// An answer is what a port answers to a GET without an identity.
type answer struct {
	url string
	// peer is told a pod of another cluster, and guest a pod of a peer that runs on the cluster of the port: a status, or that the port is
	// closed.
	peer, guest string
}

// An asker is a pod that asks, and where it runs.
type asker struct {
	on    *federation.Cluster
	pod   *corev1.Pod
	guest bool
	// at is where it sees what it asks.
	at string
}

// TestTradersPortsKnowTheirCallers finds the ports on which the registry listens, the connectors and guards of a buyer and its seller, and
// the buyer's virtual kubelet. It asks each without an identity: from a pod of the other cluster, and from a pod of the buyer that runs on
// the seller. Neither reaches Liqo's IPAM.
func TestTradersPortsKnowTheirCallers(t *testing.T) {
	contracted(t)
	const closed = federation.Closed
	connector := map[int]answer{
		7000: {"http://%s/", closed, closed},                       // The resource plugin: Liqo's controller manager alone.
		8080: {"https://%s/metrics", closed, "401"},                // Metrics.
		8081: {"http://%s/healthz", closed, "200"},                 // Probes.
		8446: {"https://%s/negotiation/v1/quotes", closed, closed}, // Negotiations: no handshake without a key.
	}
	guard := map[int]answer{
		8081: {"http://%s/healthz", closed, "200"},       // Probes.
		9443: {"https://%s/isolate-pods", closed, "405"}, // Webhooks: no address of a peer; all are for POST.
	}
	openAtRegistry := map[int]answer{
		8443: {"https://%s/v1/offers", "401", "401"}, // The API.
		8444: {"http://%s/healthz", "200", "200"},    // Probes.
		8445: {"http://%s/metrics", "200", "200"},    // Metrics, which name nobody.
	}

	tools := func(of *federation.Cluster) *corev1.Pod {
		pod := &corev1.Pod{}
		if err := of.Get(t.Context(), client.ObjectKey{Namespace: "default", Name: "tools"}, pod); err != nil {
			t.Fatal(err)
		}
		return pod
	}
	guest := onlyPod(t, fed.ProviderB, twinAt(t, fed.ProviderB, fed.Consumer))
	for _, side := range [][2]*federation.Cluster{{fed.ProviderB, fed.Consumer}, {fed.Consumer, fed.ProviderB}} {
		of, peer := side[0], side[1]
		for namespace, want := range map[string]map[int]answer{"liqo-broker-connector": connector, "liqo-broker-guard": guard} {
			target := onlyPod(t, of, namespace)
			seen, err := peer.Seen(t.Context(), of, target.Status.PodIP)
			if err != nil {
				t.Fatal(err)
			}
			askers := []asker{{on: peer, pod: tools(peer), at: seen}}
			if of == fed.ProviderB {
				askers = append(askers, asker{on: of, pod: guest, guest: true, at: target.Status.PodIP})
			}
			ports, err := of.Listening(target)
			if err != nil {
				t.Fatal(err)
			}
			t.Run(of.Name+"/"+namespace, func(t *testing.T) {
				t.Parallel()
				checkPorts(t, ports, want, askers)
			})
		}
		// A virtual kubelet of who buys: the API server asks it, and pods of the seller are nobody to it.
		for _, kubelet := range virtualKubelets(t, of) {
			seen, err := peer.Seen(t.Context(), of, kubelet.Status.PodIP)
			if err != nil {
				t.Fatal(err)
			}
			ports, err := of.Listening(kubelet)
			if err != nil {
				t.Fatal(err)
			}
			t.Run(of.Name+"/"+kubelet.Name, func(t *testing.T) {
				t.Parallel()
				checkPorts(t, ports, map[int]answer{10250: {"https://%s/pods", "401", "401"}}, []asker{{on: peer, pod: tools(peer), at: seen}})
			})
		}
		strangers := []asker{{on: peer, pod: tools(peer)}}
		if of == fed.ProviderB {
			strangers = append(strangers, asker{on: of, pod: guest, guest: true})
		}
		t.Run(of.Name+"/liqo-network-manager", func(t *testing.T) {
			t.Parallel()
			checkIPAM(t, of, strangers)
		})
	}
	ports, err := registry.Listening()
	if err != nil {
		t.Fatal(err)
	}
	at, err := url.Parse(registry.URL)
	if err != nil {
		t.Fatal(err)
	}
	t.Run("registry", func(t *testing.T) {
		t.Parallel()
		checkPorts(t, ports, openAtRegistry, []asker{
			{on: fed.Consumer, pod: tools(fed.Consumer), at: at.Hostname()}, {on: fed.ProviderB, pod: guest, guest: true, at: at.Hostname()},
		})
	})
}

// checkIPAM fails unless Liqo's IPAM on a cluster is closed to strangers, and open to the virtual kubelets of the cluster and to its own
// pod. The metrics of Liqo's own program, in the same pod, answer all of them, so that it is not the path that is missing.
func checkIPAM(t *testing.T, of *federation.Cluster, strangers []asker) {
	t.Helper()
	manager := onlyPod(t, of, liqo.DefaultNamespace, client.MatchingLabels{"app.kubernetes.io/name": "network-manager"})
	ports, err := of.Listening(manager)
	if err != nil {
		t.Fatal(err)
	}
	if len(ports) != 2 || ports[0] != v09.IPAMPort {
		t.Fatalf("it listens on %v, want %d and the port of the metrics", ports, v09.IPAMPort)
	}
	check := func(a asker, port int, want bool) {
		t.Helper()
		if open, err := a.on.Reaches(t.Context(), a.pod, net.JoinHostPort(a.at, strconv.Itoa(port))); err != nil || open != want {
			t.Errorf("pod %s/%s on %s reaches port %d of %s at %s: %t, want %t: %v", a.pod.Namespace, a.pod.Name, a.on.Name, port, of.Name, a.at,
				open, want, err)
		}
	}
	for _, a := range strangers {
		if a.at = manager.Status.PodIP; !a.guest {
			if a.at, err = a.on.Seen(t.Context(), of, manager.Status.PodIP); err != nil {
				t.Fatal(err)
			}
		}
		check(a, ports[1], true)
		check(a, v09.IPAMPort, false)
	}
	check(asker{on: of, pod: manager, at: "127.0.0.1"}, v09.IPAMPort, true)

	for _, kubelet := range virtualKubelets(t, of) {
		check(asker{on: of, pod: kubelet, at: manager.Status.PodIP}, v09.IPAMPort, true)
	}
}

// virtualKubelets returns those of a cluster that run. Who consumes has some.
func virtualKubelets(t *testing.T, of *federation.Cluster) []*corev1.Pod {
	t.Helper()
	var all corev1.PodList
	if err := of.List(t.Context(), &all, client.MatchingLabelsSelector{Selector: v09.VirtualKubeletSelector()}); err != nil {
		t.Fatal(err)
	}
	var running []*corev1.Pod
	for i := range all.Items {
		if k := &all.Items[i]; strings.HasPrefix(k.Namespace, "liqo-tenant-") && k.DeletionTimestamp == nil &&
			k.Status.Phase == corev1.PodRunning {
			running = append(running, k)
		}
	}
	if of == fed.Consumer && len(running) == 0 {
		t.Error("the consumer has no virtual kubelet")
	}
	return running
}

// onlyPod returns the one pod of a namespace, or of those that are meant.
func onlyPod(t *testing.T, c *federation.Cluster, namespace string, meant ...client.ListOption) *corev1.Pod {
	t.Helper()
	var pods corev1.PodList
	if err := c.List(t.Context(), &pods, append(meant, client.InNamespace(namespace))...); err != nil {
		t.Fatal(err)
	}
	pods.Items = slices.DeleteFunc(pods.Items, func(pod corev1.Pod) bool { return pod.DeletionTimestamp != nil })
	if len(pods.Items) != 1 {
		t.Fatalf("%s has %d pods in namespace %s, want 1", c.Name, len(pods.Items), namespace)
	}
	return &pods.Items[0]
}

// checkPorts fails unless the ports are those that are wanted, and each answers all askers as it should.
func checkPorts(t *testing.T, ports []int, want map[int]answer, askers []asker) {
	t.Helper()
	if wanted := slices.Sorted(maps.Keys(want)); !slices.Equal(ports, wanted) {
		t.Errorf("it listens on %v, want %v", ports, wanted)
	}
	for _, a := range askers {
		for port, tells := range want {
			expected := tells.peer
			if a.guest {
				expected = tells.guest
			}
			asked := fmt.Sprintf(tells.url, net.JoinHostPort(a.at, strconv.Itoa(port)))
			if got, err := a.on.Ask(t.Context(), a.pod, asked); err != nil || got != expected {
				t.Errorf("%s answers pod %s/%s on %s with %s, want %s: %v", asked, a.pod.Namespace, a.pod.Name, a.on.Name, got, expected, err)
			}
		}
	}
}
