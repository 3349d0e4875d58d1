// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"crypto/ed25519"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"

	"github.com/liqotech/liqo/cmd/virtual-kubelet/root"
	certificatesv1 "k8s.io/api/certificates/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/util/certificate"
)

// awsServingSigner signs kubelet certificates in clusters on EKS.
const awsServingSigner = "beta.eks.amazonaws.com/app-serving"

// selfSignedLifetime is longer than any pod of a virtual kubelet lives.
const selfSignedLifetime = 10 * 365 * 24 * time.Hour

// certificateSource holds the serving certificate of the kubelet API: one that
// the cluster signs and that is renewed, or one that is self-signed.
type certificateSource struct {
	manager    certificate.Manager
	selfSigned *tls.Certificate
}

func newCertificateSource(c *Config, client kubernetes.Interface) (*certificateSource, error) {
	subject := pkix.Name{CommonName: "system:node:" + c.NodeName, Organization: []string{"system:nodes"}}
	addresses := []net.IP{net.ParseIP(c.NodeIP)}
	signer := certificatesv1.KubeletServingSignerName
	switch c.CertificateType {
	case root.CertificateTypeSelfSigned:
		signed, err := selfSign(subject, addresses, time.Now())
		return &certificateSource{selfSigned: signed}, err
	case root.CertificateTypeAWS:
		signer = awsServingSigner
	}
	folder := filepath.Join(os.TempDir(), "certs")
	store, err := certificate.NewFileStore("virtual-kubelet", folder, folder, "", "")
	if err != nil {
		return nil, fmt.Errorf("keep the serving certificate in %s: %w", folder, err)
	}
	manager, err := certificate.NewManager(&certificate.Config{
		ClientsetFn: func(*tls.Certificate) (kubernetes.Interface, error) { return client, nil },
		GetTemplate: func() *x509.CertificateRequest {
			return &x509.CertificateRequest{Subject: subject, IPAddresses: addresses}
		},
		SignerName: signer,
		Usages: []certificatesv1.KeyUsage{
			certificatesv1.UsageDigitalSignature, certificatesv1.UsageKeyEncipherment, certificatesv1.UsageServerAuth,
		},
		CertificateStore: store,
	})
	if err != nil {
		return nil, fmt.Errorf("set up the serving certificate: %w", err)
	}
	return &certificateSource{manager: manager}, nil
}

func (s *certificateSource) start() {
	if s.manager != nil {
		s.manager.Start()
	}
}

func (s *certificateSource) stop() {
	if s.manager != nil {
		s.manager.Stop()
	}
}

// current is a tls.Config.GetCertificate.
func (s *certificateSource) current(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	if s.selfSigned != nil {
		return s.selfSigned, nil
	}
	if current := s.manager.Current(); current != nil {
		return current, nil
	}
	return nil, errors.New("the cluster has not signed the serving certificate yet")
}

func selfSign(subject pkix.Name, addresses []net.IP, now time.Time) (*tls.Certificate, error) {
	public, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("generate the key of the serving certificate: %w", err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(now.UnixNano()),
		Subject:      subject,
		IPAddresses:  addresses,
		NotBefore:    now.Add(-time.Hour),
		NotAfter:     now.Add(selfSignedLifetime),
		KeyUsage:     x509.KeyUsageDigitalSignature,
		ExtKeyUsage:  []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, public, private)
	if err != nil {
		return nil, fmt.Errorf("sign the serving certificate: %w", err)
	}
	return &tls.Certificate{Certificate: [][]byte{der}, PrivateKey: private}, nil
}
