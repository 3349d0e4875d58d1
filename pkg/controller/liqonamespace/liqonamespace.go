// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

// Package liqonamespace takes back the offloading of Liqo's own namespace from clusters whose
// virtual kubelet hands them the Secrets there: one that was made before the broker's
// webhook saw it. Liqo then removes from them what they were handed.
package liqonamespace

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/record"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"github.com/capacitorset/liqo-broker/pkg/controller/conflict"
	"github.com/capacitorset/liqo-broker/pkg/liqo"
	v09 "github.com/capacitorset/liqo-broker/pkg/liqo/v09"
)

// reasonProtected is the reason of the event on the offloading.
const reasonProtected = "SecretsProtected"

// Reconciler keeps the offloading safe.
type Reconciler struct {
	reader   client.Reader
	client   client.Writer
	recorder record.EventRecorder
}

// Config is what the controller needs.
type Config struct {
	Client client.Writer
	// Live reads from the API server: what the cache holds of an offloading is less than
	// what is written back.
	Live     client.Reader
	Recorder record.EventRecorder
	// Namespace is the one in which Liqo runs.
	Namespace string
}

// Setup registers the controller with a manager.
func Setup(mgr ctrl.Manager, cfg Config) error {
	inNamespace := predicate.NewPredicateFuncs(func(o client.Object) bool { return o.GetNamespace() == cfg.Namespace })
	r := New(cfg)
	err := ctrl.NewControllerManagedBy(mgr).
		Named("liqonamespace").
		For(&v09.NamespaceOffloading{}, builder.WithPredicates(inNamespace, predicate.GenerationChangedPredicate{})).
		Complete(conflict.Requeue(r))
	if err != nil {
		return fmt.Errorf("set up the controller of the offloading of namespace %s: %w", cfg.Namespace, err)
	}
	return nil
}

// New returns a Reconciler.
func New(cfg Config) *Reconciler {
	return &Reconciler{reader: cfg.Live, client: cfg.Client, recorder: cfg.Recorder}
}

// Reconcile makes the offloading select only virtual nodes of this project's virtual
// kubelet.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	var o v09.NamespaceOffloading
	if err := r.reader.Get(ctx, req.NamespacedName, &o); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	before := o.DeepCopy()
	if !o.DeletionTimestamp.IsZero() || !v09.Protect(&o) {
		return ctrl.Result{}, nil
	}
	if err := r.client.Patch(ctx, &o, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})); err != nil {
		return ctrl.Result{}, fmt.Errorf("patch NamespaceOffloading %s: %w", req, err)
	}
	ctrl.LoggerFrom(ctx).Info("Stopped offloading Liqo's namespace to clusters whose virtual kubelet is not the broker's")
	r.recorder.Eventf(&o, corev1.EventTypeWarning, reasonProtected,
		"Only clusters whose virtual kubelet is the broker's are selected now (%s): Liqo's own hands them every Secret of the namespace",
		liqo.LabelVirtualKubelet)
	return ctrl.Result{}, nil
}
