// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package peers_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
	"github.com/capacitorset/liqo-broker/pkg/liqo/peerwrite"
	v09 "github.com/capacitorset/liqo-broker/pkg/liqo/v09"
	"github.com/capacitorset/liqo-broker/pkg/liqo/v09/liqotest"
	"github.com/capacitorset/liqo-broker/pkg/snapshot/snapshottest"
	"github.com/capacitorset/liqo-broker/pkg/webhook/peers"
)

const own = cluster.ID("id-own")

var (
	peer   = cluster.Identity{ID: "id-p", Name: "peer"}
	victim = cluster.Identity{ID: "id-v", Name: "victim"}
)

// object is a Kubernetes object as it is in JSON.
type object = map[string]any

// written returns the object of a kind that an honest peer writes here.
func written(resource string) object {
	labels := object{
		// What its CRD replicator sets.
		"liqo.io/replicated": "true", "liqo.io/replication": "false", "liqo.io/originID": string(peer.ID), "liqo.io/remoteID": string(own),
	}
	o := object{"metadata": object{"name": "peer", "namespace": liqotest.Tenant(peer), "labels": labels}}
	switch resource {
	case "resourcerequests":
		o["spec"] = object{"clusterIdentity": object{"clusterID": string(peer.ID), "clusterName": "peer"}, "authUrl": "https://peer"}
	case "resourceoffers":
		labels["discovery.liqo.io/cluster-id"] = string(own)
		o["spec"] = object{
			"clusterId": string(peer.ID), "resourceQuota": object{"hard": object{"cpu": "1"}},
			// What liqoctl sets, people may set, and a broker's own webhook sets.
			"labels": object{
				"liqo.io/provider": "kubeadm", "topology.kubernetes.io/region": "eu", "kubernetes.io/arch": "arm64", "certified": "yes",
				"example.org/gpu": "a100", "brokering.liqo.io/carbon-gco2e-per-kwh": "312", "brokering.liqo.io/provider": "id-x",
				"liqo.io/type": "virtual-node",
			},
		}
	case "networkconfigs":
		o["spec"] = object{"cluster": object{"clusterID": string(own), "clusterName": "own"}, "podCIDR": "10.0.0.0/16"}
	case "namespacemaps":
		labels["liqo.io/remote-cluster-id"] = string(own)
		o["spec"] = object{"desiredMapping": object{"shop": "shop-peer-abc123"}}
	}
	return o
}

// groups are the groups of the resources.
var groups = map[string]string{
	"resourcerequests": "discovery.liqo.io", "resourceoffers": "sharing.liqo.io",
	"networkconfigs": "net.liqo.io", "namespacemaps": "virtualkubelet.liqo.io",
}

// write is a request of somebody.
type write struct {
	user        string
	groups      []string
	operation   admissionv1.Operation
	resource    string
	subresource string
	namespace   string
	old, new    object
}

// of returns what an honest peer does with an object of a kind.
func of(operation admissionv1.Operation, resource string) write {
	w := write{
		user: string(peer.ID), groups: []string{"liqo.io", "system:authenticated"}, operation: operation, resource: resource,
		namespace: liqotest.Tenant(peer),
	}
	if operation != admissionv1.Create {
		w.old = written(resource)
	}
	if operation != admissionv1.Delete {
		w.new = written(resource)
	}
	return w
}

// with returns the write with another value at a path of the new object; nil removes it.
func (w write) with(value any, path ...string) write {
	set(w.new, value, path...)
	return w
}

func set(in object, value any, path ...string) {
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
}

func (w write) label(key string, value any) write {
	return w.with(value, "metadata", "labels", key)
}

func (w write) request(t *testing.T) admission.Request {
	t.Helper()
	raw := func(o object) runtime.RawExtension {
		if o == nil {
			return runtime.RawExtension{}
		}
		text, err := json.Marshal(o)
		if err != nil {
			t.Fatal(err)
		}
		return runtime.RawExtension{Raw: text}
	}
	return admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{
		UserInfo: authenticationv1.UserInfo{Username: w.user, Groups: w.groups}, Operation: w.operation, Namespace: w.namespace,
		Resource:    metav1.GroupVersionResource{Group: groups[w.resource], Version: "v1alpha1", Resource: w.resource},
		SubResource: w.subresource, OldObject: raw(w.old), Object: raw(w.new),
	}}
}

// asked are the writes of which the webhook and the admission policy say the same. An
// empty refusal is none; the policy has another text.
func asked() map[string]struct {
	reason  string
	write   write
	refusal string
} {
	const create, update, remove = admissionv1.Create, admissionv1.Update, admissionv1.Delete
	status := of(update, "networkconfigs")
	status.subresource = "status"
	own := func(operation admissionv1.Operation) write { // An object of this cluster in the peer's namespace.
		w := of(operation, "namespacemaps")
		w.old = written("namespacemaps")
		set(w.old, "true", "metadata", "labels", "liqo.io/replication")
		set(w.old, nil, "metadata", "labels", "liqo.io/replicated")
		return w
	}
	as := func(user string, groups ...string) write {
		w := of(create, "resourceoffers").with(string(victim.ID), "spec", "clusterId")
		w.user, w.groups = user, groups
		return w
	}
	renamed := of(update, "resourceoffers").with("other", "spec", "nodeName")
	mapping := func(phase, to string) write {
		w := of(update, "namespacemaps").label("liqo.io/replication", "true").label("liqo.io/replicated", nil)
		w.user, w.groups, w.subresource = "system:serviceaccount:liqo:liqo-crd-replicator", []string{"system:serviceaccounts"}, "status"
		return w.with(object{
			"shop": object{"phase": "Accepted", "remoteNamespace": "shop-peer-abc123"}, "kube-system": object{"phase": phase, "remoteNamespace": to},
		},
			"status", "currentMapping")
	}
	cases := map[string]struct {
		reason  string
		write   write
		refusal string
	}{
		"Status": {"A peer writes no status: it is copied the other way.", status, "status of networkconfigs"},
		"NotReplicated": {
			"An object of a peer says that it is one.", of(create, "resourceoffers").label("liqo.io/replicated", nil), "liqo.io/replicated",
		},
		"Ours": {
			"It does not pass for one of ours.", of(create, "namespacemaps").label("liqo.io/replication", "true"), "liqo.io/replication",
		},
		"Origin":      {"It is from the peer.", of(create, "networkconfigs").label("liqo.io/originID", string(victim.ID)), "liqo.io/originID"},
		"Destination": {"And for this cluster.", of(create, "networkconfigs").label("liqo.io/remoteID", string(victim.ID)), "liqo.io/remoteID"},
		"NoLabels":    {"Without labels it is neither.", of(create, "networkconfigs").with(nil, "metadata", "labels"), "liqo.io/replicated"},
		"Taken":       {"Nobody takes over an object of ours.", own(update), "liqo.io/replicated"},
		"Removed":     {"Or removes it.", func() write { w := own(remove); w.new = nil; return w }(), "liqo.io/replicated"},
		"Disguised": {
			"Or makes its own look like ours.", of(update, "namespacemaps").label("liqo.io/replication", "true"), "liqo.io/replication",
		},
		"RequestOther": {
			"A peer asks for itself.", of(create, "resourcerequests").with(string(victim.ID), "spec", "clusterIdentity", "clusterID"),
			"spec.clusterIdentity.clusterID",
		},
		"RequestNobody": {"And for somebody.", of(update, "resourcerequests").with(nil, "spec"), "spec.clusterIdentity.clusterID"},
		"OfferOther": {
			"A peer offers what is its own.", of(create, "resourceoffers").with(string(victim.ID), "spec", "clusterId"), "spec.clusterId",
		},
		"OfferRenamed": {"The node of an offer stays the same.", renamed, "spec.nodeName"},
		"OfferPrefixed": {
			"So does the beginning of its name.", of(update, "resourceoffers").with("other", "spec", "nodeNamePrefix"), "spec.nodeNamePrefix",
		},
		"NetworkOther": {
			"A network configuration is for who receives it.", of(create, "networkconfigs").with(string(victim.ID), "spec", "cluster", "clusterID"),
			"spec.cluster.clusterID",
		},
		"MapOther": {
			"A map is of the namespaces that are offloaded here.", of(create, "namespacemaps").label("liqo.io/remote-cluster-id", string(victim.ID)),
			"liqo.io/remote-cluster-id",
		},
		"MapNowhere": {"And not nowhere.", of(update, "namespacemaps").label("liqo.io/remote-cluster-id", nil), "liqo.io/remote-cluster-id"},
		"MapTenant": {
			"A twin does not take the name of a tenant namespace.",
			of(update, "namespacemaps").with("liqo-tenant-new-abc123", "spec", "desiredMapping", "x"), "spec.desiredMapping[x]",
		},
		"MapEmpty":      {"A map may be empty.", of(create, "namespacemaps").with(nil, "spec", "desiredMapping"), ""},
		"MapNoSpec":     {"It may have no spec at all.", of(create, "namespacemaps").with(nil, "spec"), ""},
		"NoOfferLabels": {"An offer may have no labels.", of(create, "resourceoffers").with(nil, "spec", "labels"), ""},
		"Unknown": {
			"A cluster that nobody knows is one all the same.", as("id-unknown", "liqo.io"), `"id-unknown" writes in the tenant namespace of "id-p"`,
		},
		"NoGroup":         {"The peer is known by its name.", as(string(peer.ID)), "spec.clusterId"},
		"Administrator":   {"People here may do what they may do.", as("alice", "staff"), ""},
		"ControllerItsef": {"So may Liqo.", as("system:serviceaccount:liqo:liqo-controller-manager", "system:serviceaccounts"), ""},
		"Wanted": {
			"Liqo copies what this cluster asked for.", mapping("Accepted", "loot").with(nil, "status", "currentMapping", "kube-system"), "",
		},
		"Unwanted": {"And nothing else.", mapping("Accepted", "loot"), "status.currentMapping[kube-system]"},
		"Elsewhere": {
			"Nor another name of what it asked for.", mapping("Accepted", "loot").with(nil, "status", "currentMapping", "kube-system").with("loot",
				"status", "currentMapping", "shop", "remoteNamespace"), "status.currentMapping[shop]",
		},
		"Nameless":    {"Nor what has no name.", mapping("Accepted", ""), "status.currentMapping[kube-system]"},
		"Terminating": {"What it has taken back may end.", mapping("Terminating", "loot"), ""},
		"Failed":      {"What could not be made leads nowhere.", mapping("CreationLoopBackOff", "loot"), ""},
		"NoStatus":    {"There may be nothing yet.", mapping("Accepted", "loot").with(nil, "status"), ""},
		"NothingWanted": {
			"Without wishes nothing is wanted.", mapping("Terminating", "loot").with(nil, "spec", "desiredMapping"), "status.currentMapping[shop]",
		},
	}
	for resource := range groups {
		for _, operation := range []admissionv1.Operation{create, update, remove} {
			cases["Honest"+string(operation)+resource] = struct {
				reason  string
				write   write
				refusal string
			}{"An honest peer is never refused.", of(operation, resource), ""}
		}
	}
	for _, label := range []string{
		"liqo.io/remote-cluster-id", "virtualkubelet.liqo.io/x", "discovery.liqo.io/x", "brokering.liqo.io/x", "kubernetes.io/hostname",
		"kubernetes.io/os", "node.kubernetes.io/instance-type", "node-role.kubernetes.io/control-plane", "k8s.io/x", "x.k8s.io/y",
	} {
		cases["Label"+label] = struct {
			reason  string
			write   write
			refusal string
		}{
			"A label that describes a node is not the peer's.", of(create, "resourceoffers").with("x", "spec", "labels", label),
			"spec.labels[" + label + "] is reserved",
		}
	}
	cases["LabelType"] = struct {
		reason  string
		write   write
		refusal string
	}{
		"A node of a peer is a virtual one.", of(create, "resourceoffers").with("worker", "spec", "labels", "liqo.io/type"),
		"spec.labels[liqo.io/type] is reserved",
	}
	return cases
}

// newHandler returns a handler that knows both clusters; the second client is the API server.
func newHandler(t *testing.T, funcs interceptor.Funcs, objects ...client.Object) *peers.Handler {
	t.Helper()
	known := append([]client.Object{liqotest.ForeignCluster(peer, true, true), liqotest.ForeignCluster(victim, true, true)}, objects...)
	return peers.New(snapshottest.Reader(snapshottest.NewClient(t, funcs, known...), ""), snapshottest.NewClient(t, funcs, objects...), own)
}

func TestWebhook(t *testing.T) {
	for name, tc := range asked() {
		t.Run(name, func(t *testing.T) { check(t, newHandler(t, interceptor.Funcs{}), tc.reason, tc.write, tc.refusal) })
	}
}

func check(t *testing.T, h *peers.Handler, reason string, w write, refusal string) {
	t.Helper()
	answer := h.Handle(t.Context(), w.request(t))
	text := ""
	if answer.Result != nil {
		text = answer.Result.Message
	}
	if answer.Allowed != (refusal == "") || !strings.Contains(text, refusal) {
		t.Errorf("%s\nallowed %v, %q; want %q", reason, answer.Allowed, text, refusal)
	}
	if !answer.Allowed && answer.Result.Code != http.StatusForbidden {
		t.Errorf("%s\ncode %d", reason, answer.Result.Code)
	}
}

// TestWhoeverPeersWhere has users and namespaces of which only the webhook knows.
func TestWhoeverPeersWhere(t *testing.T) {
	other := of(admissionv1.Create, "resourceoffers")
	other.user, other.groups = string(victim.ID), nil
	young := of(admissionv1.Create, "resourcerequests").with("id-young", "spec", "clusterIdentity",
		"clusterID").label("liqo.io/originID", "id-young")
	young.user, young.namespace = "id-young", "liqo-tenant-young"
	forged := of(admissionv1.Create, "resourcerequests")
	forged.user, forged.namespace = "id-young", "liqo-tenant-young"
	elsewhere := forged
	elsewhere.namespace = "twin"
	nowhere := forged
	nowhere.namespace = "gone"
	pods := of(admissionv1.Create, "pods")
	pods.new = object{"spec": object{}}
	for name, tc := range map[string]struct {
		reason  string
		write   write
		refusal string
	}{
		"OtherPeer": {
			"A cluster that is known by its name alone writes in its own namespace only.", other, `"id-v" writes in the tenant namespace of "id-p"`,
		},
		"Young":     {"A peer without a ForeignCluster is known by its namespace.", young, ""},
		"Forged":    {"It speaks for itself as well.", forged, "liqo.io/originID"},
		"Elsewhere": {"What is in no tenant namespace is of no concern.", elsewhere, ""},
		"Nowhere":   {"Nor what is in no namespace.", nowhere, ""},
		"Pods":      {"Nor are other kinds.", pods, ""},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHandler(t, interceptor.Funcs{}, liqotest.TenantNamespace(cluster.Identity{ID: "id-young", Name: "young"}),
				liqotest.TwinNamespace("twin", peer))
			check(t, h, tc.reason, tc.write, tc.refusal)
		})
	}
}

// TestNetworks has what Liqo would route to a peer.
func TestNetworks(t *testing.T) {
	cases := map[string]struct {
		reason           string
		before, pods, ex string
		refusal          string
	}{
		"Private": {"Private prefixes are what clusters have.", "", "10.55.0.0/16", "10.56.0.0/16", ""},
		"NotYet":  {"The external one may come later.", "", "10.55.0.0/16", "", ""},
		"Same":    {"They stay.", "10.55.0.0/16", "10.55.0.0/16", "10.56.0.0/16", ""},
		"Public": {
			"What is not private is somebody else's.", "", "8.8.0.0/16", "", "spec.podCIDR: prefix 8.8.0.0/16 is not in a private range",
		},
		"External": {"Of either.", "", "10.55.0.0/16", "1.0.0.0/8", "spec.externalCIDR"},
		"All":      {"Everything is not private.", "", "0.0.0.0/0", "", "spec.podCIDR"},
		"Junk":     {"Nor is what is none.", "", "all", "", "spec.podCIDR"},
		"Changed":  {"Liqo goes on to route the first.", "10.55.0.0/16", "10.99.0.0/24", "10.56.0.0/16", "spec.podCIDR cannot change"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			write := of(admissionv1.Create, "networkconfigs").with(tc.pods, "spec", "podCIDR").with(tc.ex, "spec", "externalCIDR")
			object, err := json.Marshal(write.new)
			if err != nil {
				t.Fatal(err)
			}
			check := peerwrite.Write{User: string(peer.ID), Group: "net.liqo.io", Resource: "networkconfigs", New: object}
			if tc.before != "" {
				before, err := json.Marshal(of(admissionv1.Create, "networkconfigs").with(tc.before, "spec", "podCIDR").with("10.56.0.0/16", "spec",
					"externalCIDR").new)
				if err != nil {
					t.Fatal(err)
				}
				check.Old = before
			}
			err = v09.Line{}.PeerRules().Check(&check, peer.ID, own)
			if tc.refusal == "" && err != nil || tc.refusal != "" && (err == nil || !strings.Contains(err.Error(), tc.refusal)) {
				t.Errorf("%s\nCheck(): %v, want %q", tc.reason, err, tc.refusal)
			}
		})
	}
}

// TestSizes has more than a peer may write.
func TestSizes(t *testing.T) {
	mappings := object{}
	for i := range 1001 {
		mappings[fmt.Sprintf("n%d", i)] = fmt.Sprintf("n%d-peer", i)
	}
	for _, tc := range []struct {
		resource, group, refusal string
		write                    write
	}{
		{
			"namespacemaps", "virtualkubelet.liqo.io", "has 1001 namespaces",
			of(admissionv1.Create, "namespacemaps").with(mappings, "spec", "desiredMapping"),
		},
		{
			"resourceoffers", "sharing.liqo.io", "bytes",
			of(admissionv1.Create, "resourceoffers").with(strings.Repeat("x", 300<<10), "spec", "labels", "huge"),
		},
	} {
		object, err := json.Marshal(tc.write.new)
		if err != nil {
			t.Fatal(err)
		}
		check := peerwrite.Write{User: string(peer.ID), Group: tc.group, Resource: tc.resource, New: object}
		if err := (v09.Line{}).PeerRules().Check(&check, peer.ID, own); err == nil || !strings.Contains(err.Error(), tc.refusal) {
			t.Errorf("%s: %.200v, want %q", tc.resource, err, tc.refusal)
		}
	}
}

// TestNodeNames has an offer of the victim, and a node of this cluster.
func TestNodeNames(t *testing.T) {
	offer := liqotest.Offer(victim, nil)
	offer.Spec.NodeName = "gpu"
	worker := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "worker"}}
	for name, tc := range map[string]struct{ reason, node, refusal string }{
		"Usual":  {"The usual name is free.", "", ""},
		"New":    {"So is a new one.", "liqo-peer-2", ""},
		"Victim": {"The node of another cluster is not.", "gpu", "node gpu is another cluster's"},
		"Soon":   {"Nor is the one that it may have.", "liqo-victim", "node liqo-victim is what Liqo calls the node of another cluster"},
		"Worker": {"Nor is one of this cluster.", "worker", "node worker exists"},
	} {
		t.Run(name, func(t *testing.T) {
			w := of(admissionv1.Create, "resourceoffers")
			if tc.node != "" {
				w = w.with(tc.node, "spec", "nodeName")
			}
			check(t, newHandler(t, interceptor.Funcs{}, offer, worker), tc.reason, w, tc.refusal)
		})
	}
}

// TestBroken has objects that cannot be read: they are refused, and the field is named.
func TestBroken(t *testing.T) {
	for name, tc := range map[string]struct {
		resource string
		path     []string
		value    any
		refusal  string
	}{
		"Labels":   {"resourceoffers", []string{"spec", "labels"}, []any{1}, "spec.labels has the wrong type: array"},
		"Label":    {"resourceoffers", []string{"spec", "labels", "x"}, 1, "spec.labels has the wrong type: number"},
		"Spec":     {"networkconfigs", []string{"spec"}, "none", "spec has the wrong type: string"},
		"Metadata": {"namespacemaps", []string{"metadata", "labels"}, 7, "metadata.labels has the wrong type: number"},
		"Mapping":  {"namespacemaps", []string{"spec", "desiredMapping"}, "all", "spec.desiredMapping has the wrong type: string"},
		"Identity": {"resourcerequests", []string{"spec", "clusterIdentity"}, 1, "spec.clusterIdentity has the wrong type: number"},
		"Quantity": {"resourceoffers", []string{"spec", "resourceQuota", "hard", "cpu"}, "1e1.5", "spec.resourceQuota.hard[cpu]"},
		"Minutes":  {"resourceoffers", []string{"spec", "resourceQuota", "hard", "cpu"}, "1e-2147483647", "spec.resourceQuota.hard[cpu]"},
		"Prices":   {"resourceoffers", []string{"spec", "prices"}, object{"cpu": "1e2147483647"}, "spec.prices[cpu]"},
		"Time":     {"resourceoffers", []string{"spec", "withdrawalTimestamp"}, "2024-01-01T00:00:00", "spec.withdrawalTimestamp"},
	} {
		t.Run(name, func(t *testing.T) {
			check(t, newHandler(t, interceptor.Funcs{}), "What cannot be read is refused.",
				of(admissionv1.Create, tc.resource).with(tc.value, tc.path...), tc.refusal)
		})
	}
	t.Run("NoObject", func(t *testing.T) {
		req := of(admissionv1.Create, "resourceoffers").request(t)
		req.Object.Raw = []byte(`{"metadata":`)
		answer := newHandler(t, interceptor.Funcs{}).Handle(t.Context(), req)
		if answer.Allowed || !strings.Contains(answer.Result.Message, "read the object") {
			t.Errorf("answer %+v", answer.Result)
		}
	})
}

// TestUnknownIsRefused makes reads fail: nothing is admitted that could not be checked.
func TestUnknownIsRefused(t *testing.T) {
	boom := errors.New("boom")
	young := of(admissionv1.Create, "resourcerequests")
	young.namespace = "liqo-tenant-young"
	for name, tc := range map[string]struct {
		write write
		funcs interceptor.Funcs
	}{
		"Cache": {of(admissionv1.Create, "networkconfigs"), interceptor.Funcs{
			List: func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) error { return boom },
		}},
		"Namespace": {young, interceptor.Funcs{
			Get: func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
				return boom
			},
		}},
		"Node": {of(admissionv1.Create, "resourceoffers"), interceptor.Funcs{
			Get: func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
				return boom
			},
		}},
	} {
		t.Run(name, func(t *testing.T) {
			answer := newHandler(t, tc.funcs).Handle(t.Context(), tc.write.request(t))
			if answer.Allowed || answer.Result.Code != http.StatusInternalServerError {
				t.Errorf("answer %+v", answer.AdmissionResponse)
			}
		})
	}
}
