// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"context"
	"fmt"
	"net/http"
	"strings"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capacitorset/liqo-broker/pkg/api/v1alpha1"
)

// Gate decides who may toggle providers.
type Gate interface {
	// Admit returns the name of the caller with a bearer token (empty if it showed
	// none), and whether it may update providers. An unknown caller has no name.
	Admit(ctx context.Context, token string) (user string, allowed bool, err error)
}

// authorized asks the gate, and answers the request if it says no.
func (a *API) authorized(w http.ResponseWriter, r *http.Request) bool {
	if a.cfg.Gate == nil {
		return true
	}
	user, allowed, err := a.cfg.Gate.Admit(r.Context(), bearer(r))
	switch {
	case err != nil:
		a.cfg.Log.Error(err, "Cannot authorize a caller")
		writeProblem(w, http.StatusInternalServerError, "the caller's rights cannot be checked")
	case user == "":
		w.Header().Set("WWW-Authenticate", "Bearer")
		writeProblem(w, http.StatusUnauthorized, "a bearer token of the broker's cluster is needed")
	case !allowed:
		writeProblem(w, http.StatusForbidden, fmt.Sprintf("%s may not update providers.%s", user, v1alpha1.Group))
	}
	return err == nil && allowed
}

func bearer(r *http.Request) string {
	scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	if !strings.EqualFold(scheme, "Bearer") {
		return ""
	}
	return strings.TrimSpace(token)
}

// KubernetesGate admits the callers that the broker's cluster allows to update
// Providers.
type KubernetesGate struct {
	Client client.Client
}

var _ Gate = KubernetesGate{}

// Admit asks the API server by TokenReview and SubjectAccessReview.
func (g KubernetesGate) Admit(ctx context.Context, token string) (string, bool, error) {
	if token == "" {
		return "", false, nil
	}
	who := &authenticationv1.TokenReview{Spec: authenticationv1.TokenReviewSpec{Token: token}}
	if err := g.Client.Create(ctx, who); err != nil {
		return "", false, fmt.Errorf("review a token: %w", err)
	}
	if !who.Status.Authenticated {
		return "", false, nil
	}
	user := who.Status.User
	extra := make(map[string]authorizationv1.ExtraValue, len(user.Extra))
	for key, values := range user.Extra {
		extra[key] = authorizationv1.ExtraValue(values)
	}
	may := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		User: user.Username, UID: user.UID, Groups: user.Groups, Extra: extra,
		ResourceAttributes: &authorizationv1.ResourceAttributes{
			Group: v1alpha1.Group, Resource: "providers", Verb: "update",
		},
	}}
	if err := g.Client.Create(ctx, may); err != nil {
		return "", false, fmt.Errorf("review the access of %s: %w", user.Username, err)
	}
	return user.Username, may.Status.Allowed, nil
}
