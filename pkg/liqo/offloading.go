// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package liqo

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
)

// NamespaceOffloading says to which clusters the pods of its namespace go.
type NamespaceOffloading = offloadingv1alpha1.NamespaceOffloading

// NamespaceOffloadingList is a list of them.
type NamespaceOffloadingList = offloadingv1alpha1.NamespaceOffloadingList

// OffloadingName is the only name that Liqo's webhook admits for a NamespaceOffloading.
const OffloadingName = consts.DefaultNamespaceOffloadingName

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
	found[LabelRemoteClusterID] = virtual.Spec.ClusterIdentity.ClusterID
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
	origin, _ := TwinOf(ns)
	return origin == id.ID || passedThrough(ns.Name, id)
}

// AnnotationPlacing is on NamespaceOffloadings that select more clusters than new
// pods are placed on: it has the IDs of the latter, separated by commas.
const AnnotationPlacing = "brokering.liqo.io/placing"

// SetPlacing notes on which of the selected clusters new pods are placed.
func SetPlacing(o *NamespaceOffloading, placing []cluster.ID) {
	if slices.Equal(placing, Selected(o)) {
		delete(o.Annotations, AnnotationPlacing)
		return
	}
	if o.Annotations == nil {
		o.Annotations = map[string]string{}
	}
	ids := make([]string, len(placing))
	for i, id := range placing {
		ids[i] = string(id)
	}
	o.Annotations[AnnotationPlacing] = strings.Join(ids, ",")
}

// Placing returns on which of the selected clusters new pods are placed, in order.
// It is empty if new pods wait.
func Placing(o *NamespaceOffloading) []cluster.ID {
	selected := Selected(o)
	placing, set := o.Annotations[AnnotationPlacing]
	if !set {
		return selected
	}
	ids := strings.Split(placing, ",")
	return slices.DeleteFunc(selected, func(id cluster.ID) bool { return !slices.Contains(ids, string(id)) })
}

// Place makes a pod require one of some clusters, beside what it requires already; with
// none, the pod waits.
func Place(pod *corev1.Pod, on []cluster.ID) {
	if len(on) == 0 {
		require(pod, nowhere...)
		return
	}
	require(pod, requirement(on))
}

// Confine makes a pod require a virtual node, beside what it requires already: it never
// runs on a node of this cluster.
func Confine(pod *corev1.Pod) {
	require(pod, corev1.NodeSelectorRequirement{Key: LabelNodeType, Operator: corev1.NodeSelectorOpIn, Values: []string{NodeTypeVirtual}})
}

// MarkOffloaded labels a pod as one that runs in another cluster, as virtual kubelets do with each pod that is bound to their
// node (LocalPodOffloadedLabel in liqo/pkg/virtualKubelet/forge/pods.go@v0.9.4). They leave alone what has the label already.
func MarkOffloaded(pod *corev1.Pod) {
	if pod.Labels == nil {
		pod.Labels = map[string]string{}
	}
	pod.Labels[consts.LocalPodLabelKey] = consts.LocalPodLabelValue
}

// Admit makes a pod tolerate virtual nodes, as Liqo's webhook does once an offloading is in
// force (createTolerationFromNamespaceOffloading in
// pkg/liqo-controller-manager/webhooks/pod/mutations.go@v0.9.4).
func Admit(pod *corev1.Pod) {
	if !slices.ContainsFunc(pod.Spec.Tolerations, toleratesVirtualNodes) {
		pod.Spec.Tolerations = append(pod.Spec.Tolerations, corev1.Toleration{
			Key: consts.VirtualNodeTolerationKey, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute,
		})
	}
}

func toleratesVirtualNodes(t corev1.Toleration) bool { return t.Key == consts.VirtualNodeTolerationKey }

// nowhere is what no node has.
var nowhere = []corev1.NodeSelectorRequirement{
	{Key: LabelRemoteClusterID, Operator: corev1.NodeSelectorOpExists},
	{Key: LabelRemoteClusterID, Operator: corev1.NodeSelectorOpDoesNotExist},
}

// require adds requirements to each alternative of what a pod requires of its node.
func require(pod *corev1.Pod, requirements ...corev1.NodeSelectorRequirement) {
	if pod.Spec.Affinity == nil {
		pod.Spec.Affinity = &corev1.Affinity{}
	}
	if pod.Spec.Affinity.NodeAffinity == nil {
		pod.Spec.Affinity.NodeAffinity = &corev1.NodeAffinity{}
	}
	affinity := pod.Spec.Affinity.NodeAffinity
	required := affinity.RequiredDuringSchedulingIgnoredDuringExecution
	if required == nil || len(required.NodeSelectorTerms) == 0 {
		// Liqo's webhook, which comes later, replaces a list without alternatives.
		affinity.RequiredDuringSchedulingIgnoredDuringExecution = &corev1.NodeSelector{
			NodeSelectorTerms: []corev1.NodeSelectorTerm{{}},
		}
	}
	terms := affinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms
	for i := range terms {
		terms[i].MatchExpressions = append(terms[i].MatchExpressions, requirements...)
	}
}

// LabelBrokerManaged is on the NamespaceOffloadings that the broker keeps, with the value
// BrokerManaged.
const (
	LabelBrokerManaged = "app.kubernetes.io/managed-by"
	BrokerManaged      = "liqo-broker"
)

// Managed reports whether the broker keeps an offloading, and nobody else.
func Managed(o *NamespaceOffloading) bool { return o.Labels[LabelBrokerManaged] == BrokerManaged }

// ForgeOffloading returns the NamespaceOffloading that the broker keeps to send all pods
// of a namespace to the selected clusters, of which there must be at least one.
func ForgeOffloading(namespace string, strategy MappingStrategy, selected []cluster.ID) *NamespaceOffloading {
	return &NamespaceOffloading{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Name: OffloadingName, Labels: map[string]string{LabelBrokerManaged: BrokerManaged},
		},
		Spec: offloadingv1alpha1.NamespaceOffloadingSpec{
			NamespaceMappingStrategy: strategy,
			PodOffloadingStrategy:    offloadingv1alpha1.RemotePodOffloadingStrategyType,
			ClusterSelector:          ForgeSelector(selected),
		},
	}
}

// ForgeSelector returns the selector of the given clusters, and only of them.
func ForgeSelector(selected []cluster.ID) corev1.NodeSelector {
	return corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
		MatchExpressions: []corev1.NodeSelectorRequirement{requirement(selected)},
	}}}
}

func requirement(selected []cluster.ID) corev1.NodeSelectorRequirement {
	values := make([]string, len(selected))
	for i, id := range selected {
		values[i] = string(id)
	}
	slices.Sort(values)
	return corev1.NodeSelectorRequirement{Key: LabelRemoteClusterID, Operator: corev1.NodeSelectorOpIn, Values: values}
}

// Selected returns the clusters that an offloading of the broker selects, in order.
func Selected(o *NamespaceOffloading) []cluster.ID {
	var selected []cluster.ID
	for _, term := range o.Spec.ClusterSelector.NodeSelectorTerms {
		for _, e := range term.MatchExpressions {
			if e.Key != LabelRemoteClusterID || e.Operator != corev1.NodeSelectorOpIn {
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
func Select(o *NamespaceOffloading, ids []cluster.ID) { o.Spec.ClusterSelector = ForgeSelector(ids) }

// Selects reports whether an offloading of the broker selects a cluster.
func Selects(o *NamespaceOffloading, id cluster.ID) bool {
	for _, term := range o.Spec.ClusterSelector.NodeSelectorTerms {
		for _, e := range term.MatchExpressions {
			if e.Key == LabelRemoteClusterID && e.Operator == corev1.NodeSelectorOpIn && slices.Contains(e.Values, string(id)) {
				return true
			}
		}
	}
	return false
}

// RemoteNamespace returns how Liqo calls the namespace of an offloading on the clusters that it is
// offloaded to; empty as long as Liqo has not taken note of it.
func RemoteNamespace(o *NamespaceOffloading) string { return o.Status.RemoteNamespaceName }

// Open reports whether Liqo lets pods of a namespace of this cluster run on virtual
// nodes. It does so where the namespace is offloaded with its pods.
func Open(ns *corev1.Namespace) bool { return ns.Labels[labelScheduling] == labelSchedulingValue }

// InForce reports whether Liqo's webhook applies an offloading to the pods made in
// its namespace: Liqo has seen the present spec and opened the namespace.
func InForce(ns *corev1.Namespace, o *NamespaceOffloading) bool {
	return Open(ns) &&
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

// Follows reports whether a pod was made to follow a selection: it tolerates virtual nodes,
// and the selection is among what it requires of its node. A pod that follows an empty
// selection waits.
func Follows(pod *corev1.Pod, selected []cluster.ID) bool {
	if len(selected) == 0 {
		return Waits(pod)
	}
	return slices.ContainsFunc(pod.Spec.Tolerations, toleratesVirtualNodes) && requires(pod, requirement(selected))
}

// Waits reports whether a pod was made to wait, whatever else it requires.
func Waits(pod *corev1.Pod) bool { return requires(pod, nowhere...) }

// Excludes reports whether a pod cannot run on a cluster because it requires others,
// whichever of the alternatives that it requires a node meets.
func Excludes(pod *corev1.Pod, id cluster.ID) bool {
	terms := required(pod)
	return len(terms) > 0 && !slices.ContainsFunc(terms, func(term corev1.NodeSelectorTerm) bool {
		return !slices.ContainsFunc(term.MatchExpressions, func(e corev1.NodeSelectorRequirement) bool {
			return e.Key == LabelRemoteClusterID && e.Operator == corev1.NodeSelectorOpIn && !slices.Contains(e.Values, string(id))
		})
	})
}

// Confined reports whether a pod can run on virtual nodes only, whichever of the
// alternatives that it requires a node meets.
func Confined(pod *corev1.Pod) bool {
	terms := required(pod)
	return len(terms) > 0 && !slices.ContainsFunc(terms, func(term corev1.NodeSelectorTerm) bool {
		return !slices.ContainsFunc(term.MatchExpressions, func(e corev1.NodeSelectorRequirement) bool {
			return e.Key == LabelNodeType && e.Operator == corev1.NodeSelectorOpIn && slices.Equal(e.Values, []string{NodeTypeVirtual})
		})
	})
}

// requires reports whether an alternative of what a pod requires of its node has all of
// some requirements.
func requires(pod *corev1.Pod, requirements ...corev1.NodeSelectorRequirement) bool {
	return slices.ContainsFunc(required(pod), func(term corev1.NodeSelectorTerm) bool {
		for _, want := range requirements {
			if !slices.ContainsFunc(term.MatchExpressions, func(e corev1.NodeSelectorRequirement) bool {
				return e.Key == want.Key && e.Operator == want.Operator && slices.Equal(e.Values, want.Values)
			}) {
				return false
			}
		}
		return true
	})
}

// required returns the alternatives of what a pod requires of its node.
func required(pod *corev1.Pod) []corev1.NodeSelectorTerm {
	affinity := pod.Spec.Affinity
	if affinity == nil || affinity.NodeAffinity == nil || affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution == nil {
		return nil
	}
	return affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms
}
