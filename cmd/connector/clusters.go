// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"sync"

	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
	"github.com/capacitorset/liqo-broker/pkg/liqo"
)

// clusters are those that this one knows, read from a cache once after each change: Liqo asks for many, one by one. The zero value has read none. It
// can be used concurrently.
type clusters struct {
	mu    sync.Mutex
	known map[cluster.ID]bool // Nil if one has changed.
}

// get returns them, and whether Liqo is told to answer them. The map is not to be changed.
func (c *clusters) get(ctx context.Context, reader client.Reader) (map[cluster.ID]bool, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.known == nil {
		known, err := liqo.Clusters(ctx, reader)
		if err != nil {
			return nil, err
		}
		c.known = known
	}
	return c.known, nil
}

// follow tells when a cluster comes or goes, or people let one in, or no longer. It must be called before get.
func (c *clusters) follow(ctx context.Context, informers cache.Informers, changed func()) error {
	informer, err := informers.GetInformer(ctx, &liqo.ForeignCluster{})
	if err != nil {
		return fmt.Errorf("watch the foreign clusters: %w", err)
	}
	tell := func(any) {
		c.mu.Lock()
		c.known = nil
		c.mu.Unlock()
		changed()
	}
	_, err = informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{AddFunc: tell, DeleteFunc: tell, UpdateFunc: func(before, after any) {
		was, _ := before.(*liqo.ForeignCluster)
		is, _ := after.(*liqo.ForeignCluster)
		if was == nil || is == nil || liqo.Provides(was) != liqo.Provides(is) || liqo.Identity(was) != liqo.Identity(is) {
			tell(after)
		}
	}})
	if err != nil {
		return fmt.Errorf("follow the foreign clusters: %w", err)
	}
	return nil
}
