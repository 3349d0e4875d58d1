// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"net/url"
	"time"

	"github.com/spf13/cobra"

	"github.com/capacitorset/liqo-broker/pkg/daemon"
	"github.com/capacitorset/liqo-broker/pkg/httpapi"
	"github.com/capacitorset/liqo-broker/pkg/liqo"
	"github.com/capacitorset/liqo-broker/pkg/logging"
	"github.com/capacitorset/liqo-broker/pkg/netflag"
	"github.com/capacitorset/liqo-broker/pkg/program"
	"github.com/capacitorset/liqo-broker/pkg/promquery"
	"github.com/capacitorset/liqo-broker/pkg/version"
)

// Defaults of the flags. The Services in deploy/broker lead to these ports.
const (
	defaultPluginAddress  = ":7000"
	defaultAPIAddress     = ":8000"
	defaultMetricsAddress = ":8080"
	defaultHealthAddress  = ":8081"
	defaultWebhookAddress = ":9443"
	defaultMapping        = "DefaultName"
	defaultGiveBackAfter  = 2 * time.Minute
	defaultMaxNamespaces  = 100
)

// options are the parsed command line.
type options struct {
	catalog      bool
	orchestrator bool
	aggregator   bool

	pluginAddress   string
	pluginAllow     netflag.Prefixes
	apiAddress      string
	plainAPIAddress string
	metricsAddress  string
	healthAddress   string
	webhookAddress  string

	tlsCertFile  string
	tlsKeyFile   string
	tlsNames     []string
	apiAudiences []string
	apiOrigins   []string
	page         bool

	webhookAllow        netflag.Prefixes
	webhookClientCAFile string

	anonymousToggle  bool
	anonymousCatalog bool
	leaderElect      bool
	leaderNamespace  string
	leaderIdentity   string // Another one each time if empty.
	namespace        string // The daemon's own; empty if it does not run in a pod.
	liqoNamespace    string
	mappingName      string
	maxNamespaces    int
	giveBackAfter    time.Duration
	// provideFromConsumers enables also those new providers that use the broker.
	provideFromConsumers bool
	// inventoryNamespace is where other programs find the providers in kinds of SIG Multicluster; empty for nowhere.
	inventoryNamespace string
	prometheus         promquery.Config
	log                logging.Options
}

// brokers reports whether the daemon stands between consumers and providers, and
// is not only a catalog.
func (o *options) brokers() bool { return o.orchestrator || o.aggregator }

// validate returns the options that need parsing.
func (o *options) validate() (liqo.Mapping, error) {
	if !o.catalog && !o.brokers() {
		return "", errors.New("no mode is given: use at least one of --with-catalog, --with-orchestrator and --with-aggregator")
	}
	for _, a := range []struct {
		flag, address string
		optional      bool
	}{
		{flag: "--resource-plugin-address", address: o.pluginAddress},
		{flag: "--api-address", address: o.apiAddress},
		{flag: "--webhook-address", address: o.webhookAddress},
		{flag: "--plain-api-address", address: cmp.Or(o.plainAPIAddress, "0"), optional: true},
		{flag: "--metrics-address", address: o.metricsAddress, optional: true},
		{flag: "--health-address", address: o.healthAddress, optional: true},
	} {
		if a.optional && a.address == "0" {
			continue
		}
		if _, _, err := net.SplitHostPort(a.address); err != nil {
			return "", fmt.Errorf("%s=%s is not [HOST]:PORT: %w", a.flag, a.address, err)
		}
	}
	// What the HTTP API serves, and to whom.
	if (o.tlsCertFile == "") != (o.tlsKeyFile == "") {
		return "", errors.New("--tls-cert-file and --tls-private-key-file need each other")
	}
	if len(o.apiAudiences) == 0 {
		return "", errors.New("--api-audience must not be empty")
	}
	for _, origin := range o.apiOrigins {
		if u, err := url.Parse(origin); err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Host == "" ||
			u.Scheme+"://"+u.Host != origin {
			return "", fmt.Errorf("--api-cors-origin=%s is not SCHEME://HOST[:PORT], such as https://dashboard.example.com", origin)
		}
	}
	if o.page && !o.brokers() {
		return "", errors.New("--ui needs --with-orchestrator or --with-aggregator: a catalog does not serve what the page shows")
	}
	// Limits, and what is asked of others.
	if o.maxNamespaces < 0 {
		return "", fmt.Errorf("--max-namespaces=%d must not be negative", o.maxNamespaces)
	}
	if o.giveBackAfter < 0 {
		return "", fmt.Errorf("--give-back-after=%s must not be negative", o.giveBackAfter)
	}
	if o.inventoryNamespace != "" && !o.brokers() {
		return "", errors.New("--cluster-inventory-namespace needs --with-orchestrator or --with-aggregator: a catalog has no providers " +
			"of its own")
	}
	if o.prometheus.URL == "" && (o.prometheus.CAFile != "" || o.prometheus.TokenFile != "") {
		return "", errors.New("--prometheus-ca-file and --prometheus-token-file need --prometheus")
	}
	mapping, err := liqo.ParseMapping(o.mappingName)
	if err != nil {
		return "", fmt.Errorf("--namespace-mapping-strategy: %w", err)
	}
	return mapping, nil
}

// findNamespaces sets the daemon's own namespace, if it runs in a pod, and that of the
// replicas' lease to the same, if it is needed and not given.
func (o *options) findNamespaces(ownNamespaceFile string) error {
	own, err := daemon.Namespace(ownNamespaceFile)
	if err == nil {
		o.namespace = own
	}
	if !o.leaderElect || o.leaderNamespace != "" {
		return nil
	}
	if err != nil {
		return fmt.Errorf("--leader-elect outside of a pod needs --leader-election-namespace: %w", err)
	}
	o.leaderNamespace = o.namespace
	return nil
}

func newCommand() *cobra.Command {
	o := &options{}
	command := &cobra.Command{
		Use:           "broker",
		Short:         "Offer consumers the resources of many providers, over Liqo",
		Version:       version.String(),
		SilenceUsage:  true,
		SilenceErrors: true,
		RunE: func(command *cobra.Command, _ []string) error {
			mapping, err := o.validate()
			if err != nil {
				return program.Usage(err)
			}
			log, config, err := daemon.Open(o.log)
			if err != nil {
				return err
			}
			if err := o.findNamespaces(daemon.NamespaceFile); err != nil {
				return program.Usage(err)
			}
			asker, err := promquery.NewAsker(o.prometheus)
			if err != nil {
				return program.Usage(fmt.Errorf("--prometheus: %w", err))
			}
			b, err := newBroker(brokerConfig{options: *o, mapping: mapping, rest: config, log: log, asker: asker})
			if err != nil {
				return err
			}
			return b.run(command.Context())
		},
	}
	program.ExplainFlags(command)
	flags := command.Flags()
	// What kind of broker it is.
	flags.BoolVar(&o.catalog, "with-catalog", false, "serve the list of clusters on /api/clusters")
	flags.BoolVar(&o.orchestrator, "with-orchestrator", false,
		"broker for consumers that see and choose the providers, on /api/clusters and /api/toggle")
	flags.BoolVar(&o.aggregator, "with-aggregator", false, "broker for consumers that do not see the providers")
	// What it serves: Liqo's resource plugin, the HTTP API, webhooks, metrics and probes.
	flags.StringVar(&o.pluginAddress, "resource-plugin-address", defaultPluginAddress,
		"address that serves Liqo's resource plugin, in the modes orchestrator and aggregator")
	flags.Var(&o.pluginAllow, "resource-plugin-allow",
		"prefix from which the resource plugin may be called, in addition to the pods of Liqo's controller manager; may be repeated")
	flags.StringVar(&o.apiAddress, "api-address", defaultAPIAddress, "address that serves the HTTP API, over TLS")
	flags.StringVar(&o.plainAPIAddress, "plain-api-address", "",
		"address that serves the HTTP API without TLS, as far as it needs no token; none if empty")
	flags.StringVar(&o.tlsCertFile, "tls-cert-file", "",
		"file with the certificate of the HTTP API and the metrics, and its intermediate CAs; reloaded when it changes; if empty, the daemon "+
			"creates its own, and announces it in the ConfigMap "+httpapi.CAName)
	flags.StringVar(&o.tlsKeyFile, "tls-private-key-file", "", "file with the private key of --tls-cert-file")
	flags.StringSliceVar(&o.tlsNames, "tls-name", nil,
		"additional DNS name or IP address in the daemon's own certificate, beside those of its Service; may be repeated")
	flags.StringSliceVar(&o.apiAudiences, "api-audience", []string{httpapi.Audience},
		"audience of the tokens that the HTTP API accepts; may be repeated")
	flags.StringSliceVar(&o.apiOrigins, "api-cors-origin", nil,
		"origin whose web pages may use /api/v1 from a browser, with tokens of their own, such as https://dashboard.example.com; may be "+
			"repeated; none if empty")
	flags.BoolVar(&o.page, "ui", false,
		"serve the page for browsers at /ui/ of the HTTP API; everybody gets the page, and its data needs a token as the API does")
	flags.StringVar(&o.webhookAddress, "webhook-address", defaultWebhookAddress,
		"address that serves the admission webhooks")
	flags.Var(&o.webhookAllow, "webhook-allow",
		"prefix of the addresses of the API servers, which alone may call the webhooks; may be repeated; all but the peers' if empty")
	flags.StringVar(&o.webhookClientCAFile, "webhook-client-ca-file", "",
		"file with the CA certificates that verify the client certificates of the API servers at the webhooks; none are required if empty")
	flags.StringVar(&o.metricsAddress, "metrics-address", defaultMetricsAddress,
		`address that serves Prometheus metrics, over TLS, to callers that may get /metrics; "0" for none`)
	flags.StringVar(&o.healthAddress, "health-address", defaultHealthAddress, `address that serves /healthz and /readyz; "0" for none`)
	// Who may do what without a token.
	flags.BoolVar(&o.anonymousToggle, "anonymous-toggle", false,
		"allow POST /api/toggle without authentication; otherwise the caller needs a token with the right to update providers.brokering.liqo.io")
	flags.BoolVar(&o.anonymousCatalog, "anonymous-catalog", false,
		"serve /api/clusters without authentication also in the mode aggregator, where the caller otherwise needs a token with the right to "+
			"list providers.brokering.liqo.io")
	flags.BoolVar(&o.provideFromConsumers, "provide-from-consumers", false,
		"also use new providers that are consumers of the broker; otherwise they are Drained until somebody makes them Active")
	// How several replicas share the work, and where Liqo is.
	flags.BoolVar(&o.leaderElect, "leader-elect", false, "enable leader election: of several replicas only the leader writes")
	flags.StringVar(&o.leaderIdentity, "leader-election-identity", "",
		"name of this replica in the lease, which should survive a restart, such as the name of its pod; random if empty")
	flags.StringVar(&o.leaderNamespace, "leader-election-namespace", "", "namespace of the replicas' lease; the daemon's own if empty")
	flags.StringVar(&o.liqoNamespace, "liqo-namespace", liqo.DefaultNamespace, "namespace in which Liqo runs")
	// How pods are offloaded.
	flags.StringVar(&o.mappingName, "namespace-mapping-strategy", defaultMapping,
		"how Liqo names consumers' namespaces on the providers: DefaultName, which appends the broker's name unless that makes the "+
			"name longer than 63 characters, or EnforceSameName, which collides with what consumers offload to providers themselves")
	flags.IntVar(&o.maxNamespaces, "max-namespaces", defaultMaxNamespaces,
		"maximum number of namespaces of a consumer that are offloaded to providers; pods in further ones wait; 0 for no limit")
	flags.DurationVar(&o.giveBackAfter, "give-back-after", defaultGiveBackAfter,
		"how long a pod may stay unschedulable before it is returned to its consumer, which can place it elsewhere; 0 means forever")
	// Who else is told.
	flags.StringVar(&o.inventoryNamespace, "cluster-inventory-namespace", "",
		"namespace in which the daemon writes a ClusterProfile for each provider, and a PlacementDecision of SIG Multicluster for each "+
			"decision; none are written if empty")
	// Where KPIs are asked for.
	flags.StringVar(&o.prometheus.URL, "prometheus", "",
		"URL of the Prometheus that is queried for the KPIs of ProviderQueries and PlacementPolicies, without credentials")
	flags.StringVar(&o.prometheus.CAFile, "prometheus-ca-file", "",
		"file with the CA certificates that verify Prometheus; those of the system if empty")
	flags.StringVar(&o.prometheus.TokenFile, "prometheus-token-file", "",
		"file with the bearer token for Prometheus; it is read for each query")
	o.log.AddFlags(flags)
	command.AddCommand(newGuardCommand())
	command.CompletionOptions.DisableDefaultCmd = true
	program.Strict(command, program.ExitCodes)
	return command
}
