// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

// Package class has the broker answer what consumers ask of a cluster with Liqo 1.x, and not Liqo itself.
//
// It is a mutating admission webhook for the ResourceSlices that consumers put here. It refuses none of them, and knows nothing of the
// answer.
package class

import (
	"context"
	"net/http"

	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	v1 "github.com/capacitorset/liqo-broker/pkg/liqo/v1"
)

// Path is where the webhook is served.
const Path = "/class-slices"

// Handler answers the API server when a ResourceSlice is written. It may be used concurrently.
type Handler struct{}

var _ admission.Handler = Handler{}

// Handle gives a ResourceSlice the class that [v1.Reclass] says, and changes nothing else.
func (Handler) Handle(_ context.Context, req admission.Request) admission.Response {
	reclassed, err := v1.Reclass(req.Object.Raw)
	switch {
	case err != nil:
		return admission.Errored(http.StatusBadRequest, err)
	case reclassed == nil:
		return admission.Allowed("")
	default:
		return admission.PatchResponseFromRaw(req.Object.Raw, reclassed)
	}
}
