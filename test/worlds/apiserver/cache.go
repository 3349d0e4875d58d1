// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v09 "github.com/capacitorset/liqo-broker/pkg/liqo/v09"
	"github.com/capacitorset/liqo-broker/pkg/snapshot"
)

// Cache holds the objects of a Server as they were a while ago, each kind by its own time. It is for one goroutine at a time.
type Cache struct {
	server *Server
	kinds  map[string]*seen
	live   bool
}

// seen are the objects of a kind after so many changes.
type seen struct {
	objects map[id]client.Object
	changes int
}

var _ client.Reader = (*Cache)(nil)

// NewCache returns a cache that has seen everything. Live is whether it always has: it reads the server itself then.
func NewCache(s *Server, live bool) *Cache {
	c := &Cache{server: s, kinds: map[string]*seen{}, live: live}
	c.CatchUp()
	return c
}

// advance lets a cache see the next changes of a kind.
func (c *Cache) advance(kind string, changes int) {
	k := c.kinds[kind]
	if k == nil {
		k = &seen{objects: map[id]client.Object{}}
		c.kinds[kind] = k
	}
	history := c.server.history[kind]
	for ; changes > 0 && k.changes < len(history); changes-- {
		if next := history[k.changes]; next.object == nil {
			delete(k.objects, next.id)
		} else {
			k.objects[next.id] = next.object
		}
		k.changes++
	}
}

// CatchUp lets a cache see everything.
func (c *Cache) CatchUp() {
	for kind, history := range c.server.history {
		c.advance(kind, len(history))
	}
}

// Follow lets a cache see some of what has happened, and of some kinds nothing; the more so, the later it is, from 1 to 9.
func (c *Cache) Follow(r *rand.Rand, late int) {
	for _, kind := range slices.Sorted(maps.Keys(c.server.history)) {
		switch {
		case r.IntN(10) >= late:
			c.advance(kind, len(c.server.history[kind]))
		case r.IntN(2) == 0:
			c.advance(kind, r.IntN(6))
		}
	}
}

// Seen returns an object of the kind and name of another as the cache has it, which must not be changed; nil if it has none.
func (c *Cache) Seen(like client.Object) client.Object { return c.of(kindOf(like))[idOf(like)] }

// All returns the objects of another's kind as the cache has them, which must not be changed, in any order.
func (c *Cache) All(like client.Object) []client.Object {
	return slices.Collect(maps.Values(c.of(kindOf(like))))
}

// of returns the objects of a kind.
func (c *Cache) of(kind string) map[id]client.Object {
	if c.live || kind == "ConfigMap" { // The broker has no cache of these.
		c.advance(kind, len(c.server.history[kind]))
	}
	if c.kinds[kind] == nil {
		return nil
	}
	return c.kinds[kind].objects
}

// Get implements client.Reader.
func (c *Cache) Get(_ context.Context, key client.ObjectKey, o client.Object, _ ...client.GetOption) error {
	i := id{kindOf(o), key.Namespace, key.Name}
	found := c.of(i.kind)[i]
	if found == nil {
		return i.notFound()
	}
	assign(o, found)
	return nil
}

// List implements client.Reader. It knows labels, and the indexes of package snapshot.
func (c *Cache) List(_ context.Context, list client.ObjectList, options ...client.ListOption) error {
	wanted := (&client.ListOptions{}).ApplyOptions(options)
	var found []client.Object
	for i, o := range c.of(kindOf(list)) {
		if (wanted.Namespace == "" || i.namespace == wanted.Namespace) && selects(wanted, o) {
			found = append(found, o)
		}
	}
	slices.SortFunc(found, func(a, b client.Object) int {
		return cmp.Or(cmp.Compare(a.GetNamespace(), b.GetNamespace()), cmp.Compare(a.GetName(), b.GetName()))
	})
	items := make([]runtime.Object, len(found))
	for i, o := range found {
		if _, partial := list.(*metav1.PartialObjectMetadataList); partial {
			only := &metav1.PartialObjectMetadata{}
			assign(only, o)
			items[i] = only
			continue
		}
		items[i] = o.DeepCopyObject()
	}
	return meta.SetList(list, items)
}

// selects reports whether an object is what a list asks for.
func selects(wanted *client.ListOptions, o client.Object) bool {
	if by := wanted.LabelSelector; by != nil && !by.Matches(labels.Set(o.GetLabels())) {
		return false
	}
	if wanted.FieldSelector == nil {
		return true
	}
	for _, requirement := range wanted.FieldSelector.Requirements() {
		if !slices.Contains(indexed(o, requirement.Field), requirement.Value) {
			return false
		}
	}
	return true
}

// indexed returns the values by which an index finds an object.
func indexed(o client.Object, field string) []string {
	for _, index := range snapshot.Indexes(v09.Line{}) {
		if index.Field == field && reflect.TypeOf(index.Object) == reflect.TypeOf(o) {
			return index.Extract(o)
		}
	}
	panic(fmt.Sprintf("%T has no index %s", o, field))
}
