// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package sales

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/record"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/capacitorset/liqo-broker/pkg/api/connectorv1alpha1"
	"github.com/capacitorset/liqo-broker/pkg/trade/connector/capacity"
	"github.com/capacitorset/liqo-broker/pkg/trade/connector/clocktest"
	"github.com/capacitorset/liqo-broker/pkg/trade/core/contract"
	"github.com/capacitorset/liqo-broker/pkg/trade/negotiation"
)

// TestCoversSales checks what Sales say of what their seller lacks: those that it concerns, while it does.
func TestCoversSales(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := connectorv1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	sale := func(name string, state contract.State) *connectorv1alpha1.Sale {
		s := &connectorv1alpha1.Sale{ObjectMeta: metav1.ObjectMeta{Name: name}}
		s.Status.State, s.Status.Offer, s.Status.Record = string(state), "compute", "whole"
		return s
	}
	writes := 0
	api := fake.NewClientBuilder().WithScheme(scheme).WithStatusSubresource(&connectorv1alpha1.Sale{}).
		WithObjects(sale("short", contract.Active), sale("long", contract.Active)).WithInterceptorFuncs(interceptor.Funcs{
		// The cache keeps less of each than there is.
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			err := c.List(ctx, list, opts...)
			for i := range list.(*connectorv1alpha1.SaleList).Items {
				list.(*connectorv1alpha1.SaleList).Items[i].Status.Record = "less"
			}
			return err
		},
		SubResourceUpdate: func(ctx context.Context, c client.Client, sub string, o client.Object, opts ...client.SubResourceUpdateOption) error {
			writes++
			return c.SubResource(sub).Update(ctx, o, opts...)
		},
	}).Build()
	now, gap, told := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), capacity.Gap{}, record.NewFakeRecorder(100)
	c := coverer{log: logr.Discard(), cfg: Config{
		Client: api, Reader: api, Events: told,
		Applier: negotiation.Applier{Clock: clocktest.Func(func() time.Time { return now })},
		Covered: func(context.Context, time.Time) (capacity.Gap, error) { return gap, nil },
	}}
	says := func(name string) string {
		t.Helper()
		if err := c.look(t.Context()); err != nil {
			t.Fatal(err)
		}
		var is connectorv1alpha1.Sale
		if err := api.Get(t.Context(), client.ObjectKey{Name: name}, &is); err != nil {
			t.Fatal(err)
		}
		if is.Status.Record != "whole" {
			t.Errorf("what the cache has of %s is written over what there is: %s", name, is.Status.Record)
		}
		found := meta.FindStatusCondition(is.Status.Conditions, connectorv1alpha1.ConditionCovered)
		if found == nil {
			return ""
		}
		return fmt.Sprintf("%s %s %s", found.Status, found.Reason, found.Message)
	}
	if got := says("long"); got != "" || writes != 0 {
		t.Errorf("with all that it has sold: %q, in %d writes", got, writes)
	}
	gap = capacity.Gap{Short: corev1.ResourceList{"cpu": resource.MustParse("1")}, Sold: []capacity.Sold{{Sale: "long"}}, From: now}
	gap.Purchase = "early"
	if got := says("long"); !strings.HasPrefix(got, "False Uncovered Purchase early ends at 2026-01-02T03:04:05Z") ||
		!strings.Contains(got, "Offer compute") {
		t.Errorf("after what it was bought for: %s", got)
	}
	if got := says("short"); got != "" || writes != 1 {
		t.Errorf("one that ends before: %q, in %d writes", got, writes)
	}
	gap = capacity.Gap{Short: corev1.ResourceList{"cpu": resource.MustParse("1")}, Sold: []capacity.Sold{{Sale: "long"}, {Sale: "short"}}}
	for _, name := range []string{"long", "short"} {
		if got := says(name); !strings.HasPrefix(got, "False Overcommitted ") {
			t.Errorf("with more sold than there is, %s: %s", name, got)
		}
	}
	// Another amount is written nowhere: each pod of the cluster makes one.
	before := writes
	gap.Short = corev1.ResourceList{"cpu": resource.MustParse("2")}
	if says("long"); writes != before {
		t.Errorf("%d writes because the amount is another one", writes-before)
	}
	gap = capacity.Gap{}
	if got := says("long"); !strings.HasPrefix(got, "True Covered ") {
		t.Errorf("with all again: %s", got)
	}
	// A contract that is over says nothing of it.
	var over connectorv1alpha1.Sale
	if err := api.Get(t.Context(), client.ObjectKey{Name: "long"}, &over); err != nil {
		t.Fatal(err)
	}
	over.Status.State = string(contract.Ended)
	if err := api.Status().Update(t.Context(), &over); err != nil {
		t.Fatal(err)
	}
	if got := says("long"); got != "" {
		t.Errorf("when it is over: %s", got)
	}
	close(told.Events)
	kinds := map[string]int{}
	for event := range told.Events {
		kinds[strings.Join(strings.Fields(event)[:2], " ")]++
	}
	if kinds["Warning Uncovered"] != 1 || kinds["Warning Overcommitted"] != 2 || kinds["Normal Covered"] != 2 {
		t.Errorf("people are told %v", kinds)
	}
}

// TestCoversAgain has a look that fails be made again, and nothing after the end.
func TestCoversAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		looks := 0
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() {
			ended <- coverer{log: logr.Discard(), cfg: Config{
				Applier: negotiation.Applier{Clock: clocktest.Func(time.Now)},
				Covered: func(context.Context, time.Time) (capacity.Gap, error) {
					looks++
					return capacity.Gap{}, errors.New("no API server")
				},
			}}.Start(ctx)
		}()
		time.Sleep(coverAgain + time.Second) // In the bubble's time.
		synctest.Wait()
		stop()
		if err := <-ended; err != nil || looks != 2 {
			t.Errorf("%d looks, ended with %v", looks, err)
		}
	})
}
