// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"maps"
	"net/netip"
	"os"
	"slices"
	"testing"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
	"sigs.k8s.io/yaml"

	"github.com/capacitorset/liqo-broker/pkg/liqo/lines"
	"github.com/capacitorset/liqo-broker/pkg/liqo/v1/transittest"
	"github.com/capacitorset/liqo-broker/pkg/peernet"
	"github.com/capacitorset/liqo-broker/pkg/snapshot"
	"github.com/capacitorset/liqo-broker/pkg/webhook/addresses"
	"github.com/capacitorset/liqo-broker/pkg/webhook/class"
	"github.com/capacitorset/liqo-broker/pkg/webhook/liqonamespace"
	"github.com/capacitorset/liqo-broker/pkg/webhook/offerlabels"
	"github.com/capacitorset/liqo-broker/pkg/webhook/relocate"
	admissiontest "github.com/capacitorset/liqo-broker/test/admission"
)

// TestWebhookCallers checks whom the webhooks answer: where the API servers' addresses are not given, nobody until the
// peers are known.
func TestWebhookCallers(t *testing.T) {
	cases := map[string]struct {
		reason string
		allow  []netip.Prefix
		from   string
		want   bool
	}{
		"PeersUnknown": {reason: "As long as the peers are not known, a caller may be one.", from: "192.0.2.1"},
		"Given": {
			reason: "Addresses that are given may call.", allow: []netip.Prefix{netip.MustParsePrefix("192.0.2.0/24")},
			from: "192.0.2.1", want: true,
		},
		"Other": {reason: "Then no other may.", allow: []netip.Prefix{netip.MustParsePrefix("192.0.2.0/24")}, from: "198.51.100.1"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			certificate, _ := newCertificate(nil)
			s := newWebhooks(&options{webhookAllow: tc.allow}, certificate, &peernet.Peers{})
			if got := s.Admits(netip.MustParseAddr(tc.from)); got != tc.want {
				t.Errorf("%s\n%s may call: %t, want %t", tc.reason, tc.from, got, tc.want)
			}
		})
	}
}

// TestFailurePolicies checks what counts while the daemon does not answer. Who cannot be asked about pods, events
// and namespace liqo admits nothing.
func TestFailurePolicies(t *testing.T) {
	var got []string
	for _, w := range webhooksOf(t, "broker") {
		got = append(got, w.Name+" "+string(*w.FailurePolicy))
	}
	want := []string{
		"place Fail", "protect Fail",
		"label Ignore", // An offer without labels is better than none.
		"class Fail",   // Liqo tries again, and would grant all.
		"hide Fail", "hide-nodes Fail", "relocate Fail",
		"addresses Fail", // Liqo opens whatever address it is.
		"confine Fail",
		"audit Ignore", // What people do goes on.
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
}

// TestNetworkPolicies checks from where deploy/broker and what is beside it open which ports, where the network plugin knows policies. Pods
// of peers are in no namespace of the broker's cluster.
func TestNetworkPolicies(t *testing.T) {
	const everywhere = "everywhere"
	for file, want := range map[string]map[string]string{
		"broker/networkpolicy.yaml": {
			"plugin": "kubernetes.io/metadata.name=liqo", "api": "", "metrics": "", "webhook": everywhere, "health": everywhere,
		},
		"guard/networkpolicy-network-manager.yaml": {
			"6000": "discovery.liqo.io/tenant-namespace", "6001": everywhere, "6002": "!liqo.io/remote-cluster-id", "6003": everywhere,
		},
		"agent/networkpolicy.yaml":   {"health": everywhere},
		"transit/networkpolicy.yaml": {"health": everywhere},
	} {
		manifest, err := os.ReadFile("../../deploy/" + file)
		if err != nil {
			t.Fatal(err)
		}
		var policy networkingv1.NetworkPolicy
		if err := yaml.UnmarshalStrict(manifest, &policy); err != nil {
			t.Fatal(err)
		}
		got := map[string]string{}
		for _, rule := range policy.Spec.Ingress {
			from := everywhere
			if len(rule.From) == 1 && rule.From[0].NamespaceSelector != nil && rule.From[0].IPBlock == nil {
				selector, err := metav1.LabelSelectorAsSelector(rule.From[0].NamespaceSelector)
				if err != nil {
					t.Fatal(err)
				}
				from = selector.String()
			}
			for _, port := range rule.Ports {
				got[port.Port.String()] = from
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: from which namespaces each port is reached: -want +got\n%s", file, diff)
		}
	}
}

// TestBrokeringHandlers checks that there is a handler at each path with each line of Liqo, and which ones leave all as it is.
func TestBrokeringHandlers(t *testing.T) {
	b, err := newBroker(brokerConfig{options: options{orchestrator: true}, rest: &rest.Config{Host: "https://192.0.2.1"}, log: logr.Discard()})
	if err != nil {
		t.Fatal(err)
	}
	mgr, err := ctrl.NewManager(b.cfg.rest, ctrl.Options{Scheme: b.scheme, Logger: b.cfg.log})
	if err != nil {
		t.Fatal(err)
	}
	idle := map[string][]string{"0.9": {class.Path, relocate.Path, addresses.Path}, "1.x": {offerlabels.Path}}
	for _, of := range lines.All() {
		o := &brokering{cfg: &b.cfg, mgr: mgr, reader: snapshot.New(of, mgr.GetClient(), "own", nil)}
		got := o.handlers()
		if at := slices.Sorted(maps.Keys(got)); !slices.Equal(at, slices.Sorted(slices.Values(brokeringPaths()))) {
			t.Errorf("with Liqo %s there are handlers at %v", of.Name(), at)
		}
		for path, handler := range got {
			_, idles := handler.(admission.HandlerFunc)
			if want := slices.Contains(idle[of.Name()], path); idles != want {
				t.Errorf("with Liqo %s, what answers at %s leaves all as it is: %t", of.Name(), path, idles)
			}
		}
	}
}

// TestSeenOn checks under which prefixes pods on a node are seen.
func TestSeenOn(t *testing.T) {
	virtual := func(name, id string) *corev1.Node {
		return transittest.Made(&corev1.Node{}, "", name, map[string]string{"liqo.io/type": "virtual-node", "liqo.io/remote-cluster-id": id})
	}
	host := transittest.Made(&corev1.Node{}, "", "host", map[string]string{"liqo.io/remote-cluster-id": "p"})
	w := transittest.New(t, virtual("node-of-p", "p"), virtual("node-of-x", "x"), host)
	for node, want := range map[string]string{"node-of-p": "[10.69.0.0/16]", "node-of-x": "[]", "host": "[]", "gone": "[]"} {
		seen, err := seenOn(t.Context(), w, transittest.Own, node)
		if got := fmt.Sprint(seen); err != nil || got != want {
			t.Errorf("pods on node %s are seen under %s, %v; want %s", node, got, err, want)
		}
	}
}

// webhooksOf returns the webhooks of a folder of deploy/, mutating and validating ones, which differ in what the former may do besides. The
// names are without the domain.
func webhooksOf(t *testing.T, folder string) []admissionregistrationv1.ValidatingWebhook {
	t.Helper()
	return admissiontest.Webhooks(t, "../../deploy/"+folder+"/webhook.yaml")
}

// TestManifestAsksWhatIsServed compares the paths in deploy/broker/webhook.yaml with those that the daemon serves, in whatever mode:
// the API server refuses what it cannot ask about.
func TestManifestAsksWhatIsServed(t *testing.T) {
	asked := map[string]bool{}
	for _, w := range webhooksOf(t, "broker") {
		asked[*w.ClientConfig.Service.Path] = true
	}
	served := append(brokeringPaths(), liqonamespace.Path)
	slices.Sort(served)
	if got := slices.Sorted(maps.Keys(asked)); !slices.Equal(got, served) {
		t.Errorf("the API server asks %v, and the daemon serves %v", got, served)
	}
}
