// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package party

import (
	"bytes"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"math/big"
	"sync"
	"time"

	"k8s.io/utils/clock"
)

const (
	// certificateLifetime is how long a certificate is valid; it is remade after half of it.
	certificateLifetime = 24 * time.Hour
	// backdated is for peers whose clocks are behind.
	backdated = time.Hour
	// Leeway is how long before and after its time a certificate is accepted. Only the key proves who a peer is, and a certificate
	// that has expired proves it as well as a new one, so that small differences of clocks cut nobody off. But parties remake their
	// certificates: one whose time is further away is from a peer whose clock (or whose own clock here) is so wrong that what it says of
	// the validity of offers and the ends of contracts is worth nothing, or from one that has stood still for a day.
	Leeway = 24 * time.Hour
)

// TLS is how one end of connections identifies itself, and the other end. Its certificate is self-signed and made when it is needed.
type TLS struct {
	// Current returns the key of this end; it must be there, and is called for each handshake.
	Current func() Key
	// Peer says whether a connection with the key of a fingerprint is wanted; nil admits all to a server, and a client none. It is
	// called concurrently and must not block.
	Peer func(fingerprint string) error
	// Optional lets a server accept who shows no certificate. PeerKey then returns an error.
	Optional bool
	// Clock is that of this machine if it is nil.
	Clock clock.PassiveClock
}

// ServerConfig returns the configuration of a server with one key, which asks all for a certificate but does not require it: PeerKey
// says who shows which key.
func ServerConfig(key Key) *tls.Config {
	return TLS{Current: func() Key { return key }, Optional: true}.Server()
}

// Pin admits one key only. The error is ErrSignature.
func Pin(pinned string) func(fingerprint string) error {
	return func(fingerprint string) error {
		if pinned == "" || fingerprint != pinned {
			return fmt.Errorf("the key %s is not %.60q: %w", fingerprint, pinned, ErrSignature)
		}
		return nil
	}
}

// Server returns a configuration for servers: TLS 1.3, without resumption, so that each connection proves its keys again.
func (t TLS) Server() *tls.Config {
	config := t.config()
	certificate := t.certificates()
	config.GetCertificate = func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return certificate() }
	config.ClientAuth = tls.RequireAnyClientCert
	if t.Optional {
		config.ClientAuth = tls.RequestClientCert
	}
	config.VerifyConnection = func(state tls.ConnectionState) error {
		if len(state.PeerCertificates) == 0 {
			return nil // By ClientAuth it may have none.
		}
		return t.verify(&state)
	}
	return config
}

// Client returns a configuration for clients: TLS 1.3 with a server whose key Peer wants, whatever name its certificate has.
func (t TLS) Client() *tls.Config {
	config := t.config()
	certificate := t.certificates()
	if t.Peer == nil {
		t.Peer = func(string) error { return errors.New("no server is wanted") }
	}
	config.InsecureSkipVerify = true // VerifyConnection takes the place of authorities and names.
	config.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return certificate() }
	config.VerifyConnection = func(state tls.ConnectionState) error { return t.verify(&state) }
	return config
}

func (t TLS) config() *tls.Config {
	return &tls.Config{MinVersion: tls.VersionTLS13, SessionTicketsDisabled: true}
}

// verify says whether a peer is wanted. That it has the key of its certificate is proved by the handshake (RFC 8446, section 4.4.3).
func (t TLS) verify(state *tls.ConnectionState) error {
	key, err := PeerKey(state)
	if err != nil {
		return err
	}
	now, shown := t.now(), state.PeerCertificates[0]
	if now.Before(shown.NotBefore.Add(-Leeway)) || now.After(shown.NotAfter.Add(Leeway)) {
		return fmt.Errorf("the certificate is for %s to %s, and it is %s here: %w",
			shown.NotBefore.UTC().Format(time.RFC3339), shown.NotAfter.UTC().Format(time.RFC3339), now.UTC().Format(time.RFC3339), ErrSignature)
	}
	if t.Peer == nil {
		return nil
	}
	return t.Peer(Fingerprint(key))
}

func (t TLS) now() time.Time {
	if t.Clock == nil {
		return time.Now()
	}
	return t.Clock.Now()
}

// certificates returns a function that returns a certificate of the current key, and can be called concurrently.
func (t TLS) certificates() func() (*tls.Certificate, error) {
	var (
		mu   sync.Mutex
		made *tls.Certificate
		of   ed25519.PublicKey
		till time.Time
	)
	return func() (*tls.Certificate, error) {
		key, now := t.Current(), t.now()
		if key.IsZero() {
			return nil, errors.New("there is no key for TLS")
		}
		mu.Lock()
		defer mu.Unlock()
		fresh := made != nil && bytes.Equal(of, key.Public()) && now.Before(till) && now.After(till.Add(-certificateLifetime))
		if !fresh {
			certificate, err := selfSigned(key, now)
			if err != nil {
				return nil, err
			}
			made, of, till = certificate, key.Public(), now.Add(certificateLifetime/2)
		}
		return made, nil
	}
}

// selfSigned makes a certificate.
func selfSigned(key Key, now time.Time) (*tls.Certificate, error) {
	template := &x509.Certificate{
		SerialNumber: big.NewInt(now.UnixNano()),
		NotBefore:    now.Add(-backdated), NotAfter: now.Add(certificateLifetime),
		KeyUsage:    x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
		DNSNames:    []string{key.Fingerprint()},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key.private)
	if err != nil {
		return nil, fmt.Errorf("make a certificate of the key %s: %w", key.Fingerprint(), err)
	}
	return &tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key.private}, nil
}

// PeerKey returns the key that the other end of a connection has proved to have. The error is ErrSignature if it has shown no
// certificate of an Ed25519 key.
func PeerKey(state *tls.ConnectionState) (ed25519.PublicKey, error) {
	if state == nil || len(state.PeerCertificates) == 0 {
		return nil, fmt.Errorf("the peer has shown no certificate: %w", ErrSignature)
	}
	key, ok := state.PeerCertificates[0].PublicKey.(ed25519.PublicKey)
	if !ok || len(key) != ed25519.PublicKeySize {
		return nil, fmt.Errorf("the certificate of the peer is of a %T, not of Ed25519: %w", state.PeerCertificates[0].PublicKey, ErrSignature)
	}
	return key, nil
}
