// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package v09_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	discoveryv1alpha1 "github.com/liqotech/liqo/apis/discovery/v1alpha1"
	sharingv1alpha1 "github.com/liqotech/liqo/apis/sharing/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
	"github.com/capacitorset/liqo-broker/pkg/liqo"
	"github.com/capacitorset/liqo-broker/pkg/liqo/line"
	"github.com/capacitorset/liqo-broker/pkg/liqo/line/linetest"
	v09 "github.com/capacitorset/liqo-broker/pkg/liqo/v09"
	"github.com/capacitorset/liqo-broker/pkg/liqo/v09/liqotest"
)

// called returns what a cluster is called whose ID is not its name.
func called(name string) cluster.Identity {
	return cluster.Identity{ID: cluster.ID("id-" + name), Name: name}
}

// change returns an update of an object.
func change[T client.Object](before T, by func(T)) linetest.Change {
	after := before.DeepCopyObject().(T)
	by(after)
	return linetest.Change{Before: before, After: after}
}

// putHere returns an object as the replicator of the consumer puts it here.
func putHere[T client.Object](o T) T {
	o.SetNamespace(liqotest.Tenant(called("consumer")))
	o.SetName("put")
	o.SetLabels(map[string]string{
		liqo.LabelReplicated: liqo.ReplicationValue, liqo.LabelReplication: "false", liqo.LabelOrigin: string(called("consumer").ID),
		liqo.LabelDestination: string(called("own").ID), liqo.LabelRemoteClusterID: string(called("own").ID),
	})
	return o
}

// record returns that of a peer, with what nobody may see.
func record(id cluster.Identity, outgoing, incoming bool) *v09.ForeignCluster {
	fc := liqotest.ForeignCluster(id, outgoing, incoming)
	fc.CreationTimestamp = metav1.NewTime(linetest.Measured())
	fc.Labels = map[string]string{"example.com/contract": linetest.Secret, "discovery.liqo.io/cluster-id": string(id.ID)}
	fc.Annotations = map[string]string{"example.com/note": linetest.Secret}
	fc.Spec.OutgoingPeeringEnabled, fc.Spec.IncomingPeeringEnabled = discoveryv1alpha1.PeeringEnabledYes, discoveryv1alpha1.PeeringEnabledAuto
	fc.Spec.ForeignAuthURL = "https://user:" + linetest.Secret + "@192.0.2.1/?token=" + linetest.Secret
	fc.Spec.ForeignProxyURL = "https://" + linetest.Secret
	for i := range fc.Status.PeeringConditions {
		fc.Status.PeeringConditions[i].Message = linetest.Secret
	}
	return fc
}

// offer returns one of a provider with the cores of a World, which a test may change.
func offer(id cluster.Identity, name string, by func(*v09.ResourceOffer)) *v09.ResourceOffer {
	o := liqotest.Offer(id, corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(linetest.Cores)})
	o.Name, o.Spec.Images = name, []corev1.ContainerImage{{Names: []string{"registry.example/image"}}}
	by(o)
	return o
}

// network returns that towards a peer, up or not.
func network(id cluster.Identity, up bool) *v09.TunnelEndpoint {
	tunnel := liqotest.Tunnel(id, linetest.RoundTrip.String(), linetest.Measured())
	tunnel.Spec.RemotePodCIDR, tunnel.Spec.RemoteNATPodCIDR = "10.10.0.0/16", linetest.Seen
	if !up {
		tunnel.Status.Connection.Status = "Error"
	}
	return tunnel
}

func TestLine(t *testing.T) {
	own, provider, consumer, liar, stranger := called("own"), called("provider"), called("consumer"), called("liar"), called("stranger")
	peer := func(id cluster.Identity) linetest.Peer {
		return linetest.Peer{Identity: id, Record: id.Name, Tenant: liqotest.Tenant(id)}
	}
	providers, strangers := record(provider, true, false), record(stranger, false, false)
	strangers.Status.TenantNamespace.Local = ""
	// What is in the right places.
	bought := offer(provider, "bought", func(*v09.ResourceOffer) {})
	pending := offer(provider, "pending", func(o *v09.ResourceOffer) { o.Spec.NodeNamePrefix, o.Status.Phase = "gpu", "" })
	leaving := offer(provider, "leaving", func(o *v09.ResourceOffer) {
		o.Spec.NodeName, o.Finalizers = "pool-provider", []string{"brokering.liqo.io/test"}
		o.DeletionTimestamp = &metav1.Time{Time: linetest.Measured()}
	})
	sold := liqotest.OfferTo(consumer, nil)
	// What the liar writes, and what is nowhere.
	forged := offer(provider, "forged", func(o *v09.ResourceOffer) { o.Namespace, o.Spec.NodeName = liqotest.Tenant(liar), "liqo-provider" })
	claimed := liqotest.OfferTo(consumer, nil)
	claimed.Name, claimed.Namespace = "claimed", liqotest.Tenant(liar)
	stray := offer(provider, "stray", func(o *v09.ResourceOffer) {
		o.Namespace, o.Spec.NodeName = linetest.NobodysNamespace, "liqo-provider"
	})
	for _, o := range []*v09.ResourceOffer{sold, claimed} {
		o.Status.Phase = sharingv1alpha1.ResourceOfferAccepted
	}
	leadsAstray := network(provider, true)
	leadsAstray.Namespace = liqotest.Tenant(liar)

	objects := liqotest.Liqo(own, linetest.Secret)
	objects = append(objects,
		liqotest.TenantNamespace(provider), liqotest.TenantNamespace(consumer), liqotest.TenantNamespace(liar),
		providers, record(consumer, false, true), record(liar, false, true), strangers,
		bought, pending, leaving, sold, forged, claimed, stray,
		network(provider, true), network(consumer, false), leadsAstray,
	)
	offloaded := v09.ForgeOffloading(linetest.NobodysNamespace, liqo.MappingDefault, own)
	v09.Select(offloaded, []cluster.ID{liar.ID, provider.ID}, []cluster.ID{provider.ID})
	liqotest.PutInForce(liqotest.TwinNamespace("web", consumer), offloaded, provider, consumer)
	offloaded.Status.RemoteNamespacesConditions[v09.UniqueName(consumer)][0].Status = corev1.ConditionFalse
	liqotest.Refuse(offloaded, liar, linetest.Measured())
	offloaded.Status.RemoteNamespaceName = linetest.RemoteName
	objects = append(objects, offloaded)
	both := record(provider, true, true)
	both.Labels["discovery.liqo.io/discovery-type"], both.Spec.IncomingPeeringEnabled = "IncomingPeering", discoveryv1alpha1.PeeringEnabledYes
	wished := liqotest.ShadowPod(linetest.NobodysNamespace, "web", nil)
	wished.Spec.Pod.PriorityClassName, wished.Status.Phase = "web", corev1.PodSucceeded
	remembered := &v09.IpamStorage{ObjectMeta: metav1.ObjectMeta{Name: "liqo-ipam"}}
	remembered.Spec.PodCIDR, remembered.Spec.ServiceCIDR = linetest.OwnNetwork, "none"
	linetest.Run(t, linetest.World{
		Line: v09.Line{}, Objects: objects, Own: own, Wished: wished, Networks: []client.Object{remembered},
		Provider: peer(provider), Consumer: peer(consumer), Liar: peer(liar), Stranger: linetest.Peer{Identity: stranger, Record: stranger.Name},
		AlsoConsumes: []client.Object{both}, Node: "liqo-provider", Offloaded: offloaded,
		Offers: linetest.Offers{
			Bought: client.ObjectKeyFromObject(bought), Pending: client.ObjectKeyFromObject(pending), Leaving: client.ObjectKeyFromObject(leaving),
			Sold: client.ObjectKeyFromObject(sold), Forged: client.ObjectKeyFromObject(forged), Claimed: client.ObjectKeyFromObject(claimed),
			Stray: client.ObjectKeyFromObject(stray),
		},
		Copies: []linetest.Copy{
			{Group: "discovery.liqo.io", Resource: "resourcerequests", Object: putHere(&discoveryv1alpha1.ResourceRequest{
				Spec: discoveryv1alpha1.ResourceRequestSpec{ClusterIdentity: discoveryv1alpha1.ClusterIdentity{
					ClusterID: string(consumer.ID), ClusterName: consumer.Name,
				}},
			})},
			{Group: "virtualkubelet.liqo.io", Resource: "namespacemaps", Object: putHere(&v09.NamespaceMap{}), Remote: liqo.LabelRemoteClusterID},
		},
		Changes: linetest.Changes{
			Silent: []linetest.Change{
				change(providers, func(fc *v09.ForeignCluster) { fc.Status.PeeringConditions[0].LastTransitionTime = metav1.Now() }),
				change(bought, func(o *v09.ResourceOffer) { o.Status.VirtualKubeletStatus = "Created" }),
				change(liqotest.TenantNamespace(provider), func(n *corev1.Namespace) { n.Labels = nil }),
			},
			Node: []linetest.Change{
				change(bought, func(o *v09.ResourceOffer) { o.Spec.NodeName = "other" }),
				change(bought, func(o *v09.ResourceOffer) { o.Spec.NodeNamePrefix = "other" }),
			},
			Tenant: []linetest.Change{change(providers, func(fc *v09.ForeignCluster) { fc.Status.TenantNamespace.Local = "other" })},
			Claim: []linetest.Change{
				change(bought, func(o *v09.ResourceOffer) { o.Spec.ClusterID = string(liar.ID) }),
				change(bought, func(o *v09.ResourceOffer) { o.Labels[liqo.LabelOrigin] = string(liar.ID) }),
				change(bought, func(o *v09.ResourceOffer) {
					o.Spec.Labels = map[string]string{liqo.LabelRemoteClusterID: string(liar.ID)}
				}),
				change(sold, func(o *v09.ResourceOffer) { o.Labels[liqo.LabelDestination] = string(liar.ID) }),
			},
		},
	})
}

// TestOwnNetworks holds which networks Liqo's IPAM remembers as this cluster's.
func TestOwnNetworks(t *testing.T) {
	remembered := &v09.IpamStorage{}
	remembered.Spec.PodCIDR, remembered.Spec.ServiceCIDR, remembered.Spec.ExternalCIDR = "10.50.7.0/16", "10.96.0.0/12", "10.70.0.0/16"
	remembered.Spec.ReservedSubnets = []string{"192.168.0.0/16"}
	if got := fmt.Sprint(v09.Line{}.OwnNetworksOf(remembered)); got != "[10.50.0.0/16 10.96.0.0/12 10.70.0.0/16]" {
		t.Errorf("OwnNetworksOf() = %v", got)
	}
	if !(v09.Line{}).HasPlugin() {
		t.Error("Liqo 0.9 has no resource plugin")
	}
}

// TestDirectPaths holds that a consumer that peers with a provider reaches its pods there past the broker.
func TestDirectPaths(t *testing.T) {
	if !(v09.Line{}).DirectPaths() {
		t.Error("Liqo 0.9 has no direct paths")
	}
}

// newReader returns a reader of Liqo 0.9 with the indexes that it needs, and counts what it reads.
func newReader(t *testing.T, reads *int, objects ...client.Object) line.Reader {
	t.Helper()
	b := fake.NewClientBuilder().WithScheme(liqotest.Scheme(t)).WithObjects(objects...).WithInterceptorFuncs(interceptor.Funcs{
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			*reads++
			return c.List(ctx, list, opts...)
		},
	})
	for _, i := range (v09.Line{}).Indexes() {
		b = b.WithIndex(i.Object, i.Field, i.Extract)
	}
	return v09.Line{}.Reader(b.Build(), "id-own")
}

// ids returns whose peers are, in order.
func ids(all []liqo.Peer) []cluster.ID {
	found := make([]cluster.ID, len(all))
	for i := range all {
		found[i] = all[i].ID
	}
	slices.Sort(found)
	return found
}

// TestNames has clusters whose names say nothing of their IDs: two are called alike, and Liqo cannot tell two others apart.
func TestNames(t *testing.T) {
	first, second := cluster.Identity{ID: "id-1363", Name: "twin"}, cluster.Identity{ID: "id-1561", Name: "twin"}
	if v09.UniqueName(first) != v09.UniqueName(second) {
		t.Fatalf("%s and %s are no namesakes", v09.UniqueName(first), v09.UniqueName(second))
	}
	third := cluster.Identity{ID: "id-third", Name: "twin"}
	var reads int
	r := newReader(t, &reads, record(first, true, false), renamed(record(second, true, false), "second"),
		renamed(record(third, true, false), "third"))
	all := []cluster.ID{first.ID, second.ID, third.ID}
	if got, err := r.PeersCalled(t.Context(), "twin"); err != nil || !slices.Equal(ids(got), all) {
		t.Errorf("PeersCalled() = %v, %v: a name may be that of several", got, err)
	}
	if got, err := r.PeersCalled(t.Context(), string(first.ID)); err != nil || len(got) > 0 {
		t.Errorf("PeersCalled() = %v, %v: an ID is no name", got, err)
	}
	if got, err := r.Peer(t.Context(), "twin"); err != nil || got != nil {
		t.Errorf("Peer() = %v, %v: a name is no ID", got, err)
	}
	owners, err := r.UsualOwners(t.Context(), "liqo-twin")
	if slices.Sort(owners); err != nil || !slices.Equal(owners, all) {
		t.Errorf("UsualOwners() = %v, %v: all that are called so", owners, err)
	}
	if got, err := r.UsualOwners(t.Context(), "twin"); err != nil || len(got) > 0 {
		t.Errorf("UsualOwners() = %v, %v: Liqo calls no node so", got, err)
	}
	if got, err := r.Namesakes(t.Context(), first); err != nil || !slices.Equal(ids(got), []cluster.ID{second.ID}) {
		t.Errorf("Namesakes() = %v, %v: the hash of the third ID is another one", got, err)
	}
}

func renamed(fc *v09.ForeignCluster, name string) *v09.ForeignCluster {
	fc.Name = name
	return fc
}

// TestTwoRecords holds that of two records of one cluster that counts which Liqo takes too: the older one.
func TestTwoRecords(t *testing.T) {
	var reads int
	id := called("a")
	older, newer := renamed(record(id, true, false), "z"), renamed(record(id, false, true), "a")
	older.CreationTimestamp = metav1.NewTime(linetest.Measured().Add(-time.Hour))
	r := newReader(t, &reads, newer, older)
	if got, err := r.Peer(t.Context(), id.ID); err != nil || got == nil || got.Record != "z" {
		t.Errorf("Peer() = %v, %v", got, err)
	}
}

// TestEndlessNodeName looks for the owner of a node whose name a peer has made so that looking for it would take all day.
func TestEndlessNodeName(t *testing.T) {
	var reads int
	r := newReader(t, &reads, record(called("a"), true, false))
	if got, err := r.OffersOfNode(t.Context(), strings.Repeat("-", 10_000)); err != nil || len(got) > 0 {
		t.Errorf("OffersOfNode() = %v, %v", got, err)
	}
	if reads > 2 {
		t.Errorf("the name is looked for %d times: no node can have it", reads)
	}
}
