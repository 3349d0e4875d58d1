// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package fence

import (
	"context"
	"reflect"
	"slices"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache/informertest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/event"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/capacitorset/liqo-broker/pkg/liqo"
	"github.com/capacitorset/liqo-broker/pkg/liqo/lines"
	"github.com/capacitorset/liqo-broker/pkg/liqo/lines/linestest"
	v09 "github.com/capacitorset/liqo-broker/pkg/liqo/v09"
	v1 "github.com/capacitorset/liqo-broker/pkg/liqo/v1"
	"github.com/capacitorset/liqo-broker/pkg/liqo/v1/api"
	"github.com/capacitorset/liqo-broker/pkg/snapshot"
)

// TestLiqo1 fences the namespace of a peer of Liqo 1.x.
func TestLiqo1(t *testing.T) {
	named := func(o client.Object, namespace, name string, labels map[string]string) client.Object {
		o.SetNamespace(namespace)
		o.SetName(name)
		o.SetLabels(labels)
		return o
	}
	of := map[string]string{liqo.LabelRemoteClusterID: "c"}
	tenant := map[string]string{liqo.LabelRemoteClusterID: "c", liqo.LabelTenantNamespace: "true"}
	twin := named(&corev1.Namespace{}, "", "shop", of)
	twin.SetAnnotations(map[string]string{"liqo.io/managed-by-namespace-map": "liqo-tenant-c/c"})
	seen := &api.Configuration{Status: api.ConfigurationStatus{Remote: &api.ClusterNetworks{CIDR: api.CIDRs{Pod: []string{"10.210.0.0/16"}}}}}
	own := map[string]string{api.LabelNetworkType: api.NetworkTypePods}
	scheme := linestest.Scheme(t)
	b := fake.NewClientBuilder().WithScheme(scheme).WithObjects(
		twin, named(&corev1.Namespace{}, "", "liqo-tenant-c", tenant),
		named(&api.ForeignCluster{Spec: api.ForeignClusterSpec{ClusterID: "c"}}, "", "c", of),
		named(&api.Tenant{Spec: api.TenantSpec{ClusterID: "c"}}, "liqo-tenant-c", "c", of), named(seen, "liqo-tenant-c", "c", of),
		named(&api.Network{Spec: api.NetworkSpec{CIDR: "198.51.0.0/16"}}, "liqo", "pods", own),
		named(&api.Network{Spec: api.NetworkSpec{CIDR: "198.18.0.0/16"}, Status: api.NetworkStatus{CIDR: "10.210.0.0/16"}}, "liqo", "c", of),
	)
	for _, i := range (v1.Line{}).Indexes() {
		b = b.WithIndex(i.Object, i.Field, i.Extract)
	}
	c := b.Build()
	r := New(Config{Client: c, Peers: snapshot.New(v1.Line{}, c, "own", nil), Internet: true})
	for _, name := range []string{"shop", "liqo-tenant-c"} {
		if _, err := r.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKey{Name: name}}); err != nil {
			t.Fatal(err)
		}
	}
	var all networkingv1.NetworkPolicyList
	if err := c.List(t.Context(), &all); err != nil || len(all.Items) != 1 || all.Items[0].Namespace != "shop" {
		t.Fatalf("there are the policies %v, %v", all.Items, err)
	}
	egress := all.Items[0].Spec.Egress
	if got := egress[0].To[1].IPBlock; got == nil || got.CIDR != "10.210.0.0/16" {
		t.Errorf("the peer is seen as %v", got)
	}
	public := egress[2].To[0].IPBlock
	if last := public.Except[len(public.Except)-1]; last != "198.51.0.0/16" {
		t.Errorf("of public addresses there are left out %v", public.Except)
	}
}

// watched is a cache that notes what is watched.
type watched struct {
	*informertest.FakeInformers

	mu    sync.Mutex
	kinds map[reflect.Type]bool
}

func (w *watched) GetInformer(ctx context.Context, o client.Object, opts ...cache.InformerGetOption) (cache.Informer, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.kinds[reflect.TypeOf(o)] = true
	return w.FakeInformers.GetInformer(ctx, o, opts...)
}

// missing returns which kinds are not watched yet.
func (w *watched) missing(kinds []client.Object) []client.Object {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(kinds), func(o client.Object) bool { return w.kinds[reflect.TypeOf(o)] })
}

// TestSetup has the controller watch what each line of Liqo has.
func TestSetup(t *testing.T) {
	for _, of := range lines.All() {
		seen := &watched{FakeInformers: &informertest.FakeInformers{Scheme: linestest.Scheme(t)}, kinds: map[reflect.Type]bool{}}
		mgr, err := ctrl.NewManager(&rest.Config{Host: "https://192.0.2.1"}, ctrl.Options{
			Scheme: linestest.Scheme(t), Controller: config.Controller{SkipNameValidation: new(true)},
			NewCache: func(*rest.Config, cache.Options) (cache.Cache, error) { return seen, nil },
			Metrics:  metricsserver.Options{BindAddress: "0"},
		})
		if err != nil {
			t.Fatal(err)
		}
		if err := Setup(mgr, Config{Client: mgr.GetClient(), Peers: snapshot.New(of, mgr.GetClient(), "own", nil)}); err != nil {
			t.Fatalf("with Liqo %s: %v", of.Name(), err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		ran := make(chan error, 1)
		go func() { ran <- mgr.Start(ctx) }()
		kinds := of.Kinds()
		want := append([]client.Object{kinds.Network, kinds.OwnNetwork, &corev1.Namespace{}, &corev1.Node{}}, kinds.Peering...)
		for deadline := time.Now().Add(time.Minute); len(seen.missing(want)) > 0; time.Sleep(10 * time.Millisecond) {
			if time.Now().After(deadline) {
				t.Errorf("with Liqo %s, the fence does not watch %T", of.Name(), seen.missing(want))
				break
			}
		}
		cancel()
		if err := <-ran; err != nil {
			t.Errorf("with Liqo %s: %v", of.Name(), err)
		}
	}
}

// TestOwnChanged holds that fences are looked at when the networks of this cluster change, and not when Liqo's IPAM writes something else.
func TestOwnChanged(t *testing.T) {
	remembers := func(pods string, reserved ...string) *v09.IpamStorage {
		s := &v09.IpamStorage{}
		s.Spec.PodCIDR, s.Spec.ReservedSubnets = pods, reserved
		return s
	}
	changed := ownChanged(v09.Line{})
	update := func(before, after *v09.IpamStorage) bool {
		return changed.Update(event.UpdateEvent{ObjectOld: before, ObjectNew: after})
	}
	for name, tc := range map[string]struct{ got, want bool }{
		"Comes":   {changed.Create(event.CreateEvent{Object: remembers("10.50.0.0/16")}), true},
		"Empty":   {changed.Create(event.CreateEvent{Object: remembers("")}), false},
		"Filled":  {update(remembers(""), remembers("10.50.0.0/16")), true},
		"Another": {update(remembers("10.50.0.0/16"), remembers("10.50.0.0/16", "10.1.0.0/16")), false},
		"Goes":    {changed.Delete(event.DeleteEvent{Object: remembers("10.50.0.0/16")}), true},
		"Nothing": {changed.Delete(event.DeleteEvent{Object: remembers("")}), false},
	} {
		if tc.got != tc.want {
			t.Errorf("%s: fences are looked at: %t", name, tc.got)
		}
	}
}
