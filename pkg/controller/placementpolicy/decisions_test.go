// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package placementpolicy

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/capacitorset/liqo-broker/pkg/api/v1alpha1"
	"github.com/capacitorset/liqo-broker/pkg/lenient"
)

// TestRestored has somebody else change a decision in each way: it comes back at once, and what others say of the object
// stays.
func TestRestored(t *testing.T) {
	for name, tc := range map[string]struct {
		reason string
		change func(*v1alpha1.PlacementDecision)
	}{
		"Chosen":   {"Another provider is chosen.", func(d *v1alpha1.PlacementDecision) { d.Chosen[0].ID = "b" }},
		"Name":     {"It has another name.", func(d *v1alpha1.PlacementDecision) { d.Chosen[0].Name = "other" }},
		"Barred":   {"It is barred.", func(d *v1alpha1.PlacementDecision) { d.Chosen[0].Barred = true }},
		"Summary":  {"The summary lies.", func(d *v1alpha1.PlacementDecision) { d.Summary = "b" }},
		"Policy":   {"It is another policy's.", func(d *v1alpha1.PlacementDecision) { d.Policy = "other" }},
		"Consumer": {"It is for another consumer.", func(d *v1alpha1.PlacementDecision) { d.Consumer = "d" }},
		"Owner":    {"Nobody owns it.", func(d *v1alpha1.PlacementDecision) { d.OwnerReferences = nil }},
		"Earlier":  {"An earlier policy of the name owns it.", func(d *v1alpha1.PlacementDecision) { d.OwnerReferences[0].UID = "earlier" }},
		"Unreadable": {"A field was left out when it was read.", func(d *v1alpha1.PlacementDecision) {
			d.Annotations[lenient.AnnotationUnreadable] = "better[0].sinceTime: it is none"
		}},
	} {
		t.Run(name, func(t *testing.T) {
			h := begin(t, cheapest(), consumer("c"), provider("a", "1"), provider("b", "2"))
			h.decide(0)
			want := h.last("c")
			d := &v1alpha1.PlacementDecision{ObjectMeta: metav1.ObjectMeta{Name: v1alpha1.DecisionName("cheapest", "c")}}
			if err := h.client.Get(t.Context(), client.ObjectKeyFromObject(d), d); err != nil {
				t.Fatal(err)
			}
			d.Labels, d.Annotations = map[string]string{"own": "label"}, map[string]string{"own": "annotation"}
			tc.change(d)
			if err := h.client.Update(t.Context(), d); err != nil {
				t.Fatal(err)
			}
			if h.decide(pause); !cmp.Equal(h.last("c"), want) {
				t.Errorf("%s\n%+v, want %+v", tc.reason, h.last("c"), want)
			}
			if err := h.client.Get(t.Context(), client.ObjectKeyFromObject(d), d); err != nil {
				t.Fatal(err)
			}
			if len(d.Annotations) != 1 || d.Labels["own"] == "" || d.Annotations["own"] == "" || len(d.OwnerReferences) != 1 {
				t.Errorf("%s\nthe object has %+v", tc.reason, d.ObjectMeta)
			}
			if err := h.client.Delete(t.Context(), d); err != nil {
				t.Fatal(err)
			}
			if h.decide(pause); !cmp.Equal(h.last("c"), want) {
				t.Errorf("deleted: %+v, want %+v", h.last("c"), want)
			}
		})
	}
}

// TestEarlierPolicyIsForgotten has a policy made again under the same name, for which what the first one remembered is nothing.
func TestEarlierPolicyIsForgotten(t *testing.T) {
	first, a := cheapest(), provider("a", "1")
	first.UID = "first"
	h := begin(t, first, consumer("c"), a, provider("b", "2"))
	h.decide(0)
	h.change(a, func() { setPrice(a, "3") }) // So that b is better, which has to last.
	second := cheapest()
	second.UID = "second"
	if err := errors.Join(h.client.Delete(t.Context(), first), h.client.Create(t.Context(), second)); err != nil {
		t.Fatal(err)
	}
	if h.decide(pause); h.chosen()["c"] != "b" {
		t.Errorf("chosen %v, as the first policy did", h.chosen())
	}
}

// TestRemoved has decisions of consumers that are gone, or to which the policy applies no more, and of another policy.
func TestRemoved(t *testing.T) {
	policy, gone := cheapest(), consumer("gone")
	h := begin(t, policy, consumer("c"), consumer("d"), gone, provider("a", "1"))
	h.decide(0)
	other := &v1alpha1.PlacementDecision{ObjectMeta: metav1.ObjectMeta{Name: "other.c"}, Policy: "other"}
	misnamed := &v1alpha1.PlacementDecision{ObjectMeta: metav1.ObjectMeta{Name: "misnamed"}, Policy: "cheapest"}
	if err := errors.Join(h.client.Delete(t.Context(), gone), h.client.Create(t.Context(), other),
		h.client.Create(t.Context(), misnamed)); err != nil {
		t.Fatal(err)
	}
	h.change(policy, func() {
		policy.Spec.AppliesTo, policy.Generation = v1alpha1.AppliesTo{Scope: v1alpha1.ScopeConsumers, Consumers: []string{"c"}}, 2
	})
	h.decide(pause)
	var list v1alpha1.PlacementDecisionList
	if err := h.client.List(t.Context(), &list); err != nil {
		t.Fatal(err)
	}
	var names []string
	for i := range list.Items {
		names = append(names, list.Items[i].Name)
	}
	if want := []string{"cheapest.c", "other.c"}; !slices.Equal(names, want) {
		t.Errorf("there are %v, want %v", names, want)
	}
}

// TestScopeLost has a policy of which nobody knows any more to what it applies: it says so, its decisions stay, and it is still
// followed where its other fields tell for whom it is.
func TestScopeLost(t *testing.T) {
	policy := cheapest()
	policy.Spec.AppliesTo = v1alpha1.AppliesTo{Scope: v1alpha1.ScopeConsumers, Consumers: []string{"c"}}
	h := begin(t, policy, consumer("c"), consumer("d"), provider("a", "1"))
	h.decide(0)
	h.change(policy, func() { policy.Spec.AppliesTo.Scope, policy.Generation = "Everybody", 2 })
	if p, _ := h.decide(pause); condition(p) != "False InvalidCriteria" || h.chosen()["c"] != "a" {
		t.Errorf("with consumers: condition %s, chosen %v", condition(p), h.chosen())
	}
	h.change(policy, func() { policy.Spec.AppliesTo, policy.Generation = v1alpha1.AppliesTo{}, 3 })
	if p, _ := h.decide(pause); condition(p) != "False InvalidCriteria" || h.chosen()["c"] != "a" {
		t.Errorf("without anything: condition %s, chosen %v", condition(p), h.chosen())
	}
}

// TestKindIsGone has no kind of decisions any more: that is told.
func TestKindIsGone(t *testing.T) {
	policy := cheapest()
	h := begin(t, policy, consumer("c"), provider("a", "1"))
	h.r.client = interceptor.NewClient(h.client, interceptor.Funcs{
		Create: func(context.Context, client.WithWatch, client.Object, ...client.CreateOption) error {
			return apierrors.NewNotFound(schema.GroupResource{Resource: "placementdecisions"}, "")
		},
	})
	if _, err := h.r.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(policy)}); !apierrors.IsNotFound(err) {
		t.Errorf("Reconcile() = %v", err)
	}
	if err := h.client.Get(t.Context(), client.ObjectKeyFromObject(policy), policy); err != nil || condition(policy) != "False NotStored" {
		t.Errorf("condition %s, %v", condition(policy), err)
	}
}

// TestNotStored cannot write the decision for one of three consumers.
func TestNotStored(t *testing.T) {
	for name, tc := range map[string]struct {
		reason string
		err    error
		want   string // The condition.
	}{
		"Refused": {"It is told, and the others have theirs.", errors.New("etcdserver: request is too large"), "False NotStored"},
		"Conflict": {
			"It has changed a moment ago: no failure.", apierrors.NewConflict(schema.GroupResource{}, "cheapest.d", errors.New("it has changed")),
			"True Decided",
		},
	} {
		t.Run(name, func(t *testing.T) {
			policy := cheapest()
			h := begin(t, policy, consumer("c"), consumer("d"), consumer("e"), provider("a", "1"), provider("b", "2"))
			h.decide(0)
			refuse := true
			h.r.client = interceptor.NewClient(h.client, interceptor.Funcs{
				Update: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.UpdateOption) error {
					if refuse && o.GetName() == "cheapest.d" {
						return tc.err
					}
					return c.Update(ctx, o, opts...)
				},
			})
			h.change(policy, func() { policy.Spec.Filters, policy.Generation = []v1alpha1.Filter{`id != "a"`}, 2 })
			h.clock.Step(pause)
			result, err := h.r.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(policy)})
			if stale := apierrors.IsConflict(tc.err); stale != (err == nil) || stale != (result.RequeueAfter > 0) ||
				err != nil && !errors.Is(err, tc.err) {
				t.Errorf("%s\nReconcile() = %v, %v", tc.reason, result, err)
			}
			if diff := cmp.Diff(map[string]string{"c": "b", "d": "a", "e": "b"}, h.chosen()); diff != "" {
				t.Errorf("%s\n-want +got\n%s", tc.reason, diff)
			}
			if err := h.client.Get(t.Context(), client.ObjectKeyFromObject(policy), policy); err != nil || condition(policy) != tc.want {
				t.Errorf("%s\ncondition %s, %v, want %s", tc.reason, condition(policy), err, tc.want)
			}
			version := policy.ResourceVersion
			h.clock.Step(pause)
			if _, err := h.r.Reconcile(t.Context(), ctrl.Request{
				NamespacedName: client.ObjectKeyFromObject(policy),
			}); err == nil == (tc.want == "False NotStored") {
				t.Errorf("%s\nReconcile() again: %v", tc.reason, err)
			}
			if err := h.client.Get(t.Context(), client.ObjectKeyFromObject(policy), policy); err != nil || policy.ResourceVersion != version {
				t.Errorf("%s\nthe status is written again, as if something had changed: %v", tc.reason, policy.Status.Conditions)
			}
			refuse = false
			if p, _ := h.decide(pause); condition(p) != "True Decided" || p.Status.ObservedGeneration != 2 || h.chosen()["d"] != "b" {
				t.Errorf("%s\nlater: condition %s, chosen %v", tc.reason, condition(p), h.chosen())
			}
		})
	}
}

func TestSummary(t *testing.T) {
	chosen := func(names ...string) (all []v1alpha1.ChosenProvider) {
		for _, name := range names {
			all = append(all, v1alpha1.ChosenProvider{ID: "id-" + name, Name: strings.TrimPrefix(name, "-")})
		}
		return all
	}
	for want, all := range map[string][]v1alpha1.ChosenProvider{
		"none":            nil,
		"a":               chosen("a"),
		"id-, b":          chosen("", "b"),
		"a, b and 1 more": chosen("a", "b", "c"),
	} {
		if got := summary(all); got != want {
			t.Errorf("summary() = %q, want %q", got, want)
		}
	}
	if got := summaryOf([]v1alpha1.ConsumerDecision{
		{Chosen: chosen("b", "d")}, {}, {Chosen: chosen("a", "b")}, {Chosen: chosen("c", "d")},
	}); got != "a, b and 2 more" {
		t.Errorf("summaryOf() = %q", got)
	}
}
