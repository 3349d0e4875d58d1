// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package trade

import (
	"context"
	"fmt"
	"testing"
	"time"

	discoveryv1alpha1 "github.com/liqotech/liqo/apis/discovery/v1alpha1"
	sharingv1alpha1 "github.com/liqotech/liqo/apis/sharing/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capacitorset/liqo-broker/pkg/api/connectorv1alpha1"
	"github.com/capacitorset/liqo-broker/pkg/liqo"
	v09 "github.com/capacitorset/liqo-broker/pkg/liqo/v09"
	"github.com/capacitorset/liqo-broker/test/federation"
	"github.com/capacitorset/liqo-broker/test/walk"
)

// TestSellerConsumesNothing has a seller ask its buyer for resources in turn, as Liqo does for who wants to consume. The buyer's Liqo gives
// it none. With what Liqo does by default, to give each peer a part, the seller is offered one. Afterwards nothing of it is left.
func TestSellerConsumesNothing(t *testing.T) {
	bought, answers := contracted(t)
	buyer, seller := fed.Consumer, fed.ProviderB
	requests := func(ctx context.Context) ([]discoveryv1alpha1.ResourceRequest, error) {
		var all discoveryv1alpha1.ResourceRequestList
		err := buyer.List(ctx, &all, client.MatchingLabels{"liqo.io/replicated": "true", "liqo.io/originID": string(seller.ID)})
		return all.Items, err
	}
	// offered is how many cores the seller is offered.
	offered := func(ctx context.Context) (cores float64, err error) {
		var all sharingv1alpha1.ResourceOfferList
		err = buyer.List(ctx, &all, client.MatchingLabels{"liqo.io/replication": "true", "liqo.io/remoteID": string(seller.ID)})
		for i := range all.Items {
			cores += all.Items[i].Spec.ResourceQuota.Hard.Cpu().AsApproximateFloat64()
		}
		return cores, err
	}

	withdraw := peering(t, seller, buyer,
		func(fc *v09.ForeignCluster) { fc.Spec.OutgoingPeeringEnabled = discoveryv1alpha1.PeeringEnabledYes })
	eventually(t, time.Minute, func(ctx context.Context) error {
		asked, err := requests(ctx)
		if err != nil {
			return err
		}
		if len(asked) != 1 || asked[0].Status.OfferWithdrawalTimestamp.IsZero() {
			return fmt.Errorf("%s has asked %s for resources by %d requests, and was not refused", seller.Name, buyer.Name, len(asked))
		}
		return nil
	})
	if cores, err := offered(t.Context()); err != nil || cores > 0 {
		t.Errorf("%s, which sells, is offered %g cores of %s, which buys: %v", seller.Name, cores, buyer.Name, err)
	}

	bounded := walk.UntilEnd(t, buyer.ShareWithAll)
	refuse := peering(t, buyer, seller, func(fc *v09.ForeignCluster) { fc.Spec.IncomingPeeringEnabled = discoveryv1alpha1.PeeringEnabledAuto })
	eventually(t, time.Minute, func(ctx context.Context) error {
		cores, err := offered(ctx)
		if err == nil && cores == 0 {
			err = fmt.Errorf("%s offers nothing to %s", buyer.Name, seller.Name)
		}
		if err == nil { // Liqo 0.9.4 leaves a virtual kubelet of a peering that ends before its node is there.
			_, err = seller.VirtualNode(ctx, buyer)
		}
		return err
	})

	withdraw()
	eventually(t, 2*time.Minute, func(ctx context.Context) error {
		asked, err := requests(ctx)
		if err == nil && len(asked) > 0 {
			err = fmt.Errorf("%s still asks %s for resources", seller.Name, buyer.Name)
		}
		var nodes corev1.NodeList
		if err == nil {
			err = seller.List(ctx, &nodes, client.MatchingLabels{liqo.LabelRemoteClusterID: string(buyer.ID)})
		}
		if err == nil && len(nodes.Items) > 0 {
			err = fmt.Errorf("%s still has a node for %s", seller.Name, buyer.Name)
		}
		return err
	})
	refuse()
	bounded()
	eventually(t, time.Minute, func(ctx context.Context) error {
		return fed.Consumer.Is(ctx, bought, bought.Name, connectorv1alpha1.ConditionReady, connectorv1alpha1.ReasonActive)
	})
	if err := answers(t.Context()); err != nil {
		t.Errorf("the workload has suffered: %v", err)
	}
}

// peering changes what a cluster wants of another one, until the test ends or the returned function is called.
func peering(t *testing.T, at, other *federation.Cluster, change func(*v09.ForeignCluster)) (back func()) {
	t.Helper()
	patch := func(ctx context.Context, change func(*v09.ForeignCluster)) error {
		fc, err := v09.ForeignClusterOf(ctx, at, other.ID)
		if err != nil {
			return err
		}
		if fc == nil {
			return fmt.Errorf("%s does not know %s", at.Name, other.Name)
		}
		before := fc.DeepCopy()
		change(fc)
		return at.Patch(ctx, fc, client.MergeFrom(before))
	}
	return walk.UntilEnd(t, func(ctx context.Context) (func() error, error) {
		var was discoveryv1alpha1.ForeignClusterSpec
		err := patch(ctx, func(fc *v09.ForeignCluster) {
			was = fc.Spec
			change(fc)
		})
		return func() error {
			return patch(context.WithoutCancel(ctx), func(fc *v09.ForeignCluster) {
				fc.Spec.OutgoingPeeringEnabled, fc.Spec.IncomingPeeringEnabled = was.OutgoingPeeringEnabled, was.IncomingPeeringEnabled
			})
		}, err
	})
}
