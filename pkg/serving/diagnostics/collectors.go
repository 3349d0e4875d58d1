// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package diagnostics

import (
	"crypto/tls"
	"crypto/x509"
	"runtime"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/capacitorset/liqo-broker/pkg/version"
)

// BuildInfo returns a metric that is always 1, and says in its labels which version of a program runs.
func BuildInfo(program string) prometheus.Collector {
	return prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name:        "liqo_broker_build_info",
		Help:        "Always 1; the labels say which version of which program runs, and with which version of Go it was built.",
		ConstLabels: prometheus.Labels{"program": program, "version": version.String(), "goversion": runtime.Version()},
	}, func() float64 { return 1 })
}

// GetCertificate returns what a TLS server shows; an error, or nil, if it shows nothing yet.
type GetCertificate = func(*tls.ClientHelloInfo) (*tls.Certificate, error)

// Expiry tells until when the certificates that a program shows are valid.
type Expiry struct {
	desc *prometheus.Desc
	// served has what is shown, by what the certificates are for.
	served map[string]GetCertificate
}

// NewExpiry returns a metric for certificates that functions get as a TLS server does, by what they are for. One that is not
// made yet has no value.
func NewExpiry(served map[string]GetCertificate) *Expiry {
	return &Expiry{served: served, desc: prometheus.NewDesc("liqo_broker_certificate_expiry_timestamp_seconds",
		"When the certificate that the program shows to its clients expires, in seconds since 1970.", []string{"certificate"}, nil)}
}

// Describe implements prometheus.Collector.
func (e *Expiry) Describe(descs chan<- *prometheus.Desc) { descs <- e.desc }

// Collect implements prometheus.Collector.
func (e *Expiry) Collect(values chan<- prometheus.Metric) {
	for name, get := range e.served {
		shown, err := get(nil)
		if err != nil || shown == nil || len(shown.Certificate) == 0 {
			continue
		}
		leaf, err := x509.ParseCertificate(shown.Certificate[0])
		if err != nil {
			values <- prometheus.NewInvalidMetric(e.desc, err)
			continue
		}
		values <- prometheus.MustNewConstMetric(e.desc, prometheus.GaugeValue, float64(leaf.NotAfter.Unix()), name)
	}
}
