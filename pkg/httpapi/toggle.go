// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capacitorset/liqo-broker/pkg/api/v1alpha1"
	"github.com/capacitorset/liqo-broker/pkg/serving/rest"
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
		rest.Write(w, rest.Refusal(http.StatusNotFound, messageNoToggle))
		return
	}
	if !sameSite(w, r) {
		return
	}
	by, may := a.mayToggle(w, r)
	if !may {
		return
	}
	id, enable, err := parseToggle(r.URL.RawQuery)
	if err != nil {
		rest.Write(w, rest.Refusal(http.StatusBadRequest, err.Error()))
		return
	}
	wanted := v1alpha1.SchedulingDrained
	if enable {
		wanted = v1alpha1.SchedulingActive
	}
	p, err := a.cfg.schedule(r.Context(), by, id, wanted)
	if err != nil {
		a.rest.Refuse(w, r, err)
		return
	}
	writeJSON(w, toggled{ID: id, ClusterName: p.Status.ClusterName, Enabled: enable})
}

// Rescheduled is what somebody has had the API change.
type Rescheduled struct {
	// By is the name of the user; empty for somebody without a token.
	By string
	// Object is the Provider or Consumer, as it is now.
	Object client.Object
	// From and To are what people wanted of it, and want.
	From, To string
}

// schedule says what people want of a provider. The error is a refusal, or why it has failed.
func (c *Config) schedule(ctx context.Context, by, id string, wanted v1alpha1.Scheduling) (*v1alpha1.Provider, error) {
	p := &v1alpha1.Provider{}
	is := func() string { return string(p.EffectiveScheduling()) }
	return p, c.setScheduling(ctx, by, id, p, is, "provider", messageNoProvider, string(wanted))
}

// scheduleConsumer says what people want of a consumer. The error is a refusal, or why it has failed.
func (c *Config) scheduleConsumer(ctx context.Context, by, id string, wanted v1alpha1.ConsumerScheduling) (*v1alpha1.Consumer, error) {
	of := &v1alpha1.Consumer{}
	is := func() string { return string(cmp.Or(of.Spec.Scheduling, v1alpha1.ConsumerActive)) }
	return of, c.setScheduling(ctx, by, id, of, is, "consumer", messageNoSuchConsumer, string(wanted))
}

// setScheduling sets spec.scheduling of the object of a cluster, which it reads into o and which is returned by is, and refuses where
// there is none.
func (c *Config) setScheduling(ctx context.Context, by, id string, o client.Object, is func() string, kind, none, wanted string) error {
	if err := c.Client.Get(ctx, client.ObjectKey{Name: id}, o); apierrors.IsNotFound(err) {
		return rest.Refusal(http.StatusNotFound, fmt.Sprintf(none, id))
	} else if err != nil {
		return fmt.Errorf("get %s %s: %w", kind, id, err)
	}
	// What the API server has counts, which the cache may be behind of.
	from, patch := is(), client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"spec":{"scheduling":%q}}`, wanted))
	if err := c.Client.Patch(ctx, o, patch); err != nil {
		return fmt.Errorf("change the scheduling of %s %s: %w", kind, id, err)
	}
	c.Log.Info("Changed the scheduling of a cluster", "kind", kind, "cluster", id, "scheduling", wanted, "user", by)
	if c.Changed != nil && from != wanted {
		c.Changed(Rescheduled{By: by, Object: o, From: from, To: wanted})
	}
	return nil
}

// mayToggle answers the request if the caller may not toggle, and returns the name of one who may and shows it. Links are followed
// without thinking, so that a GET changes nothing unless it shows who asks.
func (a *API) mayToggle(w http.ResponseWriter, r *http.Request) (name string, may bool) {
	if !a.cfg.AnonymousToggle || !anonymous(r) {
		return a.identified(w, r, right("update", "providers"))
	}
	if r.Method != http.MethodPost {
		rest.Write(w, rest.Refusal(http.StatusMethodNotAllowed, messageOnlyPost, "Allow", http.MethodPost))
		return "", false
	}
	return "", true
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

// maxQuery bounds the parameters of a request, in bytes.
const maxQuery = 1 << 10

// parseQuery reads parameters that are not too long.
func parseQuery(rawQuery string) (url.Values, error) {
	if len(rawQuery) > maxQuery {
		return nil, fmt.Errorf("the parameters are longer than %d bytes", maxQuery)
	}
	query, err := url.ParseQuery(rawQuery)
	if err != nil {
		return nil, fmt.Errorf("the parameters cannot be read: %w", err)
	}
	return query, nil
}

// one returns a parameter that must be given exactly once.
func one(query url.Values, name string) (string, error) {
	switch values := query[name]; {
	case len(values) > 1:
		return "", fmt.Errorf("the parameter %s is given %d times", name, len(values))
	case len(values) == 0 || values[0] == "":
		return "", fmt.Errorf("the parameter %s is missing", name)
	default:
		return values[0], nil
	}
}
