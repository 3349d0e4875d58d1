// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package outofband

import (
	"context"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v09 "github.com/capacitorset/liqo-broker/pkg/liqo/v09"
)

// askedAgain is how soon it is looked again whether a cluster with which nothing is shared still asks for something.
const askedAgain = 5 * time.Second

// Cleanup removes what contracts have left of a cluster with which nothing is shared any more: the other side may end its peering after
// this one has.
type Cleanup struct{ driver *Driver }

// NewCleanup returns Cleanup of a driver.
func NewCleanup(d *Driver) *Cleanup { return &Cleanup{driver: d} }

// Reconcile looks at a ForeignCluster. One that people have made, or that a contract needs, is left alone.
func (l *Cleanup) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	fc := &v09.ForeignCluster{}
	if err := l.driver.client.Get(ctx, req.NamespacedName, fc); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	shared := v09.Consumes(fc) || v09.Provides(fc) || v09.Outgoing(fc).Exists || v09.Incoming(fc).Exists
	if !ours(fc) || shared {
		return ctrl.Result{}, nil
	}
	switch asks, err := v09.AsksForResources(ctx, l.driver.client, fc); {
	case err != nil:
		return ctrl.Result{}, err
	case asks: // Until it asks no more, the record refuses it.
		return ctrl.Result{RequeueAfter: askedAgain}, nil
	}
	switch gone, err := l.driver.forgetCluster(ctx, v09.Identity(fc).ID, fc); {
	case apierrors.IsConflict(err): // A contract needs it again.
		return ctrl.Result{Requeue: true}, nil
	case err != nil || gone:
		return ctrl.Result{}, err
	}
	return ctrl.Result{RequeueAfter: askedAgain}, nil
}
