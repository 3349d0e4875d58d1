// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

// Package opaque keeps the events of a consumer's pods from telling which provider runs
// them, and the pods that wait from counting the providers, where the broker hides its
// providers from the consumer. Liqo copies all events of a twin namespace, and the
// conditions of its pods, to the cluster that the namespace is of.
//
// It is a mutating admission webhook. What a provider says of itself in its own words, it
// does not know.
package opaque

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/netip"
	"regexp"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/capacitorset/liqo-broker/pkg/liqo"
)

// Path is where the webhook is served.
const Path = "/hide-providers"

const (
	// kubelet is what the events of a provider's kubelet come from: they tell how a pod does,
	// and name the node.
	kubelet = "kubelet"
	// broker is what the broker's own events come from. They name no provider.
	broker = "liqo-broker"
	// hidden takes the place of what names a node.
	hidden = "hidden"
)

// Hider tells from which twin namespaces providers are hidden.
type Hider interface {
	// Hides reports whether the consumer of a namespace must not learn of providers. It is true
	// if that is not known.
	Hides(ctx context.Context, namespace string) (bool, error)
}

// unscheduled takes the place of what the scheduler says of the broker's nodes.
const unscheduled = "What the pod requires is not free in one place"

// Handler answers the API server when an event of a twin namespace is written, or what the
// scheduler says of a pod there. It may be used concurrently.
type Handler struct {
	hider   Hider
	decoder admission.Decoder
}

var _ admission.Handler = (*Handler)(nil)

// New returns a Handler.
func New(c client.Client, hider Hider) *Handler {
	return &Handler{hider: hider, decoder: admission.NewDecoder(c.Scheme())}
}

// Handle takes out of an event what names a provider, or keeps the event here, and takes out
// of the status of a pod what counts providers.
func (h *Handler) Handle(ctx context.Context, req admission.Request) admission.Response {
	hides, err := h.hider.Hides(ctx, req.Namespace)
	if err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "Cannot determine whether providers are hidden", "namespace", req.Namespace)
		return admission.Errored(http.StatusInternalServerError, errors.New("the broker cannot determine who may read the event"))
	}
	if !hides {
		return admission.Allowed("")
	}
	var event corev1.Event
	var pod corev1.Pod
	var object runtime.Object = &event
	if req.Kind.Kind == "Pod" {
		object = &pod
	}
	if err := h.decoder.Decode(req, object); err != nil {
		return admission.Errored(http.StatusBadRequest, err)
	}
	hide(&event)
	hideNodes(&pod)
	changed, err := json.Marshal(object)
	if err != nil {
		return admission.Errored(http.StatusInternalServerError, err)
	}
	return admission.PatchResponseFromRaw(req.Object.Raw, changed)
}

// hide changes an event so that it can be shown to a consumer that is not to know the
// providers, or is not shown at all: how a pod does is the consumer's business, where it is
// bound and what the broker's nodes lack is not.
func hide(event *corev1.Event) {
	source := event.Source.Component
	if source == "" {
		source = event.ReportingController
	}
	// Liqo appends a word for each cluster that an event came through
	// (liqo/pkg/virtualKubelet/reflection/event/event.go@v0.9.4).
	for strings.HasSuffix(source, " (remote)") {
		source = strings.TrimSuffix(source, " (remote)")
	}
	if source == broker {
		return
	}
	if source != kubelet {
		liqo.KeepHere(event)
	}
	event.Source.Host = ""
	if event.ReportingInstance != "" {
		event.ReportingInstance = hidden
	}
	event.Message = addresses.ReplaceAllStringFunc(event.Message, func(text string) string {
		if _, err := netip.ParseAddr(text); err != nil {
			return text
		}
		return hidden
	})
}

// hideNodes takes out of the status of a pod what the scheduler says of the nodes. What it says of the pod's own claim stays.
func hideNodes(pod *corev1.Pod) {
	for i := range pod.Status.Conditions {
		if c := &pod.Status.Conditions[i]; c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse {
			if claim := missingClaim.FindStringSubmatch(c.Message); claim != nil {
				c.Message = claim[1]
				continue
			}
			c.Message = unscheduled
		}
	}
}

// missingClaim finds what the scheduler says of a pod whose claim is not there, and what this handler has made of it before. The scheduler
// looks at no node then (k8s.io/kubernetes/pkg/scheduler/framework/plugins/volumebinding/volume_binding.go@v1.34.4).
var missingClaim = regexp.MustCompile(`^(?:0/[0-9]+ nodes are available: )?(persistentvolumeclaim "[^"]+" not found)(?:\.|$)`)

// addresses finds what may be an IP address.
var addresses = regexp.MustCompile(`[0-9]{1,3}(?:\.[0-9]{1,3}){3}|[0-9A-Fa-f]{0,4}(?::[0-9A-Fa-f]{0,4}){2,7}`)
