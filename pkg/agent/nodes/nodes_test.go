// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package nodes_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	testclock "k8s.io/utils/clock/testing"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/capacitorset/liqo-broker/pkg/agent/nodes"
	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
	"github.com/capacitorset/liqo-broker/pkg/core/nodename"
	"github.com/capacitorset/liqo-broker/pkg/daemon"
	v1 "github.com/capacitorset/liqo-broker/pkg/liqo/v1"
	"github.com/capacitorset/liqo-broker/pkg/liqo/v1/api"
	"github.com/capacitorset/liqo-broker/test/watches"
)

const tenant = "liqo-tenant-broker"

// nodeOf returns what the node of a provider is called.
func nodeOf(provider string) string {
	return nodename.OfSlice("broker", cluster.Identity{ID: cluster.ID(provider), Name: provider})
}

// home is a consumer with a broker.
type home struct {
	*testing.T
	client.Client

	agent *nodes.Reconciler
	clock *testclock.FakePassiveClock
	logs  []string
	// live is what is done before pods are read past the cache.
	live func()
	// get is told of each record that is read.
	get func(client.ObjectKey)
	// create is asked before a ResourceSlice is made.
	create func(client.Object) error
}

// record is what Liqo knows of the broker.
func record(broker bool) *api.ForeignCluster {
	r := &api.ForeignCluster{ObjectMeta: metav1.ObjectMeta{Name: "broker"}, Spec: api.ForeignClusterSpec{ClusterID: "broker"}}
	r.Status.TenantNamespace.Local = tenant
	if broker {
		r.Annotations = map[string]string{"brokering.liqo.io/broker": "true"}
	}
	return r
}

// peered is the ResourceSlice that liqoctl has made, and by which the broker tells of providers, in mode nodes for each.
func peered(providers ...string) *api.ResourceSlice {
	s := &api.ResourceSlice{
		ObjectMeta: metav1.ObjectMeta{Namespace: tenant, Name: "broker", Labels: map[string]string{"liqo.io/replication": "true"}},
		Spec:       api.ResourceSliceSpec{ConsumerClusterID: new("home"), ProviderClusterID: new("broker"), Class: "default"},
	}
	s.Status.Conditions = []api.ResourceSliceCondition{{Type: api.SliceResources, Status: api.SliceDenied, Reason: "NodePerProvider"}}
	s.Status.NodeLabels = map[string]string{}
	for _, provider := range providers {
		s.Status.NodeLabels["node.brokering.liqo.io/"+nodeOf(provider)] = provider
	}
	return s
}

// pod is one that is bound to a node.
func pod(name, node string) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name}, Spec: corev1.PodSpec{NodeName: node}}
}

func newHome(t *testing.T, objects ...client.Object) *home {
	t.Helper()
	scheme, err := daemon.Kinds(v1.Line{}.AddToScheme)
	if err != nil {
		t.Fatal(err)
	}
	h := &home{T: t, clock: testclock.NewFakePassiveClock(time.Unix(10_000, 0))}
	h.Client = fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).
		WithIndex(&corev1.Pod{}, "spec.nodeName", func(o client.Object) []string { return []string{o.(*corev1.Pod).Spec.NodeName} }).
		WithInterceptorFuncs(interceptor.Funcs{
			Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, options ...client.GetOption) error {
				if _, is := o.(*api.ForeignCluster); is && h.get != nil {
					h.get(key)
				}
				return c.Get(ctx, key, o, options...)
			},
			Create: func(ctx context.Context, c client.WithWatch, o client.Object, options ...client.CreateOption) error {
				if h.create != nil {
					if err := h.create(o); err != nil {
						return err
					}
				}
				return c.Create(ctx, o, options...)
			},
			List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
				if h.live != nil && len(options) > 0 {
					if _, is := options[0].(client.MatchingFields); is {
						h.live()
					}
				}
				return c.List(ctx, list, options...)
			},
		}).Build()
	h.agent = nodes.New(nodes.Config{Client: h.Client, Live: h.Client, Own: "home", Clock: h.clock})
	return h
}

// look has the agent look at the broker, a minute after it has looked before.
func (h *home) look() error {
	h.Helper()
	h.clock.SetTime(h.clock.Now().Add(time.Minute))
	log := funcr.New(func(_, args string) { h.logs = append(h.logs, args) }, funcr.Options{})
	_, err := h.agent.Reconcile(ctrl.LoggerInto(h.Context(), log), ctrl.Request{NamespacedName: client.ObjectKey{Name: "broker"}})
	return err
}

// asks holds for which nodes the broker is asked after another look.
func (h *home) asks(reason string, want ...string) {
	h.Helper()
	if err := h.look(); err != nil {
		h.Fatalf("%s\n%v", reason, err)
	}
	h.has(reason, append(want, "broker")...)
}

// has holds which ResourceSlices there are in the tenant namespace.
func (h *home) has(reason string, want ...string) {
	h.Helper()
	var all api.ResourceSliceList
	if err := h.List(h.Context(), &all, client.InNamespace(tenant)); err != nil {
		h.Fatal(err)
	}
	var got []string
	for i := range all.Items {
		got = append(got, all.Items[i].Name)
	}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		h.Errorf("%s\nthere are %v, want %v", reason, got, want)
	}
}

// tells has the broker tell of providers.
func (h *home) tells(providers ...string) {
	h.Helper()
	var s api.ResourceSlice
	if err := h.Get(h.Context(), client.ObjectKeyFromObject(peered()), &s); err != nil {
		h.Fatal(err)
	}
	s.Status = peered(providers...).Status
	if err := h.Update(h.Context(), &s); err != nil {
		h.Fatal(err)
	}
}

func (h *home) slice(name string) *api.ResourceSlice {
	h.Helper()
	var s api.ResourceSlice
	if err := h.Get(h.Context(), client.ObjectKey{Namespace: tenant, Name: name}, &s); err != nil {
		h.Fatal(err)
	}
	return &s
}

// logged counts the lines in which a text is logged.
func (h *home) logged(text string) int {
	n := 0
	for _, line := range h.logs {
		if strings.Contains(line, text) {
			n++
		}
	}
	return n
}

// TestReconcile has a broker tell of nodes, and of others, and of none.
func TestReconcile(t *testing.T) {
	a, b := nodeOf("a"), nodeOf("b")
	h := newHome(t, record(true), peered("a", "b"))
	h.asks("There is one for each provider.", a, b)
	want := &api.ResourceSlice{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: tenant, Name: a, ResourceVersion: "1",
			Labels: map[string]string{
				"liqo.io/replication": "true", "liqo.io/remoteID": "broker", "liqo.io/remote-cluster-id": "broker",
				"app.kubernetes.io/managed-by": "liqo-broker",
			},
			Annotations: map[string]string{"liqo.io/create-virtual-node": "true", "brokering.liqo.io/node": "a"},
		},
		Spec: api.ResourceSliceSpec{ConsumerClusterID: new("home"), ProviderClusterID: new("broker"), Class: "liqo-broker"},
	}
	if diff := cmp.Diff(want, h.slice(a)); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
	h.asks("And no other comes.", a, b)
	if got := h.slice(a).ResourceVersion; got != "1" {
		t.Errorf("it is written again: version %s", got)
	}

	// Liqo and people write the same object.
	s := h.slice(a)
	s.Spec.CSR, s.Spec.Resources, s.Spec.Class = []byte("x"), corev1.ResourceList{corev1.ResourceCPU: {}}, "default"
	s.Labels["liqo.io/remoteID"], s.Annotations["example.com/x"] = "x", "y"
	delete(s.Annotations, "liqo.io/create-virtual-node")
	if err := h.Update(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	h.asks("It is asked for as it is to be.", a, b)
	s = h.slice(a)
	want.Spec.CSR, want.Spec.Resources, want.Annotations["example.com/x"] = []byte("x"), corev1.ResourceList{corev1.ResourceCPU: {}}, "y"
	want.ResourceVersion = s.ResourceVersion
	if diff := cmp.Diff(want, s); diff != "" {
		t.Errorf("what is theirs stays, and nothing else: -want +got\n%s", diff)
	}

	// One goes, and pods of the other keep it.
	for _, p := range []*corev1.Pod{pod("web", b), pod("other", "worker")} {
		if err := h.Create(t.Context(), p); err != nil {
			t.Fatal(err)
		}
	}
	h.tells()
	h.asks("It may be told of again.", a, b)
	h.asks("It is not, and has pods.", b)
	h.asks("It keeps them.", b)
	if n := h.logged("kept for the pods"); n != 1 {
		t.Errorf("it is said %d times that pods keep a node:\n%s", n, strings.Join(h.logs, "\n"))
	}
	if err := h.Delete(t.Context(), pod("web", b)); err != nil {
		t.Fatal(err)
	}
	daemonSet := pod("agent", b)
	daemonSet.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "DaemonSet", Name: "x", UID: "x", Controller: new(true)}}
	if err := h.Create(t.Context(), daemonSet); err != nil {
		t.Fatal(err)
	}
	h.asks("What is on each node keeps none.")
}

// TestComesInTime has a pod come to a node that is about to be given up, as the API server alone knows by now.
func TestComesInTime(t *testing.T) {
	a := nodeOf("a")
	h := newHome(t, record(true), peered("a"))
	h.asks("It has a node.", a)
	h.tells()
	h.asks("It is not wanted any more.", a)
	h.live = func() {
		h.live = nil
		if err := h.Create(t.Context(), pod("web", a)); err != nil {
			t.Fatal(err)
		}
	}
	h.asks("The pod keeps it.", a)
	if h.live != nil {
		t.Error("nobody has asked the API server")
	}

	// Somebody has written it since it was read.
	if err := h.Delete(t.Context(), pod("web", a)); err != nil {
		t.Fatal(err)
	}
	h.live = func() {
		h.live = nil
		s := h.slice(a)
		s.Annotations["example.com/x"] = "y"
		if err := h.Update(t.Context(), s); err != nil {
			t.Fatal(err)
		}
	}
	if err := h.look(); err == nil {
		t.Error("what was written since is deleted")
	}
	h.has("It stays.", a, "broker")
}

// TestLeavesAlone has objects that are not the agent's, and brokers that say nothing.
func TestLeavesAlone(t *testing.T) {
	a, b := nodeOf("a"), nodeOf("b")
	own := func(name string, by ...func(*api.ResourceSlice)) *api.ResourceSlice {
		s := peered()
		s.Name, s.Status, s.Spec.Class = name, api.ResourceSliceStatus{}, "liqo-broker"
		s.Labels["app.kubernetes.io/managed-by"] = "liqo-broker"
		s.Annotations = map[string]string{"brokering.liqo.io/node": "b"}
		for _, change := range by {
			change(s)
		}
		return s
	}
	told := func(by func(*api.ResourceSlice)) *api.ResourceSlice {
		s := peered("a")
		by(s)
		return s
	}
	for name, tc := range map[string]struct {
		reason  string
		objects []client.Object
		want    []string
		logged  string
	}{
		"Ours": {"What the broker does not want goes.", []client.Object{record(true), peered("a"), own(b)}, []string{a, "broker"}, "Gave up"},
		"NoBroker": {
			"Nobody has said that it is a broker.", []client.Object{record(false), peered("a"), own(b)}, []string{b, "broker"}, "",
		},
		"NoTenant": {
			"Liqo has no namespace for it.", []client.Object{func() client.Object {
				r := record(true)
				r.Status.TenantNamespace.Local = ""
				return r
			}(), peered("a"), own(b)}, []string{b, "broker"}, "",
		},
		"Unlabelled": {
			"People have made it.", []client.Object{record(true), peered("a"), own(b, func(s *api.ResourceSlice) {
				delete(s.Labels, "app.kubernetes.io/managed-by")
			})}, []string{a, b, "broker"}, "",
		},
		"Unannotated": {
			"Another program has made it.",
			[]client.Object{record(true), peered("a"), own(b, func(s *api.ResourceSlice) { s.Annotations = nil })}, []string{a, b, "broker"}, "",
		},
		"Replicated": {
			"The broker asks this cluster.", []client.Object{record(true), peered("a"), own(b, func(s *api.ResourceSlice) {
				s.Labels["liqo.io/replicated"], s.Labels["liqo.io/originID"] = "true", "broker"
				s.Spec.ConsumerClusterID, s.Spec.ProviderClusterID = new("broker"), new("home")
			})}, []string{a, b, "broker"}, "",
		},
		"OfOther": {
			"It asks another cluster.",
			[]client.Object{record(true), peered("a"), own(b, func(s *api.ResourceSlice) { s.Spec.ProviderClusterID = new("x") })},
			[]string{a, b, "broker"}, "",
		},
		"Taken": {
			"People have one that is called so.", []client.Object{record(true), peered("a"), own(a, func(s *api.ResourceSlice) {
				s.Labels = map[string]string{"liqo.io/replication": "true"}
			})}, []string{a, "broker"}, "taken by ResourceSlice " + tenant + "/" + a,
		},
		"TakenElsewhere": {
			"Also with another peer: Liqo refuses a second one.", []client.Object{record(true), peered("a"), own(a, func(s *api.ResourceSlice) {
				s.Namespace, s.Labels = "liqo-tenant-other", nil
			})}, []string{"broker"}, "taken by ResourceSlice liqo-tenant-other/" + a,
		},
		"TakenByPeer": {
			"The broker asks for one that is called so.", []client.Object{record(true), peered("a"), own(a, func(s *api.ResourceSlice) {
				s.Labels["liqo.io/replicated"] = "true"
			})}, []string{a, "broker"}, "taken by ResourceSlice " + tenant + "/" + a,
		},
		"NotTakenElsewhere": {
			"A peer asks for one that is called so.", []client.Object{record(true), peered("a"), own(a, func(s *api.ResourceSlice) {
				s.Namespace, s.Labels["liqo.io/replicated"] = "liqo-tenant-other", "true"
			})}, []string{a, "broker"}, "",
		},
		"TakenByNode": {
			"People have made the node by hand, or Liqo has not removed it yet.",
			[]client.Object{record(true), peered("a"), &api.VirtualNode{ObjectMeta: metav1.ObjectMeta{Namespace: "x", Name: a}}},
			[]string{"broker"}, "taken by VirtualNode x/" + a,
		},
		"Undecided": {
			"The broker has not answered yet.",
			[]client.Object{record(true), told(func(s *api.ResourceSlice) { s.Status.Conditions = nil }), own(b)}, []string{b, "broker"}, "",
		},
		"Ended": {
			"What tells is being deleted.", []client.Object{record(true), told(func(s *api.ResourceSlice) {
				s.DeletionTimestamp, s.Finalizers = new(metav1.Now()), []string{"x/y"}
			}), own(b)}, []string{b, "broker"}, "",
		},
		"ToldByOther": {
			"It is asked of another cluster.",
			[]client.Object{record(true), told(func(s *api.ResourceSlice) { s.Spec.ProviderClusterID = new("x") }), own(b)},
			[]string{b, "broker"}, "",
		},
		"ToldByNode": {
			"A node of one provider tells of no others.",
			[]client.Object{record(true), told(func(s *api.ResourceSlice) { s.Name = nodeOf("c") }), own(b)}, []string{b, nodeOf("c")}, "",
		},
		"ToldElsewhere": {
			"It is in the namespace of another peer.",
			[]client.Object{record(true), told(func(s *api.ResourceSlice) { s.Namespace = "liqo-tenant-other" }), own(b)}, []string{b}, "",
		},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHome(t, tc.objects...)
			for range 3 {
				if err := h.look(); err != nil {
					t.Fatalf("%s\n%v", tc.reason, err)
				}
			}
			h.has(tc.reason, tc.want...)
			if tc.logged != "" && h.logged(tc.logged) != 1 {
				t.Errorf("%s\n%q is not logged once:\n%s", tc.reason, tc.logged, strings.Join(h.logs, "\n"))
			}
		})
	}
}

// TestRefused has Liqo refuse one ResourceSlice, which takes no other along.
func TestRefused(t *testing.T) {
	a, b := nodeOf("a"), nodeOf("b")
	h := newHome(t, record(true), peered("a", "b"))
	boom := errors.New("boom")
	h.create = func(o client.Object) error {
		if o.GetName() == min(a, b) {
			return boom
		}
		return nil
	}
	if err := h.look(); !errors.Is(err, boom) {
		t.Errorf("Reconcile() = %v", err)
	}
	h.has("The other one is there.", max(a, b), "broker")
}

// TestLogged holds that of what a broker calls a node, and a provider, no more is logged than people can read.
func TestLogged(t *testing.T) {
	long, told := strings.Repeat("x", 1<<20), peered()
	told.Status.NodeLabels["node.brokering.liqo.io/"+long] = long
	h := newHome(t, record(true), told)
	h.asks("It is no name.")
	if len(h.logs) != 1 || len(h.logs[0]) > 1024 || !strings.Contains(h.logs[0], strings.Repeat("x", 250)+"...") {
		t.Errorf("%d lines are logged: %.100s", len(h.logs), h.logs)
	}
}

// TestSetup has the controller look at the broker, and at no other peer, when what says what becomes of nodes changes.
func TestSetup(t *testing.T) {
	other := &api.ForeignCluster{ObjectMeta: metav1.ObjectMeta{Name: "other"}, Spec: api.ForeignClusterSpec{ClusterID: "other"}}
	h := newHome(t, record(true), other)
	looked := make(chan string, 10)
	h.get = func(key client.ObjectKey) { looked <- key.Name }
	slice, node := peered(), &api.VirtualNode{ObjectMeta: metav1.ObjectMeta{Namespace: tenant, Name: "broker"}}
	told := watches.Start(t, h.Scheme(), func(mgr ctrl.Manager) error {
		return nodes.Setup(mgr, nodes.Config{Client: h.Client, Live: h.Client, Own: "home", Clock: h.clock})
	}, record(true), slice, node)
	for _, is := range []client.Object{slice, node} {
		told.Happens(nil, is)
		told.Happens(nil, other) // It looks at one after the other.
		var got []string
		for name := range looked {
			if name == other.Name {
				break
			}
			got = append(got, name)
		}
		if !slices.Equal(got, []string{"broker"}) {
			t.Errorf("%T: it looks at %v", is, got)
		}
	}
}
