// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"errors"
	"fmt"
	"net/http"

	"github.com/capacitorset/liqo-broker/pkg/api/v1alpha1"
	"github.com/capacitorset/liqo-broker/pkg/serving/delegatedauth"
)

// right returns what a caller must be allowed to do with the objects of the broker.
func right(verb, resource string) delegatedauth.Right {
	return delegatedauth.Right{Verb: verb, Group: v1alpha1.Group, Resource: resource}
}

// anonymous reports whether a caller shows no token.
func anonymous(r *http.Request) bool { return r.Header.Get("Authorization") == "" }

// authorized finds out who a caller is and asks the broker's cluster for its rights. It
// answers the request if the caller lacks the right.
func (a *API) authorized(w http.ResponseWriter, r *http.Request, needed delegatedauth.Right) bool {
	caller, err := a.cfg.Reviewer.Review(r.Context(), delegatedauth.Bearer(r), needed)
	switch {
	case errors.Is(err, delegatedauth.ErrBusy):
		w.Header().Set("Retry-After", "1")
		writeProblem(w, http.StatusTooManyRequests, "too many callers: try again in a second")
	case err != nil:
		a.cfg.Log.Error(err, "Cannot authorize a caller")
		writeProblem(w, http.StatusInternalServerError, "the caller's rights cannot be checked")
	case caller.Name == "":
		w.Header().Set("WWW-Authenticate", "Bearer")
		writeProblem(w, http.StatusUnauthorized, "a bearer token of the broker's cluster is required, for the audience "+Audience)
	case !caller.Allowed:
		writeProblem(w, http.StatusForbidden, fmt.Sprintf("%s may not %s", caller.Name, needed))
	default:
		return true
	}
	return false
}

// sameSite answers the request if a web page of another site makes a browser send it:
// whoever is shown that page has not asked for it.
func sameSite(w http.ResponseWriter, r *http.Request) bool {
	changing := r.WithContext(r.Context())
	changing.Method = http.MethodPost // A GET of /api/toggle changes something too.
	if http.NewCrossOriginProtection().Check(changing) != nil {
		writeProblem(w, http.StatusForbidden, "cross-origin requests may not toggle providers")
		return false
	}
	return true
}
