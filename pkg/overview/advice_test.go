// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package overview

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/capacitorset/liqo-broker/pkg/api/v1alpha1"
	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
	"github.com/capacitorset/liqo-broker/pkg/core/kpi"
	"github.com/capacitorset/liqo-broker/pkg/liqo"
	v09 "github.com/capacitorset/liqo-broker/pkg/liqo/v09"
	"github.com/capacitorset/liqo-broker/pkg/liqo/v09/liqotest"
)

// advised returns a provider for an Adviser.
func advised(id string, ready bool, scheduling v1alpha1.Scheduling) v1alpha1.Provider {
	p := v1alpha1.Provider{ObjectMeta: metav1.ObjectMeta{Name: id}, Spec: v1alpha1.ProviderSpec{Scheduling: scheduling}}
	status := map[bool]metav1.ConditionStatus{true: metav1.ConditionTrue, false: metav1.ConditionFalse}[ready]
	meta.SetStatusCondition(&p.Status.Conditions, metav1.Condition{Type: v1alpha1.ConditionReady, Status: status})
	return p
}

// chooses returns what a policy has decided for a consumer.
func chooses(policy *v1alpha1.PlacementPolicy, consumer string, chosen ...v1alpha1.ChosenProvider) v1alpha1.PlacementDecision {
	d := v1alpha1.PlacementDecision{Policy: policy.Name}
	d.Name, d.Consumer, d.Chosen = v1alpha1.DecisionName(policy.Name, consumer), consumer, chosen
	d.OwnerReferences = v1alpha1.OwnedBy("PlacementPolicy", policy)
	return d
}

func TestAdvise(t *testing.T) {
	on := func(provider string, count int) []Placed {
		all := []Placed{{Consumer: &Cluster{ID: "c"}}} // One that is on none.
		for range count {
			all = append(all, Placed{Consumer: &Cluster{ID: "c"}, Provider: &Cluster{ID: provider}})
		}
		return all
	}
	policy := func(scope v1alpha1.PolicyScope, consumers ...string) []v1alpha1.PlacementPolicy {
		p := v1alpha1.PlacementPolicy{ObjectMeta: metav1.ObjectMeta{Name: "p", UID: "1"}}
		p.Spec.AppliesTo.Scope, p.Spec.AppliesTo.Consumers = scope, consumers
		return []v1alpha1.PlacementPolicy{p}
	}
	all := policy(v1alpha1.ScopeDefault)
	now := metav1.Now()
	active, cordoned := v1alpha1.SchedulingActive, v1alpha1.SchedulingCordoned
	const running, chosen = "It runs 2 of the consumer's pods", "New pods may go there: a policy has chosen it"
	const free = "New pods may go there: namespaces that follow no policy use every provider that is ready"
	peer := func(id string, reasons ...string) AdvisedPeer {
		return AdvisedPeer{Provider: Cluster{ID: id}, Reasons: reasons}
	}
	with := func(p AdvisedPeer, running int, connected bool, policies ...string) AdvisedPeer {
		p.Running, p.Connected, p.Policies = running, connected, policies
		return p
	}
	cases := map[string]struct {
		reason string
		mode   v1alpha1.Mode
		of     Adviser
		want   []AdvisedPeer
		hidden bool
	}{
		"Relayed": {
			reason: "A peering is of no use where the broker relays all the same.",
			of: Adviser{
				Providers: []v1alpha1.Provider{advised("a", true, active)}, Policies: all, Placed: on("a", 2), Relays: true,
			},
		},
		"Running": {
			reason: "Who runs its pods can be reached directly, also one that takes no new ones.",
			of: Adviser{
				Providers: []v1alpha1.Provider{advised("a", false, cordoned), advised("b", true, active)}, Policies: all, Placed: on("a", 2),
			},
			want: []AdvisedPeer{with(peer("a", running), 2, false)},
		},
		"Chosen": {
			reason: "Who is chosen will run some.",
			of: Adviser{
				Providers: []v1alpha1.Provider{advised("a", true, active), advised("b", true, active)}, Policies: all,
				Decisions: []v1alpha1.PlacementDecision{
					chooses(&all[0], "c", v1alpha1.ChosenProvider{ID: "b"}), chooses(&all[0], "d", v1alpha1.ChosenProvider{ID: "a"}),
				},
			},
			want: []AdvisedPeer{with(peer("b", chosen), 0, false, "p")},
		},
		"Unusable": {
			reason: "Who is chosen and takes no pods at present will not.",
			of: Adviser{
				Providers: []v1alpha1.Provider{advised("a", true, cordoned), advised("b", false, active), advised("x", true, active),
					advised("y", true, active)}, Policies: all,
				Decisions: []v1alpha1.PlacementDecision{chooses(&all[0], "c", v1alpha1.ChosenProvider{ID: "a"}, v1alpha1.ChosenProvider{ID: "b"},
					v1alpha1.ChosenProvider{ID: "x", Barred: true}, v1alpha1.ChosenProvider{ID: "y", AwaySinceTime: &now})},
			},
		},
		"Former": {
			reason: "What an earlier policy of the name has chosen is nobody's choice.",
			of: Adviser{
				Providers: []v1alpha1.Provider{advised("a", true, active)}, Policies: all,
				Decisions: []v1alpha1.PlacementDecision{
					chooses(&v1alpha1.PlacementPolicy{ObjectMeta: metav1.ObjectMeta{Name: "p", UID: "0"}}, "c", v1alpha1.ChosenProvider{ID: "a"}),
				},
			},
		},
		"Free": {
			reason: "Without a policy for all namespaces, everybody who is ready may get pods; but not the consumer itself.",
			of: Adviser{
				Providers: []v1alpha1.Provider{advised("a", true, active), advised("b", false, active), advised("c", true, active)},
				Policies:  policy(v1alpha1.ScopeConsumers, "d"),
			},
			want: []AdvisedPeer{with(peer("a", free), 0, false)},
		},
		"Bound": {
			reason: "One that is for this consumer is for all of its namespaces.",
			of:     Adviser{Providers: []v1alpha1.Provider{advised("a", true, active)}, Policies: policy(v1alpha1.ScopeConsumers, "c")},
		},
		"Order": {
			reason: "First what is to do, and where it helps most.",
			of: Adviser{
				Providers: []v1alpha1.Provider{advised("a", true, active), advised("b", true, active), advised("e", true, active)},
				Placed:    on("e", 2), Links: []Link{{From: Cluster{ID: "c"}, To: Cluster{ID: "a"}, Direct: true, Connected: true},
					{From: Cluster{ID: "c"}, To: Cluster{ID: "b"}, Connected: true}},
			},
			want: []AdvisedPeer{with(peer("e", running, free), 2, false), with(peer("b", free), 0, false), with(peer("a", free), 0, true)},
		},
		"Aggregated": {
			reason: "Who must not learn of providers is advised none.", mode: v1alpha1.ModeAggregated, hidden: true,
			of: Adviser{Providers: []v1alpha1.Provider{advised("a", true, active)}, Placed: on("a", 2)},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c := v1alpha1.Consumer{ObjectMeta: metav1.ObjectMeta{Name: "c"}}
			if c.Status.Mode = v1alpha1.ModeOrchestrated; tc.mode != "" {
				c.Status.Mode = tc.mode
			}
			got := tc.of.Advise([]v1alpha1.Consumer{c})
			if diff := cmp.Diff([]Advice{{Consumer: Cluster{ID: "c"}, Hidden: tc.hidden, Relayed: tc.of.Relays, Peers: tc.want}}, got); diff != "" {
				t.Errorf("%s\n-want +got\n%s", tc.reason, diff)
			}
		})
	}
}

func TestLinks(t *testing.T) {
	now := time.Now()
	own, provider, consumer, hidden := cluster.Identity{ID: "own"}, cluster.Identity{ID: "p", Name: "provider"}, cluster.Identity{ID: "c"},
		cluster.Identity{ID: "h"}
	up, forged := liqotest.Tunnel(provider, "2ms", now), liqotest.Tunnel(provider, "1ms", now)
	forged.Namespace = liqotest.Tenant(consumer) // The consumer says that its tunnel leads to the provider.
	told := func(id cluster.Identity, mode v1alpha1.Mode, expires time.Time) v1alpha1.Consumer {
		c := v1alpha1.Consumer{ObjectMeta: metav1.ObjectMeta{Name: string(id.ID)}}
		value := kpi.KPI{Value: 3, Unit: kpi.Milliseconds, Measured: now.Add(-time.Minute), Expires: expires}
		c.Status.Mode, c.Status.RoundTrips = mode, []v1alpha1.RoundTrip{{Provider: "p", KPIValue: v1alpha1.KPIValueOf(value)}}
		return c
	}
	peers := Peers{
		Own: own, Clusters: []liqo.Peer{
			v09.PeerOf(liqotest.ForeignCluster(provider, true, false)), v09.PeerOf(liqotest.ForeignCluster(consumer, false, true)),
		},
		Tunnels: []liqo.Link{v09.LinkOf(up), v09.LinkOf(forged)},
		Consumers: []v1alpha1.Consumer{
			told(consumer, v1alpha1.ModeOrchestrated, now.Add(time.Minute)), told(hidden, v1alpha1.ModeAggregated, now.Add(time.Minute)),
			told(cluster.Identity{ID: "old"}, v1alpha1.ModeOrchestrated, now),
		},
	}
	type link struct {
		from, to           string
		direct, connected  bool
		took               time.Duration
		outgoing, incoming string
	}
	var got []link
	for _, l := range peers.Links(now) {
		got = append(got, link{l.From.ID, l.To.ID, l.Direct, l.Connected, l.RoundTrip, l.Outgoing, l.Incoming})
	}
	want := []link{
		{"c", "p", true, true, 3 * time.Millisecond, "", ""},
		{"own", "c", false, false, 0, PeeringNone, PeeringEstablished},
		{"own", "p", false, true, 2 * time.Millisecond, PeeringEstablished, PeeringNone},
	}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(link{})); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
}
