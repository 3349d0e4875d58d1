// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package diagnosis

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/capacitorset/liqo-broker/pkg/api/connectorv1alpha1"
	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
	"github.com/capacitorset/liqo-broker/pkg/install"
	"github.com/capacitorset/liqo-broker/pkg/liqo"
	v09 "github.com/capacitorset/liqo-broker/pkg/liqo/v09"
)

// trader makes a cluster one that sells, and that is well.
func trader(t *testing.T, c client.Client) {
	t.Helper()
	own := metav1.ObjectMeta{Namespace: install.ConnectorName, Name: install.ConnectorName}
	d := &appsv1.Deployment{ObjectMeta: own}
	d.Spec.Template.Spec.Containers = []corev1.Container{{Name: "connector", Args: []string{"--endpoint=$(ENDPOINT)"}}}
	d.Status.Replicas, d.Status.UpdatedReplicas, d.Status.AvailableReplicas, d.Status.ReadyReplicas = 1, 1, 1, 1
	holder := "liqo-broker-connector-1"
	lease := &coordinationv1.Lease{ObjectMeta: own}
	lease.Spec.HolderIdentity, lease.Spec.RenewTime = &holder, &metav1.MicroTime{Time: now.Add(-10 * time.Second)}
	registry := &connectorv1alpha1.Registry{ObjectMeta: metav1.ObjectMeta{Name: "eu"}}
	for _, kind := range []string{connectorv1alpha1.ConditionEnrolled, connectorv1alpha1.ConditionFollowing} {
		registry.Status.Conditions = append(registry.Status.Conditions, metav1.Condition{Type: kind, Status: metav1.ConditionTrue, Reason: kind})
	}
	offer := &connectorv1alpha1.Offer{ObjectMeta: metav1.ObjectMeta{Name: "compute"}}
	service := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: install.ConnectorName, Name: connectorPlugin}}
	answers := &discoveryv1.EndpointSlice{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: install.ConnectorName, Name: "x", Labels: map[string]string{discoveryv1.LabelServiceName: connectorPlugin},
		},
		Endpoints: []discoveryv1.Endpoint{{Addresses: []string{"10.0.0.2"}}},
	}
	settings := &corev1.ConfigMap{ObjectMeta: own, Data: map[string]string{"endpoint": "https://203.0.113.7:30446"}}
	for _, o := range []client.Object{d, lease, registry, offer, service, answers, settings, &corev1.Secret{ObjectMeta: own}} {
		if err := c.Create(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
	var out strings.Builder
	installer, err := install.New(c, install.Options{Timeout: 5 * time.Second}, &out)
	if err != nil {
		t.Fatal(err)
	}
	if err := taken(t, installer, (*install.Installer).Guard); err != nil {
		t.Fatalf("%v\n%s", err, out.String())
	}
	answering := &discoveryv1.EndpointSlice{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: install.GuardName, Name: install.GuardName, Labels: map[string]string{discoveryv1.LabelServiceName: install.GuardName},
		},
		Endpoints: []discoveryv1.Endpoint{{Addresses: []string{"10.0.0.3"}}},
	}
	if err := c.Create(t.Context(), answering); err != nil && !apierrors.IsAlreadyExists(err) { // A broker that trades has it.
		t.Fatal(err)
	}
	certify(t, c, install.GuardName, now.Add(365*24*time.Hour))
}

// flags gives Liqo's controller manager flags.
func flags(t *testing.T, c client.Client, args ...string) {
	t.Helper()
	var manager appsv1.Deployment
	if err := c.Get(t.Context(), client.ObjectKey{Namespace: liqoNamespace, Name: "liqo-controller-manager"}, &manager); err != nil {
		t.Fatal(err)
	}
	manager.Spec.Template.Spec.Containers[0].Args = append([]string{"--kubelet-image=liqo/virtual-kubelet:v0.9.4"}, args...)
	if err := c.Update(t.Context(), &manager); err != nil {
		t.Fatal(err)
	}
}

// TestTrader looks at a cluster that trades, which is no broker though Liqo asks the connector.
func TestTrader(t *testing.T) {
	c := fakeCluster(t, interceptor.Funcs{})
	trader(t, c)
	d := diagnose(t, c)
	if !d.Healthy || !slices.Equal(d.Roles, []string{"trader"}) {
		t.Errorf("%t %v:\n%s", d.Healthy, d.Roles, d)
	}
	for _, check := range d.Checks {
		if check.State != OK && (check.Area == connectorArea || check.Area == guardArea) {
			t.Errorf("not as it should be: %+v", check)
		}
	}
	installer, err := install.New(c, install.Options{Force: true}, t.Output())
	if err != nil {
		t.Fatal(err)
	}
	err = taken(t, installer, (*install.Installer).Uninstall)
	if err == nil || !strings.Contains(err.Error(), "its trade needs what would be removed") {
		t.Errorf("it is taken for a broker: %v", err)
	}
	if d := diagnose(t, c); !d.Healthy {
		t.Errorf("uninstall has taken something from it:\n%s", d)
	}
}

// TestBrokerThatTrades has a broker trade, and be no broker any more, and trade no more: Liqo's IPAM is closed once, and as long as either
// needs that.
func TestBrokerThatTrades(t *testing.T) {
	c := fakeCluster(t, interceptor.Funcs{})
	stock := beside(t, c)
	broker(t, c)
	trader(t, c)
	check := func(when string, want ...string) {
		t.Helper()
		if got := beside(t, c); !slices.Equal(got, want) {
			t.Errorf("%s the pod of Liqo's network manager has the containers %v, want %v", when, got, want)
		}
		if d := diagnose(t, c); !strings.Contains(d.String(), "Done: close Liqo's IPAM to all but virtual kubelets") {
			t.Errorf("%s it is not said that Liqo's IPAM is closed:\n%s", when, d)
		}
	}
	check("of a broker that trades,", "ipam-guard", "network-manager", "remote-ipam", "shut-ipam")

	var out strings.Builder
	installer, err := install.New(c, install.Options{Timeout: 5 * time.Second, Force: true}, &out)
	if err != nil {
		t.Fatal(err)
	}
	if err := taken(t, installer, (*install.Installer).Uninstall); err != nil {
		t.Fatalf("%v\n%s", err, out.String())
	}
	check("without the broker,", "ipam-guard", "network-manager", "shut-ipam")
	if d := diagnose(t, c); !d.Healthy || !slices.Equal(d.Roles, []string{"trader"}) {
		t.Errorf("without the broker, who trades lacks something:\n%s", d)
	}
	const asks = "ask the connector, and use our virtual kubelet\n      patch"
	if err := taken(t, installer, (*install.Installer).Guard); err != nil || strings.Contains(out.String(), asks) {
		t.Errorf("without the broker, guard finds something to do: %v\n%s", err, out.String())
	}
	manager, err := liqo.ReadManager(t.Context(), c, liqoNamespace)
	if err != nil {
		t.Fatal(err)
	}
	if plugin := manager.Value("--resource-plugin-address"); plugin != connectorPlugin+"."+install.ConnectorName+":7000" ||
		slices.ContainsFunc(manager, func(flag string) bool { return strings.Contains(flag, "liqo-broker-resource-plugin") }) {
		t.Errorf("without the broker, Liqo asks %s: %v", plugin, manager)
	}
	rights := &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "liqo-broker-ipam-guard"}}
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(rights), rights); err != nil {
		t.Errorf("without the broker, who opens Liqo's IPAM to virtual kubelets may not look for them: %v", err)
	}

	connector := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: install.ConnectorName, Name: install.ConnectorName}}
	if err := c.Delete(t.Context(), connector); err != nil {
		t.Fatal(err)
	}
	if err := taken(t, installer, (*install.Installer).Unguard); err != nil {
		t.Fatalf("%v\n%s", err, out.String())
	}
	if got := beside(t, c); !slices.Equal(got, stock) {
		t.Errorf("at last the pod of Liqo's network manager has the containers %v, want %v", got, stock)
	}
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(rights), rights); !apierrors.IsNotFound(err) {
		t.Errorf("at last the rights are there, or %v", err)
	}
}

// TestTraderThatConsumes has a cluster that trades buy from a broker, which peers with it in turn then, and leave it: it stays guarded.
func TestTraderThatConsumes(t *testing.T) {
	c := fakeCluster(t, interceptor.Funcs{})
	trader(t, c)
	service := &corev1.Service{ObjectMeta: metav1.ObjectMeta{
		Namespace: v09.TwinNameOfLiqo(cluster.Identity{ID: "11111111-aaaa", Name: "milan"}), Name: "liqo-network-manager",
	}}
	if err := c.Create(t.Context(), service); err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	of := func(broker string) *install.Installer {
		t.Helper()
		installer, err := install.New(c, install.Options{Timeout: 5 * time.Second, Broker: broker}, &out)
		if err != nil {
			t.Fatal(err)
		}
		return installer
	}
	milan := &v09.ForeignCluster{ObjectMeta: metav1.ObjectMeta{Name: "milan"}}
	for _, tc := range []struct {
		broker     string
		byContract bool
	}{{"", false}, {"milan", false}, {"", true}, {"milan", true}} {
		change(milan, func() {
			if tc.byContract {
				milan.Annotations = map[string]string{"brokering.liqo.io/by-contract": "true"}
			}
			v09.ProvideNoMore(milan)
		})(t, c)
		if err := taken(t, of(tc.broker), (*install.Installer).Prepare); err != nil {
			t.Fatalf("%v\n%s", err, out.String())
		}
		err := c.Get(t.Context(), client.ObjectKeyFromObject(milan), milan)
		if want := tc.byContract && tc.broker != ""; err != nil || v09.Provides(milan) != want {
			t.Errorf("by a contract (%t), named %q: the broker may peer in turn: %t, %v", tc.byContract, tc.broker, v09.Provides(milan), err)
		}
	}
	if d := diagnose(t, c); !slices.Equal(d.Roles, []string{"consumer", "trader"}) {
		t.Errorf("prepared: %v", d.Roles)
	}
	for _, broker := range []string{"", "milan"} {
		prepared := taken(t, of(broker), (*install.Installer).Prepare)
		if err := errors.Join(prepared, taken(t, of(broker), (*install.Installer).Unprepare)); err != nil {
			t.Fatalf("%v\n%s", err, out.String())
		}
		if d := diagnose(t, c); !d.Healthy || !slices.Equal(d.Roles, []string{"trader"}) {
			t.Errorf("unprepare --broker=%q: %t %v:\n%s", broker, d.Healthy, d.Roles, d)
		}
	}
}

// beside returns the names of what runs in the pod of Liqo's network manager, in order.
func beside(t *testing.T, c client.Client) []string {
	t.Helper()
	var d appsv1.Deployment
	if err := c.Get(t.Context(), client.ObjectKey{Namespace: liqoNamespace, Name: "liqo-network-manager"}, &d); err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, container := range slices.Concat(d.Spec.Template.Spec.InitContainers, d.Spec.Template.Spec.Containers) {
		names = append(names, container.Name)
	}
	slices.Sort(names)
	return names
}

// TestIllTrader breaks a cluster that trades in one way after the other: each is found, and says what to do.
func TestIllTrader(t *testing.T) {
	own := metav1.ObjectMeta{Namespace: install.ConnectorName, Name: install.ConnectorName}
	renewed := func(at time.Time) func(*testing.T, client.Client) {
		lease := &coordinationv1.Lease{ObjectMeta: own}
		return change(lease, func() { lease.Spec.RenewTime = &metav1.MicroTime{Time: at} })
	}
	d, registry := &appsv1.Deployment{ObjectMeta: own}, &connectorv1alpha1.Registry{ObjectMeta: metav1.ObjectMeta{Name: "eu"}}
	manager := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: liqoNamespace, Name: "liqo-network-manager"}}
	hooks := &admissionv1.ValidatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: install.GuardName}}
	for name, tc := range map[string]struct {
		do    func(*testing.T, client.Client)
		state State
		says  string
	}{
		"Down": {
			change(d, func() { d.Status.ReadyReplicas = 0 }), Problem,
			"Deployment liqo-broker-connector/liqo-broker-connector: 0 of 1 replicas are ready",
		},
		"NobodyLeads": {renewed(now.Add(-time.Hour)), Problem, "No replica of the connector leads"},
		"NeverLed":    {remove(&coordinationv1.Lease{ObjectMeta: own}), Problem, "No replica of the connector leads"},
		"Clock":       {renewed(now.Add(time.Hour)), Problem, "The clock of the connector is 1h0m0s ahead"},
		"KeyGone": {
			remove(&corev1.Secret{ObjectMeta: own}), Problem, "There is no Secret liqo-broker-connector/liqo-broker-connector with the key",
		},
		"NoRegistry": {remove(registry.DeepCopy()), Note, "There is no Registry"},
		"Pending": {change(registry, func() {
			meta.SetStatusCondition(&registry.Status.Conditions,
				metav1.Condition{Type: "Enrolled", Status: metav1.ConditionFalse, Reason: "AwaitsAdmission", Message: "wait"})
		}), Problem, "Registry eu is not Enrolled: AwaitsAdmission: wait"},
		"NewRegistry": {
			change(registry, func() { registry.Status.Conditions = nil }), Problem, "Registry eu: the connector has not looked at it",
		},
		"Nowhere": {remove(&corev1.ConfigMap{ObjectMeta: own}), Problem, "buyers are not told where to negotiate"},
		"NoFlag": {
			func(t *testing.T, c client.Client) { t.Helper(); flags(t, c) }, Problem, "Liqo does not ask the connector what to offer",
		},
		"OpenIPAM": {change(manager, func() {
			pod := &manager.Spec.Template.Spec
			pod.InitContainers, pod.Containers = nil,
				slices.DeleteFunc(pod.Containers, func(c corev1.Container) bool { return c.Name == "ipam-guard" })
		}), Problem, "Not done, or done otherwise: close Liqo's IPAM to all but virtual kubelets: patch Deployment liqo/liqo-network-manager"},
		"GuardGone": {
			remove(&admissionv1.ValidatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: install.GuardName}}), Problem,
			"The connector neither buys nor sells",
		},
		"GuardSilent": {
			remove(&discoveryv1.EndpointSlice{ObjectMeta: metav1.ObjectMeta{Namespace: install.GuardName, Name: install.GuardName}}), Problem,
			"Nobody answers at Service liqo-broker-guard/liqo-broker-guard",
		},
		"GuardUnknown": {
			change(hooks, func() { hooks.Webhooks[0].ClientConfig.CABundle = nil }), Problem,
			"There is no certificate of webhook isolate.brokering.liqo.io",
		},
		"GuardExpired": {
			certified(install.GuardName, now.Add(-time.Minute)), Problem, "The certificate of webhook isolate.brokering.liqo.io expired",
		},
		"GuardExpires": {certified(install.GuardName, now.Add(time.Hour)), Note, "The certificate of webhook isolate.brokering.liqo.io expires"},
		"LiqosKubelets": {
			func(t *testing.T, c client.Client) { t.Helper(); flags(t, c, "--resource-plugin-address=x") }, Problem,
			"Liqo's own virtual kubelet hands out the Secrets",
		},
		"NoPlugin": {
			remove(&discoveryv1.EndpointSlice{ObjectMeta: metav1.ObjectMeta{Namespace: install.ConnectorName, Name: "x"}}), Problem,
			"Nobody answers at Service liqo-broker-connector/liqo-broker-connector-plugin",
		},
		"NoBroker": {
			change(d, func() { d.Spec.Template.Spec.Containers[0].Args = []string{"--endpoint=https://a:1", "--broker"} }), Problem,
			"the flag --broker, and this cluster is no broker",
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := fakeCluster(t, interceptor.Funcs{})
			trader(t, c)
			tc.do(t, c)
			d := diagnose(t, c)
			n := slices.IndexFunc(d.Checks, func(c Check) bool { return strings.Contains(c.What, tc.says) })
			if n < 0 || d.Checks[n].State != tc.state || d.Checks[n].Do == "" || d.Healthy != (tc.state != Problem) {
				t.Errorf("it does not say %q as a %s with what to do:\n%s", tc.says, tc.state, d)
			}
		})
	}
}

// TestRefuses has the API server answer what the connector asks before it trades.
func TestRefuses(t *testing.T) {
	forbidden := func(why string) error {
		return apierrors.NewForbidden(schema.GroupResource{Resource: "certificatesigningrequests"}, "", errors.New(why))
	}
	for name, tc := range map[string]struct {
		answer error
		state  State
		says   string
	}{
		"Refused": {probed(liqo.ProbeRefused), OK, "The connector sees that peers are kept in bounds"},
		"Admitted": {
			nil, Problem, "The connector neither buys nor sells: this cluster is not guarded against its peers: nobody refuses an identity",
		},
		"Silent":     {apierrors.NewInternalError(errors.New("failed calling webhook")), Problem, "the guard of identities does not answer"},
		"NoRights":   {forbidden("no role"), Problem, "since it cannot see whether peers are kept in bounds"},
		"NotAllowed": {forbidden("User \"ann\" cannot impersonate resource"), Unknown, "Cannot read whether the connector sees that"},
		"Lost":       {errors.New("connection refused"), Unknown, "Cannot read whether the connector sees that"},
	} {
		t.Run(name, func(t *testing.T) {
			c := fakeCluster(t, interceptor.Funcs{})
			trader(t, c)
			asConnector := interceptor.NewClient(c, interceptor.Funcs{
				Create: func(context.Context, client.WithWatch, client.Object, ...client.CreateOption) error { return tc.answer },
			})
			d, err := Run(t.Context(), Config{Client: c, Unguarded: unguarded(asConnector), Now: now, Observe: nothing})
			if err != nil {
				t.Fatal(err)
			}
			n := slices.IndexFunc(d.Checks, func(c Check) bool { return strings.Contains(c.What, tc.says) })
			if n < 0 || d.Checks[n].State != tc.state || (d.Checks[n].Do == "") != (tc.state == OK) || d.Healthy != (tc.state != Problem) {
				t.Errorf("it does not say %q as a %s:\n%s", tc.says, tc.state, d)
			}
		})
	}
}

// TestBuyer holds that who sells nothing needs no endpoint.
func TestBuyer(t *testing.T) {
	c := fakeCluster(t, interceptor.Funcs{})
	trader(t, c)
	offer := &connectorv1alpha1.Offer{ObjectMeta: metav1.ObjectMeta{Name: "compute"}}
	own := metav1.ObjectMeta{Namespace: install.ConnectorName, Name: install.ConnectorName}
	if err := errors.Join(c.Get(t.Context(), client.ObjectKeyFromObject(offer), offer),
		c.Delete(t.Context(), &corev1.ConfigMap{ObjectMeta: own})); err != nil {
		t.Fatal(err)
	}
	offer.Spec.Sale = connectorv1alpha1.SaleClosed
	if err := c.Update(t.Context(), offer); err != nil {
		t.Fatal(err)
	}
	if d := diagnose(t, c); !d.Healthy || !strings.Contains(d.String(), "this cluster buys only") {
		t.Errorf("%s", d)
	}
}

// TestTraderCannotBeKnown lacks rights and kinds: that is said, with the rest.
func TestTraderCannotBeKnown(t *testing.T) {
	missing := &meta.NoKindMatchError{GroupKind: schema.GroupKind{Group: "brokering.liqo.io", Kind: "Offer"}}
	for says, cause := range map[string]error{
		"Cannot read Offers":        apierrors.NewForbidden(schema.GroupResource{Resource: "offers"}, "", errors.New("no role")),
		"The kind Offer is missing": missing,
	} {
		c := fakeCluster(t, interceptor.Funcs{List: func(
			ctx context.Context, c client.WithWatch, list client.ObjectList, options ...client.ListOption,
		) error {
			if list.GetObjectKind().GroupVersionKind().Kind == "OfferList" {
				return cause
			}
			return c.List(ctx, list, options...)
		}})
		trader(t, c)
		if d := diagnose(t, c); !strings.Contains(d.String(), says) || !strings.Contains(d.String(), "leads") {
			t.Errorf("it does not say %q:\n%s", says, d)
		}
	}
	forbidden := apierrors.NewForbidden(schema.GroupResource{Resource: "deployments"}, install.ConnectorName, errors.New("no role"))
	c := fakeCluster(t, interceptor.Funcs{Get: func(
		ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, options ...client.GetOption,
	) error {
		if key.Namespace == install.ConnectorName {
			return forbidden
		}
		return c.Get(ctx, key, o, options...)
	}})
	if d := diagnose(t, c); !strings.Contains(d.String(), "Cannot read whether there is a connector") {
		t.Errorf("%s", d)
	}
}
