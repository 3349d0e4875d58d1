// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package diagnosis

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"maps"
	"net/url"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/meta/testrestmapper"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/capacitorset/liqo-broker/pkg/api/connectorv1alpha1"
	"github.com/capacitorset/liqo-broker/pkg/api/v1alpha1"
	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
	"github.com/capacitorset/liqo-broker/pkg/install"
	"github.com/capacitorset/liqo-broker/pkg/liqo"
	v09 "github.com/capacitorset/liqo-broker/pkg/liqo/v09"
	"github.com/capacitorset/liqo-broker/pkg/liqo/v09/liqotest"
	"github.com/capacitorset/liqo-broker/pkg/overview"
	"github.com/capacitorset/liqo-broker/pkg/trade/connector/guarded"
	"github.com/capacitorset/liqo-broker/pkg/trade/connector/peering"
)

var now = time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC)

// settle gives an object what controllers of Kubernetes write into it when all goes well.
func settle(object map[string]any) {
	switch object["kind"] {
	case "Deployment":
		object["status"] = map[string]any{
			"replicas": int64(1), "updatedReplicas": int64(1), "availableReplicas": int64(1), "readyReplicas": int64(1),
		}
	case "CustomResourceDefinition":
		object["status"] = map[string]any{"conditions": []any{map[string]any{"type": "Established", "status": "True"}}}
	}
}

// merged returns an object with what somebody applies to it.
func merged(is, applied any) any {
	from, ok1 := is.(map[string]any)
	to, ok2 := applied.(map[string]any)
	if !ok1 || !ok2 {
		return applied
	}
	all := map[string]any{}
	maps.Copy(all, from)
	for key, value := range to {
		all[key] = merged(from[key], value)
	}
	return all
}

// has reports whether a value has all that somebody applies; items of lists are known by their place.
func has(is, applied any) bool {
	switch applied := applied.(type) {
	case nil:
		return true
	case map[string]any:
		is, ok := is.(map[string]any)
		for key, value := range applied {
			ok = ok && has(is[key], value)
		}
		return ok || len(applied) == 0
	case []any:
		is, ok := is.([]any)
		ok = ok && len(is) == len(applied)
		for n := range applied {
			ok = ok && has(is[n], applied[n])
		}
		return ok
	default:
		a, err1 := json.Marshal(is) // Numbers are of several types.
		b, err2 := json.Marshal(applied)
		return err1 == nil && err2 == nil && bytes.Equal(a, b)
	}
}

// apply is what an API server does, for the fake client that does not.
func apply(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, options ...client.PatchOption) error {
	if p.Type() != types.ApplyPatchType {
		return c.Patch(ctx, o, p, options...)
	}
	want, _ := o.(*unstructured.Unstructured)
	live := &unstructured.Unstructured{}
	live.SetGroupVersionKind(want.GroupVersionKind())
	chosen := &client.PatchOptions{}
	chosen.ApplyOptions(options)
	err := c.Get(ctx, client.ObjectKeyFromObject(want), live)
	if apierrors.IsNotFound(err) {
		settle(want.Object)
		return c.Create(ctx, want)
	}
	if err != nil {
		return err
	}
	if has(live.Object, want.Object) {
		want.Object = live.Object
	} else {
		want.Object, _ = merged(live.Object, want.Object).(map[string]any)
	}
	if len(chosen.DryRun) > 0 {
		return nil
	}
	return c.Update(ctx, want)
}

// foreign is a peer that provides.
func foreign(t *testing.T) *v09.ForeignCluster {
	t.Helper()
	const text = `{
		"metadata": {"name": "milan"},
		"spec": {"peeringType": "OutOfBand", "clusterIdentity": {"clusterID": "11111111-aaaa", "clusterName": "milan"}},
		"status": {"tenantNamespace": {"local": "liqo-tenant-milan"}, "peeringConditions": [{"type": "OutgoingPeering", "status": "Established"}]}
	}`
	fc := &v09.ForeignCluster{}
	if err := json.Unmarshal([]byte(text), fc); err != nil {
		t.Fatal(err)
	}
	return fc
}

// fakeCluster is a cluster with stock Liqo, which has two peers; what a test changes is done after the installation.
func fakeCluster(t *testing.T, funcs interceptor.Funcs) client.WithWatch {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), v1alpha1.AddToScheme(scheme), connectorv1alpha1.AddToScheme(scheme),
		v09.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	deployment := func(name string, args ...string) *appsv1.Deployment {
		d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: liqoNamespace, Name: "liqo-" + name}}
		d.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": name}}
		d.Spec.Template.Spec.Containers = []corev1.Container{{Name: name, Image: "liqo/" + name + ":v0.9.4", Args: args,
			Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("500m")}}}}
		d.Status.Replicas, d.Status.UpdatedReplicas, d.Status.AvailableReplicas, d.Status.ReadyReplicas = 1, 1, 1, 1
		return d
	}
	service := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: liqoNamespace, Name: "liqo-network-manager"}}
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "worker"}}
	node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
	milan := foreign(t)
	tunnel := &v09.TunnelEndpoint{ObjectMeta: metav1.ObjectMeta{Namespace: "liqo-tenant-milan", Name: "milan"}}
	tunnel.Spec.ClusterIdentity, tunnel.Spec.RemotePodCIDR, tunnel.Spec.RemoteNATPodCIDR = milan.Spec.ClusterIdentity, "10.1.0.0/16", "None"
	tunnel.Spec.RemoteExternalCIDR, tunnel.Spec.RemoteNATExternalCIDR = "10.2.0.0/16", "None"
	tunnel.Status.Connection.Status = "Connected"
	funcs.Patch = apply
	if funcs.Create == nil {
		funcs.Create = func(ctx context.Context, c client.WithWatch, o client.Object, options ...client.CreateOption) error {
			if review, is := o.(*authorizationv1.SelfSubjectAccessReview); is {
				review.Status.Allowed = true
				return nil
			}
			if _, is := o.(*certificatesv1.CertificateSigningRequest); is {
				return probed(liqo.ProbeRefused)
			}
			return c.Create(ctx, o, options...)
		}
	}
	return interceptor.NewClient(fake.NewClientBuilder().WithScheme(scheme).WithRESTMapper(mapper(scheme)).WithObjects(
		deployment("controller-manager", "--kubelet-image=liqo/virtual-kubelet:v0.9.4"), deployment("gateway"), deployment("network-manager"),
		service, node, milan, tunnel, &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "liqo-virtual-kubelet-local"}},
	).WithIndex(&corev1.ConfigMap{}, "metadata.name", nameOf).WithIndex(&rbacv1.RoleBinding{}, "metadata.name", nameOf).Build(), funcs)
}

// probed is how the API server says that a webhook refuses a certificate.
func probed(message string) error {
	err := apierrors.NewForbidden(schema.GroupResource{Group: certificatesv1.GroupName, Resource: "certificatesigningrequests"}, "", nil)
	err.ErrStatus.Message = "admission webhook \"guard-identities.brokering.liqo.io\" denied the request: " + message
	return err
}

// nameOf is the index of names, which every API server has.
func nameOf(o client.Object) []string { return []string{o.GetName()} }

func mapper(scheme *runtime.Scheme) meta.RESTMapper {
	return testrestmapper.TestOnlyStaticRESTMapper(scheme)
}

// taken looks at the cluster, and then does something to it.
func taken(
	t *testing.T, installer *install.Installer, do func(*install.Installer, context.Context, *install.Setup) error,
) error {
	t.Helper()
	seen, err := installer.Look(t.Context())
	if err != nil {
		return err
	}
	return do(installer, t.Context(), &seen)
}

// broker is a cluster that was made a broker, and is well.
func broker(t *testing.T, c client.Client) {
	t.Helper()
	var out strings.Builder
	installer, err := install.New(c, install.Options{Timeout: 5 * time.Second}, &out)
	if err != nil {
		t.Fatal(err)
	}
	if err := taken(t, installer, (*install.Installer).Install); err != nil {
		t.Fatalf("%v\n%s", err, out.String())
	}
	holder := "liqo-broker-1"
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: install.BrokerNamespace, Name: install.BrokerName}}
	lease.Spec.HolderIdentity, lease.Spec.RenewTime = &holder, &metav1.MicroTime{Time: now.Add(-10 * time.Second)}
	objects := []client.Object{lease}
	for _, service := range []client.ObjectKey{
		{Namespace: "liqo-broker", Name: "liqo-broker"}, {Namespace: "liqo-broker", Name: "liqo-broker-resource-plugin"},
		{Namespace: "liqo-broker", Name: "liqo-broker-webhook"}, {Namespace: "liqo", Name: "liqo-network-manager"},
		{Namespace: install.GuardName, Name: install.GuardName},
	} {
		objects = append(objects, &discoveryv1.EndpointSlice{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: service.Namespace, Name: service.Name, Labels: map[string]string{discoveryv1.LabelServiceName: service.Name},
			},
			Endpoints: []discoveryv1.Endpoint{{Addresses: []string{"10.0.0.1"}}},
		})
	}
	for _, o := range objects {
		if err := c.Create(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
	certify(t, c, install.BrokerName, now.Add(365*24*time.Hour))
	certify(t, c, install.GuardName, now.Add(365*24*time.Hour))
}

// certify announces a certificate for all webhooks of a program.
func certify(t *testing.T, c client.Client, program string, until time.Time) {
	t.Helper()
	bundle := certificate(t, until)
	var mutating admissionv1.MutatingWebhookConfiguration
	var validating admissionv1.ValidatingWebhookConfiguration
	named := client.ObjectKey{Name: program}
	if err := errors.Join(c.Get(t.Context(), named, &mutating), c.Get(t.Context(), named, &validating)); err != nil {
		t.Fatal(err)
	}
	for i := range mutating.Webhooks {
		mutating.Webhooks[i].ClientConfig.CABundle = bundle
	}
	for i := range validating.Webhooks {
		validating.Webhooks[i].ClientConfig.CABundle = bundle
	}
	if err := errors.Join(c.Update(t.Context(), &mutating), c.Update(t.Context(), &validating)); err != nil {
		t.Fatal(err)
	}
}

func certified(program string, until time.Time) func(*testing.T, client.Client) {
	return func(t *testing.T, c client.Client) {
		t.Helper()
		certify(t, c, program, until)
	}
}

func nothing(context.Context, client.Client) (overview.Observed, error) {
	d := &appsv1.Deployment{}
	d.Status.ReadyReplicas = 1
	d.Spec.Template.Spec.Containers = []corev1.Container{{Args: []string{"--with-catalog"}}}
	return overview.Observed{Liqo: v09.Line{}, Deployment: d}, nil
}

// unguarded asks as the connector does.
func unguarded(c client.Client) func(ctx context.Context) (string, error) {
	return func(ctx context.Context) (string, error) {
		err := guarded.New(c, liqoNamespace, clock.RealClock{}).Check(ctx)
		if errors.Is(err, peering.ErrUnguarded) {
			return err.Error(), nil
		}
		return "", err
	}
}

func diagnose(t *testing.T, c client.Client) *Diagnosis {
	t.Helper()
	d, err := Run(t.Context(), Config{Client: c, Unguarded: unguarded(c), Now: now, Observe: nothing, Plugin: "v0.1.0"})
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// TestWell looks at a broker as the installation leaves it.
func TestWell(t *testing.T) {
	c := fakeCluster(t, interceptor.Funcs{})
	broker(t, c)
	d := diagnose(t, c)
	if !d.Healthy || !slices.Equal(d.Roles, []string{"broker"}) || d.Liqo != "v0.9.4" {
		t.Errorf("%t %v %s:\n%s", d.Healthy, d.Roles, d.Liqo, d)
	}
	for _, check := range d.Checks {
		if check.State == Unknown {
			t.Errorf("unknown: %+v", check)
		}
	}
}

// TestStock looks at clusters with Liqo alone, which share their resources, use others, or neither. Only what is broken is a problem.
func TestStock(t *testing.T) {
	milan := &v09.ForeignCluster{ObjectMeta: metav1.ObjectMeta{Name: "milan"}}
	gateway := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: liqoNamespace, Name: v09.GatewayName}}
	provides := change(milan, func() { milan.Status.PeeringConditions[0].Type = "IncomingPeering" })
	offer := func(status v09.ResourceOffer) func(*testing.T, client.Client) {
		status.Namespace, status.Name = "liqo-tenant-milan", "resource-offer"
		return create(&status)
	}
	accepted, refused := v09.ResourceOffer{}, v09.ResourceOffer{}
	accepted.Status.Phase, refused.Status.Phase = "Accepted", "Refused"
	ofPeer := accepted
	ofPeer.Labels = map[string]string{liqo.LabelReplicated: "true"}
	for name, tc := range map[string]struct {
		do      []func(*testing.T, client.Client)
		roles   []string
		healthy bool
		says    string
	}{
		"BusyGateway": {
			[]func(*testing.T, client.Client){provides, offer(accepted), change(gateway, func() {
				gateway.Spec.Template.Spec.Containers[0].Resources = corev1.ResourceRequirements{}
			})}, []string{"provider"}, true, gatewayShare,
		},
		"Provider": {
			[]func(*testing.T, client.Client){provides, offer(accepted)}, []string{"provider"}, true,
			"  milan (11111111-aaaa) has accepted what it is offered. A provider needs nothing of this project\n",
		},
		"Refused": {
			[]func(*testing.T, client.Client){provides, offer(refused)}, []string{"provider"}, false,
			"! milan (11111111-aaaa) has not accepted what it is offered\n",
		},
		"NoOffer": {
			[]func(*testing.T, client.Client){provides, offer(ofPeer)}, []string{"provider"}, false, "! milan (11111111-aaaa) is offered nothing\n",
		},
		"NotPeered": {
			[]func(*testing.T, client.Client){change(milan, func() {
				milan.Status.PeeringConditions[0].Type, milan.Status.PeeringConditions[0].Status = "IncomingPeering", "Pending"
			})}, []string{"provider"}, false, "! The peering with milan (11111111-aaaa) is not established",
		},
		"UsesOthers": {nil, []string{}, true, "* This cluster uses others as Liqo does by itself"},
		"Alone": {
			[]func(*testing.T, client.Client){remove(foreign(t))}, []string{}, true,
			"* This cluster is neither a broker nor a consumer, does not trade, and shares",
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := fakeCluster(t, interceptor.Funcs{})
			for _, do := range tc.do {
				do(t, c)
			}
			if d := diagnose(t, c); d.Healthy != tc.healthy || !slices.Equal(d.Roles, tc.roles) || !strings.Contains(d.String(), tc.says) {
				t.Errorf("%t %v:\n%s", d.Healthy, d.Roles, d)
			}
		})
	}
}

// gatewayShare is what gives the gateway of a provider its share of a busy node, as the page for its admin has it.
const gatewayShare = "kubectl set resources deployment liqo-gateway -n liqo --requests=cpu=250m,memory=64Mi"

// TestGatewayShare holds that one that requests nothing gets it by the command that set the cluster up, with what else that gives it. On a
// provider nothing was set up, and its admin's page has the command.
func TestGatewayShare(t *testing.T) {
	page, err := os.ReadFile("../../../docs/admin/provider.md")
	if err != nil || !strings.Contains(string(page), gatewayShare) {
		t.Errorf("docs/admin/provider.md does not say %q: %v", gatewayShare, err)
	}
	c := fakeCluster(t, interceptor.Funcs{})
	broker(t, c)
	gateway := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: liqoNamespace, Name: v09.GatewayName}}
	change(gateway, func() { gateway.Spec.Template.Spec.Containers[0].Resources = corev1.ResourceRequirements{} })(t, c)
	if d := diagnose(t, c); strings.Contains(d.String(), gatewayShare) ||
		!strings.Contains(d.String(), "Run kubectl liqo-broker install again, which also gives it a priority and a longer lease") {
		t.Errorf("%s", d)
	}
}

// TestKept has Argo CD and Flux keep what is patched of Liqo: their marks are seen, on a cluster on which something is patched.
func TestKept(t *testing.T) {
	marks := []string{
		"argocd.argoproj.io/tracking-id", "argocd.argoproj.io/instance", "helm.toolkit.fluxcd.io/name", "kustomize.toolkit.fluxcd.io/name",
	}
	const keeps = " keeps Deployments of Liqo as a repository says: liqo-gateway\n"
	c := fakeCluster(t, interceptor.Funcs{})
	gateway := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: liqoNamespace, Name: v09.GatewayName}}
	looks := func(mark func(*appsv1.Deployment), says string) {
		t.Helper()
		change(gateway, func() {
			for _, key := range marks {
				delete(gateway.Annotations, key)
				delete(gateway.Labels, key)
			}
			mark(gateway)
		})(t, c)
		if d := diagnose(t, c); strings.Contains(d.String(), "as a repository says") != (says != "") || !strings.Contains(d.String(), says) {
			t.Errorf("it does not say %q:\n%s", says, d)
		}
	}
	looks(labelled(marks[3]), "") // Nothing of this project is set up.
	looks(func(*appsv1.Deployment) {}, "")
	broker(t, c)
	looks(func(*appsv1.Deployment) {}, "")
	looks(annotated(marks[0]), "* Argo CD"+keeps)
	looks(labelled(marks[1]), "* Argo CD"+keeps)
	looks(labelled(marks[2]), "* Flux"+keeps)
	looks(labelled(marks[3]), "* Flux"+keeps)
	if d := diagnose(t, c); !d.Healthy {
		t.Errorf("a note is a problem:\n%s", d)
	}
}

func annotated(key string) func(*appsv1.Deployment) {
	return func(d *appsv1.Deployment) {
		metav1.SetMetaDataAnnotation(&d.ObjectMeta, key, "milan:apps/Deployment:liqo/"+d.Name)
	}
}

func labelled(key string) func(*appsv1.Deployment) {
	return func(d *appsv1.Deployment) { metav1.SetMetaDataLabel(&d.ObjectMeta, key, "milan") }
}

// TestUnheard holds that who runs a network plugin that masquerades is pointed at the flag that names what arrives, where Liqo's controller
// manager asks a resource plugin of this project, and nobody else is.
func TestUnheard(t *testing.T) {
	const asks, itEnds = "--resource-plugin-address=", "It ends if "
	for name, tc := range map[string]struct {
		deployment string
		args       []string
		says       string
	}{
		"Broker":    {liqo.ManagerName, []string{asks + brokerPlugin + ".liqo-broker:7000"}, itEnds + brokerPlugin},
		"Connector": {liqo.ManagerName, []string{asks + connectorPlugin + ".liqo-broker-connector:7000"}, itEnds + connectorPlugin},
		"Others":    {liqo.ManagerName, []string{asks + "plugin.elsewhere:7000"}, ""},
		"None":      {liqo.ManagerName, nil, ""},
		"Gateway":   {v09.GatewayName, []string{asks + brokerPlugin + ".liqo-broker:7000"}, ""},
	} {
		d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: tc.deployment}}
		d.Spec.Template.Spec.Containers = []corev1.Container{{Args: tc.args}}
		says := unheard(d)
		if (says != "") != (tc.says != "") || !strings.Contains(says, tc.says) ||
			says != "" && (!strings.Contains(says, "--resource-plugin-allow") || !strings.HasSuffix(says, "/docs/install.md#port-7000")) {
			t.Errorf("%s: %q", name, says)
		}
	}

	c := fakeCluster(t, interceptor.Funcs{})
	broker(t, c)
	manager := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: liqoNamespace, Name: liqo.ManagerName}}
	if d := diagnose(t, c); strings.Contains(d.String(), "--resource-plugin-allow") {
		t.Errorf("a flag that nobody needs:\n%s", d)
	}
	change(manager, func() { manager.Status.ReadyReplicas = 0 })(t, c)
	if d := diagnose(t, c); !strings.Contains(d.String(), "deploy/liqo-controller-manager"+unheard(manager)+"\n") || unheard(manager) == "" {
		t.Errorf("it does not say %q:\n%s", unheard(manager), d)
	}
}

// create has a test create an object.
func create(o client.Object) func(*testing.T, client.Client) {
	return func(t *testing.T, c client.Client) {
		t.Helper()
		if err := c.Create(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
}

// TestOtherVersion has a cluster of each role use images of another version: what to do about it makes no cluster what it is not.
func TestOtherVersion(t *testing.T) {
	const plugin, remoteIPAM = "--resource-plugin-address=liqo-broker-resource-plugin.liqo-broker:7000",
		"--kubelet-extra-args=--remote-ipam=server=liqo-network-manager.liqo-milan.svc.cluster.local"
	for name, tc := range map[string]struct {
		args   []string
		trades bool
		want   string
	}{
		"Broker":           {[]string{plugin}, false, "kubectl liqo-broker upgrade, if this plugin is the newer one"},
		"BrokerOfAllKinds": {[]string{plugin, remoteIPAM}, true, "kubectl liqo-broker upgrade, if this plugin is the newer one"},
		"Consumer":         {[]string{remoteIPAM}, false, "kubectl liqo-broker prepare, if this plugin is that of the broker's version"},
		"Trader":           {nil, true, "kubectl liqo-broker guard, if this plugin is the newer one"},
		"TraderConsumes": {
			[]string{remoteIPAM}, true, "kubectl liqo-broker prepare and kubectl liqo-broker guard, if this plugin is that of the broker's version",
		},
		"Neither": {nil, false, "kubectl liqo-broker unguard, if this cluster trades no more"},
	} {
		t.Run(name, func(t *testing.T) {
			c := fakeCluster(t, interceptor.Funcs{})
			flags(t, c, append(tc.args, "--kubelet-image=x/liqo-broker-vk:v0.0.1")...)
			connector := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: install.ConnectorName, Name: install.ConnectorName}}
			if tc.trades {
				if err := c.Create(t.Context(), connector); err != nil {
					t.Fatal(err)
				}
			}
			d := diagnose(t, c)
			n := slices.IndexFunc(d.Checks, func(c Check) bool { return strings.Contains(c.What, "The images have tag v0.0.1") })
			if n < 0 || d.Checks[n].Do != tc.want || d.Checks[n].State != Note {
				t.Errorf("it does not say %q:\n%s", tc.want, d)
			}
		})
	}
}

// change has a test change an object and its status.
func change(o client.Object, to func()) func(*testing.T, client.Client) {
	return func(t *testing.T, c client.Client) {
		t.Helper()
		if err := c.Get(t.Context(), client.ObjectKeyFromObject(o), o); err != nil {
			t.Fatal(err)
		}
		to()
		whole, _ := o.DeepCopyObject().(client.Object)
		if err := c.Update(t.Context(), whole); err != nil {
			t.Fatal(err)
		}
		o.SetResourceVersion(whole.GetResourceVersion())
		if err := client.IgnoreNotFound(c.Status().Update(t.Context(), o)); err != nil { // Some kinds have no such subresource here.
			t.Fatal(err)
		}
	}
}

// remove has a test delete an object.
func remove(o client.Object) func(*testing.T, client.Client) {
	return func(t *testing.T, c client.Client) {
		t.Helper()
		if err := c.Delete(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
}

// TestIll breaks a broker in one way after the other: each is found, and says what to do.
func TestIll(t *testing.T) {
	in := func(namespace, name string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Namespace: namespace, Name: name}
	}
	manager, gateway, network := &appsv1.Deployment{ObjectMeta: in("liqo", "liqo-controller-manager")},
		&appsv1.Deployment{ObjectMeta: in("liqo", "liqo-gateway")}, &appsv1.Deployment{ObjectMeta: in("liqo", "liqo-network-manager")}
	worker, lease := &corev1.Node{ObjectMeta: in("", "worker")}, &coordinationv1.Lease{ObjectMeta: in("liqo-broker", "liqo-broker")}
	fc, tunnel := &v09.ForeignCluster{ObjectMeta: in("", "milan")}, &v09.TunnelEndpoint{ObjectMeta: in("liqo-tenant-milan", "milan")}
	for name, tc := range map[string]struct {
		do    func(*testing.T, client.Client)
		state State
		says  string
	}{
		"NodeDown": {change(worker, func() { worker.Status.Conditions[0].Status = corev1.ConditionFalse }), Problem, "Node worker is not ready"},
		"LiqoDown": {
			change(gateway, func() { gateway.Status.ReadyReplicas = 0 }), Problem, "Deployment liqo/liqo-gateway: 0 of 1 replicas are ready",
		},
		"BusyGateway": {
			change(gateway, func() { gateway.Spec.Template.Spec.Containers[0].Resources = corev1.ResourceRequirements{} }), Problem,
			"and keep its share of a busy node: patch Deployment liqo/liqo-gateway",
		},
		"OtherLiqo": {
			change(manager, func() { manager.Spec.Template.Spec.Containers[0].Image = "liqo/controller-manager:v0.9.5" }), Note,
			"Liqo v0.9.5 runs here, and our virtual kubelet is built of v0.9.4",
		},
		"FlagsGone": {change(manager, func() {
			manager.Spec.Template.Spec.Containers[0].Args = []string{"--kubelet-image=liqo/virtual-kubelet:v0.9.4"}
		}), Problem, "patch Deployment liqo/liqo-controller-manager"},
		"SidecarGone": {
			change(network, func() { network.Spec.Template.Spec.Containers = network.Spec.Template.Spec.Containers[:1] }), Problem,
			"patch Deployment liqo/liqo-network-manager",
		},
		"RightsGone": {remove(&rbacv1.ClusterRole{ObjectMeta: in("", "liqo-broker")}), Problem, "create ClusterRole liqo-broker"},
		"DaemonGone": {
			remove(&appsv1.Deployment{ObjectMeta: in("liqo-broker", "liqo-broker")}), Problem, "create Deployment liqo-broker/liqo-broker",
		},
		"NobodyLeads": {
			change(lease, func() { lease.Spec.RenewTime = &metav1.MicroTime{Time: now.Add(-time.Hour)} }), Problem,
			`was last renewed 1h0m0s ago by "liqo-broker-1"`,
		},
		"NoPlugin": {
			remove(&discoveryv1.EndpointSlice{ObjectMeta: in("liqo-broker", "liqo-broker-resource-plugin")}), Problem,
			"Nobody answers at Service liqo-broker/liqo-broker-resource-plugin",
		},
		"Expired":     {certified(install.BrokerName, now.Add(-time.Minute)), Problem, "expired at 2026-11-01T11:59:00Z"},
		"ExpiresSoon": {certified(install.BrokerName, now.Add(24*time.Hour)), Note, "expires at 2026-11-02"},
		"GuardExpired": {
			certified(install.GuardName, now.Add(-time.Minute)), Problem, "The certificate of webhook guard-identities.brokering.liqo.io expired at",
		},
		"NoGuard": {
			remove(&discoveryv1.EndpointSlice{ObjectMeta: in(install.GuardName, install.GuardName)}), Problem,
			"Nobody answers at Service liqo-broker-guard/liqo-broker-guard",
		},
		"InBand": {change(fc, func() { fc.Spec.PeeringType = "InBand" }), Problem, "The peering with milan (11111111-aaaa) is in-band"},
		"Pending": {
			change(fc, func() { fc.Status.PeeringConditions[0].Status = "Pending" }), Problem, "is not established (it provides: pending",
		},
		"TunnelDown": {
			change(tunnel, func() { tunnel.Status.Connection.Status = "Connecting" }), Problem,
			"The tunnel to milan (11111111-aaaa) is not connected",
		},
		"NoTunnel":     {remove(tunnel.DeepCopy()), Problem, "There is no tunnel to milan"},
		"SecretsLeave": {offered, Problem, "Namespace liqo is offered to liqo-milan, whose virtual kubelet does not say that it is ours"},
	} {
		t.Run(name, func(t *testing.T) {
			c := fakeCluster(t, interceptor.Funcs{})
			broker(t, c)
			tc.do(t, c)
			d := diagnose(t, c)
			n := slices.IndexFunc(d.Checks, func(c Check) bool { return strings.Contains(c.What, tc.says) })
			if n < 0 || d.Checks[n].State != tc.state || d.Checks[n].Do == "" || d.Healthy != (tc.state != Problem) {
				t.Errorf("it does not say %q as a %s with what to do:\n%s", tc.says, tc.state, d)
			}
		})
	}
}

// offered offers namespace liqo to a peer whose virtual kubelet is Liqo's own.
func offered(t *testing.T, c client.Client) {
	t.Helper()
	node := &v09.VirtualNode{ObjectMeta: metav1.ObjectMeta{Namespace: "liqo-tenant-milan", Name: "liqo-milan"}}
	node.Spec.ClusterIdentity = &foreign(t).Spec.ClusterIdentity
	offer := &v09.NamespaceMap{ObjectMeta: metav1.ObjectMeta{Namespace: "liqo-tenant-milan", Name: "milan"}}
	offer.Spec.DesiredMapping = map[string]string{"liqo": "liqo-here"}
	for _, o := range []client.Object{node, offer, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "liqo-milan"}}} {
		if err := c.Create(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
}

// TestCannotKnow lacks rights for one kind after the other: what depends on it is unknown, the rest is said.
func TestCannotKnow(t *testing.T) {
	for _, kind := range []string{"NodeList", "EndpointSliceList", "TunnelEndpointList", "VirtualNodeList", "NatMappingList", "EventList",
		"MutatingWebhookConfigurationList"} {
		forbid := false
		c := fakeCluster(t, interceptor.Funcs{List: func(
			ctx context.Context, c client.WithWatch, list client.ObjectList, options ...client.ListOption,
		) error {
			if gvk, err := c.GroupVersionKindFor(list); forbid && err == nil && gvk.Kind == kind {
				return apierrors.NewForbidden(schema.GroupResource{Resource: kind}, "", errors.New("no role"))
			}
			return c.List(ctx, list, options...)
		}})
		broker(t, c)
		forbid = true
		d := diagnose(t, c)
		unknown := slices.ContainsFunc(d.Checks, func(c Check) bool { return c.State == Unknown && strings.Contains(c.What, kind) && c.Do != "" })
		if !unknown || !d.Healthy {
			t.Errorf("%s:\n%s", kind, d)
		}
	}
}

// TestUnreachable can say nothing: that is an error.
func TestUnreachable(t *testing.T) {
	lost := &url.Error{Op: "Get", URL: "https://example", Err: errors.New("connection refused")}
	c := fakeCluster(t, interceptor.Funcs{Get: func(
		context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption,
	) error {
		return lost
	}})
	if d, err := Run(t.Context(), Config{Client: c, Now: now, Observe: nothing}); !errors.Is(err, lost) {
		t.Errorf("%v, %v", d, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	c = fakeCluster(t, interceptor.Funcs{List: func(
		ctx context.Context, c client.WithWatch, list client.ObjectList, options ...client.ListOption,
	) error {
		cancel() // Somebody presses Ctrl-C.
		return ctx.Err()
	}})
	if d, err := Run(ctx, Config{Client: c, Now: now, Observe: nothing}); !errors.Is(err, context.Canceled) {
		t.Errorf("%v, %v", d, err)
	}
}

// TestConsumer looks at a consumer: one whose broker answers, and one whose broker has gone.
func TestConsumer(t *testing.T) {
	c := fakeCluster(t, interceptor.Funcs{})
	namespace := v09.TwinNameOfLiqo(cluster.Identity{ID: "11111111-aaaa", Name: "milan"})
	service := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "liqo-network-manager"}}
	endpoints := &discoveryv1.EndpointSlice{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "x", Labels: map[string]string{discoveryv1.LabelServiceName: service.Name}},
		Endpoints:  []discoveryv1.Endpoint{{Addresses: []string{"10.0.0.1"}}},
	}
	if err := errors.Join(c.Create(t.Context(), service), c.Create(t.Context(), endpoints)); err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	installer, err := install.New(c, install.Options{Timeout: 5 * time.Second}, &out)
	if err != nil {
		t.Fatal(err)
	}
	if err := taken(t, installer, (*install.Installer).Prepare); err != nil {
		t.Fatalf("%v\n%s", err, out.String())
	}
	if d := diagnose(t, c); !d.Healthy || !slices.Equal(d.Roles, []string{"consumer"}) ||
		!strings.Contains(d.String(), "1 answer at Service "+namespace) {
		t.Errorf("%s", d)
	}
	offloads(t, c)
	offered(t, c)
	for _, check := range diagnose(t, c).Checks {
		if strings.Contains(check.Do, "liqo-broker install") {
			t.Errorf("a consumer is to become a broker: %+v", check)
		}
	}
	if err := c.Delete(t.Context(), service); err != nil {
		t.Fatal(err)
	}
	if d := diagnose(t, c); d.Healthy || !strings.Contains(d.String(), "There is no Service "+namespace+"/liqo-network-manager") {
		t.Errorf("%s", d)
	}
}

// offloads has a consumer offload a namespace with a pod that came too early, and with policies that no other cluster obeys.
func offloads(t *testing.T, c client.Client) {
	t.Helper()
	looks := func(healthy bool, says ...string) {
		t.Helper()
		d := diagnose(t, c)
		for _, one := range says {
			if d.Healthy != healthy || !strings.Contains(d.String(), one) {
				t.Errorf("it does not say %q:\n%s", one, d)
			}
		}
	}
	in := func(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Namespace: "shop", Name: name} }
	shop := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop", Labels: map[string]string{"liqo.io/scheduling-enabled": "true"}}}
	ours := liqotest.Offloading("shop", "11111111-aaaa")
	ours.Labels = nil // It is the consumer's own.
	early := &corev1.Pod{ObjectMeta: in("web-0")}
	early.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "StatefulSet", Name: "web", UID: "1", Controller: new(true)}}
	early.Spec.NodeName = "worker"
	twins := liqotest.Offloading("twin", "11111111-aaaa") // A broker's.
	policies := []client.Object{
		&networkingv1.NetworkPolicy{ObjectMeta: in("deny")}, &networkingv1.NetworkPolicy{ObjectMeta: in("allow")},
		&networkingv1.NetworkPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: "twin", Name: "fence"}},
		&networkingv1.NetworkPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: "home", Name: "deny"}},
	}
	looks(true, "  No offloaded namespace has NetworkPolicies, which would not hold in other clusters\n")
	for _, o := range append(policies, shop, ours, twins, early) {
		if err := c.Create(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
	looks(false, "! Pods of namespace shop run at home, though all are to run elsewhere: they were made before Liqo had labelled the "+
		"namespace. There are 1: web-0\n  Make them again: kubectl rollout restart -n shop statefulset/web\n",
		"* Namespace shop is offloaded, and its NetworkPolicies (2) do not hold for pods that run in other clusters\n  What holds there "+
			"instead: https://github.com/capacitorset/liqo-broker/blob/main/docs/admin/consumer.md#network-policies\n")
	if d := diagnose(t, c); strings.Contains(d.String(), "Namespace twin") || strings.Contains(d.String(), "Namespace home") {
		t.Errorf("%s", d)
	}
	if err := c.Delete(t.Context(), early); err != nil {
		t.Fatal(err)
	}
	looks(true, "* Namespace shop is offloaded, and its NetworkPolicies (2)")
}
