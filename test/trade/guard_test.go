// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package trade

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capacitorset/liqo-broker/pkg/api/connectorv1alpha1"
	"github.com/capacitorset/liqo-broker/pkg/liqo"
	"github.com/capacitorset/liqo-broker/test/federation"
	"github.com/capacitorset/liqo-broker/test/hostile"
)

// TestUnguarded takes the guard from a seller: nobody is told of its offers any more, until it is guarded again.
func TestUnguarded(t *testing.T) {
	clean(t)
	publish(t, map[*federation.Cluster]string{fed.ProviderA: "0.20"})
	guard := &admissionv1.ValidatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: "liqo-broker-guard"}}
	if err := fed.ProviderA.Delete(t.Context(), guard); err != nil {
		t.Fatal(err)
	}
	guarded := func(ctx context.Context) error {
		return fed.Guard(ctx, fed.ProviderA, federation.NewProgress(os.Stderr))
	}
	t.Cleanup(func() {
		if err := guarded(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	})
	eventually(t, 2*time.Minute, func(ctx context.Context) error {
		return fed.ProviderA.Is(ctx, &connectorv1alpha1.Offer{}, "compute", connectorv1alpha1.ConditionPublished, connectorv1alpha1.ReasonUnguarded)
	})
	eventually(t, time.Minute, func(ctx context.Context) error { return fed.Published(ctx) })
	if err := guarded(t.Context()); err != nil {
		t.Fatal(err)
	}
	eventually(t, 2*time.Minute, func(ctx context.Context) error { return fed.Published(ctx, fed.ProviderA) })
}

// TestTradersStayInBounds has a buyer and its seller try what no peer must achieve, each at the other, with the identity that Liqo gave it there,
// and with the token that the contract gave it. Neither gets anything, and the contract goes on.
func TestTradersStayInBounds(t *testing.T) {
	_, answers := contracted(t)
	for name, tc := range map[string]struct {
		peer, at *federation.Cluster
		twin     string
	}{
		"Buyer":  {fed.Consumer, fed.ProviderB, twinAt(t, fed.ProviderB, fed.Consumer, shared)},
		"Seller": {fed.ProviderB, fed.Consumer, ""},
	} {
		t.Run(name, func(t *testing.T) {
			for _, attempt := range intruder(t, tc.peer, tc.at, tc.twin).Attempts() {
				got := attempt.Try(t.Context())
				if meta.IsNoMatchError(got) {
					continue // Only a broker has the kind.
				}
				// Who only sells, or only buys, has no right to some of what admission would refuse.
				if got == nil || !strings.Contains(got.Error(), attempt.Got) && !strings.Contains(got.Error(), hostile.NoRight) {
					t.Errorf("%s could %s, which gives it %s: %v", tc.peer.Name, attempt.Name, attempt.Gain, got)
				}
			}
			for of, subject := range map[string]pkix.Name{
				"the controller manager": {CommonName: "system:kube-controller-manager"},
				"an administrator":       {CommonName: string(tc.peer.ID), Organization: []string{"kubeadm:cluster-admins"}},
				"another cluster":        {CommonName: string(fed.ProviderA.ID), Organization: []string{"liqo.io"}},
			} {
				if got := identify(t, tc.at, subject); got == nil || !strings.Contains(got.Error(), "denied") {
					t.Errorf("Liqo may give %s the identity of %s: %v", tc.peer.Name, of, got)
				}
			}
		})
	}

	if err := answers(t.Context()); err != nil {
		t.Errorf("the workload has suffered: %v", err)
	}
}

// intruder returns a peer of a cluster that means no good.
func intruder(t *testing.T, peer, at *federation.Cluster, twin string) *hostile.Peer {
	t.Helper()
	config, err := at.Lab.RESTConfig()
	if err != nil {
		t.Fatal(err)
	}
	fc, err := liqo.ForeignClusterOf(t.Context(), at, peer.ID)
	if err != nil || fc == nil {
		t.Fatalf("%s does not know %s: %v", at.Name, peer.Name, err)
	}
	var identities corev1.SecretList
	err = peer.List(t.Context(), &identities, client.MatchingLabels{
		"discovery.liqo.io/local-identity": "true", "discovery.liqo.io/cluster-id": string(at.ID),
	})
	if err != nil || len(identities.Items) != 1 {
		t.Fatalf("%s has %d identities at %s: %v", peer.Name, len(identities.Items), at.Name, err)
	}
	p := &hostile.Peer{
		ID: peer.ID, Tenant: liqo.TenantNamespace(fc), Twin: twin, Broker: at.ID, Victim: fed.ProviderA.ID, VictimTenant: "liqo-tenant-victim", Node: at.Name,
	}
	if err := p.Connect(config, identities.Items[0].Data); err != nil {
		t.Fatal(err)
	}
	return p
}

// twinAt returns the twin of a peer's namespace at a cluster.
func twinAt(t *testing.T, at, of *federation.Cluster, namespace string) string {
	t.Helper()
	var namespaces corev1.NamespaceList
	if err := at.List(t.Context(), &namespaces, client.MatchingLabels{liqo.LabelRemoteClusterID: string(of.ID)}); err != nil {
		t.Fatal(err)
	}
	for i := range namespaces.Items {
		if twin := &namespaces.Items[i]; liqo.OriginalName(twin) == namespace {
			return twin.Name
		}
	}
	t.Fatalf("%s has no twin of namespace %s of %s", at.Name, namespace, of.Name)
	return ""
}

// identify has a cluster's authentication service ask for a certificate, as it does for who has the token, and returns why it does not get it.
func identify(t *testing.T, at *federation.Cluster, subject pkix.Name) error {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{Subject: subject}, key)
	if err != nil {
		t.Fatal(err)
	}
	config, err := at.Lab.RESTConfig()
	if err != nil {
		t.Fatal(err)
	}
	config = rest.CopyConfig(config)
	config.Impersonate = rest.ImpersonationConfig{UserName: "system:serviceaccount:liqo:liqo-auth", Groups: []string{"system:serviceaccounts", "system:authenticated"}}
	auth, err := client.New(config, client.Options{})
	if err != nil {
		t.Fatal(fmt.Errorf("reach the API server of %s: %w", at.Name, err))
	}
	return auth.Create(t.Context(), &certificatesv1.CertificateSigningRequest{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "hostile-"},
		Spec: certificatesv1.CertificateSigningRequestSpec{
			Request: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der}), SignerName: certificatesv1.KubeAPIServerClientSignerName,
			Usages: []certificatesv1.KeyUsage{certificatesv1.UsageDigitalSignature, certificatesv1.UsageKeyEncipherment, certificatesv1.UsageClientAuth},
		},
	}, client.DryRunAll)
}
