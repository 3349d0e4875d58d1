// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package callers

import (
	"context"
	"errors"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
	"github.com/capacitorset/liqo-broker/pkg/liqo"
	"github.com/capacitorset/liqo-broker/pkg/remoteipam"
)

// FromLiqo looks up what Liqo issued. It finds the tenant namespace of a cluster with one
// reader, which may be a cache, and reads the certificate there with the other, which must
// not be: a cache would hold whatever consumers call so in their own namespaces.
func FromLiqo(namespaces, certificates client.Reader) Issued {
	return func(ctx context.Context, id cluster.ID) (string, error) {
		namespace, err := liqo.TenantNamespaceOf(ctx, namespaces, id)
		if errors.Is(err, liqo.ErrNoTenant) {
			return "", nil
		}
		if err != nil {
			return "", err
		}
		certificate, err := liqo.Issued(ctx, certificates, namespace.Name)
		switch {
		case errors.Is(err, liqo.ErrNotIssued):
			return "", nil
		case err != nil:
			return "", err
		}
		return remoteipam.KeyHash(certificate.RawSubjectPublicKeyInfo), nil
	}
}
