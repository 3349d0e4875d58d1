// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package install

import (
	"cmp"
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
	liqoline "github.com/capacitorset/liqo-broker/pkg/liqo/line"
)

// Setup is what an installation has made of a cluster, as far as that shows.
type Setup struct {
	// Own is what Liqo calls the cluster; empty if it does not say it, or not to whoever asks.
	Own cluster.Identity
	// Line is what the line of Liqo's versions is called that runs here, and Version that of its controller manager.
	Line, Version string
	// Broker is whether the cluster is one, or about to become or to cease to be one; Helm is whether it is a release of Helm.
	Broker, Helm bool
	// Catalog is whether it only tells others whom it knows, with Liqo 1.x: then it is no broker. Guarded is whether it has the guard there
	// without being a broker.
	Catalog, Guarded bool
	// Trades is whether it has a connector, which brings peers that are strangers.
	Trades bool
	// RemoteIPAMs are the addresses, without a port, at which the cluster's virtual kubelets ask brokers for addresses. They may be the
	// same as those of the peers Brokers; a cluster that is no consumer has none, nor has one with Liqo 1.x.
	RemoteIPAMs []string
	Brokers     []cluster.Identity
	// Tag is that of our images which the cluster uses; empty if it uses none, or if they have a digest in its place.
	Tag string

	// line is the line of Liqo, whose steps are taken.
	line line
}

// Liqo1 reports whether Liqo 1.x runs on the cluster: there are neither our virtual kubelets nor a resource plugin.
func (s *Setup) Liqo1() bool { return s.line != nil && !s.line.HasPlugin() }

// Liqo returns the line of Liqo that runs on the cluster; nil if nobody knows.
func (s *Setup) Liqo() liqoline.Line { return s.line }

// consumes reports whether the cluster is the consumer of a broker.
func (s *Setup) consumes() bool { return len(s.RemoteIPAMs)+len(s.Brokers) > 0 }

// Look returns what an installation has made of this cluster. Its error is a requirement that the cluster does not meet, or says why
// that cannot be known; what was seen until then is returned with it.
func (i *Installer) Look(ctx context.Context) (Setup, error) {
	var s Setup
	l, err := i.lineHere()
	if err != nil {
		return s, err
	}
	s.line, s.Line = l, l.Name()
	if own, err := l.OwnIdentity(ctx, i, liqoNamespace); err == nil { // It is only for people.
		s.Own = own
	}
	if s.Version, err = l.check(ctx, i.objects); err != nil {
		return s, err
	}

	// The broker, and what tells Liqo of it.
	var d appsv1.Deployment
	err = i.Get(ctx, client.ObjectKey{Namespace: BrokerNamespace, Name: BrokerName}, &d)
	if client.IgnoreNotFound(err) != nil {
		return s, fmt.Errorf("read Deployment %s/%s: %w", BrokerNamespace, BrokerName, err)
	}
	s.Broker, s.Helm = err == nil, err == nil && ofHelm(&d)
	if s.Trades, err = i.trades(ctx); err != nil && !apierrors.IsForbidden(err) { // Who may not see that is told so of the connector itself.
		return s, err
	}
	return s, l.marks(ctx, i, &s)
}

// Reviewed is what was found of one step of an installation that was taken before.
type Reviewed struct {
	// Name is that of the step.
	Name string
	// Changes are what it would write now, such as "patch Deployment liqo/liqo-gateway"; none if all is as it should be.
	Changes []string
	// Awaits is what the step would wait for; nil for nothing.
	Awaits error
	// Err says why that cannot be known; nil if it can. Then there is nothing else.
	Err error
}

// Tag returns the tag of the images that this Installer installs.
func (i *Installer) Tag() string { return i.options.Tag }

// ProbeImage returns the image of the pods that test the network of a consumer: ours that has the program for it, from the registry and
// of the version of the virtual kubelet that the cluster uses.
func (i *Installer) ProbeImage(ctx context.Context, s *Setup) (string, error) {
	if err := i.sameRegistry(ctx, s.line); err != nil {
		return "", err
	}
	o := i.options
	o.Tag = cmp.Or(s.Tag, o.Tag)
	return o.image(sidecarImage), nil
}

// Review returns what is found of the steps by which this cluster became what a setup says that Look has returned, with the images that it
// uses. It writes nothing.
func (i *Installer) Review(ctx context.Context, s Setup) ([]Reviewed, error) {
	if err := i.sameRegistry(ctx, s.line); err != nil {
		return nil, err
	}
	// Another version is not another set-up.
	if s.Tag != "" {
		i.options.Tag = s.Tag
	}
	var steps []step
	i.ofHelm = s.Helm
	if s.Broker {
		of, err := s.line.broker(i)
		if err != nil {
			return nil, err
		}
		steps = of
	}
	for _, broker := range s.Brokers {
		of, err := s.line.consumer(i, broker)
		if err != nil {
			return nil, err
		}
		steps = append(steps, of...)
	}
	if s.Trades || s.Guarded {
		of, err := s.line.guard(i)
		if err != nil {
			return nil, err
		}
		steps = append(steps, of...)
	}
	reviewed := make([]Reviewed, 0, len(steps))
	seen := map[string]bool{} // A broker that is a consumer too has some steps of both.
	for _, s := range steps {
		if !seen[s.name] {
			seen[s.name] = true
			reviewed = append(reviewed, review(ctx, s))
		}
	}
	return reviewed, nil
}

// review looks at one step.
func review(ctx context.Context, s step) Reviewed {
	r := Reviewed{Name: s.name}
	changes, err := s.changes(ctx)
	if err != nil {
		r.Err = err
		return r
	}
	for _, c := range changes {
		r.Changes = append(r.Changes, c.verb+" "+c.object)
	}
	if s.settled == nil {
		return r
	}
	switch err := s.settled(ctx); {
	case apierrors.IsForbidden(err) || ctx.Err() != nil:
		return Reviewed{Name: s.name, Err: err}
	default:
		r.Awaits = err
		return r
	}
}
