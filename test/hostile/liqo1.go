// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package hostile

import (
	"context"
	"crypto/x509/pkix"
	"encoding/base64"
	"errors"
	"fmt"
	"maps"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
)

// The kinds of Liqo 1.x that peers write, or what Liqo writes for them.
const (
	authentication1 = "authentication.liqo.io/v1beta1"
	offloading1     = "offloading.liqo.io/v1beta1"
	networking1     = "networking.liqo.io/v1beta1"
	ipam1           = "ipam.liqo.io/v1alpha1"

	sliceKind, renewKind, tenantKind = "ResourceSlice", "Renew", "Tenant"
	mapKind, offloadingKind          = "NamespaceMap", "NamespaceOffloading"
	configurationKind                = "Configuration"
)

const (
	// peers1, copied1 and twins are policies, of which the first two are webhooks, too.
	peers1, copied1, twins = "peers-liqo1", "copied-liqo1", "twins"

	unlike  = "the labels liqo.io/replicated, originID, remoteID and replication are not those of a copy"
	notMade = "spec.desiredMapping has a name that only this cluster itself gives to a namespace"
	onlyOne = "a peer makes Secret liqo-nonce, empty"
	// reclassed is what became of a ResourceSlice that Liqo itself would have answered.
	reclassed = "the ResourceSlice has become one that the broker answers"
)

// byPeers is the rule about what a peer writes in its tenant namespace.
func byPeers(message string) rule { return rule{policy: peers1, message: message} }

// away is a webhook that cannot be asked.
func away(webhook string) rule { return rule{webhook: webhook} }

const (
	// classed is what comes before all other rules about what a peer writes of a ResourceSlice.
	classed = "class"
	// confines is what comes before all other rules about what a peer writes of a Service.
	confines = "confine-services"
)

// Guest is a consumer of a cluster with Liqo 1.x. It has the identities that Liqo gave it there, of its control plane and of its
// ResourceSlice. Nothing that it tries changes anything, but for a Service that comes and goes.
type Guest struct {
	ID, At cluster.ID
	// Tenant is its tenant namespace there, with a ResourceSlice and a NamespaceMap of its own, and Twin the twin of one of its namespaces.
	Tenant, Slice, Map, Twin string
	// Victim is another peer.
	Victim cluster.ID
	// Node is one of the other cluster's own nodes.
	Node string

	control, slice caller
}

// Connect gives it its access to the API server of the cluster; config is anybody's, and the others say who it is.
func (g *Guest) Connect(config, control, slice *rest.Config) error {
	return connectAs(config, map[*caller]*rest.Config{&g.control: control, &g.slice: slice})
}

// connectAs gives callers access to an API server by the certificates of others. What they try changes nothing.
func connectAs(config *rest.Config, callers map[*caller]*rest.Config) error {
	for c, who := range callers {
		c.DryRun = true
		if err := c.connect(certified(config, who.CertData, who.KeyData)); err != nil {
			return fmt.Errorf("reach the API server of a cluster with Liqo 1.x: %w", err)
		}
	}
	return nil
}

// copyOf is what the copy of an object of a peer has as labels.
func copyOf(peer, at cluster.ID) map[string]any {
	return map[string]any{
		"liqo.io/replicated": "true", "liqo.io/originID": string(peer), "liqo.io/remoteID": string(at), "liqo.io/remote-cluster-id": string(peer),
	}
}

// with returns labels or a spec with some of it another way.
func with(all, more map[string]any) map[string]any {
	all = maps.Clone(all)
	maps.Copy(all, more)
	return all
}

// Rows are what it tries.
func (g *Guest) Rows() []Row { return append(g.inTenant(), g.inTwin()...) }

// inTenant are what it tries in its tenant namespace, as its control plane.
func (g *Guest) inTenant() []Row {
	own := copyOf(g.ID, g.At)
	asks := map[string]any{
		"class": "liqo-broker", "consumerClusterID": string(g.ID), "providerClusterID": string(g.At), "resources": map[string]any{"cpu": "1"},
	}
	slice := func(labels, more map[string]any) func(context.Context) error {
		return g.control.create(authentication1, sliceKind, g.Tenant, labels, with(asks, more))
	}
	mapped := func(labels map[string]any, names map[string]any) func(context.Context) error {
		return g.control.create(offloading1, mapKind, g.Tenant, labels, map[string]any{"desiredMapping": names})
	}
	another := map[string]any{"db": "db-" + string(g.ID)}
	legal := slice(own, nil)
	legalMap := g.control.change(offloading1, mapKind, g.Tenant, g.Map, "", another, "spec", "desiredMapping")
	marks := func(kind, key string) func(context.Context) error {
		return g.control.change(authentication1, sliceKind, g.Tenant, g.Slice, "", "true", "metadata", kind, key)
	}
	const status, gets = "a peer must not write the status of an object", "what it likes"
	granted, none := map[string]any{"cpu": "1k"}, map[string]any{}
	return []Row{
		refusedBy(byPeers(status), byPeers(status), "write what it was granted", gets,
			g.control.change(authentication1, sliceKind, g.Tenant, g.Slice, "status", granted, "status", "resources"), legal),
		refusedBy(byPeers(status), byPeers(status), "write which namespaces were made for it", "namespaces of others",
			g.control.change(offloading1, mapKind, g.Tenant, g.Map, "status", map[string]any{}, "status", "currentMapping"), legalMap),
		refusedBy(
			rule{webhook: classed, message: reclassed, changes: true}, away(classed), "ask for resources that Liqo itself grants", gets,
			func(ctx context.Context) error { return g.defaultClass(ctx, own, asks) }, legal,
		),
		refusedBy(byPeers("spec.class is not liqo-broker"), away(classed), "ask for resources of another class", "an answer by somebody else",
			slice(own, map[string]any{"class": "mine"}), legal),
		refusedBy(byPeers("spec.consumerClusterID and spec.providerClusterID"), away(classed), "ask for resources in the victim's name",
			"what the victim is granted", slice(own, map[string]any{"consumerClusterID": string(g.Victim)}), legal),
		refusedBy(byPeers("spec.csr is too long"), away(classed), "ask for a certificate by a text without end", "a Liqo that does nothing else",
			slice(own, map[string]any{"csr": base64.StdEncoding.EncodeToString(make([]byte, 17<<10))}), legal),
		refusedBy(rule{webhook: peers1, message: "the object has "}, away(classed), "write an object of more than 256 KiB",
			"what belongs to all", slice(own, map[string]any{"resources": manyResources()}), legal),
		refusedBy(byPeers(unlike), byPeers(unlike), "have namespaces made in the victim's name", "the victim's Secrets",
			mapped(with(own, map[string]any{"liqo.io/originID": string(g.Victim)}), none), legalMap),
		refusedBy(byPeers(unlike), byPeers(unlike), "map namespaces as the cluster's own map does", "what it offloads to others",
			mapped(with(own, map[string]any{"liqo.io/replication": "true"}), none), legalMap),
		refusedBy(byPeers(notMade), byPeers(notMade), "have a namespace of Kubernetes made", "the name of one that others trust",
			mapped(own, map[string]any{"db": "kube-hostile"}), legalMap),
		refusedBy(byPeers(notMade), byPeers(notMade), "have the tenant namespace of a cluster made", "the place of one that comes",
			mapped(own, map[string]any{"db": "liqo-tenant-hostile"}), legalMap),
		refusedBy(byPeers("spec.desiredMapping has too many"), byPeers("spec.desiredMapping has too many"), "have 1001 namespaces made",
			"what belongs to all", mapped(own, manyNamespaces()), legalMap),
		refusedBy(byPeers("metadata.name is not this cluster"), byPeers("metadata.name is not this cluster"),
			"map namespaces a second time", "1000 more of them", mapped(own, another), legalMap),
		refusedBy(byPeers("metadata.labels[liqo.io/webhook-skip]"), away(classed), "have Liqo pass over what it has written",
			"no check of Liqo's own", marks("labels", "liqo.io/webhook-skip"), legal),
		refusedBy(byPeers("an annotation liqo.io/cordon"), away(classed), "say whether it gets anything new",
			"resources after its end", marks("annotations", "liqo.io/cordon-tenant"), legal),
		refusedBy(byPeers("metadata.finalizers"), away(classed), "keep what it has written from going", "what it was granted, for ever",
			g.control.change(authentication1, sliceKind, g.Tenant, g.Slice, "", []any{"example.com/hostile"}, "metadata", "finalizers"), legal),
	}
}

// defaultClass tries to ask for resources that Liqo itself grants.
func (g *Guest) defaultClass(ctx context.Context, labels, asks map[string]any) error {
	slice := named(authentication1, sliceKind, g.Tenant, "")
	slice.SetGenerateName("hostile-")
	slice.Object["metadata"].(map[string]any)["labels"] = labels
	slice.Object["spec"] = with(asks, map[string]any{"class": "default", "resources": map[string]any{"cpu": "1000"}})
	if err := g.control.tryCreate(ctx, slice); err != nil {
		return err
	}
	class, _, err := unstructured.NestedString(slice.Object, "spec", "class")
	if err == nil && class == "liqo-broker" {
		err = errors.New(reclassed)
	}
	return err
}

// manyResources are more than an object may have.
func manyResources() map[string]any {
	all := map[string]any{}
	for i := range 4000 {
		all[fmt.Sprintf("hostile.example.com/%s-%d", strings.Repeat("x", 50), i)] = "1"
	}
	return all
}

// manyNamespaces are one more than a peer may have.
func manyNamespaces() map[string]any {
	all := map[string]any{}
	for i := range 1001 {
		all[fmt.Sprintf("n%d", i)] = fmt.Sprintf("hostile-n%d", i)
	}
	return all
}

// inTwin are what it tries in its twin namespace, as its virtual kubelet.
func (g *Guest) inTwin() []Row {
	labels := map[string]any{"offloading.liqo.io/origin": string(g.ID), "offloading.liqo.io/destination": string(g.At)}
	main := map[string]any{"name": "main", "image": "lab.local/web:1", "resources": map[string]any{
		"requests": map[string]any{"cpu": "10m", "memory": "16Mi"}, "limits": map[string]any{"cpu": "10m", "memory": "16Mi"},
	}}
	wish := func(more map[string]any) func(context.Context) error {
		spec := with(map[string]any{"containers": []any{main}}, more)
		return g.slice.create(offloading1, "ShadowPod", g.Twin, labels, map[string]any{"pod": spec})
	}
	isolated := func(what string) rule {
		return rule{webhook: "isolate", message: "this cluster does not take the pod: " + what}
	}
	secret := func(kind string, labels map[string]any) func(context.Context) error {
		return g.slice.createWith("v1", "Secret", g.Twin, "", labels, map[string]any{
			"type": kind, "data": map[string]any{},
		})
	}
	const mark, token = "the Secret has a mark that is not the peer's to set", "type is not one for a peer"
	opaque := secret("Opaque", nil)
	unasked := rule{webhook: "isolate", or: "allowance"}
	return []Row{
		refusedBy(isolated("spec.nodeName"), unasked, "ask for a pod on a node of the cluster", "root on the cluster",
			wish(map[string]any{"nodeName": g.Node}), wish(nil)),
		refusedBy(isolated("Pod Security level"), unasked, "ask for a pod with the root of its node", "root on a node",
			wish(map[string]any{"volumes": []any{map[string]any{"name": "host", "hostPath": map[string]any{"path": "/"}}}}), wish(nil)),
		refusedBy(isolated("Pod Security level"), unasked, "ask for a pod in its node's network", "ports of the node",
			wish(map[string]any{"hostNetwork": true}), wish(nil)),
		refusedBy(isolated("it has a priority"), unasked, "ask for a pod that is more important than all others", "the room of others",
			wish(map[string]any{"priorityClassName": "system-node-critical"}), wish(nil)),
		refusedBy(isolated("its affinity is about pods in other namespaces"), unasked, "ask for a pod with which no pod of others runs",
			"the room of others", wish(map[string]any{"affinity": apart(map[string]any{"namespaceSelector": map[string]any{}})}),
			wish(map[string]any{"affinity": apart(nil)})),
		refusedBy(rule{webhook: confines, message: readdressed, changes: true}, away(confines), "have a Service with a cluster IP of its choice",
			"what goes to a Service to come", g.slice.address(g.Twin, true), g.slice.address(g.Twin, false)),
		refusedBy(rule{policy: twins, message: mark}, rule{policy: twins, message: mark}, "have its text signed with the cluster's key",
			"the identity of the cluster at others", secret("Opaque", map[string]any{"liqo.io/signed-nonce": "true"}), opaque),
		refusedBy(rule{policy: twins, message: mark}, rule{policy: twins, message: mark}, "put its own kubeconfig in the place of Liqo's",
			"the token of Liqo's replicator", secret("Opaque", map[string]any{"liqo.io/identity-type": "ControlPlane"}), opaque),
		refusedBy(rule{policy: twins, message: token}, rule{policy: twins, message: token}, "have Kubernetes write a token into its Secret",
			"the rights of an account", g.slice.createWith("v1", "Secret", g.Twin, "", nil, map[string]any{
				"type": "kubernetes.io/service-account-token",
			}, "kubernetes.io/service-account.name", "default"), opaque),
	}
}

// apart is the affinity of a pod that runs beside no other one of some.
func apart(of map[string]any) map[string]any {
	term := with(map[string]any{"topologyKey": "kubernetes.io/hostname", "labelSelector": map[string]any{}}, of)
	return map[string]any{"podAntiAffinity": map[string]any{"requiredDuringSchedulingIgnoredDuringExecution": []any{term}}}
}

// Newcomer is who has the peering user with which a cluster begins to be a peer of one with Liqo 1.x. Nothing that it tries changes
// anything.
type Newcomer struct {
	ID cluster.ID
	// Tenant is its tenant namespace there, in which there is nothing yet.
	Tenant string

	caller
}

// Connect gives it its access to the API server of the cluster; config is anybody's, and user says who it is.
func (n *Newcomer) Connect(config, user *rest.Config) error {
	return connectAs(config, map[*caller]*rest.Config{&n.caller: user})
}

// Rows are what it tries before there is anything else of it.
func (n *Newcomer) Rows() []Row {
	own := map[string]any{"liqo.io/remote-cluster-id": string(n.ID)}
	make1 := func(apiVersion, kind string, spec map[string]any) func(context.Context) error {
		return n.createWith(apiVersion, kind, n.Tenant, string(n.ID), own, map[string]any{"spec": spec})
	}
	networks := func(pods ...any) map[string]any {
		return map[string]any{"cidr": map[string]any{"pod": pods, "external": []any{"10.221.0.0/16"}}}
	}
	var many []any
	for i := range 65 {
		many = append(many, fmt.Sprintf("10.220.%d.0/24", i))
	}
	configuration := make1(networking1, configurationKind, map[string]any{"remote": networks("10.220.0.0/16")})
	nonce := n.createWith("v1", "Secret", n.Tenant, "liqo-nonce", with(own, map[string]any{"liqo.io/nonce": "true"}), nil)
	const local, cidr = "spec.local is not the peer's to set", "spec.remote.cidr has too many networks"
	const policy = "spec.authzPolicy is not the peer's to change"
	const opens = "a peer opens no address of this cluster to others"
	comes := map[string]any{"clusterID": string(n.ID)}
	return []Row{
		refusedBy(byPeers(policy), byPeers(policy), "become a peer whose key nobody looks at", "a certificate for any key",
			make1(authentication1, tenantKind, with(comes, map[string]any{"authzPolicy": "TolerateNoHandshake"})),
			make1(authentication1, tenantKind, comes)),
		refusedBy(byPeers(local), byPeers(local), "say which networks the cluster has", "traffic in the name of anybody",
			make1(networking1, configurationKind, map[string]any{"remote": networks("10.220.0.0/16"), "local": networks("10.222.0.0/16")}),
			configuration),
		refusedBy(byPeers(cidr), byPeers(cidr), "have 65 networks", "routes and rules that belong to all",
			make1(networking1, configurationKind, map[string]any{"remote": networks(many...)}), configuration),
		refusedBy(byPeers(opens), byPeers(opens), "open an address of the cluster to all peers", "what is not for peers",
			n.createWith(ipam1, "IP", n.Tenant, "", own, map[string]any{"spec": map[string]any{"ip": "10.96.0.1"}}), nil),
		refusedBy(byPeers(onlyOne), byPeers(onlyOne), "have a text signed with the cluster's key before it is a peer",
			"the identity of the cluster at others",
			n.createWith("v1", "Secret", n.Tenant, "", with(own, map[string]any{"liqo.io/signed-nonce": "true"}), nil), nonce),
		refusedBy(byPeers(onlyOne), byPeers(onlyOne), "have Kubernetes write a token into a Secret of its tenant namespace",
			"the rights of a gateway or a virtual kubelet",
			n.createWith("v1", "Secret", n.Tenant, "", own, map[string]any{"type": "kubernetes.io/service-account-token"},
				"kubernetes.io/service-account.name", "default"), nonce),
	}
}

// Drained are what it tries when people have said by its Tenant that it is out.
func (n *Newcomer) Drained() []Row {
	const condition = "spec.tenantCondition is not the peer's to change"
	return []Row{
		refusedBy(byPeers(condition), byPeers(condition), "say that it is let in again", "what was taken from it",
			n.change(authentication1, tenantKind, n.Tenant, string(n.ID), "", "Active", "spec", "tenantCondition"), nil),
		refusedBy(byPeers(condition), byPeers(condition), "remove what says that it is out", "a new beginning",
			n.delete(authentication1, tenantKind, n.Tenant, string(n.ID)), nil),
	}
}

// Insider is the Liqo of a cluster, which does what peers have written in theirs, and the cluster's administrator, who does not know
// better. Nothing of it changes anything.
type Insider struct {
	// Consumer is a peer with its tenant namespace, and Slice its ResourceSlice there.
	Consumer      cluster.ID
	Tenant, Slice string
	// Provider is another peer, with its tenant namespace, and with the cluster's own ResourceSlice and NamespaceMap there.
	Provider                       cluster.ID
	ProviderTenant, Asks, Offloads string
	// Nodes is a network that has a node of the cluster.
	Nodes string

	manager, replicator, administrator caller
}

// Connect gives it the access to the API server of the cluster that its Liqo has; config is an administrator's.
func (i *Insider) Connect(config *rest.Config) error {
	i.administrator.DryRun = true
	if err := i.administrator.connect(config); err != nil {
		return fmt.Errorf("reach the API server as an administrator: %w", err)
	}
	return impersonate(config, map[string]*caller{"liqo-controller-manager": &i.manager, "liqo-crd-replicator": &i.replicator})
}

// Rows are what is tried by it.
func (i *Insider) Rows() []Row {
	guard := func(message string) rule { return rule{webhook: "guard-identities", message: message} }
	routes := func(message string) rule { return rule{webhook: "tunnels", message: message} }
	copied := func(message string) rule { return rule{policy: copied1, message: message} }
	const reserved = "status.nodeLabels has a reserved label"
	const unasked = "status.currentMapping has a namespace that spec.desiredMapping does not ask for"
	const keys = "the namespace has keys of this cluster"
	sealed := rule{policy: "system-namespaces", message: keys}
	label := func(key, value string) func(context.Context) error {
		return i.replicator.change(authentication1, sliceKind, i.ProviderTenant, i.Asks, "status", value, "status", "nodeLabels", key)
	}
	made := func(name string, phase string) func(context.Context) error {
		return i.replicator.change(offloading1, mapKind, i.ProviderTenant, i.Offloads, "status",
			map[string]any{"remoteNamespace": "loot", "phase": phase}, "status", "currentMapping", name)
	}
	offloads := func(namespace string) func(context.Context) error {
		return i.administrator.createWith(offloading1, offloadingKind, namespace, "offloading", nil, map[string]any{"spec": map[string]any{
			"namespaceMappingStrategy": "DefaultName", "podOffloadingStrategy": "Remote",
		}})
	}
	return []Row{
		refusedBy(guard("the subject must have a common name and one group"), away("guard-identities"), "be in one more group by a certificate",
			"the whole cluster", i.manager.certificate(pkix.Name{
				CommonName: string(i.Consumer), Organization: []string{"liqo.io", "kubeadm:cluster-admins"},
			}), i.again),
		refusedBy(guard("no Tenant in the tenant namespace of cluster "+string(i.Provider)), away("guard-identities"), "be another cluster",
			"its place", i.manager.certificate(anotherCluster(string(i.Provider))), i.again),
		refusedBy(copied(reserved), copied(reserved), "grant with another cluster's ID as a label", "the pods of that cluster",
			label("liqo.io/remote-cluster-id", string(i.Consumer)), label("example.com/tier", "gold")),
		refusedBy(copied(reserved), copied(reserved), "grant with a label that says what a node is", "pods that wait for such a node",
			label("node-role.kubernetes.io/control-plane", "true"), label("topology.kubernetes.io/zone", "here")),
		refusedBy(copied(unasked), copied(unasked), "say that it has made a namespace which nobody offloads to it",
			"what is in that namespace, with its Secrets", made("kube-system", "Accepted"), made("kube-system", "Terminating")),
		refusedBy(routes("the peer would receive the traffic to"), rule{}, "have the network of the cluster's nodes", "their traffic",
			i.route(func(context.Context) (string, error) { return i.Nodes, nil }),
			i.route(func(context.Context) (string, error) { return "10.223.0.0/16", nil })),
		refusedBy(routes("status.remote.cidr: prefix"), rule{}, "have the network of another peer", "the traffic to that peer",
			i.route(i.seen), i.route(func(context.Context) (string, error) { return "10.223.0.0/16", nil })),
		refusedBy(sealed, sealed, "offload the namespace of Liqo", "the identities of all peers", offloads("liqo"), offloads("default")),
		refusedBy(sealed, sealed, "offload a tenant namespace", "the keys of a gateway", offloads(i.Tenant), offloads("default")),
		refusedBy(sealed, sealed, "offload a namespace of Kubernetes", "its Secrets", offloads("kube-system"), offloads("default")),
	}
}

// again asks for the certificate that Liqo has asked for already.
func (i *Insider) again(ctx context.Context) error {
	slice := named(authentication1, sliceKind, i.Tenant, i.Slice)
	if err := i.manager.api.Get(ctx, client.ObjectKeyFromObject(slice), slice); err != nil {
		return fmt.Errorf("read what was asked for: %w", err)
	}
	text, _, err := unstructured.NestedString(slice.Object, "spec", "csr")
	if err != nil {
		return fmt.Errorf("read what was asked for: %w", err)
	}
	request, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		return fmt.Errorf("read what was asked for: %w", err)
	}
	return i.manager.api.Create(ctx, signing(request), client.DryRunAll)
}

// route tries to have Liqo lead one network more to the consumer.
func (i *Insider) route(network func(context.Context) (string, error)) func(context.Context) error {
	return func(ctx context.Context) error {
		prefix, err := network(ctx)
		if err != nil {
			return err
		}
		configuration := named(networking1, configurationKind, i.Tenant, string(i.Consumer))
		if err := i.manager.api.Get(ctx, client.ObjectKeyFromObject(configuration), configuration); err != nil {
			return fmt.Errorf("read where Liqo leads: %w", err)
		}
		pods, _, err := unstructured.NestedSlice(configuration.Object, "status", "remote", "cidr", "pod")
		if err != nil {
			return fmt.Errorf("read where Liqo leads: %w", err)
		}
		if err := unstructured.SetNestedSlice(configuration.Object, append(pods, prefix), "status", "remote", "cidr", "pod"); err != nil {
			return fmt.Errorf("write where Liqo leads: %w", err)
		}
		return i.manager.api.Status().Update(ctx, configuration, client.DryRunAll)
	}
}

// seen is the network under which the provider's pods are seen.
func (i *Insider) seen(ctx context.Context) (string, error) {
	configuration := named(networking1, configurationKind, i.ProviderTenant, string(i.Provider))
	if err := i.manager.api.Get(ctx, client.ObjectKeyFromObject(configuration), configuration); err != nil {
		return "", fmt.Errorf("read where Liqo leads: %w", err)
	}
	pods, _, err := unstructured.NestedStringSlice(configuration.Object, "status", "remote", "cidr", "pod")
	if err == nil && len(pods) == 0 {
		err = errors.New("the provider has no network")
	}
	if err != nil {
		return "", err
	}
	return pods[0], nil
}
