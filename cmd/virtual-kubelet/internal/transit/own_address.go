// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package transit

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/go-logr/logr"
	"github.com/liqotech/liqo/pkg/virtualKubelet/reflection/manager"
	"github.com/liqotech/liqo/pkg/virtualKubelet/reflection/options"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/kubernetes"
	corev1listers "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/capacitorset/liqo-broker/pkg/core/podstate"
)

// AnnotationPodIP is on a pod that asks for it, with the address under which the cluster
// that it belongs to reaches it; empty as long as it has none. A pod asks by referring to
// it in the downward API, or by having it.
//
// Annotations reach an offloaded pod, and changes of them do while it runs
// (liqo/pkg/liqo-controller-manager/shadowpod-controller@v0.9.4); status.podIP, which the
// downward API offers as well, is its address where it runs.
const AnnotationPodIP = "brokering.liqo.io/pod-ip"

// podIPField is how the downward API calls the annotation.
const podIPField = "metadata.annotations['" + AnnotationPodIP + "']"

// OwnAddress is a reflector of pods that writes [AnnotationPodIP] on the pods of this
// cluster that ask for it. Pods in transit belong to another cluster, which does it.
type OwnAddress struct {
	manager.Reflector

	podQueue

	log logr.Logger
}

// NewOwnAddress returns a reflector of pods that reflects as another one does, and writes
// [AnnotationPodIP].
func NewOwnAddress(reflector manager.Reflector, log logr.Logger) *OwnAddress {
	return &OwnAddress{Reflector: reflector, log: log}
}

// Start begins the reflection.
func (o *OwnAddress) Start(ctx context.Context, opts *options.ReflectorOpts) {
	pods, client := opts.LocalPodInformer.Lister(), opts.LocalClient
	o.start(ctx, func(ctx context.Context, name cache.ObjectName) error {
		return writeOwnAddress(ctx, pods, client, name)
	}, func(err error) { o.log.Error(err, "Cannot tell a pod its address") })
	enqueue := func(object any) {
		if pod, ok := object.(*corev1.Pod); ok && lacksOwnAddress(pod) {
			o.add(cache.MetaObjectToName(pod))
		}
	}
	_, err := opts.LocalPodInformer.Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: enqueue, UpdateFunc: func(_, updated any) { enqueue(updated) },
	})
	utilruntime.Must(err) // It fails only for an informer that has ended.
	o.Reflector.Start(ctx, opts)
}

// writeOwnAddress tells a pod its address if it lacks it.
func writeOwnAddress(ctx context.Context, pods corev1listers.PodLister, client kubernetes.Interface, name cache.ObjectName) error {
	pod, err := pods.Pods(name.Namespace).Get(name.Name)
	switch {
	case apierrors.IsNotFound(err):
		return nil
	case err != nil:
		return fmt.Errorf("find pod %s: %w", name, err)
	case !lacksOwnAddress(pod):
		return nil
	}
	// With the UID, it is not another pod of the name that is told.
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"uid": pod.UID, "annotations": map[string]string{AnnotationPodIP: pod.Status.PodIP},
	}})
	if err != nil {
		return fmt.Errorf("write a patch of pod %s: %w", name, err)
	}
	_, err = client.CoreV1().Pods(name.Namespace).Patch(ctx, name.Name, types.MergePatchType, patch, metav1.PatchOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("annotate pod %s with its address: %w", name, err)
	}
	return nil
}

// lacksOwnAddress reports whether a pod asks for its address and has not the right one.
func lacksOwnAddress(pod *corev1.Pod) bool {
	if _, transit := inTransit(pod); transit || podstate.Ended(pod) || !pod.DeletionTimestamp.IsZero() {
		return false
	}
	told, has := pod.Annotations[AnnotationPodIP]
	switch {
	case has:
		return told != pod.Status.PodIP
	case pod.Status.PodIP == "":
		return false
	}
	return asksOwnAddress(&pod.Spec)
}

// asksOwnAddress reports whether a pod refers to the annotation in the downward API.
func asksOwnAddress(spec *corev1.PodSpec) bool {
	refers := func(field *corev1.ObjectFieldSelector) bool { return field != nil && field.FieldPath == podIPField }
	inFile := func(file corev1.DownwardAPIVolumeFile) bool { return refers(file.FieldRef) }
	inContainer := func(container corev1.Container) bool {
		return slices.ContainsFunc(container.Env, func(variable corev1.EnvVar) bool {
			return variable.ValueFrom != nil && refers(variable.ValueFrom.FieldRef)
		})
	}
	return slices.ContainsFunc(spec.InitContainers, inContainer) || slices.ContainsFunc(spec.Containers, inContainer) ||
		slices.ContainsFunc(spec.Volumes, func(volume corev1.Volume) bool {
			if volume.DownwardAPI != nil {
				return slices.ContainsFunc(volume.DownwardAPI.Items, inFile)
			}
			return volume.Projected != nil && slices.ContainsFunc(volume.Projected.Sources, func(source corev1.VolumeProjection) bool {
				return source.DownwardAPI != nil && slices.ContainsFunc(source.DownwardAPI.Items, inFile)
			})
		})
}
