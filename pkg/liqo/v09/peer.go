// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package v09

import (
	"encoding/json"
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
	"github.com/liqotech/liqo/pkg/consts"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/capacitorset/liqo-broker/pkg/core/addressing"
	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
	"github.com/capacitorset/liqo-broker/pkg/lenient"
	"github.com/capacitorset/liqo-broker/pkg/liqo"
)

// PeerGroup is the organization in the certificates that Liqo gives to its peers
// (liqo/pkg/identityManager/const.go@v0.9.4). A peer writes its own request for the
// certificate, so that one that is up to no good may not be in the group. Its name is
// its cluster ID all the same: Liqo grants rights to no other.
const PeerGroup = "liqo.io"

// peerResources are the kinds of objects on which Liqo gives rights in its tenant
// namespace to a peer (liqo/deployments/liqo/files/liqo-remote-peering-*.yaml@v0.9.4), as
// resource and group, with what else of them is checked.
var peerResources = map[string]func(w *PeerWrite, peer, own cluster.ID) error{
	discoveryv1alpha1.ResourceRequestGroupVersionResource.GroupResource().String(): (*PeerWrite).checkRequest,
	sharingv1alpha1.ResourceOfferGroupVersionResource.GroupResource().String():     (*PeerWrite).checkOffer,
	netv1alpha1.NetworkConfigGroupVersionResource.GroupResource().String():         (*PeerWrite).checkNetwork,
	vkv1alpha1.NamespaceMapGroupVersionResource.GroupResource().String():           (*PeerWrite).checkMap,
}

// PeerWrite is what somebody asks the API server to write into a tenant namespace.
type PeerWrite struct {
	// Group, Resource and Subresource say what.
	Group, Resource, Subresource string
	// Old is the object as it is, New as it is to be, in JSON. Old is empty if the object
	// is to be created, New if it is to be deleted.
	Old, New []byte
}

// Check returns what an honest peer does not write into its tenant namespace in the
// cluster with the ID own. What it does write are copies of its own objects, made by
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
func (w *PeerWrite) Check(peer, own cluster.ID) error {
	check, known := peerResources[w.Resource+"."+w.Group]
	switch {
	case !known:
		return nil // Of no concern to Liqo.
	case w.Subresource != "":
		return fmt.Errorf("a peer must not write the %s of %s: only this cluster does", w.Subresource, w.Resource)
	}
	for _, object := range [][]byte{w.Old, w.New} {
		if len(object) == 0 {
			continue
		}
		if err := checkCopy(object, peer, own); err != nil {
			return err
		}
	}
	if len(w.New) == 0 {
		return nil
	}
	if size := len(w.New); size > maxPeerObject {
		return fmt.Errorf("the object has %d bytes: a peer may write up to %d", size, maxPeerObject)
	}
	if err := check(w, peer, own); err != nil {
		return err
	}
	return lenient.Check(w.New, peerTypes[w.Resource])
}

// maxPeerObject bounds, in bytes, what a peer writes here, and maxMappings how many
// namespaces it offloads: everything that it writes is kept in memory, and each namespace
// becomes several objects.
const (
	maxPeerObject = 256 << 10
	maxMappings   = 1000
)

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

// checkCopy checks the labels by which Liqo knows whose copy an object is.
func checkCopy(object []byte, peer, own cluster.ID) error {
	var o metav1.PartialObjectMetadata
	if err := decode(object, &o); err != nil {
		return err
	}
	for _, label := range []struct{ key, want string }{
		{liqo.LabelReplicated, liqo.ReplicationValue}, {liqo.LabelOrigin, string(peer)}, {liqo.LabelDestination, string(own)},
	} {
		if got := o.Labels[label.key]; got != label.want {
			return fmt.Errorf("metadata.labels[%s] is %q, want %q", label.key, got, label.want)
		}
	}
	if got := o.Labels[liqo.LabelReplication]; got == liqo.ReplicationValue {
		return fmt.Errorf("metadata.labels[%s] is %q: only this cluster's own objects have that", liqo.LabelReplication, got)
	}
	return nil
}

func (w *PeerWrite) checkRequest(peer, _ cluster.ID) error {
	var request struct {
		Spec struct {
			ClusterIdentity struct {
				ClusterID string `json:"clusterID"`
			} `json:"clusterIdentity"`
		} `json:"spec"`
	}
	if err := decode(w.New, &request); err != nil {
		return err
	}
	return mustBe("spec.clusterIdentity.clusterID", request.Spec.ClusterIdentity.ClusterID, peer)
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
func (w *PeerWrite) checkNetwork(_, own cluster.ID) error {
	var old, n network
	if err := decode(w.New, &n); err != nil {
		return err
	}
	if len(w.Old) > 0 {
		if err := decode(w.Old, &old); err != nil {
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
	return mustBe("spec.cluster.clusterID", n.Spec.Cluster.ClusterID, own)
}

// checkMap refuses too what would take the name of a tenant namespace, so that the
// cluster whose name that is could not peer any more.
func (w *PeerWrite) checkMap(_, own cluster.ID) error {
	var namespaces struct {
		Metadata struct {
			Labels map[string]string `json:"labels"`
		} `json:"metadata"`
		Spec struct {
			DesiredMapping map[string]string `json:"desiredMapping"`
		} `json:"spec"`
	}
	if err := decode(w.New, &namespaces); err != nil {
		return err
	}
	if n := len(namespaces.Spec.DesiredMapping); n > maxMappings {
		return fmt.Errorf("spec.desiredMapping has %d namespaces: a peer may offload up to %d", n, maxMappings)
	}
	for _, name := range slices.Sorted(maps.Keys(namespaces.Spec.DesiredMapping)) {
		if to := namespaces.Spec.DesiredMapping[name]; strings.HasPrefix(to, tenantNamePrefix+"-") {
			return fmt.Errorf("spec.desiredMapping[%s] is %q: only Liqo itself creates namespaces of that name", name, to)
		}
	}
	return mustBe("metadata.labels["+liqo.LabelRemoteClusterID+"]", namespaces.Metadata.Labels[liqo.LabelRemoteClusterID], own)
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

func (w *PeerWrite) checkOffer(peer, _ cluster.ID) error {
	var old, offer offered
	if err := decode(w.New, &offer); err != nil {
		return err
	}
	if err := mustBe("spec.clusterId", offer.Spec.ClusterID, peer); err != nil {
		return err
	}
	for _, key := range slices.Sorted(maps.Keys(offer.Spec.Labels)) {
		if value := offer.Spec.Labels[key]; !mayClaim(key, value) {
			return fmt.Errorf("spec.labels[%s] is reserved: it says what a node is, and not what the cluster is", key)
		}
	}
	if len(w.Old) == 0 {
		return nil
	}
	if err := decode(w.Old, &old); err != nil {
		return err
	}
	// The node of before would stay, without an offer that says whose it is.
	if offer.Spec.NodeName != old.Spec.NodeName || offer.Spec.NodeNamePrefix != old.Spec.NodeNamePrefix {
		return errors.New("spec.nodeName and spec.nodeNamePrefix cannot change: create another offer")
	}
	return nil
}

// NodeName returns the name of the virtual node for which a ResourceOffer that a peer
// writes asks; empty for any other write.
func (w *PeerWrite) NodeName(peer cluster.Identity) (string, error) {
	kind := sharingv1alpha1.ResourceOfferGroupVersionResource.GroupResource()
	if w.Group != kind.Group || w.Resource != kind.Resource || w.Subresource != "" || len(w.New) == 0 {
		return "", nil
	}
	var offer offered
	if err := decode(w.New, &offer); err != nil {
		return "", err
	}
	o := &ResourceOffer{}
	o.Spec.NodeName, o.Spec.NodeNamePrefix = offer.Spec.NodeName, offer.Spec.NodeNamePrefix
	return NodeName(o, peer), nil
}

// CheckMappings returns what this cluster's CRD replicator must not copy from a peer
// into the status of one of this cluster's NamespaceMaps: a namespace that the peer says
// it has made, and this cluster did not ask for. Liqo's virtual kubelet would reflect
// it. For any other write there is nothing to return.
//
// Mappings that the peer does not call Accepted pass: nothing is reflected by them, and
// one that this cluster has taken back stays as Terminating for as long as the peer
// removes the namespace. So what is refused is repaired by the peer's next step: the
// replicator tells it of the changed spec before it copies the status.
func (w *PeerWrite) CheckMappings() error {
	kind := vkv1alpha1.NamespaceMapGroupVersionResource.GroupResource()
	if w.Group != kind.Group || w.Resource != kind.Resource || w.Subresource != "status" || len(w.New) == 0 {
		return nil
	}
	var namespaces NamespaceMap
	if err := decode(w.New, &namespaces); err != nil {
		return err
	}
	if namespaces.Labels[liqo.LabelReplication] != liqo.ReplicationValue {
		return nil
	}
	for _, name := range slices.Sorted(maps.Keys(namespaces.Status.CurrentMapping)) {
		current := namespaces.Status.CurrentMapping[name]
		wanted, is := namespaces.Spec.DesiredMapping[name]
		if current.Phase == vkv1alpha1.MappingAccepted && (!is || wanted != current.RemoteNamespace) {
			return fmt.Errorf("status.currentMapping[%s] leads to %q, which spec.desiredMapping does not ask for", name, current.RemoteNamespace)
		}
	}
	return nil
}

func mustBe(field, got string, want cluster.ID) error {
	if got != string(want) {
		return fmt.Errorf("%s is %q, want %q", field, got, want)
	}
	return nil
}

// decode reads a part of an object. Its error names the field that has another type.
func decode(object []byte, into any) error {
	var wrong *json.UnmarshalTypeError
	err := utiljson.Unmarshal(object, into)
	if errors.As(err, &wrong) {
		return fmt.Errorf("%s has the wrong type: %s", wrong.Field, wrong.Value)
	}
	if err != nil {
		return fmt.Errorf("read the object: %w", err)
	}
	return nil
}

// mayClaim reports whether a peer may put a label on its offer, and so on its virtual
// node here: what is not reserved, what liqoctl puts there
// (liqo/pkg/liqoctl/install/handler.go@v0.9.4), and what a broker says of a provider.
func mayClaim(key, value string) bool {
	switch key {
	case consts.ProviderClusterLabel, liqo.LabelCarbon, liqo.LabelProvider:
		return true
	case liqo.LabelNodeType:
		return value == liqo.NodeTypeVirtual
	default:
		return !liqo.IsReserved(key)
	}
}
