// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capacitorset/liqo-broker/pkg/api/v1alpha1"
	"github.com/capacitorset/liqo-broker/pkg/controller/twin"
	"github.com/capacitorset/liqo-broker/pkg/resourceplugin"
	"github.com/capacitorset/liqo-broker/pkg/serving/diagnostics"
	"github.com/capacitorset/liqo-broker/pkg/webhook/audit"
)

// scrapeTimeout bounds the reads for one scrape, which come from the cache.
const scrapeTimeout = time.Second

// programName is what the daemon is called in its metrics.
const programName = "broker"

// Whom a decision is about: the values of the label.
const (
	aboutPolicy    = "policy"
	aboutNamespace = "namespace"
)

// brokerMetrics are the daemon's own metrics, beside those of controller-runtime. What is known of clusters is read when it is asked
// for, so that a cluster that is gone leaves no series.
type brokerMetrics struct {
	reader      client.Reader
	subscribers []prometheus.Collector // Empty if Liqo does not ask what to offer.
	given       *prometheus.CounterVec
	decisions   *prometheus.HistogramVec
	changes     *prometheus.CounterVec
	twin        *twin.Metrics
	clusters    *clusterDescs
}

// newBrokerMetrics returns the metrics of a daemon that Liqo asks by a plugin what to offer; nil if it does not ask.
func newBrokerMetrics(reader client.Reader, plugin *resourceplugin.Server) *brokerMetrics {
	m := &brokerMetrics{
		reader: reader,
		given: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "liqo_broker_pods_given_back_total",
			Help: "Pods that were ended because no provider could take them, by consumer.",
		}, []string{"consumer"}),
		decisions: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "liqo_broker_decision_duration_seconds",
			Help: "Time to read what a decision needs and to decide, without writing it, by what is decided about: " +
				"a placement policy for all its consumers, or a namespace.",
			Buckets: []float64{.0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5},
		}, []string{"about"}),
		changes:  audit.NewMetrics(),
		clusters: newClusterDescs(),
	}
	if plugin != nil {
		m.subscribers = append(m.subscribers, prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "liqo_broker_resource_plugin_subscribers",
			Help: "Subscribers of the resource plugin: Liqo's controller managers that ask what to offer.",
		}, func() float64 { return float64(plugin.Subscribers()) }))
	}
	m.decisions.WithLabelValues(aboutPolicy)
	m.twin = twin.NewMetrics(m.decisions.WithLabelValues(aboutNamespace))
	return m
}

// register registers all metrics but those of what a program of any mode has.
func (m *brokerMetrics) register(r prometheus.Registerer) error {
	return register(r, slices.Concat(m.twin.Collectors(), m.subscribers, []prometheus.Collector{m, m.decisions, m.changes})...)
}

// register registers metrics.
func register(r prometheus.Registerer, all ...prometheus.Collector) error {
	for _, c := range all {
		if err := r.Register(c); err != nil {
			return fmt.Errorf("register the metrics: %w", err)
		}
	}
	return nil
}

// programMetrics are those of a daemon of any mode: which version runs, and until when its certificates are valid.
func programMetrics(api, webhook diagnostics.GetCertificate) []prometheus.Collector {
	return []prometheus.Collector{
		diagnostics.BuildInfo(programName),
		diagnostics.NewExpiry(map[string]diagnostics.GetCertificate{"api": api, "webhook": webhook}),
	}
}

// Describe implements prometheus.Collector.
func (m *brokerMetrics) Describe(descs chan<- *prometheus.Desc) {
	m.clusters.describeMetrics(descs)
	m.given.Describe(descs)
}

// Collect implements prometheus.Collector.
func (m *brokerMetrics) Collect(values chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), scrapeTimeout)
	defer cancel()
	var providers v1alpha1.ProviderList
	var consumers v1alpha1.ConsumerList
	var pods corev1.PodList
	var nodes corev1.NodeList
	var namespaces corev1.NamespaceList
	for _, list := range []client.ObjectList{&providers, &consumers, &pods, &nodes, &namespaces} {
		if err := m.reader.List(ctx, list, client.UnsafeDisableDeepCopy); err != nil {
			values <- prometheus.NewInvalidMetric(m.clusters.providers, fmt.Errorf("list %T: %w", list, err))
			return
		}
	}
	counted := countPods(pods.Items, nodes.Items, namespaces.Items)
	m.clusters.collectProviders(values, providers.Items, counted.ofProvider)
	m.clusters.collectConsumers(values, consumers.Items, counted.ofConsumer)
	for i := range consumers.Items {
		m.given.WithLabelValues(consumers.Items[i].Name) // Zero is told as well.
	}
	m.given.Collect(values)
}
