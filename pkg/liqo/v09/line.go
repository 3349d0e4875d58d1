// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package v09

import (
	"context"
	"fmt"
	"net/netip"

	vkv1alpha1 "github.com/liqotech/liqo/apis/virtualkubelet/v1alpha1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
	"github.com/capacitorset/liqo-broker/pkg/core/podstate"
	"github.com/capacitorset/liqo-broker/pkg/liqo"
	"github.com/capacitorset/liqo-broker/pkg/liqo/line"
)

// Line is Liqo 0.9.
type Line struct{}

var _ line.Line = Line{}

// Name implements line.Line.
func (Line) Name() string { return "0.9" }

// HasPlugin implements line.Line.
func (Line) HasPlugin() bool { return true }

// DirectPaths implements line.Line. Our virtual kubelet shows a pod under the address at its provider if there is a tunnel.
func (Line) DirectPaths() bool { return true }

// AddToScheme implements line.Line.
func (Line) AddToScheme(s *runtime.Scheme) error { return AddToScheme(s) }

// Kinds implements line.Line. The ForeignCluster says how far peerings have come, and the TunnelEndpoint how the way is.
func (Line) Kinds() line.Kinds {
	shadow := &metav1.PartialObjectMetadata{}
	shadow.SetGroupVersionKind(vkv1alpha1.SchemeGroupVersion.WithKind("ShadowPod"))
	return line.Kinds{
		Record: &ForeignCluster{}, Offer: &ResourceOffer{}, Offers: &ResourceOfferList{}, Network: &TunnelEndpoint{},
		Offloading: &NamespaceOffloading{}, Offloadings: &NamespaceOffloadingList{},
		Shadow: shadow, Wish: &ShadowPod{}, Wishes: &ShadowPodList{},
		OwnNetwork: &IpamStorage{}, OwnNetworks: &ipamStorageList{},
	}
}

// Dropped implements line.Line. Of ShadowPods the metadata without annotations is kept, of NamespaceOffloadings what is selected and which
// clusters have the namespace, of ResourceOffers all but images, and of what Liqo's IPAM remembers the networks of this cluster.
func (Line) Dropped(compactor *liqo.Compactor) map[client.Object]func(client.Object) {
	return map[client.Object]func(client.Object){
		&ShadowPod{}:           func(o client.Object) { o.SetAnnotations(nil) },
		&NamespaceOffloading{}: func(o client.Object) { CompactOffloading(compactor, o.(*NamespaceOffloading)) },
		&ResourceOffer{}:       func(o client.Object) { dropImages(o.(*ResourceOffer)) },
		&IpamStorage{}:         func(o client.Object) { dropAllocations(o.(*IpamStorage)) },
	}
}

// Index fields, for client.MatchingFields.
const (
	indexID         = "broker.clusterID"
	indexTenant     = "broker.tenant"
	indexName       = "broker.clusterName"
	indexUniqueName = "broker.uniqueName"
	// indexNode finds ResourceOffers by the node that they name.
	indexNode = "broker.offeredNode"
)

// Indexes implements line.Line.
func (Line) Indexes() []line.Index {
	ofRecord := func(field string, value func(fc *ForeignCluster) string) line.Index {
		return line.Index{Object: &ForeignCluster{}, Field: field, Extract: func(o client.Object) []string {
			return line.NonEmpty(value(o.(*ForeignCluster)))
		}}
	}
	return []line.Index{
		ofRecord(indexID, func(fc *ForeignCluster) string { return string(Identity(fc).ID) }),
		ofRecord(indexTenant, TenantNamespace),
		ofRecord(indexName, func(fc *ForeignCluster) string { return Identity(fc).Name }),
		ofRecord(indexUniqueName, func(fc *ForeignCluster) string { return UniqueName(Identity(fc)) }),
		{Object: &ResourceOffer{}, Field: indexNode, Extract: func(o client.Object) []string {
			return line.NonEmpty(NamedNode(o.(*ResourceOffer)))
		}},
	}
}

// Reader implements line.Line.
func (Line) Reader(objects client.Reader, _ cluster.ID) line.Reader { return reader{objects} }

// OwnIdentity implements line.Line.
func (Line) OwnIdentity(ctx context.Context, objects client.Reader, namespace string) (cluster.Identity, error) {
	return OwnIdentity(ctx, objects, namespace)
}

// Gateways implements line.Line: there is one for all peers.
func (Line) Gateways(ctx context.Context, objects client.Reader, namespace string) ([]line.Gateway, error) {
	var gateway appsv1.Deployment
	key := client.ObjectKey{Namespace: namespace, Name: GatewayName}
	if err := objects.Get(ctx, key, &gateway); apierrors.IsNotFound(err) {
		return nil, nil
	} else if err != nil {
		return nil, fmt.Errorf("get deployment %s: %w", key, err)
	}
	return []line.Gateway{{Deployment: gateway}}, nil
}

// IdentityOf implements line.Line.
func (Line) IdentityOf(record client.Object) cluster.Identity {
	return Identity(record.(*ForeignCluster))
}

// OfferOf implements line.Line.
func (Line) OfferOf(offer client.Object) liqo.Offer { return OfferOf(offer.(*ResourceOffer)) }

// WishOf implements line.Line. Liqo recreates a pod that has ended, if somebody deletes it and it is to be restarted
// (liqo/pkg/liqo-controller-manager/shadowpod-controller@v0.9.4).
func (Line) WishOf(wish client.Object) liqo.Wish {
	s := wish.(*ShadowPod) //nolint:revive // It is asked about its own kinds alone.
	return liqo.Wish{Pod: PodSpec(s), Ended: podstate.EndedIn(s.Status.Phase)}
}

// OwnNetworksOf implements line.Line: those of this cluster's pods and Services, and that in which it relays.
func (Line) OwnNetworksOf(o client.Object) []netip.Prefix { return ownNetworks(o.(*IpamStorage)) }

// SeenOf implements line.Line.
func (Line) SeenOf(network client.Object) []netip.Prefix {
	return seenPrefixes(network.(*TunnelEndpoint))
}

// OffloadingOf implements line.Line.
func (Line) OffloadingOf(o client.Object) liqo.Offloading {
	return OffloadingOf(o.(*NamespaceOffloading))
}

// Selects implements line.Line.
func (Line) Selects(o client.Object, id cluster.ID) bool {
	return liqo.Selects(&o.(*NamespaceOffloading).Spec.ClusterSelector, id)
}

// ReceptionOf implements line.Line.
func (Line) ReceptionOf(o client.Object, at cluster.Identity) liqo.Reception {
	return ReceptionOf(o.(*NamespaceOffloading), at)
}

// NewOffloading implements line.Line.
func (Line) NewOffloading(namespace string, preferred liqo.Mapping, own cluster.Identity) client.Object {
	return ForgeOffloading(namespace, preferred, own)
}

// Select implements line.Line.
func (Line) Select(o client.Object, selected, placing []cluster.ID) {
	Select(o.(*NamespaceOffloading), selected, placing)
}

// NewOffloadingTo implements line.Line.
func (Line) NewOffloadingTo(namespace string, own cluster.Identity, to cluster.ID) client.Object {
	return OffloadingTo(namespace, own, to)
}

// Passed implements line.Line.
func (Line) Passed(twin *corev1.Namespace, id cluster.Identity) bool { return Passed(twin, id) }

// TwinOfLiqo implements line.Line.
func (Line) TwinOfLiqo(twin *corev1.Namespace, peer cluster.Identity) bool {
	return TwinOfLiqo(twin.Name, peer)
}

// Forward implements line.Line. As the pod can be on none but a virtual node, it has from the beginning the label that the virtual kubelet
// would write: each later write of the pod makes Liqo apply it, and its ShadowPod, once more.
func (Line) Forward(pod *corev1.Pod) { liqo.MarkOffloaded(pod) }

// AccountChanged implements line.Line. An offer that says that it is for or from another cluster or for another node, or is about to go,
// changes it, and so does a peer that has another name or tenant namespace. Which namespace that is, the ForeignCluster says, and not the
// Namespace.
func (Line) AccountChanged(before, after any) bool {
	switch after := after.(type) {
	case *corev1.Namespace:
		return false
	case *ResourceOffer:
		return offerChanged(before.(*ResourceOffer), after)
	case *ForeignCluster:
		return recordChanged(before.(*ForeignCluster), after)
	default:
		return true
	}
}

func offerChanged(before, after *ResourceOffer) bool {
	return claimsOf(before) != claimsOf(after) || !SameNode(before, after) ||
		before.DeletionTimestamp.IsZero() != after.DeletionTimestamp.IsZero()
}

func recordChanged(before, after *ForeignCluster) bool {
	return TenantNamespace(before) != TenantNamespace(after) || Identity(before) != Identity(after)
}
