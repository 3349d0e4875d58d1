// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package snapshot_test

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/capacitorset/liqo-broker/pkg/api/v1alpha1"
	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
	"github.com/capacitorset/liqo-broker/pkg/core/nodename"
	"github.com/capacitorset/liqo-broker/pkg/core/resources"
	v09 "github.com/capacitorset/liqo-broker/pkg/liqo/v09"
	"github.com/capacitorset/liqo-broker/pkg/liqo/v09/liqotest"
	"github.com/capacitorset/liqo-broker/pkg/snapshot"
	"github.com/capacitorset/liqo-broker/pkg/snapshot/snapshottest"
)

const ownID = cluster.ID("id-broker")

var (
	consumerC = cluster.Identity{ID: "id-c", Name: "c"}
	nodeA     = nodename.Name(ownID, cluster.Identity{ID: "id-a", Name: "a"})
	nodeB     = nodename.Name(ownID, cluster.Identity{ID: "id-b", Name: "b"})
	nodeGone  = nodename.Name(ownID, cluster.Identity{ID: "id-gone", Name: "gone"})
)

// seen returns the Consumer of c.
func seen(mode v1alpha1.Mode, nodes v1alpha1.Nodes) *v1alpha1.Consumer {
	c := &v1alpha1.Consumer{ObjectMeta: metav1.ObjectMeta{Name: string(consumerC.ID)}}
	c.Spec.Nodes, c.Status.Mode = nodes, mode
	return c
}

// told returns the offer that Liqo has made for a node of c.
func told(node string) *v09.ResourceOffer {
	o := liqotest.OfferTo(consumerC, nil)
	o.Name, o.Spec.NodeName = "offer-"+node, node
	return o
}

// onNode returns a pod of c on its node, which the broker has bound to a provider.
func onNode(node, to, amount string) *corev1.Pod {
	p := pod("of-c", to, amount, corev1.PodRunning)
	p.Name += node
	p.Labels["virtualkubelet.liqo.io/nodename"] = node
	return p
}

func named(id cluster.ID, name, amount string, scheduling v1alpha1.Scheduling) *v1alpha1.Provider {
	p := provider(id, amount, scheduling)
	p.Status.ClusterName = name
	return p
}

func TestPools(t *testing.T) {
	const many, one = v1alpha1.NodesPerProvider, v1alpha1.NodesOne
	a, b := named("id-a", "a", "4", v1alpha1.SchedulingActive), named("id-b", "b", "2", v1alpha1.SchedulingActive)
	off, cordoned := named("id-a", "a", "4", v1alpha1.SchedulingDrained), named("id-a", "a", "4", v1alpha1.SchedulingCordoned)
	suspended := seen(v1alpha1.ModeOrchestrated, many)
	suspended.Spec.Scheduling = v1alpha1.ConsumerSuspended
	forged := told("evil-node")
	forged.Namespace = "liqo-tenant-evil"
	policy := func(name string) *v1alpha1.PlacementPolicy {
		return &v1alpha1.PlacementPolicy{ObjectMeta: metav1.ObjectMeta{Name: name}}
	}
	usual, wish := policy("usual"), policy("wish")
	ofUsual, ofWish := snapshottest.Decision(usual, consumerC.ID, "id-b"), snapshottest.Decision(wish, consumerC.ID, "id-a")
	usual.Spec.AppliesTo.Scope, wish.Spec.AppliesTo.Scope = v1alpha1.ScopeDefault, v1alpha1.ScopeOnRequest
	cases := map[string]struct {
		reason  string
		objects []client.Object
		want    map[string]string
	}{
		"One": {
			reason:  "By default a consumer has one node.",
			objects: []client.Object{seen(v1alpha1.ModeOrchestrated, one), a, b, told("")}, want: map[string]string{"": "6"},
		},
		"PerProvider": {
			reason:  "A node for each provider, and none without a provider for who peers like that.",
			objects: []client.Object{seen(v1alpha1.ModeOrchestrated, many), a, b}, want: map[string]string{nodeA: "4", nodeB: "2"},
		},
		"Hidden": {
			reason:  "No provider is named in the other mode.",
			objects: []client.Object{seen(v1alpha1.ModeAggregated, many), a, b}, want: map[string]string{"": "6"},
		},
		"ModeUnknown": {
			reason:  "Nor while the mode is not known.",
			objects: []client.Object{seen("", many), a, b}, want: map[string]string{"": "6"},
		},
		"Switched": {
			reason:  "The node of before has what its pods use, so that they stay and no others come.",
			objects: []client.Object{seen(v1alpha1.ModeOrchestrated, many), a, b, told(""), onNode("liqo-broker", "liqo-a", "500m")},
			want:    map[string]string{"": "500m", nodeA: "3500m", nodeB: "2"},
		},
		"SwitchedBack": {
			reason: "So have the nodes of providers.",
			objects: []client.Object{
				seen(v1alpha1.ModeOrchestrated, one), a, b, told(""), told(nodeA), told(nodeB), onNode(nodeA, "liqo-a", "500m"),
			},
			want: map[string]string{"": "5500m", nodeA: "500m", nodeB: "0"},
		},
		"BackBeforeTold": {
			reason:  "A consumer that had only nodes of providers gets the one of the broker.",
			objects: []client.Object{seen(v1alpha1.ModeOrchestrated, one), a, b, told(nodeA)},
			want:    map[string]string{"": "6", nodeA: "0"},
		},
		"Off": {
			reason:  "The node of a provider that is drained has what is left there, and all have no more than one would have.",
			objects: []client.Object{seen(v1alpha1.ModeOrchestrated, many), off, b, told(nodeA), told(nodeB), onNode(nodeA, "liqo-a", "500m")},
			want:    map[string]string{nodeA: "500m", nodeB: "1500m"},
		},
		"Cordoned": {
			reason:  "So has the node of a provider that is cordoned, and what its pods use is not taken from the others.",
			objects: []client.Object{seen(v1alpha1.ModeOrchestrated, many), cordoned, b, told(nodeA), told(nodeB), onNode(nodeA, "liqo-a", "500m")},
			want:    map[string]string{nodeA: "500m", nodeB: "2"},
		},
		"CordonedFromTheBeginning": {
			reason:  "A provider that is cordoned gets no node.",
			objects: []client.Object{seen(v1alpha1.ModeOrchestrated, many), cordoned, b}, want: map[string]string{nodeB: "2"},
		},
		"Suspended": {
			reason:  "The nodes of a consumer that is suspended have what its pods use, and it gets no others.",
			objects: []client.Object{suspended, a, b, told(nodeA), onNode(nodeA, "liqo-a", "500m")},
			want:    map[string]string{nodeA: "500m"},
		},
		"OffFromTheBeginning": {
			reason:  "A provider that is drained gets no node.",
			objects: []client.Object{seen(v1alpha1.ModeOrchestrated, many), off, b}, want: map[string]string{nodeB: "2"},
		},
		"Gone": {
			reason:  "The node of a provider that is gone promises nothing.",
			objects: []client.Object{seen(v1alpha1.ModeOrchestrated, many), b, told(nodeGone), told(nodeB)},
			want:    map[string]string{nodeGone: "0", nodeB: "2"},
		},
		"Nobody": {
			reason:  "Without providers there is an offer, or there would be no peering.",
			objects: []client.Object{seen(v1alpha1.ModeOrchestrated, many)}, want: map[string]string{"": "0"},
		},
		"Renamed": {
			reason:  "A provider that calls itself otherwise keeps its node.",
			objects: []client.Object{seen(v1alpha1.ModeOrchestrated, many), named("id-a", "liqo-b", "4", v1alpha1.SchedulingActive), told(nodeA)},
			want:    map[string]string{nodeA: "4"},
		},
		"TwoNames": {
			reason: "If it has two all the same, nothing is offered twice.",
			objects: []client.Object{
				seen(v1alpha1.ModeOrchestrated, many), a, told(nodeA), told(nodename.Name(ownID, cluster.Identity{ID: "id-a", Name: "zz"})),
			},
			want: map[string]string{nodeA: "4", nodename.Name(ownID, cluster.Identity{ID: "id-a", Name: "zz"}): "0"},
		},
		"Itself": {
			reason:  "A consumer has no node of itself.",
			objects: []client.Object{seen(v1alpha1.ModeOrchestrated, many), named("id-c", "c", "8", v1alpha1.SchedulingActive), b},
			want:    map[string]string{nodeB: "2"},
		},
		"Unchosen": {
			reason:  "A provider that no policy has chosen for the consumer gets none of its pods.",
			objects: []client.Object{seen(v1alpha1.ModeOrchestrated, many), a, b, usual, ofUsual, told(nodeA)},
			want:    map[string]string{nodeA: "0", nodeB: "2"},
		},
		"Wishable": {
			reason:  "One that its pods can wish may get some.",
			objects: []client.Object{seen(v1alpha1.ModeOrchestrated, many), a, b, usual, ofUsual, wish, ofWish},
			want:    map[string]string{nodeA: "4", nodeB: "2"},
		},
		"Forged": {
			reason:  "What another cluster writes into its own tenant namespace is told to nobody.",
			objects: []client.Object{seen(v1alpha1.ModeOrchestrated, one), a, forged}, want: map[string]string{"": "4"},
		},
		"OtherLabel": {
			reason: "A pod of a node that nobody knows is on none, and what it uses is offered nowhere.",
			objects: []client.Object{
				seen(v1alpha1.ModeOrchestrated, many), a, b, onNode(nodeGone, "liqo-a", "500m"), onNode("", "liqo-a", "250m"),
			},
			want: map[string]string{nodeA: "3250m", nodeB: "2"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			objects := slices.Concat(tc.objects, []client.Object{
				liqotest.ForeignCluster(consumerC, false, true), liqotest.TwinNamespace("of-c", consumerC),
				liqotest.VirtualNode(cluster.Identity{ID: "id-a", Name: "a"}, true),
				liqotest.VirtualNode(cluster.Identity{ID: "id-b", Name: "b"}, true),
			})
			r := snapshottest.Reader(snapshottest.NewClient(t, interceptor.Funcs{}, objects...), ownID)
			snap, err := r.Capacity(t.Context())
			if err != nil {
				t.Fatalf("Capacity(): %v", err)
			}
			got := map[string]string{}
			for _, p := range snap.NodeOffers(consumerC.ID) {
				got[p.Node] = p.Offered.Cpu().String()
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\n-want +got\n%s", tc.reason, diff)
			}
		})
	}
}

// TestResourceThatNobodyHasAnyMore drains the only provider with GPUs. Liqo's virtual kubelet writes into a node what its
// offer names, and keeps the rest (updateFromVirtualNode in pkg/virtualKubelet/liqoNodeProvider/reconciler.go@v0.9.4).
func TestResourceThatNobodyHasAnyMore(t *testing.T) {
	const gpu = corev1.ResourceName("nvidia.com/gpu")
	for _, nodes := range []v1alpha1.Nodes{v1alpha1.NodesOne, v1alpha1.NodesPerProvider} {
		t.Run(string(nodes), func(t *testing.T) {
			gpus, other := named("id-a", "a", "4", v1alpha1.SchedulingActive), named("id-b", "b", "2", v1alpha1.SchedulingActive)
			gpus.Status.Offered[gpu] = resource.MustParse("8")
			has := map[string]corev1.ResourceList{} // Each node of the consumer.
			// tell offers the consumer what it is to have, and returns the offers.
			tell := func(objects ...client.Object) (offers []client.Object) {
				t.Helper()
				objects = append(objects, seen(v1alpha1.ModeOrchestrated, nodes), liqotest.ForeignCluster(consumerC, false, true), gpus, other)
				snap, err := snapshottest.Reader(snapshottest.NewClient(t, interceptor.Funcs{}, objects...), ownID).Capacity(t.Context())
				if err != nil {
					t.Fatalf("Capacity(): %v", err)
				}
				for _, p := range snap.NodeOffers(consumerC.ID) {
					if has[p.Node] == nil {
						has[p.Node] = corev1.ResourceList{}
					}
					maps.Copy(has[p.Node], p.Offered)
					o := told(p.Node)
					o.Spec.ResourceQuota.Hard = p.Offered
					offers = append(offers, o)
				}
				return offers
			}
			all := func() int64 {
				sum := resources.Sum(slices.Collect(maps.Values(has))...)[gpu]
				return sum.Value()
			}
			offers := tell()
			if got := all(); got != 8 {
				t.Fatalf("the consumer's nodes have %d GPUs, want 8", got)
			}
			gpus.Spec.Scheduling, gpus.Status.Offered = v1alpha1.SchedulingDrained, nil
			for round := range 3 {
				if offers = tell(offers...); all() != 0 {
					t.Errorf("round %d: the consumer's nodes have %d GPUs, and no provider has one: pods are bound to them that nobody can run",
						round, all())
				}
			}
		})
	}
}

// TestResourcesOfOtherNames has a provider that names its resources differently again and again.
func TestResourcesOfOtherNames(t *testing.T) {
	o := told("")
	o.Spec.ResourceQuota.Hard = corev1.ResourceList{"example.com/last": resource.MustParse("1")}
	for n := range 1000 {
		o.Spec.ResourceQuota.Hard[corev1.ResourceName(fmt.Sprintf("example.com/%d", n))] = resource.Quantity{}
	}
	snap, err := snapshottest.Reader(snapshottest.NewClient(t, interceptor.Funcs{},
		seen(v1alpha1.ModeOrchestrated, v1alpha1.NodesOne), liqotest.ForeignCluster(consumerC, false, true), o), ownID).Capacity(t.Context())
	if err != nil {
		t.Fatalf("Capacity(): %v", err)
	}
	offered := snap.NodeOffers(consumerC.ID)[0].Offered
	if _, named := offered["example.com/last"]; !named || len(offered) > resources.MaxResources+4 {
		t.Errorf("the offer names %d resources, and what the consumer has still: %t", len(offered), named)
	}
}

func TestPinned(t *testing.T) {
	forged := told(nodeB)
	forged.Namespace = "liqo-tenant-evil"
	r := snapshottest.Reader(snapshottest.NewClient(t, interceptor.Funcs{},
		liqotest.ForeignCluster(consumerC, false, true), provider("id-a", "4", v1alpha1.SchedulingActive), told(nodeGone), forged), ownID)
	cases := map[string]struct {
		reason, node string
		provider     string
		pinned       bool
	}{
		"Provider": {reason: "The node of a provider.", node: nodeA, provider: "id-a", pinned: true},
		"OtherName": {
			reason: "The mark counts.", node: nodename.Name(ownID, cluster.Identity{ID: "id-a", Name: "b"}), provider: "id-a", pinned: true,
		},
		"Gone":     {reason: "The node of a provider that is gone.", node: nodeGone, pinned: true},
		"Stranger": {reason: "Another node that looks like one.", node: nodeB},
		"Others":   {reason: "The node of another broker.", node: nodename.Name("id-other", cluster.Identity{ID: "id-a", Name: "a"})},
		"Broker":   {reason: "The node of the broker.", node: "liqo-broker"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			provider, pinned, err := r.Pinned(t.Context(), consumerC.ID, onNode(tc.node, "", "1"))
			if err != nil {
				t.Fatalf("Pinned(): %v", err)
			}
			got := ""
			if provider != nil {
				got = provider.Name
			}
			if got != tc.provider || pinned != tc.pinned {
				t.Errorf("%s\n%q, %t", tc.reason, got, pinned)
			}
		})
	}
}

// TestNodesChanged looks at updates that change which nodes a consumer has, and what
// they have.
func TestNodesChanged(t *testing.T) {
	leaving, updated := told(nodeA), told(nodeA)
	leaving.DeletionTimestamp = new(metav1.Now())
	updated.Spec.ResourceQuota.Hard = cpu("1")
	policy := func(generation int64) *v1alpha1.PlacementPolicy {
		return &v1alpha1.PlacementPolicy{ObjectMeta: metav1.ObjectMeta{Generation: generation}}
	}
	decision := func(explained string, chosen ...cluster.ID) *v1alpha1.PlacementDecision {
		d := snapshottest.Decision(policy(1), "id-c", chosen...)
		d.Explained = []v1alpha1.ExplainedProvider{{ID: explained}}
		return d
	}
	barring, forged, orphaned := decision("x", "id-a"), decision("x", "id-a"), decision("x", "id-a")
	barring.Chosen[0].Barred, forged.Consumer, orphaned.OwnerReferences = true, "id-d", nil
	cases := map[string]struct {
		reason        string
		before, after any
		want          bool
	}{
		"Mode": {
			reason: "A mode that is known may show providers.", before: seen("", "PerProvider"), after: seen("Orchestrated", "PerProvider"),
			want: true,
		},
		"Renamed": {
			reason: "A provider has a name for its node.", before: named("id-a", "", "1", v1alpha1.SchedulingActive),
			after: named("id-a", "a", "1", v1alpha1.SchedulingActive), want: true,
		},
		"Withdrawn": {reason: "An operator may remove a node.", before: told(nodeA), after: leaving, want: true},
		"Told":      {reason: "What Liqo tells is no change.", before: told(nodeA), after: updated},
		"Chosen":    {reason: "A policy chooses another provider.", before: decision("x", "id-a"), after: decision("x", "id-b"), want: true},
		"Barred":    {reason: "It may exclude the one that it chose.", before: decision("x", "id-a"), after: barring, want: true},
		"Forged": {
			reason: "What is for another consumer is not for this one any more.", before: decision("x", "id-a"), after: forged, want: true,
		},
		"Orphaned":  {reason: "What no policy owns, none has decided.", before: decision("x", "id-a"), after: orphaned, want: true},
		"Explained": {reason: "It explains the same choice.", before: decision("x", "id-a", "id-b"), after: decision("y", "id-b", "id-a")},
		"Observed":  {reason: "The status of a policy changes nothing.", before: policy(1), after: policy(1)},
		"Applies":   {reason: "Its spec may: it may apply to others.", before: policy(1), after: policy(2), want: true},
		"OtherNode": {reason: "A pod uses another node.", before: onNode(nodeA, "liqo-a", "1"), after: onNode("", "liqo-a", "1"), want: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := snapshottest.Reader(nil, "").AccountChanged(tc.before, tc.after); got != tc.want {
				t.Errorf("%s\nAccountChanged() = %v", tc.reason, got)
			}
		})
	}
}

// BenchmarkPools counts what 100 consumers with nodes of 1,000 providers are offered.
func BenchmarkPools(b *testing.B) {
	const providers, consumers = 1000, 100
	objects := map[string]client.Object{}
	for n := range providers {
		objects[fmt.Sprint("p", n)] = named(cluster.ID(fmt.Sprint("p", n)), fmt.Sprint("provider-", n), "4", v1alpha1.SchedulingActive)
	}
	for n := range consumers {
		c := seen(v1alpha1.ModeOrchestrated, v1alpha1.NodesPerProvider)
		c.Name = fmt.Sprint("c", n)
		objects[c.Name] = c
	}
	r := snapshot.New(v09.Line{}, snapshottest.NewClient(b, interceptor.Funcs{}, slices.Collect(maps.Values(objects))...), ownID, nil)
	snap, err := r.Capacity(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		for n := range consumers {
			snap.NodeOffers(cluster.ID(fmt.Sprint("c", n)))
		}
	}
}
