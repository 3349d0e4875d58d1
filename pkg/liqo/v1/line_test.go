// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package v1

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
	"github.com/capacitorset/liqo-broker/pkg/lenient"
	"github.com/capacitorset/liqo-broker/pkg/liqo"
	"github.com/capacitorset/liqo-broker/pkg/liqo/line"
	"github.com/capacitorset/liqo-broker/pkg/liqo/line/linetest"
	"github.com/capacitorset/liqo-broker/pkg/liqo/v1/api"
)

// tenantOf returns the name of the tenant namespace of a peer.
func tenantOf(id string) string { return "liqo-tenant-" + id }

// recordOf returns what Liqo sees of a peer, with what nobody may see.
func recordOf(id string, role api.Role, conditions ...api.ConditionType) *api.ForeignCluster {
	fc := &api.ForeignCluster{
		ObjectMeta: metav1.ObjectMeta{
			Name: id, CreationTimestamp: metav1.NewTime(linetest.Measured()),
			Labels:      map[string]string{liqo.LabelRemoteClusterID: id, "example.com/contract": linetest.Secret},
			Annotations: map[string]string{"example.com/note": linetest.Secret},
		},
		Spec: api.ForeignClusterSpec{ClusterID: id},
		Status: api.ForeignClusterStatus{
			Role: role, APIServerURL: "https://user:" + linetest.Secret + "@192.0.2.1:6443/?token=" + linetest.Secret,
			TenantNamespace: api.TenantNamespaces{Local: tenantOf(id), Remote: linetest.Secret},
		},
	}
	fc.Status.Modules.Offloading.Enabled = true
	for _, of := range conditions {
		fc.Status.Modules.Authentication.Conditions = append(fc.Status.Modules.Authentication.Conditions, api.Condition{
			Type: of, Status: api.StatusReady, Message: linetest.Secret,
		})
	}
	return fc
}

// tenantIn returns what lets a cluster consume, in a namespace.
func tenantIn(namespace, name, id string) *api.Tenant {
	return &api.Tenant{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, CreationTimestamp: metav1.NewTime(linetest.Measured())},
		Spec:       api.TenantSpec{ClusterID: id},
	}
}

// identityIn returns how this cluster authenticates at a cluster, in a namespace.
func identityIn(namespace, id string) *api.Identity {
	i := &api.Identity{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "controlplane-" + id, CreationTimestamp: metav1.NewTime(linetest.Measured())},
		Spec:       api.IdentitySpec{ClusterID: id, Type: api.IdentityControlPlane},
	}
	i.Status.KubeconfigSecretRef = &corev1.LocalObjectReference{Name: linetest.Secret}
	return i
}

// sliceIn returns a ResourceSlice that is granted the cores of a World, in a namespace: one that a consumer has put here, or one of this
// cluster for a virtual node.
func sliceIn(namespace, name, consumer, provider string) *api.ResourceSlice {
	s := slice(api.SliceAccepted, api.SliceAccepted)
	s.Namespace, s.Name, s.Spec.ConsumerClusterID, s.Spec.ProviderClusterID = namespace, name, &consumer, &provider
	s.Status.Resources = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(linetest.Cores)}
	if consumer != "own" {
		s.Annotations, s.Labels = nil, map[string]string{
			liqo.LabelReplicated: liqo.ReplicationValue, liqo.LabelOrigin: consumer, liqo.LabelDestination: provider,
		}
	}
	return s
}

// networkIn returns that towards a peer, up or not, in a namespace.
func networkIn(namespace, id string, state api.ConnectionState) []client.Object {
	of := func(o client.Object) client.Object {
		o.SetNamespace(namespace)
		o.SetName(id)
		o.SetLabels(map[string]string{liqo.LabelRemoteClusterID: id})
		return o
	}
	seen := &api.ClusterNetworks{CIDR: api.CIDRs{Pod: []string{linetest.Seen}}}
	return []client.Object{
		of(configuration(api.CIDRs{Pod: []string{"10.10.0.0/16"}}, seen)), of(tunnel(state, linetest.RoundTrip.String(), linetest.Measured())),
	}
}

// offloadedTo returns the offloading of a World, with the three clusters that have the namespace, cannot make it, and had it.
func offloadedTo(has, refuses, had string) *api.NamespaceOffloading {
	o := ForgeOffloading(linetest.NobodysNamespace, liqo.MappingDefault, Identity("own"))
	Select(o, []cluster.ID{cluster.ID(refuses), cluster.ID(has)}, []cluster.ID{cluster.ID(has)})
	o.Generation, o.Status.ObservedGeneration, o.Status.RemoteNamespaceName = 2, 2, linetest.RemoteName
	conditions := func(required, ready corev1.ConditionStatus, reason string) api.RemoteNamespaceConditions {
		return api.RemoteNamespaceConditions{
			{Type: api.OffloadingRequired, Status: required, LastTransitionTime: metav1.NewTime(linetest.Measured())},
			{Type: api.RemoteNamespaceReady, Status: ready, Reason: reason, LastTransitionTime: metav1.NewTime(linetest.Measured())},
		}
	}
	o.Status.RemoteNamespacesConditions = map[string]api.RemoteNamespaceConditions{
		has:     conditions(corev1.ConditionTrue, corev1.ConditionTrue, "RemoteNamespaceCreated"),
		refuses: conditions(corev1.ConditionTrue, corev1.ConditionFalse, string(api.MappingFailing)),
		had:     conditions(corev1.ConditionFalse, corev1.ConditionTrue, "RemoteNamespaceCreated"),
	}
	return o
}

// putHere returns an object as the replicator of the consumer puts it here.
func putHere[T client.Object](o T) T {
	put := o.DeepCopyObject().(T)
	put.SetNamespace(tenantOf("consumer"))
	put.SetName("own")
	put.SetLabels(map[string]string{
		liqo.LabelReplicated: liqo.ReplicationValue, liqo.LabelReplication: "false", liqo.LabelOrigin: "consumer", liqo.LabelDestination: "own",
		liqo.LabelRemoteClusterID: "consumer",
	})
	return put
}

// altered returns an update of an object.
func altered[T client.Object](before T, by func(T)) linetest.Change {
	after := before.DeepCopyObject().(T)
	by(after)
	return linetest.Change{Before: before, After: after}
}

func TestLine(t *testing.T) {
	peer := func(id string) linetest.Peer {
		return linetest.Peer{Identity: Identity(id), Record: id, Tenant: tenantOf(id)}
	}
	stored := &corev1.ConfigMap{Data: map[string]string{liqo.IdentityKey: "own"}}
	stored.Namespace, stored.Name = liqo.DefaultNamespace, liqo.IdentityName
	objects := []client.Object{stored}
	for _, id := range []string{"provider", "consumer", "liar"} {
		objects = append(objects, new(tenantNamespace(tenantOf(id), id)))
	}
	// What is in the right places.
	namespace := new(tenantNamespace(tenantOf("provider"), "provider"))
	provider := recordOf("provider", api.RoleProvider, api.AuthIdentityControlPlaneStatus)
	identity := identityIn(tenantOf("provider"), "provider")
	tenant := tenantIn(tenantOf("consumer"), "consumer", "consumer")
	bought := sliceIn(tenantOf("provider"), "provider", "own", "provider")
	pending := sliceIn(tenantOf("provider"), "pending", "own", "provider")
	leaving := sliceIn(tenantOf("provider"), "leaving", "own", "provider")
	pending.Status.Conditions = nil
	leaving.DeletionTimestamp, leaving.Finalizers = &metav1.Time{Time: linetest.Measured()}, []string{"brokering.liqo.io/test"}
	sold := sliceIn(tenantOf("consumer"), "sold", "consumer", "own")
	// What the liar writes, and what is nowhere.
	forged, claimed := sliceIn(tenantOf("liar"), "provider", "own", "provider"), sliceIn(tenantOf("liar"), "claimed", "consumer", "own")
	stray := sliceIn(linetest.NobodysNamespace, "provider", "own", "provider")
	objects = append(objects,
		provider, recordOf("consumer", api.RoleConsumer, api.AuthTenantStatus), recordOf("liar", api.RoleConsumer, api.AuthTenantStatus),
		recordOf("stranger", api.RoleUnknown), identity, tenant, tenantIn(tenantOf("liar"), "liar", "liar"),
		tenantIn(tenantOf("liar"), "first", "provider"), identityIn(tenantOf("liar"), "consumer"),
		bought, pending, leaving, sold, forged, claimed, stray,
	)
	objects = append(objects, networkIn(tenantOf("provider"), "provider", api.Connected)...)
	objects = append(objects, networkIn(tenantOf("consumer"), "consumer", api.ConnectionError)...)
	objects = append(objects, networkIn(tenantOf("liar"), "provider", api.Connected)...)

	offloaded := offloadedTo("provider", "liar", "consumer")
	objects = append(objects, offloaded)

	wished := &api.ShadowPod{ObjectMeta: metav1.ObjectMeta{Namespace: linetest.NobodysNamespace, Name: "web"}}
	wished.Spec.Pod.PriorityClassName, wished.Status.Phase = "web", corev1.PodSucceeded

	linetest.Run(t, linetest.World{
		Line: Line{}, Objects: objects, Own: Identity("own"), Offloaded: offloaded, Wished: wished,
		Networks: []client.Object{
			ownNetwork("pods", api.NetworkTypePods, "10.49.0.0/16", linetest.OwnNetwork),
			ownNetwork("of-a-peer", "", "10.10.0.0/16", linetest.Seen), ownNetwork("junk", api.NetworkTypeServices, "none", ""),
		},
		Provider: peer("provider"), Consumer: peer("consumer"), Liar: peer("liar"),
		Stranger: linetest.Peer{Identity: Identity("stranger"), Record: "stranger"},
		AlsoConsumes: []client.Object{
			tenantIn(tenantOf("provider"), "provider", "provider"),
			recordOf("provider", api.RoleConsumerAndProvider, api.AuthTenantStatus, api.AuthIdentityControlPlaneStatus),
		},
		Node: "provider",
		Offers: linetest.Offers{
			Bought: client.ObjectKeyFromObject(bought), Pending: client.ObjectKeyFromObject(pending), Leaving: client.ObjectKeyFromObject(leaving),
			Sold: client.ObjectKeyFromObject(sold), Forged: client.ObjectKeyFromObject(forged), Claimed: client.ObjectKeyFromObject(claimed),
			Stray: client.ObjectKeyFromObject(stray),
		},
		Copies: []linetest.Copy{
			{Group: api.AuthenticationGroup, Resource: "resourceslices", Object: putHere(sold), Remote: liqo.LabelRemoteClusterID},
			{Group: api.OffloadingGroup, Resource: "namespacemaps", Object: putHere(&api.NamespaceMap{}), Remote: liqo.LabelRemoteClusterID},
		},
		Changes: linetest.Changes{
			Silent: []linetest.Change{
				altered(provider, func(fc *api.ForeignCluster) {
					fc.Status.Modules.Authentication.Conditions[0].LastTransitionTime = metav1.Now()
				}),
				altered(bought, func(s *api.ResourceSlice) { s.Status.Conditions[0].LastTransitionTime = metav1.Now() }),
				altered(tenant, func(t *api.Tenant) { t.Status.TenantNamespace = tenantOf("consumer") }),
				altered(namespace, func(n *corev1.Namespace) { n.Labels["example.com/team"] = "a" }),
				altered(identity, func(i *api.Identity) { i.Spec.AuthParams.APIServer = "https://192.0.2.1:6443" }),
			},
			Node: []linetest.Change{altered(bought, func(s *api.ResourceSlice) { s.Annotations = nil })},
			Tenant: []linetest.Change{
				altered(tenant, func(t *api.Tenant) { t.Spec.ClusterID = "liar" }),
				altered(identity, func(i *api.Identity) { i.Spec.ClusterID = "liar" }),
				altered(identity, func(i *api.Identity) { i.Spec.Type = api.IdentityResourceSlice }),
				altered(namespace, func(n *corev1.Namespace) { n.Labels[liqo.LabelRemoteClusterID] = "liar" }),
				altered(namespace, func(n *corev1.Namespace) { delete(n.Labels, liqo.LabelTenantNamespace) }),
				altered(namespace, func(n *corev1.Namespace) { n.Labels = nil }),
			},
			Claim: []linetest.Change{
				altered(bought, func(s *api.ResourceSlice) { s.Spec.ProviderClusterID = new("liar") }),
				altered(bought, func(s *api.ResourceSlice) { s.Spec.ConsumerClusterID = nil }),
				altered(sold, func(s *api.ResourceSlice) { s.Labels[liqo.LabelOrigin] = "liar" }),
				altered(sold, func(s *api.ResourceSlice) { s.Labels = nil }),
			},
		},
	})
}

// ownNetwork returns what Liqo's IPAM has written down, of a type if it is this cluster's.
func ownNetwork(name, of, wanted, given string) *api.Network {
	n := &api.Network{ObjectMeta: metav1.ObjectMeta{Namespace: liqo.DefaultNamespace, Name: name}, Spec: api.NetworkSpec{CIDR: wanted}}
	n.Status.CIDR = given
	if of != "" {
		n.Labels = map[string]string{api.LabelNetworkType: of}
	}
	return n
}

// TestOwnNetworks holds that what is wanted counts until Liqo has given it.
func TestOwnNetworks(t *testing.T) {
	got := Line{}.OwnNetworksOf(ownNetwork("pods", api.NetworkTypePods, "10.49.7.0/16", ""))
	if fmt.Sprint(got) != "[10.49.0.0/16]" {
		t.Errorf("OwnNetworksOf() = %v", got)
	}
}

// TestHasPlugin holds that nobody asks the daemon what to offer.
func TestHasPlugin(t *testing.T) {
	if (Line{}).HasPlugin() {
		t.Error("Liqo 1.x has a resource plugin")
	}
}

// TestDirectPaths holds that a peering with a provider leads no pod's packets past the broker.
func TestDirectPaths(t *testing.T) {
	if (Line{}).DirectPaths() {
		t.Error("Liqo 1.x has direct paths")
	}
}

// TestForward holds that the virtual kubelet of the second hop adds nothing that the first one has added.
func TestForward(t *testing.T) {
	pod := &corev1.Pod{}
	Line{}.Forward(pod)
	if got := pod.Annotations["liqo.io/api-server-support"]; got != "disabled" {
		t.Errorf("the pod's API server is %q, want disabled", got)
	}
}

// newReader returns a reader of the cluster own, with the indexes that it needs.
func newReader(t *testing.T, objects ...client.Object) line.Reader {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), Line{}.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	b := fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...)
	for _, i := range (Line{}).Indexes() {
		b = b.WithIndex(i.Object, i.Field, i.Extract)
	}
	return Line{}.Reader(b.Build(), "own")
}

// TestSeveralTenantNamespaces holds that one of several counts, whichever way it is asked for.
func TestSeveralTenantNamespaces(t *testing.T) {
	later := tenantIn("a-second", "a", "a")
	later.CreationTimestamp = metav1.NewTime(linetest.Measured().Add(time.Minute))
	namespaces := []client.Object{recordOf("a", api.RoleConsumer, api.AuthTenantStatus), new(tenantNamespace("a-second", "a")),
		new(tenantNamespace("first", "a")), new(tenantNamespace("third", "a")), new(tenantNamespace("of-b", "b"))}
	cases := map[string]struct {
		reason string
		other  []client.Object
		want   string
	}{
		"Unused":   {"Nobody knows which one counts.", nil, ""},
		"Used":     {"A Tenant is in it.", []client.Object{tenantIn("third", "a", "a")}, "third"},
		"Both":     {"The older Tenant counts.", []client.Object{later, tenantIn("first", "a", "a")}, "first"},
		"SameTime": {"The name decides.", []client.Object{tenantIn("third", "a", "a"), tenantIn("first", "a", "a")}, "first"},
		"Identity": {"An Identity is in it.", []client.Object{identityIn("third", "a")}, "third"},
		"Apart":    {"The Tenant comes first.", []client.Object{identityIn("first", "a"), tenantIn("third", "a", "a")}, "third"},
		"Foreign":  {"A Tenant of a in the namespace of b is nobody's.", []client.Object{tenantIn("of-b", "a", "a")}, ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			r := newReader(t, append(tc.other, namespaces...)...)
			peer, err := r.Peer(t.Context(), "a")
			if err != nil || peer == nil || peer.Tenant != tc.want {
				t.Fatalf("%s\nPeer() = %+v, %v, want it in %q", tc.reason, peer, err, tc.want)
			}
			if all, err := r.Peers(t.Context()); err != nil || cmp.Diff([]liqo.Peer{*peer}, all) != "" {
				t.Errorf("%s\nPeers() = %+v, %v, want %+v", tc.reason, all, err, peer)
			}
			for _, namespace := range []string{"a-second", "first", "third"} {
				want := cluster.ID("")
				if namespace == tc.want {
					want = "a"
				}
				if got, err := r.Tenant(t.Context(), namespace); err != nil || got.ID != want {
					t.Errorf("%s\nTenant(%s) = %v, %v", tc.reason, namespace, got, err)
				}
			}
		})
	}
}

// TestTenantsInOneNamespace holds that the first Tenant of a peer counts: one that it makes itself, when that was drained, does not let it
// in.
func TestTenantsInOneNamespace(t *testing.T) {
	drained, made := tenantIn("a", "z", "a"), tenantIn("a", "a", "a")
	drained.Spec.TenantCondition, made.CreationTimestamp = api.TenantDrained, metav1.NewTime(linetest.Measured().Add(time.Minute))
	r := newReader(t, recordOf("a", api.RoleConsumer, api.AuthTenantStatus), new(tenantNamespace("a", "a")), made, drained)
	peer, err := r.Peer(t.Context(), "a")
	if err != nil || peer == nil || peer.Incoming != (liqo.Peering{Exists: true, Ending: true}) {
		t.Errorf("Peer() = %+v, %v", peer, err)
	}
}

// TestDroppedOfTenants holds that of a Tenant nothing is kept in memory that was signed.
func TestDroppedOfTenants(t *testing.T) {
	tenant, large := tenantIn("a", "a", "a"), []byte(linetest.Secret)
	want := tenant.DeepCopy()
	tenant.Spec.CSR, tenant.Spec.PublicKey, tenant.Spec.Signature = large, large, large
	tenant.Status.AuthParams = &api.IssuedParams{SignedCRT: large}
	for kind, drop := range (Line{}).Dropped(&liqo.Compactor{}) {
		if _, is := kind.(*api.Tenant); is {
			drop(tenant)
		}
	}
	if diff := cmp.Diff(want, tenant); diff != "" {
		t.Errorf("-want +kept\n%s", diff)
	}
}

// TestDroppedOfSlices holds that of a ResourceSlice nothing is kept in memory that a peer may make large, and all that is read.
func TestDroppedOfSlices(t *testing.T) {
	asked := sliceIn(tenantOf("c"), "x", "c", "own")
	asked.Spec.CSR, asked.Spec.Class = []byte(linetest.Secret), api.SliceClassBroker
	asked.Annotations = map[string]string{
		"example.com/large": linetest.Secret, api.AnnotationCordon: "true", api.AnnotationCreateNode: "true",
		lenient.AnnotationUnreadable: "spec.resources[pods]: no quantity",
	}
	kept := asked.DeepCopy()
	for kind, drop := range (Line{}).Dropped(&liqo.Compactor{}) {
		if _, is := kind.(*api.ResourceSlice); is {
			drop(kept)
		}
	}
	if text := fmt.Sprintf("%+v", kept); kept.Spec.CSR != nil || strings.Contains(text, linetest.Secret) {
		t.Errorf("it is kept whole: %s", text)
	}
	if diff := cmp.Diff(requestOf(asked, false), requestOf(kept, false)) + cmp.Diff(OfferOf(asked), OfferOf(kept)); diff != "" {
		t.Errorf("-all +kept\n%s", diff)
	}
}
