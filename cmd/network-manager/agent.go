// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"net"

	"github.com/go-logr/logr"
	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/capacitorset/liqo-broker/pkg/agent/report"
	"github.com/capacitorset/liqo-broker/pkg/agent/views"
	"github.com/capacitorset/liqo-broker/pkg/daemon"
	"github.com/capacitorset/liqo-broker/pkg/liqo"
	v1 "github.com/capacitorset/liqo-broker/pkg/liqo/v1"
	"github.com/capacitorset/liqo-broker/pkg/logging"
	"github.com/capacitorset/liqo-broker/pkg/peernet"
	"github.com/capacitorset/liqo-broker/pkg/program"
	"github.com/capacitorset/liqo-broker/pkg/serving/diagnostics"
	election "github.com/capacitorset/liqo-broker/pkg/serving/lease"
	"github.com/capacitorset/liqo-broker/pkg/serving/ports"
	"github.com/capacitorset/liqo-broker/pkg/version"
)

const (
	// agentName is that of the agent's namespace, and of the lease of its replicas.
	agentName          = "liqo-broker-agent"
	agentCalls         = 20
	agentCallsAtOnce   = 40
	defaultAgentHealth = ":6003"
)

// agentOptions are the parsed command line of the agent.
type agentOptions struct {
	liqoNamespace   string
	healthAddress   string
	leaderElect     bool
	leaderIdentity  string // Another one each time if empty.
	leaderNamespace string
	log             logging.Options
}

func (o *agentOptions) validate() error {
	if o.healthAddress == "0" {
		return nil
	}
	if _, _, err := net.SplitHostPort(o.healthAddress); err != nil {
		return fmt.Errorf("--health-address=%s: not [HOST]:PORT: %w", o.healthAddress, err)
	}
	return nil
}

func newAgentCommand() *cobra.Command {
	o := &agentOptions{}
	command := &cobra.Command{
		Use:   "agent",
		Short: "Have this cluster reach the providers of its brokers, with Liqo 1.x",
		Long: "Have this cluster, a consumer with Liqo 1.x, reach the providers of its brokers: list the views that they grant among their " +
			"networks, replace virtual kubelets that have read another list, and tell the brokers which views are installed.",
		Args: program.NoArguments,
		RunE: func(command *cobra.Command, _ []string) error {
			return o.runAgent(command.Context())
		},
	}
	flags := command.Flags()
	flags.StringVar(&o.liqoNamespace, "liqo-namespace", liqo.DefaultNamespace, "namespace in which Liqo runs")
	flags.StringVar(&o.healthAddress, "health-address", defaultAgentHealth, `address that serves /healthz and /readyz; "0" for none`)
	flags.BoolVar(&o.leaderElect, "leader-elect", false, "enable leader election: of several replicas only the leader acts")
	flags.StringVar(&o.leaderIdentity, "leader-election-identity", "",
		"name of this replica in the lease, which should survive a restart, such as the name of its pod; random if empty")
	flags.StringVar(&o.leaderNamespace, "leader-election-namespace", agentName, "namespace of the replicas' lease")
	o.log.AddFlags(flags)
	return command
}

// caches is what answers the probe.
type caches struct{ ctrl.Manager }

// Caches implements what daemon.Parts asks for.
func (c caches) Caches() cache.Cache { return c.GetCache() }

// runAgent runs the agent until ctx ends, or one of its parts fails.
func (o *agentOptions) runAgent(ctx context.Context) error {
	if err := o.validate(); err != nil {
		return program.Usage(err)
	}
	log, config, err := daemon.Open(o.log)
	if err != nil {
		return err
	}
	made, peers := daemon.NewParts[caches](), &peernet.Peers{}
	health := ports.Port{Flag: "--health-address", Address: o.healthAddress, Serve: func(ctx context.Context, l net.Listener) error {
		probes := diagnostics.Probes{Admits: peers.ExcludesKnown, Ready: made.Ready}
		return probes.Serve(ctx, l)
	}}
	return ports.Run(ctx, ports.Opened([]ports.Port{health}), func(ctx context.Context) error {
		mgr, err := o.setup(ctx, config, peers, log)
		if err != nil {
			return err
		}
		made.Set(caches{mgr})
		if err := mgr.Start(ctx); err != nil {
			return fmt.Errorf("run the agent: %w", err)
		}
		return nil
	})
}

// setup makes the parts of the agent.
func (o *agentOptions) setup(ctx context.Context, config *rest.Config, peers *peernet.Peers, log logr.Logger) (ctrl.Manager, error) {
	scheme, err := daemon.Kinds(v1.Line{}.AddToScheme)
	if err != nil {
		return nil, err
	}
	config = daemon.Calls(config, agentCalls, agentCallsAtOnce, scheme, log)
	options := ctrl.Options{
		Scheme: scheme, Logger: log, Metrics: metricsserver.Options{BindAddress: "0"}, HealthProbeBindAddress: "0",
		Cache: cache.Options{DefaultTransform: daemon.Strip, ByObject: map[client.Object]cache.ByObject{
			&corev1.Pod{}: {Transform: daemon.Without(bare)},
		}},
	}
	if o.leaderElect {
		of := election.Lease{Namespace: o.leaderNamespace, Name: agentName, Identity: o.leaderIdentity}
		if err := of.Elect(&options, config); err != nil {
			return nil, err
		}
	}
	mgr, err := ctrl.NewManager(config, options)
	if err != nil {
		return nil, fmt.Errorf("make the manager for %s: %w", config.Host, err)
	}
	// Who asks, whose addresses are not its own, and what is told to brokers.
	own, err := v1.Line{}.OwnIdentity(ctx, mgr.GetAPIReader(), o.liqoNamespace)
	if err != nil {
		return nil, err
	}
	if err := peers.Watch(ctx, mgr.GetCache(), v1.Line{}); err != nil {
		return nil, err
	}
	reporter := report.New(report.Config{
		Cached: mgr.GetClient(), Live: mgr.GetAPIReader(), Version: version.String(), Clock: clock.RealClock{}, Dial: report.Dial,
	})
	if err := mgr.Add(reporter); err != nil {
		return nil, fmt.Errorf("add what reports to brokers: %w", err)
	}
	return mgr, views.Setup(mgr, views.Config{Client: mgr.GetClient(), Own: own.ID, Clock: clock.RealClock{}, Planned: reporter.Planned})
}

// bare takes out of a pod what the agent does not read.
func bare(pod *corev1.Pod) {
	node, conditions, ips := pod.Spec.NodeName, pod.Status.Conditions, pod.Status.PodIPs
	pod.Annotations, pod.OwnerReferences = nil, nil
	pod.Spec, pod.Status = corev1.PodSpec{NodeName: node}, corev1.PodStatus{Conditions: conditions, PodIPs: ips}
}
