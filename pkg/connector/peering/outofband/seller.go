// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package outofband

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capacitorset/liqo-broker/pkg/connector/peering"
	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
	"github.com/capacitorset/liqo-broker/pkg/liqo"
)

// annotationIssued is on the Secret with Liqo's token: the clusters that were told this token, in order, with commas between.
const annotationIssued = "brokering.liqo.io/issued-to"

// Issue implements [peering.Seller]. Liqo 0.9 has one token for all, which is replaced when a cluster that was told it may not peer any
// more: what was issued to others before and not used yet is issued again, with the new one.
func (d *Driver) Issue(ctx context.Context, buyer cluster.Identity) (peering.Credentials, error) {
	own, err := liqo.OwnIdentity(ctx, d.client, d.liqo)
	if err != nil {
		return peering.Credentials{}, err
	}
	if own.ID == buyer.ID {
		return peering.Credentials{}, fmt.Errorf("cluster %s is this cluster itself", buyer)
	}
	fc, err := liqo.ForeignClusterOf(ctx, d.client, buyer.ID)
	if err != nil {
		return peering.Credentials{}, err
	}
	secret, err := d.token(ctx)
	if err != nil {
		return peering.Credentials{}, err
	}
	if fc != nil {
		if !slices.Contains(issued(secret), buyer.ID) && fc.Annotations[annotationContract] == "" && liqo.Incoming(fc).Exists {
			return peering.Credentials{}, fmt.Errorf("issue credentials to %s: %w", buyer, peering.ErrForeign)
		}
		if err := d.patch(ctx, fc, func() {
			mark(fc)
			liqo.Provide(fc)
		}); err != nil {
			return peering.Credentials{}, err
		}
	}
	url, err := liqo.AuthURL(ctx, d.client, d.liqo)
	if err != nil {
		return peering.Credentials{}, err
	}
	if err := d.tell(ctx, secret, buyer.ID); err != nil {
		return peering.Credentials{}, err
	}
	return peering.NewCredentials(own, url, liqo.Token(secret))
}

// annotationInTurn is on the foreign cluster of a buyer with which this cluster has peered in turn.
const annotationInTurn = "brokering.liqo.io/in-turn"

// PeerInTurn has this cluster consume from a buyer's one, so that Liqo reflects Services to it. It reports false while the buyer has not
// peered. Withdraw ends it.
func (d *Driver) PeerInTurn(ctx context.Context, buyer cluster.ID) (done bool, err error) {
	fc, err := liqo.ForeignClusterOf(ctx, d.client, buyer)
	if err != nil || fc == nil || !liqo.Incoming(fc).Exists {
		return false, err
	}
	if liqo.Consumes(fc) {
		return true, nil
	}
	return true, d.patch(ctx, fc, func() {
		mark(fc)
		fc.Annotations[annotationInTurn] = "true"
		liqo.Consume(fc, "") // Liqo knows where it has peered from.
	})
}

// Withdraw implements [peering.Seller]. What Liqo 0.9 cannot take back is the certificate that the buyer's cluster was issued: it is good for
// nothing but to ask for resources again, of which there are none without a contract.
func (d *Driver) Withdraw(ctx context.Context, buyer cluster.ID) (done bool, err error) {
	fc, err := liqo.ForeignClusterOf(ctx, d.client, buyer)
	if err != nil {
		return false, err
	}
	if fc != nil {
		if err := d.patch(ctx, fc, func() {
			mark(fc)
			liqo.ProvideNoMore(fc)
			if fc.Annotations[annotationInTurn] != "" {
				liqo.ConsumeNoMore(fc)
			}
		}); err != nil {
			return false, err
		}
		if fc.Annotations[annotationInTurn] != "" && liqo.Outgoing(fc).Exists {
			return false, d.lookAgain(ctx, fc)
		}
	}
	// The token first: until it is another one, the cluster could come back as if it were new.
	if err := d.replaceToken(ctx, buyer); err != nil {
		return false, err
	}
	if fc == nil {
		return d.forget(ctx, buyer, nil)
	}
	if liqo.Incoming(fc).Exists {
		return false, d.lookAgain(ctx, fc)
	}
	// Liqo would write down again who still asks, and answer; the record that refuses stays.
	if asks, err := liqo.AsksForResources(ctx, d.client, fc); err != nil || asks {
		return err == nil, err
	}
	return d.forget(ctx, buyer, fc)
}

// tell notes in the Secret with this cluster's token that another cluster is told it.
func (d *Driver) tell(ctx context.Context, secret *corev1.Secret, id cluster.ID) error {
	told := issued(secret)
	if slices.Contains(told, id) {
		return nil
	}
	return d.setIssued(ctx, secret, append(told, id))
}

// replaceToken replaces the token of this cluster, if another one was told it.
func (d *Driver) replaceToken(ctx context.Context, id cluster.ID) error {
	secret, err := d.token(ctx)
	if err != nil || !slices.Contains(issued(secret), id) {
		return err
	}
	liqo.ReplaceToken(secret)
	return d.setIssued(ctx, secret, nil)
}

// token returns the Secret with the token by which clusters authenticate here.
func (d *Driver) token(ctx context.Context) (*corev1.Secret, error) {
	var secret corev1.Secret
	key := client.ObjectKey{Namespace: d.liqo, Name: liqo.AuthTokenName}
	if err := d.client.Get(ctx, key, &secret); err != nil {
		return nil, fmt.Errorf("get Secret %s: %w", key, err)
	}
	return &secret, nil
}

// issued returns to whom the token of a Secret was told.
func issued(secret *corev1.Secret) []cluster.ID {
	var all []cluster.ID
	for id := range strings.SplitSeq(secret.Annotations[annotationIssued], ",") {
		if id != "" {
			all = append(all, cluster.ID(id))
		}
	}
	return all
}

// setIssued writes the Secret with the token, unless somebody else has in the meantime.
func (d *Driver) setIssued(ctx context.Context, secret *corev1.Secret, to []cluster.ID) error {
	names := make([]string, len(to))
	for i, id := range to {
		names[i] = string(id)
	}
	slices.Sort(names)
	if secret.Annotations == nil {
		secret.Annotations = map[string]string{}
	}
	if delete(secret.Annotations, annotationIssued); len(names) > 0 {
		secret.Annotations[annotationIssued] = strings.Join(names, ",")
	}
	if err := d.client.Update(ctx, secret); err != nil {
		return fmt.Errorf("update Secret %s/%s: %w", secret.Namespace, secret.Name, err)
	}
	return nil
}
