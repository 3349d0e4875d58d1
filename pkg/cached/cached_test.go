// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package cached

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"sigs.k8s.io/controller-runtime/pkg/cache"

	"github.com/capacitorset/liqo-broker/pkg/core/podstate"
	"github.com/capacitorset/liqo-broker/pkg/liqo"
	v09 "github.com/capacitorset/liqo-broker/pkg/liqo/v09"
)

func TestWithout(t *testing.T) {
	written := metav1.ObjectMeta{Name: "a", Labels: map[string]string{"x": "y"}, ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "m"}}}
	drop := Without(func(pod *corev1.Pod) { pod.Labels = nil })
	pod, other := &corev1.Pod{ObjectMeta: written}, &corev1.Node{ObjectMeta: written}
	for _, o := range []any{pod, other, "no object"} {
		if got, err := drop(o); err != nil || got != o {
			t.Errorf("%T: %v, %v", o, got, err)
		}
	}
	if pod.ManagedFields != nil || pod.Labels != nil || other.ManagedFields != nil || other.Labels == nil {
		t.Errorf("left of the pod: %+v, of the node: %+v", pod.ObjectMeta, other.ObjectMeta)
	}
}

// TestEvents holds that of events about other objects and elsewhere nothing is kept, and of the others not what is long and not read.
func TestEvents(t *testing.T) {
	var kept cache.ByObject
	for object, by := range ByBroker(v09.Line{}) {
		if _, is := object.(*corev1.Event); is {
			kept = by
		}
	}
	if len(kept.Namespaces) != 1 || kept.Field == nil {
		t.Fatalf("kept are %+v", kept)
	}
	if _, is := kept.Namespaces[metav1.NamespaceDefault]; !is {
		t.Errorf("kept are those in %v", kept.Namespaces)
	}
	for version, want := range map[string]bool{"brokering.liqo.io/v1alpha1": true, "v1": false, "": false} {
		e := &corev1.Event{ObjectMeta: metav1.ObjectMeta{Namespace: "default"}, InvolvedObject: corev1.ObjectReference{APIVersion: version}}
		if got := kept.Field.Matches(fields.Set{"involvedObject.apiVersion": version}); got != want || IsOfBroker(e) != want {
			t.Errorf("kept are events about %q: %t, of the broker: %t, want %t", version, got, IsOfBroker(e), want)
		}
	}
	at := metav1.NewTime(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))
	long := strings.Repeat("é", 1<<20)
	written := &corev1.Event{
		ObjectMeta:     metav1.ObjectMeta{Name: "a", Namespace: "default", UID: "u", Annotations: map[string]string{"x": long}},
		InvolvedObject: corev1.ObjectReference{APIVersion: "v1", Kind: "Provider", Name: long, FieldPath: long},
		Reason:         long, Message: long, Type: "Warning", Action: long, LastTimestamp: at, Count: 3,
		Source: corev1.EventSource{Component: "c", Host: long},
	}
	got, err := kept.Transform(written)
	e, is := got.(*corev1.Event)
	if err != nil || !is || e.UID != "u" || e.Type != "Warning" || e.LastTimestamp != at || e.Count != 3 || e.Source.Component != "c" {
		t.Fatalf("%+v (%v)", got, err)
	}
	if size := e.Size(); size > 2<<10 || !strings.HasSuffix(e.Message, "é...") || len(e.Message) < 1000 {
		t.Errorf("kept are %d bytes, %d of the message", size, len(e.Message))
	}
}

// TestByConsumer holds that of a consumer's own pods nothing is kept that is not read, and least of those that cannot be at a broker.
func TestByConsumer(t *testing.T) {
	kept := map[string]cache.ByObject{}
	for object, by := range ByConsumer(v09.Line{}) {
		kept[fmt.Sprintf("%T", object)] = by
	}
	if by := kept["*v1.Pod"]; by.Label != nil || by.Field != nil || kept["*v1.Namespace"].Label != nil || kept["*v1.Node"].Label == nil {
		t.Errorf("not all pods and namespaces are kept, or all nodes: %+v", kept)
	}
	long := strings.Repeat("x", 10<<10)
	pod := func(tolerates ...string) *corev1.Pod {
		p := &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{
				Name: "web", Namespace: "shop", Labels: map[string]string{"pod-template-hash": "h", "x": "y"},
				Annotations:     map[string]string{liqo.AnnotationPath: "direct", liqo.AnnotationProviderName: long, "x": long},
				OwnerReferences: []metav1.OwnerReference{{Kind: "Other", Name: "o"}, {Kind: "ReplicaSet", Name: "web-h", Controller: new(true)}},
			},
			Spec: corev1.PodSpec{
				NodeName: "athens", Volumes: []corev1.Volume{{Name: long}}, Affinity: &corev1.Affinity{},
				Containers: []corev1.Container{{
					Image: long, Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{"cpu": resource.MustParse("1")}},
				}},
			},
			Status: corev1.PodStatus{Phase: corev1.PodRunning, PodIP: "10.1.0.7", Conditions: []corev1.PodCondition{
				{Type: corev1.PodReady, Status: corev1.ConditionTrue}, {Type: "Other", Message: long},
			}},
		}
		for _, key := range tolerates {
			p.Spec.Tolerations = append(p.Spec.Tolerations, corev1.Toleration{Key: key})
		}
		return p
	}
	for name, tc := range map[string]struct {
		pod      *corev1.Pod
		admitted bool
	}{
		"it tolerates virtual nodes": {pod("node.kubernetes.io/not-ready", "virtual-node.liqo.io/not-allowed"), true},
		"it does not":                {pod("node.kubernetes.io/not-ready"), false},
	} {
		got, err := kept["*v1.Pod"].Transform(tc.pod)
		p, is := got.(*corev1.Pod)
		if err != nil || !is {
			t.Fatalf("%s: %T, %v", name, got, err)
		}
		if owner := metav1.GetControllerOf(p); owner == nil || owner.Name != "web-h" || len(p.OwnerReferences) != 1 || len(p.Labels) != 1 ||
			p.Labels["pod-template-hash"] != "h" || p.Spec.NodeName != "athens" || !podstate.Ready(p) || p.Status.PodIP != "10.1.0.7" {
			t.Errorf("%s: what is read is not kept: %+v", name, p)
		}
		if len(p.Annotations) != 2 || p.Annotations[liqo.AnnotationPath] != "direct" || p.Size() > 1<<10 || p.Spec.Affinity != nil {
			t.Errorf("%s: %d bytes are kept, with %d annotations", name, p.Size(), len(p.Annotations))
		}
		if liqo.Admitted(p) != tc.admitted || (len(p.Spec.Containers) == 1) != tc.admitted || (len(p.Spec.Tolerations) == 1) != tc.admitted {
			t.Errorf("%s: of its spec is kept %+v", name, p.Spec)
		}
		if tc.admitted && p.Spec.Containers[0].Resources.Requests.Cpu().String() != "1" {
			t.Errorf("%s: it requests %v", name, p.Spec.Containers[0].Resources.Requests)
		}
	}
}
