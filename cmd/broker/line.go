// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/capacitorset/liqo-broker/pkg/liqo/line"
	v09 "github.com/capacitorset/liqo-broker/pkg/liqo/v09"
	v1 "github.com/capacitorset/liqo-broker/pkg/liqo/v1"
)

// lines are those of Liqo that the daemon runs with.
func lines() []line.Line { return []line.Line{v09.Line{}, v1.Line{}} }

// addLines registers the kinds of all lines, before it is known which one runs: they have different groups or versions.
func addLines(s *runtime.Scheme) error {
	var errs []error
	for _, of := range lines() {
		errs = append(errs, of.AddToScheme(s))
	}
	return errors.Join(errs...)
}

var (
	errNoLiqo   = errors.New("the API server knows no Liqo: install Liqo v0.9.4, or v1.2.0 for a catalog, first (liqoctl install)")
	errTwoLiqos = errors.New("the API server has the kinds of Liqo 0.9 and of Liqo 1.x: delete the definitions of the one that does not run")
	errCatalog  = errors.New("with Liqo 1.x the broker is a catalog only: delete what deploy/ has installed, and apply deploy/catalog")
)

// findLine returns the line of Liqo whose records of peers the API server has.
func findLine(d discoverer, scheme *runtime.Scheme) (line.Line, error) {
	var found []line.Line
	for _, of := range lines() {
		kind, err := apiutil.GVKForObject(of.Kinds().Record, scheme)
		if err != nil {
			return nil, fmt.Errorf("find the kind of Liqo's records: %w", err)
		}
		list, err := d.ServerResourcesForGroupVersion(kind.GroupVersion().String())
		if apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("ask the API server for its resources in %s: %w", kind.GroupVersion(), err)
		}
		if slices.ContainsFunc(list.APIResources, func(r metav1.APIResource) bool { return r.Kind == kind.Kind }) {
			found = append(found, of)
		}
	}
	switch len(found) {
	case 0:
		return nil, errNoLiqo
	case 1:
		return found[0], nil
	default:
		return nil, errTwoLiqos
	}
}

// answers reports whether the API server asks the daemon about objects, with a line of Liqo: what it answers is about those of Liqo 0.9.
func answers(with line.Line) bool { return with.Name() == (v09.Line{}).Name() }

// hasPlugin reports whether Liqo asks the daemon what to offer, with a line of Liqo: 0.9 does, by its resource plugin. With 1.x consumers
// ask by objects, which a controller answers.
func hasPlugin(with line.Line) bool { return with.Name() == (v09.Line{}).Name() }

// mayRun returns an error unless the daemon can be what it is asked to be with a line of Liqo.
func (o *options) mayRun(with line.Line) error {
	if o.brokers() && !answers(with) {
		return errCatalog
	}
	return nil
}
