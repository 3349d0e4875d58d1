// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package books

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/capacitorset/liqo-broker/pkg/api/connectorv1alpha1"
	"github.com/capacitorset/liqo-broker/pkg/trade/core/ledger"
	"github.com/capacitorset/liqo-broker/pkg/trade/negotiation"
)

// TestLedgerHasRoom holds that all contracts that may be open have room in the one object that the ledger is, while all of them get another
// size of another plan.
func TestLedgerHasRoom(t *testing.T) {
	const mostOfEtcd = 1.5 * (1 << 20)
	resources := corev1.ResourceList{}
	for _, name := range []corev1.ResourceName{"cpu", "memory", "pods", "ephemeral-storage", "nvidia.com/gpu", "example.com/fpga"} {
		resources[name] = resource.MustParse("1234567890")
	}
	var all ledger.Ledger
	for i := range negotiation.DefaultLimits().AllOpen {
		all.Holds = append(all.Holds, ledger.Hold{
			Key: ledger.Key{Buyer: strings.Repeat("a", 52), ID: fmt.Sprintf("%036d", i)}, Offer: "compute-in-the-north", Plan: "elastic",
			Resources: resources, Next: resources, NextPlans: []string{"elastic-for-less"}, NextUntil: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC),
		})
	}
	text, err := json.Marshal(&connectorv1alpha1.SalesLedger{
		ObjectMeta: metav1.ObjectMeta{Name: connectorv1alpha1.LedgerName}, Holds: writeLedger(all),
	})
	if err != nil || len(text) > mostOfEtcd || len(all.Holds) > maxHolds {
		t.Errorf("a ledger of %d holds has %d bytes, %v", len(all.Holds), len(text), err)
	}
	t.Logf("%d holds have %d bytes", len(all.Holds), len(text))
}
