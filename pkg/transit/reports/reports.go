// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

// Package reports gives each consumer of a broker with Liqo 1.x the ConfigMap into which its agent reports, in the consumer's tenant
// namespace, and the right to write it and no other. Kubernetes deletes the ConfigMap when the peering ends, and all with the namespace.
//
// It does not read what is reported.
package reports

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
	"github.com/capacitorset/liqo-broker/pkg/liqo"
	v1 "github.com/capacitorset/liqo-broker/pkg/liqo/v1"
	"github.com/capacitorset/liqo-broker/pkg/liqo/v1/api"
	"github.com/capacitorset/liqo-broker/pkg/liqo/v1/report"
	"github.com/capacitorset/liqo-broker/pkg/transit/namespaces"
)

// Reconciler keeps what one tenant namespace has for reports.
type Reconciler struct{ cfg Config }

// Config is what the controller needs.
type Config struct {
	// Client reads from a cache with the indexes of Liqo 1.x, which needs no others of the kinds that are written than [Cached] says.
	Client client.Client
	// Own is this cluster.
	Own cluster.ID
}

// New returns a Reconciler.
func New(cfg Config) *Reconciler { return &Reconciler{cfg} }

// Cached returns what has to be in the cache of the kinds that are written: what has one name, and of ConfigMaps not what they say.
func Cached() map[client.Object]cache.ByObject {
	named := fields.OneTermEqualSelector(metav1.ObjectNameField, report.Name)
	return map[client.Object]cache.ByObject{
		&corev1.ConfigMap{}: {Field: named, Transform: func(o any) (any, error) {
			if cm, is := o.(*corev1.ConfigMap); is {
				cm.Data, cm.BinaryData, cm.Annotations, cm.ManagedFields = nil, nil, nil, nil
			}
			return o, nil
		}},
		&rbacv1.Role{}:        {Field: named},
		&rbacv1.RoleBinding{}: {Field: named},
	}
}

// Setup registers the controller with a manager.
func Setup(mgr ctrl.Manager, cfg Config) error {
	inside := namespaces.Inside()
	ofPeer := namespaces.OfPeer(cfg.Client, func(o client.Object) cluster.ID { return v1.Line{}.IdentityOf(o).ID },
		client.HasLabels{liqo.LabelTenantNamespace})
	err := ctrl.NewControllerManagedBy(mgr).Named("reports").For(&corev1.Namespace{}).
		Watches(&corev1.ConfigMap{}, inside).
		Watches(&rbacv1.Role{}, inside).
		Watches(&rbacv1.RoleBinding{}, inside).
		Watches(&api.Tenant{}, inside).
		Watches(&api.ForeignCluster{}, ofPeer).
		Complete(New(cfg))
	if err != nil {
		return fmt.Errorf("set up the reports controller: %w", err)
	}
	return nil
}

// Reconcile makes what a tenant namespace has for reports what it is to be. Where something of the name is somebody else's, nothing is
// granted on it: what is there stays as it is.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	consumer, err := r.consumerOf(ctx, req.Name)
	if err != nil || consumer == nil {
		return ctrl.Result{}, err
	}
	told, role, binding := Forge(consumer)
	for _, of := range []struct{ is, want client.Object }{
		{&corev1.ConfigMap{}, told}, {&rbacv1.Role{}, role}, {&rbacv1.RoleBinding{}, binding},
	} {
		if own, err := r.ensure(ctx, consumer, of.is, of.want); err != nil || !own {
			return ctrl.Result{}, err
		}
	}
	return ctrl.Result{}, nil
}

// consumerOf returns the consumer whose tenant namespace a namespace is; nil if it is not, or no longer.
func (r *Reconciler) consumerOf(ctx context.Context, namespace string) (*liqo.Peer, error) {
	var ns corev1.Namespace
	if err := r.cfg.Client.Get(ctx, client.ObjectKey{Name: namespace}, &ns); err != nil || !ns.DeletionTimestamp.IsZero() {
		return nil, client.IgnoreNotFound(err)
	}
	reader := v1.Line{}.Reader(r.cfg.Client, r.cfg.Own)
	tenant, err := reader.Tenant(ctx, namespace)
	if err != nil || tenant.ID == "" {
		return nil, err
	}
	peer, err := reader.Peer(ctx, tenant.ID)
	if err != nil || peer == nil || !peer.Incoming.Exists || peer.Incoming.Ending {
		return nil, err
	}
	return peer, nil
}

// ensure makes an object of a consumer what it is to be, and reports whether it is this program's.
func (r *Reconciler) ensure(ctx context.Context, consumer *liqo.Peer, is, want client.Object) (own bool, err error) {
	key := client.ObjectKeyFromObject(want)
	switch err := r.cfg.Client.Get(ctx, key, is); {
	case apierrors.IsNotFound(err):
		if err := r.cfg.Client.Create(ctx, want); err != nil {
			return false, fmt.Errorf("create %T %s: %w", want, key, err)
		}
		return true, nil
	case err != nil:
		return false, fmt.Errorf("get %T %s: %w", want, key, err)
	}
	healed, own := healed(consumer, is, want)
	if !own {
		ctrl.LoggerFrom(ctx).Info(
			"Somebody else, or a peering that has ended, has what a consumer is to report into: it cannot report before that is gone",
			"object", fmt.Sprintf("%T %s", is, key))
		return false, nil
	}
	if equality.Semantic.DeepEqual(is, healed) {
		return true, nil
	}
	if err := r.cfg.Client.Patch(ctx, healed, client.MergeFromWithOptions(is, client.MergeFromWithOptimisticLock{})); err != nil {
		return false, fmt.Errorf("patch %T %s: %w", is, key, err)
	}
	return true, nil
}

// healed returns an object as it is to be, and whether it is this program's: nobody can change what a RoleBinding refers to, so that one
// that refers to something else is not. Nor is a report of a peering that has ended, which Kubernetes deletes soon.
func healed(consumer *liqo.Peer, is, want client.Object) (client.Object, bool) {
	if !v1.IsTransit(is) {
		return nil, false
	}
	switch want := want.(type) {
	case *rbacv1.Role:
		if is, same := is.(*rbacv1.Role); same {
			h := is.DeepCopy()
			h.Rules = want.Rules
			return h, true
		}
	case *rbacv1.RoleBinding:
		if is, same := is.(*rbacv1.RoleBinding); same && is.RoleRef == want.RoleRef {
			h := is.DeepCopy()
			h.Subjects = want.Subjects
			metav1.SetMetaDataLabel(&h.ObjectMeta, liqo.LabelRemoteClusterID, want.Labels[liqo.LabelRemoteClusterID])
			return h, true
		}
	case *corev1.ConfigMap:
		return is, v1.IsOwnedBy(is, consumer) // What it says is the consumer's.
	}
	return nil, false
}

// Forge returns what there is in the tenant namespace of a consumer for its reports: what it reports into, what lets somebody write that,
// and whom. It has the certificate of a user that is called like the cluster (bindClusterRole in
// liqo/pkg/tenantNamespace/bindings.go@v1.2.0); those of its virtual kubelets are of other users, in a group of that name. What it reports
// into is of this peering alone: in the next one it has none of its networks.
func Forge(consumer *liqo.Peer) (*corev1.ConfigMap, *rbacv1.Role, *rbacv1.RoleBinding) {
	meta := metav1.ObjectMeta{
		Namespace: consumer.Tenant, Name: report.Name, Labels: map[string]string{liqo.LabelBrokerManaged: liqo.BrokerManaged},
	}
	told := &corev1.ConfigMap{ObjectMeta: *meta.DeepCopy(), Data: map[string]string{report.Key: ""}}
	told.OwnerReferences = []metav1.OwnerReference{v1.OwnerOf(consumer)}
	role := &rbacv1.Role{ObjectMeta: *meta.DeepCopy(), Rules: []rbacv1.PolicyRule{{
		APIGroups: []string{corev1.GroupName}, Resources: []string{"configmaps"}, ResourceNames: []string{report.Name},
		Verbs: []string{"get", "update"},
	}}}
	binding := &rbacv1.RoleBinding{
		ObjectMeta: *meta.DeepCopy(),
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: string(consumer.ID)}},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: report.Name},
	}
	// Who has rights by a binding that is not for the cluster keeps it from getting a certificate.
	binding.Labels[liqo.LabelRemoteClusterID] = string(consumer.ID)
	return told, role, binding
}
