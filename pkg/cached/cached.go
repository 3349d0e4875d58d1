// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

// Package cached says what the caches of programs keep in memory of objects of which there are many, and while they read them: a cluster's
// pods and nodes would be most of it.
//
// It does not know who reads them.
package cached

import (
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capacitorset/liqo-broker/pkg/api/v1alpha1"
	"github.com/capacitorset/liqo-broker/pkg/core/capacity"
	"github.com/capacitorset/liqo-broker/pkg/excerpt"
	"github.com/capacitorset/liqo-broker/pkg/liqo"
	"github.com/capacitorset/liqo-broker/pkg/liqo/line"
)

// NamespaceOfEvents is where the events about objects in no namespace are, which all of the broker are. An API server takes none about
// such an object elsewhere, but in kube-system.
const NamespaceOfEvents = metav1.NamespaceDefault

// ByBroker returns what a cache keeps for who reads what a broker has: of nodes, pods, namespaces and events only those that matter to it,
// and of them and of Liqo's kinds only what is read. Of a pod's annotations those with some names stay.
func ByBroker(of line.Line, annotations ...string) map[client.Object]cache.ByObject {
	compactor := &liqo.Compactor{}
	kept := map[client.Object]cache.ByObject{
		&corev1.Node{}:      {Label: labels.SelectorFromSet(labels.Set{liqo.LabelNodeType: liqo.NodeTypeVirtual}), Transform: node},
		&corev1.Pod{}:       {Label: liqo.ShadowPodSelector(), Transform: Pod(compactor, annotations...)},
		&corev1.Namespace{}: {Label: liqo.PeerNamespaceSelector(), Transform: Strip},
		&corev1.Event{}: {
			Namespaces: map[string]cache.Config{NamespaceOfEvents: {}},
			Field:      fields.OneTermEqualSelector("involvedObject.apiVersion", v1alpha1.GroupVersion.String()), Transform: event,
		},
	}
	for object, drop := range of.Dropped(compactor) {
		kept[object] = cache.ByObject{Transform: Without(drop)}
	}
	return kept
}

// ByConsumer returns what a cache keeps for who reads which of a cluster's own pods are at brokers: virtual nodes, all pods and namespaces,
// and of them and of Liqo's kinds only what is read.
func ByConsumer(of line.Line) map[client.Object]cache.ByObject {
	kept := map[client.Object]cache.ByObject{
		&corev1.Node{}:      {Label: labels.SelectorFromSet(labels.Set{liqo.LabelNodeType: liqo.NodeTypeVirtual}), Transform: node},
		&corev1.Pod{}:       {Transform: ownPod},
		&corev1.Namespace{}: {Transform: Metadata},
	}
	for object, drop := range of.Dropped(&liqo.Compactor{}) {
		kept[object] = cache.ByObject{Transform: Without(drop)}
	}
	return kept
}

// ownPod keeps of a pod where it is, how it does and is reached, and what has made it; of one that tolerates virtual nodes besides what it
// requests. Of the others a cluster has tens of thousands.
func ownPod(o any) (any, error) {
	pod, ok := o.(*corev1.Pod)
	if !ok {
		return o, nil
	}
	kept := podOf(pod, nil)
	kept.Labels, kept.Spec.Affinity, kept.Spec.Tolerations = nil, nil, nil
	if hash := pod.Labels[appsv1.DefaultDeploymentUniqueLabelKey]; hash != "" {
		metav1.SetMetaDataLabel(&kept.ObjectMeta, appsv1.DefaultDeploymentUniqueLabelKey, hash)
	}
	if made := metav1.GetControllerOf(pod); made != nil {
		kept.OwnerReferences = []metav1.OwnerReference{{Kind: made.Kind, Name: made.Name, Controller: made.Controller}}
	}
	for _, name := range liqo.PathAnnotations() {
		if value, ok := pod.Annotations[name]; ok {
			metav1.SetMetaDataAnnotation(&kept.ObjectMeta, name, strings.Clone(excerpt.Of(value, maxWord)))
		}
	}
	if !liqo.Admitted(pod) {
		kept.Spec.Containers = nil
		return kept, nil
	}
	kept.Spec.Tolerations = slices.DeleteFunc(slices.Clone(pod.Spec.Tolerations), func(t corev1.Toleration) bool {
		return !liqo.Admitted(&corev1.Pod{Spec: corev1.PodSpec{Tolerations: []corev1.Toleration{t}}})
	})
	return kept, nil
}

// Decisions is what a cache keeps of a broker's PlacementDecisions. Nobody changes one that was read, and each may name a thousand
// providers: the decisions for all consumers share the names.
func Decisions() cache.ByObject {
	compactor := &liqo.Compactor{}
	return cache.ByObject{UnsafeDisableDeepCopy: new(true), Transform: Without(func(decision *v1alpha1.PlacementDecision) {
		for i := range decision.Chosen {
			c := &decision.Chosen[i]
			c.ID, c.Name = compactor.Name(c.ID), compactor.Name(c.Name)
		}
	})}
}

// Strip drops who wrote which field of an object.
func Strip(o any) (any, error) {
	if object, ok := o.(metav1.Object); ok {
		object.SetManagedFields(nil)
	}
	return o, nil
}

// Without drops of a kind's objects what a function takes away, and who wrote which field.
func Without[T any](drop func(T)) toolscache.TransformFunc {
	return func(o any) (any, error) {
		if object, ok := o.(T); ok {
			drop(object)
		}
		return Strip(o)
	}
}

// Metadata drops the annotations too.
func Metadata(o any) (any, error) {
	if object, ok := o.(metav1.Object); ok {
		object.SetManagedFields(nil)
		object.SetAnnotations(nil)
	}
	return o, nil
}

// Pod keeps of a pod where it is and since when, where it may be, how it does, and what it requests: all of that in one container, instead
// of the many fields of each. Of its annotations those with some names stay.
func Pod(compactor *liqo.Compactor, annotations ...string) toolscache.TransformFunc {
	return func(o any) (any, error) {
		pod, ok := o.(*corev1.Pod)
		if !ok {
			return o, nil
		}
		kept := podOf(pod, annotations)
		compactor.Pod(kept)
		return kept, nil
	}
}

func podOf(pod *corev1.Pod, annotations []string) *corev1.Pod {
	kept := &corev1.Pod{
		TypeMeta: pod.TypeMeta,
		ObjectMeta: metav1.ObjectMeta{
			Name:              pod.Name,
			Namespace:         pod.Namespace,
			UID:               pod.UID,
			ResourceVersion:   pod.ResourceVersion,
			CreationTimestamp: pod.CreationTimestamp,
			DeletionTimestamp: pod.DeletionTimestamp,
			Labels:            pod.Labels,
		},
		Spec: corev1.PodSpec{
			NodeName:    pod.Spec.NodeName,
			Tolerations: pod.Spec.Tolerations,
			Affinity:    pod.Spec.Affinity,
			Containers:  []corev1.Container{{Resources: corev1.ResourceRequirements{Requests: capacity.BoundedRequests(&pod.Spec)}}},
		},
		Status: corev1.PodStatus{Phase: pod.Status.Phase, Reason: pod.Status.Reason, PodIP: pod.Status.PodIP},
	}
	for _, name := range annotations {
		if value, ok := pod.Annotations[name]; ok {
			metav1.SetMetaDataAnnotation(&kept.ObjectMeta, name, value)
		}
	}
	for _, c := range pod.Status.Conditions {
		switch {
		case c.Type == corev1.PodReady || c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse:
			kept.Status.Conditions = append(kept.Status.Conditions, c)
		case c.Type == corev1.PodScheduled:
			kept.Status.Conditions = append(kept.Status.Conditions,
				corev1.PodCondition{Type: c.Type, Status: c.Status, LastTransitionTime: c.LastTransitionTime})
		}
	}
	return kept
}

// IsOfBroker reports whether an event is about an object of the broker.
func IsOfBroker(e *corev1.Event) bool {
	of := &e.InvolvedObject
	return e.Namespace == NamespaceOfEvents && of.Namespace == "" && of.APIVersion == v1alpha1.GroupVersion.String()
}

// What is kept of a text of an event at most, in bytes: who writes events writes what they like.
const maxMessage, maxWord = 1 << 10, 253

// event keeps of an event what has happened to what, and when.
func event(o any) (any, error) {
	e, ok := o.(*corev1.Event)
	if !ok {
		return o, nil
	}
	word := func(text string) string { return strings.Clone(excerpt.Of(text, maxWord)) }
	return &corev1.Event{
		TypeMeta: e.TypeMeta,
		ObjectMeta: metav1.ObjectMeta{
			Name: e.Name, Namespace: e.Namespace, UID: e.UID, ResourceVersion: e.ResourceVersion, CreationTimestamp: e.CreationTimestamp,
		},
		InvolvedObject: corev1.ObjectReference{
			APIVersion: word(e.InvolvedObject.APIVersion), Kind: word(e.InvolvedObject.Kind), Namespace: word(e.InvolvedObject.Namespace),
			Name: word(e.InvolvedObject.Name),
		},
		Reason: word(e.Reason), Message: strings.Clone(excerpt.Of(e.Message, maxMessage)), Type: word(e.Type),
		Source: corev1.EventSource{Component: word(e.Source.Component)}, ReportingController: word(e.ReportingController),
		FirstTimestamp: e.FirstTimestamp, LastTimestamp: e.LastTimestamp, EventTime: e.EventTime, Count: e.Count, Series: e.Series,
	}, nil
}

// node drops the images that a node holds and its annotations, which change with every heartbeat of some network plugins. The taints stay
// whole, because they are written back.
func node(o any) (any, error) {
	if node, ok := o.(*corev1.Node); ok {
		node.Status.Images = nil
	}
	return Metadata(o)
}
