// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package server

import (
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
	"sync/atomic"
	"time"

	"github.com/capacitorset/liqo-broker/pkg/remoteipam"
)

const (
	certificateLifetime = 30 * 24 * time.Hour
	// rotateAfter leaves a consumer ten days to learn the next certificate.
	rotateAfter = 20 * 24 * time.Hour
	// clockSkew is how far the clocks of two clusters may differ.
	clockSkew = 5 * time.Minute
)

// Certificate is the server's own certificate. It lives in memory only: a
// restarted server makes another one and announces it, so that no key is ever
// stored or handed out.
type Certificate struct {
	current  atomic.Pointer[tls.Certificate]
	announce func(ctx context.Context, ca []byte) error
}

// NewCertificate returns a holder without a certificate; [Certificate.Run] makes
// the first. The function announce is called with each certificate, as PEM,
// before the certificate is served for the first time.
func NewCertificate(announce func(ctx context.Context, ca []byte) error) *Certificate {
	return &Certificate{announce: announce}
}

// Run issues, announces and serves a certificate, and the next one before it
// expires, until the context ends or one of the three fails.
func (c *Certificate) Run(ctx context.Context) error {
	for {
		certificate, ca, err := issue(time.Now())
		if err != nil {
			return err
		}
		if err := c.announce(ctx, ca); err != nil {
			return fmt.Errorf("announce the certificate of the remote IPAM: %w", err)
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
		return nil, fmt.Errorf("the certificate of the remote IPAM is not announced yet")
	}
	return certificate, nil
}

// TLSConfig serves the certificate and demands a client certificate that one of
// the client CAs signed.
func TLSConfig(certificate *Certificate, clientCAs *x509.CertPool) *tls.Config {
	return &tls.Config{
		MinVersion:     tls.VersionTLS13,
		GetCertificate: certificate.Get,
		ClientAuth:     tls.RequireAndVerifyClientCert,
		ClientCAs:      clientCAs,
	}
}

// issue makes a self-signed certificate; it is its own CA.
func issue(now time.Time) (*tls.Certificate, []byte, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, fmt.Errorf("generate the key of the remote IPAM: %w", err)
	}
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127))
	if err != nil {
		return nil, nil, fmt.Errorf("draw the serial number of the remote IPAM's certificate: %w", err)
	}
	template := &x509.Certificate{
		SerialNumber:          serial,
		Subject:               pkix.Name{CommonName: remoteipam.ServerName},
		DNSNames:              []string{remoteipam.ServerName},
		NotBefore:             now.Add(-clockSkew),
		NotAfter:              now.Add(certificateLifetime),
		KeyUsage:              x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		ExtKeyUsage:           []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		BasicConstraintsValid: true,
		IsCA:                  true,
		MaxPathLenZero:        true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return nil, nil, fmt.Errorf("sign the certificate of the remote IPAM: %w", err)
	}
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	return &tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, ca, nil
}
