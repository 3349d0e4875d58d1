// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package sales

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	corev1 "k8s.io/api/core/v1"

	"github.com/capacitorset/liqo-broker/pkg/api/connectorv1alpha1"
	"github.com/capacitorset/liqo-broker/pkg/api/v1alpha1"
	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
	"github.com/capacitorset/liqo-broker/pkg/core/contract"
)

// Consumers grants by the Consumers of the broker that runs on this cluster, in place of a resource plugin: what a cluster has bought is
// reserved for it, and is its limit. A Consumer without any contract is left as people want it.
type Consumers struct {
	client client.Client
	reader client.Reader
	peer   InTurn
}

// InTurn peers with the cluster of a buyer that has peered with this one, and reports false while it has not.
type InTurn func(ctx context.Context, buyer cluster.ID) (done bool, err error)

// peerAgain is how soon it is looked again whether a buyer has peered.
const peerAgain = 3 * time.Second

// NewConsumers returns Consumers. The reader reads from the API server; the broker peers with its buyers in turn, so that its remote IPAM
// arrives there.
func NewConsumers(c client.Client, reader client.Reader, peer InTurn) *Consumers {
	return &Consumers{client: c, reader: reader, peer: peer}
}

// Setup registers the controller with a manager. It looks at a Consumer when one of its contracts changes, or somebody else changes it.
func (c *Consumers) Setup(mgr ctrl.Manager) error {
	err := ctrl.NewControllerManagedBy(mgr).Named("consumer-of-sales").For(&v1alpha1.Consumer{}).
		Watches(&connectorv1alpha1.Sale{}, handler.EnqueueRequestsFromMapFunc(func(_ context.Context, object client.Object) []reconcile.Request {
			sale, ok := object.(*connectorv1alpha1.Sale)
			if !ok || sale.Status.Cluster.ID == "" {
				return nil
			}
			return []reconcile.Request{{NamespacedName: types.NamespacedName{Name: sale.Status.Cluster.ID}}}
		})).Complete(c)
	if err != nil {
		return fmt.Errorf("set up the controller of consumers with contracts: %w", err)
	}
	return nil
}

// Reconcile grants a Consumer what its contracts say. One that has none yet is made before its cluster peers, so that the broker never gives
// it what it gives to anybody.
func (c *Consumers) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	all, err := list(ctx, c.reader)
	if err != nil {
		return ctrl.Result{}, err
	}
	id := cluster.ID(req.Name)
	of, bought := all.signed(id)
	if !bought {
		return ctrl.Result{}, nil
	}
	mode, err := c.mode(ctx, of.Offer)
	if err != nil {
		return ctrl.Result{}, err
	}
	granted, inForce := all.granted(id)
	consumer := &v1alpha1.Consumer{}
	err = c.reader.Get(ctx, req.NamespacedName, consumer)
	missing := apierrors.IsNotFound(err)
	if err != nil && !missing {
		return ctrl.Result{}, fmt.Errorf("get consumer %s: %w", req.Name, err)
	}
	before := consumer.DeepCopy()
	consumer.Spec.Scheduling = v1alpha1.ConsumerSuspended
	if inForce {
		consumer.Spec.Scheduling = v1alpha1.ConsumerActive
	}
	if mode != "" {
		consumer.Spec.Mode = mode
	}
	// A limit of zero for what every pod needs: a Consumer without a limit could have all.
	limit := v1alpha1.Quantities{corev1.ResourceCPU: resource.Quantity{}, corev1.ResourceMemory: resource.Quantity{}, corev1.ResourcePods: resource.Quantity{}}
	maps.Copy(limit, v1alpha1.Quantities(granted))
	consumer.Spec.Capacity.Limit, consumer.Spec.Capacity.Reserved = limit, v1alpha1.Quantities(granted)
	switch {
	case missing:
		consumer.ObjectMeta = metav1.ObjectMeta{Name: req.Name}
		err = c.client.Create(ctx, consumer)
	case !equality.Semantic.DeepEqual(before.Spec, consumer.Spec):
		err = c.client.Patch(ctx, consumer, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
	}
	switch {
	case apierrors.IsConflict(err), apierrors.IsAlreadyExists(err):
		return ctrl.Result{Requeue: true}, nil
	case err != nil:
		return ctrl.Result{}, fmt.Errorf("grant consumer %s what it has bought: %w", req.Name, err)
	case !inForce:
		return ctrl.Result{}, nil
	}
	switch done, err := c.peer(ctx, id); {
	case err != nil:
		return ctrl.Result{}, fmt.Errorf("peer in turn with consumer %s: %w", req.Name, err)
	case !done:
		return ctrl.Result{RequeueAfter: peerAgain}, nil
	}
	return ctrl.Result{}, nil
}

// mode returns how an offer says that the broker serves its buyers; empty if it does not say, or is gone: then it stays as it is.
func (c *Consumers) mode(ctx context.Context, name string) (v1alpha1.Mode, error) {
	offer := &connectorv1alpha1.Offer{}
	if err := c.reader.Get(ctx, types.NamespacedName{Name: name}, offer); client.IgnoreNotFound(err) != nil {
		return "", fmt.Errorf("get offer %s: %w", name, err)
	}
	return offer.Spec.Mode, nil
}

// signed returns the terms of the newest contract for a cluster that both have signed at some time, and that is the cluster's owner's.
func (r register) signed(id cluster.ID) (contract.Terms, bool) {
	for _, each := range slices.Backward(r) {
		if each.record.Terms.Cluster.ID == id && each.record.Signed() && r.taken(each.record, id) == nil {
			return each.record.Terms, true
		}
	}
	return contract.Terms{}, false
}

// granted returns what the contracts for a cluster give to it now, and whether one of them is in force.
func (r register) granted(id cluster.ID) (granted corev1.ResourceList, inForce bool) {
	granted = corev1.ResourceList{}
	for name, quantity := range r.book().Granted(id) {
		granted[name], inForce = quantity, inForce || quantity.Sign() > 0
	}
	return granted, inForce
}
