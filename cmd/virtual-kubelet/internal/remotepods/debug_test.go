// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package remotepods

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// debug adds an ephemeral container to a local pod, as kubectl debug does.
func (c *ruledClusters) debug(name, container string) {
	c.t.Helper()
	pods := c.local.CoreV1().Pods("twin")
	pod, err := pods.Get(c.t.Context(), name, metav1.GetOptions{})
	if err != nil {
		c.t.Fatal(err)
	}
	added := corev1.EphemeralContainer{EphemeralContainerCommon: corev1.EphemeralContainerCommon{Name: container, Image: "busybox"}}
	pod.Spec.EphemeralContainers = append(pod.Spec.EphemeralContainers, added)
	if _, err := pods.UpdateEphemeralContainers(c.t.Context(), name, pod, metav1.UpdateOptions{}); err != nil {
		c.t.Fatal(err)
	}
	c.after(time.Second)
}

// toldOfDebug returns what events about ephemeral containers say.
func (c *ruledClusters) toldOfDebug() (messages []string) {
	c.seen.Lock()
	defer c.seen.Unlock()
	for _, event := range c.events {
		if event.Reason == reasonDebugNotRun && event.Type == corev1.EventTypeWarning && event.InvolvedObject.Name == "web" {
			messages = append(messages, event.Message)
		}
	}
	return messages
}

// TestDebugIsTold debugs a pod that runs elsewhere.
func TestDebugIsTold(t *testing.T) {
	const one = "The pod runs in another cluster, which lets nobody else change it: debugger-1 will not start. Use kubectl exec"
	const two = "The pod runs in another cluster, which lets nobody else change it: debugger-2 will not start. Use kubectl exec"
	synctest.Test(t, func(t *testing.T) {
		local := running("twin", time.Now(), unchanged)
		c := startRuled(t, local, shadowOf(local, unchanged), running("twin-broker", time.Now(), unchanged))
		if got := c.toldOfDebug(); len(got) > 0 {
			t.Fatalf("nobody debugs, and it is told: %q", got)
		}
		c.debug("web", "debugger-1")
		if got := c.toldOfDebug(); !slices.Equal(got, []string{one}) {
			t.Errorf("with one container: %q", got)
		}
		// Another change of the pod is none of them.
		pod, err := c.local.CoreV1().Pods("twin").Get(t.Context(), "web", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		pod.Labels["other"] = "label"
		if _, err := c.local.CoreV1().Pods("twin").Update(t.Context(), pod, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
		c.after(time.Second)
		c.debug("web", "debugger-2")
		if got := c.toldOfDebug(); !slices.Equal(got, []string{one, two}) {
			t.Errorf("with two containers: %q", got)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		c := startRuled(t, running("twin", time.Now(), func(pod *corev1.Pod) { pod.Status.Phase = corev1.PodSucceeded }))
		c.debug("web", "debugger-1")
		if got := c.toldOfDebug(); len(got) > 0 {
			t.Errorf("of a pod that has ended is told: %q", got)
		}
	})
}

// TestDebuggedForgets has a pod that takes the place of another one.
func TestDebuggedForgets(t *testing.T) {
	var d debugged
	pod := func(uid types.UID, containers int) *corev1.Pod {
		p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "twin", Name: "web", UID: uid}}
		p.Spec.EphemeralContainers = make([]corev1.EphemeralContainer, containers)
		return p
	}
	for _, step := range []struct {
		pod  *corev1.Pod
		news int
	}{{pod("a", 0), 0}, {pod("a", 2), 2}, {pod("a", 2), 0}, {pod("a", 3), 1}, {pod("b", 1), 1}, {pod("b", 0), 0}} {
		if got := len(d.news(step.pod)); got != step.news {
			t.Errorf("pod %s with %d: %d are new, want %d", step.pod.UID, len(step.pod.Spec.EphemeralContainers), got, step.news)
		}
	}
	d.forget(func(key types.NamespacedName) bool { return key.Namespace == "twin" })
	if len(d.told) > 0 || len(d.news(pod("b", 1))) != 1 {
		t.Errorf("it remembers %v", d.told)
	}
}
