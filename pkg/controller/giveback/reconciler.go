// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

// Package giveback ends the pods that no provider can take, so that their consumer
// can place them elsewhere. The sum that a consumer is offered hides how it is cut
// up: a pod may fit the sum and no provider.
//
// A pod ends as Liqo ends one that it cannot offload: Liqo then shows the end to the
// consumer and removes the pod here. Package giveback recreates no pod: that is the
// consumer's controller's work.
package giveback

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/record"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"github.com/capacitorset/liqo-broker/pkg/api/v1alpha1"
	"github.com/capacitorset/liqo-broker/pkg/controller/conflict"
	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
	"github.com/capacitorset/liqo-broker/pkg/liqo"
	"github.com/capacitorset/liqo-broker/pkg/snapshot"
)

// reasonNoProvider is the reason of the events, and of the condition DisruptionTarget
// by which a Job's podFailurePolicy can tell such an end from others.
const reasonNoProvider = "NoProviderFits"

// unexplained is all that a consumer is told that must not learn of providers.
const unexplained = "what it requires is not free in one place"

// Config is what the controller needs.
type Config struct {
	Client   client.Client
	Recorder record.EventRecorder
	// Reader knows which pods may run on one provider only, and who must not be told what
	// the scheduler says of the broker's nodes.
	Reader *snapshot.Reader
	// After is how long a pod waits for a provider.
	After time.Duration
	// Given counts the pods that were given back, by consumer.
	Given *prometheus.CounterVec
	Clock clock.PassiveClock
}

// Reconciler gives back one pod.
type Reconciler struct {
	Config

	patience patience
}

// New returns a Reconciler, which is used by one goroutine at a time.
func New(cfg Config) *Reconciler { return &Reconciler{Config: cfg, patience: patience{}} }

// Setup registers the controller with a manager.
func Setup(mgr ctrl.Manager, cfg Config) error {
	waits := predicate.NewPredicateFuncs(func(o client.Object) bool {
		_, _, is := stuck(o.(*corev1.Pod))
		return is
	})
	err := ctrl.NewControllerManagedBy(mgr).
		Named("giveback").
		For(&corev1.Pod{}, builder.WithPredicates(waits)).
		Complete(conflict.Requeue(New(cfg)))
	if err != nil {
		return fmt.Errorf("set up the giveback controller: %w", err)
	}
	return nil
}

// Reconcile ends a consumer's pod that has waited long enough, and otherwise comes
// back when it has.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	pod := &corev1.Pod{}
	if err := r.Client.Get(ctx, req.NamespacedName, pod); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	// Only a pod of a consumer that waits for a node is given back.
	since, why, is := stuck(pod)
	if !is {
		return ctrl.Result{}, nil
	}
	var namespace corev1.Namespace
	if err := r.Client.Get(ctx, client.ObjectKey{Name: pod.Namespace}, &namespace); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	consumer, twin := liqo.TwinOf(&namespace)
	if !twin {
		return ctrl.Result{}, nil
	}
	// What its consumer is told, and how long such pods wait: not long where one provider alone could take it, and does not.
	usual, hopeless, err := r.usual(ctx, consumer, pod)
	if err != nil {
		return ctrl.Result{}, err
	}
	if why, err = r.explain(ctx, pod.Namespace, why, hopeless); err != nil {
		return ctrl.Result{}, err
	}
	// For how long it may wait: a workload whose pods were given back before is given more time.
	workload := pod.Namespace + "/" + snapshot.Workload(pod)
	made, err := r.asked(ctx, pod)
	if err != nil {
		return ctrl.Result{}, err
	}
	wait, give := wish(pod, usual)
	if give {
		wait = r.patience.of(workload, made, wait)
	}
	now := r.Clock.Now()
	if rest := wait - now.Sub(since); rest > 0 {
		return ctrl.Result{RequeueAfter: rest}, nil
	}
	// A pod that nothing would recreate is left, and its owner is told.
	if !give {
		r.Recorder.Eventf(pod, corev1.EventTypeWarning, reasonNoProvider,
			"No provider can take the pod, which waits: nothing would recreate it, unless the annotation %s says so%s. %s", AnnotationGiveBack,
			unclear(pod), why)
		return ctrl.Result{}, nil
	}
	// It ends as failed, and whoever has made it makes another one, which is placed elsewhere.
	if err := r.end(ctx, pod, now, fmt.Sprintf("No provider could take the pod for %s: %s", wait, why)); err != nil {
		return ctrl.Result{}, err
	}
	r.patience.note(workload, made, now, wait)
	r.Given.WithLabelValues(string(consumer)).Inc()
	ctrl.LoggerFrom(ctx).Info("Gave back a pod that no provider could take", "waited", wait, "why", why)
	r.Recorder.Eventf(pod, corev1.EventTypeWarning, reasonNoProvider, "No provider could take the pod for %s, and it is given back%s", wait,
		unclear(pod))
	return ctrl.Result{}, nil
}

// explain returns why no provider takes a pod, for its consumer to read. What the scheduler
// says counts the providers.
func (r *Reconciler) explain(ctx context.Context, namespace, scheduler, hopeless string) (string, error) {
	if hopeless != "" {
		return hopeless, nil
	}
	hides, err := r.Reader.Hides(ctx, namespace)
	if err != nil {
		return "", err
	}
	if hides {
		return unexplained, nil
	}
	return scheduler, nil
}

// asked returns when the consumer asked for a pod. Liqo recreates a pod that the
// broker moves; it is no successor of one that was given back meanwhile.
func (r *Reconciler) asked(ctx context.Context, pod *corev1.Pod) (time.Time, error) {
	shadow := r.Reader.Line().Kinds().Shadow
	err := r.Client.Get(ctx, client.ObjectKeyFromObject(pod), shadow)
	switch {
	case apierrors.IsNotFound(err):
		return pod.CreationTimestamp.Time, nil
	case err != nil:
		return time.Time{}, fmt.Errorf("get shadow pod %s/%s: %w", pod.Namespace, pod.Name, err)
	default:
		return shadow.CreationTimestamp.Time, nil
	}
}

// usual returns how long a pod waits unless its owner wishes otherwise. One that may
// run on one provider only, which takes no pods of the namespace, does not wait for
// long: the reason says so.
func (r *Reconciler) usual(ctx context.Context, consumer cluster.ID, pod *corev1.Pod) (wait time.Duration, hopeless string, err error) {
	provider, pinned, err := r.Reader.Pinned(ctx, consumer, pod)
	if err != nil || !pinned {
		return r.After, "", err
	}
	soon := min(r.After, shortest)
	if provider == nil {
		return soon, fmt.Sprintf("the provider of node %s is gone", liqo.OriginNode(pod)), nil
	}
	if wanted := provider.EffectiveScheduling(); wanted != v1alpha1.SchedulingActive {
		return soon, fmt.Sprintf("the provider of node %s is %s", liqo.OriginNode(pod), strings.ToLower(string(wanted))), nil
	}
	if meta.IsStatusConditionFalse(provider.Status.Conditions, v1alpha1.ConditionReady) {
		return soon, fmt.Sprintf("the provider of node %s is not ready", liqo.OriginNode(pod)), nil
	}
	offloading, err := r.Reader.Offloading(ctx, pod.Namespace)
	if err != nil || offloading == nil {
		return r.After, "", err
	}
	if !slices.Contains(offloading.Placing, cluster.ID(provider.Name)) {
		return soon, fmt.Sprintf("the provider of node %s takes no pods of the namespace", liqo.OriginNode(pod)), nil
	}
	return r.After, "", nil
}

// end lets a pod fail, unless somebody has changed it meanwhile. Should the scheduler
// bind it in the same moment, Liqo does not offload it: it knows the reason.
func (r *Reconciler) end(ctx context.Context, pod *corev1.Pod, now time.Time, message string) error {
	before := pod.DeepCopy()
	pod.Status.Phase = corev1.PodFailed
	pod.Status.Reason = liqo.ReasonOffloadingAborted
	pod.Status.Message = message
	pod.Status.Conditions = append(pod.Status.Conditions, corev1.PodCondition{
		Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue, Reason: reasonNoProvider, Message: message,
		LastTransitionTime: metav1.NewTime(now),
	})
	// The cache does not hold all of the status: only what changes is sent.
	patch := client.StrategicMergeFrom(before, client.MergeFromWithOptimisticLock{})
	if err := r.Client.Status().Patch(ctx, pod, patch); err != nil {
		return client.IgnoreNotFound(fmt.Errorf("patch the status of pod %s/%s: %w", pod.Namespace, pod.Name, err))
	}
	return nil
}
