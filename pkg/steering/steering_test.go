// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package steering

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"testing"

	jsonpatch "github.com/evanphx/json-patch/v5"
	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/selection"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/capacitorset/liqo-broker/pkg/api/v1alpha1"
	"github.com/capacitorset/liqo-broker/pkg/cluster"
	"github.com/capacitorset/liqo-broker/pkg/liqo"
	"github.com/capacitorset/liqo-broker/pkg/liqo/liqotest"
	"github.com/capacitorset/liqo-broker/pkg/pool"
)

const namespace = "web-consumer"

func TestHandle(t *testing.T) {
	both, onlyB := []cluster.ID{"a", "b"}, []cluster.ID{"b"}
	free := liqo.ForgeOffloading(namespace, "DefaultName", both)
	steered := liqo.ForgeOffloading(namespace, "DefaultName", both)
	liqo.SetPlacing(steered, onlyB)
	shadow := liqotest.ShadowPod(namespace, "web-0", nil)
	seen, picky := liqotest.Pod(shadow, "", both...), liqotest.Pod(shadow, "")
	picky.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{
		RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{
			{MatchExpressions: []corev1.NodeSelectorRequirement{{Key: "disk", Operator: corev1.NodeSelectorOpExists}}},
			{MatchExpressions: []corev1.NodeSelectorRequirement{{Key: "arch", Operator: corev1.NodeSelectorOpExists}}},
		}},
	}}
	cases := map[string]struct {
		reason  string
		objects []client.Object
		pod     *corev1.Pod
		steered bool
		alone   bool
		kept    int // Requirements that the pod had and keeps.
	}{
		"Steered":     {reason: "A pod goes where new pods are placed.", objects: []client.Object{steered}, pod: liqotest.Pod(shadow, ""), steered: true},
		"AfterLiqo":   {reason: "What Liqo requires stays.", objects: []client.Object{steered}, pod: seen, steered: true, kept: 1},
		"OwnWishes":   {reason: "What the pod requires stays, in every alternative.", objects: []client.Object{steered}, pod: picky, steered: true, kept: 2},
		"Free":        {reason: "Without a choice the pod goes anywhere.", objects: []client.Object{free}, pod: liqotest.Pod(shadow, "")},
		"NoOffloaded": {reason: "In another namespace it is, too.", pod: liqotest.Pod(shadow, ""), alone: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c := fake.NewClientBuilder().WithScheme(liqotest.Scheme(t)).WithObjects(tc.objects...).Build()
			raw, err := json.Marshal(tc.pod)
			if err != nil {
				t.Fatalf("Marshal(): %v", err)
			}
			answer := New(c, pins(nil)).Handle(t.Context(), admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{
				Namespace: namespace, Object: runtime.RawExtension{Raw: raw},
			}})
			if !answer.Allowed {
				t.Fatalf("%s\nrefused: %v", tc.reason, answer.Result)
			}
			pod := apply(t, raw, answer)
			if got := liqo.Follows(tolerant(pod.DeepCopy()), onlyB); got != tc.steered {
				t.Errorf("%s\nsteered: %t\n%v", tc.reason, got, answer.Patches)
			}
			unheld := pod.DeepCopy()
			liqo.Hold(unheld)
			if held := len(pod.Spec.Tolerations) == len(unheld.Spec.Tolerations); held == tc.alone {
				t.Errorf("%s\nheld on lost nodes: %t", tc.reason, held)
			}
			if n := requirements(pod); tc.steered && n != tc.kept+max(1, terms(pod)) {
				t.Errorf("%s\n%d requirements, want the %d of before and one in each alternative", tc.reason, n, tc.kept)
			}
		})
	}
}

// pins are the providers by the names of their nodes; without any, nobody knows.
type pins map[string]*v1alpha1.Provider

func (p pins) Pinned(_ context.Context, _ cluster.ID, pod *corev1.Pod) (*v1alpha1.Provider, bool, error) {
	if p == nil {
		return nil, false, errors.New("nobody knows")
	}
	provider, pinned := p[liqo.OriginNode(pod)]
	return provider, pinned, nil
}

// TestPinned has pods on nodes of single providers.
func TestPinned(t *testing.T) {
	node, gone := pool.Name("id-broker", cluster.Identity{ID: "a"}), pool.Name("id-broker", cluster.Identity{ID: "gone"})
	known := pins{node: {ObjectMeta: metav1.ObjectMeta{Name: "a"}}, gone: nil}
	twin := liqotest.TwinNamespace(namespace, cluster.Identity{ID: "c", Name: "consumer"})
	unchosen := liqo.ForgeOffloading(namespace, "DefaultName", []cluster.ID{"a", "b"})
	liqo.SetPlacing(unchosen, []cluster.ID{"b"})
	cases := map[string]struct {
		reason  string
		pins    pins
		objects []client.Object
		node    string
		refused bool
		on      []cluster.ID // Where the pod can be.
	}{
		"OnProvider": {reason: "A pod goes to the provider of its node.", pins: known, objects: []client.Object{twin}, node: node, on: []cluster.ID{"a"}},
		"Unchosen":   {reason: "It goes nowhere else if that is not chosen.", pins: known, objects: []client.Object{twin, unchosen}, node: node},
		"Gone":       {reason: "Nor if that is gone.", pins: known, objects: []client.Object{twin}, node: gone},
		"OtherNode":  {reason: "A pod on the broker's node goes anywhere.", pins: known, objects: []client.Object{twin}, node: "liqo-broker", on: []cluster.ID{"a", "b", ""}},
		"Unknown":    {reason: "A pod of a node that nobody knows waits.", objects: []client.Object{twin}, node: node, refused: true},
		"NoTwin":     {reason: "So does one in a namespace that nobody knows.", pins: known, node: node, refused: true},
		"OtherPods":  {reason: "Nobody has to know about the others.", objects: []client.Object{twin}, node: "liqo-broker", on: []cluster.ID{"a", "b", ""}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c := fake.NewClientBuilder().WithScheme(liqotest.Scheme(t)).WithObjects(tc.objects...).Build()
			pod := liqotest.Pod(liqotest.ShadowPod(namespace, "web-0", map[string]string{"virtualkubelet.liqo.io/nodename": tc.node}), "")
			raw, err := json.Marshal(pod)
			if err != nil {
				t.Fatalf("Marshal(): %v", err)
			}
			answer := New(c, tc.pins).Handle(t.Context(), admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{
				Namespace: namespace, Object: runtime.RawExtension{Raw: raw},
			}})
			if answer.Allowed == tc.refused {
				t.Fatalf("%s\nallowed: %t, %v", tc.reason, answer.Allowed, answer.Result)
			}
			if tc.refused {
				return
			}
			var on []cluster.ID
			for _, id := range []cluster.ID{"a", "b", ""} {
				n := &corev1.Node{}
				if id != "" {
					n = liqotest.VirtualNode(cluster.Identity{ID: id}, true)
				}
				if fits(t, apply(t, raw, answer), n) {
					on = append(on, id)
				}
			}
			if !slices.Equal(on, tc.on) {
				t.Errorf("%s\nthe pod can be on %q, want %q", tc.reason, on, tc.on)
			}
		})
	}
}

// fits tells whether a node has what a pod requires.
func fits(t *testing.T, pod *corev1.Pod, node *corev1.Node) bool {
	t.Helper()
	operators := map[corev1.NodeSelectorOperator]selection.Operator{
		corev1.NodeSelectorOpIn: selection.In, corev1.NodeSelectorOpExists: selection.Exists, corev1.NodeSelectorOpDoesNotExist: selection.DoesNotExist,
	}
	if pod.Spec.Affinity == nil {
		return true
	}
	return slices.ContainsFunc(pod.Spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms, func(term corev1.NodeSelectorTerm) bool {
		for _, e := range term.MatchExpressions {
			r, err := labels.NewRequirement(e.Key, operators[e.Operator], e.Values)
			if err != nil {
				t.Fatal(err)
			}
			if !r.Matches(labels.Set(node.Labels)) {
				return false
			}
		}
		return true
	})
}

// apply returns the pod as the API server makes it.
func apply(t *testing.T, raw []byte, answer admission.Response) *corev1.Pod {
	t.Helper()
	if len(answer.Patches) > 0 {
		operations, err := json.Marshal(answer.Patches)
		if err != nil {
			t.Fatalf("Marshal(): %v", err)
		}
		patch, err := jsonpatch.DecodePatch(operations)
		if err != nil {
			t.Fatalf("DecodePatch(): %v", err)
		}
		if raw, err = patch.Apply(raw); err != nil {
			t.Fatalf("Apply(): %v", err)
		}
	}
	pod := &corev1.Pod{}
	if err := json.Unmarshal(raw, pod); err != nil {
		t.Fatalf("Unmarshal(): %v", err)
	}
	return pod
}

// tolerant returns the pod as Liqo's webhook leaves it.
func tolerant(pod *corev1.Pod) *corev1.Pod {
	other := liqotest.Pod(liqotest.ShadowPod(namespace, "any", nil), "", "any")
	pod.Spec.Tolerations = other.Spec.Tolerations
	return pod
}

func terms(pod *corev1.Pod) int {
	return len(pod.Spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms)
}

func requirements(pod *corev1.Pod) int {
	n := 0
	if pod.Spec.Affinity != nil {
		for _, term := range pod.Spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms {
			n += len(term.MatchExpressions)
		}
	}
	return n
}
