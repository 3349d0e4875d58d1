// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

// Package ipamguard decides who reaches Liqo's IPAM, which answers everybody:
// the virtual kubelets of this cluster, and nobody else.
//
// It knows pods and their addresses. How a port is closed to the others is the
// business of package nftables.
package ipamguard

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capacitorset/liqo-broker/pkg/core/podstate"
	"github.com/capacitorset/liqo-broker/pkg/liqo"
	v09 "github.com/capacitorset/liqo-broker/pkg/liqo/v09"
	"github.com/capacitorset/liqo-broker/pkg/wake"
)

// CacheOptions restricts a cache to what a [Guard] reads, and need not: it saves
// memory.
func CacheOptions() map[client.Object]cache.ByObject {
	return map[client.Object]cache.ByObject{
		&corev1.Pod{}:       {Label: v09.VirtualKubeletSelector(), Transform: keepAddress},
		&corev1.Namespace{}: {Label: liqo.TenantNamespaceSelector(), Transform: keepName},
	}
}

func keepAddress(object any) (any, error) {
	full, ok := object.(*corev1.Pod)
	if !ok {
		return object, nil
	}
	pod := &corev1.Pod{ObjectMeta: identity(full.ObjectMeta)}
	pod.DeletionTimestamp = full.DeletionTimestamp
	pod.Status.Phase, pod.Status.PodIP = full.Status.Phase, full.Status.PodIP
	return pod, nil
}

func keepName(object any) (any, error) {
	full, ok := object.(*corev1.Namespace)
	if !ok {
		return object, nil
	}
	return &corev1.Namespace{ObjectMeta: identity(full.ObjectMeta)}, nil
}

func identity(full metav1.ObjectMeta) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Namespace: full.Namespace, Name: full.Name, UID: full.UID, ResourceVersion: full.ResourceVersion, Labels: full.Labels,
	}
}

const (
	// Lifetime is how long what is installed should count: an address may pass to another
	// pod while the guard is not there.
	Lifetime = 15 * time.Minute
	// renewAfter leaves time for a guard that has to start again.
	renewAfter = 3 * time.Minute
)

// Guard keeps the sources of Liqo's IPAM the addresses of the virtual kubelets.
type Guard struct {
	objects cache.Cache
	always  []netip.Prefix
	install func(sources []netip.Prefix) error
	log     logr.Logger
	renew   time.Duration
	// stale is set when the sources may have changed.
	stale wake.Signal
}

// New returns a guard that reads from a cache with [CacheOptions]. Each time that
// the sources change, and well within each [Lifetime], it calls install with all of them:
// one for each virtual kubelet, and those that are always allowed.
func New(objects cache.Cache, always []netip.Prefix, install func(sources []netip.Prefix) error, log logr.Logger) *Guard {
	return &Guard{objects: objects, always: always, install: install, log: log, renew: renewAfter, stale: wake.New()}
}

// Run watches the virtual kubelets, and installs the sources when they are known,
// after each change and from time to time, until the context ends or something fails. What
// is installed then stays for its lifetime.
func (g *Guard) Run(ctx context.Context) error {
	if err := errors.Join(g.watch(ctx, &corev1.Namespace{}), g.watch(ctx, &corev1.Pod{})); err != nil {
		return err
	}
	if !g.objects.WaitForCacheSync(ctx) {
		return fmt.Errorf("read the virtual kubelets: %w", context.Cause(ctx))
	}
	renew := time.NewTicker(g.renew)
	defer renew.Stop()
	var installed []netip.Prefix
	for first, due := true, true; ; first = false {
		sources, err := g.sources(ctx)
		if err != nil {
			return err
		}
		changed := first || !slices.Equal(sources, installed)
		if changed || due {
			if err := g.install(sources); err != nil {
				return err
			}
			installed = sources
		}
		if changed {
			g.log.Info("Liqo's IPAM is open to these sources and closed to all others", "sources", sources)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-g.stale.Taken():
			due = false
		case <-renew.C:
			due = true
		}
	}
}

// watch marks the sources stale at each change of an object of a kind.
func (g *Guard) watch(ctx context.Context, kind client.Object) error {
	informer, err := g.objects.GetInformer(ctx, kind)
	if err != nil {
		return fmt.Errorf("watch %T: %w", kind, err)
	}
	_, err = informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
		AddFunc:    func(any) { g.stale.Set() },
		UpdateFunc: func(any, any) { g.stale.Set() },
		DeleteFunc: func(any) { g.stale.Set() },
	})
	if err != nil {
		return fmt.Errorf("watch %T: %w", kind, err)
	}
	return nil
}

// sources returns, in order, the addresses of the virtual kubelets and the
// prefixes that are always allowed.
func (g *Guard) sources(ctx context.Context) ([]netip.Prefix, error) {
	var tenants corev1.NamespaceList
	if err := g.objects.List(ctx, &tenants, client.MatchingLabelsSelector{Selector: liqo.TenantNamespaceSelector()}); err != nil {
		return nil, fmt.Errorf("list the tenant namespaces: %w", err)
	}
	sources := slices.Clone(g.always)
	for i := range tenants.Items {
		var kubelets corev1.PodList
		err := g.objects.List(ctx, &kubelets, client.InNamespace(tenants.Items[i].Name),
			client.MatchingLabelsSelector{Selector: v09.VirtualKubeletSelector()})
		if err != nil {
			return nil, fmt.Errorf("list the virtual kubelets: %w", err)
		}
		for j := range kubelets.Items {
			if address, ok := source(&kubelets.Items[j]); ok {
				sources = append(sources, address)
			}
		}
	}
	slices.SortFunc(sources, netip.Prefix.Compare)
	return slices.Compact(sources), nil
}

// source returns the address that is the pod's own. A pod that ends loses it
// here before another pod can get it.
func source(pod *corev1.Pod) (netip.Prefix, bool) {
	ended := pod.DeletionTimestamp != nil || podstate.Ended(pod)
	address, err := netip.ParseAddr(pod.Status.PodIP)
	if ended || err != nil || !address.Is4() {
		return netip.Prefix{}, false
	}
	return netip.PrefixFrom(address, address.BitLen()), true
}
