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
	v09 "github.com/capacitorset/liqo-broker/pkg/liqo/v09"
)

// clusters are those that this one knows, read from a cache once after each change: Liqo asks for many, one by one. They can be used
// concurrently.
type clusters struct {
	reader client.Reader

	mu    sync.Mutex
	known map[cluster.ID]bool // Nil if one has changed.
}

// get returns them, and whether Liqo is told to answer them. The map is not to be changed.
func (c *clusters) get(ctx context.Context) (map[cluster.ID]bool, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.known == nil {
		known, err := v09.Clusters(ctx, c.reader)
		if err != nil {
			return nil, err
		}
		c.known = known
	}
	return c.known, nil
}

// followClusters returns the clusters that a reader knows, and calls changed when one comes or goes, or people let one in, or no longer.
func followClusters(ctx context.Context, informers cache.Informers, reader client.Reader, changed func()) (*clusters, error) {
	informer, err := informers.GetInformer(ctx, &v09.ForeignCluster{})
	if err != nil {
		return nil, fmt.Errorf("watch the foreign clusters: %w", err)
	}
	c := &clusters{reader: reader}
	tell := func(any) {
		c.mu.Lock()
		c.known = nil
		c.mu.Unlock()
		changed()
	}
	_, err = informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{AddFunc: tell, DeleteFunc: tell,
		UpdateFunc: func(before, after any) {
			was, _ := before.(*v09.ForeignCluster)
			is, _ := after.(*v09.ForeignCluster)
			if was == nil || is == nil || v09.Provides(was) != v09.Provides(is) || v09.Identity(was) != v09.Identity(is) {
				tell(after)
			}
		}})
	if err != nil {
		return nil, fmt.Errorf("follow the foreign clusters: %w", err)
	}
	return c, nil
}
