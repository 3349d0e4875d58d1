// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

// Package tunnels keeps Liqo from leading to a peer what goes to the nodes of this cluster.
//
// Liqo routes to a peer the pod CIDR that the peer says it has, unless its IPAM knows that
// something else has these addresses: the pods, Services and external CIDR of this cluster,
// another peer, or a reserved subnet. It knows nothing of the nodes
// (getOrRemapNetwork in liqo/pkg/liqonet/ipam/ipam.go@v0.9.4, and liqo/pkg/ipam@v1.2.0). It is
// a validating admission webhook for the objects in which Liqo writes down what it has decided,
// and so concerns no prefix that is remapped. Liqo tries again what is refused. Which objects
// these are, and what else must not be in them, the line of Liqo's versions that runs says.
package tunnels

import (
	"context"
	"fmt"
	"net/http"
	"net/netip"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/capacitorset/liqo-broker/pkg/liqo"
	"github.com/capacitorset/liqo-broker/pkg/liqo/line"
	"github.com/capacitorset/liqo-broker/pkg/snapshot"
)

// Path is where the webhook is served.
const Path = "/guard-tunnels"

// Handler answers the API server when a network towards a peer is written. It may be used
// concurrently.
type Handler struct {
	rules  line.NetworkRules
	peers  *snapshot.Reader
	direct client.Reader
	real   labels.Selector
}

var _ admission.Handler = (*Handler)(nil)

// New returns a Handler for the line of Liqo that the reader of peers reads. Direct lists nodes;
// it must not be a cache, which knows the virtual ones only.
func New(peers *snapshot.Reader, direct client.Reader) (*Handler, error) {
	notVirtual, err := labels.NewRequirement(liqo.LabelNodeType, selection.NotIn, []string{liqo.NodeTypeVirtual})
	if err != nil {
		return nil, fmt.Errorf("select the nodes of this cluster: %w", err)
	}
	return &Handler{
		rules: peers.Line().NetworkRules(), peers: peers, direct: direct, real: labels.NewSelector().Add(*notVirtual),
	}, nil
}

// Handle refuses a network that leads to a peer what goes to a node, and what no network is like
// with the line of Liqo that runs. One that has done so before the daemon ran stays: nobody knows
// what would become of its traffic.
func (h *Handler) Handle(ctx context.Context, req admission.Request) admission.Response {
	// What is new.
	added, err := h.rules.Routed(req.Object.Raw)
	if err != nil {
		return admission.Errored(http.StatusBadRequest, err)
	}
	before, err := h.rules.Routed(req.OldObject.Raw)
	if err != nil {
		return admission.Errored(http.StatusBadRequest, err)
	}
	added = slices.DeleteFunc(added, func(p netip.Prefix) bool { return slices.Contains(before, p) })

	// What of it the line of Liqo does not have.
	var others []liqo.Link
	if len(added) > 0 && h.rules.ComparesNetworks() {
		if others, err = h.others(ctx, req.Namespace); err != nil {
			return admission.Errored(http.StatusInternalServerError, err)
		}
	}
	if err := h.rules.CheckNetwork(req.OldObject.Raw, req.Object.Raw, added, others); err != nil {
		ctrl.LoggerFrom(ctx).Info("Refused a network towards a peer", "network", req.Namespace+"/"+req.Name, "reason", err.Error())
		return admission.Denied(err.Error())
	}
	if len(added) == 0 {
		return admission.Allowed("")
	}
	return h.checkNodes(ctx, req, added)
}

// others returns the networks towards peers in other namespaces than one.
func (h *Handler) others(ctx context.Context, namespace string) ([]liqo.Link, error) {
	all, err := h.peers.Links(ctx)
	return slices.DeleteFunc(all, func(l liqo.Link) bool { return l.Tenant == namespace }), err
}

// checkNodes refuses prefixes that have addresses of nodes.
func (h *Handler) checkNodes(ctx context.Context, req admission.Request, added []netip.Prefix) admission.Response {
	var nodes corev1.NodeList
	if err := h.direct.List(ctx, &nodes, client.MatchingLabelsSelector{Selector: h.real}); err != nil {
		return admission.Errored(http.StatusInternalServerError, fmt.Errorf("list the nodes of this cluster: %w", err))
	}
	for i := range nodes.Items {
		for _, prefix := range added {
			if address, taken := addressIn(&nodes.Items[i], prefix); taken {
				ctrl.LoggerFrom(ctx).Info("Refused a tunnel that would divert traffic from a node", "tunnel", req.Namespace+"/"+req.Name,
					"prefix", prefix, "node", nodes.Items[i].Name, "address", address)
				return admission.Denied(fmt.Sprintf("the peer would receive the traffic to %s, which has address %s of node %s: %s",
					prefix, address, nodes.Items[i].Name, h.rules.NetworkAdvice()))
			}
		}
	}
	return admission.Allowed("")
}

// addressIn returns an address of a node that is in a prefix.
func addressIn(node *corev1.Node, prefix netip.Prefix) (netip.Addr, bool) {
	for _, a := range node.Status.Addresses {
		if address, err := netip.ParseAddr(a.Address); err == nil && prefix.Contains(address.Unmap()) {
			return address, true
		}
	}
	return netip.Addr{}, false
}
