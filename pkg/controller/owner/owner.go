// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

// Package owner ties the objects of the broker to the foreign clusters that they
// stand for, so that Kubernetes removes the one with the other. It does not know
// what the objects say.
package owner

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/capacitorset/liqo-broker/pkg/liqo"
)

// Create makes an object that a foreign cluster owns. One that exists already
// stays as it is.
func Create(ctx context.Context, c client.Client, fc *liqo.ForeignCluster, object client.Object) error {
	if err := set(c, fc, object); err != nil {
		return err
	}
	if err := c.Create(ctx, object); err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("create %T %s: %w", object, object.GetName(), err)
	}
	return nil
}

// Ensure makes a foreign cluster an owner of an object, one made by hand too. It
// does nothing without a foreign cluster.
func Ensure[T interface {
	client.Object
	DeepCopy() T
}](ctx context.Context, c client.Client, fc *liqo.ForeignCluster, object T) error {
	if fc == nil {
		return nil
	}
	before := object.DeepCopy()
	if err := set(c, fc, object); err != nil {
		return err
	}
	if equality.Semantic.DeepEqual(before.GetOwnerReferences(), object.GetOwnerReferences()) {
		return nil
	}
	if err := c.Patch(ctx, object, client.MergeFrom(before)); err != nil {
		return fmt.Errorf("patch the owner of %T %s: %w", object, object.GetName(), err)
	}
	return nil
}

func set(c client.Client, fc *liqo.ForeignCluster, object client.Object) error {
	if err := controllerutil.SetOwnerReference(fc, object, c.Scheme()); err != nil {
		return fmt.Errorf("set the owner of %T %s: %w", object, object.GetName(), err)
	}
	return nil
}
