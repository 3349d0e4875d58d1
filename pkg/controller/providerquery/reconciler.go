// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package providerquery

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/record"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capacitorset/liqo-broker/pkg/api/v1alpha1"
	"github.com/capacitorset/liqo-broker/pkg/conditions"
	"github.com/capacitorset/liqo-broker/pkg/controller/measure"
	"github.com/capacitorset/liqo-broker/pkg/core/kpi"
	"github.com/capacitorset/liqo-broker/pkg/promquery"
)

const (
	// writeInterval is the shortest time between two writes because of a value that
	// wanders, unless it would expire sooner.
	writeInterval = time.Minute
	// What a spec without defaults has.
	defaultInterval = 30 * time.Second
	defaultExpiry   = 5 * time.Minute
)

// Reconciler keeps the KPIs of one query.
type Reconciler struct {
	client   client.Client
	recorder conditions.Recorder
	clock    clock.PassiveClock
	asker    promquery.Asker
}

// Config is what the controller needs.
type Config struct {
	Client   client.Client
	Recorder record.EventRecorder
	Clock    clock.PassiveClock
	Asker    promquery.Asker
}

// New returns a Reconciler.
func New(cfg Config) *Reconciler {
	return &Reconciler{client: cfg.Client, recorder: conditions.Recorder{Events: cfg.Recorder, Kind: kind}, clock: cfg.Clock, asker: cfg.Asker}
}

// Reconcile asks one query, and writes the values into the status of the Providers.
// What has no value at the moment keeps its last one until that expires.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	var providers v1alpha1.ProviderList
	if err := r.client.List(ctx, &providers); err != nil {
		return ctrl.Result{}, fmt.Errorf("list providers: %w", err)
	}
	q := &v1alpha1.ProviderQuery{}
	if err := r.client.Get(ctx, req.NamespacedName, q); apierrors.IsNotFound(err) {
		return ctrl.Result{}, r.drop(ctx, providers.Items, req.Name)
	} else if err != nil {
		return ctrl.Result{}, fmt.Errorf("get the query %s: %w", req.Name, err)
	}
	if !q.DeletionTimestamp.IsZero() {
		return ctrl.Result{}, nil
	}
	// A KPI of the broker's own is never overwritten by a query.
	if taken(providers.Items, q.Name) {
		if err := r.drop(ctx, providers.Items, q.Name); err != nil {
			return ctrl.Result{}, err
		}
		return r.report(ctx, q, int(q.Status.Providers), metav1.ConditionFalse, v1alpha1.ReasonNameTaken,
			"The broker measures a KPI of this name itself: give the query another one")
	}
	// The whole answer is read before anything is written.
	now := r.clock.Now()
	var answer measure.Answer
	if answer.Samples, answer.Err = r.asker.Query(ctx, q.Spec.Query); answer.Err != nil {
		return r.report(ctx, q, int(q.Status.Providers), metav1.ConditionFalse, measure.Reason(answer.Err), answer.Err.Error())
	}
	// Providers without a value keep the one that they have; the condition says how many there are.
	known, missing, err := r.spread(ctx, now, q, answer, providers.Items)
	switch {
	case err != nil:
		return ctrl.Result{}, err
	case known == 0 && missing != nil:
		return r.report(ctx, q, 0, metav1.ConditionFalse, measure.Reason(missing), missing.Error())
	case known == 0:
		return r.report(ctx, q, 0, metav1.ConditionFalse, v1alpha1.ReasonNoData, "There is no provider")
	}
	message := fmt.Sprintf("Measured for %d of %d providers", known, len(providers.Items))
	if missing != nil {
		message += ": " + missing.Error()
	}
	return r.report(ctx, q, known, metav1.ConditionTrue, v1alpha1.ReasonMeasured, message)
}

// spread writes the values of an answer into the status of the providers. It returns
// how many have one, and why the first of the others has none.
func (r *Reconciler) spread(
	ctx context.Context, now time.Time, q *v1alpha1.ProviderQuery, answer measure.Answer, providers []v1alpha1.Provider,
) (known int, missing, err error) {
	clusters := make([]measure.Cluster, len(providers))
	for i := range providers {
		p := &providers[i]
		clusters[i] = measure.Cluster{ID: p.Name, Name: p.Status.ClusterName, Since: p.CreationTimestamp.Time}
	}
	names := measure.NamesOf(clusters)
	by := answer.By(q.Spec.ProviderLabel)
	validity := duration(q.Spec.Expiry, defaultExpiry)
	for i := range providers {
		p := &providers[i]
		value, unknown := by.KPI(now, q.Spec.Unit, validity, p.Name, names)
		if unknown != nil && missing == nil {
			missing = fmt.Errorf("for provider %s: %w", p.Name, unknown)
		}
		if unknown == nil {
			known++
			err = r.writeKPIs(ctx, p, with(p.Status.QueriedKPIs, q.Name, value, validity))
		} else {
			err = r.writeKPIs(ctx, p, without(p.Status.QueriedKPIs, func(f *v1alpha1.KPI) bool {
				return f.Name == q.Name && (f.Unit != q.Spec.Unit || !now.Before(f.ExpirationTime.Time))
			}))
		}
		if err != nil {
			return known, missing, err
		}
	}
	return known, missing, nil
}

// taken reports whether the broker measures a KPI of a name itself.
func taken(providers []v1alpha1.Provider, name string) bool {
	return slices.ContainsFunc(providers, func(p v1alpha1.Provider) bool {
		return slices.ContainsFunc(p.Status.KPIs, func(f v1alpha1.KPI) bool { return f.Name == name })
	})
}

// drop removes the values of a query.
func (r *Reconciler) drop(ctx context.Context, providers []v1alpha1.Provider, name string) error {
	for i := range providers {
		left := without(providers[i].Status.QueriedKPIs, func(f *v1alpha1.KPI) bool { return f.Name == name })
		if err := r.writeKPIs(ctx, &providers[i], left); err != nil {
			return err
		}
	}
	return nil
}

// writeKPIs writes the values of a provider, if they are others than it has.
func (r *Reconciler) writeKPIs(ctx context.Context, p *v1alpha1.Provider, queried []v1alpha1.KPI) error {
	if equality.Semantic.DeepEqual(p.Status.QueriedKPIs, queried) {
		return nil
	}
	before := p.DeepCopy()
	p.Status.QueriedKPIs = queried
	// Several queries write into the same list.
	patch := client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
	if err := r.client.Status().Patch(ctx, p, patch); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("patch the values of provider %s: %w", p.Name, err)
	}
	return nil
}

// with returns a list with a value. What is there stays if it is nearly as good: the
// same value with most of its time left, or another one that was written a moment ago.
func with(list []v1alpha1.KPI, name string, value kpi.KPI, validity time.Duration) []v1alpha1.KPI {
	next := v1alpha1.KPI{Name: name, KPIValue: v1alpha1.KPIValueOf(value)}
	rest := make([]v1alpha1.KPI, 0, len(list)+1)
	for _, was := range list {
		age := value.Measured.Sub(was.MeasuredTime.Time)
		enough := validity / 3
		if was.Value != next.Value {
			enough = min(enough, writeInterval)
		}
		switch {
		case was.Name != name:
			rest = append(rest, was)
		case was.Unit == next.Unit && age >= 0 && age < enough && was.ExpirationTime.Sub(was.MeasuredTime.Time) <= validity:
			return list
		}
	}
	rest = append(rest, next)
	slices.SortFunc(rest, func(a, b v1alpha1.KPI) int { return strings.Compare(a.Name, b.Name) })
	return rest
}

// without returns a list without some of its values.
func without(list []v1alpha1.KPI, goes func(*v1alpha1.KPI) bool) []v1alpha1.KPI {
	return slices.DeleteFunc(slices.Clone(list), func(f v1alpha1.KPI) bool { return goes(&f) })
}

// report writes what became of a query into its status, and says it when it has changed.
func (r *Reconciler) report(
	ctx context.Context, q *v1alpha1.ProviderQuery, known int, status metav1.ConditionStatus, reason, message string,
) (ctrl.Result, error) {
	before := q.DeepCopy()
	q.Status.Providers = int32(min(known, math.MaxInt32)) //nolint:gosec // It is bounded.
	q.Status.ObservedGeneration = q.Generation
	conditions.Set(&q.Status.Conditions, q.Generation,
		metav1.Condition{Type: v1alpha1.ConditionMeasured, Status: status, Reason: reason, Message: message})
	result := ctrl.Result{RequeueAfter: duration(q.Spec.Interval, defaultInterval)}
	if equality.Semantic.DeepEqual(before.Status, q.Status) {
		return result, nil
	}
	if err := r.client.Status().Patch(ctx, q, client.MergeFrom(before)); err != nil {
		return ctrl.Result{}, fmt.Errorf("patch the status of the query %s: %w", q.Name, err)
	}
	r.recorder.Tell(ctx, q, before.Status.Conditions, q.Status.Conditions)
	return result, nil
}

// kind returns the type of the event of a condition that has changed.
func kind(change conditions.Change) string {
	if change.Is.Status != metav1.ConditionTrue {
		return corev1.EventTypeWarning
	}
	return corev1.EventTypeNormal
}

func duration(d *metav1.Duration, otherwise time.Duration) time.Duration {
	if d == nil || d.Duration <= 0 {
		return otherwise
	}
	return d.Duration
}
