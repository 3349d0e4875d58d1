// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package together

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// apiServer keeps objects as an API server does, and all that they ever were. The fake client of controller-runtime has no
// history, gives an object that is made again the resourceVersion of the one before, and counts no generations.
type apiServer struct {
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

func newAPIServer() *apiServer {
	return &apiServer{objects: map[id]client.Object{}, history: map[string][]change{}}
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

// store keeps an object in its next version.
func (s *apiServer) store(i id, o client.Object) {
	s.version++
	o.SetResourceVersion(fmt.Sprint(s.version))
	s.objects[i] = o
	s.history[i.kind] = append(s.history[i.kind], change{i, o})
}

// drop removes an object at once.
func (s *apiServer) drop(o client.Object) {
	i := idOf(o)
	if s.objects[i] == nil {
		return
	}
	s.version++
	delete(s.objects, i)
	s.history[i.kind] = append(s.history[i.kind], change{i, nil})
}

func (s *apiServer) create(o client.Object) error {
	i := idOf(o)
	if s.objects[i] != nil {
		return apierrors.NewAlreadyExists(i.resource(), i.name)
	}
	o.SetUID(types.UID(fmt.Sprint("uid-", s.version+1)))
	o.SetGeneration(1)
	o.SetCreationTimestamp(metav1.NewTime(time.Now()))
	s.store(i, fromMap(o, toMap(o)))
	assign(o, s.objects[i])
	return nil
}

// update changes an object, or only its status.
func (s *apiServer) update(o client.Object, status bool) error {
	i := idOf(o)
	is := s.objects[i]
	switch {
	case is == nil:
		return apierrors.NewNotFound(i.resource(), i.name)
	case o.GetUID() != "" && o.GetUID() != is.GetUID():
		return i.conflict("another UID")
	case o.GetResourceVersion() != "" && o.GetResourceVersion() != is.GetResourceVersion():
		return i.conflict("it has changed")
	}
	before, after := toMap(is), toMap(o)
	if status {
		after = maps.Clone(before)
		after["status"] = toMap(o)["status"]
	} else {
		after["status"] = before["status"]
		kept, metadata := before["metadata"].(map[string]any), after["metadata"].(map[string]any)
		for _, field := range []string{"uid", "resourceVersion", "generation", "creationTimestamp", "deletionTimestamp"} {
			metadata[field] = kept[field]
		}
	}
	next := fromMap(o, after)
	if !reflect.DeepEqual(toMap(next), toMap(is)) { // A write that changes nothing makes no version.
		if !reflect.DeepEqual(before["spec"], after["spec"]) {
			next.SetGeneration(is.GetGeneration() + 1)
		}
		s.store(i, next)
	}
	assign(o, s.objects[i])
	return nil
}

func (s *apiServer) patch(o client.Object, patch client.Patch, status bool) error {
	i := idOf(o)
	is := s.objects[i]
	if is == nil {
		return apierrors.NewNotFound(i.resource(), i.name)
	}
	data, err := patch.Data(o)
	if err != nil {
		return err
	}
	patched := toMap(is)
	if patch.Type() == types.StrategicMergePatchType {
		text, err := json.Marshal(is)
		if err != nil {
			return err
		}
		if text, err = strategicpatch.StrategicMergePatch(text, data, o); err != nil {
			return err
		}
		patched = map[string]any{}
		if err := json.Unmarshal(text, &patched); err != nil {
			return err
		}
	} else {
		var changes map[string]any
		if err := json.Unmarshal(data, &changes); err != nil {
			return err
		}
		merge(patched, changes)
	}
	next := fromMap(o, patched)
	if err := s.update(next, status); err != nil {
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

// delete removes an object or, unless it is forced to, lets its kubelet end it.
func (s *apiServer) delete(o client.Object, graceful bool, options *client.DeleteOptions) error {
	i := idOf(o)
	is := s.objects[i]
	if is == nil {
		return apierrors.NewNotFound(i.resource(), i.name)
	}
	if p := options.Preconditions; p != nil {
		if p.UID != nil && *p.UID != is.GetUID() {
			return i.conflict("another UID")
		}
		if p.ResourceVersion != nil && *p.ResourceVersion != is.GetResourceVersion() {
			return i.conflict("it has changed")
		}
	}
	switch {
	case !graceful || options.GracePeriodSeconds != nil && *options.GracePeriodSeconds == 0:
		s.drop(is)
	case is.GetDeletionTimestamp() == nil:
		next := is.DeepCopyObject().(client.Object)
		now := metav1.NewTime(time.Now().Truncate(time.Second))
		next.SetDeletionTimestamp(&now)
		s.store(i, next)
	}
	return nil
}

func toMap(o client.Object) map[string]any {
	text, err := json.Marshal(o)
	if err != nil {
		panic(err)
	}
	fields := map[string]any{}
	if err := json.Unmarshal(text, &fields); err != nil {
		panic(err)
	}
	return fields
}

// fromMap returns an object of the same type.
func fromMap(like client.Object, fields map[string]any) client.Object {
	text, err := json.Marshal(fields)
	if err != nil {
		panic(err)
	}
	o := reflect.New(reflect.TypeOf(like).Elem()).Interface().(client.Object)
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
		metadata := reflect.ValueOf(from).Elem().FieldByName("ObjectMeta").Addr().Interface().(*metav1.ObjectMeta)
		metadata.DeepCopyInto(&partial.ObjectMeta)
		return
	}
	reflect.ValueOf(to).Elem().Set(reflect.ValueOf(from.DeepCopyObject()).Elem())
}

// TestAPIServer looks at what the worlds rely on.
func TestAPIServer(t *testing.T) {
	s := newAPIServer()
	pod := waiting("a", "web", 1)
	if err := s.create(pod); err != nil {
		t.Fatal(err)
	}
	stale := pod.DeepCopy()
	pod.Spec.NodeName = "node"
	if err := s.update(pod, false); err != nil || pod.Generation != 2 {
		t.Errorf("update: %v, generation %d", err, pod.Generation)
	}
	locked := stale.DeepCopy()
	locked.Status.Phase = "Failed"
	if err := s.patch(locked, client.StrategicMergeFrom(stale, client.MergeFromWithOptimisticLock{}), true); !apierrors.IsConflict(err) {
		t.Errorf("a patch of an old version: %v", err)
	}
	if err := s.delete(pod, true, &client.DeleteOptions{}); err != nil || s.objects[idOf(pod)].GetDeletionTimestamp() == nil {
		t.Errorf("delete: %v", err)
	}
	s.drop(pod)
	again := waiting("a", "web", 1)
	if err := s.create(again); err != nil || again.UID == pod.UID || again.ResourceVersion == stale.ResourceVersion {
		t.Errorf("create again: %v, UID %s, version %s", err, again.UID, again.ResourceVersion)
	}
	old := &cache{server: s, kinds: map[string]*seen{}}
	old.advance("Pod", 1)
	if err := old.Get(context.Background(), client.ObjectKeyFromObject(pod), pod); err != nil || pod.UID != stale.UID || pod.Spec.NodeName != "" {
		t.Errorf("a cache with one change: %v, %v", err, pod)
	}
	if steps := slices.Collect(maps.Keys(old.kinds)); len(steps) != 1 {
		t.Errorf("it has kinds %v", steps)
	}
}
