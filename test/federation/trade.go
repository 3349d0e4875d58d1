// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package federation

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capacitorset/liqo-broker/pkg/api/connectorv1alpha1"
	"github.com/capacitorset/liqo-broker/pkg/api/v1alpha1"
	"github.com/capacitorset/liqo-broker/pkg/liqo"
	v09 "github.com/capacitorset/liqo-broker/pkg/liqo/v09"
)

// Publish has providers offer something, each at its price.
func (f *Federation) Publish(ctx context.Context, prices map[*Cluster]string, change ...func(*connectorv1alpha1.Offer)) error {
	for provider, price := range prices {
		want := ComputeOffer(price)
		for _, change := range change {
			change(want)
		}
		if err := provider.Offer(ctx, want); err != nil {
			return err
		}
	}
	return nil
}

// Offer has the cluster offer something.
func (c *Cluster) Offer(ctx context.Context, want *connectorv1alpha1.Offer) error {
	want.SetGroupVersionKind(connectorv1alpha1.GroupVersion.WithKind("Offer"))
	return c.Patch(ctx, want, client.Apply, client.FieldOwner("people"), client.ForceOwnership)
}

// Published fails unless all providers' offers are published and known to the consumer, and no other ones.
func (f *Federation) Published(ctx context.Context, providers ...*Cluster) error {
	for _, provider := range providers {
		if err := provider.Is(ctx, &connectorv1alpha1.Offer{}, "compute", connectorv1alpha1.ConditionPublished,
			connectorv1alpha1.ReasonPublished); err != nil {
			return err
		}
	}
	known := &connectorv1alpha1.Registry{}
	if err := f.Consumer.Get(ctx, client.ObjectKey{Name: RegistryName}, known); err != nil {
		return err
	}
	if int(known.Status.Offers) != len(providers) {
		return fmt.Errorf("the consumer knows %d offers, not %d: %+v", known.Status.Offers, len(providers), known.Status.Conditions)
	}
	return nil
}

// Sold is what a plan of the journeys gives.
func Sold(cpu string) v1alpha1.Quantities {
	return v1alpha1.Quantities{
		corev1.ResourceCPU: resource.MustParse(cpu), corev1.ResourceMemory: resource.MustParse("1Gi"),
		corev1.ResourcePods: resource.MustParse("10"),
	}
}

// ComputeOffer returns an Offer of one plan of 500 thousandths of a core, and of a larger one.
func ComputeOffer(price string) *connectorv1alpha1.Offer {
	cost := connectorv1alpha1.Price{Amount: connectorv1alpha1.Amount(price), Currency: "EUR", Period: "PT1H"}
	return &connectorv1alpha1.Offer{
		ObjectMeta: metav1.ObjectMeta{Name: "compute"},
		Spec: connectorv1alpha1.OfferSpec{
			Title: "Compute", Region: "eu-north", Architectures: []string{"amd64"},
			Plans: []connectorv1alpha1.OfferPlan{
				{ID: "small", Resources: Sold("500m"), Price: cost},
				{
					ID: "elastic", Range: &connectorv1alpha1.OfferRange{Min: Sold("250m"), Max: Sold("1"),
						Step: v1alpha1.Quantities{corev1.ResourceCPU: resource.MustParse("250m"), corev1.ResourceMemory: resource.MustParse("1Gi"),
							corev1.ResourcePods: resource.MustParse("10")}}, Price: cost,
				},
			},
			Buyers: connectorv1alpha1.Buyers{Otherwise: connectorv1alpha1.VerdictAccept},
		},
	}
}

// Is fails unless an object of the trade has a condition with a reason.
func (c *Cluster) Is(ctx context.Context, object client.Object, name, condition, reason string) error {
	if err := c.Get(ctx, client.ObjectKey{Name: name}, object); err != nil {
		return err
	}
	var conditions []metav1.Condition
	switch o := object.(type) {
	case *connectorv1alpha1.Offer:
		conditions = o.Status.Conditions
	case *connectorv1alpha1.Registry:
		conditions = o.Status.Conditions
	case *connectorv1alpha1.CapacityRequest:
		conditions = o.Status.Conditions
	case *connectorv1alpha1.Purchase:
		conditions = o.Status.Conditions
	case *connectorv1alpha1.Sale:
		conditions = o.Status.Conditions
	}
	found := meta.FindStatusCondition(conditions, condition)
	if found == nil || found.Reason != reason {
		return fmt.Errorf("%s: %T %s is not %s for %s, but %+v", c.Name, object, name, condition, reason, found)
	}
	return nil
}

// HasBought fails unless a buyer has one node for a seller, which is ready and has exactly what was bought.
func (c *Cluster) HasBought(ctx context.Context, seller *Cluster, want v1alpha1.Quantities) error {
	found, err := c.VirtualNode(ctx, seller)
	if err != nil {
		return err
	}
	for name, quantity := range want {
		if has := found.Status.Allocatable[name]; has.Cmp(quantity) != 0 {
			return fmt.Errorf("node %s has %s of %s, not %s", found.Name, has.String(), name, quantity.String())
		}
	}
	if !liqo.NodeReady(found) {
		return fmt.Errorf("node %s is not ready", found.Name)
	}
	return nil
}

// HasParted fails while anything of a contract is left at a buyer or its seller.
func (c *Cluster) HasParted(ctx context.Context, seller *Cluster) error {
	books := &connectorv1alpha1.SalesLedger{}
	err := seller.Get(ctx, client.ObjectKey{Name: connectorv1alpha1.LedgerName}, books)
	if err == nil && len(books.Holds) > 0 {
		err = fmt.Errorf("%s holds %+v", seller.Name, books.Holds)
	}
	return errors.Join(c.HasForgotten(ctx, seller), seller.HasForgotten(ctx, c), err)
}

// HasForgotten fails while the cluster knows another one, or has a node for it.
func (c *Cluster) HasForgotten(ctx context.Context, other *Cluster) error {
	fc, err := v09.ForeignClusterOf(ctx, c, other.ID)
	if err == nil && fc != nil {
		err = fmt.Errorf("%s knows %s as ForeignCluster %s", c.Name, other.Name, fc.Name)
	}
	var nodes corev1.NodeList
	err2 := c.List(ctx, &nodes, client.MatchingLabels{liqo.LabelRemoteClusterID: string(other.ID)})
	if err2 == nil && len(nodes.Items) > 0 {
		err2 = fmt.Errorf("%s has a node for %s", c.Name, other.Name)
	}
	return errors.Join(err, err2)
}

// HasNoPurchase returns an error while a purchase of the cluster is there.
func (c *Cluster) HasNoPurchase(ctx context.Context, name string) error {
	var p connectorv1alpha1.Purchase
	if err := c.Get(ctx, client.ObjectKey{Name: name}, &p); err != nil {
		return client.IgnoreNotFound(err)
	}
	return fmt.Errorf("%s has purchase %s: %s, %+v", c.Name, p.Name, p.Status.State,
		meta.FindStatusCondition(p.Status.Conditions, connectorv1alpha1.ConditionReady))
}

// BuysNothing fails while the cluster has a Purchase.
func (c *Cluster) BuysNothing(ctx context.Context) error {
	var purchases connectorv1alpha1.PurchaseList
	if err := c.List(ctx, &purchases); err != nil {
		return err
	}
	for i := range purchases.Items {
		p := &purchases.Items[i]
		return fmt.Errorf("%s has purchase %s: %s, %+v",
			c.Name, p.Name, p.Status.State, meta.FindStatusCondition(p.Status.Conditions, connectorv1alpha1.ConditionReady))
	}
	return nil
}
