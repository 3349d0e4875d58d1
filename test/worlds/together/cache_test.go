// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package together

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capacitorset/liqo-broker/pkg/snapshot"
)

// cache holds the objects of an API server as they were a while ago, each kind by its own time.
type cache struct {
	server *apiServer
	kinds  map[string]*seen
	// live is whether it is the API server itself that is read.
	live bool
}

// seen are the objects of a kind after so many changes.
type seen struct {
	objects map[id]client.Object
	changes int
}

var _ client.Reader = (*cache)(nil)

func newCache(s *apiServer, live bool) *cache {
	c := &cache{server: s, kinds: map[string]*seen{}, live: live}
	c.catchUp()
	return c
}

// advance lets a cache see the next changes of a kind.
func (c *cache) advance(kind string, changes int) {
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

// catchUp lets a cache see everything.
func (c *cache) catchUp() {
	for kind, history := range c.server.history {
		c.advance(kind, len(history))
	}
}

// follow lets a cache see some of what has happened, and of some kinds nothing; the more so, the later it is, from 1 to 9.
func (c *cache) follow(r *rand.Rand, late int) {
	for _, kind := range slices.Sorted(maps.Keys(c.server.history)) {
		switch {
		case r.IntN(10) >= late:
			c.advance(kind, len(c.server.history[kind]))
		case r.IntN(2) == 0:
			c.advance(kind, r.IntN(6))
		}
	}
}

func (c *cache) of(kind string) map[id]client.Object {
	if c.live || kind == "ConfigMap" { // The broker has no cache of these.
		c.advance(kind, len(c.server.history[kind]))
	}
	if c.kinds[kind] == nil {
		return nil
	}
	return c.kinds[kind].objects
}

func (c *cache) Get(_ context.Context, key client.ObjectKey, o client.Object, _ ...client.GetOption) error {
	i := id{kindOf(o), key.Namespace, key.Name}
	found := c.of(i.kind)[i]
	if found == nil {
		return apierrors.NewNotFound(i.resource(), i.name)
	}
	assign(o, found)
	return nil
}

func (c *cache) List(_ context.Context, list client.ObjectList, options ...client.ListOption) error {
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
	for _, index := range snapshot.Indexes() {
		if index.Field == field && reflect.TypeOf(index.Object) == reflect.TypeOf(o) {
			return index.Extract(o)
		}
	}
	panic(fmt.Sprintf("%T has no index %s", o, field))
}
