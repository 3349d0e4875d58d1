// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/go-logr/logr/funcr"
	"github.com/google/go-cmp/cmp"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/yaml"

	"github.com/capacitorset/liqo-broker/pkg/daemon"
	"github.com/capacitorset/liqo-broker/pkg/liqo/lines"
	"github.com/capacitorset/liqo-broker/pkg/liqo/v09/liqotest"
	"github.com/capacitorset/liqo-broker/pkg/snapshot"
	"github.com/capacitorset/liqo-broker/pkg/snapshot/snapshottest"
	"github.com/capacitorset/liqo-broker/pkg/webhook/isolation"
	"github.com/capacitorset/liqo-broker/test/admission"
)

// TestGuardWebhooks checks about what the API server asks the guard, in which namespaces, and what counts while the guard does not answer.
// That the paths are served holds for each of them: the API server refuses what it cannot ask about.
func TestGuardWebhooks(t *testing.T) {
	asked, narrowed := map[string]string{}, map[string][]admissionregistrationv1.MatchCondition{}
	paths := map[string]bool{}
	for _, w := range webhooksOf(t, "guard") {
		asked[w.Name] = fmt.Sprintf("%s%s, else %s", rulesOf(w.Rules), selectorsOf(t, &w), *w.FailurePolicy)
		narrowed[w.Name], paths[*w.ClientConfig.Service.Path] = w.MatchConditions, true
	}
	const peers = "CREATE UPDATE DELETE discovery.liqo.io/v1alpha1 resourcerequests resourcerequests/status; " +
		"CREATE UPDATE DELETE sharing.liqo.io/v1alpha1 resourceoffers resourceoffers/status; " +
		"CREATE UPDATE DELETE net.liqo.io/v1alpha1 networkconfigs networkconfigs/status; " +
		"CREATE UPDATE DELETE virtualkubelet.liqo.io/v1alpha1 namespacemaps namespacemaps/status"
	const peers1 = "CREATE UPDATE DELETE authentication.liqo.io/v1beta1 resourceslices resourceslices/status renews renews/status tenants " +
		"tenants/status; CREATE UPDATE DELETE offloading.liqo.io/v1beta1 namespacemaps namespacemaps/status; " +
		"CREATE UPDATE DELETE networking.liqo.io/v1beta1 configurations configurations/status gatewayservers gatewayclients publickeies; " +
		"CREATE UPDATE DELETE ipam.liqo.io/v1alpha1 ips ips/status"
	const ofPods = "CREATE /v1 pods; CREATE UPDATE virtualkubelet.liqo.io/v1alpha1 shadowpods; " +
		"CREATE UPDATE offloading.liqo.io/v1beta1 shadowpods"
	const inTwins = " in namespaces with liqo.io/remote-cluster-id,!liqo.io/tenant-namespace, else Fail"
	want := map[string]string{
		"confine-services": "CREATE UPDATE /v1 services" + inTwins,
		"services":         "CREATE UPDATE /v1 services" + inTwins,
		"isolate":          ofPods + inTwins,
		"allowance":        ofPods + inTwins,
		"guard-identities": "CREATE certificates.k8s.io/v1 certificatesigningrequests, else Fail",
		"peers":            peers + " in namespaces with discovery.liqo.io/tenant-namespace, else Ignore", // Liqo does not ask again.
		"peers-liqo1":      peers1 + " in namespaces with liqo.io/tenant-namespace, else Fail",            // Liqo asks again.
		"mappings": "UPDATE virtualkubelet.liqo.io/v1alpha1 namespacemaps/status in namespaces with discovery.liqo.io/tenant-namespace " +
			"of objects with liqo.io/replication=true, else Fail",
		"copied-liqo1": "UPDATE offloading.liqo.io/v1beta1 namespacemaps/status; UPDATE authentication.liqo.io/v1beta1 resourceslices/status " +
			"in namespaces with liqo.io/tenant-namespace of objects with liqo.io/replication=true, else Fail",
		"tunnels": "CREATE UPDATE net.liqo.io/v1alpha1 tunnelendpoints; CREATE UPDATE networking.liqo.io/v1beta1 configurations " +
			"configurations/status, else Ignore", // Networks do not wait for the guard.
		"audit": "CREATE UPDATE DELETE brokering.liqo.io/v1alpha1 registries offers capacityrequests purchases sales, else Ignore", // Nor people.
	}
	if diff := cmp.Diff(want, asked); diff != "" {
		t.Errorf("about what the guard is asked: -want +got\n%s", diff)
	}
	for name, conditions := range narrowed {
		if strings.Contains(want[name], "remote-cluster-id") && !strings.HasPrefix(want[name], ofPods) && len(conditions) > 0 {
			t.Errorf("%s is not asked about all that peers write: %v", name, conditions)
		}
	}

	// About pods and wishes for some it is, unless a wish is written that was there with the same pod: both webhooks admit that.
	wish := func(image string) map[string]any {
		return map[string]any{"metadata": map[string]any{"name": image}, "spec": map[string]any{"pod": map[string]any{"image": image}}}
	}
	relabelled := wish("a")
	relabelled["metadata"] = map[string]any{"labels": map[string]any{"app": "web"}}
	for _, tc := range []struct {
		reason, operation string
		before, after     any
		asked             bool
	}{
		{"A new one counts.", "CREATE", nil, wish("a"), true},
		{"Another pod is another wish.", "UPDATE", wish("a"), wish("b"), true},
		{"The same one is none.", "UPDATE", wish("a"), wish("a"), false},
		{"Nor with other labels.", "UPDATE", wish("a"), relabelled, false},
		{"One without a pod is looked at.", "UPDATE", wish("a"), map[string]any{}, true},
		{"And what becomes of it.", "UPDATE", map[string]any{}, wish("a"), true},
		{"Also if it stays like that.", "UPDATE", map[string]any{}, map[string]any{}, true},
	} {
		for _, name := range []string{"isolate", "allowance"} {
			if len(narrowed[name]) != 1 {
				t.Fatalf("%s has %d conditions", name, len(narrowed[name]))
			}
			got := admission.Holds(t, narrowed[name][0].Expression, map[string]any{
				"request": map[string]any{"operation": tc.operation}, "object": tc.after, "oldObject": tc.before,
			})
			if got != tc.asked {
				t.Errorf("%s is asked: %t. %s", name, got, tc.reason)
			}
		}
	}

	// Whoever asks for a certificate as Liqo does, or to see that it is refused, is asked about.
	for _, tc := range []struct {
		user, signer string
		want         bool
	}{
		{"system:serviceaccount:liqo:liqo-auth", "kubernetes.io/kube-apiserver-client", true},
		{"system:serviceaccount:elsewhere:liqo-auth", "kubernetes.io/kube-apiserver-client", true},
		{"system:serviceaccount:liqo:liqo-controller-manager", "kubernetes.io/kube-apiserver-client", true},
		{"system:serviceaccount:liqo:not-liqo-controller-manager", "kubernetes.io/kube-apiserver-client", false},
		{"system:serviceaccount:liqo-broker-connector:liqo-broker-connector", "kubernetes.io/kube-apiserver-client", true},
		{"system:serviceaccount:liqo:liqo-auth", "kubernetes.io/kubelet-serving", false},
		{"system:node:a", "kubernetes.io/kube-apiserver-client", false},
	} {
		input := map[string]any{
			"request": map[string]any{"userInfo": map[string]any{"username": tc.user}},
			"object":  map[string]any{"spec": map[string]any{"signerName": tc.signer}},
		}
		got := true
		for _, c := range narrowed["guard-identities"] {
			got = got && admission.Holds(t, c.Expression, input)
		}
		if got != tc.want {
			t.Errorf("a certificate by %s for %s: the guard is asked: %t, want %t", tc.signer, tc.user, got, tc.want)
		}
	}

	api := snapshottest.NewClient(t, interceptor.Funcs{})
	g := &guard{
		guardOptions: guardOptions{ReplicaOptions: daemon.ReplicaOptions{LiqoNamespace: "liqo"}}, level: isolation.DefaultLevel,
		replica: &daemon.Replica{Scheme: liqotest.Scheme(t)},
	}
	for _, of := range lines.All() {
		served, err := g.handlers(snapshot.New(of, api, "own", nil), nil, nil, api)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(slices.Sorted(maps.Keys(served)), slices.Sorted(maps.Keys(paths))); diff != "" {
			t.Errorf("with Liqo %s, the paths that are asked, and those that are served: -served +asked\n%s", of.Name(), diff)
		}
	}
}

// TestGuardIsAskedByLiqo holds that the guard is asked about whoever asks for certificates as Liqo does, with each line.
func TestGuardIsAskedByLiqo(t *testing.T) {
	asking := map[string]string{"0.9": "system:serviceaccount:liqo:liqo-auth", "1.x": "system:serviceaccount:liqo:liqo-controller-manager"}
	for _, of := range lines.All() {
		if !of.IdentityRules().Requests(asking[of.Name()]) {
			t.Errorf("with Liqo %s, %q does not ask as Liqo does", of.Name(), asking[of.Name()])
		}
		for _, other := range otherIdentities(of) {
			if other.Requests(asking[of.Name()]) {
				t.Errorf("with Liqo %s, %q is taken for another line's", of.Name(), asking[of.Name()])
			}
		}
		if others := otherIdentities(of); len(others) != len(lines.All())-1 {
			t.Errorf("with Liqo %s there are the rules of %d other lines", of.Name(), len(others))
		}
	}
}

// apiKinds are the kinds that an API server has, by group and version.
type apiKinds map[string]string

func (k apiKinds) ServerResourcesForGroupVersion(version string) (*metav1.APIResourceList, error) {
	kind, known := k[version]
	if !known {
		return nil, apierrors.NewNotFound(schema.GroupResource{}, version)
	}
	return &metav1.APIResourceList{APIResources: []metav1.APIResource{{Kind: kind}}}, nil
}

// TestGuardFindsLiqo holds that the guard goes on with the kinds of both lines, and says what it refuses then.
func TestGuardFindsLiqo(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := lines.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	const refuses = "Refusing all certificates for peers of another line of Liqo"
	for name, tc := range map[string]struct {
		reason string
		kinds  apiKinds
		want   string // Empty if the guard stops.
		says   bool
	}{
		"Zero": {"it runs", apiKinds{"discovery.liqo.io/v1alpha1": "ForeignCluster"}, "0.9", false},
		"One":  {"so does this", apiKinds{"core.liqo.io/v1beta1": "ForeignCluster"}, "1.x", false},
		"Both": {
			"peers of the first one are here",
			apiKinds{"discovery.liqo.io/v1alpha1": "ForeignCluster", "core.liqo.io/v1beta1": "ForeignCluster"}, "0.9", true,
		},
		"None": {"there are no peers", apiKinds{}, "", false},
	} {
		t.Run(name, func(t *testing.T) {
			var said []string
			log := funcr.New(func(_, line string) { said = append(said, line) }, funcr.Options{})
			got, err := (&guard{replica: &daemon.Replica{Scheme: scheme, Log: log}}).findLine(tc.kinds)
			if (err == nil) != (tc.want != "") || err == nil && got.Name() != tc.want {
				t.Errorf("%s: findLine() = %v, %v, want %s", tc.reason, got, err, tc.want)
			}
			says := slices.ContainsFunc(said, func(line string) bool {
				return strings.Contains(line, refuses) && strings.Contains(line, "delete the definitions of the one that does not run")
			})
			if says != tc.says {
				t.Errorf("%s: it says %q", tc.reason, said)
			}
		})
	}
}

// TestGuardKinds holds that what a line of Liqo watches is what the guard is asked about, as far as peers write it.
func TestGuardKinds(t *testing.T) {
	rules := map[string]bool{}
	for _, w := range webhooksOf(t, "guard") {
		for _, r := range w.Rules {
			for _, resource := range r.Resources {
				rules[w.Name+" "+resource+"."+r.APIVersions[0]+"."+r.APIGroups[0]] = true
			}
		}
	}
	for _, of := range lines.All() {
		kinds := of.Kinds()
		for _, asked := range []struct {
			webhook string
			object  client.Object
		}{{"isolate", kinds.Wish}, {"allowance", kinds.Wish}, {"tunnels", kinds.Network}} {
			if resource := resourceOf(t, asked.object); !rules[asked.webhook+" "+resource.String()] {
				t.Errorf("with Liqo %s, %s is not asked about %s", of.Name(), asked.webhook, resource)
			}
		}
	}
}

// served is what a kind is called in a URL of the API server.
type served struct{ group, version, name string }

func (r served) String() string { return r.name + "." + r.version + "." + r.group }

// resourceOf returns that of a kind of Liqo, of any line.
func resourceOf(t *testing.T, o client.Object) served {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := lines.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	kind, err := apiutil.GVKForObject(o, scheme)
	if err != nil {
		t.Fatal(err)
	}
	plural, _ := meta.UnsafeGuessKindToResource(kind)
	return served{kind.Group, kind.Version, plural.Resource}
}

// TestGuardRights compares deploy/guard with what the guard does, with all lines of Liqo: what it watches of Liqo, the line says.
func TestGuardRights(t *testing.T) {
	manifest, err := os.ReadFile("../../deploy/guard/rbac.yaml")
	if err != nil {
		t.Fatal(err)
	}
	granted := map[string]map[string][]string{}
	for document := range strings.SplitSeq(string(manifest), "\n---\n") {
		var role rbacv1.ClusterRole // A Role has the same fields.
		if err := yaml.Unmarshal([]byte(document), &role); err != nil {
			t.Fatal(err)
		}
		if role.Kind == "ClusterRole" || role.Kind == "Role" {
			granted[role.Namespace] = grantedBy(t, role.Rules)
		}
	}
	read, seen := []string{"get", "list", "watch"}, []string{"list", "watch"}
	everywhere := map[string][]string{
		"namespaces": read, "nodes": read, "pods": seen, "secrets liqo-remote-certificate": {"get"},
		// By which rights a name that a peer of Liqo 1.x chooses is somebody's: who cannot list them gives no peer a certificate.
		"clusterrolebindings.rbac.authorization.k8s.io": {"list"}, "rolebindings.rbac.authorization.k8s.io": {"list"},
		"resourcequotas":                    {"create", "get", "list", "patch", "watch"},
		"networkpolicies.networking.k8s.io": {"create", "get", "list", "patch", "watch"},
		"mutatingwebhookconfigurations.admissionregistration.k8s.io liqo-broker-guard":   {"get", "patch"},
		"validatingwebhookconfigurations.admissionregistration.k8s.io liqo-broker-guard": {"get", "patch"},
	}
	for _, of := range lines.All() {
		kinds := of.Kinds()
		watched := slices.Concat([]client.Object{kinds.Record, kinds.Offer, kinds.Network, kinds.OwnNetwork}, kinds.Tunnels, kinds.Peering)
		for _, kind := range watched {
			r := resourceOf(t, kind)
			everywhere[need{group: r.group, resource: r.name}.String()] = read
		}
		r := resourceOf(t, kinds.Wish)
		everywhere[need{group: r.group, resource: r.name}.String()] = seen
	}
	want := map[string]map[string][]string{
		"":        everywhere,
		"liqo":    {"configmaps liqo-clusterid-configmap": {"get"}, "secrets auth-token": {"get"}},
		"default": {"events": {"create"}}, // Of what is in no namespace.
		"liqo-broker-guard": {
			"leases.coordination.k8s.io": {"create", "get", "update"}, "events": {"create", "patch"},
		},
	}
	if diff := cmp.Diff(want, granted); diff != "" {
		t.Errorf("deploy/guard/rbac.yaml: -needed +granted, by namespace\n%s", diff)
	}
}

// rulesOf says about what a webhook is asked.
func rulesOf(rules []admissionregistrationv1.RuleWithOperations) string {
	all := make([]string, 0, len(rules))
	for _, r := range rules {
		words := make([]string, 0, len(r.Operations)+1+len(r.Resources))
		for _, o := range r.Operations {
			words = append(words, string(o))
		}
		words = append(words, strings.Join(r.APIGroups, ",")+"/"+strings.Join(r.APIVersions, ","))
		all = append(all, strings.Join(append(words, r.Resources...), " "))
	}
	return strings.Join(all, "; ")
}

// selectorsOf says where a webhook is asked.
func selectorsOf(t *testing.T, w *admissionregistrationv1.ValidatingWebhook) string {
	t.Helper()
	var said strings.Builder
	for _, at := range []struct {
		what     string
		selector *metav1.LabelSelector
	}{{" in namespaces with ", w.NamespaceSelector}, {" of objects with ", w.ObjectSelector}} {
		if at.selector == nil {
			continue
		}
		read, err := metav1.LabelSelectorAsSelector(at.selector)
		if err != nil {
			t.Fatal(err)
		}
		said.WriteString(at.what + read.String())
	}
	return said.String()
}
