// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package liqo

import (
	"context"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// IssuedName is the Secret in the tenant namespace of a peer in which Liqo keeps the
// certificate that it issued to the peer, and the request for it. It holds no key: that
// one does not leave the peer. Liqo 0.9 writes it once; whoever wants another certificate
// has to remove it first (remoteCertificateSecret and storeRemoteCertificate in
// liqo/pkg/identityManager/certificateIdentityProvider.go, of v0.9.4 and of v1.2.0).
const IssuedName = "liqo-remote-certificate"

// issuedKey is the key of the certificate in that Secret.
const issuedKey = "certificate"

// ErrNotIssued means that Liqo has issued no certificate to a cluster.
var ErrNotIssued = errors.New("no certificate was issued to the cluster")

// Issued returns the certificate that Liqo issued to the peer with a tenant namespace.
// The error may be [ErrNotIssued].
func Issued(ctx context.Context, reader client.Reader, tenantNamespace string) (*x509.Certificate, error) {
	var stored corev1.Secret
	key := client.ObjectKey{Namespace: tenantNamespace, Name: IssuedName}
	switch err := reader.Get(ctx, key, &stored); {
	case apierrors.IsNotFound(err):
		return nil, fmt.Errorf("read Secret %s: %w", key, ErrNotIssued)
	case err != nil:
		return nil, fmt.Errorf("read Secret %s: %w", key, err)
	}
	certificate, err := ParseIssued(stored.Data[issuedKey])
	if err != nil {
		return nil, fmt.Errorf("read %s of Secret %s: %w", issuedKey, key, err)
	}
	return certificate, nil
}

// ParseIssued returns the certificate that Liqo writes down in PEM.
func ParseIssued(text []byte) (*x509.Certificate, error) {
	block, _ := pem.Decode(text)
	if block == nil {
		return nil, errors.New("there is no certificate")
	}
	certificate, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		return nil, fmt.Errorf("parse the certificate: %w", err)
	}
	return certificate, nil
}
