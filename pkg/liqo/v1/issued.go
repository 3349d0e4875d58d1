// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package v1

import (
	"context"
	"fmt"
	"slices"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
	"github.com/capacitorset/liqo-broker/pkg/liqo"
	"github.com/capacitorset/liqo-broker/pkg/liqo/v1/api"
)

// IssuedKey returns the key, as its subject public key info, in the certificate that Liqo has signed for the control plane of a peer. The
// error may be [liqo.ErrNotIssued], also if the peer does not have one tenant namespace. Liqo writes the certificate into the status of the
// Tenant, as it does in Secret [liqo.IssuedName] (tenant_controller.go in
// liqo/pkg/liqo-controller-manager/authentication/tenant-controller@v1.2.0), and peers write no statuses: a Tenant counts for the cluster
// in whose tenant namespace it is, for as long as it is there, and of several the one that was there first. The reader
// must not be a cache, which keeps no certificates.
func IssuedKey(ctx context.Context, reader client.Reader, id cluster.ID) ([]byte, error) {
	namespaces, err := tenantNamespaces(ctx, reader, id)
	if err != nil {
		return nil, err
	}
	if len(namespaces) != 1 {
		return nil, fmt.Errorf("cluster %s has %d tenant namespaces: %w", id, len(namespaces), liqo.ErrNotIssued)
	}
	var all api.TenantList
	if err := reader.List(ctx, &all, client.InNamespace(namespaces[0])); err != nil {
		return nil, fmt.Errorf("list the tenants in namespace %s: %w", namespaces[0], err)
	}
	tenant := firstMade(all.Items, func(t *api.Tenant) bool { return t.Spec.ClusterID == string(id) })
	if tenant == nil || tenant.Status.AuthParams == nil || len(tenant.Status.AuthParams.SignedCRT) == 0 {
		return nil, fmt.Errorf("find the certificate in the Tenant of cluster %s in namespace %s: %w", id, namespaces[0], liqo.ErrNotIssued)
	}
	key := client.ObjectKeyFromObject(tenant)
	certificate, err := liqo.ParseIssued(tenant.Status.AuthParams.SignedCRT)
	if err != nil {
		return nil, fmt.Errorf("read status.authParams.signedCRT of Tenant %s: %w: %w", key, liqo.ErrNotIssued, err)
	}
	if s := certificate.Subject; s.CommonName != string(id) || !slices.Equal(s.Organization, []string{peerGroup}) {
		return nil, fmt.Errorf("the certificate in Tenant %s is for %s: %w", key, s, liqo.ErrNotIssued)
	}
	return certificate.RawSubjectPublicKeyInfo, nil
}
