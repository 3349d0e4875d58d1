// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package selfsigned

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"slices"
	"testing"
	"time"
)

// made runs a holder until it has announced a certificate, and returns that and what is served.
func made(t *testing.T, names ...string) ([]byte, *tls.Certificate) {
	t.Helper()
	var announced []byte
	ctx, cancel := context.WithCancel(t.Context())
	c := New(names[0], func(_ context.Context, ca []byte) error {
		defer cancel()
		announced = ca
		return nil
	}, names[1:]...)
	if _, err := c.Get(nil); err == nil {
		t.Error("a certificate is served before it is announced")
	}
	if err := c.Run(ctx); err != nil {
		t.Fatalf("Run(): %v", err)
	}
	served, err := c.Get(nil)
	if err != nil {
		t.Fatalf("Get(): %v", err)
	}
	return announced, served
}

func TestNames(t *testing.T) {
	announced, served := made(t, "one.example", "two.example", "192.0.2.1", "2001:db8::1")
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(announced) {
		t.Fatalf("what is announced is no certificate: %s", announced)
	}
	certificate, err := x509.ParseCertificate(served.Certificate[0])
	if err != nil {
		t.Fatal(err)
	}
	for name, good := range map[string]bool{
		"one.example": true, "two.example": true, "[192.0.2.1]": true, "[2001:db8::1]": true, "three.example": false, "[192.0.2.2]": false,
	} {
		if _, err := certificate.Verify(x509.VerifyOptions{DNSName: name, Roots: roots}); (err == nil) != good {
			t.Errorf("verified as %s: %v, want %t", name, err, good)
		}
	}
}

func TestJoin(t *testing.T) {
	first, _ := made(t, "first")
	second, _ := made(t, "second")
	var bundle []byte
	for range 2 * maxCertificates {
		bundle = Join(time.Now(), first, bundle)
	}
	if n := bytes.Count(bundle, []byte("BEGIN")); n != maxCertificates {
		t.Errorf("%d certificates are kept, want %d", n, maxCertificates)
	}
	if got := Join(time.Now().AddDate(1, 0, 0), first, bundle); !bytes.Equal(got, first) {
		t.Errorf("what has expired is kept:\n%s", got)
	}
	broken := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: []byte("broken")})
	if got := Join(time.Now(), first, append(broken, second...)); !bytes.Equal(got, slices.Concat(first, second)) {
		t.Errorf("what is broken is kept, or what comes after it is not:\n%s", got)
	}
}
