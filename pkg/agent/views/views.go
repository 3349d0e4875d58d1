// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

// Package views keeps, on a consumer with Liqo 1.x, the views of brokers in the lists of what is reached through them, and has virtual
// kubelets replaced that have read other lists.
//
// It does not decide which views are listed: package views of the core does. Nor does it tell the broker.
package views

import (
	"context"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capacitorset/liqo-broker/pkg/agent/watch"
	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
	"github.com/capacitorset/liqo-broker/pkg/core/views"
	"github.com/capacitorset/liqo-broker/pkg/excerpt"
	v1 "github.com/capacitorset/liqo-broker/pkg/liqo/v1"
)

const (
	// pause is how long nothing may be looked at: what waits for time to pass goes on then, and since when a list is as it is stays known.
	pause = 15 * time.Second
	// maxKey is how much of the key of a view that is refused is logged: as long as one may be. Brokers write them.
	maxKey = 63
)

// Config is what the controller needs.
type Config struct {
	// Client reads from a cache.
	Client client.Client
	// Own is what this cluster is called.
	Own   cluster.ID
	Clock clock.PassiveClock
	// Planned is told of each plan for a broker, once it is written, and the namespace here of what concerns the broker. It must not block.
	Planned func(broker cluster.ID, tenant string, p *views.Plan)
	// Believed returns what a broker may believe until Planned is told of another plan. Nil knows nothing of that, so that no view goes.
	Believed func(broker cluster.ID) *views.Belief
}

// Reconciler keeps the list of one broker.
type Reconciler struct {
	Config

	mu     sync.Mutex
	looked map[client.ObjectKey]look
}

// look is when the list of a broker was looked at last, since when its generation is what it was then, and what was acknowledged.
type look struct {
	broker       cluster.ID
	tenant       string
	at, since    time.Time
	generation   int64
	acknowledged map[string]netip.Prefix
}

// New returns a Reconciler.
func New(cfg Config) *Reconciler {
	return &Reconciler{Config: cfg, looked: map[client.ObjectKey]look{}}
}

// Setup registers the controller with a manager.
func Setup(mgr ctrl.Manager, cfg Config) error {
	every := watch.All(cfg.Client, v1.BrokerNetworks, "Cannot find the networks of brokers")
	b := ctrl.NewControllerManagedBy(mgr).Named("views").For(v1.NewConfiguration())
	for _, kind := range append(v1.ViewKinds(), &corev1.Pod{}) {
		b = b.Watches(kind, every)
	}
	if err := b.Complete(New(cfg)); err != nil {
		return fmt.Errorf("set up the views controller: %w", err)
	}
	return nil
}

// Reconcile lists the views of a broker, and replaces one virtual kubelet if it must. It never writes what somebody has written since: what
// is seen next says what is to be done.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	found, err := v1.BrokerViewsIn(ctx, r.Client, r.Own, req.NamespacedName)
	if err != nil {
		return ctrl.Result{}, err
	}
	if found == nil {
		r.end(req.NamespacedName)
		return ctrl.Result{}, nil
	}
	s := &found.State
	last := r.last(req.NamespacedName)
	s.Now, s.Looked, s.Acknowledged = r.Clock.Now(), last.at, last.acknowledged
	since := s.Now
	if last.generation == s.Generation {
		s.Since, since = last.since, last.since
	}
	if r.Believed != nil {
		s.Belief = r.Believed(found.Broker)
	}
	plan := views.Make(s)
	maps.Copy(plan.Refused, found.Unreadable)
	log := ctrl.LoggerFrom(ctx).WithValues("broker", found.Broker)

	// The list first: what is told and replaced goes by one that is written.
	before, planned, err := found.Planned(&plan)
	if err != nil {
		return ctrl.Result{}, err
	}
	if planned != nil {
		patch := client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
		if err := r.Client.Patch(ctx, planned, patch); err != nil {
			return ctrl.Result{}, fmt.Errorf("patch the networks of broker %s: %w", found.Broker, err)
		}
		for _, key := range slices.Sorted(maps.Keys(plan.Refused)) {
			log.Info("Refused a view", "view", excerpt.Of(key, maxKey), "reason", plan.Refused[key])
		}
	}
	r.remember(req.NamespacedName, look{
		broker: found.Broker, tenant: found.Tenant, at: s.Now, since: since, generation: s.Generation, acknowledged: plan.Acknowledged,
	})
	if plan.Restart != "" {
		log.Info("Replacing a virtual kubelet that has read another list of networks", "pod", plan.Restart)
		if err := r.replace(ctx, found.Tenant, plan.Restart); err != nil {
			return ctrl.Result{}, err
		}
	}
	if r.Planned != nil {
		r.Planned(found.Broker, found.Tenant, &plan)
	}
	return ctrl.Result{RequeueAfter: pause}, nil
}

// replace deletes the pod of a virtual kubelet, which Liqo makes again.
func (r *Reconciler) replace(ctx context.Context, tenant, name string) error {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: tenant, Name: name}}
	if err := client.IgnoreNotFound(r.Client.Delete(ctx, pod)); err != nil {
		return fmt.Errorf("delete virtual kubelet %s/%s: %w", tenant, name, err)
	}
	return nil
}

func (r *Reconciler) last(of client.ObjectKey) look {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.looked[of]
}

func (r *Reconciler) remember(of client.ObjectKey, l look) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.looked[of] = l
}

// end forgets a list that is gone, or is none of a broker any more, of which nothing is installed then.
func (r *Reconciler) end(of client.ObjectKey) {
	r.mu.Lock()
	last, was := r.looked[of]
	delete(r.looked, of)
	r.mu.Unlock()
	if was && r.Planned != nil {
		r.Planned(last.broker, last.tenant, &views.Plan{})
	}
}
