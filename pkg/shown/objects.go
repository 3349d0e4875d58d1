// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package shown

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capacitorset/liqo-broker/pkg/api/v1alpha1"
	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
	"github.com/capacitorset/liqo-broker/pkg/liqo/line"
	"github.com/capacitorset/liqo-broker/pkg/overview"
	"github.com/capacitorset/liqo-broker/pkg/shown/apiv1"
	"github.com/capacitorset/liqo-broker/pkg/shown/feed"
)

// The kinds of what is shown.
const (
	Providers feed.Kind = "providers"
	Consumers feed.Kind = "consumers"
	Offers    feed.Kind = "offers"
	Policies  feed.Kind = "policies"
	Decisions feed.Kind = "decisions"
	Workloads feed.Kind = "workloads"
	Links     feed.Kind = "links"
	Flows     feed.Kind = "flows"
	Advice    feed.Kind = "advice"
	Status    feed.Kind = "status"
	Activity  feed.Kind = "activity"
)

// TheStatus is the key of the one item of kind Status.
const TheStatus = "broker"

// Kinds returns all kinds, in the order in which they are shown.
func Kinds() []feed.Kind {
	return []feed.Kind{Providers, Consumers, Offers, Policies, Decisions, Workloads, Links, Flows, Advice, Status, Activity}
}

// made returns of which objects each kind is made.
func made(liqo line.Kinds) map[client.Object][]feed.Kind {
	all := map[client.Object][]feed.Kind{
		&v1alpha1.Provider{}:          {Providers, Workloads, Links, Flows, Advice, Status, Activity},
		&v1alpha1.Consumer{}:          {Consumers, Offers, Workloads, Links, Flows, Advice, Status, Activity},
		&v1alpha1.PlacementPolicy{}:   {Policies, Decisions, Workloads, Advice, Status},
		&v1alpha1.PlacementDecision{}: {Decisions, Advice, Status},
		&v1alpha1.ProviderQuery{}:     {Status},
		&v1alpha1.ProviderHistory{}:   {Providers},
		&corev1.Namespace{}:           {Providers, Workloads, Links, Flows, Advice},
		&corev1.Node{}:                {Providers, Workloads, Flows, Advice},
		&corev1.Pod{}:                 {Workloads, Flows, Advice},
		Told():                        {Activity},
		liqo.Offer:                    {Providers, Status},
		liqo.Record:                   {Providers, Links, Advice},
		liqo.Network:                  {Providers, Links},
	}
	for _, kind := range liqo.Tunnels {
		all[kind] = []feed.Kind{Providers, Links}
	}
	for _, kind := range liqo.Peering {
		all[kind] = []feed.Kind{Providers, Links, Advice}
	}
	return all
}

// enriching are the objects that only add to a kind: whoever may not read them sees the rest of it.
func enriching(liqo line.Kinds, kind feed.Kind) []client.Object {
	if kind == Providers {
		return []client.Object{&v1alpha1.ProviderHistory{}, &corev1.Node{}, liqo.Offer}
	}
	return nil
}

// Needs returns of which objects a kind is made: those that must be readable, in the namespace of
// the object if it has one, and those that only add to it.
func Needs(liqo line.Kinds, kind feed.Kind) (needed, optional []client.Object) {
	adds := enriching(liqo, kind)
	for object, of := range made(liqo) {
		same := func(other client.Object) bool { return reflect.TypeOf(other) == reflect.TypeOf(object) }
		switch {
		case !slices.Contains(of, kind):
		case slices.ContainsFunc(adds, same):
			optional = append(optional, object)
		default:
			needed = append(needed, object)
		}
	}
	return needed, optional
}

// Watch has changed called with those of some kinds that may be otherwise, whenever one of the objects changes of which they are made, and
// that may be read; nil is all. The cache of the informers may be started later. It returns at once.
func (o *Objects) Watch(
	ctx context.Context, informers cache.Informers, kinds []feed.Kind, may func(client.Object) bool, changed func(...feed.Kind),
) error {
	for object, of := range made(o.Line.Kinds()) {
		of = slices.DeleteFunc(of, func(kind feed.Kind) bool { return !slices.Contains(kinds, kind) })
		if len(of) == 0 || may != nil && !may(object) {
			continue
		}
		if err := watchObject(ctx, informers, object, func() { changed(of...) }); err != nil {
			return err
		}
	}
	return nil
}

// WatchKinds has changed called with each of some kinds that may be otherwise, whenever one of the objects changes of which it is made. The
// cache of the informers may be started later. It returns at once.
func WatchKinds(
	ctx context.Context, informers cache.Informers, kinds []feed.Kind, made func(feed.Kind) []client.Object, changed func(...feed.Kind),
) error {
	for _, kind := range kinds {
		for _, object := range made(kind) {
			if err := watchObject(ctx, informers, object, func() { changed(kind) }); err != nil {
				return err
			}
		}
	}
	return nil
}

// watchObject has changed called whenever an object of a kind changes.
func watchObject(ctx context.Context, informers cache.Informers, object client.Object, changed func()) error {
	informer, err := informers.GetInformer(ctx, object)
	if err != nil {
		return fmt.Errorf("watch %T: %w", object, err)
	}
	tell := func(any) { changed() }
	if _, err := informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
		AddFunc: tell, UpdateFunc: func(_, now any) { tell(now) }, DeleteFunc: tell,
	}); err != nil {
		return fmt.Errorf("watch %T: %w", object, err)
	}
	return nil
}

// Objects are the objects of a broker's cluster of which is made what is shown. They may be used concurrently.
type Objects struct {
	// Reader is that of a cache. What Items returns shares memory with it, and is not to be changed.
	Reader client.Reader
	Line   line.Line
	// Own is the broker's cluster.
	Own cluster.Identity
	// Running are the modes of a daemon that reads this itself. It may see no Deployments; others leave it nil.
	Running []string
	// Programs are read if they are not nil.
	Programs *Programs
}

// Items returns all of a kind; it is a [feed.Source].
func (o *Objects) Items(ctx context.Context, kind feed.Kind) ([]feed.Item, error) {
	now := time.Now().Truncate(time.Minute) // "For 2m" changes no more often.
	switch kind {
	case Providers:
		return o.providers(ctx, now)
	case Consumers, Offers:
		return o.consumers(ctx, kind)
	case Policies, Decisions:
		return o.policies(ctx, kind, now)
	case Workloads, Flows, Advice:
		return o.placed(ctx, kind, now)
	case Status:
		observed, err := Observe(ctx, o.Reader, o.Line, o.Programs)
		if err != nil {
			return nil, err
		}
		observed.Running = o.Running
		status := overview.Summarize(observed)
		return []feed.Item{{Key: TheStatus, Value: apiv1.StatusOf(&status)}}, nil
	case Activity:
		return o.activity(ctx)
	case Links:
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
func (o *Objects) readAll(ctx context.Context, lists ...client.ObjectList) error {
	var errs []error
	for _, l := range lists {
		if err := o.Reader.List(ctx, l, client.UnsafeDisableDeepCopy); err != nil {
			errs = append(errs, fmt.Errorf("list %T: %w", l, err))
		}
	}
	return errors.Join(errs...)
}

// peers returns the peers and the links to and between them.
func (o *Objects) peers(ctx context.Context, now time.Time) (*overview.Peers, []overview.Link, error) {
	var (
		provide v1alpha1.ProviderList
		consume v1alpha1.ConsumerList
	)
	known := o.Line.Reader(o.Reader, o.Own.ID)
	clusters, err := known.Peers(ctx)
	tunnels, errTunnels := known.Links(ctx)
	if err := errors.Join(err, errTunnels, o.readAll(ctx, &provide, &consume)); err != nil {
		return nil, nil, err
	}
	p := &overview.Peers{Own: o.Own, Clusters: clusters, Tunnels: tunnels, Providers: provide.Items, Consumers: consume.Items}
	return p, p.Links(now), nil
}

func (o *Objects) consumers(ctx context.Context, kind feed.Kind) ([]feed.Item, error) {
	var found v1alpha1.ConsumerList
	if err := o.readAll(ctx, &found); err != nil {
		return nil, err
	}
	items := make([]feed.Item, 0, len(found.Items))
	for i := range found.Items {
		c := &found.Items[i]
		item := feed.Item{Key: c.Name, Consumer: c.Name, Value: apiv1.ConsumerOf(c)}
		if kind == Offers {
			item.Value = apiv1.OfferOf(c)
		}
		items = append(items, item)
	}
	return items, nil
}

func (o *Objects) policies(ctx context.Context, kind feed.Kind, now time.Time) ([]feed.Item, error) {
	var found v1alpha1.PlacementPolicyList
	if err := o.readAll(ctx, &found); err != nil {
		return nil, err
	}
	var items []feed.Item
	named := map[string]*v1alpha1.PlacementPolicy{}
	for i := range found.Items {
		p := &found.Items[i]
		named[p.Name] = p
		if kind == Policies {
			items = append(items, feed.Item{Key: p.Name, Value: apiv1.PolicyOf(p)})
		}
	}
	if kind == Policies {
		return items, nil
	}
	var decided v1alpha1.PlacementDecisionList
	if err := o.readAll(ctx, &decided); err != nil {
		return nil, err
	}
	for i := range decided.Items {
		d := &decided.Items[i]
		if policy := named[d.Policy]; policy != nil && d.IsOf(policy, d.Consumer) {
			items = append(items, feed.Item{Key: DecisionKey(d.Policy, d.Consumer), Consumer: d.Consumer, Value: apiv1.DecisionOf(now, policy, d)})
		}
	}
	return items, nil
}

// DecisionKey is the key of what a policy has decided for a consumer.
func DecisionKey(policy, consumer string) string { return policy + "/" + consumer }

// placed returns the pods of consumers, or the advice that follows from where they are.
func (o *Objects) placed(ctx context.Context, kind feed.Kind, now time.Time) ([]feed.Item, error) {
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
	if o.Line.DirectPaths() {
		overview.AddPaths(placed, found)
	} else {
		overview.AddPaths(placed, nil) // Whatever tunnels there are.
	}
	switch kind {
	case Advice:
		return o.advice(ctx, peers, found, placed)
	case Flows:
		var items []feed.Item
		for _, f := range apiv1.FlowsOf(placed) {
			items = append(items, feed.Item{Key: flowKey(&f), Consumer: f.Consumer.ID, Value: f})
		}
		return items, nil
	}
	return o.workloads(ctx, &cluster, placed)
}

// workloads returns the pods of consumers that are placed on a broker.
func (o *Objects) workloads(ctx context.Context, on *overview.OnBroker, placed []overview.Placed) ([]feed.Item, error) {
	var policies v1alpha1.PlacementPolicyList
	if err := o.readAll(ctx, &policies); err != nil {
		return nil, err
	}
	items := make([]feed.Item, 0, len(placed))
	followed, why := on.Followed(policies.Items), on.Whys()
	for i := range placed {
		p := &placed[i]
		items = append(items, feed.Item{
			Key: p.Consumer.ID + "/" + p.Twin + "/" + p.Pod, Consumer: p.Consumer.ID, Value: apiv1.WorkloadOf(p, followed[p.Twin], why(p)),
		})
	}
	return items, nil
}

// flowKey is the key of a flow: a cluster's ID has no slash.
func flowKey(f *apiv1.Flow) string {
	provider := ""
	if f.Provider != nil {
		provider = f.Provider.ID
	}
	return f.Consumer.ID + "/" + provider + "/" + f.Path
}

func (o *Objects) advice(ctx context.Context, peers *overview.Peers, found []overview.Link, placed []overview.Placed) ([]feed.Item, error) {
	var (
		policies  v1alpha1.PlacementPolicyList
		decisions v1alpha1.PlacementDecisionList
	)
	if err := o.readAll(ctx, &policies, &decisions); err != nil {
		return nil, err
	}
	adviser := overview.Adviser{
		Clusters: peers.Clusters, Providers: peers.Providers, Policies: policies.Items, Decisions: decisions.Items, Placed: placed, Links: found,
		Relays: !o.Line.DirectPaths(),
	}
	items := make([]feed.Item, 0, len(peers.Consumers))
	for _, a := range adviser.Advise(peers.Consumers) {
		items = append(items, feed.Item{Key: a.Consumer.ID, Consumer: a.Consumer.ID, Value: apiv1.AdviceOf(&a)})
	}
	return items, nil
}
