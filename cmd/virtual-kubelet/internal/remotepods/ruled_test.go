// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package remotepods

import (
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	vkv1alpha1 "github.com/liqotech/liqo/apis/virtualkubelet/v1alpha1"
	liqofake "github.com/liqotech/liqo/pkg/client/clientset/versioned/fake"
	liqoinformers "github.com/liqotech/liqo/pkg/client/informers/externalversions"
	"github.com/liqotech/liqo/pkg/virtualKubelet/forge"
	"github.com/liqotech/liqo/pkg/virtualKubelet/reflection/generic"
	"github.com/liqotech/liqo/pkg/virtualKubelet/reflection/options"
	"github.com/liqotech/liqo/pkg/virtualKubelet/reflection/workload"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/record"
	metricsv1beta1 "k8s.io/metrics/pkg/client/clientset/versioned/typed/metrics/v1beta1"

	"github.com/capacitorset/liqo-broker/cmd/virtual-kubelet/internal/reflectiontest"
)

// ruledClusters are a cluster and the foreign one, between which a virtual kubelet
// reflects pods of namespace twin.
type ruledClusters struct {
	t             *testing.T
	local, remote *fake.Clientset
	remoteLiqo    *liqofake.Clientset

	seen sync.Mutex
	// events are those that were recorded.
	events []*corev1.Event
}

// newRuled returns clusters with objects: the local pods, and the ShadowPods and pods of the
// foreign cluster.
func newRuled(t *testing.T, objects ...runtime.Object) *ruledClusters {
	t.Helper()
	var local, remote, shadows []runtime.Object
	for _, object := range objects {
		switch object := object.(type) {
		case *vkv1alpha1.ShadowPod:
			shadows = append(shadows, object)
		case *corev1.Pod:
			if object.Namespace == "twin" {
				local = append(local, object)
			} else {
				remote = append(remote, object)
			}
		}
	}
	return &ruledClusters{
		t: t, local: fake.NewSimpleClientset(local...), remote: fake.NewSimpleClientset(remote...),
		remoteLiqo: reflectiontest.NewLiqo(shadows...),
	}
}

// startRuled returns clusters with objects between which pods are reflected.
func startRuled(t *testing.T, objects ...runtime.Object) *ruledClusters {
	t.Helper()
	c := newRuled(t, objects...)
	c.start()
	return c
}

// start runs Liqo's reflector of pods, ruled. It must run in a bubble.
func (c *ruledClusters) start() {
	t := c.t
	t.Helper()
	events := record.NewBroadcaster()
	t.Cleanup(events.Shutdown)
	events.StartEventWatcher(func(event *corev1.Event) {
		c.seen.Lock()
		defer c.seen.Unlock()
		c.events = append(c.events, event)
	})
	pods := workload.NewPodReflector(nil, func(string) metricsv1beta1.PodMetricsInterface { return nil }, nil,
		&workload.PodReflectorConfig{APIServerSupport: forge.APIServerSupportDisabled}, &generic.ReflectorConfig{})
	reflector := NewRuled(pods, 1)

	// Without a period, informers wait for a channel that is not of the bubble.
	const resync = 1000 * time.Hour
	localFactory, remoteFactory := informers.NewSharedInformerFactory(c.local, resync), informers.NewSharedInformerFactory(c.remote, resync)
	liqoFactory := liqoinformers.NewSharedInformerFactory(c.remoteLiqo, resync)
	var synced atomic.Bool
	ready := synced.Load
	reflector.Start(t.Context(), options.New(c.local, localFactory.Core().V1().Pods()).WithEventBroadcaster(events).WithReadinessFunc(ready))
	forging := forge.NewForgingOpts(nil, nil)
	reflector.StartNamespace(options.NewNamespaced().
		WithLocal("twin", c.local, localFactory).WithLiqoLocal(liqofake.NewSimpleClientset(), nil).
		WithRemote("twin-broker", c.remote, remoteFactory).WithLiqoRemote(c.remoteLiqo, liqoFactory).
		WithEventBroadcaster(events).WithForgingOpts(&forging).WithReadinessFunc(ready))
	t.Cleanup(func() { time.Sleep(time.Second) }) // The queue has ended then.
	done := t.Context().Done()
	localFactory.Start(done)
	localFactory.WaitForCacheSync(done)
	remoteFactory.Start(done)
	liqoFactory.Start(done)
	remoteFactory.WaitForCacheSync(done)
	liqoFactory.WaitForCacheSync(done)
	synctest.Wait()
	synced.Store(true)
	c.after(startTime)
}

// startTime is what Liqo's queue takes to handle what it refused until all was known.
const startTime = time.Second

// after lets some time pass, and all be done that is to be done by then.
func (c *ruledClusters) after(passed time.Duration) {
	time.Sleep(passed)
	synctest.Wait()
}

// until lets time pass until some time after another one.
func (c *ruledClusters) until(since time.Time, passed time.Duration) {
	c.after(passed - time.Since(since))
}

// pod returns the status of a local pod.
func (c *ruledClusters) pod(name string) corev1.PodStatus {
	c.t.Helper()
	pod, err := c.local.CoreV1().Pods("twin").Get(c.t.Context(), name, metav1.GetOptions{})
	if err != nil {
		c.t.Fatal(err)
	}
	return pod.Status
}

// hasShadow reports whether the foreign cluster is to run a pod.
func (c *ruledClusters) hasShadow(name string) bool {
	c.t.Helper()
	_, err := c.remoteLiqo.VirtualkubeletV1alpha1().ShadowPods("twin-broker").Get(c.t.Context(), name, metav1.GetOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		c.t.Fatal(err)
	}
	return err == nil
}

// removeRemote does what the foreign cluster does when a ShadowPod is gone.
func (c *ruledClusters) removeRemote(name string) {
	c.t.Helper()
	if err := c.remote.CoreV1().Pods("twin-broker").Delete(c.t.Context(), name, metav1.DeleteOptions{}); err != nil {
		c.t.Fatal(err)
	}
	synctest.Wait()
}

// running returns a pod that runs since a time; it is a local one, or that of the foreign
// cluster.
func running(namespace string, since time.Time, edit func(*corev1.Pod)) *corev1.Pod {
	reflectiontest.BeBroker()
	pod := reflectiontest.PodOf("", func(pod *corev1.Pod) {
		pod.Namespace = namespace
		pod.CreationTimestamp = metav1.NewTime(since.Add(-time.Second))
		started := metav1.NewTime(since)
		pod.Status = corev1.PodStatus{
			Phase: corev1.PodRunning, StartTime: &started, HostIP: "10.0.0.9",
			Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}},
			ContainerStatuses: []corev1.ContainerStatus{{
				Name: "web", Ready: true, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: started}},
			}},
		}
	})
	if namespace != "twin" {
		pod.Labels = forge.ReflectionLabelsWithNodeName("liqo-provider")
	}
	edit(pod)
	return pod
}

// shadowOf returns the ShadowPod of a local pod.
func shadowOf(pod *corev1.Pod, edit func(*vkv1alpha1.ShadowPod)) *vkv1alpha1.ShadowPod {
	reflectiontest.BeBroker()
	forging := forge.NewForgingOpts(nil, nil)
	shadow := forge.RemoteShadowPod(pod, nil, "twin-broker", &forging)
	shadow.UID = "shadow"
	edit(shadow)
	return shadow
}

func unchanged[T any](*T) {}

// TestEndedStays starts a virtual kubelet when a pod has ended that the foreign cluster
// does not have any more.
func TestEndedStays(t *testing.T) {
	for _, phase := range []corev1.PodPhase{corev1.PodSucceeded, corev1.PodFailed, corev1.PodRunning} {
		t.Run(string(phase), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := startRuled(t, running("twin", time.Now(), func(pod *corev1.Pod) { pod.Status.Phase = phase }))
				if got, want := c.hasShadow("web"), phase == corev1.PodRunning; got != want {
					t.Errorf("the foreign cluster runs it again: %t, want %t", got, want)
				}
			})
		})
	}
}
