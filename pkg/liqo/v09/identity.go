// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package v09

import (
	"context"
	"fmt"

	"github.com/liqotech/liqo/pkg/consts"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
	"github.com/capacitorset/liqo-broker/pkg/liqo"
)

// OwnIdentity reads what this cluster is called; namespace is where Liqo runs.
func OwnIdentity(ctx context.Context, reader client.Reader, namespace string) (cluster.Identity, error) {
	var stored corev1.ConfigMap
	key := client.ObjectKey{Namespace: namespace, Name: liqo.IdentityName}
	if err := reader.Get(ctx, key, &stored); err != nil {
		return cluster.Identity{}, fmt.Errorf("read what Liqo calls this cluster from ConfigMap %s: %w", key, err)
	}
	own := cluster.Identity{
		ID:   cluster.ID(stored.Data[liqo.IdentityKey]),
		Name: stored.Data[consts.ClusterNameConfigMapKey],
	}
	if own.ID == "" || own.Name == "" {
		return cluster.Identity{}, fmt.Errorf("ConfigMap %s does not have both %s and %s",
			key, liqo.IdentityKey, consts.ClusterNameConfigMapKey)
	}
	return own, nil
}
