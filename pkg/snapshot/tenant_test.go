// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package snapshot_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/capacitorset/liqo-broker/pkg/api/v1alpha1"
	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
	"github.com/capacitorset/liqo-broker/pkg/liqo"
	v09 "github.com/capacitorset/liqo-broker/pkg/liqo/v09"
	"github.com/capacitorset/liqo-broker/pkg/liqo/v09/liqotest"
	"github.com/capacitorset/liqo-broker/pkg/snapshot"
	"github.com/capacitorset/liqo-broker/pkg/snapshot/snapshottest"
)

// offerOf returns an offer in the tenant namespace of a cluster for a node of a name; an
// empty name is the usual one.
func offerOf(id cluster.Identity, node string) *v09.ResourceOffer {
	o := liqotest.Offer(id, nil)
	o.Name, o.Spec.NodeName = "offer-"+node, node
	return o
}

// nodeThatSays returns a virtual node that says it is of a cluster.
func nodeThatSays(name string, id cluster.ID) *corev1.Node {
	n := liqotest.VirtualNode(cluster.Identity{ID: id}, true)
	n.Name = name
	return n
}

// TestClusterOf asks in both ways whose a virtual node is. Cluster a is honest.
func TestClusterOf(t *testing.T) {
	a, evil := cluster.Identity{ID: "id-a", Name: "a"}, cluster.Identity{ID: "id-evil", Name: "the-evil"}
	inTheNameOfA := offerOf(a, "x")
	inTheNameOfA.Namespace = liqotest.Tenant(evil)
	prefixed := offerOf(evil, "")
	prefixed.Spec.NodeNamePrefix = "gpu"
	ours := liqotest.OfferTo(evil, nil)
	ours.Spec.NodeName = "x"
	nowhere := offerOf(a, "x")
	nowhere.Namespace = "elsewhere"
	cases := map[string]struct {
		reason string
		offers []client.Object
		node   *corev1.Node
		want   cluster.ID
	}{
		"Honest": {
			reason: "The usual node of a cluster.", offers: []client.Object{offerOf(a, "")}, node: nodeThatSays("liqo-a", a.ID), want: a.ID,
		},
		"Named": {reason: "One that the offer names.", offers: []client.Object{offerOf(a, "x")}, node: nodeThatSays("x", a.ID), want: a.ID},
		"Lying": {
			reason: "The namespace of the offer counts, not what the node says.", offers: []client.Object{offerOf(a, ""), offerOf(evil, "")},
			node: nodeThatSays("liqo-the-evil", a.ID), want: evil.ID,
		},
		"LyingNamed":  {reason: "Whatever the name.", offers: []client.Object{offerOf(evil, "x")}, node: nodeThatSays("x", a.ID), want: evil.ID},
		"LyingPrefix": {reason: "Or its beginning.", offers: []client.Object{prefixed}, node: nodeThatSays("gpu-the-evil", a.ID), want: evil.ID},
		"Contended": {
			reason: "Nobody takes a node from its cluster by offering one of the same name.",
			offers: []client.Object{offerOf(a, ""), offerOf(evil, "liqo-a")}, node: nodeThatSays("liqo-a", a.ID), want: a.ID,
		},
		"Nobody": {
			reason: "A node that two offer, and that says it is a third one's, is of none.",
			offers: []client.Object{offerOf(a, "x"), offerOf(evil, "x")}, node: nodeThatSays("x", "id-b"),
		},
		"Leftover": {
			reason: "A node whose offer has gone is still of its cluster: pods leave it.", node: nodeThatSays("liqo-a", a.ID), want: a.ID,
		},
		"Forged": {
			reason: "An offer in another cluster's name is of nobody.", offers: []client.Object{inTheNameOfA}, node: nodeThatSays("x", evil.ID),
			want: evil.ID,
		},
		"OurOwn": {
			reason: "What this cluster offers to others is no node of theirs.", offers: []client.Object{ours},
			node: nodeThatSays("x", a.ID), want: a.ID,
		},
		"NoTenant": {
			reason: "Nor is what is in no tenant namespace.", offers: []client.Object{nowhere}, node: nodeThatSays("x", evil.ID), want: evil.ID,
		},
		"NotVirtual": {reason: "A node of this cluster is nobody's.", node: &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "worker"}}},
		"PartOfAnName": {
			reason: "A name that only ends alike is another name.", offers: []client.Object{offerOf(evil, "")},
			node: nodeThatSays("liqo-evil", a.ID), want: a.ID,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			objects := append(slices.Clone(tc.offers), liqotest.ForeignCluster(a, true, false), liqotest.ForeignCluster(evil, true, false))
			r := snapshottest.Reader(snapshottest.NewClient(t, interceptor.Funcs{}, objects...), "")
			owners, err := r.Owners(t.Context())
			if err != nil {
				t.Fatalf("Owners(): %v", err)
			}
			one, err := r.ClusterOf(t.Context(), tc.node)
			if err != nil {
				t.Fatalf("ClusterOf(): %v", err)
			}
			if all := owners.Of(tc.node); all != tc.want || one != tc.want {
				t.Errorf("%s\nof all %q, of one %q, want %q", tc.reason, all, one, tc.want)
			}
		})
	}
}

// TestOffersByTenant reads what is in the tenant namespace of a cluster, and in that of
// another one that writes offers in its name.
func TestOffersByTenant(t *testing.T) {
	a, evil := cluster.Identity{ID: "id-a", Name: "a"}, cluster.Identity{ID: "id-evil", Name: "evil"}
	forged := offerOf(a, "forged")
	forged.Namespace = liqotest.Tenant(evil)
	own, origin, claim := offerOf(evil, "own"), offerOf(evil, "origin"), offerOf(evil, "claim")
	origin.Labels["liqo.io/originID"] = string(a.ID)
	claim.Spec.Labels = map[string]string{liqo.LabelRemoteClusterID: string(a.ID)}
	toA := liqotest.OfferTo(a, nil)
	toA.Name, toA.Namespace = "to-a", liqotest.Tenant(evil)
	toEvil, replicated := liqotest.OfferTo(evil, nil), liqotest.OfferTo(evil, nil)
	toEvil.Name, replicated.Name = "to-evil", "replicated"
	replicated.Labels[liqo.LabelReplicated] = "true"

	r := snapshottest.Reader(snapshottest.NewClient(t, interceptor.Funcs{}, offerOf(a, "honest"), forged, own, origin, claim, toA,
		toEvil, replicated), "")
	names := func(offers []liqo.Offer) (names []string) {
		for i := range offers {
			names = append(names, offers[i].Name)
		}
		return names
	}
	for id, want := range map[cluster.Identity]struct{ by, refused, to []string }{
		a: {by: []string{"offer-honest"}},
		evil: {
			by: []string{"offer-own"}, to: []string{"to-evil"},
			refused: []string{
				`offer offer-claim: spec.labels[liqo.io/remote-cluster-id] is "id-a", in the tenant namespace of "id-evil"`,
				`offer offer-forged: spec.clusterId is "id-a", in the tenant namespace of "id-evil"`,
				`offer offer-origin: label liqo.io/originID is "id-a", in the tenant namespace of "id-evil"`,
				`offer replicated: spec.clusterId is "", in the tenant namespace of "id-evil"`,
			},
		},
	} {
		peer := v09.PeerOf(liqotest.ForeignCluster(id, true, true))
		by, refused, err := r.OffersBy(t.Context(), &peer)
		if err != nil {
			t.Fatalf("OffersBy(%s): %v", id, err)
		}
		to, err := r.OffersTo(t.Context(), &peer)
		if err != nil {
			t.Fatalf("OffersTo(%s): %v", id, err)
		}
		var why []string
		for _, refusal := range refused {
			why = append(why, refusal.String())
		}
		if diff := cmp.Diff([][]string{want.by, want.refused, want.to}, [][]string{names(by), why, names(to)}); diff != "" {
			t.Errorf("by, refused and to %s: -want +got\n%s", id, diff)
		}
	}
}

// TestWithoutTenantNamespace asks for a peer that has none: nothing is to come
// from all namespaces.
func TestWithoutTenantNamespace(t *testing.T) {
	a := cluster.Identity{ID: "id-a", Name: "a"}
	r := snapshot.New(v09.Line{}, snapshottest.NewClient(t, interceptor.Funcs{}, offerOf(a, ""), liqotest.OfferTo(a, nil),
		liqotest.Tunnel(a, "1ms", time.Now())), "", nil)
	for name, peer := range map[string]*liqo.Peer{"NoNamespace": {Identity: a}, "NoPeer": nil} {
		t.Run(name, func(t *testing.T) {
			by, refused, errBy := r.OffersBy(t.Context(), peer)
			to, errTo := r.OffersTo(t.Context(), peer)
			links, errLinks := r.LinksTo(t.Context(), peer)
			if err := errors.Join(errBy, errTo, errLinks); err != nil {
				t.Fatal(err)
			}
			if n := len(by) + len(refused) + len(to) + len(links); n != 0 {
				t.Errorf("%d objects", n)
			}
		})
	}
}

func TestLinksTo(t *testing.T) {
	a, evil := cluster.Identity{ID: "id-a", Name: "a"}, cluster.Identity{ID: "id-evil", Name: "evil"}
	forged := liqotest.Tunnel(a, "1ms", time.Now())
	forged.Namespace = liqotest.Tenant(evil)
	r := snapshot.New(v09.Line{}, snapshottest.NewClient(t, interceptor.Funcs{}, forged, liqotest.Tunnel(a, "20ms", time.Now())), "", nil)
	for id, want := range map[cluster.Identity]string{a: "20ms", evil: ""} {
		links, err := r.LinksTo(t.Context(), &liqo.Peer{Identity: id, Tenant: liqotest.Tenant(id)})
		if err != nil {
			t.Fatal(err)
		}
		var got strings.Builder
		for i := range links {
			got.WriteString(links[i].RoundTrip.String())
		}
		if got.String() != want {
			t.Errorf("round trips to %s: %q, want %q", id, got.String(), want)
		}
	}
}

// TestNodesOf has a node of a provider, one of another provider that says it is its, and one
// whose offer has gone.
func TestNodesOf(t *testing.T) {
	a, evil := cluster.Identity{ID: "id-a", Name: "a"}, cluster.Identity{ID: "id-evil", Name: "evil"}
	peers := map[cluster.ID]*v09.ForeignCluster{
		a.ID: liqotest.ForeignCluster(a, true, false), evil.ID: liqotest.ForeignCluster(evil, true, false),
	}
	r := snapshottest.Reader(snapshottest.NewClient(t, interceptor.Funcs{}, peers[a.ID], peers[evil.ID], offerOf(a, ""), offerOf(evil, ""),
		offerOf(evil, "no-node"),
		nodeThatSays("liqo-a", a.ID), nodeThatSays("liqo-evil", a.ID), nodeThatSays("liqo-old", a.ID)), "")
	for id, want := range map[cluster.ID][]string{
		a.ID:    {"liqo-a offered own", "liqo-evil", "liqo-old own"},
		evil.ID: {"liqo-evil offered own"},
	} {
		nodes, err := r.NodesOf(t.Context(), id, new(v09.PeerOf(peers[id])))
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for i := range nodes {
			text := nodes[i].Name
			if nodes[i].Offered {
				text += " offered"
			}
			if nodes[i].Own {
				text += " own"
			}
			got = append(got, text)
		}
		slices.Sort(got)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("nodes of %s: -want +got\n%s", id, diff)
		}
	}
}

// TestCapacityOfLyingNode has a pod on a node that says it is of another provider.
func TestCapacityOfLyingNode(t *testing.T) {
	a, evil := cluster.Identity{ID: "id-a", Name: "a"}, cluster.Identity{ID: "id-evil", Name: "evil"}
	snap, err := snapshottest.Reader(snapshottest.NewClient(t, interceptor.Funcs{},
		liqotest.ForeignCluster(a, true, false), liqotest.ForeignCluster(evil, true, false), offerOf(a, ""), offerOf(evil, ""),
		provider(a.ID, "4", v1alpha1.SchedulingActive), provider(evil.ID, "8", v1alpha1.SchedulingActive), nodeThatSays("liqo-a", a.ID),
		nodeThatSays("liqo-evil", a.ID), pod("of-c", "liqo-a", "1", corev1.PodRunning), pod("of-c", "liqo-evil", "2", corev1.PodRunning),
	), "").Capacity(t.Context())
	if err != nil {
		t.Fatalf("Capacity(): %v", err)
	}
	// Each is offered what the other one has free.
	for id, want := range map[cluster.ID]string{a.ID: "6", evil.ID: "3"} {
		offered := snap.Offered(id)
		if offered.Cpu().String() != want {
			t.Errorf("%s is offered %s cpu, want %s", id, offered.Cpu(), want)
		}
	}
}

func TestNamesake(t *testing.T) {
	// Liqo's unique name has 24 bits of a hash of the ID; these two share them.
	first, second := cluster.Identity{ID: "id-1363", Name: "twin"}, cluster.Identity{ID: "id-1561", Name: "twin"}
	if v09.UniqueName(first) != v09.UniqueName(second) {
		t.Fatalf("%s and %s are no namesakes", v09.UniqueName(first), v09.UniqueName(second))
	}
	peer := func(id cluster.Identity, name string, age time.Duration) *v09.ForeignCluster {
		fc := liqotest.ForeignCluster(id, true, false)
		fc.Name, fc.CreationTimestamp = name, metav1.NewTime(time.Unix(1_000_000, 0).Add(-age))
		return fc
	}
	other := peer(cluster.Identity{ID: "id-x", Name: "other"}, "other", time.Hour)
	cases := map[string]struct {
		reason      string
		older, same *v09.ForeignCluster
	}{
		"Older":      {reason: "Who came first keeps the name.", older: peer(first, "b", time.Hour), same: peer(second, "a", time.Minute)},
		"SameSecond": {reason: "In one second, the name of the object decides.", older: peer(first, "a", 0), same: peer(second, "b", 0)},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			r := snapshottest.Reader(snapshottest.NewClient(t, interceptor.Funcs{}, tc.older, tc.same, other), "")
			for _, ask := range []struct {
				fc   *v09.ForeignCluster
				want string
			}{{tc.older, ""}, {tc.same, tc.older.Name}, {other, ""}} {
				got := ""
				if namesake, err := r.Namesake(t.Context(), new(v09.PeerOf(ask.fc))); err != nil {
					t.Fatal(err)
				} else if namesake != nil {
					got = namesake.Record
				}
				if got != ask.want {
					t.Errorf("%s\nnamesake of %s: %q, want %q", tc.reason, ask.fc.Name, got, ask.want)
				}
			}
			others, err := r.Namesakes(t.Context(), first)
			if err != nil || !slices.Equal(others, []cluster.ID{second.ID}) {
				t.Errorf("%s\nnamesakes: %v, %v", tc.reason, others, err)
			}
		})
	}
}

func TestCheckNodeName(t *testing.T) {
	a, b, evil := cluster.Identity{ID: "id-a", Name: "a"}, cluster.Identity{ID: "id-b", Name: "b"},
		cluster.Identity{ID: "id-evil", Name: "evil"}
	boom := errors.New("boom")
	worker := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "worker"}}
	objects := []client.Object{
		liqotest.ForeignCluster(a, true, false), liqotest.ForeignCluster(b, true, false), liqotest.ForeignCluster(evil, true, false),
		offerOf(a, ""), offerOf(a, "gpu-a"), nodeThatSays("liqo-a", a.ID), nodeThatSays("left", evil.ID), nodeThatSays("gone", "id-gone"), worker,
	}
	c := snapshottest.NewClient(t, interceptor.Funcs{}, objects...)
	cases := map[string]struct {
		reason, name string
		peer         cluster.ID
		want         error
	}{
		"Free":   {reason: "A new name.", name: "gpu-evil", peer: evil.ID},
		"Usual":  {reason: "The name that Liqo gives.", name: "liqo-evil", peer: evil.ID},
		"Again":  {reason: "A cluster that peers again finds its node.", name: "liqo-a", peer: a.ID},
		"Left":   {reason: "Also without an offer.", name: "left", peer: evil.ID},
		"Others": {reason: "The usual node of another cluster.", name: "liqo-a", peer: evil.ID, want: snapshot.ErrNodeTaken},
		"Named":  {reason: "A node that another cluster offers, before it exists.", name: "gpu-a", peer: evil.ID, want: snapshot.ErrNodeTaken},
		"NotYet": {
			reason: "The usual node of a cluster that has not offered anything yet.", name: "liqo-b", peer: evil.ID, want: snapshot.ErrNodeTaken,
		},
		"Leftover": {reason: "A node of a cluster that is gone.", name: "gone", peer: evil.ID, want: snapshot.ErrNodeTaken},
		"Worker":   {reason: "A node of this cluster.", name: "worker", peer: evil.ID, want: snapshot.ErrNodeTaken},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if err := snapshottest.Reader(c, "").CheckNodeName(t.Context(), c, tc.peer, tc.name); !errors.Is(err, tc.want) {
				t.Errorf("%s\nCheckNodeName() = %v, want %v", tc.reason, err, tc.want)
			}
		})
	}
	unreadable := snapshottest.NewClient(t, interceptor.Funcs{
		Get: func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
			return boom
		},
	})
	if err := snapshottest.Reader(c, "").CheckNodeName(t.Context(), unreadable, evil.ID, "new"); !errors.Is(err, boom) {
		t.Errorf("a node that cannot be read: %v", err)
	}
}
