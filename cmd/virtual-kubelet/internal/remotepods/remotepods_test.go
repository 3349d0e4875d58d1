// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package remotepods

import (
	"sync"
	"testing"

	"github.com/liqotech/liqo/pkg/virtualKubelet/reflection/options"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/capacitorset/liqo-broker/cmd/virtual-kubelet/internal/reflectiontest"
	"github.com/capacitorset/liqo-broker/pkg/liqo"
)

// TestAnyAt has pods of two virtual nodes in one namespace of the foreign cluster.
func TestAnyAt(t *testing.T) {
	nothing := func(string) {}
	r := New(nil, "liqo-broker", func(string, string) {}, nothing)
	pod := func(node string) *corev1.Pod {
		p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: types.UID(node)}}
		p.Labels = map[string]string{"virtualkubelet.liqo.io/nodename": node}
		return p
	}
	all := func(string) bool { return true }
	r.seen(pod("liqo-other"))
	if r.AnyAt(all) {
		t.Error("a pod of another virtual node counts")
	}
	r.seen(pod("liqo-broker"))
	if !r.AnyAt(all) {
		t.Error("the node's own pod does not count")
	}
	r.gone(pod("liqo-broker"))
	if r.AnyAt(all) {
		t.Error("a pod counts that is gone")
	}
}

// TestReplacedPodIsReleased replaces a pod while the foreign cluster is not reached: what is heard of it then is a change of
// the pod, and not that the first one is gone.
func TestReplacedPodIsReleased(t *testing.T) {
	var mu sync.Mutex
	held := map[string]string{}
	r := New(reflectiontest.Unstarted(nil), "liqo-broker", func(pod, address string) {
		mu.Lock()
		defer mu.Unlock()
		held[pod] = address
	}, func(pod string) {
		mu.Lock()
		defer mu.Unlock()
		delete(held, pod)
	})
	pod := func(uid types.UID) *corev1.Pod {
		return &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: "twin", Name: "web-0", UID: uid}, Status: corev1.PodStatus{PodIP: "10.90.0.7"},
		}
	}
	remote := fake.NewSimpleClientset(pod("first"))
	factory := informers.NewSharedInformerFactory(remote, 0)
	r.StartNamespace(options.NewNamespaced().WithLocal("home", remote, factory).WithRemote("twin", remote, factory))
	factory.Start(t.Context().Done())
	factory.WaitForCacheSync(t.Context().Done())
	if _, err := remote.CoreV1().Pods("twin").Update(t.Context(), pod("second"), metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	reflectiontest.Eventually(t, func() bool {
		mu.Lock()
		defer mu.Unlock()
		_, first := held["first"]
		_, second := held["second"]
		return second && !first
	})
}

// TestEndedPodLosesItsAddress ends a pod, whose object keeps the address until somebody deletes it. The broker tells no
// relay address for it any more, and its end must be reflected nevertheless.
func TestEndedPodLosesItsAddress(t *testing.T) {
	for phase, want := range map[corev1.PodPhase]string{
		corev1.PodPending: "10.90.0.7", corev1.PodRunning: "10.90.0.7", corev1.PodSucceeded: "", corev1.PodFailed: "",
	} {
		t.Run(string(phase), func(t *testing.T) {
			held := "nothing"
			r := New(nil, "liqo-broker", func(_, address string) { held = address }, func(string) {})
			shown := r.show(&corev1.Pod{
				ObjectMeta: metav1.ObjectMeta{Namespace: "jobs", Name: "job", UID: "job"},
				Status:     corev1.PodStatus{Phase: phase, PodIP: "10.90.0.7", PodIPs: []corev1.PodIP{{IP: "10.90.0.7"}}},
			}, false)
			if shown.Status.PodIP != want || (len(shown.Status.PodIPs) == 0) != (want == "") || shown.Status.Phase != phase {
				t.Errorf("it is shown as %s at %q and %v, want %q", shown.Status.Phase, shown.Status.PodIP, shown.Status.PodIPs, want)
			}
			if held != want {
				t.Errorf("relay addresses are kept for %q, want %q", held, want)
			}
		})
	}
}

// TestEndedPodKeepsNoNodeReady looks at the virtual node when the broker is lost, and when it offers nothing any more, and
// the node's only pod has ended.
func TestEndedPodKeepsNoNodeReady(t *testing.T) {
	deleted := metav1.Now()
	for name, tc := range map[string]struct {
		reason  string
		phase   corev1.PodPhase
		deleted *metav1.Time
		// direct and present tell whether a pod counts that is reached past the broker, and one at all.
		direct, present bool
	}{
		"Running":   {reason: "It serves.", phase: corev1.PodRunning, direct: true, present: true},
		"Succeeded": {reason: "Nobody needs the node for it.", phase: corev1.PodSucceeded},
		"Failed":    {reason: "The same.", phase: corev1.PodFailed},
		"Moved":     {reason: "It is about to come back under the same name.", phase: corev1.PodFailed, deleted: &deleted, present: true},
	} {
		t.Run(name, func(t *testing.T) {
			r := New(nil, "liqo-broker", func(string, string) {}, func(string) {})
			r.show(&corev1.Pod{
				ObjectMeta: metav1.ObjectMeta{
					Namespace: "jobs", Name: "job", UID: "job", DeletionTimestamp: tc.deleted,
					Labels: map[string]string{"virtualkubelet.liqo.io/nodename": "liqo-broker"},
				},
				Spec:   corev1.PodSpec{RestartPolicy: corev1.RestartPolicyAlways},
				Status: corev1.PodStatus{Phase: tc.phase, PodIP: "10.90.0.7"},
			}, false)
			// Package node makes the node Ready by these.
			if direct := r.AnyAt(func(address string) bool { return address == "10.90.0.7" }); direct != tc.direct {
				t.Errorf("%s\nA pod is reached without the broker: %t, want %t", tc.reason, direct, tc.direct)
			}
			if present := r.AnyAt(func(string) bool { return true }); present != tc.present {
				t.Errorf("%s\nThere is a pod: %t, want %t", tc.reason, present, tc.present)
			}
		})
	}
}

// TestEndOfDeletedPod has remote pods that are deleted and have ended, and looks at which of the local pods end with them.
func TestEndOfDeletedPod(t *testing.T) {
	deleted := metav1.Now()
	for name, tc := range map[string]struct {
		reason string
		local  *corev1.Pod
		want   corev1.PodPhase
	}{
		"Deleted": {
			"It was evicted here, and its Job counts how it ended.", &corev1.Pod{ObjectMeta: metav1.ObjectMeta{DeletionTimestamp: &deleted}},
			corev1.PodSucceeded,
		},
		"Kept": {"It is recreated there.", &corev1.Pod{}, corev1.PodRunning},
		"OfBroker": {
			"A broker deletes its own pod to move it.",
			&corev1.Pod{
				ObjectMeta: metav1.ObjectMeta{DeletionTimestamp: &deleted, Labels: map[string]string{liqo.LabelManagedBy: liqo.ManagedByShadowPod}},
			}, corev1.PodRunning,
		},
		"Unknown": {"It may be recreated.", nil, corev1.PodRunning},
	} {
		t.Run(name, func(t *testing.T) {
			local := fake.NewSimpleClientset()
			homes := informers.NewSharedInformerFactory(local, 0)
			if tc.local != nil {
				tc.local.Namespace, tc.local.Name = "home", "job"
				if err := homes.Core().V1().Pods().Informer().GetIndexer().Add(tc.local); err != nil {
					t.Fatal(err)
				}
			}
			remote := fake.NewSimpleClientset(&corev1.Pod{
				ObjectMeta: metav1.ObjectMeta{Namespace: "twin", Name: "job", UID: "job", DeletionTimestamp: &deleted},
				Status: corev1.PodStatus{Phase: corev1.PodSucceeded, ContainerStatuses: []corev1.ContainerStatus{{
					State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{FinishedAt: deleted}},
				}}},
			})
			twins := informers.NewSharedInformerFactory(remote, 0)
			r := New(reflectiontest.Unstarted(nil), "liqo-broker", func(string, string) {}, func(string) {})
			r.StartNamespace(options.NewNamespaced().WithLocal("home", local, homes).WithRemote("twin", remote, twins))
			twins.Start(t.Context().Done())
			twins.WaitForCacheSync(t.Context().Done())
			shown, err := twins.Core().V1().Pods().Lister().Pods("twin").Get("job")
			if err != nil {
				t.Fatal(err)
			}
			if shown.Status.Phase != tc.want {
				t.Errorf("%s\nit is %s, want %s", tc.reason, shown.Status.Phase, tc.want)
			}
		})
	}
}
