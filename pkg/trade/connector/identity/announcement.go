// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package identity

import (
	"context"
	"fmt"
	"slices"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capacitorset/liqo-broker/pkg/trade/party"
	"github.com/capacitorset/liqo-broker/pkg/trade/registry/registryv1"
)

// dataAnnouncement is the key of the Secret's data with what the party has announced last.
const dataAnnouncement = "announcement.jws"

// Announce returns the party's announcement of its name, its endpoint and its clusters, signed with its current key: that in the Secret if
// it says the same, and else one of a higher revision, which is in the Secret before it is returned. The error is ErrMalformed, or that of
// the API server.
func Announce(
	ctx context.Context, c client.Client, namespace, name, endpoint string, clusters []registryv1.Cluster, now time.Time,
) (string, error) {
	id, secret, err := readIdentity(ctx, c, namespace)
	if err != nil {
		return "", err
	}
	said := registryv1.Announcement{Party: string(id.ID()), Name: name, Endpoint: endpoint, Clusters: clusters}
	last, before := string(secret.Data[dataAnnouncement]), registryv1.Announcement{}
	if party.Verify(last, registryv1.TypeAnnouncement, id.keys.Current(), &before) == nil {
		if before.Party == said.Party && before.Name == name && before.Endpoint == endpoint && slices.Equal(before.Clusters, clusters) {
			return last, nil
		}
	} else if signer, err := party.Signer(last); err == nil {
		// It was signed with a key that was replaced since: its revision counts still.
		if key, ok := id.keys.Key(signer); ok {
			_ = party.Verify(last, registryv1.TypeAnnouncement, key, &before)
		}
	}
	// Revisions follow the clock, so that they grow also if the Secret was restored from an older copy.
	said.Revision, said.IssuedAt = max(before.Revision+1, now.Unix()), now.UTC().Truncate(time.Second)
	signed, err := id.key.Sign(registryv1.TypeAnnouncement, said)
	if err != nil {
		return "", fmt.Errorf("announce the party %s as %q: %w", said.Party, name, err)
	}
	secret.Data[dataAnnouncement] = []byte(signed)
	if err := c.Update(ctx, secret); err != nil {
		return "", fmt.Errorf("update Secret %s/%s: %w", namespace, SecretName, err)
	}
	return signed, nil
}
