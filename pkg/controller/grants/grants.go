// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

// Package grants answers what consumers ask for with Liqo 1.x, where each virtual node of theirs begins with a ResourceSlice that they
// write and this cluster answers. With Liqo 0.9 package resourceplugin does it.
//
// It does not count what there is, nor decide who gets it: package grant of the core does.
package grants

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/tools/record"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"github.com/capacitorset/liqo-broker/pkg/api/v1alpha1"
	"github.com/capacitorset/liqo-broker/pkg/controller/conflict"
	"github.com/capacitorset/liqo-broker/pkg/controller/reports"
	"github.com/capacitorset/liqo-broker/pkg/controller/watch"
	"github.com/capacitorset/liqo-broker/pkg/core/capacity"
	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
	"github.com/capacitorset/liqo-broker/pkg/core/grant"
	v1 "github.com/capacitorset/liqo-broker/pkg/liqo/v1"
	"github.com/capacitorset/liqo-broker/pkg/snapshot"
)

// reasonDenied is the reason of the event on a Consumer.
const reasonDenied = "RequestDenied"

// Bounds of how long one consumer holds up the others, because it asks for many things or because the API server takes its time: how much
// is written for it in a row, until when another write begins, and when it goes on.
const (
	maxWrites = grant.MaxRequests
	patience  = 5 * time.Second
	turn      = time.Second
)

// Reconciler answers the ResourceSlices of one consumer.
type Reconciler struct {
	client   client.Client
	reader   *snapshot.Reader
	capacity func(context.Context) (*capacity.Snapshot, error)
	recorder record.EventRecorder
	clock    clock.PassiveClock
	views    func(context.Context, cluster.ID) (grant.Views, error)
}

// Config is what the controller needs.
type Config struct {
	// Client reads from a cache with the indexes of the Reader's line, which is Liqo 1.x.
	Client client.Client
	Reader *snapshot.Reader
	// Capacity tells what is offered to whom at this moment.
	Capacity func(context.Context) (*capacity.Snapshot, error)
	Recorder record.EventRecorder
	Clock    clock.PassiveClock
	// Views tells which views a consumer is asked to install, and which it has; nil asks nobody.
	Views func(ctx context.Context, consumer cluster.ID) (grant.Views, error)
}

// New returns a Reconciler.
func New(cfg Config) *Reconciler {
	views := cfg.Views
	if views == nil {
		views = func(context.Context, cluster.ID) (grant.Views, error) { return grant.Views{}, nil }
	}
	return &Reconciler{
		client: cfg.Client, reader: cfg.Reader, capacity: cfg.Capacity, recorder: cfg.Recorder, clock: cfg.Clock, views: views,
	}
}

// Setup registers the controller with a manager.
func Setup(mgr ctrl.Manager, cfg Config) error {
	slice := cfg.Reader.Line().Kinds().Offer
	classes := predicate.Funcs{
		CreateFunc: func(e event.CreateEvent) bool { return v1.GivesClasses(e.Object) },
		DeleteFunc: func(e event.DeleteEvent) bool { return v1.GivesClasses(e.Object) },
		UpdateFunc: watch.Changed(v1.ClassesChanged),
	}
	b := watch.Offered(ctrl.NewControllerManagedBy(mgr).Named("grants").For(&v1alpha1.Consumer{}), cfg.Client, cfg.Reader).
		Watches(slice, watch.Later(watch.EveryConsumer(cfg.Client)), builder.WithPredicates(classes)).
		// What is accepted, and on which node, is part of what is counted, which may know it a moment later.
		Watches(slice, watch.Later(watch.OfTenant(cfg.Reader)))
	// A provider that leaves takes its nodes along.
	kinds := cfg.Reader.Line().Kinds()
	leaves := builder.WithPredicates(predicate.Funcs{UpdateFunc: watch.Changed(v1.RoleChanged)})
	for _, kind := range append(kinds.Peering, kinds.Record) {
		b = b.Watches(kind, watch.Later(watch.EveryConsumer(cfg.Client)), leaves)
	}
	// Who drains a provider waits for what the consumers' nodes say.
	b = b.Watches(&v1alpha1.Provider{}, watch.Promptly(watch.EveryConsumer(cfg.Client), cfg.Clock), builder.WithPredicates(rescheduled()))
	if cfg.Views != nil {
		b = b.
			Watches(&corev1.ConfigMap{}, handler.EnqueueRequestsFromMapFunc(watch.OfTenant(cfg.Reader)), builder.WithPredicates(reports.Changed())).
			Watches(v1.NewConfiguration(), watch.Later(watch.EveryConsumer(cfg.Client)), builder.WithPredicates(reports.SeenChanged())).
			Watches(&v1alpha1.Provider{}, watch.Later(watch.EveryConsumer(cfg.Client)), builder.WithPredicates(reports.GrantedChanged()))
	}
	if err := b.Complete(conflict.Requeue(New(cfg))); err != nil {
		return fmt.Errorf("set up the grants controller: %w", err)
	}
	return nil
}

// rescheduled lets pass the updates of a Provider by which people want it to take pods, or not any more.
func rescheduled() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: watch.Changed(func(before, after *v1alpha1.Provider) bool {
		return before.EffectiveScheduling() != after.EffectiveScheduling()
	})}
}

// Reconcile answers what a consumer asks for. Of one that does not peer, or that has to go, nothing is answered: Liqo removes what it asks
// for. Nor is that of one of which it is not known yet how it is served.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	// What it asks for.
	var c v1alpha1.Consumer
	if err := r.client.Get(ctx, req.NamespacedName, &c); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if !c.DeletionTimestamp.IsZero() || c.Status.ObservedGeneration == 0 {
		return ctrl.Result{}, nil
	}
	id := cluster.ID(c.Name)
	peer, err := r.reader.Peer(ctx, id)
	if err != nil || peer == nil || !peer.Incoming.Exists || peer.Incoming.Ending {
		return ctrl.Result{}, err
	}
	requests, err := v1.RequestsBy(ctx, r.client, r.reader.Own(), peer)
	if err != nil || len(requests.Values) == 0 {
		return ctrl.Result{}, err
	}

	// What there is for it, and of which classes.
	snap, err := r.capacity(ctx)
	if err != nil {
		return ctrl.Result{}, err
	}
	granted, err := v1.GrantedClasses(ctx, r.client, r.reader.Own())
	if err != nil {
		return ctrl.Result{}, err
	}
	classes := v1.ClassesFor(id, granted)

	views, err := r.views(ctx, id)
	if err != nil {
		return ctrl.Result{}, err
	}

	answers, err := r.answers(ctx, requests.Values, snap.NodeOffers(id), c.EffectiveNodes() == v1alpha1.NodesPerProvider, views)
	if err != nil {
		return ctrl.Result{}, err
	}

	// One that cannot be written keeps no other from being answered, unless nothing can be written.
	var failed []error
	later := ctrl.Result{RequeueAfter: views.Turns()} // When the consumer was silent for too long, or classes that wait may be told.
	written, began := 0, r.clock.Now()
	for i, answer := range answers {
		before := requests.Slices[i]
		answered, wait := v1.Answered(before, answer, classes, r.clock.Now())
		if wait > 0 && (later.RequeueAfter == 0 || wait < later.RequeueAfter) {
			later.RequeueAfter = wait
		}
		if answered == nil {
			continue
		}
		if written == maxWrites || r.clock.Since(began) > patience {
			return again(failed)
		}
		// It may be gone by now, and it may be that nobody is told anything at present.
		written++
		switch err := r.write(ctx, before, answered); {
		case apierrors.IsNotFound(err):
			continue
		case err != nil:
			if failed = append(failed, err); !isOfObject(err) {
				return again(failed)
			}
			continue
		}
		if v1.NewlyDenied(before, answer) {
			r.tellDenied(ctx, &c, answered.GetName(), answer, requests.Values[i].TellsNodes())
		}
	}
	if len(failed) > 0 {
		return ctrl.Result{}, errors.Join(failed...)
	}
	return later, nil
}

// tellDenied tells people what is denied to a consumer. The ResourceSlice by which the agent is told of nodes is denied as a rule: nobody
// has to be warned of that.
func (r *Reconciler) tellDenied(ctx context.Context, c *v1alpha1.Consumer, name string, answer grant.Answer, tellsNodes bool) {
	ctrl.LoggerFrom(ctx).Info("Denied a resource slice", "resourceSlice", name, "reason", answer.Reason)
	if answer.Reason != grant.NodePerProvider || !tellsNodes {
		r.recorder.Eventf(c, corev1.EventTypeWarning, reasonDenied, "ResourceSlice %s is denied: %s", name, answer.Message)
	}
}

// answers returns the answers to all that a consumer asks for. If it is to have a node for each provider, it is told of which by those
// requests that are for none: of providers that peer.
func (r *Reconciler) answers(
	ctx context.Context, requests []grant.Request, offers []capacity.NodeOffer, perProvider bool, views grant.Views,
) ([]grant.Answer, error) {
	answers := grant.Decide(requests, offers, perProvider, views)
	if !perProvider {
		return answers, nil
	}
	provides := map[cluster.ID]bool{}
	for i := range offers {
		peer, err := r.reader.Peer(ctx, offers[i].Provider)
		if err != nil {
			return nil, err
		}
		provides[offers[i].Provider] = peer != nil && peer.Outgoing.Exists
	}
	nodes := grant.Nodes(requests, offers, func(id cluster.ID) bool { return provides[id] })
	for i := range answers {
		if requests[i].TellsNodes() {
			answers[i].Nodes = nodes
		}
	}
	return answers, nil
}

// again has the rest of what a consumer asks for answered when others have had their turn: soon, or after failures more and more seldom.
func again(failed []error) (ctrl.Result, error) {
	if len(failed) > 0 {
		return ctrl.Result{}, errors.Join(failed...)
	}
	return ctrl.Result{RequeueAfter: turn}, nil
}

// write writes an answer. Liqo writes the same status: what it has written in between is not lost.
func (r *Reconciler) write(ctx context.Context, before, answered client.Object) error {
	patch := client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
	if err := r.client.Status().Patch(ctx, answered, patch); err != nil {
		return fmt.Errorf("patch the status of resource slice %s: %w", client.ObjectKeyFromObject(before), err)
	}
	return nil
}

// isOfObject reports whether an API server that answers well refuses one object, so that it may take others.
func isOfObject(err error) bool {
	return apierrors.IsConflict(err) || apierrors.IsForbidden(err) || apierrors.IsInvalid(err) || apierrors.IsBadRequest(err)
}
