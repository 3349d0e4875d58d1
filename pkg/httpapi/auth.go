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

	"github.com/capacitorset/liqo-broker/pkg/api/v1alpha1"
)

// right is what a caller must be allowed to do with the objects of the broker.
type right struct{ verb, resource string }

// authorized finds out who a caller is and asks the broker's cluster for its rights. It
// answers the request if the caller lacks the right.
func (a *API) authorized(w http.ResponseWriter, r *http.Request, needed right) bool {
	user, allowed, err := a.admit(r.Context(), bearer(r), needed)
	switch {
	case err != nil:
		a.cfg.Log.Error(err, "Cannot authorize a caller")
		writeProblem(w, http.StatusInternalServerError, "the caller's rights cannot be checked")
	case user == "":
		w.Header().Set("WWW-Authenticate", "Bearer")
		writeProblem(w, http.StatusUnauthorized, "a bearer token of the broker's cluster is needed")
	case !allowed:
		writeProblem(w, http.StatusForbidden, fmt.Sprintf("%s may not %s %s.%s", user, needed.verb, needed.resource, v1alpha1.Group))
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

// admit returns the name of the caller with a bearer token, and whether it has a right,
// by TokenReview and SubjectAccessReview. Without a token that the cluster knows the
// caller has no name.
func (a *API) admit(ctx context.Context, token string, needed right) (user string, allowed bool, err error) {
	if token == "" {
		return "", false, nil
	}
	who := &authenticationv1.TokenReview{Spec: authenticationv1.TokenReviewSpec{Token: token}}
	if err := a.cfg.Client.Create(ctx, who); err != nil {
		return "", false, fmt.Errorf("review a token: %w", err)
	}
	if !who.Status.Authenticated {
		return "", false, nil
	}
	caller := who.Status.User
	extra := make(map[string]authorizationv1.ExtraValue, len(caller.Extra))
	for key, values := range caller.Extra {
		extra[key] = authorizationv1.ExtraValue(values)
	}
	may := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		User: caller.Username, UID: caller.UID, Groups: caller.Groups, Extra: extra,
		ResourceAttributes: &authorizationv1.ResourceAttributes{
			Group: v1alpha1.Group, Resource: needed.resource, Verb: needed.verb,
		},
	}}
	if err := a.cfg.Client.Create(ctx, may); err != nil {
		return "", false, fmt.Errorf("review the access of %s: %w", caller.Username, err)
	}
	return caller.Username, may.Status.Allowed, nil
}
