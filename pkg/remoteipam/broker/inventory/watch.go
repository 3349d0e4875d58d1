// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package inventory

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capacitorset/liqo-broker/pkg/api/v1alpha1"
	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
	"github.com/capacitorset/liqo-broker/pkg/core/podstate"
	"github.com/capacitorset/liqo-broker/pkg/liqo"
	v09 "github.com/capacitorset/liqo-broker/pkg/liqo/v09"
	"github.com/capacitorset/liqo-broker/pkg/version"
)

// CacheOptions restricts a cache to what [Watch] reads: of all pods only the
// offloaded ones, and of these and of EndpointSlices only addresses.
func CacheOptions() map[client.Object]cache.ByObject {
	return map[client.Object]cache.ByObject{
		&corev1.Pod{}:                {Label: liqo.ShadowPodSelector(), Transform: keepPodAddresses},
		&discoveryv1.EndpointSlice{}: {Transform: keepEndpointAddresses},
		&corev1.Namespace{}:          {},
		&v09.NamespaceMap{}:          {},
		&v09.TunnelEndpoint{}:        {},
		&v1alpha1.Consumer{}:         {},
		&v1alpha1.Provider{}:         {Transform: keepSwitch},
	}
}

// maxAliases bounds the host aliases of a pod that are looked at. Liqo gives it one for
// its API server; the others are its owner's.
const maxAliases = 8

// keepPodAddresses keeps the address of a pod and those of its API server. A pod that has
// ended has none: its address may be another pod's already.
func keepPodAddresses(object any) (any, error) {
	full, ok := object.(*corev1.Pod)
	if !ok {
		return object, nil
	}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Namespace: full.Namespace, Name: full.Name, UID: full.UID, ResourceVersion: full.ResourceVersion,
	}}
	if podstate.Ended(full) {
		return pod, nil
	}
	pod.Status.PodIP = full.Status.PodIP
	for i := range full.Spec.HostAliases {
		alias := &full.Spec.HostAliases[i]
		if slices.Contains(alias.Hostnames, v09.APIServerAlias) && len(pod.Spec.HostAliases) < maxAliases {
			pod.Spec.HostAliases = append(pod.Spec.HostAliases, corev1.HostAlias{IP: alias.IP})
		}
	}
	return pod, nil
}

// keepSwitch keeps what reports whether pods can be on a provider, and what that calls itself.
func keepSwitch(object any) (any, error) {
	full, ok := object.(*v1alpha1.Provider)
	if !ok {
		return object, nil
	}
	provider := &v1alpha1.Provider{
		ObjectMeta: metav1.ObjectMeta{Name: full.Name, UID: full.UID, ResourceVersion: full.ResourceVersion, Generation: full.Generation},
		Spec:       v1alpha1.ProviderSpec{Scheduling: full.Spec.Scheduling},
		Status:     v1alpha1.ProviderStatus{ClusterName: full.Status.ClusterName},
	}
	if draining := meta.FindStatusCondition(full.Status.Conditions, v1alpha1.ConditionDraining); draining != nil {
		provider.Status.Conditions = []metav1.Condition{*draining}
	}
	return provider, nil
}

func keepEndpointAddresses(object any) (any, error) {
	full, ok := object.(*discoveryv1.EndpointSlice)
	if !ok {
		return object, nil
	}
	slice := &discoveryv1.EndpointSlice{ObjectMeta: metav1.ObjectMeta{
		Namespace: full.Namespace, Name: full.Name, UID: full.UID, ResourceVersion: full.ResourceVersion,
	}}
	for i := range full.Endpoints {
		slice.Endpoints = append(slice.Endpoints, discoveryv1.Endpoint{Addresses: full.Endpoints[i].Addresses})
	}
	return slice, nil
}

// Watch keeps a store up to date from a cache. It returns after the store holds
// everything that the cache read at first; later changes follow as long as the
// cache runs. Objects that cannot be understood are logged and left out.
func Watch(ctx context.Context, objects cache.Cache, store *Store, log logr.Logger) error {
	f := newFollower(store, log)
	return errors.Join(
		follow(ctx, objects, f.setTunnel, f.deleteTunnel),
		follow(ctx, objects, f.setProvider, f.deleteProvider),
		follow(ctx, objects, f.setConsumer, f.deleteConsumer),
		follow(ctx, objects, f.setNamespace, f.deleteNamespace),
		follow(ctx, objects, f.setNamespaceMap, f.deleteNamespaceMap),
		follow(ctx, objects, f.setPod, f.deletePod),
		follow(ctx, objects, f.setEndpoints, f.deleteEndpoints),
	)
}

// follow calls set for each object of a kind that exists or changes, and remove
// for each that is deleted. It returns after set was called for those that exist.
func follow[T any, P interface {
	*T
	client.Object
}](ctx context.Context, objects cache.Cache, set, remove func(P)) error {
	informer, err := objects.GetInformer(ctx, P(new(T)))
	if meta.IsNoMatchError(err) {
		return fmt.Errorf("the API server does not know %T: install Liqo and then the broker with kubectl apply %s", *new(T),
			version.Applied("deploy"))
	}
	if err != nil {
		return fmt.Errorf("watch %T: %w", *new(T), err)
	}
	call := func(f func(P)) func(any) {
		return func(object any) {
			if unknown, ok := object.(toolscache.DeletedFinalStateUnknown); ok {
				object = unknown.Obj
			}
			if typed, ok := object.(P); ok {
				f(typed)
			}
		}
	}
	changed := call(set)
	registration, err := informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
		AddFunc:    changed,
		UpdateFunc: func(_, updated any) { changed(updated) },
		DeleteFunc: call(remove),
	})
	if err != nil {
		return fmt.Errorf("watch %T: %w", *new(T), err)
	}
	if !toolscache.WaitForCacheSync(ctx.Done(), registration.HasSynced) {
		return fmt.Errorf("watch %T: %w", *new(T), context.Cause(ctx))
	}
	return nil
}

// follower translates events into changes of the store.
type follower struct {
	store   *Store
	log     logr.Logger
	tenants *tenants
}

func newFollower(store *Store, log logr.Logger) follower {
	return follower{store: store, log: log, tenants: newTenants(store, log)}
}

func (f follower) setTunnel(tunnel *v09.TunnelEndpoint) { f.tenants.setTunnel(tunnel) }

func (f follower) deleteTunnel(tunnel *v09.TunnelEndpoint) { f.tenants.deleteTunnel(tunnel) }

func (f follower) setProvider(provider *v1alpha1.Provider) {
	if provider.MayHavePods() {
		f.store.SetProvider(cluster.ID(provider.Name), provider.Status.ClusterName)
	} else {
		f.deleteProvider(provider)
	}
}

func (f follower) deleteProvider(provider *v1alpha1.Provider) {
	f.store.DeleteProvider(cluster.ID(provider.Name))
}

// setConsumer leaves out a cluster that does not peer with the broker at present: its
// certificate outlasts the peering.
func (f follower) setConsumer(consumer *v1alpha1.Consumer) {
	if consumer.IsServed() {
		f.store.SetConsumer(cluster.ID(consumer.Name), consumer.Status.Mode == v1alpha1.ModeOrchestrated)
	} else {
		f.deleteConsumer(consumer)
	}
}

func (f follower) deleteConsumer(consumer *v1alpha1.Consumer) {
	f.store.DeleteConsumer(cluster.ID(consumer.Name))
}

func (f follower) setNamespace(namespace *corev1.Namespace) {
	if id, ok := liqo.TwinOf(namespace); ok {
		f.store.SetTwin(namespace.Name, id)
	} else {
		f.store.DeleteTwin(namespace.Name)
	}
	id, _ := liqo.TenantOf(namespace)
	f.tenants.setTenant(namespace.Name, id)
}

func (f follower) deleteNamespace(namespace *corev1.Namespace) {
	f.store.DeleteTwin(namespace.Name)
	f.tenants.setTenant(namespace.Name, "")
}

func (f follower) setPod(pod *corev1.Pod) {
	// A pod that has no address yet has an empty one.
	address, err := netip.ParseAddr(pod.Status.PodIP)
	if err != nil {
		address = netip.Addr{}
	}
	f.store.SetPod(pod.Namespace, pod.Name, address)
	var aliases []netip.Addr
	for i := range pod.Spec.HostAliases {
		// The pod's owner writes them.
		if alias, err := netip.ParseAddr(pod.Spec.HostAliases[i].IP); err == nil {
			aliases = append(aliases, alias)
		}
	}
	f.store.SetAliases(pod.Namespace, pod.Name, aliases)
}

func (f follower) deletePod(pod *corev1.Pod) {
	f.store.SetPod(pod.Namespace, pod.Name, netip.Addr{})
	f.store.SetAliases(pod.Namespace, pod.Name, nil)
}

func (f follower) setNamespaceMap(namespaces *v09.NamespaceMap) { f.tenants.setMap(namespaces) }

func (f follower) deleteNamespaceMap(namespaces *v09.NamespaceMap) { f.tenants.deleteMap(namespaces) }

func (f follower) setEndpoints(slice *discoveryv1.EndpointSlice) {
	var addresses []netip.Addr
	for i := range slice.Endpoints {
		for _, text := range slice.Endpoints[i].Addresses {
			// Slices may hold host names as well.
			if address, err := netip.ParseAddr(text); err == nil {
				addresses = append(addresses, address)
			}
		}
	}
	f.store.SetEndpoints(slice.Namespace, slice.Name, addresses)
}

func (f follower) deleteEndpoints(slice *discoveryv1.EndpointSlice) {
	f.store.SetEndpoints(slice.Namespace, slice.Name, nil)
}
