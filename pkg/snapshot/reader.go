// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

// Package snapshot reads the cluster's objects as the values in which the broker
// decides: what is offered to whom, and the snapshot of a consumer's namespace.
//
// It reads from a cache that has the Indexes, it writes nothing,
// and decides nothing: package binding says which policy a
// namespace follows, placement where its pods run.
package snapshot

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capacitorset/liqo-broker/pkg/api/v1alpha1"
	"github.com/capacitorset/liqo-broker/pkg/core/capacity"
	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
	"github.com/capacitorset/liqo-broker/pkg/core/nodename"
	"github.com/capacitorset/liqo-broker/pkg/core/placement"
	"github.com/capacitorset/liqo-broker/pkg/core/podstate"
	"github.com/capacitorset/liqo-broker/pkg/liqo"
	"github.com/capacitorset/liqo-broker/pkg/liqo/line"
)

// Index fields, usable with client.MatchingFields.
const (
	// IndexNodeCluster finds virtual nodes by the cluster that they say they stand for.
	IndexNodeCluster = "broker.cluster"
	// IndexPodNode finds pods by the node that they are bound to.
	IndexPodNode = "broker.node"
)

// Indexes are the functions behind the index fields, and those by which a line of Liqo's versions reads.
func Indexes(of line.Line) []line.Index {
	return append(of.Indexes(),
		line.Index{Object: &corev1.Node{}, Field: IndexNodeCluster, Extract: func(o client.Object) []string {
			return line.NonEmpty(string(liqo.NodeCluster(o.(*corev1.Node))))
		}},
		line.Index{Object: &corev1.Pod{}, Field: IndexPodNode, Extract: func(o client.Object) []string {
			return line.NonEmpty(o.(*corev1.Pod).Spec.NodeName)
		}},
	)
}

// Reader answers questions about the broker's providers and namespaces. It may
// be used concurrently.
type Reader struct {
	line   line.Line
	reader client.Reader
	// liqo reads Liqo's objects from reader.
	liqo line.Reader
	// own is the broker's cluster; the names of the consumers' nodes depend on it.
	own cluster.ID
	// serves reports whether the broker runs a mode.
	serves func(v1alpha1.Mode) bool
	said   *directs
	// shadows is of which type a list of the metadata of ShadowPods is, and offloading an empty NamespaceOffloading, which stays so.
	shadows    metav1.TypeMeta
	offloading client.Object
}

// New returns a Reader of the broker in a cluster with a line of Liqo. It reads from objects: ConfigMaps from the
// API server, and all else from a cache. The broker runs the modes that it serves; all of
// them if serves is nil.
func New(of line.Line, objects client.Reader, own cluster.ID, serves func(v1alpha1.Mode) bool) *Reader {
	if serves == nil {
		serves = func(v1alpha1.Mode) bool { return true }
	}
	kinds := of.Kinds()
	return &Reader{
		line: of, reader: objects, liqo: of.Reader(objects, own), own: own, serves: serves,
		said:    &directs{clock: clock.RealClock{}, known: map[string]direct{}},
		shadows: kinds.Shadows().TypeMeta, offloading: kinds.Offloading,
	}
}

// Line returns the line of Liqo whose objects are read.
func (r *Reader) Line() line.Line { return r.line }

// Own returns the broker's cluster.
func (r *Reader) Own() cluster.ID { return r.own }

// served reports whether a consumer gets anything new: people have not suspended it, and the
// broker runs the mode in which it is to be served. One without a wish is served in
// whichever there is.
func (r *Reader) served(c *v1alpha1.Consumer) bool {
	return !c.IsSuspended() && (c.Spec.Mode == "" || r.serves(c.Spec.Mode))
}

// Peer returns the peer with an ID, or nil if there is none.
func (r *Reader) Peer(ctx context.Context, id cluster.ID) (*liqo.Peer, error) {
	return r.liqo.Peer(ctx, id)
}

// Offloading returns how a namespace is offloaded, or nil if it is not.
func (r *Reader) Offloading(ctx context.Context, namespace string) (*liqo.Offloading, error) {
	return line.ReadOffloading(ctx, r.reader, r.line, r.offloading, namespace)
}

// TwinsBefore returns how many twin namespaces a consumer had when it got another one.
func (r *Reader) TwinsBefore(ctx context.Context, twin *corev1.Namespace) (int, error) {
	consumer, _ := liqo.TwinOf(twin)
	var all corev1.NamespaceList
	if err := r.reader.List(ctx, &all, client.UnsafeDisableDeepCopy); err != nil {
		return 0, fmt.Errorf("list namespaces: %w", err)
	}
	count := 0
	for i := range all.Items {
		other := &all.Items[i]
		age := other.CreationTimestamp.Compare(twin.CreationTimestamp.Time)
		if of, is := liqo.TwinOf(other); is && of == consumer && (age < 0 || age == 0 && other.Name < twin.Name) {
			count++
		}
	}
	return count, nil
}

// Hides reports whether the consumer of a twin namespace must not learn of providers: unless
// it is served as an orchestrated one. It is true if that is not known.
func (r *Reader) Hides(ctx context.Context, namespace string) (bool, error) {
	var ns corev1.Namespace
	if err := r.reader.Get(ctx, client.ObjectKey{Name: namespace}, &ns); err != nil {
		return true, client.IgnoreNotFound(err)
	}
	id, twin := liqo.TwinOf(&ns)
	if !twin {
		return true, nil
	}
	var consumer v1alpha1.Consumer
	if err := r.reader.Get(ctx, client.ObjectKey{Name: string(id)}, &consumer); err != nil {
		return true, client.IgnoreNotFound(err)
	}
	return consumer.Status.Mode != v1alpha1.ModeOrchestrated, nil
}

// Namesake returns a peer that is known for longer and has the same unique name as another
// one, or nil if there is none. Liqo calls by that name what it makes for a cluster, so
// that the two cannot be told apart.
//
//nolint:nilnil // That there is none is an answer, which every caller has to deal with.
func (r *Reader) Namesake(ctx context.Context, peer *liqo.Peer) (*liqo.Peer, error) {
	others, err := r.liqo.Namesakes(ctx, peer.Identity)
	if err != nil {
		return nil, err
	}
	for i := range others {
		if others[i].Older(peer) {
			return &others[i], nil
		}
	}
	return nil, nil
}

// Namesakes returns the clusters that share a unique name with one.
func (r *Reader) Namesakes(ctx context.Context, id cluster.Identity) ([]cluster.ID, error) {
	others, err := r.liqo.Namesakes(ctx, id)
	ids := make([]cluster.ID, len(others))
	for i := range others {
		ids[i] = others[i].ID
	}
	return ids, err
}

// Twin is a twin namespace at one moment: what placement has to know, and
// the objects in which a plan is carried out.
type Twin struct {
	Snapshot placement.Snapshot
	// Offloading is nil if the namespace has none.
	Offloading *liqo.Offloading
	// Policy is the one that chooses the providers; nil if there is none.
	Policy *v1alpha1.PlacementPolicy
	// Suspended tells that people suspended the consumer, which is then not served.
	Suspended bool
	// Refused tells since when a provider cannot make the namespace.
	Refused map[cluster.ID]time.Time
	// Pods are the pods of the snapshot's copies, by name.
	Pods map[string]*corev1.Pod
}

// Twin reads a twin namespace.
func (r *Reader) Twin(ctx context.Context, ns *corev1.Namespace) (*Twin, error) {
	n := &Twin{Pods: map[string]*corev1.Pod{}, Refused: map[cluster.ID]time.Time{}}
	// What the namespace may use now.
	offloading, err := r.Offloading(ctx, ns.Name)
	if err != nil {
		return nil, err
	}
	if n.Offloading = offloading; offloading != nil {
		n.Snapshot.Selected, n.Snapshot.Placing, n.Snapshot.Effective = offloading.Selected, offloading.Placing, offloading.InForce(ns)
	}

	// Which copies there are. A ShadowPod without a pod is one that is missing.
	shadows, err := r.shadowsIn(ctx, ns.Name)
	if err != nil {
		return nil, err
	}
	var pods corev1.PodList
	if err := r.reader.List(ctx, &pods, client.InNamespace(ns.Name)); err != nil {
		return nil, fmt.Errorf("list pods of namespace %s: %w", ns.Name, err)
	}
	for i := range pods.Items {
		n.Pods[pods.Items[i].Name] = &pods.Items[i]
	}
	nodes := map[string]node{}
	for i := range shadows {
		shadow := &shadows[i]
		pod := n.Pods[shadow.Name]
		if !shadow.DeletionTimestamp.IsZero() || pod != nil && finished(pod) {
			continue
		}
		c, err := r.copyOf(ctx, pod, nodes, &n.Snapshot)
		if err != nil {
			return nil, err
		}
		c.Pod, c.Workload, c.Sole = shadow.Name, workload(shadow.Name, shadow.Labels), isSole(shadow.Labels)
		n.Snapshot.Copies = append(n.Snapshot.Copies, c)
	}
	// What is wanted of it: by the policy, and by whether its consumer is served at all.
	if err := r.follow(ctx, n, ns, shadows); err != nil {
		return nil, err
	}
	consumer, _ := liqo.TwinOf(ns)
	var c v1alpha1.Consumer
	if err := r.reader.Get(ctx, client.ObjectKey{Name: string(consumer)}, &c); client.IgnoreNotFound(err) != nil {
		return nil, fmt.Errorf("get consumer %s: %w", consumer, err)
	}
	n.Snapshot.Unserved, n.Suspended = !r.served(&c), c.IsSuspended()
	if err := r.markDirect(ctx, n, consumer); err != nil {
		return nil, err
	}
	// Only a policy that uses another number of providers from time to time evens out.
	n.Snapshot.Level = n.Policy != nil && n.Policy.Spec.Scaling != nil
	return n, nil
}

// shadowsIn returns the metadata of all that a consumer asks for in a twin namespace. It shares memory with the cache.
func (r *Reader) shadowsIn(ctx context.Context, namespace string) ([]metav1.PartialObjectMetadata, error) {
	list := &metav1.PartialObjectMetadataList{TypeMeta: r.shadows}
	if err := r.reader.List(ctx, list, client.InNamespace(namespace), client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list shadow pods of namespace %s: %w", namespace, err)
	}
	return list.Items, nil
}

// node is what is known of a node: nothing of the broker's own ones.
type node struct {
	cluster cluster.ID
	ready   bool
	// unheard is whether nobody reports on it.
	unheard bool
}

// copyOf tells where a pod is and how it does. It remembers the nodes that it
// looked up.
func (r *Reader) copyOf(
	ctx context.Context, pod *corev1.Pod, nodes map[string]node, s *placement.Snapshot,
) (placement.Copy, error) {
	if pod == nil {
		return placement.Copy{Missing: true}, nil
	}
	_, pinned := nodename.MarkOf(liqo.OriginNode(pod))
	c := placement.Copy{
		Leaving: !pod.DeletionTimestamp.IsZero(), Ready: podstate.Ready(pod), Requests: capacity.Requests(&pod.Spec), Pinned: pinned,
	}
	if pod.Spec.NodeName == "" {
		c.Outdated = r.outdated(pod, s)
		return c, nil
	}
	at, known := nodes[pod.Spec.NodeName]
	if !known {
		var err error
		if at, err = r.nodeCalled(ctx, pod.Spec.NodeName); err != nil {
			return c, err
		}
		nodes[pod.Spec.NodeName] = at
	}
	if at.cluster == "" {
		c.Spot = placement.OnBroker
		return c, nil
	}
	// What a pod was last heard to do says nothing when its node is silent.
	c.Spot, c.Provider, c.Ready, c.Unheard = placement.OnProvider, at.cluster, c.Ready && at.ready, at.unheard
	return c, nil
}

// nodeCalled returns what is known of a node; nothing of one that is gone.
func (r *Reader) nodeCalled(ctx context.Context, name string) (node, error) {
	var found corev1.Node
	if err := r.reader.Get(ctx, client.ObjectKey{Name: name}, &found); apierrors.IsNotFound(err) {
		return node{}, nil
	} else if err != nil {
		return node{}, fmt.Errorf("get node %s: %w", name, err)
	}
	id, err := r.ClusterOf(ctx, &found)
	if err != nil {
		return node{}, err
	}
	silent, err := r.gatewayIsSilent(ctx, id)
	if err != nil {
		return node{}, err
	}
	readiness := liqo.NodeReadiness(&found)
	return node{cluster: id, ready: readiness == corev1.ConditionTrue && !silent, unheard: readiness == corev1.ConditionUnknown}, nil
}

// gatewayIsSilent reports whether the gateway to a provider is silent, so that nothing is known of what runs there.
func (r *Reader) gatewayIsSilent(ctx context.Context, id cluster.ID) (bool, error) {
	if id == "" {
		return false, nil
	}
	var p v1alpha1.Provider
	if err := r.reader.Get(ctx, client.ObjectKey{Name: string(id)}, &p); client.IgnoreNotFound(err) != nil {
		return false, fmt.Errorf("get provider %s: %w", id, err)
	}
	return p.GatewayIsSilent(), nil
}

// outdated reports whether a pod that waits was made for other providers than those on which
// pods are placed at this moment: it may go where they are not, or may not go where they
// are. A pod that is for one provider only waits while that is gone.
func (r *Reader) outdated(pod *corev1.Pod, s *placement.Snapshot) bool {
	if !liqo.Follows(pod, s.Selected) || !slices.Equal(s.Placing, s.Selected) && !liqo.Follows(pod, s.Placing) {
		return true
	}
	mark, pinned := nodename.MarkOf(liqo.OriginNode(pod))
	if liqo.Waits(pod) {
		return len(s.Placing) > 0 && !pinned
	}
	return slices.ContainsFunc(s.Placing, func(id cluster.ID) bool {
		return liqo.Excludes(pod, id) && (!pinned || nodename.Mark(r.own, id) == mark)
	})
}

func identity(p *v1alpha1.Provider) cluster.Identity {
	return cluster.Identity{ID: cluster.ID(p.Name), Name: p.Status.ClusterName}
}

// provider is what placement knows of a provider, for a namespace that was received there as it was.
func provider(p *v1alpha1.Provider, at placement.Namespace) placement.Provider {
	return placement.Provider{
		ID:         cluster.ID(p.Name),
		Health:     health(p),
		LostSince:  lostSince(p),
		Scheduling: scheduling(p),
		Namespace:  at,
		Room:       p.Status.LargestPod,
	}
}

// isObserved reports whether the status of a provider answers to its spec, so that the nodes
// follow it too.
func isObserved(p *v1alpha1.Provider) bool { return p.Status.ObservedGeneration == p.Generation }

// health returns how a provider is, as its Ready condition says: one that is only cordoned is well.
func health(p *v1alpha1.Provider) placement.Health {
	ready := meta.FindStatusCondition(p.Status.Conditions, v1alpha1.ConditionReady)
	switch {
	case ready == nil:
		return placement.NotReady
	case isObserved(p) && (ready.Status == metav1.ConditionTrue || ready.Reason == v1alpha1.ReasonCordoned):
		return placement.Ready
	case ready.Status != metav1.ConditionFalse:
		return placement.NotReady
	case ready.Reason == v1alpha1.ReasonWithdrawn:
		return placement.Withdrawn
	case ready.Reason == v1alpha1.ReasonPeeringEnds:
		return placement.Ending
	default:
		return placement.NotReady
	}
}

// scheduling returns what people want of a provider, as far as its nodes follow.
func scheduling(p *v1alpha1.Provider) placement.Scheduling {
	switch wanted := p.EffectiveScheduling(); {
	case wanted == v1alpha1.SchedulingActive:
		return placement.Active
	case wanted == v1alpha1.SchedulingCordoned:
		return placement.Cordoned
	case isObserved(p):
		return placement.Drained
	default:
		return placement.Closing
	}
}

// choiceOf returns what the policy of a namespace says of a provider.
func choiceOf(chosen, barred bool) placement.Choice {
	switch {
	case !chosen:
		return placement.Unchosen
	case barred:
		return placement.Barred
	default:
		return placement.Chosen
	}
}

// reception returns what became of a namespace on a cluster; nothing if its offloading is nil.
func (r *Reader) reception(o *liqo.Offloading, at cluster.Identity) liqo.Reception {
	if o == nil {
		return liqo.Reception{}
	}
	return r.line.ReceptionOf(o.Object, at)
}

// namespaceOn returns where a namespace is, as placement is to know it, that was received on a cluster in some way.
func (r *Reader) namespaceOn(id cluster.Identity, ns *corev1.Namespace, received liqo.Reception) placement.Namespace {
	switch {
	case r.line.Passed(ns, id):
		return placement.Passed
	case received.Present:
		return placement.Present
	default:
		return placement.Absent
	}
}

// lostSince returns since when a provider is out of reach; zero if it is not.
func lostSince(p *v1alpha1.Provider) time.Time {
	if since := p.UnreachableSince(); since != nil {
		return since.Time
	}
	return time.Time{}
}

// finished reports whether a pod has ended by itself. One that is being deleted may
// look the same in its last moments, and is recreated.
func finished(pod *corev1.Pod) bool {
	return pod.DeletionTimestamp.IsZero() && podstate.Ended(pod)
}
