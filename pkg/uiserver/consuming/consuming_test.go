// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package consuming_test

import (
	"context"
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
	"github.com/capacitorset/liqo-broker/pkg/liqo"
	"github.com/capacitorset/liqo-broker/pkg/liqo/line"
	v09 "github.com/capacitorset/liqo-broker/pkg/liqo/v09"
	"github.com/capacitorset/liqo-broker/pkg/liqo/v09/liqotest"
	v1 "github.com/capacitorset/liqo-broker/pkg/liqo/v1"
	"github.com/capacitorset/liqo-broker/pkg/liqo/v1/api"
	"github.com/capacitorset/liqo-broker/pkg/shown"
	"github.com/capacitorset/liqo-broker/pkg/shown/apiv1"
	"github.com/capacitorset/liqo-broker/pkg/shown/feed"
	"github.com/capacitorset/liqo-broker/pkg/uiserver/consuming"
)

// bound is since when pods are on their nodes, and told since when the path of one is as it is.
var bound, told = time.Date(2026, 3, 1, 8, 0, 0, 0, time.UTC), time.Date(2026, 3, 1, 9, 30, 0, 0, time.UTC)

var rome = cluster.Identity{ID: "rome-id", Name: "rome"}

func pod(namespace, name, node, address string, annotations map[string]string) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Annotations: annotations}}
	p.Spec.NodeName = node
	p.Status.PodIP, p.Status.Phase = address, corev1.PodRunning
	p.Status.Conditions = []corev1.PodCondition{
		{Type: corev1.PodScheduled, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(bound)},
		{Type: corev1.PodReady, Status: corev1.ConditionTrue},
	}
	return p
}

func namespace(name string, labels map[string]string) *corev1.Namespace {
	return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}}
}

// consumer09 is a consumer with Liqo 0.9 whose virtual kubelets note how pods are reached. One namespace is to run at the broker and has a
// pod that does not.
func consumer09() []client.Object {
	node := func(name, id, kubelet, provider string) *corev1.Node {
		n := liqotest.VirtualNode(cluster.Identity{ID: cluster.ID(id), Name: name}, true)
		n.Name = name
		if kubelet != "" {
			n.Labels[liqo.LabelVirtualKubelet] = kubelet
		}
		if provider != "" {
			n.Labels[liqo.LabelProvider] = provider
		}
		return n
	}
	offloading := liqotest.Offloading("shop", "athens-id")
	offloading.Labels = nil // It is the consumer's own.
	hostile := map[string]string{
		liqo.AnnotationPath: "relay\x1b[2J", liqo.AnnotationProvider: "turin-id", liqo.AnnotationProviderName: strings.Repeat("\u202e", 1000),
	}
	return []client.Object{
		node("athens", "athens-id", "v0.1.0", ""), node("athens-milan", "athens-id", "v0.1.0", "milan-id"), node("other", "other-id", "", ""),
		liqotest.ForeignCluster(cluster.Identity{ID: "athens-id", Name: "athens"}, true, false),
		liqotest.ForeignCluster(cluster.Identity{ID: "milan-id", Name: "milan"}, true, false),
		pod("shop", "direct", "athens", "10.1.0.7", map[string]string{
			liqo.AnnotationPath: "direct", liqo.AnnotationProvider: "milan-id", liqo.AnnotationProviderName: "not milan",
			liqo.AnnotationPathSince: told.Format(time.RFC3339),
		}),
		pod("shop", "hidden", "athens", "10.1.0.8", map[string]string{liqo.AnnotationPath: "relay"}),
		pod("shop", "of-node", "athens-milan", "10.1.0.9", nil),
		pod("default", "hostile", "athens", "10.1.0.10", hostile),
		pod("shop", "elsewhere", "other", "10.2.0.1", nil), pod("shop", "home", "worker", "10.3.0.1", nil),
		namespace("shop", map[string]string{"liqo.io/scheduling-enabled": "true"}), namespace("default", nil), offloading,
	}
}

func peer1(id string, broker bool) *api.ForeignCluster {
	fc := &api.ForeignCluster{ObjectMeta: metav1.ObjectMeta{Name: id}}
	fc.Spec.ClusterID = id
	v1.SayBroker(fc, broker)
	return fc
}

func node1(name, id string) *corev1.Node {
	return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{
		liqo.LabelNodeType: liqo.NodeTypeVirtual, liqo.LabelRemoteClusterID: id,
	}}}
}

// consumer1 is a consumer with Liqo 1.x: nobody notes anything, and what is reached through the broker follows from addresses.
func consumer1() []client.Object {
	milan := node1("athens-milan", "athens")
	milan.Labels[liqo.LabelProvider] = "milan"
	tenant := namespace("liqo-tenant-athens", map[string]string{liqo.LabelTenantNamespace: "true", liqo.LabelRemoteClusterID: "athens"})
	list := &api.Configuration{ObjectMeta: metav1.ObjectMeta{
		Namespace: tenant.Name, Name: "athens", Generation: 2, Labels: map[string]string{liqo.LabelRemoteClusterID: "athens"},
		Annotations: map[string]string{"brokering.liqo.io/views": `{"views":["10.66.0.0/16"]}`},
	}}
	list.Spec.Remote.CIDR.Pod = []string{"10.201.0.0/16", "10.66.0.0/16"}
	list.Status.Remote = &api.ClusterNetworks{CIDR: api.CIDRs{Pod: []string{"10.201.0.0/16", "10.66.0.0/16"}}}
	list.Status.Conditions = []metav1.Condition{{Type: api.NetworkCIDRsConfigured, Status: metav1.ConditionTrue, ObservedGeneration: 2}}
	offloading := v1.ForgeOffloading("shop", liqo.MappingDefault, v1.Identity("rome"))
	offloading.Labels = nil
	return []client.Object{
		peer1("athens", true), peer1("bern", false), tenant, list, node1("athens", "athens"), milan, node1("bern", "bern"),
		pod("shop", "relayed", "athens-milan", "10.66.0.8", nil), pod("shop", "own", "athens", "10.201.3.9", nil),
		pod("shop", "elsewhere", "bern", "10.66.0.1", nil), pod("shop", "home", "worker", "10.3.0.1", nil),
		namespace("shop", nil), offloading,
	}
}

// objectsOf are what a cache has of a cluster, which has none of some kinds since they may not be read.
func objectsOf(t *testing.T, of line.Line, all []client.Object, lacks ...client.Object) *consuming.Objects {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), of.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	lacking := func(o runtime.Object) error {
		gvk, err := apiutil.GVKForObject(o, scheme)
		if err != nil {
			return err
		}
		for _, lack := range lacks {
			if kind, err := apiutil.GVKForObject(lack, scheme); err != nil || kind.Kind == strings.TrimSuffix(gvk.Kind, "List") {
				return errors.Join(err, &cache.ErrResourceNotCached{GVK: gvk})
			}
		}
		return nil
	}
	index := consuming.Index()
	c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(all...).WithIndex(index.Object, index.Field, index.Extract).
		WithInterceptorFuncs(interceptor.Funcs{
			List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
				if err := lacking(list); err != nil {
					return err
				}
				return c.List(ctx, list, options...)
			},
			Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, options ...client.GetOption) error {
				if err := lacking(o); err != nil {
					return err
				}
				return c.Get(ctx, key, o, options...)
			},
		}).Build()
	return &consuming.Objects{Reader: c, Line: of, Own: rome}
}

// valuesOf returns all of a kind by key.
func valuesOf[T any](t *testing.T, o *consuming.Objects, kind feed.Kind) map[string]T {
	t.Helper()
	items, err := o.Items(t.Context(), kind)
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]T{}
	for _, item := range items {
		value, is := item.Value.(T)
		if _, twice := all[item.Key]; !is || twice || item.Consumer != "" {
			t.Fatalf("%s is %T of %q, or is there twice", item.Key, item.Value, item.Consumer)
		}
		all[item.Key] = value
	}
	return all
}

// TestWorkloads holds where the pods of a consumer are with either line of Liqo, and what of that is seen with fewer rights.
func TestWorkloads(t *testing.T) {
	type at struct {
		provider, name, path, broker, node, address string
		since                                       time.Time
	}
	for name, tc := range map[string]struct {
		line    line.Line
		objects []client.Object
		lacks   []client.Object
		want    map[string]at
	}{
		"Liqo 0.9": {v09.Line{}, consumer09(), nil, map[string]at{
			"shop/direct":     {"milan-id", "milan", "direct", "athens", "athens", "10.1.0.7", told},
			"shop/hidden":     {"", "", "relay", "athens", "athens", "10.1.0.8", bound},
			"shop/of-node":    {"milan-id", "milan", "", "athens", "athens-milan", "10.1.0.9", bound},
			"default/hostile": {"turin-id", strings.Repeat("?", 250) + "...", "", "athens", "athens", "10.1.0.10", bound},
		}},
		"Liqo 0.9 without the peers": {v09.Line{}, consumer09(), []client.Object{&v09.ForeignCluster{}}, map[string]at{
			"shop/direct":     {"milan-id", "not milan", "direct", "", "athens", "10.1.0.7", told},
			"shop/hidden":     {"", "", "relay", "", "athens", "10.1.0.8", bound},
			"shop/of-node":    {"milan-id", "", "", "", "athens-milan", "10.1.0.9", bound},
			"default/hostile": {"turin-id", strings.Repeat("?", 250) + "...", "", "", "athens", "10.1.0.10", bound},
		}},
		"Liqo 1.x": {v1.Line{}, consumer1(), nil, map[string]at{
			"shop/relayed": {"milan", "", "relay", "athens", "athens-milan", "10.66.0.8", bound},
			"shop/own":     {"", "", "", "athens", "athens", "10.201.3.9", bound},
		}},
		"Liqo 1.x without networks": {v1.Line{}, consumer1(), []client.Object{&api.Configuration{}, &api.Tenant{}}, map[string]at{
			"shop/relayed": {"milan", "", "", "", "athens-milan", "10.66.0.8", bound},
			"shop/own":     {"", "", "", "", "athens", "10.201.3.9", bound},
		}},
		"Liqo 1.x without namespaces": {v1.Line{}, consumer1(), []client.Object{&corev1.Namespace{}}, map[string]at{
			"shop/relayed": {"milan", "", "", "", "athens-milan", "10.66.0.8", bound},
			"shop/own":     {"", "", "", "", "athens", "10.201.3.9", bound},
		}},
	} {
		t.Run(name, func(t *testing.T) {
			got := map[string]at{}
			for key, w := range valuesOf[apiv1.Workload](t, objectsOf(t, tc.line, tc.objects, tc.lacks...), shown.Workloads) {
				one := at{path: w.Path, node: w.Node, address: w.Address, since: w.Since}
				if w.Provider != nil {
					one.provider, one.name = w.Provider.ID, w.Provider.Name
				}
				if !strings.HasPrefix(w.Broker.ID, "athens") || w.Consumer != (apiv1.Cluster{ID: "rome-id", Name: "rome"}) || !w.Ready ||
					w.Status != "Running" || w.BrokerNamespace != "" {
					t.Errorf("%s is %+v", key, w)
				}
				one.broker = w.Broker.Name
				got[key] = one
			}
			if diff := cmp.Diff(tc.want, got, cmp.AllowUnexported(at{})); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

// TestFlows holds how many pods are reached how: those of two brokers apart.
func TestFlows(t *testing.T) {
	second := liqotest.VirtualNode(cluster.Identity{ID: "bern-id", Name: "bern"}, true)
	second.Labels[liqo.LabelVirtualKubelet] = "v0.1.0"
	all := append(consumer09(), second, pod("shop", "second", second.Name, "10.9.0.1", map[string]string{liqo.AnnotationPath: "relay"}))
	counts := map[string]int{}
	for key, f := range valuesOf[apiv1.Flow](t, objectsOf(t, v09.Line{}, all), shown.Flows) {
		counts[key] = f.Pods
		if !strings.HasPrefix(key, f.Broker.ID+"/") || f.Ready != f.Pods || f.Consumer.Name != "rome" {
			t.Errorf("%s is %+v", key, f)
		}
	}
	want := map[string]int{
		"athens-id//relay": 1, "athens-id/milan-id/": 1, "athens-id/milan-id/direct": 1, "athens-id/turin-id/": 1, "bern-id//relay": 1,
	}
	if diff := cmp.Diff(want, counts); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// TestStatus holds which brokers a cluster uses, what is at home, and what is said where there is no broker.
func TestStatus(t *testing.T) {
	without := func(all []client.Object, kind client.Object) []client.Object {
		return slices.DeleteFunc(all, func(o client.Object) bool { return reflect.TypeOf(o) == reflect.TypeOf(kind) })
	}
	for name, tc := range map[string]struct {
		line    line.Line
		objects []client.Object
		trades  bool
		healthy bool
		brokers []apiv1.Cluster
		says    []string
	}{
		"Liqo 0.9": {v09.Line{}, consumer09(), false, false, []apiv1.Cluster{{ID: "athens-id", Name: "athens"}},
			[]string{"Pods of namespace shop run at home"}},
		"Liqo 1.x": {v1.Line{}, consumer1(), false, false, []apiv1.Cluster{{ID: "athens", Name: "athens"}},
			[]string{"Pods of namespace shop run at home"}},
		"All is at the broker": {v09.Line{}, without(consumer09(), &v09.NamespaceOffloading{}), false, true,
			[]apiv1.Cluster{{ID: "athens-id", Name: "athens"}}, nil},
		"Liqo 0.9 without a broker": {v09.Line{}, nil, false, true, nil,
			[]string{"This cluster neither is a broker's nor uses one", "It does not trade"}},
		"Liqo 1.x without a broker": {v1.Line{}, []client.Object{peer1("bern", false)}, false, true, nil,
			[]string{"This cluster neither is a broker's nor uses one", "It does not trade"}},
		"It trades only": {v09.Line{}, nil, true, true, nil, []string{"This cluster neither is a broker's nor uses one"}},
		"Its broker has no node yet": {v1.Line{}, []client.Object{peer1("athens", true)}, false, true, nil,
			[]string{"This cluster has no virtual node of its broker athens yet"}},
	} {
		t.Run(name, func(t *testing.T) {
			o := objectsOf(t, tc.line, tc.objects)
			o.Trades = tc.trades
			s := valuesOf[apiv1.Status](t, o, shown.Status)[consuming.TheStatus]
			var says []string
			for i, f := range s.Next {
				says = append(says, f.What)
				if f.Do == "" || i < len(tc.says) && !strings.HasPrefix(f.What, tc.says[i]) {
					t.Errorf("it says %q, and to do %q", f.What, f.Do)
				}
			}
			if s.Healthy != tc.healthy || len(says) != len(tc.says) || !slices.Equal(s.Brokers, tc.brokers) || s.Modes == nil {
				t.Errorf("it is %+v", s)
			}
		})
	}
}

// TestNeeds holds that each kind needs nodes and pods, with Liqo 1.x besides who is a broker, and nothing twice.
func TestNeeds(t *testing.T) {
	for _, of := range []line.Line{v09.Line{}, v1.Line{}} {
		for _, kind := range consuming.Kinds() {
			needed, optional := consuming.Needs(of.Kinds(), kind)
			count := map[reflect.Type]int{}
			for _, o := range slices.Concat(needed, optional) {
				count[reflect.TypeOf(o)]++
			}
			for object, n := range count {
				if n > 1 {
					t.Errorf("Liqo %s: %s needs %s %d times", of.Name(), kind, object, n)
				}
			}
			must := map[reflect.Type]bool{}
			for _, o := range needed {
				must[reflect.TypeOf(o)] = true
			}
			if _, v1 := of.(v1.Line); !must[reflect.TypeFor[*corev1.Node]()] || !must[reflect.TypeFor[*corev1.Pod]()] ||
				must[reflect.TypeFor[*api.ForeignCluster]()] != v1 || must[reflect.TypeFor[*v09.ForeignCluster]()] {
				t.Errorf("Liqo %s: %s needs %v", of.Name(), kind, must)
			}
		}
	}
	if needed, _ := consuming.Needs(v09.Line{}.Kinds(), shown.Providers); needed != nil {
		t.Errorf("of what is no kind of it, it needs %v", needed)
	}
	if _, err := objectsOf(t, v09.Line{}, nil).Items(t.Context(), shown.Providers); err == nil {
		t.Error("it has providers")
	}
}
