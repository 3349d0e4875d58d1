// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package remotepods

import (
	"errors"
	"net"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	vkv1alpha1 "github.com/liqotech/liqo/apis/virtualkubelet/v1alpha1"
	"github.com/liqotech/liqo/pkg/virtualKubelet/forge"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	k8stesting "k8s.io/client-go/testing"
)

func within(seconds int64) func(*corev1.Pod) {
	return func(pod *corev1.Pod) { pod.Spec.ActiveDeadlineSeconds = &seconds }
}

// wantFailed says what is wrong with a pod that was ended at its deadline.
func wantFailed(t *testing.T, c *ruledClusters) {
	t.Helper()
	status := c.pod("web")
	if status.Phase != corev1.PodFailed || status.Reason != "DeadlineExceeded" {
		t.Fatalf("the pod is %s (%s), want Failed (DeadlineExceeded)", status.Phase, status.Reason)
	}
	if status.Conditions[0].Status != corev1.ConditionFalse {
		t.Error("a failed pod is ready")
	}
	if container := status.ContainerStatuses[0]; container.State.Terminated == nil || container.Ready || container.State.Running != nil {
		t.Errorf("container of a failed pod: %v", container)
	}
	c.after(time.Hour)
	if c.hasShadow("web") {
		t.Error("the foreign cluster is to run the pod again")
	}
}

// wantRunning says that a pod has not ended.
func wantRunning(t *testing.T, c *ruledClusters, ready corev1.ConditionStatus) {
	t.Helper()
	if status := c.pod("web"); status.Phase != corev1.PodRunning || status.Conditions[0].Status != ready {
		t.Errorf("the pod is %s (ready: %s), want Running (ready: %s)", status.Phase, status.Conditions[0].Status, ready)
	}
}

// TestDeadlineIsSet sets the deadline of a pod that runs.
func TestDeadlineIsSet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		since := time.Now()
		local := running("twin", since, unchanged)
		c := startRuled(t, local, shadowOf(local, unchanged), running("twin-broker", since, unchanged))
		c.until(since, 10*time.Second)

		updated := local.DeepCopy()
		within(15)(updated)
		if _, err := c.local.CoreV1().Pods("twin").Update(t.Context(), updated, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
		c.until(since, 14*time.Second)
		if !c.hasShadow("web") {
			t.Fatal("the pod is ended before its deadline")
		}
		wantRunning(t, c, corev1.ConditionTrue)

		c.until(since, 15*time.Second)
		if c.hasShadow("web") {
			t.Fatal("the pod is not ended at its deadline")
		}
		wantRunning(t, c, corev1.ConditionFalse) // It has not ended yet.
		c.removeRemote("web")
		wantFailed(t, c)
	})
}

// TestDeadlineAtStart starts a virtual kubelet after the deadline of a pod.
func TestDeadlineAtStart(t *testing.T) {
	limited := func(pod *corev1.Pod) { within(5)(pod) }
	cases := map[string]struct {
		reason  string
		objects func(since time.Time) []runtime.Object
		shadow  bool
		phase   corev1.PodPhase
	}{
		"NothingDone": {
			reason: "What the virtual kubelet before it has not done is done.",
			objects: func(since time.Time) []runtime.Object {
				return []runtime.Object{shadowOf(running("twin", since, unchanged), unchanged), running("twin-broker", since, unchanged)}
			},
			phase: corev1.PodRunning,
		},
		"ShadowDeleted": {
			reason: "A pod whose ShadowPod is deleted still runs.",
			objects: func(since time.Time) []runtime.Object {
				return []runtime.Object{running("twin-broker", since, unchanged)}
			},
			phase: corev1.PodRunning,
		},
		"AllDeleted": {
			reason:  "A pod that the foreign cluster has no more has failed.",
			objects: func(time.Time) []runtime.Object { return nil },
			phase:   corev1.PodFailed,
		},
		"DeadlineThere": {
			reason: "The foreign cluster ends the pods itself that were created with their deadline, and tells how they ended.",
			objects: func(since time.Time) []runtime.Object {
				return []runtime.Object{shadowOf(running("twin", since, limited), unchanged), running("twin-broker", since, limited)}
			},
			shadow: true, phase: corev1.PodRunning,
		},
		"LaterThere": {
			reason: "The foreign cluster would end it too late.",
			objects: func(since time.Time) []runtime.Object {
				return []runtime.Object{shadowOf(running("twin", since, within(50)), unchanged), running("twin-broker", since, within(50))}
			},
			phase: corev1.PodRunning,
		},
		"OfOthers": {
			reason: "What others have made in the foreign cluster is theirs.",
			objects: func(since time.Time) []runtime.Object {
				shadow := shadowOf(running("twin", since, unchanged), func(shadow *vkv1alpha1.ShadowPod) {
					shadow.Labels[forge.LiqoOriginClusterIDKey] = "another"
				})
				return []runtime.Object{shadow, running("twin-broker", since, unchanged)}
			},
			shadow: true, phase: corev1.PodRunning,
		},
		"Ended": {
			reason: "A pod that has ended by itself shows how.",
			objects: func(since time.Time) []runtime.Object {
				return []runtime.Object{
					shadowOf(running("twin", since, unchanged), unchanged),
					running("twin-broker", since, func(pod *corev1.Pod) { pod.Status.Phase = corev1.PodSucceeded }),
				}
			},
			shadow: true, phase: corev1.PodSucceeded,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				since := time.Now().Add(-time.Minute)
				c := startRuled(t, append(tc.objects(since), running("twin", since, limited))...)
				if got := c.pod("web").Phase; got != tc.phase {
					t.Errorf("%s\nthe pod is %s, want %s", tc.reason, got, tc.phase)
				}
				if got := c.hasShadow("web"); got != tc.shadow {
					t.Errorf("%s\nShadowPod: %t, want %t", tc.reason, got, tc.shadow)
				}
			})
		})
	}
}

// TestDeadlineWhileAway lets a deadline pass while the foreign cluster is not reached.
func TestDeadlineWhileAway(t *testing.T) {
	for _, phase := range []corev1.PodPhase{corev1.PodRunning, corev1.PodSucceeded} {
		t.Run(string(phase), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				local := running("twin", time.Now(), within(5))
				remote := running("twin-broker", time.Now(), unchanged)
				c := newRuled(t, local, remote, shadowOf(local, func(shadow *vkv1alpha1.ShadowPod) { shadow.Spec.Pod.ActiveDeadlineSeconds = nil }))
				var away atomic.Bool
				away.Store(true)
				c.remote.PrependReactor("get", "pods", func(k8stesting.Action) (bool, runtime.Object, error) {
					if away.Load() {
						return true, nil, &net.OpError{Op: "dial", Err: errors.New("no route to host")}
					}
					// What the informers do not know yet.
					current := remote.DeepCopy()
					current.Status.Phase = phase
					return true, current, nil
				})
				c.start()
				c.after(time.Minute)
				if !c.hasShadow("web") {
					t.Fatal("a ShadowPod is deleted of which it is not known whether its pod has ended")
				}
				wantRunning(t, c, corev1.ConditionTrue)

				away.Store(false)
				c.after(unreachedRetry + time.Second)
				if got, want := c.hasShadow("web"), phase == corev1.PodSucceeded; got != want {
					t.Errorf("ShadowPod of a pod that is %s: %t, want %t", phase, got, want)
				}
			})
		})
	}
}

// TestDeadlineLeft looks at when deadlines are.
func TestDeadlineLeft(t *testing.T) {
	now := time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
	cases := map[string]struct {
		reason  string
		edit    func(*corev1.Pod)
		left    time.Duration
		limited bool
	}{
		"Unlimited": {"A pod without a deadline runs as long as it likes.", unchanged[corev1.Pod], 0, false},
		"NotStarted": {
			"The time that a pod waits does not count.", func(pod *corev1.Pod) { within(5)(pod); pod.Status.StartTime = nil }, 0, false,
		},
		"Started": {"It counts from the start.", within(7), 7 * time.Second, true},
		"Past": {
			"It may be over.", func(pod *corev1.Pod) { within(5)(pod); early(pod, 8*time.Second, time.Minute) }, -3 * time.Second, true,
		},
		"ClockBehind": {"A foreign cluster whose clock is behind takes no time from a pod.",
			func(pod *corev1.Pod) { within(5)(pod); early(pod, time.Hour, time.Second) }, 4 * time.Second, true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			left, limited := deadlineLeft(running("twin", now, tc.edit), now)
			if left != tc.left || limited != tc.limited {
				t.Errorf("%s\nleft %s, limited %t; want %s, %t", tc.reason, left, limited, tc.left, tc.limited)
			}
		})
	}
}

// early makes a pod one that has started, and was created, some time before.
func early(pod *corev1.Pod, started, created time.Duration) {
	start := metav1.NewTime(pod.Status.StartTime.Add(-started))
	pod.CreationTimestamp = metav1.NewTime(pod.Status.StartTime.Add(-created))
	pod.Status.StartTime = &start
}
