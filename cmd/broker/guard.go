// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/discovery"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/capacitorset/liqo-broker/pkg/cached"
	"github.com/capacitorset/liqo-broker/pkg/controller/fence"
	"github.com/capacitorset/liqo-broker/pkg/controller/quota"
	"github.com/capacitorset/liqo-broker/pkg/daemon"
	"github.com/capacitorset/liqo-broker/pkg/liqo"
	"github.com/capacitorset/liqo-broker/pkg/liqo/line"
	"github.com/capacitorset/liqo-broker/pkg/liqo/lines"
	"github.com/capacitorset/liqo-broker/pkg/netflag"
	"github.com/capacitorset/liqo-broker/pkg/peernet"
	"github.com/capacitorset/liqo-broker/pkg/program"
	"github.com/capacitorset/liqo-broker/pkg/serving/lease"
	"github.com/capacitorset/liqo-broker/pkg/serving/selfsigned"
	"github.com/capacitorset/liqo-broker/pkg/snapshot"
	"github.com/capacitorset/liqo-broker/pkg/webhook"
	"github.com/capacitorset/liqo-broker/pkg/webhook/allowance"
	"github.com/capacitorset/liqo-broker/pkg/webhook/audit"
	"github.com/capacitorset/liqo-broker/pkg/webhook/identities"
	"github.com/capacitorset/liqo-broker/pkg/webhook/isolation"
	"github.com/capacitorset/liqo-broker/pkg/webhook/peers"
	"github.com/capacitorset/liqo-broker/pkg/webhook/services"
	"github.com/capacitorset/liqo-broker/pkg/webhook/tunnels"
)

// guardName is the name of the guard's configurations of webhooks, Service, namespace and lease.
const guardName = "liqo-broker-guard"

// connectorUser is what the API server calls the connector.
const connectorUser = "system:serviceaccount:liqo-broker-connector:liqo-broker-connector"

// guardOptions are the parsed command line of the guard.
type guardOptions struct {
	daemon.ReplicaOptions

	webhookAddress      string
	webhookAllow        netflag.Prefixes
	webhookClientCAFile string
	podSecurity         string
	serviceTypes        []string
	internet            bool
	namespaceQuota      map[string]int64 // Beside the defaults.
}

// guard answers the API server about what peers write, and bounds their namespaces. It is a process of its own: nobody but the API server
// and the kubelet has anything to ask it.
type guard struct {
	guardOptions

	replica *daemon.Replica // Nil before it is opened.
	level   isolation.Level
	types   services.Types
	peers   *peernet.Peers // Who peers are is not known until the parts are made.
}

func newGuardCommand() *cobra.Command {
	o := &guardOptions{ReplicaOptions: daemon.ReplicaOptions{
		HealthAddress: defaultHealthAddress, LiqoNamespace: liqo.DefaultNamespace, LeaderNamespace: guardName,
	}}
	command := &cobra.Command{
		Use:   "guard",
		Short: "Keep the peers of this cluster in bounds",
		Long: "Keep the peers of this cluster in bounds: whom Liqo gives a certificate, what peers write, what their pods and Services may " +
			"have, how much their pods request, how many objects there are, and where their pods reach.",
		SilenceUsage:  true,
		SilenceErrors: true,
		Args:          program.NoArguments,
		RunE: func(command *cobra.Command, _ []string) error {
			g, err := o.parse()
			if err != nil {
				return program.Usage(err)
			}
			g.replica, err = daemon.OpenReplica(daemon.ReplicaConfig{
				ReplicaOptions: o.ReplicaOptions, Name: guardName, Kinds: lines.AddToScheme,
				CallsPerSecond: callsPerSecond, CallsAtOnce: callsAtOnce, Admits: g.peers.ExcludesKnown,
			})
			if err != nil {
				return err
			}
			return g.replica.Run(command.Context(), g.setup)
		},
	}
	flags := command.Flags()
	// Who calls it, and where.
	flags.StringVar(&o.webhookAddress, "webhook-address", defaultWebhookAddress, "address that serves the admission webhooks")
	flags.Var(&o.webhookAllow, "webhook-allow",
		"prefix of the addresses of the API servers, which alone may call the webhooks; may be repeated; all but the peers' if empty")
	flags.StringVar(&o.webhookClientCAFile, "webhook-client-ca-file", "",
		"file with the CA certificates that verify the client certificates of the API servers at the webhooks; none are required if empty")
	// What peers may have here.
	flags.StringVar(&o.podSecurity, "pod-security", string(isolation.DefaultLevel),
		"Pod Security Standard that the pods of peers must meet: privileged, baseline or restricted")
	flags.StringSliceVar(&o.serviceTypes, "service-types", nil,
		"types of Services that peers may have besides those for pods: NodePort, LoadBalancer; others become Services for pods")
	flags.BoolVar(&o.internet, "internet", true, "let the pods of peers reach public addresses, where the network plugin knows policies")
	flags.StringToInt64Var(&o.namespaceQuota, "namespace-quota", nil,
		"maximum number of objects of a resource in each namespace of a peer here, by the name of the resource in a ResourceQuota; "+
			"resources that are not named keep their defaults: "+quota.DefaultBounds(lines.All()[0]).String())
	// How several replicas share the work, who asks whether it works, and where Liqo is.
	o.AddFlags(flags, "writes")
	return command
}

// parse returns a guard whose replica is not opened yet.
func (o *guardOptions) parse() (*guard, error) {
	if _, _, err := net.SplitHostPort(o.webhookAddress); err != nil {
		return nil, fmt.Errorf("--webhook-address=%s is not [HOST]:PORT: %w", o.webhookAddress, err)
	}
	if err := o.Validate(); err != nil {
		return nil, err
	}
	for name, bound := range o.namespaceQuota {
		if bound < 0 {
			return nil, fmt.Errorf("--namespace-quota=%s=%d must not be negative", name, bound)
		}
	}
	level, err := isolation.ParseLevel(o.podSecurity)
	if err != nil {
		return nil, fmt.Errorf("--pod-security: %w", err)
	}
	types, err := services.ParseTypes(o.serviceTypes)
	if err != nil {
		return nil, fmt.Errorf("--service-types: %w", err)
	}
	return &guard{guardOptions: *o, level: level, types: types, peers: &peernet.Peers{}}, nil
}

// setup makes the parts that need an API server.
func (g *guard) setup(ctx context.Context) (daemon.Made, error) {
	// Who this cluster is, and how its peers are seen.
	config := g.replica.Rest
	direct, err := client.NewWithWatch(config, client.Options{Scheme: g.replica.Scheme})
	if err != nil {
		return daemon.Made{}, fmt.Errorf("reach the API server %s: %w", config.Host, err)
	}
	resources, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return daemon.Made{}, fmt.Errorf("reach the API server %s: %w", config.Host, err)
	}
	with, err := g.findLine(resources)
	if err != nil {
		return daemon.Made{}, err
	}
	own, err := with.OwnIdentity(ctx, direct, g.LiqoNamespace)
	if err != nil {
		return daemon.Made{}, err
	}
	// Who may call the webhooks, and by which certificate the API server knows them.
	announcer := &webhook.Announcer{Client: direct, Configuration: guardName}
	certificate := selfsigned.New(guardName+"."+guardName+".svc", announcer.Announce)
	admits := g.peers.Excludes
	if len(g.webhookAllow) > 0 {
		admits = func(a netip.Addr) bool {
			return slices.ContainsFunc(g.webhookAllow, func(p netip.Prefix) bool { return p.Contains(a) })
		}
	}
	// The manager, and what the webhooks read of it.
	mgr, err := g.replica.Manager(ctrl.Options{
		Cache:         guardCache(with),
		WebhookServer: webhook.NewServer(g.webhookAddress, certificate.Get, admits, g.webhookClientCAFile),
	})
	if err != nil {
		return daemon.Made{}, err
	}
	if err := g.peers.Watch(ctx, mgr.GetCache(), with); err != nil {
		return daemon.Made{}, err
	}
	if err := line.AddIndexes(ctx, mgr.GetFieldIndexer(), with.Indexes()); err != nil {
		return daemon.Made{}, err
	}
	reader := snapshot.New(with, mgr.GetClient(), own.ID, nil)
	tally := allowance.NewTally(direct, with, clock.RealClock{})
	grants := allowance.NewGrants(clock.RealClock{})
	if err := grants.Watch(ctx, mgr.GetCache(), with); err != nil {
		return daemon.Made{}, err
	}
	taken := allowance.New(allowance.Config{
		Scheme: g.replica.Scheme, Namespaces: mgr.GetClient(), Peers: reader, Tally: tally, Grants: grants,
	})

	changes := audit.NewLog(audit.Config{
		Client: mgr.GetClient(), Component: guardName, Clock: clock.RealClock{}, Log: g.replica.Log.WithName("audit"),
	})

	// What the API server asks, and what is kept in the namespaces of peers.
	if err := g.serve(mgr, reader, taken, changes); err != nil {
		return daemon.Made{}, err
	}
	err = errors.Join(
		mgr.Add(lease.EveryReplica(certificate.Run)), mgr.Add(lease.EveryReplica(announcer.Keep)), mgr.Add(lease.EveryReplica(tally.Run)),
		mgr.Add(lease.EveryReplica(changes.Run)),
		quota.Setup(mgr, quota.Config{Client: mgr.GetClient(), Bounds: g.bounds(with), Tenants: quota.TenantBounds()}),
		fence.Setup(mgr, fence.Config{Client: mgr.GetClient(), Peers: reader, Internet: g.internet}),
	)
	if err != nil {
		return daemon.Made{}, fmt.Errorf("set up the guard: %w", err)
	}
	return daemon.Made{Manager: mgr, Ready: func(ctx context.Context) bool {
		return tally.WaitForSync(ctx) && mgr.GetWebhookServer().StartedChecker()(nil) == nil
	}}, nil
}

// findLine returns by which line of Liqo the guard goes, and tells people. With the kinds of several it does not stop, as the daemon does:
// its peers would get no pods then, and nobody would look at their tunnels.
func (g *guard) findLine(d lines.Discoverer) (line.Line, error) {
	with, several, err := lines.FindOldest(d, g.replica.Scheme)
	if err != nil {
		return nil, err
	}
	g.replica.Log.Info("Found Liqo", "line", with.Name())
	if several {
		g.replica.Log.Error(lines.ErrSeveral, "Refusing all certificates for peers of another line of Liqo", "line", with.Name())
	}
	return with, nil
}

// bounds returns how many objects a namespace of a peer may have. Each Service of a type that is allowed may have all that it takes.
func (g *guard) bounds(with line.Line) quota.Bounds {
	bounds := quota.DefaultBounds(with)
	if len(g.types) > 0 {
		bounds["services.nodeports"] = bounds["count/services"]
	}
	if slices.Contains(g.types, corev1.ServiceTypeLoadBalancer) {
		bounds["services.loadbalancers"] = bounds["count/services"]
	}
	return bounds.With(g.namespaceQuota)
}

// serve registers the webhooks.
func (g *guard) serve(mgr ctrl.Manager, reader *snapshot.Reader, taken *allowance.Handler, changes *audit.Log) error {
	handlers, err := g.handlers(reader, taken, changes, mgr.GetAPIReader())
	if err != nil {
		return err
	}
	for path, handler := range handlers {
		mgr.GetWebhookServer().Register(path, &admission.Webhook{Handler: handler})
	}
	return nil
}

// handlers returns the webhooks by their paths. Direct reads from the API server itself.
func (g *guard) handlers(
	reader *snapshot.Reader, taken *allowance.Handler, changes *audit.Log, direct client.Reader,
) (map[string]admission.Handler, error) {
	with := reader.Line()
	isolate, err := isolation.New(with, g.replica.Scheme, g.level)
	if err != nil {
		return nil, err
	}
	tunnel, err := tunnels.New(reader, direct)
	if err != nil {
		return nil, err
	}
	return map[string]admission.Handler{
		allowance.Path:       taken,
		audit.Path:           audit.New(changes, connectorUser, audit.Contracts),
		identities.Path:      identities.New(g.replica.Scheme, with.IdentityRules(), otherIdentities(with), direct, g.LiqoNamespace),
		isolation.Path:       isolate,
		peers.Path:           peers.New(reader, direct, reader.Own()),
		services.ConfinePath: services.NewConfinement(g.replica.Scheme, g.types),
		services.GuardPath:   services.NewGuard(g.replica.Scheme, g.types),
		tunnels.Path:         tunnel,
	}, nil
}

// otherIdentities returns the rules for certificates of all lines of Liqo but the one that the guard goes by.
func otherIdentities(with line.Line) []line.IdentityRules {
	var others []line.IdentityRules
	for _, of := range lines.All() {
		if of.Name() != with.Name() {
			others = append(others, of.IdentityRules())
		}
	}
	return others
}

// guardCache keeps in memory of the namespaces those of peers, of nodes their addresses, and of the kinds of a line of Liqo what is read.
func guardCache(of line.Line) cache.Options {
	managed := labels.SelectorFromSet(labels.Set{liqo.LabelBrokerManaged: liqo.BrokerManaged})
	kept := map[client.Object]cache.ByObject{
		&corev1.Namespace{}:           {Label: liqo.PeerNamespaceSelector(), Transform: cached.Strip},
		&networkingv1.NetworkPolicy{}: {Label: managed, Transform: cached.Strip},
		&corev1.Node{}: {Transform: func(o any) (any, error) {
			if node, ok := o.(*corev1.Node); ok {
				node.Spec, node.Labels, node.Status = corev1.NodeSpec{}, nil, corev1.NodeStatus{Addresses: node.Status.Addresses}
			}
			return cached.Metadata(o)
		}},
	}
	for object, drop := range of.Dropped(&liqo.Compactor{}) {
		kept[object] = cache.ByObject{Transform: cached.Without(drop)}
	}
	return cached.Options(kept)
}
