// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package outofband

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v09 "github.com/capacitorset/liqo-broker/pkg/liqo/v09"
)

// Tunnels have Liqo know at the end of each peering what it has to remove, so that the same clusters can peer again.
type Tunnels struct {
	client client.Client
}

// NewTunnels returns Tunnels. The client may read from a cache.
func NewTunnels(c client.Client) *Tunnels { return &Tunnels{client: c} }

// Reconcile looks at a TunnelEndpoint. Liqo's gateway also writes it: who comes second does it again.
func (t *Tunnels) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	tunnel := &v09.TunnelEndpoint{}
	if err := t.client.Get(ctx, req.NamespacedName, tunnel); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	before := client.MergeFromWithOptions(tunnel.DeepCopy(), client.MergeFromWithOptimisticLock{})
	if !v09.RememberTunnel(tunnel) {
		return ctrl.Result{}, nil
	}
	err := t.client.Status().Patch(ctx, tunnel, before)
	if apierrors.IsConflict(err) {
		return ctrl.Result{Requeue: true}, nil
	}
	if client.IgnoreNotFound(err) != nil {
		return ctrl.Result{}, fmt.Errorf("write what tunnel %s leads to: %w", req, err)
	}
	return ctrl.Result{}, nil
}
