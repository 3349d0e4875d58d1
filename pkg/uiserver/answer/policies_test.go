// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package answer

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/capacitorset/liqo-broker/pkg/api/v1alpha1"
	"github.com/capacitorset/liqo-broker/pkg/shown/apiv1"
)

// written are policies whose texts are their names, or wrong.
type written struct{ err error }

func (written) Try(_ context.Context, text string) (apiv1.PolicyTrial, error) {
	if text == "wrong" {
		return apiv1.PolicyTrial{}, apiv1.FaultsError{{Line: 2, Column: 3, Field: "spec", Says: "no\x1b"}, {Says: "never"}}
	}
	return apiv1.PolicyTrial{Policy: text, Consumers: []apiv1.TriedDecision{}}, nil
}

func (w written) Object(text string) (map[string]any, error) {
	if text == "wrong" {
		_, err := w.Try(context.Background(), text)
		return nil, err
	}
	return map[string]any{"metadata": map[string]any{"name": text}}, w.err
}

func (written) Manifest(p *v1alpha1.PlacementPolicy) ([]byte, error) {
	return []byte("name: " + p.Name), nil
}

// TestPolicies tries and applies texts: first it is looked at what is asked, and nothing is applied but that.
func TestPolicies(t *testing.T) {
	text := func(policy string) string { return `{"policy":"` + policy + `"}` }
	for name, tc := range map[string]struct {
		reason, method, path, body string
		readOnly                   bool
		status                     int
		says                       string
		patch                      string // What is sent to the API server, and how; empty for nothing.
	}{
		"Try": {"It is tried.", "POST", "/try", text("near"), false, 200, `"policy":"near"`, ""},
		"TryWrong": {
			"Each fault has its place.", "POST", "/try", text("wrong"), false, 422,
			`[{"message":"line 2, column 3: spec: no?"},{"message":"never"}]`, "",
		},
		"TryRead": {"That changes nothing.", "POST", "/try", text("near"), true, 200, "near", ""},
		"TryLong": {"What is too long is not read.", "POST", "/try", text(strings.Repeat("a", maxPolicy)), false, 400, "too large", ""},
		"Dry": {
			"A dry run comes first.", "PUT", "/near?dryRun=All", text("near"), false, 200, `"name":"near"`,
			`near {"metadata":{"name":"near"}} [All] kubectl-liqo-broker-ui true`,
		},
		"Apply": {
			"Then it is applied.", "PUT", "/near", text("near"), false, 200, `"name":"near"`,
			`near {"metadata":{"name":"near"}} [] kubectl-liqo-broker-ui true`,
		},
		"OtherDry":  {"There is one kind of dry run.", "PUT", "/near?dryRun=Most", text("near"), false, 422, "dryRun is All", ""},
		"ReadOnly":  {"Nothing is changed if people say so.", "PUT", "/near", text("near"), true, 403, "--read-only", ""},
		"OtherName": {"The address and the text mean one policy.", "PUT", "/far", text("near"), false, 422, "far", ""},
		"Wrong":     {"What is wrong is not applied.", "PUT", "/wrong", text("wrong"), false, 422, "line 2", ""},
		"NoJSON":    {"It is JSON.", "PUT", "/near", "near", false, 400, "no JSON", ""},
		"Manifest":  {"A text comes back.", "GET", "/had/manifest", "", false, 200, `{"policy":"name: had"}`, ""},
		"NoText":    {"There must be such a policy.", "GET", "/near/manifest", "", false, 404, "near", ""},
	} {
		t.Run(name, func(t *testing.T) {
			scheme := runtime.NewScheme()
			if err := v1alpha1.AddToScheme(scheme); err != nil {
				t.Fatal(err)
			}
			had := &v1alpha1.PlacementPolicy{}
			had.Name = "had"
			sent := ""
			c := interceptor.NewClient(fake.NewClientBuilder().WithScheme(scheme).WithObjects(had).Build(), interceptor.Funcs{
				Patch: func(ctx context.Context, _ client.WithWatch, o client.Object, patch client.Patch, options ...client.PatchOption) error {
					data, err := patch.Data(o)
					all := (&client.PatchOptions{}).ApplyOptions(options)
					dry, _ := json.Marshal(all.DryRun)
					as := strings.NewReplacer(`"`, "", "null", "[]").Replace(string(dry))
					sent = strings.Join([]string{o.GetName(), string(data), as, all.FieldManager}, " ")
					if *all.Force && patch.Type() == "application/apply-patch+yaml" {
						sent += " true"
					}
					warnings{}.HandleWarningHeaderWithContext(ctx, 299, "-", "12 pods would move")
					return err
				},
			})
			a := answersOf(Config{Policies: written{}, ReadOnly: tc.readOnly}, c)
			w := asked(t, a, tc.method, "/api/v1/policies"+tc.path, tc.body)
			if w.Code != tc.status || !strings.Contains(w.Body.String(), tc.says) || sent != tc.patch {
				t.Errorf("%s\nit answers %d: %s\nand sends %q", tc.reason, w.Code, w.Body, sent)
			}
			if warned := w.Header().Get("Warning") == `299 - "12 pods would move"`; warned != (tc.patch != "") {
				t.Errorf("it warns %q", w.Header()["Warning"])
			}
		})
	}
	broken := answersOf(Config{Policies: written{errors.New("broken")}}, fake.NewFakeClient())
	w := asked(t, broken, http.MethodPut, "/api/v1/policies/near", text("near"))
	if w.Code != http.StatusServiceUnavailable || !strings.Contains(w.Body.String(), "broken") {
		t.Errorf("it answers %d: %s", w.Code, w.Body)
	}
}
