// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package v09

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
)

// annotationsToldToken are on the Secret with this cluster's token: the clusters that contracts let know it, with commas between. Those
// that were issued it to buy here, and those that Liqo tells it because this cluster buys there: they have an identity here too, to offer
// what they sell.
var annotationsToldToken = []string{"brokering.liqo.io/issued-to", "brokering.liqo.io/told-to"}

// TokenToldTo returns which clusters were told the token in a Secret of [AuthTokenName] by contract, in order and each once; none if nobody
// was.
func TokenToldTo(secret *corev1.Secret) []cluster.ID {
	var all []cluster.ID
	for _, annotation := range annotationsToldToken {
		for id := range strings.SplitSeq(secret.Annotations[annotation], ",") {
			if id != "" {
				all = append(all, cluster.ID(id))
			}
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// ToldToken returns which clusters were told this cluster's token by contract, in order; namespace is where Liqo runs. Without a token
// nobody was.
func ToldToken(ctx context.Context, reader client.Reader, namespace string) ([]cluster.ID, error) {
	var secret corev1.Secret
	key := client.ObjectKey{Namespace: namespace, Name: AuthTokenName}
	if err := reader.Get(ctx, key, &secret); client.IgnoreNotFound(err) != nil {
		return nil, fmt.Errorf("read Secret %s: %w", key, err)
	}
	return TokenToldTo(&secret), nil
}
