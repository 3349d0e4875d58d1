// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package consumer

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capacitorset/liqo-broker/pkg/api/v1alpha1"
	"github.com/capacitorset/liqo-broker/pkg/conditions"
	"github.com/capacitorset/liqo-broker/pkg/core/capacity"
	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
	"github.com/capacitorset/liqo-broker/pkg/core/grant"
	"github.com/capacitorset/liqo-broker/pkg/core/resources"
	"github.com/capacitorset/liqo-broker/pkg/excerpt"
	"github.com/capacitorset/liqo-broker/pkg/lenient"
	"github.com/capacitorset/liqo-broker/pkg/liqo"
	"github.com/capacitorset/liqo-broker/pkg/snapshot"
)

// Modes are the modes that the broker runs, at least one.
type Modes struct {
	Orchestrator bool
	Aggregator   bool
}

// Serves reports whether the broker runs a mode.
func (m Modes) Serves(mode v1alpha1.Mode) bool {
	switch mode {
	case v1alpha1.ModeOrchestrated:
		return m.Orchestrator
	case v1alpha1.ModeAggregated:
		return m.Aggregator
	default:
		return false
	}
}

// effective returns the mode in which a consumer is served that is to have a mode, or
// has whichever there is; empty if it is not served. A mode is not replaced by another:
// one that is to see no providers must not see them because of a flag.
func (m Modes) effective(want v1alpha1.Mode) v1alpha1.Mode {
	switch {
	case m.Serves(want):
		return want
	case want != "":
		return ""
	case m.Orchestrator:
		return v1alpha1.ModeOrchestrated
	default:
		return v1alpha1.ModeAggregated
	}
}

// Reconciler keeps the Consumer of one cluster.
type Reconciler struct {
	client   client.Client
	reader   *snapshot.Reader
	capacity func(context.Context) (*capacity.Snapshot, error)
	modes    Modes
	agents   *agents // Nil where consumers have none.
}

// Config is what the controller needs.
type Config struct {
	Client client.Client
	Reader *snapshot.Reader
	// Capacity tells what is offered to whom at this moment.
	Capacity func(context.Context) (*capacity.Snapshot, error)
	Modes    Modes
	// Heard tells what was heard of a consumer's agent, and is nil with Liqo 0.9, where there is none.
	Heard func(ctx context.Context, consumer cluster.ID) (grant.Heard, error)
	Clock clock.PassiveClock
}

// New returns a Reconciler.
func New(cfg Config) *Reconciler {
	r := &Reconciler{client: cfg.Client, reader: cfg.Reader, capacity: cfg.Capacity, modes: cfg.Modes}
	if cfg.Heard != nil {
		r.agents = &agents{heard: cfg.Heard, clock: cfg.Clock, since: map[string]time.Time{}}
	}
	return r
}

// Reconcile creates the Consumer of a cluster at its first incoming peering and
// keeps its status.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	peer, err := r.reader.Peer(ctx, cluster.ID(req.Name))
	if err != nil {
		return ctrl.Result{}, err
	}
	c := &v1alpha1.Consumer{}
	err = r.client.Get(ctx, req.NamespacedName, c)
	switch {
	case apierrors.IsNotFound(err):
		r.agents.forget(req.Name)
		return ctrl.Result{}, r.create(ctx, peer)
	case err != nil:
		return ctrl.Result{}, fmt.Errorf("get consumer %s: %w", req.Name, err)
	case !c.DeletionTimestamp.IsZero():
		return ctrl.Result{}, nil
	}
	later, err := r.ensureStatus(ctx, c, peer)
	return ctrl.Result{RequeueAfter: later}, err
}

// create makes the Consumer of a peer that peers with the broker.
func (r *Reconciler) create(ctx context.Context, peer *liqo.Peer) error {
	if peer == nil || !peer.Incoming.Exists {
		return nil
	}
	c := &v1alpha1.Consumer{ObjectMeta: metav1.ObjectMeta{Name: string(peer.ID)}}
	if err := r.client.Create(ctx, c); client.IgnoreAlreadyExists(err) != nil {
		return fmt.Errorf("create consumer %s: %w", c.Name, err)
	}
	return nil
}

// ensureStatus writes the status if it has changed, and returns after how long another one may be right though nothing happens; zero for
// never.
func (r *Reconciler) ensureStatus(ctx context.Context, c *v1alpha1.Consumer, peer *liqo.Peer) (later time.Duration, err error) {
	snap, err := r.capacity(ctx)
	if err != nil {
		return 0, err
	}
	granted, err := r.granted(ctx, peer)
	if err != nil {
		return 0, err
	}
	state, err := r.peeringOf(ctx, peer)
	if err != nil {
		return 0, err
	}
	// What it is, and what it has.
	before := c.DeepCopy()
	if peer != nil {
		c.Status.ClusterName = excerpt.Of(peer.Name, v1alpha1.MaxName)
	}
	c.Status.Mode = r.modes.effective(c.Spec.Mode)
	c.Status.ObservedGeneration = c.Generation
	c.Status.Nodes = c.EffectiveNodes()
	setAmounts(c, snap, granted)

	// What is missing.
	all := []metav1.Condition{ready(state, c), reservation(c, snap)}
	if r.agents != nil {
		var agent metav1.Condition
		if agent, later, err = r.agents.condition(ctx, c, state.Exists); err != nil {
			return 0, err
		}
		all = append(all, agent)
	}
	for _, condition := range all {
		conditions.Set(&c.Status.Conditions, c.Generation, condition)
	}
	if equality.Semantic.DeepEqual(before.Status, c.Status) {
		return later, nil
	}
	if err := r.client.Status().Patch(ctx, c, client.MergeFrom(before)); err != nil {
		return 0, fmt.Errorf("patch the status of consumer %s: %w", c.Name, err)
	}
	return later, nil
}

// granted returns what Liqo offers to a consumer in the broker's name.
func (r *Reconciler) granted(ctx context.Context, peer *liqo.Peer) (corev1.ResourceList, error) {
	offers, err := r.reader.OffersTo(ctx, peer)
	if err != nil {
		return nil, err
	}
	var granted corev1.ResourceList
	for i := range offers {
		granted = resources.Sum(granted, offers[i].Resources)
	}
	return granted, nil
}

// peeringState is what the broker sees of the peering with a consumer.
type peeringState struct {
	liqo.Peering

	// namesake is the name of an older foreign cluster that Liqo cannot tell apart from
	// the consumer's; empty if there is none.
	namesake string
}

// peeringOf observes the peering with a consumer, which may be nil.
func (r *Reconciler) peeringOf(ctx context.Context, peer *liqo.Peer) (peeringState, error) {
	if peer == nil {
		return peeringState{}, nil
	}
	namesake, err := r.reader.Namesake(ctx, peer)
	if err != nil {
		return peeringState{}, err
	}
	state := peeringState{Peering: peer.Incoming}
	if namesake != nil {
		state.namesake = namesake.Record
	}
	return state, nil
}

// setAmounts writes into the status what the consumer is offered, granted and uses, in mebibytes.
func setAmounts(c *v1alpha1.Consumer, snap *capacity.Snapshot, granted corev1.ResourceList) {
	id := cluster.ID(c.Name)
	for _, f := range []struct {
		field *corev1.ResourceList
		value corev1.ResourceList
	}{
		{&c.Status.Offered, resources.Readable(snap.Offered(id))}, {&c.Status.Used, resources.ReadableUse(resources.Sum(snap.Used(id)))},
		{&c.Status.Granted, resources.Readable(granted)},
	} {
		if !resources.Identical(*f.field, f.value) {
			*f.field = f.value
		}
	}
	setNodeOffers(c, snap.NodeOffers(id))
}

// setNodeOffers writes into the status what each node of a consumer is offered, if there
// are others than the one that stands for the broker.
func setNodeOffers(c *v1alpha1.Consumer, offers []capacity.NodeOffer) {
	if len(offers) == 1 && offers[0].Node == "" {
		c.Status.NodeOffers = nil
		return
	}
	shown := make([]v1alpha1.NodeOffer, len(offers))
	for i, p := range offers {
		shown[i] = v1alpha1.NodeOffer{Node: p.Node, Provider: string(p.Provider), Offered: resources.Readable(p.Offered)}
	}
	if !slices.EqualFunc(c.Status.NodeOffers, shown, func(a, b v1alpha1.NodeOffer) bool {
		return a.Node == b.Node && a.Provider == b.Provider && resources.Identical(a.Offered, b.Offered)
	}) {
		c.Status.NodeOffers = shown
	}
}

// ready returns the Ready condition of a consumer.
func ready(peering peeringState, c *v1alpha1.Consumer) metav1.Condition {
	is := func(status metav1.ConditionStatus, reason, message string) metav1.Condition {
		return metav1.Condition{Type: v1alpha1.ConditionReady, Status: status, Reason: reason, Message: message}
	}
	switch {
	case peering.namesake != "":
		return is(metav1.ConditionFalse, v1alpha1.ReasonClusterNameTaken, fmt.Sprintf(
			"Liqo has the same unique name for the cluster of ForeignCluster %s, which is older: the two cannot be told apart", peering.namesake))
	case !peering.Exists:
		return is(metav1.ConditionFalse, v1alpha1.ReasonNotPeered, "There is no incoming peering with the cluster")
	case peering.Ending:
		return is(metav1.ConditionFalse, v1alpha1.ReasonPeeringEnds, "One of the two clusters ends the peering")
	case !peering.Established:
		return is(metav1.ConditionFalse, v1alpha1.ReasonPeeringPending, "The incoming peering with the cluster is not established yet")
	case c.IsSuspended():
		return is(metav1.ConditionFalse, v1alpha1.ReasonSuspended, "The cluster is suspended: it keeps what it uses, and is offered nothing more")
	case c.Status.Mode == "":
		return is(metav1.ConditionFalse, v1alpha1.ReasonModeNotServed,
			fmt.Sprintf("The broker does not run the mode %s: the cluster keeps what it uses, and is offered nothing more", c.Spec.Mode))
	case resources.IsZero(c.Status.Offered):
		return is(metav1.ConditionFalse, v1alpha1.ReasonNoProvider, "No provider has resources for the cluster")
	case c.Spec.Nodes == v1alpha1.NodesPerProvider && c.Status.Nodes != v1alpha1.NodesPerProvider:
		return is(metav1.ConditionTrue, v1alpha1.ReasonProvidersHidden,
			fmt.Sprintf("In mode %s the cluster does not see the providers, and has one node", c.Status.Mode))
	default:
		return is(metav1.ConditionTrue, v1alpha1.ReasonOffering,
			fmt.Sprintf("Offering %s CPU and %s memory", c.Status.Offered.Cpu(), c.Status.Offered.Memory()))
	}
}

// reservation returns the ReservationMet condition of a consumer.
func reservation(c *v1alpha1.Consumer, snap *capacity.Snapshot) metav1.Condition {
	is := func(status metav1.ConditionStatus, reason, message string) metav1.Condition {
		return metav1.Condition{Type: v1alpha1.ConditionReservationMet, Status: status, Reason: reason, Message: message}
	}
	reserved := corev1.ResourceList(c.Spec.Capacity.Reserved)
	above := shortOf(resources.AtMost(reserved, corev1.ResourceList(c.Spec.Capacity.Limit)), reserved)
	short := shortOf(snap.Obtainable(cluster.ID(c.Name)), snapshot.TermsOf(c).Reserved)
	unreadable := lenient.UnreadableIn(c, "spec.capacity")
	switch {
	case unreadable != "":
		return is(metav1.ConditionFalse, v1alpha1.ReasonInvalidCapacity, "What cannot be read counts as zero: "+unreadable)
	case len(reserved) == 0:
		return is(metav1.ConditionTrue, v1alpha1.ReasonNothingReserved, "Nothing is reserved for the cluster")
	case above != "":
		return is(metav1.ConditionFalse, v1alpha1.ReasonReservedAboveLimit, "More is reserved than the limit allows: "+above)
	case short != "":
		return is(metav1.ConditionFalse, v1alpha1.ReasonTooLittleFree, "The providers have less than what is reserved: "+short)
	default:
		return is(metav1.ConditionTrue, v1alpha1.ReasonReserved, "The cluster can use all that is reserved for it")
	}
}

// shortOf names in order the resources of which there is less than is wanted.
func shortOf(have, want corev1.ResourceList) string {
	var short []string
	for name, quantity := range want {
		if has := have[name]; has.Cmp(quantity) < 0 {
			short = append(short, fmt.Sprintf("%s %s of %s", name, has.String(), quantity.String()))
		}
	}
	slices.Sort(short)
	return strings.Join(short, ", ")
}
