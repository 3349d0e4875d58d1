// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package liqo

import (
	"cmp"
	"maps"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Labels and annotations of Liqo, as v0.9.4 has them in pkg/consts and pkg/discovery, and other names of its objects. A test of [v09]
// compares them; those that v1.2.0 shares the module test/liqo1 compares with that version.
const (
	// LabelRemoteClusterID is on virtual nodes (whose cluster they stand for) and
	// on twin namespaces (whose namespace they are a twin of). In Liqo 1.x it is on tenant namespaces too.
	LabelRemoteClusterID = "liqo.io/remote-cluster-id"
	// LabelTenantNamespace is on tenant namespaces of Liqo 1.x, and on nothing else.
	LabelTenantNamespace = "liqo.io/tenant-namespace"

	// LabelNodeType is on virtual nodes, with the value NodeTypeVirtual.
	LabelNodeType   = "liqo.io/type"
	NodeTypeVirtual = "virtual-node"

	// LabelManagedBy is on what Liqo makes for a peer: pods with the value
	// ManagedByShadowPod, EndpointSlices with ManagedByShadowEndpointSlice. The peer
	// cannot change it.
	LabelManagedBy               = "liqo.io/managed-by"
	ManagedByShadowPod           = "shadowpod"
	ManagedByShadowEndpointSlice = "shadowendpointslice"

	// LabelReplicated is on the objects that a remote cluster has put here, with
	// the value "true", and LabelReplication on those that Liqo is to put there.
	LabelReplicated  = "liqo.io/replicated"
	LabelReplication = "liqo.io/replication"
	// ReplicationValue is the only value of both.
	ReplicationValue = "true"
	// LabelOrigin is on the former, with the ID of the cluster that has put them here, and LabelDestination on both, with the ID of the one
	// where they are put.
	LabelOrigin      = "liqo.io/originID"
	LabelDestination = "liqo.io/remoteID"

	// IdentityName is the ConfigMap in which Liqo keeps what this cluster is called, and IdentityKey where in it its ID is
	// (liqo/deployments/liqo/templates/liqo-clusterid-configmap.yaml).
	IdentityName = "liqo-clusterid-configmap"
	IdentityKey  = "CLUSTER_ID"

	// labelScheduling is on namespaces whose new pods pass Liqo's webhook.
	labelScheduling      = "liqo.io/scheduling-enabled"
	labelSchedulingValue = "true"

	// annotationNamespaceMap is on twin namespaces, and names the NamespaceMap that
	// asked for them.
	annotationNamespaceMap = "liqo.io/managed-by-namespace-map"
	// annotationOriginalName is beside it: what its consumer calls the namespace.
	annotationOriginalName = "liqo.io/original-name"

	// labelClusterID is on tenant namespaces of Liqo 0.9, with the ID of the peer, and labelDiscoveredTenant on nothing else.
	labelClusterID        = "discovery.liqo.io/cluster-id"
	labelDiscoveredTenant = "discovery.liqo.io/tenant-namespace"

	// labelLocalPod is on pods that run in another cluster, with the value labelLocalPodValue.
	labelLocalPod      = "liqo.io/shadowPod"
	labelLocalPodValue = "true"

	// annotationKeptHere is on what Liqo does not copy to another cluster.
	annotationKeptHere = "liqo.io/skip-reflection"

	// taintVirtualNode keeps from virtual nodes the pods of namespaces that are not offloaded.
	taintVirtualNode = "virtual-node.liqo.io/not-allowed"
)

// labelOriginNode is on shadow pods and their pods: the name of the virtual node to
// which the peer's scheduler bound the pod
// (LiqoOriginClusterNodeName in liqo/pkg/virtualKubelet/forge/meta.go@v0.9.4).
const labelOriginNode = "virtualkubelet.liqo.io/nodename"

// LabelOriginNodeV1 is the same with Liqo 1.x.
const LabelOriginNodeV1 = "offloading.liqo.io/nodename"

// OriginNode returns the virtual node of its consumer on which a pod is.
func OriginNode(pod *corev1.Pod) string {
	return cmp.Or(pod.Labels[labelOriginNode], pod.Labels[LabelOriginNodeV1])
}

// ReasonOffloadingAborted is the reason of a failed pod that Liqo does not offload: a
// virtual kubelet removes what it has made of it in the foreign cluster, and does not
// look at it again (liqo/pkg/virtualKubelet/reflection/workload/podns.go@v0.9.4).
const ReasonOffloadingAborted = "OffloadingAborted"

// KeepHere keeps Liqo from copying an object to another cluster, or back from one
// (ShouldSkipReflection in liqo/pkg/virtualKubelet/reflection/generic/namespaced.go@v0.9.4).
func KeepHere(o metav1.Object) {
	annotations := maps.Clone(o.GetAnnotations())
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[annotationKeptHere] = "true"
	o.SetAnnotations(annotations)
}

// LabelPolicy is on the pods of a consumer that wishes another placement policy
// than the one that applies to it, with the name of the policy. Labels of pods
// cross to the broker; those of namespaces do not.
const LabelPolicy = "brokering.liqo.io/policy"

const (
	// LabelCarbon is how a provider itself tells what its electricity emits: a label that
	// it gives to its offer, and Liqo to the virtual node. Its name has the unit.
	LabelCarbon = "brokering.liqo.io/carbon-gco2e-per-kwh"
	// LabelProvider is on a consumer's node of one provider, with its cluster ID.
	LabelProvider = "brokering.liqo.io/provider"
)

const (
	// AnnotationPath is on a consumer's pod that a broker runs on a provider, as long as the address under which the pod is
	// shown is known: whether that leads to the provider itself (direct), or through the broker (relay).
	AnnotationPath = "brokering.liqo.io/path"
	// AnnotationProvider is beside it if the broker told the consumer who runs the pod, with the cluster ID. To an
	// aggregated consumer no broker does.
	AnnotationProvider = LabelProvider
	// AnnotationProviderName is beside that if the broker said what the provider calls itself.
	AnnotationProviderName = "brokering.liqo.io/provider-name"
	// AnnotationPathSince is beside it, with the time since when both are as they are (RFC 3339).
	AnnotationPathSince = "brokering.liqo.io/path-since"
)

// PathAnnotations returns the names of all annotations that say how a pod is reached.
func PathAnnotations() []string {
	return []string{AnnotationPath, AnnotationProvider, AnnotationProviderName, AnnotationPathSince}
}

// annotationCorePrice is on the ForeignCluster of a cluster whose resources are bought by contract: what one of its cores costs.
const annotationCorePrice = "brokering.liqo.io/core-price"

// CorePrice returns what a core of a cluster costs by contract, as text of package kpi; empty if that is not known. Who may change
// ForeignClusters has written it: it is to be read with care all the same.
func CorePrice(fc metav1.Object) string { return fc.GetAnnotations()[annotationCorePrice] }

// SetCorePrice notes what a core of a cluster costs; an empty text removes the note.
func SetCorePrice(fc metav1.Object, text string) {
	annotations := maps.Clone(fc.GetAnnotations())
	switch {
	case text == "":
		delete(annotations, annotationCorePrice)
	case annotations == nil:
		annotations = map[string]string{annotationCorePrice: text}
	default:
		annotations[annotationCorePrice] = text
	}
	fc.SetAnnotations(annotations)
}

// IsReserved reports whether a label says what a node is, and not what a cluster is:
// all of Kubernetes' and Liqo's, but those of the topology and of the architecture.
func IsReserved(key string) bool {
	domain, _, found := strings.Cut(key, "/")
	within := func(of string) bool { return found && (domain == of || strings.HasSuffix(domain, "."+of)) }
	reserved := within("kubernetes.io") || within("k8s.io") || within("liqo.io")
	return reserved && domain != "topology.kubernetes.io" && key != corev1.LabelArchStable
}

// LabelVirtualKubelet is on virtual nodes whose virtual kubelet is this project's, with its
// version. A virtual kubelet of Liqo that takes over the node removes it: each writes the
// labels that it knows, and removes those that the one before it wrote
// (prepareThreewayPatchBytesForNodeStatus in virtual-kubelet/node/node.go@v1.10.0). It is
// an annotation besides, which no peer can put there.
const LabelVirtualKubelet = "brokering.liqo.io/virtual-kubelet"

// LabelTrial is on namespaces that a test of the plugin has made, which may therefore remove them.
const LabelTrial = "brokering.liqo.io/trial"

// IsOwnLabel reports whether a label is one of Liqo's, so that it says nothing
// about what the labelled pod is to its owner.
func IsOwnLabel(key string) bool {
	domain, _, found := strings.Cut(key, "/")
	return found && (domain == "liqo.io" || strings.HasSuffix(domain, ".liqo.io"))
}

// TaintCordoned keeps new pods from the virtual nodes of a provider that is cordoned or drained.
// The pods that run there stay, or stay until they are moved.
const TaintCordoned = "brokering.liqo.io/cordoned"

// OffloadingName is the only name that Liqo's webhook admits for a NamespaceOffloading.
const OffloadingName = "offloading"

// AnnotationPlacing is on NamespaceOffloadings that select more clusters than new
// pods are placed on: it has the IDs of the latter, separated by commas.
const AnnotationPlacing = "brokering.liqo.io/placing"

// LabelBrokerManaged is on the NamespaceOffloadings that the broker keeps, with the value
// BrokerManaged.
const (
	LabelBrokerManaged = "app.kubernetes.io/managed-by"
	BrokerManaged      = "liqo-broker"
)

// ProbeRefused ends the message by which the guard of identities refuses the connector, which asks for a certificate only to see whether
// that is refused. Nobody else refuses anything with it.
const ProbeRefused = "the guard of identities refuses what only asks whether it does"
