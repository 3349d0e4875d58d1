// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"strings"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/certwatcher"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/capacitorset/liqo-broker/pkg/httpapi"
	"github.com/capacitorset/liqo-broker/pkg/serving/delegatedauth"
	"github.com/capacitorset/liqo-broker/pkg/serving/diagnostics"
	"github.com/capacitorset/liqo-broker/pkg/serving/ports"
	"github.com/capacitorset/liqo-broker/pkg/serving/selfsigned"
	"github.com/capacitorset/liqo-broker/pkg/ui"
)

// ports returns the ports of the daemon but that of the webhooks, which the manager
// runs. The resource plugin answers from the first moment: Liqo's controller manager
// exits if it does not. So do the probes. All else waits until the cluster is known.
func (b *broker) ports() []ports.Port {
	all := []ports.Port{
		{Flag: "--api-address", Address: b.cfg.apiAddress, Serve: ports.After(b.parts.Synced, (*parts).serveAPI)},
		{Flag: "--plain-api-address", Address: b.cfg.plainAPIAddress, Serve: ports.After(b.parts.Synced, (*parts).servePlainAPI)},
		{Flag: "--metrics-address", Address: b.cfg.metricsAddress, Serve: ports.After(b.parts.Synced, b.serveMetrics)},
		{Flag: "--health-address", Address: b.cfg.healthAddress, Serve: b.serveHealth},
	}
	if b.plugin != nil {
		all = append(all, ports.Port{Flag: "--resource-plugin-address", Address: b.cfg.pluginAddress, Serve: b.runPlugin})
	}
	return ports.Opened(all)
}

// serveAPI and servePlainAPI serve the HTTP API, with the daemon's certificate and without any.
func (p *parts) serveAPI(ctx context.Context, listener net.Listener) error {
	return p.api.Run(ctx, listener, p.apiTLS())
}

func (p *parts) servePlainAPI(ctx context.Context, listener net.Listener) error {
	return p.api.Run(ctx, listener, nil)
}

// serveMetrics serves the metrics, and not to peers.
func (b *broker) serveMetrics(p *parts, ctx context.Context, listener net.Listener) error {
	served := diagnostics.Metrics{Gatherer: metrics.Registry, Readers: p.readers, TLS: p.certificate.tls(), Admits: b.peers.Excludes}
	return served.Serve(ctx, listener)
}

// serveHealth serves the probes: ready is who knows the cluster. The kubelet is heard also before
// the peers are known.
func (b *broker) serveHealth(ctx context.Context, listener net.Listener) error {
	probes := diagnostics.Probes{Admits: b.peers.ExcludesKnown, Ready: func(ctx context.Context) bool {
		p, err := b.parts.Synced(ctx)
		return err == nil && p.certificate.made()
	}}
	return probes.Serve(ctx, listener)
}

// certificate is what the daemon shows to people and to Prometheus.
type certificate struct {
	get func(*tls.ClientHelloInfo) (*tls.Certificate, error)
	run func(context.Context) error
}

// made reports whether there is something to show.
func (c certificate) made() bool {
	shown, err := c.get(nil)
	return err == nil && shown != nil
}

// tls returns how a port is served that shows the certificate.
func (c certificate) tls() *tls.Config {
	return &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: c.get}
}

// newAPICertificate returns the certificate of the HTTP API: from files, or one of its
// own that it announces.
func newAPICertificate(o *options, direct client.Client) (certificate, error) {
	if o.tlsCertFile != "" {
		watcher, err := certwatcher.New(o.tlsCertFile, o.tlsKeyFile)
		if err != nil {
			return certificate{}, fmt.Errorf("--tls-cert-file and --tls-private-key-file: %w", err)
		}
		return certificate{get: watcher.GetCertificate, run: watcher.Start}, nil
	}
	announce := httpapi.Announcer{Client: direct, Namespace: o.namespace}.Announce
	if o.namespace == "" {
		announce = func(ctx context.Context, _ []byte) error {
			ctrl.LoggerFrom(ctx).Info("Clients cannot verify the certificate of the HTTP API: the daemon does not run in a pod")
			return nil
		}
	}
	name, more := apiNames(o.namespace)
	own := selfsigned.New(name, announce, append(more, o.tlsNames...)...)
	return certificate{get: own.Get, run: own.Run}, nil
}

// apiService is the Service of the HTTP API.
const apiService = "liqo-broker"

// apiNames returns by what names the HTTP API is reached: its Service's, and those of
// `kubectl port-forward`.
func apiNames(namespace string) (name string, more []string) {
	more = []string{"localhost", "127.0.0.1", "::1"}
	if namespace == "" {
		return apiService, more
	}
	name = apiService + "." + namespace
	return name + ".svc", append(more, name+".svc.cluster.local", name, apiService)
}

// newPage returns the page for browsers, and the names by which it is called; nil for any if nobody has said by which.
func newPage(o *options) (page http.Handler, hosts []string, err error) {
	plugin, err := ui.New()
	if err != nil {
		return nil, nil, err
	}
	hosted, err := plugin.Hosted()
	if err != nil {
		return nil, nil, err
	}
	if len(o.tlsNames) > 0 {
		name, more := apiNames(o.namespace)
		hosts = append([]string{name}, more...)
		for _, name := range o.tlsNames {
			hosts = append(hosts, asBrowsersSay(name))
		}
	}
	return hosted, hosts, nil
}

// asBrowsersSay returns a DNS name or an IP address as browsers write it into their requests.
func asBrowsersSay(name string) string {
	if address, err := netip.ParseAddr(name); err == nil {
		return address.String()
	}
	return strings.ToLower(strings.TrimSuffix(name, "."))
}

// newReaders returns who knows the callers of the metrics. Prometheus sends the token of
// its own pod, which is for the API server.
func newReaders(direct client.Client) *delegatedauth.Reviewer { return delegatedauth.New(direct) }
