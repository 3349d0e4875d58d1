// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

// Package inventory tells other programs of the broker's cluster, in the kinds of SIG Multicluster, which providers there are and which
// of them were chosen for whom: a ClusterProfile for each Provider, and PlacementDecisions for each PlacementDecision of the broker.
//
// It reads nothing of what others write into these objects, and gives nobody access to a provider. It does not know how providers are
// chosen.
package inventory

import (
	"context"
	"fmt"
	"reflect"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/capacitorset/liqo-broker/pkg/api/v1alpha1"
	"github.com/capacitorset/liqo-broker/pkg/controller/conflict"
)

// fieldOwner owns what is written here.
const fieldOwner = client.FieldOwner("liqo-broker-inventory")

// Config is what the controllers need.
type Config struct {
	// Client reads Providers and PlacementDecisions, and writes.
	Client client.Client
	// Reader reads what was written, from a cache.
	Reader client.Reader
	// Namespace is where the objects are.
	Namespace string
}

// Written returns an empty object of each kind that is written, for what caches them.
func Written() []client.Object {
	return []client.Object{empty(ClusterProfileKind), empty(PlacementDecisionKind)}
}

// Setup registers the controllers with a manager. The definitions of both kinds must be there.
func Setup(mgr ctrl.Manager, cfg Config) error {
	for _, c := range []struct {
		name   string
		source client.Object
		writes schema.GroupVersionKind
		by     reconcile.Reconciler
	}{
		{name: "clusterprofile", source: &v1alpha1.Provider{}, writes: ClusterProfileKind, by: NewProfiles(cfg)},
		{name: "inventorydecision", source: &v1alpha1.PlacementDecision{}, writes: PlacementDecisionKind, by: NewDecisions(cfg)},
	} {
		if err := ctrl.NewControllerManagedBy(mgr).Named(c.name).For(c.source).Owns(empty(c.writes)).
			Complete(conflict.Requeue(c.by)); err != nil {
			return fmt.Errorf("set up the controller %s: %w", c.name, err)
		}
	}
	return nil
}

// Profiles writes the ClusterProfiles.
type Profiles struct{ cfg Config }

// NewProfiles returns what writes the ClusterProfiles.
func NewProfiles(cfg Config) *Profiles { return &Profiles{cfg: cfg} }

// Reconcile implements reconcile.Reconciler, for a Provider. The API server removes the object of one that is gone.
func (r *Profiles) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	var p v1alpha1.Provider
	if err := r.cfg.Client.Get(ctx, req.NamespacedName, &p); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if !p.DeletionTimestamp.IsZero() {
		return reconcile.Result{}, nil
	}
	return reconcile.Result{}, r.cfg.write(ctx, Profile(&p, r.cfg.Namespace))
}

// DecisionWriter writes the PlacementDecisions.
type DecisionWriter struct{ cfg Config }

// NewDecisions returns what writes the PlacementDecisions.
func NewDecisions(cfg Config) *DecisionWriter { return &DecisionWriter{cfg: cfg} }

// Reconcile implements reconcile.Reconciler, for a PlacementDecision of the broker. The API server removes the objects of one that is gone.
func (r *DecisionWriter) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	var d v1alpha1.PlacementDecision
	if err := r.cfg.Client.Get(ctx, req.NamespacedName, &d); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if !d.DeletionTimestamp.IsZero() {
		return reconcile.Result{}, nil
	}

	// What is chosen now.
	parts := Decisions(&d, r.cfg.Namespace)
	for _, part := range parts {
		if err := r.cfg.write(ctx, part); err != nil {
			return reconcile.Result{}, err
		}
	}

	// And of what was chosen before, what there are too many objects for.
	written := &unstructured.UnstructuredList{}
	written.SetGroupVersionKind(PlacementDecisionKind.GroupVersion().WithKind(PlacementDecisionKind.Kind + "List"))
	if err := r.cfg.Reader.List(ctx, written, client.InNamespace(r.cfg.Namespace),
		client.MatchingLabels{managerLabel: Manager, keyLabel: Key(d.Name)}); err != nil {
		return reconcile.Result{}, fmt.Errorf("list the PlacementDecisions of %s in %s: %w", d.Name, r.cfg.Namespace, err)
	}
	for i := range written.Items {
		old := &written.Items[i]
		if n, ok := index(old); !ok || n < len(parts) {
			continue
		}
		if err := r.cfg.Client.Delete(ctx, old); client.IgnoreNotFound(err) != nil {
			return reconcile.Result{}, fmt.Errorf("delete PlacementDecision %s/%s: %w", old.GetNamespace(), old.GetName(), err)
		}
	}
	return reconcile.Result{}, nil
}

// write makes an object what it should be, and leaves alone what others have added to it.
func (c *Config) write(ctx context.Context, want *unstructured.Unstructured) error {
	have := empty(want.GroupVersionKind())
	err := c.Reader.Get(ctx, client.ObjectKeyFromObject(want), have)
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("read %s %s/%s: %w", want.GetKind(), want.GetNamespace(), want.GetName(), err)
	}
	status, hasStatus := want.Object["status"]
	delete(want.Object, "status")
	if err != nil || !contains(have.Object, want.Object) {
		if err := c.Client.Patch(ctx, want.DeepCopy(), client.Apply, fieldOwner, client.ForceOwnership); err != nil {
			return fmt.Errorf("write %s %s/%s: %w", want.GetKind(), want.GetNamespace(), want.GetName(), err)
		}
	}
	if !hasStatus || contains(have.Object["status"], status) {
		return nil
	}
	told := object(want.GroupVersionKind(), want.GetNamespace(), want.GetName(), nil)
	told.Object["status"] = status
	if err := c.Client.Status().Patch(ctx, told, client.Apply, fieldOwner, client.ForceOwnership); err != nil {
		return fmt.Errorf("write the status of %s %s/%s: %w", want.GetKind(), want.GetNamespace(), want.GetName(), err)
	}
	return nil
}

// contains reports whether a value has what is wanted: a map has more keys than that, and a list is the same.
func contains(have, want any) bool {
	wanted, ok := want.(map[string]any)
	if !ok {
		return reflect.DeepEqual(have, want)
	}
	had, ok := have.(map[string]any)
	if !ok {
		return false
	}
	for key, value := range wanted {
		if !contains(had[key], value) {
			return false
		}
	}
	return true
}
