// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package identity

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Rotate gives the party a new key, as a Keeper does that is told to.
func Rotate(ctx context.Context, c client.Client, namespace string) (Identity, error) {
	old, secret, err := readIdentity(ctx, c, namespace)
	if err != nil {
		return Identity{}, err
	}
	return rotate(ctx, c, old, secret)
}
