// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package install

import (
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capacitorset/liqo-broker/pkg/liqo"
	"github.com/capacitorset/liqo-broker/pkg/liqo/v1/api"
)

// called1 is what Liqo 1.x has written down of what a cluster is called.
func called1(id string) client.Object {
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: liqoNamespace, Name: liqo.IdentityName}, Data: map[string]string{liqo.IdentityKey: id},
	}
}

// tunnel1 is the network to a peer, which is up or not.
func tunnel1(id string, state api.ConnectionState) []client.Object {
	meta := metav1.ObjectMeta{Namespace: "liqo-tenant-" + id, Name: id, Labels: map[string]string{liqo.LabelRemoteClusterID: id}}
	return []client.Object{
		&api.Configuration{ObjectMeta: meta}, &api.Connection{ObjectMeta: meta, Status: api.ConnectionStatus{Value: state}},
	}
}

// node1 is the virtual node of a peer.
func node1(id string) *corev1.Node {
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: id, Labels: map[string]string{
		liqo.LabelNodeType: liqo.NodeTypeVirtual, liqo.LabelRemoteClusterID: id,
	}}}
	n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
	return n
}

// federation1 are clusters with Liqo 1.x, by their names: milan is the broker of consumer rome, and of provider turin, with all peerings.
func federation1() map[string]*cluster1 {
	return map[string]*cluster1{
		"milan": stock1(together(called1("milan"), daemon1("--with-orchestrator"), peer1("turin", true), peer1("rome", false),
			tunnel1("turin", api.Connected), node1("turin"))...),
		"turin": stock1(together(called1("turin"), peer1("milan", false))...),
		"rome":  stock1(together(called1("rome"), peer1("milan", true), tunnel1("milan", api.Connected), node1("milan"))...),
	}
}

// joining1 returns how clusters are joined: milan with the others.
func joining1(t *testing.T, of map[string]*cluster1) Joining {
	t.Helper()
	as := func(name string) Joiner {
		return Joiner{Called: name, Client: of[name].client(t), Kubeconfig: "my clusters.yaml", Context: name}
	}
	return Joining{Broker: as("milan"), Providers: []Joiner{as("turin")}, Consumers: []Joiner{as("rome")}}
}

// TestJoin1 joins clusters that are peered: the consumer is prepared, nothing else is written, and the second time nothing at all.
func TestJoin1(t *testing.T) {
	of := federation1()
	j := joining1(t, of)
	for n := range 2 {
		var out strings.Builder
		if err := Join(t.Context(), j, quick, &out); err != nil {
			t.Fatalf("%v\n%s", err, out.String())
		}
		if n == 0 {
			steps := stepsOf(out.String())
			if diff := cmp.Diff([]string{
				"wait until milan reaches turin", "wait until rome reaches milan", "wait until milan can use turin", "wait until rome can use milan",
			}, slices.DeleteFunc(steps, func(s string) bool { return !strings.HasPrefix(s, "wait until") })); diff != "" {
				t.Errorf("steps: -want +got\n%s", diff)
			}
		}
		for name, c := range of {
			if name != "rome" && len(c.written) > 0 {
				t.Errorf("%s is written to: %q", name, c.written)
			}
		}
		switch written := of["rome"].written; {
		case n > 0 && len(written) > 0:
			t.Errorf("the second run writes %q", written)
		case n > 0:
		case len(written) == 0 || written[0] != "apply Namespace liqo-broker-agent" ||
			written[len(written)-1] != "patch ForeignCluster milan":
			t.Errorf("the first run writes %q", written)
		}
		of["rome"].written = nil
	}
}

// TestJoinRefuses1 has clusters that cannot be joined as they are: nothing is written, and people are told what to do.
func TestJoinRefuses1(t *testing.T) {
	const peers = "liqoctl peer --kubeconfig 'my clusters.yaml' --context %A --remote-kubeconfig 'my clusters.yaml' --remote-context %B\n"
	commandOf := func(consumer, provider string) string {
		return strings.NewReplacer("%A", consumer, "%B", provider).Replace(peers)
	}
	for name, tc := range map[string]struct {
		reason string
		change func(map[string]*cluster1, *Joining)
		says   string
		prints []string
	}{
		"NoPeerings": {
			"They do not know each other.", func(of map[string]*cluster1, _ *Joining) {
				of["milan"].objects = together(called1("milan"), daemon1("--with-orchestrator"))
				of["rome"].objects = together(called1("rome"))
			}, "2 of 2 peerings are missing: run the commands above, and join again",
			[]string{commandOf("milan", "turin"), commandOf("rome", "milan")},
		},
		"OnePeering": {
			"The consumer was peered the other way round only.", func(of map[string]*cluster1, _ *Joining) {
				of["rome"].objects = together(called1("rome"), peer1("milan", false))
			}, "1 of 2 peerings are missing", []string{commandOf("rome", "milan")},
		},
		"Direct": {
			"They would peer for nothing.", func(_ map[string]*cluster1, j *Joining) { j.Direct = true },
			"all traffic between consumers and providers goes through the broker", nil,
		},
		"Tokens": {
			"There are none to keep.", func(_ map[string]*cluster1, j *Joining) { j.KeepTokens = true }, "leave out --keep-tokens", nil,
		},
		"NoBroker": {
			"A mistyped context would become one.", func(of map[string]*cluster1, _ *Joining) { of["milan"].objects = together(called1("milan")) },
			"is no broker", nil,
		},
		"OtherLine": {
			"They cannot peer.", func(_ map[string]*cluster1, j *Joining) {
				p := three(t)
				j.Providers = []Joiner{p.joiner(t, "turin")}
			}, "turin has Liqo v0.9.4, and the broker v1.2.0: clusters of both lines do not peer", nil,
		},
	} {
		t.Run(name, func(t *testing.T) {
			of := federation1()
			j := Joining{}
			tc.change(of, &j)
			full := joining1(t, of)
			full.Direct, full.KeepTokens = j.Direct, j.KeepTokens
			if len(j.Providers) > 0 {
				full.Providers = j.Providers
			}
			for _, options := range []Options{quick, {Timeout: time.Second, DryRun: true, Tried: true}} {
				var out strings.Builder
				err := Join(t.Context(), full, options, &out)
				if err == nil || !strings.Contains(err.Error(), tc.says) || strings.Contains(err.Error(), "\n") {
					t.Errorf("%s %v, want %q", tc.reason, err, tc.says)
				}
				if got := strings.Count(out.String(), "liqoctl peer --"); got != len(tc.prints) {
					t.Errorf("%d commands are printed, want %q:\n%s", got, tc.prints, out.String())
				}
				for _, command := range tc.prints {
					if !strings.Contains(out.String(), "      "+command) {
						t.Errorf("it does not print %s\n%s", command, out.String())
					}
				}
				for name, c := range of {
					if len(c.written) > 0 {
						t.Errorf("%s is written to: %q", name, c.written)
					}
				}
			}
		})
	}
}

// TestJoinWaits1 joins clusters whose peerings are not what they are to be yet: the error says which, and the consumer is not prepared.
func TestJoinWaits1(t *testing.T) {
	pending := peer1("milan", true)
	identity, is := pending[2].(*api.Identity)
	if !is {
		t.Fatal(pending)
	}
	identity.Status.KubeconfigSecretRef = nil
	for name, tc := range map[string]struct {
		reason string
		rome   []client.Object
		says   string
	}{
		"Down": {"The tunnel is down.", together(peer1("milan", true), tunnel1("milan", api.ConnectionError)), "the tunnel is not up yet"},
		"None": {"There is no tunnel.", peer1("milan", true), "the tunnel is not up yet"},
		"Pending": {
			"There are no credentials yet.", together(pending, tunnel1("milan", api.Connected)), "Liqo has no credentials of rome at milan",
		},
	} {
		of := federation1()
		of["rome"].objects = together(called1("rome"), tc.rome, node1("milan"))
		var out strings.Builder
		err := Join(t.Context(), joining1(t, of), Options{Timeout: 10 * time.Millisecond}, &out)
		if err == nil || !strings.Contains(err.Error(), "wait until rome reaches milan") || !strings.Contains(err.Error(), tc.says) ||
			len(of["rome"].written) > 0 {
			t.Errorf("%s: %s %v; rome is written to: %q", name, tc.reason, err, of["rome"].written)
		}
	}

	// The broker grants nothing yet.
	of := federation1()
	of["rome"].objects = together(called1("rome"), peer1("milan", true), tunnel1("milan", api.Connected))
	err := Join(t.Context(), joining1(t, of), Options{Timeout: 10 * time.Millisecond}, io.Discard)
	if err == nil || !strings.Contains(err.Error(), "rome has no virtual node of milan that is ready") {
		t.Errorf("it does not wait for the node: %v", err)
	}
}

// TestQuoted holds that what people copy into a shell is what is meant.
func TestQuoted(t *testing.T) {
	for word, want := range map[string]string{
		"milan": "milan", "./rome.yaml": "./rome.yaml", "arn:aws:eks:eu/a": "arn:aws:eks:eu/a", "a b": "'a b'", "$(reboot)": "'$(reboot)'",
		"it's": `'it'\''s'`, "a\x1b[2Jb": "'a?[2Jb'", "~/x": "'~/x'", "": "''",
	} {
		if got := quoted(word); got != want {
			t.Errorf("quoted(%q) = %s, want %s", word, got, want)
		}
	}
}
