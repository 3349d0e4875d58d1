// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

// Package reflectiontest runs reflectors of a virtual kubelet between the fake API servers of a
// broker and its provider. It knows Liqo's reflectors, and none of ours.
package reflectiontest

import (
	"context"
	"sync"
	"testing"
	"time"

	discoveryv1alpha1 "github.com/liqotech/liqo/apis/discovery/v1alpha1"
	liqofake "github.com/liqotech/liqo/pkg/client/clientset/versioned/fake"
	liqoinformers "github.com/liqotech/liqo/pkg/client/informers/externalversions"
	"github.com/liqotech/liqo/pkg/consts"
	"github.com/liqotech/liqo/pkg/virtualKubelet/forge"
	"github.com/liqotech/liqo/pkg/virtualKubelet/reflection/manager"
	"github.com/liqotech/liqo/pkg/virtualKubelet/reflection/options"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"
	"k8s.io/utils/trace"

	"github.com/capacitorset/liqo-broker/cmd/virtual-kubelet/internal/events"
	"github.com/capacitorset/liqo-broker/pkg/liqo"
)

// PodOf returns a pod of namespace twin on the virtual node, offloaded here by an origin unless
// that is empty, as edit changes it.
func PodOf(origin string, edit func(*corev1.Pod)) *corev1.Pod {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "twin", Name: "web", UID: "1", Labels: map[string]string{"app": "web"}},
		Spec: corev1.PodSpec{
			NodeName:           "liqo-provider",
			ServiceAccountName: "default",
			Containers:         []corev1.Container{{Name: "web", Env: []corev1.EnvVar{{Name: "COLOR", Value: "red"}}}},
		},
	}
	if origin != "" {
		pod.Labels[forge.LiqoOriginClusterIDKey] = origin
		pod.Labels[liqo.LabelManagedBy] = liqo.ManagedByShadowPod
	}
	edit(pod)
	return pod
}

// Clusters are the broker with one object, and the provider.
type Clusters struct {
	// Local is the API server of the broker; Remote and RemoteLiqo are that of the provider.
	Local, Remote *fake.Clientset
	RemoteLiqo    *liqofake.Clientset
	// Events broadcasts the events that are told.
	Events record.EventBroadcaster
	// Seen is what the broker has seen of the provider.
	Seen informers.SharedInformerFactory
	// Handle reflects the object, whose name is web.
	Handle func(context.Context) error
}

// Start starts a reflector of the broker for the provider until the test ends, with some
// objects in the broker; namespaced makes its part for the namespaces twin and twin-broker.
func Start(
	t *testing.T, reflector manager.Reflector, namespaced func(*options.NamespacedOpts) manager.NamespacedReflector, objects ...runtime.Object,
) *Clusters {
	t.Helper()
	c := &Clusters{
		Local: fake.NewSimpleClientset(objects...), Remote: fake.NewSimpleClientset(),
		RemoteLiqo: NewLiqo(), Events: record.NewBroadcaster(),
	}
	t.Cleanup(c.Events.Shutdown)
	handlers := func(options.Keyer, ...options.EventFilter) cache.ResourceEventHandler {
		return cache.ResourceEventHandlerFuncs{}
	}
	localFactory, remoteFactory := informers.NewSharedInformerFactory(c.Local, 0), informers.NewSharedInformerFactory(c.Remote, 0)
	remoteLiqo := liqoinformers.NewSharedInformerFactory(c.RemoteLiqo, 0)

	c.Seen = remoteFactory

	reflector.Start(t.Context(), options.New(c.Local, localFactory.Core().V1().Pods()).
		WithHandlerFactory(handlers).WithEventBroadcaster(events.QuietInTransit(c.Events)))
	forgingOpts := forge.NewForgingOpts(nil, nil)
	opts := options.NewNamespaced().
		WithLocal("twin", c.Local, localFactory).WithLiqoLocal(NewLiqo(), nil).
		WithRemote("twin-broker", c.Remote, remoteFactory).WithLiqoRemote(c.RemoteLiqo, remoteLiqo).
		WithHandlerFactory(handlers).WithEventBroadcaster(events.QuietInTransit(c.Events)).WithForgingOpts(&forgingOpts).
		WithReflectionType(consts.DenyList)
	reflector.StartNamespace(opts)
	reflected := namespaced(opts)
	done := t.Context().Done()
	localFactory.Start(done)
	remoteFactory.Start(done)
	remoteLiqo.Start(done)
	localFactory.WaitForCacheSync(done)
	remoteFactory.WaitForCacheSync(done)
	remoteLiqo.WaitForCacheSync(done)
	c.Handle = func(ctx context.Context) error {
		return reflected.Handle(trace.ContextWithTrace(ctx, trace.New("test")), "web")
	}
	return c
}

// Unstarted returns a reflector whose parts for a namespace the test makes itself.
func Unstarted(reflector manager.Reflector) manager.Reflector { return unstarted{reflector} }

type unstarted struct{ manager.Reflector }

// StartNamespace does nothing.
func (unstarted) StartNamespace(*options.NamespacedOpts) {}

// beBroker says it once, because informers of tests that have ended may still read it.
var beBroker = sync.OnceFunc(func() {
	forge.Init(discoveryv1alpha1.ClusterIdentity{ClusterID: "broker", ClusterName: "broker"},
		discoveryv1alpha1.ClusterIdentity{ClusterID: "provider", ClusterName: "provider"}, "liqo-provider", "10.0.0.9")
})

// BeBroker says to Liqo's forge, which keeps it in package variables, that it runs in cluster
// broker and reflects to cluster provider.
func BeBroker() { beBroker() }

// Eventually waits until a condition is true.
func Eventually(t *testing.T, condition func() bool) {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Second); !condition(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("it does not become true")
		}
	}
}
