// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package v1

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"net/netip"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
	"github.com/capacitorset/liqo-broker/pkg/core/podstate"
	"github.com/capacitorset/liqo-broker/pkg/lenient"
	"github.com/capacitorset/liqo-broker/pkg/liqo"
	"github.com/capacitorset/liqo-broker/pkg/liqo/line"
	"github.com/capacitorset/liqo-broker/pkg/liqo/v1/api"
)

// Line is Liqo 1.x.
type Line struct{}

var _ line.Line = Line{}

// Name implements line.Line.
func (Line) Name() string { return "1.x" }

// HasPlugin implements line.Line.
func (Line) HasPlugin() bool { return false }

// DirectPaths implements line.Line. Liqo's own virtual kubelets show pods under addresses at the broker, whatever tunnels there are.
func (Line) DirectPaths() bool { return false }

// AddToScheme implements line.Line.
func (Line) AddToScheme(s *runtime.Scheme) error { return api.AddToScheme(s) }

// Kinds implements line.Line. The Configuration has the prefixes of a peer, and the Connection says whether the tunnel is up; a Tenant and
// an Identity say who may do what with whom.
func (Line) Kinds() line.Kinds {
	shadow := &metav1.PartialObjectMetadata{}
	shadow.SetGroupVersionKind(schema.GroupVersionKind{Group: api.OffloadingGroup, Version: api.Beta, Kind: "ShadowPod"})
	return line.Kinds{
		Record: &api.ForeignCluster{}, Offer: &api.ResourceSlice{}, Offers: &api.ResourceSliceList{},
		Shadow: shadow, Wish: &api.ShadowPod{}, Wishes: &api.ShadowPodList{},
		OwnNetwork: &api.Network{}, OwnNetworks: &api.NetworkList{},
		Offloading: &api.NamespaceOffloading{}, Offloadings: &api.NamespaceOffloadingList{},
		Network: &api.Configuration{}, Tunnels: []client.Object{&api.Connection{}},
		Peering: []client.Object{&api.Tenant{}, &api.Identity{}},
		Saying:  []client.Object{&api.ForeignCluster{}},
		Views:   []client.Object{&api.Configuration{}, &corev1.Namespace{}, &api.ResourceSlice{}},
	}
}

// Dropped implements line.Line. Of Tenants and ResourceSlices it drops what the consumer has signed, which may be large, of Tenants what
// Liqo has signed for it, which nobody reads from a cache, and of ResourceSlices annotations but for those that are read; of ShadowPods all
// but the metadata without annotations, and of NamespaceOffloadings all but what is selected and which clusters have the namespace.
func (Line) Dropped(compactor *liqo.Compactor) map[client.Object]func(client.Object) {
	return map[client.Object]func(client.Object){
		&api.ShadowPod{}:           func(o client.Object) { o.SetAnnotations(nil) },
		&api.NamespaceOffloading{}: func(o client.Object) { compactOffloading(compactor, o.(*api.NamespaceOffloading)) },
		&api.Tenant{}: func(o client.Object) {
			t := o.(*api.Tenant) //nolint:revive // It is asked about its own kinds alone.
			t.Spec.PublicKey, t.Spec.CSR, t.Spec.Signature, t.Status.AuthParams = nil, nil, nil, nil
		},
		&api.ResourceSlice{}: func(o client.Object) {
			s := o.(*api.ResourceSlice) //nolint:revive // It is asked about its own kinds alone.
			s.Spec.CSR = nil
			maps.DeleteFunc(s.Annotations, func(key, _ string) bool { return !slices.Contains(readOfSlices(), key) })
		},
	}
}

// readOfSlices are the annotations of ResourceSlices that are read.
func readOfSlices() []string {
	return []string{api.AnnotationCreateNode, api.AnnotationCordon, lenient.AnnotationUnreadable}
}

// Index fields, for client.MatchingFields.
const (
	// indexID finds ForeignClusters by the ID of their cluster, and indexTenantOf tenant namespaces by that of theirs.
	indexID       = "broker.clusterID"
	indexTenantOf = "broker.tenantOf"
	// indexNode finds ResourceSlices by the name of their virtual node, and indexClasses those by which providers have classes for this
	// cluster, which have the value hasClasses.
	indexNode    = "broker.offeredNode"
	indexClasses = "broker.classes"
	hasClasses   = "true"
)

// Indexes implements line.Line.
func (Line) Indexes() []line.Index {
	return []line.Index{
		{Object: &api.ForeignCluster{}, Field: indexID, Extract: func(o client.Object) []string {
			return line.NonEmpty(o.(*api.ForeignCluster).Spec.ClusterID)
		}},
		{Object: &corev1.Namespace{}, Field: indexTenantOf, Extract: func(o client.Object) []string {
			id, tenant := TenantOf(o.(*corev1.Namespace))
			if !tenant {
				return nil
			}
			return []string{string(id)}
		}},
		{Object: &api.ResourceSlice{}, Field: indexNode, Extract: func(o client.Object) []string {
			return line.NonEmpty(nodeName(o.(*api.ResourceSlice)))
		}},
		{Object: &api.ResourceSlice{}, Field: indexClasses, Extract: func(o client.Object) []string {
			if GivesClasses(o) {
				return []string{hasClasses}
			}
			return nil
		}},
	}
}

// OwnIdentity implements line.Line.
func (Line) OwnIdentity(ctx context.Context, objects client.Reader, namespace string) (cluster.Identity, error) {
	var stored corev1.ConfigMap
	key := client.ObjectKey{Namespace: namespace, Name: liqo.IdentityName}
	if err := objects.Get(ctx, key, &stored); err != nil {
		return cluster.Identity{}, fmt.Errorf("read what Liqo calls this cluster from ConfigMap %s: %w", key, err)
	}
	return OwnIdentity(&stored)
}

// Reader implements line.Line.
func (Line) Reader(objects client.Reader, own cluster.ID) line.Reader { return reader{objects, own} }

// IdentityOf implements line.Line.
func (Line) IdentityOf(record client.Object) cluster.Identity {
	return Identity(record.(*api.ForeignCluster).Spec.ClusterID)
}

// OfferOf implements line.Line.
func (Line) OfferOf(offer client.Object) liqo.Offer { return OfferOf(offer.(*api.ResourceSlice)) }

// WishOf implements line.Line. Of a pod that has ended Liqo makes no other one.
func (Line) WishOf(wish client.Object) liqo.Wish {
	s := wish.(*api.ShadowPod) //nolint:revive // It is asked about its own kinds alone.
	return liqo.Wish{Pod: &s.Spec.Pod, Ended: podstate.EndedIn(s.Status.Phase)}
}

// OwnNetworksOf implements line.Line. Those of this cluster say of which type they are (liqo/pkg/utils/ipam/networks.go@v1.2.0): pods,
// Services, what is opened to peers, what the gateways have, and what people reserve. Until Liqo has decided, what is wanted counts.
func (Line) OwnNetworksOf(o client.Object) []netip.Prefix {
	n := o.(*api.Network) //nolint:revive // It is asked about its own kinds alone.
	prefix, err := netip.ParsePrefix(cmp.Or(n.Status.CIDR, n.Spec.CIDR))
	if n.Labels[api.LabelNetworkType] == "" || err != nil {
		return nil
	}
	return []netip.Prefix{prefix.Masked()}
}

// SeenOf implements line.Line.
func (Line) SeenOf(network client.Object) []netip.Prefix {
	return seenPrefixes(network.(*api.Configuration))
}

// OffloadingOf implements line.Line.
func (Line) OffloadingOf(o client.Object) liqo.Offloading {
	return OffloadingOf(o.(*api.NamespaceOffloading))
}

// Selects implements line.Line.
func (Line) Selects(o client.Object, id cluster.ID) bool {
	return liqo.Selects(&o.(*api.NamespaceOffloading).Spec.ClusterSelector, id)
}

// ReceptionOf implements line.Line.
func (Line) ReceptionOf(o client.Object, at cluster.Identity) liqo.Reception {
	return ReceptionOf(o.(*api.NamespaceOffloading), at.ID)
}

// NewOffloading implements line.Line.
func (Line) NewOffloading(namespace string, preferred liqo.Mapping, own cluster.Identity) client.Object {
	return ForgeOffloading(namespace, preferred, own)
}

// Select implements line.Line.
func (Line) Select(o client.Object, selected, placing []cluster.ID) {
	Select(o.(*api.NamespaceOffloading), selected, placing)
}

// NewOffloadingTo implements line.Line.
func (Line) NewOffloadingTo(namespace string, own cluster.Identity, to cluster.ID) client.Object {
	return OffloadingTo(namespace, own, to)
}

// Passed implements line.Line. It goes by the origin alone: IDs are words, which may be part of any name.
func (Line) Passed(twin *corev1.Namespace, id cluster.Identity) bool {
	origin, _ := liqo.TwinOf(twin)
	return origin == id.ID
}

// TwinOfLiqo implements line.Line: nobody offloads the namespace of Liqo 1.x.
func (Line) TwinOfLiqo(*corev1.Namespace, cluster.Identity) bool { return false }

// Forward implements line.Line. The pod has the label that the virtual kubelet would write, as with Liqo 0.9, and is told nothing of this
// cluster's API server: a virtual kubelet adds the variables for that, and the one of the consumer has added the same ones, which the
// provider's API server refuses.
func (Line) Forward(pod *corev1.Pod) {
	liqo.MarkOffloaded(pod)
	metav1.SetMetaDataAnnotation(&pod.ObjectMeta, api.AnnotationAPIServer, api.APIServerDisabled)
}

// AccountChanged implements line.Line. What a ResourceSlice says of who asks and who grants, a node that comes or goes, a Tenant or an
// Identity that is for another cluster, and a namespace that becomes the tenant namespace of a peer or is that no more change it; Liqo's
// other words of a peer do not.
func (Line) AccountChanged(before, after any) bool {
	switch after := after.(type) {
	case *corev1.Namespace:
		return tenantChanged(before.(*corev1.Namespace), after)
	case *api.ResourceSlice:
		return sliceChanged(before.(*api.ResourceSlice), after)
	case *api.ForeignCluster:
		return before.(*api.ForeignCluster).Spec.ClusterID != after.Spec.ClusterID
	case *api.Tenant:
		return before.(*api.Tenant).Spec.ClusterID != after.Spec.ClusterID
	case *api.Identity:
		return identityChanged(before.(*api.Identity), after)
	default:
		return true
	}
}

func sliceChanged(before, after *api.ResourceSlice) bool {
	was, is := OfferOf(before), OfferOf(after)
	return was.FromPeer != is.FromPeer || was.Node != is.Node || was.Deleted != is.Deleted ||
		before.Labels[liqo.LabelOrigin] != after.Labels[liqo.LabelOrigin] ||
		value(before.Spec.ConsumerClusterID) != value(after.Spec.ConsumerClusterID) ||
		value(before.Spec.ProviderClusterID) != value(after.Spec.ProviderClusterID)
}

func tenantChanged(before, after *corev1.Namespace) bool {
	was, wasTenant := TenantOf(before)
	is, isTenant := TenantOf(after)
	return wasTenant != isTenant || isTenant && was != is
}

func identityChanged(before, after *api.Identity) bool {
	return before.Spec.ClusterID != after.Spec.ClusterID || before.Spec.Type != after.Spec.Type
}
