// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package inventory

import (
	"context"
	"fmt"
	"net/netip"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capacitorset/liqo-broker/pkg/api/v1alpha1"
	"github.com/capacitorset/liqo-broker/pkg/cluster"
	"github.com/capacitorset/liqo-broker/pkg/liqo"
)

// CacheOptions restricts a cache to what [Watch] reads: of all pods only the
// offloaded ones, and of these only the address.
func CacheOptions() map[client.Object]cache.ByObject {
	return map[client.Object]cache.ByObject{
		&corev1.Pod{}:          {Label: liqo.ShadowPodSelector(), Transform: keepPodAddress},
		&corev1.Namespace{}:    {},
		&liqo.TunnelEndpoint{}: {},
		&v1alpha1.Consumer{}:   {},
	}
}

func keepPodAddress(object any) (any, error) {
	full, ok := object.(*corev1.Pod)
	if !ok {
		return object, nil
	}
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: full.Namespace, Name: full.Name, UID: full.UID, ResourceVersion: full.ResourceVersion,
		},
		Status: corev1.PodStatus{PodIP: full.Status.PodIP},
	}, nil
}

// Watch keeps a store up to date from a cache. It returns after the store holds
// everything that the cache read at first; later changes follow as long as the
// cache runs. Objects that cannot be understood are logged and left out.
func Watch(ctx context.Context, objects cache.Cache, store *Store, log logr.Logger) error {
	f := follower{store: store, log: log}
	for _, watch := range []struct {
		object client.Object
		set    func(any)
		remove func(any)
	}{
		{&liqo.TunnelEndpoint{}, f.setTunnel, f.deleteTunnel},
		{&v1alpha1.Consumer{}, f.setConsumer, f.deleteConsumer},
		{&corev1.Namespace{}, f.setNamespace, f.deleteNamespace},
		{&corev1.Pod{}, f.setPod, f.deletePod},
	} {
		informer, err := objects.GetInformer(ctx, watch.object)
		if err != nil {
			return fmt.Errorf("watch %T: %w", watch.object, err)
		}
		registration, err := informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
			AddFunc:    watch.set,
			UpdateFunc: func(_, updated any) { watch.set(updated) },
			DeleteFunc: func(deleted any) {
				if unknown, ok := deleted.(toolscache.DeletedFinalStateUnknown); ok {
					deleted = unknown.Obj
				}
				watch.remove(deleted)
			},
		})
		if err != nil {
			return fmt.Errorf("watch %T: %w", watch.object, err)
		}
		if !toolscache.WaitForCacheSync(ctx.Done(), registration.HasSynced) {
			return fmt.Errorf("watch %T: %w", watch.object, context.Cause(ctx))
		}
	}
	return nil
}

// follower translates events into changes of the store.
type follower struct {
	store *Store
	log   logr.Logger
}

func (f follower) setTunnel(object any) {
	tunnel := object.(*liqo.TunnelEndpoint)
	id, peer, err := liqo.TunnelPeer(tunnel)
	if err != nil {
		f.log.V(1).Info("Tunnel endpoint left out", "tunnelEndpoint", client.ObjectKeyFromObject(tunnel), "reason", err.Error())
		return
	}
	f.store.SetPeer(id, peer)
}

func (f follower) deleteTunnel(object any) {
	tunnel := object.(*liqo.TunnelEndpoint)
	f.store.DeletePeer(cluster.ID(tunnel.Spec.ClusterIdentity.ClusterID))
}

func (f follower) setConsumer(object any) {
	consumer := object.(*v1alpha1.Consumer)
	f.store.SetConsumer(cluster.ID(consumer.Name), consumer.Status.Mode == v1alpha1.ModeOrchestrated)
}

func (f follower) deleteConsumer(object any) {
	f.store.DeleteConsumer(cluster.ID(object.(*v1alpha1.Consumer).Name))
}

func (f follower) setNamespace(object any) {
	namespace := object.(*corev1.Namespace)
	if id, ok := liqo.TwinOf(namespace); ok {
		f.store.SetTwin(namespace.Name, id)
	} else {
		f.store.DeleteTwin(namespace.Name)
	}
}

func (f follower) deleteNamespace(object any) {
	f.store.DeleteTwin(object.(*corev1.Namespace).Name)
}

func (f follower) setPod(object any) {
	pod := object.(*corev1.Pod)
	// A pod that has no address yet has an empty one.
	address, err := netip.ParseAddr(pod.Status.PodIP)
	if err != nil {
		address = netip.Addr{}
	}
	f.store.SetPod(pod.Namespace, pod.Name, address)
}

func (f follower) deletePod(object any) {
	pod := object.(*corev1.Pod)
	f.store.DeletePod(pod.Namespace, pod.Name)
}
