// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package v09

import (
	"context"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
)

// IssuedName is the Secret in the tenant namespace of a peer in which Liqo keeps the
// certificate that it issued to the peer, and the request for it. It holds no key: that
// one does not leave the peer. Liqo writes it once; whoever wants another certificate
// has to remove it first (remoteCertificateSecret and storeRemoteCertificate in
// liqo/pkg/identityManager/certificateIdentityProvider.go@v0.9.4).
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
	block, _ := pem.Decode(stored.Data[issuedKey])
	if block == nil {
		return nil, fmt.Errorf("read Secret %s: there is no certificate in %s", key, issuedKey)
	}
	certificate, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		return nil, fmt.Errorf("read Secret %s: %w", key, err)
	}
	return certificate, nil
}

// annotationsToldToken are on the Secret with this cluster's token: the clusters that contracts let know it, with commas between. Those
// that were issued it to buy here, and those that Liqo tells it because this cluster buys there: they have an identity here too, to offer
// what they sell.
var annotationsToldToken = []string{"brokering.liqo.io/issued-to", "brokering.liqo.io/told-to"}

// TokenToldTo returns which clusters were told the token in a Secret of [AuthTokenName] by contract, in order and each once; none if nobody
// was.
func TokenToldTo(secret *corev1.Secret) []cluster.ID {
	var all []cluster.ID
	for _, annotation := range annotationsToldToken {
		for id := range strings.SplitSeq(secret.Annotations[annotation], ",") {
			if id != "" {
				all = append(all, cluster.ID(id))
			}
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// ToldToken returns which clusters were told this cluster's token by contract, in order; namespace is where Liqo runs. Without a token
// nobody was.
func ToldToken(ctx context.Context, reader client.Reader, namespace string) ([]cluster.ID, error) {
	var secret corev1.Secret
	key := client.ObjectKey{Namespace: namespace, Name: AuthTokenName}
	if err := reader.Get(ctx, key, &secret); client.IgnoreNotFound(err) != nil {
		return nil, fmt.Errorf("read Secret %s: %w", key, err)
	}
	return TokenToldTo(&secret), nil
}
