// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capacitorset/liqo-broker/pkg/api/v1alpha1"
	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
	"github.com/capacitorset/liqo-broker/pkg/httpapi/apiv1"
	"github.com/capacitorset/liqo-broker/pkg/httpapi/feed"
	"github.com/capacitorset/liqo-broker/pkg/liqo/line"
	"github.com/capacitorset/liqo-broker/pkg/overview"
)

// The kinds of what is shown.
const (
	providers feed.Kind = "providers"
	consumers feed.Kind = "consumers"
	offers    feed.Kind = "offers"
	policies  feed.Kind = "policies"
	decisions feed.Kind = "decisions"
	workloads feed.Kind = "workloads"
	links     feed.Kind = "links"
	advice    feed.Kind = "advice"
)

// kinds are all of them, each with what it takes to read it. Of the resources workloads, links and advice there are no objects:
// they are there for the right.
func kinds() []struct {
	kind feed.Kind
	access
} {
	return []struct {
		kind feed.Kind
		access
	}{
		{providers, access{resource: "providers"}},
		{consumers, access{resource: "consumers", own: true}},
		{offers, access{resource: "consumers", own: true}},
		{policies, access{resource: "placementpolicies"}},
		{decisions, access{resource: "placementdecisions"}},
		{workloads, access{resource: "workloads", own: true}},
		{links, access{resource: "links"}},
		{advice, access{resource: "advice", own: true}},
	}
}

// made returns of which objects each kind is made.
func made(liqo line.Kinds) map[client.Object][]feed.Kind {
	all := map[client.Object][]feed.Kind{
		&v1alpha1.Provider{}:          {providers, workloads, links, advice},
		&v1alpha1.Consumer{}:          {consumers, offers, workloads, links, advice},
		&v1alpha1.PlacementPolicy{}:   {policies, decisions, advice},
		&v1alpha1.PlacementDecision{}: {decisions, advice},
		&corev1.Namespace{}:           {workloads, advice},
		&corev1.Node{}:                {workloads, advice},
		&corev1.Pod{}:                 {workloads, advice},
		liqo.Record:                   {providers, links, advice},
		liqo.Network:                  {providers, links},
	}
	for _, kind := range liqo.Tunnels {
		all[kind] = []feed.Kind{providers, links}
	}
	for _, kind := range liqo.Peering {
		all[kind] = []feed.Kind{providers, links, advice}
	}
	return all
}

// Watch tells the API what changes in a cache, which is started later.
func (a *API) Watch(ctx context.Context, informers cache.Informers) error {
	if !a.cfg.brokers() {
		return nil
	}
	for object, of := range made(a.cfg.Line.Kinds()) {
		informer, err := informers.GetInformer(ctx, object)
		if err != nil {
			return fmt.Errorf("watch %T: %w", object, err)
		}
		changed := func(any) { a.v1.feed.Changed(of...) }
		if _, err := informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
			AddFunc: changed, UpdateFunc: func(_, now any) { changed(now) }, DeleteFunc: changed,
		}); err != nil {
			return fmt.Errorf("watch %T: %w", object, err)
		}
	}
	return nil
}

// objects reads what is shown. What it returns shares memory with the cache, and is not to be changed.
type objects struct {
	reader client.Reader
	line   line.Line
	own    cluster.Identity
}

// items implements feed.Source.
func (o *objects) items(ctx context.Context, kind feed.Kind) ([]feed.Item, error) {
	now := time.Now().Truncate(time.Minute) // "For 2m" changes no more often.
	switch kind {
	case providers:
		return o.providers(ctx, now)
	case consumers, offers:
		return o.consumers(ctx, kind)
	case policies, decisions:
		return o.policies(ctx, kind, now)
	case workloads, advice:
		return o.placed(ctx, kind, now)
	case links:
		_, found, err := o.peers(ctx, now)
		var items []feed.Item
		for i := range found {
			l := &found[i]
			items = append(items, feed.Item{Key: l.From.ID + "/" + l.To.ID, Value: apiv1.LinkOf(l)})
		}
		return items, err
	}
	return nil, fmt.Errorf("nothing is of the kind %s", kind)
}

// readAll lists objects.
func (o *objects) readAll(ctx context.Context, lists ...client.ObjectList) error {
	var errs []error
	for _, l := range lists {
		if err := o.reader.List(ctx, l, client.UnsafeDisableDeepCopy); err != nil {
			errs = append(errs, fmt.Errorf("list %T: %w", l, err))
		}
	}
	return errors.Join(errs...)
}

// peers returns the peers and the links to and between them.
func (o *objects) peers(ctx context.Context, now time.Time) (*overview.Peers, []overview.Link, error) {
	var (
		provide v1alpha1.ProviderList
		consume v1alpha1.ConsumerList
	)
	known := o.line.Reader(o.reader, o.own.ID)
	clusters, err := known.Peers(ctx)
	tunnels, errTunnels := known.Links(ctx)
	if err := errors.Join(err, errTunnels, o.readAll(ctx, &provide, &consume)); err != nil {
		return nil, nil, err
	}
	p := &overview.Peers{Own: o.own, Clusters: clusters, Tunnels: tunnels, Providers: provide.Items, Consumers: consume.Items}
	return p, p.Links(now), nil
}

func (o *objects) providers(ctx context.Context, now time.Time) ([]feed.Item, error) {
	peers, found, err := o.peers(ctx, now)
	if err != nil {
		return nil, err
	}
	linked := map[string]*overview.Link{}
	for i := range found {
		if l := &found[i]; !l.Direct {
			linked[l.To.ID] = l
		}
	}
	items := make([]feed.Item, 0, len(peers.Providers))
	for i := range peers.Providers {
		p := &peers.Providers[i]
		items = append(items, feed.Item{Key: p.Name, Value: apiv1.ProviderOf(p, linked[p.Name])})
	}
	return items, nil
}

func (o *objects) consumers(ctx context.Context, kind feed.Kind) ([]feed.Item, error) {
	var found v1alpha1.ConsumerList
	if err := o.readAll(ctx, &found); err != nil {
		return nil, err
	}
	items := make([]feed.Item, 0, len(found.Items))
	for i := range found.Items {
		c := &found.Items[i]
		item := feed.Item{Key: c.Name, Consumer: c.Name, Value: apiv1.ConsumerOf(c)}
		if kind == offers {
			item.Value = apiv1.OfferOf(c)
		}
		items = append(items, item)
	}
	return items, nil
}

func (o *objects) policies(ctx context.Context, kind feed.Kind, now time.Time) ([]feed.Item, error) {
	var found v1alpha1.PlacementPolicyList
	if err := o.readAll(ctx, &found); err != nil {
		return nil, err
	}
	var items []feed.Item
	named := map[string]*v1alpha1.PlacementPolicy{}
	for i := range found.Items {
		p := &found.Items[i]
		named[p.Name] = p
		if kind == policies {
			items = append(items, feed.Item{Key: p.Name, Value: apiv1.PolicyOf(p)})
		}
	}
	if kind == policies {
		return items, nil
	}
	var decided v1alpha1.PlacementDecisionList
	if err := o.readAll(ctx, &decided); err != nil {
		return nil, err
	}
	for i := range decided.Items {
		d := &decided.Items[i]
		if policy := named[d.Policy]; policy != nil && d.IsOf(policy, d.Consumer) {
			items = append(items, feed.Item{Key: decisionKey(d.Policy, d.Consumer), Consumer: d.Consumer, Value: apiv1.DecisionOf(now, d)})
		}
	}
	return items, nil
}

func decisionKey(policy, consumer string) string { return policy + "/" + consumer }

// placed returns the pods of consumers, or the advice that follows from where they are.
func (o *objects) placed(ctx context.Context, kind feed.Kind, now time.Time) ([]feed.Item, error) {
	var (
		namespaces corev1.NamespaceList
		nodes      corev1.NodeList
		pods       corev1.PodList
	)
	peers, found, err := o.peers(ctx, now)
	if err = errors.Join(err, o.readAll(ctx, &namespaces, &nodes, &pods)); err != nil {
		return nil, err
	}
	cluster := overview.OnBroker{
		Providers: peers.Providers, Consumers: peers.Consumers, Namespaces: namespaces.Items, Nodes: nodes.Items, Pods: pods.Items,
	}
	placed := cluster.Placed("")
	if o.line.DirectPaths() {
		overview.AddPaths(placed, found)
	} else {
		overview.AddPaths(placed, nil) // Whatever tunnels there are.
	}
	if kind == advice {
		return o.advice(ctx, peers, found, placed)
	}
	items := make([]feed.Item, 0, len(placed))
	for i := range placed {
		p := &placed[i]
		items = append(items, feed.Item{Key: p.Consumer.ID + "/" + p.Twin + "/" + p.Pod, Consumer: p.Consumer.ID, Value: apiv1.WorkloadOf(p)})
	}
	return items, nil
}

func (o *objects) advice(ctx context.Context, peers *overview.Peers, found []overview.Link, placed []overview.Placed) ([]feed.Item, error) {
	var (
		policies  v1alpha1.PlacementPolicyList
		decisions v1alpha1.PlacementDecisionList
	)
	if err := o.readAll(ctx, &policies, &decisions); err != nil {
		return nil, err
	}
	adviser := overview.Adviser{
		Clusters: peers.Clusters, Providers: peers.Providers, Policies: policies.Items, Decisions: decisions.Items, Placed: placed, Links: found,
		Relays: !o.line.DirectPaths(),
	}
	items := make([]feed.Item, 0, len(peers.Consumers))
	for _, a := range adviser.Advise(peers.Consumers) {
		items = append(items, feed.Item{Key: a.Consumer.ID, Consumer: a.Consumer.ID, Value: apiv1.AdviceOf(&a)})
	}
	return items, nil
}
