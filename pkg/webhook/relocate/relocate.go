// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

// Package relocate keeps a pod of a consumer that is being moved from ending: of one that has ended while it was deleted, Liqo 1.x makes no
// other one, and the consumer would count a Job as done that was only asked to stop
// (liqo/pkg/liqo-controller-manager/offloading/shadowpod-controller/shadowpod_controller.go@v1.2.0).
//
// It is a mutating admission webhook. It does not know why a pod is deleted, only whether its consumer still wants it. With Liqo 0.9 the
// virtual kubelets show such pods in this way.
package relocate

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/capacitorset/liqo-broker/pkg/core/podstate"
	"github.com/capacitorset/liqo-broker/pkg/liqo"
)

// Path is where the webhook is served.
const Path = "/relocate-pods"

// Wants reports whether a consumer wants a pod, so that another one takes its place when it is gone. It reads what is stored at the moment:
// who has just said that it does not is not to be shown a pod that comes back.
type Wants func(ctx context.Context, pod client.ObjectKey) (bool, error)

// Handler answers the API server when the status of a pod is written. It may be used concurrently.
type Handler struct {
	wants   Wants
	decoder admission.Decoder
}

var _ admission.Handler = (*Handler)(nil)

// New returns a Handler.
func New(scheme *runtime.Scheme, wants Wants) *Handler {
	return &Handler{wants: wants, decoder: admission.NewDecoder(scheme)}
}

// Handle lets a pod that is being deleted wait, instead of end, if its consumer wants it.
func (h *Handler) Handle(ctx context.Context, req admission.Request) admission.Response {
	var before, after corev1.Pod
	if err := errors.Join(h.decoder.DecodeRaw(req.OldObject, &before), h.decoder.Decode(req, &after)); err != nil {
		return admission.Errored(http.StatusBadRequest, err)
	}
	status := Status(&before, after.Status)
	if status == nil {
		return admission.Allowed("")
	}
	key := client.ObjectKeyFromObject(&before)
	wanted, err := h.wants(ctx, key)
	if err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "Cannot determine whether a pod is moved", "pod", key)
		return admission.Errored(http.StatusInternalServerError, errors.New("the broker cannot determine whether the pod is moved"))
	}
	if !wanted {
		return admission.Allowed("")
	}
	// What is not in our types stays as it is: only what differs between ours is changed.
	ended, err := json.Marshal(&after)
	if err != nil {
		return admission.Errored(http.StatusInternalServerError, err)
	}
	after.Status = *status
	waits, err := json.Marshal(&after)
	if err != nil {
		return admission.Errored(http.StatusInternalServerError, err)
	}
	return admission.PatchResponseFromRaw(ended, waits)
}

// Status returns the status that a pod of a peer is to have instead of one in which it ends while it is being deleted; nil if it is to have
// that one. The pod is as it is stored: who writes a status says nothing of the rest.
func Status(before *corev1.Pod, after corev1.PodStatus) *corev1.PodStatus {
	if before.Labels[liqo.LabelManagedBy] != liqo.ManagedByShadowPod || !podstate.EndedIn(after.Phase) {
		return nil
	}
	ends := before.DeepCopy()
	ends.Status = after
	if waits := podstate.Relocating(ends, &before.Status); waits != ends {
		return &waits.Status
	}
	return nil
}
