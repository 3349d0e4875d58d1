// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package v1

import (
	"bytes"
	"context"
	"crypto/sha256"
	"crypto/x509"
	"errors"
	"fmt"
	"regexp"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
	"github.com/capacitorset/liqo-broker/pkg/liqo"
	"github.com/capacitorset/liqo-broker/pkg/liqo/line"
	"github.com/capacitorset/liqo-broker/pkg/liqo/v1/api"
)

// controllerManager is the part of Liqo that asks for the certificates of consumers, wherever Liqo is installed
// (liqo/pkg/identityManager/certificateIdentityProvider.go@v1.2.0).
var controllerManager = regexp.MustCompile(`^system:serviceaccount:[^:]+:` + liqo.ManagerName + `$`)

// identityRules are those of Liqo 1.x.
type identityRules struct{}

// IdentityRules implements line.Line.
func (Line) IdentityRules() line.IdentityRules { return identityRules{} }

// Requests implements line.IdentityRules.
func (identityRules) Requests(user string) bool { return controllerManager.MatchString(user) }

// Check implements line.IdentityRules: the request is one that [CheckCSR] lets pass, and that of a control plane has the key for which Liqo
// has issued a certificate to the cluster before, if it has. Liqo itself knows a cluster by whatever key its Tenant has.
func (identityRules) Check(
	ctx context.Context, objects client.Reader, _ string, request *x509.CertificateRequest, text []byte,
) (refusal, err error) {
	h, refusal := holderOf(request)
	if refusal != nil {
		return refusal, nil
	}
	asked, err := h.asked(ctx, objects)
	if err != nil {
		return nil, err
	}
	if refusal := CheckCSR(request, text, asked); refusal != nil || h.slice != "" {
		return refusal, nil
	}
	for _, namespace := range asked.Namespaces {
		issued, err := liqo.Issued(ctx, objects, namespace)
		switch {
		case errors.Is(err, liqo.ErrNotIssued):
		case err != nil:
			return nil, err
		case !bytes.Equal(issued.RawSubjectPublicKeyInfo, request.RawSubjectPublicKeyInfo):
			return fmt.Errorf("cluster %s already has a certificate: to issue another one, delete Secret %s in its tenant namespace", h.cluster,
				liqo.IssuedName), nil
		}
	}
	return nil, nil
}

// Asked are the objects in the tenant namespaces of a cluster, Namespaces, that ask for certificates. In Liqo v1.2.0 Renews do not: a
// certificate is renewed by the request for the first one.
type Asked struct {
	Namespaces []string
	Tenants    []api.Tenant
	Slices     []api.ResourceSlice
}

// asked reads what asks for certificates of a holder.
func (h holder) asked(ctx context.Context, objects client.Reader) (Asked, error) {
	var namespaces corev1.NamespaceList
	of := client.MatchingLabels{liqo.LabelRemoteClusterID: string(h.cluster)}
	if err := objects.List(ctx, &namespaces, of, client.HasLabels{liqo.LabelTenantNamespace}); err != nil {
		return Asked{}, fmt.Errorf("list the tenant namespaces of cluster %s: %w", h.cluster, err)
	}
	var a Asked
	for i := range namespaces.Items {
		in := namespaces.Items[i].Name
		var may api.TenantList
		var sliced api.ResourceSliceList
		for _, list := range []client.ObjectList{&may, &sliced} {
			if err := objects.List(ctx, list, client.InNamespace(in)); err != nil {
				return Asked{}, fmt.Errorf("list %T in namespace %s: %w", list, in, err)
			}
		}
		a.Namespaces = append(a.Namespaces, in)
		a.Tenants, a.Slices = append(a.Tenants, may.Items...), append(a.Slices, sliced.Items...)
	}
	return a, nil
}

// CheckCSR returns why a request for a certificate, parsed from text, is not one that an object of a consumer asks for. It names a cluster
// and Liqo's group, as a Tenant of that cluster asks, or one of the cluster's ResourceSlices and the cluster as the group, as that asks;
// nobody else, and nothing besides. Liqo itself looks at the first group only, and the API server at all of them (checkCSR in
// liqo/pkg/liqo-controller-manager/authentication/csr.go@v1.2.0).
func CheckCSR(request *x509.CertificateRequest, text []byte, asked Asked) error {
	h, err := holderOf(request)
	if err != nil {
		return err
	}
	if h.slice == "" {
		for i := range asked.Tenants {
			if t := &asked.Tenants[i]; t.Spec.ClusterID == string(h.cluster) && bytes.Equal(t.Spec.CSR, text) {
				return nil
			}
		}
		return fmt.Errorf("no Tenant in the tenant namespace of cluster %s asks for this certificate", h.cluster)
	}
	for i := range asked.Slices {
		s := &asked.Slices[i]
		ofConsumer := FromConsumer(s) && s.Labels[liqo.LabelOrigin] == string(h.cluster) &&
			value(s.Spec.ConsumerClusterID) == string(h.cluster)
		if ofConsumer && s.Name == h.slice && bytes.Equal(s.Spec.CSR, text) {
			return nil
		}
	}
	return fmt.Errorf("no ResourceSlice %s in the tenant namespace of cluster %s asks for this certificate", h.slice, h.cluster)
}

// holder is for whom a certificate is: a cluster, or one of its ResourceSlices, whose name is empty for the cluster itself.
type holder struct {
	cluster cluster.ID
	slice   string
}

// holderOf returns for whom a request is, as its subject says.
func holderOf(request *x509.CertificateRequest) (holder, error) {
	subject := request.Subject
	switch {
	case len(subject.Organization) != 1 || len(subject.Names) != 2 || subject.CommonName == "":
		return holder{}, errors.New("the subject must have a common name and one group, and nothing else")
	case len(request.DNSNames)+len(request.EmailAddresses)+len(request.IPAddresses)+len(request.URIs) > 0:
		return holder{}, errors.New("no other names are allowed")
	case subject.Organization[0] == peerGroup:
		return holder{cluster: cluster.ID(subject.CommonName)}, checkID(subject.CommonName)
	}
	id := subject.Organization[0]
	if err := checkID(id); err != nil {
		return holder{}, err
	}
	name, is := strings.CutSuffix(subject.CommonName, "-"+hashOf(id))
	if !is || name == "" {
		return holder{}, fmt.Errorf("the common name must be the name of a ResourceSlice of cluster %s and its hash", id)
	}
	return holder{cluster.ID(id), name}, nil
}

// checkID returns an error unless a text is the ID of a cluster as Liqo allows it, and no peering user's name, which is a name of the same
// form.
func checkID(id string) error {
	if len(validation.IsDNS1123Label(id)) > 0 || strings.HasPrefix(id, peeringUserPrefix) {
		return fmt.Errorf("the group must be %s and the common name the ID of a cluster, or the group must be that ID", peerGroup)
	}
	return nil
}

// hashOf is what Liqo appends to the name of a ResourceSlice (CommonNameResourceSliceCSR).
func hashOf(id string) string {
	hash := sha256.Sum256([]byte(id))
	return fmt.Sprintf("%x", hash[:6])
}
