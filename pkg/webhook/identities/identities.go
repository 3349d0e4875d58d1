// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

// Package identities refuses certificates that would make a cluster pass for another one.
//
// Liqo asks the API server for a certificate with whatever name and groups a cluster wishes
// that may peer, and approves it. It is a validating admission webhook for these requests, and
// changes nothing. To whom a certificate may be given, the line of Liqo's versions that runs
// says.
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

	"github.com/capacitorset/liqo-broker/pkg/liqo"
	"github.com/capacitorset/liqo-broker/pkg/liqo/line"
)

// Path is where the webhook is served.
const Path = "/guard-identities"

// prober is the connector, which only asks whether it is refused.
var prober = regexp.MustCompile(`^system:serviceaccount:[^:]+:liqo-broker-connector$`)

// usages are what Liqo asks for.
var usages = []certificatesv1.KeyUsage{
	certificatesv1.UsageDigitalSignature, certificatesv1.UsageKeyEncipherment, certificatesv1.UsageClientAuth,
}

// Handler answers the API server when a certificate is asked for. It may be used
// concurrently.
type Handler struct {
	decoder admission.Decoder
	rules   line.IdentityRules
	others  []line.IdentityRules
	reader  client.Reader
	liqo    string
}

var _ admission.Handler = (*Handler)(nil)

// New returns a Handler for a line of Liqo, which runs in a namespace. Others are the rules
// of the lines that do not run: who asks as Liqo of one of these gets nothing. The reader lists
// namespaces, gets the Secrets named [liqo.IssuedName] of tenant namespaces, and reads what
// else the rules of the line need; it must not be a cache, which may be behind.
func New(
	scheme *runtime.Scheme, rules line.IdentityRules, others []line.IdentityRules, reader client.Reader, namespace string,
) *Handler {
	return &Handler{decoder: admission.NewDecoder(scheme), rules: rules, others: others, reader: reader, liqo: namespace}
}

var errOtherLine = errors.New("it is asked for by another line of Liqo than the one whose peers are kept in bounds here: delete the " +
	"definitions of the line that does not run")

// Handle refuses the request of Liqo for a certificate that its peer is not to have. What
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
	case h.rules.Requests(req.UserInfo.Username):
	case slices.ContainsFunc(h.others, func(r line.IdentityRules) bool { return r.Requests(req.UserInfo.Username) }):
		return refuse(ctx, errOtherLine)
	default:
		return admission.Allowed("")
	}
	request, err := parse(&wish.Spec)
	if err != nil {
		return refuse(ctx, err)
	}
	switch refusal, err := h.rules.Check(ctx, h.reader, h.liqo, request, wish.Spec.Request); {
	case err != nil:
		return admission.Errored(http.StatusInternalServerError, err)
	case refusal != nil:
		return refuse(ctx, refusal)
	default:
		return admission.Allowed("")
	}
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
