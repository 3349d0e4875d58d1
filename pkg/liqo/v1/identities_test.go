// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package v1

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"net"
	"net/url"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/capacitorset/liqo-broker/pkg/liqo"
	"github.com/capacitorset/liqo-broker/pkg/liqo/v1/api"
)

// newKey returns another key each time.
func newKey(t *testing.T) ed25519.PrivateKey {
	t.Helper()
	_, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// request is one for a certificate, and its text.
type request struct {
	parsed *x509.CertificateRequest
	text   []byte
}

// asks returns a request by a key.
func asks(t *testing.T, key ed25519.PrivateKey, template *x509.CertificateRequest) request {
	t.Helper()
	der, err := x509.CreateCertificateRequest(rand.Reader, template, key)
	if err != nil {
		t.Fatal(err)
	}
	parsed, err := x509.ParseCertificateRequest(der)
	if err != nil {
		t.Fatal(err)
	}
	return request{parsed, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der})}
}

// named returns a request for a name and groups.
func named(name string, groups ...string) *x509.CertificateRequest {
	return &x509.CertificateRequest{Subject: pkix.Name{CommonName: name, Organization: groups}}
}

// sliceNameOfC is the common name of the ResourceSlice big of cluster c (sha256 of c).
const sliceNameOfC = "big-2e7d2c03a950"

// world returns what the cluster c, whose tenant namespace is tenant-c, asks for: by a Tenant and a ResourceSlice.
func world(t *testing.T, tenant, slice []byte, change func(*api.Tenant, *api.ResourceSlice), more ...client.Object) client.WithWatch {
	t.Helper()
	may := &api.Tenant{ObjectMeta: metav1.ObjectMeta{Namespace: "tenant-c", Name: "c"}, Spec: api.TenantSpec{ClusterID: "c", CSR: tenant}}
	sliced := fromConsumer(&api.ResourceSlice{ObjectMeta: metav1.ObjectMeta{Namespace: "tenant-c", Name: "big"}})
	sliced.Spec.CSR = slice
	if change != nil {
		change(may, sliced)
	}
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), api.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	namespaces := []client.Object{
		new(tenantNamespace("tenant-c", "c")), new(tenantNamespace("tenant-v", "v")),
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "twin", Labels: map[string]string{liqo.LabelRemoteClusterID: "c"}}},
	}
	return fake.NewClientBuilder().WithScheme(scheme).WithObjects(may, sliced).WithObjects(namespaces...).WithObjects(more...).Build()
}

// issuedTo returns the Secret with the certificate that Liqo has issued to c.
func issuedTo(t *testing.T, key ed25519.PrivateKey) *corev1.Secret {
	t.Helper()
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: "tenant-c", Name: liqo.IssuedName},
		Data:       map[string][]byte{"certificate": signed(t, key, "c", "liqo.io")},
	}
}

// binds returns a binding of a ClusterRole everywhere.
func binds(kind, name, role string) *rbacv1.ClusterRoleBinding {
	return &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "b"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.UserKind, Name: "alice"}, {Kind: kind, Name: name}},
	}
}

// bindsIn returns a binding of a Role in a namespace.
func bindsIn(namespace, kind, name, role string, labels map[string]string) *rbacv1.RoleBinding {
	return &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "b", Labels: labels},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: role},
		Subjects:   []rbacv1.Subject{{Kind: kind, Name: name}},
	}
}

// boundIn returns what Liqo binds to c in a namespace.
func boundIn(namespace, kind string) *rbacv1.RoleBinding {
	b := bindsIn(namespace, kind, "c", "liqo-remote-controlplane", map[string]string{
		"app.kubernetes.io/managed-by": "liqo", liqo.LabelRemoteClusterID: "c",
	})
	b.RoleRef.Kind = "ClusterRole"
	return b
}

func TestCertificates(t *testing.T) {
	key, other := newKey(t), newKey(t)
	tenant, slice := asks(t, key, named("c", "liqo.io")), asks(t, key, named(sliceNameOfC, "c"))
	with := func(template *x509.CertificateRequest, change func(*x509.CertificateRequest)) *x509.CertificateRequest {
		change(template)
		return template
	}
	cases := map[string]struct {
		reason  string
		request request
		change  func(*api.Tenant, *api.ResourceSlice)
		more    []client.Object
		want    string
	}{
		"Tenant": {reason: "A Tenant asks for it.", request: tenant},
		"Slice":  {reason: "A ResourceSlice asks for it.", request: slice},
		"Renewed": {
			reason: "It has one for this key.", request: tenant, more: []client.Object{issuedTo(t, key)},
		},
		"Taken": {
			reason: "It is another cluster with this ID.", request: tenant, more: []client.Object{issuedTo(t, other)},
			want: "cluster c already has a certificate",
		},
		"TakenSlice": {reason: "A ResourceSlice is looked at by Liqo.", request: slice, more: []client.Object{issuedTo(t, other)}},

		"Admin": {
			reason: "Somebody is called so.", request: tenant, more: []client.Object{binds("User", "c", "cluster-admin")},
			want: "user c has rights of ClusterRole cluster-admin by ClusterRoleBinding b",
		},
		"AdminOfSlice": {
			reason: "The name of a ResourceSlice can be chosen.", request: slice, want: "user " + sliceNameOfC,
			more: []client.Object{binds("User", sliceNameOfC, "cluster-admin")},
		},
		"AdminOfTenant": {
			reason: "It is not that user.", request: slice, more: []client.Object{binds("User", "c", "cluster-admin")},
		},
		"Staff": {
			reason: "It is a group, and the next certificate is for that.", request: tenant,
			more: []client.Object{bindsIn("shop", "Group", "c", "edit", nil)}, want: "group c has rights of Role edit by RoleBinding shop/b",
		},
		"StaffOfSlice": {
			reason: "This one is.", request: slice, want: "group c has rights", more: []client.Object{bindsIn("shop", "Group", "c", "edit", nil)},
		},
		"Others": {
			reason: "It is not they.", request: tenant,
			more: []client.Object{binds("User", "cc", "cluster-admin"), bindsIn("shop", "Group", "v", "edit", nil)},
		},
		"Account": {
			reason: "It is no account of a pod.", request: tenant, more: []client.Object{binds("ServiceAccount", "c", "cluster-admin")},
		},
		"Bound": {
			reason: "Liqo gives it rights, and renews the certificate.", request: tenant,
			more: []client.Object{binds("Group", "c", "liqo-virtual-kubelet-remote-clusterwide"), boundIn("tenant-c", "User"),
				boundIn("twin", "Group")},
		},
		"BoundSlice": {
			reason: "So with its ResourceSlices.", request: slice,
			more: []client.Object{binds("Group", "c", "liqo-virtual-kubelet-remote-clusterwide"), boundIn("twin", "Group")},
		},
		"Meant": {
			reason: "People here give it more.", request: tenant,
			more: []client.Object{bindsIn("shop", "Group", "c", "edit", map[string]string{liqo.LabelRemoteClusterID: "c"})},
		},
		"MeantForAnother": {
			reason: "Not to it.", request: tenant, want: "group c has rights",
			more: []client.Object{bindsIn("shop", "Group", "c", "edit", map[string]string{liqo.LabelRemoteClusterID: "v"})},
		},
		"RoleOfThatName": {
			reason: "It is not Liqo's.", request: tenant, want: "group c has rights",
			more: []client.Object{bindsIn("shop", "Group", "c", "liqo-virtual-kubelet-remote", nil)},
		},

		"Admins": {
			reason: "All groups count, and Liqo looks at the first one.", request: asks(t, key, named("c", "liqo.io", "kubeadm:cluster-admins")),
			want: "one group",
		},
		"SliceAdmins": {
			reason: "So it is with ResourceSlices.", request: asks(t, key, named(sliceNameOfC, "c", "kubeadm:cluster-admins")), want: "one group",
		},
		"NoGroup": {reason: "It has none.", request: asks(t, key, named("c")), want: "one group"},
		"Unit": {
			reason: "Who knows what that is for?", want: "nothing else",
			request: asks(t, key, with(named("c", "liqo.io"), func(r *x509.CertificateRequest) { r.Subject.OrganizationalUnit = []string{"x"} })),
		},
		"NoName": {reason: "It is nobody.", request: asks(t, key, named("", "liqo.io")), want: "must have a common name"},
		"DNS": {
			reason: "It serves nothing.", want: "no other names",
			request: asks(t, key, with(named("c", "liqo.io"), func(r *x509.CertificateRequest) { r.DNSNames = []string{"kubernetes"} })),
		},
		"Address": {
			reason: "Nowhere.", want: "no other names",
			request: asks(t, key, with(named("c", "liqo.io"), func(r *x509.CertificateRequest) { r.IPAddresses = []net.IP{{10, 0, 0, 1}} })),
		},
		"Mail": {
			reason: "It gets no mail.", want: "no other names",
			request: asks(t, key, with(named("c", "liqo.io"), func(r *x509.CertificateRequest) { r.EmailAddresses = []string{"a@b"} })),
		},
		"URI": {
			reason: "Nor has it a page.", want: "no other names",
			request: asks(t, key, with(named("c", "liqo.io"), func(r *x509.CertificateRequest) { r.URIs = []*url.URL{{Scheme: "a", Opaque: "b"}} })),
		},
		"System": {
			reason: "No cluster is called so.", request: asks(t, key, named("system:kube-controller-manager", "liqo.io")), want: "ID of a cluster",
		},
		"Masters":     {reason: "Nor has one this group.", request: asks(t, key, named("big-x", "system:masters")), want: "ID of a cluster"},
		"PeeringUser": {reason: "That is a user.", request: asks(t, key, named(peeringUser, "liqo.io")), want: "ID of a cluster"},
		"Hash":        {reason: "It is no name of a ResourceSlice.", request: asks(t, key, named("big-2e7d2c03a951", "c")), want: "and its hash"},
		"OnlyHash":    {reason: "Nor is this.", request: asks(t, key, named("-2e7d2c03a950", "c")), want: "and its hash"},
		"User":        {reason: "It is somebody else.", request: asks(t, key, named("kubernetes-admin", "c")), want: "and its hash"},

		"Nobody":   {reason: "No such cluster is about to peer.", request: asks(t, key, named("x", "liqo.io")), want: "no Tenant in"},
		"Another":  {reason: "That cluster asks for nothing.", request: asks(t, key, named("v", "liqo.io")), want: "no Tenant in"},
		"OtherKey": {reason: "The Tenant asks for another one.", request: asks(t, other, named("c", "liqo.io")), want: "no Tenant in"},
		"SameAgain": {
			reason: "Byte for byte.", request: request{tenant.parsed, append(tenant.text, '\n')}, want: "no Tenant in",
		},
		"TenantOfAnother": {
			reason: "It speaks for another one.", request: tenant, want: "no Tenant in",
			change: func(t *api.Tenant, _ *api.ResourceSlice) { t.Spec.ClusterID = "v" },
		},
		"ElsewhereTenant": {
			reason: "Whoever may write there is another one.", request: tenant, want: "no Tenant in",
			change: func(t *api.Tenant, _ *api.ResourceSlice) { t.Namespace = "tenant-v" },
		},
		"TwinTenant": {
			reason: "A twin is no tenant namespace.", request: tenant, want: "no Tenant in",
			change: func(t *api.Tenant, _ *api.ResourceSlice) { t.Namespace = "twin" },
		},
		"OtherSlice": {
			reason: "It is another one.", request: slice, want: "no ResourceSlice big in",
			change: func(_ *api.Tenant, s *api.ResourceSlice) { s.Name = "small" },
		},
		"SliceOtherKey": {
			reason: "The ResourceSlice asks for another one.", request: asks(t, other, named(sliceNameOfC, "c")), want: "no ResourceSlice big in",
		},
		"SliceForAnother": {
			reason: "It asks for another cluster.", request: slice, want: "no ResourceSlice big in",
			change: func(_ *api.Tenant, s *api.ResourceSlice) { s.Spec.ConsumerClusterID = new("v") },
		},
		"SliceOfAnother": {
			reason: "It is another's.", request: slice, want: "no ResourceSlice big in",
			change: func(_ *api.Tenant, s *api.ResourceSlice) { s.Labels[liqo.LabelOrigin] = "v" },
		},
		"OwnSlice": {
			reason: "It is this cluster's.", request: slice, want: "no ResourceSlice big in",
			change: func(_ *api.Tenant, s *api.ResourceSlice) { delete(s.Labels, liqo.LabelReplicated) },
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			objects := world(t, tenant.text, slice.text, tc.change, tc.more...)
			refusal, err := Line{}.IdentityRules().Check(t.Context(), objects, "liqo", tc.request.parsed, tc.request.text)
			if err != nil {
				t.Fatal(err)
			}
			if (refusal == nil) != (tc.want == "") || refusal != nil && !strings.Contains(refusal.Error(), tc.want) {
				t.Errorf("%s\nCheck() = %v, want %q", tc.reason, refusal, tc.want)
			}
		})
	}
}

// TestCertificatesUnknown has an API server that does not answer: nobody is let in.
func TestCertificatesUnknown(t *testing.T) {
	key := newKey(t)
	tenant := asks(t, key, named("c", "liqo.io"))
	for name, fails := range map[string]func(client.Object, client.ObjectList) bool{
		"Namespaces": func(_ client.Object, l client.ObjectList) bool { _, is := l.(*corev1.NamespaceList); return is },
		"Tenants":    func(_ client.Object, l client.ObjectList) bool { _, is := l.(*api.TenantList); return is },
		"Slices":     func(_ client.Object, l client.ObjectList) bool { _, is := l.(*api.ResourceSliceList); return is },
		"Everywhere": func(_ client.Object, l client.ObjectList) bool {
			_, is := l.(*rbacv1.ClusterRoleBindingList)
			return is
		},
		"Somewhere": func(_ client.Object, l client.ObjectList) bool { _, is := l.(*rbacv1.RoleBindingList); return is },
		"Secrets":   func(o client.Object, _ client.ObjectList) bool { _, is := o.(*corev1.Secret); return is },
	} {
		t.Run(name, func(t *testing.T) {
			boom := errors.New("boom")
			down := interceptor.NewClient(world(t, tenant.text, nil, nil, issuedTo(t, key)), interceptor.Funcs{
				Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
					if fails(o, nil) {
						return boom
					}
					return c.Get(ctx, key, o, opts...)
				},
				List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
					if fails(nil, list) {
						return boom
					}
					return c.List(ctx, list, opts...)
				},
			})
			if _, err := (Line{}).IdentityRules().Check(t.Context(), down, "liqo", tenant.parsed, tenant.text); !errors.Is(err, boom) {
				t.Errorf("Check() = %v, want boom", err)
			}
		})
	}
}

func TestRequests(t *testing.T) {
	for user, want := range map[string]bool{
		"system:serviceaccount:liqo:liqo-controller-manager": true, "system:serviceaccount:elsewhere:liqo-controller-manager": true,
		"system:serviceaccount:liqo:liqo-auth": false, "liqo-controller-manager": false,
		"system:serviceaccount:a:b:liqo-controller-manager": false, "system:serviceaccount:liqo:liqo-controller-manager-2": false,
	} {
		if got := (Line{}).IdentityRules().Requests(user); got != want {
			t.Errorf("Requests(%q) = %t", user, got)
		}
	}
}
