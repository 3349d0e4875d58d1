// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	discoveryv1alpha1 "github.com/liqotech/liqo/apis/discovery/v1alpha1"
	offloadingv1alpha1 "github.com/liqotech/liqo/apis/offloading/v1alpha1"
	vkv1alpha1 "github.com/liqotech/liqo/apis/virtualkubelet/v1alpha1"
	liqofake "github.com/liqotech/liqo/pkg/client/clientset/versioned/fake"
	"github.com/liqotech/liqo/pkg/virtualKubelet/reflection/manager"
	"github.com/liqotech/liqo/pkg/virtualKubelet/reflection/namespacemap"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	"k8s.io/client-go/kubernetes/fake"
	k8stesting "k8s.io/client-go/testing"

	"github.com/capacitorset/liqo-broker/cmd/virtual-kubelet/internal/reflectiontest"
	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
	"github.com/capacitorset/liqo-broker/pkg/liqo"
	v09 "github.com/capacitorset/liqo-broker/pkg/liqo/v09"
	"github.com/capacitorset/liqo-broker/pkg/liqo/v09/liqotest"
)

const (
	testTenant  = "liqo-tenant-provider"
	testForeign = "provider"
	testVirtual = "liqo-provider"
)

var testHome = cluster.Identity{ID: "broker", Name: "broker"}

// reflecting is the namespaces whose reflection is started, by their local names.
type reflecting struct {
	mu    sync.Mutex
	names map[string]string
}

func (r *reflecting) StartNamespace(local, remote string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.names[local] = remote
}

func (r *reflecting) StopNamespace(local, _ string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.names, local)
}

func (r *reflecting) all() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Sorted(maps.Keys(r.names))
}

// offloading returns the NamespaceOffloading of a namespace that selects clusters; those
// of all regions if there is none.
func offloading(namespace string, selected ...cluster.ID) *v09.NamespaceOffloading {
	o := liqotest.Offloading(namespace, selected...)
	if len(selected) == 0 {
		o.Spec.ClusterSelector = corev1.NodeSelector{}
	}
	return o
}

// remoteName is how the foreign cluster calls a namespace of this one.
func remoteName(namespace string) string { return v09.RemoteName(offloading(namespace), testHome) }

func unstructuredOf(t *testing.T, o *v09.NamespaceOffloading) *unstructured.Unstructured {
	t.Helper()
	raw, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o)
	if err != nil {
		t.Fatal(err)
	}
	object := &unstructured.Unstructured{Object: raw}
	object.SetAPIVersion(offloadingv1alpha1.GroupVersion.String())
	object.SetKind("NamespaceOffloading")
	return object
}

// offloadingCluster is a cluster with a peering, in fakes.
type offloadingCluster struct {
	t       *testing.T
	client  *fake.Clientset
	liqo    *liqofake.Clientset
	dynamic *dynamicfake.FakeDynamicClient
	started *reflecting
	rule    *ownOffloadings
	// mayRead is whether NamespaceOffloadings may be read.
	mayRead bool
	mu      sync.Mutex
}

// newOffloadingCluster returns a cluster whose peer says that it has namespaces, by
// their local names.
func newOffloadingCluster(
	t *testing.T, current, desired map[string]string, offloadings []*v09.NamespaceOffloading, objects ...runtime.Object,
) *offloadingCluster {
	t.Helper()
	reflectiontest.BeBroker()
	namespaceMap := &vkv1alpha1.NamespaceMap{ObjectMeta: metav1.ObjectMeta{
		Namespace: testTenant, Name: testForeign, Labels: map[string]string{liqo.LabelRemoteClusterID: testForeign},
	}}
	namespaceMap.Spec.DesiredMapping = desired
	namespaceMap.Status.CurrentMapping = map[string]vkv1alpha1.RemoteNamespaceStatus{}
	for local, remote := range current {
		namespaceMap.Status.CurrentMapping[local] = vkv1alpha1.RemoteNamespaceStatus{RemoteNamespace: remote, Phase: vkv1alpha1.MappingAccepted}
	}
	virtual := &vkv1alpha1.VirtualNode{
		ObjectMeta: metav1.ObjectMeta{Namespace: testTenant, Name: testVirtual},
		Spec: vkv1alpha1.VirtualNodeSpec{
			ClusterIdentity: &discoveryv1alpha1.ClusterIdentity{ClusterID: testForeign, ClusterName: testForeign},
			Labels:          map[string]string{"region": "eu"},
		},
	}
	scheme := runtime.NewScheme()
	c := &offloadingCluster{
		t: t, client: fake.NewSimpleClientset(objects...), liqo: reflectiontest.NewLiqo(namespaceMap, virtual), mayRead: true,
		dynamic: dynamicfake.NewSimpleDynamicClientWithCustomListKinds(scheme,
			map[schema.GroupVersionResource]string{offloadingsResource: "NamespaceOffloadingList"}),
		started: &reflecting{names: map[string]string{}},
	}
	for _, o := range offloadings {
		c.create(o)
	}
	c.dynamic.PrependReactor("list", "namespaceoffloadings", func(k8stesting.Action) (bool, runtime.Object, error) {
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.mayRead {
			return false, nil, nil
		}
		return true, nil, apierrors.NewForbidden(offloadingsResource.GroupResource(), "", nil)
	})
	c.rule = &ownOffloadings{
		peering: Peering{Own: testHome, Foreign: testForeign, TenantNamespace: testTenant, LiqoNamespace: "liqo"},
		client:  c.client, liqo: c.liqo, dynamic: c.dynamic, log: logr.Discard(), every: 100 * time.Millisecond,
	}
	return c
}

// start starts the reflection of namespaces until the test ends.
func (c *offloadingCluster) start() {
	c.t.Helper()
	ctx, cancel := context.WithCancel(c.t.Context())
	handler := newOffloadedOnly(&knownNamespaces{
		NamespaceHandler: namespacemap.NewHandler(c.liqo, testTenant, 0),
		offloaded:        listOffloaded(c.liqo, testTenant, testForeign),
		failed:           func(err error) { c.t.Error(err) },
	}, c.rule, logr.Discard())
	c.t.Cleanup(func() {
		cancel()
		c.rule.join()
	})
	handler.Start(ctx, c.started)
}

func (c *offloadingCluster) create(o *v09.NamespaceOffloading) {
	c.t.Helper()
	_, err := c.dynamic.Resource(offloadingsResource).Namespace(o.Namespace).Create(c.t.Context(), unstructuredOf(c.t, o),
		metav1.CreateOptions{})
	if err != nil {
		c.t.Fatal(err)
	}
}

func (c *offloadingCluster) update(o *v09.NamespaceOffloading) {
	c.t.Helper()
	_, err := c.dynamic.Resource(offloadingsResource).Namespace(o.Namespace).Update(c.t.Context(), unstructuredOf(c.t, o),
		metav1.UpdateOptions{})
	if err != nil {
		c.t.Fatal(err)
	}
}

// become waits until just those namespaces are reflected.
func (c *offloadingCluster) become(reason string, want ...string) {
	c.t.Helper()
	begin := time.Now()
	for !slices.Equal(c.started.all(), want) {
		if time.Since(begin) > 10*time.Second {
			c.t.Fatalf("%s: the reflection of %v is started, want %v", reason, c.started.all(), want)
		}
		time.Sleep(time.Millisecond)
	}
	c.t.Logf("%s: it took %s", reason, time.Since(begin).Round(time.Millisecond))
}

// stays fails if other namespaces are reflected some time later.
func (c *offloadingCluster) stays(reason string, want ...string) {
	c.t.Helper()
	time.Sleep(50 * time.Millisecond)
	if got := c.started.all(); !slices.Equal(got, want) {
		c.t.Errorf("%s: the reflection of %v is started, want %v", reason, got, want)
	}
}

func nodeWith(name string, labels map[string]string) *corev1.Node {
	return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}}
}

func TestOnlyOffloadedNamespaces(t *testing.T) {
	region := func(namespace, value string) *v09.NamespaceOffloading {
		o := offloading(namespace)
		o.Spec.ClusterSelector.NodeSelectorTerms = []corev1.NodeSelectorTerm{{MatchExpressions: []corev1.NodeSelectorRequirement{
			{Key: "region", Operator: corev1.NodeSelectorOpIn, Values: []string{value}},
		}}}
		return o
	}
	deleted := offloading("deleted")
	deleted.DeletionTimestamp, deleted.Finalizers = &metav1.Time{Time: time.Now()}, []string{"x"}
	sameName := offloading("same")
	sameName.Spec.NamespaceMappingStrategy = offloadingv1alpha1.EnforceSameNameMappingStrategyType
	otherName := offloading("named")
	otherName.Name = "another"
	invalid := region("invalid", "eu")
	invalid.Spec.ClusterSelector.NodeSelectorTerms[0].MatchExpressions[0].Operator = "Near"

	cases := map[string]struct {
		reason      string
		current     map[string]string
		offloadings []*v09.NamespaceOffloading
		nodes       []runtime.Object
		want        []string
	}{
		"Peer'sWish": {
			reason: "the status of the map is the peer's; it must not name what this cluster does not offload",
			current: map[string]string{
				"liqo": remoteName("liqo"), "kube-system": "loot", "liqo-tenant-victim": "loot", "shop-of-another-consumer": "loot",
			},
			offloadings: []*v09.NamespaceOffloading{offloading("liqo")},
			want:        []string{"liqo"},
		},
		"ToAnother": {
			reason: "a twin that goes to another provider", current: map[string]string{"shop": remoteName("shop"), "mine": remoteName("mine")},
			offloadings: []*v09.NamespaceOffloading{offloading("shop", "other"), offloading("mine", "other", testForeign)}, want: []string{"mine"},
		},
		"AnotherName": {
			reason: "objects would go where nobody expects them", current: map[string]string{"shop": "loot"},
			offloadings: []*v09.NamespaceOffloading{offloading("shop")},
		},
		"SameName": {
			reason: "the strategy says the name", current: map[string]string{"same": "same"}, offloadings: []*v09.NamespaceOffloading{sameName},
			want: []string{"same"},
		},
		"BeingDeleted": {
			reason:  "the peer decides when it is gone, and not what it gets until then",
			current: map[string]string{"deleted": remoteName("deleted")}, offloadings: []*v09.NamespaceOffloading{deleted},
		},
		"NotLiqosName": {
			reason: "Liqo goes by those of one name", current: map[string]string{"named": remoteName("named")},
			offloadings: []*v09.NamespaceOffloading{otherName},
		},
		"Invalid": {
			reason: "a selector that nobody understands selects nothing", current: map[string]string{"invalid": remoteName("invalid")},
			offloadings: []*v09.NamespaceOffloading{invalid},
		},
		"NoNode": {
			reason: "without a node Liqo goes by the VirtualNode", current: map[string]string{"shop": remoteName("shop")},
			offloadings: []*v09.NamespaceOffloading{region("shop", "eu")}, want: []string{"shop"},
		},
		"LabelsOfNode": {
			reason: "with one, by its labels", current: map[string]string{"shop": remoteName("shop")},
			offloadings: []*v09.NamespaceOffloading{region("shop", "us")},
			nodes:       []runtime.Object{nodeWith(testVirtual, map[string]string{liqo.LabelRemoteClusterID: testForeign, "region": "us"})},
			want:        []string{"shop"},
		},
		"OtherLabels": {
			reason: "what the node does not have", current: map[string]string{"shop": remoteName("shop")},
			offloadings: []*v09.NamespaceOffloading{region("shop", "us")},
		},
		"FalseIdentity": {
			reason: "a peer may label its node with the ID of another", current: map[string]string{"shop": remoteName("shop")},
			offloadings: []*v09.NamespaceOffloading{offloading("shop", "victim")},
			nodes:       []runtime.Object{nodeWith(testVirtual, map[string]string{liqo.LabelRemoteClusterID: "victim"})},
		},
		"Reserved": {
			reason: "whoever writes NamespaceOffloadings is not to give away these",
			current: map[string]string{
				"kube-system": remoteName("kube-system"), "liqo-tenant-x": remoteName("liqo-tenant-x"), "liqo-broker": remoteName("liqo-broker"),
			},
			offloadings: []*v09.NamespaceOffloading{offloading("kube-system"), offloading("liqo-tenant-x"), offloading("liqo-broker")},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c := newOffloadingCluster(t, tc.current, nil, tc.offloadings, tc.nodes...)
			c.start()
			got := c.started.all()
			if diff := cmp.Diff(tc.want, got, cmp.Transformer("set", func(names []string) map[string]bool {
				set := map[string]bool{}
				for _, name := range names {
					set[name] = true
				}
				return set
			})); diff != "" {
				t.Errorf("%s: when all has started (-want +got):\n%s", tc.reason, diff)
			}
			c.stays(tc.reason, got...)
		})
	}
}

func TestReflectionFollowsTheOffloading(t *testing.T) {
	c := newOffloadingCluster(t, map[string]string{"shop": remoteName("shop")}, nil, nil)
	c.start()
	c.stays("nothing is offloaded yet")
	c.create(offloading("shop", testForeign))
	c.become("an offloading that comes after the map is not waited for noticeably", "shop")
	c.update(offloading("shop", "other"))
	c.become("it is offloaded elsewhere")
	c.update(offloading("shop", "other", testForeign))
	c.become("it is offloaded here as well", "shop")

	o := offloading("shop")
	o.Spec.ClusterSelector.NodeSelectorTerms = []corev1.NodeSelectorTerm{{MatchExpressions: []corev1.NodeSelectorRequirement{
		{Key: "region", Operator: corev1.NodeSelectorOpIn, Values: []string{"us"}},
	}}}
	c.update(o)
	c.become("the foreign cluster is in another region")
	us := nodeWith(testVirtual, map[string]string{liqo.LabelRemoteClusterID: testForeign, "region": "us"})
	if _, err := c.client.CoreV1().Nodes().Create(t.Context(), us, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	c.become("its node says so now", "shop")

	invalid := o.DeepCopy()
	invalid.Spec.ClusterSelector.NodeSelectorTerms[0].MatchExpressions[0].Operator = "Near"
	c.update(invalid)
	c.stays("who stops a reflection ends the pods; Liqo leaves the mapping too", "shop")

	if err := c.dynamic.Resource(offloadingsResource).Namespace("shop").Delete(t.Context(), liqo.OffloadingName,
		metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	c.become("it is not offloaded any more")
}

func TestWithoutTheRightToReadOffloadings(t *testing.T) {
	open := func(name string) runtime.Object {
		return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"liqo.io/scheduling-enabled": "true"}}}
	}
	closed := func(name string) runtime.Object {
		return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
	}
	current := map[string]string{
		"shop": remoteName("shop"), "secret": "loot", "liqo": remoteName("liqo"), "other": "loot", "kube-system": "loot",
		"elsewhere": remoteName("elsewhere"),
	}
	// A foreign cluster that consumes from this one may write the spec as well.
	desired := map[string]string{
		"shop": remoteName("shop"), "secret": "loot", "liqo": remoteName("liqo"), "kube-system": "loot", "elsewhere": remoteName("elsewhere"),
	}
	c := newOffloadingCluster(t, current, desired,
		[]*v09.NamespaceOffloading{offloading("shop"), offloading("liqo"), offloading("elsewhere", "another")},
		open("shop"), closed("secret"), closed("liqo"), open("other"), closed("kube-system"), open("elsewhere"))
	c.mayRead = false
	c.start()
	if got, want := c.started.all(), []string{"elsewhere", "liqo", "shop"}; !slices.Equal(got, want) {
		t.Errorf("without the right, the reflection of %v is started, want what is offloaded with its pods and the guarded namespace: %v", got,
			want)
	}

	c.mu.Lock()
	c.mayRead = true
	c.mu.Unlock()
	c.become("with the right, what is offloaded to another cluster is stopped", "liqo", "shop")
}

// lateRule knows after some time.
type lateRule struct{ known bool }

func (r *lateRule) start(context.Context, func(string)) {
	time.Sleep(time.Second)
	r.known = true
}

func (r *lateRule) offloads(local, _ string) (bool, error) {
	if !r.known {
		return false, errors.New("not known")
	}
	return local != "refused", nil
}

func TestOffloadedNamespacesAreStartedFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		names := []string{"a", "refused", "b"}
		late, got := &lateHandler{namespaces: names}, &started{}
		handler := newOffloadedOnly(&knownNamespaces{
			NamespaceHandler: late,
			offloaded:        func(context.Context) ([]string, error) { return names, nil },
			failed:           func(err error) { t.Error(err) },
		}, &lateRule{}, logr.Discard())
		begin := time.Now()
		handler.Start(t.Context(), got)
		if want := []string{"a", "b"}; !slices.Equal(got.all(), want) {
			t.Errorf("%v are started when Start returns, want %v: pods of the others would be ended", got.all(), want)
		}
		if took := time.Since(begin); took >= startPatience {
			t.Errorf("a namespace that is refused is waited for: %s", took)
		}
		late.group.Wait()
	})
}

var _ manager.NamespaceStartStopper = (*reflecting)(nil)
