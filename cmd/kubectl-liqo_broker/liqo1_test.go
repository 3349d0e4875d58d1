// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/capacitorset/liqo-broker/pkg/api/v1alpha1"
	"github.com/capacitorset/liqo-broker/pkg/install"
	"github.com/capacitorset/liqo-broker/pkg/liqo"
	v1 "github.com/capacitorset/liqo-broker/pkg/liqo/v1"
	"github.com/capacitorset/liqo-broker/pkg/liqo/v1/api"
	"github.com/capacitorset/liqo-broker/pkg/liqo/v1/report"
	"github.com/capacitorset/liqo-broker/pkg/liqo/v1/transittest"
	"github.com/capacitorset/liqo-broker/pkg/program"
	"github.com/capacitorset/liqo-broker/test/golden"
)

// newCLI1 returns the plugin at a cluster with Liqo 1.x.
func newCLI1(t *testing.T, objects ...client.Object) *cli {
	t.Helper()
	return &cli{client: newFakeOf(t, v1.Line{}, objects...)}
}

// tenant1 is the tenant namespace of a peer with Liqo 1.x, and peer1 the peer itself.
func tenant1(id string) *corev1.Namespace {
	return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "liqo-tenant-" + id, Labels: map[string]string{
		liqo.LabelTenantNamespace: "true", liqo.LabelRemoteClusterID: id,
	}}}
}

func peer1(id string) *api.ForeignCluster {
	fc := &api.ForeignCluster{ObjectMeta: metav1.ObjectMeta{Name: id}}
	fc.Spec.ClusterID = id
	return fc
}

// node1 is a virtual node of a cluster, by Liqo's own virtual kubelet.
func node1(name, id string) *corev1.Node {
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{
		liqo.LabelNodeType: liqo.NodeTypeVirtual, liqo.LabelRemoteClusterID: id,
	}}}
	n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
	return n
}

// slice1 is a ResourceSlice: one of this cluster, or one that a consumer has put here.
func slice1(id string, fromConsumer, accepted bool) *api.ResourceSlice {
	s := &api.ResourceSlice{ObjectMeta: metav1.ObjectMeta{Namespace: "liqo-tenant-" + id, Name: id}}
	if fromConsumer {
		s.Labels = map[string]string{liqo.LabelReplicated: liqo.ReplicationValue, liqo.LabelOrigin: id}
	}
	if accepted {
		s.Status.Conditions = []api.ResourceSliceCondition{
			{Type: api.SliceAuthentication, Status: api.SliceAccepted}, {Type: api.SliceResources, Status: api.SliceAccepted},
		}
	}
	return s
}

// gateway1 is that to a peer.
func gateway1(id string, ready int32) *appsv1.Deployment {
	d := gateway(ready)
	d.Namespace, d.Name, d.Labels = "liqo-tenant-"+id, "gw-"+id, map[string]string{"networking.liqo.io/component": "gateway"}
	return d
}

// broker1 is a broker with Liqo 1.x: two providers, of which one cannot be used, and a consumer.
func broker1() []client.Object {
	ready := condition(v1alpha1.ConditionReady, metav1.ConditionTrue, v1alpha1.ReasonOffering, "Workloads can be placed on the provider")
	unknown := condition(v1alpha1.ConditionReady, metav1.ConditionFalse, v1alpha1.ReasonNodeUnknown, "No virtual kubelet reports")
	rome := consumer("rome", "rome", ready)
	return []client.Object{
		provider("milan", "milan", ready), provider("oslo", "oslo", unknown), rome, daemon(1, 1, "--with-orchestrator"),
		tenant1("milan"), tenant1("oslo"), tenant1("rome"), slice1("milan", false, true), slice1("oslo", false, false),
		slice1("rome", true, true), gateway1("milan", 1), gateway1("rome", 1), node1("milan", "milan"),
	}
}

// TestStatus1 looks at a broker with Liqo 1.x: it is told of by its own commands, and of its gateways each by itself.
func TestStatus1(t *testing.T) {
	stranger := gateway1("bern", 0)
	stranger.Namespace = "shop" // A consumer calls a Deployment of its own so.
	shop := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop"}}
	for name, tc := range map[string]struct {
		reason     string
		objects    []client.Object
		says, nots []string
	}{
		"Ill": {
			"One provider cannot be used.", append(broker1(), stranger, shop),
			[]string{
				"Gateway    2 of 2 replicas of Liqo's ready", "Offers     1 of 2 from providers accepted, 1 of 1 to consumers accepted",
				"! Provider oslo (oslo)", "kubectl get pods -A -l offloading.liqo.io/component=virtual-kubelet",
			}, []string{"Liqo's gateway"},
		},
		"Gateway": {
			"A tunnel does not work.", append(broker1(), gateway1("oslo", 0)),
			[]string{
				"Gateway    2 of 3 replicas", "! 0 of 1 replicas of Liqo's gateway to oslo (oslo) are ready: its tunnel does not work",
				"kubectl logs -n liqo-tenant-oslo deploy/gw-oslo --all-containers",
			}, []string{"no tunnel works", "gw-milan"},
		},
		"Empty": {"Nobody has peered.", nil, []string{"Peer with one: liqoctl peer --help"}, []string{"out-of-band", "Gateway"}},
	} {
		out, _, err := newCLI1(t, tc.objects...).run(t, "status")
		if !errors.Is(err, errUnhealthy) {
			t.Errorf("%s: %v", name, err)
		}
		for _, want := range tc.says {
			if !strings.Contains(out, want) {
				t.Errorf("%s: %s It does not say %q:\n%s", name, tc.reason, want, out)
			}
		}
		if slices.ContainsFunc(tc.nots, func(not string) bool { return strings.Contains(out, not) }) {
			t.Errorf("%s: %s It says one of %q:\n%s", name, tc.reason, tc.nots, out)
		}
	}
	if out, errOut, err := newCLI1(t, append(broker1(), gateway1("oslo", 0))...).run(t, "providers"); err != nil ||
		!strings.HasPrefix(errOut, "0 of 1 replicas of Liqo's gateway to oslo (oslo) are ready") || !strings.Contains(out, "milan") {
		t.Errorf("providers: %v, %q\n%s", err, errOut, out)
	}
	if _, errOut, err := newCLI1(t).run(t, "consumers"); err != nil || !strings.HasSuffix(errOut, "appears here: liqoctl peer --help\n") {
		t.Errorf("consumers: %v, %q", err, errOut)
	}
}

// TestStatusGateways1 looks at a broker with Liqo 1.x on which all is well but gateways: of one peer it is not ready, that of another one
// has a name that does not tell whose it is, and that of a third one is to have no pod.
func TestStatusGateways1(t *testing.T) {
	ready := condition(v1alpha1.ConditionReady, metav1.ConditionTrue, v1alpha1.ReasonOffering, "Workloads can be placed on the provider")
	called, scaled := gateway1("oslo", 0), gateway1("rome", 0)
	called.Name, scaled.Spec.Replicas = "gw-north", new(int32(0))
	objects := []client.Object{
		daemon(1, 1, "--with-orchestrator"), consumer("rome", "rome", ready), tenant1("rome"), scaled,
		provider("milan", "milan", ready), tenant1("milan"), gateway1("milan", 0), provider("oslo", "oslo", ready), tenant1("oslo"), called,
		provider("turin", "turin", ready), tenant1("turin"), gateway1("turin", 1),
	}
	out, _, err := newCLI1(t, objects...).run(t, "status")
	if !errors.Is(err, errUnhealthy) || program.ExitCode(err) != exitUnhealthy {
		t.Error(err)
	}
	golden.Check(t, "status_gateways1.txt", out)
	_, told, err := newCLI1(t, objects...).run(t, "providers")
	if err != nil {
		t.Error(err)
	}
	golden.Check(t, "providers_gateways1.txt", told)
}

// TestStatusAgents looks at a broker of whose consumers' agents something is missing, of each something else.
func TestStatusAgents(t *testing.T) {
	ready := condition(v1alpha1.ConditionReady, metav1.ConditionTrue, v1alpha1.ReasonOffering, "Workloads can be placed on the provider")
	objects := []client.Object{provider("milan", "milan", ready), daemon(1, 1, "--with-orchestrator")}
	for id, missing := range map[string]struct{ reason, message string }{
		"bern":  {v1alpha1.ReasonAgentMissing, "The cluster's agent was never heard"},
		"bonn":  {v1alpha1.ReasonSilent, "It was not heard for more than 5m0s"},
		"oslo":  {v1alpha1.ReasonUnreadable, "What it tells cannot be read"},
		"paris": {"SomethingNew", "Nobody knows"},
		"rome":  {v1alpha1.ReasonViewsUnknown, "The cluster's agent has not acknowledged 1 of 2 networks of providers: milan"},
	} {
		agent := condition(v1alpha1.ConditionAgentReporting, metav1.ConditionFalse, missing.reason, missing.message)
		objects = append(objects, consumer(id, id, ready, agent))
	}
	out, _, err := newCLI1(t, objects...).run(t, "status")
	if !errors.Is(err, errUnhealthy) {
		t.Error(err)
	}
	golden.Check(t, "status_agents.txt", out)
}

// TestExplain1 asks about a namespace of a consumer with Liqo 1.x: a name that has the ID of a provider in it says nothing, and what a
// provider refuses does.
func TestExplain1(t *testing.T) {
	twin := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
		Name: "shop-milan-rome", Labels: map[string]string{liqo.LabelRemoteClusterID: "rome"},
		Annotations: map[string]string{"liqo.io/managed-by-namespace-map": "liqo-tenant-rome/rome", "liqo.io/original-name": "shop-milan"},
	}}
	offloading := v1.ForgeOffloading(twin.Name, liqo.MappingDefault, v1.Identity("own"))
	offloading.Status.RemoteNamespacesConditions = map[string]api.RemoteNamespaceConditions{"oslo": {
		{Type: api.OffloadingRequired, Status: corev1.ConditionTrue},
		{Type: api.RemoteNamespaceReady, Status: corev1.ConditionFalse, Reason: string(api.MappingFailing)},
	}}
	wish := &api.ShadowPod{ObjectMeta: metav1.ObjectMeta{
		Namespace: twin.Name, Name: "web-1", Labels: map[string]string{liqo.LabelPolicy: "cheapest"},
	}}
	cheapest := policy("cheapest")
	cheapest.Spec.AppliesTo.Scope = v1alpha1.ScopeOnRequest
	objects := append(broker1(), twin, offloading, pod(twin.Name, "web-1", "milan", "10.1.0.7"))
	out, _, err := newCLI1(t, objects...).run(t, "explain shop-milan")
	for _, want := range []string{"It follows no policy", "It cannot create the namespace", "web-1", "milan" + "      milan"} {
		if err != nil || !strings.Contains(out, want) || strings.Contains(out, "came from it") {
			t.Errorf("%v; it does not say %q:\n%s", err, want, out)
		}
	}
	out, _, err = newCLI1(t, append(objects, wish, cheapest)...).run(t, "explain shop-milan-rome")
	if err != nil || !strings.Contains(out, "It follows policy cheapest.") || strings.Contains(out, "in vain") {
		t.Errorf("%v\n%s", err, out)
	}
	ofOthers, narrow := cheapest.DeepCopy(), cheapest.DeepCopy()
	ofOthers.Spec.AppliesTo.Consumers = []string{"oslo"}
	narrow.Spec.AppliesTo.Scope = v1alpha1.ScopeNamespaces
	narrow.Spec.AppliesTo.Namespaces = &v1alpha1.NamespaceBinding{Names: []string{"shop-milan"}}
	for name, policies := range map[string][]client.Object{"None": nil, "OfOthers": {ofOthers}, "NotOnRequest": {narrow}} {
		out, _, err = newCLI1(t, append(append(objects, wish), policies...)...).run(t, "explain shop-milan-rome")
		if err != nil || !strings.Contains(out, "Pods name policies in vain: cheapest. No policy of the scope OnRequest") {
			t.Errorf("%s: %v\n%s", name, err, out)
		}
	}
}

// seen1 is a broker with Liqo 1.x, at which rome has namespace shop, and that sees its providers, milan and turin, under a prefix each.
func seen1(told string) []client.Object {
	ready := condition(v1alpha1.ConditionReady, metav1.ConditionTrue, v1alpha1.ReasonOffering, "Workloads can be placed on the provider")
	objects := slices.Concat(
		transittest.Peer("milan", "10.69.0.0/16", false), transittest.Peer("turin", "10.65.0.0/16", false),
		transittest.Peer("rome", "10.200.0.0/16", true))
	for _, id := range []string{"milan", "turin"} {
		p := provider(id, id, ready)
		p.UID, p.Status.ObservedGeneration = types.UID("uid-of-"+id), 1
		objects = append(objects, p)
	}
	twin := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
		Name: "shop-rome", Labels: map[string]string{liqo.LabelRemoteClusterID: "rome"},
		Annotations: map[string]string{"liqo.io/managed-by-namespace-map": "liqo-tenant-rome/rome", "liqo.io/original-name": "shop"},
	}}
	config := func(namespace, name, key, text string) *corev1.ConfigMap {
		return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Data: map[string]string{key: text}}
	}
	reports := config("liqo-tenant-rome", report.Name, report.Key, told)
	reports.OwnerReferences = []metav1.OwnerReference{v1.OwnerOf(&liqo.Peer{Permit: transittest.Permit("rome")})}
	return append(objects, consumer("rome", "rome", ready), twin, reports,
		config(liqo.DefaultNamespace, liqo.IdentityName, liqo.IdentityKey, "own"))
}

// reported returns what rome's agent has told at a time: that it has acknowledged the networks of some providers.
func reported(t *testing.T, at time.Time, of ...string) string {
	t.Helper()
	r := report.Report{At: at, Views: map[string]netip.Prefix{}}
	for _, id := range of {
		key := sha256.Sum256([]byte("uid-of-" + id)) // As the broker calls them.
		r.Views[hex.EncodeToString(key[:10])] = netip.MustParsePrefix(map[string]string{"milan": "10.69.0.0/16", "turin": "10.65.0.0/16"}[id])
	}
	text, err := r.Format()
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// TestExplainUnreached asks why new pods wait of a consumer that has not told that it reaches the providers, and what to do.
func TestExplainUnreached(t *testing.T) {
	unchecked := func(objects []client.Object) []client.Object {
		for _, o := range objects {
			if c, is := o.(*v1alpha1.Consumer); is {
				c.Spec.Views = v1alpha1.ViewsUnchecked
			}
		}
		return objects
	}
	undecided := func(objects []client.Object) []client.Object {
		return slices.DeleteFunc(objects, func(o client.Object) bool { _, is := o.(*api.Configuration); return is })
	}
	unasked := func(objects []client.Object) []client.Object { return objects }
	for name, tc := range map[string]struct {
		reason string
		told   string
		given  func([]client.Object) []client.Object
	}{
		"never":      {"Nothing is installed there.", "", unasked},
		"unreadable": {"It tells what nobody understands.", "{", unasked},
		"silent":     {"It has told all, and does not run any more.", reported(t, now.Add(-time.Hour), "milan", "turin"), unasked},
		"behind":     {"It runs, and does not get on.", reported(t, now), unasked},
		"one":        {"Pods go where they are reached.", reported(t, now, "milan"), unasked},
		"all":        {"Nothing is missing.", reported(t, now, "milan", "turin"), unasked},
		"unchecked":  {"People want to know nothing.", "", unchecked},
		"undecided":  {"This cluster itself does not see them yet.", reported(t, now, "milan", "turin"), undecided},
	} {
		t.Run(name, func(t *testing.T) {
			out, errOut, err := newCLI1(t, tc.given(seen1(tc.told))...).run(t, "explain shop")
			if err != nil || errOut != "" {
				t.Fatalf("%s %v, %q", tc.reason, err, errOut)
			}
			golden.Check(t, "explain_unreached_"+name+".txt", out)
		})
	}

	// Who may not see what is told hears so, and all else.
	unseen := interceptor.NewClient(newFakeOf(t, v1.Line{}, seen1("")...), interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, options ...client.GetOption) error {
			if key.Name == report.Name {
				return apierrors.NewForbidden(corev1.Resource("configmaps"), key.Name, nil)
			}
			return c.Get(ctx, key, o, options...)
		},
	})
	out, errOut, err := (&cli{client: unseen}).run(t, "explain shop")
	if err != nil || !strings.Contains(errOut, "cannot be said: ") || !strings.Contains(errOut, "forbidden") ||
		!strings.Contains(out, "all providers are used that can be") || strings.Contains(out, "New pods wait") {
		t.Errorf("%v, %q\n%s", err, errOut, out)
	}
}

// TestPolicyCheck1 checks a policy on a broker with Liqo 1.x.
func TestPolicyCheck1(t *testing.T) {
	file := filepath.Join(t.TempDir(), "policy.yaml")
	if err := os.WriteFile(file, []byte(header+"metadata: {name: all}\nspec: {appliesTo: {scope: Default}}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	out, _, err := newCLI1(t, broker1()...).run(t, "policy check "+file)
	if err != nil || !strings.HasPrefix(out, "Policy all is good") || !strings.Contains(out, "It would choose for consumer rome (rome)") {
		t.Errorf("%v\n%s", err, out)
	}
}

// consuming1 is a consumer with Liqo 1.x that has a node for all providers and one for milan at its broker, which sees them under two
// prefixes, and another peer with a node.
func consuming1() []client.Object {
	broker := peer1("athens")
	v1.SayBroker(broker, true)
	perProvider := node1("athens-milan", "athens")
	perProvider.Labels[liqo.LabelProvider] = "milan"
	list := &api.Configuration{ObjectMeta: metav1.ObjectMeta{
		Namespace: "liqo-tenant-athens", Name: "athens", Generation: 2, Labels: map[string]string{liqo.LabelRemoteClusterID: "athens"},
		Annotations: map[string]string{"brokering.liqo.io/views": `{"views":["10.69.0.0/16","10.66.0.0/16"]}`},
	}}
	list.Spec.Remote.CIDR.Pod = []string{"10.201.0.0/16", "10.69.0.0/16", "10.66.0.0/16"}
	list.Status.Remote = &api.ClusterNetworks{CIDR: api.CIDRs{Pod: []string{"10.201.0.0/16", "10.64.0.0/16", "10.66.0.0/16"}}}
	list.Status.Conditions = []metav1.Condition{{Type: api.NetworkCIDRsConfigured, Status: metav1.ConditionTrue, ObservedGeneration: 2}}
	noted := pod("shop", "web-3", "athens", "10.201.3.9")
	noted.Annotations = map[string]string{"brokering.liqo.io/path": "direct", "brokering.liqo.io/provider": "bern"}
	return []client.Object{
		broker, peer1("bern"), tenant1("athens"), list, node1("athens", "athens"), perProvider, node1("bern", "bern"),
		pod("shop", "web-1", "athens", "10.64.3.7"), pod("shop", "web-2", "athens-milan", "10.66.0.8"), noted,
		pod("shop", "web-4", "athens", ""), pod("shop", "elsewhere", "bern", "10.64.0.1"), pod("shop", "here", "worker", "10.3.0.1"),
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop"}},
	}
}

// TestWhere1 asks where pods are with Liqo 1.x: on a consumer, who reaches those at a provider through the broker by their addresses, on a
// broker, and where there is neither.
func TestWhere1(t *testing.T) {
	row := func(out, pod string) []string {
		for line := range strings.Lines(out) {
			if cells := strings.Fields(line); len(cells) > 1 && cells[1] == pod {
				return cells
			}
		}
		return nil
	}
	out, errOut, err := (&cli{client: noBroker(newFakeOf(t, v1.Line{}, consuming1()...))}).run(t, "where shop")
	if err != nil || errOut != "" {
		t.Fatalf("%v; %s", err, errOut)
	}
	for pod, want := range map[string][]string{
		"web-1": {"shop", "web-1", "-", "relay", "Running", "True", "10.64.3.7", "3h"},
		"web-2": {"shop", "web-2", "milan", "relay", "Running", "True", "10.66.0.8", "3h"},
		"web-3": {"shop", "web-3", "-", "-", "Running", "True", "10.201.3.9", "3h"}, // The broker itself has it, whatever is written on it.
		"web-4": {"shop", "web-4", "-", "-", "Running", "True", "-", "3h"}, "elsewhere": nil, "here": nil,
	} {
		if got := row(out, pod); !slices.Equal(got, want) {
			t.Errorf("%s is %q, want %q:\n%s", pod, got, want, out)
		}
	}

	twin := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
		Name: "shop-rome", Labels: map[string]string{liqo.LabelRemoteClusterID: "rome"},
		Annotations: map[string]string{"liqo.io/managed-by-namespace-map": "liqo-tenant-rome/rome", "liqo.io/original-name": "shop"},
	}}
	out, _, err = newCLI1(t, append(broker1(), twin, pod("shop-rome", "web-1", "milan", "10.1.0.7"))...).run(t, "where shop")
	if err != nil || !strings.Contains(out, "rome       shop        web-1   milan") {
		t.Errorf("%v\n%s", err, out)
	}

	broker := peer1("athens")
	v1.SayBroker(broker, true)
	for says, objects := range map[string][]client.Object{
		"this cluster has no virtual node of its broker athens yet": {broker, tenant1("athens")},
		"nobody has said that a peer is a broker":                   {peer1("athens"), node1("athens", "athens")},
	} {
		if _, _, err := (&cli{client: noBroker(newFakeOf(t, v1.Line{}, objects...))}).run(t, "where -A"); err == nil ||
			!strings.Contains(err.Error(), says) {
			t.Errorf("%v, want %q", err, says)
		}
	}
}

// TestWhereAtHome1 has pods that stay at home with Liqo 1.x.
func TestWhereAtHome1(t *testing.T) {
	offloading := v1.ForgeOffloading("shop", liqo.MappingDefault, v1.Identity("rome"))
	offloading.Labels = nil // It is the consumer's own.
	_, errOut, err := (&cli{client: noBroker(newFakeOf(t, v1.Line{}, append(consuming1(), offloading)...))}).run(t, "where shop")
	if err != nil || !strings.HasPrefix(errOut, "Pods of namespace shop run at home") || !strings.Contains(errOut, "There are 1: here\n") {
		t.Errorf("%v, %q", err, errOut)
	}
}

// TestElsewhere1 runs commands for brokers on clusters with Liqo 1.x that are none.
func TestElsewhere1(t *testing.T) {
	consumes := &api.Tenant{ObjectMeta: metav1.ObjectMeta{Namespace: "liqo-tenant-rome", Name: "rome"}}
	consumes.Spec.ClusterID = "rome"
	for says, at := range map[string]client.WithWatch{
		"this cluster is a consumer: its broker athens (athens) decides where its pods run": newFakeOf(t, v1.Line{}, consuming1()...),

		"this cluster only provides: this is asked on the broker": newFakeOf(t, v1.Line{}, peer1("rome"), tenant1("rome"), consumes),

		"there is no broker on this cluster: it knows no objects of brokering.liqo.io": newFakeOf(t, v1.Line{}),
	} {
		for _, line := range []string{"explain shop", "providers", "status", "cordon milan"} {
			if out, _, err := (&cli{client: brokerless(at)}).run(t, line); err == nil || !strings.HasPrefix(err.Error(), says) || out != "" ||
				program.ExitCode(err) != program.ExitFailure {
				t.Errorf("%s: %q, %v, want %q", line, out, err, says)
			}
		}
	}
}

// TestNoLiqo asks a cluster without Liqo.
func TestNoLiqo(t *testing.T) {
	for _, line := range []string{"status", "explain shop", "where"} {
		_, _, err := (&cli{client: brokerless(newFakeOf(t, none{}))}).run(t, line)
		if err == nil || !strings.HasPrefix(err.Error(), "there is no broker on this cluster: ") {
			t.Errorf("%s: %v", line, err)
		}
	}
}

// TestVersion1 asks a cluster with Liqo 1.x for its versions.
func TestVersion1(t *testing.T) {
	runs := func(namespace, name, image string) *appsv1.Deployment {
		d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
		d.Spec.Template.Spec.Containers = []corev1.Container{{Name: "it", Image: image}}
		return d
	}
	objects := []client.Object{
		runs("liqo", "liqo-controller-manager", "liqo/liqo-controller-manager:v1.2.0"),
		runs(install.BrokerNamespace, install.BrokerName, "x/liqo-broker:v0.1.0"),
		runs(install.TransitName, install.TransitName, "x/liqo-broker-network-manager:v0.1.0"),
		runs(install.AgentName, install.AgentName, "x/liqo-broker-network-manager:v0.0.9"),
	}
	out, errOut, err := newCLI1(t, objects...).run(t, "version")
	if !errors.Is(err, errUnhealthy) || !strings.HasPrefix(errOut, "There are several versions: v0.0.9, v0.1.0.") {
		t.Errorf("%v, %q", err, errOut)
	}
	for _, want := range []string{"Liqo         v1.2.0", "daemon       v0.1.0", "transit      v0.1.0", "agent        v0.0.9"} {
		if !strings.Contains(out, want) {
			t.Errorf("it does not say %q:\n%s", want, out)
		}
	}
	if out, _, err := newCLI(t, objects...).run(t, "version"); err != nil || strings.Contains(out, "agent") {
		t.Errorf("with Liqo 0.9 there is an agent: %v\n%s", err, out)
	}
}

// TestDiagnose1 looks at a provider with Liqo 1.x, which needs nothing of this project, and where Liqo has made the ServiceAccount of a
// gateway again: the tunnel is connected, and new pods are not reached.
func TestDiagnose1(t *testing.T) {
	manager := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "liqo", Name: "liqo-controller-manager"}}
	manager.Spec.Template.Spec.Containers = []corev1.Container{{Name: "it", Image: "liqo/liqo-controller-manager:v1.2.0"}}
	manager.Status.ReadyReplicas, manager.Status.UpdatedReplicas = 1, 1
	rome, in := peer1("rome"), metav1.ObjectMeta{
		Namespace: "liqo-tenant-rome", Name: "rome", Labels: map[string]string{liqo.LabelRemoteClusterID: "rome"},
	}
	rome.Status.Modules.Authentication.Conditions = []api.Condition{{Type: api.AuthTenantStatus, Status: api.StatusReady}}
	consumes := &api.Tenant{ObjectMeta: in}
	consumes.Spec.ClusterID = "rome"
	tunnel, networks := &api.Connection{ObjectMeta: in, Status: api.ConnectionStatus{Value: api.Connected}}, &api.Configuration{ObjectMeta: in}
	networks.Spec.Remote.CIDR.Pod = []string{"10.201.0.0/16"}
	networks.Status.Remote = networks.Spec.Remote.DeepCopy()
	networks.Status.Conditions = []metav1.Condition{{Type: api.NetworkCIDRsConfigured, Status: metav1.ConditionTrue}}
	account := &corev1.ServiceAccount{ObjectMeta: in}
	account.CreationTimestamp = ago(7 * time.Minute)
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Namespace: in.Namespace, Name: "gw-rome-5d8f-x2k", CreationTimestamp: ago(time.Hour),
		Labels: map[string]string{"networking.liqo.io/component": "gateway", "networking.liqo.io/gateway-name": "rome"},
	}}
	pod.Spec.ServiceAccountName, pod.Status.Phase = "rome", corev1.PodRunning
	out, _, err := newCLI1(
		t, manager, rome, tenant1("rome"), consumes, tunnel, networks, slice1("rome", true, true), account, pod,
	).run(t, "diagnose")
	if !errors.Is(err, errUnhealthy) {
		t.Errorf("%v", err)
	}
	golden.Check(t, "diagnose_gateway.txt", out)
}

// none is a line of Liqo that nobody has.
type none struct{ v1.Line }

// AddToScheme registers nothing.
func (none) AddToScheme(*runtime.Scheme) error { return nil }

// TestJoinSays1 joins clusters with Liqo 1.x that are not peered: the command that peers them names the kubeconfig and the contexts that
// were given.
func TestJoinSays1(t *testing.T) {
	folder := t.TempDir()
	file, other := filepath.Join(folder, "all.yaml"), filepath.Join(folder, "rome 1.yaml")
	const contexts = "apiVersion: v1\nkind: Config\ncurrent-context: milan\n" +
		"contexts: [{name: milan, context: {}}, {name: turin, context: {}}]\n"
	for _, name := range []string{file, other} {
		if err := os.WriteFile(name, []byte(contexts), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	at := func(id string, objects ...client.Object) client.WithWatch {
		manager := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "liqo", Name: "liqo-controller-manager"}}
		manager.Spec.Template.Spec.Containers = []corev1.Container{{Name: "it", Image: "liqo/liqo-controller-manager:v1.2.0"}}
		called := &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Namespace: "liqo", Name: liqo.IdentityName}, Data: map[string]string{liqo.IdentityKey: id},
		}
		return newFakeOf(t, v1.Line{}, append(objects, manager, called)...)
	}
	c := &cli{
		client: at("milan", daemon(1, 1, "--with-orchestrator")),
		others: map[string]client.Client{"turin": at("turin"), other: at("rome")},
	}
	out, _, err := c.runArgs(t, []string{"join", "--kubeconfig", file, "--provider", "turin", "--consumer", other})
	if err == nil || !strings.HasPrefix(err.Error(), "requirement: 2 of 2 peerings are missing: run the commands above") {
		t.Errorf("%v", err)
	}
	for _, want := range []string{
		"liqoctl peer --kubeconfig " + file + " --context milan --remote-kubeconfig " + file + " --remote-context turin\n",
		"liqoctl peer --kubeconfig '" + other + "' --remote-kubeconfig " + file + " --remote-context milan\n",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("it does not print %s\n%s", want, out)
		}
	}
}
