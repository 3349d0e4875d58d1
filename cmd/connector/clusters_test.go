// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"maps"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/cache/informertest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
	v09 "github.com/capacitorset/liqo-broker/pkg/liqo/v09"
	"github.com/capacitorset/liqo-broker/pkg/liqo/v09/liqotest"
)

// counting counts lists.
type counting struct {
	client.Reader

	lists int
}

func (c *counting) List(ctx context.Context, into client.ObjectList, opts ...client.ListOption) error {
	c.lists++
	return c.Reader.List(ctx, into, opts...)
}

// TestClusters reads the clusters once after each change of one, and not after one of something else.
func TestClusters(t *testing.T) {
	api := fake.NewClientBuilder().WithScheme(liqotest.Scheme(t)).Build()
	informers := &informertest.FakeInformers{Scheme: api.Scheme()}
	reader, told := &counting{Reader: api}, 0
	c, err := followClusters(t.Context(), informers, reader, func() { told++ })
	if err != nil {
		t.Fatal(err)
	}
	informer, err := informers.FakeInformerFor(t.Context(), &v09.ForeignCluster{})
	if err != nil {
		t.Fatal(err)
	}
	is := func(step string, changes int, want map[cluster.ID]bool) {
		t.Helper()
		for range 3 {
			if got, err := c.get(t.Context()); err != nil || !maps.Equal(got, want) {
				t.Errorf("%s: the clusters are %v, %v, want %v", step, got, err, want)
			}
		}
		if told != changes || reader.lists != changes+1 {
			t.Errorf("%s: told %d times, read %d times, want %d and one more", step, told, reader.lists, changes)
		}
	}
	is("none", 0, map[cluster.ID]bool{})
	fc := liqotest.ForeignCluster(cluster.Identity{ID: "1", Name: "one"}, false, false)
	if err := api.Create(t.Context(), fc); err != nil {
		t.Fatal(err)
	}
	informer.Add(fc)
	is("known", 1, map[cluster.ID]bool{"1": false})
	before := fc.DeepCopy()
	v09.Provide(fc)
	if err := api.Update(t.Context(), fc); err != nil {
		t.Fatal(err)
	}
	informer.Update(before, fc)
	is("let in", 2, map[cluster.ID]bool{"1": true})
	before = fc.DeepCopy()
	liqotest.SetPeering(fc, false, true)
	informer.Update(before, fc)
	is("peered", 2, map[cluster.ID]bool{"1": true})
	if err := api.Delete(t.Context(), fc); err != nil {
		t.Fatal(err)
	}
	informer.Delete(fc)
	is("gone", 3, map[cluster.ID]bool{})
}
