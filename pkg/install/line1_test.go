// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package install

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/meta/testrestmapper"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/capacitorset/liqo-broker/pkg/liqo"
	v1 "github.com/capacitorset/liqo-broker/pkg/liqo/v1"
	"github.com/capacitorset/liqo-broker/pkg/liqo/v1/api"
)

// without is a mapper that does not have a kind.
type without struct {
	meta.RESTMapper

	kind string
}

func (w without) RESTMapping(kind schema.GroupKind, versions ...string) (*meta.RESTMapping, error) {
	if kind.Kind == w.kind {
		return nil, &meta.NoKindMatchError{GroupKind: kind, SearchedVersions: versions}
	}
	return w.RESTMapper.RESTMapping(kind, versions...)
}

// cluster1 is a cluster with Liqo 1.x, and what an API server and the controllers of Kubernetes do there.
type cluster1 struct {
	// missing is a kind that it does not have.
	missing string
	// denied is whether its user has no rights.
	denied bool
	// manager is the Deployment of Liqo's controller manager; nil if there is none.
	manager *appsv1.Deployment
	objects []client.Object
	// written is what was written, in order, and slow has no transit close any gateway.
	written []string
	slow    bool
}

func manager1(image string, args ...string) *appsv1.Deployment {
	d := pod("controller-manager", args...)
	d.Spec.Template.Spec.Containers[0].Image = image
	return d
}

func stock1(objects ...client.Object) *cluster1 {
	return &cluster1{
		manager: manager1("ghcr.io/liqotech/liqo-controller-manager:v1.2.0", "--networking-enabled=true"), objects: objects,
	}
}

// client returns a client of it.
func (c *cluster1) client(t *testing.T) client.Client {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), v1.Line{}.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	kinds, is := testrestmapper.TestOnlyStaticRESTMapper(scheme).(meta.PriorityRESTMapper)
	definition := schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"}
	definitions := meta.NewDefaultRESTMapper([]schema.GroupVersion{definition.GroupVersion()})
	definitions.Add(definition, meta.RESTScopeRoot)
	if !is {
		t.Fatalf("the mapper is a %T", kinds)
	}
	builder := fake.NewClientBuilder().WithScheme(scheme).
		WithRESTMapper(without{meta.FirstHitRESTMapper{MultiRESTMapper: meta.MultiRESTMapper{kinds, definitions}}, c.missing}).
		WithObjects(c.objects...)
	if c.manager != nil {
		builder = builder.WithObjects(c.manager)
	}
	for _, kind := range []client.Object{&corev1.ConfigMap{}, &rbacv1.RoleBinding{}, &rbacv1.Role{}, &corev1.ResourceQuota{}} {
		builder = builder.WithIndex(kind, "metadata.name", func(o client.Object) []string { return []string{o.GetName()} })
	}
	return builder.WithInterceptorFuncs(interceptor.Funcs{
		Create: func(ctx context.Context, to client.WithWatch, o client.Object, options ...client.CreateOption) error {
			if review, is := o.(*authorizationv1.SelfSubjectAccessReview); is {
				review.Status.Allowed = !c.denied
				return nil
			}
			return to.Create(ctx, o, options...)
		},
		Patch: c.patch,
		Delete: func(ctx context.Context, to client.WithWatch, o client.Object, options ...client.DeleteOption) error {
			chosen := &client.DeleteOptions{}
			chosen.ApplyOptions(options)
			if len(chosen.DryRun) == 0 {
				c.written = append(c.written, "delete "+objects{to}.describeObject(o))
			}
			return to.Delete(ctx, o, options...)
		},
	}).Build()
}

// patch is what an API server does, for the fake client that does not. What runs is ready at once, and the transit does what it is for.
func (c *cluster1) patch(ctx context.Context, to client.WithWatch, o client.Object, p client.Patch, options ...client.PatchOption) error {
	chosen := &client.PatchOptions{}
	chosen.ApplyOptions(options)
	if p.Type() != types.ApplyPatchType {
		if len(chosen.DryRun) == 0 {
			c.written = append(c.written, "patch "+objects{to}.describeObject(o))
		}
		return to.Patch(ctx, o, p, options...)
	}
	want, is := o.(*unstructured.Unstructured)
	if !is {
		return fmt.Errorf("a %T is applied", o)
	}
	live := &unstructured.Unstructured{}
	live.SetGroupVersionKind(want.GroupVersionKind())
	err := to.Get(ctx, client.ObjectKeyFromObject(want), live)
	if client.IgnoreNotFound(err) != nil {
		return err
	}
	if err == nil && len(chosen.DryRun) > 0 { // What was applied once is the same again, but for what these tests change.
		after := live.DeepCopy()
		for _, path := range [][]string{{"spec", "template", "spec", "containers"}, {"data"}, {"rules"}} {
			if value, found, _ := unstructured.NestedFieldCopy(want.Object, path...); found {
				if err := unstructured.SetNestedField(after.Object, value, path...); err != nil {
					return err
				}
			}
		}
		want.Object = after.Object
		return nil
	}
	if len(chosen.DryRun) > 0 {
		return nil
	}
	c.written = append(c.written, "apply "+describe(want))
	if err == nil {
		want.SetResourceVersion(live.GetResourceVersion())
		return to.Update(ctx, want)
	}
	switch want.GetKind() {
	case kindDeployment:
		n := replicas(want)
		want.Object["status"] = map[string]any{"replicas": n, "updatedReplicas": n, "availableReplicas": n}
		if want.GetName() == TransitName && !c.slow {
			for _, namespace := range []string{TransitName, "liqo-tenant-rome"} {
				if err := to.Create(ctx, ofTransit(&api.FirewallConfiguration{}, namespace, v1.TransitFirewall)); err != nil {
					return err
				}
			}
		}
	case "CustomResourceDefinition":
		want.Object["status"] = map[string]any{"conditions": []any{map[string]any{"type": "Established", "status": "True"}}}
	}
	return to.Create(ctx, want)
}

func replicas(o *unstructured.Unstructured) int64 {
	n, found, _ := unstructured.NestedInt64(o.Object, "spec", "replicas")
	if !found {
		return 1
	}
	return n
}

// ofTransit is an object that is kept for the transit.
func ofTransit(o client.Object, namespace, name string) client.Object {
	o.SetNamespace(namespace)
	o.SetName(name)
	o.SetLabels(map[string]string{liqo.LabelBrokerManaged: liqo.BrokerManaged})
	return o
}

// peer1 is a peer with its tenant namespace, and if it provides with this cluster's credentials there.
func peer1(id string, provides bool) []client.Object {
	record := &api.ForeignCluster{ObjectMeta: metav1.ObjectMeta{Name: id, Annotations: map[string]string{"kept": "yes"}}}
	record.Spec.ClusterID = id
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "liqo-tenant-" + id, Labels: map[string]string{
		liqo.LabelTenantNamespace: "true", liqo.LabelRemoteClusterID: id,
	}}}
	if !provides {
		return []client.Object{record, namespace}
	}
	identity := &api.Identity{ObjectMeta: metav1.ObjectMeta{Namespace: namespace.Name, Name: "controlplane-" + id}}
	identity.Spec.ClusterID, identity.Spec.Type, identity.Spec.Namespace = id, api.IdentityControlPlane, new("liqo-tenant-own")
	identity.Status.KubeconfigSecretRef = &corev1.LocalObjectReference{Name: "kubeconfig-controlplane-" + id}
	return []client.Object{record, namespace, identity}
}

// uses lets a peer consume from this cluster.
func uses(id string) client.Object {
	tenant := &api.Tenant{ObjectMeta: metav1.ObjectMeta{Namespace: "liqo-tenant-" + id, Name: id}}
	tenant.Spec.ClusterID = id
	return tenant
}

// saidOfMilan is a peer, milan, of which people have said that it is a broker.
func saidOfMilan() []client.Object {
	all := peer1("milan", true)
	v1.SayBroker(all[0], true)
	return all
}

func together(parts ...any) []client.Object {
	var all []client.Object
	for _, part := range parts {
		switch part := part.(type) {
		case client.Object:
			all = append(all, part)
		case []client.Object:
			all = append(all, part...)
		}
	}
	return all
}

func daemon1(modes ...string) *appsv1.Deployment {
	return ofOurs(BrokerName, "x/liqo-broker:v0.1.0", append(modes, "--leader-elect")...)
}

// slice1 is what a consumer asks of this cluster, and what was decided.
func slice1(name, class string, accepted bool) *api.ResourceSlice {
	s := &api.ResourceSlice{ObjectMeta: metav1.ObjectMeta{Namespace: "liqo-tenant-rome", Name: name, Labels: map[string]string{
		liqo.LabelReplicated: "true", liqo.LabelOrigin: "rome",
	}}}
	s.Spec.Class = class
	if accepted {
		s.Status.Conditions = []api.ResourceSliceCondition{{Type: api.SliceResources, Status: api.SliceAccepted}}
	}
	return s
}

// TestRefused1 has each command meet a cluster with Liqo 1.x for which it is not made: nothing is written, and the error says what to do.
func TestRefused1(t *testing.T) {
	install, uninstall, upgrade := (*Installer).Install, (*Installer).Uninstall, (*Installer).Upgrade
	prepare, unprepare, guard, unguard := (*Installer).Prepare, (*Installer).Unprepare, (*Installer).Guard, (*Installer).Unguard
	type commands = []deed
	onwards := commands{install, prepare, guard}
	all := append(commands{uninstall, unprepare, unguard}, onwards...)
	managed := func(d *appsv1.Deployment) *cluster1 { return &cluster1{manager: d} }
	lacks := func(kind string) *cluster1 {
		c := stock1()
		c.missing = kind
		return c
	}
	denied := stock1()
	denied.denied = true
	twin := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
		Name: "shop-rome", Labels: map[string]string{liqo.LabelRemoteClusterID: "rome"},
		Annotations: map[string]string{"liqo.io/managed-by-namespace-map": "liqo-tenant-rome/rome"},
	}}
	broker := daemon1("--with-catalog", "--with-orchestrator")
	const image = "ghcr.io/liqotech/liqo-controller-manager:"
	for name, tc := range map[string]struct {
		reason  string
		cluster *cluster1
		options Options
		do      commands
		says    string
	}{
		"KindsOnly": {"Liqo itself is gone.", managed(nil), Options{}, all, "no Deployment liqo/liqo-controller-manager"},
		"OtherImage": {
			"Its version cannot be seen.", managed(manager1("x/controller-manager:latest")), Options{}, all, "and the broker needs Liqo v1.2.0",
		},
		"OtherLiqo": {
			"Nobody has tried it.", managed(manager1(image + "v1.1.3")), Options{}, onwards,
			"this cluster has Liqo v1.1.3, and of 1.x v1.2.0 was tried: with --liqo-unsupported",
		},
		"OldKubernetes": {
			"What peers write would be bounded only while the guard runs.", lacks("ValidatingAdmissionPolicy"), Options{}, onwards,
			"no admission policies, by which peers are bounded with Liqo 1.x: it must be 1.30 or later",
		},
		"NoSlices": {
			"A definition is not there.", lacks("FirewallConfiguration"), Options{}, onwards,
			"not its kind FirewallConfiguration.networking.liqo.io in version v1beta1",
		},
		"NoNetwork": {
			"Nothing would lead to a pod.", managed(manager1(image+"v1.2.0", "--networking-enabled=false")), Options{}, onwards,
			"--networking-enabled=false: set the value networking.enabled of Liqo's chart to true",
		},
		"NoRights": {"Who calls may not.", denied, Options{}, all, "you lack the rights of an administrator of this cluster"},
		"CatalogAlone": {
			"There is a folder for it.", stock1(), Options{Modes: []string{"catalog"}}, commands{install},
			"a catalog alone is no broker: kubectl apply",
		},
		"InstallsCatalog": {
			"Its daemon would answer no webhook.", stock1(daemon1("--with-catalog")), Options{}, commands{install},
			"this cluster is a catalog, whose daemon would not answer",
		},
		"UpgradesCatalog": {
			"It has a folder.", stock1(daemon1("--with-catalog")), Options{}, commands{upgrade}, "no broker, but a catalog: kubectl apply",
		},
		"UninstallsCatalog": {
			"It has a folder.", stock1(daemon1("--with-catalog")), Options{}, commands{uninstall}, "no broker, but a catalog: kubectl delete",
		},
		"UpgradesNobody": {"It is none.", stock1(), Options{}, commands{upgrade}, "no broker: install makes it one"},
		"UpgradesConsumer": {
			"It has the version of its broker.", stock1(saidOfMilan()...), Options{}, commands{upgrade},
			"no broker, but a consumer of milan: run prepare",
		},
		"InstallsConsumer": {
			"It may not be meant.", stock1(saidOfMilan()...), Options{}, commands{install}, "with --also-broker it becomes a broker besides",
		},
		"UninstallsConsumer": {
			"Its agent stays.", stock1(saidOfMilan()...), Options{}, commands{uninstall}, "no broker, but a consumer of milan: run unprepare",
		},
		"UninstallsGuarded": {
			"Its guard stays.", stock1(ofOurs(GuardName, "x/liqo-broker:v0.1.0")), Options{}, commands{uninstall}, "but guarded: run unguard",
		},
		"UnguardsBroker": {
			"It needs it.", stock1(broker.DeepCopy(), ofOurs(GuardName, "x/liqo-broker:v0.1.0")), Options{}, commands{unguard},
			"a broker, whose guard goes with it: run uninstall",
		},
		"UninstallsUsed": {
			"Consumers have pods there.", stock1(together(broker.DeepCopy(), twin, peer1("rome", false))...), Options{}, commands{uninstall},
			"consumers still use this broker: 1 namespaces of theirs are here (shop-rome)",
		},
		"Nobody": {"It has no peer.", stock1(), Options{}, commands{prepare}, "no peer of this cluster is the broker"},
		"NobodyOfThem": {
			"It was mistyped.", stock1(together(peer1("milan", true), peer1("oslo", true))...), Options{Broker: "milano"},
			commands{prepare, unprepare}, `is the broker (--broker="milano"), with which it must be peered. Its peers: milan, oslo`,
		},
		"PreparesBroker": {
			"The kubeconfig is that of the broker, whose only peer is its provider.", stock1(together(broker.DeepCopy(), peer1("turin", true))...),
			Options{}, commands{prepare}, "this cluster is a broker: if it is to be the consumer of another broker besides, say --broker",
		},
		"PreparesProvider": {
			"The kubeconfig is that of a provider, whose only peer is its broker.", stock1(append(peer1("milan", false), uses("milan"))...),
			Options{}, commands{prepare}, "milan uses this cluster, and not the other way round",
		},
		"TwoPeers": {
			"Any may be it.", stock1(together(peer1("milan", true), peer1("oslo", true))...), Options{}, commands{prepare},
			"which peer is the broker?",
		},
		"NotItsBroker": {
			"It was never told so.", stock1(together(saidOfMilan(), peer1("oslo", true))...), Options{Broker: "oslo"}, commands{unprepare},
			"no consumer of oslo: its ForeignCluster has no annotation brokering.liqo.io/broker=true",
		},
		"NewerTransit": {
			"It was installed by a later plugin.", stock1(ofOurs(TransitName, "x/liqo-broker-network-manager:v9.0.0")),
			Options{Tag: "v0.2.0"}, onwards, "Deployment liqo-broker-transit/liqo-broker-transit is v9.0.0 here, newer than v0.2.0",
		},
		"Downgrades": {
			"It runs with a later daemon.", stock1(ofOurs(BrokerName, "x/liqo-broker:v0.10.0", "--with-orchestrator")),
			Options{Tag: "v0.9.9"}, commands{install, upgrade}, "Deployment liqo-broker/liqo-broker is v0.10.0 here, newer than v0.9.9",
		},
		"UpgradesOtherLiqo": {
			"Nobody has tried it.", &cluster1{manager: manager1(image + "v1.3.0"), objects: []client.Object{broker.DeepCopy()}}, Options{},
			commands{upgrade}, "this cluster has Liqo v1.3.0, and of 1.x v1.2.0 was tried: with --liqo-unsupported",
		},
		"ExportsUnknown": {
			"No file could name the Secret.", stock1(peer1("milan", false)...), Options{Export: "none"}, commands{prepare},
			"requirement: there is no Identity of this cluster at milan",
		},
	} {
		t.Run(name, func(t *testing.T) {
			for n, do := range tc.do {
				tc.options.Timeout = time.Second
				tc.cluster.written = nil
				i, err := New(tc.cluster.client(t), tc.options, io.Discard)
				if err != nil {
					t.Fatal(err)
				}
				err = do.taken(t.Context(), i)
				if err == nil || !strings.Contains(err.Error(), tc.says) || strings.Contains(err.Error(), "\n") || len(tc.cluster.written) > 0 {
					t.Errorf("%s\ncommand %d: %v, want %q; %q is written", tc.reason, n, err, tc.says, tc.cluster.written)
				}
			}
		})
	}
}

// TestSeveralLines has a cluster with the kinds of both lines: which of both runs is not guessed.
func TestSeveralLines(t *testing.T) {
	both := meta.NewDefaultRESTMapper(nil)
	both.Add(recordKind(line09{}), meta.RESTScopeRoot)
	both.Add(recordKind(line1{}), meta.RESTScopeRoot)
	i := Installer{objects: objects{fake.NewClientBuilder().WithRESTMapper(both).Build()}}
	missing := &RequirementError{}
	if _, err := i.Look(t.Context()); !errors.As(err, &missing) || !strings.Contains(err.Error(), "kinds of Liqo 0.9 and of Liqo 1.x") {
		t.Errorf("Look() = %v", err)
	}
}

// TestLiqo1Version holds that the Liqo 1.x that is worked with is the one that is compared with.
func TestLiqo1Version(t *testing.T) {
	module, err := os.ReadFile("../../test/liqo1/go.mod")
	if err != nil {
		t.Fatal(err)
	}
	if line := "github.com/liqotech/liqo " + Liqo1Version + "\n"; !strings.Contains(string(module), line) {
		t.Errorf("the module that compares does not require %s", line)
	}
}

// journey is a command, and what it is to say and to write.
type journey struct {
	role string
	do   deed
	// steps are the names of its steps in order, and writes begin what it writes first and end what it writes last.
	steps       []string
	first, last string
}

// run takes a command, and returns what it says.
func (c *cluster1) run(t *testing.T, to client.Client, options Options, do deed) string {
	t.Helper()
	c.written = nil
	var out strings.Builder
	options.Timeout = time.Second
	i, err := New(to, options, &out)
	if err != nil {
		t.Fatal(err)
	}
	if err := do.taken(t.Context(), i); err != nil {
		t.Fatalf("%v\n%s", err, out.String())
	}
	return out.String()
}

// stepsOf returns the names of steps that were taken.
func stepsOf(out string) (names []string) {
	for line := range strings.Lines(out) {
		if _, name, is := strings.Cut(line, "] "); is && strings.HasPrefix(line, "[") {
			names = append(names, strings.TrimSpace(name))
		}
	}
	return names
}

// TestJourneys1 makes a cluster with Liqo 1.x something, again, and undoes that: again finds nothing to do, all dry runs write nothing, and
// afterwards nothing is left but what was there, of which Liqo's own was not touched.
func TestJourneys1(t *testing.T) {
	rules := "add the rules that hold without the "
	for name, tc := range map[string]struct {
		objects  []client.Object
		do, undo journey
	}{
		"Broker": {
			peer1("rome", false),
			journey{"broker", (*Installer).Install, []string{
				"keep peers apart on the way through this cluster", "create the kinds of the broker", "run the daemon and the guard", rules + "daemon",
			}, "apply Namespace liqo-broker-transit", "apply ValidatingAdmissionPolicyBinding"},
			journey{"", (*Installer).Uninstall, []string{
				"remove the rules that hold without the daemon", "remove the daemon, its kinds and the guard",
				"let new pods go to all providers again", "remove the transit",
				"have Liqo's gateways pass everything again", "remove what peers were told by the broker",
			}, "delete ValidatingAdmissionPolicyBinding", "delete RoleBinding liqo-tenant-rome/liqo-broker-report"},
		},
		"Consumer": {
			together(peer1("milan", true), peer1("rome", false)),
			journey{"consumer of milan", (*Installer).Prepare, []string{
				"run the agent, with the rule that bounds it", "offload no namespace that has keys of this cluster",
				"wait for this cluster's credentials at milan",
				"let the agent read these credentials, and no others of milan, and ask it for nodes", "tell the agent that milan is a broker",
			}, "apply Namespace liqo-broker-agent", "patch ForeignCluster milan"},
			journey{"", (*Installer).Unprepare, []string{
				"say of no peer that it is a broker", "let nobody read this cluster's credentials at brokers, nor ask these for nodes",
				"remove the rule about namespaces with keys, unless a guard is here", "remove the agent, and the rule that bounds it",
			}, "patch ForeignCluster milan", "delete Namespace liqo-broker-agent"},
		},
		"Guard": {
			peer1("rome", false),
			journey{"guarded", (*Installer).Guard, []string{"run the guard", rules + "guard"}, "apply Namespace liqo-broker-guard",
				"apply ValidatingAdmissionPolicyBinding"},
			journey{"", (*Installer).Unguard, []string{
				"remove the rules that hold without the guard", "remove the guard", "remove what bounds peers",
			}, "delete ValidatingAdmissionPolicyBinding", "delete ResourceQuota liqo-tenant-rome/liqo-broker"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			told := metav1.ObjectMeta{Namespace: "liqo-tenant-rome", Name: "liqo-broker-report"}
			strange := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "liqo-broker-report"}}
			gateway := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "liqo-tenant-rome", Name: "gw", Labels: map[string]string{
				"networking.liqo.io/component": "gateway"}}}
			other := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "gw", Labels: gateway.Labels}}
			own := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "liqo-broker"}}
			node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "turin", Labels: map[string]string{
				liqo.LabelNodeType: liqo.NodeTypeVirtual}}}
			node.Spec.Taints = []corev1.Taint{{Key: "virtual-node.liqo.io/not-allowed", Effect: corev1.TaintEffectNoExecute}}
			worker := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "worker"}}
			worker.Spec.Taints = []corev1.Taint{{Key: liqo.TaintCordoned, Value: "of people", Effect: corev1.TaintEffectNoSchedule}}
			cluster := stock1(together(tc.objects, strange, other, own, node, worker, gateway.DeepCopy())...)
			to := cluster.client(t)
			before := everything(t, to)

			options := Options{Registry: "registry.example/team", Tag: "v0.5.0", Broker: map[string]string{"Consumer": "milan"}[name]}
			for _, dry := range []Options{{DryRun: true}, {DryRun: true, Tried: true}} {
				dry.Broker = options.Broker
				if out := cluster.run(t, to, dry, tc.do.do); len(cluster.written) > 0 || !strings.Contains(out, "      would create Deployment") {
					t.Errorf("a dry run writes %q, and says\n%s", cluster.written, out)
				}
			}
			out := cluster.run(t, to, options, tc.do.do)
			tc.do.check(t, cluster, out)
			if setup := look1(t, to); strings.Join(setup.Roles(), " and ") != tc.do.role || setup.Tag != "v0.5.0" {
				t.Errorf("it is a %q with tag %q, want %q", setup.Roles(), setup.Tag, tc.do.role)
			}
			if out := cluster.run(t, to, Options{Tag: "v0.5.0", Broker: options.Broker}, tc.do.do); len(cluster.written) > 0 ||
				strings.Count(out, "as it should be") != len(tc.do.steps) {
				t.Errorf("again it writes %q, and says\n%s", cluster.written, out)
			}

			bounds := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: told.Namespace, Name: "liqo-broker"}}
			for _, o := range map[string][]client.Object{
				"Broker": {
					&corev1.ConfigMap{ObjectMeta: told}, &rbacv1.RoleBinding{ObjectMeta: told}, &rbacv1.Role{ObjectMeta: told}, bounds,
					ofTransit(&api.IP{}, "twin", "liqo-broker-1.ip"), ofTransit(&discoveryv1.EndpointSlice{}, "twin", "liqo-broker-shop"),
				},
				"Guard": {bounds},
			}[name] {
				if err := to.Create(t.Context(), o); err != nil {
					t.Fatal(err)
				}
			}
			if name == "Broker" { // Its provider is drained.
				drained := node.DeepCopy()
				drained.Spec.Taints = append(drained.Spec.Taints, corev1.Taint{Key: liqo.TaintCordoned, Effect: corev1.TaintEffectNoSchedule})
				if err := to.Patch(t.Context(), drained, client.MergeFrom(node)); err != nil {
					t.Fatal(err)
				}
			}
			out = cluster.run(t, to, Options{}, tc.undo.do)
			tc.undo.check(t, cluster, out)
			if name == "Broker" { // Liqo makes another one.
				if err := to.Create(t.Context(), gateway.DeepCopy()); err != nil {
					t.Fatal(err)
				}
			}
			if diff := cmp.Diff(before, everything(t, to)); diff != "" {
				t.Errorf("-before +left\n%s", diff)
			}
			if out := cluster.run(t, to, Options{}, tc.undo.do); len(cluster.written) > 0 {
				t.Errorf("undone again it writes %q, and says\n%s", cluster.written, out)
			}
		})
	}
}

// check compares what a command has said and written with what it is to.
func (j *journey) check(t *testing.T, c *cluster1, out string) {
	t.Helper()
	if diff := cmp.Diff(j.steps, stepsOf(out)); diff != "" {
		t.Errorf("steps: -want +got\n%s", diff)
	}
	written := slices.DeleteFunc(slices.Clone(c.written), func(w string) bool {
		return w == "delete Role liqo-tenant-rome/liqo-broker-report"
	})
	if len(written) == 0 || !strings.HasPrefix(written[0], j.first) || !strings.HasPrefix(written[len(written)-1], j.last) {
		t.Errorf("it begins with %s and ends with %s, and writes\n%s", j.first, j.last, strings.Join(written, "\n"))
	}
	for _, w := range written {
		if _, object, _ := strings.Cut(w, " "); strings.HasPrefix(object, "Deployment liqo/") || strings.HasPrefix(object, "Pod shop/") {
			t.Errorf("it writes %s", object)
		}
	}
}

func look1(t *testing.T, c client.Client) Setup {
	t.Helper()
	i, err := New(c, Options{}, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	setup, err := i.Look(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return setup
}

// everything returns what is on a cluster, by kinds and names, annotations of records and taints of nodes.
func everything(t *testing.T, c client.Client) []string {
	t.Helper()
	var all []string
	for kind := range c.Scheme().AllKnownTypes() {
		if !strings.HasSuffix(kind.Kind, "List") || kind.Version == runtime.APIVersionInternal || kind.Group == "" && kind.Kind == "List" {
			continue
		}
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(kind)
		if err := c.List(t.Context(), list); err != nil {
			continue // It is no list of objects.
		}
		for n := range list.Items {
			o := &list.Items[n]
			text := describe(o)
			switch o.GetKind() {
			case "ForeignCluster":
				text += fmt.Sprint(o.GetAnnotations())
			case "Node":
				taints, _, _ := unstructured.NestedSlice(o.Object, "spec", "taints")
				text += fmt.Sprint(taints)
			}
			all = append(all, text)
		}
	}
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinitionList"})
	if err := c.List(t.Context(), list); err != nil && !apierrors.IsNotFound(err) {
		t.Fatal(err)
	}
	for n := range list.Items {
		all = append(all, describe(&list.Items[n]))
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// TestTransitFirst has a transit that closes no gateway: nobody is granted anything meanwhile.
func TestTransitFirst(t *testing.T) {
	cluster := stock1()
	cluster.slow = true
	var out strings.Builder
	i, err := New(cluster.client(t), Options{Timeout: time.Second}, &out)
	if err != nil {
		t.Fatal(err)
	}
	err = deed((*Installer).Install).taken(t.Context(), i)
	if err == nil || !strings.Contains(err.Error(), "step 1 of 4") || !strings.Contains(out.String(), "waiting: read what all gateways drop") {
		t.Errorf("it goes on: %v\n%s", err, out.String())
	}
}

// TestUpgrade1 brings a broker with Liqo 1.x to another version, by the steps that install it, and back if that is meant.
func TestUpgrade1(t *testing.T) {
	cluster := stock1()
	to := cluster.client(t)
	steps := stepsOf(cluster.run(t, to, Options{Tag: "v0.5.0"}, (*Installer).Install))
	for _, next := range []Options{{Tag: "v0.6.0"}, {Tag: "v0.5.0", Downgrade: true}} {
		out := cluster.run(t, to, next, (*Installer).Upgrade)
		if diff := cmp.Diff(steps, stepsOf(out)); diff != "" {
			t.Errorf("steps of %s: -install +upgrade\n%s", next.Tag, diff)
		}
		for _, of := range []string{TransitName, BrokerName, GuardName} {
			var d appsv1.Deployment
			if err := to.Get(t.Context(), client.ObjectKey{Namespace: of, Name: of}, &d); err != nil {
				t.Fatal(err)
			}
			if is := ImageTag(d.Spec.Template.Spec.Containers[0].Image); is != next.Tag {
				t.Errorf("%s is %s, want %s", of, is, next.Tag)
			}
		}
		if out := cluster.run(t, to, next, (*Installer).Upgrade); len(cluster.written) > 0 {
			t.Errorf("again it writes %q, and says\n%s", cluster.written, out)
		}
	}
}

// TestWaitsForCredentials prepares a consumer that has none yet: it is not told which peer is a broker.
func TestWaitsForCredentials(t *testing.T) {
	cluster := stock1(peer1("milan", false)...)
	to := cluster.client(t)
	var out strings.Builder
	i, err := New(to, Options{Timeout: time.Second}, &out)
	if err != nil {
		t.Fatal(err)
	}
	err = deed((*Installer).Prepare).taken(t.Context(), i)
	if err == nil || !strings.Contains(err.Error(), "step 3 of 5") || !strings.Contains(out.String(), "waiting: there is no Identity") ||
		slices.Contains(cluster.written, "patch ForeignCluster milan") {
		t.Errorf("it goes on: %v\n%s", err, out.String())
	}
	if out := cluster.run(t, to, Options{DryRun: true}, (*Installer).Prepare); !strings.Contains(out, "not tried: there is no Identity") {
		t.Errorf("a dry run says\n%s", out)
	}
}

// TestWarnsOfLiqo prepares consumers whose only peer may be no broker: people are told what can be seen of that, and the rest is done.
func TestWarnsOfLiqo(t *testing.T) {
	const alone = "ResourceSliceResourcesAccepted"
	const says = "warning: milan has granted what ResourceSlice liqo-tenant-milan/milan asks for as Liqo"
	for name, tc := range map[string]struct {
		reason, why, provider string
		warns                 bool
	}{
		"Liqo":      {"It has Liqo alone.", alone, "milan", true},
		"Broker":    {"It has answered as a broker.", "Granted", "milan", false},
		"OtherPeer": {"A provider has granted it.", alone, "oslo", false},
	} {
		t.Run(name, func(t *testing.T) {
			asked := &api.ResourceSlice{ObjectMeta: metav1.ObjectMeta{Namespace: "liqo-tenant-milan", Name: "milan"}}
			asked.Spec.ProviderClusterID = &tc.provider
			asked.Status.Conditions = []api.ResourceSliceCondition{{Type: api.SliceResources, Status: api.SliceAccepted, Reason: tc.why}}
			cluster := stock1(together(peer1("milan", true), asked)...)
			out := cluster.run(t, cluster.client(t), Options{}, (*Installer).Prepare)
			if strings.Contains(out, says) != tc.warns || !slices.Contains(cluster.written, "patch ForeignCluster milan") {
				t.Errorf("%s\nit writes %q, and says\n%s", tc.reason, cluster.written, out)
			}
		})
	}
}

// TestReadsOneSecret looks at what lets the agent read credentials, one Secret, by its name, and ask the broker for nodes.
func TestReadsOneSecret(t *testing.T) {
	cluster := stock1(together(peer1("milan", true), peer1("oslo", true))...)
	to := cluster.client(t)
	cluster.run(t, to, Options{Broker: "milan"}, (*Installer).Prepare)
	var roles rbacv1.RoleList
	var bindings rbacv1.RoleBindingList
	for _, list := range []client.ObjectList{&roles, &bindings} {
		if err := to.List(t.Context(), list); err != nil {
			t.Fatal(err)
		}
	}
	var got []string
	for _, role := range roles.Items {
		for _, rule := range role.Rules {
			if role.Namespace != "liqo" && role.Namespace != "liqo-broker-agent" {
				got = append(got, fmt.Sprint(role.Namespace, rule.APIGroups, rule.Resources, rule.ResourceNames, rule.Verbs))
			}
		}
	}
	if want := "[liqo-tenant-milan[] [secrets] [kubeconfig-controlplane-milan] [get] " +
		"liqo-tenant-milan[authentication.liqo.io] [resourceslices] [] [create patch delete]]"; fmt.Sprint(got) != want {
		t.Errorf("roles give %v, want %s", got, want)
	}
	at := slices.IndexFunc(bindings.Items, func(b rbacv1.RoleBinding) bool { return b.Namespace == "liqo-tenant-milan" })
	if at < 0 {
		t.Fatalf("nobody has it: %v", bindings.Items)
	}
	want := rbacv1.RoleBinding{
		RoleRef:  rbacv1.RoleRef{APIGroup: "rbac.authorization.k8s.io", Kind: "Role", Name: "liqo-broker-agent"},
		Subjects: []rbacv1.Subject{{Kind: "ServiceAccount", Name: "liqo-broker-agent", Namespace: "liqo-broker-agent"}},
	}
	if diff := cmp.Diff([]any{want.RoleRef, want.Subjects}, []any{bindings.Items[at].RoleRef, bindings.Items[at].Subjects}); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
}

// TestLeaveOne1 has a consumer of two brokers leave one, and then the other, with which the agent goes.
func TestLeaveOne1(t *testing.T) {
	cluster := stock1(together(peer1("milan", true), peer1("oslo", true))...)
	to := cluster.client(t)
	for _, broker := range []string{"milan", "oslo"} {
		cluster.run(t, to, Options{Broker: broker}, (*Installer).Prepare)
	}
	for _, step := range []struct {
		leave, left string
	}{{"milan", "consumer of oslo"}, {"oslo", ""}} {
		cluster.run(t, to, Options{Broker: step.leave}, (*Installer).Unprepare)
		setup := look1(t, to)
		if left := strings.Join(setup.Roles(), " and "); left != step.left {
			t.Errorf("without %s it is a %q, want %q", step.leave, left, step.left)
		}
		err := to.Get(t.Context(), client.ObjectKey{Namespace: AgentName, Name: AgentName}, &appsv1.Deployment{})
		if gone := apierrors.IsNotFound(err); gone != (step.left == "") {
			t.Errorf("without %s the agent is gone: %t", step.leave, gone)
		}
		err = to.Get(t.Context(), client.ObjectKey{Namespace: "liqo-tenant-" + step.leave, Name: AgentName}, &rbacv1.Role{})
		if !apierrors.IsNotFound(err) {
			t.Errorf("the agent may read credentials at %s: %v", step.leave, err)
		}
	}
}

// TestGrantedByLiqo installs a broker where Liqo itself has granted something: it is named, with what takes it over.
func TestGrantedByLiqo(t *testing.T) {
	own := slice1("asked", "default", true)
	own.Labels = map[string]string{liqo.LabelReplication: "true"}
	ending := slice1("ending", "default", true)
	ending.Finalizers, ending.DeletionTimestamp = []string{"x/y"}, &metav1.Time{Time: time.Unix(1, 0)}
	const command = "      of rome: kubectl patch resourceslices.authentication.liqo.io -n liqo-tenant-rome %s --type=merge -p " +
		`'{"spec":{"class":"liqo-broker"}}'`
	for name, tc := range map[string]struct {
		reason string
		slice  *api.ResourceSlice
		warned bool
	}{
		"Default": {"liqoctl asks for this class.", slice1("big", "default", true), true},
		"None":    {"No class is Liqo's own.", slice1("big", "", true), true},
		"Waiting": {"What was not answered, Liqo looks at again, and the webhook does.", slice1("big", "default", false), false},
		"Ours":    {"The broker answers it.", slice1("big", "liqo-broker", true), false},
		"Another": {"Somebody else does.", slice1("big", "gold", true), false},
		"Asked":   {"A provider answers it.", own, false},
		"Ending":  {"It goes.", ending, false},
	} {
		t.Run(name, func(t *testing.T) {
			cluster := stock1(append(peer1("rome", false), tc.slice)...)
			out := cluster.run(t, cluster.client(t), Options{DryRun: true}, (*Installer).Install)
			if warned := strings.Contains(out, "warning: 1 ResourceSlices were granted by Liqo itself") &&
				strings.Contains(out, fmt.Sprintf(command, tc.slice.Name)); warned != tc.warned || strings.Contains(out, "kubectl patch") != tc.warned {
				t.Errorf("%s\nit is said: %t\n%s", tc.reason, warned, out)
			}
		})
	}
}

// TestInBand1 installs a broker with a provider that is reached in the network of the peering: it is said that the transit drops that.
func TestInBand1(t *testing.T) {
	for _, provides := range []bool{true, false} {
		objects := peer1("milan", provides)
		record, is := objects[0].(*api.ForeignCluster)
		if !is {
			t.Fatal(objects[0])
		}
		record.Status.ForeignProxyURL = "http://10.70.0.1:8118"
		cluster := stock1(objects...)
		out := cluster.run(t, cluster.client(t), Options{DryRun: true}, (*Installer).Install)
		if said := strings.Contains(out, "peer milan may be reached by a proxy"); said != provides {
			t.Errorf("of a peer that provides (%t) it is said: %t\n%s", provides, said, out)
		}
	}
}

// runByHelm is a program that is part of a release of Helm, and ready.
func runByHelm(name, image string, args ...string) *appsv1.Deployment {
	d := ofOurs(name, "capacitorset/"+image+":v0.1.0", args...)
	d.Labels = map[string]string{liqo.LabelBrokerManaged: "Helm"}
	d.Status = appsv1.DeploymentStatus{Replicas: 1, UpdatedReplicas: 1, AvailableReplicas: 1}
	return d
}

// TestHelm1 completes what Helm has installed: of a broker nothing is written, and it is said what Liqo has granted before; of a consumer
// all is written but the agent, and the rule that its chart leaves to others.
func TestHelm1(t *testing.T) {
	broker := together(
		peer1("rome", false), slice1("big", "default", true), runByHelm(BrokerName, BrokerName, "--with-orchestrator"),
		runByHelm(GuardName, BrokerName), runByHelm(TransitName, "liqo-broker-network-manager"),
		ofTransit(&api.FirewallConfiguration{}, TransitName, v1.TransitFirewall),
	)
	for name, tc := range map[string]struct {
		reason  string
		objects []client.Object
		do      deed
		written []string
		said    string
	}{
		"Broker": {"Helm has all of it.", broker, (*Installer).Install, nil, "warning: 1 ResourceSlices were granted by Liqo itself"},
		"Consumer": {
			"Helm knows neither the Secret nor the record.",
			together(peer1("milan", true), runByHelm(AgentName, "liqo-broker-network-manager")), (*Installer).Prepare, []string{
				"apply ValidatingAdmissionPolicy " + sealed, "apply ValidatingAdmissionPolicyBinding " + sealed,
				"apply Role liqo-tenant-milan/liqo-broker-agent",
				"apply RoleBinding liqo-tenant-milan/liqo-broker-agent", "patch ForeignCluster milan",
			}, "tell the agent that milan is a broker",
		},
	} {
		t.Run(name, func(t *testing.T) {
			cluster := stock1(tc.objects...)
			out := cluster.run(t, cluster.client(t), Options{}, tc.do)
			if diff := cmp.Diff(tc.written, cluster.written); diff != "" || !strings.Contains(out, tc.said) {
				t.Errorf("%s It writes: -want +got\n%s\nand says\n%s", tc.reason, diff, out)
			}
		})
	}

	// A transit that has closed nothing yet is waited for, also where Helm runs it.
	i, err := New(stock1(broker[:len(broker)-1]...).client(t), Options{Timeout: time.Second}, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	if err := deed((*Installer).Install).taken(t.Context(), i); err == nil || !strings.Contains(err.Error(), "step 1 of 2") {
		t.Errorf("it goes on: %v", err)
	}
}

// TestReaders holds that the plugin lets the agent do at a broker what its chart does: test/chart compares that with the same file.
func TestReaders(t *testing.T) {
	got := readers(client.ObjectKey{Namespace: "liqo-tenant-milan", Name: "kubeconfig-controlplane-milan"})
	if diff := cmp.Diff(readObjects(t, "testdata/readers.yaml"), got); diff != "" {
		t.Errorf("-testdata +plugin\n%s", diff)
	}
}

// TestKeepsFlags1 upgrades what people have given flags to: those that it has stay.
func TestKeepsFlags1(t *testing.T) {
	cluster := stock1(together(daemon1("--with-orchestrator"),
		ofOurs(TransitName, "x/liqo-broker-network-manager:v0.1.0", "--allow=10.9.0.0/24", "--gone=1"))...)
	to := cluster.client(t)
	var out strings.Builder
	i, err := New(to, Options{}, &out)
	if err != nil {
		t.Fatal(err)
	}
	transit, err := i.besideLiqo("transit")
	if err != nil {
		t.Fatal(err)
	}
	chosen, err := i.withChoices(t.Context(), transit)
	if err != nil {
		t.Fatal(err)
	}
	at := slices.IndexFunc(chosen, func(o *unstructured.Unstructured) bool { return o.GetKind() == kindDeployment })
	all, _, _ := unstructured.NestedSlice(chosen[at].Object, "spec", "template", "spec", "containers")
	if text := fmt.Sprint(all); !strings.Contains(text, "--allow=10.9.0.0/24") || strings.Contains(text, "--gone") ||
		!strings.Contains(text, "--liqo-namespace=liqo") || !strings.Contains(text, "/liqo-broker-network-manager:v0.1.0") {
		t.Errorf("it would run %s\n%s", text, out.String())
	}
}

// TestExport1 writes what would be installed as files, and nothing to the cluster: kustomize makes the same objects of them.
func TestExport1(t *testing.T) {
	for role, tc := range map[string]struct {
		do    deed
		files []string
		says  string
	}{
		"broker": {(*Installer).Install, []string{
			"broker/broker.yaml", "broker/kinds.yaml", "broker/kustomization.yaml", "broker/rules.yaml",
			"transit/kustomization.yaml", "transit/transit.yaml",
		}, ""},
		"consumer": {
			(*Installer).Prepare, []string{"agent/agent.yaml", "agent/broker.yaml", "agent/kustomization.yaml"},
			"kubectl annotate foreignclusters.core.liqo.io milan brokering.liqo.io/broker=true",
		},
		"guard": {(*Installer).Guard, []string{"guard/guard.yaml", "guard/kustomization.yaml", "guard/rules.yaml"}, ""},
	} {
		t.Run(role, func(t *testing.T) {
			folder := filepath.Join(t.TempDir(), "new")
			cluster := stock1(peer1("milan", true)...)
			cluster.denied = true // Who only writes files needs no rights.
			to := cluster.client(t)
			out := cluster.run(t, to, Options{Export: folder, Tag: "v9.9.9"}, tc.do)
			if len(cluster.written) > 0 || !strings.Contains(out, tc.says) {
				t.Errorf("it writes %q, and says\n%s", cluster.written, out)
			}
			var files []string
			applied := map[string]bool{}
			err := filepath.WalkDir(folder, func(path string, entry os.DirEntry, err error) error {
				if err != nil || entry.IsDir() {
					return err
				}
				name, err := filepath.Rel(folder, path)
				files = append(files, name)
				for _, o := range readObjects(t, path) {
					applied["apply "+describe(o)] = o.GetKind() != "Kustomization"
				}
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
			slices.Sort(files)
			if diff := cmp.Diff(tc.files, files); diff != "" {
				t.Errorf("files: -want +got\n%s", diff)
			}
			cluster.denied = false
			cluster.run(t, to, Options{Tag: "v9.9.9"}, tc.do)
			for _, w := range cluster.written {
				if strings.HasPrefix(w, "apply ") && !applied[w] {
					t.Errorf("no file has it: %s", w)
				}
			}
		})
	}
}

// TestSealed holds that no namespace with keys is offloaded as long as somebody is here who needs that: what goes leaves the rule to
// others.
func TestSealed(t *testing.T) {
	install, uninstall, guard, unguard := (*Installer).Install, (*Installer).Uninstall, (*Installer).Guard, (*Installer).Unguard
	prepare, unprepare := (*Installer).Prepare, (*Installer).Unprepare
	rule := func(kind string) *unstructured.Unstructured {
		o := &unstructured.Unstructured{}
		o.SetGroupVersionKind(policyKind().WithVersion("v1"))
		o.SetKind("ValidatingAdmissionPolicy" + kind)
		return o
	}
	for name, tc := range map[string]struct {
		do    []deed
		there bool
	}{
		"Consumer":          {[]deed{prepare}, true},
		"NoConsumer":        {[]deed{prepare, unprepare}, false},
		"GuardStays":        {[]deed{guard, prepare, unprepare}, true},
		"ConsumerUnguarded": {[]deed{guard, prepare, unguard}, true},
		"BrokerStays":       {[]deed{install, prepare, unprepare}, true},
		"ConsumerStays":     {[]deed{install, prepare, uninstall}, true},
		"NobodyAfterGuard":  {[]deed{guard, prepare, unguard, unprepare}, false},
	} {
		t.Run(name, func(t *testing.T) {
			cluster := stock1(peer1("milan", true)...)
			to := cluster.client(t)
			for _, do := range tc.do {
				cluster.run(t, to, Options{Broker: "milan", AlsoBroker: true, Force: true}, do)
			}
			for _, kind := range []string{"", "Binding"} {
				if err := to.Get(t.Context(), client.ObjectKey{Name: sealed}, rule(kind)); (err == nil) != tc.there {
					t.Errorf("the policy%s: %v, want it there: %t", kind, err, tc.there)
				}
			}
		})
	}
}
