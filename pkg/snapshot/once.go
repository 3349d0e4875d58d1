// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package snapshot

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apilabels "k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/capacitorset/liqo-broker/pkg/liqo"
	"github.com/capacitorset/liqo-broker/pkg/liqo/line"
)

// Once returns what a Reader can read from that has no cache, and is to answer one question: it lists all objects of a kind the first time
// that it is asked for any, and has the Indexes. Of pods and nodes it has those that a broker's cache has, and ConfigMaps it reads one by
// one. It must not be used concurrently.
func Once(objects client.Client, of line.Line) client.Reader {
	return &once{Reader: objects, scheme: objects.Scheme(), indexes: Indexes(of), listed: map[string][]client.Object{}}
}

type once struct {
	client.Reader

	scheme  *runtime.Scheme
	indexes []line.Index
	// listed is all that there is of a kind. Of some there is only metadata.
	listed map[string][]client.Object
}

// Get implements client.Reader.
func (o *once) Get(ctx context.Context, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
	kind, err := apiutil.GVKForObject(object, o.scheme)
	if err != nil {
		return fmt.Errorf("find the kind of %T: %w", object, err)
	}
	list, err := o.scheme.New(kind.GroupVersion().WithKind(kind.Kind + "List"))
	all, is := list.(client.ObjectList)
	if _, single := object.(*corev1.ConfigMap); err != nil || !is || single {
		return o.Reader.Get(ctx, key, object, options...)
	}
	found, err := o.all(ctx, all)
	if err != nil {
		return err
	}
	for _, other := range found {
		if client.ObjectKeyFromObject(other) == key && reflect.TypeOf(other) == reflect.TypeOf(object) {
			reflect.ValueOf(object).Elem().Set(reflect.ValueOf(other.DeepCopyObject()).Elem())
			return nil
		}
	}
	return apierrors.NewNotFound(schema.GroupResource{Group: kind.Group, Resource: strings.ToLower(kind.Kind)}, key.Name)
}

// List implements client.Reader. What it returns shares memory with what it has listed.
func (o *once) List(ctx context.Context, list client.ObjectList, options ...client.ListOption) error {
	wanted := (&client.ListOptions{}).ApplyOptions(options)
	found, err := o.all(ctx, list)
	if err != nil {
		return err
	}
	var kept []runtime.Object
	for _, object := range found {
		matches := (wanted.Namespace == "" || object.GetNamespace() == wanted.Namespace) &&
			(wanted.LabelSelector == nil || wanted.LabelSelector.Matches(apilabels.Set(object.GetLabels())))
		if matches && wanted.FieldSelector != nil {
			if matches, err = o.has(object, wanted); err != nil {
				return err
			}
		}
		if matches {
			kept = append(kept, object)
		}
	}
	if err := meta.SetList(list, kept); err != nil {
		return fmt.Errorf("fill %T: %w", list, err)
	}
	return nil
}

// has reports whether an object is found by a field with an index.
func (o *once) has(object client.Object, wanted *client.ListOptions) (bool, error) {
	for _, field := range wanted.FieldSelector.Requirements() {
		known := false
		for _, index := range o.indexes {
			if index.Field != field.Field || reflect.TypeOf(index.Object) != reflect.TypeOf(object) {
				continue
			}
			known = true
			if !slices.Contains(index.Extract(object), field.Value) {
				return false, nil
			}
		}
		if !known {
			return false, fmt.Errorf("find %T by %s: there is no such index", object, field.Field)
		}
	}
	return true, nil
}

// all returns all objects of the kind of a list.
func (o *once) all(ctx context.Context, list client.ObjectList) ([]client.Object, error) {
	kind, err := apiutil.GVKForObject(list, o.scheme)
	if err != nil {
		return nil, fmt.Errorf("find the kind of %T: %w", list, err)
	}
	key := kind.String()
	var options []client.ListOption
	switch list.(type) {
	case *metav1.PartialObjectMetadataList:
		key += " metadata"
	case *corev1.PodList:
		options = append(options, client.MatchingLabelsSelector{Selector: liqo.ShadowPodSelector()})
	case *corev1.NodeList:
		options = append(options, client.MatchingLabels{liqo.LabelNodeType: liqo.NodeTypeVirtual})
	}
	if known, is := o.listed[key]; is {
		return known, nil
	}
	fresh := reflect.New(reflect.TypeOf(list).Elem()).Interface().(client.ObjectList) //nolint:revive // It is of the same type.
	fresh.GetObjectKind().SetGroupVersionKind(kind)
	if err := o.Reader.List(ctx, fresh, options...); err != nil {
		return nil, fmt.Errorf("list %T: %w", list, err)
	}
	objects := []client.Object{}
	if err := meta.EachListItem(fresh, func(item runtime.Object) error {
		if object, is := item.(client.Object); is {
			objects = append(objects, object)
		}
		return nil
	}); err != nil {
		return nil, fmt.Errorf("read %T: %w", list, err)
	}
	o.listed[key] = objects
	return objects, nil
}
