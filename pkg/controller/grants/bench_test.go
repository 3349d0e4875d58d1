// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package grants

import (
	"context"
	"fmt"
	"reflect"
	"testing"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"
	testingclock "k8s.io/utils/clock/testing"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capacitorset/liqo-broker/pkg/api/v1alpha1"
	"github.com/capacitorset/liqo-broker/pkg/core/capacity"
	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
	v1 "github.com/capacitorset/liqo-broker/pkg/liqo/v1"
	"github.com/capacitorset/liqo-broker/pkg/liqo/v1/api"
	"github.com/capacitorset/liqo-broker/pkg/snapshot"
	"github.com/capacitorset/liqo-broker/test/percentile"
)

// memory is a client that reads as fast as one with a cache: objects by kind, namespace and index.
type memory struct {
	client.Client

	kinds map[reflect.Type]toolscache.Indexer
}

const byNamespace = toolscache.NamespaceIndex

func newMemory(b *testing.B, objects ...client.Object) *memory {
	b.Helper()
	m := &memory{kinds: map[reflect.Type]toolscache.Indexer{}}
	for _, o := range objects {
		m.of(o)
	}
	for _, i := range snapshot.Indexes(v1.Line{}) {
		extract := func(o any) ([]string, error) { return i.Extract(o.(client.Object)), nil }
		if err := m.of(i.Object).AddIndexers(toolscache.Indexers{i.Field: extract}); err != nil {
			b.Fatal(err)
		}
	}
	for _, o := range objects {
		if err := m.of(o).Add(o); err != nil {
			b.Fatal(err)
		}
	}
	return m
}

func (m *memory) of(o any) toolscache.Indexer {
	kind := reflect.TypeOf(o).Elem()
	if m.kinds[kind] == nil {
		m.kinds[kind] = toolscache.NewIndexer(toolscache.MetaNamespaceKeyFunc,
			toolscache.Indexers{byNamespace: toolscache.MetaNamespaceIndexFunc})
	}
	return m.kinds[kind]
}

func (m *memory) Get(_ context.Context, key client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	name := key.String()
	if key.Namespace == "" {
		name = key.Name
	}
	o, found, err := m.of(into).GetByKey(name)
	if err != nil || !found {
		return errNotHere(key.Name)
	}
	reflect.ValueOf(into).Elem().Set(reflect.ValueOf(o).Elem())
	return nil
}

func errNotHere(name string) error { return apierrors.NewNotFound(schema.GroupResource{}, name) }

func (m *memory) List(_ context.Context, list client.ObjectList, options ...client.ListOption) error {
	items := reflect.ValueOf(list).Elem().FieldByName("Items")
	store := m.of(reflect.New(items.Type().Elem()).Interface())
	var found []any
	var err error
	switch o := (&client.ListOptions{}).ApplyOptions(options); {
	case o.FieldSelector != nil:
		wanted := o.FieldSelector.Requirements()[0]
		found, err = store.ByIndex(wanted.Field, wanted.Value)
	case o.Namespace != "":
		found, err = store.ByIndex(byNamespace, o.Namespace)
	default:
		found = store.List()
	}
	if err != nil {
		return err
	}
	objects := make([]runtime.Object, len(found))
	for i := range found {
		objects[i] = found[i].(runtime.Object)
	}
	return meta.SetList(list, objects)
}

func (m *memory) Status() client.SubResourceWriter { return statuses{memory: m} }

// statuses keep in a memory what is patched.
type statuses struct {
	client.SubResourceWriter

	memory *memory
}

func (s statuses) Patch(_ context.Context, o client.Object, _ client.Patch, _ ...client.SubResourcePatchOption) error {
	return s.memory.of(o).Update(o)
}

// BenchmarkReconcile looks at 100 consumers with 10 ResourceSlices each and 100 providers, when all is answered already: that is what each
// change of what is offered, and of a class of a provider, costs. With Many, one provider lists 1,000 classes.
func BenchmarkReconcile(b *testing.B) {
	for _, tc := range []struct {
		name    string
		classes int
	}{{"Few", 4}, {"Many", 1_000}} {
		b.Run(tc.name, func(b *testing.B) { benchmarkReconcile(b, tc.classes) })
	}
}

func benchmarkReconcile(b *testing.B, classes int) {
	b.Helper()
	const providers, consumers, asked = 100, 100, 10
	var objects []client.Object
	accounts := map[cluster.ID]capacity.Account{}
	for p := range providers {
		id := fmt.Sprintf("p%03d", p)
		given := bought(id, "nginx")
		for i := range 4 {
			given.Status.IngressClasses = append(given.Status.IngressClasses, api.IngressClass{Name: fmt.Sprint(id, "-i", i)})
			given.Status.LoadBalancerClasses = append(given.Status.LoadBalancerClasses, api.LoadBalancerClass{Name: fmt.Sprint(id, "-l", i)})
		}
		for i := len(given.Status.IngressClasses); p == 0 && i < classes; i++ {
			given.Status.IngressClasses = append(given.Status.IngressClasses, api.IngressClass{Name: fmt.Sprintf("0%05d", i)})
		}
		objects = append(append(objects, peer(id)...), provider(id, "4"), given)
		accounts[cluster.ID(id)] = capacity.Account{Capacity: amounts("4", "4Gi"), Offers: capacity.OffersAll}
	}
	for c := range consumers {
		id := fmt.Sprintf("c%03d", c)
		objects = append(objects, consumer(id, v1alpha1.NodesOne)...)
		for s := range int64(asked) {
			objects = append(objects, slice(id, fmt.Sprint("s", s), s, nil))
		}
	}
	m := newMemory(b, objects...)
	snap := capacity.NewSnapshot(accounts, nil, nil, nil)
	r := New(Config{
		Client: m, Reader: snapshot.New(v1.Line{}, m, own, nil), Recorder: record.NewFakeRecorder(2 * consumers * asked),
		Capacity: func(context.Context) (*capacity.Snapshot, error) { return snap, nil },
		Clock:    testingclock.NewFakePassiveClock(time.Unix(5_000, 0)),
	})
	ctrl.SetLogger(logr.Discard())
	all := func() {
		for c := range consumers {
			if _, err := r.Reconcile(b.Context(), ctrl.Request{NamespacedName: client.ObjectKey{Name: fmt.Sprintf("c%03d", c)}}); err != nil {
				b.Fatal(err)
			}
		}
	}
	all()
	percentile.Report(b, all)
}
