// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capacitorset/liqo-broker/pkg/api/v1alpha1"
	"github.com/capacitorset/liqo-broker/pkg/resourceplugin"
)

// scrapeTimeout bounds the reads for one scrape, which come from the cache.
const scrapeTimeout = time.Second

// brokerMetrics are the daemon's own metrics, beside those of controller-runtime.
type brokerMetrics struct {
	reader      client.Reader
	plugin      *resourceplugin.Server
	recreated   prometheus.Counter
	given       prometheus.Counter
	providers   *prometheus.Desc
	offered     *prometheus.Desc
	used        *prometheus.Desc
	subscribers *prometheus.Desc
}

func newBrokerMetrics(reader client.Reader, plugin *resourceplugin.Server) *brokerMetrics {
	return &brokerMetrics{
		reader: reader,
		plugin: plugin,
		recreated: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "liqo_broker_pods_recreated_total",
			Help: "Pods that were recreated because they ran or waited in the wrong place.",
		}),
		given: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "liqo_broker_pods_given_back_total",
			Help: "Pods that were ended because no provider could take them.",
		}),
		providers: prometheus.NewDesc("liqo_broker_providers",
			"Providers by state: the reason of their Ready condition.", []string{"state"}, nil),
		offered: prometheus.NewDesc("liqo_broker_offered",
			"Sum of what the providers offer, in the resource's base unit (cores, bytes, pods).", []string{"resource"}, nil),
		used: prometheus.NewDesc("liqo_broker_used",
			"Sum of what pods request of the providers, in the resource's base unit.", []string{"resource"}, nil),
		subscribers: prometheus.NewDesc("liqo_broker_resource_plugin_subscribers",
			"Subscribers of the resource plugin.", nil, nil),
	}
}

func (m *brokerMetrics) register(r prometheus.Registerer) error {
	for _, c := range []prometheus.Collector{m, m.recreated, m.given} {
		if err := r.Register(c); err != nil {
			return fmt.Errorf("register the metrics: %w", err)
		}
	}
	return nil
}

// Describe implements prometheus.Collector.
func (m *brokerMetrics) Describe(descs chan<- *prometheus.Desc) {
	descs <- m.providers
	descs <- m.offered
	descs <- m.used
	descs <- m.subscribers
}

// Collect implements prometheus.Collector.
func (m *brokerMetrics) Collect(values chan<- prometheus.Metric) {
	gauge := func(desc *prometheus.Desc, value float64, labels ...string) {
		values <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, value, labels...)
	}
	gauge(m.subscribers, float64(m.plugin.Subscribers()))

	ctx, cancel := context.WithTimeout(context.Background(), scrapeTimeout)
	defer cancel()
	var list v1alpha1.ProviderList
	if err := m.reader.List(ctx, &list); err != nil {
		values <- prometheus.NewInvalidMetric(m.providers, fmt.Errorf("list providers: %w", err))
		return
	}
	states := map[string]float64{}
	offered, used := map[string]float64{}, map[string]float64{}
	for i := range list.Items {
		state := "Unknown"
		if c := meta.FindStatusCondition(list.Items[i].Status.Conditions, v1alpha1.ConditionReady); c != nil {
			state = c.Reason
		}
		states[state]++
		for name, quantity := range list.Items[i].Status.Offered {
			offered[string(name)] += quantity.AsApproximateFloat64()
		}
		for name, quantity := range list.Items[i].Status.Used {
			used[string(name)] += quantity.AsApproximateFloat64()
		}
	}
	for state, n := range states {
		gauge(m.providers, n, state)
	}
	for name, amount := range offered {
		gauge(m.offered, amount, name)
	}
	for name, amount := range used {
		gauge(m.used, amount, name)
	}
}
