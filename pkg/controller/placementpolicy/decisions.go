// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package placementpolicy

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capacitorset/liqo-broker/pkg/api/v1alpha1"
	"github.com/capacitorset/liqo-broker/pkg/excerpt"
	"github.com/capacitorset/liqo-broker/pkg/lenient"
)

// stored are the PlacementDecisions there are, of all policies, by their names. They share
// memory with the cache.
type stored map[string]*v1alpha1.PlacementDecision

// readStored reads the decisions.
func readStored(ctx context.Context, objects client.Reader) (stored, error) {
	var list v1alpha1.PlacementDecisionList
	if err := objects.List(ctx, &list, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list placement decisions: %w", err)
	}
	all := make(stored, len(list.Items))
	for i := range list.Items {
		all[list.Items[i].Name] = &list.Items[i]
	}
	return all, nil
}

// last returns what a policy has decided for a consumer; the zero ConsumerDecision if nothing.
func (s stored) last(p *v1alpha1.PlacementPolicy, consumer string) v1alpha1.ConsumerDecision {
	if d := s[v1alpha1.DecisionName(p.Name, consumer)]; d != nil && d.IsOf(p, consumer) {
		return d.ConsumerDecision
	}
	return v1alpha1.ConsumerDecision{}
}

// errStale says that a decision has changed since it was read.
var errStale = errors.New("a placement decision has changed since it was read")

// change is a decision to be written.
type change struct {
	is     *v1alpha1.PlacementDecision // What there is; nil if nothing.
	d      *v1alpha1.ConsumerDecision
	before v1alpha1.ConsumerDecision // What was decided before it.
	known  bool                      // This process has written that.
}

// store makes the objects of a policy say what it has decided, each with one write, those first
// of which the choice has changed, and removes those of other consumers. While the policy cannot
// be read, whose they are is not known, and all stay. What differs in scores alone is written if
// scores is true. It returns how many objects it wrote. One that cannot be written does not keep
// it from the others; if some have only changed meanwhile, the error is errStale.
func (r *Reconciler) store(
	ctx context.Context, s *state, p *v1alpha1.PlacementPolicy, had stored, decisions []v1alpha1.ConsumerDecision, scores bool,
) (written int, err error) {
	// Those that differ.
	var urgent, others []change
	wanted, last := make(map[string]bool, len(decisions)), s.last
	s.last = make(map[string]v1alpha1.ConsumerDecision, len(decisions))
	for i := range decisions {
		d := &decisions[i]
		name := v1alpha1.DecisionName(p.Name, d.Consumer)
		wanted[name] = true
		c := change{is: had[name], d: d}
		if c.before, c.known = last[d.Consumer]; !c.known {
			c.before = had.last(p, d.Consumer)
		}
		switch {
		case c.is != nil && says(c.is, p, d, scores):
			s.last[d.Consumer] = *d
		case slices.EqualFunc(c.before.Chosen, d.Chosen, sameChosen):
			others = append(others, c)
		default:
			urgent = append(urgent, c)
		}
	}

	// Each is written by a request of its own.
	var failed []error
	stale := false
	done := func(err error, existed bool) bool {
		switch {
		case err == nil:
			written++
		case apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) || existed && apierrors.IsNotFound(err):
			stale = true
		default:
			failed = append(failed, err)
		}
		return err == nil
	}
	for _, c := range slices.Concat(urgent, others) {
		switch {
		case done(r.writeDecision(ctx, p, c.is, c.d), c.is != nil):
			s.last[c.d.Consumer] = *c.d
			r.reportDecision(p, c.before, c.d)
		case c.known:
			s.last[c.d.Consumer] = c.before
		}
	}

	// Those that nobody needs.
	for _, name := range slices.Sorted(maps.Keys(had)) {
		if d := had[name]; s.err == nil && !wanted[name] && (d.Policy == p.Name || metav1.IsControlledBy(d, p)) {
			done(r.remove(ctx, d), true)
		}
	}
	if len(failed) == 0 && stale {
		return written, errStale
	}
	return written, errors.Join(failed...)
}

// reportDecision says when a decision uses more or fewer providers because of a KPI.
func (r *Reconciler) reportDecision(p *v1alpha1.PlacementPolicy, before v1alpha1.ConsumerDecision, after *v1alpha1.ConsumerDecision) {
	if reason, message := stepped(before, *after); reason != "" {
		r.recorder.Event(p, corev1.EventTypeNormal, reason, message)
	}
}

// writeDecision writes a decision in place of what there is; nil if there is nothing.
func (r *Reconciler) writeDecision(
	ctx context.Context, p *v1alpha1.PlacementPolicy, is *v1alpha1.PlacementDecision, d *v1alpha1.ConsumerDecision,
) error {
	// The answer is decoded into the object, which must not share memory with the cache or with the decision of another consumer.
	next := &v1alpha1.PlacementDecision{Policy: p.Name, ConsumerDecision: *d.DeepCopy()}
	if is != nil {
		is.ObjectMeta.DeepCopyInto(&next.ObjectMeta)
		delete(next.Annotations, lenient.AnnotationUnreadable)
	}
	next.Name = v1alpha1.DecisionName(p.Name, d.Consumer)
	next.OwnerReferences = v1alpha1.OwnedBy("PlacementPolicy", p)
	var err error
	if is == nil {
		err = r.client.Create(ctx, next)
	} else {
		err = r.client.Update(ctx, next)
	}
	if err != nil {
		return fmt.Errorf("write placement decision %s: %w", next.Name, err)
	}
	return nil
}

// remove deletes a decision, unless it has changed.
func (r *Reconciler) remove(ctx context.Context, d *v1alpha1.PlacementDecision) error {
	unchanged := client.Preconditions{UID: &d.UID, ResourceVersion: &d.ResourceVersion}
	if err := r.client.Delete(ctx, d.DeepCopy(), unchanged); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("delete placement decision %s: %w", d.Name, err)
	}
	return nil
}

// says reports whether an object is what a policy has decided; unless scores is true, but for
// them.
func says(is *v1alpha1.PlacementDecision, p *v1alpha1.PlacementPolicy, d *v1alpha1.ConsumerDecision, scores bool) bool {
	if !is.IsOf(p, d.Consumer) || lenient.Unreadable(is) != "" || !slices.EqualFunc(is.Chosen, d.Chosen, sameChosen) {
		return false
	}
	was, want := is.ConsumerDecision, *d
	was.Chosen, want.Chosen = nil, nil // There may be many, for which reflection is slow.
	if !scores {
		was, want = withoutScores(was), withoutScores(want)
	}
	return equality.Semantic.DeepEqual(was, want)
}

func sameChosen(a, b v1alpha1.ChosenProvider) bool {
	return a.ID == b.ID && a.Name == b.Name && a.AwaySinceTime.Equal(b.AwaySinceTime) && a.Substitute == b.Substitute && a.Barred == b.Barred
}

// withoutScores returns what of a decision matters to others than people.
func withoutScores(d v1alpha1.ConsumerDecision) v1alpha1.ConsumerDecision {
	d.Explained, d.NotExplained = nil, 0
	if d.Scaling != nil {
		scaling := *d.Scaling
		scaling.Value, scaling.MeasuredTime, scaling.Unknown = "", nil, ""
		d.Scaling = &scaling
	}
	return d
}

// named is how many providers a summary names.
const named = 2

// summary names the first of some providers, and says how many more there are.
func summary(chosen []v1alpha1.ChosenProvider) string {
	if len(chosen) == 0 {
		return "none"
	}
	names := make([]string, len(chosen))
	for i, c := range chosen {
		names[i] = cmp.Or(c.Name, c.ID)
	}
	return excerpt.Names(names, named)
}

// summaryOf is summary for all providers that are chosen for any consumer, in order of their IDs.
func summaryOf(decisions []v1alpha1.ConsumerDecision) string {
	counted := map[*v1alpha1.ChosenProvider]bool{} // The first of each choice: many consumers share one.
	all := map[string]v1alpha1.ChosenProvider{}
	for i := range decisions {
		chosen := decisions[i].Chosen
		if len(chosen) == 0 || counted[&chosen[0]] {
			continue
		}
		counted[&chosen[0]] = true
		for _, c := range chosen {
			all[c.ID] = c
		}
	}
	inOrder := make([]v1alpha1.ChosenProvider, 0, len(all))
	for _, id := range slices.Sorted(maps.Keys(all)) {
		inOrder = append(inOrder, all[id])
	}
	return summary(inOrder)
}
