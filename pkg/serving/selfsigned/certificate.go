// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

// Package selfsigned keeps the certificate of a server that its clients learn by an
// announcement. It does not know what the server serves, nor how it is announced.
package selfsigned

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"sync/atomic"
	"time"
)

const (
	certificateLifetime = 30 * 24 * time.Hour
	// rotateAfter leaves a client ten days to learn the next certificate.
	rotateAfter = 20 * 24 * time.Hour
	// clockSkew is how far the clocks of two clusters may differ.
	clockSkew = 5 * time.Minute
	// maxCertificates bounds the certificates that are announced: one for each
	// replica, and some of replicas that have been.
	maxCertificates = 8
)

// Certificate is a server's own certificate. It lives in memory only: a
// restarted server makes another one and announces it, so that no key is ever
// stored or handed out.
type Certificate struct {
	names    []string // The first is what it is called.
	current  atomic.Pointer[tls.Certificate]
	announce func(ctx context.Context, ca []byte) error
}

// New returns a holder without a certificate for a host name, and more names and
// addresses; [Certificate.Run] makes the first. The function announce is called with
// each certificate, as PEM, before the certificate is served for the first time.
func New(name string, announce func(ctx context.Context, ca []byte) error, more ...string) *Certificate {
	return &Certificate{names: append([]string{name}, more...), announce: announce}
}

// Run issues, announces and serves a certificate, and the next one before it
// expires, until the context ends or one of the three fails.
func (c *Certificate) Run(ctx context.Context) error {
	for {
		certificate, ca, err := issue(c.names, time.Now())
		if err != nil {
			return err
		}
		if err := c.announce(ctx, ca); err != nil {
			return fmt.Errorf("announce the certificate of %s: %w", c.names[0], err)
		}
		c.current.Store(certificate)
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(rotateAfter):
		}
	}
}

// Get is a tls.Config.GetCertificate. It fails until Run has announced the
// first certificate.
func (c *Certificate) Get(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	certificate := c.current.Load()
	if certificate == nil {
		return nil, fmt.Errorf("the certificate of %s is not announced yet", c.names[0])
	}
	return certificate, nil
}

// issue makes a self-signed certificate; it is its own CA.
func issue(names []string, now time.Time) (*tls.Certificate, []byte, error) {
	name := names[0]
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, fmt.Errorf("generate the key of %s: %w", name, err)
	}
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127))
	if err != nil {
		return nil, nil, fmt.Errorf("draw the serial number for %s: %w", name, err)
	}
	template := &x509.Certificate{
		SerialNumber:          serial,
		Subject:               pkix.Name{CommonName: name},
		NotBefore:             now.Add(-clockSkew),
		NotAfter:              now.Add(certificateLifetime),
		KeyUsage:              x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		ExtKeyUsage:           []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		BasicConstraintsValid: true,
		IsCA:                  true,
		MaxPathLenZero:        true,
	}
	for _, n := range names {
		if ip := net.ParseIP(n); ip != nil {
			template.IPAddresses = append(template.IPAddresses, ip)
		} else {
			template.DNSNames = append(template.DNSNames, n)
		}
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return nil, nil, fmt.Errorf("sign the certificate of %s: %w", name, err)
	}
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	return &tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, ca, nil
}

// Join puts a certificate before the known ones that have not expired, all as PEM: the
// announcement of several replicas, of which each has its own.
func Join(now time.Time, certificate, known []byte) []byte {
	bundle, count := bytes.Clone(certificate), 1
	for block, rest := pem.Decode(known); block != nil && count < maxCertificates; block, rest = pem.Decode(rest) {
		parsed, err := x509.ParseCertificate(block.Bytes)
		if err != nil || now.After(parsed.NotAfter) {
			continue
		}
		bundle = append(bundle, pem.EncodeToMemory(&pem.Block{Type: block.Type, Bytes: block.Bytes})...)
		count++
	}
	return bundle
}
