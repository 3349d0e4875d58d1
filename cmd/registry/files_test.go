// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package main

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
	"os"
	"path/filepath"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"
	testingclock "k8s.io/utils/clock/testing"

	"github.com/capacitorset/liqo-broker/pkg/serving/servingtest"
	"github.com/capacitorset/liqo-broker/pkg/trade/registry/client"
	"github.com/capacitorset/liqo-broker/pkg/trade/registry/registrytest"
	"github.com/capacitorset/liqo-broker/pkg/trade/registry/registryv1"
	"github.com/capacitorset/liqo-broker/pkg/trade/registry/server"
	"github.com/capacitorset/liqo-broker/pkg/trade/registry/store"
)

// issuer is an authority with a name.
type issuer struct {
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
}

func newIssuer(t *testing.T, name string) *issuer {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	i := &issuer{key: key, certificate: &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageCertSign, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
	}}
	i.certificate, err = x509.ParseCertificate(i.issue(t, i.certificate, key.Public()))
	if err != nil {
		t.Fatal(err)
	}
	return i
}

func (i *issuer) issue(t *testing.T, template *x509.Certificate, key any) []byte {
	t.Helper()
	der, err := x509.CreateCertificate(rand.Reader, template, i.certificate, key, i.key)
	if err != nil {
		t.Fatal(err)
	}
	return der
}

// of returns a certificate of a key, as PEM.
func (i *issuer) of(t *testing.T, key any, usage x509.ExtKeyUsage) []byte {
	t.Helper()
	der := i.issue(t, &x509.Certificate{
		SerialNumber: big.NewInt(2), DNSNames: []string{"registry.example"}, ExtKeyUsage: []x509.ExtKeyUsage{usage},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
	}, key)
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}

func (i *issuer) pem() []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: i.certificate.Raw})
}

// TestFilesAreReadAgain runs a registry, replaces its certificate and its authorities, rightly and wrongly, and asks over TLS what it has.
func TestFilesAreReadAgain(t *testing.T) {
	folder := t.TempDir()
	o := &serveOptions{
		certFile: filepath.Join(folder, "tls.crt"), certKeyFile: filepath.Join(folder, "tls.key"), authorities: filepath.Join(folder, "ca.crt"),
	}
	write := func(name string, text []byte) {
		t.Helper()
		if err := os.WriteFile(name, text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	first, second := newIssuer(t, "first"), newIssuer(t, "second")
	show := func(i *issuer) {
		t.Helper()
		key, err := x509.MarshalPKCS8PrivateKey(i.key)
		if err != nil {
			t.Fatal(err)
		}
		write(o.certFile, i.of(t, i.key.Public(), x509.ExtKeyUsageServerAuth))
		write(o.certKeyFile, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: key}))
	}
	show(first)
	write(o.authorities, first.pem())

	// The clock goes as the test says, and the log counts.
	var lines atomic.Int64
	clock := testingclock.NewFakePassiveClock(time.Unix(0, 0))
	later := func() { clock.SetTime(clock.Now().Add(lookAgain)) }
	log := funcr.New(func(_, args string) { lines.Add(1) }, funcr.Options{}).V(0)
	config, err := o.ordinary(log, clock)
	if err != nil {
		t.Fatal(err)
	}
	authorities, err := o.roots(log, clock)
	if err != nil {
		t.Fatal(err)
	}
	s, err := store.Open(t.Context(), "sqlite:"+filepath.Join(folder, "registry.db"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	served, err := server.New(t.Context(), server.Config{Store: s, Log: log, Authorities: authorities})
	if err != nil {
		t.Fatal(err)
	}
	address := servingtest.Serve(t, func(ctx context.Context, l net.Listener) error { return served.Run(ctx, l, config) })

	// shown says who has signed the certificate that the registry shows, and admits whether it lets a party in that an authority has
	// certified.
	shown := func() string {
		t.Helper()
		connection, err := (&tls.Dialer{Config: &tls.Config{MinVersion: tls.VersionTLS13, InsecureSkipVerify: true}}).DialContext(t.Context(),
			"tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		defer connection.Close()
		return connection.(*tls.Conn).ConnectionState().PeerCertificates[0].Issuer.CommonName
	}
	admits := func(i *issuer) bool {
		t.Helper()
		p := registrytest.NewParty(t, "party")
		e := p.Enrolment(t, 1, "")
		e.Certificates = string(i.of(t, p.Key.Public(), x509.ExtKeyUsageClientAuth))
		tlsConfig := registrytest.TLS(p.Key, "")
		tlsConfig.InsecureSkipVerify, tlsConfig.VerifyConnection, tlsConfig.VerifyPeerCertificate = true, nil, nil
		c, err := client.New("https://"+address, tlsConfig)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		said, err := c.Announce(t.Context(), p.ID, e)
		return err == nil && said.State == registryv1.Approved
	}
	check := func(reason, certificate string, certified []bool, logged int64) {
		t.Helper()
		if got := shown(); got != certificate {
			t.Errorf("%s: the certificate is of the %s, want the %s", reason, got, certificate)
		}
		if got := []bool{admits(first), admits(second)}; !slices.Equal(got, certified) {
			t.Errorf("%s: the first and the second authority let in: %v, want %v", reason, got, certified)
		}
		if got := lines.Swap(0); got != logged {
			t.Errorf("%s: %d lines are logged, want %d", reason, got, logged)
		}
	}

	check("At first", "first", []bool{true, false}, 0)
	write(o.certKeyFile, []byte("wrong"))
	write(o.authorities, []byte("wrong"))
	check("Before the files are looked at again", "first", []bool{true, false}, 0)
	later()
	check("Wrong files", "first", []bool{true, false}, 2)
	later()
	check("They are complained of once", "first", []bool{true, false}, 0)
	for _, name := range []string{o.certFile, o.authorities} {
		if err := os.Remove(name); err != nil {
			t.Fatal(err)
		}
	}
	later()
	check("Files that are not there", "first", []bool{true, false}, 2)
	show(second)
	write(o.authorities, second.pem())
	later()
	check("New files", "second", []bool{false, true}, 2)
	write(o.authorities, append(first.pem(), second.pem()...))
	later()
	check("More authorities", "second", []bool{true, true}, 1)
}
