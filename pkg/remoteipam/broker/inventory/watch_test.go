// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package inventory

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"strconv"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// see lets the inventory see a pod as it does through its cache.
func see(t *testing.T, f follower, pod *corev1.Pod) {
	t.Helper()
	kept, err := keepPodAddresses(pod)
	if err != nil {
		t.Fatal(err)
	}
	f.setPod(kept.(*corev1.Pod))
}

// TestEndedPodHasNoAddress ends a pod whose object stays, with its address, until somebody
// deletes it. Its provider gives the address to another consumer's pod.
func TestEndedPodHasNoAddress(t *testing.T) {
	address, server := netip.MustParseAddr("10.90.0.7"), netip.MustParseAddr("10.91.0.1")
	cases := map[corev1.PodPhase]bool{
		corev1.PodPending: true, corev1.PodRunning: true, corev1.PodUnknown: true, corev1.PodSucceeded: false, corev1.PodFailed: false,
	}
	for phase, want := range cases {
		t.Run(string(phase), func(t *testing.T) {
			store := NewStore()
			store.SetTwin("jobs", "one")
			store.SetTwin("web", "other")
			store.SetOffloaded("provider", []string{"jobs"})
			f := follower{store: store, log: logr.Discard()}
			job := &corev1.Pod{
				ObjectMeta: metav1.ObjectMeta{Namespace: "jobs", Name: "job"},
				Spec:       corev1.PodSpec{HostAliases: []corev1.HostAlias{{IP: server.String(), Hostnames: []string{"kubernetes.default"}}}},
				Status:     corev1.PodStatus{Phase: corev1.PodRunning, PodIP: address.String()},
			}
			see(t, f, job)
			job.Status.Phase = phase
			see(t, f, job)
			see(t, f, &corev1.Pod{
				ObjectMeta: metav1.ObjectMeta{Namespace: "web", Name: "shop"},
				Status:     corev1.PodStatus{Phase: corev1.PodRunning, PodIP: address.String()},
			})
			if got := store.HasPod("one", address); got != want {
				t.Errorf("the consumer of the pod has its address: %t, want %t", got, want)
			}
			if got := store.HasAlias("provider", server); got != want {
				t.Errorf("the pod calls its API server: %t, want %t", got, want)
			}
			if !store.HasPod("other", address) {
				t.Error("the other consumer lacks the address of its pod")
			}
		})
	}
}

// TestAliases looks at what is kept of the host aliases of pods.
func TestAliases(t *testing.T) {
	store := NewStore()
	store.SetOffloaded("provider", []string{"shop"})
	f := follower{store: store, log: logr.Discard()}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"}}
	pod.Spec.HostAliases = []corev1.HostAlias{
		{IP: "10.91.0.1", Hostnames: []string{"db"}},
		{IP: "10.91.0.2", Hostnames: []string{"kubernetes.default", "kubernetes.default.svc"}},
		{IP: "ten", Hostnames: []string{"kubernetes.default"}},
	}
	for i := range 100 {
		pod.Spec.HostAliases = append(pod.Spec.HostAliases,
			corev1.HostAlias{IP: "10.91.1." + strconv.Itoa(i), Hostnames: []string{"kubernetes.default"}})
	}
	see(t, f, pod)
	for address, want := range map[string]bool{"10.91.0.1": false, "10.91.0.2": true, "10.91.1.0": true, "10.91.1.99": false} {
		if got := store.HasAlias("provider", netip.MustParseAddr(address)); got != want {
			t.Errorf("%s is an API server of a pod: %t, want %t", address, got, want)
		}
		if store.HasAlias("another", netip.MustParseAddr(address)) {
			t.Errorf("%s is kept for a cluster to which the namespace does not go", address)
		}
	}
	f.deletePod(pod)
	if store.HasAlias("provider", netip.MustParseAddr("10.91.0.2")) {
		t.Error("a pod that is gone calls its API server")
	}
}

// TestCacheKeepsLittle gives the cache what a consumer can write into its objects.
func TestCacheKeepsLittle(t *testing.T) {
	long := strings.Repeat("x", 1<<16)
	meta := metav1.ObjectMeta{Namespace: "shop", Name: "web", Labels: map[string]string{"a": long}, Annotations: map[string]string{"a": long}}
	objects := map[string]client.Object{
		"*v1.Pod": &corev1.Pod{ObjectMeta: meta, Spec: corev1.PodSpec{Containers: []corev1.Container{{Args: []string{long}}}}},
		"*v1.EndpointSlice": &discoveryv1.EndpointSlice{
			ObjectMeta: meta, Endpoints: []discoveryv1.Endpoint{
				{Addresses: []string{"10.90.0.7"}, DeprecatedTopology: map[string]string{"a": long}},
			},
		},
	}
	for kind, options := range CacheOptions() {
		for name, object := range objects {
			if fmt.Sprintf("%T", kind) != name {
				continue
			}
			delete(objects, name)
			if options.Transform == nil {
				t.Errorf("the cache keeps all of a %s", name)
				continue
			}
			kept, err := options.Transform(object)
			if err != nil {
				t.Fatal(err)
			}
			text, err := json.Marshal(kept)
			if err != nil || len(text) > 1<<10 {
				t.Errorf("of a %s the cache keeps %d bytes, %v", name, len(text), err)
			}
		}
	}
	if len(objects) > 0 {
		t.Errorf("the cache does not say what it keeps of %v", objects)
	}
}
