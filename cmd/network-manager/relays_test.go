// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"net/netip"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"k8s.io/client-go/tools/record"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
	v09 "github.com/capacitorset/liqo-broker/pkg/liqo/v09"
	"github.com/capacitorset/liqo-broker/pkg/liqo/v09/ipamclient"
	"github.com/capacitorset/liqo-broker/pkg/liqo/v09/liqotest"
	"github.com/capacitorset/liqo-broker/pkg/remoteipam/broker/relay"
	"github.com/capacitorset/liqo-broker/pkg/serving/servingtest"
	"github.com/capacitorset/liqo-broker/test/metrictable"
)

// failing answers with an error.
type failing struct{ err error }

func (f failing) MapRelay(context.Context, cluster.ID, netip.Addr) (netip.Addr, error) {
	return netip.Addr{}, f.err
}

func TestRefusalsAreObserved(t *testing.T) {
	cases := map[string]struct {
		reason string
		err    error
		metric string
		event  string
	}{
		"Full":         {"somebody must make room", ipamclient.ErrExternalCIDRFull, "external-cidr-full", reasonFull},
		"Taken":        {"somebody must know", relay.ErrTaken, "taken", reasonTaken},
		"TooMany":      {"somebody must raise the limit, or ask the consumer", relay.ErrTooMany, "too-many", reasonTooMany},
		"NotOffloaded": {"a consumer that asks too much is not an event of the cluster", relay.ErrNotOffloaded, "not-offloaded", ""},
		"Failed":       {"Liqo's IPAM does not answer", errors.New("connection refused"), "failed", ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			events := record.NewFakeRecorder(1)
			relays := newObservedRelays(failing{tc.err}, relay.NatMappings{}, events)
			if _, err := relays.MapRelay(t.Context(), "consumer", netip.MustParseAddr("10.90.0.13")); !errors.Is(err, tc.err) {
				t.Errorf("%s: the error became %v", tc.reason, err)
			}
			if got := testutil.ToFloat64(relays.refused.WithLabelValues("consumer", tc.metric)); got != 1 {
				t.Errorf("%s: counted %v times as %s, want once", tc.reason, got, tc.metric)
			}
			select {
			case event := <-events.Events:
				if tc.event == "" || !strings.Contains(event, tc.event) {
					t.Errorf("%s: event %q", tc.reason, event)
				}
			default:
				if tc.event != "" {
					t.Errorf("%s: no event", tc.reason)
				}
			}
		})
	}
}

func TestRelayAddressesAreCounted(t *testing.T) {
	mappings := &v09.NatMapping{}
	mappings.Name = "nat"
	mappings.Spec.ClusterID = "consumer"
	mappings.Spec.ClusterMappings = map[string]string{
		"10.90.0.13": "10.202.0.1", "10.90.0.14": "10.202.0.2", "10.90.0.15": "10.202.0.2", "10.90.0.16": "10.202.0.2",
	}
	api := fake.NewClientBuilder().WithScheme(liqotest.Scheme(t)).WithObjects(mappings).Build()
	registry := prometheus.NewRegistry()
	if err := newObservedRelays(failing{}, relay.NatMappings{Reader: api}, nil).register(registry); err != nil {
		t.Fatal(err)
	}
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]float64{}
	for _, family := range families {
		if family.GetName() == "liqo_broker_relay_mapping_duration_seconds" {
			continue
		}
		for _, metric := range family.GetMetric() {
			got[family.GetName()+" "+metric.GetLabel()[0].GetValue()] = metric.GetGauge().GetValue()
		}
	}
	want := map[string]float64{"liqo_broker_relay_addresses consumer": 4, "liqo_broker_relay_addresses_shared consumer": 1}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("metrics (-want +got):\n%s", diff)
	}
}

// TestMetricTable compares what the sidecar measures with the reference.
func TestMetricTable(t *testing.T) {
	mappings := &v09.NatMapping{}
	mappings.Name, mappings.Spec.ClusterID = "nat", "consumer"
	api := fake.NewClientBuilder().WithScheme(liqotest.Scheme(t)).WithObjects(mappings).Build()
	relays := newObservedRelays(failing{relay.ErrNotOffloaded}, relay.NatMappings{Reader: api}, nil)
	shown, _ := servingtest.Certificate(t, "remote-ipam")
	registry := prometheus.NewRegistry()
	if err := errors.Join(relays.register(registry), registerProgram(registry, shown.Get)); err != nil {
		t.Fatal(err)
	}
	if _, err := relays.MapRelay(t.Context(), "consumer", netip.MustParseAddr("10.90.0.13")); !errors.Is(err, relay.ErrNotOffloaded) {
		t.Fatal(err)
	}
	metrictable.Check(t, registry)
	if n := testutil.CollectAndCount(relays.refused); n != len(refusals) {
		t.Errorf("%d reasons are told of a consumer, want all %d", n, len(refusals))
	}
	if n := testutil.CollectAndCount(relays.mapping); n != 3 {
		t.Errorf("%d results are told, want 3", n)
	}
}
