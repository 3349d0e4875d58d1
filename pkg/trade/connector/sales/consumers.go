// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package sales

import (
	"cmp"
	"context"
	"errors"
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
	"github.com/capacitorset/liqo-broker/pkg/trade/connector/peering"
	"github.com/capacitorset/liqo-broker/pkg/trade/core/contract"
)

// AnnotationContract is on Consumers that contracts have made, with any value. They are of contracts until the last one is over, and then
// they are deleted. A Consumer without it is people's, or the broker's own, and is left alone.
const AnnotationContract = "brokering.liqo.io/by-contract"

// ConsumersConfig is what Consumers need. All must be there.
type ConsumersConfig struct {
	// Client writes, and Reader reads from the API server.
	Client client.Client
	Reader client.Reader
	// Peers lets the broker peer with its buyers in turn, so that its remote IPAM arrives there.
	Peers Peers
}

// Consumers grants by the Consumers of the broker that runs on this cluster, in place of a resource plugin: what a cluster has bought is
// reserved for it, and is its limit.
type Consumers struct{ cfg ConsumersConfig }

// Peers knows the clusters of buyers.
type Peers interface {
	// Sold reports whether a cluster consumes by contract, or still asks for something after its contract.
	Sold(ctx context.Context, buyer cluster.ID) (bool, error)
	// PeerInTurn peers with the cluster of a buyer that has peered with this one by contract, and reports false while it has not.
	PeerInTurn(ctx context.Context, buyer cluster.ID) (done bool, err error)
}

// peerAgain is how soon it is looked again whether a buyer has peered, and partAgain whether it has left.
const peerAgain, partAgain = 3 * time.Second, 30 * time.Second

// NewConsumers returns Consumers.
func NewConsumers(cfg ConsumersConfig) (*Consumers, error) {
	if cfg.Client == nil || cfg.Reader == nil || cfg.Peers == nil {
		return nil, errors.New("consumers with contracts need a client, a reader and peers")
	}
	return &Consumers{cfg: cfg}, nil
}

// Seller returns a seller on this broker. A cluster is issued nothing before it has a Consumer by contract, so that the broker never gives
// it what it gives to anybody, and nothing at all if it has one without: the error is then peering.ErrForeign.
func (c *Consumers) Seller(of peering.Seller) peering.Seller { return brokerSeller{of, c} }

// brokerSeller is a seller on a broker.
type brokerSeller struct {
	peering.Seller

	consumers *Consumers
}

// Issue implements peering.Seller.
func (s brokerSeller) Issue(ctx context.Context, buyer cluster.Identity) (peering.Credentials, error) {
	switch consumer, err := s.consumers.getConsumer(ctx, string(buyer.ID)); {
	case err != nil:
		return peering.Credentials{}, err
	case consumer == nil:
		made := &v1alpha1.Consumer{
			ObjectMeta: metav1.ObjectMeta{Name: string(buyer.ID), Annotations: map[string]string{AnnotationContract: "true"}},
		}
		grantTo(made, corev1.ResourceList{}, false)
		if err := s.consumers.cfg.Client.Create(ctx, made); err != nil {
			return peering.Credentials{}, fmt.Errorf("make consumer %s: %w", buyer.ID, err)
		}
	case consumer.Annotations[AnnotationContract] == "":
		return peering.Credentials{}, fmt.Errorf("consumer %s was made without a contract: %w", buyer.ID, peering.ErrForeign)
	}
	return s.Seller.Issue(ctx, buyer)
}

// getConsumer returns a Consumer as it is stored; nil if there is none.
func (c *Consumers) getConsumer(ctx context.Context, name string) (*v1alpha1.Consumer, error) {
	consumer := &v1alpha1.Consumer{}
	err := c.cfg.Reader.Get(ctx, types.NamespacedName{Name: name}, consumer)
	if apierrors.IsNotFound(err) {
		return nil, nil //nolint:nilnil // That there is none is an answer.
	}
	if err != nil {
		return nil, fmt.Errorf("get consumer %s: %w", name, err)
	}
	return consumer, nil
}

// grantTo has a Consumer be given what was bought, and no more.
func grantTo(consumer *v1alpha1.Consumer, granted corev1.ResourceList, inForce bool) {
	consumer.Spec.Scheduling = v1alpha1.ConsumerSuspended
	if inForce {
		consumer.Spec.Scheduling = v1alpha1.ConsumerActive
	}
	// A limit of zero for what every pod needs: a Consumer without a limit could have all.
	limit := v1alpha1.Quantities{
		corev1.ResourceCPU: resource.Quantity{}, corev1.ResourceMemory: resource.Quantity{}, corev1.ResourcePods: resource.Quantity{},
	}
	maps.Copy(limit, v1alpha1.Quantities(granted))
	consumer.Spec.Capacity.Limit, consumer.Spec.Capacity.Reserved = limit, v1alpha1.Quantities(granted)
}

// SetupConsumers registers the controller that it returns with a manager. It looks at a Consumer when one of its contracts changes, or
// somebody else changes it.
func SetupConsumers(mgr ctrl.Manager, cfg ConsumersConfig) (*Consumers, error) {
	c, err := NewConsumers(cfg)
	if err != nil {
		return nil, err
	}
	err = ctrl.NewControllerManagedBy(mgr).Named("consumer-of-sales").For(&v1alpha1.Consumer{}).
		Watches(&connectorv1alpha1.Sale{}, handler.EnqueueRequestsFromMapFunc(func(_ context.Context, object client.Object) []reconcile.Request {
			sale, ok := object.(*connectorv1alpha1.Sale)
			if !ok || sale.Status.Cluster.ID == "" {
				return nil
			}
			return []reconcile.Request{{NamespacedName: types.NamespacedName{Name: sale.Status.Cluster.ID}}}
		})).Complete(c)
	if err != nil {
		return nil, fmt.Errorf("set up the controller of consumers with contracts: %w", err)
	}
	return c, nil
}

// Reconcile grants a Consumer of contracts what they say, and deletes it when the last one is over.
func (c *Consumers) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	consumer, err := c.getConsumer(ctx, req.Name)
	if err != nil || consumer == nil || consumer.Annotations[AnnotationContract] == "" {
		return ctrl.Result{}, err
	}
	all, err := list(ctx, c.cfg.Reader)
	if err != nil {
		return ctrl.Result{}, err
	}
	id := cluster.ID(req.Name)
	if !all.holds(id) {
		// The broker would make another one, of nobody's contract, for who still asks.
		if asks, err := c.cfg.Peers.Sold(ctx, id); err != nil || asks {
			return ctrl.Result{RequeueAfter: partAgain}, err
		}
		same := client.Preconditions{UID: &consumer.UID, ResourceVersion: &consumer.ResourceVersion}
		if err := c.cfg.Client.Delete(ctx, consumer, same); apierrors.IsConflict(err) {
			return ctrl.Result{Requeue: true}, nil
		} else if client.IgnoreNotFound(err) != nil {
			return ctrl.Result{}, fmt.Errorf("delete consumer %s: %w", req.Name, err)
		}
		return ctrl.Result{}, nil
	}
	// It is granted the sum of what its contracts say, in the mode of the newest one.
	before := consumer.DeepCopy()
	granted, inForce := all.granted(id)
	grantTo(consumer, granted, inForce)
	if of, owned := all.newest(id); owned {
		mode, err := c.mode(ctx, of.Offer)
		if err != nil {
			return ctrl.Result{}, err
		}
		consumer.Spec.Mode = cmp.Or(mode, consumer.Spec.Mode)
	}
	if !equality.Semantic.DeepEqual(before.Spec, consumer.Spec) {
		err = c.cfg.Client.Patch(ctx, consumer, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
	}
	switch {
	case apierrors.IsConflict(err):
		return ctrl.Result{Requeue: true}, nil
	case err != nil:
		return ctrl.Result{}, fmt.Errorf("grant consumer %s what it has bought: %w", req.Name, err)
	case !inForce:
		return ctrl.Result{}, nil
	}
	// The broker's remote IPAM reaches a consumer as a Service that Liqo reflects to it: for that this cluster peers with it, too.
	switch done, err := c.cfg.Peers.PeerInTurn(ctx, id); {
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
	if err := c.cfg.Reader.Get(ctx, types.NamespacedName{Name: name}, offer); client.IgnoreNotFound(err) != nil {
		return "", fmt.Errorf("get offer %s: %w", name, err)
	}
	return offer.Spec.Mode, nil
}

// newest returns the terms of the newest contract that was granted for a cluster to its owner.
func (r register) newest(id cluster.ID) (contract.Terms, bool) {
	for _, each := range slices.Backward(r) {
		if each.record.Terms.Cluster.ID == id && granted(each.record) && r.taken(each.record, id) == nil {
			return each.record.Terms, true
		}
	}
	return contract.Terms{}, false
}

// holds reports whether something is about to be granted to a cluster, is granted, or is being taken back.
func (r register) holds(id cluster.ID) bool {
	return slices.ContainsFunc(r, func(each sold) bool {
		return each.record.Terms.Cluster.ID == id && (each.record.State == contract.Signed || granted(each.record))
	})
}

// granted returns what the contracts for a cluster give to it now, and whether one of them is in force.
func (r register) granted(id cluster.ID) (granted corev1.ResourceList, inForce bool) {
	granted = corev1.ResourceList{}
	for name, quantity := range r.book().Granted(id) {
		granted[name], inForce = quantity, inForce || quantity.Sign() > 0
	}
	return granted, inForce
}
