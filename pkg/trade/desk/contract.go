// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package desk

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capacitorset/liqo-broker/pkg/api/connectorv1alpha1"
	"github.com/capacitorset/liqo-broker/pkg/api/v1alpha1"
	"github.com/capacitorset/liqo-broker/pkg/trade/account"
	"github.com/capacitorset/liqo-broker/pkg/trade/core/contract"
	"github.com/capacitorset/liqo-broker/pkg/trade/core/offer"
	"github.com/capacitorset/liqo-broker/pkg/trade/show"
)

// Errors of deeds.
var (
	// ErrOnlyBought: the cluster has sold by the contract, and the deed is the buyer's.
	ErrOnlyBought = errors.New("it was sold by this cluster: the buyer decides that")
	// ErrOnlySold: the cluster has bought by the contract, and the deed is the seller's.
	ErrOnlySold = errors.New("it was bought by this cluster: the seller decides that")
)

// Contract is a contract with its object: a Purchase or a Sale, of which the other one is nil. Deeds change the object in memory.
type Contract struct {
	show.Contract

	Purchase *connectorv1alpha1.Purchase
	Sale     *connectorv1alpha1.Sale
}

// Bought returns the contract of a Purchase, and Sold that of a Sale. They share the object.
func Bought(p *connectorv1alpha1.Purchase) Contract {
	return Contract{Contract: show.PurchaseOf(p), Purchase: p}
}

// Sold returns the contract of a Sale, which it shares.
func Sold(s *connectorv1alpha1.Sale) Contract { return Contract{Contract: show.SaleOf(s), Sale: s} }

// Contracts returns all contracts of a cluster: first what was bought, and in the order of the names.
func Contracts(ctx context.Context, reader client.Reader) ([]Contract, error) {
	var purchases connectorv1alpha1.PurchaseList
	if err := reader.List(ctx, &purchases); err != nil {
		return nil, fmt.Errorf("list purchases: %w", err)
	}
	var sales connectorv1alpha1.SaleList
	if err := reader.List(ctx, &sales); err != nil {
		return nil, fmt.Errorf("list sales: %w", err)
	}
	var all []Contract
	for i := range purchases.Items {
		all = append(all, Bought(&purchases.Items[i]))
	}
	for i := range sales.Items {
		all = append(all, Sold(&sales.Items[i]))
	}
	slices.SortStableFunc(all, func(a, b Contract) int {
		if a.Sold != b.Sold {
			return strings.Compare(a.Side(), b.Side())
		}
		return strings.Compare(a.Name, b.Name)
	})
	return all, nil
}

// Object returns the object.
func (c *Contract) Object() client.Object {
	if c.Sale != nil {
		return c.Sale
	}
	return c.Purchase
}

// Request returns the name of the CapacityRequest that has bought; empty if none has.
func (c *Contract) Request() string {
	if c.Purchase == nil {
		return ""
	}
	if owner := metav1.GetControllerOf(c.Purchase); owner != nil && owner.Kind == "CapacityRequest" {
		return owner.Name
	}
	return ""
}

// Ends reports whether this cluster wants the contract to end before its time.
func (c *Contract) Ends() bool {
	if c.Sale != nil {
		return c.Sale.Spec.End != nil
	}
	return c.Purchase.Spec.End != nil
}

// Entry returns what is owed for the contract.
func (c *Contract) Entry() (account.Entry, error) {
	if c.Sale != nil {
		return account.OfSale(c.Sale)
	}
	return account.OfPurchase(c.Purchase)
}

// Trail returns what became of the contract, step by step. It is in the record.
func (c *Contract) Trail() ([]contract.Transition, error) {
	var text string
	if c.Sale != nil {
		text = c.Sale.Status.Record
	} else {
		text = c.Purchase.Status.Record
	}
	if text == "" {
		return nil, nil
	}
	var record struct {
		History  []contract.Transition `json:"history"` // Of a Sale.
		Purchase struct {
			History []contract.Transition `json:"history"`
		} `json:"purchase"`
	}
	if err := json.Unmarshal([]byte(text), &record); err != nil {
		return nil, fmt.Errorf("read the record of contract %s: %w", c.Name, err)
	}
	return append(record.History, record.Purchase.History...), nil
}

// End ends the contract, if that is not done already. The other side is told the reason.
func (c *Contract) End(reason string) {
	end := &connectorv1alpha1.ContractEnd{Reason: reason}
	switch {
	case c.Ends():
	case c.Sale != nil:
		c.Sale.Spec.End = end
	default:
		c.Purchase.Spec.End = end
	}
}

// Resize asks the seller for other amounts, another plan if it is not empty, or both. The error can be ErrOnlyBought.
func (c *Contract) Resize(wanted offer.Resources, plan string) error {
	if c.Purchase == nil {
		return ErrOnlyBought
	}
	if plan != "" {
		c.Purchase.Spec.Plan = connectorv1alpha1.Label(plan)
	}
	if c.Purchase.Spec.Resources == nil {
		c.Purchase.Spec.Resources = v1alpha1.Quantities{}
	}
	maps.Copy(c.Purchase.Spec.Resources, v1alpha1.Quantities(wanted.List()))
	return nil
}

// Renew asks the seller for a later end. The error can be ErrOnlyBought or ErrUnclear.
func (c *Contract) Renew(end time.Time) error {
	if c.Purchase == nil {
		return ErrOnlyBought
	}
	if now := c.Purchase.Status.EndTime; now != nil && !end.After(now.Time) {
		return unclearf("the contract ends at %s: a contract is not made shorter", now.UTC().Format(time.RFC3339))
	}
	c.Purchase.Spec.EndTime = &metav1.Time{Time: end}
	return nil
}

// Waits returns the number of the terms that wait for a decision of this cluster; 0 if none do.
func (c *Contract) Waits() int64 {
	if c.Sale == nil {
		return 0
	}
	return c.Sale.Status.PendingRevision
}

// Decide decides about the terms that wait. A buyer can replace those of a change at any time: who approves it says which ones. 0 are those
// that wait. The error can be ErrOnlySold or ErrUnclear.
func (c *Contract) Decide(decision connectorv1alpha1.Decision, reason string, terms int64) error {
	if c.Sale == nil {
		return ErrOnlySold
	}
	pending := c.Waits()
	waits := fmt.Sprintf("terms %d", pending)
	if c.Asked != nil {
		waits = c.Asked.String()
	}
	switch {
	case pending == 0:
		return fmt.Errorf("nothing of %s waits for a decision", c.Name)
	case terms != 0 && terms != pending:
		return fmt.Errorf("terms %d of contract %s do not wait for a decision, but %s", terms, c.Name, waits)
	case terms == 0 && decision == connectorv1alpha1.DecisionApprove && c.Status.State != string(contract.Proposed):
		return unclearf("contract %s would change. Its buyer asks for %s; approve them with --terms=%d", c.Name, waits, pending)
	}
	c.Sale.Spec.Decision, c.Sale.Spec.DecisionRevision, c.Sale.Spec.Reason = decision, pending, reason
	return nil
}

// Suspend grants the buyer nothing for now, or again what it has bought. The error is ErrOnlySold.
func (c *Contract) Suspend(suspended bool, reason string) error {
	if c.Sale == nil {
		return ErrOnlySold
	}
	c.Sale.Spec.Suspended, c.Sale.Spec.Reason = suspended, reason
	return nil
}
