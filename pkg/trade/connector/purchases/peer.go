// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package purchases

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/capacitorset/liqo-broker/pkg/api/connectorv1alpha1"
	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
	"github.com/capacitorset/liqo-broker/pkg/core/resources"
	"github.com/capacitorset/liqo-broker/pkg/trade/connector/peering"
	"github.com/capacitorset/liqo-broker/pkg/trade/core/contract"
	"github.com/capacitorset/liqo-broker/pkg/trade/negotiation"
	"github.com/capacitorset/liqo-broker/pkg/trade/party"
)

// maxNodes bounds the nodes in a status, as the API does.
const maxNodes = 64

// usage is who else uses a peering.
type usage struct {
	// any is whether there is another purchase that has not parted, stays whether one of them is not about to, inUse whether that gives
	// something, and foreign the name of one of another seller.
	any, stays, inUse bool
	foreign           string
	// shares is what those in use have bought, and keep when they become smaller.
	shares corev1.ResourceList
}

// others returns who else uses the peering with a cluster.
func (d *drive) others(ctx context.Context, id cluster.ID) (usage, error) {
	all := &connectorv1alpha1.PurchaseList{}
	if err := d.purchases.cfg.Reader.List(ctx, all); err != nil {
		return usage{}, kubernetesError{fmt.Errorf("list purchases: %w", err)}
	}
	used := usage{shares: corev1.ResourceList{}}
	for i := range all.Items {
		other := &all.Items[i]
		if other.UID == d.object.UID || other.Status.Cluster.ID != string(id) {
			continue
		}
		read, err := readRecord(other.Status.Record)
		if err == nil && (read == nil || read.Purchase.Peering == contract.Apart) {
			continue
		}
		used.any = true
		if other.Spec.Seller != d.object.Spec.Seller {
			used.foreign = other.Name
		}
		if err != nil || read.Purchase.Ending || read.Purchase.Standing.Parts() {
			continue
		}
		switch state := read.Purchase.State(); {
		case state.InUse(), state == contract.Provisioning: // The seller gives it from the moment at which it lets the cluster peer.
			used.stays, used.inUse = true, true
			resources.Add(used.shares, kept(read.Purchase))
		case state == contract.Suspended:
			used.stays = true
		}
	}
	return used, nil
}

// kept returns what a contract gives, also if the terms come into force that the buyer has proposed.
func kept(p contract.Purchase) corev1.ResourceList {
	if p.Proposal == nil {
		return p.Terms.Resources
	}
	return resources.Min(p.Terms.Resources, p.Proposal.Terms.Resources)
}

// crowded returns why a contract cannot become smaller now; empty if it can. What the nodes are made smaller by can be sold to somebody
// else at once, and pods do not leave a node for that: they have to leave before.
func (d *drive) crowded(ctx context.Context, smaller corev1.ResourceList) (string, error) {
	less := corev1.ResourceList{}
	for name, now := range d.record.Purchase.Terms.Resources {
		if then := smaller[name]; then.Cmp(now) < 0 {
			less[name] = then
		}
	}
	id := cluster.ID(d.record.Cluster.ID)
	if len(less) == 0 || id == "" {
		return "", nil
	}
	used, err := d.others(ctx, id)
	if err != nil {
		return "", err
	}
	requested, err := d.purchases.cfg.Peering.Requested(ctx, id)
	if err != nil {
		return "", kubernetesError{err}
	}
	for _, name := range slices.Sorted(maps.Keys(less)) {
		room, have := less[name], requested[name]
		room.Add(used.shares[name])
		if have.Cmp(room) > 0 {
			return fmt.Sprintf("It becomes smaller when the pods on its nodes fit: they request %s of %s, and there will be %s.",
				have.String(), name, room.String()), nil
		}
	}
	return "", nil
}

// peer goes on with a peering. What is peered is written before.
func (d *drive) peer(ctx context.Context, c *negotiation.Client, action contract.Action) (*ctrl.Result, error) {
	secret, err := c.Credentials(ctx, d.id())
	if err != nil {
		// It can be over meanwhile.
		if news, failed := d.look(ctx, c); news || isKubernetes(failed) {
			return nil, failed
		}
		return d.unanswered(ctx, err)
	}
	// The credentials have to be for the cluster of the seller that was named, and always for the same one.
	credentials, err := peering.ParseCredentials(secret.Reveal())
	if err != nil {
		return d.unanswered(ctx, err)
	}
	if err := d.believe(credentials.Cluster().ID, credentials.Host()); err != nil {
		return d.unanswered(ctx, err)
	}
	remote := credentials.Cluster()
	if d.record.Cluster.ID != "" && d.record.Cluster.ID != string(remote.ID) {
		return d.unanswered(ctx, fmt.Errorf("the seller gives credentials for cluster %s, and before for %s", remote.ID, d.record.Cluster.ID))
	}
	// Liqo is told to peer. A peering that people have made is theirs, and an unguarded cluster peers with nobody.
	err = d.join(ctx, credentials, action)
	switch {
	case errors.Is(err, peering.ErrCredentials):
		return d.unanswered(ctx, err)
	case errors.Is(err, peering.ErrForeign):
		if news, failed := d.look(ctx, c); news || isKubernetes(failed) {
			return nil, failed
		}
		return d.retry(ctx, connectorv1alpha1.ReasonPeeringForeign, err.Error())
	case errors.Is(err, peering.ErrUnguarded):
		return d.wait(ctx, guardedAgain, connectorv1alpha1.ReasonUnguarded, err.Error())
	case err != nil:
		return nil, err
	}
	// The deed is done when Liqo says that the peering is there, and until then the seller may say that the contract is over.
	state, err := d.purchases.cfg.Peering.State(ctx, remote.ID)
	switch {
	case err != nil:
		return nil, err
	case state.Established:
		d.record.Purchase = d.record.Purchase.Finish(action, "")
		d.showNodes(state)
		return nil, d.writePurchase(ctx)
	}
	news, err := d.look(ctx, c)
	switch {
	case isKubernetes(err):
		return nil, err
	case err != nil:
		return d.unanswered(ctx, err)
	case d.record.Purchase.Next(d.now()).Deed != contract.Peer, news && d.leaves():
		return nil, d.writePurchase(ctx) // There is more to do.
	}
	return d.wait(ctx, stepAgain, "", "")
}

// believe returns why Liqo at a host is not of a cluster that the seller has announced, at a host that it has announced: that of its
// endpoint, unless the cluster has one of its own. While no registry shows the seller, only the cluster is believed that was peered before.
func (d *drive) believe(id cluster.ID, at string) error {
	seller := party.ID(d.object.Spec.Seller)
	shown, is := d.purchases.cfg.Parties.Party(seller)
	if !is {
		shown.Said.Endpoint = d.object.Status.Seller.Endpoint // It has announced that one before.
	}
	switch {
	case !is && d.record.Cluster.ID != string(id):
		return fmt.Errorf("the seller names cluster %.63q, and no registry shows which clusters it has", id)
	case is && !d.purchases.cfg.Parties.Owns(seller, id):
		return fmt.Errorf("the seller names cluster %.63q, which it does not announce, or another party has announced before", id)
	case !is && shown.Said.Endpoint == "":
		return errUnknownSeller
	}
	if host := shown.AuthHost(id); at != host {
		return fmt.Errorf("the seller names %.253q as the host of its liqo-auth, and it has announced %.253q", at, host)
	}
	return nil
}

// join makes one step of peering, while nobody else begins or ends one. The error is peering.ErrForeign if the cluster is another seller's.
func (d *drive) join(ctx context.Context, credentials peering.Credentials, action contract.Action) error {
	d.purchases.joining.Lock()
	defer d.purchases.joining.Unlock()
	remote := credentials.Cluster()
	used, err := d.others(ctx, remote.ID)
	switch {
	case err != nil:
		return err
	case used.foreign != "":
		return fmt.Errorf("cluster %s is peered for purchase %s from another seller: %w", remote.ID, used.foreign, peering.ErrForeign)
	}
	d.record.Purchase = d.record.Purchase.Begin(action)
	d.record.Cluster = connectorv1alpha1.ClusterStatus{ID: string(remote.ID), Name: remote.Name}
	if err := d.writePurchase(ctx); err != nil {
		return err
	}
	if err := d.purchases.cfg.Peering.Peer(ctx, credentials); err != nil || d.record.Peered {
		return err
	}
	d.record.Peered = true
	return d.writePurchase(ctx)
}

// room returns what other contracts give of what this one does.
func (d *drive) room(used usage) corev1.ResourceList {
	room := corev1.ResourceList{}
	for name := range d.record.Purchase.Terms.Resources {
		room[name] = used.shares[name]
	}
	return room
}

// evict has the pods leave that do not fit into what the other contracts in use give, which can be nothing. It returns how many are left of
// them.
func (d *drive) evict(ctx context.Context, id cluster.ID, used usage) (left int, err error) {
	if used.inUse {
		return d.purchases.cfg.Peering.Fit(ctx, id, d.room(used))
	}
	return d.purchases.cfg.Peering.Drain(ctx, id)
}

// podsLeft is a number of pods as the status has it.
func podsLeft(n int) int32 {
	return int32(min(n, 1<<30)) //nolint:gosec // A number of pods is not negative.
}

// drain has the workloads leave, or those that do not fit into what other contracts for the same nodes give.
func (d *drive) drain(ctx context.Context, action contract.Action) (*ctrl.Result, error) {
	id := cluster.ID(d.record.Cluster.ID)
	used, err := d.others(ctx, id)
	if err != nil {
		return nil, err
	}
	if d.record.Purchase.Peering == contract.Joined {
		d.record.Purchase = d.record.Purchase.Begin(action)
		if err := d.writePurchase(ctx); err != nil {
			return nil, err
		}
	}
	left := 0
	if d.record.Peered || used.stays {
		// Pods can come to what is granted as soon as it is, where the clusters are peered for another contract.
		if left, err = d.evict(ctx, id, used); err != nil {
			return nil, err
		}
	}
	// What still runs then is lost with the peering, as at the end of a contract.
	if left == 0 || d.record.Purchase.DrainIsOver() {
		d.object.Status.PodsLeft = 0
		d.record.Purchase = d.record.Purchase.Finish(action, "")
		return nil, d.writePurchase(ctx)
	}
	d.object.Status.PodsLeft = podsLeft(left)
	if !d.record.Purchase.State().Final() {
		c, err := d.seller()
		if err == nil {
			_, err = d.look(ctx, c)
		}
		switch {
		case isKubernetes(err):
			return nil, err
		case err != nil:
			_ = d.heard(c, contract.View{}, err) // There is no view that could be wrong.
		case d.record.Purchase.Next(d.now()).Deed != contract.Drain:
			return nil, d.writePurchase(ctx)
		}
	}
	return d.wait(ctx, stepAgain, "", "")
}

// unpeer ends a peering that nobody else uses.
func (d *drive) unpeer(ctx context.Context, action contract.Action) (*ctrl.Result, error) {
	d.purchases.joining.Lock()
	defer d.purchases.joining.Unlock()
	id := cluster.ID(d.record.Cluster.ID)
	used, err := d.others(ctx, id)
	if err != nil {
		return nil, err
	}
	if used.stays { // What this contract gave must be free, also if nobody was there while it ended.
		left, err := d.evict(ctx, id, used)
		if err != nil {
			return nil, err
		}
		if left > 0 {
			d.object.Status.PodsLeft = podsLeft(left)
			return d.wait(ctx, stepAgain, "", "")
		}
	}
	done := used.any || id == ""
	if !done {
		d.record.Purchase = d.record.Purchase.Begin(action)
		if err := d.writePurchase(ctx); err != nil {
			return nil, err
		}
		done, err = d.purchases.cfg.Peering.Unpeer(ctx, id)
		if err != nil && !errors.Is(err, peering.ErrForeign) {
			return nil, err
		}
		done = done || err != nil // What is foreign is not this contract's.
	}
	if !done {
		return d.wait(ctx, stepAgain, "", "")
	}
	d.object.Status.Nodes, d.object.Status.PodsLeft = nil, 0
	d.record.Purchase = d.record.Purchase.Finish(action, "")
	return nil, d.writePurchase(ctx)
}

// showPeering notes the nodes of a peering that is used, and opens those that are closed and no larger than contracts say.
func (d *drive) showPeering(ctx context.Context) error {
	if d.record.Purchase.Peering == contract.Apart {
		return nil
	}
	state, err := d.purchases.cfg.Peering.State(ctx, cluster.ID(d.record.Cluster.ID))
	if err != nil {
		return kubernetesError{err}
	}
	d.showNodes(state)
	if closed := slices.ContainsFunc(state.Nodes, func(n peering.Node) bool { return n.Closed }); !closed ||
		!d.record.Purchase.State().InUse() {
		return nil
	}
	return d.open(ctx)
}

// open opens nodes that were closed when a contract for them ended or was suspended, once they have no more than what the others give.
func (d *drive) open(ctx context.Context) error {
	id := cluster.ID(d.record.Cluster.ID)
	used, err := d.others(ctx, id)
	if err != nil {
		return err
	}
	room := d.room(used)
	resources.Add(room, d.record.Purchase.Terms.Resources)
	if err := d.purchases.cfg.Peering.Open(ctx, id, room); err != nil {
		return kubernetesError{err}
	}
	d.closed = true // It is looked at again soon, until it is open.
	return nil
}

func (d *drive) showNodes(state peering.State) {
	d.object.Status.Nodes = nil
	d.unready = !slices.ContainsFunc(state.Nodes, func(n peering.Node) bool { return n.Ready })
	for _, node := range state.Nodes[:min(len(state.Nodes), maxNodes)] {
		d.object.Status.Nodes = append(d.object.Status.Nodes, node.Name)
	}
}
