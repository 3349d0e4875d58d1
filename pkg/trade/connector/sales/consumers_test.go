// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package sales_test

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capacitorset/liqo-broker/pkg/api/connectorv1alpha1"
	"github.com/capacitorset/liqo-broker/pkg/api/v1alpha1"
	"github.com/capacitorset/liqo-broker/pkg/trade/connector/sales"
	"github.com/capacitorset/liqo-broker/pkg/trade/core/contract"
)

// consumers returns what grants by Consumers.
func (s *seller) consumers() *sales.Consumers {
	s.t.Helper()
	consumers, err := sales.NewConsumers(sales.ConsumersConfig{Client: s.api, Reader: s.api, Peers: s.liqo})
	if err != nil {
		s.t.Fatal(err)
	}
	return consumers
}

// consumer reconciles the Consumer of the edge cluster, and returns it; nil if there is none.
func (s *seller) consumer() *v1alpha1.Consumer {
	s.t.Helper()
	name := client.ObjectKey{Name: string(edge.ID)}
	if _, err := s.consumers().Reconcile(s.t.Context(), ctrl.Request{NamespacedName: name}); err != nil {
		s.t.Fatal(err)
	}
	var consumer v1alpha1.Consumer
	if err := s.api.Get(s.t.Context(), name, &consumer); client.IgnoreNotFound(err) != nil {
		s.t.Fatal(err)
	} else if err != nil {
		return nil
	}
	return &consumer
}

// gives fails if a Consumer is not granted so many CPUs, reserved and at most, and no more of anything else.
func (s *seller) gives(when string, cpus int64, scheduling v1alpha1.ConsumerScheduling) *v1alpha1.Consumer {
	s.t.Helper()
	consumer := s.consumer()
	if consumer == nil {
		s.t.Fatalf("%s: there is no Consumer", when)
	}
	spec := consumer.Spec
	limit, limited := spec.Capacity.Limit["cpu"]
	reserved := spec.Capacity.Reserved["cpu"]
	memory, bounded := spec.Capacity.Limit["memory"]
	if !limited || limit.Value() != cpus || reserved.Value() != cpus || !bounded || !memory.IsZero() || spec.Scheduling != scheduling {
		s.t.Errorf("%s: %s, reserved %v, limit %v; want %d CPUs, %s", when, spec.Scheduling, spec.Capacity.Reserved, spec.Capacity.Limit,
			cpus, scheduling)
	}
	return consumer
}

// newBroker returns a seller that is a broker.
func newBroker(t *testing.T) *seller {
	t.Helper()
	s := newSeller(t)
	s.broker = true
	return s
}

// TestConsumer follows the contracts of a cluster from before the first to after the last.
func TestConsumer(t *testing.T) {
	s := newBroker(t)
	if consumer := s.consumer(); consumer != nil {
		t.Errorf("without a contract: %+v", consumer.Spec)
	}
	offered := &connectorv1alpha1.Offer{
		ObjectMeta: metav1.ObjectMeta{Name: "o"}, Spec: connectorv1alpha1.OfferSpec{Mode: v1alpha1.ModeOrchestrated},
	}
	if err := s.api.Create(t.Context(), offered); err != nil {
		t.Fatal(err)
	}
	s.signed(alice, "x")
	if consumer := s.consumer(); consumer != nil {
		t.Errorf("before it is granted: %+v", consumer.Spec)
	}
	if _, err := s.issuer().Issue(t.Context(), edge); err != nil {
		t.Fatal(err)
	}
	s.gives("issued and not granted", 0, v1alpha1.ConsumerSuspended)
	s.settle(alice, "x")
	if consumer := s.gives("granted", 1, v1alpha1.ConsumerActive); consumer.Spec.Mode != v1alpha1.ModeOrchestrated {
		t.Errorf("the mode is %s, not that of the offer", consumer.Spec.Mode)
	}
	s.ask(alice, "x", contract.Peered, "")

	// A second contract of the same buyer adds up, and one of another buyer for the same cluster gives nothing.
	s.signed(alice, "y")
	s.settle(alice, "y")
	s.gives("with a second contract", 2, v1alpha1.ConsumerActive)
	s.signed(bob, "x")
	s.settle(bob, "x")
	s.gives("with another buyer's", 2, v1alpha1.ConsumerActive)

	// What somebody else writes is put right, and what contracts do not say is left alone.
	consumer := s.consumer()
	share := int32(7)
	consumer.Spec.Capacity.Limit["cpu"], consumer.Spec.Capacity.SharePercent = resource.MustParse("64"), &share
	consumer.Spec.Scheduling = v1alpha1.ConsumerSuspended
	if err := s.api.Update(t.Context(), consumer); err != nil {
		t.Fatal(err)
	}
	if consumer = s.gives("after somebody has changed it", 2, v1alpha1.ConsumerActive); consumer.Spec.Capacity.Share() != 7 {
		t.Errorf("its share is %d", consumer.Spec.Capacity.Share())
	}
	before := consumer.ResourceVersion
	if consumer = s.consumer(); consumer.ResourceVersion != before {
		t.Error("what is right is written again")
	}

	// An offer that is gone leaves the mode as it is.
	if err := s.api.Delete(t.Context(), offered); err != nil {
		t.Fatal(err)
	}
	s.ask(alice, "y", contract.Terminate, "")
	s.settle(alice, "y")
	s.gives("while the second drains", 2, v1alpha1.ConsumerActive)
	s.ask(alice, "y", contract.Drained, "")
	s.settle(alice, "y")
	s.gives("after the second", 1, v1alpha1.ConsumerActive)

	// While a contract is suspended, nothing is in force; when it is over, neither.
	sale := s.sale(alice, "x")
	sale.Spec.Suspended = true
	if err := s.api.Update(t.Context(), sale); err != nil {
		t.Fatal(err)
	}
	s.settle(alice, "x")
	s.gives("suspended", 0, v1alpha1.ConsumerSuspended)
	s.now = s.now.Add(2 * time.Hour)
	s.settle(alice, "x")
	s.now, s.liqo.peered = s.now.Add(2*drain), true
	s.settle(alice, "x")
	if consumer := s.gives("after the last, while the cluster still asks", 0,
		v1alpha1.ConsumerSuspended); consumer.Spec.Mode != v1alpha1.ModeOrchestrated {
		t.Errorf("the mode is %q", consumer.Spec.Mode)
	}
	s.liqo.peered = false
	if consumer := s.consumer(); consumer != nil {
		t.Errorf("after the last, the Consumer that it has made is left: %+v", consumer.Spec)
	}
}

// TestConsumerOfPeople leaves a Consumer alone that no contract has made, whoever signs one for its cluster: that contract fails.
func TestConsumerOfPeople(t *testing.T) {
	for name, scheduling := range map[string]v1alpha1.ConsumerScheduling{
		"Active": v1alpha1.ConsumerActive, "Suspended": v1alpha1.ConsumerSuspended,
	} {
		t.Run(name, func(t *testing.T) {
			s := newBroker(t)
			made := &v1alpha1.Consumer{ObjectMeta: metav1.ObjectMeta{Name: string(edge.ID)}}
			made.Spec.Scheduling, made.Spec.Mode = scheduling, v1alpha1.ModeAggregated
			made.Spec.Capacity.Limit = v1alpha1.Quantities{"cpu": resource.MustParse("64")}
			if err := s.api.Create(t.Context(), made); err != nil {
				t.Fatal(err)
			}
			s.signed(bob, "x")
			left := func(when string) {
				t.Helper()
				if after := s.consumer(); after == nil || after.ResourceVersion != made.ResourceVersion {
					t.Errorf("%s it is changed: %+v", when, after)
				}
			}
			left("signed:")
			s.settle(bob, "x")
			s.is(bob, "x", contract.Failed, connectorv1alpha1.ReasonFailed)
			if left("failed:"); s.liqo.let[string(edge.ID)] {
				t.Error("the cluster is issued something")
			}
		})
	}
}

// TestInTurn peers in turn with a cluster that has a contract, as soon as that has peered, and with no other.
func TestInTurn(t *testing.T) {
	s := newBroker(t)
	consumers := s.consumers()
	look := func() ctrl.Result {
		t.Helper()
		result, err := consumers.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKey{Name: string(edge.ID)}})
		if err != nil {
			t.Fatal(err)
		}
		return result
	}
	if look(); len(s.liqo.inTurn) > 0 {
		t.Errorf("without a contract, it peers with %v", s.liqo.inTurn)
	}
	s.signed(alice, "x")
	s.settle(alice, "x")
	if result := look(); len(s.liqo.inTurn) != 1 || s.liqo.inTurn[0] != edge.ID || result.RequeueAfter == 0 {
		t.Errorf("a buyer that has not peered: asked %v, again after %s", s.liqo.inTurn, result.RequeueAfter)
	}
	s.liqo.peered = true
	if result := look(); result.RequeueAfter != 0 {
		t.Errorf("it looks again after %s", result.RequeueAfter)
	}
}
