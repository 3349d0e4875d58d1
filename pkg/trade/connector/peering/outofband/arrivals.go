// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package outofband

import (
	"context"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v09 "github.com/capacitorset/liqo-broker/pkg/liqo/v09"
)

// Arrivals notes that a cluster has come with what it was issued, and replaces this cluster's token when the other cluster has used it: the
// token opens more than one identity, and is good for one.
type Arrivals struct{ driver *Driver }

// NewArrivals returns Arrivals of a driver.
func NewArrivals(d *Driver) *Arrivals { return &Arrivals{driver: d} }

// Reconcile looks at a ForeignCluster. One that people have made is left alone.
func (a *Arrivals) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	d, fc := a.driver, &v09.ForeignCluster{}
	if err := d.client.Get(ctx, req.NamespacedName, fc); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	// Who asks for resources here has its identity here, and who has offered some has its own here too.
	incoming, outgoing := identified(fc), v09.Outgoing(fc).Established
	if !incoming && !outgoing {
		return ctrl.Result{}, nil
	}
	secret, err := d.token(ctx)
	if err != nil {
		return ctrl.Result{}, err
	}
	id := v09.Identity(fc).ID
	used := incoming && slices.Contains(listed(secret, annotationIssued), id) ||
		outgoing && slices.Contains(listed(secret, annotationTold), id)
	if !used {
		return ctrl.Result{}, nil
	}
	if came(fc, secret) && !sold(fc) {
		err = d.sell(ctx, fc)
	}
	if err == nil {
		err = d.spend(ctx, secret, id)
	}
	if apierrors.IsConflict(err) {
		return ctrl.Result{Requeue: true}, nil
	}
	return ctrl.Result{}, client.IgnoreNotFound(err)
}
