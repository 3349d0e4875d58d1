// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"net/netip"
	"time"

	"github.com/go-logr/logr"
	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"

	"github.com/capacitorset/liqo-broker/pkg/cached"
	"github.com/capacitorset/liqo-broker/pkg/ipamguard"
	"github.com/capacitorset/liqo-broker/pkg/ipamguard/nftables"
	v09 "github.com/capacitorset/liqo-broker/pkg/liqo/v09"
	"github.com/capacitorset/liqo-broker/pkg/logging"
	"github.com/capacitorset/liqo-broker/pkg/logging/capture"
	"github.com/capacitorset/liqo-broker/pkg/netflag"
	"github.com/capacitorset/liqo-broker/pkg/program"
)

// guardConfig is the parsed command line of the guard.
type guardConfig struct {
	shut  bool
	allow netflag.Prefixes
	log   logging.Options
}

func (c *guardConfig) validate() error {
	for _, prefix := range c.allow {
		if !prefix.Addr().Is4() {
			return fmt.Errorf("--allow=%s: must be IPv4: Liqo v0.9.4 has nothing else", prefix)
		}
	}
	return nil
}

func newGuardCommand() *cobra.Command {
	c := &guardConfig{}
	command := &cobra.Command{
		Use:   "guard",
		Short: "Close Liqo's IPAM to all but this pod and the virtual kubelets of this cluster",
		Long: fmt.Sprintf("Close TCP port %d of this pod, where Liqo's IPAM answers everybody, to all but the pod itself "+
			"and the virtual kubelets of this cluster.", v09.IPAMPort),
		Args: program.NoArguments,
		RunE: func(command *cobra.Command, _ []string) error {
			if err := c.validate(); err != nil {
				return program.Usage(err)
			}
			log, err := logging.New(c.log)
			if err != nil {
				return err
			}
			return guard(command.Context(), *c, log)
		},
	}
	flags := command.Flags()
	flags.BoolVar(&c.shut, "shut", false, "close the port to the virtual kubelets as well, and exit")
	flags.Var(&c.allow, "allow", "IPv4 prefix that reaches the port besides; may be repeated")
	c.log.AddFlags(flags)
	return command
}

func guard(ctx context.Context, c guardConfig, log logr.Logger) error {
	if c.shut {
		return nftables.Install(rule(c.allow, 0))
	}
	capture.Libraries(log)
	restConfig, err := ctrl.GetConfig()
	if err != nil {
		return fmt.Errorf("find the Kubernetes API: %w", err)
	}
	objects, err := cache.New(restConfig, cached.Options(ipamguard.CacheOptions()))
	if err != nil {
		return fmt.Errorf("set up the connection to the Kubernetes API: %w", err)
	}
	group, running := errgroup.WithContext(ctx)
	group.Go(func() error { return objects.Start(running) })
	group.Go(func() error { return ipamguard.New(objects, c.allow, lease, log).Run(running) })
	if err := group.Wait(); err != nil && ctx.Err() == nil {
		return err
	}
	return nil
}

// lease opens the port for as long as a guard that ends is expected to be away.
func lease(sources []netip.Prefix) error { return nftables.Install(leased(sources)) }

// leased is the rule of a guard that stays.
func leased(sources []netip.Prefix) nftables.Rule { return rule(sources, ipamguard.Lifetime) }

func rule(sources []netip.Prefix, lifetime time.Duration) nftables.Rule {
	return nftables.Rule{Port: v09.IPAMPort, Sources: sources, Lifetime: lifetime}
}
