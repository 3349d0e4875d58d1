// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

// Package offerlabels gives the consumers' nodes of single providers the labels of
// these providers, so that pods can choose by region or architecture.
//
// It is an admission webhook for the offers that Liqo writes, because Liqo's resource
// plugin has no labels, and Liqo overwrites what others write into its offers. It
// knows neither what is offered nor who is offered it.
package offerlabels

import (
	"context"
	"encoding/json"
	"net/http"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
	"github.com/capacitorset/liqo-broker/pkg/core/nodename"
	"github.com/capacitorset/liqo-broker/pkg/liqo"
	v09 "github.com/capacitorset/liqo-broker/pkg/liqo/v09"
	"github.com/capacitorset/liqo-broker/pkg/snapshot"
)

// Path is where the webhook is served.
const Path = "/label-offers"

// Handler answers the API server when Liqo writes an offer to a consumer.
type Handler struct {
	reader  *snapshot.Reader
	writer  string
	decoder admission.Decoder
}

var _ admission.Handler = (*Handler)(nil)

// New returns a Handler for the broker of a reader. The writer is the name of the user
// that writes offers: nobody else is to read in one what the broker knows of a provider.
func New(scheme *runtime.Scheme, r *snapshot.Reader, writer string) *Handler {
	return &Handler{reader: r, writer: writer, decoder: admission.NewDecoder(scheme)}
}

// Handle writes the labels of the provider into the offer of its node. It never
// refuses an offer: one without labels is better than none.
func (h *Handler) Handle(ctx context.Context, req admission.Request) admission.Response {
	if req.UserInfo.Username != h.writer {
		return admission.Allowed("") // Nor is it read: a peer can write quantities that take minutes to read.
	}
	var o v09.ResourceOffer
	if err := h.decoder.Decode(req, &o); err != nil {
		return admission.Errored(http.StatusBadRequest, err)
	}
	consumer := v09.OfferedTo(&o)
	if _, is := nodename.MarkOf(v09.NamedNode(&o)); !is || consumer == "" {
		return admission.Allowed("")
	}
	log := ctrl.LoggerFrom(ctx).WithValues("offer", req.Name, "namespace", req.Namespace)
	switch tenant, err := h.reader.TenantOf(ctx, req.Namespace); {
	case err != nil:
		log.Error(err, "Cannot find the cluster of a tenant namespace")
		return admission.Allowed("")
	case tenant != consumer:
		return admission.Allowed("")
	}
	labels, err := h.labels(ctx, v09.NamedNode(&o))
	if err != nil {
		log.Error(err, "Cannot find the labels of a provider")
		return admission.Allowed("")
	}
	v09.AddNodeLabels(&o, labels)
	labelled, err := json.Marshal(&o)
	if err != nil {
		return admission.Errored(http.StatusInternalServerError, err)
	}
	return admission.PatchResponseFromRaw(req.Object.Raw, labelled)
}

// labels returns what a consumer may see of the labels of a node's provider: those
// that Liqo shows on its virtual nodes, and those that people put on the Provider,
// which go first. Every node is virtual from the beginning, also before Liqo has made
// it: a namespace whose selector does not match it is not offloaded any more.
func (h *Handler) labels(ctx context.Context, node string) (map[string]string, error) {
	labels := map[string]string{liqo.LabelNodeType: liqo.NodeTypeVirtual}
	provider, err := h.reader.ProviderOf(ctx, node)
	if err != nil || provider == nil {
		return labels, err
	}
	peer, err := h.reader.Peer(ctx, cluster.ID(provider.Name))
	if err != nil {
		return nil, err
	}
	nodes, err := h.reader.OfferedNodesOf(ctx, cluster.ID(provider.Name), peer)
	if err != nil {
		return nil, err
	}
	all := make([]*corev1.Node, len(nodes))
	for i := range nodes {
		all[i] = &nodes[i]
	}
	show(labels, liqo.CommonLabels(all))
	show(labels, provider.Labels)
	if len(validation.IsValidLabelValue(provider.Name)) == 0 {
		labels[liqo.LabelProvider] = provider.Name
	}
	return labels, nil
}

// show copies the labels that say what a provider is. Those of Kubernetes and of Liqo
// say what the node is: the consumer's node has its own.
func show(shown, labels map[string]string) {
	for key, value := range labels {
		if !liqo.IsReserved(key) {
			shown[key] = value
		}
	}
}
