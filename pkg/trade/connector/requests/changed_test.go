// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package requests

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/capacitorset/liqo-broker/pkg/api/connectorv1alpha1"
	"github.com/capacitorset/liqo-broker/pkg/trade/core/offer"
)

// queue remembers what is added, and after how long.
type queue struct {
	workqueue.TypedRateLimitingInterface[reconcile.Request]
	after map[string]time.Duration
}

func (q queue) AddAfter(request reconcile.Request, after time.Duration) {
	q.after[request.Name] = after
}

// TestChanged looks again at the requests that wait for an offer, and at no others, however often the catalog changes.
func TestChanged(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := connectorv1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(
		&connectorv1alpha1.CapacityRequest{ObjectMeta: metav1.ObjectMeta{Name: "waits"}},
		&connectorv1alpha1.CapacityRequest{
			ObjectMeta: metav1.ObjectMeta{Name: "served"}, Status: connectorv1alpha1.CapacityRequestStatus{Purchase: "p"},
		}).Build()
	r, err := New(Config{Client: c, Reader: c, Clock: clock.RealClock{}, Offers: func(offer.Filter) ([]Candidate, error) { return nil, nil }})
	if err != nil {
		t.Fatal(err)
	}
	added := queue{after: map[string]time.Duration{}}
	r.again(t.Context(), added)
	if len(added.after) != 1 || added.after["waits"] != changedPause {
		t.Errorf("looked at again: %v", added.after)
	}
}
