// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

// Package steering directs the new pods of consumers: to the provider for which the
// consumer's node stands, and to some of the providers that are selected for their
// namespace. Liqo lets pods go to all that are selected, and removes at once what
// runs on those that are not, so that the selection alone cannot lead pods away from
// a provider.
//
// It also holds pods on nodes that are not ready, for the broker to decide when they
// are replaced.
//
// It is an admission webhook, and the announcement of its certificate. It does not
// choose: the consumer's scheduler chose the node, and package twin wrote into the
// NamespaceOffloading which providers take new pods.
package steering

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	corev1 "k8s.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/capacitorset/liqo-broker/pkg/api/v1alpha1"
	"github.com/capacitorset/liqo-broker/pkg/cluster"
	"github.com/capacitorset/liqo-broker/pkg/liqo"
	"github.com/capacitorset/liqo-broker/pkg/pool"
)

// Path is where the webhook is served.
const Path = "/place-pods"

// Pins tells on which provider a pod must run.
type Pins interface {
	// Pinned tells whether a pod may run on one provider only; nil for none.
	Pinned(ctx context.Context, consumer cluster.ID, pod *corev1.Pod) (provider *v1alpha1.Provider, pinned bool, err error)
}

// Handler answers the API server when a consumer's pod is made.
type Handler struct {
	reader  client.Reader
	pins    Pins
	decoder *admission.Decoder
}

var _ admission.Handler = (*Handler)(nil)

// New returns a Handler that reads from a cache.
func New(c client.Client, pins Pins) *Handler {
	return &Handler{reader: c, pins: pins, decoder: admission.NewDecoder(c.Scheme())}
}

// Handle makes a pod require its provider, and one of those on which new pods are
// placed, and stay there if the provider is lost. A pod that is for one provider is
// refused while it is not known for which: Liqo tries again. No other pod is
// refused: one that goes astray is moved later.
func (h *Handler) Handle(ctx context.Context, req admission.Request) admission.Response {
	var pod corev1.Pod
	if err := h.decoder.Decode(req, &pod); err != nil {
		return admission.Errored(http.StatusBadRequest, err)
	}
	pinned, err := h.pin(ctx, req.Namespace, &pod)
	if err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "Cannot tell for which provider a pod is", "namespace", req.Namespace)
		return admission.Errored(http.StatusInternalServerError, errors.New("the broker cannot tell for which provider the pod is"))
	}
	placed, err := h.place(ctx, req.Namespace, &pod)
	if err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "Cannot tell where a pod is to be placed", "namespace", req.Namespace)
	}
	if !pinned && !placed {
		return admission.Allowed("")
	}
	patched, err := json.Marshal(&pod)
	if err != nil {
		return admission.Errored(http.StatusInternalServerError, err)
	}
	return admission.PatchResponseFromRaw(req.Object.Raw, patched)
}

// pin makes a pod on a node of one provider require that provider.
func (h *Handler) pin(ctx context.Context, name string, pod *corev1.Pod) (bool, error) {
	if _, is := pool.MarkOf(liqo.OriginNode(pod)); !is {
		return false, nil
	}
	var namespace corev1.Namespace
	if err := h.reader.Get(ctx, client.ObjectKey{Name: name}, &namespace); err != nil {
		return false, fmt.Errorf("get namespace %s: %w", name, err)
	}
	consumer, twin := liqo.TwinOf(&namespace)
	if !twin {
		return false, nil
	}
	provider, pinned, err := h.pins.Pinned(ctx, consumer, pod)
	switch {
	case err != nil:
		return false, err
	case pinned && provider == nil:
		liqo.PlaceNowhere(pod)
	case pinned:
		liqo.Place(pod, []cluster.ID{cluster.ID(provider.Name)})
	}
	return pinned, nil
}

// place makes a pod of an offloaded namespace stay on a provider that is lost, and
// require one of those on which new pods are placed, if these are not all that are
// selected.
func (h *Handler) place(ctx context.Context, namespace string, pod *corev1.Pod) (bool, error) {
	var offloading liqo.NamespaceOffloading
	key := client.ObjectKey{Namespace: namespace, Name: liqo.OffloadingName}
	if err := h.reader.Get(ctx, key, &offloading); err != nil {
		return false, client.IgnoreNotFound(err)
	}
	liqo.Hold(pod)
	if offloading.Annotations[liqo.AnnotationPlacing] != "" {
		liqo.Place(pod, liqo.Placing(&offloading))
	}
	return true, nil
}
