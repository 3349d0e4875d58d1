// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capacitorset/liqo-broker/pkg/api/v1alpha1"
	"github.com/capacitorset/liqo-broker/pkg/controller/giveback"
	"github.com/capacitorset/liqo-broker/pkg/controller/inventory"
	"github.com/capacitorset/liqo-broker/pkg/controller/reports"
	"github.com/capacitorset/liqo-broker/pkg/core/capacity"
	"github.com/capacitorset/liqo-broker/pkg/daemon"
	"github.com/capacitorset/liqo-broker/pkg/liqo"
	"github.com/capacitorset/liqo-broker/pkg/liqo/line"
)

// cacheOptions keep in memory only the objects that matter to the broker, and of
// them only what it reads: a cluster's pods and nodes would be most of its memory.
// What is written for other programs is kept of one namespace; of none if it is empty. The kinds of a mere catalog are Kubernetes' and
// Liqo's alone: those of the broker need not be installed.
func cacheOptions(of line.Line, brokers bool, inventoryNamespace string) cache.Options {
	compactor := &liqo.Compactor{}
	options := cache.Options{
		DefaultTransform: daemon.Strip,
		ByObject: map[client.Object]cache.ByObject{
			&corev1.Node{}:      {Label: labels.SelectorFromSet(labels.Set{liqo.LabelNodeType: liqo.NodeTypeVirtual}), Transform: stripNode},
			&corev1.Pod{}:       {Label: liqo.ShadowPodSelector(), Transform: stripPod(compactor)},
			&corev1.Namespace{}: {Label: liqo.PeerNamespaceSelector(), Transform: daemon.Strip},
		},
	}
	if brokers {
		// Nobody changes one that was read, and each may name a thousand providers.
		options.ByObject[&v1alpha1.PlacementDecision{}] = cache.ByObject{Transform: stripDecision(compactor), UnsafeDisableDeepCopy: new(true)}
	}
	if brokers && !of.HasPlugin() {
		options.ByObject[&corev1.ConfigMap{}] = reports.Cached()
	}
	for object, drop := range of.Dropped(compactor) {
		options.ByObject[object] = cache.ByObject{Transform: daemon.Without(drop)}
	}
	if inventoryNamespace != "" {
		for _, object := range inventory.Written() {
			options.ByObject[object] = cache.ByObject{Namespaces: map[string]cache.Config{inventoryNamespace: {}}}
		}
	}
	return options
}

// uncached are read one by one and seldom, and never watched. What consumers report with Liqo 1.x is in the cache, and read from that.
func uncached() *client.CacheOptions {
	return &client.CacheOptions{DisableFor: []client.Object{&corev1.ConfigMap{}}}
}

// stripMetadata drops the annotations too.
func stripMetadata(o any) (any, error) {
	if object, ok := o.(metav1.Object); ok {
		object.SetManagedFields(nil)
		object.SetAnnotations(nil)
	}
	return o, nil
}

// stripDecision lets the decisions for all consumers share the names of the providers.
func stripDecision(compactor *liqo.Compactor) toolscache.TransformFunc {
	return daemon.Without(func(decision *v1alpha1.PlacementDecision) {
		for i := range decision.Chosen {
			c := &decision.Chosen[i]
			c.ID, c.Name = compactor.Name(c.ID), compactor.Name(c.Name)
		}
	})
}

// stripPod keeps of a pod what keptPod returns.
func stripPod(compactor *liqo.Compactor) toolscache.TransformFunc {
	return func(o any) (any, error) {
		pod, ok := o.(*corev1.Pod)
		if !ok {
			return o, nil
		}
		kept := keptPod(pod)
		compactor.Pod(kept)
		return kept, nil
	}
}

// keptPod returns where a pod is and since when, where it may be, how it does, and what it requests: all
// of that in one container, instead of the many fields of each.
func keptPod(pod *corev1.Pod) *corev1.Pod {
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
	if wish, ok := pod.Annotations[giveback.AnnotationGiveBack]; ok {
		kept.Annotations = map[string]string{giveback.AnnotationGiveBack: wish}
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

// stripNode drops the images that a node holds and its annotations, which change
// with every heartbeat of some network plugins. The taints stay whole, because
// they are written back.
func stripNode(o any) (any, error) {
	if node, ok := o.(*corev1.Node); ok {
		node.Status.Images = nil
	}
	return stripMetadata(o)
}
