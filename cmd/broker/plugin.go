// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/client-go/kubernetes"

	"github.com/capacitorset/liqo-broker/pkg/resourceplugin"
	"github.com/capacitorset/liqo-broker/pkg/serving/gate"
)

// callerPatience is how long the address of a caller may be unknown. A pod can connect a
// second or two before its address is in its status.
const callerPatience = 5 * time.Second

// runPlugin serves the resource plugin, from the first moment, to Liqo's controller
// manager and to nobody else. While the API server cannot be asked who that is, callers
// are connected and not heard. Where Liqo asks no plugin the port closes as soon as that is known.
func (b *broker) runPlugin(ctx context.Context, listener net.Listener) error {
	client, err := kubernetes.NewForConfig(b.cfg.rest)
	if err != nil {
		return errors.Join(fmt.Errorf("reach the API server %s: %w", b.cfg.rest.Host, err), listener.Close())
	}
	callers := gate.New(b.cfg.pluginAllow, b.peers.Source, callerPatience)
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error {
		if with, err := b.line.Get(ctx); err == nil && !with.HasPlugin() {
			stop()
		}
		return nil
	})
	group.Go(func() error {
		return resourceplugin.WatchCallers(ctx, client, b.cfg.liqoNamespace, callers.Allow)
	})
	group.Go(func() error { return b.plugin.Run(ctx, callers.Listener(listener)) })
	return group.Wait()
}
