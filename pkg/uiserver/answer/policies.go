// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package answer

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capacitorset/liqo-broker/pkg/api/v1alpha1"
	"github.com/capacitorset/liqo-broker/pkg/sheet"
	"github.com/capacitorset/liqo-broker/pkg/shown/apiv1"
	"github.com/capacitorset/liqo-broker/pkg/uiserver"
)

// owner is the field manager of what the page applies.
const owner = "kubectl-liqo-broker-ui"

// maxPolicy bounds what is read of a request that has a policy, in bytes: a text may be longer as JSON.
const maxPolicy = 160 << 10

// Policies reads, tries and writes texts of policies.
type Policies interface {
	// Try says what the policy of a text would decide now. The error is [apiv1.FaultsError] for a text that has no good one.
	Try(ctx context.Context, text string) (apiv1.PolicyTrial, error)
	// Object returns the one policy of a text, without what the text does not say. The error is [apiv1.FaultsError] for a text without.
	Object(text string) (map[string]any, error)
	// Manifest returns a policy as a text, as people apply it.
	Manifest(p *v1alpha1.PlacementPolicy) ([]byte, error)
}

// policyIn reads the text of a policy; false if the request was refused.
func policyIn(w http.ResponseWriter, r *http.Request) (string, bool) {
	var asked struct {
		Policy string `json:"policy"`
	}
	if err := decode(w, r, maxPolicy, &asked); err != nil {
		uiserver.Refuse(w, http.StatusBadRequest, "this is no JSON with policy alone: "+sheet.Plain(err.Error()))
		return "", false
	}
	return asked.Policy, true
}

// refusePolicy says what is wrong with a text, or why it was not looked at.
func refusePolicy(w http.ResponseWriter, err error) {
	faults := apiv1.FaultsError(nil)
	if !errors.As(err, &faults) {
		refuse(w, err)
		return
	}
	all := make([]uiserver.Fault, len(faults))
	for i := range faults {
		all[i].Message = sheet.Sentence(faults[i].String())
	}
	uiserver.Refuse(w, http.StatusUnprocessableEntity, sheet.Sentence(faults.Error()), all...)
}

// tryPolicy says what a policy would decide.
func (a *Answers) tryPolicy(w http.ResponseWriter, r *http.Request) {
	text, ok := policyIn(w, r)
	if !ok {
		return
	}
	leave, ok := await(r.Context(), a.trying)
	if !ok {
		return
	}
	defer leave()
	trial, err := a.cfg.Policies.Try(r.Context(), text)
	if err != nil {
		refusePolicy(w, err)
		return
	}
	uiserver.Answer(w, trial)
}

// applyPolicy applies a policy on the server's side, or tries that.
func (a *Answers) applyPolicy(w http.ResponseWriter, r *http.Request) {
	text, ok := policyIn(w, r)
	if !ok {
		return
	}
	dry, ok := a.mayChange(w, r)
	if !ok {
		return
	}
	object, err := a.cfg.Policies.Object(text)
	if err != nil {
		refusePolicy(w, err)
		return
	}
	metadata, _ := object["metadata"].(map[string]any)
	name := r.PathValue("name")
	if metadata["name"] != name {
		uiserver.Refuse(w, http.StatusUnprocessableEntity, "metadata.name: the policy that is applied is called "+sheet.Plain(name))
		return
	}
	a.apply(w, r, name, object, dry)
}

func (a *Answers) apply(w http.ResponseWriter, r *http.Request, name string, object map[string]any, dry bool) {
	patch, err := json.Marshal(object)
	if err != nil {
		refuse(w, err)
		return
	}
	// What somebody else has said, and the text says otherwise, is taken over: the person sees the whole policy.
	p := &v1alpha1.PlacementPolicy{}
	p.Name = name
	applied := func(ctx context.Context, c client.Client) error {
		return c.Patch(ctx, p, client.RawPatch(types.ApplyPatchType, patch), client.FieldOwner(owner), client.ForceOwnership)
	}
	if err := a.change(w, r, dry, applied); err != nil {
		refuse(w, fmt.Errorf("apply placement policy %s: %w", name, err))
		return
	}
	uiserver.Answer(w, apiv1.PolicyOf(p))
}

// manifest answers a policy as a text.
func (a *Answers) manifest(w http.ResponseWriter, r *http.Request) {
	var p v1alpha1.PlacementPolicy
	if err := a.client.Get(r.Context(), client.ObjectKey{Name: r.PathValue("name")}, &p); err != nil {
		refuse(w, fmt.Errorf("get placement policy: %w", err))
		return
	}
	text, err := a.cfg.Policies.Manifest(&p)
	if err != nil {
		refuse(w, err)
		return
	}
	uiserver.Answer(w, struct {
		Policy string `json:"policy"`
	}{string(text)})
}
