// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

// Package snapshottest makes fake clients with the indexes that a reader reads by, which tell what is patched, providers that are lost, and
// decisions of policies. The clients know no other behaviour of an API server than controller-runtime's fake client does.
package snapshottest

import (
	"context"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/capacitorset/liqo-broker/pkg/api/v1alpha1"
	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
	v09 "github.com/capacitorset/liqo-broker/pkg/liqo/v09"
	"github.com/capacitorset/liqo-broker/pkg/liqo/v09/liqotest"
	"github.com/capacitorset/liqo-broker/pkg/snapshot"
)

// Lose makes a provider be out of reach since a time.
func Lose(p *v1alpha1.Provider, since time.Time) {
	meta.RemoveStatusCondition(&p.Status.Conditions, v1alpha1.ConditionReachable)
	meta.SetStatusCondition(&p.Status.Conditions, metav1.Condition{
		Type: v1alpha1.ConditionReachable, Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonNodesNotReady,
		LastTransitionTime: metav1.NewTime(since.Truncate(time.Second)),
	})
}

// Decision returns what a policy has decided for a consumer.
func Decision(policy *v1alpha1.PlacementPolicy, consumer cluster.ID, chosen ...cluster.ID) *v1alpha1.PlacementDecision {
	d := &v1alpha1.PlacementDecision{Policy: policy.Name}
	d.Name, d.Consumer = v1alpha1.DecisionName(policy.Name, string(consumer)), string(consumer)
	d.OwnerReferences = v1alpha1.OwnedBy("PlacementPolicy", policy)
	for _, id := range chosen {
		d.Chosen = append(d.Chosen, v1alpha1.ChosenProvider{ID: string(id)})
	}
	return d
}

// Reader returns one that reads Liqo 0.9 by a client, on a cluster that runs all modes.
func Reader(objects client.Reader, own cluster.ID) *snapshot.Reader {
	return snapshot.New(v09.Line{}, objects, own, nil)
}

// OnPatch has a function called before each patch of an object or of its status.
func OnPatch(called func(client.Object)) interceptor.Funcs {
	return interceptor.Funcs{
		Patch: func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, opts ...client.PatchOption) error {
			called(o)
			return c.Patch(ctx, o, p, opts...)
		},
		SubResourcePatch: func(
			ctx context.Context, c client.Client, sub string, o client.Object, p client.Patch, opts ...client.SubResourcePatchOption,
		) error {
			called(o)
			return c.SubResource(sub).Patch(ctx, o, p, opts...)
		},
	}
}

// NewClient returns a client that holds the objects.
func NewClient(tb testing.TB, funcs interceptor.Funcs, objects ...client.Object) client.WithWatch {
	tb.Helper()
	b := fake.NewClientBuilder().
		WithScheme(liqotest.Scheme(tb)).
		WithObjects(objects...).
		WithStatusSubresource(&v1alpha1.Provider{}, &v1alpha1.Consumer{}, &v1alpha1.PlacementPolicy{}, &v1alpha1.ProviderQuery{}).
		WithInterceptorFuncs(funcs)
	for _, i := range snapshot.Indexes(v09.Line{}) {
		b = b.WithIndex(i.Object, i.Field, i.Extract)
	}
	return b.Build()
}
