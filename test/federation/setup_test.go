// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package federation

import (
	"encoding/json"
	"net/netip"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/capacitorset/liqo-broker/test/lab"
	"github.com/capacitorset/liqo-broker/test/lab/topology"
)

// manager is Liqo's controller manager with flags.
func manager(flags ...string) *appsv1.Deployment {
	d := &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: liqoNamespace, Name: controllerManager, Annotations: map[string]string{"deployment.kubernetes.io/revision": "1"},
		},
	}
	d.Spec.Template.Spec.Containers = []corev1.Container{{Name: "controller-manager", Args: flags}}
	return d
}

// hook is a webhook of the guard with a certificate.
func hook(certificate, path string) *admissionv1.ValidatingWebhookConfiguration {
	return &admissionv1.ValidatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: "liqo-broker-guard"},
		Webhooks: []admissionv1.ValidatingWebhook{{
			Name: "peers.brokering.liqo.io", ClientConfig: admissionv1.WebhookClientConfig{
				CABundle: []byte(certificate), Service: &admissionv1.ServiceReference{Name: "guard", Path: &path},
			},
		}}}
}

// TestAsSetUp has a cluster set up in two ways, of which one may add something.
func TestAsSetUp(t *testing.T) {
	set := func(objects ...client.Object) *Cluster {
		t.Helper()
		scheme, err := newScheme()
		if err != nil {
			t.Fatal(err)
		}
		return &Cluster{WithWatch: fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).Build(), Name: "consumer", ID: "c-1"}
	}
	bound := func(name string, to rbacv1.Subject) *rbacv1.ClusterRoleBinding {
		return &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: name}, Subjects: []rbacv1.Subject{to}}
	}
	secret := func(text string) *corev1.ConfigMap {
		return &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Namespace: brokerNamespace, Name: "liqo-broker-api-ca"}, Data: map[string]string{"ca.crt": text},
		}
	}
	pages := []client.Object{
		manager("--b=1", "--kubelet-image=capacitorset/liqo-broker-vk:v0.1.0"), hook("a", "/peers"),
		secret("-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n"),
	}
	for name, tc := range map[string]struct {
		reason string
		adds   []client.Object
		want   string // In the error; empty for none.
	}{
		"Same": {
			reason: "Tags, the order of flags, certificates and peers make no difference.",
			adds: []client.Object{
				manager("--kubelet-image=capacitorset/liqo-broker-vk:lab-1", "--b=1"), hook("b", "/peers"),
				secret("-----BEGIN CERTIFICATE-----\nMIIC\n-----END CERTIFICATE-----\n"), bound("peer", rbacv1.Subject{Kind: "User", Name: "c-1"}),
				bound("kubelet", rbacv1.Subject{Kind: "ServiceAccount", Namespace: "liqo-tenant-x", Name: "vk"}),
				&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "workload"}},
			},
		},
		"Flag": {
			reason: "A flag of Liqo that no page sets.", want: "--kubelet-ram-limits=2Gi",
			adds: []client.Object{
				manager("--b=1", "--kubelet-image=capacitorset/liqo-broker-vk:v0.1.0", "--kubelet-ram-limits=2Gi"), pages[1], pages[2],
			},
		},
		"Image": {
			reason: "Our virtual kubelet, in the place of Liqo's.", want: "--kubelet-image",
			adds: []client.Object{manager("--b=1", "--kubelet-image=ghcr.io/liqotech/virtual-kubelet:v0.9.4"), pages[1], pages[2]},
		},
		"Hook": {reason: "Another path of a webhook.", want: "nobody", adds: []client.Object{pages[0], hook("a", "/nobody"), pages[2]}},
		"Object": {
			reason: "An object that no page makes.", want: "ConfigMap liqo/more",
			adds: append(pages, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: liqoNamespace, Name: "more"}}),
		},
		"Rights": {
			reason: "Rights for somebody.", want: "ClusterRoleBinding /admin",
			adds: append(pages, bound("admin", rbacv1.Subject{Kind: "User", Name: "somebody"})),
		},
	} {
		t.Run(name, func(t *testing.T) {
			federations, by := set(tc.adds...), set(pages...)
			f := &Federation{Consumer: federations, Broker: federations, ProviderA: federations, ProviderB: federations}
			was, err := f.SetUp(t.Context(), federations)
			if err != nil {
				t.Fatal(err)
			}
			err = f.AsSetUp(t.Context(), by, was)
			if (err == nil) != (tc.want == "") || err != nil && !strings.Contains(err.Error(), tc.want) {
				t.Errorf("%s: %v, want %q", tc.reason, err, tc.want)
			}
		})
	}
}

// TestPartsOf has Helm and kubectl set up a connector, each with its endpoint, beside Liqo.
func TestPartsOf(t *testing.T) {
	const label = "app.kubernetes.io/name"
	of := func(address, text string, more ...string) map[string]string {
		c := &Cluster{Lab: &lab.Cluster{Cluster: topology.Cluster{Address: netip.MustParseAddr(address)}}}
		labels := map[string]string{label: connector}
		for _, key := range more {
			labels[key] = "x"
		}
		settings, err := json.Marshal(map[string]any{
			"labels": labels, "data": map[string]string{"endpoint": "https://" + address + ":30446", "share": text},
		})
		if err != nil {
			t.Fatal(err)
		}
		parts, err := PartsOf(c, map[string]string{"ConfigMap a/settings": string(settings),
			"ConfigMap liqo/x": `{"labels":{"` + label + `":"liqo"}}`, "Service liqo/y": "{}"}, connector)
		if err != nil || len(parts) != 1 {
			t.Fatalf("%v, %v", parts, err)
		}
		return parts
	}
	byKubectl := of("10.0.0.1", "90")
	if diff := cmp.Diff(byKubectl, of("10.0.0.2", "90", "helm.sh/chart", "app.kubernetes.io/instance", "app.kubernetes.io/version",
		"app.kubernetes.io/managed-by")); diff != "" {
		t.Errorf("by Helm it is otherwise:\n%s", diff)
	}
	for what, other := range map[string]map[string]string{"a value": of("10.0.0.1", "95"), "a label": of("10.0.0.1", "90", "more")} {
		if cmp.Equal(byKubectl, other) {
			t.Errorf("%s makes no difference", what)
		}
	}
}
