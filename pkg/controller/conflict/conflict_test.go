// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package conflict

import (
	"context"
	"errors"
	"fmt"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

func TestRequeue(t *testing.T) {
	boom := errors.New("boom")
	conflict := apierrors.NewConflict(schema.GroupResource{Resource: "nodes"}, "n", boom)
	cases := map[string]struct {
		reason  string
		err     error
		want    error
		requeue bool
	}{
		"None":     {reason: "Success stays success."},
		"Conflict": {reason: "A conflict, wrapped too, is tried again in silence.", err: fmt.Errorf("patch: %w", conflict), requeue: true},
		"Other":    {reason: "Other errors are shown.", err: boom, want: boom},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			r := Requeue(reconcile.Func(func(context.Context, reconcile.Request) (reconcile.Result, error) {
				return reconcile.Result{}, tc.err
			}))
			result, err := r.Reconcile(t.Context(), reconcile.Request{})
			if !errors.Is(err, tc.want) || result.Requeue != tc.requeue {
				t.Errorf("%s\nReconcile(): %+v, %v", tc.reason, result, err)
			}
		})
	}
}
