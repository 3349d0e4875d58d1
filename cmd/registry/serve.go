// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"net/netip"
	"os"
	"runtime/debug"
	"strconv"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/spf13/cobra"
	"k8s.io/utils/clock"

	"github.com/capacitorset/liqo-broker/pkg/logging"
	"github.com/capacitorset/liqo-broker/pkg/program"
	"github.com/capacitorset/liqo-broker/pkg/serving/diagnostics"
	"github.com/capacitorset/liqo-broker/pkg/serving/httpserver"
	"github.com/capacitorset/liqo-broker/pkg/serving/ports"
	"github.com/capacitorset/liqo-broker/pkg/trade/party"
	"github.com/capacitorset/liqo-broker/pkg/trade/registry/discovery"
	"github.com/capacitorset/liqo-broker/pkg/trade/registry/server"
	"github.com/capacitorset/liqo-broker/pkg/version"
)

const (
	// programName is what the registry is called in its metrics.
	programName = "registry"
	// scrapeTimeout bounds a scrape, and maxScrapers those at once.
	scrapeTimeout, maxScrapers = 10 * time.Second, 4
	// memoryPercent is how much more memory than what is in use may be garbage: less than usual, since most of what is in use stays.
	memoryPercent = 25
)

// serveOptions are the parsed command line.
type serveOptions struct {
	address, metricsAddress, healthAddress string
	keyFile, certFile, certKeyFile         string
	authorities                            string
	anonymousRead, autoApprove             bool
	mdns                                   bool
	lease, drop                            time.Duration
	limits                                 server.Limits
	log                                    logging.Options
}

func newServe(d *database) *cobra.Command {
	o := &serveOptions{limits: server.DefaultLimits()}
	command := &cobra.Command{
		Use:   "serve",
		Short: "Serve the registry",
		Args:  program.NoArguments,
		RunE: func(command *cobra.Command, _ []string) error {
			if err := o.validate(); err != nil {
				return program.Usage(err)
			}
			log, err := logging.New(o.log)
			if err != nil {
				return program.Usage(err)
			}
			return o.runServer(command.Context(), d, log)
		},
	}
	flags := command.Flags()
	// Who is served, and as whom.
	flags.StringVar(&o.address, "address", ":8443", "address that serves the API, over TLS")
	addKeyFile(command, &o.keyFile, "file with the registry's own key, by which connectors know it; it is created if it is not there")
	flags.StringVar(&o.certFile, "tls-cert-file", "",
		"file with an ordinary certificate to show instead of a self-signed one of the registry's own key; read again when it changes")
	flags.StringVar(&o.certKeyFile, "tls-private-key-file", "", "file with the private key of that certificate")
	flags.StringVar(&o.authorities, "ca-file", "",
		"file with certificates of authorities: parties whose current key they have certified are approved at once; read again when it changes")
	flags.BoolVar(&o.anonymousRead, "anonymous-read", false, "let everybody read what is offered, without a certificate")
	flags.BoolVar(&o.autoApprove, "auto-approve", false, "approve every party that announces itself")
	flags.BoolVar(&o.mdns, "mdns", false,
		"announce the registry in the local network, with the port of --address and the fingerprint of its own key: "+
			"kubectl liqo-broker registry join --lan finds it")
	// For how long a silent party counts.
	flags.DurationVar(&o.lease, "lease", server.DefaultLease, "how long a party counts as alive without a word of it")
	flags.DurationVar(&o.drop, "drop-after", server.DefaultDrop, "how long offers of a silent party stay in the registry")
	// How much one party, and all together, may have of it.
	flags.IntVar(&o.limits.Offers, "max-offers", o.limits.Offers, "offers that one party may have")
	flags.IntVar(&o.limits.PerSecond, "max-requests", o.limits.PerSecond, "requests of one party in a second; ten times as many at once")
	flags.IntVar(&o.limits.Watchers, "max-watchers", o.limits.Watchers, "watchers at the same time")
	flags.IntVar(&o.limits.WatchersEach, "max-watchers-of-party", o.limits.WatchersEach, "watchers of one party at the same time")
	flags.IntVar(&o.limits.Connections, "max-connections", o.limits.Connections,
		"connections at the same time, besides those of parties that watch")
	flags.IntVar(&o.limits.ConnectionsEach, "max-connections-of-address", o.limits.ConnectionsEach,
		"connections from one address at the same time, besides those of parties that watch")
	// Who looks after it.
	flags.StringVar(&o.metricsAddress, "metrics-address", "127.0.0.1:8445", `address that serves Prometheus metrics, which name nobody, to everybody who reaches it; "0" for none`)
	flags.StringVar(&o.healthAddress, "health-address", ":8444", `address that serves /healthz and /readyz; "0" for none`)
	o.log.AddFlags(flags)
	return command
}

func (o *serveOptions) validate() error {
	for flag, address := range map[string]string{
		"--address": o.address, "--metrics-address": o.metricsAddress, "--health-address": o.healthAddress,
	} {
		if _, _, err := net.SplitHostPort(address); err != nil && (address != "0" || flag == "--address") {
			return fmt.Errorf("%s=%s: not [HOST]:PORT: %w", flag, address, err)
		}
	}
	for flag, d := range map[string]time.Duration{"--lease": o.lease, "--drop-after": o.drop} {
		if d < time.Second {
			return fmt.Errorf("%s=%s: must be at least 1s", flag, d)
		}
	}
	l := o.limits
	for flag, n := range map[string]int{
		"--max-offers": l.Offers, "--max-requests": l.PerSecond, "--max-watchers": l.Watchers, "--max-watchers-of-party": l.WatchersEach,
		"--max-connections": l.Connections, "--max-connections-of-address": l.ConnectionsEach,
	} {
		if n < 1 {
			return fmt.Errorf("%s=%d: must be positive", flag, n)
		}
	}
	if (o.certFile == "") != (o.certKeyFile == "") {
		return errors.New("--tls-cert-file and --tls-private-key-file need each other")
	}
	return o.validateMDNS()
}

// validateMDNS refuses to announce what nobody could use.
func (o *serveOptions) validateMDNS() error {
	host, port, _ := net.SplitHostPort(o.address)
	n, err := strconv.ParseUint(port, 10, 16)
	at, _ := netip.ParseAddr(host)
	switch {
	case !o.mdns:
		return nil
	case o.certFile != "":
		return errors.New("--mdns announces the fingerprint of the registry's own key, which --tls-cert-file does not show")
	case host == "localhost" || at.IsLoopback():
		return fmt.Errorf("--mdns announces to others what --address=%s opens to this machine alone", o.address)
	case err != nil || n == 0:
		return fmt.Errorf("--mdns needs a number as the port of --address=%s", o.address)
	}
	return nil
}

// announcer returns what announces the registry in the local network.
func (o *serveOptions) announcer() (discovery.Announcer, error) {
	key, err := readKey(o.keyFile)
	if err != nil {
		return discovery.Announcer{}, err
	}
	machine, err := os.Hostname()
	if err != nil {
		return discovery.Announcer{}, fmt.Errorf("--mdns: %w", err)
	}
	_, text, _ := net.SplitHostPort(o.address)
	port, err := strconv.ParseUint(text, 10, 16)
	if err != nil {
		return discovery.Announcer{}, fmt.Errorf("--mdns: --address=%s: %w", o.address, err)
	}
	return discovery.Announcer{Name: discovery.LocalName(machine), Fingerprint: key.Fingerprint(), Port: uint16(port)}, nil
}

// runServer serves until ctx ends.
func (o *serveOptions) runServer(ctx context.Context, d *database, log logr.Logger) error {
	debug.SetGCPercent(memoryPercent)
	config, err := o.tls(log)
	if err != nil {
		return err
	}
	authorities, err := o.roots(log, clock.RealClock{})
	if err != nil {
		return err
	}
	// What is in the database is in memory before anybody is answered.
	began := time.Now()
	s, err := d.open(ctx)
	if err != nil {
		return err
	}
	defer s.Close()
	registry, err := server.New(ctx, server.Config{
		Store: s, Log: log, Authorities: authorities, AnonymousRead: o.anonymousRead, AutoApprove: o.autoApprove,
		Lease: o.lease, Drop: o.drop, Limits: o.limits, Version: version.String(),
	})
	if err != nil {
		return err
	}
	// Metrics and probes have ports of their own, so that parties see neither.
	gathered := prometheus.NewRegistry()
	for _, c := range append(registry.Collectors(), collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}), diagnostics.BuildInfo(programName)) {
		if err := gathered.Register(c); err != nil {
			return fmt.Errorf("register the metrics: %w", err)
		}
	}
	probes := &diagnostics.Probes{Ready: registry.Ready}
	log.Info("Serving the registry", "address", o.address, "schema", s.SchemaVersion(), "loaded",
		time.Since(began).Round(time.Millisecond).String())
	return ports.Run(ctx, []ports.Port{
		{Flag: "--address", Address: o.address, Serve: func(ctx context.Context, l net.Listener) error { return registry.Run(ctx, l, config) }},
		{Flag: "--metrics-address", Address: o.metricsAddress, Serve: metrics(gathered)},
		{Flag: "--health-address", Address: o.healthAddress, Serve: probes.Serve},
	}, func(ctx context.Context) error { return o.announce(ctx, log) })
}

// announce announces the registry in the local network if that is wanted, until ctx ends.
func (o *serveOptions) announce(ctx context.Context, log logr.Logger) error {
	if !o.mdns {
		<-ctx.Done()
		return nil
	}
	a, err := o.announcer()
	if err != nil {
		return err
	}
	log.Info("Announcing the registry in the local network", "name", a.Name, "port", a.Port, "fingerprint", a.Fingerprint)
	if err := a.Run(ctx); err != nil { // Parties that know the registry go on using it.
		log.Error(err, "The registry is not announced in the local network")
	}
	<-ctx.Done()
	return nil
}

// metrics serves metrics. They name nobody, so that everybody may read them who reaches the port.
func metrics(from prometheus.Gatherer) func(context.Context, net.Listener) error {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(from, promhttp.HandlerOpts{MaxRequestsInFlight: maxScrapers}))
	return func(ctx context.Context, l net.Listener) error {
		bounded := httpserver.Bound(l, httpserver.Bounds{All: 4 * maxScrapers, Each: 2 * maxScrapers})
		return httpserver.Server{Name: "the metrics", Handler: mux, Timeout: scrapeTimeout}.Run(ctx, bounded)
	}
}

// tls returns the configuration of the API's port.
func (o *serveOptions) tls(log logr.Logger) (*tls.Config, error) {
	if o.certFile != "" {
		return o.ordinary(log, clock.RealClock{})
	}
	key, err := o.key()
	if err != nil {
		return nil, err
	}
	log.Info("Connectors know this registry by its key", "fingerprint", party.Fingerprint(key.Public()))
	return party.ServerConfig(key), nil
}

// key reads the registry's own key, or makes one.
func (o *serveOptions) key() (party.Key, error) {
	key, err := readKey(o.keyFile)
	if !errors.Is(err, fs.ErrNotExist) {
		return key, err
	}
	key, err = party.GenerateKey(rand.Reader)
	if err != nil {
		return party.Key{}, fmt.Errorf("make the registry's key: %w", err)
	}
	f, err := os.OpenFile(o.keyFile, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return party.Key{}, fmt.Errorf("--key-file: %w", err)
	}
	_, err = f.Write(key.PEM())
	if err := errors.Join(err, f.Sync(), f.Close()); err != nil {
		return party.Key{}, fmt.Errorf("--key-file: write %s: %w", o.keyFile, err)
	}
	return key, nil
}
