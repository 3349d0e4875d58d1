// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package provider

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capacitorset/liqo-broker/pkg/api/v1alpha1"
	"github.com/capacitorset/liqo-broker/pkg/conditions"
	"github.com/capacitorset/liqo-broker/pkg/core/capacity"
	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
	"github.com/capacitorset/liqo-broker/pkg/core/placement"
	"github.com/capacitorset/liqo-broker/pkg/core/resources"
	"github.com/capacitorset/liqo-broker/pkg/excerpt"
	"github.com/capacitorset/liqo-broker/pkg/lenient"
	"github.com/capacitorset/liqo-broker/pkg/liqo"
	"github.com/capacitorset/liqo-broker/pkg/snapshot"
)

// annotationConsumes is on Providers that are drained because the cluster uses the broker, and
// nobody has decided otherwise since.
const annotationConsumes = "brokering.liqo.io/consumes"

// annotationUnasked is on Providers that the broker has made Active, about which nobody has decided yet, and which have had no pods.
const annotationUnasked = "brokering.liqo.io/unasked"

// Reconciler keeps the Provider of one cluster.
type Reconciler struct {
	client client.Client
	reader *snapshot.Reader
	clock  clock.PassiveClock
	plans  Plans
	// gateways tells which are silent; nil where no gateway says again and again how its tunnel is.
	gateways *gateways
	// fromConsumers activates also those that use the broker.
	fromConsumers bool
}

// Plans tells what is planned for namespaces.
type Plans interface {
	// Plan decides about a namespace that was read, and says when it may decide otherwise although
	// nothing changes; zero for never.
	Plan(ctx context.Context, ns *corev1.Namespace, twin *snapshot.Twin) (placement.Plan, time.Duration)
}

// Config is what the controller needs.
type Config struct {
	Client client.Client
	Reader *snapshot.Reader
	Clock  clock.PassiveClock
	// Live tells how the tunnels to peers are, past all caches. It is nil with Liqo 0.9, of whose gateway only its pods say whether it runs.
	Live func(context.Context) ([]liqo.Link, error)
	// Plans tells what is planned for the namespaces that have pods on a provider.
	Plans Plans
	// FromConsumers activates also the providers that use the broker, which are otherwise drained until
	// somebody activates them.
	FromConsumers bool
}

// New returns a Reconciler.
func New(cfg Config) *Reconciler {
	return &Reconciler{
		client: cfg.Client, reader: cfg.Reader, clock: cfg.Clock, plans: cfg.Plans, fromConsumers: cfg.FromConsumers,
		gateways: newGateways(cfg.Reader.Links, cfg.Live, cfg.Clock),
	}
}

// Reconcile creates the Provider of a cluster at its first outgoing peering,
// closes or opens its virtual nodes as its spec says, and then writes its
// status: who reads in the status that a change of the spec has been observed
// can rely on the nodes.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	peer, err := r.reader.Peer(ctx, cluster.ID(req.Name))
	if err != nil {
		return ctrl.Result{}, err
	}
	p := &v1alpha1.Provider{}
	err = r.client.Get(ctx, req.NamespacedName, p)
	switch {
	case apierrors.IsNotFound(err):
		return ctrl.Result{}, r.create(ctx, peer)
	case err != nil:
		return ctrl.Result{}, fmt.Errorf("get provider %s: %w", req.Name, err)
	case !p.DeletionTimestamp.IsZero():
		return ctrl.Result{}, nil
	}
	if err := r.ensureAsked(ctx, p, peer); err != nil {
		return ctrl.Result{}, err
	}
	if err := r.ensureNote(ctx, p); err != nil {
		return ctrl.Result{}, err
	}

	// Its virtual nodes, and then what is said of it.
	nodes, err := r.reader.NodesOf(ctx, cluster.ID(p.Name), peer)
	if err != nil {
		return ctrl.Result{}, err
	}
	silent, err := r.silence(ctx, p, peer)
	if err != nil {
		return ctrl.Result{}, err
	}
	for i := range nodes {
		// Pods that want this provider must not come to a node that is not its own, nor to one that is called ready and out of reach.
		closed := p.EffectiveScheduling() != v1alpha1.SchedulingActive || !nodes[i].Offered || !silent.IsZero()
		if err := r.ensureTaint(ctx, &nodes[i].Node, closed); err != nil {
			return ctrl.Result{}, err
		}
	}
	seen, err := r.observe(ctx, p, peer, nodes, silent)
	if err != nil {
		return ctrl.Result{}, err
	}
	return ctrl.Result{}, r.ensureStatus(ctx, p, peer, seen)
}

// create makes the Provider of a peer that the broker peers with. One that
// uses the broker need not have agreed to more than that the broker's Service reaches it.
func (r *Reconciler) create(ctx context.Context, peer *liqo.Peer) error {
	if peer == nil || !peer.Outgoing.Exists {
		return nil
	}
	p := &v1alpha1.Provider{ObjectMeta: metav1.ObjectMeta{Name: string(peer.ID)}}
	consumes := peer.Incoming.Exists && !r.fromConsumers
	p.Spec.Scheduling = v1alpha1.SchedulingActive
	p.Annotations = map[string]string{annotationUnasked: "true"}
	if consumes {
		p.Spec.Scheduling = v1alpha1.SchedulingDrained
		p.Annotations = map[string]string{annotationConsumes: "true"}
	}
	if err := r.client.Create(ctx, p); client.IgnoreAlreadyExists(err) != nil {
		return fmt.Errorf("create provider %s: %w", p.Name, err)
	}
	return nil
}

// ensureAsked drains a provider that has come to use the broker, if nobody has decided about it and it has had no pods: which of both
// peerings came first says nothing about what its people have agreed to.
func (r *Reconciler) ensureAsked(ctx context.Context, p *v1alpha1.Provider, peer *liqo.Peer) error {
	if _, unasked := p.Annotations[annotationUnasked]; !unasked {
		return nil
	}
	counted := p.Generation > 1 || !p.Status.Used.Pods().IsZero()
	consumes := peer != nil && peer.Incoming.Exists && !r.fromConsumers
	if !counted && !consumes {
		return nil
	}
	before := p.DeepCopy()
	delete(p.Annotations, annotationUnasked)
	if !counted {
		p.Spec.Scheduling = v1alpha1.SchedulingDrained
		p.Annotations[annotationConsumes] = "true"
	}
	if err := r.client.Patch(ctx, p, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})); err != nil {
		return fmt.Errorf("patch provider %s, which uses the broker: %w", p.Name, err)
	}
	return nil
}

// ensureNote takes the note away that a provider is drained because it uses the broker, once
// people have decided otherwise.
func (r *Reconciler) ensureNote(ctx context.Context, p *v1alpha1.Provider) error {
	if _, noted := p.Annotations[annotationConsumes]; !noted || p.EffectiveScheduling() == v1alpha1.SchedulingDrained {
		return nil
	}
	before := p.DeepCopy()
	delete(p.Annotations, annotationConsumes)
	if err := r.client.Patch(ctx, p, client.MergeFrom(before)); err != nil {
		return fmt.Errorf("patch the annotations of provider %s: %w", p.Name, err)
	}
	return nil
}

// ensureTaint puts the taint on a node, or takes it away.
func (r *Reconciler) ensureTaint(ctx context.Context, node *corev1.Node, want bool) error {
	ours := func(t corev1.Taint) bool { return t.Key == liqo.TaintCordoned }
	if slices.ContainsFunc(node.Spec.Taints, ours) == want {
		return nil
	}
	before := node.DeepCopy()
	node.Spec.Taints = slices.DeleteFunc(node.Spec.Taints, ours)
	if want {
		node.Spec.Taints = append(node.Spec.Taints, corev1.Taint{Key: liqo.TaintCordoned, Effect: corev1.TaintEffectNoSchedule})
	}
	// The patch replaces the list of taints, so nobody else may have changed it.
	patch := client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
	if err := r.client.Patch(ctx, node, patch); err != nil {
		return fmt.Errorf("patch the taints of node %s: %w", node.Name, err)
	}
	return nil
}

// silence returns when the gateway to a provider said last that the tunnel is up, if it does not say so any more; zero otherwise.
func (r *Reconciler) silence(ctx context.Context, p *v1alpha1.Provider, peer *liqo.Peer) (time.Time, error) {
	if r.gateways == nil {
		return time.Time{}, nil
	}
	links, err := r.reader.LinksTo(ctx, peer)
	if err != nil {
		return time.Time{}, err
	}
	for i := range links {
		if r.gateways.isSilent(&links[i], p.GatewayIsSilent()) {
			return links[i].Said, nil
		}
	}
	return time.Time{}, nil
}

// observe collects what the Provider's status follows from.
func (r *Reconciler) observe(
	ctx context.Context, p *v1alpha1.Provider, peer *liqo.Peer, nodes []snapshot.VirtualNode, silent time.Time,
) (observation, error) {
	_, consumes := p.Annotations[annotationConsumes]
	seen := observation{
		scheduling: p.EffectiveScheduling(), consumes: consumes, silent: silent,
		capacity: p.Spec.Capacity, unreadable: lenient.UnreadableIn(p, "spec.capacity"), used: map[string]corev1.ResourceList{},
	}
	own := make([]corev1.Node, 0, len(nodes))
	for i := range nodes {
		if !nodes[i].Own {
			continue
		}
		own = append(own, nodes[i].Node)
		pods, err := r.pods(ctx, nodes[i].Name)
		if err != nil {
			return seen, err
		}
		seen.used[nodes[i].Name] = used(pods, nodes[i].Status.Allocatable)
	}
	if peer != nil {
		if err := r.peering(ctx, &seen, peer, nodes); err != nil {
			return seen, err
		}
	}
	seen.reachable = reachability(r.clock.Now(), p.UnreachableSince(), own, seen.established && !seen.ending, silent)
	if seen.scheduling != v1alpha1.SchedulingDrained {
		return seen, nil
	}
	left, err := r.leaving(ctx, cluster.ID(p.Name), own)
	seen.leaving = left
	return seen, err
}

// peering observes the peering with a provider, and what it offers.
func (r *Reconciler) peering(ctx context.Context, seen *observation, peer *liqo.Peer, nodes []snapshot.VirtualNode) error {
	namesake, err := r.reader.Namesake(ctx, peer)
	if err != nil {
		return err
	}
	if namesake != nil {
		seen.namesake = namesake.Record
	}
	if err := r.offers(ctx, seen, peer, nodes); err != nil {
		return err
	}
	seen.established, seen.ending = peer.Outgoing.Established, seen.ending || peer.Outgoing.Ending
	return nil
}

// offers observes the offers of a provider that are in force or, if there are none,
// whether there are others that it takes back. What nobody can mean, or what is said of
// another cluster, counts for nothing and does no harm to the rest.
func (r *Reconciler) offers(ctx context.Context, seen *observation, peer *liqo.Peer, nodes []snapshot.VirtualNode) error {
	offers, refused, err := r.reader.OffersBy(ctx, peer)
	if err != nil {
		return err
	}
	seen.refused = refused
	for i := range offers {
		o := &offers[i]
		switch err := resources.Validate(o.Resources); {
		case o.Ending:
			seen.ending = true
		case o.Unreadable != "": // What it lacks is read as zero, and nothing is not what was said.
			seen.refused = append(seen.refused, snapshot.Refusal{Offer: o.Name, Reason: errors.New("it cannot be read: " + o.Unreadable)})
		case err != nil:
			seen.refused = append(seen.refused, snapshot.Refusal{Offer: o.Name, Reason: err})
		case o.IsNothing():
			seen.withdrawn = true
		case o.Accepted:
			of := offered{resources: o.Resources, node: o.Node}
			of.look(nodes, peer.ID)
			seen.offers = append(seen.offers, of)
		}
	}
	if len(seen.offers) > 0 {
		seen.ending, seen.withdrawn = false, false
	}
	return nil
}

// look looks at the node of an offer.
func (of *offered) look(nodes []snapshot.VirtualNode, provider cluster.ID) {
	for i := range nodes {
		if nodes[i].Name != of.node {
			continue
		}
		if says := liqo.NodeCluster(&nodes[i].Node); says != provider {
			of.says = says
			return
		}
		of.nodeReady = liqo.NodeReady(&nodes[i].Node)
		of.nodeUnknown = liqo.NodeReadiness(&nodes[i].Node) == corev1.ConditionUnknown
		return
	}
}

// pods returns the pods of a virtual node. They are not to be changed.
func (r *Reconciler) pods(ctx context.Context, node string) ([]corev1.Pod, error) {
	var pods corev1.PodList
	if err := r.client.List(ctx, &pods, client.MatchingFields{snapshot.IndexPodNode: node}, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list the pods of node %s: %w", node, err)
	}
	return pods.Items, nil
}

// used returns what the pods of a node use of it, which has so much.
func used(pods []corev1.Pod, node corev1.ResourceList) corev1.ResourceList {
	sum := corev1.ResourceList{}
	for i := range pods {
		if capacity.Counts(&pods[i]) {
			resources.Add(sum, capacity.Takes(&pods[i], node))
		}
	}
	return sum
}

// leaving looks at what is left on the nodes of a provider that is to be drained.
func (r *Reconciler) leaving(ctx context.Context, id cluster.ID, nodes []corev1.Node) (leaving, error) {
	var left leaving
	namespaces := map[string]bool{}
	for i := range nodes {
		pods, err := r.pods(ctx, nodes[i].Name)
		if err != nil {
			return left, err
		}
		for j := range pods {
			if capacity.Counts(&pods[j]) {
				left.pods++
				namespaces[pods[j].Namespace] = true
			}
		}
	}
	for name := range namespaces {
		var ns corev1.Namespace
		if err := r.client.Get(ctx, client.ObjectKey{Name: name}, &ns); apierrors.IsNotFound(err) {
			continue // Not a twin namespace: the cache holds no others.
		} else if err != nil {
			return left, fmt.Errorf("get namespace %s: %w", name, err)
		}
		twin, err := r.reader.Twin(ctx, &ns)
		if err != nil {
			return left, err
		}
		plan, _ := r.plans.Plan(ctx, &ns, twin)
		for _, h := range plan.Held {
			if h.Provider == id && h.Reason != placement.TooManyNotReady {
				left.held = append(left.held, v1alpha1.HeldPod{Namespace: name, Pod: h.Pod, Reason: string(h.Reason)})
			}
		}
	}
	slices.SortFunc(left.held, func(a, b v1alpha1.HeldPod) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Pod, b.Pod))
	})
	return left, nil
}

// ensureStatus writes the status if it has changed.
func (r *Reconciler) ensureStatus(
	ctx context.Context, p *v1alpha1.Provider, peer *liqo.Peer, seen observation,
) error {
	before := p.DeepCopy()
	measured, ready := assess(seen)
	if peer != nil {
		p.Status.ClusterName = excerpt.Of(peer.Name, v1alpha1.MaxName)
	}
	p.Status.ObservedGeneration = p.Generation
	account(&p.Status, seen, measured)
	p.Status.Held = seen.leaving.held[:min(len(seen.leaving.held), v1alpha1.MaxHeld)]
	draining, drained := drain(seen)
	for _, c := range []metav1.Condition{ready, seen.reachable, draining, drained, refusal(seen)} {
		if c.Status == "" {
			meta.RemoveStatusCondition(&p.Status.Conditions, c.Type)
			continue
		}
		conditions.Set(&p.Status.Conditions, p.Generation, c)
		if !c.LastTransitionTime.IsZero() { // The time that is kept may be in the future.
			meta.FindStatusCondition(p.Status.Conditions, c.Type).LastTransitionTime = c.LastTransitionTime
		}
	}
	if equality.Semantic.DeepEqual(before.Status, p.Status) {
		return nil
	}
	if err := r.client.Status().Patch(ctx, p, client.MergeFrom(before)); err != nil {
		return fmt.Errorf("patch the status of provider %s: %w", p.Name, err)
	}
	return nil
}
