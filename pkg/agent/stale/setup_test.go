// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package stale_test

import (
	"context"
	"reflect"
	"slices"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache/informertest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/config"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/capacitorset/liqo-broker/pkg/agent/stale"
	"github.com/capacitorset/liqo-broker/pkg/liqo/v1/api"
)

// kinds is a cache in which a test says what happens to objects, once their kind is watched.
type kinds struct {
	*informertest.FakeInformers

	mu       sync.Mutex
	handlers map[reflect.Type]toolscache.ResourceEventHandler
}

func (k *kinds) GetInformer(_ context.Context, o client.Object, _ ...cache.InformerGetOption) (cache.Informer, error) {
	return informer{kinds: k, kind: reflect.TypeOf(o)}, nil
}

// informer is that of one kind.
type informer struct {
	cache.Informer

	kinds *kinds
	kind  reflect.Type
}

func (i informer) AddEventHandlerWithOptions(
	h toolscache.ResourceEventHandler, _ toolscache.HandlerOptions,
) (toolscache.ResourceEventHandlerRegistration, error) {
	i.kinds.mu.Lock()
	defer i.kinds.mu.Unlock()
	i.kinds.handlers[i.kind] = h
	return synced{}, nil
}

type synced struct {
	toolscache.ResourceEventHandlerRegistration
}

func (synced) HasSynced() bool { return true }

// of returns what is told of a kind; it waits until somebody watches it.
func (k *kinds) of(t *testing.T, o client.Object) toolscache.ResourceEventHandler {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); time.Now().Before(deadline); time.Sleep(time.Millisecond) {
		k.mu.Lock()
		h := k.handlers[reflect.TypeOf(o)]
		k.mu.Unlock()
		if h != nil {
			return h
		}
	}
	t.Fatalf("nobody watches %T", o)
	return nil
}

// TestSetup has the controller look at a pod when the pod, its IP, or what says which nodes are a broker's changes, and at nothing else.
func TestSetup(t *testing.T) {
	// What it looks at.
	h := newHome()
	people := &api.IP{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "people"}}
	h.others = []client.Object{people}
	h.pod.Status.PodIP = h.ip.Spec.IP // There is nothing to delete.
	held, _ := h.start(t)
	looked := make(chan client.ObjectKey, 100)
	noting := interceptor.NewClient(held, interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
			if _, is := o.(*corev1.Pod); is {
				looked <- key
			}
			return c.Get(ctx, key, o, opts...)
		},
	})
	told := &kinds{
		FakeInformers: &informertest.FakeInformers{Scheme: held.Scheme()}, handlers: map[reflect.Type]toolscache.ResourceEventHandler{},
	}
	mgr, err := ctrl.NewManager(&rest.Config{Host: "https://192.0.2.1"}, ctrl.Options{
		Scheme: held.Scheme(), Controller: config.Controller{SkipNameValidation: new(true)},
		NewCache: func(*rest.Config, cache.Options) (cache.Cache, error) { return told, nil },
		Metrics:  metricsserver.Options{BindAddress: "0"},
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := stale.Setup(mgr, stale.Config{Client: noting, Live: held}); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ran := make(chan error, 1)
	go func() { ran <- mgr.Start(ctx) }()
	defer func() {
		cancel()
		if err := <-ran; err != nil {
			t.Error(err)
		}
	}()

	// What happens. It looks at one pod after the other: whatever it looks at before the last one is due to what happened.
	last := changed(h.pod, func(p *corev1.Pod) { p.Name = "last" })
	cases := map[string]struct {
		reason  string
		was, is client.Object
		looked  bool
	}{
		"PodIsThere": {"The program may have been away.", nil, h.pod, true},
		"PodIsShown": {"Its IP is stale from then on.", changed(h.pod, func(p *corev1.Pod) { p.Status.PodIP = "10.65.0.1" }), h.pod, true},
		"PodIsBound": {"It is on a node of a broker.", changed(h.pod, func(p *corev1.Pod) { p.Spec.NodeName = "" }), h.pod, true},
		"PodIsMade":  {"It has taken the place of another.", changed(h.pod, func(p *corev1.Pod) { p.UID = "former" }), h.pod, true},
		"PodIsReady": {"That changes no address.", changed(h.pod, func(p *corev1.Pod) {
			p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady}}
		}), h.pod, false},
		"PodIsGone": {"Its IP goes with it.", h.pod, nil, false},

		"IPIsMade":    {"Liqo may have made it by an address of before.", nil, h.ip, true},
		"IPIsWritten": {"It has become that of a pod.", changed(h.ip, func(ip *api.IP) { ip.OwnerReferences = nil }), h.ip, true},

		"Recorded": {"A broker may be known after its pods.", nil, h.record, true},
		"Said":     {"People call it a broker now.", changed(h.record, func(r *api.ForeignCluster) { r.Annotations = nil }), h.record, true},
		"Renamed":  {"It is another peer.", changed(h.record, func(r *api.ForeignCluster) { r.Spec.ClusterID = "other" }), h.record, true},
		"Seen": {"What else is said of it does not matter.", changed(h.record, func(r *api.ForeignCluster) {
			r.Labels = map[string]string{"a": "b"}
		}), h.record, false},

		"NodeIsMade": {"A node may be known after its pods.", nil, h.node, true},
		"NodeLeads":  {"It leads to a broker now.", changed(h.node, func(n *api.VirtualNode) { n.Spec.ClusterID = "other" }), h.node, true},
		"NodeIsGone": {"Of two of this name only a broker's may be left.", h.node, nil, true},
		"NodeIsSeen": {"What else is said of it does not matter.", changed(h.node, func(n *api.VirtualNode) {
			n.Labels = map[string]string{"a": "b"}
		}), h.node, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			switch {
			case tc.was == nil:
				told.of(t, tc.is).OnAdd(tc.is, false)
			case tc.is == nil:
				told.of(t, tc.was).OnDelete(tc.was)
			default:
				told.of(t, tc.is).OnUpdate(tc.was, tc.is)
			}
			told.of(t, last).OnAdd(last, false)
			var want, got []client.ObjectKey
			if tc.looked {
				want = append(want, request.NamespacedName)
			}
			for key := range looked {
				if key.Name == last.Name {
					break
				}
				got = append(got, key)
			}
			if !slices.Equal(got, want) {
				t.Errorf("%s It looks at %v, want %v", tc.reason, got, want)
			}
		})
	}
}

// changed returns another version of an object.
func changed[T interface {
	client.Object
	DeepCopy() T
}](o T, by func(T)) T {
	is := o.DeepCopy()
	is.SetResourceVersion("another") // What is the same version waits for what is not.
	by(is)
	return is
}
