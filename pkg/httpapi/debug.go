// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"context"
	"fmt"
	"net/http"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/capacitorset/liqo-broker/pkg/api/v1alpha1"
	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
	"github.com/capacitorset/liqo-broker/pkg/core/explain"
	"github.com/capacitorset/liqo-broker/pkg/serving/delegatedauth"
	"github.com/capacitorset/liqo-broker/pkg/serving/rest"
	"github.com/capacitorset/liqo-broker/pkg/shown/apiv1"
)

// Explainer explains the plans for namespaces, and what a drain would lead to. It is called concurrently, and changes nothing.
type Explainer interface {
	// PreviewDrain returns what would become of the pods on a provider that is scheduled in some way; ok is false if there is no such
	// provider.
	PreviewDrain(ctx context.Context, provider cluster.ID, as v1alpha1.Scheduling) (preview apiv1.DrainPreview, ok bool, err error)
	// Explain explains a namespace; ok is false if there is no plan for one of that name.
	Explain(ctx context.Context, namespace string) (explained explain.Namespace, ok bool, err error)
}

// planOf returns what a caller must be allowed to do who asks for the plan of a namespace. There
// are no objects of that resource: it is there for the right, which a Role may give for one namespace.
func planOf(namespace string) delegatedauth.Right {
	needed := right("get", "plans")
	needed.Namespace = namespace
	return needed
}

// namespace answers with what is known of a consumer's namespace and planned for it.
func (a *API) namespace(w http.ResponseWriter, r *http.Request) {
	if a.cfg.Explainer == nil {
		rest.Write(w, rest.Refusal(http.StatusNotFound, messageNoPlans))
		return
	}
	name := r.PathValue("name")
	if wrong := validation.IsDNS1123Label(name); len(wrong) > 0 {
		rest.Write(w, rest.Refusal(http.StatusBadRequest, "not the name of a namespace: "+strings.Join(wrong, "; ")))
		return
	}
	if !a.authorized(w, r, planOf(name)) {
		return
	}
	explained, ok, err := a.cfg.Explainer.Explain(r.Context(), name)
	switch {
	case err != nil:
		a.rest.Refuse(w, r, fmt.Errorf("explain the plan for namespace %s: %w", name, err))
	case !ok:
		rest.Write(w, rest.Refusal(http.StatusNotFound, fmt.Sprintf(messageNoNamespace, name)))
	default:
		writeJSON(w, explained)
	}
}
