// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package daemon

import (
	"context"
	"fmt"
	"net"
	"net/netip"

	"github.com/go-logr/logr"
	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"

	"github.com/capacitorset/liqo-broker/pkg/logging"
	"github.com/capacitorset/liqo-broker/pkg/serving/diagnostics"
	"github.com/capacitorset/liqo-broker/pkg/serving/lease"
	"github.com/capacitorset/liqo-broker/pkg/serving/ports"
)

// ReplicaOptions are the parsed flags of a program that is a process of its own, of which several replicas may run.
type ReplicaOptions struct {
	// HealthAddress serves the probes; "0" for none.
	HealthAddress string
	// LiqoNamespace is the namespace in which Liqo runs.
	LiqoNamespace string
	// LeaderElect has only one of several replicas lead: that which holds the lease in LeaderNamespace.
	LeaderElect     bool
	LeaderNamespace string
	// LeaderIdentity names this replica in the lease; another one each time if empty.
	LeaderIdentity string
	Log            logging.Options
}

// AddFlags adds the flags, whose defaults are the options as they are. Leads says what only the leader does, such as "writes".
func (o *ReplicaOptions) AddFlags(flags *pflag.FlagSet, leads string) {
	flags.StringVar(&o.HealthAddress, "health-address", o.HealthAddress, `address that serves /healthz and /readyz; "0" for none`)
	flags.StringVar(&o.LiqoNamespace, "liqo-namespace", o.LiqoNamespace, "namespace in which Liqo runs")
	flags.BoolVar(&o.LeaderElect, "leader-elect", o.LeaderElect, "enable leader election: of several replicas only the leader "+leads)
	flags.StringVar(&o.LeaderIdentity, "leader-election-identity", o.LeaderIdentity,
		"name of this replica in the lease, which should survive a restart, such as the name of its pod; random if empty")
	flags.StringVar(&o.LeaderNamespace, "leader-election-namespace", o.LeaderNamespace, "namespace of the replicas' lease")
	o.Log.AddFlags(flags)
}

// Validate refuses what cannot be used.
func (o *ReplicaOptions) Validate() error {
	if o.HealthAddress == "0" {
		return nil
	}
	if _, _, err := net.SplitHostPort(o.HealthAddress); err != nil {
		return fmt.Errorf("--health-address=%s is not [HOST]:PORT: %w", o.HealthAddress, err)
	}
	return nil
}

// ReplicaConfig is what a Replica is made from.
type ReplicaConfig struct {
	ReplicaOptions

	// Name is that of the program, and of the lease of its replicas.
	Name string
	// Kinds registers what it reads and writes besides the kinds of Kubernetes.
	Kinds func(*runtime.Scheme) error
	// It makes CallsPerSecond calls to the API server, and more at once.
	CallsPerSecond float32
	CallsAtOnce    int
	// Admits says from which addresses the probes may be asked.
	Admits func(netip.Addr) bool
}

// Replica is one process of a program: it answers probes from the first moment on, and has a manager, which leads while it holds the lease.
type Replica struct {
	// Log is the program's, Scheme has its kinds, and Rest reaches the API server.
	Log    logr.Logger
	Scheme *runtime.Scheme
	Rest   *rest.Config

	cfg  ReplicaConfig
	made Parts[Made]
}

// Made is what a replica has made that needs an API server.
type Made struct {
	Manager ctrl.Manager
	// Ready waits for what there is besides the caches of the manager, and returns false if ctx ends before; nil if there is nothing.
	Ready func(ctx context.Context) bool
}

// Caches implements what [Parts] asks for.
func (m Made) Caches() cache.Cache { return m.Manager.GetCache() }

// OpenReplica returns a replica that has not reached the API server yet. What is wrong with the options of the log is an error of usage.
func OpenReplica(cfg ReplicaConfig) (*Replica, error) {
	log, config, err := Open(cfg.Log)
	if err != nil {
		return nil, err
	}
	scheme, err := Kinds(cfg.Kinds)
	if err != nil {
		return nil, err
	}
	config = Calls(config, cfg.CallsPerSecond, cfg.CallsAtOnce, scheme, log)
	return &Replica{Log: log, Scheme: scheme, Rest: config, cfg: cfg, made: NewParts[Made]()}, nil
}

// Manager returns a manager with some options, of which the replica sets how it reads, and by which lease it leads, beside what
// [NewManager] sets.
func (r *Replica) Manager(options ctrl.Options) (ctrl.Manager, error) {
	options.Scheme, options.Logger = r.Scheme, r.Log
	if r.cfg.LeaderElect {
		of := lease.Lease{Namespace: r.cfg.LeaderNamespace, Name: r.cfg.Name, Identity: r.cfg.LeaderIdentity}
		if err := of.Elect(&options, r.Rest); err != nil {
			return nil, err
		}
	}
	return NewManager(r.Rest, options)
}

// Run answers probes, and runs the manager that setup makes, until ctx ends or one of them fails. The replica is ready once the caches of
// the manager are filled and Made.Ready has returned true. It is called once.
func (r *Replica) Run(ctx context.Context, setup func(context.Context) (Made, error)) error {
	health := ports.Port{Flag: "--health-address", Address: r.cfg.HealthAddress, Serve: func(ctx context.Context, l net.Listener) error {
		probes := diagnostics.Probes{Admits: r.cfg.Admits, Ready: r.ready}
		return probes.Serve(ctx, l)
	}}
	return ports.Run(ctx, []ports.Port{health}, func(ctx context.Context) error {
		made, err := setup(ctx)
		if err != nil {
			return err
		}
		r.made.Set(made)
		if err := made.Manager.Start(ctx); err != nil {
			return fmt.Errorf("run %s: %w", r.cfg.Name, err)
		}
		return nil
	})
}

// ready waits until all that was made works. It returns false if ctx ends before.
func (r *Replica) ready(ctx context.Context) bool {
	made, err := r.made.Synced(ctx)
	return err == nil && (made.Ready == nil || made.Ready(ctx))
}
