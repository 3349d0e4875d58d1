// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package install

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/selection"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
	"github.com/capacitorset/liqo-broker/pkg/liqo"
	v1 "github.com/capacitorset/liqo-broker/pkg/liqo/v1"
	"github.com/capacitorset/liqo-broker/pkg/liqo/v1/api"
	"github.com/capacitorset/liqo-broker/pkg/liqo/v1/report"
	"github.com/capacitorset/liqo-broker/pkg/sheet"
	"github.com/capacitorset/liqo-broker/pkg/version"
)

// line1 is Liqo 1.x, of which nothing is changed: what a broker or a consumer needs runs beside it.
type line1 struct{ v1.Line }

// Liqo1Version is the one that tests run. Others of its line are worked with on request only (Options.LiqoUnsupported).
const Liqo1Version = "v1.2.0"

// versions1 begins the tags of the images of line 1.x.
const versions1 = "v1."

const (
	// TransitName is the name of the transit's namespace, Deployment and policy (deploy/transit).
	TransitName = "liqo-broker-transit"
	// systemNamespaces is the folder of the rule that guards, brokers and consumers have in common, and sealed is its name.
	systemNamespaces = "guard/policies/system-namespaces"
	sealed           = "system-namespaces.brokering.liqo.io"
	// AgentName is the name of the agent's namespace, Deployment and service account (deploy/agent).
	AgentName = "liqo-broker-agent"
)

func (line1) check(ctx context.Context, o objects) (string, error) {
	return managerTag(ctx, o, versions1, Liqo1Version)
}

func (line1) rights() []authorizationv1.ResourceAttributes {
	return []authorizationv1.ResourceAttributes{
		{Verb: "patch", Group: "rbac.authorization.k8s.io", Resource: "clusterroles"},
		{Verb: "create", Group: "apiextensions.k8s.io", Resource: "customresourcedefinitions"},
		{Verb: "create", Group: "admissionregistration.k8s.io", Resource: "validatingadmissionpolicies"},
		{Verb: "patch", Group: api.CoreGroup, Resource: "foreignclusters"},
	}
}

func (line1) fits(version string) error {
	if version != Liqo1Version {
		return requirement("this cluster has Liqo %s, and of 1.x %s was tried: with --liqo-unsupported it is tried all the same", version,
			Liqo1Version)
	}
	return nil
}

// needs looks for admission policies, without which peers could write what they like, and for all parts of Liqo.
func (line1) needs(ctx context.Context, o objects) error {
	there, err := o.serves(policyKind(), "v1")
	if err != nil {
		return err
	}
	if !there {
		return requirement("this cluster's Kubernetes has no admission policies, by which peers are bounded with Liqo 1.x: it must be " +
			"1.30 or later")
	}
	for _, of := range []struct{ group, kind, version string }{
		{api.AuthenticationGroup, "ResourceSlice", api.Beta}, {api.OffloadingGroup, "NamespaceOffloading", api.Beta},
		{api.NetworkingGroup, "Configuration", api.Beta}, {api.NetworkingGroup, "FirewallConfiguration", api.Beta},
		{api.IPAMGroup, "Network", api.Alpha}, {api.IPAMGroup, "IP", api.Alpha},
	} {
		there, err := o.serves(schema.GroupKind{Group: of.group, Kind: of.kind}, of.version)
		if err != nil {
			return err
		}
		if !there {
			return requirement("this cluster has Liqo 1.x, but not its kind %s.%s in version %s: install all of Liqo's definitions", of.kind,
				of.group, of.version)
		}
	}
	manager, err := liqo.ReadManager(ctx, o, liqoNamespace)
	if err != nil {
		return err
	}
	for _, part := range []string{"networking", "authentication", "offloading"} {
		flag := "--" + part + "-enabled"
		if on, err := strconv.ParseBool(manager.Value(flag)); err == nil && !on {
			return requirement("Liqo's controller manager has %s=false: set the value %s.enabled of Liqo's chart to true", flag, part)
		}
	}
	return nil
}

func (l line1) mayBroker(ctx context.Context, i *Installer, s *Setup) error {
	if s.Catalog {
		return requirement("this cluster is a catalog, whose daemon would not answer what the API server asks that of a broker: first "+
			"kubectl delete %s", version.Applied("deploy/catalog"))
	}
	if i.options.modesGiven && !slices.ContainsFunc(i.options.Modes, func(mode string) bool { return mode != modes[0] }) {
		return requirement("with Liqo 1.x a catalog alone is no broker: kubectl apply %s", version.Applied("deploy/catalog"))
	}
	peers, err := i.peers(ctx, l)
	if err != nil {
		return err
	}
	for n := range peers {
		if peers[n].InBand && peers[n].Outgoing.Exists {
			fmt.Fprintf(i.run.out, "      peer %s may be reached by a proxy in the network of the peering, to which %s lets nothing pass unless "+
				"its flag --allow says so\n", called(peers[n].Identity), TransitName)
		}
	}
	return i.warnOfLiqosGrants(ctx)
}

// warnOfLiqosGrants says which consumers have been granted something by Liqo itself, which the broker does not answer for.
func (i *Installer) warnOfLiqosGrants(ctx context.Context) error {
	granted, err := v1.GrantedByLiqo(ctx, i)
	if err != nil || len(granted) == 0 {
		return err
	}
	fmt.Fprintf(i.run.out, "      warning: %d ResourceSlices were granted by Liqo itself, with all that was asked for. They stay so, and the "+
		"broker neither counts nor bounds them, until somebody writes them. When the broker runs, it takes each over by the command beside "+
		"it, and grants no more then than there is for the consumer; pods that run stay:\n", len(granted))
	for _, s := range granted {
		fmt.Fprintf(i.run.out, "      of %s: kubectl patch resourceslices.%s -n %s %s --type=merge -p '{\"spec\":{\"class\":\"%s\"}}'\n",
			sheet.Plain(string(s.Consumer)), api.AuthenticationGroup, s.Name.Namespace, s.Name.Name, v1.SliceClass)
	}
	return nil
}

func (line1) mayGuard(context.Context, *Installer) error { return nil }

func (l line1) marks(ctx context.Context, i *Installer, s *Setup) error {
	daemon, err := i.program(ctx, BrokerName)
	if err != nil {
		return err
	}
	if container, err := first(daemon); err == nil {
		s.Catalog = !slices.ContainsFunc(container.Args, func(arg string) bool {
			name, value, _ := strings.Cut(arg, "=")
			return isMode(name) && name != modePrefix+modes[0] && value != "false"
		})
		s.Broker = !s.Catalog
	}
	guard, err := i.program(ctx, GuardName)
	if err != nil {
		return err
	}
	s.Guarded = guard.Name != "" && !s.Broker
	image, err := l.image(ctx, i)
	if err != nil {
		return err
	}
	s.Tag = ImageTag(image)
	s.Brokers, err = v1.Brokers(ctx, i)
	return err
}

func (line1) image(ctx context.Context, i *Installer) (string, error) {
	for _, name := range programs() {
		d, err := i.program(ctx, name)
		if err != nil {
			return "", err
		}
		if container, err := first(d); err == nil {
			return container.Image, nil
		}
	}
	return "", nil
}

// broker has the way through the cluster closed before anybody is granted something that is reached by it.
func (line1) broker(i *Installer) ([]step, error) {
	base, err := i.manifests()
	if err != nil {
		return nil, err
	}
	transit, err := i.besideLiqo("transit")
	if err != nil {
		return nil, err
	}
	run := i.running("keep peers apart on the way through this cluster", TransitName, transit)
	rolledOut := run.settled
	run.settled = func(ctx context.Context) error {
		if err := rolledOut(ctx); err != nil {
			return err
		}
		closed := client.ObjectKey{Namespace: TransitName, Name: v1.TransitFirewall}
		if err := i.Get(ctx, closed, &api.FirewallConfiguration{}); err != nil {
			return fmt.Errorf("read what all gateways drop, FirewallConfiguration %s: %w", closed, err)
		}
		return nil
	}
	return append([]step{run}, i.daemonSteps(base)...), nil
}

// brokerUndo lets the way through the cluster be open again when nobody grants any more.
func (line1) brokerUndo(i *Installer) ([]step, error) {
	base, err := i.manifests()
	if err != nil {
		return nil, err
	}
	admission, err := build("admission")
	if err != nil {
		return nil, err
	}
	transit, err := i.besideLiqo("transit")
	if err != nil {
		return nil, err
	}
	return append(i.daemonUndo(base, admission),
		step{"let new pods go to all providers again", i.untainted, nil},
		i.removing("remove the transit", transit, func(ctx context.Context) error { return i.gone(ctx, transit) }),
		step{"have Liqo's gateways pass everything again", i.opened, nil},
		step{"remove what peers were told by the broker", i.toldReports, nil},
	), nil
}

// untainted returns the changes by which new pods may go to the nodes of providers that were cordoned or drained: nobody is left who could
// say it of a provider.
func (i *Installer) untainted(ctx context.Context) ([]change, error) {
	var nodes corev1.NodeList
	if err := i.List(ctx, &nodes, client.MatchingLabels{liqo.LabelNodeType: liqo.NodeTypeVirtual}); err != nil {
		return nil, fmt.Errorf("list the virtual nodes: %w", err)
	}
	var all []change
	for n := range nodes.Items {
		node := &nodes.Items[n]
		changes, err := i.mutateRead(node, func() error { untaint(node); return nil })
		if err != nil {
			return nil, err
		}
		all = append(all, changes...)
	}
	return all, nil
}

// opened returns the changes that remove what was kept for the transit. Gateways forget no rule whose object is gone: they start again.
func (i *Installer) opened(ctx context.Context) ([]change, error) {
	kept, err := v1.TransitKept(ctx, i)
	if err != nil || len(kept) == 0 {
		return nil, err
	}
	gateways, err := v1.Gateways(ctx, i)
	if err != nil {
		return nil, err
	}
	var all []change
	for _, o := range kept {
		all = append(all, i.deletion(o))
	}
	for n := range gateways {
		all = append(all, i.deletion(&gateways[n]))
	}
	return all, nil
}

// toldReports returns the changes that remove where consumers report to the broker, and what bounds them.
func (i *Installer) toldReports(ctx context.Context) ([]change, error) {
	return i.toldTenants(ctx, append(ofGuard(),
		toldAs{report.Name, &corev1.ConfigMapList{}}, toldAs{report.Name, &rbacv1.RoleBindingList{}}, toldAs{report.Name, &rbacv1.RoleList{}},
	))
}

// unbounded returns the changes that remove what bounds peers in their tenant namespaces.
func (i *Installer) unbounded(ctx context.Context) ([]change, error) {
	return i.toldTenants(ctx, ofGuard())
}

// ofGuard are what the guard keeps in tenant namespaces, by which it bounds what peers write there. What it keeps in twin namespaces
// stays as long as these do: it is around pods that run.
func ofGuard() []toldAs { return []toldAs{{BrokerName, &corev1.ResourceQuotaList{}}} }

// toldTenants returns the changes that remove objects in the tenant namespaces of all peers, whichever way they peer.
func (i *Installer) toldTenants(ctx context.Context, objects []toldAs) ([]change, error) {
	tenant, err := labels.NewRequirement(liqo.LabelTenantNamespace, selection.Exists, nil)
	if err != nil {
		return nil, fmt.Errorf("select the tenant namespaces: %w", err)
	}
	return i.toldPeers(ctx, labels.NewSelector().Add(*tenant), objects)
}

// consumer has the agent find all that it needs before it learns which peer is the broker.
func (line1) consumer(i *Installer, broker cluster.Identity) ([]step, error) {
	agent, err := i.agent()
	if err != nil {
		return nil, err
	}
	return []step{
		i.running("run the agent, with the rule that bounds it", AgentName, agent),
		i.policies("offload no namespace that has keys of this cluster", systemNamespaces),
		{
			fmt.Sprintf("wait for this cluster's credentials at %s", called(broker)), nothing,
			func(ctx context.Context) error { _, err := i.credentials(ctx, broker); return err },
		},
		{fmt.Sprintf("let the agent read these credentials, and no others of %s, and ask it for nodes", called(broker)), i.readable(broker), nil},
		{fmt.Sprintf("tell the agent that %s is a broker", called(broker)), i.telling(broker), nil},
	}, nil
}

// telling returns what computes the change by which the agent learns that a peer is a broker. Nobody sees here whether it is one; but one
// that grants as Liqo does by itself may be none, of which people are warned.
func (i *Installer) telling(broker cluster.Identity) func(context.Context) ([]change, error) {
	return func(ctx context.Context) ([]change, error) {
		granted, err := v1.GrantedAlone(ctx, i, broker.ID)
		if err != nil {
			return nil, err
		}
		if len(granted) > 0 {
			fmt.Fprintf(i.run.out, "      warning: %s has granted what ResourceSlice %s asks for as Liqo does by itself. If it is a broker, "+
				"install says there how it takes that over; if it is none: kubectl liqo-broker unprepare --broker %s\n", called(broker),
				strings.Join(granted, ", "), quoted(string(broker.ID)))
		}
		return i.saying(broker.ID, true)(ctx)
	}
}

// credentials returns the Secret with this cluster's credentials at a broker; an error until Liqo has them.
func (i *Installer) credentials(ctx context.Context, broker cluster.Identity) (client.ObjectKey, error) {
	peer, err := i.peerWith(ctx, broker.ID)
	if err != nil {
		return client.ObjectKey{}, err
	}
	secret, _, err := v1.IdentityAt(ctx, i, broker.ID, peer.Tenant)
	if err != nil {
		return client.ObjectKey{}, err
	}
	if peer.Tenant == "" || secret.Name == "" {
		return client.ObjectKey{}, fmt.Errorf("there is no Identity of this cluster at %s with a Secret: this cluster must peer with it as its "+
			"consumer (liqoctl peer)", called(broker))
	}
	return secret, nil
}

// peerWith returns what this cluster knows of a peer; of one that it does not know, the ID alone.
func (i *Installer) peerWith(ctx context.Context, id cluster.ID) (liqo.Peer, error) {
	peers, err := i.peers(ctx, line1{})
	if err != nil {
		return liqo.Peer{}, err
	}
	for n := range peers {
		if peers[n].ID == id {
			return peers[n], nil
		}
	}
	return liqo.Peer{Identity: v1.Identity(string(id))}, nil
}

// readable returns what computes the changes by which the agent may read this cluster's credentials at a broker. There are none before
// Liqo has these: the step before waits for them, unless nothing is to be changed.
func (i *Installer) readable(broker cluster.Identity) func(context.Context) ([]change, error) {
	return func(ctx context.Context) ([]change, error) {
		secret, err := i.credentials(ctx, broker)
		if err != nil && i.run.dryRun {
			fmt.Fprintf(i.run.out, "      not tried: %s\n", sheet.Plain(err.Error()))
			return nil, nil
		}
		if err != nil {
			return nil, err
		}
		return i.apply(ctx, readers(secret))
	}
}

// readers returns what lets the agent read one Secret, and ask the cluster in whose tenant namespace that is for nodes.
func readers(secret client.ObjectKey) []*unstructured.Unstructured {
	role := &unstructured.Unstructured{Object: map[string]any{"rules": []any{
		map[string]any{"apiGroups": []any{""}, "resources": []any{"secrets"}, "resourceNames": []any{secret.Name}, "verbs": []any{"get"}},
		map[string]any{
			"apiGroups": []any{api.AuthenticationGroup}, "resources": []any{"resourceslices"}, "verbs": []any{"create", "patch", "delete"},
		},
	}}}
	role.SetGroupVersionKind(rbacv1.SchemeGroupVersion.WithKind("Role"))
	binding := &unstructured.Unstructured{Object: map[string]any{
		"roleRef":  map[string]any{"apiGroup": rbacv1.GroupName, "kind": "Role", "name": AgentName},
		"subjects": []any{map[string]any{"kind": rbacv1.ServiceAccountKind, "name": AgentName, "namespace": AgentName}},
	}}
	binding.SetGroupVersionKind(rbacv1.SchemeGroupVersion.WithKind("RoleBinding"))
	for _, o := range []*unstructured.Unstructured{role, binding} {
		o.SetNamespace(secret.Namespace)
		o.SetName(AgentName)
		o.SetLabels(map[string]string{labelName: AgentName})
	}
	return []*unstructured.Unstructured{role, binding}
}

// saying returns what computes the change by which people say that a peer is a broker, or that it is none.
func (i *Installer) saying(id cluster.ID, is bool) func(context.Context) ([]change, error) {
	return func(ctx context.Context) ([]change, error) {
		record, err := v1.RecordOf(ctx, i, id)
		if err != nil || record == nil {
			return nil, err
		}
		return i.mutateRead(record, func() error { v1.SayBroker(record, is); return nil })
	}
}

// consumerUndo ends with what the agent has listed: pods are shown under these addresses, and are reached for as long as they are listed.
func (line1) consumerUndo(_ context.Context, i *Installer) ([]step, error) {
	agent, err := i.agent()
	if err != nil {
		return nil, err
	}
	rule, err := build(systemNamespaces)
	if err != nil {
		return nil, err
	}
	return []step{
		{"say of no peer that it is a broker", func(ctx context.Context) ([]change, error) {
			brokers, err := v1.Brokers(ctx, i)
			if err != nil {
				return nil, err
			}
			var all []change
			for _, broker := range brokers {
				changes, err := i.saying(broker.ID, false)(ctx)
				if err != nil {
					return nil, err
				}
				all = append(all, changes...)
			}
			return all, nil
		}, nil},
		{"let nobody read this cluster's credentials at brokers, nor ask these for nodes", i.unreadable, nil},
		{"remove the rule about namespaces with keys, unless a guard is here", func(ctx context.Context) ([]change, error) {
			unwanted, err := i.unsealed(ctx, rule, GuardName)
			if err != nil {
				return nil, err
			}
			return i.remove(ctx, unwanted)
		}, nil},
		i.removing("remove the agent, and the rule that bounds it", agent, func(ctx context.Context) error { return i.gone(ctx, agent) }),
	}, nil
}

// unreadable returns the changes that take from the agent what lets it read Secrets of tenant namespaces, and ask for nodes there.
func (i *Installer) unreadable(ctx context.Context) ([]change, error) {
	peers, err := i.peers(ctx, line1{})
	if err != nil {
		return nil, err
	}
	var unwanted []*unstructured.Unstructured
	for n := range peers {
		if peers[n].Tenant != "" {
			unwanted = append(unwanted, readers(client.ObjectKey{Namespace: peers[n].Tenant})...)
		}
	}
	return i.remove(ctx, unwanted)
}

func (line1) leaveBroker(ctx context.Context, i *Installer, broker cluster.Identity) ([]step, bool, error) {
	brokers, err := v1.Brokers(ctx, i)
	if err != nil {
		return nil, false, err
	}
	if !slices.Contains(brokers, broker) {
		return nil, false, requirement("this cluster is no consumer of %s: its ForeignCluster has no annotation %s", called(broker),
			v1.BrokerAnnotation)
	}
	if len(brokers) == 1 {
		return nil, true, nil
	}
	return []step{
		{fmt.Sprintf("say of %s that it is no broker", called(broker)), i.saying(broker.ID, false), nil},
		{
			fmt.Sprintf("let nobody read this cluster's credentials at %s, nor ask it for nodes", called(broker)),
			func(ctx context.Context) ([]change, error) {
				peer, err := i.peerWith(ctx, broker.ID)
				if err != nil || peer.Tenant == "" {
					return nil, err
				}
				return i.remove(ctx, readers(client.ObjectKey{Namespace: peer.Tenant}))
			}, nil,
		},
	}, false, nil
}

func (line1) guard(i *Installer) ([]step, error) {
	wanted, err := i.guardObjects()
	return i.guarding(wanted), err
}

func (line1) guardUndo(i *Installer) ([]step, error) {
	base, err := i.guardObjects()
	if err != nil {
		return nil, err
	}
	policies, err := build("guard/policies")
	if err != nil {
		return nil, err
	}
	return append(i.guardingUndo(base, policies), step{"remove what bounds peers", i.unbounded, nil}), nil
}

func (l line1) mayCease(ctx context.Context, i *Installer, s *Setup) error {
	switch {
	case s.Catalog:
		return requirement("this cluster is no broker, but a catalog: kubectl delete %s", version.Applied("deploy/catalog"))
	case s.Broker || !s.consumes() && !s.Guarded:
		return nil
	}
	left, err := i.brokerLeft1(ctx)
	switch {
	case err != nil || left:
		return err
	case s.consumes():
		return requirement("this cluster is no broker, but a %s: run unprepare", strings.Join(s.Roles(), " and "))
	default:
		return requirement("this cluster is no broker, but guarded: run unguard")
	}
}

// brokerLeft1 reports whether something of a broker with Liqo 1.x is still there, as after an uninstall that was interrupted.
func (i *Installer) brokerLeft1(ctx context.Context) (bool, error) {
	base, err := i.manifests()
	if err != nil {
		return false, err
	}
	transit, err := i.besideLiqo("transit")
	if err != nil {
		return false, err
	}
	for _, left := range []func(context.Context) ([]change, error){
		i.removing("", append(ofDaemon(base), transit...), nil).changes, i.opened,
	} {
		changes, err := left(ctx)
		if err != nil || len(changes) > 0 {
			return err == nil, err
		}
	}
	return false, nil
}

// mayLose goes by nothing: what else the cluster is has programs of its own.
func (line1) mayLose(context.Context, *Installer) error { return nil }

func (line1) mayUnguard(s *Setup) error {
	if s.Broker {
		return requirement("this cluster is a broker, whose guard goes with it: run uninstall")
	}
	return nil
}

func (line1) exportBroker(ctx context.Context, i *Installer) error {
	transit, err := i.besideLiqo("transit")
	if err != nil {
		return err
	}
	groups := map[string][]*unstructured.Unstructured{}
	if groups["transit/transit.yaml"], err = i.withChoices(ctx, transit); err != nil {
		return err
	}
	if err := i.exportDaemon(ctx, groups); err != nil {
		return err
	}
	return i.export(ctx, exported{groups: groups})
}

func (line1) exportConsumer(ctx context.Context, i *Installer, broker cluster.Identity) error {
	agent, err := i.besideLiqo("agent")
	if err != nil {
		return err
	}
	secret, err := i.credentials(ctx, broker)
	if err != nil {
		return requirement("%w", err)
	}
	record, err := v1.RecordOf(ctx, i, broker.ID)
	if err != nil {
		return err
	}
	groups := map[string][]*unstructured.Unstructured{"agent/broker.yaml": readers(secret)}
	if groups["agent/agent.yaml"], err = i.withChoices(ctx, agent); err != nil {
		return err
	}
	if err := i.export(ctx, exported{groups: groups}); err != nil {
		return err
	}
	fmt.Fprintf(i.run.out, "      Liqo itself keeps the record of %s, which no repository has: when the rest is applied, kubectl annotate "+
		"%s %s %s\n", called(broker), v1.BrokerRecordKind, record.GetName(), v1.BrokerAnnotation)
	return nil
}

func (line1) exportGuard(ctx context.Context, i *Installer) error {
	groups, err := i.guardFiles(ctx)
	if err != nil {
		return err
	}
	return i.export(ctx, exported{groups: groups})
}

// besideLiqo returns the objects of a program of the image network-manager, from a folder of package deploy.
func (i *Installer) besideLiqo(folder string) ([]*unstructured.Unstructured, error) {
	objects, err := build(folder)
	if err != nil {
		return nil, err
	}
	return objects, i.setImages(objects, sidecarImage)
}

// agent returns the objects of the agent, without what consumers have in common with others.
func (i *Installer) agent() ([]*unstructured.Unstructured, error) {
	all, err := i.besideLiqo("agent")
	return slices.DeleteFunc(all, isSealed), err
}

// isSealed reports whether an object is of the rule that guards, brokers and consumers have in common.
func isSealed(o *unstructured.Unstructured) bool { return o.GetName() == sealed }

// unsealed returns objects without those that another program needs, if that is here. A broker has a guard.
func (i *Installer) unsealed(ctx context.Context, all []*unstructured.Unstructured, other string) ([]*unstructured.Unstructured, error) {
	d, err := i.program(ctx, other)
	if err != nil || d.Name == "" {
		return all, err
	}
	return slices.DeleteFunc(slices.Clone(all), isSealed), nil
}

// policyKind is that of the rules that hold while none of our programs answers.
func policyKind() schema.GroupKind {
	return schema.GroupKind{Group: "admissionregistration.k8s.io", Kind: "ValidatingAdmissionPolicy"}
}

// serves reports whether the API server has a kind in a version.
func (o objects) serves(kind schema.GroupKind, in string) (bool, error) {
	_, err := o.RESTMapper().RESTMapping(kind, in)
	if err != nil && !meta.IsNoMatchError(err) {
		return false, fmt.Errorf("ask the API server for kind %s: %w", kind, err)
	}
	return err == nil, nil
}
