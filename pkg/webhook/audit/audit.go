// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

// Package audit writes down who changes what people decide: an Event about the object, with the name of the user and the fields of its
// spec that differ. When a provider is closed, or a contract ends or is suspended, it warns of what that means.
//
// It is a validating admission webhook that refuses nothing. It does not know what the kinds and their fields are for, but those that it
// warns of, nor whether what was asked for has happened: others may refuse it afterwards.
package audit

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"runtime/debug"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/capacitorset/liqo-broker/pkg/api/v1alpha1"
	"github.com/capacitorset/liqo-broker/pkg/excerpt"
	"github.com/capacitorset/liqo-broker/pkg/sheet"
)

// Path is where the webhook is served.
const Path = "/record-changes"

const (
	// previewTimeout bounds what is found out for a warning: the API server waits for it.
	previewTimeout = time.Second
	// maxWarning bounds a warning, in bytes; the API server may cut longer ones.
	maxWarning = 256
)

// Preview says in a sentence or two what it means that a request is done; nothing if there is nothing to say. It is called concurrently,
// while the API server waits, and must not change the request.
type Preview func(ctx context.Context, req *admission.Request) (string, error)

// Handler answers the API server when somebody writes an object. It may be used concurrently.
type Handler struct {
	log     *Log
	own     string
	preview Preview
}

var _ admission.Handler = (*Handler)(nil)

// New returns a Handler that tells a Log. What the user own changes is not told: what it decides it says otherwise. If preview is nil,
// nobody is warned.
func New(log *Log, own string, preview Preview) *Handler {
	return &Handler{log: log, own: own, preview: preview}
}

// object is what of any object is read.
type object struct {
	Metadata struct {
		Name              string       `json:"name"`
		Namespace         string       `json:"namespace"`
		UID               types.UID    `json:"uid"`
		Generation        int64        `json:"generation"`
		DeletionTimestamp *metav1.Time `json:"deletionTimestamp"`
	} `json:"metadata"`
	Spec json.RawMessage `json:"spec"`
}

// Handle admits everything, and tells who has changed what, unless it is only tried.
func (h *Handler) Handle(ctx context.Context, req admission.Request) (answer admission.Response) {
	answer = admission.Allowed("")
	defer func() {
		if failed := recover(); failed != nil {
			ctrl.LoggerFrom(ctx).Error(fmt.Errorf("%v", failed), "Cannot tell who has changed an object", "object", req.Name,
				"stack", string(debug.Stack()))
		}
	}()
	if req.UserInfo.Username == h.own || req.SubResource != "" {
		return answer
	}
	change, err := changeOf(&req)
	if err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "Cannot tell who has changed an object", "object", req.Name)
		return answer
	}
	if change == nil {
		return answer
	}
	if req.DryRun == nil || !*req.DryRun {
		h.log.Tell(*change)
	}
	if warning := h.warn(ctx, &req); warning != "" {
		answer = answer.WithWarnings(excerpt.Of(sheet.Plain(warning), maxWarning))
	}
	return answer
}

// changeOf returns what a request changes of what people decide; nil if that is nothing.
func changeOf(req *admission.Request) (*Change, error) {
	// What it was, and what it is to be.
	var before, after object
	for _, each := range []struct {
		raw  []byte
		into *object
	}{{req.OldObject.Raw, &before}, {req.Object.Raw, &after}} {
		if len(each.raw) == 0 {
			continue
		}
		if err := json.Unmarshal(each.raw, each.into); err != nil {
			return nil, fmt.Errorf("read %s %s: %w", req.Kind.Kind, req.Name, err)
		}
	}
	// What of that people notice.
	change := &Change{
		User: req.UserInfo.Username, generation: before.Metadata.Generation,
		was: sha256.Sum256(before.Spec), is: sha256.Sum256(after.Spec),
	}
	of := &after
	switch req.Operation { //nolint:exhaustive // Nothing else is asked about.
	case admissionv1.Create:
		change.Deed = Created
		change.Fields, change.More = differences(nil, after.Spec)
	case admissionv1.Update:
		change.Deed = Changed
		if change.Fields, change.More = differences(before.Spec, after.Spec); len(change.Fields) == 0 {
			return nil, nil //nolint:nilnil // That is nothing.
		}
	case admissionv1.Delete:
		if before.Metadata.DeletionTimestamp != nil {
			return nil, nil //nolint:nilnil // It was told the first time.
		}
		change.Deed, of = Deleted, &before
	default:
		return nil, nil //nolint:nilnil // That is nothing.
	}
	change.Object = corev1.ObjectReference{
		APIVersion: metav1.GroupVersion{Group: req.Kind.Group, Version: req.Kind.Version}.String(), Kind: req.Kind.Kind,
		Namespace: of.Metadata.Namespace, Name: of.Metadata.Name, UID: of.Metadata.UID,
	}
	return change, nil
}

// warn returns what is to be said to who changes something; nothing if that cannot be found out.
func (h *Handler) warn(ctx context.Context, req *admission.Request) string {
	if h.preview == nil {
		return ""
	}
	ctx, cancel := context.WithTimeout(ctx, previewTimeout)
	defer cancel()
	warning, err := h.preview(ctx, req)
	if err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "Cannot say what a change means", "kind", req.Kind.Kind, "object", req.Name)
		return ""
	}
	return warning
}

// Closing returns a Preview that asks say what it means that a provider becomes as it is given, when one that was open is closed, or one
// that was cordoned is drained. Say must not change the provider.
func Closing(say func(ctx context.Context, provider *v1alpha1.Provider) (string, error)) Preview {
	return func(ctx context.Context, req *admission.Request) (string, error) {
		if req.Operation != admissionv1.Update || req.Kind.Group != v1alpha1.Group || req.Kind.Kind != providerKind {
			return "", nil
		}
		var before, after v1alpha1.Provider
		if json.Unmarshal(req.OldObject.Raw, &before) != nil || json.Unmarshal(req.Object.Raw, &after) != nil {
			return "", nil //nolint:nilerr // Others say what of it cannot be read.
		}
		if to := after.EffectiveScheduling(); to == before.EffectiveScheduling() || to == v1alpha1.SchedulingActive {
			return "", nil
		}
		return say(ctx, &after)
	}
}

const providerKind = "Provider"
