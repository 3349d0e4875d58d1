// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package reports_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	testingclock "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/capacitorset/liqo-broker/pkg/api/v1alpha1"
	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
	"github.com/capacitorset/liqo-broker/pkg/liqo/v09/liqotest"
	"github.com/capacitorset/liqo-broker/pkg/remoteipam"
	"github.com/capacitorset/liqo-broker/pkg/remoteipam/broker/reports"
)

// applied plays server-side apply, which the fake client does not know: each
// field owner has the entries that it applied last.
type applied struct {
	owners map[client.ObjectKey]map[string]map[string]string
	writes int
	reads  int
}

func (a *applied) get(
	ctx context.Context, api client.WithWatch, key client.ObjectKey, object client.Object, options ...client.GetOption,
) error {
	if _, ok := object.(*corev1.ConfigMap); ok {
		a.reads++
	}
	return api.Get(ctx, key, object, options...)
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
	return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "tenant-" + string(peer), UID: types.UID(peer), Labels: map[string]string{
		"discovery.liqo.io/cluster-id": string(peer), "discovery.liqo.io/tenant-namespace": "true",
	}}}
}

func newRecorder(t *testing.T, api client.Client, now clock.PassiveClock) *reports.Recorder {
	t.Helper()
	recorder, err := reports.New(reports.Config{Client: api, Clock: now})
	if err != nil {
		t.Fatal(err)
	}
	return recorder
}

func TestTunnels(t *testing.T) {
	const a, b = cluster.ID("provider-a"), cluster.ID("provider-b")
	near, far := netip.MustParsePrefix("10.83.0.0/16"), netip.MustParsePrefix("10.84.0.0/16")
	other, part := netip.MustParsePrefix("10.85.0.0/16"), netip.MustParsePrefix("10.83.7.0/24")
	server := &applied{owners: map[client.ObjectKey]map[string]map[string]string{}}
	api := fake.NewClientBuilder().WithScheme(liqotest.Scheme(t)).
		WithObjects(tenant(a), tenant(b), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "default"}},
			&v1alpha1.Consumer{ObjectMeta: metav1.ObjectMeta{Name: "one"}}).
		WithInterceptorFuncs(interceptor.Funcs{Patch: server.patch, Get: server.get}).Build()
	recorder := newRecorder(t, api, clock.RealClock{})

	record := func(consumer cluster.ID, prefixes map[cluster.ID]netip.Prefix) func(context.Context) error {
		return func(ctx context.Context) error { return recorder.RecordTunnels(ctx, consumer, prefixes) }
	}
	reconcileOf := func(consumer string) func(context.Context) error {
		return func(ctx context.Context) error {
			_, err := recorder.Reconcile(ctx, reconcile.Request{NamespacedName: client.ObjectKey{Name: consumer}})
			return err
		}
	}
	steps := []struct {
		reason  string
		do      func(context.Context) error
		want    string
		writes  int
		refused bool
	}{
		{"nobody told anything: nothing is written", record("one", nil), "map[], map[]", 0, false},
		{
			"one provider reaches the consumer directly", record("one", map[cluster.ID]netip.Prefix{a: near}),
			"map[one:10.83.0.0/16], map[]", 1, false,
		},
		{"the same again costs nothing", record("one", map[cluster.ID]netip.Prefix{a: near}), "map[one:10.83.0.0/16], map[]", 0, false},
		{"another consumer leaves the first alone", record("two", map[cluster.ID]netip.Prefix{a: far, b: far}),
			"map[one:10.83.0.0/16 two:10.84.0.0/16], map[two:10.84.0.0/16]", 2, false},
		{"a tunnel was lost, another made", record("one", map[cluster.ID]netip.Prefix{b: near}),
			"map[two:10.84.0.0/16], map[one:10.83.0.0/16 two:10.84.0.0/16]", 2, false},
		{"a cluster without a tenant namespace is no provider", record("one", map[cluster.ID]netip.Prefix{b: near, "elsewhere": near}),
			"map[two:10.84.0.0/16], map[one:10.83.0.0/16 two:10.84.0.0/16]", 0, false},
		{"a consumer cannot take what another one told, and keeps what is its own", record("evil", map[cluster.ID]netip.Prefix{a: far, b: other}),
			"map[two:10.84.0.0/16], map[evil:10.85.0.0/16 one:10.83.0.0/16 two:10.84.0.0/16]", 1, true},
		{"nor a part of it, and it loses what it had there", record("evil", map[cluster.ID]netip.Prefix{b: part}),
			"map[two:10.84.0.0/16], map[one:10.83.0.0/16 two:10.84.0.0/16]", 1, true},
		{
			"a consumer that exists keeps what it told", reconcileOf("one"), "map[two:10.84.0.0/16], map[one:10.83.0.0/16 two:10.84.0.0/16]", 0,
			false,
		},
		{"a consumer that is gone loses it", reconcileOf("two"), "map[], map[one:10.83.0.0/16]", 2, false},
	}
	reads := 0
	for _, step := range steps {
		server.writes, server.reads = 0, 0
		if err := step.do(t.Context()); (err != nil) != step.refused || err != nil && !errors.Is(err, remoteipam.ErrPrefixTaken) {
			t.Fatalf("%s: %v", step.reason, err)
		}
		reads += server.reads
		got := fmt.Sprintf("%v, %v", entries(t, api, a), entries(t, api, b))
		if diff := cmp.Diff(step.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", step.reason, diff)
		}
		if server.writes != step.writes {
			t.Errorf("%s: %d writes, want %d", step.reason, server.writes, step.writes)
		}
	}
	if reads != 2 {
		t.Errorf("%d reads of ConfigMaps that nobody else writes, want one of each", reads)
	}
}

// TestForgetsTimes holds that how often the round-trip times of a consumer were written is forgotten with it.
func TestForgetsTimes(t *testing.T) {
	one := &v1alpha1.Consumer{ObjectMeta: metav1.ObjectMeta{Name: "one"}}
	api := fake.NewClientBuilder().WithScheme(liqotest.Scheme(t)).WithObjects(one.DeepCopy()).WithStatusSubresource(one).Build()
	recorder := newRecorder(t, api, testingclock.NewFakePassiveClock(time.Unix(1_800_000_000, 0)))
	jumps := 0
	written := func() bool {
		t.Helper()
		jumps++
		took := map[cluster.ID]time.Duration{"provider-a": time.Duration(jumps) * time.Second}
		if err := recorder.RecordRoundTrips(t.Context(), "one", took); err != nil {
			t.Fatal(err)
		}
		is := &v1alpha1.Consumer{}
		if err := api.Get(t.Context(), client.ObjectKeyFromObject(one), is); err != nil {
			t.Fatal(err)
		}
		return len(is.Status.RoundTrips) == 1 && string(is.Status.RoundTrips[0].Value) == strconv.Itoa(jumps*1000)
	}
	look := func() {
		t.Helper()
		if _, err := recorder.Reconcile(t.Context(), reconcile.Request{NamespacedName: client.ObjectKeyFromObject(one)}); err != nil {
			t.Fatal(err)
		}
	}
	for range 100 {
		written()
	}
	if look(); written() {
		t.Error("one that is there is forgotten, or all of its times are written")
	}
	if err := api.Delete(t.Context(), one.DeepCopy()); err != nil {
		t.Fatal(err)
	}
	look()
	if err := api.Create(t.Context(), one.DeepCopy()); err != nil {
		t.Fatal(err)
	}
	if !written() {
		t.Error("one that is gone is not forgotten")
	}
}

// TestRestart forgets what was read, as a sidecar does that starts again, and finds what a
// consumer told before.
func TestRestart(t *testing.T) {
	const a, b = cluster.ID("provider-a"), cluster.ID("provider-b")
	near := netip.MustParsePrefix("10.83.0.0/16")
	server := &applied{owners: map[client.ObjectKey]map[string]map[string]string{}}
	api := fake.NewClientBuilder().WithScheme(liqotest.Scheme(t)).WithObjects(tenant(a), tenant(b)).
		WithInterceptorFuncs(interceptor.Funcs{Patch: server.patch}).Build()
	for _, step := range []struct {
		reason   string
		prefixes map[cluster.ID]netip.Prefix
		want     string
	}{
		{"it told one provider", map[cluster.ID]netip.Prefix{a: near}, "map[one:10.83.0.0/16], map[]"},
		{"and another one after the restart", map[cluster.ID]netip.Prefix{b: near}, "map[], map[one:10.83.0.0/16]"},
	} {
		if err := newRecorder(t, api, clock.RealClock{}).RecordTunnels(t.Context(), "one", step.prefixes); err != nil {
			t.Fatal(err)
		}
		if got := fmt.Sprintf("%v, %v", entries(t, api, a), entries(t, api, b)); got != step.want {
			t.Errorf("%s: %s, want %s", step.reason, got, step.want)
		}
	}
}

// TestManyChanges lets a consumer tell something else again and again, while no time passes. Its pace is forgotten with it, once what it
// told is removed.
func TestManyChanges(t *testing.T) {
	const a = cluster.ID("provider-a")
	evil := &v1alpha1.Consumer{ObjectMeta: metav1.ObjectMeta{Name: "evil"}}
	now := testingclock.NewFakePassiveClock(time.Unix(1_800_000_000, 0))
	server := &applied{owners: map[client.ObjectKey]map[string]map[string]string{}}
	api := fake.NewClientBuilder().WithScheme(liqotest.Scheme(t)).WithObjects(tenant(a), evil.DeepCopy()).
		WithInterceptorFuncs(interceptor.Funcs{Patch: server.patch}).Build()
	recorder, told, refused := newRecorder(t, api, now), 0, 0
	tell := func() error {
		told++
		prefix := netip.PrefixFrom(netip.AddrFrom4([4]byte{10, byte(told % 80), 0, 0}), 16)
		return recorder.RecordTunnels(t.Context(), "evil", map[cluster.ID]netip.Prefix{a: prefix})
	}
	look := func() error {
		_, err := recorder.Reconcile(t.Context(), reconcile.Request{NamespacedName: client.ObjectKeyFromObject(evil)})
		return err
	}
	for range 2500 {
		if tell() != nil {
			refused++
		}
	}
	if refused == 0 {
		t.Errorf("%d writes for one consumer, and none refused", server.writes)
	}
	if err := recorder.RecordTunnels(t.Context(), "one", map[cluster.ID]netip.Prefix{a: netip.MustParsePrefix("10.90.0.0/16")}); err != nil {
		t.Errorf("another consumer is refused for it: %v", err)
	}
	if err := look(); err != nil || tell() == nil {
		t.Errorf("its pace is forgotten though it is there, or %v", err)
	}
	if err := api.Delete(t.Context(), evil.DeepCopy()); err != nil {
		t.Fatal(err)
	}
	if look() == nil || len(entries(t, api, a)) != 2 {
		t.Error("what it told is removed faster than it may have anything written")
	}
	now.SetTime(now.Now().Add(100 * time.Millisecond)) // It may have one thing written.
	if err := look(); err != nil || len(entries(t, api, a)) != 1 {
		t.Errorf("what it told is not removed: %v", err)
	}
	if err := tell(); err != nil {
		t.Errorf("its pace is not forgotten with it: %v", err)
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
