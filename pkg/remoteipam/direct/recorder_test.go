// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package direct_test

import (
	"context"
	"fmt"
	"maps"
	"net/netip"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/capacitorset/liqo-broker/pkg/api/v1alpha1"
	"github.com/capacitorset/liqo-broker/pkg/cluster"
	"github.com/capacitorset/liqo-broker/pkg/liqo/liqotest"
	"github.com/capacitorset/liqo-broker/pkg/remoteipam"
	"github.com/capacitorset/liqo-broker/pkg/remoteipam/direct"
)

// applied plays server-side apply, which the fake client does not know: each
// field owner has the entries that it applied last.
type applied struct {
	owners map[client.ObjectKey]map[string]map[string]string
	writes int
}

func (a *applied) patch(
	ctx context.Context, api client.WithWatch, object client.Object, _ client.Patch, options ...client.PatchOption,
) error {
	a.writes++
	patch := &client.PatchOptions{}
	patch.ApplyOptions(options)
	key := client.ObjectKeyFromObject(object)
	if a.owners[key] == nil {
		a.owners[key] = map[string]map[string]string{}
	}
	a.owners[key][patch.FieldManager] = object.(*corev1.ConfigMap).Data
	merged := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}, Data: map[string]string{}}
	for _, entries := range a.owners[key] {
		maps.Copy(merged.Data, entries)
	}
	if err := api.Update(ctx, merged); client.IgnoreNotFound(err) != nil {
		return err
	} else if err == nil {
		return nil
	}
	return api.Create(ctx, merged)
}

func tenant(peer cluster.ID) *corev1.Namespace {
	return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "tenant-" + string(peer), Labels: map[string]string{
		"discovery.liqo.io/cluster-id": string(peer), "discovery.liqo.io/tenant-namespace": "true",
	}}}
}

func TestRecord(t *testing.T) {
	const a, b = cluster.ID("provider-a"), cluster.ID("provider-b")
	near, far := netip.MustParsePrefix("10.83.0.0/16"), netip.MustParsePrefix("10.84.0.0/16")
	server := &applied{owners: map[client.ObjectKey]map[string]map[string]string{}}
	api := fake.NewClientBuilder().WithScheme(liqotest.Scheme(t)).
		WithObjects(tenant(a), tenant(b), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "default"}},
			&v1alpha1.Consumer{ObjectMeta: metav1.ObjectMeta{Name: "one"}}).
		WithInterceptorFuncs(interceptor.Funcs{Patch: server.patch}).Build()
	recorder := direct.NewRecorder(api)

	record := func(consumer cluster.ID, prefixes map[cluster.ID]netip.Prefix) func(context.Context) error {
		return func(ctx context.Context) error { return recorder.Record(ctx, consumer, prefixes) }
	}
	reconcileOf := func(consumer string) func(context.Context) error {
		return func(ctx context.Context) error {
			_, err := recorder.Reconcile(ctx, reconcile.Request{NamespacedName: client.ObjectKey{Name: consumer}})
			return err
		}
	}
	steps := []struct {
		reason string
		do     func(context.Context) error
		want   string
		writes int
	}{
		{"nobody told anything: nothing is written", record("one", nil), "map[], map[]", 0},
		{"one provider reaches the consumer directly", record("one", map[cluster.ID]netip.Prefix{a: near}), "map[one:10.83.0.0/16], map[]", 1},
		{"the same again costs nothing", record("one", map[cluster.ID]netip.Prefix{a: near}), "map[one:10.83.0.0/16], map[]", 0},
		{"another consumer leaves the first alone", record("two", map[cluster.ID]netip.Prefix{a: far, b: far}),
			"map[one:10.83.0.0/16 two:10.84.0.0/16], map[two:10.84.0.0/16]", 2},
		{"a tunnel was lost, another made", record("one", map[cluster.ID]netip.Prefix{b: near}),
			"map[two:10.84.0.0/16], map[one:10.83.0.0/16 two:10.84.0.0/16]", 2},
		{"a cluster without a tenant namespace is no provider", record("one", map[cluster.ID]netip.Prefix{b: near, "elsewhere": near}),
			"map[two:10.84.0.0/16], map[one:10.83.0.0/16 two:10.84.0.0/16]", 0},
		{"a consumer that exists keeps what it told", reconcileOf("one"), "map[two:10.84.0.0/16], map[one:10.83.0.0/16 two:10.84.0.0/16]", 0},
		{"a consumer that is gone loses it", reconcileOf("two"), "map[], map[one:10.83.0.0/16]", 2},
	}
	for _, step := range steps {
		server.writes = 0
		if err := step.do(t.Context()); err != nil {
			t.Fatalf("%s: %v", step.reason, err)
		}
		got := fmt.Sprintf("%v, %v", entries(t, api, a), entries(t, api, b))
		if diff := cmp.Diff(step.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", step.reason, diff)
		}
		if server.writes != step.writes {
			t.Errorf("%s: %d writes, want %d", step.reason, server.writes, step.writes)
		}
	}
}

func entries(t *testing.T, api client.Reader, provider cluster.ID) remoteipam.DirectConsumers {
	t.Helper()
	var configMap corev1.ConfigMap
	key := client.ObjectKey{Namespace: tenant(provider).Name, Name: remoteipam.DirectName}
	if err := api.Get(t.Context(), key, &configMap); client.IgnoreNotFound(err) != nil {
		t.Fatal(err)
	}
	consumers, err := remoteipam.ParseDirectConsumers(configMap.Data)
	if err != nil {
		t.Fatal(err)
	}
	return consumers
}
