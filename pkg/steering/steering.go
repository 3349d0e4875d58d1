// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

// Package steering directs the new pods of consumers to some of the providers that
// are selected for their namespace. Liqo lets pods go to all that are selected, and
// removes at once what runs on those that are not, so that the selection alone
// cannot lead pods away from a provider.
//
// It is an admission webhook, and the announcement of its certificate. It does not
// choose: it reads what package twin wrote into the NamespaceOffloading.
package steering

import (
	"context"
	"encoding/json"
	"net/http"

	corev1 "k8s.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/capacitorset/liqo-broker/pkg/liqo"
)

// Path is where the webhook is served.
const Path = "/place-pods"

// Handler answers the API server when a consumer's pod is made.
type Handler struct {
	reader  client.Reader
	decoder *admission.Decoder
}

var _ admission.Handler = (*Handler)(nil)

// New returns a Handler that reads from a cache.
func New(c client.Client) *Handler {
	return &Handler{reader: c, decoder: admission.NewDecoder(c.Scheme())}
}

// Handle makes a pod require one of the providers on which new pods are placed.
// It never refuses a pod: one that goes astray is moved later.
func (h *Handler) Handle(ctx context.Context, req admission.Request) admission.Response {
	var offloading liqo.NamespaceOffloading
	key := client.ObjectKey{Namespace: req.Namespace, Name: liqo.OffloadingName}
	if err := h.reader.Get(ctx, key, &offloading); client.IgnoreNotFound(err) != nil {
		ctrl.LoggerFrom(ctx).Error(err, "Cannot tell where a pod is to be placed", "namespace", req.Namespace)
		return admission.Allowed("")
	} else if err != nil || offloading.Annotations[liqo.AnnotationPlacing] == "" {
		return admission.Allowed("")
	}
	var pod corev1.Pod
	if err := h.decoder.Decode(req, &pod); err != nil {
		return admission.Errored(http.StatusBadRequest, err)
	}
	liqo.Place(&pod, liqo.Placing(&offloading))
	placed, err := json.Marshal(&pod)
	if err != nil {
		return admission.Errored(http.StatusInternalServerError, err)
	}
	return admission.PatchResponseFromRaw(req.Object.Raw, placed)
}
