// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/capacitorset/liqo-broker/pkg/api/v1alpha1"
	"github.com/capacitorset/liqo-broker/pkg/controller/placementpolicy/whatif"
	v09 "github.com/capacitorset/liqo-broker/pkg/liqo/v09"
	"github.com/capacitorset/liqo-broker/pkg/shown/apiv1"
	"github.com/capacitorset/liqo-broker/pkg/shown/showntest"
	"github.com/capacitorset/liqo-broker/test/apiclient"
)

// TestTryPolicy tries policies over HTTP: for who may read policies, without writing one, and with the place of what is wrong.
func TestTryPolicy(t *testing.T) {
	s := serve(t, func(cfg *Config) {
		trier, err := whatif.New(v09.Line{}, cfg.Client, nil)
		if err != nil {
			t.Fatal(err)
		}
		cfg.TryPolicy = func(ctx context.Context, text string) (apiv1.PolicyTrial, error) {
			return trier.Try(ctx, time.Now(), text)
		}
	}, showntest.World()...)
	ctx := t.Context()
	policy := func(spec string) apiclient.TryPolicyJSONRequestBody {
		return apiclient.TryPolicyJSONRequestBody{
			Policy: "apiVersion: brokering.liqo.io/v1alpha1\nkind: PlacementPolicy\nmetadata: {name: near}\nspec:\n  " + spec + "\n",
		}
	}
	good := policy("appliesTo: {scope: Consumers, consumers: [" + string(sees.ID) + "]}")

	a := ok(s.as(t, "get/placementpolicies", nil).TryPolicyWithResponse(ctx, good))
	if a.JSON200 == nil {
		t.Fatalf("%d %s", a.StatusCode(), a.Body)
	}
	trial := a.JSON200
	if len(trial.Consumers) != 1 || trial.Policy != "near" || trial.Exists {
		t.Fatalf("%s", a.Body)
	}
	one := trial.Consumers[0]
	if one.Decision.Consumer.Id != string(sees.ID) || one.Decision.Policy != "near" || len(one.Decision.Providers) != 2 ||
		one.In == nil || (*one.In)[0].Id != string(milan.ID) || one.Today == nil || (*one.Today)[0] != "cheap" || *one.PodsOut != 0 {
		t.Errorf("%s", a.Body)
	}
	var kept v1alpha1.PlacementPolicyList
	if err := s.client.List(ctx, &kept); err != nil || len(kept.Items) != 1 {
		t.Errorf("there are %d policies, %v", len(kept.Items), err)
	}

	wrong := ok(s.as(t, "operator", nil).TryPolicyWithResponse(ctx, policy("appliesTo: {scope: Default}\n  filters: [kpj < 1]")))
	if problem := wrong.ApplicationproblemJSON422; problem == nil || problem.Detail == nil || problem.Errors == nil ||
		!strings.HasPrefix(*problem.Detail, "line 6, column 13: spec.filters[0]: ") || len(*problem.Errors) != 1 {
		t.Errorf("%d %s", wrong.StatusCode(), wrong.Body)
	}
	type body = apiclient.TryPolicyJSONRequestBody
	for name, tc := range map[string]struct {
		token string
		body  body
		code  int
	}{
		"Nobody":   {"", good, http.StatusUnauthorized},
		"MayNot":   {"list/placementpolicies", good, http.StatusForbidden},
		"Empty":    {"operator", body{}, http.StatusUnprocessableEntity},
		"Long":     {"operator", body{Policy: strings.Repeat("#", whatif.MaxText+1)}, http.StatusUnprocessableEntity},
		"TooLong":  {"operator", body{Policy: strings.Repeat("#", maxPolicyBody+1)}, http.StatusRequestEntityTooLarge},
		"AllOfIt":  {"operator", body{Policy: strings.Repeat("\n", whatif.MaxText)}, http.StatusUnprocessableEntity},
		"OnlyText": {"operator", body{Policy: "hello"}, http.StatusUnprocessableEntity},
	} {
		answer, err := s.as(t, tc.token, nil).TryPolicyWithResponse(ctx, tc.body)
		want(t, name, answer, err, tc.code)
	}
	named, err := s.as(t, "operator", nil).GetPolicyWithResponse(ctx, "try", nil)
	want(t, "A policy may be called so.", named, err, http.StatusNotFound)
	answer, err := s.consumer(t, sees.ID).TryPolicyWithResponse(ctx, good)
	want(t, "A consumer does not see policies.", answer, err, http.StatusForbidden)
	answer, err = serve(t, nil).as(t, "operator", nil).TryPolicyWithResponse(ctx, good)
	want(t, "Where nothing can be tried, that is said.", answer, err, http.StatusNotFound)
}
