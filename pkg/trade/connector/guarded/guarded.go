// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

// Package guarded asks whether this cluster keeps in bounds the peers that contracts bring, before there are any: strangers become direct
// peers of Liqo, which believes them.
//
// It asks the API server, and sees how it answers. It does not know what the guard does, and installs nothing.
package guarded

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
	"github.com/capacitorset/liqo-broker/pkg/core/podstate"
	"github.com/capacitorset/liqo-broker/pkg/liqo"
	"github.com/capacitorset/liqo-broker/pkg/trade/connector/peering"
)

// How long an answer counts. What was missing is soon there.
const (
	goodFor = 30 * time.Second
	badFor  = 5 * time.Second
)

// configuration is the name of the ValidatingWebhookConfiguration of the guard (deploy/guard).
const configuration = "liqo-broker-guard"

// required are its webhooks, and which of them refuse also what they cannot be asked about.
var required = map[string]admissionv1.FailurePolicyType{
	"allowance.brokering.liqo.io":        admissionv1.Fail,
	"guard-identities.brokering.liqo.io": admissionv1.Fail,
	"isolate.brokering.liqo.io":          admissionv1.Fail,
	"mappings.brokering.liqo.io":         admissionv1.Fail,
	"peers.brokering.liqo.io":            admissionv1.Ignore,
	"services.brokering.liqo.io":         admissionv1.Fail,
	"tunnels.brokering.liqo.io":          admissionv1.Ignore,
}

// shutIPAM and guardIPAM run in the pods of Liqo's network manager where its IPAM is closed to all but virtual kubelets: what closes it
// before it answers, and what opens it to them (patches/liqo-install/ipam-guard.yaml).
const shutIPAM, guardIPAM = "shut-ipam", "ipam-guard"

// networkManager are the labels of those pods.
func networkManager() client.MatchingLabels {
	return client.MatchingLabels{"app.kubernetes.io/part-of": "liqo", "app.kubernetes.io/name": "network-manager"}
}

// Cluster asks about this cluster. It may be used concurrently.
type Cluster struct {
	client    client.Client
	namespace string
	clock     clock.PassiveClock

	mu    sync.Mutex
	asked time.Time
	last  error
}

// New returns a Cluster; the client asks the API server itself, namespace is where Liqo runs, and now is the clock.
func New(c client.Client, namespace string, now clock.PassiveClock) *Cluster {
	return &Cluster{client: c, namespace: namespace, clock: now}
}

// Check returns an error that says what is missing; nil if the cluster is guarded. The error is [peering.ErrUnguarded], or one of asking.
// An answer counts for some seconds.
func (c *Cluster) Check(ctx context.Context) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.clock.Now()
	counts := goodFor
	if c.last != nil {
		counts = badFor
	}
	// A clock may be set back.
	if age := now.Sub(c.asked); !c.asked.IsZero() && age >= 0 && age < counts {
		return c.last
	}
	err := c.look(ctx)
	if ctx.Err() == nil { // What it was not told in time, is no answer for others.
		c.asked, c.last = now, err
	}
	return err
}

func (c *Cluster) look(ctx context.Context) error {
	missing, err := c.webhooks(ctx)
	if err != nil {
		return err
	}
	manager, err := liqo.ReadManager(ctx, c.client, c.namespace)
	if err != nil {
		return err
	}
	missing = append(missing, manager.Unguarded()...)
	ipam, err := c.ipam(ctx)
	if err != nil {
		return err
	}
	missing = append(missing, ipam...)
	if len(missing) == 0 {
		// Last, and only if it can succeed: it is refused by who is there, and not by who is named.
		why, err := c.probe(ctx)
		if err != nil {
			return err
		}
		missing = append(missing, why...)
	}
	if len(missing) > 0 {
		return fmt.Errorf("%w: %s: run \"kubectl liqo-broker guard\"", peering.ErrUnguarded, strings.Join(missing, "; "))
	}
	return nil
}

// webhooks returns which webhooks of the guard are missing, or would let pass what they are to refuse.
func (c *Cluster) webhooks(ctx context.Context) (missing []string, err error) {
	var found admissionv1.ValidatingWebhookConfiguration
	err = c.client.Get(ctx, client.ObjectKey{Name: configuration}, &found)
	if apierrors.IsNotFound(err) {
		return []string{"there is no ValidatingWebhookConfiguration " + configuration}, nil
	}
	if err != nil {
		return nil, fmt.Errorf("get ValidatingWebhookConfiguration %s: %w", configuration, err)
	}
	policies := map[string]admissionv1.FailurePolicyType{}
	for i := range found.Webhooks {
		w := &found.Webhooks[i]
		if w.FailurePolicy != nil {
			policies[w.Name] = *w.FailurePolicy
		}
	}
	for name, policy := range required {
		switch have, there := policies[name]; {
		case !there:
			missing = append(missing, fmt.Sprintf("ValidatingWebhookConfiguration %s has no webhook %s", configuration, name))
		case have != policy && have != admissionv1.Fail:
			missing = append(missing, fmt.Sprintf("the webhook %s lets everything pass while the guard does not run", name))
		}
	}
	slices.Sort(missing)
	return missing, nil
}

// ipam returns which pods of Liqo's network manager answer everybody who asks for addresses.
func (c *Cluster) ipam(ctx context.Context) (missing []string, err error) {
	var pods corev1.PodList
	if err := c.client.List(ctx, &pods, client.InNamespace(c.namespace), networkManager()); err != nil {
		return nil, fmt.Errorf("list the pods of Liqo's network manager: %w", err)
	}
	named := func(name string) func(corev1.Container) bool {
		return func(c corev1.Container) bool { return c.Name == name }
	}
	for i := range pods.Items {
		spec := &pods.Items[i].Spec
		closed := slices.ContainsFunc(spec.InitContainers, named(shutIPAM)) && slices.ContainsFunc(spec.Containers, named(guardIPAM))
		if !podstate.Ended(&pods.Items[i]) && !closed {
			missing = append(missing, fmt.Sprintf("Liqo's IPAM in pod %s answers everybody", pods.Items[i].Name))
		}
	}
	return missing, nil
}

// probe asks for a certificate, as Liqo does for whoever has the token, and returns why that is not refused by the guard; none if it is.
// Nothing is made of it.
func (c *Cluster) probe(ctx context.Context) (why []string, err error) {
	request, err := newRequest()
	if err != nil {
		return nil, err
	}
	wish := &certificatesv1.CertificateSigningRequest{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "liqo-broker-probe-"},
		Spec: certificatesv1.CertificateSigningRequestSpec{
			SignerName: certificatesv1.KubeAPIServerClientSignerName, Request: request,
			Usages: []certificatesv1.KeyUsage{certificatesv1.UsageDigitalSignature, certificatesv1.UsageClientAuth},
		},
	}
	switch err := c.client.Create(ctx, wish, client.DryRunAll); {
	case err == nil:
		return []string{"nobody refuses an identity"}, nil
	case apierrors.IsForbidden(err) && strings.HasSuffix(err.Error(), liqo.ProbeRefused):
		return nil, nil
	case apierrors.IsInternalError(err): // Who is to be asked does not answer.
		return []string{"the guard of identities does not answer"}, nil
	default:
		return nil, fmt.Errorf("see whether an identity is refused: %w", err)
	}
}

// newRequest returns a request for a certificate of nobody, as PEM.
func newRequest() ([]byte, error) {
	_, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("make a key: %w", err)
	}
	der, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{Subject: pkix.Name{CommonName: "liqo-broker-probe"}}, key)
	if err != nil {
		return nil, fmt.Errorf("make a request for a certificate: %w", err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der}), nil
}

// Buyer peers this cluster with those of sellers while it is guarded. What has begun can be ended at any time.
type Buyer struct {
	peering.Buyer

	cluster *Cluster
}

// NewBuyer returns a Buyer that peers as another one does.
func NewBuyer(b peering.Buyer, c *Cluster) *Buyer { return &Buyer{b, c} }

// Peer implements [peering.Buyer]. The error is [peering.ErrUnguarded] if the cluster is not guarded.
func (b *Buyer) Peer(ctx context.Context, with peering.Credentials) error {
	if err := b.cluster.Check(ctx); err != nil {
		return err
	}
	return b.Buyer.Peer(ctx, with)
}

// Seller lets the clusters of buyers peer with this one while it is guarded. What has begun can be ended at any time.
type Seller struct {
	peering.Seller

	cluster *Cluster
}

// NewSeller returns a Seller that issues as another one does.
func NewSeller(s peering.Seller, c *Cluster) *Seller { return &Seller{s, c} }

// Issue implements [peering.Seller]. The error is [peering.ErrUnguarded] if the cluster is not guarded.
func (s *Seller) Issue(ctx context.Context, buyer cluster.Identity) (peering.Credentials, error) {
	if err := s.cluster.Check(ctx); err != nil {
		return peering.Credentials{}, err
	}
	return s.Seller.Issue(ctx, buyer)
}

var (
	_ peering.Buyer  = (*Buyer)(nil)
	_ peering.Seller = (*Seller)(nil)
)
