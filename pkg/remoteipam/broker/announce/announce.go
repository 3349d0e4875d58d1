// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

// Package announce tells the consumers of a broker how to trust its remote
// IPAM: it keeps a ConfigMap in the tenant namespace of each peer, and the right
// of that peer to read it.
//
// It does not serve the remote IPAM and knows nothing of addresses.
package announce

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
	"github.com/capacitorset/liqo-broker/pkg/liqo"
	"github.com/capacitorset/liqo-broker/pkg/remoteipam"
)

// fieldOwner owns the fields that server-side apply writes.
const fieldOwner = client.FieldOwner("liqo-broker-network-manager")

const (
	// lookAgain is how often it is looked whether a peer has got another certificate, and
	// lookSoon how often while it has none.
	lookAgain, lookSoon = 5 * time.Minute, 5 * time.Second
	// soon is how long a peer is expected to get its first one. Most do within seconds.
	soon = 10 * time.Minute
)

// Issued looks up the key of the certificate that was issued to a peer; empty if there is
// none.
type Issued = func(ctx context.Context, peer cluster.ID) (hash string, err error)

// Config is what an Announcer needs. All must be there.
type Config struct {
	// Client reads namespaces, and writes ConfigMaps and RoleBindings.
	Client client.Client
	// Broker is this cluster.
	Broker cluster.ID
	Issued Issued
	Clock  clock.PassiveClock
}

// Announcer is a reconciler of tenant namespaces. [Announcer.Publish] may be
// called at any time.
type Announcer struct {
	cfg     Config
	ca      atomic.Pointer[[]byte]
	renewed chan event.GenericEvent
	// announced is what the namespaces were told last. Only Reconcile, of which one runs
	// at a time, uses it.
	announced map[types.UID]announced
}

// announced is what a namespace was told, and when.
type announced struct {
	hash, ca string
	at       time.Time
}

// New returns an Announcer that has not announced anything yet.
func New(cfg Config) (*Announcer, error) {
	if cfg.Client == nil || cfg.Broker == "" || cfg.Issued == nil || cfg.Clock == nil {
		return nil, errors.New("an announcer needs a client, the broker's ID, what looks certificates up and a clock")
	}
	return &Announcer{cfg: cfg, renewed: make(chan event.GenericEvent, 1), announced: map[types.UID]announced{}}, nil
}

// Setup registers the Announcer that it returns with a manager.
func Setup(mgr ctrl.Manager, cfg Config) (*Announcer, error) {
	a, err := New(cfg)
	if err != nil {
		return nil, err
	}
	err = ctrl.NewControllerManagedBy(mgr).
		Named("announcer").
		For(&corev1.Namespace{}).
		WatchesRawSource(source.Channel(a.renewed, handler.EnqueueRequestsFromMapFunc(a.tenants))).
		Complete(a)
	if err != nil {
		return nil, fmt.Errorf("set up the announcer: %w", err)
	}
	return a, nil
}

// Publish announces a certificate, given as PEM, in place of the one before.
func (a *Announcer) Publish(ctx context.Context, ca []byte) error {
	a.ca.Store(&ca)
	select {
	case a.renewed <- event.GenericEvent{Object: &corev1.Namespace{}}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// tenants lists the tenant namespaces.
func (a *Announcer) tenants(ctx context.Context, _ client.Object) []reconcile.Request {
	var namespaces corev1.NamespaceList
	if err := a.cfg.Client.List(ctx, &namespaces); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "Cannot list the tenant namespaces")
		return nil
	}
	var requests []reconcile.Request
	for i := range namespaces.Items {
		if _, ok := liqo.TenantOf(&namespaces.Items[i]); ok {
			requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&namespaces.Items[i])})
		}
	}
	return requests
}

// Reconcile announces the current certificate in one tenant namespace, with the key that
// the peer has.
func (a *Announcer) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	ca := a.ca.Load()
	if ca == nil {
		// Publish enqueues every tenant namespace.
		return reconcile.Result{}, nil
	}
	var namespace corev1.Namespace
	if err := a.cfg.Client.Get(ctx, request.NamespacedName, &namespace); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	peer, ok := liqo.TenantOf(&namespace)
	if !ok || !namespace.DeletionTimestamp.IsZero() {
		delete(a.announced, namespace.UID)
		return reconcile.Result{}, nil
	}
	hash, err := a.cfg.Issued(ctx, peer)
	if err != nil {
		return reconcile.Result{}, err
	}
	result, now := reconcile.Result{RequeueAfter: lookAgain}, a.cfg.Clock.Now()
	if hash == "" && now.Sub(namespace.CreationTimestamp.Time) < soon {
		result.RequeueAfter = lookSoon
	}
	last := a.announced[namespace.UID]
	if last.hash == hash && last.ca == string(*ca) && now.Sub(last.at) < lookAgain {
		return result, nil
	}
	if err := a.announce(ctx, namespace.Name, peer, remoteipam.Announcement{Broker: a.cfg.Broker, CA: *ca, Client: hash}); err != nil {
		return reconcile.Result{}, err
	}
	if last.hash != hash || last.ca != string(*ca) {
		ctrl.LoggerFrom(ctx).Info("Remote IPAM announced", "peer", peer, "tenantNamespace", namespace.Name)
	}
	a.announced[namespace.UID] = announced{hash, string(*ca), now}
	return result, nil
}

// announce writes an announcement, and the right to read it.
func (a *Announcer) announce(ctx context.Context, namespace string, peer cluster.ID, announcement remoteipam.Announcement) error {
	for _, object := range []client.Object{forgeConfigMap(namespace, announcement), forgeRoleBinding(namespace, peer)} {
		if err := a.cfg.Client.Patch(ctx, object, client.Apply, fieldOwner, client.ForceOwnership); err != nil {
			return fmt.Errorf("announce the remote IPAM to cluster %s with %T %s/%s: %w",
				peer, object, object.GetNamespace(), object.GetName(), err)
		}
	}
	return nil
}

func forgeConfigMap(namespace string, announcement remoteipam.Announcement) *corev1.ConfigMap {
	return &corev1.ConfigMap{
		TypeMeta:   metav1.TypeMeta{APIVersion: corev1.SchemeGroupVersion.String(), Kind: "ConfigMap"},
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: remoteipam.AnnouncementName},
		Data:       announcement.Data(),
	}
}

// forgeRoleBinding lets a peer read its announcement. A peer's user name at this
// cluster is its cluster ID (liqo/pkg/tenantNamespace/bindings.go@v0.9.4).
func forgeRoleBinding(namespace string, peer cluster.ID) *rbacv1.RoleBinding {
	return &rbacv1.RoleBinding{
		TypeMeta:   metav1.TypeMeta{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: "RoleBinding"},
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: remoteipam.AnnouncementName},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: remoteipam.ClientRoleName},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: string(peer)}},
	}
}
