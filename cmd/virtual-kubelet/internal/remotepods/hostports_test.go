// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package remotepods

import (
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	vkv1alpha1 "github.com/liqotech/liqo/apis/virtualkubelet/v1alpha1"
	"github.com/liqotech/liqo/pkg/consts"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	k8stesting "k8s.io/client-go/testing"

	"github.com/capacitorset/liqo-broker/cmd/virtual-kubelet/internal/reflectiontest"
)

// pinned returns a new pod that names its node, and asks for a host port unless that is zero.
func pinned(name string, port int32) *corev1.Pod {
	return reflectiontest.PodOf("", func(pod *corev1.Pod) {
		pod.Name, pod.UID = name, types.UID(name)
		pod.Spec.Containers[0].Ports = []corev1.ContainerPort{{ContainerPort: 80, HostPort: port}}
		pod.Status.Phase = corev1.PodPending
	})
}

// holding returns a pod that runs and has a host port.
func holding(port int32) *corev1.Pod {
	return running("twin", time.Now(), func(pod *corev1.Pod) {
		pod.Spec.Containers[0].Ports = []corev1.ContainerPort{{ContainerPort: 80, HostPort: port}}
	})
}

// create creates a local pod.
func (c *ruledClusters) create(pod *corev1.Pod) {
	c.t.Helper()
	if _, err := c.local.CoreV1().Pods(pod.Namespace).Create(c.t.Context(), pod, metav1.CreateOptions{}); err != nil {
		c.t.Fatal(err)
	}
	c.after(time.Second)
}

// delete deletes a local pod at once.
func (c *ruledClusters) delete(name string) {
	c.t.Helper()
	if err := c.local.CoreV1().Pods("twin").Delete(c.t.Context(), name, metav1.DeleteOptions{}); err != nil {
		c.t.Fatal(err)
	}
	c.after(time.Second)
}

// wantRefused says whether a pod was refused, and whether the foreign cluster runs it.
func (c *ruledClusters) wantRefused(name string, want bool) {
	c.t.Helper()
	status := c.pod(name)
	if got := status.Phase == corev1.PodFailed && status.Reason == "NodePorts"; got != want {
		c.t.Errorf("pod %s is %s (%s), want it refused: %t", name, status.Phase, status.Reason, want)
	}
	if got := c.hasShadow(name); got == want {
		c.t.Errorf("pod %s is refused: %t, and the foreign cluster runs it: %t", name, want, got)
	}
}

// TestHostPorts binds pods to a virtual node by its name.
func TestHostPorts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		first := holding(21017)
		c := startRuled(t, first, shadowOf(first, unchanged), running("twin-broker", time.Now(), unchanged))
		c.create(pinned("second", 21017))
		c.wantRefused("second", true)
		c.create(pinned("other", 21018))
		c.wantRefused("other", false)

		c.delete("web")
		c.after(time.Hour)
		c.wantRefused("second", true) // It is for its controller to replace it.
		c.create(pinned("third", 21017))
		c.wantRefused("third", false)
		c.create(pinned("fourth", 21017))
		c.wantRefused("fourth", true)
	})
}

// TestHostPortsAtOnce creates two pods of which only one can have the port.
func TestHostPortsAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := startRuled(t, pinned("a", 80), pinned("b", 80), pinned("c", 0))
		if c.hasShadow("a") == c.hasShadow("b") {
			t.Errorf("the foreign cluster runs one: %t, and the other: %t", c.hasShadow("a"), c.hasShadow("b"))
		}
		c.wantRefused("c", false)
	})
}

// TestHostPortsAreDecidedOnce admits a pod that Liqo has not marked yet.
func TestHostPortsAreDecidedOnce(t *testing.T) {
	var ports hostPorts
	first, second, gone := pinned("a", 80), pinned("b", 80), pinned("gone", 80)
	node := []*corev1.Pod{first, second}
	if !ports.admitPod(first, node) || ports.admitPod(second, node) {
		t.Error("want the first pod admitted, and not the second one")
	}
	if !ports.admitPod(first, node) || ports.admitPod(second, nil) {
		t.Error("what was decided has changed")
	}
	if ports.admitPod(gone, append(node, gone)); len(ports.decided) != 3 {
		t.Errorf("%d pods are decided about, want 3", len(ports.decided))
	}
	if ports.admitPod(pinned("c", 80), node[:1]); len(ports.decided) != 2 {
		t.Errorf("%d pods are decided about when two are gone, want 2", len(ports.decided))
	}
}

// TestHostPortsOfRunningPods starts a virtual kubelet when two pods have one port already.
func TestHostPortsOfRunningPods(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		marked := pinned("marked", 80) // Liqo did so before it made the ShadowPod.
		marked.Labels[consts.LocalPodLabelKey] = consts.LocalPodLabelValue
		c := startRuled(t, holding(80), marked)
		c.wantRefused("web", false)
		c.wantRefused("marked", false)
	})
}

// TestRefusedLeavesNothing starts a virtual kubelet when a refused pod has the name of one that
// runs in the foreign cluster.
func TestRefusedLeavesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		failed := pinned("web", 80)
		failed.Status = corev1.PodStatus{Phase: corev1.PodFailed, Reason: reasonNodePorts}
		c := startRuled(t, failed, shadowOf(failed, func(shadow *vkv1alpha1.ShadowPod) { shadow.UID = "old" }),
			running("twin-broker", time.Now(), unchanged))
		c.wantRefused("web", true)
	})
}

// TestRefusedIsDeletedOnce starts a virtual kubelet when a refused pod has the name of one that the foreign cluster is deleting.
func TestRefusedIsDeletedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		failed := pinned("web", 80)
		failed.Status = corev1.PodStatus{Phase: corev1.PodFailed, Reason: reasonNodePorts}
		c := startRuled(t, failed, shadowOf(failed, func(shadow *vkv1alpha1.ShadowPod) {
			shadow.UID, shadow.DeletionTimestamp, shadow.Finalizers = "old", new(metav1.Now()), []string{"example.org/slow"}
		}), running("twin-broker", time.Now(), unchanged))
		for _, action := range c.remoteLiqo.Actions() {
			if action.Matches("delete", "shadowpods") {
				t.Error("a ShadowPod is deleted that is being deleted")
			}
		}
	})
}

// TestRefusalStays refuses a pod, which nobody can be told before the port is free.
func TestRefusalStays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		first := holding(80)
		c := newRuled(t, first, shadowOf(first, unchanged), running("twin-broker", time.Now(), unchanged))
		var busy atomic.Bool
		c.local.PrependReactor("update", "pods", func(k8stesting.Action) (bool, runtime.Object, error) {
			return busy.Load(), nil, errors.New("too busy")
		})
		c.start()
		busy.Store(true)
		c.create(pinned("second", 80))
		c.delete("web")
		busy.Store(false)
		c.after(time.Hour)
		c.wantRefused("second", true)
	})
}

// TestConflict compares host ports as Kubernetes' scheduler does.
func TestConflict(t *testing.T) {
	port := func(number int32, ip string, protocol corev1.Protocol) []corev1.ContainerPort {
		return []corev1.ContainerPort{{HostPort: number, HostIP: ip, Protocol: protocol}}
	}
	cases := map[string]struct {
		reason string
		a, b   []corev1.ContainerPort
		want   bool
	}{
		"Same":         {"one port has one owner", port(80, "", "TCP"), port(80, "", "TCP"), true},
		"NoProtocol":   {"TCP is what Kubernetes takes it for", port(80, "", ""), port(80, "", "TCP"), true},
		"Protocol":     {"each protocol has its ports", port(80, "", "UDP"), port(80, "", "TCP"), false},
		"Port":         {"another port is free", port(80, "", "TCP"), port(81, "", "TCP"), false},
		"Addresses":    {"each address has its ports", port(80, "10.0.0.1", "TCP"), port(80, "10.0.0.2", "TCP"), false},
		"SameAddress":  {"one port of one address has one owner", port(80, "10.0.0.1", "TCP"), port(80, "10.0.0.1", "TCP"), true},
		"All":          {"a port at all addresses is one at each", port(80, "", "TCP"), port(80, "10.0.0.2", "TCP"), true},
		"AllWritten":   {"all addresses have an address", port(80, "10.0.0.2", "TCP"), port(80, "0.0.0.0", "TCP"), true},
		"None":         {"a pod without host ports takes none", nil, port(80, "", "TCP"), false},
		"OneOfSeveral": {"one port is enough", append(port(81, "", "TCP"), port(80, "", "TCP")...), port(80, "", "TCP"), true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if conflict(tc.a, tc.b) != tc.want || conflict(tc.b, tc.a) != tc.want {
				t.Errorf("%s: conflict: %t and %t, want %t", tc.reason, conflict(tc.a, tc.b), conflict(tc.b, tc.a), tc.want)
			}
		})
	}
}

// TestHostPortsOf looks at which containers take ports of a node.
func TestHostPortsOf(t *testing.T) {
	always := corev1.ContainerRestartPolicyAlways
	with := func(port int32, policy *corev1.ContainerRestartPolicy) corev1.Container {
		return corev1.Container{RestartPolicy: policy, Ports: []corev1.ContainerPort{{HostPort: port}, {ContainerPort: port}}}
	}
	pod := &corev1.Pod{Spec: corev1.PodSpec{
		InitContainers: []corev1.Container{with(1, nil), with(2, &always)}, Containers: []corev1.Container{with(3, nil)},
	}}
	if got := hostPortsOf(pod); len(got) != 2 || got[0].HostPort != 2 || got[1].HostPort != 3 {
		t.Errorf("the pod takes %v, want 2 and 3", got)
	}
}
