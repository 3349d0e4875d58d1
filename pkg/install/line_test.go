// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package install

import (
	"context"
	"errors"
	"io"
	"net/url"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
	"github.com/capacitorset/liqo-broker/pkg/liqo"
	"github.com/capacitorset/liqo-broker/pkg/liqo/lines"
	v09 "github.com/capacitorset/liqo-broker/pkg/liqo/v09"
	"github.com/capacitorset/liqo-broker/pkg/liqo/v1/api"
)

// mapper knows the kinds of a line of Liqo; nil those of none.
func mapper(of line) meta.RESTMapper {
	if of == nil {
		return meta.NewDefaultRESTMapper(nil)
	}
	kind := recordKind(of)
	m := meta.NewDefaultRESTMapper([]schema.GroupVersion{kind.GroupVersion()})
	m.Add(kind, meta.RESTScopeRoot)
	return m
}

// recordKind is the kind of a line's records of peers.
func recordKind(of line) schema.GroupVersionKind {
	if of.HasPlugin() {
		return schema.GroupVersionKind{Group: "discovery.liqo.io", Version: "v1alpha1", Kind: "ForeignCluster"}
	}
	return schema.GroupVersionKind{Group: api.CoreGroup, Version: api.Beta, Kind: "ForeignCluster"}
}

// at returns a client of a cluster that serves a line of Liqo and has some objects; its user may do everything, but for what an
// interceptor says.
func at(t *testing.T, of line, funcs interceptor.Funcs, objects ...client.Object) client.Client {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), lines.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	if funcs.Create == nil {
		funcs.Create = func(ctx context.Context, c client.WithWatch, o client.Object, options ...client.CreateOption) error {
			if review, is := o.(*authorizationv1.SelfSubjectAccessReview); is {
				review.Status.Allowed = true
				return nil
			}
			return c.Create(ctx, o, options...)
		}
	}
	builder := fake.NewClientBuilder().WithScheme(scheme).WithRESTMapper(mapper(of)).WithObjects(objects...).WithInterceptorFuncs(funcs)
	for _, kind := range []client.Object{&corev1.ConfigMap{}, &rbacv1.RoleBinding{}} {
		builder = builder.WithIndex(kind, "metadata.name", func(o client.Object) []string { return []string{o.GetName()} })
	}
	return builder.Build()
}

func peer(id, name string) *v09.ForeignCluster {
	fc := &v09.ForeignCluster{}
	fc.Name, fc.Spec.ClusterIdentity.ClusterID, fc.Spec.ClusterIdentity.ClusterName = id, id, name
	return fc
}

func daemonOfHelm() *appsv1.Deployment {
	d := ofOurs(BrokerName, "x/liqo-broker:v0.1.0")
	d.Labels = map[string]string{"app.kubernetes.io/managed-by": "Helm"}
	d.Annotations = map[string]string{"meta.helm.sh/release-name": "mine", "meta.helm.sh/release-namespace": "liqo-broker"}
	return d
}

// flagOf is by which Liqo's controller manager has virtual kubelets ask a broker.
func flagOf(broker cluster.Identity) string {
	return "--kubelet-extra-args=--remote-ipam=server=" + remoteIPAMOf(broker)
}

// ofOurs is a Deployment in the namespace of its name.
func ofOurs(name, image string, args ...string) *appsv1.Deployment {
	d := pod("", args...)
	d.Namespace, d.Name, d.Spec.Template.Spec.Containers[0].Image = name, name, image
	return d
}

func connector(args ...string) *appsv1.Deployment {
	return ofOurs(ConnectorName, "x/liqo-broker-connector:v0.1.0", args...)
}

// deed is a command.
type deed func(*Installer, context.Context, *Setup) error

// taken looks at the cluster, and does it.
func (d deed) taken(ctx context.Context, i *Installer) error {
	seen, err := i.Look(ctx)
	if err != nil {
		return err
	}
	return d(i, ctx, &seen)
}

// TestRefused has each command meet a cluster for which it is not made: nothing is written, and the error names what it is.
func TestRefused(t *testing.T) {
	writes := 0
	counting := interceptor.Funcs{Patch: func(context.Context, client.WithWatch, client.Object, client.Patch, ...client.PatchOption) error {
		writes++
		return nil
	}}
	denied := counting
	denied.Create = func(context.Context, client.WithWatch, client.Object, ...client.CreateOption) error { return nil } // Nothing is allowed.
	forbidden, gone := counting, counting
	forbidden.Get = func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
		return apierrors.NewForbidden(schema.GroupResource{Group: "apps", Resource: "deployments"}, controllerManager, errors.New("no role"))
	}
	gone.Get = func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
		return &url.Error{Op: "Get", URL: "https://example", Err: errors.New("connection refused")}
	}
	manager := pod("controller-manager", "--kubelet-image=liqo/virtual-kubelet:v0.9.4")
	old := pod("controller-manager")
	old.Spec.Template.Spec.Containers[0].Image = "liqo/liqo-controller-manager:v0.8.3"
	install, uninstall, upgrade := (*Installer).Install, (*Installer).Uninstall, (*Installer).Upgrade
	prepare, unprepare, guard := (*Installer).Prepare, (*Installer).Unprepare, (*Installer).Guard
	type commands = []deed
	all := commands{install, uninstall, prepare, unprepare}
	onwards := commands{install, upgrade, prepare, guard}
	consumer := pod("controller-manager", "--kubelet-image=x/liqo-broker-vk:v0.1.0", flagOf(cluster.Identity{ID: "a", Name: "milan"}))
	other := pod("controller-manager", "--kubelet-image=liqo/virtual-kubelet:v0.9.3")
	other.Spec.Template.Spec.Containers[0].Image = "liqo/liqo-controller-manager:v0.9.3"
	newer := pod("controller-manager", "--kubelet-image=x/liqo-broker-vk:v99.0.0")
	guarded := pod("controller-manager", "--kubelet-image=x/liqo-broker-vk:v0.1.0", flagPlugin+"="+connectorPlugin)
	second := pod("broker")
	second.Namespace, second.Name, second.Labels = "elsewhere", BrokerName, map[string]string{labelName: BrokerName}
	for name, tc := range map[string]struct {
		line    line
		funcs   interceptor.Funcs
		objects []client.Object
		options Options
		do      commands
		says    string
	}{
		"NoLiqo":    {nil, counting, nil, Options{}, all, "this cluster has no Liqo"},
		"KindsOnly": {line09{}, counting, nil, Options{}, all, "no Deployment liqo/liqo-controller-manager"},
		"OldLiqo": {
			line09{}, counting, []client.Object{old}, Options{}, all,
			"has the image liqo/liqo-controller-manager:v0.8.3, and the broker needs Liqo v0.9.4",
		},
		"Forbidden":   {line09{}, forbidden, []client.Object{manager}, Options{}, all, "you may not read Liqo's installation"},
		"NoRights":    {line09{}, denied, []client.Object{manager}, Options{}, all, "you lack the rights of an administrator"},
		"Unreachable": {line09{}, gone, []client.Object{manager}, Options{}, all, "connection refused"},
		"OfHelm":      {line09{}, counting, []client.Object{manager, daemonOfHelm()}, Options{Modes: modes[:1]}, all[:1], `release "mine" of Helm in namespace "liqo-broker", and its modes are values of that: use helm upgrade`},
		"SecondBroker": {
			line09{}, counting, []client.Object{manager, second}, Options{}, all[:1], "another broker already, in namespace elsewhere",
		},
		"Nobody": {
			line09{}, counting, []client.Object{manager}, Options{}, commands{prepare},
			"no peer of this cluster is the broker",
		},
		"TwoPeers": {
			line09{}, counting, []client.Object{manager, peer("a", "milan"), peer("b", "turin")}, Options{}, all[2:3], "which peer is the broker?",
		},
		"NotItsBroker": {
			line09{}, counting, []client.Object{manager, peer("a", "milan"), peer("b", "turin")}, Options{Broker: "turin"}, all[3:],
			"no consumer of turin (b)",
		},
		"UpgradesNobody": {line09{}, counting, []client.Object{manager}, Options{}, commands{upgrade}, "no broker: install makes it one"},
		"UpgradesConsumer": {
			line09{}, counting, []client.Object{consumer, peer("a", "milan")}, Options{}, commands{upgrade},
			"no broker, but a consumer of milan (a): run prepare, with the plugin of the broker's version",
		},
		"UpgradesStranger": {
			line09{}, counting, []client.Object{consumer}, Options{}, commands{upgrade}, "a consumer of 1 that it does not peer with: run prepare",
		},
		"UpgradesTrader": {line09{}, counting, []client.Object{manager, connector()}, Options{}, commands{upgrade}, "and trades: run guard"},
		"UpgradesBoth": {
			line09{}, counting, []client.Object{consumer, peer("a", "milan"), connector()}, Options{}, commands{upgrade},
			"a consumer of milan (a) and a trader: run prepare and guard",
		},
		"InstallsConsumer": {
			line09{}, counting, []client.Object{consumer, peer("a", "milan")}, Options{}, commands{install},
			"this cluster is a consumer of milan (a), whose version prepare brings: with --also-broker it becomes a broker besides",
		},
		"UninstallsConsumer": {
			line09{}, counting, []client.Object{consumer, peer("a", "milan"), sharing(t), pod("network-manager"), managerService()},
			Options{Force: true}, commands{uninstall}, "no broker, but a consumer of milan (a): run unprepare",
		},
		"UninstallsTrader": {
			line09{}, counting, []client.Object{manager, connector(), sharing(t), pod("network-manager"), managerService()},
			Options{Force: true}, commands{uninstall}, "its trade needs what would be removed: when all contracts are over, delete the connector",
		},
		"UninstallsGuarded": {
			line09{}, counting, []client.Object{guarded, sharing(t), pod("network-manager"), managerService()},
			Options{}, commands{uninstall}, "Liqo still asks a connector that is gone: run unguard",
		},
		"UninstallsBoth": {
			line09{}, counting, []client.Object{consumer, peer("a", "milan"), connector(), sharing(t), pod("network-manager"),
				managerService()}, Options{Force: true}, commands{uninstall}, "unprepare leaves the broker, and unguard undoes guard",
		},
		"UninstallsSeller": {
			line09{}, counting, []client.Object{manager, daemonOfHelm(), connector("--share=30", "--broker")}, Options{Force: true},
			commands{uninstall}, "the connector sells what this broker has",
		},
		"OtherLiqo": {
			line09{}, counting, []client.Object{other, daemonOfHelm(), connector(), peer("a", "milan")}, Options{}, onwards,
			"this cluster has Liqo v0.9.3, and our virtual kubelet is built of v0.9.4: with --liqo-unsupported",
		},
		"NewerKubelet": {
			line09{}, counting, []client.Object{newer, daemonOfHelm(), connector(), peer("a", "milan")}, Options{Tag: "v0.2.0"}, onwards,
			"our virtual kubelet is v99.0.0 here, newer than v0.2.0 that was to be installed: take the plugin of v99.0.0, or say --downgrade",
		},
		"NewerBroker": {
			line09{}, counting, []client.Object{manager, ofOurs(BrokerName, "x/liqo-broker:v0.10.0")}, Options{Tag: "v0.9.9"}, onwards[:2],
			"Deployment liqo-broker/liqo-broker is v0.10.0 here, newer than v0.9.9",
		},
		"NewerGuard": {
			line09{}, counting, []client.Object{manager, connector(), ofOurs(GuardName, "x/liqo-broker:v0.2.0@sha256:1")},
			Options{Tag: "v0.2.0-rc.1"}, commands{guard}, "Deployment liqo-broker-guard/liqo-broker-guard is v0.2.0 here, newer than v0.2.0-rc.1",
		},
		"ExportsGuardOfBroker": {
			line09{}, counting, []client.Object{pod("controller-manager", flagPlugin+"="+brokerPlugin+"liqo-broker:7000")},
			Options{Export: "none"}, commands{guard}, "Liqo asks somebody else than a connector what to offer here",
		},
		"UnknownBroker": {
			line09{}, counting, []client.Object{manager, peer("a", "milan")}, Options{Broker: "oslo"}, all[2:], `(--broker="oslo")`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			for n, do := range tc.do {
				var out strings.Builder
				tc.options.Timeout = time.Second
				i, err := New(at(t, tc.line, tc.funcs, tc.objects...), tc.options, &out)
				if err != nil {
					t.Fatal(err)
				}
				err = do.taken(t.Context(), i)
				if err == nil || !strings.Contains(err.Error(), tc.says) || strings.Contains(err.Error(), "\n") || writes > 0 {
					t.Errorf("command %d: %v, want %q; %d writes", n, err, tc.says, writes)
				}
			}
		})
	}
}

// TestLooksOnce has a cluster be refused that is looked at before: what was seen is not asked for again.
func TestLooksOnce(t *testing.T) {
	consumer := pod("controller-manager", "--kubelet-image=x/liqo-broker-vk:v0.1.0", flagOf(cluster.Identity{ID: "a", Name: "milan"}))
	for name, tc := range map[string]struct {
		do deed
		// managers is how often Liqo's controller manager is read: for its version, for its flags, and for the image that may be newer.
		managers int
	}{"Install": {(*Installer).Install, 3}, "Upgrade": {(*Installer).Upgrade, 3}} {
		peers, managers := 0, 0
		i, err := New(at(t, line09{}, interceptor.Funcs{
			Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, options ...client.GetOption) error {
				if key.Name == controllerManager {
					managers++
				}
				return c.Get(ctx, key, o, options...)
			},
			List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
				if _, is := list.(*v09.ForeignClusterList); is {
					peers++
				}
				return c.List(ctx, list, options...)
			},
		}, consumer, peer("a", "milan")), Options{}, io.Discard)
		if err != nil {
			t.Fatal(err)
		}
		err = tc.do.taken(t.Context(), i)
		if err == nil || !strings.Contains(err.Error(), "a consumer of milan") || peers != 1 || managers != tc.managers {
			t.Errorf("%s: %v; the peers were read %d times, and Liqo's controller manager %d times", name, err, peers, managers)
		}
	}
}

// TestLiqoVersion holds that the Liqo that is worked with is the one that the virtual kubelet is built of.
func TestLiqoVersion(t *testing.T) {
	module, err := os.ReadFile("../../cmd/virtual-kubelet/go.mod")
	if err != nil {
		t.Fatal(err)
	}
	if line := "github.com/liqotech/liqo " + LiqoVersion + "\n"; !strings.Contains(string(module), line) {
		t.Errorf("the module of the virtual kubelet does not require %s", line)
	}
}

// TestAllowed has commands meet clusters on which they are refused, with the flag that says that they are meant, and some on which nothing
// speaks against them: they begin, or find nothing to do.
func TestAllowed(t *testing.T) {
	funcs := interceptor.Funcs{Patch: func(context.Context, client.WithWatch, client.Object, client.Patch, ...client.PatchOption) error {
		return nil
	}}
	milan := peer("a", "milan")
	consumer := pod("controller-manager", "--kubelet-image=x/liqo-broker-vk:v0.1.0", flagOf(v09.Identity(milan)))
	newer := pod("controller-manager", "--kubelet-image=x/liqo-broker-vk:v99.0.0")
	ofLiqo := pod("controller-manager", "--kubelet-image=x/liqo-broker-vk:v0.9.4")
	mine := pod("controller-manager", "--kubelet-image=x/liqo-broker-vk:mine")
	stock := pod("controller-manager", "--kubelet-image=liqo/virtual-kubelet:v0.9.4")
	other := pod("controller-manager", "--kubelet-image=liqo/virtual-kubelet:v0.9.3")
	other.Spec.Template.Spec.Containers[0].Image = "liqo/liqo-controller-manager:v0.9.3"
	rest := []client.Object{pod("gateway"), pod("network-manager"), managerService(), virtualKubeletRights(), milan}
	for name, tc := range map[string]struct {
		objects []client.Object
		options Options
		do      deed
	}{
		"AlsoBroker":      {[]client.Object{consumer}, Options{AlsoBroker: true}, (*Installer).Install},
		"BrokerConsumes":  {[]client.Object{consumer, daemonOfHelm()}, Options{}, (*Installer).Install},
		"UpgradesBroker":  {[]client.Object{stock, daemonOfHelm()}, Options{}, (*Installer).Upgrade},
		"Downgrade":       {[]client.Object{newer, daemonOfHelm()}, Options{Downgrade: true, Tag: "v0.1.0"}, (*Installer).Upgrade},
		"Same":            {[]client.Object{newer, daemonOfHelm()}, Options{Tag: "v99.0.0"}, (*Installer).Upgrade},
		"NoVersionHere":   {[]client.Object{mine, daemonOfHelm()}, Options{Tag: "v0.1.0"}, (*Installer).Upgrade},
		"NoVersionGiven":  {[]client.Object{newer, daemonOfHelm()}, Options{Tag: "mine"}, (*Installer).Upgrade},
		"NamedByLiqo":     {[]client.Object{ofLiqo}, Options{Tag: "v0.1.0"}, (*Installer).Prepare},
		"LiqoUnsupported": {[]client.Object{other}, Options{LiqoUnsupported: true}, (*Installer).Prepare},
		"LeavesOtherLiqo": {[]client.Object{other}, Options{}, (*Installer).Unprepare},
		"UninstallsStock": {[]client.Object{stock}, Options{}, (*Installer).Uninstall},
		"UninstallsRest": {
			[]client.Object{stock, connector(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: BrokerNamespace}}}, Options{},
			(*Installer).Uninstall,
		},
	} {
		t.Run(name, func(t *testing.T) {
			var out strings.Builder
			tc.options.DryRun = true
			i, err := New(at(t, line09{}, funcs, append(tc.objects, rest...)...), tc.options, &out)
			if err != nil {
				t.Fatal(err)
			}
			if err := tc.do.taken(t.Context(), i); err != nil && !Begun(err) || !strings.HasPrefix(out.String(), "[1/") {
				t.Errorf("it is not begun: %v\n%s", err, out.String())
			}
		})
	}
}

// TestMetricsGuarded has virtual kubelets whose metrics are read become ours: it is said, once, that who reads them needs a right now.
func TestMetricsGuarded(t *testing.T) {
	funcs := interceptor.Funcs{Patch: func(context.Context, client.WithWatch, client.Object, client.Patch, ...client.PatchOption) error {
		return nil
	}}
	rest := []client.Object{
		pod("gateway"), pod("network-manager"), managerService(), virtualKubeletRights(), peer("a", "milan"), connector(),
	}
	for name, do := range map[string]deed{
		"install": (*Installer).Install, "prepare": (*Installer).Prepare, "guard": (*Installer).Guard,
	} {
		for flag, want := range map[string]int{"--kubelet-metrics-enabled=true": 1, "--kubelet-metrics-enabled=false": 0} {
			var out strings.Builder
			manager := pod("controller-manager", "--kubelet-image=liqo/virtual-kubelet:v0.9.4", flag)
			i, err := New(at(t, line09{}, funcs, append(rest, manager)...), Options{DryRun: true}, &out)
			if err != nil {
				t.Fatal(err)
			}
			if err := do.taken(t.Context(), i); err != nil && !Begun(err) {
				t.Fatal(err)
			}
			if got := strings.Count(out.String(), "Liqo's own PodMonitor of them is refused"); got != want {
				t.Errorf("%s with %s says it %d times, want %d:\n%s", name, flag, got, want, out.String())
			}
		}
	}
}

// TestLeaveOne has a consumer of two brokers leave one, and then the other. The sign that its virtual kubelet is ours comes off its node
// with the last, though Liqo's has not taken it off, and what pods were told of their paths.
func TestLeaveOne(t *testing.T) {
	milan, turin := cluster.Identity{ID: "a", Name: "milan"}, cluster.Identity{ID: "b", Name: "turin"}
	manager := pod("controller-manager", "--kubelet-image=liqo/virtual-kubelet:v0.9.4", "--kubelet-image=capacitorset/liqo-broker-vk:v0.1.0",
		flagOf(milan), flagOf(turin))
	manager.Status.UpdatedReplicas, manager.Status.Replicas, manager.Status.AvailableReplicas = 1, 1, 1
	role := virtualKubeletRights()
	virtual := &v09.VirtualNode{ObjectMeta: metav1.ObjectMeta{Namespace: "liqo-tenant-turin", Name: "liqo-turin"}}
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "liqo-turin",
		Labels:      map[string]string{liqo.LabelVirtualKubelet: "v0.1.0", "kept": "yes"},
		Annotations: map[string]string{liqo.LabelVirtualKubelet: "v0.1.0"}}}
	told := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web-1", Annotations: map[string]string{"kept": "yes",
		"brokering.liqo.io/path": "relay", "brokering.liqo.io/path-since": "2030-01-02T03:04:05Z",
		"brokering.liqo.io/provider": "c", "brokering.liqo.io/provider-name": "oslo"}}}
	c := at(t, line09{}, interceptor.Funcs{}, manager, role, virtual, node, told, peer("a", "milan"), peer("b", "turin"))
	for _, step := range []struct {
		leave cluster.Identity
		want  []string
	}{
		{milan, []string{"--kubelet-image=liqo/virtual-kubelet:v0.9.4", "--kubelet-image=capacitorset/liqo-broker-vk:v0.1.0", flagOf(turin)}},
		{turin, []string{"--kubelet-image=liqo/virtual-kubelet:v0.9.4"}},
	} {
		var out strings.Builder
		i, err := New(c, Options{Broker: step.leave.Name}, &out)
		if err != nil {
			t.Fatal(err)
		}
		if err := deed((*Installer).Unprepare).taken(t.Context(), i); err != nil {
			t.Fatalf("%v\n%s", err, out.String())
		}
		var d appsv1.Deployment
		if err := c.Get(t.Context(), client.ObjectKeyFromObject(manager), &d); err != nil {
			t.Fatal(err)
		}
		if args := d.Spec.Template.Spec.Containers[0].Args; !slices.Equal(args, step.want) {
			t.Errorf("without %s the flags are %v, want %v", step.leave.Name, args, step.want)
		}
		if err := c.Get(t.Context(), client.ObjectKeyFromObject(node), node); err != nil {
			t.Fatal(err)
		}
		if got := node.Labels[liqo.LabelVirtualKubelet] + node.Annotations[liqo.LabelVirtualKubelet]; (got == "") != (step.leave == turin) ||
			node.Labels["kept"] == "" {
			t.Errorf("without %s the node is %v", step.leave.Name, node.ObjectMeta)
		}
		if err := c.Get(t.Context(), client.ObjectKeyFromObject(told), told); err != nil {
			t.Fatal(err)
		}
		left := 5
		if step.leave == turin {
			left = 1
		}
		if len(told.Annotations) != left || told.Annotations["kept"] == "" {
			t.Errorf("without %s a pod is told %v", step.leave.Name, told.Annotations)
		}
	}
}

// TestLostInTheMiddle loses the connection, and has somebody press Ctrl-C, at each write of an installation in turn: the error names the
// step and says how to go on, and nothing is written after it.
func TestLostInTheMiddle(t *testing.T) {
	manager := pod("controller-manager", "--kubelet-image=liqo/virtual-kubelet:v0.9.4")
	for _, interrupt := range []bool{false, true} {
		for at1 := 1; at1 <= 3; at1++ {
			ctx, cancel := context.WithCancel(t.Context())
			writes := 0
			c := at(t, line09{}, interceptor.Funcs{Patch: func(
				ctx context.Context, _ client.WithWatch, _ client.Object, _ client.Patch, _ ...client.PatchOption,
			) error {
				if writes++; writes < at1 {
					return nil
				}
				if interrupt {
					cancel()
					return ctx.Err()
				}
				return &url.Error{Op: "Patch", URL: "https://example", Err: errors.New("connection reset")}
			}}, manager)
			var out strings.Builder
			i, err := New(c, Options{}, &out)
			if err != nil {
				t.Fatal(err)
			}
			err = deed((*Installer).Install).taken(ctx, i)
			cancel()
			want := "connection reset"
			if interrupt {
				want = "interrupted; run the same command again to go on"
			}
			if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "step 1 of") || writes != at1 {
				t.Errorf("interrupted %t at write %d of %d: %v", interrupt, at1, writes, err)
			}
		}
	}
}

// TestDaemonOfHelm installs what is missing beside a daemon that Helm runs: nothing of that is written.
func TestDaemonOfHelm(t *testing.T) {
	i, err := New(at(t, line09{}, interceptor.Funcs{}, daemonOfHelm()), Options{}, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	names := func() (names []string) {
		if err := i.lookForHelm(t.Context()); err != nil {
			t.Fatal(err)
		}
		steps, err := i.brokerSteps()
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range steps {
			names = append(names, s.name)
		}
		return names
	}
	ofHelm := names()
	d := daemonOfHelm()
	d.Labels = nil
	if err := i.Update(t.Context(), d); err != nil {
		t.Fatal(err)
	}
	if own := names(); len(own) != len(ofHelm)+2 || ofHelm[0] != "wait for the daemon and the guard, which Helm runs" ||
		slices.Contains(ofHelm, "run the daemon and the guard") ||
		!slices.Contains(own, "run the daemon and the guard") || !slices.Equal(own[3:], ofHelm[1:]) {
		t.Errorf("the steps beside Helm are %q, else %q", ofHelm, own)
	}
}
