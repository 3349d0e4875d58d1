// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package virtualkubelet

import (
	"crypto/x509"
	"encoding/pem"
	"net/netip"
	"testing"

	"github.com/go-logr/logr/funcr"
	"k8s.io/client-go/rest"

	"github.com/capacitorset/liqo-broker/pkg/remoteipam"
)

func TestIdentityAtTheRemoteIPAM(t *testing.T) {
	certificate := newTestAuthority(t).sign(t, "consumer")
	key, err := x509.MarshalPKCS8PrivateKey(certificate.PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	signed := rest.TLSClientConfig{
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
		"Certificate":    {reason: "the identity that Liqo gives", config: &rest.Config{TLSClientConfig: signed}, servers: remoteipam.Servers{"broker.example:6001"}, used: true},
		"Token":          {reason: "a peer on EKS has no client certificate; its pods must run all the same", config: &rest.Config{BearerToken: "t"}, servers: remoteipam.Servers{"broker.example:6001"}, told: 1},
		"TokenNoServers": {reason: "there is nothing to say", config: &rest.Config{BearerToken: "t"}},
		"Malformed":      {reason: "the Secret is broken, and not another kind of identity", config: &rest.Config{TLSClientConfig: rest.TLSClientConfig{CertData: []byte("x")}}, servers: remoteipam.Servers{"broker.example:6001"}, wantErr: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			o := NewOptions()
			o.RemoteIPAM = tc.servers
			tc.config.Host = "https://broker.example"
			told := 0
			log := funcr.New(func(string, string) { told++ }, funcr.Options{})
			client, err := newBrokerClient(o, &identity{config: tc.config}, func() {}, func(netip.Addr) bool { return false }, log)
			if (err != nil) != tc.wantErr || (client.relay() != nil) != tc.used || told != tc.told {
				t.Errorf("%s: a client %t, error %v, %d lines; want a client %t, an error %t, %d lines",
					tc.reason, client.relay() != nil, err, told, tc.used, tc.wantErr, tc.told)
			}
		})
	}
}
