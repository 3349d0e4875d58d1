// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package grants

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/record"
	testingclock "k8s.io/utils/clock/testing"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/capacitorset/liqo-broker/pkg/api/v1alpha1"
	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
	"github.com/capacitorset/liqo-broker/pkg/core/grant"
	"github.com/capacitorset/liqo-broker/pkg/core/nodename"
	"github.com/capacitorset/liqo-broker/pkg/daemon"
	"github.com/capacitorset/liqo-broker/pkg/liqo"
	v1 "github.com/capacitorset/liqo-broker/pkg/liqo/v1"
	"github.com/capacitorset/liqo-broker/pkg/liqo/v1/api"
	"github.com/capacitorset/liqo-broker/pkg/snapshot"
	"github.com/capacitorset/liqo-broker/test/watches"
)

const own = "broker"

// world is a broker's cluster with Liqo 1.x, and the controller in it.
type world struct {
	*testing.T
	client.WithWatch

	reconciler *Reconciler
	events     *record.FakeRecorder
	clock      *testingclock.FakePassiveClock
	writes     int
	// before is called before a status of a ResourceSlice is written.
	before func() error
}

func newWorld(t *testing.T, objects ...client.Object) *world {
	t.Helper()
	scheme, err := daemon.Kinds(v1alpha1.AddToScheme, v1.Line{}.AddToScheme)
	if err != nil {
		t.Fatal(err)
	}
	w := &world{T: t, events: record.NewFakeRecorder(100), clock: testingclock.NewFakePassiveClock(time.Unix(5_000, 0))}
	b := fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).
		WithStatusSubresource(&v1alpha1.Provider{}, &v1alpha1.Consumer{}, &api.ResourceSlice{}).
		WithInterceptorFuncs(interceptor.Funcs{SubResourcePatch: func(
			ctx context.Context, c client.Client, sub string, o client.Object, patch client.Patch, options ...client.SubResourcePatchOption,
		) error {
			w.writes++
			if data, err := patch.Data(o); err != nil || !strings.Contains(string(data), `"resourceVersion":"`) {
				t.Errorf("it writes whatever Liqo has written in between: %s, %v", data, err)
			}
			if w.before != nil {
				if err := w.before(); err != nil {
					return err
				}
			}
			return c.SubResource(sub).Patch(ctx, o, patch, options...)
		}})
	for _, i := range snapshot.Indexes(v1.Line{}) {
		b = b.WithIndex(i.Object, i.Field, i.Extract)
	}
	w.WithWatch = b.Build()
	reader := snapshot.New(v1.Line{}, w.WithWatch, own, nil)
	w.reconciler = New(Config{Client: w.WithWatch, Reader: reader, Capacity: reader.Capacity, Recorder: w.events, Clock: w.clock})
	return w
}

// reconcile has the controller look at a consumer, and returns how often it writes.
func (w *world) reconcile(consumer string) int {
	w.Helper()
	w.writes = 0
	if _, err := w.reconciler.Reconcile(w.Context(), ctrl.Request{NamespacedName: client.ObjectKey{Name: consumer}}); err != nil {
		w.Fatalf("Reconcile(%s): %v", consumer, err)
	}
	return w.writes
}

// settle has the controller look at consumers until nothing is written any more.
func (w *world) settle(consumers ...string) {
	w.Helper()
	for range 5 {
		writes := 0
		for _, consumer := range consumers {
			writes += w.reconcile(consumer)
		}
		if writes == 0 {
			return
		}
	}
	w.Fatal("the controller does not come to rest")
}

// change changes an object and its status.
func change[T client.Object](w *world, o T, by func(T)) {
	w.Helper()
	if err := w.Get(w.Context(), client.ObjectKeyFromObject(o), o); err != nil {
		w.Fatal(err)
	}
	by(o)
	written := o.DeepCopyObject().(T)
	if err := errors.Join(w.Update(w.Context(), written), w.Status().Update(w.Context(), setVersion(o, written))); err != nil {
		w.Fatal(err)
	}
}

func setVersion[T client.Object](o, of T) T {
	o.SetResourceVersion(of.GetResourceVersion())
	return o
}

func (w *world) drainEvents() []string {
	var all []string
	for len(w.events.Events) > 0 {
		all = append(all, <-w.events.Events)
	}
	return all
}

// says returns what a ResourceSlice of a consumer is told: its condition, amounts, provider and classes.
func (w *world) says(consumer, name string) string {
	w.Helper()
	var s api.ResourceSlice
	if err := w.Get(w.Context(), client.ObjectKey{Namespace: "tenant-" + consumer, Name: name}, &s); err != nil {
		w.Fatal(err)
	}
	said := "open"
	for _, c := range s.Status.Conditions {
		if c.Type == api.SliceResources {
			said = fmt.Sprintf("%s %s", c.Status, c.Reason)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(s.Status.Resources)) {
		quantity := s.Status.Resources[name]
		said += fmt.Sprintf(" %s=%s", name, &quantity)
	}
	if to := s.Status.NodeSelector[liqo.LabelRemoteClusterID]; to != "" || s.Status.NodeLabels[liqo.LabelProvider] != "" {
		said += fmt.Sprintf(" to=%s/%s", to, s.Status.NodeLabels[liqo.LabelProvider])
	}
	for _, class := range s.Status.IngressClasses {
		said += " ingress=" + class.Name
	}
	return said
}

func (w *world) expect(reason, consumer, name, want string) {
	w.Helper()
	if got := w.says(consumer, name); got != want {
		w.Errorf("%s\n%s is told %q, want %q", reason, name, got, want)
	}
}

func amounts(cpu, memory string, more ...string) corev1.ResourceList {
	l := corev1.ResourceList{
		corev1.ResourceCPU: resource.MustParse(cpu), corev1.ResourceMemory: resource.MustParse(memory),
		corev1.ResourcePods: resource.MustParse("10"),
	}
	for _, name := range more {
		l[corev1.ResourceName(name)] = resource.MustParse("1")
	}
	return l
}

func provider(id, cpu string, more ...string) *v1alpha1.Provider {
	p := &v1alpha1.Provider{ObjectMeta: metav1.ObjectMeta{Name: id}, Spec: v1alpha1.ProviderSpec{Scheduling: v1alpha1.SchedulingActive}}
	p.Status.ClusterName, p.Status.Offered = id, amounts(cpu, "4Gi", more...)
	return p
}

// peer returns what Liqo has of a cluster that may consume.
func peer(id string) []client.Object {
	labels := map[string]string{liqo.LabelTenantNamespace: "true", liqo.LabelRemoteClusterID: id}
	return []client.Object{
		&api.ForeignCluster{ObjectMeta: metav1.ObjectMeta{Name: id}, Spec: api.ForeignClusterSpec{ClusterID: id}},
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "tenant-" + id, Labels: labels}},
		&api.Tenant{ObjectMeta: metav1.ObjectMeta{Namespace: "tenant-" + id, Name: id}, Spec: api.TenantSpec{ClusterID: id}},
	}
}

// consumer returns that, and how people want it to be served.
func consumer(id string, nodes v1alpha1.Nodes) []client.Object {
	c := &v1alpha1.Consumer{ObjectMeta: metav1.ObjectMeta{Name: id}, Spec: v1alpha1.ConsumerSpec{Nodes: nodes}}
	c.Status.Mode, c.Status.ObservedGeneration = v1alpha1.ModeOrchestrated, 1
	return append(peer(id), c)
}

// slice returns what a consumer asks for. Liqo has issued the certificate.
func slice(consumer, name string, minute int64, wanted corev1.ResourceList) *api.ResourceSlice {
	s := &api.ResourceSlice{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "tenant-" + consumer, Name: name, CreationTimestamp: metav1.Unix(60*minute, 0),
			Labels: map[string]string{liqo.LabelReplicated: liqo.ReplicationValue, liqo.LabelOrigin: consumer, liqo.LabelDestination: own},
		},
		Spec: api.ResourceSliceSpec{
			ConsumerClusterID: &consumer, ProviderClusterID: new(own), Class: api.SliceClassBroker, Resources: wanted,
		},
	}
	s.Status.Conditions = []api.ResourceSliceCondition{{
		Type: api.SliceAuthentication, Status: api.SliceAccepted, LastTransitionTime: metav1.Unix(60*minute, 0),
	}}
	return s
}

// bought returns what a provider gives to the broker: ingresses of a class.
func bought(provider, class string) *api.ResourceSlice {
	s := slice(provider, "bought", 1, nil)
	s.Labels, s.Spec.ConsumerClusterID, s.Spec.ProviderClusterID = nil, new(own), &provider
	s.Status.Conditions = append(s.Status.Conditions, api.ResourceSliceCondition{Type: api.SliceResources, Status: api.SliceAccepted})
	s.Status.IngressClasses = []api.IngressClass{{Name: class}}
	return s
}

// TestGrants has two consumers, and providers that come and vanish: each is told what it is offered, and nothing is written twice.
func TestGrants(t *testing.T) {
	a, b := nodename.Name(own, v1.Identity("a")), nodename.Name(own, v1.Identity("b"))
	objects := slices.Concat(peer("a"), peer("b"), consumer("one", v1alpha1.NodesOne), consumer("each", v1alpha1.NodesPerProvider))
	w := newWorld(t, append(objects, provider("a", "4", "nvidia.com/gpu"), provider("b", "2"), bought("a", "nginx"), bought("b", "haproxy"),
		slice("one", own, 1, amounts("3", "100Gi")), slice("one", "second", 2, nil),
		slice("each", own, 1, nil), slice("each", a, 2, nil), slice("each", b, 3, amounts("1", "1Gi")))...)
	w.settle("one", "each")
	all := " ingress=haproxy ingress=nginx"
	w.expect("What is asked for bounds it.", "one", own, "Accepted Granted cpu=3 memory=8Gi nvidia.com/gpu=1 pods=10"+all)
	w.expect("It has one node.", "one", "second", "Denied OneNode")
	w.expect("It has no such node.", "each", own, "Denied NodePerProvider")
	w.expect("It has a node of this provider.", "each", a, "Accepted Granted cpu=4 memory=4Gi nvidia.com/gpu=1 pods=10 to=a/a ingress=nginx")
	w.expect("And of this one.", "each", b, "Accepted Granted cpu=1 memory=1Gi nvidia.com/gpu=0 pods=10 to=b/b ingress=haproxy")
	told := w.drainEvents()
	if len(told) != 1 || !strings.Contains(told[0], "RequestDenied ResourceSlice second is denied: The cluster has one node") {
		t.Errorf("people are told %q", told)
	}

	// A provider vanishes.
	change(w, provider("a", "4"), func(p *v1alpha1.Provider) { p.Status.Offered = nil })
	w.settle("one", "each")
	w.expect("What is gone is zero.", "one", own, "Accepted Granted cpu=2 memory=4Gi nvidia.com/gpu=0 pods=10"+all)
	w.expect("So is all of its node, which stays.", "each", a,
		"Accepted NothingOffered cpu=0 memory=0 nvidia.com/gpu=0 pods=0 to=a/a ingress=nginx")
	w.expect("The other one stays as it is.", "each", b, "Accepted Granted cpu=1 memory=1Gi nvidia.com/gpu=0 pods=10 to=b/b ingress=haproxy")
	if got := w.drainEvents(); len(got) != 0 {
		t.Errorf("people are told again: %q", got)
	}

	// It comes back, and a request goes.
	change(w, provider("a", "4"), func(p *v1alpha1.Provider) { p.Status.Offered = amounts("4", "4Gi") })
	if err := w.Delete(t.Context(), slice("one", own, 1, nil)); err != nil {
		t.Fatal(err)
	}
	w.clock.SetTime(time.Unix(9_000, 0))
	w.settle("one", "each")
	w.expect("The next has the node.", "one", "second", "Accepted Granted cpu=6 memory=8Gi pods=20"+all)
	w.expect("It is there again.", "each", a, "Accepted Granted cpu=4 memory=4Gi nvidia.com/gpu=0 pods=10 to=a/a ingress=nginx")
}

// TestKeepsUse suspends a consumer: it keeps what its pods use, on each of its nodes.
func TestKeepsUse(t *testing.T) {
	a := nodename.Name(own, v1.Identity("a"))
	requests := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1"), corev1.ResourceMemory: resource.MustParse("1Gi")}
	twin := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
		Name: "shop", Labels: map[string]string{liqo.LabelRemoteClusterID: "each"},
		Annotations: map[string]string{"liqo.io/managed-by-namespace-map": "x"},
	}}
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "a", Labels: map[string]string{
		liqo.LabelNodeType: liqo.NodeTypeVirtual, liqo.LabelRemoteClusterID: "a",
	}}}
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", Labels: map[string]string{liqo.LabelOriginNodeV1: a}},
		Spec:       corev1.PodSpec{NodeName: "a", Containers: []corev1.Container{{Resources: corev1.ResourceRequirements{Requests: requests}}}},
	}
	given := bought("a", "nginx")
	given.Name, given.Annotations = "a", map[string]string{api.AnnotationCreateNode: "true"}
	objects := slices.Concat(peer("a"), consumer("each", v1alpha1.NodesPerProvider))
	w := newWorld(t, append(objects, provider("a", "4"), twin, node, pod, given, slice("each", a, 1, nil))...)
	w.settle("each")
	w.expect("All is for it.", "each", a, "Accepted Granted cpu=4 memory=4Gi pods=10 to=a/a ingress=nginx")
	suspended := &v1alpha1.Consumer{ObjectMeta: metav1.ObjectMeta{Name: "each"}}
	change(w, suspended, func(c *v1alpha1.Consumer) { c.Spec.Scheduling = v1alpha1.ConsumerSuspended })
	w.settle("each")
	w.expect("What it uses stays.", "each", a, "Accepted Granted cpu=1 memory=1Gi pods=1 to=a/a ingress=nginx")
}

// TestEnding has a consumer that deletes what it was granted, and lets it wait: it gets no more, and less when there is less.
func TestEnding(t *testing.T) {
	stays := slice("one", "x", 1, nil)
	stays.Finalizers = []string{"example.com/mine"}
	w := newWorld(t, append(consumer("one", v1alpha1.NodesOne), provider("a", "4"), stays)...)
	w.settle("one")
	w.expect("It has all.", "one", "x", "Accepted Granted cpu=4 memory=4Gi pods=10")
	if err := w.Delete(t.Context(), slice("one", "x", 1, nil)); err != nil {
		t.Fatal(err)
	}
	for _, step := range []struct{ reason, cpu, want string }{
		{"There is more.", "8", "Accepted Granted cpu=4 memory=4Gi pods=10"},
		{"There is less.", "2", "Accepted Granted cpu=2 memory=4Gi pods=10"},
		{"It does not come back.", "4", "Accepted Granted cpu=2 memory=4Gi pods=10"},
		{"There is nothing.", "0", "Accepted NothingOffered cpu=0 memory=0 pods=0"},
	} {
		change(w, provider("a", "4"), func(p *v1alpha1.Provider) {
			if p.Status.Offered = amounts(step.cpu, "4Gi"); step.cpu == "0" {
				p.Status.Offered = nil
			}
		})
		w.settle("one")
		w.expect(step.reason, "one", "x", step.want)
	}
}

// TestLeftAlone has consumers that are not answered.
func TestLeftAlone(t *testing.T) {
	cases := map[string]struct {
		reason string
		change func(*world)
	}{
		"Unknown": {"There is no Consumer yet.", func(w *world) {
			if err := w.Delete(w.Context(), &v1alpha1.Consumer{ObjectMeta: metav1.ObjectMeta{Name: "one"}}); err != nil {
				w.Fatal(err)
			}
		}},
		"Unserved": {"Nobody knows yet how it is served.", func(w *world) {
			change(w, &v1alpha1.Consumer{ObjectMeta: metav1.ObjectMeta{Name: "one"}}, func(c *v1alpha1.Consumer) {
				c.Status = v1alpha1.ConsumerStatus{}
			})
		}},
		"NoTenant": {"It may not consume.", func(w *world) {
			if err := w.Delete(w.Context(), &api.Tenant{ObjectMeta: metav1.ObjectMeta{Namespace: "tenant-one", Name: "one"}}); err != nil {
				w.Fatal(err)
			}
		}},
		"Drained": {"It has to go, and Liqo has said so.", func(w *world) {
			tenant := &api.Tenant{ObjectMeta: metav1.ObjectMeta{Namespace: "tenant-one", Name: "one"}}
			if err := w.Get(w.Context(), client.ObjectKeyFromObject(tenant), tenant); err != nil {
				w.Fatal(err)
			}
			tenant.Spec.TenantCondition = api.TenantDrained
			if err := w.Update(w.Context(), tenant); err != nil {
				w.Fatal(err)
			}
		}},
		"NoPeer": {"Liqo does not know it.", func(w *world) {
			if err := w.Delete(w.Context(), &api.ForeignCluster{ObjectMeta: metav1.ObjectMeta{Name: "one"}}); err != nil {
				w.Fatal(err)
			}
		}},
		"OfLiqo": {"Liqo answers it.", func(w *world) {
			change(w, slice("one", "x", 1, nil), func(s *api.ResourceSlice) { s.Spec.Class = api.SliceClassDefault })
		}},
		"Forged": {"It is in the name of another.", func(w *world) {
			change(w, slice("one", "x", 1, nil), func(s *api.ResourceSlice) { s.Spec.ConsumerClusterID = new("a") })
		}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, append(consumer("one", v1alpha1.NodesOne), provider("a", "4"), slice("one", "x", 1, nil))...)
			tc.change(w)
			if writes := w.reconcile("one"); writes > 0 {
				t.Errorf("%s\n%d are written: %s", tc.reason, writes, w.says("one", "x"))
			}
		})
	}
	w := newWorld(t, append(consumer("one", v1alpha1.NodesOne), provider("a", "4"), slice("one", "x", 1, nil))...)
	if writes := w.reconcile("one"); writes != 1 {
		t.Errorf("otherwise %d are written", writes)
	}
}

// TestWritesOneByOne has one write refused: the others are made, and people are told of what is written only.
func TestWritesOneByOne(t *testing.T) {
	conflict := apierrors.NewConflict(schema.GroupResource{Resource: "resourceslices"}, "x", errors.New("changed"))
	objects := append(consumer("one", v1alpha1.NodesOne), provider("a", "4"))
	for i := range int64(3) {
		objects = append(objects, slice("one", fmt.Sprint("x", i), i, nil))
	}
	w := newWorld(t, objects...)
	w.before = func() error {
		if w.writes == 2 {
			return conflict
		}
		return nil
	}
	_, err := w.reconciler.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKey{Name: "one"}})
	if !apierrors.IsConflict(err) || w.writes != 3 || len(w.drainEvents()) != 1 {
		t.Errorf("Reconcile(): %v, after %d writes", err, w.writes)
	}
	if w.settle("one"); len(w.drainEvents()) != 1 {
		t.Error("people are not told of what is written later")
	}
	want := []string{"Accepted Granted cpu=4 memory=4Gi pods=10", "Denied OneNode", "Denied OneNode"}
	if diff := cmp.Diff(want, []string{w.says("one", "x0"), w.says("one", "x1"), w.says("one", "x2")}); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}

	// One that went in between is no failure.
	w = newWorld(t, append(consumer("one", v1alpha1.NodesOne), provider("a", "4"), slice("one", "x", 1, nil))...)
	w.before = func() error { return apierrors.NewNotFound(schema.GroupResource{Resource: "resourceslices"}, "x") }
	if w.reconcile("one"); len(w.drainEvents()) > 0 {
		t.Error("people are told of one that is gone")
	}
}

// TestOthersHaveTheirTurn has a consumer that asks for more than is looked at: not all of it is answered in a row.
func TestOthersHaveTheirTurn(t *testing.T) {
	objects := append(consumer("one", v1alpha1.NodesOne), provider("a", "4"))
	for i := range int64(maxWrites + 3) {
		objects = append(objects, slice("one", fmt.Sprint("x", i), i, nil))
	}
	w := newWorld(t, objects...)
	for _, want := range []struct {
		again  time.Duration
		writes int
	}{{turn, maxWrites}, {0, 3}, {0, 0}} {
		w.writes = 0
		got, err := w.reconciler.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKey{Name: "one"}})
		if err != nil || got.RequeueAfter != want.again || w.writes != want.writes {
			t.Errorf("Reconcile(): %v, %v, after %d writes, want %v", got, err, w.writes, want)
		}
	}
	w.expect("The oldest has the node.", "one", "x0", "Accepted Granted cpu=4 memory=4Gi pods=10")
	w.expect("The last is not looked at.", "one", fmt.Sprint("x", maxWrites+2), "Denied TooManyRequests")
}

// TestHeals has somebody else write the status of a ResourceSlice that has a node: it says again what it said.
func TestHeals(t *testing.T) {
	a := nodename.Name(own, v1.Identity("a"))
	resources := func(s *api.ResourceSlice) *api.ResourceSliceCondition {
		return &s.Status.Conditions[slices.IndexFunc(s.Status.Conditions, func(c api.ResourceSliceCondition) bool {
			return c.Type == api.SliceResources
		})]
	}
	cases := map[string]struct {
		reason string
		change func(*api.ResourceSlice)
	}{
		"More": {"It has granted itself more.", func(s *api.ResourceSlice) {
			s.Status.Resources[corev1.ResourceCPU] = resource.MustParse("1k")
		}},
		"Less":     {"It has less.", func(s *api.ResourceSlice) { s.Status.Resources = nil }},
		"Selector": {"Its pods go elsewhere.", func(s *api.ResourceSlice) { s.Status.NodeSelector[liqo.LabelRemoteClusterID] = "b" }},
		"Labels":   {"It calls its node otherwise.", func(s *api.ResourceSlice) { s.Status.NodeLabels = nil }},
		"Storage": {"It has volumes here.", func(s *api.ResourceSlice) {
			s.Status.StorageClasses = []api.StorageClass{{Name: "local"}}
		}},
		"Classes": {"It has classes that nobody has.", func(s *api.ResourceSlice) {
			s.Status.IngressClasses = append(s.Status.IngressClasses, api.IngressClass{Name: "other"})
		}},
		"Reason":  {"It says another reason.", func(s *api.ResourceSlice) { resources(s).Reason = "Other" }},
		"Unknown": {"It says what is no answer.", func(s *api.ResourceSlice) { resources(s).Status = "Perhaps" }},
		"Denied":  {"It is denied.", func(s *api.ResourceSlice) { resources(s).Status = api.SliceDenied }},
		"Twice": {"It is denied besides.", func(s *api.ResourceSlice) {
			s.Status.Conditions = append(s.Status.Conditions, api.ResourceSliceCondition{Type: api.SliceResources, Status: api.SliceDenied})
		}},
		"Undecided": {"Nobody has decided.", func(s *api.ResourceSlice) {
			s.Status.Conditions = slices.DeleteFunc(s.Status.Conditions, func(c api.ResourceSliceCondition) bool {
				return c.Type == api.SliceResources
			})
		}},
	}
	ignoreTime := cmp.FilterPath(func(p cmp.Path) bool { return p.Last().String() == ".LastTransitionTime" }, cmp.Ignore())
	for _, offered := range []string{"4", "0"} {
		for name, tc := range cases {
			t.Run(name+offered, func(t *testing.T) {
				objects := slices.Concat(peer("a"), peer("b"), consumer("each", v1alpha1.NodesPerProvider))
				w := newWorld(t, append(objects, provider("a", "4"), bought("a", "nginx"), slice("each", a, 1, nil))...)
				w.settle("each")
				change(w, provider("a", "4"), func(p *v1alpha1.Provider) { p.Status.Offered = amounts(offered, "4Gi") })
				w.settle("each")
				written := slice("each", a, 1, nil)
				if err := w.Get(t.Context(), client.ObjectKeyFromObject(written), written); err != nil {
					t.Fatal(err)
				}
				want := written.DeepCopy()
				change(w, written, tc.change)
				w.settle("each")
				w.clock.SetTime(w.clock.Now().Add(time.Hour)) // Classes wait.
				w.settle("each")
				if err := w.Get(t.Context(), client.ObjectKeyFromObject(written), written); err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(want.Status, written.Status, ignoreTime); diff != "" {
					t.Errorf("%s\n-want +got\n%s", tc.reason, diff)
				}
			})
		}
	}
}

// TestProviderGoes removes all that is known of a provider: its node is emptied, and says what it said until the provider comes back.
func TestProviderGoes(t *testing.T) {
	a := nodename.Name(own, v1.Identity("a"))
	objects := slices.Concat(peer("a"), peer("b"), consumer("each", v1alpha1.NodesPerProvider))
	w := newWorld(t, append(objects, provider("a", "4"), provider("b", "2"), bought("a", "nginx"), bought("b", "haproxy"),
		slice("each", a, 1, nil))...)
	w.settle("each")
	if err := errors.Join(w.Delete(t.Context(), provider("a", "4")), w.Delete(t.Context(), bought("a", "nginx"))); err != nil {
		t.Fatal(err)
	}
	w.settle("each")
	w.expect("It has nothing, and no class of another.", "each", a,
		"Accepted NothingOffered cpu=0 memory=0 pods=0 to=a/a ingress=nginx")
	if err := errors.Join(w.Create(t.Context(), provider("a", "4")), w.Create(t.Context(), bought("a", "nginx"))); err != nil {
		t.Fatal(err)
	}
	w.settle("each")
	w.expect("It is there again.", "each", a, "Accepted Granted cpu=4 memory=4Gi pods=10 to=a/a ingress=nginx")
}

// TestChangingClasses has a provider that lists other classes each minute, and a daemon that starts again each minute: of each consumer one
// change in ten minutes is written, and the last one is.
func TestChangingClasses(t *testing.T) {
	a, b := nodename.Name(own, v1.Identity("a")), nodename.Name(own, v1.Identity("b"))
	objects := slices.Concat(peer("a"), peer("b"), consumer("one", v1alpha1.NodesOne), consumer("each", v1alpha1.NodesPerProvider))
	w := newWorld(t, append(objects, provider("a", "4"), provider("b", "2"), bought("a", "nginx"), bought("b", "haproxy"),
		slice("one", own, 1, nil), slice("each", a, 1, nil), slice("each", b, 2, nil))...)
	w.settle("one", "each")
	told := []string{}
	for minute := range 35 {
		w.clock.SetTime(time.Unix(5_000, 0).Add(time.Duration(minute+1) * time.Minute))
		change(w, bought("a", "nginx"), func(s *api.ResourceSlice) {
			s.Status.IngressClasses = []api.IngressClass{{Name: fmt.Sprint("c", minute)}}
		})
		w.reconciler = New(Config{
			Client: w.WithWatch, Reader: w.reconciler.reader, Capacity: w.reconciler.reader.Capacity, Recorder: w.events, Clock: w.clock,
		})
		if writes := w.reconcile("one") + w.reconcile("each"); writes > 0 {
			told = append(told, fmt.Sprintf("%d writes after %d minutes", writes, minute+1))
		}
	}
	want := []string{"2 writes after 10 minutes", "2 writes after 20 minutes", "2 writes after 30 minutes"}
	if diff := cmp.Diff(want, told); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
	w.expect("It has what there was last.", "one", own, "Accepted Granted cpu=6 memory=8Gi pods=20 ingress=haproxy ingress=c29")
	w.expect("So has a node of the provider.", "each", a, "Accepted Granted cpu=4 memory=4Gi pods=10 to=a/a ingress=c29")
	w.expect("That of another is as it was.", "each", b, "Accepted Granted cpu=2 memory=4Gi pods=10 to=b/b ingress=haproxy")

	// All else is told meanwhile. What waits is told without another word of anybody, first what has waited for long.
	list := func(class string) {
		change(w, bought("b", "haproxy"), func(s *api.ResourceSlice) { s.Status.IngressClasses = []api.IngressClass{{Name: class}} })
	}
	change(w, provider("a", "4"), func(p *v1alpha1.Provider) { p.Status.Offered = amounts("3", "4Gi") })
	list("x")
	for _, step := range []struct {
		writes int
		again  time.Duration
		a, b   string
	}{{2, 5 * time.Minute, "c29", "x"}, {0, 5 * time.Minute, "c29", "x"}, {1, 5 * time.Minute, "c34", "x"}, {1, 0, "c34", "y"}} {
		w.writes = 0
		got, err := w.reconciler.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKey{Name: "each"}})
		if err != nil || got.RequeueAfter != step.again || w.writes != step.writes {
			t.Errorf("Reconcile(): %v, %v after %d writes, want %s after %d", got, err, w.writes, step.again, step.writes)
		}
		w.expect("It is told in time.", "each", a, "Accepted Granted cpu=3 memory=4Gi pods=10 to=a/a ingress="+step.a)
		w.expect("So is the other.", "each", b, "Accepted Granted cpu=2 memory=4Gi pods=10 to=b/b ingress="+step.b)
		if list("y"); step.writes != 2 {
			w.clock.SetTime(w.clock.Now().Add(got.RequeueAfter))
		}
	}
}

// TestMadeAnew has a ResourceSlice deleted and made again while its answer is on its way: what was decided of the old one is not written
// into the new one, which asks for less and has no certificate yet.
func TestMadeAnew(t *testing.T) {
	w := newWorld(t, append(consumer("one", v1alpha1.NodesOne), provider("a", "4"), slice("one", "x", 1, nil))...)
	again := slice("one", "x", 2, amounts("1", "1Gi"))
	issued := again.Status
	w.before = func() error {
		w.before = nil
		again.Status = api.ResourceSliceStatus{}
		return errors.Join(w.Delete(t.Context(), slice("one", "x", 1, nil)), w.Create(t.Context(), again))
	}
	_, err := w.reconciler.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKey{Name: "one"}})
	if !apierrors.IsConflict(err) {
		t.Errorf("Reconcile(): %v, want a conflict", err)
	}
	w.settle("one")
	w.expect("It waits for its certificate.", "one", "x", "open")
	change(w, slice("one", "x", 2, nil), func(s *api.ResourceSlice) { s.Status = issued })
	w.settle("one")
	w.expect("It has what it asks for.", "one", "x", "Accepted Granted cpu=1 memory=1Gi pods=10")
}

// TestSlowServer has an API server that takes its time, and one that takes nothing: others have their turn in between.
func TestSlowServer(t *testing.T) {
	const asked = 6
	several := func() *world {
		objects := append(consumer("one", v1alpha1.NodesOne), provider("a", "4"))
		for i := range int64(asked) {
			objects = append(objects, slice("one", fmt.Sprint("x", i), i, nil))
		}
		return newWorld(t, objects...)
	}
	one := ctrl.Request{NamespacedName: client.ObjectKey{Name: "one"}}
	w := several()
	w.before = func() error {
		w.clock.SetTime(w.clock.Now().Add(patience/2 + 1))
		return nil
	}
	for _, want := range []struct {
		again  time.Duration
		writes int
	}{{turn, 2}, {turn, 2}, {0, 2}, {0, 0}} {
		w.writes = 0
		got, err := w.reconciler.Reconcile(t.Context(), one)
		if err != nil || got.RequeueAfter != want.again || w.writes != want.writes {
			t.Errorf("Reconcile(): %v, %v, after %d writes, want %v", got, err, w.writes, want)
		}
	}
	w = several()
	for _, failure := range []error{
		errors.New("connection refused"), apierrors.NewTimeoutError("too slow", 1), apierrors.NewTooManyRequestsError("too many"),
		context.DeadlineExceeded,
	} {
		w.writes, w.before = 0, func() error { return failure }
		if got, err := w.reconciler.Reconcile(t.Context(), one); !errors.Is(err, failure) || w.writes != 1 || got != (ctrl.Result{}) {
			t.Errorf("%v: Reconcile(): %v, %v, after %d writes", failure, got, err, w.writes)
		}
	}
	forbidden := apierrors.NewForbidden(schema.GroupResource{Resource: "resourceslices"}, "x", errors.New("refused by admission"))
	w.writes, w.before = 0, func() error { return forbidden }
	if _, err := w.reconciler.Reconcile(t.Context(), one); !errors.Is(err, forbidden) || w.writes != asked {
		t.Errorf("what refuses one takes others: Reconcile(): %v, after %d writes", err, w.writes)
	}
}

// TestViews has a consumer whose agent tells, and falls silent: it is granted what it can reach, and looked at again when that counts no
// more.
func TestViews(t *testing.T) {
	w := newWorld(t, append(consumer("one", v1alpha1.NodesOne), provider("a", "4"), slice("one", "x", 1, nil))...)
	view := netip.MustParsePrefix("10.69.0.0/16")
	views, boom := grant.Views{Asked: true, Granted: map[cluster.ID]grant.View{"a": {Key: "k", Prefix: view}}}, error(nil)
	w.reconciler.views = func(_ context.Context, consumer cluster.ID) (grant.Views, error) {
		if consumer != "one" {
			t.Errorf("the views of %s are asked for", consumer)
		}
		now := views
		now.Now = w.clock.Now()
		return now, boom
	}
	again := func() time.Duration {
		t.Helper()
		w.settle("one")
		result, err := w.reconciler.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKey{Name: "one"}})
		if err != nil {
			t.Fatal(err)
		}
		return result.RequeueAfter
	}
	told := func() map[string]string {
		t.Helper()
		var s api.ResourceSlice
		if err := w.Get(t.Context(), client.ObjectKey{Namespace: "tenant-one", Name: "x"}, &s); err != nil {
			t.Fatal(err)
		}
		return s.Status.NodeLabels
	}
	if got := again(); got != 0 {
		t.Errorf("who was never heard is looked at after %s", got)
	}
	w.expect("It is told the views first.", "one", "x", "Denied AgentMissing")
	if diff := cmp.Diff(map[string]string{"view.brokering.liqo.io/k": "10.69.0.0_16"}, told()); diff != "" {
		t.Error(diff)
	}
	views.Told, views.Acknowledged = w.clock.Now(), map[string]netip.Prefix{"k": view}
	if got := again(); got <= grant.MaxSilence || got > grant.MaxSilence+time.Second {
		t.Errorf("it is looked at again after %s", got)
	}
	w.expect("Then it has something.", "one", "x", "Accepted Granted cpu=4 memory=4Gi pods=10")
	w.clock.SetTime(w.clock.Now().Add(grant.MaxSilence + time.Second))
	change(w, provider("a", "4"), func(p *v1alpha1.Provider) { p.Status.Offered = amounts("8", "4Gi") })
	again()
	w.expect("It keeps that, and gets no more.", "one", "x", "Accepted AgentMissing cpu=4 memory=4Gi pods=10")

	// While nobody can say what it has told, nothing changes.
	boom = errors.New("boom")
	w.writes = 0
	_, err := w.reconciler.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKey{Name: "one"}})
	if !errors.Is(err, boom) || w.writes != 0 {
		t.Errorf("%v, %d writes", err, w.writes)
	}
}

// TestNodes tells a consumer, by the ResourceSlice of which it gets no node, which nodes it is to have.
func TestNodes(t *testing.T) {
	provides := func(id string, role api.Role) client.Object {
		f := &api.ForeignCluster{
			ObjectMeta: metav1.ObjectMeta{Name: id}, Spec: api.ForeignClusterSpec{ClusterID: id}, Status: api.ForeignClusterStatus{Role: role},
		}
		f.Status.Modules.Offloading.Enabled = true
		return f
	}
	long := strings.Repeat("b", 60) // A certificate has no room for it.
	a, b := nodename.OfSlice(own, v1.Identity("a")), nodename.OfSlice(own, v1.Identity(long))
	w := newWorld(t, append(consumer("each", v1alpha1.NodesPerProvider), provides("a", api.RoleProvider),
		provides(long, api.RoleConsumerAndProvider), provider("a", "4"), provider(long, "2"), slice("each", own, 1, nil))...)
	told := func(name string) map[string]cluster.ID {
		t.Helper()
		var s api.ResourceSlice
		if err := w.Get(t.Context(), client.ObjectKey{Namespace: "tenant-each", Name: name}, &s); err != nil {
			t.Fatal(err)
		}
		return liqo.NodesOf(s.Status.NodeLabels)
	}
	expect := func(reason string, want map[string]cluster.ID) {
		t.Helper()
		w.settle("each")
		if got := told(own); !maps.Equal(got, want) {
			t.Errorf("%s\ntold %v, want %v", reason, got, want)
		}
	}
	becomes := func(id string, role api.Role) {
		t.Helper()
		if err := errors.Join(w.Delete(t.Context(), provides(id, role)), w.Create(t.Context(), provides(id, role))); err != nil {
			t.Fatal(err)
		}
	}
	both := map[string]cluster.ID{a: "a", b: cluster.ID(long)}
	expect("It has one for each provider.", both)
	w.expect("And none for all of them.", "each", own, "Denied NodePerProvider")

	// The consumer's agent makes them.
	if err := errors.Join(w.Create(t.Context(), slice("each", a, 2, nil)), w.Create(t.Context(), slice("each", b, 3, nil))); err != nil {
		t.Fatal(err)
	}
	expect("They stay.", both)
	w.expect("It has what the provider has.", "each", a, "Accepted Granted cpu=4 memory=4Gi pods=10 to=a/a")
	w.expect("So has the other one.", "each", b, "Accepted Granted cpu=2 memory=4Gi pods=10 to="+long+"/"+long)
	if got := told(a); len(got) != 0 {
		t.Errorf("what has a node is told %v", got)
	}

	change(w, provider(long, "2"), func(p *v1alpha1.Provider) { p.Status.Offered = nil })
	expect("One that is lost keeps its node.", both)
	becomes(long, api.RoleConsumer)
	expect("One that does not provide any more takes it along.", map[string]cluster.ID{a: "a"})
	if err := w.Delete(t.Context(), provider("a", "4")); err != nil {
		t.Fatal(err)
	}
	expect("So does one of which people have removed what the broker knew.", nil)

	change(w, &v1alpha1.Consumer{ObjectMeta: metav1.ObjectMeta{Name: "each"}}, func(c *v1alpha1.Consumer) { c.Spec.Nodes = v1alpha1.NodesOne })
	becomes(long, api.RoleProvider)
	change(w, provider(long, "2"), func(p *v1alpha1.Provider) { p.Status.Offered = amounts("2", "4Gi") })
	expect("It is to have one for all of them.", nil)
	w.expect("Which it has.", "each", own, "Accepted Granted cpu=2 memory=4Gi pods=10")
}

// TestSetup looks at consumers when a provider gets a view or loses it, though it has the same, and at once when people want something else
// of it.
func TestSetup(t *testing.T) {
	w := newWorld(t, consumer("one", v1alpha1.NodesOne)...)
	looked := make(chan string, 10)
	noting := interceptor.NewClient(w.WithWatch, interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, options ...client.GetOption) error {
			if _, is := o.(*v1alpha1.Consumer); is {
				looked <- key.Name
			}
			return c.Get(ctx, key, o, options...)
		},
	})
	reader := snapshot.New(v1.Line{}, noting, own, nil)
	p, c := provider("a", "4"), &v1alpha1.Consumer{ObjectMeta: metav1.ObjectMeta{Name: "one"}}
	happened := watches.Start(t, w.Scheme(), func(mgr ctrl.Manager) error {
		return Setup(mgr, Config{
			Client: noting, Reader: reader, Capacity: reader.Capacity, Recorder: w.events, Clock: w.clock,
			Views: func(context.Context, cluster.ID) (grant.Views, error) { return grant.Views{}, nil },
		})
	}, p, p, p, c, c)
	expect := func(times int, reason string) {
		t.Helper()
		for i := range times {
			select {
			case <-looked:
			case <-time.After(20 * time.Second):
				t.Errorf("%s: the consumer was looked at %d times, want %d", reason, i, times)
				return
			}
		}
	}
	decided := watches.Changed(p, func(p *v1alpha1.Provider) { p.Status.ObservedGeneration = 1 })
	happened.Happens(p, decided)
	expect(1, "A provider is decided about")
	happened.Happens(c, watches.Changed(c, func(c *v1alpha1.Consumer) { c.Generation = 2 }))
	expect(2, "A consumer has other terms, which is looked at once, and when what is counted knows them")
	happened.Happens(decided, watches.Changed(decided, func(p *v1alpha1.Provider) { p.Spec.Scheduling = v1alpha1.SchedulingDrained }))
	expect(2, "A provider is drained, which is looked at once, and when what is counted knows it")
}

func TestRescheduled(t *testing.T) {
	wants := func(s v1alpha1.Scheduling) *v1alpha1.Provider {
		return &v1alpha1.Provider{Spec: v1alpha1.ProviderSpec{Scheduling: s}}
	}
	cases := map[string]struct {
		reason        string
		before, after client.Object
		want          bool
	}{
		"Drained":  {"People wait for that.", wants(v1alpha1.SchedulingActive), wants(v1alpha1.SchedulingDrained), true},
		"Back":     {"And for that.", wants(v1alpha1.SchedulingCordoned), wants(v1alpha1.SchedulingActive), true},
		"Default":  {"Active is what nobody has said.", wants(""), wants(v1alpha1.SchedulingActive), false},
		"Measured": {"What a provider has changes by itself, and often.", provider("a", "4"), provider("a", "5"), false},
		"Other":    {"It is about providers.", &v1alpha1.Consumer{}, &v1alpha1.Consumer{}, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := rescheduled().Update(event.UpdateEvent{ObjectOld: tc.before, ObjectNew: tc.after}); got != tc.want {
				t.Errorf("%s\nrescheduled() passes: %t, want %t", tc.reason, got, tc.want)
			}
		})
	}
}
