// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package api

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// NamespaceMap is the namespaces that one cluster offloads to another. It exists on both, in the tenant namespace of the other one.
//
// +kubebuilder:object:root=true
type NamespaceMap struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   NamespaceMapSpec   `json:"spec,omitempty"`
	Status NamespaceMapStatus `json:"status,omitempty"`
}

// NamespaceMapSpec is what the cluster that offloads wants.
type NamespaceMapSpec struct {
	// DesiredMapping has the name of the twin at the other cluster by that of the namespace.
	DesiredMapping map[string]string `json:"desiredMapping,omitempty"`
}

// NamespaceMapStatus is what the other cluster has made of it.
type NamespaceMapStatus struct {
	// CurrentMapping has the twin by the name of the namespace.
	CurrentMapping map[string]RemoteNamespace `json:"currentMapping,omitempty"`
}

// RemoteNamespace is a twin at the other cluster.
type RemoteNamespace struct {
	Name  string       `json:"remoteNamespace,omitempty"`
	Phase MappingPhase `json:"phase,omitempty"`
}

// MappingPhase is how far a twin has come.
type MappingPhase string

// The phases of a twin.
const (
	MappingAccepted    MappingPhase = "Accepted"
	MappingFailing     MappingPhase = "CreationLoopBackOff"
	MappingTerminating MappingPhase = "Terminating"
)

// NamespaceMapList is a list of NamespaceMaps.
//
// +kubebuilder:object:root=true
type NamespaceMapList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []NamespaceMap `json:"items"`
}

// NamespaceOffloading has a namespace offloaded. It is in that namespace, and Liqo admits no other name than "offloading".
//
// +kubebuilder:object:root=true
type NamespaceOffloading struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   NamespaceOffloadingSpec   `json:"spec"`
	Status NamespaceOffloadingStatus `json:"status,omitempty"`
}

// NamespaceOffloadingSpec says where to, and under which name.
type NamespaceOffloadingSpec struct {
	NamespaceMappingStrategy MappingStrategy `json:"namespaceMappingStrategy"`
	// RemoteNamespaceName is the name of the twins under SelectedName.
	RemoteNamespaceName   string      `json:"remoteNamespaceName,omitempty"`
	PodOffloadingStrategy PodStrategy `json:"podOffloadingStrategy"`
	// ClusterSelector selects clusters by the labels of their virtual nodes; all without terms.
	ClusterSelector corev1.NodeSelector `json:"clusterSelector,omitempty"`
}

// MappingStrategy is how twins are called.
type MappingStrategy string

// The strategies by which twins get their names.
const (
	// SameName calls them as the namespace.
	SameName MappingStrategy = "EnforceSameName"
	// DefaultName appends the ID of this cluster.
	DefaultName MappingStrategy = "DefaultName"
	// SelectedName takes RemoteNamespaceName.
	SelectedName MappingStrategy = "SelectedName"
)

// PodStrategy is where the pods of an offloaded namespace may run.
type PodStrategy string

// The strategies of pods.
const (
	PodsLocal          PodStrategy = "Local"
	PodsRemote         PodStrategy = "Remote"
	PodsLocalAndRemote PodStrategy = "LocalAndRemote"
)

// NamespaceOffloadingStatus is what became of it.
type NamespaceOffloadingStatus struct {
	// RemoteNamespaceName is how the twins are called.
	RemoteNamespaceName string          `json:"remoteNamespaceName,omitempty"`
	OffloadingPhase     OffloadingPhase `json:"offloadingPhase,omitempty"`
	// RemoteNamespacesConditions are those of the twins, by the ID of their cluster.
	RemoteNamespacesConditions map[string]RemoteNamespaceConditions `json:"remoteNamespacesConditions,omitempty"`
	// ObservedGeneration is the generation of which the status tells.
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
}

// OffloadingPhase sums up the conditions of all twins.
type OffloadingPhase string

// The phases of a NamespaceOffloading.
const (
	OffloadingReady       OffloadingPhase = "Ready"
	OffloadingNoCluster   OffloadingPhase = "NoClusterSelected"
	OffloadingInProgress  OffloadingPhase = "InProgress"
	OffloadingSomeFailed  OffloadingPhase = "SomeFailed"
	OffloadingAllFailed   OffloadingPhase = "AllFailed"
	OffloadingTerminating OffloadingPhase = "Terminating"
)

// RemoteNamespaceConditions are the conditions of one twin.
type RemoteNamespaceConditions []RemoteNamespaceCondition

// RemoteNamespaceConditionType says of what a condition of a twin is.
type RemoteNamespaceConditionType string

// The conditions of a twin.
const (
	// OffloadingRequired is whether it is wanted.
	OffloadingRequired RemoteNamespaceConditionType = "OffloadingRequired"
	// RemoteNamespaceReady is whether it is there.
	RemoteNamespaceReady RemoteNamespaceConditionType = "Ready"
)

// RemoteNamespaceCondition is one thing that Liqo has seen of a twin, and since when.
type RemoteNamespaceCondition struct {
	Type               RemoteNamespaceConditionType `json:"type"`
	Status             corev1.ConditionStatus       `json:"status"`
	LastTransitionTime metav1.Time                  `json:"lastTransitionTime,omitempty"`
	Reason             string                       `json:"reason,omitempty"`
	Message            string                       `json:"message,omitempty"`
}

// NamespaceOffloadingList is a list of NamespaceOffloadings.
//
// +kubebuilder:object:root=true
type NamespaceOffloadingList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []NamespaceOffloading `json:"items"`
}

// VirtualNode has Liqo run a virtual kubelet, with a node, for a cluster that provides. It is in the tenant namespace of that cluster, and
// called as its node is. The Deployment that Liqo writes into it, and the images of the cluster, are left out.
//
// +kubebuilder:object:root=true
type VirtualNode struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   VirtualNodeSpec   `json:"spec,omitempty"`
	Status VirtualNodeStatus `json:"status,omitempty"`
}

// VirtualNodeSpec is what the node is to be.
type VirtualNodeSpec struct {
	// ClusterID is the ID of the cluster that provides.
	ClusterID string `json:"clusterID,omitempty"`
	// OffloadingPatch is what is put on the pods that come from the node.
	OffloadingPatch *OffloadingPatch `json:"offloadingPatch,omitempty"`
	// CreateNode is false if there is to be no node.
	CreateNode *bool `json:"createNode,omitempty"`
	// DisableNetworkCheck keeps the network to the cluster out of the node's conditions.
	DisableNetworkCheck *bool `json:"disableNetworkCheck,omitempty"`
	// KubeconfigSecretRef names the Secret with the credentials of the virtual kubelet.
	KubeconfigSecretRef *corev1.LocalObjectReference `json:"kubeconfigSecretRef,omitempty"`
	// ResourceQuota has what the node has.
	ResourceQuota corev1.ResourceQuotaSpec `json:"resourceQuota,omitempty"`
	// Labels, Annotations and Taints are put on the node. A label that is taken out here stays there.
	Labels      map[string]string `json:"labels,omitempty"`
	Annotations map[string]string `json:"annotations,omitempty"`
	Taints      []corev1.Taint    `json:"taints,omitempty"`
	// StorageClasses, IngressClasses and LoadBalancerClasses are what the cluster has of each.
	StorageClasses      []StorageClass      `json:"storageClasses,omitempty"`
	IngressClasses      []IngressClass      `json:"ingressClasses,omitempty"`
	LoadBalancerClasses []LoadBalancerClass `json:"loadBalancerClasses,omitempty"`
	// VkOptionsTemplateRef names of what the virtual kubelet is made; nil is what Liqo was installed with.
	VkOptionsTemplateRef *corev1.ObjectReference `json:"vkOptionsTemplateRef,omitempty"`
}

// OffloadingPatch is what is put on the pods that come from a node.
type OffloadingPatch struct {
	NodeSelector map[string]string   `json:"nodeSelector,omitempty"`
	Tolerations  []corev1.Toleration `json:"tolerations,omitempty"`
}

// VirtualNodeStatus is what became of a virtual node.
type VirtualNodeStatus struct {
	Conditions []VirtualNodeCondition `json:"conditions,omitempty"`
}

// VirtualNodeConditionType says of what a condition of a virtual node is.
type VirtualNodeConditionType string

// The conditions of a virtual node.
const (
	VirtualKubeletCondition VirtualNodeConditionType = "VirtualKubelet"
	NodeCondition           VirtualNodeConditionType = "Node"
)

// VirtualNodeConditionStatus is how a condition of a virtual node stands.
type VirtualNodeConditionStatus string

// The values of a condition of a virtual node.
const (
	VirtualNodeNone     VirtualNodeConditionStatus = "None"
	VirtualNodeRunning  VirtualNodeConditionStatus = "Running"
	VirtualNodeCreating VirtualNodeConditionStatus = "Creating"
	VirtualNodeDraining VirtualNodeConditionStatus = "Draining"
	VirtualNodeDeleting VirtualNodeConditionStatus = "Deleting"
)

// VirtualNodeCondition is one thing that Liqo has seen of a virtual node, and since when.
type VirtualNodeCondition struct {
	Type               VirtualNodeConditionType   `json:"type"`
	Status             VirtualNodeConditionStatus `json:"status"`
	LastTransitionTime metav1.Time                `json:"lastTransitionTime,omitempty"`
	Reason             string                     `json:"reason,omitempty"`
	Message            string                     `json:"message,omitempty"`
}

// VirtualNodeList is a list of VirtualNodes.
//
// +kubebuilder:object:root=true
type VirtualNodeList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []VirtualNode `json:"items"`
}

// ShadowPod is how a consumer asks for a pod in one of its twin namespaces.
//
// +kubebuilder:object:root=true
type ShadowPod struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   ShadowPodSpec   `json:"spec,omitempty"`
	Status ShadowPodStatus `json:"status,omitempty"`
}

// ShadowPodSpec is the pod.
type ShadowPodSpec struct {
	Pod corev1.PodSpec `json:"pod,omitempty"`
}

// ShadowPodStatus is what became of the pod.
type ShadowPodStatus struct {
	// Phase is that of the pod. Once it says that the pod has ended, Liqo makes no other one.
	Phase corev1.PodPhase `json:"phase"`
}

// ShadowPodList is a list of ShadowPods.
//
// +kubebuilder:object:root=true
type ShadowPodList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []ShadowPod `json:"items"`
}
