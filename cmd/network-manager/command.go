// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"net"
	"strconv"

	"github.com/spf13/cobra"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
	"github.com/capacitorset/liqo-broker/pkg/logging"
	"github.com/capacitorset/liqo-broker/pkg/logging/capture"
	"github.com/capacitorset/liqo-broker/pkg/program"
	"github.com/capacitorset/liqo-broker/pkg/remoteipam"
	"github.com/capacitorset/liqo-broker/pkg/remoteipam/broker/relay"
	"github.com/capacitorset/liqo-broker/pkg/remoteipam/broker/server"
)

// options are the parsed command line.
type options struct {
	clusterID      string
	listen         string
	ipamServer     string
	metricsAddress string
	healthAddress  string
	maxRelays      int
	maxConnections int
	log            logging.Options
}

// cluster returns the cluster that serves.
func (o *options) cluster() cluster.ID { return cluster.ID(o.clusterID) }

func (o *options) validate() error {
	if o.clusterID == "" {
		return fmt.Errorf("--cluster-id is missing: it is the key CLUSTER_ID of Liqo's ConfigMap liqo-clusterid-configmap")
	}
	for flag, number := range map[string]int{"--max-relay-addresses": o.maxRelays, "--max-connections": o.maxConnections} {
		if number < 1 {
			return fmt.Errorf("%s=%d: must be positive", flag, number)
		}
	}
	for flag, address := range map[string]string{"--listen": o.listen, "--ipam-server": o.ipamServer} {
		if _, _, err := net.SplitHostPort(address); err != nil {
			return fmt.Errorf("%s=%s: not [HOST]:PORT: %w", flag, address, err)
		}
	}
	return nil
}

func newCommand() *cobra.Command {
	o := &options{}
	command := &cobra.Command{
		Use:           "network-manager",
		Short:         "Serve the remote IPAM of a liqo-broker, beside Liqo's network-manager",
		SilenceUsage:  true,
		SilenceErrors: true,
		RunE: func(command *cobra.Command, _ []string) error {
			if err := o.validate(); err != nil {
				return program.Usage(err)
			}
			log, err := logging.New(o.log)
			if err != nil {
				return err
			}
			capture.Libraries(log)
			config, err := ctrl.GetConfig()
			if err != nil {
				return fmt.Errorf("find the Kubernetes API: %w", err)
			}
			s, err := newSidecar(sidecarConfig{options: *o, rest: config, log: log})
			if err != nil {
				return err
			}
			return s.runSidecar(command.Context())
		},
	}
	// Where it serves, and whom it asks.
	flags := command.Flags()
	flags.StringVar(&o.clusterID, "cluster-id", "", "ID of this cluster in the Liqo federation")
	flags.StringVar(&o.listen, "listen", ":"+strconv.Itoa(remoteipam.Port), "address that serves the remote IPAM")
	flags.StringVar(&o.ipamServer, "ipam-server", "127.0.0.1:6000", "address of Liqo's IPAM")
	flags.StringVar(&o.metricsAddress, "metrics-address", ":6002",
		`address that serves Prometheus metrics over TLS, to whoever may get the path /metrics of this cluster; "0" for none`)
	flags.StringVar(&o.healthAddress, "health-address", ":6003", `address that serves /healthz and /readyz; "0" for none`)
	// How much of it one consumer may have.
	flags.IntVar(&o.maxConnections, "max-connections", server.DefaultMaxConnections,
		"connections that one consumer may have: one for each of its virtual nodes that stands for this cluster or its providers")
	flags.IntVar(&o.maxRelays, "max-relay-addresses", relay.DefaultLimit, "relay addresses that one consumer may have")
	o.log.AddFlags(flags)
	command.AddCommand(newAgentCommand(), newGuardCommand(), newProbeCommand(), newTransitCommand())
	command.CompletionOptions.DisableDefaultCmd = true
	program.ExplainFlags(command)
	program.Strict(command, program.ExitCodes)
	return command
}
