// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

// Package stale deletes, on a consumer with Liqo 1.x, the IPs of pods at brokers that are shown under new addresses since: Liqo makes them
// again, and could not change them.
//
// It does not know why a pod is shown under another address. It makes no IP.
package stale

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"github.com/capacitorset/liqo-broker/pkg/agent/watch"
	v1 "github.com/capacitorset/liqo-broker/pkg/liqo/v1"
	"github.com/capacitorset/liqo-broker/pkg/liqo/v1/api"
)

// Config is what the controller needs.
type Config struct {
	// Client reads from a cache.
	Client client.Client
	// Live reads pods as they are. A cache that is behind would have an IP deleted that Liqo has just made, and need not make again.
	Live client.Reader
}

// Reconciler looks at one pod.
type Reconciler struct{ Config }

// New returns a Reconciler.
func New(cfg Config) *Reconciler { return &Reconciler{Config: cfg} }

// Setup registers the controller with a manager.
func Setup(mgr ctrl.Manager, cfg Config) error {
	mapped := watch.All(cfg.Client, v1.PodIPs, "Cannot find the pods that Liqo has mapped")
	b := ctrl.NewControllerManagedBy(mgr).Named("stale").
		For(&corev1.Pod{}, builder.WithPredicates(shownChanged())).
		Watches(&api.IP{}, &handler.EnqueueRequestForObject{}) // It is called as its pod.
	for _, kind := range v1.BrokerNodeKinds() {
		b = b.Watches(kind, mapped, builder.WithPredicates(predicate.Funcs{
			UpdateFunc: func(e event.UpdateEvent) bool { return v1.BrokerNodesChanged(e.ObjectOld, e.ObjectNew) },
		}))
	}
	if err := b.Complete(New(cfg)); err != nil {
		return fmt.Errorf("set up the controller of stale IPs: %w", err)
	}
	return nil
}

// shownChanged lets pass what shows a pod under another address, or on another node. Of a pod that is gone there is nothing to do.
func shownChanged() predicate.Predicate {
	return predicate.Funcs{
		UpdateFunc: func(e event.UpdateEvent) bool {
			was, one := e.ObjectOld.(*corev1.Pod)
			is, other := e.ObjectNew.(*corev1.Pod)
			return one && other && (was.UID != is.UID || was.Spec.NodeName != is.Spec.NodeName || was.Status.PodIP != is.Status.PodIP)
		},
		DeleteFunc: func(event.DeleteEvent) bool { return false },
	}
}

// Reconcile deletes the IP of a pod if it is stale, and nobody has written it since it was seen so.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	var ip *api.IP
	for _, from := range []client.Reader{r.Client, r.Live} {
		var pod corev1.Pod
		if err := from.Get(ctx, req.NamespacedName, &pod); err != nil {
			return ctrl.Result{}, client.IgnoreNotFound(fmt.Errorf("get Pod %s: %w", req.NamespacedName, err))
		}
		found, is, err := v1.StaleIP(ctx, r.Client, &pod)
		if err != nil || !is {
			return ctrl.Result{}, err
		}
		ip = found
	}
	ctrl.LoggerFrom(ctx).Info("Deleting the IP of a pod that is shown under another address", "pod", req.NamespacedName)
	same := client.Preconditions{UID: &ip.UID, ResourceVersion: &ip.ResourceVersion}
	if err := client.IgnoreNotFound(r.Client.Delete(ctx, ip, same)); err != nil {
		return ctrl.Result{}, fmt.Errorf("delete IP %s: %w", req.NamespacedName, err)
	}
	return ctrl.Result{}, nil
}
