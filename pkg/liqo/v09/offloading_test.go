// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package v09

import (
	"testing"

	offloadingv1alpha1 "github.com/liqotech/liqo/apis/offloading/v1alpha1"
	"github.com/liqotech/liqo/pkg/consts"
	"github.com/liqotech/liqo/pkg/virtualKubelet/forge"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
	"github.com/capacitorset/liqo-broker/pkg/liqo"
)

func TestPassed(t *testing.T) {
	consumer := cluster.Identity{ID: "1e0b1a7c-0000-4000-8000-000000000001", Name: "consumer"}
	other := cluster.Identity{ID: "1e0b1a7c-0000-4000-8000-000000000002", Name: "consumer"}
	twin := func(name string, origin cluster.ID) *corev1.Namespace {
		return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
			Name:        name,
			Labels:      map[string]string{liqo.LabelRemoteClusterID: string(origin)},
			Annotations: map[string]string{consts.RemoteNamespaceManagedByAnnotationKey: "tenant/map"},
		}}
	}
	cases := map[string]struct {
		reason string
		ns     *corev1.Namespace
		want   bool
	}{
		"Origin":   {reason: "A namespace passed its origin.", ns: twin("web", consumer.ID), want: true},
		"Hop":      {reason: "A hop is in the name.", ns: twin("web-"+UniqueName(consumer), "x"), want: true},
		"TwoHops":  {reason: "So is the hop before.", ns: twin("web-"+UniqueName(consumer)+"-broker-abcdef", "x"), want: true},
		"Namesake": {reason: "A cluster of the same name is another cluster.", ns: twin("web-"+UniqueName(other), "x")},
		"Longer":   {reason: "A longer name is another name.", ns: twin("web-"+UniqueName(consumer)+"0", "x")},
		"Stranger": {reason: "Other clusters have not been passed.", ns: twin("web", "x")},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := Passed(tc.ns, consumer); got != tc.want {
				t.Errorf("%s\nPassed(%s) = %v", tc.reason, tc.ns.Name, got)
			}
		})
	}
}

func TestInForceAndReception(t *testing.T) {
	id := cluster.Identity{ID: "a", Name: "provider-a"}
	condition := func(
		kind offloadingv1alpha1.RemoteNamespaceConditionType, status corev1.ConditionStatus,
	) offloadingv1alpha1.RemoteNamespaceCondition {
		return offloadingv1alpha1.RemoteNamespaceCondition{Type: kind, Status: status}
	}
	required := condition(offloadingv1alpha1.NamespaceOffloadingRequired, corev1.ConditionTrue)
	dropped := condition(offloadingv1alpha1.NamespaceOffloadingRequired, corev1.ConditionFalse)
	ready := condition(offloadingv1alpha1.NamespaceReady, corev1.ConditionTrue)
	open := map[string]string{consts.SchedulingLiqoLabel: consts.SchedulingLiqoLabelValue}
	cases := map[string]struct {
		reason     string
		labels     map[string]string
		observed   int64
		conditions offloadingv1alpha1.RemoteNamespaceConditions
		inForce    bool
		receives   bool
	}{
		"Ready": {
			reason: "Liqo has opened the namespace and made it remotely.",
			labels: open, observed: 2, conditions: offloadingv1alpha1.RemoteNamespaceConditions{required, ready},
			inForce: true, receives: true,
		},
		"NotObserved": {reason: "Liqo has yet to see the spec.", labels: open, observed: 1},
		"NotOpened":   {reason: "The webhook does not see the namespace.", observed: 2},
		"Dropped": {
			reason: "A namespace that is not wanted any more is no target, though it is still there.",
			labels: open, observed: 2, conditions: offloadingv1alpha1.RemoteNamespaceConditions{dropped, ready}, inForce: true,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Labels: tc.labels}}
			o := ForgeOffloading("web", liqo.MappingDefault, id)
			o.Generation, o.Status.ObservedGeneration = 2, tc.observed
			o.Status.RemoteNamespacesConditions = map[string]offloadingv1alpha1.RemoteNamespaceConditions{UniqueName(id): tc.conditions}
			if is := OffloadingOf(o); is.InForce(ns) != tc.inForce {
				t.Errorf("%s\nInForce() = %v", tc.reason, !tc.inForce)
			}
			if got := ReceptionOf(o, id); got.Present != tc.receives {
				t.Errorf("%s\nReceptionOf() = %v", tc.reason, got)
			}
		})
	}
}

func TestReceptionRefused(t *testing.T) {
	id := cluster.Identity{ID: "a", Name: "provider-a"}
	since := metav1.Unix(1000, 0)
	condition := func(
		kind offloadingv1alpha1.RemoteNamespaceConditionType, status corev1.ConditionStatus, reason string,
	) offloadingv1alpha1.RemoteNamespaceCondition {
		return offloadingv1alpha1.RemoteNamespaceCondition{Type: kind, Status: status, Reason: reason, LastTransitionTime: since}
	}
	required := condition(offloadingv1alpha1.NamespaceOffloadingRequired, corev1.ConditionTrue, "ClusterSelected")
	dropped := condition(offloadingv1alpha1.NamespaceOffloadingRequired, corev1.ConditionFalse, "ClusterNotSelected")
	cases := map[string]struct {
		reason     string
		conditions offloadingv1alpha1.RemoteNamespaceConditions
		want       bool
	}{
		"Collision": {
			"The provider has another namespace of that name.",
			offloadingv1alpha1.RemoteNamespaceConditions{
				required, condition(offloadingv1alpha1.NamespaceReady, corev1.ConditionFalse, "CreationLoopBackOff"),
			}, true,
		},
		"Creating": {
			"A namespace that is being made is not refused.",
			offloadingv1alpha1.RemoteNamespaceConditions{required, condition(offloadingv1alpha1.NamespaceReady, corev1.ConditionFalse, "Creating")},
			false,
		},
		"Ready": {
			"A namespace that exists is not refused.",
			offloadingv1alpha1.RemoteNamespaceConditions{
				required, condition(offloadingv1alpha1.NamespaceReady, corev1.ConditionTrue, "NamespaceCreated"),
			}, false,
		},
		"Dropped": {
			"A condition that was left behind when the provider was taken out says nothing.",
			offloadingv1alpha1.RemoteNamespaceConditions{
				dropped, condition(offloadingv1alpha1.NamespaceReady, corev1.ConditionFalse, "CreationLoopBackOff"),
			}, false,
		},
		"Unknown": {"Nothing is known of the provider yet.", nil, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			o := ForgeOffloading("web", liqo.MappingDefault, id)
			o.Status.RemoteNamespacesConditions = map[string]offloadingv1alpha1.RemoteNamespaceConditions{UniqueName(id): tc.conditions}
			if got := ReceptionOf(o, id); got.Refused != tc.want || got.Refused != got.Since.Equal(since.Time) {
				t.Errorf("%s\nReceptionOf() = %v", tc.reason, got)
			}
		})
	}
}

func TestOwnIdentity(t *testing.T) {
	stored := func(data map[string]string) *corev1.ConfigMap {
		return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "liqo", Name: liqo.IdentityName}, Data: data}
	}
	cases := map[string]struct {
		reason string
		stored *corev1.ConfigMap
		want   cluster.Identity
		fails  bool
	}{
		"Stored": {
			"Liqo stores the ID and the name.", stored(map[string]string{"CLUSTER_ID": "id", "CLUSTER_NAME": "broker"}),
			cluster.Identity{ID: "id", Name: "broker"}, false,
		},
		"NoID": {"Liqo has yet to make the ID.", stored(map[string]string{"CLUSTER_NAME": "broker"}), cluster.Identity{}, true},
		"Missing": {
			"Liqo is elsewhere.", &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: liqo.IdentityName}},
			cluster.Identity{}, true,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := OwnIdentity(t.Context(), fake.NewClientBuilder().WithObjects(tc.stored).Build(), "liqo")
			if got != tc.want || (err != nil) != tc.fails {
				t.Errorf("%s\nOwnIdentity() = %v, %v", tc.reason, got, err)
			}
		})
	}
}

// TestMarkOffloaded asks Liqo's virtual kubelet whether it would still write the label.
func TestMarkOffloaded(t *testing.T) {
	for name, labels := range map[string]map[string]string{"None": nil, "Others": {"app": "web"}, "Other": {"liqo.io/shadowPod": "other"}} {
		t.Run(name, func(t *testing.T) {
			pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "web", Labels: labels}}
			if _, missing := forge.LocalPodOffloadedLabel(pod); !missing {
				t.Fatal("the virtual kubelet writes no label")
			}
			app := labels["app"]
			liqo.MarkOffloaded(pod)
			if mutation, missing := forge.LocalPodOffloadedLabel(pod); missing || pod.Labels["app"] != app {
				t.Errorf("of %v the virtual kubelet makes %v", pod.Labels, mutation)
			}
		})
	}
}
