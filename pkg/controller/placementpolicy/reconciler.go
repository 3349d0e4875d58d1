// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

// Package placementpolicy decides by placement policies which providers are used for which
// consumers, and writes the decisions and their explanation into PlacementDecisions, one
// for each policy and consumer.
//
// How to decide is in package choice. It moves no pod and selects no provider:
// package twin does, by what it reads in the decisions.
package placementpolicy

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/record"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/capacitorset/liqo-broker/pkg/api/v1alpha1"
	"github.com/capacitorset/liqo-broker/pkg/conditions"
	"github.com/capacitorset/liqo-broker/pkg/controller/measure"
	"github.com/capacitorset/liqo-broker/pkg/core/binding"
	"github.com/capacitorset/liqo-broker/pkg/core/choice"
	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
	"github.com/capacitorset/liqo-broker/pkg/excerpt"
	"github.com/capacitorset/liqo-broker/pkg/lenient"
	"github.com/capacitorset/liqo-broker/pkg/promquery"
	"github.com/capacitorset/liqo-broker/pkg/snapshot"
)

const (
	// pause is the shortest time between two decisions of one policy: many KPIs
	// change one after the other.
	pause = 2 * time.Second
	// interval is how often a policy decides when nothing changes: KPIs expire.
	interval = 30 * time.Second
	// writeInterval is the shortest time between two writes of an object because of
	// scores, of which people are the only readers.
	writeInterval = time.Minute
)

// Reconciler decides by one policy.
type Reconciler struct {
	client    client.Client
	reader    *snapshot.Reader
	recorder  record.EventRecorder
	clock     clock.PassiveClock
	asker     promquery.Asker
	decisions prometheus.Observer

	mu    sync.Mutex
	known map[types.NamespacedName]*state
}

// state is what is remembered of a policy between two decisions, to save work, and so that
// nobody else changes what was decided. After a restart the objects say it.
type state struct {
	uid        types.UID
	generation int64
	chooser    *choice.Chooser
	scaler     *scaler // Nil if the policy keeps no KPI.
	err        error   // Of the chooser or the scaler.
	decided    time.Time
	// refused is the generation of which the API server took no status.
	refused int64
	written time.Time
	// last are the decisions that were written or found, by consumer.
	last map[string]v1alpha1.ConsumerDecision
}

// Config is what the controller needs.
type Config struct {
	Client   client.Client
	Reader   *snapshot.Reader
	Recorder record.EventRecorder
	Clock    clock.PassiveClock
	Asker    promquery.Asker
	// Decisions are how long a policy took to read what it needs and decide; nil if nobody wants to know.
	Decisions prometheus.Observer
}

// New returns a Reconciler.
func New(cfg Config) *Reconciler {
	return &Reconciler{
		client: cfg.Client, reader: cfg.Reader, recorder: cfg.Recorder, clock: cfg.Clock, asker: cfg.Asker, decisions: cfg.Decisions,
		known: map[types.NamespacedName]*state{},
	}
}

// Reconcile decides for every consumer that a policy applies to, and writes a
// PlacementDecision for each.
func (r *Reconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	p := &v1alpha1.PlacementPolicy{}
	if err := r.client.Get(ctx, req.NamespacedName, p); apierrors.IsNotFound(err) {
		r.forgetPolicy(req.NamespacedName)
		return reconcile.Result{}, nil
	} else if err != nil {
		return reconcile.Result{}, fmt.Errorf("get placement policy %s: %w", req.Name, err)
	}
	if !p.DeletionTimestamp.IsZero() {
		return reconcile.Result{}, nil
	}
	now := r.clock.Now()
	s := r.state(req.NamespacedName, p)
	seen := p.Status.ObservedGeneration == p.Generation || s.refused == p.Generation
	if wait := pause - now.Sub(s.decided); wait > 0 && wait <= pause && seen {
		return reconcile.Result{RequeueAfter: wait}, nil
	}
	s.decided = now
	if s.scaler != nil {
		s.scaler.ask(ctx, now, r.asker)
	}

	// What is decided.
	begun := r.clock.Now()
	had, err := readStored(ctx, r.client)
	if err != nil {
		return reconcile.Result{}, err
	}
	next := p.DeepCopy()
	next.Status.ObservedGeneration = p.Generation
	decisions, wait, err := r.decide(ctx, now, s, &next.Status, p, had)
	if err != nil {
		return reconcile.Result{}, err
	}
	if r.decisions != nil {
		r.decisions.Observe(r.clock.Since(begun).Seconds())
	}

	// The decisions are written before the status that says so.
	scores := now.Sub(s.written).Abs() >= writeInterval
	written, failed := r.store(ctx, s, p, had, decisions, scores)
	if scores && written > 0 {
		s.written = now
	}
	if errors.Is(failed, errStale) {
		return reconcile.Result{RequeueAfter: pause}, nil
	}
	if failed != nil {
		// In place of the condition before: else it would seem to change each time.
		meta.RemoveStatusCondition(&next.Status.Conditions, v1alpha1.ConditionDecided)
		if before := meta.FindStatusCondition(p.Status.Conditions, v1alpha1.ConditionDecided); before != nil {
			next.Status.Conditions = append(next.Status.Conditions, *before)
		}
		conditions.Set(&next.Status.Conditions, p.Generation, metav1.Condition{
			Type: v1alpha1.ConditionDecided, Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonNotStored,
			Message: brief(failed) + ". The last good decision stays",
		})
	}
	if err := r.writeStatus(ctx, now, s, p, next, scores); err != nil || failed != nil {
		return reconcile.Result{}, errors.Join(failed, err)
	}
	return reconcile.Result{RequeueAfter: min(wait, interval)}, nil
}

// writeStatus writes the status of a policy if it has changed; if only a message with a value has, then if scores is true.
func (r *Reconciler) writeStatus(ctx context.Context, now time.Time, s *state, p, next *v1alpha1.PlacementPolicy, scores bool) error {
	if equality.Semantic.DeepEqual(p.Status, next.Status) ||
		!scores && equality.Semantic.DeepEqual(withoutMessage(&p.Status), withoutMessage(&next.Status)) {
		return nil
	}
	patch := client.MergeFromWithOptions(p, client.MergeFromWithOptimisticLock{})
	if err := r.client.Status().Patch(ctx, next, patch); apierrors.IsInvalid(err) && lenient.Unreadable(p) != "" {
		// Its schema became stricter since it was written, and the API server takes no status of it until it is mended.
		if s.refused != p.Generation {
			r.recorder.Event(p, corev1.EventTypeWarning, v1alpha1.ReasonInvalidCriteria, lenient.Unreadable(p)+". The last good decision stays")
		}
		s.refused = p.Generation
		return nil
	} else if err != nil {
		return fmt.Errorf("patch the status of placement policy %s: %w", p.Name, err)
	}
	if scores {
		s.written = now
	}
	conditions.Recorder{Events: r.recorder, Kind: kind}.Tell(ctx, next, p.Status.Conditions, next.Status.Conditions)
	return nil
}

// state returns what is remembered of a policy, with a chooser for its present spec.
func (r *Reconciler) state(name types.NamespacedName, p *v1alpha1.PlacementPolicy) *state {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := r.known[name]
	if s == nil || s.uid != p.UID {
		s = &state{uid: p.UID, generation: -1, refused: -1, last: map[string]v1alpha1.ConsumerDecision{}}
		r.known[name] = s
	}
	if s.generation != p.Generation {
		s.generation = p.Generation
		s.chooser, s.scaler, s.err = rules(p)
	}
	return s
}

func (r *Reconciler) forgetPolicy(name types.NamespacedName) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.known, name)
}

// rules returns what decides by a policy. One that cannot be read as it was written decides nothing: what it lacks may be
// what keeps data where it is.
func rules(p *v1alpha1.PlacementPolicy) (*choice.Chooser, *scaler, error) {
	if unreadable := lenient.UnreadableIn(p, "spec"); unreadable != "" {
		return nil, nil, errors.New(unreadable)
	}
	spec := &p.Spec
	if _, known := snapshot.Scope(spec.AppliesTo); !known {
		return nil, nil, fmt.Errorf("appliesTo.scope is %q, which is none", spec.AppliesTo.Scope)
	}
	if b := spec.AppliesTo.Namespaces; b != nil {
		if _, err := metav1.LabelSelectorAsSelector(b.Selector); err != nil {
			return nil, nil, fmt.Errorf("appliesTo.namespaces.selector: %w", err)
		}
	}
	chooser, err := choice.New(criteria(spec))
	if err != nil || spec.Scaling == nil {
		return chooser, nil, err
	}
	scaler, err := newScaler(spec.Scaling)
	return chooser, scaler, err
}

// criteria returns what a spec demands.
func criteria(spec *v1alpha1.PlacementPolicySpec) choice.Criteria {
	c := choice.Criteria{Weights: make(map[string]int, len(spec.Weights))}
	for _, f := range spec.Filters {
		c.Filters = append(c.Filters, string(f))
	}
	for name, weight := range spec.Weights {
		c.Weights[name] = int(weight)
	}
	if spec.MaxProviders != nil {
		c.Max = int(*spec.MaxProviders)
	}
	for _, s := range spec.Spread {
		c.Spread = append(c.Spread, choice.Spread{Label: s.Label, Distinct: int(s.MinValues)})
	}
	if spec.Scaling != nil {
		c.Group = spec.Scaling.GroupBy
	}
	if spec.Steady.MarginPercent != nil {
		c.Margin = float64(*spec.Steady.MarginPercent) * choice.FullScore / 100
	}
	if spec.Steady.Duration != nil {
		c.Lasting = spec.Steady.Duration.Duration
	}
	return c
}

// decide makes the decisions, in order of the consumers' IDs, and returns them and after what time to look again. It writes
// into a status how it went.
func (r *Reconciler) decide(
	ctx context.Context, now time.Time, s *state, status *v1alpha1.PlacementPolicyStatus, p *v1alpha1.PlacementPolicy, had stored,
) ([]v1alpha1.ConsumerDecision, time.Duration, error) {
	// For whom, and among whom, is chosen.
	to, err := r.audience(ctx, p)
	if err != nil {
		return nil, 0, err
	}
	consumers := to.consumers
	if s.scaler != nil {
		s.scaler.names = to.names
	}
	roster, err := readRoster(ctx, r.client, r.reader)
	if err != nil {
		return nil, 0, err
	}
	wait := interval
	condition := metav1.Condition{
		Type: v1alpha1.ConditionDecided, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonDecided,
		Message: fmt.Sprintf("Decided for %d consumers", len(consumers)),
	}
	if len(consumers) == 0 {
		condition.Reason, condition.Message = v1alpha1.ReasonNoConsumer, "The policy applies to no consumer"
	}
	// One consumer for which nothing can be decided keeps its last decision, and takes nothing from the others.
	decisions := make([]v1alpha1.ConsumerDecision, len(consumers))
	for i := range consumers {
		before, known := s.last[consumers[i].Name]
		if !known {
			before = had.last(p, consumers[i].Name)
		}
		decision, again, err := roster.decide(now, s, &consumers[i], before, i < explainedConsumers)
		if err != nil && condition.Status == metav1.ConditionTrue {
			condition.Status, condition.Reason = metav1.ConditionFalse, reason(s.err, err)
			condition.Message = fmt.Sprintf("For consumer %s: %s. The last good decision stays", consumers[i].Name, brief(err))
		}
		if again > 0 {
			wait = min(wait, again)
		}
		decisions[i] = decision
	}
	if s.err != nil { // Also without consumers.
		condition.Status, condition.Reason = metav1.ConditionFalse, v1alpha1.ReasonInvalidCriteria
		condition.Message = fmt.Sprintf("%s. The last good decision stays", brief(s.err))
	}
	// What people read of it. Conditions that say nothing of this policy any more go.
	status.Consumers, status.Summary = int32(len(decisions)), summaryOf(decisions) //nolint:gosec // There are no billions.
	set := func(c metav1.Condition) { conditions.Set(&status.Conditions, p.Generation, c) }
	set(condition)
	set(shadowed(to.shadows))
	if known, said := roster.kpisKnown(now, p.Spec.Weights); said {
		set(known)
	} else {
		meta.RemoveStatusCondition(&status.Conditions, v1alpha1.ConditionKPIsKnown)
	}
	if s.scaler == nil {
		meta.RemoveStatusCondition(&status.Conditions, v1alpha1.ConditionMeasured)
		return decisions, wait, nil
	}
	set(s.scaler.condition(now, consumers))
	return decisions, min(wait, s.scaler.interval), nil
}

// brief returns what an error says, as far as it goes into a status.
func brief(err error) string { return excerpt.Of(err.Error(), v1alpha1.MaxMessage) }

// reason names an error of a decision.
func reason(invalid, err error) string {
	switch {
	case invalid != nil:
		return v1alpha1.ReasonInvalidCriteria
	case errors.Is(err, choice.ErrNobody):
		return v1alpha1.ReasonNobodyPasses
	case errors.Is(err, choice.ErrSpread):
		return v1alpha1.ReasonSpreadUnsatisfied
	default:
		return v1alpha1.ReasonFilterFailed
	}
}

// audience is whom a policy decides for.
type audience struct {
	// consumers are those that the policy applies to or may apply to, in order of their names.
	consumers []v1alpha1.Consumer
	// names are what all consumers are called.
	names measure.Names
	// shadows are the policies that go before it.
	shadows []binding.Shadow
}

// audience reads whom a policy decides for, which depends on the other policies.
func (r *Reconciler) audience(ctx context.Context, p *v1alpha1.PlacementPolicy) (audience, error) {
	var consumers v1alpha1.ConsumerList
	if err := r.client.List(ctx, &consumers, client.UnsafeDisableDeepCopy); err != nil {
		return audience{}, fmt.Errorf("list consumers: %w", err)
	}
	var policies v1alpha1.PlacementPolicyList
	if err := r.client.List(ctx, &policies, client.UnsafeDisableDeepCopy); err != nil {
		return audience{}, fmt.Errorf("list placement policies: %w", err)
	}
	return audienceOf(p.Name, consumers.Items, policies.Items), nil
}

// audienceOf returns whom the policy of a name decides for. It reorders the consumers.
func audienceOf(policy string, consumers []v1alpha1.Consumer, policies []v1alpha1.PlacementPolicy) audience {
	clusters := make([]measure.Cluster, len(consumers))
	for i := range consumers {
		c := &consumers[i]
		clusters[i] = measure.Cluster{ID: c.Name, Name: c.Status.ClusterName, Since: c.CreationTimestamp.Time}
	}
	rules := snapshot.Rules(policies)
	to := audience{names: measure.NamesOf(clusters)}
	at := slices.IndexFunc(rules, func(rule binding.Policy) bool { return rule.Name == policy })
	if at < 0 { // It is being deleted.
		return to
	}
	own := &rules[at]
	to.shadows = binding.ShadowsOf(own, rules)
	to.consumers = slices.DeleteFunc(consumers, func(c v1alpha1.Consumer) bool {
		id := cluster.ID(c.Name)
		return binding.OfConsumer(rules, id) != policy && !own.MayApply(id)
	})
	slices.SortFunc(to.consumers, func(a, b v1alpha1.Consumer) int { return strings.Compare(a.Name, b.Name) })
	return to
}

// readRoster reads all providers.
func readRoster(ctx context.Context, objects client.Reader, reader *snapshot.Reader) (*roster, error) {
	var providers v1alpha1.ProviderList
	if err := objects.List(ctx, &providers, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list providers: %w", err)
	}
	shown, err := reader.ShownLabels(ctx)
	if err != nil {
		return nil, err
	}
	return newRoster(providers.Items, shown), nil
}

// withoutMessage returns a status without the message about the KPI that is kept, which changes with its value.
func withoutMessage(status *v1alpha1.PlacementPolicyStatus) *v1alpha1.PlacementPolicyStatus {
	rest := status.DeepCopy()
	if measured := meta.FindStatusCondition(rest.Conditions, v1alpha1.ConditionMeasured); measured != nil {
		measured.Message = ""
	}
	return rest
}
