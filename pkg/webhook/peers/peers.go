// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

// Package peers refuses what a peer writes here that is not about itself.
//
// It is a validating admission webhook for the objects that Liqo exchanges with peers in
// their tenant namespaces, and believes: what an honest peer writes there, the line of
// Liqo's versions that runs says. It knows neither what the objects are for nor what becomes
// of them.
package peers

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
	"github.com/capacitorset/liqo-broker/pkg/liqo/line"
	"github.com/capacitorset/liqo-broker/pkg/liqo/peerwrite"
	"github.com/capacitorset/liqo-broker/pkg/snapshot"
)

// Path is where the webhook is served.
const Path = "/validate-peers"

// Handler answers the API server when somebody writes into a tenant namespace. It may be
// used concurrently.
type Handler struct {
	rules  line.PeerRules
	reader *snapshot.Reader
	direct client.Reader
	own    cluster.ID
}

var _ admission.Handler = (*Handler)(nil)

// New returns a Handler for the cluster with an ID, and the line of Liqo that the reader reads.
// It reads past the cache, with direct, namespaces of peers of which there is no ForeignCluster
// yet, and nodes that are not virtual.
func New(r *snapshot.Reader, direct client.Reader, own cluster.ID) *Handler {
	return &Handler{rules: r.Line().PeerRules(), reader: r, direct: direct, own: own}
}

// Handle refuses what a peer may not write, and what Liqo may not copy from a peer.
func (h *Handler) Handle(ctx context.Context, req admission.Request) admission.Response {
	write := peerwrite.Write{
		User: req.UserInfo.Username, Groups: req.UserInfo.Groups,
		Group: req.Resource.Group, Resource: req.Resource.Resource, Subresource: req.SubResource,
		Old: req.OldObject.Raw, New: req.Object.Raw,
	}
	if err := h.rules.CheckCopied(&write); err != nil {
		return admission.Denied(err.Error())
	}
	tenant, err := h.tenant(ctx, req.Namespace)
	if err != nil {
		return admission.Errored(http.StatusInternalServerError, err)
	}
	if tenant.ID == "" {
		return admission.Allowed("")
	}
	switch is, err := h.isPeer(ctx, &write, tenant.ID); {
	case err != nil:
		return admission.Errored(http.StatusInternalServerError, err)
	case !is:
		return admission.Allowed("")
	}
	if err := h.rules.Check(&write, tenant.ID, h.own); err != nil {
		return admission.Denied(err.Error())
	}
	if req.Operation != admissionv1.Create {
		return admission.Allowed("") // The name of a node does not change.
	}
	switch err := h.checkNode(ctx, &write, tenant); {
	case errors.Is(err, snapshot.ErrNodeTaken):
		return admission.Denied(err.Error())
	case err != nil:
		return admission.Errored(http.StatusInternalServerError, err)
	default:
		return admission.Allowed("")
	}
}

// tenant returns the cluster whose tenant namespace a namespace is; an empty one for none.
func (h *Handler) tenant(ctx context.Context, namespace string) (cluster.Identity, error) {
	id, err := h.reader.TenantOf(ctx, namespace)
	if err != nil {
		return cluster.Identity{}, err
	}
	if id == "" {
		var ns corev1.Namespace
		if err := h.direct.Get(ctx, client.ObjectKey{Name: namespace}, &ns); apierrors.IsNotFound(err) {
			return cluster.Identity{}, nil
		} else if err != nil {
			return cluster.Identity{}, fmt.Errorf("get namespace %s: %w", namespace, err)
		}
		id, _ = h.rules.TenantOf(&ns)
		return cluster.Identity{ID: id}, nil
	}
	peer, err := h.reader.Peer(ctx, id)
	if err != nil || peer == nil {
		return cluster.Identity{ID: id}, err
	}
	return peer.Identity, nil
}

// isPeer reports whether a user is a peer: the one whose tenant namespace it is, another
// one, or one that nobody knows. All others have their rights from people here, and not
// from Liqo.
func (h *Handler) isPeer(ctx context.Context, write *peerwrite.Write, tenant cluster.ID) (bool, error) {
	if h.rules.IsPeer(write, tenant) {
		return true, nil
	}
	peer, err := h.reader.Peer(ctx, cluster.ID(write.User))
	return peer != nil, err
}

// checkNode returns [snapshot.ErrNodeTaken] if a peer asks for a virtual node that has the
// name of another one.
func (h *Handler) checkNode(ctx context.Context, write *peerwrite.Write, peer cluster.Identity) error {
	name, err := h.rules.NodeName(write, peer)
	if err != nil || name == "" {
		return err
	}
	return h.reader.CheckNodeName(ctx, h.direct, peer.ID, name)
}
