// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package v09

import (
	"bytes"
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"regexp"
	"slices"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
	"github.com/capacitorset/liqo-broker/pkg/liqo"
	"github.com/capacitorset/liqo-broker/pkg/liqo/line"
)

var (
	// requester is the authentication service, wherever Liqo is installed. It asks the API server for a certificate with whatever name and
	// group a cluster wishes that has the token of this one, and approves it
	// (liqo/pkg/identityManager/certificateIdentityProvider.go@v0.9.4).
	requester = regexp.MustCompile(`^system:serviceaccount:[^:]+:liqo-auth$`)
	// clusterID is the only form of the ID of a cluster (discovery.config.clusterIDOverride
	// in liqo/deployments/liqo/templates/liqo-clusterid-configmap.yaml@v0.9.4). No other
	// user of a Kubernetes cluster is called so.
	clusterID = regexp.MustCompile(`^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$`)
)

// identityRules are those of Liqo 0.9.
type identityRules struct{}

// IdentityRules implements line.Line.
func (Line) IdentityRules() line.IdentityRules { return identityRules{} }

// Requests implements line.IdentityRules.
func (identityRules) Requests(user string) bool { return requester.MatchString(user) }

// Check implements line.IdentityRules. It refuses what names anything but the cluster ID of a peer that has no certificate yet, or one for
// the same key, and the request of a cluster which was not told the token, while others were told it by contract.
func (identityRules) Check(
	ctx context.Context, objects client.Reader, namespace string, request *x509.CertificateRequest, _ []byte,
) (refusal, err error) {
	if refusal := checkSubject(request); refusal != nil {
		return refusal, nil
	}
	id := cluster.ID(request.Subject.CommonName)
	// Liqo makes the tenant namespace of who asks before it asks for the certificate.
	known, err := issuedTo(ctx, objects, id)
	switch {
	case errors.Is(err, liqo.ErrNoTenant):
		return errors.New("the certificate is for another cluster than the one that asks for it"), nil
	case errors.Is(err, liqo.ErrNotIssued):
	case err != nil:
		return nil, err
	case bytes.Equal(known.RawSubjectPublicKeyInfo, request.RawSubjectPublicKeyInfo):
		return nil, nil
	default:
		return fmt.Errorf("cluster %s already has a certificate: to issue another one, delete Secret %s in its tenant namespace", id,
			liqo.IssuedName), nil
	}
	told, err := ToldToken(ctx, objects, namespace)
	if err != nil {
		return nil, err
	}
	if len(told) > 0 && !slices.Contains(told, id) {
		return fmt.Errorf("cluster %s was not told the token of this cluster, and others were by a contract: peer with it when these have peered",
			id), nil
	}
	return nil, nil
}

// issuedTo returns the certificate that Liqo issued to a cluster. The error may be [liqo.ErrNoTenant] or [liqo.ErrNotIssued].
func issuedTo(ctx context.Context, objects client.Reader, id cluster.ID) (*x509.Certificate, error) {
	namespace, err := liqo.TenantNamespaceOf(ctx, objects, id)
	if err != nil {
		return nil, err
	}
	return liqo.Issued(ctx, objects, namespace.Name)
}

// checkSubject compares a request with those of Liqo
// (NewKeyAndRequest in liqo/pkg/utils/csr/create.go@v0.9.4).
func checkSubject(request *x509.CertificateRequest) error {
	subject := request.Subject
	if len(subject.Organization) != 1 || subject.Organization[0] != PeerGroup || len(subject.Names) != 2 {
		return fmt.Errorf("the group must be %s, and nothing else may be in the subject but the common name", PeerGroup)
	}
	if !clusterID.MatchString(subject.CommonName) {
		return errors.New("the common name must be the ID of a cluster")
	}
	if len(request.DNSNames)+len(request.EmailAddresses)+len(request.IPAddresses)+len(request.URIs) > 0 {
		return errors.New("no other names are allowed")
	}
	return nil
}
