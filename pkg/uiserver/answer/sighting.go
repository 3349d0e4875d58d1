// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package answer

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"sync"

	"golang.org/x/sync/errgroup"
	appsv1 "k8s.io/api/apps/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capacitorset/liqo-broker/pkg/api/v1alpha1"
	"github.com/capacitorset/liqo-broker/pkg/cached"
	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
	"github.com/capacitorset/liqo-broker/pkg/liqo"
	"github.com/capacitorset/liqo-broker/pkg/liqo/line"
	"github.com/capacitorset/liqo-broker/pkg/sheet"
	"github.com/capacitorset/liqo-broker/pkg/shown"
	"github.com/capacitorset/liqo-broker/pkg/shown/apiv1"
	"github.com/capacitorset/liqo-broker/pkg/shown/feed"
	"github.com/capacitorset/liqo-broker/pkg/uiserver/consuming"
	"github.com/capacitorset/liqo-broker/pkg/uiserver/trading"
)

// sighting is what is known of a cluster while nothing comes between: from when its rights were asked, until the API server cannot be
// reached, or takes a right away.
type sighting struct {
	cfg    Config
	client client.Client
	// ready is closed when all that follows is there, and lost when it counts no more, with err and the end of life.
	ready, lost chan struct{}
	life        context.Context //nolint:containedctx // It ends when the sighting is lost.

	me    apiv1.Me
	kinds []feed.Kind
	feed  *feed.Feed
	trade *trading.Objects

	noted noted
	once  sync.Once
	end   context.CancelFunc
	err   error
}

func newSighting(cfg Config, c client.Client) *sighting {
	s := &sighting{cfg: cfg, client: c, ready: make(chan struct{}), lost: make(chan struct{})}
	s.life, s.end = context.WithCancel(context.Background()) //nolint:gosec // It is called by lose.
	return s
}

// lose says that what is known counts no more.
func (s *sighting) lose(err error) {
	s.once.Do(func() {
		s.err = err
		close(s.lost)
		s.end()
	})
}

func (s *sighting) isLost() bool {
	select {
	case <-s.lost:
		return true
	default:
		return false
	}
}

// run asks, reads and watches until ctx ends or the sighting is lost.
func (s *sighting) run(ctx context.Context) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(s.life, cancel)() //nolint:contextcheck // That of the program is above.
	err := s.watch(ctx)
	s.lose(cmp.Or(err, errors.New("the server ends")))
}

// watch finds out what the person may read, and keeps that ready.
func (s *sighting) watch(ctx context.Context) error {
	// Who it is, and what they may.
	may, err := s.askRights(ctx)
	if err != nil {
		return err
	}

	// A cache of what they may read.
	kept, err := cache.New(s.cfg.Rest, s.cache())
	if err != nil {
		return fmt.Errorf("make a cache: %w", err)
	}
	informers := noting{kept, &s.noted}
	// An index reads all of its kind.
	indexes := slices.DeleteFunc(s.cfg.Line.Indexes(), func(i line.Index) bool { return !may.read(i.Object) })
	if err := line.AddIndexes(ctx, informers, indexes); err != nil {
		return err
	}
	if s.cfg.Consumes && may.read(&corev1.Pod{}) { // Of its pods only those on some nodes are read.
		if err := line.AddIndexes(ctx, informers, []line.Index{consuming.Index()}); err != nil {
			return err
		}
	}

	// What there is of each kind.
	own := consuming.Objects{Reader: informers, Line: s.cfg.Line, Own: may.own, Trades: s.cfg.Trades}
	objects := shown.Objects{Reader: informers, Line: s.cfg.Line, Own: may.own}
	if may.programs {
		objects.Programs = &s.cfg.Programs
	}
	s.trade = trading.New(informers)
	s.feed = feed.New(func(ctx context.Context, kind feed.Kind) ([]feed.Item, error) {
		switch {
		case slices.Contains(s.cfg.ofTrade(), kind):
			return s.trade.Items(ctx, kind)
		case s.cfg.Consumes:
			return own.Items(ctx, kind)
		}
		return objects.Items(ctx, kind)
	}, s.cfg.kinds()...)

	// Of what is seen each change is told.
	ofCluster, ofTrade := s.seen(s.cfg.ofCluster()), s.seen(s.cfg.ofTrade())
	if s.cfg.Consumes {
		err = shown.WatchKinds(ctx, informers, ofCluster, func(kind feed.Kind) []client.Object {
			needed, optional := consuming.Needs(s.cfg.Line.Kinds(), kind)
			return slices.DeleteFunc(slices.Concat(needed, optional), func(o client.Object) bool { return !may.read(o) })
		}, s.feed.Changed)
	} else {
		err = objects.Watch(ctx, informers, ofCluster, may.read, s.feed.Changed)
	}
	if err != nil {
		return err
	}
	if err := shown.WatchKinds(ctx, informers, ofTrade, trading.Needs, s.feed.Changed); err != nil {
		return err
	}
	if may.programs {
		if _, err := informers.GetInformer(ctx, &appsv1.Deployment{}); err != nil {
			return fmt.Errorf("watch Deployments: %w", err)
		}
	}

	// It runs.
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return informers.Start(ctx) })
	group.Go(func() error { return s.feed.Run(ctx) })
	group.Go(func() error {
		if informers.WaitForCacheSync(ctx) {
			close(s.ready)
		}
		return nil
	})
	return group.Wait()
}

// noted are the informers that there are, by the kinds of their objects.
type noted struct {
	mu        sync.Mutex
	informers map[string]cache.Informer
}

// unread returns the kinds of which not all has been read yet, in order; nil also before any is to be read.
func (n *noted) unread() (kinds []string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for kind, informer := range n.informers {
		if !informer.HasSynced() {
			kinds = append(kinds, kind)
		}
	}
	slices.Sort(kinds)
	return kinds
}

// noting is a cache that notes which informers are asked of it.
type noting struct {
	cache.Cache

	in *noted
}

// GetInformer implements [cache.Informers].
func (n noting) GetInformer(ctx context.Context, object client.Object, options ...cache.InformerGetOption) (cache.Informer, error) {
	informer, err := n.Cache.GetInformer(ctx, object, options...)
	if err == nil {
		n.in.mu.Lock()
		defer n.in.mu.Unlock()
		if n.in.informers == nil {
			n.in.informers = map[string]cache.Informer{}
		}
		n.in.informers[reflect.TypeOf(object).Elem().Name()] = informer
	}
	return informer, err //nolint:wrapcheck // It is that of the cache.
}

// seen returns which of some kinds the person sees.
func (s *sighting) seen(of []feed.Kind) []feed.Kind {
	return slices.DeleteFunc(of, func(kind feed.Kind) bool { return !slices.Contains(s.kinds, kind) })
}

// cache returns what is kept in memory, and what happens if it cannot be read any more.
func (s *sighting) cache() cache.Options {
	kept := cached.ByBroker(s.cfg.Line)
	if s.cfg.Consumes {
		kept = cached.ByConsumer(s.cfg.Line)
	}
	if s.cfg.Broker {
		kept[&v1alpha1.PlacementDecision{}] = cached.Decisions()
		kept[&v1alpha1.ProviderHistory{}] = cache.ByObject{Transform: cached.Without(shown.KeepWindows)}
	}
	kept[&appsv1.Deployment{}] = cache.ByObject{Transform: cached.Without(bare)}
	options := cached.Options(kept)
	options.Scheme, options.Mapper = s.cfg.Scheme, s.client.RESTMapper()
	options.ReaderFailOnMissingInformer = true // What may not be read would be waited for.
	options.DefaultWatchErrorHandler = func(ctx context.Context, r *toolscache.Reflector, err error) {
		if apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err) || apierrors.IsNotFound(err) {
			s.lose(err)
		}
		toolscache.DefaultWatchErrorHandler(ctx, r, err)
	}
	return options
}

// bare keeps of a Deployment how many replicas run, and what its containers are told.
func bare(d *appsv1.Deployment) {
	template := &d.Spec.Template.Spec
	for i := range template.Containers {
		c := &template.Containers[i]
		c.Env, c.EnvFrom, c.VolumeMounts, c.LivenessProbe, c.ReadinessProbe, c.StartupProbe = nil, nil, nil, nil, nil, nil
	}
	template.Volumes, template.InitContainers, template.Affinity = nil, nil, nil
}

// kinds returns which kinds the cluster can have.
func (c *Config) kinds() []feed.Kind { return slices.Concat(c.ofCluster(), c.ofTrade()) }

// ofCluster returns those of a broker or of a consumer.
func (c *Config) ofCluster() []feed.Kind {
	switch {
	case c.Broker:
		return shown.Kinds()
	case c.Consumes:
		return consuming.Kinds()
	}
	return nil
}

// ofTrade returns those that are made of the objects of a connector. Of what a broker has too its own counts.
func (c *Config) ofTrade() []feed.Kind {
	if !c.Trades {
		return nil
	}
	cluster := c.ofCluster()
	return slices.DeleteFunc(trading.Kinds(), func(kind feed.Kind) bool { return slices.Contains(cluster, kind) })
}

// changes returns the rights to change what the page changes.
func (c *Config) changes() (all []right) {
	group := v1alpha1.GroupVersion.Group
	if c.Broker {
		for _, resource := range []string{"providers", "consumers", "placementpolicies"} {
			all = append(all, right{"patch", group, resource, ""})
		}
	}
	if c.Trades {
		all = append(all, right{"create", group, "purchases", ""}, right{"create", group, "capacityrequests", ""},
			right{"update", group, "purchases", ""}, right{"update", group, "sales", ""}, right{"patch", group, "offers", ""},
			right{"delete", group, "capacityrequests", ""})
	}
	return all
}

// rights are what a person may see besides what the kinds are made of.
type rights struct {
	// own is what the cluster is called, and programs whether its Deployments may be read.
	own      cluster.Identity
	programs bool
	// read reports whether all objects of a kind may be read.
	read func(client.Object) bool
}

// askRights asks the API server who the person is, and what they may. What they may read is asked for all objects, wherever they are,
// unless all that are read are in one namespace.
func (s *sighting) askRights(ctx context.Context) (may rights, err error) {
	s.me = apiv1.Me{Context: s.cfg.Context, Version: s.cfg.Version, ReadOnly: s.cfg.ReadOnly, May: []string{}, Consumes: s.cfg.Consumes}
	if s.me.Name, err = whoIs(ctx, s.client); err != nil {
		s.me.Name = "" // An old API server does not say.
	}
	own, errOwn := s.cfg.Line.OwnIdentity(ctx, s.client, liqo.DefaultNamespace)
	if errOwn == nil {
		may.own = own
		s.me.Cluster = &apiv1.Cluster{ID: string(own.ID), Name: sheet.Plain(own.Name)}
		if s.cfg.Broker {
			s.me.Broker = s.me.Cluster
		}
	}

	// All questions at once: a right is asked once, whatever needs it.
	var (
		mu      sync.Mutex
		granted = map[string]bool{}
		needed  = map[feed.Kind][]right{}
		asked   = map[right]bool{}
	)
	for _, kind := range s.cfg.kinds() {
		musts, adds, errOf := s.needs(kind)
		if errOf != nil {
			return may, errOf
		}
		needed[kind] = musts
		for _, r := range slices.Concat(musts, adds) {
			asked[r] = true
		}
	}
	// The rest has no kind.
	deployments := right{"list", appsv1.GroupName, "deployments", ""}
	changes := s.cfg.changes()
	for _, r := range append(changes, deployments) {
		asked[r] = true
	}
	all, ctx := errgroup.WithContext(ctx)
	all.SetLimit(8)
	for r := range asked {
		all.Go(func() error {
			ok, err := r.has(ctx, s.client)
			mu.Lock()
			defer mu.Unlock()
			granted[r.String()] = ok
			return err
		})
	}
	if err := all.Wait(); err != nil {
		return may, err
	}

	// What follows from the answers.
	may.programs = granted[deployments.String()]
	may.read = func(object client.Object) bool {
		rights, err := s.reading(object)
		return err == nil && !slices.ContainsFunc(rights, func(r right) bool { return !granted[r.String()] })
	}
	for _, r := range changes {
		if granted[r.String()] {
			s.me.May = append(s.me.May, r.String())
		}
	}
	s.me.Kinds, s.kinds = accessOf(s.cfg.kinds(), func(kind feed.Kind) (missing []string) {
		for _, r := range needed[kind] {
			if !granted[r.String()] {
				missing = append(missing, r.String())
			}
		}
		if kind == shown.Links && apierrors.IsForbidden(errOwn) {
			missing = append(missing, "get configmaps") // One end of each is this cluster.
		}
		slices.Sort(missing)
		return slices.Compact(missing)
	})
	return may, nil
}

// needs returns the rights without which a kind is not seen, and those that add to it.
func (s *sighting) needs(kind feed.Kind) (musts, adds []right, err error) {
	needed, optional := trading.Needs(kind), []client.Object(nil)
	switch {
	case slices.Contains(s.cfg.ofTrade(), kind):
	case s.cfg.Consumes:
		needed, optional = consuming.Needs(s.cfg.Line.Kinds(), kind)
	default:
		needed, optional = shown.Needs(s.cfg.Line.Kinds(), kind)
	}
	for i, object := range slices.Concat(needed, optional) {
		rights, err := s.reading(object)
		switch {
		case err != nil:
			return nil, nil, err
		case i < len(needed):
			musts = append(musts, rights...)
		default:
			adds = append(adds, rights...)
		}
	}
	return musts, adds, nil
}

// reading returns the rights to read all objects of a kind, in the namespace of the object if it has one, and to hear of changes.
func (s *sighting) reading(object client.Object) ([]right, error) {
	kind, err := s.client.GroupVersionKindFor(object)
	if err != nil {
		return nil, fmt.Errorf("name the kind of %T: %w", object, err)
	}
	mapping, err := s.client.RESTMapper().RESTMapping(kind.GroupKind(), kind.Version)
	if err != nil {
		return nil, fmt.Errorf("find %s on the cluster: %w", kind.Kind, err)
	}
	of := mapping.Resource
	in := object.GetNamespace()
	return []right{{"list", of.Group, of.Resource, in}, {"watch", of.Group, of.Resource, in}}, nil
}

// right is one right on all objects of a resource, in one namespace if it is not empty.
type right struct{ verb, group, resource, namespace string }

func (r right) String() string {
	if r.namespace != "" {
		return r.verb + " " + r.resource + " in namespace " + r.namespace
	}
	return r.verb + " " + r.resource
}

// has asks whether who asks has it.
func (r right) has(ctx context.Context, c client.Client) (bool, error) {
	review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{
		ResourceAttributes: &authorizationv1.ResourceAttributes{Verb: r.verb, Group: r.group, Resource: r.resource, Namespace: r.namespace},
	}}
	if err := c.Create(ctx, review); err != nil {
		return false, fmt.Errorf("ask for the right to %s: %w", r, err)
	}
	return review.Status.Allowed, nil
}

// whoIs asks the API server who asks.
func whoIs(ctx context.Context, c client.Client) (string, error) {
	review := &authenticationv1.SelfSubjectReview{ObjectMeta: metav1.ObjectMeta{}}
	if err := c.Create(ctx, review); err != nil {
		return "", fmt.Errorf("ask who asks: %w", err)
	}
	return sheet.Plain(review.Status.UserInfo.Username), nil
}
