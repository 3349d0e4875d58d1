// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package tunnels

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
	"github.com/capacitorset/liqo-broker/pkg/liqo"
	"github.com/capacitorset/liqo-broker/pkg/liqo/line"
	"github.com/capacitorset/liqo-broker/pkg/liqo/lines/linestest"
	v09 "github.com/capacitorset/liqo-broker/pkg/liqo/v09"
	"github.com/capacitorset/liqo-broker/pkg/liqo/v09/liqotest"
	v1 "github.com/capacitorset/liqo-broker/pkg/liqo/v1"
	"github.com/capacitorset/liqo-broker/pkg/liqo/v1/api"
	"github.com/capacitorset/liqo-broker/pkg/snapshot"
	"github.com/capacitorset/liqo-broker/pkg/snapshot/snapshottest"
)

// node returns a node with addresses.
func node(name string, labels map[string]string, addresses ...string) *corev1.Node {
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}}
	n.Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeHostName, Address: name}}
	for _, a := range addresses {
		n.Status.Addresses = append(n.Status.Addresses, corev1.NodeAddress{Type: corev1.NodeInternalIP, Address: a})
	}
	return n
}

// tunnel is a TunnelEndpoint as Liqo writes it: a peer's pod CIDR and external CIDR, each followed by what Liqo makes of it.
func tunnel(t *testing.T, cidrs ...string) []byte {
	t.Helper()
	o := liqotest.Tunnel(cluster.Identity{ID: "id-p", Name: "peer"}, "1ms", time.Now())
	o.Spec.RemotePodCIDR, o.Spec.RemoteNATPodCIDR, o.Spec.RemoteExternalCIDR, o.Spec.RemoteNATExternalCIDR = cidrs[0], cidrs[1],
		cidrs[2], cidrs[3]
	raw, err := json.Marshal(o)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

// handler is asked in a cluster with two nodes and a virtual one.
func handler(t *testing.T, funcs interceptor.Funcs) *Handler {
	t.Helper()
	h, err := New(snapshottest.Reader(snapshottest.NewClient(t, interceptor.Funcs{}), "id-own"), fake.NewClientBuilder().WithInterceptorFuncs(
		funcs,
	).WithObjects(
		node("one", nil, "192.168.7.11"), node("two", map[string]string{"role": "worker"}, "192.168.7.12", "fd00:7::12"),
		node("liqo-peer", map[string]string{liqo.LabelNodeType: liqo.NodeTypeVirtual}, "10.77.0.5"),
	).Build())
	if err != nil {
		t.Fatal(err)
	}
	return h
}

func TestHandle(t *testing.T) {
	cases := map[string]struct {
		reason   string
		old, new []byte
		refusal  string
	}{
		"Elsewhere": {reason: "What is nobody's goes to the peer.", new: tunnel(t, "10.80.0.0/16", "None", "10.81.0.0/16", "None")},
		"Remapped": {
			reason: "A peer may have our nodes' addresses at home, where Liqo remaps them.",
			new:    tunnel(t, "192.168.0.0/16", "10.82.0.0/16", "10.81.0.0/16", "None"),
		},
		"Nodes": {
			reason: "Liqo does not know the nodes.", new: tunnel(t, "192.168.0.0/16", "None", "10.81.0.0/16", "None"), refusal: "192.168.0.0/16",
		},
		"External": {
			reason: "The external CIDR is routed as well.", new: tunnel(t, "10.80.0.0/16", "None", "192.168.7.12/32", "None"), refusal: "node two",
		},
		"RemappedHere": {
			reason: "Liqo's own choice may be wrong too.", new: tunnel(t, "10.80.0.0/16", "192.168.7.0/24", "10.81.0.0/16", "None"),
			refusal: "192.168.7.0/24",
		},
		"IPv6": {
			reason: "Nodes may have several addresses.", new: tunnel(t, "fd00::/16", "None", "10.81.0.0/16", "None"), refusal: "fd00:7::12",
		},
		"Near": {
			reason: "The addresses matter, not what is near them.", new: tunnel(t, "192.168.8.0/24", "None", "10.81.0.0/16", "None"),
		},
		"Virtual":   {reason: "A virtual node has no network.", new: tunnel(t, "10.77.0.0/16", "None", "10.81.0.0/16", "None")},
		"Undecided": {reason: "What Liqo has not decided is not routed.", new: tunnel(t, "192.168.0.0/16", "", "", "")},
		"Before": {
			reason: "A tunnel that there is goes on.",
			old:    tunnel(t, "192.168.0.0/16", "None", "10.81.0.0/16", "None"), new: tunnel(t, "192.168.0.0/16", "None", "10.81.0.0/16", "None"),
		},
		"Changed": {
			reason: "Unless it changes.",
			old:    tunnel(t, "192.168.0.0/16", "10.82.0.0/16", "10.81.0.0/16", "None"),
			new:    tunnel(t, "192.168.0.0/16", "None", "10.81.0.0/16", "None"), refusal: "192.168.0.0/16",
		},
		"Unreadable": {reason: "Something else is no tunnel.", new: []byte(`{"spec": 1}`), refusal: "read a TunnelEndpoint"},
		"WasOther": {
			reason: "Nor was it.", old: []byte(`{"spec": 1}`), new: tunnel(t, "10.80.0.0/16", "None", "", ""), refusal: "read a TunnelEndpoint",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			answer := handler(t, interceptor.Funcs{}).Handle(t.Context(), admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{
				Object: runtime.RawExtension{Raw: tc.new}, OldObject: runtime.RawExtension{Raw: tc.old},
			}})
			if answer.Allowed != (tc.refusal == "") || !strings.Contains(answer.Result.Message, tc.refusal) {
				t.Errorf("%s\nallowed: %t, %q, want %q", tc.reason, answer.Allowed, answer.Result.Message, tc.refusal)
			}
		})
	}
}

func TestNodesUnknown(t *testing.T) {
	h := handler(t, interceptor.Funcs{List: func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) error {
		return errors.New("no API server")
	}})
	answer := h.Handle(t.Context(), admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{
		Object: runtime.RawExtension{Raw: tunnel(t, "10.80.0.0/16", "None", "10.81.0.0/16", "None")},
	}})
	if answer.Allowed || answer.Result.Code != http.StatusInternalServerError {
		t.Errorf("without nodes: %+v", answer.Result)
	}
}

// configuration returns what Liqo 1.x writes down: under which prefixes a peer is seen.
func configuration(namespace, peer string, seen ...string) *api.Configuration {
	c := &api.Configuration{ObjectMeta: metav1.ObjectMeta{
		Namespace: namespace, Name: peer, Labels: map[string]string{liqo.LabelRemoteClusterID: peer},
	}}
	c.Status.Remote = &api.ClusterNetworks{CIDR: api.CIDRs{Pod: seen}}
	return c
}

// TestLinksUnknown has a cache that cannot be read: nobody knows what leads to other peers, which Liqo 0.9 has seen to.
func TestLinksUnknown(t *testing.T) {
	down := snapshottest.NewClient(t, interceptor.Funcs{
		List: func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) error {
			return errors.New("no cache")
		},
	})
	next, err := json.Marshal(configuration("tenant-p", "p", "10.80.0.0/16"))
	if err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		of      line.Line
		network []byte
		refusal string
	}{{v09.Line{}, tunnel(t, "10.80.0.0/16", "None", "10.81.0.0/16", "None"), ""}, {v1.Line{}, next, "no cache"}} {
		h, err := New(snapshot.New(tc.of, down, "id-own", nil), fake.NewClientBuilder().Build())
		if err != nil {
			t.Fatal(err)
		}
		answer := h.Handle(t.Context(), admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{
			Object: runtime.RawExtension{Raw: tc.network},
		}})
		if answer.Allowed != (tc.refusal == "") || !strings.Contains(answer.Result.Message, tc.refusal) ||
			!answer.Allowed && answer.Result.Code != http.StatusInternalServerError {
			t.Errorf("with Liqo %s, without links: %+v", tc.of.Name(), answer.Result)
		}
	}
}

// TestConfigurations asks about what Liqo 1.x writes down.
func TestConfigurations(t *testing.T) {
	cached := fake.NewClientBuilder().WithScheme(linestest.Scheme(t)).WithObjects(configuration("tenant-v", "v", "10.70.0.0/16")).Build()
	nodes := fake.NewClientBuilder().WithObjects(node("one", nil, "192.168.7.11")).Build()
	h, err := New(snapshot.New(v1.Line{}, cached, "own", nil), nodes)
	if err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct{ reason, namespace, seen, refusal string }{
		"Free":   {"It is nobody's.", "tenant-p", "10.80.0.0/16", ""},
		"Nodes":  {"It has a node of this cluster.", "tenant-p", "192.168.7.0/24", "node one: end the peering, set ipam.reservedSubnets"},
		"Others": {"It leads to another peer.", "tenant-p", "10.70.1.0/24", "which leads to cluster v"},
		"Own":    {"It is the same network.", "tenant-v", "10.70.0.0/16", ""},
		"Public": {"It is none of Liqo's.", "tenant-p", "8.8.0.0/16", "is not in a private range"},
	} {
		t.Run(name, func(t *testing.T) {
			raw, err := json.Marshal(configuration(tc.namespace, "p", tc.seen))
			if err != nil {
				t.Fatal(err)
			}
			answer := h.Handle(t.Context(), admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{
				Namespace: tc.namespace, Object: runtime.RawExtension{Raw: raw},
			}})
			if answer.Allowed != (tc.refusal == "") || !strings.Contains(answer.Result.Message, tc.refusal) {
				t.Errorf("%s\nallowed: %t, %q, want %q", tc.reason, answer.Allowed, answer.Result.Message, tc.refusal)
			}
		})
	}
}

// TestConfiguration looks at what the API server asks: the rest of it is for whatever Liqo does besides.
func TestConfiguration(t *testing.T) {
	manifest, err := os.ReadFile("../../../deploy/guard/webhook.yaml")
	if err != nil {
		t.Fatal(err)
	}
	asked := regexp.MustCompile(`(?s)- name: tunnels\.brokering\.liqo\.io\n.*?\n(  - name|---)`).FindString(string(manifest))
	for _, want := range []string{
		"path: " + Path, "resources: [tunnelendpoints]", "resources: [configurations, configurations/status]", "operations: [CREATE, UPDATE]",
		"failurePolicy: Ignore",
	} {
		if !strings.Contains(asked, want) {
			t.Errorf("deploy/guard/webhook.yaml has no %q for tunnels", want)
		}
	}
}
