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
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
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

// Check implements line.IdentityRules: the request is one that [CheckCSR] lets pass; nobody else here is called like its user or its group;
// and that of a control plane has the key for which Liqo has issued a certificate to the cluster before, if it has. Liqo itself knows a
// cluster by whatever key its Tenant has, and by whatever ID.
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
	if refusal := CheckCSR(request, text, asked); refusal != nil {
		return refusal, nil
	}
	bindings, err := readBindings(ctx, objects)
	if err != nil {
		return nil, err
	}
	if refusal := checkNames(request.Subject.CommonName, h.cluster, bindings); refusal != nil || h.slice != "" {
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
	namespaces, err := tenantNamespaces(ctx, objects, h.cluster)
	if err != nil {
		return Asked{}, err
	}
	a := Asked{Namespaces: namespaces}
	for _, in := range namespaces {
		var may api.TenantList
		var sliced api.ResourceSliceList
		for _, list := range []client.ObjectList{&may, &sliced} {
			if err := objects.List(ctx, list, client.InNamespace(in)); err != nil {
				return Asked{}, fmt.Errorf("list %T in namespace %s: %w", list, in, err)
			}
		}
		a.Tenants, a.Slices = append(a.Tenants, may.Items...), append(a.Slices, sliced.Items...)
	}
	return a, nil
}

// tenantNamespaces returns the names of the tenant namespaces of a cluster, which people may have made more than one.
func tenantNamespaces(ctx context.Context, objects client.Reader, id cluster.ID) ([]string, error) {
	var all corev1.NamespaceList
	of := client.MatchingLabels{liqo.LabelRemoteClusterID: string(id)}
	if err := objects.List(ctx, &all, of, client.HasLabels{liqo.LabelTenantNamespace}); err != nil {
		return nil, fmt.Errorf("list the tenant namespaces of cluster %s: %w", id, err)
	}
	var names []string
	for i := range all.Items {
		names = append(names, all.Items[i].Name)
	}
	return names, nil
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

// binding gives rights to users and groups, in a namespace or everywhere.
type binding struct {
	what     string // For people.
	labels   map[string]string
	role     rbacv1.RoleRef
	subjects []rbacv1.Subject
}

// readBindings returns all bindings of the cluster.
func readBindings(ctx context.Context, objects client.Reader) ([]binding, error) {
	var everywhere rbacv1.ClusterRoleBindingList
	if err := objects.List(ctx, &everywhere); err != nil {
		return nil, fmt.Errorf("list the ClusterRoleBindings: %w", err)
	}
	var somewhere rbacv1.RoleBindingList
	if err := objects.List(ctx, &somewhere); err != nil {
		return nil, fmt.Errorf("list the RoleBindings: %w", err)
	}
	all := make([]binding, 0, len(everywhere.Items)+len(somewhere.Items))
	for i := range everywhere.Items {
		b := &everywhere.Items[i]
		all = append(all, binding{"ClusterRoleBinding " + b.Name, b.Labels, b.RoleRef, b.Subjects})
	}
	for i := range somewhere.Items {
		b := &somewhere.Items[i]
		all = append(all, binding{"RoleBinding " + b.Namespace + "/" + b.Name, b.Labels, b.RoleRef, b.Subjects})
	}
	return all, nil
}

// peerRoles are the roles that Liqo binds to peers: in the tenant namespace to the user, everywhere and in twin namespaces to the group
// (liqo/pkg/liqo-controller-manager/authentication/tenant-controller and offloading/namespacemap-controller@v1.2.0).
func peerRoles() []string {
	return []string{"liqo-remote-controlplane", "liqo-virtual-kubelet-remote", "liqo-virtual-kubelet-remote-clusterwide"}
}

// forPeer reports whether a binding is for a peer: it is of one of Liqo's roles, or its label says so, as with those that Liqo makes.
func (b *binding) forPeer(id cluster.ID) bool {
	return b.labels[liqo.LabelRemoteClusterID] == string(id) || b.role.Kind == "ClusterRole" && slices.Contains(peerRoles(), b.role.Name)
}

// checkNames returns why a cluster must not have a certificate for a user, whose group is the ID of the cluster now or in that of a
// ResourceSlice: a binding gives rights to somebody of that name who is not the cluster. People choose the IDs of clusters as they choose
// names of users and groups.
func checkNames(user string, id cluster.ID, bindings []binding) error {
	for i := range bindings {
		b := &bindings[i]
		if b.forPeer(id) {
			continue
		}
		for _, s := range b.subjects {
			if s.Kind == rbacv1.UserKind && s.Name == user || s.Kind == rbacv1.GroupKind && s.Name == string(id) {
				return fmt.Errorf("%s %s has rights of %s %s by %s: label that %s=%s if it is for the cluster, else the cluster needs another ID",
					strings.ToLower(s.Kind), s.Name, b.role.Kind, b.role.Name, b.what, liqo.LabelRemoteClusterID, id)
			}
		}
	}
	return nil
}
