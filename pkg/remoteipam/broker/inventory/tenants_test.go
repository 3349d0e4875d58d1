// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package inventory

import (
	"math/rand/v2"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	"github.com/google/go-cmp/cmp"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/capacitorset/liqo-broker/pkg/api/v1alpha1"
	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
	"github.com/capacitorset/liqo-broker/pkg/liqo"
	v09 "github.com/capacitorset/liqo-broker/pkg/liqo/v09"
	"github.com/capacitorset/liqo-broker/pkg/liqo/v09/liqotest"
)

var (
	provider = cluster.Identity{ID: "id-p", Name: "provider"}
	one      = cluster.Identity{ID: "id-1", Name: "one"}
	two      = cluster.Identity{ID: "id-2", Name: "two"}
	evil     = cluster.Identity{ID: "id-evil", Name: "evil"}
)

// tunnel returns a tunnel in the tenant namespace of a cluster that says it leads to another
// one, seen under a prefix.
func tunnel(in, says cluster.Identity, seen string) *v09.TunnelEndpoint {
	t := liqotest.Tunnel(says, "1ms", time.Now())
	t.Namespace = liqotest.Tenant(in)
	t.Spec.RemotePodCIDR, t.Spec.RemoteNATPodCIDR = "10.200.0.0/16", seen
	return t
}

// offloads returns a map in the tenant namespace of a cluster that says what is offloaded
// to another one.
func offloads(in, says cluster.Identity, name string, namespaces ...string) *v09.NamespaceMap {
	m := &v09.NamespaceMap{ObjectMeta: metav1.ObjectMeta{
		Namespace: liqotest.Tenant(in), Name: name, Labels: map[string]string{liqo.LabelRemoteClusterID: string(says.ID)},
	}}
	m.Spec.DesiredMapping = map[string]string{}
	for _, namespace := range namespaces {
		m.Spec.DesiredMapping[namespace] = namespace
	}
	return m
}

// slice returns an EndpointSlice with one address.
func slice(namespace string, address netip.Addr) *discoveryv1.EndpointSlice {
	return &discoveryv1.EndpointSlice{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "web"},
		Endpoints:  []discoveryv1.Endpoint{{Addresses: []string{address.String()}}},
	}
}

func aProvider(id cluster.ID, scheduling v1alpha1.Scheduling) *v1alpha1.Provider {
	return &v1alpha1.Provider{
		ObjectMeta: metav1.ObjectMeta{Name: string(id), Generation: 2}, Spec: v1alpha1.ProviderSpec{Scheduling: scheduling},
	}
}

// aConsumer returns a consumer with a reason of its Ready condition; without the condition
// for an empty one.
func aConsumer(id cluster.ID, mode v1alpha1.Mode, reason string) *v1alpha1.Consumer {
	c := &v1alpha1.Consumer{ObjectMeta: metav1.ObjectMeta{Name: string(id)}}
	c.Status.Mode = mode
	if reason != "" {
		c.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionReady, Reason: reason}}
	}
	return c
}

// TestPeersSpeakForThemselves gives the events of honest and of forged objects in any order.
func TestPeersSpeakForThemselves(t *testing.T) {
	address := netip.MustParseAddr("10.90.0.13")
	for seed := range uint64(50) {
		s := NewStore()
		f := newFollower(s, logr.Discard())
		events := []func(){
			func() { f.setNamespace(liqotest.TenantNamespace(provider)) },
			func() { f.setNamespace(liqotest.TenantNamespace(evil)) },
			func() { f.setNamespace(liqotest.TwinNamespace("twin", one)) },
			func() { f.setTunnel(tunnel(provider, provider, "10.90.0.0/16")) },
			func() { f.setTunnel(tunnel(evil, provider, "10.66.0.0/16")) },
			func() { f.setTunnel(tunnel(evil, evil, "10.91.0.0/16")) },
			func() { f.setNamespaceMap(offloads(provider, provider, "real", "shop")) },
			func() { f.setNamespaceMap(offloads(evil, provider, "forged")) },
			func() { f.setNamespaceMap(offloads(evil, provider, "more", "other")) },
			func() { f.setEndpoints(slice("shop", address)) },
			func() { f.setEndpoints(slice("other", netip.MustParseAddr("10.90.0.14"))) },
			func() { f.setProvider(aProvider(provider.ID, v1alpha1.SchedulingActive)) },
			func() { f.setConsumer(aConsumer(one.ID, v1alpha1.ModeOrchestrated, v1alpha1.ReasonOffering)) },
		}
		random := rand.New(rand.NewPCG(seed, 1))
		random.Shuffle(len(events), func(i, j int) { events[i], events[j] = events[j], events[i] })
		for _, event := range events {
			event()
		}
		check := func(when string) {
			t.Helper()
			var routes []string
			for _, route := range s.Routes(one.ID) {
				routes = append(routes, string(route.Provider)+" "+route.Pods.Seen.String())
			}
			if want := []string{"id-p 10.90.0.0/16"}; !slices.Equal(routes, want) {
				t.Errorf("order %d, %s: routes %v, want %v", seed, when, routes, want)
			}
			if !s.HasEndpoint(provider.ID, address) || s.HasEndpoint(provider.ID, netip.MustParseAddr("10.90.0.14")) {
				t.Errorf("order %d, %s: the endpoints on the provider are what another cluster says", seed, when)
			}
			if s.IsPeerAddress(netip.MustParseAddr("10.66.0.1")) {
				t.Errorf("order %d, %s: the prefix of the provider is what another cluster says", seed, when)
			}
		}
		check("at first")
		f.deleteTunnel(tunnel(evil, provider, "10.66.0.0/16"))
		f.deleteNamespaceMap(offloads(evil, provider, "forged"))
		f.deleteNamespace(liqotest.TenantNamespace(evil))
		check("when the forged ones are gone")
		f.deleteNamespace(liqotest.TenantNamespace(provider))
		if len(s.Routes(one.ID)) != 0 || s.HasEndpoint(provider.ID, address) {
			t.Errorf("order %d: the provider is known without its tenant namespace", seed)
		}
	}
}

// TestForgedObjectsAreReportedOnce updates a forged object again and again.
func TestForgedObjectsAreReportedOnce(t *testing.T) {
	var lines []string
	log := funcr.New(func(_, args string) { lines = append(lines, args) }, funcr.Options{})
	f := newFollower(NewStore(), log)
	f.setNamespace(liqotest.TenantNamespace(evil))
	for range 3 {
		f.setTunnel(tunnel(evil, provider, "10.66.0.0/16"))
		f.setNamespaceMap(offloads(evil, provider, "forged"))
	}
	if len(lines) != 2 || !strings.Contains(lines[0], `"cluster"="id-evil" "other"="id-p"`) {
		t.Errorf("reported:\n%s\nwant one line for each of two objects", strings.Join(lines, "\n"))
	}
}

// TestMapsOfOnePeerAddUp has two maps for one provider, and takes one away.
func TestMapsOfOnePeerAddUp(t *testing.T) {
	s := NewStore()
	f := newFollower(s, logr.Discard())
	first, second := netip.MustParseAddr("10.90.0.13"), netip.MustParseAddr("10.90.0.14")
	f.setNamespace(liqotest.TenantNamespace(provider))
	f.setEndpoints(slice("first", first))
	f.setEndpoints(slice("second", second))
	f.setNamespaceMap(offloads(provider, provider, "a", "first"))
	f.setNamespaceMap(offloads(provider, provider, "b", "second"))
	if !s.HasEndpoint(provider.ID, first) || !s.HasEndpoint(provider.ID, second) {
		t.Error("one map hides the other")
	}
	f.deleteNamespaceMap(offloads(provider, provider, "a"))
	if s.HasEndpoint(provider.ID, first) || !s.HasEndpoint(provider.ID, second) {
		t.Error("what is left is not that of the other map")
	}
}

// TestNegotiating keeps what is known of a tunnel while its prefixes are negotiated again.
func TestNegotiating(t *testing.T) {
	s := NewStore()
	f := newFollower(s, logr.Discard())
	f.setNamespace(liqotest.TenantNamespace(provider))
	f.setTunnel(tunnel(provider, provider, "10.90.0.0/16"))
	unknown := tunnel(provider, provider, "")
	unknown.Spec.RemotePodCIDR = ""
	f.setTunnel(unknown)
	if !s.IsPeerAddress(netip.MustParseAddr("10.90.0.1")) {
		t.Error("the prefix is forgotten")
	}
	f.deleteTunnel(unknown)
	if s.IsPeerAddress(netip.MustParseAddr("10.90.0.1")) {
		t.Error("the prefix is known without a tunnel")
	}
}

// TestRoutes has two consumers, of which each peers with the broker as providers do.
func TestRoutes(t *testing.T) {
	drained := func(generation int64) *v1alpha1.Provider {
		p := aProvider(provider.ID, v1alpha1.SchedulingDrained)
		p.Status.Conditions = []metav1.Condition{
			{Type: v1alpha1.ConditionDraining, Reason: v1alpha1.ReasonDrained, ObservedGeneration: generation},
		}
		return p
	}
	orchestrated := func(reason string) *v1alpha1.Consumer {
		return aConsumer(one.ID, v1alpha1.ModeOrchestrated, reason)
	}
	toProvider := []cluster.ID{provider.ID}
	cases := map[string]struct {
		reason    string
		provider  *v1alpha1.Provider
		consumer  *v1alpha1.Consumer
		want      []cluster.ID
		unknownTo bool // The broker does not serve the consumer.
	}{
		"Provider": {
			reason:   "One consumer is told of the provider, and not of the other consumer.",
			provider: aProvider(provider.ID, v1alpha1.SchedulingActive), consumer: orchestrated(v1alpha1.ReasonOffering), want: toProvider,
		},
		"None": {reason: "A peer without a Provider provides nothing.", consumer: orchestrated(v1alpha1.ReasonOffering)},
		"Draining": {
			reason:   "A provider that is disabled is reached as long as pods are there.",
			provider: aProvider(provider.ID, v1alpha1.SchedulingDrained), consumer: orchestrated(v1alpha1.ReasonOffering), want: toProvider,
		},
		"Drained": {reason: "Then it is not any more.", provider: drained(2), consumer: orchestrated(v1alpha1.ReasonOffering)},
		"Off": {
			reason: "That it was drained once says nothing of now.", provider: drained(1), consumer: orchestrated(v1alpha1.ReasonOffering),
			want: toProvider,
		},
		"Opaque": {
			reason: "An aggregated consumer is told nothing.", provider: aProvider(provider.ID, v1alpha1.SchedulingActive),
			consumer: aConsumer(one.ID, v1alpha1.ModeAggregated, v1alpha1.ReasonOffering),
		},
		"NoOffer": {
			reason: "A consumer is served also if there is nothing for it.", provider: aProvider(provider.ID, v1alpha1.SchedulingActive),
			consumer: orchestrated(v1alpha1.ReasonNoProvider), want: toProvider,
		},
		"Pending": {
			reason: "And while it gets another virtual node.", provider: aProvider(provider.ID, v1alpha1.SchedulingActive),
			consumer: orchestrated(v1alpha1.ReasonPeeringPending), want: toProvider,
		},
		"Ending": {
			reason: "And while its pods leave.", provider: aProvider(provider.ID, v1alpha1.SchedulingActive),
			consumer: orchestrated(v1alpha1.ReasonPeeringEnds), want: toProvider,
		},
		"Left": {
			reason:   "A consumer that has left keeps its certificate, and is told nothing.",
			provider: aProvider(provider.ID, v1alpha1.SchedulingActive), consumer: orchestrated(v1alpha1.ReasonNotPeered), unknownTo: true,
		},
		"NameTaken": {
			reason: "So is one that cannot be told apart from another.", provider: aProvider(provider.ID, v1alpha1.SchedulingActive),
			consumer: orchestrated(v1alpha1.ReasonClusterNameTaken), unknownTo: true,
		},
		"Young": {
			reason: "And one of which nothing is known yet.", provider: aProvider(provider.ID, v1alpha1.SchedulingActive),
			consumer: orchestrated(""), unknownTo: true,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := NewStore()
			f := newFollower(s, logr.Discard())
			for i, peer := range []cluster.Identity{provider, one, two} {
				f.setNamespace(liqotest.TenantNamespace(peer))
				f.setTunnel(tunnel(peer, peer, []string{"10.90.0.0/16", "10.91.0.0/16", "10.92.0.0/16"}[i]))
			}
			f.setConsumer(aConsumer(two.ID, v1alpha1.ModeOrchestrated, v1alpha1.ReasonOffering))
			f.setConsumer(orchestrated(v1alpha1.ReasonOffering)) // As it was before.
			f.setConsumer(tc.consumer)
			if tc.provider != nil {
				f.setProvider(aProvider(provider.ID, v1alpha1.SchedulingActive))
				f.setProvider(tc.provider)
			}
			var got []cluster.ID
			for _, route := range s.Routes(one.ID) {
				got = append(got, route.Provider)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\n-want +got\n%s", tc.reason, diff)
			}
			if s.IsConsumer(one.ID) == tc.unknownTo {
				t.Errorf("%s\nIsConsumer() = %v", tc.reason, !tc.unknownTo)
			}
		})
	}
}

// TestKeepSwitch looks at what the cache keeps of a provider.
func TestKeepSwitch(t *testing.T) {
	full := aProvider(provider.ID, v1alpha1.SchedulingDrained)
	full.Status.ClusterName, full.Status.KPIs = "milan", []v1alpha1.KPI{{Name: "long"}}
	full.Status.Conditions = []metav1.Condition{
		{Type: v1alpha1.ConditionReady}, {Type: v1alpha1.ConditionDraining, Reason: v1alpha1.ReasonDrained, ObservedGeneration: 2},
	}
	kept, err := keepSwitch(full)
	if err != nil {
		t.Fatal(err)
	}
	got := kept.(*v1alpha1.Provider)
	if got.MayHavePods() != full.MayHavePods() || got.Name != full.Name || got.Status.KPIs != nil || len(got.Status.Conditions) != 1 ||
		got.Status.ClusterName != "milan" {
		t.Errorf("kept %+v", got)
	}
}
