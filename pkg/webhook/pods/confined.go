// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package pods

import (
	"context"
	"fmt"
	"net/http"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/capacitorset/liqo-broker/pkg/liqo"
)

// ConfinePath is where [Confinement] is served.
const ConfinePath = "/confine-pods"

// Confinement refuses a consumer's pod that could run on the broker's own nodes, after all that changes pods has changed it. It is a
// validating admission webhook, and may be used concurrently.
type Confinement struct {
	decoder admission.Decoder
}

var _ admission.Handler = (*Confinement)(nil)

// NewConfinement returns a Confinement.
func NewConfinement(scheme *runtime.Scheme) *Confinement {
	return &Confinement{decoder: admission.NewDecoder(scheme)}
}

// Handle answers the API server when a consumer's pod is made.
func (c *Confinement) Handle(_ context.Context, req admission.Request) admission.Response {
	var pod corev1.Pod
	if err := c.decoder.Decode(req, &pod); err != nil {
		return admission.Errored(http.StatusBadRequest, err)
	}
	if !liqo.Confined(&pod) {
		return admission.Denied(fmt.Sprintf("the broker does not take the pod: its node affinity does not require %s=%s", liqo.LabelNodeType,
			liqo.NodeTypeVirtual))
	}
	return admission.Allowed("")
}
