// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

// Package outofband has clusters peer and part as Liqo 0.9 does it out of band: by a token, a ForeignCluster, and its fields.
//
// It does not know why.
package outofband

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capacitorset/liqo-broker/pkg/core/capacity"
	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
	"github.com/capacitorset/liqo-broker/pkg/core/podstate"
	"github.com/capacitorset/liqo-broker/pkg/core/resources"
	"github.com/capacitorset/liqo-broker/pkg/liqo"
	v09 "github.com/capacitorset/liqo-broker/pkg/liqo/v09"
	"github.com/capacitorset/liqo-broker/pkg/trade/connector/peering"
)

const (
	// isTrue is the value of annotations that only have to be there.
	isTrue = "true"

	// annotationContract is on what a connector has made, and what it therefore may change and remove.
	annotationContract = "brokering.liqo.io/by-contract"
	// annotationBought and annotationSold are on foreign clusters of contracts: which directions of the peering are by contract. The others
	// are left as they are.
	annotationBought = "brokering.liqo.io/bought-by-contract"
	annotationSold   = "brokering.liqo.io/sold-by-contract"
)

// annotationDrained is on nodes that Drain or Fit has closed, so that no others are opened.
const annotationDrained = "brokering.liqo.io/drained-by-contract"

// annotationPeered is on foreign clusters that provide by contract: since when this cluster asks them to, in seconds since 1970.
const annotationPeered = "brokering.liqo.io/peered-at"

// nodeTimeout is for how long after its beginning a peering is not ended while it has no node.
const nodeTimeout = time.Minute

// lookupTimeout is how long a name may take to be resolved.
const lookupTimeout = 5 * time.Second

// labelLooked is on foreign clusters that are being left: when Liqo was told last to look at them, in seconds since 1970.
const labelLooked = "brokering.liqo.io/looked-at"

// Driver is both sides. It may be used concurrently for different clusters.
type Driver struct {
	client client.Client
	// liqo is the namespace where Liqo runs.
	liqo  string
	clock clock.PassiveClock
	// lookup resolves names.
	lookup func(ctx context.Context, host string) ([]netip.Addr, error)
}

var (
	_ peering.Buyer  = (*Driver)(nil)
	_ peering.Seller = (*Driver)(nil)
)

// Config is what a Driver needs. All must be there.
type Config struct {
	// Client reads from the API server, and not from a cache: what it wrote last counts.
	Client client.Client
	// Namespace is where Liqo runs.
	Namespace string
	Clock     clock.PassiveClock
}

// New returns a Driver. What it has peered is looked after by the controllers of Setup.
func New(cfg Config) (*Driver, error) {
	if cfg.Client == nil || cfg.Namespace == "" || cfg.Clock == nil {
		return nil, errors.New("a driver of peerings needs a client, the namespace of Liqo and a clock")
	}
	lookup := func(ctx context.Context, host string) ([]netip.Addr, error) {
		return net.DefaultResolver.LookupNetIP(ctx, "ip", host)
	}
	return &Driver{client: cfg.Client, liqo: cfg.Namespace, clock: cfg.Clock, lookup: lookup}, nil
}

// Peer implements [peering.Buyer].
func (d *Driver) Peer(ctx context.Context, with peering.Credentials) error {
	seller := with.Cluster()
	own, err := v09.OwnIdentity(ctx, d.client, d.liqo)
	if err != nil {
		return err
	}
	if own.ID == seller.ID {
		return fmt.Errorf("%w: they are for this cluster itself", peering.ErrCredentials)
	}
	if err := d.resolves(ctx, with.Host()); err != nil {
		return err
	}
	fc, err := v09.ForeignClusterOf(ctx, d.client, seller.ID)
	if err != nil {
		return err
	}
	if fc != nil && !ours(fc) {
		return fmt.Errorf("peer with %s: %w", seller, peering.ErrForeign)
	}
	if err := d.keepToken(ctx, v09.PeerToken(d.liqo, seller.ID, with.Token())); err != nil {
		return err
	}
	// Liqo tells the seller this cluster's token, so that it might peer in turn.
	secret, err := d.token(ctx)
	if err != nil {
		return err
	}
	if fc == nil || !v09.Outgoing(fc).Established {
		if err := d.noteCluster(ctx, secret, annotationTold, seller.ID); err != nil {
			return err
		}
	}
	if fc == nil {
		err := d.consume(ctx, seller, with.AuthURL())
		if apierrors.IsAlreadyExists(err) { // Another cluster has its name.
			err = d.consume(ctx, cluster.Identity{ID: seller.ID, Name: v09.GivenName(seller)}, with.AuthURL())
		}
		return err
	}
	return d.patch(ctx, fc, func() { d.provideHere(fc, with.AuthURL()) })
}

// resolves returns why the host of credentials leads where no other cluster is. A name is resolved as this process does: Liqo asks again,
// with the same DNS.
func (d *Driver) resolves(ctx context.Context, host string) error {
	if _, err := netip.ParseAddr(host); err == nil {
		return nil // It was looked at when it was read.
	}
	ctx, cancel := context.WithTimeout(ctx, lookupTimeout)
	defer cancel()
	found, err := d.lookup(ctx, host)
	if err != nil {
		return fmt.Errorf("%w: resolve the host of authURL: %w", peering.ErrCredentials, err)
	}
	for _, address := range found {
		if err := peering.Outside(address.String()); err != nil {
			return fmt.Errorf("%w: authURL: %w", peering.ErrCredentials, err)
		}
	}
	return nil
}

// uncordon opens those of some nodes that were drained, and no others, to new pods.
func (d *Driver) uncordon(ctx context.Context, nodes []corev1.Node) error {
	for i := range nodes {
		node := &nodes[i]
		if !closed(node) {
			continue
		}
		before := client.MergeFrom(node.DeepCopy())
		delete(node.Annotations, annotationDrained)
		node.Spec.Unschedulable = false
		if err := d.client.Patch(ctx, node, before); err != nil {
			return fmt.Errorf("uncordon node %s: %w", node.Name, err)
		}
	}
	return nil
}

// consume creates the foreign cluster of a seller.
func (d *Driver) consume(ctx context.Context, seller cluster.Identity, authURL string) error {
	fc := v09.NewForeignCluster(seller, authURL)
	d.provideHere(fc, authURL)
	if err := d.client.Create(ctx, fc); err != nil {
		return fmt.Errorf("create ForeignCluster %s: %w", fc.Name, err)
	}
	return nil
}

// provideHere has a foreign cluster provide, and notes since when it is asked to.
func (d *Driver) provideHere(fc *v09.ForeignCluster, authURL string) {
	mark(fc)
	fc.Annotations[annotationBought] = isTrue
	if !v09.Consumes(fc) {
		fc.Annotations[annotationPeered] = strconv.FormatInt(d.clock.Now().Unix(), 10)
	}
	v09.Consume(fc, authURL)
}

// starting reports whether a foreign cluster was asked to provide so lately that its node may be about to come.
func (d *Driver) starting(fc *v09.ForeignCluster) bool {
	since, err := strconv.ParseInt(fc.Annotations[annotationPeered], 10, 64)
	age := d.clock.Now().Unix() - since
	return err == nil && v09.Consumes(fc) && age >= 0 && age < int64(nodeTimeout/time.Second)
}

// keepToken writes the Secret with a seller's token.
func (d *Driver) keepToken(ctx context.Context, want *corev1.Secret) error {
	mark(want)
	var have corev1.Secret
	err := d.client.Get(ctx, client.ObjectKeyFromObject(want), &have)
	switch {
	case apierrors.IsNotFound(err):
		err = d.client.Create(ctx, want)
	case err == nil && v09.Token(&have) != v09.Token(want):
		have.Data, have.Labels = want.Data, want.Labels
		mark(&have)
		err = d.client.Update(ctx, &have)
	}
	if err != nil {
		return fmt.Errorf("keep Secret %s/%s: %w", want.Namespace, want.Name, err)
	}
	return nil
}

// State implements [peering.Buyer].
func (d *Driver) State(ctx context.Context, remote cluster.ID) (peering.State, error) {
	fc, err := v09.ForeignClusterOf(ctx, d.client, remote)
	if err != nil {
		return peering.State{}, err
	}
	nodes, err := d.nodes(ctx, remote)
	if err != nil {
		return peering.State{}, err
	}
	var state peering.State
	for i := range nodes {
		node := peering.Node{Name: nodes[i].Name, Ready: liqo.NodeReadiness(&nodes[i]) == corev1.ConditionTrue, Closed: closed(&nodes[i])}
		state.Nodes = append(state.Nodes, node)
	}
	if fc != nil {
		outgoing := v09.Outgoing(fc)
		state.Exists, state.Established = outgoing.Exists, outgoing.Established
	}
	state.Exists = state.Exists || len(nodes) > 0
	return state, nil
}

// nodes returns the virtual nodes of a cluster, in order of their names.
func (d *Driver) nodes(ctx context.Context, remote cluster.ID) ([]corev1.Node, error) {
	var all corev1.NodeList
	err := d.client.List(ctx, &all, client.MatchingLabels{liqo.LabelNodeType: liqo.NodeTypeVirtual, liqo.LabelRemoteClusterID: string(remote)})
	if err != nil {
		return nil, fmt.Errorf("list the virtual nodes of cluster %s: %w", remote, err)
	}
	return all.Items, nil
}

// Requested implements [peering.Buyer].
func (d *Driver) Requested(ctx context.Context, remote cluster.ID) (corev1.ResourceList, error) {
	nodes, err := d.nodes(ctx, remote)
	if err != nil {
		return nil, err
	}
	requested, count := corev1.ResourceList{}, int64(0)
	for i := range nodes {
		pods, err := d.pods(ctx, nodes[i].Name)
		if err != nil {
			return nil, err
		}
		for i := range pods {
			if !podstate.Ended(&pods[i]) {
				resources.Add(requested, capacity.Requests(&pods[i].Spec))
				count++
			}
		}
	}
	requested[corev1.ResourcePods] = *resource.NewQuantity(count, resource.DecimalSI)
	return requested, nil
}

// pods returns those of a node.
func (d *Driver) pods(ctx context.Context, node string) ([]corev1.Pod, error) {
	var pods corev1.PodList
	if err := d.client.List(ctx, &pods, client.MatchingFields{"spec.nodeName": node}); err != nil {
		return nil, fmt.Errorf("list the pods of node %s: %w", node, err)
	}
	return pods.Items, nil
}

// Drain implements [peering.Buyer].
func (d *Driver) Drain(ctx context.Context, remote cluster.ID) (left int, err error) {
	nodes, err := d.nodes(ctx, remote)
	if err != nil {
		return 0, err
	}
	var failed []error
	for i := range nodes {
		if err := d.cordon(ctx, &nodes[i]); err != nil {
			return 0, err
		}
		n, err := d.evict(ctx, nodes[i].Name)
		left += n
		failed = append(failed, err)
	}
	return left, errors.Join(failed...)
}

// closed reports whether Drain or Fit has closed a node to new pods.
func closed(node *corev1.Node) bool { return node.Annotations[annotationDrained] != "" }

// cordon closes a node to new pods, and notes that it was this driver.
func (d *Driver) cordon(ctx context.Context, node *corev1.Node) error {
	if node.Spec.Unschedulable {
		return nil
	}
	before := client.MergeFrom(node.DeepCopy())
	node.Spec.Unschedulable = true
	metav1.SetMetaDataAnnotation(&node.ObjectMeta, annotationDrained, isTrue)
	if err := d.client.Patch(ctx, node, before); err != nil {
		return fmt.Errorf("cordon node %s: %w", node.Name, err)
	}
	return nil
}

// evict evicts the pods of a node, and returns how many are still there. One that a PodDisruptionBudget keeps stays for now.
func (d *Driver) evict(ctx context.Context, node string) (left int, err error) {
	pods, err := d.pods(ctx, node)
	if err != nil {
		return 0, err
	}
	var failed []error
	for i := range pods {
		pod := &pods[i]
		if podstate.Ended(pod) || ofEveryNode(pod) {
			continue
		}
		left++
		failed = append(failed, d.evictPod(ctx, pod))
	}
	return left, errors.Join(failed...)
}

// evictPod evicts a pod that is not about to go. It is no error if that is refused for now.
func (d *Driver) evictPod(ctx context.Context, pod *corev1.Pod) error {
	if !pod.DeletionTimestamp.IsZero() {
		return nil
	}
	err := d.client.SubResource("eviction").Create(ctx, pod, &policyv1.Eviction{
		ObjectMeta:    metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name},
		DeleteOptions: &metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &pod.UID}},
	})
	if err != nil && !apierrors.IsTooManyRequests(err) && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
		return fmt.Errorf("evict pod %s/%s: %w", pod.Namespace, pod.Name, err)
	}
	return nil
}

// ofEveryNode reports whether a pod would come back at once: it is of a DaemonSet.
func ofEveryNode(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.OwnerReferences, func(o metav1.OwnerReference) bool {
		return o.Kind == "DaemonSet" && o.Controller != nil && *o.Controller
	})
}

// Unpeer implements [peering.Buyer].
func (d *Driver) Unpeer(ctx context.Context, remote cluster.ID) (done bool, err error) {
	fc, err := v09.ForeignClusterOf(ctx, d.client, remote)
	if err != nil {
		return false, err
	}
	if fc != nil && (!ours(fc) || fc.Annotations[annotationBought] == "") {
		return true, nil // It is somebody else's.
	}
	nodes, err := d.nodes(ctx, remote)
	if err != nil {
		return false, err
	}
	// Liqo 0.9.4 leaves a virtual kubelet running, and then its node, if a peering ends after the one was started and before the other is
	// there (deletion-routine.go@v0.9.4).
	if fc != nil && len(nodes) == 0 && d.starting(fc) {
		return false, nil
	}
	if fc != nil {
		if err := d.patch(ctx, fc, func() {
			if v09.ConsumeNoMore(fc); fc.Annotations[annotationSold] == "" {
				v09.ProvideNoMore(fc) // It was made for this peering: also whom people have let in meanwhile leaves with it.
			}
		}); err != nil {
			return false, err
		}
		if v09.Outgoing(fc).Exists {
			return false, d.lookAgain(ctx, fc)
		}
	}
	if len(nodes) > 0 {
		return false, nil
	}
	if err := d.replaceToken(ctx, remote); err != nil {
		return false, err
	}
	if fc != nil && fc.Annotations[annotationSold] != "" { // It still buys from this cluster, or may.
		return true, d.patch(ctx, fc, func() {
			delete(fc.Annotations, annotationBought)
			delete(fc.Annotations, annotationPeered)
		})
	}
	return d.forgetCluster(ctx, remote, fc)
}

// forgetCluster deletes what is known of a cluster with which nothing is shared any more: its token, and the foreign cluster, which is nil
// or marked. It reports whether all is gone.
func (d *Driver) forgetCluster(ctx context.Context, id cluster.ID, fc *v09.ForeignCluster) (gone bool, err error) {
	if fc != nil && v09.Outgoing(fc).Exists {
		return true, nil // This cluster still buys from it.
	}
	token := v09.PeerToken(d.liqo, id, "")
	if err := d.client.Delete(ctx, token); client.IgnoreNotFound(err) != nil {
		return false, fmt.Errorf("delete Secret %s/%s: %w", token.Namespace, token.Name, err)
	}
	if fc == nil || v09.Incoming(fc).Exists {
		return true, nil // There is nothing, or it still buys from this cluster.
	}
	if !fc.DeletionTimestamp.IsZero() {
		return false, d.lookAgain(ctx, fc)
	}
	// Liqo's replicator waits for these, and looks again after minutes if it finds them at the deletion.
	if mapped, err := v09.MapsNamespaces(ctx, d.client, fc); err != nil || mapped {
		return false, err
	}
	err = d.client.Delete(ctx, fc, client.Preconditions{UID: &fc.UID, ResourceVersion: &fc.ResourceVersion})
	if client.IgnoreNotFound(err) != nil {
		return false, fmt.Errorf("delete ForeignCluster %s: %w", fc.Name, err)
	}
	return apierrors.IsNotFound(err), nil // Liqo has a finalizer on it.
}

// lookAgain has Liqo look at a foreign cluster every few seconds, until what was asked of it is done. Liqo 0.9.4 looks at one when it or
// what it owns changes, and else after ten hours; if it fails to let one go that is deleted, since something is there still, then after
// twice the time that it waited last, which comes to minutes (foreign-cluster-controller.go and crdReplicator-operator.go@v0.9.4). A
// changed label is a change to both.
func (d *Driver) lookAgain(ctx context.Context, fc *v09.ForeignCluster) error {
	now := d.clock.Now().Unix()
	last, err := strconv.ParseInt(fc.Labels[labelLooked], 10, 64)
	if since := now - last; err == nil && since >= 0 && since < int64(askedAgain/time.Second) {
		return nil // The change itself has woken who asks.
	}
	err = d.patch(ctx, fc, func() { metav1.SetMetaDataLabel(&fc.ObjectMeta, labelLooked, strconv.FormatInt(now, 10)) })
	if apierrors.IsConflict(err) { // It has changed anyway.
		return nil
	}
	return client.IgnoreNotFound(err)
}

// patch changes a foreign cluster, unless somebody else has in the meantime.
func (d *Driver) patch(ctx context.Context, fc *v09.ForeignCluster, change func()) error {
	before := client.MergeFromWithOptions(fc.DeepCopy(), client.MergeFromWithOptimisticLock{})
	change()
	if err := d.client.Patch(ctx, fc, before); err != nil {
		return fmt.Errorf("change ForeignCluster %s: %w", fc.Name, err)
	}
	return nil
}

// ours reports whether a foreign cluster is by contract, and not of people.
func ours(fc *v09.ForeignCluster) bool { return fc.Annotations[annotationContract] != "" }

func mark(object client.Object) {
	annotations := object.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[annotationContract] = isTrue
	object.SetAnnotations(annotations)
}
