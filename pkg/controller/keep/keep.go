// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

// Package keep makes the objects of the broker that stand for foreign clusters, and keeps
// them when Liqo forgets the cluster: with what people chose for it, which must count
// again when it is back. Who wants them gone deletes them.
//
// It does not know what the objects say.
package keep

import (
	"context"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capacitorset/liqo-broker/pkg/liqo"
)

// Create makes an object. One that exists already stays as it is.
func Create(ctx context.Context, c client.Client, object client.Object) error {
	if err := c.Create(ctx, object); err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("create %T %s: %w", object, object.GetName(), err)
	}
	return nil
}

// Ensure takes away the foreign clusters that own an object, as an earlier version of the
// broker made them: Kubernetes would remove it with them.
func Ensure[T interface {
	client.Object
	DeepCopy() T
}](ctx context.Context, c client.Client, object T) error {
	before := object.DeepCopy()
	object.SetOwnerReferences(slices.DeleteFunc(object.GetOwnerReferences(), func(o metav1.OwnerReference) bool {
		return o.Kind == liqo.KindForeignCluster
	}))
	if len(before.GetOwnerReferences()) == len(object.GetOwnerReferences()) {
		return nil
	}
	// The patch replaces the list of owners, so nobody else may have changed it.
	if err := c.Patch(ctx, object, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})); err != nil {
		return fmt.Errorf("patch the owners of %T %s: %w", object, object.GetName(), err)
	}
	return nil
}
