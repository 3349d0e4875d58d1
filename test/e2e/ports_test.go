// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"bufio"
	"context"
	"crypto/tls"
	"fmt"
	"maps"
	"net"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capacitorset/liqo-broker/pkg/api/v1alpha1"
	"github.com/capacitorset/liqo-broker/test/federation"
	"github.com/capacitorset/liqo-broker/test/lab/node"
)

// closed is the answer of a port that does not speak to the caller: it refuses the connection, lets it wait, or ends it.
const closed = "closed"

// TestEveryPortKnowsItsCallers finds the ports on which the broker's pods listen, and asks each without an identity from a pod of each
// peer.
func TestEveryPortKnowsItsCallers(t *testing.T) {
	together(t, v1alpha1.ModeOrchestrated)
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

	var daemons corev1.PodList
	if err := fed.Broker.List(t.Context(), &daemons, client.InNamespace("liqo-broker"), client.MatchingLabels{"app.kubernetes.io/name": "liqo-broker"}); err != nil {
		t.Fatal(err)
	}
	targets := map[*corev1.Pod]map[int]answer{networkManager(t): manager}
	for i := range daemons.Items {
		targets[&daemons.Items[i]] = daemon
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
	ports := listening(t, fed.Broker, target)
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
			if got := ask(t, peer, caller, url); got != want[port].status {
				t.Errorf("%s answers %s of %s with %s, want %s", target.Name, url, peer.Name, got, want[port].status)
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

// ask returns the status with which a URL answers from the network of a pod.
func ask(t *testing.T, c *federation.Cluster, from *corev1.Pod, url string) string {
	t.Helper()
	asker := &http.Client{Timeout: 2 * dialPatience, Transport: &http.Transport{
		DisableKeepAlives: true,
		TLSClientConfig:   &tls.Config{InsecureSkipVerify: true},
		DialContext:       func(ctx context.Context, _, address string) (net.Conn, error) { return dialFrom(ctx, c, from, address) },
	}}
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	response, err := asker.Do(request)
	if err != nil {
		return closed
	}
	defer func() { _ = response.Body.Close() }()
	return strconv.Itoa(response.StatusCode)
}

// listening returns the TCP ports on which the containers of a pod listen for others than themselves, in order.
func listening(t *testing.T, c *federation.Cluster, target *corev1.Pod) []int {
	t.Helper()
	container, err := c.Lab.Container(target, target.Status.ContainerStatuses[0].Name)
	if err != nil {
		t.Fatal(err)
	}
	process, err := container.Process()
	if err != nil {
		t.Fatal(err)
	}
	ports := map[int]bool{}
	err = node.InNetwork(process, func() error {
		for _, table := range []string{"/proc/thread-self/net/tcp", "/proc/thread-self/net/tcp6"} {
			if err := readListening(table, ports); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return slices.Sorted(maps.Keys(ports))
}

// readListening adds the ports of a table of sockets (proc_pid_net(5)): the second field is the local address, the fourth the state.
func readListening(table string, ports map[int]bool) error {
	const listen, loopback, loopback6 = "0A", "0100007F", "00000000000000000000000001000000"
	file, err := os.Open(table)
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }()
	lines := bufio.NewScanner(file)
	for lines.Scan() {
		fields := strings.Fields(lines.Text())
		if len(fields) < 4 || fields[3] != listen {
			continue
		}
		address, text, _ := strings.Cut(fields[1], ":")
		port, err := strconv.ParseUint(text, 16, 16)
		if err != nil {
			return fmt.Errorf("read %s: %w", table, err)
		}
		if address != loopback && address != loopback6 {
			ports[int(port)] = true
		}
	}
	return lines.Err()
}
