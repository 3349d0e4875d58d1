// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package snapshot

import (
	"context"
	"fmt"
	"maps"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capacitorset/liqo-broker/pkg/api/v1alpha1"
	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
	"github.com/capacitorset/liqo-broker/pkg/core/placement"
	"github.com/capacitorset/liqo-broker/pkg/remoteipam"
)

// labelSole is on the pods of StatefulSets, each of which has a name and perhaps
// storage that no other pod may use at the same time.
const labelSole = "statefulset.kubernetes.io/pod-name"

func isSole(labels map[string]string) bool {
	_, sole := labels[labelSole]
	return sole
}

// modes are the modes of failover by the names that people use.
var modes = map[v1alpha1.FailoverMode]placement.Mode{
	v1alpha1.FailoverNever:      placement.Never,
	v1alpha1.FailoverAfterGrace: placement.AfterGrace,
	v1alpha1.FailoverImmediate:  placement.Immediate,
}

// failoverOf returns the rule of a policy, or the default one if there is no policy.
func failoverOf(policy *v1alpha1.PlacementPolicy) placement.Failover {
	rule := placement.Failover{Mode: placement.AfterGrace, Grace: placement.DefaultGrace}
	if policy == nil {
		return rule
	}
	spec := &policy.Spec.Failover
	if mode, known := modes[spec.Mode]; known {
		rule.Mode = mode
	}
	if spec.Grace != nil {
		rule.Grace = spec.Grace.Duration
	}
	rule.ReplaceSole = spec.StatefulSets == v1alpha1.StatefulReplace
	return rule
}

// markDirect marks the lost providers that the consumer of a namespace reaches past
// the broker.
func (r *Reader) markDirect(ctx context.Context, n *Twin, consumer cluster.ID) error {
	for i := range n.Snapshot.Providers {
		p := &n.Snapshot.Providers[i]
		if p.LostSince.IsZero() {
			continue
		}
		direct, err := r.direct(ctx, p.ID)
		if err != nil {
			return err
		}
		_, p.Direct = direct[consumer]
	}
	return nil
}

// direct returns the consumers that say that they reach a provider. What cannot be
// understood counts as not said.
func (r *Reader) direct(ctx context.Context, provider cluster.ID) (remoteipam.DirectConsumers, error) {
	peer, err := r.Peer(ctx, provider)
	if err != nil || peer == nil || peer.Tenant == "" {
		return nil, err
	}
	return r.said.readDirects(ctx, r.reader, peer.Tenant)
}

// DirectAge is for how long it is remembered which consumers reach a provider.
const DirectAge = 5 * time.Second

// directs remembers for a moment what consumers say of providers. It is read only from
// tenant namespaces, and only while a provider is lost, and never watched: a consumer may
// make ConfigMaps of any name and size in its twin namespaces.
type directs struct {
	clock clock.PassiveClock

	mu    sync.Mutex
	known map[string]direct // By tenant namespace.
}

type direct struct {
	at        time.Time
	consumers remoteipam.DirectConsumers
}

// readDirects returns what is said in a tenant namespace. The reader must not have it from a
// cache.
func (d *directs) readDirects(ctx context.Context, reader client.Reader, tenant string) (remoteipam.DirectConsumers, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	now := d.clock.Now()
	if known, ok := d.known[tenant]; ok && now.Sub(known.at).Abs() < DirectAge {
		return known.consumers, nil
	}
	var said corev1.ConfigMap
	key := client.ObjectKey{Namespace: tenant, Name: remoteipam.DirectName}
	if err := reader.Get(ctx, key, &said); client.IgnoreNotFound(err) != nil {
		return nil, fmt.Errorf("read ConfigMap %s: %w", key, err)
	}
	maps.DeleteFunc(d.known, func(_ string, old direct) bool { return now.Sub(old.at).Abs() >= DirectAge })
	consumers, _ := remoteipam.ParseDirectConsumers(said.Data)
	d.known[tenant] = direct{at: now, consumers: consumers}
	return consumers, nil
}
