// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"errors"
	"reflect"
	"runtime"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	pkgruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capacitorset/liqo-broker/pkg/api/v1alpha1"
	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
	v09 "github.com/capacitorset/liqo-broker/pkg/liqo/v09"
	"github.com/capacitorset/liqo-broker/pkg/liqo/v09/liqotest"
)

// mostMiB is what the caches of the large federation may take.
const mostMiB = 300

// BenchmarkMemory fills informers that have the broker's transforms, and reports what
// is live afterwards. Without policies every namespace is on every provider.
func BenchmarkMemory(b *testing.B) {
	everywhere := large
	everywhere.chosen = 0
	for name, f := range map[string]federation{"ThreeProvidersEach": large, "AllProvidersEach": everywhere} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				total := 0.0
				for kind, mib := range f.memory(b) {
					b.ReportMetric(mib, kind+"-MiB")
					total += mib
				}
				b.ReportMetric(total, "live-MiB")
				if total > mostMiB {
					b.Errorf("the caches take %.0f MiB, want at most %d", total, mostMiB)
				}
			}
		})
	}
}

// TestMemoryOfOffloadings checks what one provider more costs in one namespace.
func TestMemoryOfOffloadings(t *testing.T) {
	const most = 160 // Bytes: the name twice, and the state in a map.
	f := federation{providers: 200, consumers: 1, namespaces: 200}
	selected := f.selected(0)
	live := held(t, &v09.NamespaceOffloading{}, f.namespaces, func(n int) client.Object { return f.offloading(n, selected) })
	if each := live / float64(f.namespaces*f.providers); each > most {
		t.Errorf("%.0f bytes for each provider of each namespace, want at most %d", each, most)
	}
}

// TestMemoryOfDecisions checks what one provider more costs in one decision.
func TestMemoryOfDecisions(t *testing.T) {
	const most = 64 // Bytes: the names are shared.
	f := federation{providers: 1000, consumers: 100, chosen: 1000}
	live := held(t, &v1alpha1.PlacementDecision{}, f.consumers, func(n int) client.Object {
		d := &v1alpha1.PlacementDecision{ObjectMeta: metav1.ObjectMeta{Name: v1alpha1.DecisionName("policy", string(f.consumer(n).ID))}}
		for i := range f.providers {
			p := f.provider(i)
			d.Chosen = append(d.Chosen, v1alpha1.ChosenProvider{ID: string(p.ID), Name: p.Name})
		}
		return d
	})
	if each := live / float64(f.consumers*f.providers); each > most {
		t.Errorf("%.0f bytes for each provider of each decision, want at most %d", each, most)
	}
}

// memory returns how many MiB the caches hold of each kind of object.
func (f federation) memory(tb testing.TB) map[string]float64 {
	tb.Helper()
	selected := make([][]cluster.Identity, f.consumers)
	for c := range selected {
		selected[c] = f.selected(c)
	}
	of := func(n int) []cluster.Identity { return selected[n%f.consumers] }
	const mib = 1 << 20
	return map[string]float64{
		"clusters": held(tb, &v09.ForeignCluster{}, f.providers,
			func(n int) client.Object { return liqotest.Discovered(f.provider(n), true) }) / mib,
		"offers":      held(tb, &v09.ResourceOffer{}, f.providers, func(n int) client.Object { return f.offer(n) }) / mib,
		"nodes":       held(tb, &corev1.Node{}, f.providers, func(n int) client.Object { return f.node(n) }) / mib,
		"tunnels":     held(tb, &v09.TunnelEndpoint{}, f.providers, func(n int) client.Object { return f.tunnel(n) }) / mib,
		"namespaces":  held(tb, &corev1.Namespace{}, f.namespaces, func(n int) client.Object { return f.twin(n) }) / mib,
		"offloadings": held(tb, &v09.NamespaceOffloading{}, f.namespaces, func(n int) client.Object { return f.offloading(n, of(n)) }) / mib,
		"pods": held(tb, &corev1.Pod{}, f.namespaces*f.pods, func(n int) client.Object {
			return f.pod(n/f.pods, n%f.pods, of(n/f.pods))
		}) / mib,
		"shadows": held(tb, v09.Line{}.Kinds().Shadow, f.namespaces*f.pods,
			func(n int) client.Object { return f.shadow(n/f.pods, n%f.pods) }) / mib,
	}
}

// held returns how many bytes an informer of one kind holds of some objects.
func held(tb testing.TB, kind client.Object, count int, object func(int) client.Object) float64 {
	tb.Helper()
	before := live()
	watcher := watch.NewFake()
	list := func(metav1.ListOptions) (pkgruntime.Object, error) {
		all := &corev1.List{ListMeta: metav1.ListMeta{ResourceVersion: "1"}}
		for n := range count {
			all.Items = append(all.Items, pkgruntime.RawExtension{Object: received(tb, kind, object(n))})
		}
		return all, nil
	}
	informer := toolscache.NewSharedIndexInformer(&toolscache.ListWatch{
		ListFunc: list, WatchFunc: func(options metav1.ListOptions) (watch.Interface, error) {
			if options.SendInitialEvents != nil {
				return nil, errors.New("this is an API server that has to be asked for a list")
			}
			return watcher, nil
		},
	}, kind, 0, toolscache.Indexers{toolscache.NamespaceIndex: toolscache.MetaNamespaceIndexFunc})
	if err := informer.SetTransform(transformOf(tb, kind)); err != nil {
		tb.Fatalf("set the transform of %T: %v", kind, err)
	}
	ctx, cancel := context.WithCancel(tb.Context())
	done := make(chan struct{})
	go func() { defer close(done); informer.Run(ctx.Done()) }()
	defer func() { cancel(); <-done }()
	if !toolscache.WaitForCacheSync(ctx.Done(), informer.HasSynced) || len(informer.GetStore().ListKeys()) != count {
		tb.Fatalf("the informer of %T has %d objects, want %d", kind, len(informer.GetStore().ListKeys()), count)
	}
	return live() - before
}

// received returns an object as it comes from the API server, with what the server
// notes of who wrote which field, and with memory of its own.
func received(tb testing.TB, kind, object client.Object) client.Object {
	tb.Helper()
	object.SetManagedFields([]metav1.ManagedFieldsEntry{
		{Manager: "liqo", FieldsType: "FieldsV1", FieldsV1: &metav1.FieldsV1{Raw: []byte(`{"f:metadata":{}}`)}},
	})
	text, err := json.Marshal(object)
	if err != nil {
		tb.Fatalf("marshal %T: %v", object, err)
	}
	copied := reflect.New(reflect.TypeOf(kind).Elem()).Interface().(client.Object)
	if err := json.Unmarshal(text, copied); err != nil {
		tb.Fatalf("unmarshal %T: %v", object, err)
	}
	return copied
}

// transformOf returns how the broker's cache changes objects of a kind.
func transformOf(tb testing.TB, kind client.Object) toolscache.TransformFunc {
	tb.Helper()
	options := cacheOptions(v09.Line{}, true, "")
	if _, metadata := kind.(*metav1.PartialObjectMetadata); metadata {
		kind = &v09.ShadowPod{}
	}
	for object, by := range options.ByObject {
		if reflect.TypeOf(object) == reflect.TypeOf(kind) {
			return by.Transform
		}
	}
	return options.DefaultTransform
}

// live returns how many bytes are live.
func live() float64 {
	runtime.GC()
	runtime.GC() // What the first has finalized.
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return float64(stats.HeapAlloc)
}
