// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package requests_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/capacitorset/liqo-broker/pkg/api/connectorv1alpha1"
)

// renewal returns how it stands with a later end of what serves the request.
func renewal(request *connectorv1alpha1.CapacityRequest) metav1.Condition {
	if c := meta.FindStatusCondition(request.Status.Conditions, connectorv1alpha1.ConditionRenewal); c != nil {
		return *c
	}
	return metav1.Condition{}
}

// says has a purchase have conditions, with these reasons.
func (w *world) says(name, reason, renews string) {
	w.t.Helper()
	p := &connectorv1alpha1.Purchase{}
	if err := w.client.Get(w.t.Context(), types.NamespacedName{Name: name}, p); err != nil {
		w.t.Fatal(err)
	}
	ready, goesOn := metav1.ConditionFalse, metav1.ConditionFalse
	if reason == connectorv1alpha1.ReasonActive {
		ready = metav1.ConditionTrue
	}
	if renews == connectorv1alpha1.ReasonRenews {
		goesOn = metav1.ConditionTrue
	}
	meta.SetStatusCondition(&p.Status.Conditions, metav1.Condition{Type: connectorv1alpha1.ConditionReady, Status: ready, Reason: reason})
	if renews != "" {
		meta.SetStatusCondition(&p.Status.Conditions, metav1.Condition{
			Type: connectorv1alpha1.ConditionRenewal, Status: goesOn, Reason: renews, Message: "as it is",
		})
	}
	if p.Status.EndTime == nil {
		p.Status.StartTime, p.Status.EndTime = &metav1.Time{Time: w.now}, &metav1.Time{Time: w.now.Add(time.Hour)}
	}
	if err := w.client.Status().Update(w.t.Context(), p); err != nil {
		w.t.Fatal(err)
	}
}

// TestBuysElsewhere checks that what is not renewed goes on to its end, that another one is bought meanwhile, of the same plan if that is
// the cheapest, and that people are told so.
func TestBuysElsewhere(t *testing.T) {
	w := newWorld(t, "one")
	w.edit(func(spec *connectorv1alpha1.CapacityRequestSpec) { spec.Renew = true })
	first := w.run().Status.Purchase
	if all := w.purchases(); len(all) != 1 || !all[0].Spec.Renew {
		t.Fatalf("bought: %+v", all)
	}
	w.says(first, connectorv1alpha1.ReasonActive, connectorv1alpha1.ReasonRenews)
	if request := w.run(); renewal(request).Reason != connectorv1alpha1.ReasonRenews || renewal(request).Message != "as it is" {
		t.Errorf("while nothing speaks against it: %+v", renewal(request))
	}
	w.says(first, connectorv1alpha1.ReasonActive, connectorv1alpha1.ReasonRenewalRefused)
	if request := w.run(); len(w.purchases()) != 1 || renewal(request).Reason != connectorv1alpha1.ReasonRenewalRefused {
		t.Errorf("while it is asked for again: %+v", renewal(request))
	}
	// It ends: another one is bought, and until that is in use the request is served by the first one.
	w.says(first, connectorv1alpha1.ReasonActive, connectorv1alpha1.ReasonNotRenewed)
	request := w.run()
	second := request.Status.Purchase
	if len(w.purchases()) != 2 || second == first || request.Status.Leaving != first || ready(request).Status != metav1.ConditionTrue ||
		renewal(request).Reason != connectorv1alpha1.ReasonBuyingElsewhere || !strings.Contains(renewal(request).Message, first) {
		t.Fatalf("not renewed: %d purchases, %+v", len(w.purchases()), request.Status)
	}
	all := w.purchases()
	at := slices.IndexFunc(all, func(p connectorv1alpha1.Purchase) bool { return p.Name == second })
	if at < 0 || all[at].Spec.Duration.Duration != time.Hour || all[at].Spec.Plan != "one" {
		t.Fatalf("bought in its place: %+v", all)
	}
	w.says(second, connectorv1alpha1.ReasonSettingUp, "")
	if request = w.run(); ready(request).Status != metav1.ConditionTrue ||
		!strings.Contains(renewal(request).Message, connectorv1alpha1.ReasonSettingUp) {
		t.Errorf("while it is set up: %+v", request.Status.Conditions)
	}
	w.says(second, connectorv1alpha1.ReasonActive, connectorv1alpha1.ReasonRenews)
	if request = w.run(); renewal(request).Reason != connectorv1alpha1.ReasonBoughtElsewhere || len(w.purchases()) != 2 {
		t.Errorf("in use: %+v", request.Status)
	}
	w.says(first, connectorv1alpha1.ReasonEnded, connectorv1alpha1.ReasonNotRenewed)
	if request = w.run(); len(w.purchases()) != 1 || request.Status.Leaving != "" || request.Status.Purchase != second ||
		renewal(request).Reason != connectorv1alpha1.ReasonRenews {
		t.Errorf("after the end of the first one: %+v", request.Status)
	}
	// Whoever has not looked for as long as that buys after the end.
	w.says(second, connectorv1alpha1.ReasonEnded, connectorv1alpha1.ReasonRenews)
	if request = w.run(); request.Status.Purchase == second || len(w.purchases()) != 1 {
		t.Errorf("after the end of the second one: %+v", request.Status)
	}
	// People who want no more time say so at the purchase.
	third := w.purchases()[0]
	third.Spec.Renew = false
	if err := w.client.Update(t.Context(), &third); err != nil {
		t.Fatal(err)
	}
	w.says(third.Name, connectorv1alpha1.ReasonActive, connectorv1alpha1.ReasonNotRenewed)
	w.run()
	w.says(third.Name, connectorv1alpha1.ReasonEnded, "")
	if request = w.run(); ready(request).Reason != connectorv1alpha1.ReasonEnded || renewal(request).Reason != "" || len(w.purchases()) != 1 {
		t.Errorf("without renewal: %+v", request.Status)
	}
}

// TestNothingElsewhere checks that a request whose purchase is not renewed is served until the end, also if nothing else is for sale, and
// says so then.
func TestNothingElsewhere(t *testing.T) {
	w := newWorld(t, "one")
	w.edit(func(spec *connectorv1alpha1.CapacityRequestSpec) { spec.Renew = true })
	first := w.run().Status.Purchase
	w.candidates = nil
	w.says(first, connectorv1alpha1.ReasonActive, connectorv1alpha1.ReasonNotRenewed)
	request := w.run()
	if len(w.purchases()) != 1 || ready(request).Status != metav1.ConditionTrue ||
		!strings.Contains(renewal(request).Message, connectorv1alpha1.ReasonNoOffer) {
		t.Errorf("nothing is for sale: %+v", request.Status)
	}
	w.says(first, connectorv1alpha1.ReasonEnded, "")
	if request = w.run(); ready(request).Reason != connectorv1alpha1.ReasonNoOffer || renewal(request).Reason != "" {
		t.Errorf("after the end: %+v", request.Status)
	}
}
