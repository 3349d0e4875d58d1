// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package allowance

import (
	"context"
	"fmt"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/cache/informertest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
	"github.com/capacitorset/liqo-broker/pkg/liqo"
	"github.com/capacitorset/liqo-broker/pkg/liqo/line"
	"github.com/capacitorset/liqo-broker/pkg/liqo/lines/linestest"
	v09 "github.com/capacitorset/liqo-broker/pkg/liqo/v09"
	"github.com/capacitorset/liqo-broker/pkg/liqo/v09/liqotest"
	v1 "github.com/capacitorset/liqo-broker/pkg/liqo/v1"
	"github.com/capacitorset/liqo-broker/pkg/liqo/v1/api"
	"github.com/capacitorset/liqo-broker/pkg/snapshot"
)

// slice returns what the buyer asks for with Liqo 1.x, and is granted.
func slice(granted corev1.ResourceList) *api.ResourceSlice {
	s := &api.ResourceSlice{
		ObjectMeta: metav1.ObjectMeta{Namespace: "liqo-tenant-buyer", Name: "broker", Labels: map[string]string{
			liqo.LabelReplicated: liqo.ReplicationValue, liqo.LabelOrigin: "buyer",
		}},
		Spec: api.ResourceSliceSpec{ConsumerClusterID: new("buyer"), ProviderClusterID: new("own"), Class: api.SliceClassBroker},
	}
	s.Status.Resources = granted
	s.Status.Conditions = []api.ResourceSliceCondition{
		{Type: api.SliceAuthentication, Status: api.SliceAccepted}, {Type: api.SliceResources, Status: api.SliceAccepted},
	}
	return s
}

// wished returns a ShadowPod of a line, whose pod requests cores.
func wished(t *testing.T, of line.Line, name, cores string) client.Object {
	t.Helper()
	shadow := of.Kinds().Wish
	kind, err := apiutil.GVKForObject(shadow, linestest.Scheme(t))
	if err != nil {
		t.Fatal(err)
	}
	shadow.GetObjectKind().SetGroupVersionKind(kind)
	shadow.SetNamespace(web)
	shadow.SetName(name)
	*of.WishOf(shadow).Pod = spec("cpu", cores)
	return shadow
}

// TestLiqo1 has a peer of Liqo 1.x ask for pods, which counts the ResourceSlices that it was granted.
func TestLiqo1(t *testing.T) {
	of, scheme := v1.Line{}, linestest.Scheme(t)
	named := map[string]string{liqo.LabelRemoteClusterID: "buyer"}
	tenant := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "liqo-tenant-buyer", Labels: map[string]string{
		liqo.LabelRemoteClusterID: "buyer", liqo.LabelTenantNamespace: "true",
	}}}
	ended := wished(t, of, "ended", "4").(*api.ShadowPod)
	ended.Status.Phase = corev1.PodSucceeded
	withdrawn := slice(list("cpu", "100"))
	withdrawn.Name, withdrawn.Finalizers, withdrawn.DeletionTimestamp = "gone", []string{"liqo.io/test"}, new(metav1.Now())
	b := fake.NewClientBuilder().WithScheme(scheme).WithObjects(
		liqotest.TwinNamespace(web, cluster.Identity{ID: "buyer"}), tenant,
		&api.ForeignCluster{ObjectMeta: metav1.ObjectMeta{Name: "buyer", Labels: named}, Spec: api.ForeignClusterSpec{ClusterID: "buyer"}},
		&api.Tenant{ObjectMeta: metav1.ObjectMeta{Namespace: tenant.Name, Name: "buyer"}, Spec: api.TenantSpec{ClusterID: "buyer"}},
		slice(list("cpu", "4", "pods", "10")), withdrawn, wished(t, of, "runs", "1"), ended,
	)
	for _, i := range of.Indexes() {
		b = b.WithIndex(i.Object, i.Field, i.Extract)
	}
	c := b.Build()
	tally := NewTally(c, of, clock.RealClock{})
	ctx, cancel := context.WithCancel(t.Context())
	ran := make(chan error, 1)
	go func() { ran <- tally.Run(ctx) }()
	defer func() {
		cancel()
		if err := <-ran; err != nil {
			t.Errorf("Run(): %v", err)
		}
	}()
	if !tally.WaitForSync(ctx) {
		t.Fatal("WaitForSync() = false")
	}
	h := New(Config{
		Scheme: scheme, Namespaces: c, Peers: snapshot.New(of, c, "own", nil), Tally: tally, Grants: NewGrants(clock.RealClock{}),
	})
	ask := func(operation admissionv1.Operation, now, before client.Object) func(reason, refusal string) {
		request := asked(t, operation, now, before)
		request.DryRun = new(true)
		return func(reason, refusal string) {
			t.Helper()
			check(t, reason, h.Handle(ctx, request), refusal)
		}
	}
	ask(admissionv1.Create, wished(t, of, "fits", "3"), nil)("it is granted as much", "")
	ask(admissionv1.Create, wished(t, of, "large", "3500m"), nil)("another one runs", "4500m of 4 cpu")
	ask(admissionv1.Update, wished(t, of, "runs", "2"), wished(t, of, "runs", "1"))("it was less", "it requests 2 cpu now")
	ask(admissionv1.Create, wished(t, v09.Line{}, "other", "1"), nil)("that line does not run", "ShadowPod")
}

// TestGrantsOfLines follows the offers of each line in a cache: what was more a moment ago still counts.
func TestGrantsOfLines(t *testing.T) {
	for _, tc := range []struct {
		of      line.Line
		was, is client.Object
	}{
		{of: v09.Line{}, was: liqotest.OfferTo(buyer(), list("cpu", "4")), is: liqotest.OfferTo(buyer(), list("cpu", "1"))},
		{of: v1.Line{}, was: slice(list("cpu", "4")), is: slice(list("cpu", "1"))},
	} {
		informers := &informertest.FakeInformers{Scheme: linestest.Scheme(t)}
		g := NewGrants(clock.RealClock{})
		if err := g.Watch(t.Context(), informers, tc.of); err != nil {
			t.Fatal(err)
		}
		informer, err := informers.FakeInformerFor(t.Context(), tc.of.Kinds().Offer)
		if err != nil {
			t.Fatal(err)
		}
		granted := func(want string) {
			t.Helper()
			if got := fmt.Sprint(g.of([]liqo.Offer{tc.of.OfferOf(tc.is)})); got != want {
				t.Errorf("with Liqo %s there is granted %s, want %s", tc.of.Name(), got, want)
			}
		}
		granted("[{cpu 1000}]")
		informer.Update(tc.was, tc.is)
		granted("[{cpu 4000}]")
		informer.Delete(tc.is)
		granted("[{cpu 1000}]")
	}
}
