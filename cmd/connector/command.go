// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/capacitorset/liqo-broker/pkg/daemon"
	"github.com/capacitorset/liqo-broker/pkg/liqo"
	"github.com/capacitorset/liqo-broker/pkg/logging"
	"github.com/capacitorset/liqo-broker/pkg/netflag"
	"github.com/capacitorset/liqo-broker/pkg/program"
	"github.com/capacitorset/liqo-broker/pkg/trade/connector/sales"
	"github.com/capacitorset/liqo-broker/pkg/trade/negotiation"
	"github.com/capacitorset/liqo-broker/pkg/trade/party"
	"github.com/capacitorset/liqo-broker/pkg/version"
)

// The defaults of the flags.
const (
	defaultAddress        = ":8446"
	defaultPluginAddress  = ":7000"
	defaultMetricsAddress = ":8080"
	defaultHealthAddress  = ":8081"
	defaultShare          = 30  // As Liqo's own.
	defaultShareDevices   = 100 // A part of few devices is none.
	defaultReserveFor     = 5 * time.Minute
	defaultDecideFor      = 24 * time.Hour
	defaultDrain          = 5 * time.Minute
	defaultKeepMebibytes  = 16
)

// minKeep is for how long a contract is kept at least, and maxKeepMebibytes how many of what is kept fit into the largest process.
const minKeep, maxKeepMebibytes = time.Hour, 4096

// maxName and maxEndpoint bound what the cluster says of itself.
const maxName, maxEndpoint = 128, 512

// maxNodeLabels bounds how many labels of nodes an offer tells: with those that an Offer can have itself they fit into what is signed.
const maxNodeLabels = 16

// options are the parsed command line.
type options struct {
	name, endpoint string

	address, pluginAddress        string
	metricsAddress, healthAddress string
	pluginAllow                   netflag.Prefixes
	pluginAsked                   bool // The flag is there, and wants a plugin.
	broker                        bool
	share, shareDevices           int
	nodeLabels                    []string
	reserveFor, decideFor, drain  time.Duration
	keepContracts                 time.Duration
	keepMebibytes                 int
	maxOpen, maxKept              int
	liqoNamespace                 string
	namespace                     string
	leaderIdentity                string
	log                           logging.Options
}

func newCommand() *cobra.Command {
	o := &options{}
	command := &cobra.Command{
		Use:           "connector",
		Short:         "Buy and sell the capacity of clusters by contracts that Liqo obeys",
		Version:       version.String(),
		SilenceUsage:  true,
		SilenceErrors: true,
		Args:          program.NoArguments,
		RunE: func(command *cobra.Command, _ []string) error {
			o.pluginAsked = command.Flags().Changed("resource-plugin-address") && o.pluginAddress != "0"
			if err := errors.Join(o.findNamespace(daemon.NamespaceFile), o.validate()); err != nil {
				return program.Usage(err)
			}
			log, config, err := daemon.Open(o.log)
			if err != nil {
				return err
			}
			c, err := newConnector(*o, config, log)
			if err != nil {
				return err
			}
			return c.run(command.Context())
		},
	}
	program.ExplainFlags(command)
	flags := command.Flags()
	// How others see and reach this cluster.
	flags.StringVar(&o.name, "name", "", "what others see the cluster called; what Liqo calls it if empty")
	flags.StringVar(&o.endpoint, "endpoint", "",
		"https URL at which the connectors of others reach --address, such as https://203.0.113.7:30446; without it the cluster buys only")
	flags.StringVar(&o.address, "address", defaultAddress, `address at which buyers negotiate, over TLS with the keys of both; "0" for none`)
	// What buyers are given, and by whom.
	flags.StringVar(&o.pluginAddress, "resource-plugin-address", defaultPluginAddress,
		`address that serves Liqo's resource plugin, by which clusters are given what they have bought and nothing else; "0" for none, so that Liqo gives what it likes`)
	flags.Var(&o.pluginAllow, "resource-plugin-allow",
		"prefix from which the resource plugin may be called, in addition to the pods of Liqo's controller manager; may be repeated")
	flags.BoolVar(&o.broker, "broker", false,
		"sell what the liqo-broker of this cluster aggregates: contracts set what its Consumers are granted, and the broker serves the "+
			"resource plugin")
	// How it sells.
	flags.IntVar(&o.share, "share", defaultShare, "percentage of what the cluster has and does not use that can be sold, 1 to 100")
	flags.IntVar(&o.shareDevices, "share-devices", defaultShareDevices,
		"the same of devices, such as nvidia.com/gpu, in whole ones: what has a domain in its name, 0 to 100")
	flags.StringSliceVar(&o.nodeLabels, "node-labels", nil,
		"labels of nodes that offers of devices tell, as nvidia.com/gpu.product, where all nodes with the device have one and the same value; "+
			"what an Offer says itself counts")
	flags.DurationVar(&o.reserveFor, "reserve-for", defaultReserveFor, "how long a reservation waits for the buyer's signature")
	flags.DurationVar(&o.decideFor, "decide-for", defaultDecideFor, "how long a buyer waits for somebody's approval, where it is asked for")
	flags.DurationVar(&o.drain, "drain", defaultDrain, "how long before the end of a contract the workloads begin to leave")
	// What is kept, and how much one buyer may have.
	limits := negotiation.DefaultLimits()
	flags.DurationVar(&o.keepContracts, "keep-contracts", sales.DefaultRetention().Signed,
		"how long a contract is kept after its end, with what CapacityRequests have bought; bills are made from what is kept")
	flags.IntVar(&o.keepMebibytes, "keep-mebibytes", defaultKeepMebibytes,
		"how much memory sales may take that have been over for more than a week; beyond that the oldest of the buyer with the most are deleted")
	flags.IntVar(&o.maxOpen, "max-open-contracts", limits.Open, fmt.Sprintf(
		"how many contracts that are not over one buyer may have; all together can have %d", limits.AllOpen))
	flags.IntVar(&o.maxKept, "max-kept-contracts", limits.Kept, fmt.Sprintf(
		"how many contracts one buyer may have that are not over, or were not a week ago; all together can have %d", limits.AllKept))
	// Where it runs, and who looks after it.
	flags.StringVar(&o.metricsAddress, "metrics-address", defaultMetricsAddress,
		`address that serves Prometheus metrics, over TLS, to callers that may get /metrics; "0" for none`)
	flags.StringVar(&o.healthAddress, "health-address", defaultHealthAddress, `address that serves /healthz and /readyz; "0" for none`)
	flags.StringVar(&o.liqoNamespace, "liqo-namespace", liqo.DefaultNamespace, "namespace in which Liqo runs")
	flags.StringVar(&o.namespace, "namespace", "",
		"namespace of the connector's key, of the Secrets that Registries name, and of the replicas' lease; that of the pod if empty")
	flags.StringVar(&o.leaderIdentity, "leader-election-identity", "",
		"name of this replica in the lease, which should survive a restart, such as the name of its pod; random if empty")
	o.log.AddFlags(flags)
	return command
}

// findNamespace sets the connector's namespace to that of its pod, if it is not given.
func (o *options) findNamespace(ownNamespaceFile string) error {
	if o.namespace != "" {
		return nil
	}
	var err error
	if o.namespace, err = daemon.Namespace(ownNamespaceFile); err != nil {
		return fmt.Errorf("--namespace is needed outside of a pod: %w", err)
	}
	return nil
}

func (o *options) validate() error {
	for _, a := range []struct{ flag, address string }{
		{"--address", o.address}, {"--resource-plugin-address", o.pluginAddress},
		{"--metrics-address", o.metricsAddress}, {"--health-address", o.healthAddress},
	} {
		if a.address == "0" {
			continue
		}
		if _, _, err := net.SplitHostPort(a.address); err != nil {
			return fmt.Errorf("%s=%s is not [HOST]:PORT: %w", a.flag, a.address, err)
		}
	}
	// Flags that contradict each other.
	switch {
	case o.endpoint != "" && o.address == "0":
		return errors.New("--endpoint sends buyers to a connector that does not listen: leave it out, or --address=0")
	case o.broker && o.pluginAsked:
		return errors.New("--resource-plugin-address is not for --broker: the broker serves the resource plugin")
	case o.broker && len(o.nodeLabels) > 0:
		return errors.New("--node-labels is not for --broker: what a broker sells is not on its nodes")
	case len(o.pluginAllow) > 0 && (o.broker || o.pluginAddress == "0"):
		return errors.New("--resource-plugin-allow is for a resource plugin, which --broker and --resource-plugin-address=0 do not serve")
	}
	// Values that nobody could use.
	if _, err := party.ParseEndpoint(o.endpoint); o.endpoint != "" && (err != nil || len(o.endpoint) > maxEndpoint) {
		return fmt.Errorf("--endpoint=%.80s is not https://HOST[:PORT] of up to %d characters", o.endpoint, maxEndpoint)
	}
	if len(o.name) > maxName {
		return fmt.Errorf("--name has %d characters, more than %d", len(o.name), maxName)
	}
	if o.share < 1 || o.share > 100 {
		return fmt.Errorf("--share=%d must be from 1 to 100", o.share)
	}
	if o.shareDevices < 0 || o.shareDevices > 100 {
		return fmt.Errorf("--share-devices=%d must be from 0 to 100", o.shareDevices)
	}
	for _, d := range []struct {
		flag string
		d    time.Duration
	}{{"--reserve-for", o.reserveFor}, {"--decide-for", o.decideFor}, {"--drain", o.drain}} {
		if d.d < time.Second {
			return fmt.Errorf("%s=%s must be at least 1s", d.flag, d.d)
		}
	}
	return errors.Join(o.validateNodeLabels(), o.validateLimits())
}

// validateNodeLabels refuses what is no label, and more of them than an offer has room for.
func (o *options) validateNodeLabels() error {
	if len(o.nodeLabels) > maxNodeLabels {
		return fmt.Errorf("--node-labels has %d labels, more than %d", len(o.nodeLabels), maxNodeLabels)
	}
	for _, key := range o.nodeLabels {
		if wrong := validation.IsQualifiedName(key); len(wrong) > 0 {
			return fmt.Errorf("--node-labels: %.80q is not the key of a label: %s", key, wrong[0])
		}
	}
	return nil
}

// validateLimits refuses what is kept too short to be seen, and limits that nobody could reach.
func (o *options) validateLimits() error {
	most := negotiation.DefaultLimits()
	switch {
	case o.keepContracts < minKeep:
		return fmt.Errorf("--keep-contracts=%s must be at least %s", o.keepContracts, minKeep)
	case o.keepMebibytes < 1 || o.keepMebibytes > maxKeepMebibytes:
		return fmt.Errorf("--keep-mebibytes=%d must be from 1 to %d", o.keepMebibytes, maxKeepMebibytes)
	case o.maxOpen < 1 || o.maxOpen > most.AllOpen:
		return fmt.Errorf("--max-open-contracts=%d must be from 1 to %d", o.maxOpen, most.AllOpen)
	case o.maxKept < o.maxOpen || o.maxKept > most.AllKept:
		return fmt.Errorf("--max-kept-contracts=%d must be from --max-open-contracts=%d to %d", o.maxKept, o.maxOpen, most.AllKept)
	}
	return nil
}
