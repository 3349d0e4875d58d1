// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"slices"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capacitorset/liqo-broker/pkg/api/v1alpha1"
)

// decision is what a policy has decided for a consumer, and why.
type decision struct {
	Policy string `json:"policy"`
	v1alpha1.ConsumerDecision
}

// decisions answers with the decisions of all policies, in order of policy and consumer;
// with the parameter consumer, a cluster ID, with those for that consumer.
func (a *API) decisions(w http.ResponseWriter, r *http.Request) {
	if !a.cfg.Orchestrator {
		writeProblem(w, http.StatusNotFound, "decisions are not served: the broker does not run as orchestrator")
		return
	}
	if !a.authorized(w, r, right("list", "placementdecisions")) {
		return
	}
	consumer, err := parseDecisions(r.URL.RawQuery)
	if err != nil {
		writeProblem(w, http.StatusBadRequest, err.Error())
		return
	}
	found, err := a.decided(r.Context(), consumer)
	if err != nil {
		a.cfg.Log.Error(err, "Cannot read the placement decisions")
		writeProblem(w, http.StatusInternalServerError, "the placement decisions cannot be read")
		return
	}
	writeJSON(w, found)
}

// decided returns what the policies have decided for a consumer, or for all, in order.
func (a *API) decided(ctx context.Context, consumer string) ([]decision, error) {
	var policies v1alpha1.PlacementPolicyList
	if err := a.cfg.Client.List(ctx, &policies, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list placement policies: %w", err)
	}
	var decisions v1alpha1.PlacementDecisionList
	if err := a.cfg.Client.List(ctx, &decisions, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list placement decisions: %w", err)
	}
	named := make(map[string]*v1alpha1.PlacementPolicy, len(policies.Items))
	for i := range policies.Items {
		named[policies.Items[i].Name] = &policies.Items[i]
	}
	found := []decision{}
	for i := range decisions.Items {
		d := &decisions.Items[i]
		policy := named[d.Policy]
		if policy != nil && d.IsOf(policy, d.Consumer) && (consumer == "" || consumer == d.Consumer) {
			found = append(found, decision{d.Policy, d.ConsumerDecision})
		}
	}
	slices.SortFunc(found, func(a, b decision) int {
		return cmp.Or(cmp.Compare(a.Policy, b.Policy), cmp.Compare(a.Consumer, b.Consumer))
	})
	return found, nil
}

// parseDecisions returns the consumer that is asked for, or nothing for all.
func parseDecisions(rawQuery string) (string, error) {
	query, err := parseQuery(rawQuery)
	if err != nil || !query.Has("consumer") {
		return "", err
	}
	return one(query, "consumer")
}
