// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

// Package liqonamespace keeps the offloading of Liqo's own namespace from clusters whose
// virtual kubelet would hand them the Secrets there.
//
// It is a mutating admission webhook: whoever writes the offloading as Liqo's
// documentation has it gets one that is safe. What was there before is the affair of
// package controller/liqonamespace.
package liqonamespace

import (
	"context"
	"encoding/json"
	"net/http"

	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/capacitorset/liqo-broker/pkg/liqo"
	v09 "github.com/capacitorset/liqo-broker/pkg/liqo/v09"
)

// Path is where the webhook is served.
const Path = "/protect-liqo"

// Handler answers the API server when the offloading is written.
type Handler struct {
	decoder admission.Decoder
}

var _ admission.Handler = (*Handler)(nil)

// New returns a Handler.
func New(scheme *runtime.Scheme) *Handler { return &Handler{decoder: admission.NewDecoder(scheme)} }

// Handle makes the offloading select only virtual nodes of this project's virtual kubelet.
func (h *Handler) Handle(_ context.Context, req admission.Request) admission.Response {
	var o v09.NamespaceOffloading
	if err := h.decoder.Decode(req, &o); err != nil {
		return admission.Errored(http.StatusBadRequest, err)
	}
	if !v09.Protect(&o) {
		return admission.Allowed("")
	}
	protected, err := json.Marshal(&o)
	if err != nil {
		return admission.Errored(http.StatusInternalServerError, err)
	}
	response := admission.PatchResponseFromRaw(req.Object.Raw, protected)
	response.Warnings = []string{"only clusters whose virtual kubelet is the broker's are selected (" + liqo.LabelVirtualKubelet +
		"): Liqo's own would hand them every Secret of this namespace"}
	return response
}
