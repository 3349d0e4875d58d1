// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

// Package nodelabels gives the consumers' nodes of single providers the labels of
// these providers, so that pods can choose by region or architecture.
//
// It is an admission webhook for the offers that Liqo writes, because Liqo's resource
// plugin has no labels, and Liqo overwrites what others write into its offers. It
// knows neither what is offered nor who is offered it.
package nodelabels

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/capacitorset/liqo-broker/pkg/api/v1alpha1"
	"github.com/capacitorset/liqo-broker/pkg/liqo"
	"github.com/capacitorset/liqo-broker/pkg/pool"
	"github.com/capacitorset/liqo-broker/pkg/registry"
)

const (
	// Path is where the webhook is served.
	Path = "/label-offers"
	// LabelProvider is on a consumer's node of one provider, with its cluster ID.
	LabelProvider = "brokering.liqo.io/provider"
)

// Providers finds the provider for which a consumer's node stands.
type Providers interface {
	// ProviderOf returns nil if the node stands for none.
	ProviderOf(ctx context.Context, node string) (*v1alpha1.Provider, error)
}

// Handler answers the API server when Liqo writes an offer to a consumer.
type Handler struct {
	reader    client.Reader
	providers Providers
	decoder   *admission.Decoder
}

var _ admission.Handler = (*Handler)(nil)

// New returns a Handler that reads from a cache.
func New(c client.Client, providers Providers) *Handler {
	return &Handler{reader: c, providers: providers, decoder: admission.NewDecoder(c.Scheme())}
}

// Handle writes the labels of the provider into the offer of its node. It never
// refuses an offer: one without labels is better than none.
func (h *Handler) Handle(ctx context.Context, req admission.Request) admission.Response {
	var o liqo.ResourceOffer
	if err := h.decoder.Decode(req, &o); err != nil {
		return admission.Errored(http.StatusBadRequest, err)
	}
	if _, is := pool.MarkOf(o.Spec.NodeName); !is || liqo.OfferedTo(&o) == "" {
		return admission.Allowed("")
	}
	labels, err := h.labels(ctx, o.Spec.NodeName)
	if err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "Cannot tell the labels of a provider", "offer", req.Name, "namespace", req.Namespace)
		return admission.Allowed("")
	}
	if o.Spec.Labels == nil {
		o.Spec.Labels = map[string]string{}
	}
	maps.Copy(o.Spec.Labels, labels)
	labelled, err := json.Marshal(&o)
	if err != nil {
		return admission.Errored(http.StatusInternalServerError, err)
	}
	return admission.PatchResponseFromRaw(req.Object.Raw, labelled)
}

// labels returns what a consumer may see of the labels of a node's provider: those
// that Liqo shows on its virtual node, and those that people put on the Provider,
// which go first. Every node is virtual from the beginning, also before Liqo has made
// it: a namespace whose selector does not match it is not offloaded any more.
func (h *Handler) labels(ctx context.Context, node string) (map[string]string, error) {
	labels := map[string]string{liqo.LabelNodeType: liqo.NodeTypeVirtual}
	provider, err := h.providers.ProviderOf(ctx, node)
	if err != nil || provider == nil {
		return labels, err
	}
	var nodes corev1.NodeList
	if err := h.reader.List(ctx, &nodes, client.MatchingFields{registry.IndexNodeCluster: provider.Name}); err != nil {
		return nil, fmt.Errorf("list the nodes of provider %s: %w", provider.Name, err)
	}
	for i := range nodes.Items {
		show(labels, nodes.Items[i].Labels)
	}
	show(labels, provider.Labels)
	if len(validation.IsValidLabelValue(provider.Name)) == 0 {
		labels[LabelProvider] = provider.Name
	}
	return labels, nil
}

// show copies the labels that say what a provider is. Those of Kubernetes and of Liqo
// say what the node is: the consumer's node has its own.
func show(shown, labels map[string]string) {
	for key, value := range labels {
		domain, _, _ := strings.Cut(key, "/")
		within := func(of string) bool { return domain == of || strings.HasSuffix(domain, "."+of) }
		reserved := within("kubernetes.io") || within("k8s.io") || within("liqo.io")
		if !reserved || domain == "topology.kubernetes.io" || key == corev1.LabelArchStable {
			shown[key] = value
		}
	}
}
