// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

// Package tunnels keeps Liqo from leading to a peer what goes to the nodes of this cluster.
//
// Liqo routes to a peer the pod CIDR that the peer says it has, unless its IPAM knows that
// something else has these addresses: the pods, Services and external CIDR of this cluster,
// another peer, or a reserved subnet. It knows nothing of the nodes
// (getOrRemapNetwork in liqo/pkg/liqonet/ipam/ipam.go@v0.9.4). It is a validating admission
// webhook for the TunnelEndpoints, in which Liqo writes down what it has decided, and so
// concerns no prefix that is remapped. Liqo tries again what is refused.
package tunnels

import (
	"context"
	"encoding/json"
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
	v09 "github.com/capacitorset/liqo-broker/pkg/liqo/v09"
)

// Path is where the webhook is served.
const Path = "/guard-tunnels"

// Handler answers the API server when a TunnelEndpoint is written. It may be used
// concurrently.
type Handler struct {
	reader client.Reader
	real   labels.Selector
}

var _ admission.Handler = (*Handler)(nil)

// New returns a Handler. The reader lists nodes; it must not be a cache, which knows the
// virtual ones only.
func New(reader client.Reader) (*Handler, error) {
	notVirtual, err := labels.NewRequirement(liqo.LabelNodeType, selection.NotIn, []string{liqo.NodeTypeVirtual})
	if err != nil {
		return nil, fmt.Errorf("select the nodes of this cluster: %w", err)
	}
	return &Handler{reader: reader, real: labels.NewSelector().Add(*notVirtual)}, nil
}

// Handle refuses a tunnel that leads to a peer what goes to a node. One that has done so
// before the daemon ran stays: nobody knows what would become of its traffic.
func (h *Handler) Handle(ctx context.Context, req admission.Request) admission.Response {
	routed, err := prefixes(req.Object.Raw)
	if err != nil {
		return admission.Errored(http.StatusBadRequest, err)
	}
	before, err := prefixes(req.OldObject.Raw)
	if err != nil {
		return admission.Errored(http.StatusBadRequest, err)
	}
	routed = slices.DeleteFunc(routed, func(p netip.Prefix) bool { return slices.Contains(before, p) })
	if len(routed) == 0 {
		return admission.Allowed("")
	}
	var nodes corev1.NodeList
	if err := h.reader.List(ctx, &nodes, client.MatchingLabelsSelector{Selector: h.real}); err != nil {
		return admission.Errored(http.StatusInternalServerError, fmt.Errorf("list the nodes of this cluster: %w", err))
	}
	for i := range nodes.Items {
		for _, prefix := range routed {
			if address, taken := addressIn(&nodes.Items[i], prefix); taken {
				ctrl.LoggerFrom(ctx).Info("Refused a tunnel that would divert traffic from a node", "tunnel", req.Namespace+"/"+req.Name,
					"prefix", prefix, "node", nodes.Items[i].Name, "address", address)
				return admission.Denied(fmt.Sprintf("the peer would receive the traffic to %s, which has address %s of node %s: "+
					"end the peering, set networkManager.config.reservedSubnets of Liqo's chart to the networks of the nodes, and peer again",
					prefix, address, nodes.Items[i].Name))
			}
		}
	}
	return admission.Allowed("")
}

// prefixes returns what a tunnel leads to its peer.
func prefixes(object []byte) ([]netip.Prefix, error) {
	if len(object) == 0 {
		return nil, nil
	}
	var tunnel v09.TunnelEndpoint
	if err := json.Unmarshal(object, &tunnel); err != nil {
		return nil, fmt.Errorf("read a TunnelEndpoint: %w", err)
	}
	return v09.LinkOf(&tunnel).Seen, nil
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
