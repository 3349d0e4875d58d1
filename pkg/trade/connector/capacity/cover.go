// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package capacity

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capacitorset/liqo-broker/pkg/api/connectorv1alpha1"
	"github.com/capacitorset/liqo-broker/pkg/api/v1alpha1"
	"github.com/capacitorset/liqo-broker/pkg/core/resources"
	"github.com/capacitorset/liqo-broker/pkg/trade/core/contract"
)

// Sold is what a contract gives to its buyer until its end.
type Sold struct {
	// Sale is the name of the object, and Offer that of the offer that was bought.
	Sale, Offer string
	Resources   corev1.ResourceList
	Ends        time.Time
}

// Loss is what a cluster has no more from a time on: a contract ends by which it has bought.
type Loss struct {
	// Purchase is the name of the object.
	Purchase  string
	Resources corev1.ResourceList
	At        time.Time
}

// Gap is what a cluster lacks of what it has sold. The zero Gap is none.
type Gap struct {
	// Short is what it lacks, and From from when on: the zero time is now. Purchase is the one that ends then.
	Short    corev1.ResourceList
	From     time.Time
	Purchase string
	// Sold are the contracts that it concerns: all that last longer.
	Sold []Sold
}

// Exists reports whether something is lacking.
func (g Gap) Exists() bool { return len(g.Short) > 0 }

// Concerns reports whether a contract of an offer is one that it concerns.
func (g Gap) Concerns(offer string) bool {
	return slices.ContainsFunc(g.Sold, func(s Sold) bool { return s.Offer == offer })
}

// Cover returns the first gap between what there is, without what is lost over time, and what is sold for longer.
func Cover(has corev1.ResourceList, sold []Sold, losses []Loss, now time.Time) Gap {
	losses = slices.SortedFunc(slices.Values(losses), func(a, b Loss) int { return a.At.Compare(b.At) })
	lost := corev1.ResourceList{}
	if gap := gapAt(has, lost, sold, now); gap.Exists() {
		return gap
	}
	for i, loss := range losses {
		resources.Add(lost, loss.Resources)
		if i+1 < len(losses) && losses[i+1].At.Equal(loss.At) {
			continue // Those that end together are lost together.
		}
		if gap := gapAt(has, lost, sold, loss.At); gap.Exists() {
			gap.From, gap.Purchase = loss.At, loss.Purchase
			return gap
		}
	}
	return Gap{}
}

// gapAt returns the gap at a time.
func gapAt(has, lost corev1.ResourceList, sold []Sold, at time.Time) Gap {
	var gap Gap
	needed := corev1.ResourceList{}
	for _, s := range sold {
		if s.Ends.After(at) {
			resources.Add(needed, s.Resources)
			gap.Sold = append(gap.Sold, s)
		}
	}
	left := resources.Subtract(has, lost)
	for name, quantity := range resources.Subtract(needed, left) {
		if quantity.Sign() > 0 {
			if gap.Short == nil {
				gap.Short = corev1.ResourceList{}
			}
			gap.Short[name] = quantity
		}
	}
	return gap
}

// Covered returns what a cluster lacks of what it has sold, at this moment or later. It can be called concurrently.
type Covered func(ctx context.Context, now time.Time) (Gap, error)

// CoveredByCluster is for a cluster that sells what its own nodes have: it lacks what its own pods need of what it has sold.
func CoveredByCluster(reader client.Reader) Covered {
	all := OfCluster(reader, Share{Rest: 100, Devices: 100})
	return func(ctx context.Context, now time.Time) (Gap, error) {
		has, err := all(ctx)
		if err != nil {
			return Gap{}, err
		}
		sold, err := soldBy(ctx, reader)
		return Cover(has, sold, nil, now), err
	}
}

// CoveredByBroker is for a cluster that sells what its broker aggregates: it lacks what its providers do not give any more, and will lack
// what it has bought by contracts that end before those that it has sold. A contract that renews ends when it is not renewed.
func CoveredByBroker(reader client.Reader) Covered {
	all := OfBroker(reader, Share{Rest: 100, Devices: 100})
	return func(ctx context.Context, now time.Time) (Gap, error) {
		has, err := all(ctx)
		if err != nil {
			return Gap{}, err
		}
		losses, err := lossesOf(ctx, reader)
		if err != nil {
			return Gap{}, err
		}
		sold, err := soldBy(ctx, reader)
		return Cover(has, sold, losses, now), err
	}
}

// soldBy returns what is sold: signed, and not over.
func soldBy(ctx context.Context, reader client.Reader) ([]Sold, error) {
	var sales connectorv1alpha1.SaleList
	if err := reader.List(ctx, &sales, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list sales: %w", err)
	}
	var sold []Sold
	for i := range sales.Items {
		status := &sales.Items[i].Status
		if !signed(contract.State(status.State)) || status.EndTime == nil {
			continue
		}
		sold = append(sold, Sold{
			Sale: sales.Items[i].Name, Offer: status.Offer, Resources: resources.Bounded(status.Resources), Ends: status.EndTime.Time,
		})
	}
	return sold, nil
}

// signed reports whether something is sold by a contract.
func signed(state contract.State) bool {
	switch state { //nolint:exhaustive // By the others nothing is sold.
	case contract.Signed, contract.Provisioning, contract.Active, contract.Resizing, contract.Suspended, contract.Terminating:
		return true
	}
	return false
}

// lossesOf returns what the broker has no more when the contracts end by which it has bought: no more than their clusters offer.
func lossesOf(ctx context.Context, reader client.Reader) ([]Loss, error) {
	var providers v1alpha1.ProviderList
	var purchases connectorv1alpha1.PurchaseList
	for _, list := range []client.ObjectList{&providers, &purchases} {
		if err := reader.List(ctx, list, client.UnsafeDisableDeepCopy); err != nil {
			return nil, fmt.Errorf("list %T: %w", list, err)
		}
	}
	offered := map[string]corev1.ResourceList{}
	for i := range providers.Items {
		if p := &providers.Items[i]; sells(p) {
			offered[p.Name] = p.Status.Offered
		}
	}
	var losses []Loss
	for i := range purchases.Items {
		p := &purchases.Items[i]
		has, is := offered[p.Status.Cluster.ID]
		if !is || !signed(contract.State(p.Status.State)) || p.Status.EndTime == nil || goesOn(p) {
			continue
		}
		lost := resources.Min(resources.Bounded(p.Status.Resources), has)
		offered[p.Status.Cluster.ID] = resources.Subtract(has, lost)
		losses = append(losses, Loss{Purchase: p.Name, Resources: lost, At: p.Status.EndTime.Time})
	}
	return losses, nil
}

// goesOn reports whether a contract is renewed by itself, as far as anybody knows.
func goesOn(purchase *connectorv1alpha1.Purchase) bool {
	renewal := meta.FindStatusCondition(purchase.Status.Conditions, connectorv1alpha1.ConditionRenewal)
	ends := renewal == nil || renewal.Reason == connectorv1alpha1.ReasonNotRenewed
	return purchase.Spec.Renew && !ends && purchase.Spec.End == nil && purchase.DeletionTimestamp.IsZero()
}
