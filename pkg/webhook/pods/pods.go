// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

// Package pods directs the new pods of consumers: to virtual nodes, to the provider for
// which the consumer's node stands, and to some of the providers that are selected for
// their namespace. Liqo lets pods go to all that are selected, and removes at once what
// runs on those that are not, so that the selection alone cannot lead pods away from
// a provider. A pod that no provider may take waits; none runs on the broker's own nodes.
//
// It also holds pods on nodes that are not ready, for the broker to decide when they
// are replaced.
//
// It is a mutating admission webhook. It does not
// choose: the consumer's scheduler chose the node, and package twin wrote into the
// NamespaceOffloading which providers take new pods.
package pods

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"

	corev1 "k8s.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/capacitorset/liqo-broker/pkg/api/v1alpha1"
	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
	"github.com/capacitorset/liqo-broker/pkg/core/nodename"
	"github.com/capacitorset/liqo-broker/pkg/liqo"
	"github.com/capacitorset/liqo-broker/pkg/liqo/line"
)

// Path is where the webhook is served.
const Path = "/place-pods"

// Known tells where a pod may run.
type Known interface {
	// Pinned reports whether a pod may run on one provider only; nil for none.
	Pinned(ctx context.Context, consumer cluster.ID, pod *corev1.Pod) (provider *v1alpha1.Provider, pinned bool, err error)
	// Offloading returns how a namespace is offloaded, or nil if it is not.
	Offloading(ctx context.Context, namespace string) (*liqo.Offloading, error)
	// Line returns the line of Liqo that runs.
	Line() line.Line
}

// Handler answers the API server when a consumer's pod is made.
type Handler struct {
	reader  client.Reader
	known   Known
	decoder admission.Decoder
}

var _ admission.Handler = (*Handler)(nil)

// New returns a Handler that reads from a cache.
func New(c client.Client, known Known) *Handler {
	return &Handler{reader: c, known: known, decoder: admission.NewDecoder(c.Scheme())}
}

// Handle makes a pod require a virtual node, its provider, and one of those on which new
// pods are placed, and stay there if the provider is lost. Where no provider takes new
// pods, the pod waits. A pod is refused, and Liqo tries again, while it is not known where
// it may run.
func (h *Handler) Handle(ctx context.Context, req admission.Request) admission.Response {
	var pod corev1.Pod
	if err := h.decoder.Decode(req, &pod); err != nil {
		return admission.Errored(http.StatusBadRequest, err)
	}
	if err := h.steer(ctx, req.Namespace, &pod); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "Cannot determine where a pod may run", "namespace", req.Namespace)
		return admission.Errored(http.StatusInternalServerError, errors.New("the broker cannot determine where the pod may run"))
	}
	patched, err := json.Marshal(&pod)
	if err != nil {
		return admission.Errored(http.StatusInternalServerError, err)
	}
	return admission.PatchResponseFromRaw(req.Object.Raw, patched)
}

// steer adds to what a pod of a twin namespace requires of its node, and what it must have to go on from there.
func (h *Handler) steer(ctx context.Context, namespace string, pod *corev1.Pod) error {
	liqo.Confine(pod)
	h.known.Line().Forward(pod)
	if err := h.pin(ctx, namespace, pod); err != nil {
		return err
	}
	return h.place(ctx, namespace, pod)
}

// pin makes a pod on a node of one provider require that provider.
func (h *Handler) pin(ctx context.Context, name string, pod *corev1.Pod) error {
	if _, is := nodename.MarkOf(liqo.OriginNode(pod)); !is {
		return nil
	}
	var namespace corev1.Namespace
	if err := h.reader.Get(ctx, client.ObjectKey{Name: name}, &namespace); err != nil {
		return fmt.Errorf("get namespace %s: %w", name, err)
	}
	consumer, twin := liqo.TwinOf(&namespace)
	if !twin {
		return nil
	}
	provider, pinned, err := h.known.Pinned(ctx, consumer, pod)
	if err != nil || !pinned {
		return err
	}
	var on []cluster.ID // None if the provider is gone.
	if provider != nil {
		on = []cluster.ID{cluster.ID(provider.Name)}
	}
	liqo.Place(pod, on)
	return nil
}

// place makes a pod stay on a provider that is lost, and require one of those on which new
// pods are placed. Without an offloading there is none yet: the pod waits, and is recreated
// when there is. An offloading of the broker counts from the moment when it is written, also
// if Liqo's own webhook does not apply it yet; that of somebody else counts when Liqo does.
func (h *Handler) place(ctx context.Context, name string, pod *corev1.Pod) error {
	offloading, err := h.known.Offloading(ctx, name)
	if err != nil {
		return err
	}
	if offloading == nil {
		liqo.Place(pod, nil)
		return nil
	}
	liqo.Hold(pod)
	inForce, err := h.inForce(ctx, name, offloading)
	if err != nil {
		return err
	}
	switch {
	case !offloading.Managed && !inForce:
		return fmt.Errorf("the NamespaceOffloading of %s, which the broker does not manage, is not in force", name)
	case !offloading.Managed:
		return nil
	case !inForce:
		liqo.Admit(pod)
		liqo.Place(pod, offloading.Selected)
	}
	if !slices.Equal(offloading.Selected, offloading.Placing) {
		liqo.Place(pod, offloading.Placing)
	}
	return nil
}

// inForce reports whether Liqo's own webhook applies an offloading to new pods.
func (h *Handler) inForce(ctx context.Context, name string, offloading *liqo.Offloading) (bool, error) {
	var namespace corev1.Namespace
	if err := h.reader.Get(ctx, client.ObjectKey{Name: name}, &namespace); client.IgnoreNotFound(err) != nil {
		return false, fmt.Errorf("get namespace %s: %w", name, err)
	}
	return offloading.InForce(&namespace), nil
}
