// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capacitorset/liqo-broker/pkg/agent/nodes"
	"github.com/capacitorset/liqo-broker/pkg/agent/report"
	"github.com/capacitorset/liqo-broker/pkg/agent/stale"
	"github.com/capacitorset/liqo-broker/pkg/agent/views"
	"github.com/capacitorset/liqo-broker/pkg/cached"
	"github.com/capacitorset/liqo-broker/pkg/daemon"
	"github.com/capacitorset/liqo-broker/pkg/liqo"
	v1 "github.com/capacitorset/liqo-broker/pkg/liqo/v1"
	"github.com/capacitorset/liqo-broker/pkg/liqo/v1/api"
	"github.com/capacitorset/liqo-broker/pkg/peernet"
	"github.com/capacitorset/liqo-broker/pkg/program"
	"github.com/capacitorset/liqo-broker/pkg/version"
)

const (
	// agentName is that of the agent's namespace, and of the lease of its replicas.
	agentName          = "liqo-broker-agent"
	agentCalls         = 20
	agentCallsAtOnce   = 40
	defaultAgentHealth = ":6003"
)

// agent has a consumer reach the providers of its brokers, by nodes of single ones if a broker tells of these.
type agent struct {
	replica       *daemon.Replica
	liqoNamespace string
	peers         *peernet.Peers // Who peers are is not known until the parts are made.
}

func newAgentCommand() *cobra.Command {
	o := daemon.ReplicaOptions{HealthAddress: defaultAgentHealth, LiqoNamespace: liqo.DefaultNamespace, LeaderNamespace: agentName}
	command := &cobra.Command{
		Use:   "agent",
		Short: "Have this cluster reach the providers of its brokers, with Liqo 1.x",
		Long: "Have this cluster, a consumer with Liqo 1.x, reach the providers of its brokers: list the views that they grant among their " +
			"networks, replace virtual kubelets that have read another list, have Liqo map pods again that are shown under new " +
			"addresses since, ask the brokers for the nodes of single providers of which they tell, and tell the brokers which views are " +
			"installed.",
		Args: program.NoArguments,
		RunE: func(command *cobra.Command, _ []string) error {
			if err := o.Validate(); err != nil {
				return program.Usage(err)
			}
			peers := &peernet.Peers{}
			replica, err := daemon.OpenReplica(daemon.ReplicaConfig{
				ReplicaOptions: o, Name: agentName, Kinds: v1.Line{}.AddToScheme, CallsPerSecond: agentCalls, CallsAtOnce: agentCallsAtOnce,
				Admits: peers.ExcludesKnown,
			})
			if err != nil {
				return err
			}
			a := &agent{replica: replica, liqoNamespace: o.LiqoNamespace, peers: peers}
			return replica.Run(command.Context(), a.setup)
		},
	}
	o.AddFlags(command.Flags(), "acts")
	return command
}

// setup makes the parts of the agent.
func (a *agent) setup(ctx context.Context) (daemon.Made, error) {
	cached, err := agentCache()
	if err != nil {
		return daemon.Made{}, err
	}
	mgr, err := a.replica.Manager(ctrl.Options{Cache: cached})
	if err != nil {
		return daemon.Made{}, err
	}
	// Who asks, whose addresses are not its own, and what is told to brokers.
	own, err := v1.Line{}.OwnIdentity(ctx, mgr.GetAPIReader(), a.liqoNamespace)
	if err != nil {
		return daemon.Made{}, err
	}
	if err := a.peers.Watch(ctx, mgr.GetCache(), v1.Line{}); err != nil {
		return daemon.Made{}, err
	}
	reporter := report.New(report.Config{
		Cached: mgr.GetClient(), Live: mgr.GetAPIReader(), Version: version.String(), Clock: clock.RealClock{}, Dial: report.Dial,
	})
	if err := mgr.Add(reporter); err != nil {
		return daemon.Made{}, fmt.Errorf("add what reports to brokers: %w", err)
	}
	if err := stale.Setup(mgr, stale.Config{Client: mgr.GetClient(), Live: mgr.GetAPIReader()}); err != nil {
		return daemon.Made{}, err
	}
	err = nodes.Setup(mgr, nodes.Config{Client: mgr.GetClient(), Live: mgr.GetAPIReader(), Own: own.ID, Clock: clock.RealClock{}})
	if err != nil {
		return daemon.Made{}, err
	}
	return daemon.Made{Manager: mgr}, views.Setup(mgr, views.Config{
		Client: mgr.GetClient(), Own: own.ID, Clock: clock.RealClock{}, Planned: reporter.Planned, Believed: reporter.Believed,
	})
}

// agentCache has the cache keep what the agent reads.
func agentCache() (cache.Options, error) {
	ips, err := v1.PodIPSelector()
	if err != nil {
		return cache.Options{}, err
	}
	return cached.Options(map[client.Object]cache.ByObject{
		&corev1.Pod{}: {Transform: cached.Without(bare)},
		&api.IP{}:     {Label: ips, Transform: cached.Without(v1.BarePodIP)},
	}), nil
}

// bare takes out of a pod what the agent does not read.
func bare(pod *corev1.Pod) {
	node, was := pod.Spec.NodeName, pod.Status
	if pod.Annotations = nil; !v1.IsOfDaemonSet(pod) {
		pod.OwnerReferences = nil
	}
	pod.Spec, pod.Status = corev1.PodSpec{NodeName: node}, corev1.PodStatus{
		Conditions: was.Conditions, PodIP: was.PodIP, PodIPs: was.PodIPs, HostIPs: was.HostIPs,
	}
}
