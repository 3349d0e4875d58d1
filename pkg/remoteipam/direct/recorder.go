// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

// Package direct writes down, on a broker, which consumers reach a provider past
// it, in the tenant namespace of that provider. The broker's virtual kubelet for
// the provider reads it there.
//
// It does not know who tells it, nor what the prefixes are used for.
package direct

import (
	"context"
	"errors"
	"fmt"
	"net/netip"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/capacitorset/liqo-broker/pkg/api/v1alpha1"
	"github.com/capacitorset/liqo-broker/pkg/cluster"
	"github.com/capacitorset/liqo-broker/pkg/liqo"
	"github.com/capacitorset/liqo-broker/pkg/remoteipam"
)

// Recorder keeps the ConfigMaps. It is safe for concurrent use, and a reconciler
// of Consumers: what a consumer told is removed with it.
type Recorder struct{ client client.Client }

// NewRecorder returns a recorder. The client lists namespaces, reads Consumers,
// and reads and writes the ConfigMaps named [remoteipam.DirectName]; it must not
// read these from a cache.
func NewRecorder(client client.Client) *Recorder { return &Recorder{client: client} }

// Setup registers the recorder with a manager.
func (r *Recorder) Setup(manager ctrl.Manager) error {
	return ctrl.NewControllerManagedBy(manager).Named("direct").For(&v1alpha1.Consumer{}).Complete(r)
}

// Reconcile forgets a consumer that is gone.
func (r *Recorder) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	var consumer v1alpha1.Consumer
	err := r.client.Get(ctx, request.NamespacedName, &consumer)
	if client.IgnoreNotFound(err) != nil || err == nil {
		return reconcile.Result{}, err
	}
	return reconcile.Result{}, r.Record(ctx, cluster.ID(request.Name), nil)
}

// Record replaces what is written about a consumer: the prefixes under which
// providers see its pods, by provider. It is idempotent, and writes nothing that
// is written already.
func (r *Recorder) Record(ctx context.Context, consumer cluster.ID, prefixes map[cluster.ID]netip.Prefix) error {
	var namespaces corev1.NamespaceList
	if err := r.client.List(ctx, &namespaces); err != nil {
		return fmt.Errorf("list the tenant namespaces: %w", err)
	}
	var failures []error
	for i := range namespaces.Items {
		namespace := &namespaces.Items[i]
		peer, ok := liqo.TenantOf(namespace)
		if !ok || !namespace.DeletionTimestamp.IsZero() {
			continue
		}
		failures = append(failures, r.record(ctx, namespace.Name, consumer, prefixes[peer]))
	}
	return errors.Join(failures...)
}

// record writes one entry; a prefix that is not valid removes it.
func (r *Recorder) record(ctx context.Context, namespace string, consumer cluster.ID, prefix netip.Prefix) error {
	wanted := ""
	if prefix.IsValid() {
		wanted = prefix.String()
	}
	var current corev1.ConfigMap
	key := client.ObjectKey{Namespace: namespace, Name: remoteipam.DirectName}
	if err := r.client.Get(ctx, key, &current); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("read ConfigMap %s: %w", key, err)
	}
	if current.Data[string(consumer)] == wanted {
		return nil
	}
	configMap := &corev1.ConfigMap{
		TypeMeta:   metav1.TypeMeta{APIVersion: corev1.SchemeGroupVersion.String(), Kind: "ConfigMap"},
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: remoteipam.DirectName},
	}
	if wanted != "" {
		configMap.Data = map[string]string{string(consumer): wanted}
	}
	// Each consumer's entry has a field owner of its own, so that writing one
	// neither needs nor touches the others.
	owner := client.FieldOwner("liqo-broker-consumer-" + string(consumer))
	if err := r.client.Patch(ctx, configMap, client.Apply, owner, client.ForceOwnership); err != nil {
		return fmt.Errorf("write consumer %s into ConfigMap %s: %w", consumer, key, err)
	}
	return nil
}
