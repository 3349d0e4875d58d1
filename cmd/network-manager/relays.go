// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/record"

	"github.com/capacitorset/liqo-broker/pkg/api/v1alpha1"
	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
	v09 "github.com/capacitorset/liqo-broker/pkg/liqo/v09"
	"github.com/capacitorset/liqo-broker/pkg/liqo/v09/ipamclient"
	"github.com/capacitorset/liqo-broker/pkg/remoteipam/broker/relay"
	"github.com/capacitorset/liqo-broker/pkg/remoteipam/broker/server"
	"github.com/capacitorset/liqo-broker/pkg/serving/diagnostics"
)

const (
	// scrapeTimeout bounds the reads for one scrape, which come from the cache.
	scrapeTimeout = time.Second

	// reasonFull is the reason of the event about a consumer whose pods get no
	// relay addresses any more.
	reasonFull = "ExternalCIDRFull"
	// reasonTaken is the reason of the event about a consumer one of whose pods gets none
	// because Liqo's IPAM gave it out already.
	reasonTaken = "RelayAddressTaken"
	// reasonTooMany is the reason of the event about a consumer that has as many as it may.
	reasonTooMany = "RelayAddressLimit"
)

// observedRelays counts the relay addresses, and why some are not given out.
type observedRelays struct {
	server.RelayMapper

	mappings relay.NatMappings
	events   record.EventRecorder
	refused  *prometheus.CounterVec
	mapping  *prometheus.HistogramVec
	held     *prometheus.Desc
	shared   *prometheus.Desc
}

// The values of the label result of the time that a relay address takes: it is given out, refused for a reason that the consumer is
// told, or Liqo's IPAM or the API server fails.
const (
	resultMapped  = "mapped"
	resultRefused = "refused"
	resultFailed  = "failed"
)

// refusals are the values of the label reason.
var refusals = [...]string{"not-offloaded", "external-cidr-full", "taken", "too-many", "failed"}

func newObservedRelays(relays server.RelayMapper, mappings relay.NatMappings, events record.EventRecorder) *observedRelays {
	o := &observedRelays{
		RelayMapper: relays, mappings: mappings, events: events,
		refused: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "liqo_broker_relay_refusals_total",
			Help: "Relay addresses that were not given out, by reason: not-offloaded, external-cidr-full, taken, too-many or failed.",
		}, []string{"consumer", "reason"}),
		mapping: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "liqo_broker_relay_mapping_duration_seconds",
			Help:    "Time that the remote IPAM took for one relay address, by result: mapped, refused or failed.",
			Buckets: []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10},
		}, []string{"result"}),
		held: prometheus.NewDesc("liqo_broker_relay_addresses",
			"Relay addresses that lead a cluster to others through this one.", []string{"cluster"}, nil),
		shared: prometheus.NewDesc("liqo_broker_relay_addresses_shared",
			"Relay addresses that lead a cluster to more than one address, of which it reaches one.", []string{"cluster"}, nil),
	}
	for _, result := range []string{resultMapped, resultRefused, resultFailed} {
		o.mapping.WithLabelValues(result)
	}
	return o
}

func (o *observedRelays) register(r prometheus.Registerer) error {
	for _, c := range []prometheus.Collector{o, o.refused, o.mapping} {
		if err := r.Register(c); err != nil {
			return fmt.Errorf("register the metrics: %w", err)
		}
	}
	return nil
}

// registerProgram registers which version runs, and until when the certificate of the remote IPAM is valid.
func registerProgram(r prometheus.Registerer, certificate diagnostics.GetCertificate) error {
	expiry := diagnostics.NewExpiry(map[string]diagnostics.GetCertificate{"remote-ipam": certificate})
	for _, c := range []prometheus.Collector{diagnostics.BuildInfo("network-manager"), expiry} {
		if err := r.Register(c); err != nil {
			return fmt.Errorf("register the metrics: %w", err)
		}
	}
	return nil
}

// MapRelay implements server.RelayMapper.
func (o *observedRelays) MapRelay(ctx context.Context, consumer cluster.ID, address netip.Addr) (netip.Addr, error) {
	begun := time.Now()
	mapped, err := o.RelayMapper.MapRelay(ctx, consumer, address)
	result := resultRefused
	defer func() { o.mapping.WithLabelValues(result).Observe(time.Since(begun).Seconds()) }()
	for _, reason := range refusals {
		o.refused.WithLabelValues(string(consumer), reason) // Zero is told as well, so that the first refusal is an increase.
	}
	switch {
	case err == nil:
		result = resultMapped
	case errors.Is(err, relay.ErrNotOffloaded):
		o.refused.WithLabelValues(string(consumer), "not-offloaded").Inc()
	case errors.Is(err, ipamclient.ErrExternalCIDRFull):
		o.refused.WithLabelValues(string(consumer), "external-cidr-full").Inc()
		o.events.Eventf(aConsumer(consumer), corev1.EventTypeWarning, reasonFull,
			"The external CIDR of this cluster is full: the pod at %s, and others after it, cannot be reached by the consumer", address)
	case errors.Is(err, relay.ErrTooMany):
		o.refused.WithLabelValues(string(consumer), "too-many").Inc()
		o.events.Eventf(aConsumer(consumer), corev1.EventTypeWarning, reasonTooMany,
			"The consumer has as many relay addresses as --max-relay-addresses of the remote IPAM allows: "+
				"it cannot reach the pod at %s, and others after it, through the broker", address)
	case errors.Is(err, relay.ErrTaken):
		o.refused.WithLabelValues(string(consumer), "taken").Inc()
		o.events.Eventf(aConsumer(consumer), corev1.EventTypeWarning, reasonTaken,
			"Liqo's IPAM gave out an address twice: the consumer cannot reach the pod at %s through the broker until the other pod is gone", address)
	default:
		result = resultFailed
		o.refused.WithLabelValues(string(consumer), "failed").Inc()
	}
	return mapped, err
}

// aConsumer is what an event about a consumer is about.
func aConsumer(id cluster.ID) *v1alpha1.Consumer {
	return &v1alpha1.Consumer{
		TypeMeta:   metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion.String(), Kind: "Consumer"},
		ObjectMeta: metav1.ObjectMeta{Name: string(id)},
	}
}

// Describe implements prometheus.Collector.
func (o *observedRelays) Describe(descs chan<- *prometheus.Desc) {
	descs <- o.held
	descs <- o.shared
}

// Collect implements prometheus.Collector.
func (o *observedRelays) Collect(values chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), scrapeTimeout)
	defer cancel()
	err := o.mappings.Each(ctx, func(m *v09.NatMapping) {
		mappings, target := v09.Mappings(m), string(v09.MappedFor(m))
		values <- prometheus.MustNewConstMetric(o.held, prometheus.GaugeValue, float64(len(mappings)), target)
		values <- prometheus.MustNewConstMetric(o.shared, prometheus.GaugeValue, float64(shared(mappings)), target)
	})
	if err != nil {
		values <- prometheus.NewInvalidMetric(o.held, err)
	}
}

// shared counts the relay addresses that are those of more than one address.
func shared(mappings map[string]string) int {
	holders := make(map[string]int, len(mappings))
	count := 0
	for _, relay := range mappings {
		if holders[relay]++; holders[relay] == 2 {
			count++
		}
	}
	return count
}
