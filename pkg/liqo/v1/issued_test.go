// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package v1

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"math/big"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/capacitorset/liqo-broker/pkg/liqo"
	"github.com/capacitorset/liqo-broker/pkg/liqo/v1/api"
)

// signed returns a certificate for a key, in PEM.
func signed(t *testing.T, key ed25519.PrivateKey, name string, groups ...string) []byte {
	t.Helper()
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: named(name, groups...).Subject}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}

// TestIssuedKey looks for the key of the cluster c, whose Tenant is in its tenant namespace tenant-c.
func TestIssuedKey(t *testing.T) {
	key, other := newKey(t), newKey(t)
	want, err := x509.MarshalPKIXPublicKey(key.Public())
	if err != nil {
		t.Fatal(err)
	}
	holds := func(tenant *api.Tenant, text []byte) { tenant.Status.AuthParams = &api.IssuedParams{SignedCRT: text} }
	later := tenantIn("tenant-c", "a", "c")
	holds(later, signed(t, other, "c", "liqo.io"))
	later.CreationTimestamp = metav1.NewTime(time.Now())
	cases := map[string]struct {
		reason string
		change func(*api.Tenant)
		more   []client.Object
		none   bool
	}{
		"Issued": {reason: "Liqo has signed it."},
		"Cordoned": {
			reason: "It may go on with what it has.", change: func(t *api.Tenant) { t.Spec.TenantCondition = api.TenantCordoned },
		},
		"Drained": {
			reason: "Who leaves is known until it has left.", change: func(t *api.Tenant) { t.Spec.TenantCondition = api.TenantDrained },
		},
		"Later": {reason: "The first Tenant counts.", more: []client.Object{later}},

		"Waits":   {reason: "Liqo has not looked at it yet.", change: func(t *api.Tenant) { t.Status.AuthParams = nil }, none: true},
		"Empty":   {reason: "Liqo gives no certificates here.", change: func(t *api.Tenant) { holds(t, nil) }, none: true},
		"Garbage": {reason: "It is no certificate.", change: func(t *api.Tenant) { holds(t, []byte("x")) }, none: true},
		"Broken": {
			reason: "Nor is this.", change: func(t *api.Tenant) {
				holds(t, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: []byte("x")}))
			}, none: true,
		},
		"Named": {
			reason: "The certificate is for another.", none: true,
			change: func(tenant *api.Tenant) { holds(tenant, signed(t, key, "v", "liqo.io")) },
		},
		"Slice": {
			reason: "It is that of a virtual kubelet.", change: func(tenant *api.Tenant) { holds(tenant, signed(t, key, "c", "c")) }, none: true,
		},
		"Groups": {
			reason: "Liqo gives one group.", none: true,
			change: func(tenant *api.Tenant) { holds(tenant, signed(t, key, "c", "liqo.io", "system:masters")) },
		},
		"NoGroup": {reason: "Nor none.", change: func(tenant *api.Tenant) { holds(tenant, signed(t, key, "c")) }, none: true},
		"TenantOfAnother": {
			reason: "It speaks for another one.", change: func(t *api.Tenant) { t.Spec.ClusterID = "v" }, none: true,
		},
		"Elsewhere": {
			reason: "Whoever may write there is another one.", change: func(t *api.Tenant) { t.Namespace = "tenant-v" }, none: true,
		},
		"InTwin": {reason: "A twin is no tenant namespace.", change: func(t *api.Tenant) { t.Namespace = "twin" }, none: true},
		"Nowhere": {
			reason: "Nor is any other.", change: func(t *api.Tenant) { t.Namespace = "liqo-tenant-c" }, none: true,
		},
		"Two": {reason: "Liqo does not know which of them either.", more: []client.Object{new(tenantNamespace("tenant-d", "c"))}, none: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			objects := world(t, nil, nil, func(tenant *api.Tenant, _ *api.ResourceSlice) {
				tenant.CreationTimestamp = metav1.NewTime(time.Unix(1, 0))
				holds(tenant, signed(t, key, "c", "liqo.io"))
				if tc.change != nil {
					tc.change(tenant)
				}
			}, tc.more...)
			got, err := IssuedKey(t.Context(), objects, "c")
			if tc.none {
				if got != nil || !errors.Is(err, liqo.ErrNotIssued) {
					t.Errorf("%s\nIssuedKey() = %x, %v, want %v", tc.reason, got, err, liqo.ErrNotIssued)
				}
				return
			}
			if err != nil || !bytes.Equal(got, want) {
				t.Errorf("%s\nIssuedKey() = %x, %v, want %x", tc.reason, got, err, want)
			}
		})
	}
}

// TestIssuedKeyUnknown has an API server that does not answer: that is not the same as that there is no certificate.
func TestIssuedKeyUnknown(t *testing.T) {
	boom := errors.New("boom")
	for name, fails := range map[string]func(client.ObjectList) bool{
		"Namespaces": func(l client.ObjectList) bool { _, tenants := l.(*api.TenantList); return !tenants },
		"Tenants":    func(l client.ObjectList) bool { _, tenants := l.(*api.TenantList); return tenants },
	} {
		down := interceptor.NewClient(world(t, nil, nil, nil), interceptor.Funcs{
			List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
				if fails(list) {
					return boom
				}
				return c.List(ctx, list, opts...)
			},
		})
		if _, err := IssuedKey(t.Context(), down, "c"); !errors.Is(err, boom) || errors.Is(err, liqo.ErrNotIssued) {
			t.Errorf("%s: IssuedKey() = %v, want boom", name, err)
		}
	}
}
