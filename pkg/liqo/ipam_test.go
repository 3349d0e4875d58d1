// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package liqo_test

import (
	"errors"
	"net"
	"net/netip"
	"strconv"
	"testing"

	netv1alpha1 "github.com/liqotech/liqo/apis/net/v1alpha1"
	"github.com/liqotech/liqo/pkg/liqonet/ipam"
	"github.com/liqotech/liqo/pkg/liqonet/natmappinginflater"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic/fake"

	"github.com/capacitorset/liqo-broker/pkg/cluster"
	"github.com/capacitorset/liqo-broker/pkg/liqo"
)

const consumer = cluster.ID("consumer")

// startIPAM runs Liqo's own IPAM, with its state in an API, until the test ends.
func startIPAM(t *testing.T, api *fake.FakeDynamicClient) *liqo.IPAM {
	t.Helper()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	port := listener.Addr().(*net.TCPAddr).Port
	if err := listener.Close(); err != nil {
		t.Fatal(err)
	}
	server := ipam.NewIPAM()
	if err := server.Init(ipam.Pools, api, port); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Terminate)
	if err := server.SetPodCIDR("10.201.0.0/16"); err != nil {
		t.Fatal(err)
	}
	if _, err := server.GetExternalCIDR(29); err != nil {
		t.Fatal(err)
	}
	if _, _, err := server.GetSubnetsPerCluster("10.200.0.0/16", "10.81.0.0/29", string(consumer)); err != nil {
		t.Fatal(err)
	}
	if err := server.AddLocalSubnetsPerCluster("None", "None", string(consumer)); err != nil {
		t.Fatal(err)
	}
	client, err := liqo.NewIPAM(net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := client.Close(); err != nil {
			t.Error(err)
		}
	})
	return client
}

func newIPAMAPI(t *testing.T) *fake.FakeDynamicClient {
	t.Helper()
	scheme := runtime.NewScheme()
	scheme.AddKnownTypeWithName(netv1alpha1.GroupVersion.WithKind("ipamstorages"), &netv1alpha1.IpamStorage{})
	scheme.AddKnownTypeWithName(netv1alpha1.GroupVersion.WithKind("natmappings"), &netv1alpha1.NatMapping{})
	kinds := map[schema.GroupVersionResource]string{
		netv1alpha1.GroupVersion.WithResource("ipamstorages"): "ipamstoragesList",
		netv1alpha1.GroupVersion.WithResource("natmappings"):  "natmappingsList",
	}
	mapping, err := natmappinginflater.ForgeNatMapping(string(consumer), "10.200.0.0/16", "10.202.0.0/29", map[string]string{})
	if err != nil {
		t.Fatal(err)
	}
	return fake.NewSimpleDynamicClientWithCustomListKinds(scheme, kinds, mapping)
}

func TestIPAM(t *testing.T) {
	api := newIPAMAPI(t)
	client := startIPAM(t, api)
	mapped := map[netip.Addr]netip.Addr{}
	var full error
	next := netip.MustParseAddr("10.90.0.1")
	for ; full == nil && len(mapped) < 8; next = next.Next() {
		relay, err := client.MapRelay(t.Context(), consumer, next)
		if err != nil {
			full = err
			break
		}
		for pod, other := range mapped {
			if other == relay {
				t.Fatalf("pods %s and %s have one relay address, %s", pod, next, relay)
			}
		}
		mapped[next] = relay
	}
	if !errors.Is(full, liqo.ErrExternalCIDRFull) {
		t.Fatalf("after %d addresses of a /29: got %v, want ErrExternalCIDRFull", len(mapped), full)
	}
	if len(mapped) == 0 {
		t.Fatal("not one address was given out")
	}

	// Another process with the same state, as after a restart.
	restarted := startIPAM(t, api)
	for pod, relay := range mapped {
		if got, err := restarted.MapRelay(t.Context(), consumer, pod); err != nil || got != relay {
			t.Errorf("after a restart, pod %s: got %s, %v; want %s", pod, got, err, relay)
		}
	}
	for pod := range mapped {
		for range 2 { // Twice, as after a lost answer.
			if err := restarted.UnmapRelay(t.Context(), consumer, pod); err != nil {
				t.Fatal(err)
			}
		}
		break
	}
	if _, err := restarted.MapRelay(t.Context(), consumer, next); err != nil {
		t.Errorf("after one address was freed: %v", err)
	}
}
