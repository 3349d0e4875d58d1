// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package cached

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"sigs.k8s.io/controller-runtime/pkg/cache"

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
