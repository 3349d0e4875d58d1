// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

// Package nodes asks brokers, on a consumer with Liqo 1.x, for the nodes of single providers of which they tell, and gives up those that
// they do not want any more.
//
// It does not decide for which nodes brokers are asked: package nodes of the core does. Nor does it know what such a node has.
package nodes

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capacitorset/liqo-broker/pkg/agent/watch"
	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
	"github.com/capacitorset/liqo-broker/pkg/core/nodes"
	"github.com/capacitorset/liqo-broker/pkg/excerpt"
	v1 "github.com/capacitorset/liqo-broker/pkg/liqo/v1"
)

const (
	// pause is how long nothing may be looked at: what waits for time to pass, or for pods to go, goes on then.
	pause = 15 * time.Second
	// maxName is how much of the name of a node that stays untouched is logged: as long as that of an object may be. Brokers write them.
	maxName = 253
)

// Config is what the controller needs.
type Config struct {
	// Client reads from a cache, and Live from the API server: which pods are on a node that is about to go.
	Client client.Client
	Live   client.Reader
	// Own is what this cluster is called.
	Own   cluster.ID
	Clock clock.PassiveClock
}

// Reconciler asks one broker.
type Reconciler struct {
	Config

	mu      sync.Mutex
	brokers map[string]known // By the names of their records.
}

// known is what has to be known again of a broker: since when it does not want which node, and what people were told.
type known struct {
	unwanted map[string]time.Time
	said     map[string]string
}

// New returns a Reconciler.
func New(cfg Config) *Reconciler {
	return &Reconciler{Config: cfg, brokers: map[string]known{}}
}

// Setup registers the controller with a manager.
func Setup(mgr ctrl.Manager, cfg Config) error {
	every := watch.All(cfg.Client, v1.BrokerRecords, "Cannot find the brokers")
	b := ctrl.NewControllerManagedBy(mgr).Named("nodes").For(v1.NewRecord())
	for _, kind := range v1.NodeKinds() {
		b = b.Watches(kind, every)
	}
	if err := b.Complete(New(cfg)); err != nil {
		return fmt.Errorf("set up the nodes controller: %w", err)
	}
	return nil
}

// Reconcile asks a broker for what it tells of. What is refused takes no other along.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	found, err := v1.BrokerNodesOf(ctx, r.Client, r.Own, req.Name)
	if err != nil || found == nil {
		r.remember(req.Name, nil)
		return ctrl.Result{}, err
	}
	log := ctrl.LoggerFrom(ctx).WithValues("broker", found.Broker)
	was := r.remembered(req.Name)
	found.State.Now, found.State.Unwanted = r.Clock.Now(), was.unwanted
	plan := nodes.Make(&found.State)
	for _, name := range slices.Sorted(maps.Keys(plan.Said)) {
		if was.said[name] != plan.Said[name] {
			log.Info("A node of a single provider is left as it is", "virtualNode", excerpt.Of(name, maxName), "reason", plan.Said[name])
		}
	}
	r.remember(req.Name, &known{unwanted: plan.Unwanted, said: plan.Said})

	var failed []error
	for _, name := range slices.Sorted(maps.Keys(plan.Ask)) {
		failed = append(failed, r.ask(ctrl.LoggerInto(ctx, log), found, name, plan.Ask[name]))
	}
	for _, name := range plan.GiveUp {
		failed = append(failed, r.giveUp(ctrl.LoggerInto(ctx, log), found, name))
	}
	if err := errors.Join(failed...); err != nil {
		return ctrl.Result{}, err
	}
	return ctrl.Result{RequeueAfter: pause}, nil
}

// ask has a broker asked for the node of a provider.
func (r *Reconciler) ask(ctx context.Context, of *v1.BrokerNodes, name string, provider cluster.ID) error {
	before, wanted := of.Asking(name, provider)
	switch {
	case wanted == nil:
		return nil
	case before == nil:
		// One that is there by now is said to be so at the next look, if it is not this one.
		if err := r.Client.Create(ctx, wanted); client.IgnoreAlreadyExists(err) != nil {
			return fmt.Errorf("create resource slice %s: %w", client.ObjectKeyFromObject(wanted), err)
		}
		ctrl.LoggerFrom(ctx).Info("Asked for the node of a provider", "virtualNode", name, "provider", provider)
	default:
		if err := r.Client.Patch(ctx, wanted, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})); err != nil {
			return fmt.Errorf("patch resource slice %s: %w", client.ObjectKeyFromObject(wanted), err)
		}
		ctrl.LoggerFrom(ctx).Info("Asked for the node of a provider again as it is to be", "virtualNode", name, "provider", provider)
	}
	return nil
}

// giveUp asks a broker for a node no more, unless pods have come there in this moment.
func (r *Reconciler) giveUp(ctx context.Context, of *v1.BrokerNodes, name string) error {
	held, err := v1.HoldNode(ctx, r.Live, name)
	if err != nil || held {
		return err
	}
	slice := of.Asked(name)
	uid, version := slice.GetUID(), slice.GetResourceVersion()
	err = r.Client.Delete(ctx, slice, client.Preconditions{UID: &uid, ResourceVersion: &version})
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("delete resource slice %s: %w", client.ObjectKeyFromObject(slice), err)
	}
	ctrl.LoggerFrom(ctx).Info("Gave up the node of a provider, which the broker does not want any more", "virtualNode", name)
	return nil
}

func (r *Reconciler) remembered(record string) known {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.brokers[record]
}

// remember notes what has to be known again of a broker; nil forgets it.
func (r *Reconciler) remember(record string, k *known) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if k == nil {
		delete(r.brokers, record)
		return
	}
	r.brokers[record] = *k
}
