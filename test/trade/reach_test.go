// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package trade

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capacitorset/liqo-broker/pkg/api/connectorv1alpha1"
	"github.com/capacitorset/liqo-broker/pkg/liqo"
	v09 "github.com/capacitorset/liqo-broker/pkg/liqo/v09"
	"github.com/capacitorset/liqo-broker/pkg/trade/core/contract"
	"github.com/capacitorset/liqo-broker/test/federation"
	"github.com/capacitorset/liqo-broker/test/walk"
)

// hide has the liqo-auth of a cluster say that it is at a port where nobody is, or no longer. It waits until the connectors look again.
func hide(ctx context.Context, c *federation.Cluster, hidden bool) error {
	port := "null"
	if hidden {
		port = `"9"`
	}
	service := &corev1.Service{}
	service.Namespace, service.Name = liqo.DefaultNamespace, v09.AuthName
	patch := client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"annotations":{"liqo.io/override-port":`+port+`}}}`))
	if err := c.Patch(ctx, service, patch); err != nil {
		return err
	}
	time.Sleep(3 * time.Second)
	return nil
}

// TestNotReachable has a seller, and then a buyer, whose liqo-auth is not where it says: nothing is signed, and the Purchase says what is
// not reached. When it is, the same Purchase is signed.
func TestNotReachable(t *testing.T) {
	clean(t)
	publish(t, map[*federation.Cluster]string{fed.ProviderB: "0.10"})
	for _, tc := range []struct {
		hidden  *federation.Cluster
		says    string
		reserve bool
	}{
		{fed.ProviderB, "this cluster does not reach the seller's: liqo-auth at", false},
		{fed.Consumer, "the seller does not reach liqo-auth of cluster " + string(fed.Consumer.ID), true},
	} {
		t.Run(tc.hidden.Name, func(t *testing.T) {
			walk.AtEnd(t, func(ctx context.Context) error { return hide(ctx, tc.hidden, false) })
			if err := hide(t.Context(), tc.hidden, true); err != nil {
				t.Fatal(err)
			}
			p := place(t, fed.Consumer, fed.ProviderB, "compute", "small")
			eventually(t, 30*time.Second, func(ctx context.Context) error {
				if err := fed.Consumer.Is(ctx, p, p.Name, connectorv1alpha1.ConditionReady, connectorv1alpha1.ReasonNotReachable); err != nil {
					return err
				}
				said := meta.FindStatusCondition(p.Status.Conditions, connectorv1alpha1.ConditionReady).Message
				if !strings.Contains(said, tc.says) {
					return fmt.Errorf("it says %q, not %q", said, tc.says)
				}
				return nil
			})
			sale, err := life{seller: fed.ProviderB, purchase: p}.sale(t.Context())
			switch {
			case !tc.reserve && err == nil:
				t.Errorf("something is reserved: %+v, %v", sale, err)
			case tc.reserve && (err != nil || sale.Status.State != string(contract.Reserved)):
				t.Errorf("the sale is %+v, %v, and not only reserved", sale, err)
			}
			if tc.reserve {
				if err := hide(t.Context(), tc.hidden, false); err != nil {
					t.Fatal(err)
				}
				eventually(t, 40*time.Second, func(ctx context.Context) error {
					if err := fed.Consumer.Get(ctx, client.ObjectKeyFromObject(p), p); err != nil {
						return err
					}
					if state := contract.State(p.Status.State); state == contract.Reserved || state.Final() {
						return fmt.Errorf("the contract is %s", state)
					}
					return nil
				})
			}
			if err := fed.Consumer.Delete(t.Context(), p); err != nil {
				t.Fatal(err)
			}
			eventually(t, 2*time.Minute, func(ctx context.Context) error { return fed.Consumer.HasNoPurchase(ctx, p.Name) })
		})
	}
}
