// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package sales

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capacitorset/liqo-broker/pkg/api/connectorv1alpha1"
	"github.com/capacitorset/liqo-broker/pkg/conditions"
	"github.com/capacitorset/liqo-broker/pkg/trade/connector/capacity"
	"github.com/capacitorset/liqo-broker/pkg/trade/connector/readiness"
	"github.com/capacitorset/liqo-broker/pkg/trade/core/contract"
)

// coverAgain is how often contracts are compared with what the cluster has.
const coverAgain = 30 * time.Second

// coverer says of contracts that the cluster does not have what it has sold by them, in the leader alone. It looks at all of them together:
// what one gives, the others lack.
type coverer struct {
	cfg Config
	log logr.Logger
}

// Start implements manager.Runnable. What fails is tried again at the next look.
func (c coverer) Start(ctx context.Context) error {
	again := time.NewTicker(coverAgain)
	defer again.Stop()
	for {
		if err := c.look(ctx); err != nil && ctx.Err() == nil {
			c.log.Error(err, "Cannot say now which contracts are covered")
		}
		select {
		case <-ctx.Done():
			return nil
		case <-again.C:
		}
	}
}

// NeedLeaderElection implements manager.LeaderElectionRunnable.
func (coverer) NeedLeaderElection() bool { return true }

// look writes the condition of all contracts of which it has changed. One that cannot be written keeps no other from that.
func (c coverer) look(ctx context.Context) error {
	gap, err := c.cfg.Covered(ctx, c.cfg.Applier.Clock.Now())
	if err != nil {
		return fmt.Errorf("compare what is sold with what there is: %w", err)
	}
	lacking := map[string]bool{}
	if gap.Exists() {
		for _, of := range gap.Sold {
			lacking[of.Sale] = true
		}
	}
	var sales connectorv1alpha1.SaleList
	if err := c.cfg.Client.List(ctx, &sales); err != nil {
		return fmt.Errorf("list sales: %w", err)
	}
	var failed []error
	for i := range sales.Items {
		sale := &sales.Items[i]
		was := sale.DeepCopy()
		if c.describe(sale, gap, lacking[sale.Name]); !equality.Semantic.DeepEqual(was.Status.Conditions, sale.Status.Conditions) {
			failed = append(failed, c.write(ctx, sale.Name, gap, lacking[sale.Name]))
		}
	}
	return errors.Join(failed...)
}

// describe sets the condition of a Sale of which something is lacking, and takes it back when that is over. It names no amounts, which the
// Offer has: they change with each pod of the cluster, and the condition of all Sales with them.
func (c coverer) describe(sale *connectorv1alpha1.Sale, gap capacity.Gap, lacks bool) {
	if is := contract.State(sale.Status.State); is.Final() {
		meta.RemoveStatusCondition(&sale.Status.Conditions, connectorv1alpha1.ConditionCovered)
		return
	}
	covered := metav1.Condition{
		Type: connectorv1alpha1.ConditionCovered, Status: metav1.ConditionTrue, Reason: connectorv1alpha1.ReasonCovered,
		Message: "The cluster has what it has sold.", LastTransitionTime: metav1.NewTime(c.cfg.Applier.Clock.Now()),
	}
	switch {
	case !lacks && meta.FindStatusCondition(sale.Status.Conditions, connectorv1alpha1.ConditionCovered) == nil:
		return // It was never otherwise.
	case lacks && gap.From.IsZero():
		covered.Status, covered.Reason = metav1.ConditionFalse, connectorv1alpha1.ReasonOvercommitted
		covered.Message = fmt.Sprintf("What this cluster needs itself, and what it has sold by this contract and others, are together more "+
			"than it has. Offer %s says by how much.", sale.Status.Offer)
	case lacks:
		covered.Status, covered.Reason = metav1.ConditionFalse, connectorv1alpha1.ReasonUncovered
		covered.Message = fmt.Sprintf("Purchase %s ends at %s, and is not there any more for this contract and others that last longer. "+
			"Offer %s says how much is lacking.", gap.Purchase, gap.From.UTC().Format(time.RFC3339), sale.Status.Offer)
	}
	conditions.Set(&sale.Status.Conditions, sale.Generation, covered)
}

// write writes the condition of a Sale, which is read whole for that. If it changes meanwhile, the next look writes it.
func (c coverer) write(ctx context.Context, name string, gap capacity.Gap, lacks bool) error {
	whole := &connectorv1alpha1.Sale{}
	if err := c.cfg.Reader.Get(ctx, client.ObjectKey{Name: name}, whole); apierrors.IsNotFound(err) {
		return nil
	} else if err != nil {
		return fmt.Errorf("get sale %s whole: %w", name, err)
	}
	was := whole.DeepCopy()
	c.describe(whole, gap, lacks)
	switch err := c.cfg.Client.Status().Update(ctx, whole); {
	case apierrors.IsConflict(err), apierrors.IsNotFound(err):
		return nil
	case err != nil:
		return fmt.Errorf("say of sale %s whether it is covered: %w", name, err)
	}
	conditions.Recorder{Events: c.cfg.Events, Kind: readiness.KindOfSale}.Tell(ctx, whole, was.Status.Conditions, whole.Status.Conditions)
	return nil
}
