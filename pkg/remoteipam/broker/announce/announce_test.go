// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package announce

import (
	"context"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	testingclock "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
	"github.com/capacitorset/liqo-broker/pkg/liqo/v09/liqotest"
	"github.com/capacitorset/liqo-broker/pkg/remoteipam"
)

// TestAnnouncements follows a tenant namespace from its creation.
func TestAnnouncements(t *testing.T) {
	clock := testingclock.NewFakePassiveClock(time.Unix(1_800_000_000, 0))
	tenant := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
		Name: "tenant", UID: "tenant", CreationTimestamp: metav1.NewTime(clock.Now()),
		Labels: map[string]string{"discovery.liqo.io/cluster-id": "peer", "discovery.liqo.io/tenant-namespace": "true"},
	}}
	var written []map[string]string
	api := fake.NewClientBuilder().WithScheme(liqotest.Scheme(t)).WithObjects(tenant).WithInterceptorFuncs(interceptor.Funcs{
		Patch: func(_ context.Context, _ client.WithWatch, o client.Object, _ client.Patch, _ ...client.PatchOption) error {
			if configMap, ok := o.(*corev1.ConfigMap); ok && configMap.Namespace == "tenant" && configMap.Name == remoteipam.AnnouncementName {
				written = append(written, configMap.Data)
			}
			return nil
		},
	}).Build()
	hash := ""
	a, err := New(Config{Client: api, Broker: "broker", Clock: clock, Issued: func(_ context.Context, peer cluster.ID) (string, error) {
		if peer != "peer" {
			t.Errorf("looked up %q", peer)
		}
		return hash, nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	publish := func(ca string) {
		t.Helper()
		if err := a.Publish(t.Context(), []byte(ca)); err != nil {
			t.Fatal(err)
		}
		<-a.renewed
	}
	steps := []struct {
		reason string
		after  time.Duration
		do     func()
		writes int
		hash   string
		again  time.Duration
	}{
		{"there is no certificate yet", 0, nil, 0, "", 0},
		{"the peer has none either, and is about to get one", 0, func() { publish("one") }, 1, "", lookSoon},
		{"nothing is new", lookSoon, nil, 0, "", lookSoon},
		{"the peer has got its certificate", lookSoon, func() { hash = "abc" }, 1, "abc", lookAgain},
		{"nothing is new", time.Minute, nil, 0, "", lookAgain},
		{"the broker has another certificate", time.Minute, func() { publish("two") }, 1, "abc", lookAgain},
		{"somebody may have removed it", lookAgain, nil, 1, "abc", lookAgain},
		{"the peer's certificate was taken back", time.Minute, func() { hash = "" }, 1, "", lookSoon},
		{"and it asks for none", soon, nil, 1, "", lookAgain},
	}
	for _, step := range steps {
		clock.SetTime(clock.Now().Add(step.after))
		if step.do != nil {
			step.do()
		}
		written = nil
		result, err := a.Reconcile(t.Context(), reconcile.Request{NamespacedName: client.ObjectKeyFromObject(tenant)})
		if err != nil || len(written) != step.writes || result.RequeueAfter != step.again {
			t.Errorf("%s: wrote %v, again after %s, %v", step.reason, written, result.RequeueAfter, err)
			continue
		}
		for _, data := range written {
			if got := remoteipam.AnnouncedClient(data); got != step.hash {
				t.Errorf("%s: announced key %q, want %q", step.reason, got, step.hash)
			}
		}
	}
}
