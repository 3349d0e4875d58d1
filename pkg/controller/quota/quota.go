// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

// Package quota bounds how many objects a consumer can have in each of its twin
// namespaces, and with Liqo 1.x a peer in its tenant namespace: it keeps a ResourceQuota there.
//
// It does not know what the objects are for, and bounds no cores or memory: what pods use
// is the affair of package capacity.
package quota

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/capacitorset/liqo-broker/pkg/controller/conflict"
	"github.com/capacitorset/liqo-broker/pkg/liqo"
	"github.com/capacitorset/liqo-broker/pkg/liqo/line"
	"github.com/capacitorset/liqo-broker/pkg/liqo/v1/api"
)

const (
	// Name is the name of the ResourceQuota in each of these namespaces.
	Name = "liqo-broker"
	// annotationDigest is on a ResourceQuota that is as it is to be, so that its metadata
	// tell.
	annotationDigest = "brokering.liqo.io/quota"
)

// Bounds are how many objects of each resource a namespace may have, by the name of
// the resource in a ResourceQuota.
type Bounds map[string]int64

// DefaultBounds are far above what workloads have, and none of what belongs to the nodes. They name what a consumer's identity may
// create in a twin namespace with a line of Liqo
// (liqo/deployments/liqo/files/liqo-virtual-kubelet-remote-ClusterRole.yaml, of v0.9.4 and of v1.2.0).
func DefaultBounds(of line.Line) Bounds {
	kinds := of.Kinds()
	group := kinds.Shadow.GroupVersionKind().Group
	return Bounds{
		"count/shadowpods." + group:           1000,
		"count/shadowendpointslices." + group: 1000,
		"count/configmaps":                    500,
		"count/secrets":                       500,
		"count/services":                      500,
		"count/persistentvolumeclaims":        200,
		"count/ingresses.networking.k8s.io":   200,
		"services.nodeports":                  0,
		"services.loadbalancers":              0,
	}
}

// TenantBounds are for what a peer's identity may create in its tenant namespace of Liqo 1.x
// (liqo/deployments/liqo/files/liqo-remote-controlplane-ClusterRole.yaml@v1.2.0): for each ResourceSlice there is a certificate, and in the
// end a node. The objects by which this cluster asks the same peer are there too. More ResourceSlices than a broker looks at may be there,
// so that who asks for too many is told so; a peer's Liqo passes over in silence what a quota refuses.
func TenantBounds() Bounds {
	return Bounds{
		"count/resourceslices." + api.AuthenticationGroup: 100,
		"count/renews." + api.AuthenticationGroup:         200,
		"count/namespacemaps." + api.OffloadingGroup:      10,
	}
}

// With returns the bounds, replaced by others as far as these name the same resources.
func (b Bounds) With(others map[string]int64) Bounds {
	all := maps.Clone(b)
	maps.Copy(all, others)
	return all
}

// String returns the bounds as a flag has them, in order.
func (b Bounds) String() string {
	pairs := make([]string, 0, len(b))
	for _, name := range slices.Sorted(maps.Keys(b)) {
		pairs = append(pairs, fmt.Sprintf("%s=%d", name, b[name]))
	}
	return strings.Join(pairs, ",")
}

// Quota returns the ResourceQuota of a namespace.
func (b Bounds) Quota(namespace string) *corev1.ResourceQuota {
	hard := corev1.ResourceList{}
	for name, bound := range b {
		hard[corev1.ResourceName(name)] = *resource.NewQuantity(bound, resource.DecimalSI)
	}
	digest := sha256.Sum256([]byte(b.String()))
	return &corev1.ResourceQuota{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Name: Name,
			Labels:      map[string]string{liqo.LabelBrokerManaged: liqo.BrokerManaged},
			Annotations: map[string]string{annotationDigest: hex.EncodeToString(digest[:8])},
		},
		Spec: corev1.ResourceQuotaSpec{Hard: hard},
	}
}

// Reconciler keeps the ResourceQuota of one namespace.
type Reconciler struct {
	client          client.Client
	bounds, tenants Bounds
}

// Config is what the controller needs.
type Config struct {
	Client client.Client
	// Bounds are those of twin namespaces, and Tenants those of tenant namespaces of Liqo 1.x.
	Bounds, Tenants Bounds
}

// New returns a Reconciler.
func New(cfg Config) *Reconciler {
	return &Reconciler{client: cfg.Client, bounds: cfg.Bounds, tenants: cfg.Tenants}
}

// boundsOf returns the bounds of a namespace, if it is one that has any.
func (r *Reconciler) boundsOf(ns *corev1.Namespace) (Bounds, bool) {
	if _, twin := liqo.TwinOf(ns); twin {
		return r.bounds, true
	}
	_, tenant := ns.Labels[liqo.LabelTenantNamespace]
	return r.tenants, tenant && ns.Labels[liqo.LabelRemoteClusterID] != ""
}

// newMetadata returns an empty ResourceQuota of which only the metadata is read: the rest
// changes with every pod.
func newMetadata() *metav1.PartialObjectMetadata {
	return &metav1.PartialObjectMetadata{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ResourceQuota"}}
}

// Setup registers the controller with a manager.
func Setup(mgr ctrl.Manager, cfg Config) error {
	gone := predicate.Funcs{
		CreateFunc: func(event.CreateEvent) bool { return false },
		UpdateFunc: func(e event.UpdateEvent) bool {
			return e.ObjectOld.GetAnnotations()[annotationDigest] != e.ObjectNew.GetAnnotations()[annotationDigest]
		},
	}
	ofNamespace := func(_ context.Context, o client.Object) []reconcile.Request {
		return []reconcile.Request{{NamespacedName: client.ObjectKey{Name: o.GetNamespace()}}}
	}
	created := predicate.Funcs{
		UpdateFunc: func(event.UpdateEvent) bool { return false }, DeleteFunc: func(event.DeleteEvent) bool { return false },
	}
	err := ctrl.NewControllerManagedBy(mgr).
		Named("quota").
		For(&corev1.Namespace{}, builder.WithPredicates(created)).
		WatchesMetadata(newMetadata(), handler.EnqueueRequestsFromMapFunc(ofNamespace), builder.WithPredicates(gone)).
		Complete(conflict.Requeue(New(cfg)))
	if err != nil {
		return fmt.Errorf("set up the quota controller: %w", err)
	}
	return nil
}

// Reconcile creates the ResourceQuota of a namespace, or changes it back.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	var ns corev1.Namespace
	if err := r.client.Get(ctx, client.ObjectKey{Name: req.Name}, &ns); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	bounds, has := r.boundsOf(&ns)
	if !has || !ns.DeletionTimestamp.IsZero() {
		return ctrl.Result{}, nil
	}
	want := bounds.Quota(ns.Name)
	is := newMetadata()
	err := r.client.Get(ctx, client.ObjectKeyFromObject(want), is)
	switch {
	case apierrors.IsNotFound(err):
		if err := r.client.Create(ctx, want); err != nil && !apierrors.IsAlreadyExists(err) {
			return ctrl.Result{}, fmt.Errorf("create the ResourceQuota of %s: %w", ns.Name, err)
		}
	case err != nil:
		return ctrl.Result{}, fmt.Errorf("get the ResourceQuota of %s: %w", ns.Name, err)
	case is.Annotations[annotationDigest] != want.Annotations[annotationDigest]:
		before := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: ns.Name, Name: Name}}
		if err := r.client.Patch(ctx, want, client.MergeFrom(before)); err != nil {
			return ctrl.Result{}, fmt.Errorf("patch the ResourceQuota of %s: %w", ns.Name, err)
		}
	}
	return ctrl.Result{}, nil
}
