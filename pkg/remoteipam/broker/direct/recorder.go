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
	"maps"
	"net/netip"
	"time"

	"golang.org/x/time/rate"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/capacitorset/liqo-broker/pkg/api/v1alpha1"
	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
	"github.com/capacitorset/liqo-broker/pkg/liqo"
	"github.com/capacitorset/liqo-broker/pkg/remoteipam"
	"github.com/capacitorset/liqo-broker/pkg/remoteipam/broker/fair"
)

const (
	// readAgain is how long what was read of a ConfigMap counts. Nobody else writes them.
	readAgain = 10 * time.Minute
	// How often one consumer may have something written: one object for each provider
	// when it comes, and a few when a tunnel changes.
	writesPerSecond, writesAtOnce = 10, 2000
)

// errTooOften means that a consumer has told other things again and again.
var errTooOften = errors.New("too many changes")

// Recorder keeps the ConfigMaps. It is safe for concurrent use, and a reconciler
// of Consumers: what a consumer told is removed with it.
type Recorder struct {
	client client.Client
	now    func() time.Time

	// lock protects what follows. It is held for one namespace at a time, so that no
	// consumer waits for all that another one tells.
	lock  fair.Lock[cluster.ID]
	known map[types.UID]*entries
	paces map[cluster.ID]*rate.Limiter
}

// entries are what a ConfigMap was when it was read, with what was written since then.
type entries struct {
	read     time.Time
	prefixes map[string]string
}

// NewRecorder returns a recorder. The client lists namespaces, reads Consumers,
// and reads and writes the ConfigMaps named [remoteipam.DirectName]; it must not
// read these from a cache.
func NewRecorder(client client.Client) *Recorder {
	return &Recorder{client: client, now: time.Now, known: map[types.UID]*entries{}, paces: map[cluster.ID]*rate.Limiter{}}
}

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
// is written already. A prefix that overlaps the one of another consumer at that provider
// is left out; then the error is [remoteipam.ErrPrefixTaken].
func (r *Recorder) Record(ctx context.Context, consumer cluster.ID, prefixes map[cluster.ID]netip.Prefix) error {
	var namespaces corev1.NamespaceList
	if err := r.client.List(ctx, &namespaces); err != nil {
		return fmt.Errorf("list the tenant namespaces: %w", err)
	}
	var failures []error
	current := map[types.UID]bool{}
	for i := range namespaces.Items {
		namespace := &namespaces.Items[i]
		peer, ok := liqo.TenantOf(namespace)
		if !ok || !namespace.DeletionTimestamp.IsZero() {
			continue
		}
		current[namespace.UID] = true
		failures = append(failures, r.record(ctx, namespace, consumer, prefixes[peer]))
	}
	return errors.Join(append(failures, r.forget(ctx, consumer, current))...)
}

// forget drops what is known of namespaces that are gone.
func (r *Recorder) forget(ctx context.Context, consumer cluster.ID, current map[types.UID]bool) error {
	release, err := r.lock.Acquire(ctx, consumer)
	if err != nil {
		return err
	}
	defer release()
	maps.DeleteFunc(r.known, func(id types.UID, _ *entries) bool { return !current[id] })
	return nil
}

// record writes one entry; a prefix that is not valid removes it.
func (r *Recorder) record(ctx context.Context, namespace *corev1.Namespace, consumer cluster.ID, prefix netip.Prefix) error {
	release, err := r.lock.Acquire(ctx, consumer)
	if err != nil {
		return err
	}
	defer release()
	written, err := r.read(ctx, namespace)
	if err != nil {
		return err
	}
	var refused error
	if other := overlapping(written.prefixes, consumer, prefix); other != "" {
		refused = fmt.Errorf("prefix %s of consumer %s in namespace %s overlaps the one of %s: %w",
			prefix, consumer, namespace.Name, other, remoteipam.ErrPrefixTaken)
		prefix = netip.Prefix{}
	}
	wanted := ""
	if prefix.IsValid() {
		wanted = prefix.String()
	}
	if written.prefixes[string(consumer)] == wanted {
		return refused
	}
	if !r.pace(consumer).Allow() {
		return fmt.Errorf("write consumer %s into namespace %s: %w", consumer, namespace.Name, errTooOften)
	}
	if err := r.write(ctx, namespace.Name, consumer, wanted); err != nil {
		delete(r.known, namespace.UID) // It may have been written.
		return err
	}
	if wanted == "" {
		delete(written.prefixes, string(consumer))
	} else {
		written.prefixes[string(consumer)] = wanted
	}
	return refused
}

// overlapping returns another consumer whose prefix overlaps this one.
func overlapping(prefixes map[string]string, consumer cluster.ID, prefix netip.Prefix) string {
	for id, text := range prefixes {
		other, err := netip.ParsePrefix(text)
		if err == nil && id != string(consumer) && other.Overlaps(prefix) {
			return id
		}
	}
	return ""
}

func (r *Recorder) pace(consumer cluster.ID) *rate.Limiter {
	if r.paces[consumer] == nil {
		r.paces[consumer] = rate.NewLimiter(writesPerSecond, writesAtOnce)
	}
	return r.paces[consumer]
}

// read returns the entries in a tenant namespace.
func (r *Recorder) read(ctx context.Context, namespace *corev1.Namespace) (*entries, error) {
	if known := r.known[namespace.UID]; known != nil && r.now().Sub(known.read) < readAgain {
		return known, nil
	}
	var current corev1.ConfigMap
	key := client.ObjectKey{Namespace: namespace.Name, Name: remoteipam.DirectName}
	if err := r.client.Get(ctx, key, &current); client.IgnoreNotFound(err) != nil {
		return nil, fmt.Errorf("read ConfigMap %s: %w", key, err)
	}
	fresh := &entries{read: r.now(), prefixes: current.Data}
	if fresh.prefixes == nil {
		fresh.prefixes = map[string]string{}
	}
	r.known[namespace.UID] = fresh
	return fresh, nil
}

// write writes one entry; an empty text removes it.
func (r *Recorder) write(ctx context.Context, namespace string, consumer cluster.ID, text string) error {
	configMap := &corev1.ConfigMap{
		TypeMeta:   metav1.TypeMeta{APIVersion: corev1.SchemeGroupVersion.String(), Kind: "ConfigMap"},
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: remoteipam.DirectName},
	}
	if text != "" {
		configMap.Data = map[string]string{string(consumer): text}
	}
	// Each consumer's entry has a field owner of its own, so that writing one
	// neither needs nor touches the others.
	owner := client.FieldOwner("liqo-broker-consumer-" + string(consumer))
	if err := r.client.Patch(ctx, configMap, client.Apply, owner, client.ForceOwnership); err != nil {
		return fmt.Errorf("write consumer %s into ConfigMap %s/%s: %w", consumer, namespace, remoteipam.DirectName, err)
	}
	return nil
}
