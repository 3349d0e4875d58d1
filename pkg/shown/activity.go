// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package shown

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capacitorset/liqo-broker/pkg/api/v1alpha1"
	"github.com/capacitorset/liqo-broker/pkg/cached"
	"github.com/capacitorset/liqo-broker/pkg/shown/apiv1"
	"github.com/capacitorset/liqo-broker/pkg/shown/feed"
)

// maxActivities is how much of what has happened is shown: the newest.
const maxActivities = 1000

// Told are the events of which is shown what has happened.
func Told() client.Object {
	return &corev1.Event{ObjectMeta: metav1.ObjectMeta{Namespace: cached.NamespaceOfEvents}}
}

// activity returns what has happened to the broker's objects, as far as the API server still has the events of it.
func (o *Objects) activity(ctx context.Context) ([]feed.Item, error) {
	var (
		provide v1alpha1.ProviderList
		consume v1alpha1.ConsumerList
	)
	if err := o.readAll(ctx, &provide, &consume); err != nil {
		return nil, err
	}
	providers, consumers := map[string]string{}, map[string]string{}
	for i := range provide.Items {
		providers[provide.Items[i].Name] = provide.Items[i].Status.ClusterName
	}
	for i := range consume.Items {
		consumers[consume.Items[i].Name] = consume.Items[i].Status.ClusterName
	}
	return Happened(ctx, o.Reader, providers, consumers)
}

// Happened returns the newest of what has happened to objects of the broker's group, as events say, given the names of the providers and
// consumers that are known, by ID. Both may be nil: a cluster that only trades has none.
func Happened(ctx context.Context, reader client.Reader, providers, consumers map[string]string) ([]feed.Item, error) {
	var events corev1.EventList
	if err := reader.List(ctx, &events, client.InNamespace(cached.NamespaceOfEvents), client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list events: %w", err)
	}
	found := make([]*corev1.Event, 0, len(events.Items))
	for i := range events.Items {
		if e := &events.Items[i]; cached.IsOfBroker(e) {
			found = append(found, e)
		}
	}
	slices.SortFunc(found, func(a, b *corev1.Event) int {
		return cmp.Or(apiv1.LastOf(b).Compare(apiv1.LastOf(a)), cmp.Compare(a.UID, b.UID))
	})
	items := make([]feed.Item, 0, min(len(found), maxActivities))
	for _, e := range found[:min(len(found), maxActivities)] {
		items = append(items, feed.Item{Key: string(e.UID), Value: apiv1.ActivityOf(e, providers, consumers)})
	}
	return items, nil
}
