// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capacitorset/liqo-broker/pkg/api/v1alpha1"
)

// near is a policy that has the providers of which the consumer says that they are near.
const near = `
apiVersion: brokering.liqo.io/v1alpha1
kind: PlacementPolicy
metadata:
  name: near
spec:
  appliesTo: {scope: Consumers, consumers: [%s]}
  filters: ['kpi.consumerRoundTripTime < 1000']
  weights:
    consumerRoundTripTime: -10
`

// TestConsumerMeasuresItsProviders waits until the consumer has told how far the provider is that it is peered with, and
// chooses by that.
func TestConsumerMeasuresItsProviders(t *testing.T) {
	start(t, v1alpha1.ModeOrchestrated)
	eventually(t, 3*time.Minute, func(ctx context.Context) error {
		var consumer v1alpha1.Consumer
		if err := fed.Broker.Get(ctx, client.ObjectKey{Name: string(fed.Consumer.ID)}, &consumer); err != nil {
			return err
		}
		trips := consumer.Status.RoundTrips
		if len(trips) != 1 || trips[0].Provider != string(fed.ProviderA.ID) || trips[0].Unit != "ms" || trips[0].Value == "" {
			return fmt.Errorf("the consumer has told %v", trips)
		}
		t.Logf("provider-a is %s %s from the consumer", trips[0].Value, trips[0].Unit)
		return nil
	})
	apply(t, fmt.Sprintf(near, fed.Consumer.ID))
	chosen(t, "near", fed.ProviderA)
}
