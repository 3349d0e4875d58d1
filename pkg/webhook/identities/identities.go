// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

// Package identities refuses certificates that would make a cluster pass for another one.
//
// Liqo's authentication service asks the API server for a certificate with whatever name
// and group a cluster wishes that has the token of this one, and approves it
// (liqo/pkg/identityManager/certificateIdentityProvider.go@v0.9.4). It is a validating
// admission webhook for these requests, and changes nothing.
//
// The connector asks for one as well, which is always refused: so it sees that somebody
// refuses. It is a question, and never an identity.
package identities

import (
	"context"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"

	certificatesv1 "k8s.io/api/certificates/v1"
	"k8s.io/apimachinery/pkg/runtime"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
	"github.com/capacitorset/liqo-broker/pkg/liqo"
	v09 "github.com/capacitorset/liqo-broker/pkg/liqo/v09"
	"github.com/capacitorset/liqo-broker/pkg/remoteipam"
)

// Path is where the webhook is served.
const Path = "/guard-identities"

var (
	// requester is the authentication service, wherever Liqo is installed.
	requester = regexp.MustCompile(`^system:serviceaccount:[^:]+:liqo-auth$`)
	// prober is the connector, which only asks whether it is refused.
	prober = regexp.MustCompile(`^system:serviceaccount:[^:]+:liqo-broker-connector$`)
	// clusterID is the only form of the ID of a cluster (discovery.config.clusterIDOverride
	// in liqo/deployments/liqo/templates/liqo-clusterid-configmap.yaml@v0.9.4). No other
	// user of a Kubernetes cluster is called so.
	clusterID = regexp.MustCompile(`^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$`)
)

// usages are what Liqo asks for.
var usages = []certificatesv1.KeyUsage{
	certificatesv1.UsageDigitalSignature, certificatesv1.UsageKeyEncipherment, certificatesv1.UsageClientAuth,
}

// Handler answers the API server when a certificate is asked for. It may be used
// concurrently.
type Handler struct {
	decoder admission.Decoder
	reader  client.Reader
	liqo    string
}

var _ admission.Handler = (*Handler)(nil)

// New returns a Handler; namespace is where Liqo runs. The reader lists namespaces, gets the
// Secrets named [v09.IssuedName] of tenant namespaces, and that of this cluster's token; it
// must not be a cache, which may be behind.
func New(scheme *runtime.Scheme, reader client.Reader, namespace string) *Handler {
	return &Handler{decoder: admission.NewDecoder(scheme), reader: reader, liqo: namespace}
}

// Handle refuses the request of Liqo's authentication service for a certificate that names
// anything but the cluster ID of a peer that has none yet, or one for the same key, and that
// of a cluster which was not told the token, while others were told it by contract. What
// others ask for is none of its business, but for the connector's probe.
func (h *Handler) Handle(ctx context.Context, req admission.Request) admission.Response {
	var wish certificatesv1.CertificateSigningRequest
	if err := h.decoder.Decode(req, &wish); err != nil {
		return admission.Errored(http.StatusBadRequest, err)
	}
	switch {
	case wish.Spec.SignerName != certificatesv1.KubeAPIServerClientSignerName:
		return admission.Allowed("")
	case prober.MatchString(req.UserInfo.Username):
		return admission.Denied(liqo.ProbeRefused)
	case !requester.MatchString(req.UserInfo.Username):
		return admission.Allowed("")
	}
	request, err := parse(&wish.Spec)
	if err != nil {
		return refuse(ctx, err)
	}
	if err := checkRequest(request); err != nil {
		return refuse(ctx, err)
	}
	id := cluster.ID(request.Subject.CommonName)
	// Liqo makes the tenant namespace of who asks before it asks for the certificate.
	known, err := h.issued(ctx, id)
	switch {
	case errors.Is(err, liqo.ErrNoTenant):
		return refuse(ctx, errors.New("the certificate is for another cluster than the one that asks for it"))
	case err != nil:
		return admission.Errored(http.StatusInternalServerError, err)
	case known == remoteipam.KeyHash(request.RawSubjectPublicKeyInfo):
		return admission.Allowed("")
	case known != "":
		return refuse(ctx, fmt.Errorf("cluster %s already has a certificate: to issue another one, delete Secret %s in its tenant namespace", id,
			v09.IssuedName))
	}
	told, err := v09.ToldToken(ctx, h.reader, h.liqo)
	if err != nil {
		return admission.Errored(http.StatusInternalServerError, err)
	}
	if len(told) > 0 && !slices.Contains(told, id) {
		return refuse(
			ctx, fmt.Errorf("cluster %s was not told the token of this cluster, and others were by a contract: peer with it when these have peered",
				id),
		)
	}
	return admission.Allowed("")
}

// issued returns the hash of the key in the certificate that Liqo issued to a cluster; empty if
// it has none. The error may be [liqo.ErrNoTenant].
func (h *Handler) issued(ctx context.Context, id cluster.ID) (string, error) {
	namespace, err := liqo.TenantNamespaceOf(ctx, h.reader, id)
	if err != nil {
		return "", err
	}
	certificate, err := v09.Issued(ctx, h.reader, namespace.Name)
	switch {
	case errors.Is(err, v09.ErrNotIssued):
		return "", nil
	case err != nil:
		return "", err
	}
	return remoteipam.KeyHash(certificate.RawSubjectPublicKeyInfo), nil
}

// refuse tells Liqo, which tells the peer, and the operator.
func refuse(ctx context.Context, reason error) admission.Response {
	ctrl.LoggerFrom(ctx).Info("Refused an identity", "reason", reason.Error())
	return admission.Denied(reason.Error())
}

// parse returns the one request for a certificate in a wish.
func parse(spec *certificatesv1.CertificateSigningRequestSpec) (*x509.CertificateRequest, error) {
	for _, usage := range spec.Usages {
		if !slices.Contains(usages, usage) {
			return nil, fmt.Errorf("the usage %q is not one of a peer", usage)
		}
	}
	block, rest := pem.Decode(spec.Request)
	if block == nil || block.Type != "CERTIFICATE REQUEST" || strings.TrimSpace(string(rest)) != "" {
		return nil, errors.New("it is not one certificate request")
	}
	request, err := x509.ParseCertificateRequest(block.Bytes)
	if err != nil {
		return nil, errors.New("the certificate request cannot be parsed")
	}
	if err := request.CheckSignature(); err != nil {
		return nil, errors.New("the certificate request is not signed with its own key")
	}
	return request, nil
}

// checkRequest compares a request with those of Liqo
// (NewKeyAndRequest in liqo/pkg/utils/csr/create.go@v0.9.4).
func checkRequest(request *x509.CertificateRequest) error {
	subject := request.Subject
	if len(subject.Organization) != 1 || subject.Organization[0] != v09.PeerGroup || len(subject.Names) != 2 {
		return fmt.Errorf("the group must be %s, and nothing else may be in the subject but the common name", v09.PeerGroup)
	}
	if !clusterID.MatchString(subject.CommonName) {
		return errors.New("the common name must be the ID of a cluster")
	}
	if len(request.DNSNames)+len(request.EmailAddresses)+len(request.IPAddresses)+len(request.URIs) > 0 {
		return errors.New("no other names are allowed")
	}
	return nil
}
