// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package snapshot

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
	"github.com/capacitorset/liqo-broker/pkg/liqo"
	"github.com/capacitorset/liqo-broker/pkg/remoteipam"
)

// AnnouncedKey returns the hash of the key in the certificate that Liqo issued to a cluster, as
// [remoteipam.KeyHash] has it, which the remote IPAM tells in its announcement in the cluster's
// tenant namespace; empty if it has none, or the remote IPAM has not told yet. The error may be
// [liqo.ErrNoTenant]. The reader must not be a cache: consumers may call ConfigMaps so in their
// own namespaces.
func AnnouncedKey(ctx context.Context, reader client.Reader, id cluster.ID) (string, error) {
	namespace, err := liqo.TenantNamespaceOf(ctx, reader, id)
	if err != nil {
		return "", err
	}
	var announcement corev1.ConfigMap
	key := client.ObjectKey{Namespace: namespace.Name, Name: remoteipam.AnnouncementName}
	if err := reader.Get(ctx, key, &announcement); client.IgnoreNotFound(err) != nil {
		return "", fmt.Errorf("read ConfigMap %s: %w", key, err)
	}
	return remoteipam.AnnouncedClient(announcement.Data), nil
}
