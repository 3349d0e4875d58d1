// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package twin

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/tools/record"
	"k8s.io/client-go/util/flowcontrol"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capacitorset/liqo-broker/pkg/controller/twin/planning"
	"github.com/capacitorset/liqo-broker/pkg/core/capacity"
	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
	"github.com/capacitorset/liqo-broker/pkg/core/placement"
	"github.com/capacitorset/liqo-broker/pkg/liqo"
	"github.com/capacitorset/liqo-broker/pkg/snapshot"
)

// Reasons of further events than those of package planning. These name no provider either.
const (
	reasonSelected  = "ProvidersSelected"
	reasonRecreated = "PodRecreated"
	reasonReplaced  = "PodReplaced"
)

// A pod that never follows the selection, because Liqo's webhook does not see
// its namespace, is recreated ever more seldom.
const (
	firstBackoff = 250 * time.Millisecond
	maxBackoff   = 5 * time.Minute
)

// lookAgain is when a namespace is looked at again that is one too many.
const lookAgain = time.Minute

// lateness is when to plan again with what a cache has got meanwhile.
const lateness = time.Second

// lookForRoom is when to look again for room for pods that stay only because there is none:
// what is free changes too often to look at all namespaces each time.
const lookForRoom = 10 * time.Second

// Reconciler offloads one twin namespace.
type Reconciler struct {
	client   client.Client
	live     client.Reader
	reader   *snapshot.Reader
	recorder record.EventRecorder
	own      cluster.Identity
	mapping  liqo.Mapping
	most     int
	metrics  *Metrics
	moves    *moves
	backoff  *flowcontrol.Backoff
	pacer    *pacer
	planner  *planning.Planner
	clock    clock.Clock
}

// New returns a Reconciler.
func New(cfg Config) *Reconciler {
	return &Reconciler{
		client:   cfg.Client,
		live:     cfg.Live,
		reader:   cfg.Reader,
		recorder: cfg.Recorder,
		own:      cfg.Own,
		mapping:  cfg.Mapping,
		most:     cfg.MaxNamespaces,
		metrics:  cfg.Metrics,
		moves:    newMoves(cfg.Metrics),
		backoff:  flowcontrol.NewBackOff(firstBackoff, maxBackoff),
		pacer:    newPacer(cfg.Clock),
		planner:  cfg.Planner,
		clock:    cfg.Clock,
	}
}

// Reconcile decides where the pods of a twin namespace may run, writes it into
// the namespace's offloading, and deletes the pods that have to move.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	// Is it a namespace that the broker offloads?
	r.backoff.GC()
	var ns corev1.Namespace
	if err := r.client.Get(ctx, req.NamespacedName, &ns); apierrors.IsNotFound(err) {
		r.planner.ForgetNamespace(req.Name)
		r.moves.forgetNamespace(req.Name)
		return ctrl.Result{}, nil
	} else if err != nil {
		return ctrl.Result{}, fmt.Errorf("get namespace %s: %w", req.Name, err)
	}
	if ours, err := planning.IsOurs(ctx, r.reader, &ns); err != nil || !ours {
		return ctrl.Result{}, err
	}
	// May the broker decide about it? Not over an offloading that people have made, nor for more namespaces than one may have.
	begun := r.clock.Now()
	twin, err := r.reader.Twin(ctx, &ns)
	if err != nil {
		return ctrl.Result{}, err
	}
	r.moves.arrived(r.clock.Now(), ns.Name, twin.Pods)
	if o := twin.Offloading; o != nil && !o.Managed {
		r.recorder.Event(o.Object, corev1.EventTypeWarning, planning.ReasonForeignOffloading, planning.MessageForeignOffloading)
		return ctrl.Result{}, nil
	}
	if older, excess, err := planning.IsExcess(ctx, r.reader, r.most, &ns, twin); err != nil {
		return ctrl.Result{}, err
	} else if excess {
		r.recorder.Event(&ns, corev1.EventTypeWarning, planning.ReasonTooMany, planning.MessageTooMany(older))
		return ctrl.Result{RequeueAfter: lookAgain}, nil
	}

	// Decide, and select providers.
	plan, again := r.planner.Plan(ctx, &ns, twin)
	r.metrics.Decisions.Observe(r.clock.Since(begun).Seconds())
	again = placement.Sooner(again, askAgain(twin.Snapshot.Providers))
	if reason, message := planning.Waiting(twin, plan); reason != "" {
		r.recorder.Event(&ns, corev1.EventTypeWarning, reason, message)
	}
	if late, err := r.isLate(ctx, twin, plan); err != nil || late {
		return ctrl.Result{RequeueAfter: lateness}, err
	}
	if len(plan.Select) > 0 {
		if err := r.ensureOffloading(ctx, &ns, twin.Offloading, plan); err != nil {
			return ctrl.Result{}, err
		}
	}

	// Delete what has to go, at the pace that is allowed.
	replace, afterReplace := r.due(twin, plan.Replace)
	unreachable, unconfirmed, err := r.confirmLost(ctx, twin, replace)
	if err != nil {
		return ctrl.Result{}, err
	}
	if err := r.recreate(ctx, twin, unreachable, lost, r.replace); err != nil {
		return ctrl.Result{}, err
	}
	recreate, afterRecreate := r.due(twin, plan.Recreate)
	moves, afterMoves := r.due(twin, plan.Move)
	moves, wait := r.pacer.allow(twin.Policy, moves)
	if err := r.recreate(ctx, twin, recreate, misplaced, r.move); err != nil {
		return ctrl.Result{}, err
	}
	if err := r.recreate(ctx, twin, moves, preferred, r.move); err != nil {
		return ctrl.Result{}, err
	}

	// When to look again although nothing changes.
	if slices.ContainsFunc(plan.Held, func(h placement.Held) bool { return h.Reason == placement.NoRoom }) {
		again = placement.Sooner(again, lookForRoom)
	}
	for _, other := range []time.Duration{unconfirmed, afterReplace, afterRecreate, afterMoves, wait} {
		again = placement.Sooner(again, other)
	}
	return ctrl.Result{RequeueAfter: again}, nil
}

// askAgain returns when to look again at what nobody tells: whether the consumer still
// reaches providers that the broker has lost; zero for never.
func askAgain(providers []placement.Provider) time.Duration {
	if slices.ContainsFunc(providers, func(p placement.Provider) bool { return p.Direct }) {
		return 2 * snapshot.DirectAge
	}
	return 0
}

// isLate reports whether a plan takes a provider out of the selection and was made without
// pods that are bound to a node by now, or were when another one was, or without the wishes
// for them. Liqo would remove at once what runs there. The caches of pods, of wishes and of
// providers do not wait for each other.
func (r *Reconciler) isLate(ctx context.Context, twin *snapshot.Twin, plan placement.Plan) (bool, error) {
	stays := func(id cluster.ID) bool { return slices.Contains(plan.Select, id) }
	if len(plan.Select) == 0 || !slices.ContainsFunc(twin.Snapshot.Selected, func(id cluster.ID) bool { return !stays(id) }) {
		return false, nil
	}
	var pods corev1.PodList
	if err := r.live.List(ctx, &pods, client.InNamespace(twin.Offloading.Namespace),
		client.MatchingLabelsSelector{Selector: liqo.ShadowPodSelector()}); err != nil {
		return false, fmt.Errorf("list pods of namespace %s: %w", twin.Offloading.Namespace, err)
	}
	return slices.ContainsFunc(pods.Items, func(pod corev1.Pod) bool {
		known := twin.Pods[pod.Name]
		return pod.Spec.NodeName != "" &&
			(known == nil || known.UID != pod.UID || known.Spec.NodeName != pod.Spec.NodeName || isUnasked(twin, &pod))
	}), nil
}

// isUnasked reports whether a pod of Liqo's that runs and stays counts for no copy: the wish
// for it is not known yet, or has gone, and then the pod goes as well.
func isUnasked(twin *snapshot.Twin, pod *corev1.Pod) bool {
	return capacity.Counts(pod) && pod.DeletionTimestamp.IsZero() &&
		!slices.ContainsFunc(twin.Snapshot.Copies, func(c placement.Copy) bool { return c.Pod == pod.Name })
}

// confirmLost returns those of some pods whose virtual nodes are at this moment as the cache
// has them, and when to look again at the others; zero for never. A broker that was late
// itself knows only how they were.
func (r *Reconciler) confirmLost(
	ctx context.Context, twin *snapshot.Twin, names []string,
) (unreachable []string, again time.Duration, err error) {
	confirmed := map[string]bool{}
	for _, name := range names {
		on := twin.Pods[name].Spec.NodeName
		if _, known := confirmed[on]; !known {
			if confirmed[on], err = r.isAsCached(ctx, on); err != nil {
				return nil, 0, err
			}
		}
		if confirmed[on] {
			unreachable = append(unreachable, name)
		} else {
			again = lateness
		}
	}
	return unreachable, again, nil
}

// isAsCached reports whether a node is as ready as the cache has it.
func (r *Reconciler) isAsCached(ctx context.Context, name string) (bool, error) {
	var cached, live corev1.Node
	key := client.ObjectKey{Name: name}
	if err := errors.Join(client.IgnoreNotFound(r.client.Get(ctx, key, &cached)),
		client.IgnoreNotFound(r.live.Get(ctx, key, &live))); err != nil {
		return false, fmt.Errorf("get virtual node %s: %w", name, err)
	}
	return liqo.NodeReadiness(&cached) == liqo.NodeReadiness(&live), nil
}

// ensureOffloading creates the namespace's offloading or changes what it selects.
func (r *Reconciler) ensureOffloading(
	ctx context.Context, ns *corev1.Namespace, o *liqo.Offloading, plan placement.Plan,
) error {
	with := r.reader.Line()
	if o == nil {
		made := with.NewOffloading(ns.Name, r.mapping, r.own)
		with.Select(made, plan.Select, plan.Place)
		if err := r.client.Create(ctx, made); err != nil {
			return fmt.Errorf("create the NamespaceOffloading of %s: %w", ns.Name, err)
		}
		r.announce(ctx, made, plan)
		return nil
	}
	if slices.Equal(o.Selected, plan.Select) && slices.Equal(o.Placing, plan.Place) || o.Deleted {
		return nil
	}
	changed := o.Object.DeepCopyObject().(client.Object) //nolint:revive // A copy is of the same type.
	with.Select(changed, plan.Select, plan.Place)
	patch := client.MergeFromWithOptions(o.Object, client.MergeFromWithOptimisticLock{})
	if err := r.client.Patch(ctx, changed, patch); err != nil {
		return fmt.Errorf("patch the NamespaceOffloading of %s: %w", ns.Name, err)
	}
	r.announce(ctx, changed, plan)
	return nil
}

// announce tells operators which providers were selected, and the consumer that
// the selection has changed.
func (r *Reconciler) announce(ctx context.Context, o client.Object, plan placement.Plan) {
	ctrl.LoggerFrom(ctx).Info("Selected providers", "providers", plan.Select, "placing", plan.Place)
	r.recorder.Event(o, corev1.EventTypeNormal, reasonSelected, "The selection of providers has changed")
}

// due returns those of some pods that were not deleted a short time ago, and when to try the
// others again; zero if there are none.
func (r *Reconciler) due(twin *snapshot.Twin, names []string) (due []string, again time.Duration) {
	now := r.backoff.Clock.Now()
	for _, name := range names {
		if id := backoffID(twin.Pods[name]); r.backoff.IsInBackOffSinceUpdate(id, now) {
			again = placement.Sooner(again, r.backoff.Get(id))
		} else {
			due = append(due, name)
		}
	}
	return due, again
}

func backoffID(pod *corev1.Pod) string { return pod.Namespace + "/" + pod.Name }

// recreate deletes pods, in the order of the plan: the next snapshot then sees all
// deletions up to some pod, so that a plan from it is not larger than it should be.
func (r *Reconciler) recreate(
	ctx context.Context, twin *snapshot.Twin, names []string, why cause, remove func(context.Context, *corev1.Pod) error,
) error {
	for _, name := range names {
		pod := twin.Pods[name]
		err := remove(ctx, pod)
		if apierrors.IsConflict(err) {
			continue // It is another one by now, or has got a node, which is looked at next.
		}
		if client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("delete pod %s: %w", client.ObjectKeyFromObject(pod), err)
		}
		r.backoff.Next(backoffID(pod), r.backoff.Clock.Now())
		r.moves.left(r.clock.Now(), pod, why, origin(twin, name))
	}
	return nil
}

// move deletes a pod. The UID keeps us from deleting the pod that Liqo has made in
// its place, and the version one that has waited with an old selection and has got a node meanwhile, which may be
// the right one: what is made again on the same provider at once, Liqo 1.2 may take for the one that ends there.
func (r *Reconciler) move(ctx context.Context, pod *corev1.Pod) error {
	is := client.Preconditions{UID: &pod.UID}
	if pod.Spec.NodeName == "" {
		is.ResourceVersion = &pod.ResourceVersion
	}
	if err := r.client.Delete(ctx, pod, is); err != nil {
		return err
	}
	ctrl.LoggerFrom(ctx).Info("Deleted a pod so that Liqo recreates it", "pod", client.ObjectKeyFromObject(pod), "node", pod.Spec.NodeName)
	r.recorder.Event(pod, corev1.EventTypeNormal, reasonRecreated, "The broker moves the pod to another provider")
	return nil
}

// replace removes a pod whose provider is out of reach, and nobody could say that
// the pod has ended. What is left of it there the virtual kubelet removes when the
// provider is back: it finds a wish for a pod that no pod here stands behind.
func (r *Reconciler) replace(ctx context.Context, pod *corev1.Pod) error {
	if err := r.client.Delete(ctx, pod, client.Preconditions{UID: &pod.UID}, client.GracePeriodSeconds(0)); err != nil {
		return err
	}
	ctrl.LoggerFrom(ctx).Info("Removed a pod whose provider is out of reach", "pod", client.ObjectKeyFromObject(pod), "node",
		pod.Spec.NodeName)
	r.recorder.Event(pod, corev1.EventTypeWarning, reasonReplaced,
		"The provider of the pod is out of reach, and the broker replaces the pod on another one")
	return nil
}
