// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package address

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net/netip"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"
	"k8s.io/client-go/rest"

	"github.com/capacitorset/liqo-broker/pkg/remoteipam"
)

// signed returns a certificate of a client, which it has signed itself.
func signed(t *testing.T, name string) *tls.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	return &tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}

func TestIdentityAtTheRemoteIPAM(t *testing.T) {
	certificate := signed(t, "consumer")
	key, err := x509.MarshalPKCS8PrivateKey(certificate.PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	config := rest.TLSClientConfig{
		CertData: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: certificate.Certificate[0]}),
		KeyData:  pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: key}),
	}
	cases := map[string]struct {
		reason  string
		config  *rest.Config
		servers remoteipam.Servers
		used    bool
		told    int
		wantErr bool
	}{
		"Certificate": {
			reason: "the identity that Liqo gives", config: &rest.Config{TLSClientConfig: config},
			servers: remoteipam.Servers{"broker.example:6001"}, used: true,
		},
		"Token": {
			reason: "a peer on EKS has no client certificate; its pods must run all the same", config: &rest.Config{BearerToken: "t"},
			servers: remoteipam.Servers{"broker.example:6001"}, told: 1,
		},
		"TokenNoServers": {reason: "there is nothing to say", config: &rest.Config{BearerToken: "t"}},
		"Malformed": {
			reason: "the Secret is broken, and not another kind of identity",
			config: &rest.Config{TLSClientConfig: rest.TLSClientConfig{CertData: []byte("x")}}, servers: remoteipam.Servers{"broker.example:6001"},
			wantErr: true,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			tc.config.Host = "https://broker.example"
			told := 0
			log := funcr.New(func(string, string) { told++ }, funcr.Options{})
			client, err := newBrokerClient(&Config{Identity: tc.config, RemoteIPAM: tc.servers}, func() {},
				func(netip.Addr) bool { return false }, log)
			if (err != nil) != tc.wantErr || (client.relay() != nil) != tc.used || told != tc.told {
				t.Errorf("%s: a client %t, error %v, %d lines; want a client %t, an error %t, %d lines",
					tc.reason, client.relay() != nil, err, told, tc.used, tc.wantErr, tc.told)
			}
		})
	}
}
