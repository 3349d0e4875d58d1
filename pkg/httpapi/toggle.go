// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"

	"github.com/danielgtaylor/huma/v2"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
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
	wanted := v1alpha1.SchedulingDrained
	if enable {
		wanted = v1alpha1.SchedulingActive
	}
	p, err := a.cfg.schedule(r.Context(), id, wanted)
	var told huma.StatusError
	if errors.As(err, &told) {
		writeProblem(w, told.GetStatus(), told.Error())
		return
	}
	writeJSON(w, toggled{ID: id, ClusterName: p.Status.ClusterName, Enabled: enable})
}

// schedule says what people want of a provider. The error is a refusal.
func (c *Config) schedule(ctx context.Context, id string, wanted v1alpha1.Scheduling) (*v1alpha1.Provider, error) {
	p := &v1alpha1.Provider{}
	if err := c.Client.Get(ctx, client.ObjectKey{Name: id}, p); apierrors.IsNotFound(err) {
		return nil, refusal(http.StatusNotFound, fmt.Sprintf("no provider has the cluster ID %q", id))
	} else if err != nil {
		c.Log.Error(err, "Cannot get a provider", "provider", id)
		return nil, refusal(http.StatusInternalServerError, "the provider cannot be read")
	}
	// What the API server has counts, which the cache may be behind of.
	patch := client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"spec":{"scheduling":%q}}`, wanted))
	p = p.DeepCopy()
	if err := c.Client.Patch(ctx, p, patch); err != nil {
		c.Log.Error(err, "Cannot patch a provider", "provider", id)
		return nil, refusal(http.StatusInternalServerError, "the provider cannot be changed")
	}
	c.Log.Info("Changed the scheduling of a provider", "provider", id, "scheduling", wanted)
	return p, nil
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
