// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package views_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	testclock "k8s.io/utils/clock/testing"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	agent "github.com/capacitorset/liqo-broker/pkg/agent/views"
	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
	"github.com/capacitorset/liqo-broker/pkg/core/views"
	"github.com/capacitorset/liqo-broker/pkg/daemon"
	"github.com/capacitorset/liqo-broker/pkg/liqo"
	"github.com/capacitorset/liqo-broker/pkg/liqo/v1/api"
	"github.com/capacitorset/liqo-broker/test/watches"
)

const (
	tenant = "liqo-tenant-broker"
	own    = "10.201.0.0/16"
	view   = "10.69.0.0/16"
)

// home is a consumer with a broker.
type home struct {
	t      *testing.T
	client client.Client
	clock  *testclock.FakePassiveClock
	agent  *agent.Reconciler
	plan   views.Plan
	config client.ObjectKey
	// believes is what the broker may believe, and told who was told of a plan.
	believes *views.Belief
	told     []string
	// get is told of each list that is read.
	get func(client.ObjectKey)
}

func newHome(t *testing.T, broker bool, slice func(*api.ResourceSlice), others ...client.Object) *home {
	t.Helper()
	scheme, err := daemon.Kinds(api.AddToScheme)
	if err != nil {
		t.Fatal(err)
	}
	consumer, provider := "home", "broker"
	record := &api.ForeignCluster{ObjectMeta: metav1.ObjectMeta{Name: "broker"}, Spec: api.ForeignClusterSpec{ClusterID: "broker"}}
	record.Status.TenantNamespace.Local = tenant
	if broker {
		record.Annotations = map[string]string{"brokering.liqo.io/broker": "true"}
	}
	s := &api.ResourceSlice{
		ObjectMeta: metav1.ObjectMeta{Namespace: tenant, Name: "broker"},
		Spec:       api.ResourceSliceSpec{ConsumerClusterID: &consumer, ProviderClusterID: &provider},
		Status:     api.ResourceSliceStatus{NodeLabels: map[string]string{"view.brokering.liqo.io/n1": "10.69.0.0_16"}},
	}
	if slice != nil {
		slice(s)
	}
	c := &api.Configuration{
		ObjectMeta: metav1.ObjectMeta{Namespace: tenant, Name: "broker", Labels: map[string]string{liqo.LabelRemoteClusterID: "broker"}},
	}
	c.Spec.Remote.CIDR = api.CIDRs{Pod: []string{own}, External: []string{"10.202.0.0/16"}}
	h := &home{t: t, clock: testclock.NewFakePassiveClock(time.Unix(10_000, 0)), config: client.ObjectKeyFromObject(c)}
	h.believes = &views.Belief{}
	h.client = fake.NewClientBuilder().WithScheme(scheme).WithObjects(append(others, record, s, c)...).WithStatusSubresource(c).
		WithInterceptorFuncs(interceptor.Funcs{
			Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, options ...client.GetOption) error {
				if _, is := o.(*api.Configuration); is && h.get != nil {
					h.get(key)
				}
				return c.Get(ctx, key, o, options...)
			},
		}).Build()
	h.start()
	return h
}

// start starts the program, once more.
func (h *home) start() {
	h.agent = agent.New(agent.Config{
		Client: h.client, Own: "home", Clock: h.clock,
		Planned: func(broker cluster.ID, tenant string, p *views.Plan) {
			h.plan, h.told = *p, append(h.told, fmt.Sprintf("%s in %s", broker, tenant))
		},
		Believed: func(broker cluster.ID) *views.Belief {
			if broker != "broker" {
				h.t.Errorf("it asks what %s believes", broker)
			}
			return h.believes
		},
	})
}

func (h *home) reconcile() {
	h.t.Helper()
	h.clock.SetTime(h.clock.Now().Add(time.Minute))
	if _, err := h.agent.Reconcile(h.t.Context(), ctrl.Request{NamespacedName: h.config}); err != nil {
		h.t.Fatal(err)
	}
}

// configuration returns the list as it is.
func (h *home) configuration() *api.Configuration {
	h.t.Helper()
	var c api.Configuration
	if err := h.client.Get(h.t.Context(), h.config, &c); err != nil {
		h.t.Fatal(err)
	}
	return &c
}

// decide does what Liqo does: a network that is taken is seen under another prefix.
func (h *home) decide(remaps map[string]string) {
	h.t.Helper()
	c := h.configuration()
	seen := api.CIDRs{External: c.Spec.Remote.CIDR.External}
	for _, p := range c.Spec.Remote.CIDR.Pod {
		if to := remaps[p]; to != "" {
			p = to
		}
		seen.Pod = append(seen.Pod, p)
	}
	c.Status.Remote = &api.ClusterNetworks{CIDR: seen}
	c.Status.Conditions = []metav1.Condition{{
		Type: api.NetworkCIDRsConfigured, Status: metav1.ConditionTrue, ObservedGeneration: c.Generation, Reason: "Configured",
	}}
	if err := h.client.Status().Update(h.t.Context(), c); err != nil {
		h.t.Fatal(err)
	}
}

func (h *home) check(reason string, list, acknowledged []string) {
	h.t.Helper()
	if got := h.configuration().Spec.Remote.CIDR.Pod; !slices.Equal(got, list) {
		h.t.Errorf("%s: the list is %v, want %v", reason, got, list)
	}
	var told []string
	for _, key := range slices.Sorted(maps.Keys(h.plan.Acknowledged)) {
		told = append(told, key+"="+h.plan.Acknowledged[key].String())
	}
	if !slices.Equal(told, acknowledged) {
		h.t.Errorf("%s: acknowledged %v, want %v (waiting %v, refused %v)", reason, told, acknowledged, h.plan.Waiting, h.plan.Refused)
	}
}

func kubelet(name string, made time.Time) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: tenant, Name: name, CreationTimestamp: metav1.NewTime(made),
			Labels: map[string]string{"offloading.liqo.io/component": "virtual-kubelet"},
		},
		Status: corev1.PodStatus{Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}},
	}
}

// TestReconcile has a view installed, repaired after somebody has overwritten the list, and kept for a pod.
func TestReconcile(t *testing.T) {
	node := &api.VirtualNode{ObjectMeta: metav1.ObjectMeta{Namespace: tenant, Name: "broker"}, Spec: api.VirtualNodeSpec{ClusterID: "broker"}}
	h := newHome(t, true, nil, node)
	h.decide(nil)
	h.reconcile()
	h.check("it is listed first", []string{own, view}, nil)
	h.decide(nil)
	h.reconcile()
	h.check("and acknowledged when Liqo has decided", []string{own, view}, []string{"n1=" + view})

	// liqoctl.
	c := h.configuration()
	c.Spec.Remote.CIDR.Pod = []string{own}
	if err := h.client.Update(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	h.reconcile()
	h.check("what is overwritten is repaired", []string{own, view}, nil)

	// The provider goes, and its pod stays.
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web"}, Spec: corev1.PodSpec{NodeName: "broker"},
		Status: corev1.PodStatus{PodIPs: []corev1.PodIP{{IP: "10.69.0.7"}}},
	}
	if err := h.client.Create(t.Context(), pod); err != nil {
		t.Fatal(err)
	}
	h.withdraw()
	h.decide(nil)
	h.reconcile()
	h.check("a pod keeps its network", []string{own, view}, nil)
	if err := h.client.Delete(t.Context(), pod); err != nil {
		t.Fatal(err)
	}
	h.reconcile()
	h.check("and nobody else does", []string{own}, nil)
}

// TestLogged holds that of keys that cannot be read, and of what they have for a prefix, no more is logged than people can read.
func TestLogged(t *testing.T) {
	long := strings.Repeat("x", 1<<20)
	h := newHome(t, true, func(s *api.ResourceSlice) {
		s.Status.NodeLabels["view.brokering.liqo.io/"+long] = long
		s.Status.NodeLabels["view.brokering.liqo.io/n2"] = long
	})
	h.decide(nil)
	var logged []string
	log := funcr.New(func(_, args string) { logged = append(logged, args) }, funcr.Options{})
	if _, err := h.agent.Reconcile(ctrl.LoggerInto(t.Context(), log), ctrl.Request{NamespacedName: h.config}); err != nil {
		t.Fatal(err)
	}
	if len(logged) != 2 || len(strings.Join(logged, "")) > 1024 || !strings.Contains(logged[1], `"`+strings.Repeat("x", 60)+`..."`) {
		t.Errorf("%d lines are logged: %.200s", len(logged), logged)
	}
}

// withdraw has the broker grant nothing any more.
func (h *home) withdraw() {
	h.t.Helper()
	var s api.ResourceSlice
	if err := h.client.Get(h.t.Context(), client.ObjectKey{Namespace: tenant, Name: "broker"}, &s); err != nil {
		h.t.Fatal(err)
	}
	s.Status.NodeLabels = nil
	if err := h.client.Update(h.t.Context(), &s); err != nil {
		h.t.Fatal(err)
	}
}

// newToldHome returns a home that has installed a view, and whose broker is told so.
func newToldHome(t *testing.T) *home {
	t.Helper()
	h := newHome(t, true, nil)
	h.decide(nil)
	h.reconcile()
	h.decide(nil)
	h.reconcile()
	h.check("it is told", []string{own, view}, []string{"n1=" + view})
	return h
}

// TestWithdrawn has a view go when the broker cannot believe any more that it is there, also by a program that starts again.
func TestWithdrawn(t *testing.T) {
	h := newToldHome(t)
	h.believes.Tell(h.plan.Acknowledged, h.clock.Now())

	h.withdraw()
	h.reconcile()
	h.check("the broker has to be told first", []string{own, view}, nil)
	h.reconcile()
	h.check("as long as that takes", []string{own, view}, nil)
	h.believes = views.NewBelief(h.clock.Now())
	h.start()
	h.reconcile()
	h.check("who starts again does not know what it was told", []string{own, view}, nil)
	h.believes.Arrived(h.plan.Acknowledged, h.clock.Now())
	h.agent.Believed = nil
	h.reconcile()
	h.check("who knows nothing of it at all lets none go", []string{own, view}, nil)
	h.start()
	h.reconcile()
	h.check("it was told", []string{own}, nil)
}

// TestEnded tells a broker once that nothing is installed any more, when it has no network here, or is no broker.
func TestEnded(t *testing.T) {
	for name, tc := range map[string]struct {
		reason string
		end    func(*testing.T, *home) error
		told   int
	}{
		"Gone": {
			reason: "Its network is gone.", told: 1,
			end: func(t *testing.T, h *home) error { t.Helper(); return h.client.Delete(t.Context(), h.configuration()) },
		},
		"NoBroker": {
			reason: "People have taken it back.", told: 1,
			end: func(t *testing.T, h *home) error {
				t.Helper()
				var record api.ForeignCluster
				if err := h.client.Get(t.Context(), client.ObjectKey{Name: "broker"}, &record); err != nil {
					return err
				}
				record.Annotations = nil
				return h.client.Update(t.Context(), &record)
			},
		},
		"Unknown": {
			reason: "Who starts then knows of nobody.",
			end: func(t *testing.T, h *home) error {
				t.Helper()
				h.start()
				return h.client.Delete(t.Context(), h.configuration())
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			h := newToldHome(t)
			h.told = nil
			if err := tc.end(t, h); err != nil {
				t.Fatal(err)
			}
			h.reconcile()
			h.reconcile()
			if len(h.told) != tc.told || tc.told > 0 && (h.told[0] != "broker in "+tenant || len(h.plan.Acknowledged) > 0) {
				t.Errorf("%s: told %v that %v is installed", tc.reason, h.told, h.plan.Acknowledged)
			}
		})
	}
}

// TestReplace replaces a virtual kubelet that has read another list, and acknowledges the view when that is done.
func TestReplace(t *testing.T) {
	h := newHome(t, true, nil, kubelet("vk", time.Unix(9000, 0)))
	h.decide(nil)
	h.reconcile()
	h.decide(map[string]string{view: "10.64.0.0/16"})
	h.reconcile()
	h.check("the virtual kubelet does not know it", []string{own, view}, nil)
	var pods corev1.PodList
	if err := h.client.List(t.Context(), &pods); err != nil || len(pods.Items) != 0 {
		t.Fatalf("%d pods are there: %v", len(pods.Items), err)
	}
	if err := h.client.Create(t.Context(), kubelet("vk-2", h.clock.Now().Add(20*time.Second))); err != nil {
		t.Fatal(err)
	}
	h.reconcile()
	h.check("the next one does", []string{own, view}, []string{"n1=" + view})

	// liqoctl: what has read the list before need not be replaced.
	c := h.configuration()
	c.Spec.Remote.CIDR.Pod = []string{own}
	if err := h.client.Update(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	h.decide(nil)
	h.reconcile()
	h.decide(map[string]string{view: "10.64.0.0/16"})
	h.reconcile()
	h.check("it knows the list", []string{own, view}, []string{"n1=" + view})
	if err := h.client.List(t.Context(), &pods); err != nil || len(pods.Items) != 1 {
		t.Errorf("%d pods are there: %v", len(pods.Items), err)
	}
}

// TestGeneration believes no decision about another list, but for what it has seen decided before; who starts again has not.
func TestGeneration(t *testing.T) {
	h := newHome(t, true, nil)
	h.decide(nil)
	h.reconcile()
	h.decide(nil)
	c := h.configuration()
	c.Generation++
	if err := h.client.Update(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	h.reconcile()
	h.check("Liqo has not decided about this one", []string{own, view}, nil)

	h.decide(nil)
	h.reconcile()
	c = h.configuration()
	c.Generation++
	if err := h.client.Update(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	h.reconcile()
	h.check("what was acknowledged is as it was", []string{own, view}, []string{"n1=" + view})
	h.start()
	h.reconcile()
	h.check("who starts then does not know that", []string{own, view}, nil)
}

// TestWhoIsBelieved changes nothing for who is no broker, and lists nothing that another grants.
func TestWhoIsBelieved(t *testing.T) {
	cases := map[string]struct {
		reason string
		broker bool
		slice  func(*api.ResourceSlice)
		others []client.Object
	}{
		"NoBroker": {reason: "People say who is one."},
		"Replicated": {
			reason: "What a consumer of this cluster has put here grants nothing.", broker: true,
			slice: func(s *api.ResourceSlice) {
				s.Labels = map[string]string{liqo.LabelReplicated: "true", liqo.LabelOrigin: "broker"}
				s.Spec.ConsumerClusterID, s.Spec.ProviderClusterID = s.Spec.ProviderClusterID, s.Spec.ConsumerClusterID
			},
		},
		"OfAnother": {
			reason: "Nor does what names another cluster.", broker: true,
			slice: func(s *api.ResourceSlice) { s.Spec.ProviderClusterID = s.Spec.ConsumerClusterID },
		},
		"Ended": {
			reason: "Nor does what is being deleted.", broker: true,
			slice: func(s *api.ResourceSlice) {
				s.DeletionTimestamp, s.Finalizers = &metav1.Time{Time: time.Unix(9000, 0)}, []string{"example.com/kept"}
			},
		},
		"Public": {
			reason: "A broker is not the Internet.", broker: true,
			slice: func(s *api.ResourceSlice) { s.Status.NodeLabels["view.brokering.liqo.io/n1"] = "8.8.0.0_16" },
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			h := newHome(t, tc.broker, tc.slice, tc.others...)
			h.decide(nil)
			h.reconcile()
			h.check(tc.reason, []string{own}, nil)
			if _, marked := h.configuration().Annotations["brokering.liqo.io/views"]; marked && !tc.broker {
				t.Error("the Configuration of another peer is written")
			}
		})
	}
}

// TestElsewhere believes nothing of a broker that another peer has written into its own namespace: what is told to the broker would be what
// is known there.
func TestElsewhere(t *testing.T) {
	forged := &api.Configuration{ObjectMeta: metav1.ObjectMeta{
		Namespace: "liqo-tenant-x", Name: "x", Labels: map[string]string{liqo.LabelRemoteClusterID: "broker"},
	}}
	forged.Spec.Remote.CIDR.Pod = []string{"10.210.0.0/16"}
	h := newHome(t, true, nil, forged)
	h.decide(nil)
	h.reconcile()
	h.decide(nil)
	h.reconcile()
	h.config = client.ObjectKeyFromObject(forged)
	h.reconcile()
	if got := fmt.Sprint(h.configuration().Spec.Remote.CIDR.Pod, h.configuration().Annotations, h.plan.Acknowledged); got !=
		"[10.210.0.0/16] map[] map[n1:"+view+"]" {
		t.Errorf("what another peer has written counts as of the broker: %s", got)
	}
}

// TestTaken acknowledges no view that is seen under what leads elsewhere.
func TestTaken(t *testing.T) {
	another := &api.Configuration{
		ObjectMeta: metav1.ObjectMeta{Namespace: "liqo-tenant-x", Name: "x", Labels: map[string]string{liqo.LabelRemoteClusterID: "x"}},
		Status:     api.ConfigurationStatus{Remote: &api.ClusterNetworks{CIDR: api.CIDRs{Pod: []string{"10.69.7.0/24"}}}},
	}
	pods := &api.Network{
		ObjectMeta: metav1.ObjectMeta{Namespace: "liqo", Name: "pod-cidr", Labels: map[string]string{api.LabelNetworkType: api.NetworkTypePods}},
		Status:     api.NetworkStatus{CIDR: "10.69.8.0/24"},
	}
	for name, of := range map[string]client.Object{"Peer": another, "Own": pods} {
		t.Run(name, func(t *testing.T) {
			h := newHome(t, true, nil, of)
			h.reconcile()
			h.decide(nil)
			h.reconcile()
			h.check("another has it", []string{own, view}, nil)
			if said := fmt.Sprint(h.plan.Refused); !strings.Contains(said, "which is taken") {
				t.Errorf("refused %s", said)
			}
		})
	}
}

// TestNodes lists no view that has the address of a node which Liqo does not know.
func TestNodes(t *testing.T) {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "kube-proxy"},
		Status:     corev1.PodStatus{HostIPs: []corev1.HostIP{{IP: "fd00::2"}, {IP: "10.69.3.2"}}},
	}
	reserved := &api.Network{
		ObjectMeta: metav1.ObjectMeta{Namespace: "liqo", Name: "nodes", Labels: map[string]string{api.LabelNetworkType: "reserved"}},
		Status:     api.NetworkStatus{CIDR: "10.69.3.0/24"},
	}
	for name, tc := range map[string]struct {
		reason string
		others []client.Object
		list   []string
	}{
		"Unknown":  {"What goes to the node would go to the broker.", []client.Object{pod}, []string{own}},
		"Reserved": {"Liqo shows it under another prefix.", []client.Object{pod, reserved}, []string{own, view}},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHome(t, true, nil, tc.others...)
			h.decide(nil)
			h.reconcile()
			h.check(tc.reason, tc.list, nil)
		})
	}
}

// TestConflict writes nothing over what somebody has written since.
func TestConflict(t *testing.T) {
	h := newHome(t, true, nil)
	h.decide(nil)
	stale := stale{h.client}
	h.agent.Client = stale
	_, err := h.agent.Reconcile(t.Context(), ctrl.Request{NamespacedName: h.config})
	if !apierrors.IsConflict(err) {
		t.Errorf("error = %v, want a conflict", err)
	}
	h.check("nothing is written", []string{own}, nil)
	if h.plan.Record.Views != nil {
		t.Error("a plan is told that is not written")
	}
}

// stale is a client whose cache is behind.
type stale struct{ client.Client }

func (s stale) Get(ctx context.Context, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
	err := s.Client.Get(ctx, key, o, opts...)
	o.SetResourceVersion("1")
	return err
}

// TestSetup has the controller look at the list of the broker when what says what becomes of views changes.
func TestSetup(t *testing.T) {
	h := newHome(t, true, nil)
	looked := make(chan client.ObjectKey, 10)
	h.get = func(key client.ObjectKey) { looked <- key }
	kinds := []client.Object{
		&api.Configuration{}, &api.ForeignCluster{}, &api.ResourceSlice{}, &api.VirtualNode{}, &api.Network{}, &corev1.Pod{},
	}
	told := watches.Start(t, h.client.Scheme(), func(mgr ctrl.Manager) error {
		return agent.Setup(mgr, agent.Config{Client: h.client, Own: "home", Clock: h.clock})
	}, kinds...)
	last := &api.Configuration{ObjectMeta: metav1.ObjectMeta{Name: "last"}}
	for _, is := range kinds[1:] {
		told.Happens(nil, is)
		told.Happens(nil, last) // It looks at one after the other.
		var got []client.ObjectKey
		for key := range looked {
			if key.Name == last.Name {
				break
			}
			got = append(got, key)
		}
		if !slices.Equal(got, []client.ObjectKey{h.config}) {
			t.Errorf("%T: it looks at %v, want %v", is, got, h.config)
		}
	}
}
