// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

// Package allowance keeps what the pods of a peer request on this cluster within what the peer is offered here: what it has bought, or what
// a broker or its own Liqo has granted it. All of them say so in the ResourceOffers that Liqo makes to the peer, or with Liqo 1.x in the
// ResourceSlices of the peer.
//
// Liqo makes a virtual node of an offer, at the peer, and leaves it to the peer's scheduler not to put more there. It is a validating
// admission webhook for the ShadowPods by which peers ask for pods, and for the pods that Liqo makes of them. An honest peer does not
// notice: its scheduler has counted the same pods, by the same rule, against the same amount. What runs stays when less is offered.
//
// It does not know what a pod uses beyond its requests, nor who has granted what, and why.
package allowance

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
	"github.com/capacitorset/liqo-broker/pkg/lenient"
	"github.com/capacitorset/liqo-broker/pkg/liqo"
	"github.com/capacitorset/liqo-broker/pkg/liqo/line"
	"github.com/capacitorset/liqo-broker/pkg/snapshot"
)

// Path is where the webhook is served.
const Path = "/guard-allowance"

// Config is what a Handler needs.
type Config struct {
	Scheme *runtime.Scheme
	// Namespaces reads the namespaces of peers, and Peers who they are and what they are offered.
	Namespaces client.Reader
	Peers      *snapshot.Reader
	Tally      *Tally
	Grants     *Grants
}

// Handler answers the API server when a pod of a peer is asked for or made. It may be used concurrently: of several pods at once only as
// many are admitted as there is room for. Another replica does not know at once of what this one has admitted: until it sees it, both
// together may admit twice what is free.
type Handler struct {
	Config

	line    line.Told
	kind    client.Object // An empty ShadowPod, which stays so.
	decoder admission.Decoder
}

var _ admission.Handler = (*Handler)(nil)

// New returns a Handler for the line of Liqo that the reader of peers reads.
func New(cfg Config) *Handler {
	of := cfg.Peers.Line()
	return &Handler{Config: cfg, line: of, kind: of.Kinds().Wish, decoder: admission.NewDecoder(cfg.Scheme)}
}

// Handle refuses a pod for which its cluster is not offered enough. Until all pods are known, it refuses all.
func (h *Handler) Handle(ctx context.Context, req admission.Request) admission.Response {
	switch {
	case req.Kind.Kind == "ShadowPod" && req.Operation == admissionv1.Create:
		return h.wish(ctx, req)
	case req.Kind.Kind == "ShadowPod" && req.Operation == admissionv1.Update:
		return h.change(req)
	case req.Kind.Kind == "Pod" && req.Operation == admissionv1.Create:
		return h.pod(ctx, req)
	default:
		return admission.Errored(http.StatusBadRequest, fmt.Errorf("%s of %s is not about what a peer takes", req.Operation, req.Kind.Kind))
	}
}

// wish answers about a new ShadowPod.
func (h *Handler) wish(ctx context.Context, req admission.Request) admission.Response {
	shadow, err := lenient.Decode(h.decoder, req.Object, h.kind)
	if err != nil {
		return admission.Errored(http.StatusBadRequest, err)
	}
	return h.admitSum(ctx, req, shadow.GetName(), h.requested(shadow))
}

// change answers about a ShadowPod that is there. Liqo changes no pod by it, but makes the next one of it.
func (h *Handler) change(req admission.Request) admission.Response {
	shadow, err := lenient.Decode(h.decoder, req.Object, h.kind)
	if err != nil {
		return admission.Errored(http.StatusBadRequest, err)
	}
	var before amounts
	if old, err := lenient.Decode(h.decoder, req.OldObject, h.kind); err == nil { // What cannot be read requests nothing.
		before = h.requested(old)
	}
	for _, a := range h.requested(shadow) {
		if was := before.of(a.name); a.count > was {
			return refuse(fmt.Sprintf("it requests %s %s now, and %s when it was made", show(a.name, a.count), a.name, show(a.name, was)))
		}
	}
	return admission.Allowed("")
}

// pod answers about a pod that Liqo makes of a ShadowPod. That one was admitted and has counted since, unless its pod has ended: Liqo
// recreates such a pod if somebody deletes it.
func (h *Handler) pod(ctx context.Context, req admission.Request) admission.Response {
	var pod corev1.Pod
	if err := h.decoder.Decode(req, &pod); err != nil {
		return admission.Errored(http.StatusBadRequest, err)
	}
	if pod.Labels[liqo.LabelManagedBy] != liqo.ManagedByShadowPod {
		return admission.Allowed("") // Peers have no right to make pods.
	}
	if err := h.known(); err != nil {
		return admission.Errored(http.StatusInternalServerError, err)
	}
	if !h.Tally.ended(client.ObjectKey{Namespace: req.Namespace, Name: pod.Name}) {
		return admission.Allowed("")
	}
	return h.admitSum(ctx, req, pod.Name, requested(&pod.Spec))
}

// requested returns what the pod of a ShadowPod requests.
func (h *Handler) requested(shadow client.Object) amounts {
	return requested(h.line.WishOf(shadow).Pod)
}

// known returns an error as long as not all pods are known.
func (h *Handler) known() error {
	select {
	case <-h.Tally.synced:
		return nil
	default:
		return errors.New("the guard does not know all pods of peers yet: try again")
	}
}

// admitSum answers about a pod that requests so much.
func (h *Handler) admitSum(ctx context.Context, req admission.Request, name string, asked amounts) admission.Response {
	peer, namespaces, granted, err := h.granted(ctx, req.Namespace)
	if err != nil {
		return admission.Errored(http.StatusInternalServerError, err)
	}
	if len(granted) == 0 {
		return refuse(fmt.Sprintf("this cluster offers nothing to %s", peer))
	}
	if name == "" { // The API server has not chosen one.
		name = string(req.UID)
	}
	question := req.DryRun != nil && *req.DryRun
	why := h.Tally.admit(namespaces, client.ObjectKey{Namespace: req.Namespace, Name: name}, asked, granted, question)
	switch {
	case why.ended > 0:
		return refuse(fmt.Sprintf("%s has %d pods here that have ended: it must delete some", peer, why.ended))
	case len(why.short) > 0:
		would := make([]string, len(why.short))
		for i, s := range why.short {
			would[i] = s.String()
		}
		return refuse(fmt.Sprintf("%s would have %s here", peer, strings.Join(would, ", ")))
	default:
		return admission.Allowed("")
	}
}

// refuse answers why a pod is not taken.
func refuse(why string) admission.Response {
	return admission.Denied("this cluster does not take the pod: " + why)
}

// granted returns whose a namespace is, which namespaces that peer has here, and what it is granted. What a namespace is, the API server
// says, and not the ShadowPod.
func (h *Handler) granted(ctx context.Context, namespace string) (peer cluster.ID, namespaces []string, granted amounts, err error) {
	if err := h.known(); err != nil {
		return "", nil, nil, err
	}
	var of corev1.Namespace
	if err := h.Namespaces.Get(ctx, client.ObjectKey{Name: namespace}, &of); err != nil {
		return "", nil, nil, fmt.Errorf("find out whose namespace %s is: %w", namespace, err)
	}
	peer = cluster.ID(of.Labels[liqo.LabelRemoteClusterID])
	twins, err := metav1.LabelSelectorAsSelector(liqo.TwinsOf(peer))
	if err != nil {
		return "", nil, nil, fmt.Errorf("select the namespaces of %s: %w", peer, err)
	}
	var list corev1.NamespaceList
	if err := h.Namespaces.List(ctx, &list, client.MatchingLabelsSelector{Selector: twins}, client.UnsafeDisableDeepCopy); err != nil {
		return "", nil, nil, fmt.Errorf("list the namespaces of %s: %w", peer, err)
	}
	for i := range list.Items {
		namespaces = append(namespaces, list.Items[i].Name)
	}
	known, err := h.Peers.Peer(ctx, peer)
	if err != nil {
		return "", nil, nil, err
	}
	offers, err := h.Peers.OffersTo(ctx, known)
	if err != nil {
		return "", nil, nil, err
	}
	return peer, namespaces, h.Grants.of(offers), nil
}
