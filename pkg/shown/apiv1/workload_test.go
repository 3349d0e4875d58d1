// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package apiv1

import (
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/capacitorset/liqo-broker/pkg/core/resources"
	"github.com/capacitorset/liqo-broker/pkg/overview"
)

// TestWorkloadOf holds that what a pod requests and why it waits are there, whatever people write.
func TestWorkloadOf(t *testing.T) {
	pod := &corev1.Pod{}
	request := func(of corev1.ResourceList) corev1.Container {
		return corev1.Container{Resources: corev1.ResourceRequirements{Requests: of}}
	}
	pod.Spec.Containers = []corev1.Container{
		request(corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("250m"), corev1.ResourceMemory: resource.MustParse("64Mi")}),
		request(corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1")}),
	}
	w := WorkloadOf(&overview.Placed{Pod: "web", Object: pod}, "cheap", "0/3 nodes\nare \u202eavailable")
	if diff := cmp.Diff(Resources{"cpu": "1250m", "memory": "64Mi"}, w.Requests); diff != "" {
		t.Errorf("requests (-want +got):\n%s", diff)
	}
	if w.Policy != "cheap" || w.Why != "0/3 nodes are ?available" {
		t.Errorf("%+v", w)
	}
	many := corev1.ResourceList{}
	for i := range 1000 {
		many[corev1.ResourceName(strings.Repeat("a", i+1)+".com/gpu")] = resource.MustParse("1" + strings.Repeat("0", 100))
	}
	pod.Spec.Containers = []corev1.Container{request(many)}
	w = WorkloadOf(&overview.Placed{Object: pod}, "", strings.Repeat("why ", 1000))
	for name, quantity := range w.Requests {
		if len(quantity) > 32 {
			t.Errorf("%s: %s", name, quantity)
		}
	}
	if len(w.Requests) > resources.MaxResources || len(w.Why) > 512 {
		t.Errorf("%d requests, and %d bytes of why", len(w.Requests), len(w.Why))
	}
}

// TestFlowsOf counts pods whose consumer and provider may be unknown.
func TestFlowsOf(t *testing.T) {
	rome, milan := &overview.Cluster{ID: "r", Name: "rome"}, &overview.Cluster{ID: "m", Name: "milan"}
	got := FlowsOf([]overview.Placed{
		{Consumer: rome, Provider: milan, Path: "relay"}, {Consumer: rome}, {Consumer: rome, Provider: milan, Path: "relay", Ready: true}, {},
	})
	want := []Flow{
		{Pods: 1}, {Consumer: Cluster{"r", "rome"}, Pods: 1},
		{Consumer: Cluster{"r", "rome"}, Provider: &Cluster{"m", "milan"}, Path: "relay", Pods: 2, Ready: 1},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// TestConsumersSeeOfPods holds which fields a consumer sees of its pod: one that is added is not among them before somebody adds it here.
func TestConsumersSeeOfPods(t *testing.T) {
	all := Workload{
		Cluster{"c", "rome"}, "shop", "shop-rome", "web", &Cluster{"p", "milan"}, "direct", &Cluster{"b", "athens"}, "node", "10.0.0.1",
		"Running", true, time.Now(), Resources{"cpu": "1"}, "policy", "why",
	}
	for i := range reflect.ValueOf(all).NumField() {
		if reflect.ValueOf(all).Field(i).IsZero() {
			t.Fatalf("the test has nothing in field %s", reflect.TypeFor[Workload]().Field(i).Name)
		}
	}
	hidden := []string{"brokerNamespace", "consumer", "namespace", "path", "pod", "ready", "requests", "since", "status"}
	for hides, want := range map[bool][]string{
		true: hidden, false: slices.Sorted(slices.Values(append([]string{"address", "broker", "node", "provider"}, hidden...))),
	} {
		text, err := json.Marshal(all.Own(hides))
		fields := map[string]json.RawMessage{}
		if err != nil || json.Unmarshal(text, &fields) != nil {
			t.Fatalf("%s (%v)", text, err)
		}
		if diff := cmp.Diff(want, slices.Sorted(maps.Keys(fields))); diff != "" {
			t.Errorf("hides: %t (-want +got):\n%s", hides, diff)
		}
	}
}
