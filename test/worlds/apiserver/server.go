// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

// Package apiserver keeps objects as an API server does, and all that they ever were, for the caches of controllers that are behind. The
// fake client of controller-runtime has no history, gives an object that is made again the resourceVersion of the one before, and counts no
// generations.
//
// It does not know controllers, and injects no faults: those are the worlds'.
package apiserver

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Server keeps objects. It is for one goroutine at a time. Its errors are those of package apierrors.
type Server struct {
	now     func() time.Time
	objects map[id]client.Object
	history map[string][]change // By kind.
	version int
}

// id names an object.
type id struct{ kind, namespace, name string }

// change is what an object became; nil if it went.
type change struct {
	id
	object client.Object
}

// New returns a Server without objects. Now is its clock.
func New(now func() time.Time) *Server {
	return &Server{now: now, objects: map[id]client.Object{}, history: map[string][]change{}}
}

// kindOf returns the kind of an object, or of the items of a list.
func kindOf(o runtime.Object) string {
	kind := o.GetObjectKind().GroupVersionKind().Kind
	switch o.(type) {
	case *metav1.PartialObjectMetadata, *metav1.PartialObjectMetadataList:
	default:
		kind = reflect.TypeOf(o).Elem().Name()
	}
	return strings.TrimSuffix(kind, "List")
}

func idOf(o client.Object) id { return id{kindOf(o), o.GetNamespace(), o.GetName()} }

func (i id) resource() schema.GroupResource { return schema.GroupResource{Resource: i.kind} }

func (i id) conflict(why string) error {
	return apierrors.NewConflict(i.resource(), i.name, errors.New(why))
}

func (i id) notFound() error { return apierrors.NewNotFound(i.resource(), i.name) }

// Version counts the changes of all objects: it grows whenever one does.
func (s *Server) Version() int { return s.version }

// Stored returns an object of the kind and name of another as it is stored, which must not be changed; nil if there is none.
func (s *Server) Stored(like client.Object) client.Object { return s.objects[idOf(like)] }

// store keeps an object in its next version.
func (s *Server) store(i id, o client.Object) {
	s.version++
	o.SetResourceVersion(fmt.Sprint(s.version))
	s.objects[i] = o
	s.history[i.kind] = append(s.history[i.kind], change{i, o})
}

// Drop removes an object at once.
func (s *Server) Drop(o client.Object) {
	i := idOf(o)
	if s.objects[i] == nil {
		return
	}
	s.version++
	delete(s.objects, i)
	s.history[i.kind] = append(s.history[i.kind], change{i, nil})
}

// Create creates an object with its status, and makes it what is stored.
func (s *Server) Create(o client.Object) error {
	i := idOf(o)
	if s.objects[i] != nil {
		return apierrors.NewAlreadyExists(i.resource(), i.name)
	}
	o.SetUID(types.UID(fmt.Sprint("uid-", s.version+1)))
	o.SetGeneration(1)
	o.SetCreationTimestamp(metav1.NewTime(s.now()))
	s.store(i, written(o))
	assign(o, s.objects[i])
	return nil
}

// Update changes an object, or only its status, and makes it what is stored. A write that changes nothing makes no version. One that is
// being deleted goes when it has no finalizer any more.
func (s *Server) Update(o client.Object, status bool) error {
	i := idOf(o)
	is := s.objects[i]
	switch {
	case is == nil:
		return i.notFound()
	case o.GetUID() != "" && o.GetUID() != is.GetUID():
		return i.conflict("another UID")
	case o.GetResourceVersion() != "" && o.GetResourceVersion() != is.GetResourceVersion():
		return i.conflict("it has changed")
	}
	next := merged(is, written(o), status)
	if !equality.Semantic.DeepEqual(next, is) {
		if !equality.Semantic.DeepEqual(field(next, "Spec"), field(is, "Spec")) {
			next.SetGeneration(is.GetGeneration() + 1)
		}
		s.store(i, next)
	}
	assign(o, s.objects[i])
	if next.GetDeletionTimestamp() != nil && len(is.GetFinalizers()) > 0 && len(next.GetFinalizers()) == 0 {
		s.Drop(next)
	}
	return nil
}

// merged returns what an update makes of an object as it is.
func merged(is, wanted client.Object, status bool) client.Object {
	from, to := wanted, is.DeepCopyObject().(client.Object)
	if !status {
		from, to = is, wanted
	}
	if kept := field(from, "Status"); kept != nil {
		reflect.ValueOf(to).Elem().FieldByName("Status").Set(reflect.ValueOf(kept))
	}
	to.SetUID(is.GetUID())
	to.SetResourceVersion(is.GetResourceVersion())
	to.SetGeneration(is.GetGeneration())
	to.SetCreationTimestamp(is.GetCreationTimestamp())
	to.SetDeletionTimestamp(is.GetDeletionTimestamp())
	return to
}

// field returns a field of an object; nil if it has none of that name.
func field(o client.Object, name string) any {
	if value := reflect.ValueOf(o).Elem().FieldByName(name); value.IsValid() {
		return value.Interface()
	}
	return nil
}

// Patch changes an object, or only its status, by a strategic merge patch, or by a JSON merge patch, which is what others are taken for.
func (s *Server) Patch(o client.Object, patch client.Patch, status bool) error {
	i := idOf(o)
	is := s.objects[i]
	if is == nil {
		return i.notFound()
	}
	data, err := patch.Data(o)
	if err != nil {
		return err
	}
	text := textOf(is)
	if patch.Type() == types.StrategicMergePatchType {
		if text, err = strategicpatch.StrategicMergePatch(text, data, o); err != nil {
			return err
		}
	} else {
		var patched, changes map[string]any
		if err := errors.Join(json.Unmarshal(text, &patched), json.Unmarshal(data, &changes)); err != nil {
			return err
		}
		merge(patched, changes)
		if text, err = json.Marshal(patched); err != nil {
			return err
		}
	}
	next := read(o, text)
	if err := s.Update(next, status); err != nil {
		return err
	}
	assign(o, next)
	return nil
}

// merge applies a JSON merge patch (RFC 7396).
func merge(to, changes map[string]any) {
	for key, value := range changes {
		object, is := value.(map[string]any)
		switch {
		case value == nil:
			delete(to, key)
		case is:
			below, _ := to[key].(map[string]any)
			if below == nil {
				below = map[string]any{}
			}
			merge(below, object)
			to[key] = below
		default:
			to[key] = value
		}
	}
}

// Delete removes an object. One with finalizers, and one that is to end gracefully unless it is forced to, is only marked.
func (s *Server) Delete(o client.Object, graceful bool, options *client.DeleteOptions) error {
	i := idOf(o)
	is := s.objects[i]
	if is == nil {
		return i.notFound()
	}
	if p := options.Preconditions; p != nil {
		if p.UID != nil && *p.UID != is.GetUID() {
			return i.conflict("another UID")
		}
		if p.ResourceVersion != nil && *p.ResourceVersion != is.GetResourceVersion() {
			return i.conflict("it has changed")
		}
	}
	forced := !graceful || options.GracePeriodSeconds != nil && *options.GracePeriodSeconds == 0
	switch {
	case forced && len(is.GetFinalizers()) == 0:
		s.Drop(is)
	case is.GetDeletionTimestamp() == nil:
		next := is.DeepCopyObject().(client.Object) //nolint:revive // A copy is of the same type.
		now := metav1.NewTime(s.now().Truncate(time.Second))
		next.SetDeletionTimestamp(&now)
		s.store(i, next)
	}
	return nil
}

// Backup is all objects as they were.
type Backup map[id]client.Object

// Backup returns all objects as they are.
func (s *Server) Backup() Backup { return maps.Clone(s.objects) }

// Restore brings back the objects of a backup, in new versions, and removes all others.
func (s *Server) Restore(backup Backup) {
	for _, i := range sorted(s.objects) {
		if backup[i] == nil {
			s.Drop(s.objects[i])
		}
	}
	for _, i := range sorted(backup) {
		s.store(i, backup[i].DeepCopyObject().(client.Object))
	}
}

func sorted(objects map[id]client.Object) []id {
	return slices.SortedFunc(maps.Keys(objects), func(a, b id) int {
		return cmp.Or(cmp.Compare(a.kind, b.kind), cmp.Compare(a.namespace, b.namespace), cmp.Compare(a.name, b.name))
	})
}

// written returns a copy of an object as it is read from what was written.
func written(o client.Object) client.Object { return read(o, textOf(o)) }

func textOf(o client.Object) []byte {
	text, err := json.Marshal(o)
	if err != nil {
		panic(err)
	}
	return text
}

// read returns an object of the same type.
func read(like client.Object, text []byte) client.Object {
	o := reflect.New(reflect.TypeOf(like).Elem()).Interface().(client.Object) //nolint:revive // It is of the same type.
	if err := json.Unmarshal(text, o); err != nil {
		panic(err)
	}
	return o
}

// assign copies an object into one of the same type, or its metadata into one that has no more.
func assign(to, from client.Object) {
	if partial, is := to.(*metav1.PartialObjectMetadata); is {
		if from, is := from.(*metav1.PartialObjectMetadata); is {
			from.DeepCopyInto(partial)
			return
		}
		metadata := reflect.ValueOf(from).Elem().FieldByName("ObjectMeta").Addr().Interface().(*metav1.ObjectMeta) //nolint:revive // All objects have it.
		metadata.DeepCopyInto(&partial.ObjectMeta)
		return
	}
	reflect.ValueOf(to).Elem().Set(reflect.ValueOf(from.DeepCopyObject()).Elem())
}
