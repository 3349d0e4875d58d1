// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package sales_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache/informertest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/capacitorset/liqo-broker/pkg/api/connectorv1alpha1"
	"github.com/capacitorset/liqo-broker/pkg/trade/connector/sales"
)

// stage is a manager of tests: it keeps the controller that is set up, and what is seen of Sales.
type stage struct {
	ctrl.Manager

	cache      *informertest.FakeInformers
	controller manager.Runnable
}

func (s *stage) Add(r manager.Runnable) error {
	s.controller = r
	return nil
}

func (s *stage) GetCache() cache.Cache                 { return s.cache }
func (s *stage) GetScheme() *runtime.Scheme            { return s.cache.Scheme }
func (*stage) GetControllerOptions() config.Controller { return config.Controller{} }
func (*stage) GetLogger() logr.Logger                  { return logr.Discard() }

// away is an API server that does not answer.
type away struct {
	client.Client

	// asked is when it was asked.
	asked []time.Time
}

func (a *away) Get(context.Context, client.ObjectKey, client.Object, ...client.GetOption) error {
	a.asked = append(a.asked, time.Now())
	return errors.New("no answer")
}

// TestRetries has a contract fail for hours, as while Liqo is away: the controller that is set up tries again within half a minute all the
// time.
func TestRetries(t *testing.T) {
	s := newSeller(t)
	synctest.Test(t, func(t *testing.T) {
		api := &away{Client: s.api}
		mgr := &stage{cache: &informertest.FakeInformers{Scheme: s.api.Scheme()}}
		if err := sales.Setup(mgr, sales.Config{
			Client: api, Reader: api, Applier: s.applier, Peerings: sales.NewPeerings(s.api, s.store, s.issuer()),
			Retention: sales.DefaultRetention(),
		}); err != nil {
			t.Fatal(err)
		}
		informer, err := mgr.cache.FakeInformerFor(t.Context(), &connectorv1alpha1.Sale{})
		if err != nil {
			t.Fatal(err)
		}
		informer.Synced = true
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- mgr.controller.Start(ctx) }()
		synctest.Wait()
		informer.Add(&connectorv1alpha1.Sale{ObjectMeta: metav1.ObjectMeta{Name: "s"}})
		time.Sleep(5 * time.Hour) // In the bubble's time.
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		time.Sleep(time.Second) // The queue ends.

		if len(api.asked) < 10 {
			t.Fatalf("tried %d times", len(api.asked))
		}
		first, last := api.asked[1].Sub(api.asked[0]), time.Duration(0)
		for i, at := range api.asked[1:] {
			if last = at.Sub(api.asked[i]); last > 30*time.Second {
				t.Fatalf("after %s it is tried again in %s", at.Sub(api.asked[0]), last)
			}
		}
		if first > time.Second || last < 10*time.Second {
			t.Errorf("it is tried again after %s, and then after %s", first, last)
		}
	})
}
