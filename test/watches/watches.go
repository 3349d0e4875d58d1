// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

// Package watches runs controllers on a cache in which a test says what happens, so that it sees at what they look then. It does not know
// what they do.
package watches

import (
	"context"
	"reflect"
	"slices"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache/informertest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"

	"github.com/capacitorset/liqo-broker/pkg/daemon"
)

// patience is how long controllers may take to begin.
const patience = 20 * time.Second

// Cache is one in which a test says what happens. It may be used concurrently.
type Cache struct {
	*informertest.FakeInformers

	mu       sync.Mutex
	handlers map[reflect.Type][]toolscache.ResourceEventHandler
}

// Start runs what is set up until the test ends, and returns when all of some kinds are watched, each as often as it is named.
func Start(t *testing.T, scheme *runtime.Scheme, setup func(ctrl.Manager) error, kinds ...client.Object) *Cache {
	t.Helper()
	c := &Cache{FakeInformers: &informertest.FakeInformers{Scheme: scheme}, handlers: map[reflect.Type][]toolscache.ResourceEventHandler{}}
	mgr, err := daemon.NewManager(&rest.Config{Host: "https://192.0.2.1"}, ctrl.Options{
		Scheme: scheme, Controller: config.Controller{SkipNameValidation: new(true)},
		NewCache: func(*rest.Config, cache.Options) (cache.Cache, error) { return c, nil },
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := setup(mgr); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ran := make(chan error, 1)
	go func() { ran <- mgr.Start(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ran; err != nil {
			t.Error(err)
		}
	})
	for deadline := time.Now().Add(patience); ; time.Sleep(time.Millisecond) {
		missing := c.missing(kinds)
		if len(missing) == 0 {
			return c
		}
		if time.Now().After(deadline) {
			t.Fatalf("nobody watches %T", missing)
		}
	}
}

// missing returns which kinds are not watched as often as they are named.
func (c *Cache) missing(kinds []client.Object) []client.Object {
	c.mu.Lock()
	defer c.mu.Unlock()
	named := map[reflect.Type]int{}
	return slices.DeleteFunc(slices.Clone(kinds), func(o client.Object) bool {
		kind := reflect.TypeOf(o)
		named[kind]++
		return len(c.handlers[kind]) >= named[kind]
	})
}

// Happens tells who watches a kind that an object has become another version of it. Before is nil for one that is made, and after for one
// that is gone.
func (c *Cache) Happens(before, after client.Object) {
	of := after
	if of == nil {
		of = before
	}
	c.mu.Lock()
	handlers := slices.Clone(c.handlers[reflect.TypeOf(of)])
	c.mu.Unlock()
	for _, h := range handlers {
		switch {
		case before == nil:
			h.OnAdd(after, false)
		case after == nil:
			h.OnDelete(before)
		default:
			h.OnUpdate(before, after)
		}
	}
}

// GetInformer implements cache.Cache.
func (c *Cache) GetInformer(_ context.Context, o client.Object, _ ...cache.InformerGetOption) (cache.Informer, error) {
	return informer{cache: c, kind: reflect.TypeOf(o)}, nil
}

// informer is that of one kind.
type informer struct {
	cache.Informer

	cache *Cache
	kind  reflect.Type
}

func (i informer) AddEventHandlerWithOptions(
	h toolscache.ResourceEventHandler, _ toolscache.HandlerOptions,
) (toolscache.ResourceEventHandlerRegistration, error) {
	i.cache.mu.Lock()
	defer i.cache.mu.Unlock()
	i.cache.handlers[i.kind] = append(i.cache.handlers[i.kind], h)
	return synced{}, nil
}

// synced is what has told all that there is.
type synced struct {
	toolscache.ResourceEventHandlerRegistration
}

func (synced) HasSynced() bool { return true }

// Changed returns another version of an object.
func Changed[T interface {
	client.Object
	DeepCopy() T
}](o T, by func(T)) T {
	is := o.DeepCopy()
	is.SetResourceVersion("another") // What is the same version waits for what is not.
	by(is)
	return is
}
