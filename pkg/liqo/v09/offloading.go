// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package v09

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	offloadingv1alpha1 "github.com/liqotech/liqo/apis/offloading/v1alpha1"
	vkv1alpha1 "github.com/liqotech/liqo/apis/virtualkubelet/v1alpha1"
	"github.com/liqotech/liqo/pkg/consts"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	schedulinghelper "k8s.io/component-helpers/scheduling/corev1"

	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
	"github.com/capacitorset/liqo-broker/pkg/core/podstate"
	"github.com/capacitorset/liqo-broker/pkg/liqo"
)

// NamespaceOffloading says to which clusters the pods of its namespace go.
type NamespaceOffloading = offloadingv1alpha1.NamespaceOffloading

// NamespaceOffloadingList is a list of them.
type NamespaceOffloadingList = offloadingv1alpha1.NamespaceOffloadingList

// MappingStrategy says how Liqo names a namespace on the cluster that it is offloaded to.
type MappingStrategy = offloadingv1alpha1.NamespaceMappingStrategyType

// ParseMappingStrategy returns the strategy with a name that Liqo knows.
func ParseMappingStrategy(name string) (MappingStrategy, error) {
	known := []MappingStrategy{
		offloadingv1alpha1.DefaultNameMappingStrategyType,
		offloadingv1alpha1.EnforceSameNameMappingStrategyType,
	}
	if s := MappingStrategy(name); slices.Contains(known, s) {
		return s, nil
	}
	return "", fmt.Errorf("unknown namespace mapping strategy %q: use one of %v", name, known)
}

// FittingStrategy returns the preferred strategy if the name that it gives to a
// namespace of this cluster is a legal one. A name that is too long with what
// DefaultName appends to it fits as it is.
func FittingStrategy(preferred MappingStrategy, namespace string, own cluster.Identity) MappingStrategy {
	if len(namespace)+len("-")+len(UniqueName(own)) > validation.DNS1123LabelMaxLength {
		return offloadingv1alpha1.EnforceSameNameMappingStrategyType
	}
	return preferred
}

// RemoteName returns how this cluster has the namespace of an offloading called on the
// clusters that it is offloaded to
// (liqo/pkg/liqo-controller-manager/namespaceoffloading-controller/status.go@v0.9.4).
func RemoteName(o *NamespaceOffloading, own cluster.Identity) string {
	if o.Spec.NamespaceMappingStrategy == offloadingv1alpha1.EnforceSameNameMappingStrategyType {
		return o.Namespace
	}
	return o.Namespace + "-" + UniqueName(own)
}

// SelectsNode reports whether the selector of an offloading selects a virtual node of a
// cluster; node is nil if there is none of the VirtualNode's name
// (liqo/pkg/liqo-controller-manager/namespaceoffloading-controller/clusterselector.go@v0.9.4).
//
// Other than in Liqo, the cluster of the VirtualNode counts and not what labels say of
// it, because a cluster has a say in the labels of the node that stands for it.
func SelectsNode(selector *corev1.NodeSelector, virtual *VirtualNode, node *corev1.Node) (bool, error) {
	if len(selector.NodeSelectorTerms) == 0 {
		return true, nil
	}
	found := maps.Clone(virtual.Spec.Labels)
	if node != nil {
		found = maps.Clone(node.Labels)
	}
	if found == nil {
		found = map[string]string{}
	}
	if node == nil {
		found[consts.StorageAvailableLabel] = strconv.FormatBool(len(virtual.Spec.StorageClasses) == 0)
	}
	found[liqo.LabelRemoteClusterID] = virtual.Spec.ClusterIdentity.ClusterID
	return schedulinghelper.MatchNodeSelectorTerms(&corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: virtual.Name, Labels: found},
	}, selector)
}

// VirtualNode is Liqo's record of a node that stands for another cluster.
type VirtualNode = vkv1alpha1.VirtualNode

// ShadowPod is the object by which a consumer asks for a pod. Liqo keeps a pod of
// the same name and namespace, and recreates it when it is deleted.
type ShadowPod = vkv1alpha1.ShadowPod

// ShadowPodList is a list of them.
type ShadowPodList = vkv1alpha1.ShadowPodList

// ShadowEnded reports whether the pod of a ShadowPod had ended when Liqo looked last. Liqo recreates a pod that has, if somebody deletes it
// and it is to be restarted (liqo/pkg/liqo-controller-manager/shadowpod-controller@v0.9.4). The consumer cannot change it.
func ShadowEnded(s *ShadowPod) bool {
	return podstate.EndedIn(s.Status.Phase)
}

// PodSpec returns the pod that a consumer asks for. It may be changed.
func PodSpec(s *ShadowPod) *corev1.PodSpec { return &s.Spec.Pod }

// NewShadowPodMetadata returns an empty ShadowPod of which only the metadata is read.
func NewShadowPodMetadata() *metav1.PartialObjectMetadata {
	return &metav1.PartialObjectMetadata{TypeMeta: metav1.TypeMeta{
		APIVersion: vkv1alpha1.SchemeGroupVersion.String(), Kind: "ShadowPod",
	}}
}

// NewShadowPodMetadataList returns an empty list of the metadata of ShadowPods.
func NewShadowPodMetadataList() *metav1.PartialObjectMetadataList {
	return &metav1.PartialObjectMetadataList{TypeMeta: metav1.TypeMeta{
		APIVersion: vkv1alpha1.SchemeGroupVersion.String(), Kind: "ShadowPodList",
	}}
}

// Passed reports whether a twin namespace came from a cluster or through it. What
// came through clusters that kept its name (mapping strategy EnforceSameName)
// cannot be told from here.
func Passed(ns *corev1.Namespace, id cluster.Identity) bool {
	origin, _ := liqo.TwinOf(ns)
	return origin == id.ID || passedThrough(ns.Name, id)
}

// SetPlacing notes on which of the selected clusters new pods are placed.
func SetPlacing(o *NamespaceOffloading, placing []cluster.ID) {
	if slices.Equal(placing, Selected(o)) {
		delete(o.Annotations, liqo.AnnotationPlacing)
		return
	}
	if o.Annotations == nil {
		o.Annotations = map[string]string{}
	}
	ids := make([]string, len(placing))
	for i, id := range placing {
		ids[i] = string(id)
	}
	o.Annotations[liqo.AnnotationPlacing] = strings.Join(ids, ",")
}

// Placing returns on which of the selected clusters new pods are placed, in order.
// It is empty if new pods wait.
func Placing(o *NamespaceOffloading) []cluster.ID {
	selected := Selected(o)
	placing, set := o.Annotations[liqo.AnnotationPlacing]
	if !set {
		return selected
	}
	ids := strings.Split(placing, ",")
	return slices.DeleteFunc(selected, func(id cluster.ID) bool { return !slices.Contains(ids, string(id)) })
}

// Remote reports whether all pods of the namespace of an offloading are to run in other clusters.
func Remote(o *NamespaceOffloading) bool {
	return o.Spec.PodOffloadingStrategy == offloadingv1alpha1.RemotePodOffloadingStrategyType
}

// Leaves reports whether pods of the namespace of an offloading may run in other clusters.
func Leaves(o *NamespaceOffloading) bool {
	return o.Spec.PodOffloadingStrategy != offloadingv1alpha1.LocalPodOffloadingStrategyType
}

// Managed reports whether the broker keeps an offloading, and nobody else.
func Managed(o *NamespaceOffloading) bool {
	return o.Labels[liqo.LabelBrokerManaged] == liqo.BrokerManaged
}

// ForgeOffloading returns the NamespaceOffloading that the broker keeps to send all pods
// of a namespace to the selected clusters, of which there must be at least one.
func ForgeOffloading(namespace string, strategy MappingStrategy, selected []cluster.ID) *NamespaceOffloading {
	return &NamespaceOffloading{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Name: liqo.OffloadingName, Labels: map[string]string{liqo.LabelBrokerManaged: liqo.BrokerManaged},
		},
		Spec: offloadingv1alpha1.NamespaceOffloadingSpec{
			NamespaceMappingStrategy: strategy,
			PodOffloadingStrategy:    offloadingv1alpha1.RemotePodOffloadingStrategyType,
			ClusterSelector:          liqo.ForgeSelector(selected),
		},
	}
}

// OffloadingTo returns the NamespaceOffloading by which pods of a namespace of this cluster may run here and on one other cluster.
func OffloadingTo(namespace string, own cluster.Identity, to cluster.ID) *NamespaceOffloading {
	return &NamespaceOffloading{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: liqo.OffloadingName},
		Spec: offloadingv1alpha1.NamespaceOffloadingSpec{
			NamespaceMappingStrategy: FittingStrategy(offloadingv1alpha1.DefaultNameMappingStrategyType, namespace, own),
			PodOffloadingStrategy:    offloadingv1alpha1.LocalAndRemotePodOffloadingStrategyType,
			ClusterSelector:          liqo.ForgeSelector([]cluster.ID{to}),
		},
	}
}

// Selected returns the clusters that an offloading of the broker selects, in order.
func Selected(o *NamespaceOffloading) []cluster.ID {
	var selected []cluster.ID
	for _, term := range o.Spec.ClusterSelector.NodeSelectorTerms {
		for _, e := range term.MatchExpressions {
			if e.Key != liqo.LabelRemoteClusterID || e.Operator != corev1.NodeSelectorOpIn {
				continue
			}
			for _, v := range e.Values {
				selected = append(selected, cluster.ID(v))
			}
		}
	}
	slices.Sort(selected)
	return slices.Compact(selected)
}

// Select makes an offloading select clusters, and no others.
func Select(o *NamespaceOffloading, ids []cluster.ID) {
	o.Spec.ClusterSelector = liqo.ForgeSelector(ids)
}

// Selects reports whether an offloading of the broker selects a cluster.
func Selects(o *NamespaceOffloading, id cluster.ID) bool {
	for _, term := range o.Spec.ClusterSelector.NodeSelectorTerms {
		for _, e := range term.MatchExpressions {
			if e.Key == liqo.LabelRemoteClusterID && e.Operator == corev1.NodeSelectorOpIn && slices.Contains(e.Values, string(id)) {
				return true
			}
		}
	}
	return false
}

// RemoteNamespace returns how Liqo calls the namespace of an offloading on the clusters that it is
// offloaded to; empty as long as Liqo has not taken note of it.
func RemoteNamespace(o *NamespaceOffloading) string { return o.Status.RemoteNamespaceName }

// InForce reports whether Liqo's webhook applies an offloading to the pods made in
// its namespace: Liqo has seen the present spec and opened the namespace.
func InForce(ns *corev1.Namespace, o *NamespaceOffloading) bool {
	return liqo.Open(ns) &&
		o.DeletionTimestamp.IsZero() && o.Status.ObservedGeneration == o.Generation
}

// Receives reports whether the namespace of an offloading exists on a cluster, so
// that pods can start there.
func Receives(o *NamespaceOffloading, id cluster.Identity) bool {
	return receives(o.Status.RemoteNamespacesConditions[UniqueName(id)])
}

func receives(conditions offloadingv1alpha1.RemoteNamespaceConditions) bool {
	required, ready := false, false
	for _, c := range conditions {
		switch c.Type {
		case offloadingv1alpha1.NamespaceOffloadingRequired:
			required = c.Status == corev1.ConditionTrue
		case offloadingv1alpha1.NamespaceReady:
			ready = c.Status == corev1.ConditionTrue
		}
	}
	return required && ready
}

// creationFailed is the reason of the condition NamespaceReady of a cluster that
// could not make the namespace: mostly, because it has another one of that name
// (liqo/pkg/liqo-controller-manager/namespaceoffloading-controller/status.go@v0.9.4).
const creationFailed = "CreationLoopBackOff"

// Refused reports whether a selected cluster cannot make the namespace of an
// offloading, and since when.
func Refused(o *NamespaceOffloading, id cluster.Identity) (since time.Time, is bool) {
	return refused(o.Status.RemoteNamespacesConditions[UniqueName(id)])
}

func refused(conditions offloadingv1alpha1.RemoteNamespaceConditions) (since time.Time, is bool) {
	required := false
	for _, c := range conditions {
		switch c.Type {
		case offloadingv1alpha1.NamespaceOffloadingRequired:
			required = c.Status == corev1.ConditionTrue
		case offloadingv1alpha1.NamespaceReady:
			is = c.Status == corev1.ConditionFalse && c.Reason == creationFailed
			since = c.LastTransitionTime.Time
		}
	}
	return since, required && is
}
