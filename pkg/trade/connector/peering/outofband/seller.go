// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package outofband

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
	v09 "github.com/capacitorset/liqo-broker/pkg/liqo/v09"
	"github.com/capacitorset/liqo-broker/pkg/trade/connector/peering"
)

// annotationIssued and annotationTold are on the Secret with Liqo's token: the clusters that were issued credentials and have not come yet,
// and those that Liqo tells the token, because this cluster peers with them, and that have not used it yet; in order, with commas between.
// annotationSpent is there while a token that was used is kept for those that were told it: Liqo tells it once.
const (
	annotationIssued = "brokering.liqo.io/issued-to"
	annotationTold   = "brokering.liqo.io/told-to"
	annotationSpent  = "brokering.liqo.io/token-spent"
)

// usedToken is what a cluster is issued that has an identity here: it needs no token, and must not have one.
const usedToken = "used"

// Issue implements [peering.Seller]. Liqo 0.9 has one token for all, which is replaced as soon as a cluster that was told it has its
// identity, or may not peer any more: what was issued to others before and not used yet is issued again, with the new one.
func (d *Driver) Issue(ctx context.Context, buyer cluster.Identity) (peering.Credentials, error) {
	own, err := v09.OwnIdentity(ctx, d.client, d.liqo)
	if err != nil {
		return peering.Credentials{}, err
	}
	if own.ID == buyer.ID {
		return peering.Credentials{}, fmt.Errorf("cluster %s is this cluster itself", buyer)
	}
	// The token before the foreign cluster: one that has replaced a used one is not read with the record of before.
	secret, err := d.token(ctx)
	if err != nil {
		return peering.Credentials{}, err
	}
	fc, err := v09.ForeignClusterOf(ctx, d.client, buyer.ID)
	if err != nil {
		return peering.Credentials{}, err
	}
	if fc != nil {
		if !ours(fc) && !came(fc, secret) {
			return peering.Credentials{}, fmt.Errorf("issue credentials to %s: %w", buyer, peering.ErrForeign)
		}
		if err := d.sell(ctx, fc); err != nil {
			return peering.Credentials{}, err
		}
	}
	url, err := v09.AuthURL(ctx, d.client, d.liqo)
	if err != nil {
		return peering.Credentials{}, err
	}
	if fc != nil && identified(fc) {
		return peering.NewCredentials(own, url, usedToken)
	}
	if err := d.noteCluster(ctx, secret, annotationIssued, buyer.ID); err != nil {
		return peering.Credentials{}, err
	}
	return peering.NewCredentials(own, url, v09.Token(secret))
}

// came reports whether Liqo has made a foreign cluster because a cluster came with the token that it was issued. What people have made is
// none.
func came(fc *v09.ForeignCluster, secret *corev1.Secret) bool {
	return v09.CameUnasked(fc) && slices.Contains(listed(secret, annotationIssued), v09.Identity(fc).ID)
}

// identified reports whether a cluster has its identity here: it has asked for resources.
func identified(fc *v09.ForeignCluster) bool {
	return v09.CameUnasked(fc) || v09.Incoming(fc).Exists
}

// sell notes that a foreign cluster consumes by contract, and lets it.
func (d *Driver) sell(ctx context.Context, fc *v09.ForeignCluster) error {
	return d.patch(ctx, fc, func() {
		mark(fc)
		fc.Annotations[annotationSold] = isTrue
		v09.Provide(fc)
	})
}

// Sold reports whether a cluster consumes here by what was issued to it.
func (d *Driver) Sold(ctx context.Context, buyer cluster.ID) (bool, error) {
	fc, err := v09.ForeignClusterOf(ctx, d.client, buyer)
	return err == nil && fc != nil && sold(fc) && v09.Incoming(fc).Exists, err
}

// sold reports whether a foreign cluster consumes by contract.
func sold(fc *v09.ForeignCluster) bool { return ours(fc) && fc.Annotations[annotationSold] != "" }

// annotationInTurn is on the foreign cluster of a buyer with which this cluster has peered in turn.
const annotationInTurn = "brokering.liqo.io/in-turn"

// PeerInTurn has this cluster consume from a buyer's one, so that Liqo reflects Services to it. It reports false while the buyer has not
// peered. Withdraw ends it.
func (d *Driver) PeerInTurn(ctx context.Context, buyer cluster.ID) (done bool, err error) {
	fc, err := v09.ForeignClusterOf(ctx, d.client, buyer)
	if err != nil || fc == nil || !sold(fc) || !v09.Incoming(fc).Exists {
		return false, err
	}
	if v09.Consumes(fc) {
		return true, nil
	}
	return true, d.patch(ctx, fc, func() {
		fc.Annotations[annotationInTurn] = isTrue
		v09.Consume(fc, "") // Liqo knows where it has peered from.
	})
}

// Withdraw implements [peering.Seller]. What Liqo 0.9 cannot take back is the certificate that the buyer's cluster was issued: it is good
// for nothing but to ask for resources again, of which there are none without a contract.
func (d *Driver) Withdraw(ctx context.Context, buyer cluster.ID) (done bool, err error) {
	fc, err := v09.ForeignClusterOf(ctx, d.client, buyer)
	if err != nil {
		return false, err
	}
	if fc != nil && !sold(fc) {
		if secret, err := d.token(ctx); err != nil {
			return false, err
		} else if ours(fc) || !came(fc, secret) {
			return true, d.replaceToken(ctx, buyer) // It is people's, or what this cluster buys from.
		}
	}
	if fc != nil {
		if err := d.patch(ctx, fc, func() {
			mark(fc)
			fc.Annotations[annotationSold] = isTrue
			v09.ProvideNoMore(fc)
			if fc.Annotations[annotationInTurn] != "" {
				v09.ConsumeNoMore(fc)
			}
		}); err != nil {
			return false, err
		}
		if fc.Annotations[annotationInTurn] != "" && v09.Outgoing(fc).Exists {
			return false, d.lookAgain(ctx, fc)
		}
	}
	// The token first: until it is another one, the cluster could come back as if it were new.
	if err := d.replaceToken(ctx, buyer); err != nil {
		return false, err
	}
	if fc == nil {
		return d.forgetCluster(ctx, buyer, nil)
	}
	if v09.Incoming(fc).Exists {
		return false, d.lookAgain(ctx, fc)
	}
	// Liqo would write down again who still asks, and answer; the record that refuses stays.
	if asks, err := v09.AsksForResources(ctx, d.client, fc); err != nil || asks {
		return err == nil, err
	}
	if fc.Annotations[annotationBought] != "" { // This cluster still buys from it.
		return true, d.patch(ctx, fc, func() { delete(fc.Annotations, annotationSold) })
	}
	return d.forgetCluster(ctx, buyer, fc)
}

// noteCluster notes in the Secret with this cluster's token that another cluster is told it.
func (d *Driver) noteCluster(ctx context.Context, secret *corev1.Secret, annotation string, id cluster.ID) error {
	told := listed(secret, annotation)
	if slices.Contains(told, id) {
		return nil
	}
	list(secret, annotation, append(told, id))
	return d.writeToken(ctx, secret)
}

// replaceToken replaces the token of this cluster, if another one was told it and has not used it: that one may not any more.
func (d *Driver) replaceToken(ctx context.Context, id cluster.ID) error {
	secret, err := d.token(ctx)
	if err != nil || !strike(secret, id) {
		return err
	}
	return d.renewToken(ctx, secret)
}

// spend notes that a cluster has used the token that it was told. The token is replaced as soon as nobody is left who was told it by Liqo:
// who was issued it is issued the next one, and the others are told once.
func (d *Driver) spend(ctx context.Context, secret *corev1.Secret, id cluster.ID) error {
	if !strike(secret, id) {
		return nil
	}
	if len(listed(secret, annotationTold)) == 0 {
		return d.renewToken(ctx, secret)
	}
	metav1.SetMetaDataAnnotation(&secret.ObjectMeta, annotationSpent, isTrue)
	return d.writeToken(ctx, secret)
}

// renewToken writes another token into the Secret.
func (d *Driver) renewToken(ctx context.Context, secret *corev1.Secret) error {
	v09.ReplaceToken(secret)
	delete(secret.Annotations, annotationSpent)
	return d.writeToken(ctx, secret)
}

// strike removes a cluster from the lists of a Secret, and reports whether it was there.
func strike(secret *corev1.Secret, id cluster.ID) bool {
	struck := false
	for _, annotation := range []string{annotationIssued, annotationTold} {
		before := listed(secret, annotation)
		after := slices.DeleteFunc(slices.Clone(before), func(each cluster.ID) bool { return each == id })
		if len(after) == len(before) {
			continue
		}
		struck = true
		list(secret, annotation, after)
	}
	return struck
}

// list writes a list of clusters into an annotation of a Secret.
func list(secret *corev1.Secret, annotation string, ids []cluster.ID) {
	if len(ids) == 0 {
		delete(secret.Annotations, annotation)
		return
	}
	names := make([]string, len(ids))
	for i, id := range ids {
		names[i] = string(id)
	}
	slices.Sort(names)
	metav1.SetMetaDataAnnotation(&secret.ObjectMeta, annotation, strings.Join(names, ","))
}

// token returns the Secret with the token by which clusters authenticate here.
func (d *Driver) token(ctx context.Context) (*corev1.Secret, error) {
	var secret corev1.Secret
	key := client.ObjectKey{Namespace: d.liqo, Name: v09.AuthTokenName}
	if err := d.client.Get(ctx, key, &secret); err != nil {
		return nil, fmt.Errorf("get Secret %s: %w", key, err)
	}
	return &secret, nil
}

// listed returns the clusters in an annotation of a Secret.
func listed(secret *corev1.Secret, annotation string) []cluster.ID {
	var all []cluster.ID
	for id := range strings.SplitSeq(secret.Annotations[annotation], ",") {
		if id != "" {
			all = append(all, cluster.ID(id))
		}
	}
	return all
}

// writeToken writes the Secret with the token, unless somebody else has in the meantime.
func (d *Driver) writeToken(ctx context.Context, secret *corev1.Secret) error {
	if err := d.client.Update(ctx, secret); err != nil {
		return fmt.Errorf("update Secret %s/%s: %w", secret.Namespace, secret.Name, err)
	}
	return nil
}
