// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

// Package servingtest runs servers for tests, with certificates for them and for their clients.
package servingtest

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"testing"
	"time"

	"github.com/capacitorset/liqo-broker/pkg/serving/selfsigned"
)

// Run runs something until the test ends, and waits for it then. The test fails if it ends with an
// error.
func Run(tb testing.TB, run func(context.Context) error) {
	tb.Helper()
	ctx, cancel := context.WithCancel(context.WithoutCancel(tb.Context()))
	done := make(chan error, 1)
	go func() { done <- run(ctx) }()
	tb.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			tb.Error(err)
		}
	})
}

// Listen listens on a port of loopback that nobody else has.
func Listen(tb testing.TB) net.Listener {
	tb.Helper()
	listener, err := (&net.ListenConfig{}).Listen(tb.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		tb.Fatal(err)
	}
	return listener
}

// Serve runs a server on a port of loopback until the test ends, and returns its address.
func Serve(tb testing.TB, serve func(context.Context, net.Listener) error) string {
	tb.Helper()
	listener := Listen(tb)
	Run(tb, func(ctx context.Context) error { return serve(ctx, listener) })
	return listener.Addr().String()
}

// Certificate returns the certificate of a server, which is ready to be shown, and what clients
// check it against, as PEM.
func Certificate(tb testing.TB, name string) (certificate *selfsigned.Certificate, ca []byte) {
	tb.Helper()
	announced := make(chan []byte, 1)
	certificate = selfsigned.New(name, func(_ context.Context, ca []byte) error {
		announced <- ca
		return nil
	})
	Run(tb, certificate.Run)
	ca = <-announced
	for _, err := certificate.Get(nil); err != nil; _, err = certificate.Get(nil) {
		time.Sleep(time.Millisecond) // It is announced before it is shown.
	}
	return certificate, ca
}

// Authority signs certificates of clients, as that of a Kubernetes API server does.
type Authority struct {
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
}

// NewAuthority returns an authority with a key of its own.
func NewAuthority(tb testing.TB) *Authority {
	tb.Helper()
	key := newKey(tb)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "kubernetes"}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		tb.Fatal(err)
	}
	certificate, err := x509.ParseCertificate(der)
	if err != nil {
		tb.Fatal(err)
	}
	return &Authority{certificate, key}
}

// PEM returns the certificate of the authority.
func (a *Authority) PEM() string {
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: a.certificate.Raw}))
}

// Sign returns a certificate of a client in some groups, which is valid until a time.
func (a *Authority) Sign(tb testing.TB, notAfter time.Time, name string, groups ...string) *tls.Certificate {
	tb.Helper()
	return a.sign(tb, notAfter, newKey(tb), name, groups...)
}

// Renew returns another certificate for the key of one that the authority has signed.
func (a *Authority) Renew(tb testing.TB, notAfter time.Time, old *tls.Certificate, name string, groups ...string) *tls.Certificate {
	tb.Helper()
	key, is := old.PrivateKey.(*ecdsa.PrivateKey)
	if !is {
		tb.Fatalf("the key of %s is %T", name, old.PrivateKey)
	}
	return a.sign(tb, notAfter, key, name, groups...)
}

func (a *Authority) sign(tb testing.TB, notAfter time.Time, key *ecdsa.PrivateKey, name string, groups ...string) *tls.Certificate {
	tb.Helper()
	der, err := x509.CreateCertificate(rand.Reader, &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: name, Organization: groups},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: notAfter,
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}, a.certificate, key.Public(), a.key)
	if err != nil {
		tb.Fatal(err)
	}
	return &tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}

func newKey(tb testing.TB) *ecdsa.PrivateKey {
	tb.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		tb.Fatal(err)
	}
	return key
}
