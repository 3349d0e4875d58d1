// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package trade

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capacitorset/liqo-broker/pkg/api/connectorv1alpha1"
	"github.com/capacitorset/liqo-broker/pkg/trade/core/contract"
	"github.com/capacitorset/liqo-broker/test/federation"
)

// A life is a contract that comes to every state, and what people do meanwhile.
type life struct {
	seller   *federation.Cluster
	purchase *connectorv1alpha1.Purchase
}

// sale returns what the seller has written of the contract. Its ID is the purchase's UID, and a number behind that if the offer had changed
// before the seller heard of the first order: then other terms were ordered. The newest one counts.
func (l life) sale(ctx context.Context) (*connectorv1alpha1.Sale, error) {
	var sales connectorv1alpha1.SaleList
	if err := l.seller.List(ctx, &sales); err != nil {
		return nil, err
	}
	found := slices.DeleteFunc(sales.Items, func(s connectorv1alpha1.Sale) bool {
		id, first := string(s.Spec.ContractID), string(l.purchase.UID)
		return id != first && !strings.HasPrefix(id, first+"-")
	})
	if len(found) == 0 {
		return nil, fmt.Errorf("%s has no sale of the contract", l.seller.Name)
	}
	newest := slices.MaxFunc(found, func(a, b connectorv1alpha1.Sale) int {
		one, other := a.Spec.ContractID, b.Spec.ContractID
		return cmp.Or(cmp.Compare(len(one), len(other)), cmp.Compare(one, other))
	})
	return &newest, nil
}

// course are the states that a life comes through.
var course = []contract.State{
	contract.Proposed, contract.Reserved, contract.Signed, contract.Provisioning, contract.Active, contract.Resizing, contract.Suspended,
	contract.Terminating, contract.Ended,
}

// comes waits until the seller has written that the contract is in a state, or already further, and looks as often as the client may.
func (l life) comes(ctx context.Context, state contract.State) error {
	last, deadline := "", time.Now().Add(time.Minute)
	for time.Now().Before(deadline) {
		s, err := l.sale(ctx)
		if err != nil {
			last = err.Error()
			continue
		}
		last = s.Status.State
		if at := slices.Index(course, contract.State(last)); at >= slices.Index(course, state) {
			return nil
		}
	}
	return fmt.Errorf("the contract does not come to be %s, but is %s", state, last)
}

// decide has somebody at the seller change the sale.
func (l life) decide(ctx context.Context, change func(*connectorv1alpha1.Sale)) error {
	return federation.Until(ctx, time.Minute, func(ctx context.Context) error {
		s, err := l.sale(ctx)
		if err != nil {
			return err
		}
		change(s)
		return l.seller.Update(ctx, s)
	})
}

// approve approves the terms that wait, which have a revision.
func (l life) approve(revision int64) func(context.Context) error {
	return func(ctx context.Context) error {
		return l.decide(ctx, func(s *connectorv1alpha1.Sale) {
			s.Spec.Decision, s.Spec.DecisionRevision = connectorv1alpha1.DecisionApprove, revision
		})
	}
}

func (l life) suspend(suspended bool) func(context.Context) error {
	return func(ctx context.Context) error {
		return l.decide(ctx, func(s *connectorv1alpha1.Sale) { s.Spec.Suspended = suspended })
	}
}

func (l life) resize(cpu string) func(context.Context) error {
	return func(ctx context.Context) error {
		return federation.Until(ctx, time.Minute, func(ctx context.Context) error {
			if err := fed.Consumer.Get(ctx, client.ObjectKeyFromObject(l.purchase), l.purchase); err != nil {
				return err
			}
			l.purchase.Spec.Resources = federation.Sold(cpu)
			return fed.Consumer.Update(ctx, l.purchase)
		})
	}
}

func (l life) end(ctx context.Context) error { return fed.Consumer.Delete(ctx, l.purchase) }

// node waits for a node of a size.
func (l life) node(cpu string) func(context.Context) error {
	return func(ctx context.Context) error {
		return federation.Until(ctx, time.Minute,
			func(ctx context.Context) error { return fed.Consumer.HasBought(ctx, l.seller, federation.Sold(cpu)) })
	}
}

// TestKilled buys from each provider. With one, the buyer's connector is killed whenever the contract comes to a state, and with the other
// the seller's. Either contract comes to every state, to the size that was agreed, and to an end of which nothing is left.
func TestKilled(t *testing.T) {
	clean(t)
	publish(t, map[*federation.Cluster]string{fed.ProviderA: "0.10", fed.ProviderB: "0.10"}, func(o *connectorv1alpha1.Offer) {
		o.Spec.Buyers = connectorv1alpha1.Buyers{Otherwise: connectorv1alpha1.VerdictAsk}
	})
	for _, side := range []struct {
		name           string
		killed, seller *federation.Cluster
	}{{"Buyer", fed.Consumer, fed.ProviderA}, {"Seller", fed.ProviderB, fed.ProviderB}} {
		t.Run(side.name, func(t *testing.T) {
			l := life{seller: side.seller, purchase: elastic(t, "killed-"+strings.ToLower(side.name), side.seller)}
			if err := fed.Consumer.Create(t.Context(), l.purchase); err != nil {
				t.Fatal(err)
			}
			for _, row := range []struct {
				at contract.State
				// then is what happens when the killed side is there again.
				then []func(context.Context) error
			}{
				{contract.Proposed, []func(context.Context) error{l.approve(1)}},
				{contract.Reserved, nil},
				{contract.Signed, nil},
				{contract.Provisioning, nil},
				{contract.Active, []func(context.Context) error{l.node("250m"), l.resize("500m")}},
				{contract.Resizing, []func(context.Context) error{l.approve(2), l.node("500m"), l.suspend(true)}},
				{contract.Suspended, []func(context.Context) error{l.suspend(false), l.node("500m"), l.end}},
				{contract.Terminating, nil},
			} {
				began := time.Now()
				dead := kill(t, l, side.killed, row.at)
				t.Logf("%-12s killed, dead in state %-12s %s", row.at, dead, time.Since(began).Round(time.Millisecond))
				for _, do := range row.then {
					if err := do(t.Context()); err != nil {
						t.Fatalf("after %s: %v", row.at, err)
					}
				}
			}
			eventually(t, 2*time.Minute, func(ctx context.Context) error {
				s, err := l.sale(ctx)
				if err == nil && s.Status.State != string(contract.Ended) {
					err = fmt.Errorf("the sale is %s", s.Status.State)
				}
				return errors.Join(err, fed.Consumer.HasParted(ctx, side.seller), fed.Consumer.HasNoPurchase(ctx, l.purchase.Name))
			})
		})
	}
}

// kill kills a connector when the contract has come to a state, replaces it, and returns the state in which the contract was while it was
// dead: it may have come further before the kill, and, if the seller lives, after it.
func kill(t *testing.T, l life, on *federation.Cluster, at contract.State) string {
	t.Helper()
	var victim *federation.Victim
	eventually(t, time.Minute, func(ctx context.Context) (err error) {
		victim, err = fed.Connector(on).Victim(ctx)
		return err
	})
	waiting := l.comes(t.Context(), at)
	if err := errors.Join(waiting, victim.Kill(t.Context())); err != nil {
		t.Fatal(err)
	}
	s, err := l.sale(t.Context())
	if err := errors.Join(err, victim.Replaced(t.Context())); err != nil {
		t.Fatal(err)
	}
	return s.Status.State
}
