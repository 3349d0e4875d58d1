// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capacitorset/liqo-broker/pkg/api/v1alpha1"
	"github.com/capacitorset/liqo-broker/pkg/cached"
	"github.com/capacitorset/liqo-broker/pkg/controller/giveback"
	"github.com/capacitorset/liqo-broker/pkg/controller/inventory"
	"github.com/capacitorset/liqo-broker/pkg/controller/reports"
	"github.com/capacitorset/liqo-broker/pkg/liqo/line"
	"github.com/capacitorset/liqo-broker/pkg/shown"
)

// cacheOptions keep in memory only the objects that matter to the broker, and of them only what it reads.
// What is written for other programs is kept of one namespace; of none if it is empty. The kinds of a mere catalog are Kubernetes' and
// Liqo's alone: those of the broker need not be installed.
func cacheOptions(of line.Line, brokers bool, inventoryNamespace string) cache.Options {
	options := cached.Options(cached.ByBroker(of, giveback.AnnotationGiveBack))
	if brokers {
		options.ByObject[&v1alpha1.PlacementDecision{}] = cached.Decisions()
		options.ByObject[&v1alpha1.ProviderHistory{}] = cache.ByObject{Transform: cached.Without(shown.KeepWindows)}
	}
	if brokers && !of.HasPlugin() {
		options.ByObject[&corev1.ConfigMap{}] = reports.Cached()
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
