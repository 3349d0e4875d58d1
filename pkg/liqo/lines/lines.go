// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

// Package lines finds out which line of Liqo's versions runs on a cluster, of those that this project knows.
//
// It does not know what a program does with one.
package lines

import (
	"errors"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/capacitorset/liqo-broker/pkg/liqo/line"
	v09 "github.com/capacitorset/liqo-broker/pkg/liqo/v09"
	v1 "github.com/capacitorset/liqo-broker/pkg/liqo/v1"
)

var (
	// ErrNone means that the API server has the kinds of no line.
	ErrNone = errors.New("the API server knows no Liqo: install Liqo v0.9.4, or v1.2.0 for a catalog, first (liqoctl install)")
	// ErrSeveral means that it has those of more than one.
	ErrSeveral = errors.New("the API server has the kinds of Liqo 0.9 and of Liqo 1.x: delete the definitions of the one that does not run")
)

// All returns the lines that are known, from the oldest.
func All() []line.Line { return []line.Line{v09.Line{}, v1.Line{}} }

// AddToScheme registers the kinds of all lines, for who does not know yet which one runs: they have different groups or versions.
func AddToScheme(s *runtime.Scheme) error {
	var errs []error
	for _, of := range All() {
		errs = append(errs, of.AddToScheme(s))
	}
	return errors.Join(errs...)
}

// Discoverer tells which resources the API server has. It is the part of client-go's discovery client that is used here.
type Discoverer interface {
	ServerResourcesForGroupVersion(groupVersion string) (*metav1.APIResourceList, error)
}

// Find returns the line whose records of peers the API server has. The scheme has the kinds of all of them. The error may be [ErrNone] or
// [ErrSeveral].
func Find(d Discoverer, scheme *runtime.Scheme) (line.Line, error) {
	return findServed(scheme, func(kind schema.GroupVersionKind) (bool, error) {
		list, err := d.ServerResourcesForGroupVersion(kind.GroupVersion().String())
		if apierrors.IsNotFound(err) {
			return false, nil
		}
		if err != nil {
			return false, fmt.Errorf("ask the API server for its resources in %s: %w", kind.GroupVersion(), err)
		}
		return slices.ContainsFunc(list.APIResources, func(r metav1.APIResource) bool { return r.Kind == kind.Kind }), nil
	})
}

// FindMapped returns what Find does, for who asks by a client and its mapper.
func FindMapped(m meta.RESTMapper) (line.Line, error) {
	scheme := runtime.NewScheme()
	if err := AddToScheme(scheme); err != nil {
		return nil, fmt.Errorf("register the kinds of Liqo: %w", err)
	}
	return findServed(scheme, func(kind schema.GroupVersionKind) (bool, error) {
		_, err := m.RESTMapping(kind.GroupKind(), kind.Version)
		if err != nil && !meta.IsNoMatchError(err) {
			return false, fmt.Errorf("ask the API server for Liqo's kinds: %w", err)
		}
		return err == nil, nil
	})
}

func findServed(scheme *runtime.Scheme, serves func(schema.GroupVersionKind) (bool, error)) (line.Line, error) {
	var found []line.Line
	for _, of := range All() {
		kind, err := apiutil.GVKForObject(of.Kinds().Record, scheme)
		if err != nil {
			return nil, fmt.Errorf("find the kind of Liqo's records: %w", err)
		}
		is, err := serves(kind)
		if err != nil {
			return nil, err
		}
		if is {
			found = append(found, of)
		}
	}
	switch len(found) {
	case 0:
		return nil, ErrNone
	case 1:
		return found[0], nil
	default:
		return nil, ErrSeveral
	}
}

// FindOldest returns what Find does, and of several lines the oldest: that is for who keeps the peers of that one in bounds, so that who
// installs the definitions of another one does not let them out. It reports whether there are several, for who has to say so.
func FindOldest(d Discoverer, scheme *runtime.Scheme) (oldest line.Line, several bool, err error) {
	found, err := Find(d, scheme)
	if errors.Is(err, ErrSeveral) {
		return All()[0], true, nil
	}
	return found, false, err
}
