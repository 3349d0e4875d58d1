// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

// Package consuming reads of a cluster that is no broker what is shown of its own pods at brokers: where they are, by which path they are
// reached, and which of them are at home and should not be.
//
// It does not know to whom it is shown, nor what brokers know.
package consuming

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capacitorset/liqo-broker/pkg/core/addressing"
	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
	"github.com/capacitorset/liqo-broker/pkg/excerpt"
	"github.com/capacitorset/liqo-broker/pkg/liqo"
	"github.com/capacitorset/liqo-broker/pkg/liqo/line"
	"github.com/capacitorset/liqo-broker/pkg/overview"
	"github.com/capacitorset/liqo-broker/pkg/sheet"
	"github.com/capacitorset/liqo-broker/pkg/shown"
	"github.com/capacitorset/liqo-broker/pkg/shown/apiv1"
	"github.com/capacitorset/liqo-broker/pkg/shown/feed"
)

// TheStatus is the key of the one item of kind Status.
const TheStatus = "consumer"

// indexNode finds pods by their node.
const indexNode = "broker.onNode"

// longest is how much is shown of a name that others have given, in bytes.
const longest = 253

// Kinds returns all kinds, in the order in which they are shown.
func Kinds() []feed.Kind { return []feed.Kind{shown.Workloads, shown.Flows, shown.Status} }

// Index is the index that the cache of Objects must have.
func Index() line.Index {
	return line.Index{Object: &corev1.Pod{}, Field: indexNode, Extract: func(o client.Object) []string {
		pod, is := o.(*corev1.Pod)
		if !is {
			return nil
		}
		return line.NonEmpty(pod.Spec.NodeName)
	}}
}

// Needs returns of which objects a kind is made: those that must be readable, and those that only add to it.
func Needs(liqo line.Kinds, kind feed.Kind) (needed, optional []client.Object) {
	needed = slices.Concat([]client.Object{&corev1.Node{}, &corev1.Pod{}}, liqo.Saying)
	optional = slices.Concat([]client.Object{liqo.Record}, liqo.Peering)
	switch kind {
	case shown.Workloads, shown.Flows:
		optional = append(optional, liqo.Views...)
	case shown.Status:
		needed = append(needed, &corev1.Namespace{}, liqo.Offloading)
	default:
		return nil, nil
	}
	optional = slices.DeleteFunc(optional, func(o client.Object) bool { return slices.ContainsFunc(needed, sameAs(o)) })
	return needed, optional
}

func sameAs(o client.Object) func(client.Object) bool {
	return func(other client.Object) bool { return reflect.TypeOf(other) == reflect.TypeOf(o) }
}

// Objects are the objects of a cluster that uses brokers, or could. They may be used concurrently.
type Objects struct {
	// Reader is that of a cache with the Index. It may refuse to read what only adds to a kind.
	Reader client.Reader
	Line   line.Line
	// Own is the cluster.
	Own cluster.Identity
	// Trades is whether it has what it takes to buy and sell.
	Trades bool
}

// Items returns all of a kind; it is a [feed.Source].
func (o *Objects) Items(ctx context.Context, kind feed.Kind) ([]feed.Item, error) {
	s, err := o.readPlaced(ctx)
	if err != nil {
		return nil, err
	}
	switch kind {
	case shown.Workloads:
		return o.workloads(s), nil
	case shown.Flows:
		return o.flows(s), nil
	case shown.Status:
		return o.status(ctx, s)
	}
	return nil, fmt.Errorf("nothing is of the kind %s", kind)
}

// sight is what is at brokers.
type sight struct {
	reader client.Reader
	ways   liqo.Ways
	// nodes are all virtual ones, and brokers those whose nodes there are, by the names of those.
	nodes   []corev1.Node
	brokers map[string]overview.Cluster
	placed  []overview.Placed
}

// readPlaced reads which nodes are of brokers, and which pods are on them.
func (o *Objects) readPlaced(ctx context.Context) (*sight, error) {
	// Who is a broker, and what peers are called.
	s := &sight{reader: readable{o.Reader}, brokers: map[string]overview.Cluster{}}
	var virtual corev1.NodeList
	selected := client.MatchingLabels{liqo.LabelNodeType: liqo.NodeTypeVirtual}
	if err := s.reader.List(ctx, &virtual, selected, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list nodes: %w", err)
	}
	known := o.Line.Reader(s.reader, o.Own.ID)
	var err error
	if s.ways, err = known.Ways(ctx); err != nil {
		return nil, err
	}
	peers, err := known.Peers(ctx) // Who may not read them sees IDs.
	if err != nil && !apierrors.IsForbidden(err) {
		return nil, err
	}
	names := map[cluster.ID]string{}
	identities := make([]cluster.Identity, len(peers))
	for i := range peers {
		identities[i] = peers[i].Identity
		names[peers[i].ID] = peers[i].Name
	}

	// What is on nodes of brokers.
	s.nodes = virtual.Items
	var pods []corev1.Pod
	for i := range s.nodes {
		node := &s.nodes[i]
		if !s.ways.IsOfBroker(node) {
			continue
		}
		id := liqo.NodeCluster(node)
		s.brokers[node.Name] = bounded(overview.Cluster{ID: string(id), Name: names[id]})
		var there corev1.PodList
		if err := s.reader.List(ctx, &there, client.MatchingFields{indexNode: node.Name}, client.UnsafeDisableDeepCopy); err != nil {
			return nil, fmt.Errorf("list the pods on node %s: %w", node.Name, err)
		}
		pods = append(pods, there.Items...)
	}
	// As it is shown: others have said some of it.
	s.placed = overview.OnConsumer(&s.ways, s.nodes, pods, identities)
	own := bounded(overview.Cluster{ID: string(o.Own.ID), Name: o.Own.Name})
	for i := range s.placed {
		p := &s.placed[i]
		p.Consumer = &own
		if p.Provider != nil {
			p.Provider = new(bounded(*p.Provider))
		}
		if p.Path != addressing.PathDirect.String() && p.Path != addressing.PathRelay.String() {
			p.Path = "" // Whoever writes pods writes what they like.
		}
	}
	return s, nil
}

// bounded returns what a cluster is called, as it can be shown: others have said it.
func bounded(c overview.Cluster) overview.Cluster {
	return overview.Cluster{ID: excerpt.Of(sheet.Plain(c.ID), longest), Name: excerpt.Of(sheet.Plain(c.Name), longest)}
}

func (o *Objects) workloads(s *sight) []feed.Item {
	items := make([]feed.Item, 0, len(s.placed))
	for i := range s.placed {
		p := &s.placed[i]
		w := apiv1.WorkloadOf(p, "", "")
		w.Broker, w.Node = new(apiv1.Cluster(s.brokers[p.Node])), p.Node
		items = append(items, feed.Item{Key: p.Namespace + "/" + p.Pod, Value: w})
	}
	return items
}

func (o *Objects) flows(s *sight) []feed.Item {
	by := map[overview.Cluster][]overview.Placed{}
	for i := range s.placed {
		broker := s.brokers[s.placed[i].Node]
		by[broker] = append(by[broker], s.placed[i])
	}
	var items []feed.Item
	for broker, placed := range by {
		for _, f := range apiv1.FlowsOf(placed) {
			f.Broker = new(apiv1.Cluster(broker))
			provider := ""
			if f.Provider != nil {
				provider = f.Provider.ID
			}
			items = append(items, feed.Item{Key: broker.ID + "/" + provider + "/" + f.Path, Value: f})
		}
	}
	return items
}

func (o *Objects) status(ctx context.Context, s *sight) ([]feed.Item, error) {
	home, err := o.atHome(ctx, s)
	if err != nil {
		return nil, err
	}
	status := apiv1.Status{Healthy: len(home) == 0, Modes: []string{}}
	for _, broker := range s.brokers {
		status.Brokers = append(status.Brokers, apiv1.Cluster(broker))
	}
	slices.SortFunc(status.Brokers, func(a, b apiv1.Cluster) int { return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.ID, b.ID)) })
	status.Brokers = slices.Compact(status.Brokers)
	if len(status.Brokers) == 0 {
		home = append(home, o.usesNone(&s.ways)...)
	}
	status.Next, status.More = apiv1.FindingsOf(home)
	return []feed.Item{{Key: TheStatus, Value: status}}, nil
}

// usesNone says that the cluster uses no broker, and whether it trades, and how it would.
func (o *Objects) usesNone(ways *liqo.Ways) []overview.Finding {
	what, do := overview.NoBroker(ways, "This cluster")
	switch {
	case len(ways.Through) > 0:
		return []overview.Finding{{Problem: false, What: what, Do: "See what is missing: " + do}}
	case do != "":
		do = "Once it is peered with a broker: " + do
	default:
		do = "To use a broker, run there, with the context of this cluster: kubectl liqo-broker join --consumer CONTEXT"
	}
	all := []overview.Finding{{Problem: false, What: what, Do: do}}
	if !o.Trades {
		all = append(all, overview.Finding{
			What: "It does not trade: it has no connector",
			Do:   "To buy or sell, install the chart of the connector, and then: kubectl liqo-broker guard",
		})
	}
	return all
}

// atHome returns a finding for each namespace that is to run elsewhere and has pods that cannot.
func (o *Objects) atHome(ctx context.Context, s *sight) ([]overview.Finding, error) {
	offloadings, err := line.Offloadings(ctx, s.reader, o.Line)
	if err != nil {
		return nil, err
	}
	var pods []corev1.Pod
	for i := range offloadings {
		of := &offloadings[i]
		if !of.Remote || of.Managed {
			continue
		}
		var there corev1.PodList
		if err := s.reader.List(ctx, &there, client.InNamespace(of.Namespace), client.UnsafeDisableDeepCopy); err != nil {
			return nil, fmt.Errorf("list the pods of namespace %s: %w", of.Namespace, err)
		}
		pods = append(pods, there.Items...)
	}
	if len(pods) == 0 {
		return nil, nil
	}
	var namespaces corev1.NamespaceList
	if err := s.reader.List(ctx, &namespaces, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list namespaces: %w", err)
	}
	return overview.AtHome(namespaces.Items, offloadings, s.nodes, pods), nil
}

// readable says of what a cache does not have, because it may not be read, what an API server says of it.
type readable struct{ client.Reader }

// Get implements [client.Reader].
func (r readable) Get(ctx context.Context, key client.ObjectKey, o client.Object, options ...client.GetOption) error {
	return forbidden(r.Reader.Get(ctx, key, o, options...))
}

// List implements [client.Reader].
func (r readable) List(ctx context.Context, list client.ObjectList, options ...client.ListOption) error {
	return forbidden(r.Reader.List(ctx, list, options...))
}

func forbidden(err error) error {
	if none := (*cache.ErrResourceNotCached)(nil); errors.As(err, &none) {
		kind := schema.GroupResource{Group: none.GVK.Group, Resource: strings.ToLower(strings.TrimSuffix(none.GVK.Kind, "List"))}
		return apierrors.NewForbidden(kind, "", err)
	}
	return err
}
