// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package identities

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"errors"
	"math/big"
	"net"
	"net/http"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/capacitorset/liqo-broker/pkg/liqo"
	"github.com/capacitorset/liqo-broker/pkg/liqo/line"
	v09 "github.com/capacitorset/liqo-broker/pkg/liqo/v09"
	"github.com/capacitorset/liqo-broker/pkg/liqo/v09/liqotest"
	v1 "github.com/capacitorset/liqo-broker/pkg/liqo/v1"
)

const (
	newcomer = "0a1b2c3d-0000-4000-8000-000000000001" // Has a tenant namespace and no certificate.
	member   = "0a1b2c3d-0000-4000-8000-000000000002" // Has both.
	unknown  = "0a1b2c3d-0000-4000-8000-000000000003" // Has neither.

	auth = "system:serviceaccount:liqo:liqo-auth"
)

// request is what a cluster asks for.
func request(t *testing.T, key ed25519.PrivateKey, template *x509.CertificateRequest) []byte {
	t.Helper()
	der, err := x509.CreateCertificateRequest(rand.Reader, template, key)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der})
}

// of is a subject as Liqo makes it.
func of(name string) *x509.CertificateRequest {
	return &x509.CertificateRequest{Subject: pkix.Name{CommonName: name, Organization: []string{"liqo.io"}}}
}

func TestHandle(t *testing.T) {
	public, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	_, other, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	tenant := func(id string) *corev1.Namespace {
		return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "liqo-tenant-" + id, Labels: map[string]string{
			"discovery.liqo.io/cluster-id": id, "discovery.liqo.io/tenant-namespace": "true",
		}}}
	}
	issued := func(id string, to ed25519.PublicKey) *corev1.Secret {
		template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: of(id).Subject}
		der, err := x509.CreateCertificate(rand.Reader, template, template, to, key)
		if err != nil {
			t.Fatal(err)
		}
		return &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Namespace: tenant(id).Name, Name: liqo.IssuedName},
			Data:       map[string][]byte{"certificate": pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})},
		}
	}
	token := func(to string) *corev1.Secret {
		return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{
			Namespace: liqo.DefaultNamespace, Name: v09.AuthTokenName, Annotations: map[string]string{"brokering.liqo.io/issued-to": to},
		}}
	}
	world := func(token *corev1.Secret) client.WithWatch {
		return fake.NewClientBuilder().WithScheme(liqotest.Scheme(t)).WithObjects(
			tenant(newcomer), tenant(member), issued(member, public), token,
		).Build()
	}
	api := world(token(""))
	down := interceptor.NewClient(api, interceptor.Funcs{
		Get: func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
			return errors.New("boom")
		},
	})
	with := func(id string, change func(*x509.CertificateRequest)) *x509.CertificateRequest {
		template := of(id)
		change(template)
		return template
	}
	own := []certificatesv1.KeyUsage{certificatesv1.UsageDigitalSignature, certificatesv1.UsageKeyEncipherment, certificatesv1.UsageClientAuth}
	cases := map[string]struct {
		reason  string
		user    string
		signer  string
		request []byte
		usages  []certificatesv1.KeyUsage
		reader  client.Reader
		code    int32
		message string
	}{
		"Newcomer":  {reason: "a cluster authenticates for the first time", request: request(t, key, of(newcomer))},
		"SameAgain": {reason: "it is the same key: nobody else has it", request: request(t, key, of(member))},
		"Member": {reason: "whoever has the token could pass for a member", request: request(t, other, of(member)),
			code: http.StatusForbidden, message: "already has a certificate"},
		"AnotherName": {reason: "Liqo makes a namespace for who asks, and this name has none", request: request(t, other, of(unknown)),
			code: http.StatusForbidden, message: "another cluster"},
		"User": {reason: "users of the broker's cluster have names too", request: request(t, other, of("kubernetes-admin")),
			code: http.StatusForbidden, message: "ID of a cluster"},
		"Component": {reason: "and so have its components", request: request(t, other, of("system:kube-controller-manager")),
			code: http.StatusForbidden, message: "ID of a cluster"},
		"Group": {reason: "a group may be bound to cluster-admin", code: http.StatusForbidden, message: "the group must be liqo.io",
			request: request(
				t, key, with(newcomer, func(r *x509.CertificateRequest) { r.Subject.Organization = []string{"kubeadm:cluster-admins"} }),
			)},
		"TwoGroups": {reason: "each of them counts", code: http.StatusForbidden, message: "the group must be liqo.io",
			request: request(t, key, with(newcomer, func(r *x509.CertificateRequest) {
				r.Subject.Organization = []string{"liqo.io", "kubeadm:cluster-admins"}
			}))},
		"NoGroup": {reason: "Liqo has one", code: http.StatusForbidden, message: "the group must be liqo.io",
			request: request(t, key, with(newcomer, func(r *x509.CertificateRequest) { r.Subject.Organization = nil }))},
		"Unit": {reason: "nothing else belongs into a subject", code: http.StatusForbidden, message: "nothing else",
			request: request(t, key, with(newcomer, func(r *x509.CertificateRequest) { r.Subject.OrganizationalUnit = []string{"x"} }))},
		"DNSName": {reason: "a client has no host names", code: http.StatusForbidden, message: "no other names",
			request: request(t, key, with(newcomer, func(r *x509.CertificateRequest) { r.DNSNames = []string{"kubernetes"} }))},
		"Address": {reason: "nor addresses", code: http.StatusForbidden, message: "no other names",
			request: request(t, key, with(newcomer, func(r *x509.CertificateRequest) { r.IPAddresses = []net.IP{{10, 0, 0, 1}} }))},
		"ServerUsage": {reason: "a peer serves nothing with it", request: request(t, key, of(newcomer)),
			usages: []certificatesv1.KeyUsage{certificatesv1.UsageServerAuth}, code: http.StatusForbidden, message: "usage"},
		"Garbage": {
			reason: "it cannot be judged", request: []byte("garbage"), code: http.StatusForbidden, message: "not one certificate request",
		},
		"Two": {reason: "the API server signs the first; who knows",
			request: append(request(t, key, of(newcomer)), request(t, other, of(member))...),
			code:    http.StatusForbidden, message: "not one certificate request"},
		"OtherRequester": {
			reason: "what others ask for is their business", user: "system:serviceaccount:kube-system:certificate-approver",
			request: request(t, other, of(member)),
		},
		"OtherLine": {
			reason: "nobody here knows whom that Liqo lets in", user: "system:serviceaccount:liqo:liqo-controller-manager",
			request: request(t, key, of(newcomer)), code: http.StatusForbidden, message: "another line of Liqo",
		},
		"OtherSigner": {reason: "so are other certificates", signer: "kubernetes.io/kubelet-serving", request: request(t, other, of(member))},
		"ElsewhereLiqo": {reason: "Liqo may be installed in another namespace", user: "system:serviceaccount:federation:liqo-auth",
			request: request(t, other, of(member)), code: http.StatusForbidden, message: "already has a certificate"},
		"Told": {
			reason: "it has the token by its contract", request: request(t, key, of(newcomer)), reader: world(token(newcomer + "," + unknown)),
		},
		"NotTold": {reason: "who has bought could take the names of all who are to come", request: request(t, key, of(newcomer)),
			reader: world(token(unknown)), code: http.StatusForbidden, message: "was not told the token"},
		"AgainNotTold": {reason: "who is here already is asked for nothing", request: request(t, key, of(member)), reader: world(token(unknown))},
		"Probe": {reason: "the connector asks only whether it is refused",
			user:    "system:serviceaccount:liqo-broker-connector:liqo-broker-connector",
			request: request(t, key, of(newcomer)), code: http.StatusForbidden, message: liqo.ProbeRefused},
		"Down": {
			reason: "who cannot be judged is not let in", request: request(t, key, of(newcomer)), reader: down, code: http.StatusInternalServerError,
			message: "boom",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			wish := &certificatesv1.CertificateSigningRequest{
				TypeMeta:   metav1.TypeMeta{APIVersion: certificatesv1.SchemeGroupVersion.String(), Kind: "CertificateSigningRequest"},
				ObjectMeta: metav1.ObjectMeta{Name: "liqo-identity-x"},
				Spec: certificatesv1.CertificateSigningRequestSpec{
					SignerName: certificatesv1.KubeAPIServerClientSignerName, Request: tc.request, Usages: own,
				},
			}
			if tc.signer != "" {
				wish.Spec.SignerName = tc.signer
			}
			if tc.usages != nil {
				wish.Spec.Usages = tc.usages
			}
			raw, err := json.Marshal(wish)
			if err != nil {
				t.Fatal(err)
			}
			user, reader := auth, client.Reader(api)
			if tc.user != "" {
				user = tc.user
			}
			if tc.reader != nil {
				reader = tc.reader
			}
			others := []line.IdentityRules{v1.Line{}.IdentityRules()}
			answer := New(liqotest.Scheme(t), v09.Line{}.IdentityRules(), others, reader, liqo.DefaultNamespace).
				Handle(t.Context(), admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{
					Operation: admissionv1.Create, Object: runtime.RawExtension{Raw: raw}, UserInfo: authenticationv1.UserInfo{Username: user},
				}})
			if answer.Allowed != (tc.code == 0) || tc.code != 0 &&
				(answer.Result.Code != tc.code || !strings.Contains(answer.Result.Message, tc.message)) {
				t.Errorf("%s: %+v, want %d with %q", tc.reason, answer.AdmissionResponse, tc.code, tc.message)
			}
		})
	}
}
