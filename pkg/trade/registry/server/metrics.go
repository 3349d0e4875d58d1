// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/capacitorset/liqo-broker/pkg/trade/registry/registryv1"
)

// metrics are what Prometheus is told. They name no party.
type metrics struct {
	requests *prometheus.HistogramVec
	watches  *prometheus.CounterVec
	watching prometheus.Gauge
	cutOff   prometheus.Counter
	sent     prometheus.Counter
	swept    *prometheus.CounterVec
	journal  []prometheus.Collector
}

func newMetrics(s *Server) *metrics {
	gauge := func(name, help string, value func() float64) prometheus.Collector {
		return prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "liqo_broker_registry_" + name, Help: help}, value)
	}
	return &metrics{
		requests: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "liqo_broker_registry_request_duration_seconds", Help: "Time to answer requests, without watches, by operation and status.",
			Buckets: []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10},
		}, []string{"operation", "code"}),
		watches: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "liqo_broker_registry_watches_total",
			Help: "Watches that have begun, by how: where the watcher was (resumed), with all that there is (snapshot), or not at all because " +
				"there are too many (refused).",
		}, []string{"begin"}),
		watching: prometheus.NewGauge(prometheus.GaugeOpts{Name: "liqo_broker_registry_watchers", Help: "Watchers that are connected."}),
		cutOff: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "liqo_broker_registry_watchers_cut_off_total", Help: "Watchers that were cut off, because they did not read in time or have gone.",
		}),
		sent: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "liqo_broker_registry_watch_sent_bytes_total", Help: "Bytes of events that were sent to watchers.",
		}),
		swept: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "liqo_broker_registry_swept_total",
			Help: "What the registry has taken note of by the clock, by what: parties that became silent, offers that have expired or were " +
				"dropped, parties that were never approved.",
		}, []string{"what"}),
		journal: []prometheus.Collector{
			gauge("revision", "Revision of what is there, which each change increases.",
				func() float64 { return float64(s.journal.View().Revision) }),
			gauge("offers", "Offers in the registry.", func() float64 { return float64(s.journal.View().Offers) }),
			gauge("store_up", "Whether the store answered when it was last asked for changes.", func() float64 {
				if s.follower != nil && s.follower.ready() {
					return 1
				}
				return 0
			}),
			&partyCounts{
				s: s, desc: prometheus.NewDesc("liqo_broker_registry_parties", "Parties, by state and by whether they are alive.",
					[]string{"state", "alive"}, nil),
			},
		},
	}
}

// Collectors returns the metrics of the registry.
func (s *Server) Collectors() []prometheus.Collector {
	m := s.metrics
	return append([]prometheus.Collector{m.requests, m.watches, m.watching, m.cutOff, m.sent, m.swept}, m.journal...)
}

// partyCounts counts parties when it is asked.
type partyCounts struct {
	s    *Server
	desc *prometheus.Desc
}

// Describe implements prometheus.Collector.
func (c *partyCounts) Describe(descs chan<- *prometheus.Desc) { descs <- c.desc }

// Collect implements prometheus.Collector.
func (c *partyCounts) Collect(values chan<- prometheus.Metric) {
	counts := map[registryv1.State]map[bool]int{registryv1.Pending: {}, registryv1.Approved: {}, registryv1.Revoked: {}}
	if all := c.s.parties.all.Load(); all != nil {
		for _, k := range all.byID {
			counts[k.State][k.Alive]++
		}
	}
	for state, by := range counts {
		for _, alive := range []bool{false, true} {
			values <- prometheus.MustNewConstMetric(c.desc, prometheus.GaugeValue, float64(by[alive]), string(state), strconv.FormatBool(alive))
		}
	}
}

// measure measures how long requests take.
func (m *metrics) measure(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if endless(r) {
			next.ServeHTTP(w, r)
			return
		}
		began, noted := time.Now(), &noting{ResponseWriter: w, code: http.StatusOK}
		next.ServeHTTP(noted, r)
		m.requests.WithLabelValues(operationOf(r), strconv.Itoa(noted.code)).Observe(time.Since(began).Seconds())
	})
}

// operationOf returns what is measured together: a pattern of the paths, and not what a caller has written.
func operationOf(r *http.Request) string {
	if r.Pattern == "" || r.Pattern == "/" {
		return "other"
	}
	if method, path, ok := strings.Cut(r.Pattern, " "); ok {
		return method + " " + path
	}
	return "other"
}

// noting notes the status of an answer.
type noting struct {
	http.ResponseWriter

	code int
}

// WriteHeader implements http.ResponseWriter.
func (n *noting) WriteHeader(code int) {
	n.code = code
	n.ResponseWriter.WriteHeader(code)
}

// Unwrap lets http.ResponseController find what is beneath.
func (n *noting) Unwrap() http.ResponseWriter { return n.ResponseWriter }
