// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package negotiation_test

import (
	"context"
	"errors"
	"testing"

	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
	"github.com/capacitorset/liqo-broker/pkg/trade/core/contract"
	"github.com/capacitorset/liqo-broker/pkg/trade/negotiation"
	"github.com/capacitorset/liqo-broker/pkg/trade/party"
)

// TestOwners sells for nobody's cluster but the buyer's.
func TestOwners(t *testing.T) {
	rules, err := negotiation.NewRules(nil, contract.Accept)
	if err != nil {
		t.Fatal(err)
	}
	broken := errors.New("broken")
	for name, tc := range map[string]struct {
		owns, known bool
		err         error
		want        contract.Verdict
	}{
		"Its": {true, true, nil, contract.Accept}, "Others": {false, true, nil, contract.Deny},
		"Unknown": {false, false, nil, contract.Deny}, "Broken": {false, false, broken, ""},
	} {
		t.Run(name, func(t *testing.T) {
			admission := negotiation.Owners{Admission: rules, Owns: func(_ context.Context, id party.ID, of cluster.ID) (bool, bool, error) {
				if id != "buyer" || of != "edge-id" {
					t.Errorf("asked for cluster %s of %s", of, id)
				}
				return tc.owns, tc.known, tc.err
			}}
			application := negotiation.Application{Buyer: "buyer", Terms: contract.Terms{Cluster: cluster.Identity{ID: "edge-id"}}}
			verdict, reason, err := admission.Admit(t.Context(), application)
			if verdict != tc.want || !errors.Is(err, tc.err) || (reason != "") != (tc.want == contract.Deny) {
				t.Errorf("%s, %q, %v; want %s", verdict, reason, err, tc.want)
			}
		})
	}
}
