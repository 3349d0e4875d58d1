// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package pods

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
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
	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
	"github.com/capacitorset/liqo-broker/pkg/core/nodename"
	"github.com/capacitorset/liqo-broker/pkg/liqo"
	"github.com/capacitorset/liqo-broker/pkg/liqo/line"
	v09 "github.com/capacitorset/liqo-broker/pkg/liqo/v09"
	"github.com/capacitorset/liqo-broker/pkg/liqo/v09/liqotest"
)

const namespace = "web-consumer"

func TestHandle(t *testing.T) {
	both, onlyB, broker := []cluster.ID{"a", "b"}, []cluster.ID{"b"}, cluster.Identity{ID: "c", Name: "consumer"}
	offloading := func(change func(*v09.NamespaceOffloading)) *v09.NamespaceOffloading {
		o := liqotest.Offloading(namespace, both...)
		change(o)
		return o
	}
	place := func(on ...cluster.ID) func(*v09.NamespaceOffloading) {
		return func(o *v09.NamespaceOffloading) { liqo.NotePlacing(o, both, on) }
	}
	foreign := func(o *v09.NamespaceOffloading) { o.Labels = nil }
	namespaced := func(inForce bool, o *v09.NamespaceOffloading) []client.Object {
		ns := liqotest.TwinNamespace(namespace, broker)
		if inForce {
			liqotest.PutInForce(ns, o)
		} else {
			o.Generation = 1
		}
		return []client.Object{ns, o}
	}
	shadow := liqotest.ShadowPod(namespace, "web-0", nil)
	plain, picky, empty := liqotest.Pod(shadow, ""), liqotest.Pod(shadow, ""), liqotest.Pod(shadow, "")
	requiring := func(terms ...corev1.NodeSelectorTerm) *corev1.Affinity {
		return &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{
			RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{NodeSelectorTerms: terms},
		}}
	}
	exists := func(key string) corev1.NodeSelectorTerm {
		return corev1.NodeSelectorTerm{MatchExpressions: []corev1.NodeSelectorRequirement{{Key: key, Operator: corev1.NodeSelectorOpExists}}}
	}
	empty.Labels["liqo.io/shadowPod"] = "other" // Whatever the consumer writes.
	picky.Spec.Affinity = requiring(exists("disk"), exists("arch"))
	empty.Spec.Affinity = requiring()
	cases := map[string]struct {
		reason  string
		objects []client.Object
		pod     *corev1.Pod
		// on are the nodes on which the pod can be, of a, b and the broker's own.
		on       []cluster.ID
		admitted bool // It tolerates virtual nodes without Liqo's webhook.
		unheld   bool // It does not tolerate nodes that are lost.
		refused  bool
	}{
		"Free": {
			reason: "A pod goes to any provider that is selected.", objects: namespaced(true, offloading(place(both...))), pod: plain, on: both,
		},
		"Steered": {reason: "It goes where new pods are placed.", objects: namespaced(true, offloading(place(onlyB...))), pod: plain, on: onlyB},
		"Closed":  {reason: "It waits if no provider takes new pods.", objects: namespaced(true, offloading(place())), pod: plain},
		"AfterLiqo": {
			reason: "What Liqo requires stays.", objects: namespaced(true, offloading(place(onlyB...))), pod: liqotest.Pod(shadow, "", "a"),
			admitted: true,
		},
		"OwnWishes": {
			reason: "What the pod requires stays, in every alternative.", objects: namespaced(true, offloading(place(both...))), pod: picky,
		},
		"NoTerms": {
			reason: "A pod with a list of no alternatives requires no less.", objects: namespaced(true, offloading(place(onlyB...))),
			pod: empty, on: onlyB,
		},
		"Early": {
			reason: "The selection holds before Liqo's webhook applies it.", objects: namespaced(false, offloading(place(both...))), pod: plain,
			on: both, admitted: true,
		},
		"EarlySteered": {
			reason: "So does where new pods are placed.", objects: namespaced(false, offloading(place(onlyB...))), pod: plain, on: onlyB,
			admitted: true,
		},
		"Foreign": {
			reason: "Another's offloading is Liqo's to apply.", objects: namespaced(true, offloading(foreign)), pod: plain, on: both,
		},
		"ForeignEarly": {
			reason: "A pod is refused until Liqo applies it.", objects: namespaced(false, offloading(foreign)), pod: plain, refused: true,
		},
		"NoOffloading": {
			reason: "A pod of a namespace that is not offloaded waits.", objects: []client.Object{liqotest.TwinNamespace(namespace, broker)},
			pod: plain, unheld: true,
		},
		"NewNamespace": {reason: "So does one of a namespace that the broker has not heard of.", pod: plain, unheld: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			pod, refused := handle(t, newHandler(t, nil, tc.objects...), tc.pod)
			if refused != tc.refused {
				t.Fatalf("%s\nrefused: %t", tc.reason, refused)
			}
			if refused {
				return
			}
			if got := reachable(t, pod); !slices.Equal(got, tc.on) {
				t.Errorf("%s\nthe pod can be on %q, want %q", tc.reason, got, tc.on)
			}
			if !liqo.Confined(pod) {
				t.Errorf("%s\nthe pod may run on the broker's own nodes: %v", tc.reason, pod.Spec.Affinity)
			}
			offloaded := tc.pod.DeepCopy()
			liqo.MarkOffloaded(offloaded)
			if !maps.Equal(pod.Labels, offloaded.Labels) {
				t.Errorf("%s\nthe labels are %v, want %v", tc.reason, pod.Labels, offloaded.Labels)
			}
			tolerant := pod.DeepCopy()
			liqo.Admit(tolerant)
			if got := len(tolerant.Spec.Tolerations) == len(pod.Spec.Tolerations); got != tc.admitted {
				t.Errorf("%s\ntolerates virtual nodes: %t", tc.reason, got)
			}
			held := pod.DeepCopy()
			liqo.Hold(held)
			if got := len(held.Spec.Tolerations) > len(pod.Spec.Tolerations); got != tc.unheld {
				t.Errorf("%s\nleaves lost nodes: %t", tc.reason, got)
			}
			if terms(tc.pod) > 1 && terms(pod) != terms(tc.pod) {
				t.Errorf("%s\n%d alternatives, want %d", tc.reason, terms(pod), terms(tc.pod))
			}
		})
	}
}

// handle returns the pod as the webhook leaves it, or that it is refused.
func handle(t *testing.T, h *Handler, pod *corev1.Pod) (steered *corev1.Pod, refused bool) {
	t.Helper()
	raw, err := json.Marshal(pod)
	if err != nil {
		t.Fatalf("Marshal(): %v", err)
	}
	answer := h.Handle(t.Context(), admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{
		Namespace: namespace, Object: runtime.RawExtension{Raw: raw},
	}})
	if !answer.Allowed {
		return nil, true
	}
	return apply(t, raw, answer), false
}

// reachable returns which of the nodes a, b and the broker's own has what a pod requires.
func reachable(t *testing.T, pod *corev1.Pod) (on []cluster.ID) {
	t.Helper()
	for _, id := range []cluster.ID{"a", "b", ""} {
		n := &corev1.Node{}
		if id != "" {
			n = liqotest.VirtualNode(cluster.Identity{ID: id}, true)
		}
		if fits(t, pod, n) {
			on = append(on, id)
		}
	}
	return on
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

// known is what is read of a cluster with Liqo 0.9, with who is pinned.
type known struct {
	pins
	objects client.Reader
}

func (known) Line() line.Line { return v09.Line{} }

func (k known) Offloading(ctx context.Context, namespace string) (*liqo.Offloading, error) {
	return line.ReadOffloading(ctx, k.objects, k.Line(), k.Line().Kinds().Offloading, namespace)
}

// newHandler returns a Handler on a cluster with objects.
func newHandler(t *testing.T, p pins, objects ...client.Object) *Handler {
	t.Helper()
	c := fake.NewClientBuilder().WithScheme(liqotest.Scheme(t)).WithObjects(objects...).Build()
	return New(c, known{p, c})
}

// TestPinned has pods on nodes of single providers.
func TestPinned(t *testing.T) {
	node, gone := nodename.Name("id-broker", cluster.Identity{ID: "a"}), nodename.Name("id-broker", cluster.Identity{ID: "gone"})
	known := pins{node: {ObjectMeta: metav1.ObjectMeta{Name: "a"}}, gone: nil}
	both := []cluster.ID{"a", "b"}
	objects := func(placing ...cluster.ID) []client.Object {
		ns, o := liqotest.TwinNamespace(namespace, cluster.Identity{ID: "c", Name: "consumer"}),
			liqotest.Offloading(namespace, both...)
		v09.Select(o, both, placing)
		liqotest.PutInForce(ns, o)
		return []client.Object{ns, o}
	}
	cases := map[string]struct {
		reason  string
		pins    pins
		objects []client.Object
		node    string
		refused bool
		on      []cluster.ID // Where the pod can be.
	}{
		"OnProvider": {
			reason: "A pod goes to the provider of its node.", pins: known, objects: objects(both...), node: node, on: []cluster.ID{"a"},
		},
		"Unchosen": {reason: "It goes nowhere else if that is not chosen.", pins: known, objects: objects("b"), node: node},
		"Gone":     {reason: "Nor if that is gone.", pins: known, objects: objects(both...), node: gone},
		"OtherNode": {
			reason: "A pod on the broker's node goes to any provider.", pins: known, objects: objects(both...), node: "liqo-broker", on: both,
		},
		"Unknown":   {reason: "A pod of a node that nobody knows waits.", objects: objects(both...), node: node, refused: true},
		"NoTwin":    {reason: "So does one in a namespace that nobody knows.", pins: known, node: node, refused: true},
		"OtherPods": {reason: "Nobody has to know about the others.", objects: objects(both...), node: "liqo-broker", on: both},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			pod := liqotest.Pod(liqotest.ShadowPod(namespace, "web-0", map[string]string{"virtualkubelet.liqo.io/nodename": tc.node}), "")
			pod, refused := handle(t, newHandler(t, tc.pins, tc.objects...), pod)
			if refused != tc.refused {
				t.Fatalf("%s\nrefused: %t", tc.reason, refused)
			}
			if refused {
				return
			}
			if on := reachable(t, pod); !slices.Equal(on, tc.on) {
				t.Errorf("%s\nthe pod can be on %q, want %q", tc.reason, on, tc.on)
			}
		})
	}
}

// fits reports whether a node has what a pod requires.
func fits(t *testing.T, pod *corev1.Pod, node *corev1.Node) bool {
	t.Helper()
	operators := map[corev1.NodeSelectorOperator]selection.Operator{
		corev1.NodeSelectorOpIn: selection.In, corev1.NodeSelectorOpExists: selection.Exists,
		corev1.NodeSelectorOpDoesNotExist: selection.DoesNotExist,
	}
	if pod.Spec.Affinity == nil {
		return true
	}
	return slices.ContainsFunc(pod.Spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms,
		func(term corev1.NodeSelectorTerm) bool {
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

// terms returns how many alternatives of nodes a pod requires.
func terms(pod *corev1.Pod) int {
	if pod.Spec.Affinity == nil {
		return 0
	}
	return len(pod.Spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms)
}
