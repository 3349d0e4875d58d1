// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package v09

import (
	"maps"
	"strconv"

	offloadingv1alpha1 "github.com/liqotech/liqo/apis/offloading/v1alpha1"
	vkv1alpha1 "github.com/liqotech/liqo/apis/virtualkubelet/v1alpha1"
	"github.com/liqotech/liqo/pkg/consts"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	schedulinghelper "k8s.io/component-helpers/scheduling/corev1"

	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
	"github.com/capacitorset/liqo-broker/pkg/liqo"
)

// NamespaceOffloading says to which clusters the pods of its namespace go.
type NamespaceOffloading = offloadingv1alpha1.NamespaceOffloading

// NamespaceOffloadingList is a list of them.
type NamespaceOffloadingList = offloadingv1alpha1.NamespaceOffloadingList

// fitting returns how Liqo is to name a namespace of this cluster: as is preferred, if that fits.
func fitting(preferred liqo.Mapping, namespace string, own cluster.Identity) offloadingv1alpha1.NamespaceMappingStrategyType {
	return offloadingv1alpha1.NamespaceMappingStrategyType(liqo.FittingMapping(preferred, namespace, UniqueName(own)))
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

// PodSpec returns the pod that a consumer asks for. It may be changed.
func PodSpec(s *ShadowPod) *corev1.PodSpec { return &s.Spec.Pod }

// Passed reports whether a twin namespace came from a cluster or through it. What
// came through clusters that kept its name (mapping strategy EnforceSameName)
// cannot be told from here.
func Passed(ns *corev1.Namespace, id cluster.Identity) bool {
	origin, _ := liqo.TwinOf(ns)
	return origin == id.ID || passedThrough(ns.Name, id)
}

// OffloadingOf returns the value of what a NamespaceOffloading says.
func OffloadingOf(o *NamespaceOffloading) liqo.Offloading {
	selected := liqo.SelectedBy(&o.Spec.ClusterSelector)
	return liqo.Offloading{
		Namespace: o.Namespace, Object: o, Managed: o.Labels[liqo.LabelBrokerManaged] == liqo.BrokerManaged,
		Leaves:   o.Spec.PodOffloadingStrategy != offloadingv1alpha1.LocalPodOffloadingStrategyType,
		Remote:   o.Spec.PodOffloadingStrategy == offloadingv1alpha1.RemotePodOffloadingStrategyType,
		Selected: selected, Placing: liqo.NotedPlacing(o, selected), RemoteName: o.Status.RemoteNamespaceName,
		Deleted: !o.DeletionTimestamp.IsZero(), Seen: o.Status.ObservedGeneration == o.Generation,
	}
}

// ForgeOffloading returns the NamespaceOffloading that the broker keeps to send all pods
// of a namespace of this cluster to others, of which it selects none yet.
func ForgeOffloading(namespace string, preferred liqo.Mapping, own cluster.Identity) *NamespaceOffloading {
	return &NamespaceOffloading{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Name: liqo.OffloadingName, Labels: map[string]string{liqo.LabelBrokerManaged: liqo.BrokerManaged},
		},
		Spec: offloadingv1alpha1.NamespaceOffloadingSpec{
			NamespaceMappingStrategy: fitting(preferred, namespace, own),
			PodOffloadingStrategy:    offloadingv1alpha1.RemotePodOffloadingStrategyType,
		},
	}
}

// OffloadingTo returns the NamespaceOffloading by which pods of a namespace of this cluster may run here and on one other cluster.
func OffloadingTo(namespace string, own cluster.Identity, to cluster.ID) *NamespaceOffloading {
	return &NamespaceOffloading{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: liqo.OffloadingName},
		Spec: offloadingv1alpha1.NamespaceOffloadingSpec{
			NamespaceMappingStrategy: fitting(liqo.MappingDefault, namespace, own),
			PodOffloadingStrategy:    offloadingv1alpha1.LocalAndRemotePodOffloadingStrategyType,
			ClusterSelector:          liqo.ForgeSelector([]cluster.ID{to}),
		},
	}
}

// Select makes an offloading select clusters, in order, and no others, and notes on which of them new pods are placed.
func Select(o *NamespaceOffloading, selected, placing []cluster.ID) {
	o.Spec.ClusterSelector = liqo.ForgeSelector(selected)
	liqo.NotePlacing(o, selected, placing)
}

// ReceptionOf returns what became of the namespace of an offloading on a cluster.
func ReceptionOf(o *NamespaceOffloading, id cluster.Identity) liqo.Reception {
	return reception(o.Status.RemoteNamespacesConditions[UniqueName(id)])
}

// creationFailed is the reason of the condition NamespaceReady of a cluster that
// could not make the namespace: mostly, because it has another one of that name
// (liqo/pkg/liqo-controller-manager/namespaceoffloading-controller/status.go@v0.9.4).
const creationFailed = "CreationLoopBackOff"

// reception returns what conditions say of one cluster. What was left behind when it was taken out says nothing.
func reception(conditions offloadingv1alpha1.RemoteNamespaceConditions) liqo.Reception {
	required := false
	var is liqo.Reception
	for _, c := range conditions {
		switch c.Type {
		case offloadingv1alpha1.NamespaceOffloadingRequired:
			required = c.Status == corev1.ConditionTrue
		case offloadingv1alpha1.NamespaceReady:
			is.Present = c.Status == corev1.ConditionTrue
			if is.Refused = c.Status == corev1.ConditionFalse && c.Reason == creationFailed; is.Refused {
				is.Since = c.LastTransitionTime.Time
			}
		}
	}
	if !required {
		return liqo.Reception{}
	}
	return is
}
