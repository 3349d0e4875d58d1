// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

// Package addresses refuses, with Liqo 1.x, that a provider says of a pod that runs there an address which is none of that provider's pods:
// Liqo would open whatever has the address here to all providers, this one too, be it a node or a pod of somebody else.
//
// It is an admission webhook for the statuses of the pods of consumers. It does not know which prefixes those are.
package addresses

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
)

// Path is where the webhook is served.
const Path = "/check-addresses"

// Seen returns the prefixes under which pods on a node are seen here; none if nothing is known of it.
type Seen func(ctx context.Context, node string) ([]netip.Prefix, error)

// Handler answers the API server.
type Handler struct {
	seen    Seen
	decoder admission.Decoder
}

var _ admission.Handler = (*Handler)(nil)

// New returns a Handler.
func New(scheme *runtime.Scheme, seen Seen) *Handler {
	return &Handler{seen: seen, decoder: admission.NewDecoder(scheme)}
}

// Handle admits a status with addresses under which pods of that node are seen, or that the pod had before. Liqo tries again what is
// refused: it may have decided about the networks of a provider a moment before that is known here. A pod in the network of its node has an
// address that means nothing here, as has one at a provider to which there is no network, and is shown without one.
func (h *Handler) Handle(ctx context.Context, req admission.Request) admission.Response {
	before, after, err := h.pods(req)
	if err != nil {
		return admission.Errored(http.StatusBadRequest, err)
	}
	prefixes, err := h.seen(ctx, before.Spec.NodeName)
	if err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "Cannot determine under which addresses pods of a node are seen", "node", before.Spec.NodeName)
		return admission.Errored(http.StatusInternalServerError, errors.New("the broker cannot determine which addresses the pod may have"))
	}
	if before.Spec.HostNetwork || len(prefixes) == 0 {
		return withoutNew(before, after)
	}
	had := addressesOf(&before.Status)
	for _, text := range addressesOf(&after.Status) {
		address, err := netip.ParseAddr(text)
		known := err == nil && slices.ContainsFunc(prefixes, func(p netip.Prefix) bool { return p.Contains(address) })
		if !known && !slices.Contains(had, text) {
			return admission.Denied(fmt.Sprintf("the broker does not take the status: %q is no address of a pod on node %s", text,
				before.Spec.NodeName))
		}
	}
	return admission.Allowed("")
}

// pods returns a pod as it is, and with the status that it is to have.
func (h *Handler) pods(req admission.Request) (before, after *corev1.Pod, err error) {
	before, after = &corev1.Pod{}, &corev1.Pod{}
	if err = h.decoder.DecodeRaw(req.OldObject, before); err == nil {
		err = h.decoder.Decode(req, after)
	}
	return before, after, err
}

// withoutNew admits a status without addresses that the pod did not have before. What is not in our types stays as it is.
func withoutNew(before, after *corev1.Pod) admission.Response {
	said, err := json.Marshal(after)
	if err != nil {
		return admission.Errored(http.StatusInternalServerError, err)
	}
	after.Status.PodIP, after.Status.PodIPs = before.Status.PodIP, before.Status.PodIPs
	shown, err := json.Marshal(after)
	if err != nil {
		return admission.Errored(http.StatusInternalServerError, err)
	}
	return admission.PatchResponseFromRaw(said, shown)
}

// addressesOf returns all addresses that a pod is said to have.
func addressesOf(status *corev1.PodStatus) []string {
	var all []string
	if status.PodIP != "" {
		all = append(all, status.PodIP)
	}
	for _, ip := range status.PodIPs {
		all = append(all, ip.IP)
	}
	return all
}
