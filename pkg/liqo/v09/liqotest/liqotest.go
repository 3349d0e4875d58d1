// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

// Package liqotest makes the objects that Liqo makes, as tests need them.
//
// It plays no part of Liqo: what Liqo would do next, a test does itself.
package liqotest

import (
	"errors"
	"maps"
	"testing"
	"time"

	discoveryv1alpha1 "github.com/liqotech/liqo/apis/discovery/v1alpha1"
	netv1alpha1 "github.com/liqotech/liqo/apis/net/v1alpha1"
	offloadingv1alpha1 "github.com/liqotech/liqo/apis/offloading/v1alpha1"
	sharingv1alpha1 "github.com/liqotech/liqo/apis/sharing/v1alpha1"
	"github.com/liqotech/liqo/pkg/consts"
	"github.com/liqotech/liqo/pkg/discovery"
	foreignclusterutils "github.com/liqotech/liqo/pkg/utils/foreignCluster"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capacitorset/liqo-broker/pkg/api/v1alpha1"
	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
	"github.com/capacitorset/liqo-broker/pkg/liqo"
	v09 "github.com/capacitorset/liqo-broker/pkg/liqo/v09"
)

// Scheme returns a scheme with all types that the broker uses.
func Scheme(tb testing.TB) *runtime.Scheme {
	tb.Helper()
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), v1alpha1.AddToScheme(scheme), v09.AddToScheme(scheme)); err != nil {
		tb.Fatalf("register the API types: %v", err)
	}
	return scheme
}

// Tenant returns the name of the tenant namespace of a peer.
func Tenant(peer cluster.Identity) string { return "liqo-tenant-" + peer.Name }

// TenantNamespace returns the tenant namespace of a peer.
func TenantNamespace(peer cluster.Identity) *corev1.Namespace {
	return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: Tenant(peer), Labels: map[string]string{
		discovery.ClusterIDLabel: string(peer.ID), discovery.TenantNamespaceLabel: "true",
	}}}
}

// ForeignCluster returns the record of a peer, with the peerings that are established.
func ForeignCluster(id cluster.Identity, outgoing, incoming bool) *v09.ForeignCluster {
	fc := &v09.ForeignCluster{ObjectMeta: metav1.ObjectMeta{Name: id.Name, UID: types.UID("fc-" + id.ID)}}
	fc.Spec.ClusterIdentity = identity(id)
	fc.Status.TenantNamespace.Local = Tenant(id)
	SetPeering(fc, outgoing, incoming)
	return fc
}

// Discovered returns a cluster as a real API server takes it, that is a provider or else a consumer.
func Discovered(id cluster.Identity, provides bool) *v09.ForeignCluster {
	fc := ForeignCluster(id, provides, !provides)
	fc.UID = ""
	fc.Spec.OutgoingPeeringEnabled, fc.Spec.IncomingPeeringEnabled = "Auto", "Auto"
	fc.Spec.ForeignAuthURL = "https://" + id.Name + ".example.org:31000"
	return fc
}

// CameUnasked returns the record that Liqo makes of a peer that consumes here without having been named.
func CameUnasked(id cluster.Identity) *v09.ForeignCluster {
	fc := ForeignCluster(id, false, true)
	fc.Labels = map[string]string{
		discovery.DiscoveryTypeLabel: string(discovery.IncomingPeeringDiscovery), discovery.ClusterIDLabel: string(id.ID),
	}
	return fc
}

// SetPeering changes which peerings of a peer are established.
func SetPeering(fc *v09.ForeignCluster, outgoing, incoming bool) {
	state := func(established bool) discoveryv1alpha1.PeeringConditionStatusType {
		if established {
			return discoveryv1alpha1.PeeringConditionStatusEstablished
		}
		return discoveryv1alpha1.PeeringConditionStatusNone
	}
	fc.Status.PeeringConditions = []discoveryv1alpha1.PeeringCondition{
		{Type: discoveryv1alpha1.OutgoingPeeringCondition, Status: state(outgoing)},
		{Type: discoveryv1alpha1.IncomingPeeringCondition, Status: state(incoming)},
	}
}

// SetIncoming changes the state of the incoming peering with a peer.
func SetIncoming(fc *v09.ForeignCluster, state string) {
	fc.Status.PeeringConditions[1].Status = discoveryv1alpha1.PeeringConditionStatusType(state)
}

// EndPeering does what Liqo does while it ends the outgoing peering with a peer.
func EndPeering(fc *v09.ForeignCluster) {
	fc.Status.PeeringConditions[0].Status = discoveryv1alpha1.PeeringConditionStatusDisconnecting
}

// Offer returns an accepted offer of a provider.
func Offer(provider cluster.Identity, resources corev1.ResourceList) *v09.ResourceOffer {
	return &v09.ResourceOffer{
		ObjectMeta: metav1.ObjectMeta{
			Name: provider.Name, Namespace: Tenant(provider),
			Labels: map[string]string{liqo.LabelReplicated: "true", liqo.LabelOrigin: string(provider.ID)},
		},
		Spec: sharingv1alpha1.ResourceOfferSpec{
			ClusterID: string(provider.ID), ResourceQuota: corev1.ResourceQuotaSpec{Hard: resources},
		},
		Status: sharingv1alpha1.ResourceOfferStatus{Phase: sharingv1alpha1.ResourceOfferAccepted},
	}
}

// OfferTo returns the offer that Liqo makes to a consumer.
func OfferTo(consumer cluster.Identity, resources corev1.ResourceList) *v09.ResourceOffer {
	return &v09.ResourceOffer{
		ObjectMeta: metav1.ObjectMeta{
			Name: "broker", Namespace: Tenant(consumer),
			Labels: map[string]string{
				liqo.LabelReplication: liqo.ReplicationValue,
				liqo.LabelDestination: string(consumer.ID),
			},
		},
		Spec: sharingv1alpha1.ResourceOfferSpec{ResourceQuota: corev1.ResourceQuotaSpec{Hard: resources}},
	}
}

// Withdraw marks an offer as withdrawn by its provider.
func Withdraw(o *v09.ResourceOffer) { o.Spec.WithdrawalTimestamp = new(metav1.Now()) }

// VirtualNode returns the node that stands for a provider.
func VirtualNode(provider cluster.Identity, ready bool) *corev1.Node {
	status := corev1.ConditionFalse
	if ready {
		status = corev1.ConditionTrue
	}
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{
			Name:   "liqo-" + provider.Name,
			Labels: map[string]string{consts.TypeLabel: consts.TypeNode, consts.RemoteClusterID: string(provider.ID)},
		},
		Spec: corev1.NodeSpec{Taints: []corev1.Taint{
			{Key: consts.VirtualNodeTolerationKey, Value: "true", Effect: corev1.TaintEffectNoExecute},
		}},
		Status: corev1.NodeStatus{Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: status}}},
	}
}

// TwinNamespace returns the twin of a consumer's namespace, as Liqo's namespace
// map controller makes it.
func TwinNamespace(name string, origin cluster.Identity) *corev1.Namespace {
	return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
		Name:        name,
		Labels:      map[string]string{consts.RemoteClusterID: string(origin.ID)},
		Annotations: map[string]string{consts.RemoteNamespaceManagedByAnnotationKey: "tenant/map"},
	}}
}

// Offloading returns that by which a broker sends all pods of a namespace to clusters, and places new ones on all of them.
func Offloading(namespace string, to ...cluster.ID) *v09.NamespaceOffloading {
	o := v09.ForgeOffloading(namespace, liqo.MappingDefault, cluster.Identity{ID: "id-broker", Name: "broker"})
	v09.Select(o, to, to)
	return o
}

// PutInForce does what Liqo does with an offloading: it opens the namespace for
// its webhook, and makes the namespace on the given providers.
func PutInForce(ns *corev1.Namespace, o *v09.NamespaceOffloading, on ...cluster.Identity) {
	ns.Labels[consts.SchedulingLiqoLabel] = consts.SchedulingLiqoLabelValue
	o.Status.ObservedGeneration = o.Generation
	o.Status.RemoteNamespacesConditions = map[string]offloadingv1alpha1.RemoteNamespaceConditions{}
	for _, id := range on {
		remote := identity(id)
		o.Status.RemoteNamespacesConditions[foreignclusterutils.UniqueName(&remote)] = offloadingv1alpha1.RemoteNamespaceConditions{
			{Type: offloadingv1alpha1.NamespaceOffloadingRequired, Status: corev1.ConditionTrue},
			{Type: offloadingv1alpha1.NamespaceReady, Status: corev1.ConditionTrue},
		}
	}
}

// Refuse does what Liqo does with an offloading when a selected provider has
// another namespace of the same name.
func Refuse(o *v09.NamespaceOffloading, by cluster.Identity, since time.Time) {
	remote := identity(by)
	o.Status.RemoteNamespacesConditions[foreignclusterutils.UniqueName(&remote)] = offloadingv1alpha1.RemoteNamespaceConditions{
		{Type: offloadingv1alpha1.NamespaceOffloadingRequired, Status: corev1.ConditionTrue},
		{
			Type: offloadingv1alpha1.NamespaceReady, Status: corev1.ConditionFalse,
			Reason: "CreationLoopBackOff", LastTransitionTime: metav1.NewTime(since),
		},
	}
}

// ShadowPod returns a consumer's wish for a pod.
func ShadowPod(namespace, name string, labels map[string]string) *v09.ShadowPod {
	return &v09.ShadowPod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: labels}}
}

// Pod returns the pod that Liqo makes for a shadow pod: bound to a node and ready,
// or, with an empty node, waiting. It follows the selection, if there is one.
func Pod(shadow *v09.ShadowPod, node string, selected ...cluster.ID) *corev1.Pod {
	labels := map[string]string{consts.ManagedByLabelKey: consts.ManagedByShadowPodValue}
	maps.Copy(labels, shadow.Labels)
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: shadow.Namespace, Name: shadow.Name, Labels: labels, UID: types.UID("uid-" + shadow.Name),
		},
		Spec: corev1.PodSpec{NodeName: node},
	}
	if node != "" {
		pod.Status.Phase = corev1.PodRunning
		pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
	}
	if len(selected) > 0 {
		selector := liqo.ForgeSelector(selected)
		pod.Spec.Tolerations = []corev1.Toleration{{Key: consts.VirtualNodeTolerationKey, Operator: corev1.TolerationOpExists}}
		pod.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{
			RequiredDuringSchedulingIgnoredDuringExecution: &selector,
		}}
	}
	return pod
}

func identity(id cluster.Identity) discoveryv1alpha1.ClusterIdentity {
	return discoveryv1alpha1.ClusterIdentity{ClusterID: string(id.ID), ClusterName: id.Name}
}

// Tunnel returns the network towards a peer, in which Liqo measured a round-trip
// time; "0" if the tunnel is down.
func Tunnel(peer cluster.Identity, took string, at time.Time) *v09.TunnelEndpoint {
	tunnel := &v09.TunnelEndpoint{ObjectMeta: metav1.ObjectMeta{
		Namespace: Tenant(peer), Name: peer.Name, Labels: map[string]string{consts.ClusterIDLabelName: string(peer.ID)},
	}}
	tunnel.Spec.ClusterIdentity = identity(peer)
	connection := &tunnel.Status.Connection
	connection.Status = netv1alpha1.Connected
	if took == "0" {
		connection.Status = netv1alpha1.ConnectionError
	}
	connection.Latency = netv1alpha1.ConnectionLatency{Value: took, Timestamp: metav1.NewTime(at)}
	return tunnel
}

// Liqo returns what is in the namespace of Liqo of a cluster: what the cluster is called, and how others authenticate there, at
// https://192.0.2.7 with a token.
func Liqo(own cluster.Identity, token string) []client.Object {
	in := func(name string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Namespace: liqo.DefaultNamespace, Name: name}
	}
	return []client.Object{
		&corev1.ConfigMap{
			ObjectMeta: in(liqo.IdentityName),
			Data:       map[string]string{consts.ClusterIDConfigMapKey: string(own.ID), consts.ClusterNameConfigMapKey: own.Name},
		},
		&corev1.Secret{ObjectMeta: in(v09.AuthTokenName), Data: map[string][]byte{"token": []byte(token)}},
		&corev1.Service{
			ObjectMeta: in(consts.AuthServiceName),
			Spec:       corev1.ServiceSpec{Type: corev1.ServiceTypeLoadBalancer, Ports: []corev1.ServicePort{{Name: "https", Port: 443}}},
			Status:     corev1.ServiceStatus{LoadBalancer: corev1.LoadBalancerStatus{Ingress: []corev1.LoadBalancerIngress{{IP: "192.0.2.7"}}}},
		},
	}
}

// ResourceRequest returns a peer's request for resources.
func ResourceRequest(peer cluster.Identity) client.Object {
	request := &discoveryv1alpha1.ResourceRequest{ObjectMeta: metav1.ObjectMeta{
		Namespace: Tenant(peer), Name: peer.Name, Labels: map[string]string{liqo.LabelReplicated: "true"},
	}}
	request.Spec.ClusterIdentity = identity(peer)
	return request
}
