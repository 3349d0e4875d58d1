// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package v09

import (
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"

	discoveryv1alpha1 "github.com/liqotech/liqo/apis/discovery/v1alpha1"
	netv1alpha1 "github.com/liqotech/liqo/apis/net/v1alpha1"
	sharingv1alpha1 "github.com/liqotech/liqo/apis/sharing/v1alpha1"
	vkv1alpha1 "github.com/liqotech/liqo/apis/virtualkubelet/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/capacitorset/liqo-broker/pkg/core/addressing"
	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
	"github.com/capacitorset/liqo-broker/pkg/lenient"
	"github.com/capacitorset/liqo-broker/pkg/liqo"
	"github.com/capacitorset/liqo-broker/pkg/liqo/line"
	"github.com/capacitorset/liqo-broker/pkg/liqo/peerwrite"
)

// PeerGroup is the organization in the certificates that Liqo gives to its peers
// (liqo/pkg/identityManager/const.go@v0.9.4). A peer writes its own request for the
// certificate, so that one that is up to no good may not be in the group. Its name is
// its cluster ID all the same: Liqo grants rights to no other.
const PeerGroup = "liqo.io"

// peerResources are the kinds of objects on which Liqo gives rights in its tenant
// namespace to a peer (liqo/deployments/liqo/files/liqo-remote-peering-*.yaml@v0.9.4), as
// resource and group, with what else of them is checked.
var peerResources = map[string]func(w *peerwrite.Write, peer, own cluster.ID) error{
	discoveryv1alpha1.ResourceRequestGroupVersionResource.GroupResource().String(): checkRequest,
	sharingv1alpha1.ResourceOfferGroupVersionResource.GroupResource().String():     checkOffer,
	netv1alpha1.NetworkConfigGroupVersionResource.GroupResource().String():         checkNetwork,
	vkv1alpha1.NamespaceMapGroupVersionResource.GroupResource().String():           checkMap,
}

// peerRules are those of Liqo 0.9.
type peerRules struct{}

// PeerRules implements line.Line.
func (Line) PeerRules() line.PeerRules { return peerRules{} }

// TenantOf implements line.PeerRules.
func (peerRules) TenantOf(namespace *corev1.Namespace) (cluster.ID, bool) {
	return liqo.TenantOf(namespace)
}

// IsPeer implements line.PeerRules. Liqo gives rights to the cluster ID of a peer (liqo/pkg/tenantNamespace/bindings.go@v0.9.4).
func (peerRules) IsPeer(w *peerwrite.Write, tenant cluster.ID) bool {
	return w.User == string(tenant) || slices.Contains(w.Groups, PeerGroup)
}

// Check implements line.PeerRules. What an honest peer writes are copies of its own objects, made by
// its CRD replicator (liqo/internal/crdReplicator/reflection/handler.go@v0.9.4:
// createRemoteObject, updateRemoteObjectSpec, deleteRemoteObject):
//
//   - the labels of all of them: mutateLabelsForRemote, and remoteID, without which
//     the replicator does not look at an object;
//   - never a status: all four kinds are OwnershipShared
//     (liqo/internal/crdReplicator/resources/resources.go@v0.9.4), for which
//     updateObjectStatus copies the status the other way;
//   - ResourceRequests: spec.clusterIdentity is who asks
//     (pkg/liqo-controller-manager/foreign-cluster-operator/resourceRequest.go);
//   - ResourceOffers: spec.clusterId is who offers, spec.labels are the labels of its
//     cluster, and the name of the node is that of the pool, as is the name of the object
//     (pkg/liqo-controller-manager/resource-request-controller/offerUpdater.go);
//   - NetworkConfigs: spec.cluster is who receives, that is this cluster
//     (internal/liqonet/network-manager/netcfgcreator/networkconfig.go);
//   - NamespaceMaps: the label remote-cluster-id is to whom namespaces are offloaded, that
//     is this cluster (pkg/liqo-controller-manager/virtualnode-controller/namespacemap.go).
func (peerRules) Check(w *peerwrite.Write, peer, own cluster.ID) error {
	if w.User != string(peer) {
		return w.Elsewhere(peer)
	}
	check, known := peerResources[w.Kind()]
	if !known {
		return nil // Of no concern to Liqo.
	}
	if err := w.CheckCopies(peer, own); err != nil || len(w.New) == 0 {
		return err
	}
	if err := check(w, peer, own); err != nil {
		return err
	}
	return lenient.Check(w.New, peerTypes[w.Resource])
}

// tenantNamePrefix begins the names of tenant namespaces (liqo/pkg/tenantNamespace/const.go@v0.9.4, which imports all informers of
// Kubernetes).
const tenantNamePrefix = "liqo-tenant"

// peerTypes are the types of these objects. What does not fit them, Liqo's own controllers could not read, nor anything
// else of that kind.
var peerTypes = map[string]runtime.Object{
	discoveryv1alpha1.ResourceRequestGroupVersionResource.Resource: &discoveryv1alpha1.ResourceRequest{},
	sharingv1alpha1.ResourceOfferGroupVersionResource.Resource:     &sharingv1alpha1.ResourceOffer{},
	netv1alpha1.NetworkConfigGroupVersionResource.Resource:         &netv1alpha1.NetworkConfig{},
	vkv1alpha1.NamespaceMapGroupVersionResource.Resource:           &vkv1alpha1.NamespaceMap{},
}

func checkRequest(w *peerwrite.Write, peer, _ cluster.ID) error {
	var request struct {
		Spec struct {
			ClusterIdentity struct {
				ClusterID string `json:"clusterID"`
			} `json:"clusterIdentity"`
		} `json:"spec"`
	}
	if err := peerwrite.Decode(w.New, &request); err != nil {
		return err
	}
	return peerwrite.MustBe("spec.clusterIdentity.clusterID", request.Spec.ClusterIdentity.ClusterID, peer)
}

// network is the part of a NetworkConfig that is checked.
type network struct {
	Spec struct {
		Cluster struct {
			ClusterID string `json:"clusterID"`
		} `json:"cluster"`
		PodCIDR      string `json:"podCIDR"`
		ExternalCIDR string `json:"externalCIDR"`
	} `json:"spec"`
}

// checkNetwork refuses too prefixes that are not private, because Liqo leads to the peer
// what goes there, and those that change, because Liqo goes on to route the first ones
// (getOrRemapNetwork in pkg/liqonet/ipam/ipam.go@v0.9.4).
func checkNetwork(w *peerwrite.Write, _, own cluster.ID) error {
	var old, n network
	if err := peerwrite.Decode(w.New, &n); err != nil {
		return err
	}
	if len(w.Old) > 0 {
		if err := peerwrite.Decode(w.Old, &old); err != nil {
			return err
		}
	}
	for _, cidr := range []struct{ field, is, was string }{
		{"spec.podCIDR", n.Spec.PodCIDR, old.Spec.PodCIDR}, {"spec.externalCIDR", n.Spec.ExternalCIDR, old.Spec.ExternalCIDR},
	} {
		if cidr.was != "" && cidr.is != cidr.was {
			return fmt.Errorf("%s cannot change: peer again", cidr.field)
		}
		if cidr.is == "" {
			continue // Not told yet.
		}
		prefix, err := netip.ParsePrefix(cidr.is)
		if err != nil {
			return fmt.Errorf("%s: %w", cidr.field, err)
		}
		if err := addressing.CheckReport(prefix); err != nil {
			return fmt.Errorf("%s: %w", cidr.field, err)
		}
	}
	return peerwrite.MustBe("spec.cluster.clusterID", n.Spec.Cluster.ClusterID, own)
}

// checkMap refuses too what would take the name of a tenant namespace, so that the
// cluster whose name that is could not peer any more.
func checkMap(w *peerwrite.Write, _, own cluster.ID) error {
	return w.CheckMap(own, func(namespace string) bool { return strings.HasPrefix(namespace, tenantNamePrefix+"-") })
}

// offered is the part of a ResourceOffer that is checked.
type offered struct {
	Spec struct {
		ClusterID      string            `json:"clusterId"`
		NodeName       string            `json:"nodeName"`
		NodeNamePrefix string            `json:"nodeNamePrefix"`
		Labels         map[string]string `json:"labels"`
	} `json:"spec"`
}

func checkOffer(w *peerwrite.Write, peer, _ cluster.ID) error {
	var old, offer offered
	if err := peerwrite.Decode(w.New, &offer); err != nil {
		return err
	}
	if err := peerwrite.MustBe("spec.clusterId", offer.Spec.ClusterID, peer); err != nil {
		return err
	}
	for _, key := range slices.Sorted(maps.Keys(offer.Spec.Labels)) {
		if value := offer.Spec.Labels[key]; !peerwrite.MayClaim(key, value) {
			return fmt.Errorf("spec.labels[%s] is reserved: it says what a node is, and not what the cluster is", key)
		}
	}
	if len(w.Old) == 0 {
		return nil
	}
	if err := peerwrite.Decode(w.Old, &old); err != nil {
		return err
	}
	// The node of before would stay, without an offer that says whose it is.
	if offer.Spec.NodeName != old.Spec.NodeName || offer.Spec.NodeNamePrefix != old.Spec.NodeNamePrefix {
		return errors.New("spec.nodeName and spec.nodeNamePrefix cannot change: create another offer")
	}
	return nil
}

// NodeName implements line.PeerRules: a ResourceOffer asks for a virtual node.
func (peerRules) NodeName(w *peerwrite.Write, peer cluster.Identity) (string, error) {
	kind := sharingv1alpha1.ResourceOfferGroupVersionResource.GroupResource()
	if w.Kind() != kind.String() || w.Subresource != "" || len(w.New) == 0 {
		return "", nil
	}
	var offer offered
	if err := peerwrite.Decode(w.New, &offer); err != nil {
		return "", err
	}
	o := &ResourceOffer{}
	o.Spec.NodeName, o.Spec.NodeNamePrefix = offer.Spec.NodeName, offer.Spec.NodeNamePrefix
	return NodeName(o, peer), nil
}

// CheckCopied implements line.PeerRules.
func (peerRules) CheckCopied(w *peerwrite.Write) error {
	return w.CheckMappings(vkv1alpha1.NamespaceMapGroupVersionResource.GroupResource().String())
}
