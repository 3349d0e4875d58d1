// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package diagnosis

import (
	"cmp"
	"context"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
	"github.com/capacitorset/liqo-broker/pkg/core/grant"
	"github.com/capacitorset/liqo-broker/pkg/excerpt"
	"github.com/capacitorset/liqo-broker/pkg/install"
	"github.com/capacitorset/liqo-broker/pkg/liqo"
	"github.com/capacitorset/liqo-broker/pkg/liqo/line"
	v09 "github.com/capacitorset/liqo-broker/pkg/liqo/v09"
	v1 "github.com/capacitorset/liqo-broker/pkg/liqo/v1"
	"github.com/capacitorset/liqo-broker/pkg/overview"
	"github.com/capacitorset/liqo-broker/pkg/remoteipam"
	"github.com/capacitorset/liqo-broker/pkg/version"
)

const (
	// liqoNamespace is where Liqo runs.
	liqoNamespace = liqo.DefaultNamespace
	// soon is how long before a certificate expires people are told.
	soon = 14 * 24 * time.Hour
	// stale is how old the renewal of a lease may be, which lasts a minute, and what a gateway says of its tunnel every 10 s or so.
	stale = 2 * time.Minute
	// recent is how old events may be, and maxEvents how many different ones are shown.
	recent    = time.Hour
	maxEvents = 8

	install0   = "kubectl liqo-broker install"
	prepare0   = "kubectl liqo-broker prepare"
	guard0     = "kubectl liqo-broker guard"
	daemonLogs = "kubectl logs -n liqo-broker deploy/liqo-broker"
	agentLogs  = "kubectl logs -n " + install.AgentName + " deploy/" + install.AgentName
)

// liqo looks at Liqo's own Deployments.
func (l *look) liqo(ctx context.Context) []Check {
	const area = "Liqo"
	all := []Check{one(area, OK, "", "Liqo %s runs here, of line %s, which is supported", l.setup.Version, l.setup.Line)}
	switch {
	case l.setup.Liqo1() && l.setup.Version != install.Liqo1Version:
		all = []Check{one(area, Note, "Bring Liqo to "+install.Liqo1Version,
			"Liqo %s runs here, and of 1.x %s was tried", l.setup.Version, install.Liqo1Version)}
	case !l.setup.Liqo1() && l.setup.Version != install.LiqoVersion:
		all = []Check{one(area, Note, "Bring Liqo to "+install.LiqoVersion,
			"Liqo %s runs here, and our virtual kubelet is built of %s: nobody has tried them together", l.setup.Version, install.LiqoVersion)}
	}
	// Which of its Deployments are not as they should be.
	var deployments appsv1.DeploymentList
	if err := l.List(ctx, &deployments, client.InNamespace(liqoNamespace)); err != nil {
		return append(all, cannot(area, "the Deployments of namespace liqo", err)...)
	}
	ready := 0
	kept := map[string][]string{}
	for i := range deployments.Items {
		d := &deployments.Items[i]
		if by := keeper(d); by != "" {
			kept[by] = append(kept[by], d.Name)
		}
		if why := behind(d); why != "" {
			all = append(all, one(area, Problem, "kubectl describe pods -n liqo; kubectl logs -n liqo deploy/"+d.Name+unheard(d),
				"Deployment liqo/%s: %s", d.Name, why))
			continue
		}
		ready++
		if d.Name == v09.GatewayName && !requestsCPU(d) {
			all = append(all, one(area, Note, l.gatewayShare(), "Liqo's gateway requests no CPU: on a busy node "+
				"it may not renew its lease in time, and ends then, with what goes through its tunnels"))
		}
	}
	// What is patched of Liqo has to be in the repository, or is taken away again.
	for _, by := range slices.Sorted(maps.Keys(kept)) {
		if l.again() != "" {
			all = append(all, one(area, Note, "If it does not have the patches of this project, or does not leave them alone, they are taken away: "+
				version.Document("docs/gitops.md"), "%s keeps Deployments of Liqo as a repository says: %s", by, some(kept[by])))
		}
	}
	return append(all, one(area, OK, "", "%d of %d Deployments of Liqo are ready", ready, len(deployments.Items)))
}

// keeper returns what keeps an object as a repository says, by the marks that it leaves on it; empty if nothing is known to.
func keeper(o client.Object) string {
	switch {
	case o.GetAnnotations()["argocd.argoproj.io/tracking-id"] != "" || o.GetLabels()["argocd.argoproj.io/instance"] != "":
		return "Argo CD"
	case o.GetLabels()["helm.toolkit.fluxcd.io/name"] != "" || o.GetLabels()["kustomize.toolkit.fluxcd.io/name"] != "":
		return "Flux"
	default:
		return ""
	}
}

// gatewayShare says what gives Liqo's gateway CPU that nobody else can take. Where something of this project is set up, that gives it a
// priority and a longer lease besides.
func (l *look) gatewayShare() string {
	const restarts = "It starts again, which interrupts its tunnels"
	if again := l.again(); again != "" {
		return "Run " + again + " again, which also gives it a priority and a longer lease. " + restarts
	}
	return "Where one of its nodes has as much left: kubectl set resources deployment " + v09.GatewayName + " -n liqo " +
		"--requests=cpu=250m,memory=64Mi. " + restarts
}

// again returns the command that set this cluster up, which can be run again; empty if nothing of this project is set up.
func (l *look) again() string {
	switch {
	case l.setup.Broker:
		return install0
	case l.setup.Trades && len(l.setup.Brokers) == 0:
		return guard0
	case len(l.setup.RemoteIPAMs)+len(l.setup.Brokers) > 0:
		return prepare0
	case l.setup.Guarded:
		return guard0
	default:
		return ""
	}
}

// unheard says what else to look at where Liqo's controller manager asks a resource plugin of this project, without whose answer it ends:
// the plugin knows it by the addresses of its pods. It is empty for all other Deployments.
func unheard(d *appsv1.Deployment) string {
	asked, _, _ := strings.Cut(liqo.Manager(argumentsOf(d)).Value(pluginFlag), ".")
	if d.Name != liqo.ManagerName || asked != brokerPlugin && asked != connectorPlugin {
		return ""
	}
	return ". It ends if " + asked + " does not answer, which hears only the addresses of its pods: where the network plugin masquerades " +
		"them, --resource-plugin-allow names what arrives: " + version.Document("docs/install.md#port-7000")
}

// requestsCPU reports whether a container of a Deployment has CPU that nobody else can take.
func requestsCPU(d *appsv1.Deployment) bool {
	return slices.ContainsFunc(d.Spec.Template.Spec.Containers, func(c corev1.Container) bool {
		return !c.Resources.Requests.Cpu().IsZero() || !c.Resources.Limits.Cpu().IsZero()
	})
}

// behind says what of a Deployment is not as it should be.
func behind(d *appsv1.Deployment) string {
	want := int32(1)
	if d.Spec.Replicas != nil {
		want = *d.Spec.Replicas
	}
	switch s := d.Status; {
	case want == 0:
		return "it is scaled to zero"
	case s.ReadyReplicas < want:
		return fmt.Sprintf("%d of %d replicas are ready", s.ReadyReplicas, want)
	case s.ObservedGeneration < d.Generation || s.UpdatedReplicas < want:
		return "its rollout has not ended"
	default:
		return ""
	}
}

// nodes looks at the nodes that are no virtual ones.
func (l *look) nodes(ctx context.Context) []Check {
	const area = "Nodes"
	var nodes corev1.NodeList
	if err := l.List(ctx, &nodes); err != nil {
		return cannot(area, "the nodes", err)
	}
	var all []Check
	ready := 0
	for i := range nodes.Items {
		n := &nodes.Items[i]
		if n.Labels[liqo.LabelNodeType] == liqo.NodeTypeVirtual {
			continue
		}
		if !liqo.NodeReady(n) {
			all = append(all, one(area, Problem, "kubectl describe node "+n.Name, "Node %s is not ready", n.Name))
			continue
		}
		ready++
	}
	return append(all, one(area, OK, "", "%d nodes are ready", ready))
}

// steps looks at what the installation did.
func (l *look) steps(ctx context.Context, installer *install.Installer) []Check {
	const area = "Set-up"
	do := cmp.Or(l.again(), prepare0)
	var all []Check
	if tag := installer.Tag(); l.setup.Tag != "" && l.setup.Tag != tag {
		all = append(all, one(area, Note, l.otherVersion(), "The images have tag %s, and those of this plugin %s", l.setup.Tag, tag))
	}
	reviewed, err := installer.Review(ctx, l.setup)
	if err != nil {
		return cannot(area, "the set-up", err)
	}
	for _, r := range reviewed {
		switch {
		case r.Err != nil:
			all = append(all, cannot(area, "whether this was done: "+r.Name, r.Err)...)
		case len(r.Changes) > 0:
			all = append(all, one(area, Problem, do, "Not done, or done otherwise: %s: %s", r.Name, some(r.Changes)))
		case r.Awaits != nil:
			all = append(all, one(area, Problem, do+" waits for it, and says what it waits for", "Done, and not in effect: %s: %v",
				r.Name, r.Awaits))
		default:
			all = append(all, one(area, OK, "", "Done: %s", r.Name))
		}
	}
	return all
}

// otherVersion says what brings the images to the version of this plugin, which is not for each to choose: a consumer has that of its
// broker.
func (l *look) otherVersion() string {
	switch {
	case l.setup.Broker:
		return "kubectl liqo-broker upgrade, if this plugin is the newer one"
	case len(l.setup.RemoteIPAMs) > 0 && l.setup.Trades:
		return prepare0 + " and kubectl liqo-broker guard, if this plugin is that of the broker's version"
	case l.setup.Catalog:
		return "kubectl apply " + version.Applied("deploy/catalog") + ", if this plugin is the newer one"
	case len(l.setup.RemoteIPAMs)+len(l.setup.Brokers) > 0:
		return prepare0 + ", if this plugin is that of the broker's version"
	case l.setup.Trades || l.setup.Guarded:
		return guard0 + ", if this plugin is the newer one"
	default:
		return "kubectl liqo-broker unguard, if this cluster trades no more"
	}
}

// some names the first of some things.
func some(all []string) string { return excerpt.Names(all, 4) }

// daemon looks at who leads.
func (l *look) daemon(ctx context.Context) []Check {
	const area = "Daemon"
	var lease coordinationv1.Lease
	err := l.Get(ctx, client.ObjectKey{Namespace: install.BrokerNamespace, Name: install.BrokerName}, &lease)
	switch {
	case apierrors.IsNotFound(err):
		return []Check{one(area, Note, daemonLogs, "No replica of the daemon has ever led: it runs without --leader-elect, or not yet")}
	case err != nil:
		return cannot(area, "the lease of the daemon", err)
	}
	holder, renewed := "", time.Time{}
	if lease.Spec.HolderIdentity != nil {
		holder = *lease.Spec.HolderIdentity
	}
	if lease.Spec.RenewTime != nil {
		renewed = lease.Spec.RenewTime.Time
	}
	if holder == "" || l.now.Sub(renewed) > stale {
		return []Check{
			one(area, Problem, daemonLogs, "No replica of the daemon leads: the lease was last renewed %s ago by %q",
				l.now.Sub(renewed).Round(time.Second), holder),
		}
	}
	return []Check{one(area, OK, "", "%s leads", holder)}
}

// services looks at whether somebody answers at the broker's Services.
func (l *look) services(ctx context.Context) []Check {
	const area = "Services"
	all := []Check{
		l.service(ctx, area, install.BrokerNamespace, brokerPlugin, "Liqo asks it what to offer", daemonLogs),
	}
	return append(append(all, l.servicesOfDaemon(ctx)...),
		l.service(ctx, area, liqoNamespace, "liqo-network-manager", "the remote IPAM, and Liqo's own", daemonLogs))
}

// servicesOfDaemon looks at those of them that a broker has with any Liqo.
func (l *look) servicesOfDaemon(ctx context.Context) []Check {
	const area = "Services"
	return []Check{
		l.service(ctx, area, install.BrokerNamespace, "liqo-broker-webhook", "the API server asks it about pods and peers", daemonLogs),
		l.service(ctx, area, install.BrokerNamespace, install.BrokerName, "the HTTP API", daemonLogs),
	}
}

func (l *look) service(ctx context.Context, area, namespace, name, what, do string) Check {
	at := namespace + "/" + name
	var service corev1.Service
	var endpoints discoveryv1.EndpointSliceList
	err := l.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, &service)
	if apierrors.IsNotFound(err) {
		return one(area, Problem, do, "There is no Service %s (%s)", at, what)
	}
	if err == nil {
		err = l.List(ctx, &endpoints, client.InNamespace(namespace), client.MatchingLabels{discoveryv1.LabelServiceName: name})
	}
	if err != nil {
		return cannot(area, "Service "+at, err)[0]
	}
	ready := 0
	for i := range endpoints.Items {
		for _, e := range endpoints.Items[i].Endpoints {
			if e.Conditions.Ready == nil || *e.Conditions.Ready {
				ready += len(e.Addresses)
			}
		}
	}
	if ready == 0 {
		return one(area, Problem, do, "Nobody answers at Service %s (%s)", at, what)
	}
	return one(area, OK, "", "%d answer at Service %s (%s)", ready, at, what)
}

// certificates looks at those that are announced: of the webhooks to the API server, and of the remote IPAM to consumers.
func (l *look) certificates(ctx context.Context) []Check {
	return append(l.webhooks(ctx, "Certificates", install.BrokerName, daemonLogs), l.announcements(ctx)...)
}

// webhooks looks whether the API server knows the certificates of the webhooks of a program, which has these logs.
func (l *look) webhooks(ctx context.Context, area, program, logs string) []Check {
	var all []Check
	var mutating admissionv1.MutatingWebhookConfigurationList
	var validating admissionv1.ValidatingWebhookConfigurationList
	named := client.MatchingLabels{"app.kubernetes.io/name": program}
	for _, list := range []client.ObjectList{&mutating, &validating} {
		if err := l.List(ctx, list, named); err != nil {
			return cannot(area, "the webhook configurations", err)
		}
	}
	hooks := 0
	for i := range mutating.Items {
		for _, w := range mutating.Items[i].Webhooks {
			hooks++
			all = append(all, l.certificate(area, "webhook "+w.Name, logs, w.ClientConfig.CABundle)...)
		}
	}
	for i := range validating.Items {
		for _, w := range validating.Items[i].Webhooks {
			hooks++
			all = append(all, l.certificate(area, "webhook "+w.Name, logs, w.ClientConfig.CABundle)...)
		}
	}
	if len(all) == 0 {
		all = append(all, one(area, OK, "", "The API server knows the certificates of %d webhooks", hooks))
	}
	return all
}

// certificate returns what is wrong with a bundle of certificates, which a program with these logs writes.
func (l *look) certificate(area, of, logs string, bundle []byte) []Check {
	until := time.Time{}
	for block, rest := pem.Decode(bundle); block != nil; block, rest = pem.Decode(rest) {
		if c, err := x509.ParseCertificate(block.Bytes); err == nil && c.NotAfter.After(until) {
			until = c.NotAfter
		}
	}
	switch {
	case until.IsZero():
		return []Check{one(area, Problem, "It is written by what uses it: "+logs, "There is no certificate of %s", of)}
	case until.Before(l.now):
		return []Check{
			one(area, Problem, "It is renewed by what uses it: "+logs, "The certificate of %s expired at %s", of, until.UTC().Format(time.RFC3339)),
		}
	case until.Before(l.now.Add(soon)):
		return []Check{one(area, Note, "It is renewed by itself", "The certificate of %s expires at %s", of, until.UTC().Format(time.RFC3339))}
	default:
		return nil
	}
}

// announcements looks at what consumers are told of the remote IPAM.
func (l *look) announcements(ctx context.Context) []Check {
	const area = "Certificates"
	tenants, err := l.tenants(ctx)
	if err != nil {
		return cannot(area, "the tenant namespaces", err)
	}
	all, told := []Check{}, 0
	for _, namespace := range slices.Sorted(maps.Keys(tenants)) {
		var announced corev1.ConfigMap
		err := l.Get(ctx, client.ObjectKey{Namespace: namespace, Name: remoteipam.AnnouncementName}, &announced)
		switch {
		case apierrors.IsNotFound(err):
			all = append(all, one(area, Note, "Only a consumer needs it: the sidecar remote-ipam in liqo/liqo-network-manager writes it",
				"%s is told of no remote IPAM", tenants[namespace]))
			continue
		case err != nil:
			return append(all, cannot(area, "what consumers are told", err)...)
		}
		a, err := remoteipam.ParseAnnouncement(announced.Data)
		if err != nil {
			all = append(all, one(area, Problem, "Delete it, and the sidecar writes it again", "ConfigMap %s/%s: %v", namespace,
				announced.Name, err))
			continue
		}
		told++
		all = append(all, l.certificate(area, "the remote IPAM for "+tenants[namespace],
			"kubectl logs -n liqo deploy/liqo-network-manager -c remote-ipam", a.CA)...)
	}
	return append(all, one(area, OK, "", "%d peers are told how to trust the remote IPAM", told))
}

// tenants returns the names of the peers, for people, by their tenant namespaces here.
func (l *look) tenants(ctx context.Context) (map[string]string, error) {
	peers, err := l.reader().Peers(ctx)
	if err != nil {
		return nil, err
	}
	all := map[string]string{}
	for i := range peers {
		if namespace := peers[i].Tenant; namespace != "" {
			all[namespace] = peers[i].String()
		}
	}
	return all, nil
}

// peers looks at peerings and tunnels.
func (l *look) peers(ctx context.Context) []Check {
	const area = "Peerings"
	peers, err := l.reader().Peers(ctx)
	if err != nil {
		return cannot(area, "the peers", err)
	}
	links, err := l.reader().Links(ctx)
	if err != nil {
		return cannot(area, "the tunnels", err)
	}
	commands := overview.CommandsOf(l.setup.Liqo())
	if len(peers) == 0 {
		return []Check{one(area, Note, commands.Peer, "There is no peer")}
	}
	// Each peering, with its tunnel.
	var all []Check
	for i := range peers {
		id, out, in := peers[i].Identity, peers[i].Outgoing, peers[i].Incoming
		status, band := commands.Peering(id.Name), "out-of-band"
		if peers[i].InBand {
			band = "in-band"
		}
		switch {
		case peers[i].InBand && !l.setup.Liqo1():
			all = append(all, one(area, Problem, "End it, and peer again out-of-band: liqoctl peer out-of-band --help",
				"The peering with %s is in-band", id))
		case !out.Exists && !in.Exists:
			all = append(all, one(area, Note, status, "%s is known, and there is no peering with it", id))
		case out.Exists && !out.Established || in.Exists && !in.Established:
			all = append(all, one(area, Problem, status, "The peering with %s is not established (it provides: %s, it consumes: %s)", id,
				stateOf(out), stateOf(in)))
		default:
			all = append(all, one(area, OK, "", "The peering with %s is %s (it provides: %s, it consumes: %s)", id, band, stateOf(out), stateOf(in)))
		}
		if out.Exists || in.Exists {
			all = append(all, l.tunnel(area, id, peers[i].Tenant, links))
		}
	}
	return all
}

func stateOf(p liqo.Peering) string {
	switch {
	case !p.Exists:
		return "no"
	case p.Ending:
		return "ending"
	case p.Established:
		return "yes"
	default:
		return "pending"
	}
}

func (l *look) tunnel(area string, to cluster.Identity, namespace string, links []liqo.Link) Check {
	do := "kubectl logs -n liqo deploy/liqo-gateway; kubectl get tunnelendpoints -A"
	if l.setup.Liqo1() {
		do = "kubectl logs -n " + namespace + " -l " + v1.GatewayLabel + " --all-containers; kubectl get connections -A"
	}
	do += ". The port of the gateway (UDP) must be reachable from the peer"
	for i := range links {
		link := &links[i]
		if link.Tenant != namespace || namespace == "" {
			continue
		}
		switch {
		case link.Negotiating != nil:
			return one(area, Problem, do, "The tunnel to %s is being negotiated: %v", to, link.Negotiating)
		case !link.Connected:
			return one(area, Problem, do, "The tunnel to %s is not connected", to)
		case !link.Said.IsZero() && l.now.Sub(link.Said) > stale:
			return one(area, Problem, do, "The tunnel to %s is called connected, but its gateway has not said so since %s", to,
				link.Said.UTC().Format(time.RFC3339))
		}
		if link.RoundTrip > 0 {
			return one(area, OK, "", "The tunnel to %s is connected, with a round-trip time of %s at %s", to, link.RoundTrip,
				link.Measured.UTC().Format(time.RFC3339))
		}
		return one(area, OK, "", "The tunnel to %s is connected", to)
	}
	return one(area, Problem, do, "There is no tunnel to %s", to)
}

// kubelets looks at the virtual kubelets, their pods and nodes.
func (l *look) kubelets(ctx context.Context) []Check {
	const area = "Virtual kubelets"
	var nodes v09.VirtualNodeList
	if err := l.List(ctx, &nodes); err != nil {
		return cannot(area, "the VirtualNodes", err)
	}
	var all []Check
	for i := range nodes.Items {
		n := &nodes.Items[i]
		name, spec := v09.KubeletDeployment(n)
		logs := fmt.Sprintf("kubectl logs -n %s deploy/%s", n.Namespace, name)
		var d appsv1.Deployment
		if err := l.Get(ctx, client.ObjectKey{Namespace: n.Namespace, Name: name}, &d); err != nil {
			all = append(all, cannot(area, "Deployment "+n.Namespace+"/"+name, err)...)
			continue
		}

		// What runs, and what has come of it.
		image := ""
		if spec != nil && len(spec.Template.Spec.Containers) > 0 {
			image = spec.Template.Spec.Containers[0].Image
		}
		var node corev1.Node
		err := l.Get(ctx, client.ObjectKey{Name: n.Name}, &node)
		switch why := behind(&d); {
		case why != "":
			all = append(all, one(area, Problem, logs, "The virtual kubelet of %s (image %s): %s", n.Name, image, why))
		case v09.HasNode(n) && apierrors.IsNotFound(err):
			all = append(all, one(area, Problem, logs, "There is no node %s yet", n.Name))
		case v09.HasNode(n) && err != nil:
			all = append(all, cannot(area, "node "+n.Name, err)...)
		case v09.HasNode(n) && !liqo.NodeReady(&node):
			all = append(all, one(area, Problem, logs, "Node %s is not ready%s", n.Name, because(&node)))
		default:
			all = append(all, one(area, OK, "", "The virtual kubelet of %s runs (image %s)", n.Name, image))
		}
	}
	if len(all) == 0 {
		all = append(all, one(area, Note, "", "There is no virtual node: no peer provides here"))
	}
	return all
}

func because(n *corev1.Node) string {
	if c := liqo.NodeCondition(n, corev1.NodeReady); c != nil && c.Message != "" {
		return ": " + c.Message
	}
	return ""
}

// secrets looks at whom namespace liqo is offered to: only those may be whose node says that its virtual kubelet is ours.
func (l *look) secrets(ctx context.Context) []Check {
	const area = "Offer of namespace liqo"
	var offers v09.NamespaceMapList
	var virtual v09.VirtualNodeList
	if err := l.List(ctx, &offers); err != nil {
		return cannot(area, "the NamespaceMaps", err)
	}
	if err := l.List(ctx, &virtual); err != nil {
		return cannot(area, "the VirtualNodes", err)
	}

	// Who is offered it, by the nodes that the same peer has. Nobody but a broker needs to offer it again.
	do := "At once: kubectl delete namespaceoffloading -n liqo offloading"
	if l.setup.Broker {
		do += ". Then: " + install0
	}
	var all []Check
	for i := range offers.Items {
		m := &offers.Items[i]
		if !v09.Wanted(m, liqoNamespace) {
			continue
		}
		// Its kubelet says on its node that it is ours.
		for v := range virtual.Items {
			n := &virtual.Items[v]
			if n.Namespace != m.Namespace || !v09.HasNode(n) {
				continue
			}
			var node corev1.Node
			err := l.Get(ctx, client.ObjectKey{Name: n.Name}, &node)
			switch {
			case err != nil:
				all = append(all, cannot(area, "node "+n.Name, err)...)
			case node.Annotations[liqo.LabelVirtualKubelet] == "":
				all = append(all, one(area, Problem, do,
					"Namespace liqo is offered to %s, whose virtual kubelet does not say that it is ours: Liqo's own hands it all Secrets there", n.Name))
			default:
				all = append(all, one(area, OK, "", "Namespace liqo is offered to %s, whose virtual kubelet is ours", n.Name))
			}
		}
	}

	// Nobody is fine, but not on a broker.
	if len(all) == 0 && !l.setup.Broker {
		return []Check{one(area, OK, "", "Namespace liqo is offered to nobody")}
	}
	if len(all) == 0 {
		return []Check{one(area, Note, "", "Namespace liqo is offered to nobody, so that consumers find no remote IPAM")}
	}
	return all
}

// relays says how many addresses are relayed for each peer.
func (l *look) relays(ctx context.Context) []Check {
	const area = "Relay"
	var mappings v09.NatMappingList
	if err := l.List(ctx, &mappings); err != nil {
		return cannot(area, "the NatMappings", err)
	}
	all := []Check{}
	for i := range mappings.Items {
		m := &mappings.Items[i]
		all = append(all, one(area, OK, "", "%d addresses are relayed for peer %s", len(v09.Mappings(m)), v09.MappedFor(m)))
	}
	if len(all) == 0 {
		all = append(all, one(area, OK, "", "No address is relayed"))
	}
	return all
}

// remoteIPAMs looks at the Services by which virtual kubelets reach the brokers.
func (l *look) remoteIPAMs(ctx context.Context) []Check {
	const area = "Remote IPAM"
	var all []Check
	for _, address := range l.setup.RemoteIPAMs {
		name, rest, _ := strings.Cut(address, ".")
		namespace, _, _ := strings.Cut(rest, ".")
		if namespace == "" {
			all = append(all, one(area, Unknown, "", "Whether somebody answers at %s cannot be seen here", address))
			continue
		}
		all = append(all, l.service(ctx, area, namespace, name, "virtual kubelets ask the broker there for addresses",
			"On the broker: kubectl liqo-broker diagnose. It must peer with this cluster, and offer the Service"))
	}
	if n := len(l.setup.RemoteIPAMs) - len(l.setup.Brokers); n > 0 {
		all = append(all, one(area, Problem, "Peer with the broker again, or: kubectl liqo-broker unprepare",
			"%d addresses of remote IPAMs are of no peer of this cluster", n))
	}
	return all
}

// reader reads Liqo's objects here, whichever line runs.
func (l *look) reader() line.Reader { return l.setup.Liqo().Reader(l, l.setup.Own.ID) }

// grants looks at what the brokers of a consumer with Liqo 1.x have granted it.
func (l *look) grants(ctx context.Context) []Check {
	const area = "Grants"
	peers, err := l.reader().Peers(ctx)
	if err != nil {
		return cannot(area, "the peers", err)
	}
	var all []Check
	for _, broker := range l.setup.Brokers {
		at := slices.IndexFunc(peers, func(p liqo.Peer) bool { return p.ID == broker.ID })
		if at < 0 {
			continue // The steps say so.
		}
		offers, err := l.reader().OffersWith(ctx, &peers[at])
		if err != nil {
			all = append(all, cannot(area, "what "+broker.String()+" grants", err)...)
			continue
		}
		offers = slices.DeleteFunc(offers, func(o liqo.Offer) bool { return o.By() != broker.ID })
		all = append(all, grantsOf(area, broker, offers)...)
		alone, err := v1.GrantedAlone(ctx, l, broker.ID)
		if err != nil {
			all = append(all, cannot(area, "who grants at "+broker.String(), err)...)
		}
		for _, name := range alone {
			all = append(all, one(area, Problem, "If it is a broker, install says there how it takes that over. If it is none: "+
				"kubectl liqo-broker unprepare --broker "+overview.Argument(string(broker.ID)),
				"%s grants ResourceSlice %s as Liqo does by itself, and not as a broker", broker, name))
		}
	}
	return all
}

// said looks at what people have written on the records of peers that are brokers, with Liqo 1.x.
func (l *look) said(ctx context.Context) []Check {
	const area = "Peerings"
	otherwise, err := v1.SaidOtherwise(ctx, l)
	if err != nil {
		return cannot(area, "the peers", err)
	}
	var all []Check
	for _, id := range slices.Sorted(maps.Keys(otherwise)) {
		all = append(all, one(area, Problem, "If it is a broker: kubectl annotate --overwrite "+v1.BrokerRecordKind+" "+
			overview.Argument(string(id))+" "+v1.BrokerAnnotation,
			"Whether %s is a broker says %q on its ForeignCluster, which counts for nothing: %s would say that it is one", id, otherwise[id],
			v1.BrokerAnnotation))
	}
	return all
}

// grantsOf says what a broker has answered. What it denies beside what it grants may be right.
func grantsOf(area string, broker cluster.Identity, offers []liqo.Offer) []Check {
	if len(offers) == 0 {
		name := overview.Argument(string(broker.ID))
		return []Check{one(area, Problem, "liqoctl create resourceslice "+name+" --remote-cluster-id "+name,
			"This cluster asks %s for nothing", broker)}
	}
	state := Problem
	if slices.ContainsFunc(offers, func(o liqo.Offer) bool { return o.Accepted }) {
		state = Note
	}
	var all []Check
	for i := range offers {
		switch o := &offers[i]; {
		case o.Accepted:
			all = append(all, one(area, OK, "", "%s grants something for ResourceSlice %s", broker, o.Name))
		case o.Denied != "":
			all = append(all, one(area, state, denialRemedy(grant.Reason(o.DeniedFor)),
				"%s denies what ResourceSlice %s asks for: %s", broker, o.Name, o.Denied))
		default:
			all = append(all, one(area, state, "On the broker: kubectl liqo-broker diagnose",
				"%s has not answered ResourceSlice %s", broker, o.Name))
		}
	}
	return all
}

// denialRemedy is what to do on a consumer about what a broker denies.
func denialRemedy(why grant.Reason) string {
	return cmp.Or(map[grant.Reason]string{
		grant.AgentMissing: "Let the agent run, which tells the broker what this cluster reaches: kubectl liqo-broker prepare. If it runs, " +
			"look at the clock, and " + agentLogs,
		grant.ViewUnknown: "The agent lists the networks that the broker grants, and tells it when Liqo has decided about them, in a minute or " +
			"two. If it stays so, it says which ones it refuses, and why: " + agentLogs,
	}[why], "If that is not meant, on the broker: kubectl liqo-broker diagnose")
}

// paths looks at by which paths the pods of a consumer are reached.
func (l *look) paths(ctx context.Context) []Check {
	const area = "Pods"
	var nodes corev1.NodeList
	var pods corev1.PodList
	if err := l.List(ctx, &nodes, client.MatchingLabels{liqo.LabelNodeType: liqo.NodeTypeVirtual}); err != nil {
		return cannot(area, "the virtual nodes", err)
	}
	if err := l.List(ctx, &pods); err != nil {
		return cannot(area, "the pods", err)
	}
	ways, err := l.reader().Ways(ctx)
	if err != nil {
		return cannot(area, "how pods at brokers are reached", err)
	}
	count, without := map[string]int{}, []string{}
	for _, p := range overview.OnConsumer(&ways, nodes.Items, pods.Items, nil) {
		count[p.Path]++
		if p.Path == "" && p.Ready {
			without = append(without, p.Namespace+"/"+p.Pod)
		}
	}
	all := []Check{one(area, OK, "", "%d pods are reached directly, and %d through a broker", count["direct"], count["relay"])}
	if len(without) > 0 {
		look := "the log of the virtual kubelet, in the tenant namespace of the broker"
		if l.setup.Liqo1() {
			look = agentLogs
		}
		all = append(all, one(area, Note, "They may be new. If it stays so: "+look,
			"Of %d pods that are ready no path is known: %s", len(without), some(without)))
	}
	return append(all, l.atHome(ctx, nodes.Items, pods.Items)...)
}

// atHome looks at the pods of a consumer that should be elsewhere.
func (l *look) atHome(ctx context.Context, nodes []corev1.Node, pods []corev1.Pod) []Check {
	const area = "Pods"
	var namespaces corev1.NamespaceList
	if err := l.List(ctx, &namespaces); err != nil {
		return cannot(area, "the namespaces", err)
	}
	offloadings, err := line.Offloadings(ctx, l, l.setup.Liqo())
	if err != nil {
		return cannot(area, "the NamespaceOffloadings", err)
	}
	var all []Check
	for _, home := range overview.AtHome(namespaces.Items, offloadings, nodes, pods) {
		all = append(all, Check{area, Problem, home.What, home.Do})
	}
	return all
}

// policies looks at the NetworkPolicies of a consumer's offloaded namespaces: no other cluster obeys them, since Liqo copies none.
func (l *look) policies(ctx context.Context) []Check {
	const area = "Network policies"
	var policies networkingv1.NetworkPolicyList
	if err := l.List(ctx, &policies); err != nil {
		return cannot(area, "the NetworkPolicies", err)
	}
	offloadings, err := line.Offloadings(ctx, l, l.setup.Liqo())
	if err != nil {
		return cannot(area, "the NamespaceOffloadings", err)
	}
	count := map[string]int{}
	for i := range policies.Items {
		count[policies.Items[i].Namespace]++
	}
	var all []Check
	for _, o := range offloadings {
		// The namespaces that a broker keeps for others have its own policies.
		if o.Leaves && !o.Managed && count[o.Namespace] > 0 {
			all = append(all, one(area, Note, "What holds there instead: "+version.Document("docs/admin/consumer.md#network-policies"),
				"Namespace %s is offloaded, and its NetworkPolicies (%d) do not hold for pods that run in other clusters", o.Namespace,
				count[o.Namespace]))
		}
	}
	if len(all) == 0 {
		all = append(all, one(area, OK, "", "No offloaded namespace has NetworkPolicies, which would not hold in other clusters"))
	}
	return all
}

// objects says what the broker itself found of providers, consumers, policies and queries.
func (l *look) objects(ctx context.Context, observe func(context.Context, client.Client) (overview.Observed, error)) []Check {
	const area = "Providers, consumers, policies"
	observed, err := observe(ctx, l.Client)
	if err != nil {
		return cannot(area, "the objects of the broker", err)
	}
	status := overview.Summarize(observed)
	return append(checksOf(area, status.Next), one(area, OK, "", "%d providers, %d consumers, %d policies, %d queries",
		status.Providers.Total, status.Consumers.Total, status.Policies.Total, status.Queries.Total))
}

// checksOf returns what a status says as well.
func checksOf(area string, findings []overview.Finding) []Check {
	all := make([]Check, 0, len(findings))
	for _, f := range findings {
		state := Note
		if f.Problem {
			state = Problem
		}
		all = append(all, Check{area, state, f.What, f.Do})
	}
	return all
}

// events shows the warnings of the last hour where Liqo and the broker run.
func (l *look) events(ctx context.Context) []Check {
	const area = "Warnings of the last hour"
	tenants, err := l.tenants(ctx)
	if err != nil {
		return cannot(area, "the peers", err)
	}
	namespaces := append(slices.Sorted(maps.Keys(tenants)), liqoNamespace, install.BrokerNamespace)
	if l.setup.Liqo1() {
		namespaces = append(namespaces, install.TransitName, install.AgentName)
	}
	type warning struct {
		of    string
		count int32
		at    time.Time
	}

	// Those that say the same are counted together.
	seen := map[string]*warning{}
	for _, namespace := range namespaces {
		var events corev1.EventList
		if err := l.List(ctx, &events, client.InNamespace(namespace)); err != nil {
			return cannot(area, "the events of namespace "+namespace, err)
		}
		for i := range events.Items {
			e := &events.Items[i]
			at := e.LastTimestamp.Time
			if at.IsZero() {
				at = e.EventTime.Time
			}
			if e.Type != corev1.EventTypeWarning || l.now.Sub(at) > recent {
				continue
			}
			key := fmt.Sprintf("%s %s/%s: %s (%s)", e.InvolvedObject.Kind, namespace, e.InvolvedObject.Name, e.Message, e.Reason)
			w := seen[key]
			if w == nil {
				w = &warning{of: key}
				seen[key] = w
			}
			w.count += max(e.Count, 1)
			if at.After(w.at) {
				w.at = at
			}
		}
	}

	// The last ones come first.
	all := slices.SortedFunc(maps.Values(seen), func(a, b *warning) int { return cmp.Or(b.at.Compare(a.at), strings.Compare(a.of, b.of)) })
	checks := []Check{}
	for _, w := range all[:min(len(all), maxEvents)] {
		checks = append(checks, one(area, Note, "", "%s, %d times, last %s ago", w.of, w.count, l.now.Sub(w.at).Round(time.Second)))
	}
	if len(all) == 0 {
		checks = append(checks, one(area, OK, "", "None"))
	}
	return checks
}
