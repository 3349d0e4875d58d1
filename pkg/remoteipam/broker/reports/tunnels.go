// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package reports

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
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
	"github.com/capacitorset/liqo-broker/pkg/liqo"
	"github.com/capacitorset/liqo-broker/pkg/remoteipam"
)

const (
	// readAgain is how long what was read of a ConfigMap counts. Nobody else writes them.
	readAgain = 10 * time.Minute
	// How often one consumer may have something written: one object for each provider
	// when it comes, and a few when a tunnel changes.
	tunnelsPerSecond, tunnelsAtOnce = 10, 2000
)

// errTooOften means that a consumer has told other things again and again.
var errTooOften = errors.New("too many changes")

// entries are what a ConfigMap was when it was read, with what was written since then.
type entries struct {
	read     time.Time
	prefixes map[string]string
}

// RecordTunnels replaces what is written about a consumer: the prefixes under which
// providers see its pods, by provider. It is idempotent, and writes nothing that
// is written already. A prefix that overlaps the one of another consumer at that provider
// is left out; then the error is [remoteipam.ErrPrefixTaken].
func (r *Recorder) RecordTunnels(ctx context.Context, consumer cluster.ID, prefixes map[cluster.ID]netip.Prefix) error {
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
		failures = append(failures, r.recordTunnel(ctx, namespace, consumer, prefixes[peer]))
	}
	return errors.Join(append(failures, r.forgetTunnels(ctx, consumer, current))...)
}

// forgetTunnels drops what is known of namespaces that are gone.
func (r *Recorder) forgetTunnels(ctx context.Context, consumer cluster.ID, current map[types.UID]bool) error {
	release, err := r.lock.Acquire(ctx, consumer)
	if err != nil {
		return err
	}
	defer release()
	maps.DeleteFunc(r.known, func(id types.UID, _ *entries) bool { return !current[id] })
	return nil
}

// recordTunnel writes one entry; a prefix that is not valid removes it.
func (r *Recorder) recordTunnel(ctx context.Context, namespace *corev1.Namespace, consumer cluster.ID, prefix netip.Prefix) error {
	release, err := r.lock.Acquire(ctx, consumer)
	if err != nil {
		return err
	}
	defer release()
	written, err := r.readTunnels(ctx, namespace)
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
	if !r.paceOf(consumer).AllowN(r.clock.Now(), 1) {
		return fmt.Errorf("write consumer %s into namespace %s: %w", consumer, namespace.Name, errTooOften)
	}
	if err := r.writeTunnels(ctx, namespace.Name, consumer, wanted); err != nil {
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

// paceOf returns the pace of one consumer. It is called with the lock held.
func (r *Recorder) paceOf(consumer cluster.ID) *rate.Limiter {
	if r.writes[consumer] == nil {
		r.writes[consumer] = rate.NewLimiter(tunnelsPerSecond, tunnelsAtOnce)
	}
	return r.writes[consumer]
}

// forgetPace forgets how often a consumer had something written: the next one of its name may at once.
func (r *Recorder) forgetPace(ctx context.Context, consumer cluster.ID) error {
	release, err := r.lock.Acquire(ctx, consumer)
	if err != nil {
		return err
	}
	defer release()
	delete(r.writes, consumer)
	return nil
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

// readTunnels returns the entries in a tenant namespace.
func (r *Recorder) readTunnels(ctx context.Context, namespace *corev1.Namespace) (*entries, error) {
	if known := r.known[namespace.UID]; known != nil && r.clock.Now().Sub(known.read) < readAgain {
		return known, nil
	}
	var current corev1.ConfigMap
	key := client.ObjectKey{Namespace: namespace.Name, Name: remoteipam.DirectName}
	if err := r.client.Get(ctx, key, &current); client.IgnoreNotFound(err) != nil {
		return nil, fmt.Errorf("read ConfigMap %s: %w", key, err)
	}
	fresh := &entries{read: r.clock.Now(), prefixes: current.Data}
	if fresh.prefixes == nil {
		fresh.prefixes = map[string]string{}
	}
	r.known[namespace.UID] = fresh
	return fresh, nil
}

// writeTunnels writes one entry; an empty text removes it.
func (r *Recorder) writeTunnels(ctx context.Context, namespace string, consumer cluster.ID, text string) error {
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
