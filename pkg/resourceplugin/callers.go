// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package resourceplugin

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corev1informers "k8s.io/client-go/informers/core/v1"
	"k8s.io/client-go/kubernetes"
	toolscache "k8s.io/client-go/tools/cache"

	"github.com/capacitorset/liqo-broker/pkg/core/podstate"
	v09 "github.com/capacitorset/liqo-broker/pkg/liqo/v09"
)

// WatchCallers tells which addresses the pods of Liqo's controller manager have in a
// namespace, when they are known and after each change, until ctx ends. It reads no other
// pods: whoever may make pods in the namespace of Liqo has all of Liqo's rights.
func WatchCallers(ctx context.Context, client kubernetes.Interface, namespace string, allow func([]netip.Addr)) error {
	informer := corev1informers.NewFilteredPodInformer(client, namespace, 0, toolscache.Indexers{},
		func(options *metav1.ListOptions) { options.LabelSelector = v09.ControllerManagerSelector().String() })
	tell := func() { allow(addresses(informer.GetStore().List())) }
	registration, err := informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
		// What was there at first is told of once, when all of it is known.
		AddFunc:    func(any) { tellIf(informer.HasSynced, tell) },
		UpdateFunc: func(any, any) { tellIf(informer.HasSynced, tell) },
		DeleteFunc: func(any) { tellIf(informer.HasSynced, tell) },
	})
	if err := errors.Join(err, informer.SetTransform(keepAddresses)); err != nil {
		return fmt.Errorf("watch the pods of Liqo's controller manager: %w", err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		informer.Run(ctx.Done())
	}()
	if toolscache.WaitForCacheSync(ctx.Done(), registration.HasSynced) {
		tell()
	}
	<-ended
	return nil
}

func tellIf(known func() bool, tell func()) {
	if known() {
		tell()
	}
}

func keepAddresses(object any) (any, error) {
	full, ok := object.(*corev1.Pod)
	if !ok {
		return object, nil
	}
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: full.Namespace, Name: full.Name, UID: full.UID, ResourceVersion: full.ResourceVersion,
			DeletionTimestamp: full.DeletionTimestamp,
		},
		Status: corev1.PodStatus{Phase: full.Status.Phase, PodIP: full.Status.PodIP, PodIPs: full.Status.PodIPs},
	}, nil
}

// addresses returns those of the pods. A pod that ends loses them here before another one
// can get them.
func addresses(pods []any) []netip.Addr {
	var found []netip.Addr
	for _, object := range pods {
		pod, ok := object.(*corev1.Pod)
		if !ok || pod.DeletionTimestamp != nil || podstate.Ended(pod) {
			continue
		}
		for _, ip := range append(slices.Clone(pod.Status.PodIPs), corev1.PodIP{IP: pod.Status.PodIP}) {
			if address, err := netip.ParseAddr(ip.IP); err == nil {
				found = append(found, address)
			}
		}
	}
	return found
}
