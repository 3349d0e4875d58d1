// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package party

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"math/big"
	"net"
	"testing"
	"time"

	testingclock "k8s.io/utils/clock/testing"
)

// clientOf returns the configuration of a client with one key, which speaks only to the server with the key of a fingerprint.
func clientOf(key Key, pin string) *tls.Config {
	return TLS{Current: func() Key { return key }, Peer: Pin(pin)}.Client()
}

// meet connects a client to a server over loopback, and returns how it ended for each: the client has read a byte of the server.
func meet(t *testing.T, server, client *tls.Config) (atServer, atClient error, seen tls.ConnectionState) { //nolint:staticcheck // Both ends have one.
	t.Helper()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	done := make(chan error, 1)
	go func() {
		accepted, err := listener.Accept()
		if err != nil {
			done <- err
			return
		}
		defer accepted.Close()
		conn := tls.Server(accepted, server)
		if err := conn.HandshakeContext(context.Background()); err != nil {
			done <- err
			return
		}
		seen = conn.ConnectionState()
		_, err = conn.Write([]byte("x"))
		done <- err
	}()
	conn, err := (&tls.Dialer{Config: client}).DialContext(t.Context(), "tcp", listener.Addr().String())
	if err == nil {
		_, err = io.ReadFull(conn, make([]byte, 1))
		conn.Close()
	}
	return <-done, err, seen
}

// of returns one end with a key.
func of(key Key, peer func(string) error) TLS {
	return TLS{Current: func() Key { return key }, Peer: peer}
}

// TestTLS connects with the right keys.
func TestTLS(t *testing.T) {
	a, b := newKey(t, 'a'), newKey(t, 'b')
	for name, server := range map[string]*tls.Config{
		"all":    of(a, nil).Server(),
		"pinned": of(a, Pin(b.Fingerprint())).Server(),
		"asked":  ServerConfig(a),
	} {
		atServer, atClient, seen := meet(t, server, clientOf(b, a.Fingerprint()))
		if atServer != nil || atClient != nil {
			t.Fatalf("%s: %v, %v", name, atServer, atClient)
		}
		if key, err := PeerKey(&seen); err != nil || !key.Equal(b.Public()) {
			t.Errorf("%s: PeerKey: %v, %v", name, key, err)
		}
	}
}

// TestTLSRefuses connects with what must not be accepted.
func TestTLSRefuses(t *testing.T) {
	a, b, c := newKey(t, 'a'), newKey(t, 'b'), newKey(t, 'c')
	required := of(a, nil).Server()
	old := clientOf(b, a.Fingerprint())
	old.MinVersion, old.MaxVersion = tls.VersionTLS12, tls.VersionTLS12
	bare := clientOf(b, a.Fingerprint())
	bare.GetClientCertificate = nil
	// The certificate of b, with the key of c.
	stolen := clientOf(c, a.Fingerprint())
	theirs, err := selfSigned(b, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	stolen.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
		return &tls.Certificate{Certificate: theirs.Certificate, PrivateKey: c.private}, nil
	}
	other, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, other.Public(), other)
	if err != nil {
		t.Fatal(err)
	}
	foreign := clientOf(b, a.Fingerprint())
	foreign.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
		return &tls.Certificate{Certificate: [][]byte{der}, PrivateKey: other}, nil
	}
	at := func(d time.Duration) *tls.Config {
		end := of(b, Pin(a.Fingerprint()))
		cert, err := selfSigned(b, time.Now().Add(d))
		if err != nil {
			t.Fatal(err)
		}
		config := end.Client()
		config.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return cert, nil }
		return config
	}
	for name, tc := range map[string]struct {
		reason         string
		server, client *tls.Config
		refused        bool
	}{
		"another server":     {"the client wants the key of c", required, clientOf(b, c.Fingerprint()), true},
		"no server wanted":   {"a client without a pin speaks to nobody", required, of(b, nil).Client(), true},
		"empty pin":          {"a pin that was forgotten is none", required, clientOf(b, ""), true},
		"another client":     {"the server wants b only", of(a, Pin(b.Fingerprint())).Server(), clientOf(c, a.Fingerprint()), true},
		"TLS 1.2":            {"its handshake shows certificates in clear", required, old, true},
		"no certificate":     {"the server requires one", required, bare, true},
		"stolen certificate": {"without the key it proves nothing", required, stolen, true},
		"stolen, optional":   {"nor where none is required", ServerConfig(a), stolen, true},
		"ECDSA":              {"keys of parties are Ed25519", required, foreign, true},
		"no key":             {"there is nothing to show", required, clientOf(Key{}, a.Fingerprint()), true},
		"just expired":       {"clocks differ", required, at(-certificateLifetime - time.Hour), false},
		"long expired":       {"the peer has stood still", required, at(-certificateLifetime - Leeway - time.Hour), true},
		"of tomorrow":        {"clocks differ", required, at(Leeway), false},
		"of next week":       {"the peer's clock is wrong", required, at(7 * 24 * time.Hour), true},
	} {
		atServer, atClient, _ := meet(t, tc.server, tc.client)
		if refused := atServer != nil || atClient != nil; refused != tc.refused {
			t.Errorf("%s (%s): %v, %v", name, tc.reason, atServer, atClient)
		}
		if tc.refused && atClient == nil {
			t.Errorf("%s (%s): the client got an answer", name, tc.reason)
		}
	}
	// Who need not show a certificate is answered, and has no key.
	atServer, atClient, seen := meet(t, ServerConfig(a), bare)
	if atServer != nil || atClient != nil {
		t.Errorf("no certificate, optional: %v, %v", atServer, atClient)
	}
	if _, err := PeerKey(&seen); !errors.Is(err, ErrSignature) {
		t.Errorf("PeerKey: %v", err)
	}
	if _, err := PeerKey(nil); !errors.Is(err, ErrSignature) {
		t.Errorf("PeerKey(nil): %v", err)
	}
}

// TestCertificates remakes certificates.
func TestCertificates(t *testing.T) {
	key, clock := newKey(t, 'a'), testingclock.NewFakePassiveClock(time.Now())
	get := TLS{Current: func() Key { return key }, Clock: clock}.certificates()
	later := func(by time.Duration) { clock.SetTime(clock.Now().Add(by)) }
	serial := func() string {
		t.Helper()
		certificate, err := get()
		if err != nil {
			t.Fatal(err)
		}
		parsed, err := x509.ParseCertificate(certificate.Certificate[0])
		if err != nil {
			t.Fatal(err)
		}
		if now := clock.Now(); now.Before(parsed.NotBefore) || now.After(parsed.NotAfter) || !key.Public().Equal(parsed.PublicKey) {
			t.Errorf("at %s: valid %s to %s", now, parsed.NotBefore, parsed.NotAfter)
		}
		return parsed.SerialNumber.String()
	}
	first := serial()
	later(certificateLifetime/2 - time.Minute)
	if serial() != first {
		t.Error("remade too early")
	}
	later(2 * time.Minute)
	second := serial()
	if second == first {
		t.Error("not remade")
	}
	later(-48 * time.Hour)
	if third := serial(); third == second {
		t.Error("not remade when the clock was set back")
	}
	key = newKey(t, 'b')
	serial()
}
