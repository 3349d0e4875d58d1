// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

// Package identities refuses certificates that would make a cluster pass for another one.
//
// Liqo's authentication service asks the API server for a certificate with whatever name
// and group a cluster wishes that has the token of this one, and approves it
// (liqo/pkg/identityManager/certificateIdentityProvider.go@v0.9.4). It is a validating
// admission webhook for these requests, and changes nothing.
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
	"github.com/capacitorset/liqo-broker/pkg/remoteipam"
	"github.com/capacitorset/liqo-broker/pkg/snapshot"
)

// Path is where the webhook is served.
const Path = "/guard-identities"

var (
	// requester is the authentication service, wherever Liqo is installed.
	requester = regexp.MustCompile(`^system:serviceaccount:[^:]+:liqo-auth$`)
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
	decoder *admission.Decoder
	reader  client.Reader
}

var _ admission.Handler = (*Handler)(nil)

// New returns a Handler. The reader lists namespaces and gets the ConfigMaps named
// [remoteipam.AnnouncementName]; it must not be a cache, which may be behind.
func New(scheme *runtime.Scheme, reader client.Reader) *Handler {
	return &Handler{decoder: admission.NewDecoder(scheme), reader: reader}
}

// Handle refuses the request of Liqo's authentication service for a certificate that names
// anything but the cluster ID of a peer that has none yet, or one for the same key. What
// others ask for is none of its business.
func (h *Handler) Handle(ctx context.Context, req admission.Request) admission.Response {
	var wish certificatesv1.CertificateSigningRequest
	if err := h.decoder.Decode(req, &wish); err != nil {
		return admission.Errored(http.StatusBadRequest, err)
	}
	if wish.Spec.SignerName != certificatesv1.KubeAPIServerClientSignerName || !requester.MatchString(req.UserInfo.Username) {
		return admission.Allowed("")
	}
	request, err := parse(&wish.Spec)
	if err != nil {
		return refuse(ctx, err)
	}
	if err := check(request); err != nil {
		return refuse(ctx, err)
	}
	id := cluster.ID(request.Subject.CommonName)
	// Liqo makes the tenant namespace of who asks before it asks for the certificate.
	known, err := snapshot.AnnouncedKey(ctx, h.reader, id)
	switch {
	case errors.Is(err, liqo.ErrNoTenant):
		return refuse(ctx, errors.New("the certificate is for another cluster than the one that asks for it"))
	case err != nil:
		return admission.Errored(http.StatusInternalServerError, err)
	case known != "" && known != remoteipam.KeyHash(request.RawSubjectPublicKeyInfo):
		return refuse(ctx, fmt.Errorf("cluster %s already has a certificate: to issue another one, delete Secret %s in its tenant namespace, "+
			"and wait five minutes", id, liqo.IssuedName))
	}
	return admission.Allowed("")
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

// check compares a request with those of Liqo
// (NewKeyAndRequest in liqo/pkg/utils/csr/create.go@v0.9.4).
func check(request *x509.CertificateRequest) error {
	subject := request.Subject
	if len(subject.Organization) != 1 || subject.Organization[0] != liqo.PeerGroup || len(subject.Names) != 2 {
		return fmt.Errorf("the group must be %s, and nothing else may be in the subject but the common name", liqo.PeerGroup)
	}
	if !clusterID.MatchString(subject.CommonName) {
		return errors.New("the common name must be the ID of a cluster")
	}
	if len(request.DNSNames)+len(request.EmailAddresses)+len(request.IPAddresses)+len(request.URIs) > 0 {
		return errors.New("no other names are allowed")
	}
	return nil
}
