// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"cmp"
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
		writeProblem(w, http.StatusNotFound, "there are no decisions: the broker does not run as orchestrator")
		return
	}
	if !a.authorized(w, r, right("list", "placementpolicies")) {
		return
	}
	consumer, err := parseDecisions(r.URL.RawQuery)
	if err != nil {
		writeProblem(w, http.StatusBadRequest, err.Error())
		return
	}
	var policies v1alpha1.PlacementPolicyList
	if err := a.cfg.Client.List(r.Context(), &policies, client.UnsafeDisableDeepCopy); err != nil {
		a.cfg.Log.Error(err, "Cannot list the placement policies")
		writeProblem(w, http.StatusInternalServerError, "the placement policies cannot be read")
		return
	}
	found := []decision{}
	for i := range policies.Items {
		for _, d := range policies.Items[i].Status.PerConsumer() {
			if consumer == "" || consumer == d.Consumer {
				found = append(found, decision{policies.Items[i].Name, d})
			}
		}
	}
	slices.SortFunc(found, func(a, b decision) int {
		return cmp.Or(cmp.Compare(a.Policy, b.Policy), cmp.Compare(a.Consumer, b.Consumer))
	})
	writeJSON(w, found)
}

// parseDecisions returns the consumer that is asked for, or nothing for all.
func parseDecisions(rawQuery string) (string, error) {
	query, err := parseQuery(rawQuery)
	if err != nil || !query.Has("consumer") {
		return "", err
	}
	return one(query, "consumer")
}
