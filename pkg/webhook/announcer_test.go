// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"bytes"
	"context"
	"slices"
	"testing"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/capacitorset/liqo-broker/pkg/liqo/v09/liqotest"
	"github.com/capacitorset/liqo-broker/pkg/serving/selfsigned"
)

// TestAnnounce lets two replicas announce their certificates, one of them twice.
func TestAnnounce(t *testing.T) {
	mutating := &admissionv1.MutatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: "liqo-broker"}, Webhooks: []admissionv1.MutatingWebhook{{Name: "place"}},
	}
	validating := &admissionv1.ValidatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: "liqo-broker"}, Webhooks: []admissionv1.ValidatingWebhook{{Name: "refuse"}, {Name: "refuse-too"}},
	}
	c := fake.NewClientBuilder().WithScheme(liqotest.Scheme(t)).WithObjects(mutating, validating).Build()
	var made [][]byte
	for range 3 {
		ctx, cancel := context.WithCancel(t.Context())
		certificate := selfsigned.New("liqo-broker-webhook.liqo-broker.svc", func(ctx context.Context, ca []byte) error {
			defer cancel()
			made = append(made, ca)
			return (&Announcer{Client: c, Configuration: "liqo-broker"}).Announce(ctx, ca)
		})
		if err := certificate.Run(ctx); err != nil {
			t.Fatalf("Run(): %v", err)
		}
	}
	for _, configuration := range []client.Object{mutating, validating} {
		if err := c.Get(t.Context(), client.ObjectKey{Name: "liqo-broker"}, configuration); err != nil {
			t.Fatalf("Get(): %v", err)
		}
	}
	slices.Reverse(made)
	for name, got := range map[string][]byte{
		"place":      mutating.Webhooks[0].ClientConfig.CABundle,
		"refuse":     validating.Webhooks[0].ClientConfig.CABundle,
		"refuse-too": validating.Webhooks[1].ClientConfig.CABundle,
	} {
		if !bytes.Equal(got, bytes.Join(made, nil)) {
			t.Errorf("announced for %s:\n%s\nwant the three, the last first", name, got)
		}
	}
}

// TestKeep takes a certificate out, and announces it again as often as it is there already: once more, and never twice.
func TestKeep(t *testing.T) {
	configuration := &admissionv1.MutatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: "liqo-broker"}, Webhooks: []admissionv1.MutatingWebhook{{Name: "place"}},
	}
	c := fake.NewClientBuilder().WithScheme(liqotest.Scheme(t)).WithObjects(configuration).Build()
	a, certificate := &Announcer{Client: c, Configuration: "liqo-broker"},
		[]byte("-----BEGIN CERTIFICATE-----\nQQ==\n-----END CERTIFICATE-----\n")
	for _, taken := range []bool{false, true, false, false} {
		if err := c.Get(t.Context(), client.ObjectKey{Name: "liqo-broker"}, configuration); err != nil {
			t.Fatal(err)
		}
		if taken {
			configuration.Webhooks[0].ClientConfig.CABundle = nil
			if err := c.Update(t.Context(), configuration); err != nil {
				t.Fatal(err)
			}
		}
		if err := a.Announce(t.Context(), certificate); err != nil {
			t.Fatal(err)
		}
		if err := c.Get(t.Context(), client.ObjectKey{Name: "liqo-broker"}, configuration); err != nil {
			t.Fatal(err)
		}
		if got := configuration.Webhooks[0].ClientConfig.CABundle; !bytes.Equal(got, certificate) {
			t.Errorf("announced:\n%s\nwant the certificate, once", got)
		}
	}
}

// TestNobodyToTell has no configuration.
func TestNobodyToTell(t *testing.T) {
	c := fake.NewClientBuilder().WithScheme(liqotest.Scheme(t)).Build()
	if err := (&Announcer{Client: c, Configuration: "liqo-broker"}).Announce(t.Context(), nil); err != nil {
		t.Errorf("Announce(): %v", err)
	}
}
