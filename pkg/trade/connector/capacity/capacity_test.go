// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package capacity_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/capacitorset/liqo-broker/pkg/api/connectorv1alpha1"
	"github.com/capacitorset/liqo-broker/pkg/api/v1alpha1"
	"github.com/capacitorset/liqo-broker/pkg/core/resources"
	"github.com/capacitorset/liqo-broker/pkg/liqo"
	"github.com/capacitorset/liqo-broker/pkg/trade/connector/capacity"
)

func list(cpu, memory, pods string) corev1.ResourceList {
	return corev1.ResourceList{
		corev1.ResourceCPU: resource.MustParse(cpu), corev1.ResourceMemory: resource.MustParse(memory),
		corev1.ResourcePods: resource.MustParse(pods),
	}
}

func node(name string, change func(*corev1.Node)) corev1.Node {
	n := corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}, Status: corev1.NodeStatus{
		Allocatable: list("4", "8Gi", "110"), Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}},
	}}
	if change != nil {
		change(&n)
	}
	return n
}

func pod(on string, change func(*corev1.Pod)) corev1.Pod {
	p := corev1.Pod{Spec: corev1.PodSpec{NodeName: on, Containers: []corev1.Container{{
		Resources: corev1.ResourceRequirements{
			Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1"), corev1.ResourceMemory: resource.MustParse("1Gi")},
		},
	}}}}
	if change != nil {
		change(&p)
	}
	return p
}

func TestLeft(t *testing.T) {
	cases := map[string]struct {
		nodes   []corev1.Node
		pods    []corev1.Pod
		percent int32
		want    corev1.ResourceList
	}{
		"Nothing": {percent: 100, want: list("0", "0", "0")},
		"All":     {nodes: []corev1.Node{node("a", nil), node("b", nil)}, percent: 100, want: list("8", "16Gi", "220")},
		"Half":    {nodes: []corev1.Node{node("a", nil)}, percent: 50, want: list("2", "4Gi", "55")},
		"OwnPods": {
			nodes: []corev1.Node{node("a", nil)}, pods: []corev1.Pod{pod("a", nil), pod("a", nil)}, percent: 100, want: list("2", "6Gi", "108"),
		},
		"SoldPods": {
			nodes: []corev1.Node{node("a", nil)}, pods: []corev1.Pod{
				pod("a", func(p *corev1.Pod) { p.Labels = map[string]string{liqo.LabelManagedBy: liqo.ManagedByShadowPod} }),
			}, percent: 100, want: list("4", "8Gi", "110"),
		},
		"OverPods": {
			nodes: []corev1.Node{node("a", nil)}, pods: []corev1.Pod{pod("a", func(p *corev1.Pod) { p.Status.Phase = corev1.PodSucceeded })},
			percent: 100, want: list("4", "8Gi", "110"),
		},
		"Unbound": {nodes: []corev1.Node{node("a", nil)}, pods: []corev1.Pod{pod("", nil)}, percent: 100, want: list("4", "8Gi", "110")},
		"Full": {
			nodes: []corev1.Node{node("a", nil)}, pods: []corev1.Pod{pod("a", nil), pod("a", nil), pod("a", nil), pod("a", nil), pod("a", nil)},
			percent: 100, want: list("0", "3Gi", "105"),
		},
		"Virtual": {
			nodes: []corev1.Node{
				node("a", nil), node("v", func(n *corev1.Node) { n.Labels = map[string]string{liqo.LabelNodeType: liqo.NodeTypeVirtual} }),
			}, pods: []corev1.Pod{pod("v", nil)}, percent: 100, want: list("4", "8Gi", "110"),
		},
		"NotReady": {
			nodes: []corev1.Node{node("a", func(n *corev1.Node) { n.Status.Conditions[0].Status = corev1.ConditionUnknown })}, percent: 100,
			want: list("0", "0", "0"),
		},
		"Cordoned": {
			nodes: []corev1.Node{node("a", func(n *corev1.Node) { n.Spec.Unschedulable = true })}, percent: 100, want: list("0", "0", "0"),
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := capacity.Left(tc.nodes, tc.pods, capacity.Share{Rest: tc.percent, Devices: 100}); !resources.Equal(got, tc.want) {
				t.Errorf("left %v, want %v", got, tc.want)
			}
		})
	}
}

// TestSources reads both capacities of one cluster.
func TestSources(t *testing.T) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, v1alpha1.AddToScheme, connectorv1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	own := node("a", nil)
	busy := pod("a", func(p *corev1.Pod) { p.Name, p.Namespace = "p", "n" })
	c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(&own, &busy,
		&v1alpha1.Provider{ObjectMeta: metav1.ObjectMeta{Name: "x"}, Status: v1alpha1.ProviderStatus{Offered: list("10", "10Gi", "10")}},
		&v1alpha1.Provider{ObjectMeta: metav1.ObjectMeta{Name: "y"}, Status: v1alpha1.ProviderStatus{Offered: list("2", "2Gi", "2")}},
		&v1alpha1.Provider{ObjectMeta: metav1.ObjectMeta{Name: "gone"}},
	).Build()
	for name, tc := range map[string]struct {
		source capacity.Source
		want   corev1.ResourceList
	}{
		"cluster": {capacity.OfCluster(c, capacity.Share{Rest: 100, Devices: 100}), list("3", "7Gi", "109")},
		"broker":  {capacity.OfBroker(c, capacity.Share{Rest: 50, Devices: 100}), list("6", "6Gi", "6")},
	} {
		got, err := tc.source(t.Context())
		if err != nil || !resources.Equal(got, tc.want) {
			t.Errorf("a %s can sell %v, error %v; want %v", name, got, err, tc.want)
		}
	}
}

// TestReserved holds that a broker does not sell what is kept for those who have bought nothing, nor what they use beside that.
func TestReserved(t *testing.T) {
	consumer := func(id string, reserved, used corev1.ResourceList) *v1alpha1.Consumer {
		c := &v1alpha1.Consumer{ObjectMeta: metav1.ObjectMeta{Name: id}, Status: v1alpha1.ConsumerStatus{Used: used}}
		c.Spec.Capacity.Reserved = v1alpha1.Quantities(reserved)
		return c
	}
	sale := func(name, of, state string) *connectorv1alpha1.Sale {
		s := &connectorv1alpha1.Sale{ObjectMeta: metav1.ObjectMeta{Name: name}}
		s.Status.State, s.Status.Cluster.ID = state, of
		return s
	}
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{v1alpha1.AddToScheme, connectorv1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(
		&v1alpha1.Provider{ObjectMeta: metav1.ObjectMeta{Name: "x"}, Status: v1alpha1.ProviderStatus{Offered: list("20", "20Gi", "20")}},
		consumer("by-hand", list("8", "8Gi", "8"), list("1", "9Gi", "1")),           // It keeps 8 cores, and 9 GiB.
		consumer("asks", list("2", "1Gi", "1"), nil), sale("a", "asks", "Reserved"), // A reservation of a stranger takes nothing from it.
		consumer("buyer", list("4", "4Gi", "4"), list("4", "4Gi", "4")), sale("b", "buyer", "Active"), // That was sold.
	).Build()
	got, err := capacity.OfBroker(c, capacity.Share{Rest: 50, Devices: 100})(t.Context())
	if want := list("5", "5Gi", "5"); err != nil || got.Cpu().Cmp(want[corev1.ResourceCPU]) != 0 ||
		got.Memory().Cmp(want[corev1.ResourceMemory]) != 0 {
		t.Errorf("for sale are %v, %v: want %v", got, err, want)
	}
}

// TestDevices holds that of one device, or of few, as many are for sale as was said, and never a part of one.
func TestDevices(t *testing.T) {
	const gpu = "nvidia.com/gpu"
	for name, tc := range map[string]struct {
		reason     string
		has, taken string
		share      capacity.Share
		want       string
	}{
		"One":    {"one of one is not 30 % of it", "1", "0", capacity.Share{Rest: 30, Devices: 100}, "1"},
		"Three":  {"nor are three", "3", "0", capacity.Share{Rest: 30, Devices: 100}, "3"},
		"Taken":  {"what own pods have is not for sale", "3", "2", capacity.Share{Rest: 30, Devices: 100}, "1"},
		"None":   {"nobody need sell them", "3", "0", capacity.Share{Rest: 30}, "0"},
		"Part":   {"a part is rounded down", "3", "0", capacity.Share{Rest: 30, Devices: 50}, "1"},
		"OfSome": {"a part of two", "2", "0", capacity.Share{Rest: 100, Devices: 99}, "1"},
	} {
		t.Run(name, func(t *testing.T) {
			with := node("a", func(n *corev1.Node) { n.Status.Allocatable[gpu] = resource.MustParse(tc.has) })
			uses := pod("a", func(p *corev1.Pod) {
				p.Spec.Containers[0].Resources.Requests = corev1.ResourceList{gpu: resource.MustParse(tc.taken)}
			})
			left := capacity.Left([]corev1.Node{with}, []corev1.Pod{uses}, tc.share)
			if got := left[gpu]; got.Cmp(resource.MustParse(tc.want)) != 0 {
				t.Errorf("%s: %s are for sale, want %s", tc.reason, got.String(), tc.want)
			}
			if cpu, want := left[corev1.ResourceCPU], resources.Scale(list("4", "0", "0"), tc.share.Rest)[corev1.ResourceCPU]; cpu.Cmp(want) != 0 {
				t.Errorf("%s: %s cores are for sale, want %s", tc.reason, cpu.String(), want.String())
			}
		})
	}
}
