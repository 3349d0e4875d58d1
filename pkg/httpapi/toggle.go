// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"fmt"
	"net/http"
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capacitorset/liqo-broker/pkg/api/v1alpha1"
)

// toggled is the answer to a toggle.
type toggled struct {
	ID          string `json:"id"`
	ClusterName string `json:"clusterName"`
	Enabled     bool   `json:"enabled"`
}

// toggle activates a provider, also one that is cordoned, or drains it.
func (a *API) toggle(w http.ResponseWriter, r *http.Request) {
	if !a.cfg.Orchestrator {
		writeProblem(w, http.StatusNotFound, "providers cannot be toggled: the broker does not run as orchestrator")
		return
	}
	if !sameSite(w, r) || !a.mayToggle(w, r) {
		return
	}
	id, enable, err := parseToggle(r.URL.RawQuery)
	if err != nil {
		writeProblem(w, http.StatusBadRequest, err.Error())
		return
	}
	p := &v1alpha1.Provider{}
	if err := a.cfg.Client.Get(r.Context(), client.ObjectKey{Name: id}, p); apierrors.IsNotFound(err) {
		writeProblem(w, http.StatusNotFound, fmt.Sprintf("no provider has the cluster ID %q", id))
		return
	} else if err != nil {
		a.cfg.Log.Error(err, "Cannot get a provider", "provider", id)
		writeProblem(w, http.StatusInternalServerError, "the provider cannot be read")
		return
	}
	wanted := v1alpha1.SchedulingDrained
	if enable {
		wanted = v1alpha1.SchedulingActive
	}
	if p.Spec.Scheduling != wanted {
		before := p.DeepCopy()
		p.Spec.Scheduling = wanted
		if err := a.cfg.Client.Patch(r.Context(), p, client.MergeFrom(before)); err != nil {
			a.cfg.Log.Error(err, "Cannot patch a provider", "provider", id)
			writeProblem(w, http.StatusInternalServerError, "the provider cannot be changed")
			return
		}
		a.cfg.Log.Info("Toggled a provider", "provider", id, "scheduling", wanted)
	}
	writeJSON(w, toggled{ID: id, ClusterName: p.Status.ClusterName, Enabled: enable})
}

// mayToggle answers the request if the caller may not toggle. Links are followed without
// thinking, so that a GET changes nothing unless it shows who asks.
func (a *API) mayToggle(w http.ResponseWriter, r *http.Request) bool {
	if !a.cfg.AnonymousToggle || !anonymous(r) {
		return a.authorized(w, r, right("update", "providers"))
	}
	if r.Method != http.MethodPost {
		w.Header().Set("Allow", http.MethodPost)
		writeProblem(w, http.StatusMethodNotAllowed, "without a token only POST is allowed here")
		return false
	}
	return true
}

// parseToggle returns the parameters of a toggle. Each must be given exactly
// once, and enable must be spelled as in the documentation.
func parseToggle(rawQuery string) (id string, enable bool, err error) {
	query, err := parseQuery(rawQuery)
	if err != nil {
		return "", false, err
	}
	if id, err = one(query, "id"); err != nil {
		return "", false, err
	}
	value, err := one(query, "enable")
	if err != nil {
		return "", false, err
	}
	enable = value == strconv.FormatBool(true)
	if !enable && value != strconv.FormatBool(false) {
		return "", false, fmt.Errorf("the parameter enable is %q: it must be true or false", value)
	}
	return id, enable, nil
}
