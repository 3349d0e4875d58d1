// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package install

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capacitorset/liqo-broker/pkg/await"
	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
	"github.com/capacitorset/liqo-broker/pkg/liqo"
	v09 "github.com/capacitorset/liqo-broker/pkg/liqo/v09"
	"github.com/capacitorset/liqo-broker/pkg/sheet"
)

// Joining is who is to become a federation: a broker, and those whose resources it has or who have its own. A cluster may be a provider
// and a consumer; then it has the same name in both.
type Joining struct {
	Broker               Joiner
	Providers, Consumers []Joiner
	// Direct has each consumer peer with each provider too, so that what it places there is reached without the broker.
	Direct bool
	// KeepTokens leaves the tokens as they are by which clusters authenticate at each other. Who has been told one can come as any cluster
	// that has not come yet.
	KeepTokens bool
	// Found is called with each cluster before anything is changed.
	Found func(Joiner, *Setup)
}

// Joiner is a cluster, and what people call the way to it, such as a context of a kubeconfig.
type Joiner struct {
	Called string
	Client client.Client
	// Kubeconfig is the path of the kubeconfig, and Context the name of the context, by which people reach it; empty is the usual one.
	Kubeconfig, Context string
}

// Join peers the clusters out of band, in all directions that a broker needs, waits until their tunnels are up, prepares the consumers,
// and replaces the tokens that were told. What is as it should be stays, so that clusters can be added, and an interrupted run is finished
// by the next one. The broker must be one. The options are those of Prepare; Options.Broker counts for nothing.
//
// With Liqo 1.x people peer clusters by liqoctl: while a peering is missing, nothing is changed, and people are told the commands.
func Join(ctx context.Context, j Joining, options Options, out io.Writer) error {
	f, err := j.look(ctx, options, out)
	if err != nil {
		return err
	}
	run := f.broker.run
	if err := f.broker.seen.line.mayJoin(ctx, f, &j); err != nil {
		return err
	}
	before, after := f.broker.seen.line.joinSteps(f, j.KeepTokens)
	if err := run.runSteps(ctx, before); err != nil {
		return err
	}
	for _, m := range f.consumers {
		fmt.Fprintf(out, "%s as consumer of %s\n", m.called(), f.broker.called())
		err := m.Prepare(ctx, &m.seen)
		if errors.Is(err, errNoPeer) && options.DryRun {
			fmt.Fprintln(out, "      would take the steps of prepare (dry run)")
			continue
		}
		if err != nil {
			return fmt.Errorf("prepare %s: %w", m.called(), err)
		}
	}
	if err := run.runSteps(ctx, after); err != nil {
		return err
	}
	for _, m := range f.consumers {
		if slices.Contains(f.providers, m) {
			fmt.Fprintf(out, "%s is a consumer too, and provides when somebody says so: kubectl liqo-broker enable %s\n", m.called(), m.seen.Own.ID)
		}
	}
	return nil
}

// member is a cluster of a federation that is being made.
type member struct {
	*Installer

	// seen is what it was before anything was changed. It says what the cluster is called.
	seen Setup
	// way is how people reach it.
	way Joiner
}

func (m *member) called() string { return sheet.Plain(m.seen.Own.Name) }

// pairing is a peering by which one cluster has what another one provides.
type pairing struct{ consumer, provider *member }

// joined is a federation that is being made.
type joined struct {
	broker               *member
	providers, consumers []*member
	pairings             []pairing
	// direct has the consumers peer with the providers too.
	direct bool
}

// look looks at all clusters, and returns an error unless they can become a federation.
func (j *Joining) look(ctx context.Context, options Options, out io.Writer) (*joined, error) {
	if len(j.Providers)+len(j.Consumers) == 0 {
		return nil, requirement("name a provider or a consumer for the broker")
	}
	known := map[cluster.ID]string{} // What each is called, by its ID.
	members := map[string]*member{}
	meet := func(who Joiner) (*member, error) {
		if m := members[who.Called]; m != nil {
			return m, nil
		}
		m, err := j.meet(ctx, who, options, out)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", who.Called, err)
		}
		if other, is := known[m.seen.Own.ID]; is {
			return nil, requirement("%q and %q are one and the same cluster, %s", other, who.Called, called(m.seen.Own))
		}
		known[m.seen.Own.ID], members[who.Called] = who.Called, m
		return m, nil
	}

	// The broker, which has to be one.
	f := &joined{direct: j.Direct}
	var err error
	options.Broker = ""
	if f.broker, err = meet(j.Broker); err != nil {
		return nil, err
	}
	if !f.broker.seen.Broker {
		return nil, requirement("cluster %s is no broker: install makes it one", called(f.broker.seen.Own))
	}

	// The others, each of which is told the broker by its ID.
	options.Broker = string(f.broker.seen.Own.ID)
	for _, side := range []struct {
		those []Joiner
		into  *[]*member
	}{{j.Providers, &f.providers}, {j.Consumers, &f.consumers}} {
		for _, who := range side.those {
			m, err := meet(who)
			if err != nil {
				return nil, err
			}
			if m == f.broker {
				return nil, requirement("%q is the broker itself", who.Called)
			}
			if m.seen.Line != f.broker.seen.Line {
				return nil, requirement("%s has Liqo %s, and the broker %s: clusters of both lines do not peer with each other", m.called(),
					m.seen.Version, f.broker.seen.Version)
			}
			*side.into = append(*side.into, m)
		}
	}
	f.pairings = f.broker.seen.line.pairs(f)
	return f, nil
}

// meet looks at one cluster.
func (j *Joining) meet(ctx context.Context, who Joiner, options Options, out io.Writer) (*member, error) {
	i, err := New(who.Client, options, out)
	if err != nil {
		return nil, err
	}
	setup, err := i.Look(ctx)
	if err != nil {
		return nil, err
	}
	if j.Found != nil {
		j.Found(who, &setup)
	}
	if setup.Own.ID == "" {
		if setup.Own, err = setup.line.OwnIdentity(ctx, i, liqoNamespace); err != nil {
			return nil, err
		}
	}
	return &member{i, setup, who}, nil
}

// pairs says that the broker has what providers have, and a consumer what the broker has. That the broker can reach the consumer too, which
// reads from it where its pods are, takes a peering the other way round.
func (line09) pairs(f *joined) []pairing {
	var all []pairing
	add := func(consumer, provider *member) {
		if p := (pairing{consumer, provider}); consumer != provider && !slices.Contains(all, p) {
			all = append(all, p)
		}
	}
	for _, provider := range f.providers {
		add(f.broker, provider)
	}
	for _, consumer := range f.consumers {
		add(consumer, f.broker)
		add(f.broker, consumer)
		for _, provider := range f.providers {
			if f.direct {
				add(consumer, provider)
			}
		}
	}
	return all
}

// mayJoin refuses nothing: whether each peering may be made, its step says.
func (line09) mayJoin(context.Context, *joined, *Joining) error { return nil }

// joinSteps peer the clusters.
func (line09) joinSteps(f *joined, keepTokens bool) (before, after []step) {
	after = f.readySteps()
	if !keepTokens {
		after = append(after, f.tokenSteps()...)
	}
	return f.peeringSteps(), after
}

// peeringSteps are those that peer. All peerings of a kind begin before any is waited for. Those by which the broker reaches its consumers
// come last: a cluster that is a consumer already need not be told that it is not to provide.
func (f *joined) peeringSteps() []step {
	var first, last []pairing
	for _, p := range f.pairings {
		if p.consumer == f.broker && slices.Contains(f.consumers, p.provider) {
			last = append(last, p)
		} else {
			first = append(first, p)
		}
	}
	return append(f.peer(first), f.peer(last)...)
}

// peer returns the steps of some peerings.
func (f *joined) peer(pairings []pairing) []step {
	var begin, wait []step
	for _, p := range pairings {
		begin = append(begin, step{
			fmt.Sprintf("peer %s with %s, which provides", p.consumer.called(), p.provider.called()),
			func(ctx context.Context) ([]change, error) {
				return p.begin(ctx, slices.Contains(f.pairings, p.reverse()))
			}, nil,
		})
		wait = append(wait, step{
			fmt.Sprintf("wait until %s reaches %s", p.consumer.called(), p.provider.called()), nothing, p.established,
		})
	}
	return append(begin, wait...)
}

func (p pairing) reverse() pairing { return pairing{p.provider, p.consumer} }

// begin returns the changes by which the consumer peers with the provider, which lets it in first. If the provider has what the consumer
// provides, too, the consumer is told so; else what it shares with the provider is as it was, and nothing if they do not know each other.
func (p pairing) begin(ctx context.Context, both bool) ([]change, error) {
	// What the consumer knows of the provider already.
	fc, err := v09.ForeignClusterOf(ctx, p.consumer, p.provider.seen.Own.ID)
	if err != nil {
		return nil, err
	}
	if fc != nil {
		if err := p.mayPeer(fc); err != nil {
			return nil, err
		}
		if v09.Consumes(fc) && v09.Outgoing(fc).Established && (!both || answers(fc)) {
			return nil, nil // Its token may be another one by now.
		}
	}
	opened, err := p.letIn(ctx)
	if err != nil {
		return nil, err
	}

	// Where the provider authenticates the consumer, and by which token.
	authURL, err := v09.AuthURL(ctx, p.provider, liqoNamespace)
	if err != nil {
		return nil, err
	}
	token, err := p.provider.token(ctx)
	if err != nil {
		return nil, err
	}
	told, err := p.consumer.keepPeerToken(ctx, v09.PeerToken(liqoNamespace, p.provider.seen.Own.ID, v09.Token(token)))
	if err != nil {
		return nil, err
	}

	// What the consumer is to know of it.
	peer := func(fc *v09.ForeignCluster) {
		v09.PeerWith(fc, authURL)
		if both && !answers(fc) {
			v09.Provide(fc)
		}
	}
	if fc == nil {
		if fc, err = p.consumer.unknown(ctx, p.provider.seen.Own, authURL); err != nil {
			return nil, err
		}
		peer(fc)
		return slices.Concat(opened, told, []change{{
			verb: "create", object: p.consumer.describeObject(fc), do: func(ctx context.Context) error { return p.consumer.Create(ctx, fc) },
		}}), nil
	}
	asked, err := p.consumer.mutateRead(fc, func() error { peer(fc); return nil })
	return slices.Concat(opened, told, asked), err
}

// letIn returns the change by which the provider answers the consumer that it knows already, and keeps out so far: who was joined only to
// provide.
func (p pairing) letIn(ctx context.Context) ([]change, error) {
	fc, err := v09.ForeignClusterOf(ctx, p.provider, p.consumer.seen.Own.ID)
	if err != nil || fc == nil || answers(fc) {
		return nil, err
	}
	if err := p.reverse().mayPeer(fc); err != nil {
		return nil, err
	}
	return p.provider.mutateRead(fc, func() error { v09.Provide(fc); return nil })
}

// mayPeer returns an error if a foreign cluster is peered in a way that people have not chosen here.
func (p pairing) mayPeer(fc *v09.ForeignCluster) error {
	peer := v09.PeerOf(fc)
	switch {
	case peer.InBand:
		return await.Hopeless(requirement("%s peers with %s in band, so that their API servers do not reach each other otherwise: "+
			"end that first (liqoctl unpeer in-band)", p.consumer.called(), p.provider.called()))
	case fc.Annotations[annotationContract] != "":
		return await.Hopeless(requirement("%s peers with %s by a contract, which its connector looks after: end the contract first",
			p.consumer.called(), p.provider.called()))
	default:
		return nil
	}
}

// token returns the Secret with the token by which clusters authenticate at this one.
func (m *member) token(ctx context.Context) (*corev1.Secret, error) {
	var secret corev1.Secret
	key := client.ObjectKey{Namespace: liqoNamespace, Name: v09.AuthTokenName}
	if err := m.Get(ctx, key, &secret); err != nil {
		return nil, fmt.Errorf("read Secret %s of %s: %w", key, m.called(), err)
	}
	if v09.Token(&secret) == "" {
		return nil, fmt.Errorf("read Secret %s of %s: it has no token", key, m.called())
	}
	return &secret, nil
}

// keepPeerToken returns the change that keeps a peer's token here.
func (m *member) keepPeerToken(ctx context.Context, want *corev1.Secret) ([]change, error) {
	var have corev1.Secret
	err := m.Get(ctx, client.ObjectKeyFromObject(want), &have)
	switch {
	case apierrors.IsNotFound(err):
		return []change{{verb: "create", object: m.describeObject(want), do: func(ctx context.Context) error { return m.Create(ctx, want) }}}, nil
	case err != nil:
		return nil, fmt.Errorf("read Secret %s of %s: %w", client.ObjectKeyFromObject(want), m.called(), err)
	case v09.Token(&have) == v09.Token(want):
		return nil, nil
	}
	have.Data, have.Labels = want.Data, want.Labels
	return []change{{verb: "update", object: m.describeObject(want), do: func(ctx context.Context) error { return m.Update(ctx, &have) }}}, nil
}

// unknown returns a new foreign cluster, of another name if another cluster has its own already.
func (m *member) unknown(ctx context.Context, peer cluster.Identity, authURL string) (*v09.ForeignCluster, error) {
	fc, other := v09.NewForeignCluster(peer, authURL), v09.ForeignCluster{}
	err := m.Get(ctx, client.ObjectKeyFromObject(fc), &other)
	switch {
	case apierrors.IsNotFound(err):
		return fc, nil
	case err != nil:
		return nil, fmt.Errorf("read ForeignCluster %s of %s: %w", fc.Name, m.called(), err)
	}
	return v09.NewForeignCluster(cluster.Identity{ID: peer.ID, Name: v09.GivenName(peer)}, authURL), nil
}

// answers reports whether a cluster answers a foreign cluster that wants to consume, or has done so: what Liqo does by itself depends on a
// flag of its controller manager.
func answers(fc *v09.ForeignCluster) bool { return v09.Provides(fc) || v09.Incoming(fc).Established }

// established returns an error that says what is missing until the consumer can have what the provider has, and its pods reach each other.
func (p pairing) established(ctx context.Context) error {
	fc, err := v09.ForeignClusterOf(ctx, p.consumer, p.provider.seen.Own.ID)
	switch {
	case err != nil:
		return err
	case fc == nil:
		return fmt.Errorf("%s does not know %s any more", p.consumer.called(), p.provider.called())
	case !v09.Outgoing(fc).Established:
		return fmt.Errorf("the peering is not established yet: %s", cmp.Or(v09.Hindrances(fc), "Liqo has not begun"))
	}
	links, err := v09.Links(ctx, p.consumer, client.InNamespace(v09.TenantNamespace(fc)))
	if err != nil {
		return err
	}
	if !slices.ContainsFunc(links, func(l liqo.Link) bool { return l.Connected }) {
		return fmt.Errorf("the tunnel is not up yet: do the gateways reach each other (UDP)? %s", v09.Hindrances(fc))
	}
	return nil
}

// readySteps are those that wait until what peers provide can be used.
func (f *joined) readySteps() []step {
	var steps []step
	for _, p := range f.pairings {
		ofBroker := p.provider == f.broker
		if ofBroker && len(f.providers) == 0 || !ofBroker && !slices.Contains(f.providers, p.provider) {
			continue // It provides nothing yet, or nothing to be used.
		}
		steps = append(steps, step{
			fmt.Sprintf("wait until %s can use %s", p.consumer.called(), p.provider.called()), nothing, p.usable,
		})
	}
	return steps
}

// usable returns an error until a virtual node of the provider is ready.
func (p pairing) usable(ctx context.Context) error {
	var nodes corev1.NodeList
	err := p.consumer.List(ctx, &nodes, client.MatchingLabels{
		liqo.LabelNodeType: liqo.NodeTypeVirtual, liqo.LabelRemoteClusterID: string(p.provider.seen.Own.ID),
	})
	if err != nil {
		return fmt.Errorf("list the virtual nodes of %s: %w", p.consumer.called(), err)
	}
	if !slices.ContainsFunc(nodes.Items, func(n corev1.Node) bool { return liqo.NodeReady(&n) }) {
		return fmt.Errorf("%s has no virtual node of %s that is ready", p.consumer.called(), p.provider.called())
	}
	return nil
}

// tokenSteps are those that replace the tokens of clusters that others were told, and have used.
func (f *joined) tokenSteps() []step {
	tellers := map[*member][]*member{} // Who was told the token of each.
	var order []*member
	for _, p := range f.pairings {
		for _, told := range []pairing{p, p.reverse()} { // Liqo tells whom it asks the token of who asks.
			if tellers[told.provider] == nil {
				order = append(order, told.provider)
			}
			if !slices.Contains(tellers[told.provider], told.consumer) {
				tellers[told.provider] = append(tellers[told.provider], told.consumer)
			}
		}
	}
	steps := make([]step, 0, len(order))
	for _, m := range order {
		steps = append(steps, step{
			fmt.Sprintf("replace the token of %s that its peers were told", m.called()),
			func(ctx context.Context) ([]change, error) { return m.replaceToken(ctx, tellers[m]) }, nil,
		})
	}
	return steps
}

// replaceToken returns the change that replaces the token of this cluster, if one of some others has it.
func (m *member) replaceToken(ctx context.Context, told []*member) ([]change, error) {
	secret, err := m.token(ctx)
	if err != nil {
		return nil, err
	}
	for _, other := range told {
		kept := v09.PeerToken(liqoNamespace, m.seen.Own.ID, "")
		err := other.Get(ctx, client.ObjectKeyFromObject(kept), kept)
		switch {
		case apierrors.IsNotFound(err):
			continue
		case err != nil:
			return nil, fmt.Errorf("read Secret %s of %s: %w", client.ObjectKeyFromObject(kept), other.called(), err)
		case v09.Token(kept) != v09.Token(secret):
			continue
		}
		v09.ReplaceToken(secret)
		return []change{{
			verb: "update", object: m.describeObject(secret), do: func(ctx context.Context) error { return m.Update(ctx, secret) },
		}}, nil
	}
	return nil, nil
}
