// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package transit

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr/testr"
	"github.com/liqotech/liqo/pkg/consts"
	"github.com/liqotech/liqo/pkg/virtualKubelet/forge"
	"github.com/liqotech/liqo/pkg/virtualKubelet/reflection/generic"
	"github.com/liqotech/liqo/pkg/virtualKubelet/reflection/manager"
	"github.com/liqotech/liqo/pkg/virtualKubelet/reflection/options"
	"github.com/liqotech/liqo/pkg/virtualKubelet/reflection/workload"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	k8stesting "k8s.io/client-go/testing"
	metricsv1beta1 "k8s.io/metrics/pkg/client/clientset/versioned/typed/metrics/v1beta1"

	"github.com/capacitorset/liqo-broker/cmd/virtual-kubelet/internal/reflectiontest"
)

// ownField refers to the annotation as a user writes it.
func ownField() *corev1.ObjectFieldSelector {
	return &corev1.ObjectFieldSelector{FieldPath: "metadata.annotations['brokering.liqo.io/pod-ip']"}
}

func ownFile() *corev1.DownwardAPIProjection {
	return &corev1.DownwardAPIProjection{Items: []corev1.DownwardAPIVolumeFile{{Path: "ip", FieldRef: ownField()}}}
}

func TestLacksOwnAddress(t *testing.T) {
	asks := func(pod *corev1.Pod) {
		pod.Spec.Containers[0].Env = append(pod.Spec.Containers[0].Env,
			corev1.EnvVar{Name: "IP", ValueFrom: &corev1.EnvVarSource{FieldRef: ownField()}})
	}
	has := func(address string) func(*corev1.Pod) {
		return func(pod *corev1.Pod) {
			pod.Annotations = map[string]string{"brokering.liqo.io/pod-ip": address}
			asks(pod)
		}
	}
	cases := map[string]struct {
		reason, origin, ip string
		edit               func(*corev1.Pod)
		want               bool
	}{
		"Variable": {"a variable refers to it", "", "10.83.0.7", asks, true},
		"InitContainer": {"that of a container that runs before the others", "", "10.83.0.7", func(pod *corev1.Pod) {
			asks(pod)
			pod.Spec.InitContainers, pod.Spec.Containers = pod.Spec.Containers, nil
		}, true},
		"File": {"a file", "", "10.83.0.7", func(pod *corev1.Pod) {
			pod.Spec.Volumes = []corev1.Volume{
				{VolumeSource: corev1.VolumeSource{DownwardAPI: &corev1.DownwardAPIVolumeSource{Items: ownFile().Items}}},
			}
		}, true},
		"Projection": {"a file beside others", "", "10.83.0.7", func(pod *corev1.Pod) {
			pod.Spec.Volumes = access(authority, corev1.VolumeProjection{DownwardAPI: ownFile()})
		}, true},
		"Annotated": {
			"a pod that has it reads it some other way", "", "10.83.0.7", func(pod *corev1.Pod) {
				pod.Annotations = map[string]string{AnnotationPodIP: ""}
			}, true,
		},
		"NoAddress": {"there is nothing to tell yet", "", "", asks, false},
		"Told":      {"it knows", "", "10.83.0.7", has("10.83.0.7"), false},
		"Changed":   {"it is reached another way", "", "10.84.0.7", has("10.83.0.7"), true},
		"Lost":      {"the pod is being moved", "", "", has("10.83.0.7"), true},
		"DoesNotAsk": {
			"most pods do not want to know", "", "10.83.0.7", func(pod *corev1.Pod) { pod.Spec.Volumes = access(issuedToken, authority) }, false,
		},
		"InTransit":   {"the cluster that it belongs to tells it", "consumer", "10.83.0.7", asks, false},
		"InTransitOf": {"and knows better", "consumer", "10.83.0.7", has("10.99.0.7"), false},
		"Ended": {
			"nobody listens any more", "", "10.83.0.7", func(pod *corev1.Pod) { asks(pod); pod.Status.Phase = corev1.PodFailed }, false,
		},
		"Deleted": {
			"or soon does not", "", "10.83.0.7", func(pod *corev1.Pod) { asks(pod); pod.DeletionTimestamp = new(metav1.Now()) }, false,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			pod := reflectiontest.PodOf(tc.origin, tc.edit)
			pod.Status.PodIP = tc.ip
			if got := lacksOwnAddress(pod); got != tc.want {
				t.Errorf("%s: lacksOwnAddress() = %t, want %t", tc.reason, got, tc.want)
			}
		})
	}
}

// TestOwnAddress follows the address of a pod to what the foreign cluster is told, with Liqo's reflector.
func TestOwnAddress(t *testing.T) {
	t.Setenv("KUBERNETES_SERVICE_PORT", "443")
	reflectiontest.BeBroker()
	pod := reflectiontest.PodOf("", func(pod *corev1.Pod) {
		pod.Labels[consts.LocalPodLabelKey] = consts.LocalPodLabelValue // Liqo applies it, which the fake cannot.
		pod.Annotations = map[string]string{"color": "red"}
		pod.Spec.Volumes = access(corev1.VolumeProjection{DownwardAPI: ownFile()})
	})
	pods := workload.NewPodReflector(nil, func(string) metricsv1beta1.PodMetricsInterface { return nil }, endpointIPAM{},
		&workload.PodReflectorConfig{APIServerSupport: forge.APIServerSupportDisabled}, &generic.ReflectorConfig{Type: consts.CustomLiqo})
	told := &OwnAddress{Reflector: &transit{Reflector: reflectiontest.Unstarted(pods)}, log: testr.New(t)}
	c := reflectiontest.Start(t, told, pods.NewNamespaced, pod)
	var refused atomic.Bool
	c.Local.PrependReactor("patch", "pods", func(k8stesting.Action) (bool, runtime.Object, error) {
		return refused.CompareAndSwap(false, true), nil, errors.New("try again")
	})
	tells := func(address string) {
		t.Helper()
		current, err := c.Local.CoreV1().Pods("twin").Get(t.Context(), "web", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		current.Status.PodIP = address
		if _, err := c.Local.CoreV1().Pods("twin").UpdateStatus(t.Context(), current, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
		reflectiontest.Eventually(t, func() bool {
			if err := c.Handle(t.Context()); err != nil {
				t.Fatal(err)
			}
			shadow, err := c.RemoteLiqo.VirtualkubeletV1alpha1().ShadowPods("twin-broker").Get(t.Context(), "web", metav1.GetOptions{})
			if err != nil {
				t.Fatal(err)
			}
			got, ok := shadow.Annotations["brokering.liqo.io/pod-ip"]
			return ok && got == address && shadow.Annotations["color"] == "red"
		})
	}
	tells("10.83.0.7")
	tells("10.84.0.7")
	tells("")
	if !refused.Load() {
		t.Error("no call was refused")
	}
	for _, action := range c.Local.Actions() {
		patch, ok := action.(k8stesting.PatchAction)
		if ok && action.GetResource().Resource == "pods" && action.GetSubresource() == "" &&
			string(patch.GetPatch()) == `{"metadata":{"annotations":{"brokering.liqo.io/pod-ip":""},"uid":"1"}}` {
			return
		}
	}
	t.Errorf("no patch names the UID of the pod: %v", c.Local.Actions())
}

// startless is a reflector that does nothing when it starts.
type startless struct{ manager.Reflector }

func (startless) Start(context.Context, *options.ReflectorOpts) {}

// TestOwnAddressEnds ends when the context does.
func TestOwnAddressEnds(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	told := &OwnAddress{Reflector: startless{}, log: testr.New(t)}
	client := fake.NewSimpleClientset()
	told.Start(ctx, options.New(client, informers.NewSharedInformerFactory(client, 0).Core().V1().Pods()))
	stop()
	done := make(chan struct{})
	go func() {
		told.Join()
		close(done)
	}()
	select {
	case <-done:
	case <-time.After(10 * time.Second):
		t.Error("it goes on")
	}
}
