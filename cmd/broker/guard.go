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

	"github.com/go-logr/logr"
	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/capacitorset/liqo-broker/pkg/controller/fence"
	"github.com/capacitorset/liqo-broker/pkg/controller/quota"
	"github.com/capacitorset/liqo-broker/pkg/daemon"
	"github.com/capacitorset/liqo-broker/pkg/liqo"
	"github.com/capacitorset/liqo-broker/pkg/liqo/line"
	"github.com/capacitorset/liqo-broker/pkg/liqo/lines"
	"github.com/capacitorset/liqo-broker/pkg/logging"
	"github.com/capacitorset/liqo-broker/pkg/logging/capture"
	"github.com/capacitorset/liqo-broker/pkg/netflag"
	"github.com/capacitorset/liqo-broker/pkg/peernet"
	"github.com/capacitorset/liqo-broker/pkg/program"
	"github.com/capacitorset/liqo-broker/pkg/serving/diagnostics"
	"github.com/capacitorset/liqo-broker/pkg/serving/lease"
	"github.com/capacitorset/liqo-broker/pkg/serving/ports"
	"github.com/capacitorset/liqo-broker/pkg/serving/selfsigned"
	"github.com/capacitorset/liqo-broker/pkg/snapshot"
	"github.com/capacitorset/liqo-broker/pkg/wake"
	"github.com/capacitorset/liqo-broker/pkg/webhook"
	"github.com/capacitorset/liqo-broker/pkg/webhook/allowance"
	"github.com/capacitorset/liqo-broker/pkg/webhook/identities"
	"github.com/capacitorset/liqo-broker/pkg/webhook/isolation"
	"github.com/capacitorset/liqo-broker/pkg/webhook/peers"
	"github.com/capacitorset/liqo-broker/pkg/webhook/services"
	"github.com/capacitorset/liqo-broker/pkg/webhook/tunnels"
)

// guardName is the name of the guard's configurations of webhooks, Service, namespace and lease.
const guardName = "liqo-broker-guard"

// guardOptions are the parsed command line of the guard.
type guardOptions struct {
	webhookAddress      string
	webhookAllow        netflag.Prefixes
	webhookClientCAFile string
	healthAddress       string
	podSecurity         string
	serviceTypes        []string
	internet            bool
	namespaceQuota      map[string]int64 // Beside the defaults.
	liqoNamespace       string
	leaderElect         bool
	leaderNamespace     string
	leaderIdentity      string // Another one each time if empty.
	log                 logging.Options
}

// guard answers the API server about what peers write, and bounds their namespaces. It is a process of its own: nobody but the API server
// and the kubelet has anything to ask it.
type guard struct {
	guardOptions

	level  isolation.Level
	types  services.Types
	rest   *rest.Config
	log    logr.Logger
	scheme *runtime.Scheme
	peers  *peernet.Peers // Who peers are is not known until the parts are made.
	parts  *wake.Later[guardParts]
}

// guardParts are those of the guard that need an API server.
type guardParts struct {
	mgr   ctrl.Manager
	tally *allowance.Tally
}

func newGuardCommand() *cobra.Command {
	o := &guardOptions{}
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
			if g.rest, err = ctrl.GetConfig(); err != nil {
				return fmt.Errorf("find the Kubernetes API, by KUBECONFIG or a pod's service account: %w", err)
			}
			return g.run(command.Context())
		},
	}
	flags := command.Flags()
	// Who calls it, and where.
	flags.StringVar(&o.webhookAddress, "webhook-address", defaultWebhookAddress, "address that serves the admission webhooks")
	flags.Var(&o.webhookAllow, "webhook-allow",
		"prefix of the addresses of the API servers, which alone may call the webhooks; may be repeated; all but the peers' if empty")
	flags.StringVar(&o.webhookClientCAFile, "webhook-client-ca-file", "",
		"file with the CA certificates that verify the client certificates of the API servers at the webhooks; none are required if empty")
	flags.StringVar(&o.healthAddress, "health-address", defaultHealthAddress, `address that serves /healthz and /readyz; "0" for none`)
	// What peers may have here.
	flags.StringVar(&o.podSecurity, "pod-security", string(isolation.DefaultLevel),
		"Pod Security Standard that the pods of peers must meet: privileged, baseline or restricted")
	flags.StringSliceVar(&o.serviceTypes, "service-types", nil,
		"types of Services that peers may have besides those for pods: NodePort, LoadBalancer; others become Services for pods")
	flags.BoolVar(&o.internet, "internet", true, "let the pods of peers reach public addresses, where the network plugin knows policies")
	flags.StringToInt64Var(&o.namespaceQuota, "namespace-quota", nil,
		"maximum number of objects of a resource in each namespace of a peer here, by the name of the resource in a ResourceQuota; "+
			"resources that are not named keep their defaults: "+quota.DefaultBounds(lines.All()[0]).String())
	// How several replicas share the work, and where Liqo is.
	flags.StringVar(&o.liqoNamespace, "liqo-namespace", liqo.DefaultNamespace, "namespace in which Liqo runs")
	flags.BoolVar(&o.leaderElect, "leader-elect", false, "enable leader election: of several replicas only the leader writes")
	flags.StringVar(&o.leaderIdentity, "leader-election-identity", "",
		"name of this replica in the lease, which should survive a restart, such as the name of its pod; random if empty")
	flags.StringVar(&o.leaderNamespace, "leader-election-namespace", guardName, "namespace of the replicas' lease")
	o.log.AddFlags(flags)
	return command
}

// parse returns a guard that does not reach the API server yet.
func (o *guardOptions) parse() (*guard, error) {
	for _, a := range []struct{ flag, address string }{{"--webhook-address", o.webhookAddress}, {"--health-address", o.healthAddress}} {
		if a.flag == "--health-address" && a.address == "0" {
			continue
		}
		if _, _, err := net.SplitHostPort(a.address); err != nil {
			return nil, fmt.Errorf("%s=%s is not [HOST]:PORT: %w", a.flag, a.address, err)
		}
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
	log, err := logging.New(o.log)
	if err != nil {
		return nil, err
	}
	capture.Libraries(log)
	scheme, err := daemon.Kinds(lines.AddToScheme)
	if err != nil {
		return nil, err
	}
	return &guard{
		guardOptions: *o, level: level, types: types, log: log, scheme: scheme, peers: &peernet.Peers{}, parts: wake.NewLater[guardParts](),
	}, nil
}

// run answers until the context ends, or one of the parts fails.
func (g *guard) run(ctx context.Context) error {
	health := ports.Port{Flag: "--health-address", Address: g.healthAddress, Serve: func(ctx context.Context, l net.Listener) error {
		probes := diagnostics.Probes{Admits: g.peers.ExcludesKnown, Ready: g.ready}
		return probes.Serve(ctx, l)
	}}
	return ports.Run(ctx, []ports.Port{health}, func(ctx context.Context) error {
		p, err := g.setup(ctx)
		if err != nil {
			return err
		}
		g.parts.Set(p)
		if err := p.mgr.Start(ctx); err != nil {
			return fmt.Errorf("run the guard: %w", err)
		}
		return nil
	})
}

// ready waits until the caches are filled and the webhooks are served. It returns false if ctx ends before.
func (g *guard) ready(ctx context.Context) bool {
	p, err := g.parts.Get(ctx)
	return err == nil && p.mgr.GetCache().WaitForCacheSync(ctx) && p.tally.WaitForSync(ctx) &&
		p.mgr.GetWebhookServer().StartedChecker()(nil) == nil
}

// setup makes the parts that need an API server.
func (g *guard) setup(ctx context.Context) (guardParts, error) {
	// Who this cluster is, and how its peers are seen.
	config := daemon.Calls(g.rest, callsPerSecond, callsAtOnce, g.scheme, g.log)
	direct, err := client.NewWithWatch(config, client.Options{Scheme: g.scheme})
	if err != nil {
		return guardParts{}, fmt.Errorf("reach the API server %s: %w", config.Host, err)
	}
	resources, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return guardParts{}, fmt.Errorf("reach the API server %s: %w", config.Host, err)
	}
	with, err := g.find(resources)
	if err != nil {
		return guardParts{}, err
	}
	own, err := with.OwnIdentity(ctx, direct, g.liqoNamespace)
	if err != nil {
		return guardParts{}, err
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
	managed := ctrl.Options{
		Scheme: g.scheme, Logger: g.log, Cache: guardCache(with), Metrics: metricsserver.Options{BindAddress: "0"}, HealthProbeBindAddress: "0",
		WebhookServer: webhook.NewServer(g.webhookAddress, certificate.Get, admits, g.webhookClientCAFile),
	}
	if g.leaderElect {
		if err := (lease.Lease{Namespace: g.leaderNamespace, Name: guardName, Identity: g.leaderIdentity}).Elect(&managed, config); err != nil {
			return guardParts{}, err
		}
	}
	mgr, err := ctrl.NewManager(config, managed)
	if err != nil {
		return guardParts{}, fmt.Errorf("make the manager for %s: %w", config.Host, err)
	}
	if err := g.peers.Watch(ctx, mgr.GetCache(), with); err != nil {
		return guardParts{}, err
	}
	if err := snapshot.AddIndexes(ctx, mgr.GetFieldIndexer(), with.Indexes()); err != nil {
		return guardParts{}, err
	}
	reader := snapshot.New(with, mgr.GetClient(), own.ID, nil)
	tally := allowance.NewTally(direct, with, clock.RealClock{})
	grants := allowance.NewGrants(clock.RealClock{})
	if err := grants.Watch(ctx, mgr.GetCache(), with); err != nil {
		return guardParts{}, err
	}
	taken := allowance.New(allowance.Config{Scheme: g.scheme, Namespaces: mgr.GetClient(), Peers: reader, Tally: tally, Grants: grants})

	// What the API server asks, and what is kept in the namespaces of peers.
	if err := g.serve(mgr, reader, taken); err != nil {
		return guardParts{}, err
	}
	err = errors.Join(
		mgr.Add(lease.EveryReplica(certificate.Run)), mgr.Add(lease.EveryReplica(announcer.Keep)), mgr.Add(lease.EveryReplica(tally.Run)),
		quota.Setup(mgr, quota.Config{Client: mgr.GetClient(), Bounds: g.bounds(with), Tenants: quota.TenantBounds()}),
		fence.Setup(mgr, fence.Config{Client: mgr.GetClient(), Peers: reader, Internet: g.internet}),
	)
	if err != nil {
		return guardParts{}, fmt.Errorf("set up the guard: %w", err)
	}
	return guardParts{mgr: mgr, tally: tally}, nil
}

// find returns by which line of Liqo the guard goes, and tells people. With the kinds of several it does not stop, as the daemon does: its
// peers would get no pods then, and nobody would look at their tunnels.
func (g *guard) find(d lines.Discoverer) (line.Line, error) {
	with, several, err := lines.FindOldest(d, g.scheme)
	if err != nil {
		return nil, err
	}
	g.log.Info("Found Liqo", "line", with.Name())
	if several {
		g.log.Error(lines.ErrSeveral, "Refusing all certificates for peers of another line of Liqo", "line", with.Name())
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
func (g *guard) serve(mgr ctrl.Manager, reader *snapshot.Reader, taken *allowance.Handler) error {
	handlers, err := g.handlers(reader, taken, mgr.GetAPIReader())
	if err != nil {
		return err
	}
	for path, handler := range handlers {
		mgr.GetWebhookServer().Register(path, &admission.Webhook{Handler: handler})
	}
	return nil
}

// handlers returns the webhooks by their paths. Direct reads from the API server itself.
func (g *guard) handlers(reader *snapshot.Reader, taken *allowance.Handler, direct client.Reader) (map[string]admission.Handler, error) {
	with := reader.Line()
	isolate, err := isolation.New(with, g.scheme, g.level)
	if err != nil {
		return nil, err
	}
	tunnel, err := tunnels.New(reader, direct)
	if err != nil {
		return nil, err
	}
	return map[string]admission.Handler{
		allowance.Path:       taken,
		identities.Path:      identities.New(g.scheme, with.IdentityRules(), otherIdentities(with), direct, g.liqoNamespace),
		isolation.Path:       isolate,
		peers.Path:           peers.New(reader, direct, reader.Own()),
		services.ConfinePath: services.NewConfinement(g.scheme, g.types),
		services.GuardPath:   services.NewGuard(g.scheme, g.types),
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
		&corev1.Namespace{}:           {Label: liqo.PeerNamespaceSelector(), Transform: daemon.Strip},
		&networkingv1.NetworkPolicy{}: {Label: managed, Transform: daemon.Strip},
		&corev1.Node{}: {Transform: func(o any) (any, error) {
			if node, ok := o.(*corev1.Node); ok {
				node.Spec, node.Labels, node.Status = corev1.NodeSpec{}, nil, corev1.NodeStatus{Addresses: node.Status.Addresses}
			}
			return stripMetadata(o)
		}},
	}
	for object, drop := range of.Dropped(&liqo.Compactor{}) {
		kept[object] = cache.ByObject{Transform: daemon.Without(drop)}
	}
	return cache.Options{DefaultTransform: daemon.Strip, ByObject: kept}
}
