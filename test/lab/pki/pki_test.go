// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package pki

import (
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/tools/clientcmd"
)

func parse(t *testing.T, pair Pair) *x509.Certificate {
	t.Helper()
	if _, err := tls.X509KeyPair(pair.Certificate, pair.Key); err != nil {
		t.Fatalf("certificate and key do not fit: %v", err)
	}
	block, _ := pem.Decode(pair.Certificate)
	certificate, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	return certificate
}

func TestIssue(t *testing.T) {
	authority, err := NewAuthority("test")
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(authority.Certificate)
	server, err := authority.Server(pkix.Name{CommonName: "server"}, "server.local", "127.0.0.1")
	if err != nil {
		t.Fatal(err)
	}
	for _, host := range []string{"server.local", "127.0.0.1"} {
		if _, err := parse(t, server).Verify(x509.VerifyOptions{DNSName: host, Roots: roots}); err != nil {
			t.Errorf("server certificate for %s: %v", host, err)
		}
	}
	client, err := authority.Client("system:node:a", "system:nodes")
	if err != nil {
		t.Fatal(err)
	}
	certificate := parse(t, client)
	if _, err := certificate.Verify(x509.VerifyOptions{Roots: roots, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}); err != nil {
		t.Errorf("client certificate: %v", err)
	}
	if _, err := certificate.Verify(x509.VerifyOptions{Roots: roots}); err == nil {
		t.Error("a client certificate can serve")
	}
	got := append([]string{certificate.Subject.CommonName}, certificate.Subject.Organization...)
	if diff := cmp.Diff([]string{"system:node:a", "system:nodes"}, got); diff != "" {
		t.Errorf("subject (-want +got):\n%s", diff)
	}
}

func TestWriteKubeconfig(t *testing.T) {
	authority, err := NewAuthority("test")
	if err != nil {
		t.Fatal(err)
	}
	admin, err := authority.Client("admin", "system:masters")
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "kubeconfig")
	if err := authority.WriteKubeconfig(path, "here", "https://127.0.0.1:1234", admin); err != nil {
		t.Fatal(err)
	}
	config, err := clientcmd.BuildConfigFromFlags("", path)
	if err != nil {
		t.Fatal(err)
	}
	if config.Host != "https://127.0.0.1:1234" {
		t.Errorf("server %s", config.Host)
	}
	if diff := cmp.Diff(string(admin.Certificate), string(config.CertData)); diff != "" {
		t.Errorf("the kubeconfig does not hold the certificate itself (-want +got):\n%s", diff)
	}
}
