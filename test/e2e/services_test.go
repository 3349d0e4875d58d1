// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/capacitorset/liqo-broker/pkg/api/v1alpha1"
	"github.com/capacitorset/liqo-broker/test/federation"
)

// service is what a pod finds behind the names of a Service.
type service struct {
	// hosts are the pods that answered, by the address under which they did.
	hosts map[netip.Addr]string
}

// TestServicesReachTheConsumer asks Services of the consumer, whose pods run on the consumer itself, from a pod on a provider:
// by way of the broker as long as the two are not peered, and directly while they are.
func TestServicesReachTheConsumer(t *testing.T) {
	const namespace, replicas = "services", 2
	start(t, v1alpha1.ModeOrchestrated)
	toggle(t, fed.ProviderA, false)
	deploy(t, namespace, federation.Home, replicas)
	pod := copyOf(t, namespace, "shell", fed.ProviderB)

	relayed := askService(t, namespace, pod, "home", replicas, federation.PathRelay)

	if direct() {
		unpeer := peer(t, fed.Consumer, fed.ProviderB)
		peered := time.Now()
		past := askService(t, namespace, pod, "home", replicas, federation.PathDirect)
		t.Logf("direct %.1f s after the peering", time.Since(peered).Seconds())
		if same(relayed, past) {
			t.Errorf("the endpoints are the same with and without a peering: %v", past.hosts)
		}
		unpeer()
		ended := time.Now()
		askService(t, namespace, pod, "home", replicas, federation.PathRelay)
		t.Logf("relayed %.1f s after the end of the peering", time.Since(ended).Seconds())
	}

	// The last copy of a workload is not moved by itself.
	toggle(t, fed.ProviderA, true)
	toggle(t, fed.ProviderB, false)
	if _, err := fed.Consumer.Kubectl(t.Context(), "rollout", "restart", "--namespace="+namespace, "deployment/shell"); err != nil {
		t.Fatal(err)
	}
	pod = copyOf(t, namespace, "shell", fed.ProviderA)
	path := federation.PathRelay
	if direct() {
		path = federation.PathDirect
	}
	askService(t, namespace, pod, "home", replicas, path)
}

// TestRelayAddressesOfEndpointsLast asks a Service of the consumer, whose pods run on the consumer itself, from a pod on a provider that
// reaches them by relay, and asks again when addresses that nobody uses would have been freed: the same pods answer at the same addresses.
func TestRelayAddressesOfEndpointsLast(t *testing.T) {
	needs(t, federation.RemoteIPAM)
	const namespace, replicas = "endpoints", 2
	together(t, v1alpha1.ModeOrchestrated)
	pin(t, namespace, fed.ProviderB)
	deploy(t, namespace, federation.Home, replicas)
	pod := copyOf(t, namespace, "shell", fed.ProviderB)
	before := askService(t, namespace, pod, "home", replicas, federation.PathRelay)
	select {
	case <-time.After(50 * time.Second):
	case <-t.Context().Done():
	}
	after := askService(t, namespace, pod, "home", replicas, federation.PathRelay)
	if !maps.Equal(before.hosts, after.hosts) {
		t.Errorf("pods answer at other addresses: before %v, after %v", before.hosts, after.hosts)
	}
}

// TestProvidersReachEachOther asks, from a pod on one provider, a Service whose pods run on both.
func TestProvidersReachEachOther(t *testing.T) {
	const namespace, replicas = "neighbours", 4
	together(t, v1alpha1.ModeAggregated)
	deploy(t, namespace, federation.Neighbours, replicas)
	pods := copies(t, namespace, replicas+1, fed.ProviderA, fed.ProviderB)
	shell := slices.IndexFunc(pods, func(pod federation.Copy) bool { return strings.HasPrefix(pod.Name, "shell-") })
	if shell < 0 {
		t.Fatalf("no pod is the shell: %v", pods)
	}
	found := askService(t, namespace, pods[shell], "web", replicas, "")
	for _, pod := range pods {
		if pod.Name != pods[shell].Name && !slices.Contains(values(found.hosts), pod.Name) {
			t.Errorf("pod %s on %s does not answer on %s", pod.Name, pod.RunsOn.Name, pods[shell].RunsOn.Name)
		}
	}
}

// copyOf returns the only pod of a Deployment, once it runs on a provider.
func copyOf(t *testing.T, namespace, deployment string, on *federation.Cluster) federation.Copy {
	t.Helper()
	var found federation.Copy
	eventually(t, 90*time.Second, func(ctx context.Context) error {
		pods, err := fed.Copies(ctx, namespace)
		if err != nil {
			return err
		}
		for _, pod := range pods {
			if strings.HasPrefix(pod.Name, deployment+"-") && pod.RunsOn == on && pod.Ready {
				found = pod
				return nil
			}
		}
		return fmt.Errorf("no ready pod of deployment %s runs on %s", deployment, on.Name)
	})
	return found
}

// askService asks a Service, and the headless one beside it, from a pod on a provider, once, within a minute, so many different pods answer
// there and, if a path is given, all of them by it.
func askService(t *testing.T, namespace string, from federation.Copy, name string, replicas int, path federation.Path) service {
	t.Helper()
	var found service
	eventually(t, time.Minute, func(ctx context.Context) (err error) {
		found = service{hosts: map[netip.Addr]string{}}
		addresses, err := resolve(ctx, namespace, from.Name, name+"-headless")
		if err != nil {
			return err
		}
		for _, address := range addresses {
			if found.hosts[address], err = hostAt(ctx, namespace, from.Name, address.String()+":8080"); err != nil {
				return err
			}
			is, err := pathBetween(ctx, from.RunsOn, address)
			if err != nil {
				return err
			}
			if path != "" && is != path {
				return fmt.Errorf("%s answers at %s by path %q, not %s", found.hosts[address], address, is, path)
			}
		}
		distinct := values(found.hosts)
		slices.Sort(distinct)
		if distinct = slices.Compact(distinct); len(distinct) != replicas || len(addresses) != replicas {
			return fmt.Errorf("at %v, pods %v answer, want %d", addresses, distinct, replicas)
		}
		host, err := hostAt(ctx, namespace, from.Name, name)
		if err == nil && !slices.Contains(distinct, host) {
			return fmt.Errorf("service %s is answered by %s, which is none of %v", name, host, distinct)
		}
		return err
	})
	return found
}

// pathBetween tells how a provider reaches an endpoint of the consumer.
func pathBetween(ctx context.Context, provider *federation.Cluster, address netip.Addr) (federation.Path, error) {
	link, err := provider.Link(ctx, fed.Consumer)
	if link != nil && link.Path.Pods.Seen.Contains(address) {
		return federation.PathDirect, nil
	}
	return federation.PathRelay, err
}

// resolve looks a Service of the pod's own namespace up, in the DNS of the cluster where the pod runs.
func resolve(ctx context.Context, namespace, pod, name string) ([]netip.Addr, error) {
	configuration, err := execIn(ctx, namespace, pod, "cat", "/etc/resolv.conf")
	if err != nil {
		return nil, err
	}
	_, domains, found := strings.Cut(configuration, "search ")
	if !found {
		return nil, fmt.Errorf("pod %s has no search domain: %s", pod, configuration)
	}
	output, err := execIn(ctx, namespace, pod, "nslookup", name+"."+strings.Fields(domains)[0])
	if err != nil {
		return nil, err
	}
	_, answer, _ := strings.Cut(output, "Name:")
	var addresses []netip.Addr
	for field := range strings.FieldsSeq(answer) {
		if address, err := netip.ParseAddr(field); err == nil {
			addresses = append(addresses, address)
		}
	}
	return addresses, nil
}

// hostAt asks a web server from a pod for its host name.
func hostAt(ctx context.Context, namespace, pod, address string) (string, error) {
	output, err := execIn(ctx, namespace, pod, "curl", "--silent", "--show-error", "--max-time", "5", "http://"+address+"/")
	if err != nil {
		return "", err
	}
	var answer struct {
		Host string `json:"host"`
	}
	if err := json.Unmarshal([]byte(output), &answer); err != nil {
		return "", fmt.Errorf("%s answered %q: %w", address, output, err)
	}
	return answer.Host, nil
}

func execIn(ctx context.Context, namespace, pod string, command ...string) (string, error) {
	return fed.Consumer.Kubectl(ctx, append([]string{"exec", "--namespace=" + namespace, pod, "--"}, command...)...)
}

func same(a, b service) bool {
	for address := range a.hosts {
		if _, ok := b.hosts[address]; ok {
			return true
		}
	}
	return false
}

func values(hosts map[netip.Addr]string) []string {
	var all []string
	for _, host := range hosts {
		all = append(all, host)
	}
	return all
}
