// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package v1

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"strings"
	"testing"

	"github.com/capacitorset/liqo-broker/pkg/liqo/peerwrite"
)

// object is a Kubernetes object as it is in JSON.
type object = map[string]any

// peeringUser is as whom the peer c begins.
const peeringUser = "liqo-peer-user-c-0123456789abcdef0123456789abcdef"

// written returns the object of a kind that the honest peer c writes at the cluster own.
func written(kind string) object {
	labels := object{"liqo.io/remote-cluster-id": "c"}
	o := object{"metadata": object{"name": "big", "namespace": "tenant-c", "labels": labels}}
	template := func(kind, name string) object {
		return object{"apiVersion": "networking.liqo.io/v1beta1", "kind": kind, "name": name, "namespace": "liqo"}
	}
	switch kind {
	case tenants, configurations, gatewayServers, gatewayClients, publicKeys:
		o["metadata"].(object)["name"] = "c"
	case namespaceMaps:
		o["metadata"].(object)["name"] = "own"
	case secrets:
		o["metadata"].(object)["name"], labels["liqo.io/nonce"] = "liqo-nonce", "true"
	}
	switch kind {
	case resourceSlices, renews, namespaceMaps:
		// What its CRD replicator sets.
		labels["liqo.io/replicated"], labels["liqo.io/replication"] = "true", "false"
		labels["liqo.io/originID"], labels["liqo.io/remoteID"] = "c", "own"
	}
	switch kind {
	case resourceSlices:
		o["metadata"].(object)["annotations"] = object{"liqo.io/create-virtual-node": "true"}
		o["spec"] = object{"consumerClusterID": "c", "providerClusterID": "own", "class": "liqo-broker", "resources": object{"cpu": "4"}}
	case renews:
		o["spec"] = object{"consumerClusterID": "c", "identityType": "ControlPlane"}
	case namespaceMaps:
		o["spec"] = object{"desiredMapping": object{"shop": "shop-c", "liqo-demo": "liqo-demo", "kubernetes": "default-c"}}
	case tenants:
		o["spec"] = object{"clusterID": "c", "authzPolicy": "KeysExchange", "tenantCondition": "Active"}
	case configurations:
		o["spec"] = object{"remote": object{"cidr": object{"pod": []any{"10.55.0.0/16"}, "external": []any{"10.56.0.0/16", ""}}}}
	case gatewayServers:
		o["spec"] = object{
			"mtu": 1340, "secretRef": object{}, "endpoint": object{"port": 51840, "serviceType": "LoadBalancer"},
			"serverTemplateRef": template("WgGatewayServerTemplate", "wireguard-server"),
		}
	case gatewayClients:
		o["spec"] = object{
			"mtu": 1340, "secretRef": object{}, "clientTemplateRef": template("WgGatewayClientTemplate", "wireguard-client"),
			"endpoint": object{"addresses": []any{"203.0.113.7", "gw.example.com"}, "port": 51840, "protocol": "UDP"},
		}
	case publicKeys:
		o["metadata"].(object)["ownerReferences"] = []any{owner("GatewayServer")}
		o["spec"] = object{"publicKey": "Y2NjY2NjY2NjY2NjY2NjY2NjY2NjY2NjY2NjY2NjY2M="}
	case secrets:
		o["type"] = "Opaque"
	case ips:
		o["spec"] = object{}
	}
	return o
}

// owner returns with what something goes, as liqoctl says of a key, and with more fields in pairs.
func owner(kind string, more ...any) object {
	o := object{"apiVersion": "networking.liqo.io/v1beta1", "kind": kind, "name": "c", "uid": "1"}
	for i := 0; i+1 < len(more); i += 2 {
		o[more[i].(string)] = more[i+1]
	}
	return o
}

// change is what a peer does with an object.
type change struct {
	user, subresource string
	groups            []string
	kind              string
	old, new          object
}

// creates, updates and deletes return what the honest peer does.
func creates(kind string) change { return change{user: "c", kind: kind, new: written(kind)} }

func updates(kind string) change {
	return change{user: "c", kind: kind, old: written(kind), new: written(kind)}
}

func deletes(kind string) change { return change{user: "c", kind: kind, old: written(kind)} }

// with returns the change with another value at a path of the new object; nil removes it.
func (c change) with(value any, path ...string) change { return c.set(c.new, value, path) }

// of returns the change of an object that is another one already.
func (c change) of(value any, path ...string) change { return c.set(c.old, value, path) }

func (c change) set(in object, value any, path []string) change {
	for ; len(path) > 1; path = path[1:] {
		if in[path[0]] == nil {
			in[path[0]] = object{}
		}
		in = in[path[0]].(object)
	}
	if value == nil {
		delete(in, path[0])
	} else {
		in[path[0]] = value
	}
	return c
}

// by returns the change by somebody else.
func (c change) by(user string, groups ...string) change {
	c.user, c.groups = user, groups
	return c
}

// sub returns the change of a subresource.
func (c change) sub(resource string) change {
	c.subresource = resource
	return c
}

// write returns the change as the API server asks about it.
func (c change) write(t *testing.T) *peerwrite.Write {
	t.Helper()
	resource, group, _ := strings.Cut(c.kind, ".")
	w := &peerwrite.Write{User: c.user, Groups: c.groups, Group: group, Resource: resource, Subresource: c.subresource}
	for _, of := range []struct {
		object object
		into   *[]byte
	}{{c.old, &w.Old}, {c.new, &w.New}} {
		if of.object == nil {
			continue
		}
		var err error
		if *of.into, err = json.Marshal(of.object); err != nil {
			t.Fatal(err)
		}
	}
	return w
}

// list returns texts with their numbers.
func list(n int, of string) []any {
	all := make([]any, n)
	for i := range all {
		all[i] = fmt.Sprintf(of, i)
	}
	return all
}

// asked is what somebody writes, and a part of how it is refused; empty if it is not.
type asked struct {
	reason string
	change change
	want   string
}

// peersWrites are what peers may write in the tenant namespace of c, and what they may not. The admission policies are asked the same.
func peersWrites() map[string]asked {
	const condition, policy, notNonce = "tenantCondition", "authzPolicy", "Secret liqo-nonce, empty"
	const owners = "metadata.ownerReferences is not the peer's to change"
	csr := func(size int) string { return base64.StdEncoding.EncodeToString(make([]byte, size)) }
	mappings := object{}
	for i := range 1001 {
		mappings[fmt.Sprintf("n%d", i)] = fmt.Sprintf("n%d-c", i)
	}
	cases := map[string]asked{
		"PeeringUser": {"It is the peer that begins.", creates(tenants).by(peeringUser, "liqo.io"), ""},
		"AnothersUser": {
			"It is that of c-0, and not of c.",
			creates(tenants).by(strings.Replace(peeringUser, "-c-", "-c-0-", 1), "liqo.io"), "writes in the tenant",
		},
		"ShortUser": {"Liqo makes no such user.", creates(tenants).by("liqo-peer-user-c-0123", "liqo.io"), "writes in the tenant namespace"},
		"NoUser": {
			"Nor this one.", creates(tenants).by(strings.Replace(peeringUser, "0", "g", 1), "liqo.io"), "writes in the tenant namespace",
		},
		"AnotherPeer":    {"It is not its namespace.", creates(resourceSlices).by("v", "liqo.io"), `"v" writes in the tenant namespace of "c"`},
		"SliceIdentity":  {"It runs pods, and asks for nothing.", creates(resourceSlices).by("big-5e6f", "c"), "writes in the tenant namespace"},
		"Unknown":        {"Other kinds are of no concern.", creates("configmaps.").with(nil, "metadata", "labels"), ""},
		"UnknownByOther": {"Unless somebody has no business there.", creates("configmaps.").by("v", "liqo.io"), "writes in the tenant"},

		"SliceStatus":  {"It would grant itself what it likes.", updates(resourceSlices).sub("status"), "status of resourceslices"},
		"MapStatus":    {"Nor does it say what was made.", updates(namespaceMaps).sub("status"), "status of namespacemaps"},
		"RenewStatus":  {"Nor who it is.", updates(renews).sub("status"), "status of renews"},
		"TenantStatus": {"Nor that it is one.", updates(tenants).sub("status"), "status of tenants"},

		"NoCopy": {
			"It is not one of ours.", creates(resourceSlices).with(nil, "metadata", "labels", "liqo.io/replicated"), "liqo.io/replicated",
		},
		"Ours": {
			"Nor one that goes elsewhere.", creates(namespaceMaps).with("true", "metadata", "labels", "liqo.io/replication"), "liqo.io/replication",
		},
		"Origin":      {"It is the peer's.", creates(namespaceMaps).with("v", "metadata", "labels", "liqo.io/originID"), "liqo.io/originID"},
		"Destination": {"It is for this cluster.", creates(renews).with("v", "metadata", "labels", "liqo.io/remoteID"), "liqo.io/remoteID"},
		"Remote": {
			"Liqo finds it by this label.", creates(namespaceMaps).with("v", "metadata", "labels", "liqo.io/remote-cluster-id"),
			`metadata.labels[liqo.io/remote-cluster-id] is "v", want "c"`,
		},
		"RemoteOfNetwork": {
			"Also networks.", creates(configurations).with("v", "metadata", "labels", "liqo.io/remote-cluster-id"), "liqo.io/remote-cluster-id",
		},
		"RemoteOfKey": {
			"And keys.", creates(publicKeys).with(nil, "metadata", "labels", "liqo.io/remote-cluster-id"), "liqo.io/remote-cluster-id",
		},
		"Taken": {"It is this cluster's.", deletes(resourceSlices).of(nil, "metadata", "labels", "liqo.io/replicated"), "liqo.io/replicated"},

		"Skip": {
			"Liqo would not look at it.", creates(resourceSlices).with("true", "metadata", "labels", "liqo.io/webhook-skip"), "liqo.io/webhook-skip",
		},
		"SkipEmpty": {
			"Whatever it says.", updates(tenants).with("", "metadata", "labels", "liqo.io/webhook-skip"), "liqo.io/webhook-skip",
		},
		"SkipKept": {
			"People here may set it.",
			updates(resourceSlices).of("true", "metadata", "labels", "liqo.io/webhook-skip").with("true", "metadata", "labels",
				"liqo.io/webhook-skip"), "",
		},
		"Uncordon": {
			"It is cordoned.", updates(resourceSlices).of("true", "metadata", "annotations", "liqo.io/cordon"), "annotations[liqo.io/cordon]",
		},
		"UncordonTenant": {
			"Its Tenant is.", updates(resourceSlices).of("true", "metadata", "annotations", "liqo.io/cordon-tenant"), "[liqo.io/cordon-tenant]",
		},
		"Cordon": {
			"It is not.", creates(resourceSlices).with("false", "metadata", "annotations", "liqo.io/cordon"), "metadata.annotations[liqo.io/cordon]",
		},
		"CordonKept": {
			"The replicator writes what it finds.",
			updates(resourceSlices).of("true", "metadata", "annotations", "liqo.io/cordon").with("true", "metadata", "annotations",
				"liqo.io/cordon"), "",
		},

		"Consumer": {"It asks for itself.", creates(resourceSlices).with("v", "spec", "consumerClusterID"), "spec.consumerClusterID"},
		"Provider": {"It asks here.", updates(resourceSlices).with("v", "spec", "providerClusterID"), "spec.providerClusterID"},
		"Default": {
			"Liqo would grant it.", creates(resourceSlices).with("default", "spec", "class"), `spec.class is "default", want "liqo-broker"`,
		},
		"NoClass": {"That as well.", creates(resourceSlices).with(nil, "spec", "class"), `spec.class is ""`},
		"LongName": {
			"The certificate has no room for it.", creates(resourceSlices).with(strings.Repeat("x", 51), "metadata", "name"), "51 characters",
		},
		"Name50":     {"There is room for this one.", creates(resourceSlices).with(strings.Repeat("x", 50), "metadata", "name"), ""},
		"Large":      {"It is kept in memory.", creates(resourceSlices).with(strings.Repeat("x", 300<<10), "spec", "x"), "bytes"},
		"Unreadable": {"Nobody reads that.", creates(resourceSlices).with("1e-2147483647", "spec", "resources", "cpu"), "spec.resources[cpu]"},
		"RenewOther": {"It renews its own.", creates(renews).with("v", "spec", "consumerClusterID"), "spec.consumerClusterID"},

		"MapTenant": {
			"It is a cluster's.", updates(namespaceMaps).with("liqo-tenant-new", "spec", "desiredMapping", "x"), "spec.desiredMapping[x]",
		},
		"MapKube": {
			"It is Kubernetes'.", updates(namespaceMaps).with("kube-flannel", "spec", "desiredMapping", "x"), "spec.desiredMapping[x]",
		},
		"MapLiqo": {"It is Liqo's.", creates(namespaceMaps).with("liqo", "spec", "desiredMapping", "x"), "spec.desiredMapping[x]"},
		"MapBroker": {
			"It is the broker's.", creates(namespaceMaps).with("liqo-broker-guard", "spec", "desiredMapping", "x"), "desiredMapping[x]",
		},
		"MapDefault":  {"It is people's.", creates(namespaceMaps).with("default", "spec", "desiredMapping", "x"), "spec.desiredMapping[x]"},
		"MapMany":     {"Each becomes several objects.", creates(namespaceMaps).with(mappings, "spec", "desiredMapping"), "has 1001 namespaces"},
		"MapEmpty":    {"There may be none.", creates(namespaceMaps).with(nil, "spec"), ""},
		"TenantOther": {"It comes itself.", creates(tenants).with("v", "spec", "clusterID"), "spec.clusterID"},

		"NoHandshake": {"People here say so.", creates(tenants).with("TolerateNoHandshake", "spec", policy), "spec.authzPolicy"},
		"KeptPolicy": {
			"They have.", updates(tenants).of("TolerateNoHandshake", "spec", policy).with("TolerateNoHandshake", "spec", policy), "",
		},
		"NoPolicy": {"liqoctl writes none.", updates(tenants).with(nil, "spec", policy).with(nil, "spec", condition), ""},
		"Reactivate": {
			"It may go no further.", updates(tenants).of("Cordoned", "spec", condition), `spec.tenantCondition is "Active", want "Cordoned"`,
		},
		"Again": {
			"Nor when it peers again.", updates(tenants).of("Drained", "spec", condition).with(nil, "spec", condition), "spec.tenantCondition",
		},
		"Drain": {"It ends by going.", updates(tenants).with("Drained", "spec", condition), "spec.tenantCondition"},
		"Anew": {
			"It would come back as if nothing were.", deletes(tenants).of("Cordoned", "spec", condition), "only this cluster deletes",
		},
		"Gone":   {"It may go.", deletes(tenants).of(nil, "spec", condition), ""},
		"Public": {"It is somebody else's.", creates(configurations).with([]any{"8.8.0.0/16"}, "spec", "remote", "cidr", "pod"), "pod[0]"},
		"PublicNext": {
			"Any of them.", creates(configurations).with([]any{"10.1.0.0/16", "::/0"}, "spec", "remote", "cidr", "external"), "external[1]",
		},
		"Junk": {
			"It is no network.", creates(configurations).with([]any{"all"}, "spec", "remote", "cidr", "pod"), "spec.remote.cidr.pod[0]",
		},
		"Networks": {
			"Each becomes routes.", creates(configurations).with(list(65, "10.%d.0.0/16"), "spec", "remote", "cidr", "pod"), "65 networks",
		},
		"Networks64":  {"So many are bearable.", creates(configurations).with(list(64, "10.%d.0.0/16"), "spec", "remote", "cidr", "pod"), ""},
		"CSR":         {"It is one of a long key.", creates(resourceSlices).with(csr(16<<10), "spec", "csr"), ""},
		"CSRLong":     {"It is parsed.", creates(resourceSlices).with(csr(16<<10+3), "spec", "csr"), "spec.csr has 16387 bytes"},
		"CSROfTenant": {"Here too.", updates(tenants).with(csr(16<<10+3), "spec", "csr"), "spec.csr has 16387 bytes"},
		"CSROfRenew":  {"And here.", creates(renews).with(csr(16<<10+3), "spec", "csr"), "spec.csr has 16387 bytes"},

		"Address":     {"All peers would reach it.", creates(ips), "opens no address"},
		"AddressNext": {"Also later.", updates(ips), "opens no address"},

		"SecondMap": {
			"The bound on namespaces is for each.", creates(namespaceMaps).with("own-2", "metadata", "name"), "metadata.name is",
		},
		"SecondMapThere": {
			"People here have let it be.",
			updates(namespaceMaps).of("own-2", "metadata", "name").with("own-2", "metadata", "name"), "",
		},

		"Finalizer": {
			"It would stay for as long as the peer likes.", creates(resourceSlices).with([]any{"example.com/mine"}, "metadata", "finalizers"),
			`metadata.finalizers is ["example.com/mine"], want []`,
		},
		"FinalizerLater": {
			"Also later.", updates(tenants).with([]any{"example.com/mine"}, "metadata", "finalizers"), "metadata.finalizers",
		},
		"FinalizerGone": {
			"Liqo here has something to tidy first.", updates(namespaceMaps).of([]any{"liqo"}, "metadata", "finalizers"), "metadata.finalizers",
		},
		"FinalizerKept": {
			"The replicator writes what it finds.",
			updates(namespaceMaps).of([]any{"liqo", "x"}, "metadata", "finalizers").with([]any{"liqo", "x"}, "metadata", "finalizers"), "",
		},
		"FinalizerEnds": {
			"It may go.", deletes(namespaceMaps).of([]any{"liqo"}, "metadata", "finalizers"), "",
		},
		"Owner": {
			"It would go with that, or that would wait for it.", creates(renews).with([]any{owner("GatewayServer")}, "metadata", "ownerReferences"),
			owners,
		},
		"OwnerGone": {
			"It is to go with that.", updates(tenants).of([]any{owner("Namespace")}, "metadata", "ownerReferences"),
			owners,
		},
		"OwnerKept": {
			"The replicator writes what it finds.",
			updates(renews).of([]any{owner("X", "controller", true)}, "metadata", "ownerReferences").with(
				[]any{owner("X", "controller", true)}, "metadata", "ownerReferences"), "",
		},
		"OwnerOther": {
			"That is another one.",
			updates(renews).of([]any{owner("X")}, "metadata", "ownerReferences").with([]any{owner("X", "uid", "2")}, "metadata", "ownerReferences"),
			owners,
		},
		"KeyOfClient": {
			"liqoctl says so.", creates(publicKeys).with([]any{owner("GatewayClient")}, "metadata", "ownerReferences"), "",
		},
		"KeyOfNewGateway": {
			"The gateway was made again.", updates(publicKeys).with([]any{owner("GatewayServer", "uid", "2")}, "metadata", "ownerReferences"), "",
		},
		"KeyOfMore": {
			"Somebody here has said with what else.",
			updates(publicKeys).of([]any{owner("X")}, "metadata", "ownerReferences").with([]any{owner("X"), owner("GatewayServer")}, "metadata",
				"ownerReferences"), "",
		},
		"KeyOfNobody": {
			"It goes with the gateway.", updates(publicKeys).with(nil, "metadata", "ownerReferences"), owners,
		},
		"KeyOfController": {
			"It is no part of it.", creates(publicKeys).with([]any{owner("GatewayServer", "controller", true)}, "metadata", "ownerReferences"),
			owners,
		},
		"KeyBlocks": {
			"The gateway would not go.",
			creates(publicKeys).with([]any{owner("GatewayServer", "blockOwnerDeletion", true)}, "metadata", "ownerReferences"),
			owners,
		},
		"KeyOfTenant": {"That has no keys.", creates(publicKeys).with([]any{owner("Tenant")}, "metadata", "ownerReferences"), owners},
		"KeyOfOtherKind": {
			"It is called like a gateway.",
			creates(publicKeys).with([]any{owner("GatewayServer", "apiVersion", "example.com/v1")}, "metadata", "ownerReferences"), owners,
		},

		"Nonce":        {"liqoctl asks for one.", creates(secrets).by(peeringUser, "liqo.io"), ""},
		"NonceUntyped": {"The API server names the type.", creates(secrets).with(nil, "type"), ""},
		"NonceGlobal": {
			"People may have liqoctl put labels and annotations on all that it makes.",
			creates(secrets).with("x", "metadata", "labels", "team").with("y", "metadata", "annotations", "example.com/y"), "",
		},
		"NonceChosen": {
			"It is not the peer that chooses it.", creates(secrets).with(object{"nonce": "eA=="}, "data"), notNonce,
		},
		"NonceNext":  {"Liqo has written it.", updates(secrets), notNonce},
		"NonceGone":  {"Nor is it taken back.", deletes(secrets), notNonce},
		"NonceOther": {"It is no nonce.", creates(secrets).with(nil, "metadata", "labels", "liqo.io/nonce"), notNonce},
		"NonceNamed": {"Liqo has one.", creates(secrets).with("liqo-nonce-2", "metadata", "name"), notNonce},
		"Issued": {
			"The peer would choose which key is its own.", creates(secrets).with("liqo-remote-certificate", "metadata", "name"), notNonce,
		},
		"IssuedGone": {
			"Another key could be the peer's then.", deletes(secrets).of("liqo-remote-certificate", "metadata", "name"), notNonce,
		},
		"Kubeconfig": {
			"It says where the virtual kubelet goes, and what it runs before.", creates(secrets).with("kubeconfig-c", "metadata", "name"),
			notNonce,
		},
		"Account": {
			"Kubernetes would write a token of the gateway into it.", creates(secrets).with("kubernetes.io/service-account-token", "type"),
			notNonce,
		},
	}
	for _, mark := range secretMarks() {
		if mark == "liqo.io/nonce" {
			continue
		}
		cases["Label"+mark] = asked{"It is no nonce alone.", creates(secrets).with("true", "metadata", "labels", mark), "the mark " + mark}
		cases["Annotation"+mark] = asked{
			"Nor so.", creates(secrets).with("true", "metadata", "annotations", mark), "the mark " + mark,
		}
	}
	maps.Copy(cases, networkWrites())
	for _, kind := range []string{
		resourceSlices, renews, namespaceMaps, tenants, configurations, gatewayServers, gatewayClients, publicKeys,
	} {
		for name, does := range map[string]func(string) change{"Create": creates, "Update": updates, "Delete": deletes} {
			cases[name+kind] = asked{"An honest peer is never refused.", does(kind), ""}
		}
	}
	return cases
}

func TestPeersWrite(t *testing.T) {
	for name, tc := range peersWrites() {
		t.Run(name, func(t *testing.T) {
			err := Line{}.PeerRules().Check(tc.change.write(t), "c", "own")
			if (err == nil) != (tc.want == "") || err != nil && !strings.Contains(err.Error(), tc.want) {
				t.Errorf("%s\nCheck() = %v, want %q", tc.reason, err, tc.want)
			}
		})
	}
}

func TestIsPeer(t *testing.T) {
	cases := map[string]struct {
		reason, user string
		groups       []string
		want         bool
	}{
		"ControlPlane": {"It is called as the peer.", "c", []string{"liqo.io"}, true},
		"Nameless":     {"It is not in Liqo's group.", "c", nil, true},
		"AnotherPeer":  {"It is in Liqo's group.", "v", []string{"liqo.io"}, true},
		"PeeringUser":  {"So is this one.", peeringUser, []string{"liqo.io", "system:authenticated"}, true},
		"Slice":        {"It is in the peer's group.", "big-5e6f", []string{"c"}, true},
		"People":       {"They have their rights from people.", "alice", []string{"staff"}, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := (Line{}).PeerRules().IsPeer(&peerwrite.Write{User: tc.user, Groups: tc.groups}, "c"); got != tc.want {
				t.Errorf("%s\nIsPeer() = %t", tc.reason, got)
			}
		})
	}
}

// TestNothingAsksForNodes holds that no write of a peer takes the name of a node here.
func TestNothingAsksForNodes(t *testing.T) {
	if name, err := (Line{}).PeerRules().NodeName(creates(resourceSlices).write(t), Identity("c")); name != "" || err != nil {
		t.Errorf("NodeName() = %q, %v", name, err)
	}
}

// copies are what Liqo copies into the status of a ResourceSlice or a NamespaceMap of this cluster, and what it must not.
func copies() map[string]asked {
	copied := func(labels object) change {
		c := updates(resourceSlices).by("system:serviceaccount:liqo:liqo-crd-replicator").sub("status")
		return c.with("true", "metadata", "labels", "liqo.io/replication").with(labels, "status", "nodeLabels")
	}
	mapped := updates(namespaceMaps).sub("status").with("true", "metadata", "labels", "liqo.io/replication").with(
		object{"shop": object{"phase": "Accepted", "remoteNamespace": "shop-c"}, "x": object{"phase": "Accepted", "remoteNamespace": "loot"}},
		"status", "currentMapping")
	return map[string]asked{
		"Cluster": {
			"They say what the cluster is.", copied(object{
				"liqo.io/provider": "kubeadm", "topology.kubernetes.io/region": "eu", "kubernetes.io/arch": "arm64", "gpu": "a100",
				"brokering.liqo.io/carbon-gco2e-per-kwh": "312", "brokering.liqo.io/provider": "x", "view.brokering.liqo.io/x": "10.69.0.0_16",
				"liqo.io/type": "virtual-node", "node.brokering.liqo.io/liqo-x": "x",
			}), "",
		},
		"None": {"There may be none.", copied(nil), ""},
		"Another": {
			"The scheduler would take it for another's node.", copied(object{"liqo.io/remote-cluster-id": "v"}), "[liqo.io/remote-cluster-id]",
		},
		"Hostname": {"It is not that node.", copied(object{"kubernetes.io/hostname": "worker"}), "[kubernetes.io/hostname] is reserved"},
		"Real":     {"It is a virtual one.", copied(object{"liqo.io/type": "worker"}), "[liqo.io/type]"},
		"Kubelet":  {"It is not ours.", copied(object{"brokering.liqo.io/virtual-kubelet": "v1"}), "virtual-kubelet] is reserved"},
		"Granted": {
			"This cluster says it to a consumer.", copied(object{"liqo.io/remote-cluster-id": "v"}).with("false", "metadata", "labels",
				"liqo.io/replication"), "",
		},
		"Spec": {"It is what this cluster asks for.", copied(object{"liqo.io/remote-cluster-id": "v"}).sub(""), ""},
		"OtherKind": {
			"It has no such status.", change{kind: tenants, subresource: "status", new: object{"status": object{"nodeLabels": 1}}}, "",
		},
		"Gone":        {"There is nothing any more.", change{kind: resourceSlices, subresource: "status", old: written(resourceSlices)}, ""},
		"Unreadable":  {"Nobody knows what it says.", copied(nil).with(1, "status", "nodeLabels"), "status.nodeLabels has the wrong type"},
		"Unwanted":    {"Nobody asked for it.", mapped, "status.currentMapping[x]"},
		"UnwantedOut": {"It is what a consumer asked for.", updates(namespaceMaps).sub("status"), ""},
	}
}

func TestCheckCopied(t *testing.T) {
	for name, tc := range copies() {
		t.Run(name, func(t *testing.T) {
			err := Line{}.PeerRules().CheckCopied(tc.change.write(t))
			if (err == nil) != (tc.want == "") || err != nil && !strings.Contains(err.Error(), tc.want) {
				t.Errorf("%s\nCheckCopied() = %v, want %q", tc.reason, err, tc.want)
			}
		})
	}
}
