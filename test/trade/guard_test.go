// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package trade

import (
	"context"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
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
	for _, who := range traders(t) {
		t.Run(who.peer.Name, func(t *testing.T) {
			could, err := who.tried(t.Context())
			if err != nil {
				t.Error(err)
			}
			for _, what := range could {
				t.Errorf("%s could %s", who.peer.Name, what)
			}
		})
	}
	if err := answers(t.Context()); err != nil {
		t.Errorf("the workload has suffered: %v", err)
	}
}

// TestLiqoAlone takes the guard's webhooks and policies from a buyer and its seller for a moment. Each may then do all that they refuse, and
// nothing that Liqo's roles or Liqo itself refuse; nothing comes of it. When they are back, each may do nothing of it.
func TestLiqoAlone(t *testing.T) {
	_, answers := contracted(t)
	both := traders(t)
	refused := slices.Collect(maps.Keys(both[0].identities()))
	for _, attempt := range both[0].Attempts() {
		if attempt.LiqoLets() {
			refused = append(refused, attempt.Name)
		}
	}
	slices.Sort(refused)
	// could returns an error unless both together can do what is wanted. The API server needs a moment to ask others, or nobody.
	could := func(want []string) func(context.Context) error {
		return func(ctx context.Context) error {
			var all []string
			var errs []error
			for _, who := range both {
				some, err := who.tried(ctx)
				all, errs = append(all, some...), append(errs, err)
			}
			slices.Sort(all)
			if diff := cmp.Diff(want, slices.Compact(all)); diff != "" {
				errs = append(errs, fmt.Errorf("what they can (-want +got):\n%s", diff))
			}
			return errors.Join(errs...)
		}
	}
	for i := range both {
		both[i].DryRun = true
		end, err := both[i].at.LiqoAlone(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := end(); err != nil {
				t.Error(err)
			}
		})
		both[i].guard = end
	}
	eventually(t, time.Minute, could(refused))
	for _, who := range both {
		if err := who.guard(); err != nil {
			t.Fatal(err)
		}
	}
	eventually(t, time.Minute, could(nil))
	if err := answers(t.Context()); err != nil {
		t.Errorf("the workload has suffered: %v", err)
	}
}

// A trader is a buyer or a seller that means no good, at the other one of them.
type trader struct {
	*hostile.Peer

	peer, at *federation.Cluster
	// guard guards the other one again.
	guard func() error
}

// traders returns the consumer at provider-b, and provider-b at the consumer, which have a contract.
func traders(t *testing.T) []trader {
	t.Helper()
	buyer, seller := fed.Consumer, fed.ProviderB
	return []trader{
		{Peer: intruder(t, buyer, seller, twinAt(t, seller, buyer, shared)), peer: buyer, at: seller},
		{Peer: intruder(t, seller, buyer, ""), peer: seller, at: buyer},
	}
}

// identities are those that the trader must not get, by what they are called.
func (who trader) identities() map[string]pkix.Name {
	return map[string]pkix.Name{
		"be the controller manager": {CommonName: "system:kube-controller-manager"},
		"be an administrator":       {CommonName: string(who.ID), Organization: []string{"kubeadm:cluster-admins"}},
		"be another cluster":        {CommonName: string(who.Victim), Organization: []string{"liqo.io"}},
	}
}

// tried has a trader try everything, and ask for the identities by the token that it has. It returns what it can do, and an error for each answer that
// says something else than it should.
func (who trader) tried(ctx context.Context) (could []string, err error) {
	var errs []error
	for _, attempt := range who.Attempts() {
		got := attempt.Try(ctx)
		switch {
		case got == nil:
			could = append(could, attempt.Name)
		case meta.IsNoMatchError(got): // Only a broker has the kind.
		case strings.Contains(got.Error(), attempt.Got), strings.Contains(got.Error(), hostile.NoRight): // Who only sells, or only buys, has fewer rights.
		default:
			errs = append(errs, fmt.Errorf("%s tries to %s, which gives it %s: %w", who.peer.Name, attempt.Name, attempt.Gain, got))
		}
	}
	for name, subject := range who.identities() {
		switch got := identify(ctx, who.at, subject); {
		case got == nil:
			could = append(could, name)
		case !strings.Contains(got.Error(), "denied"):
			errs = append(errs, fmt.Errorf("%s tries to %s: %w", who.peer.Name, name, got))
		}
	}
	return could, errors.Join(errs...)
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
func identify(ctx context.Context, at *federation.Cluster, subject pkix.Name) error {
	wish, err := hostile.SigningRequest(subject)
	if err != nil {
		return err
	}
	config, err := at.Lab.RESTConfig()
	if err != nil {
		return err
	}
	config = rest.CopyConfig(config)
	config.Impersonate = rest.ImpersonationConfig{UserName: "system:serviceaccount:liqo:liqo-auth", Groups: []string{"system:serviceaccounts", "system:authenticated"}}
	auth, err := client.New(config, client.Options{})
	if err != nil {
		return fmt.Errorf("reach the API server of %s: %w", at.Name, err)
	}
	return auth.Create(ctx, &certificatesv1.CertificateSigningRequest{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "hostile-"},
		Spec: certificatesv1.CertificateSigningRequestSpec{
			Request: wish, SignerName: certificatesv1.KubeAPIServerClientSignerName,
			Usages: []certificatesv1.KeyUsage{certificatesv1.UsageDigitalSignature, certificatesv1.UsageKeyEncipherment, certificatesv1.UsageClientAuth},
		},
	}, client.DryRunAll)
}
