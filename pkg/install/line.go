// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package install

import (
	"context"
	"errors"
	"fmt"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
	"github.com/capacitorset/liqo-broker/pkg/liqo"
	liqoline "github.com/capacitorset/liqo-broker/pkg/liqo/line"
	"github.com/capacitorset/liqo-broker/pkg/liqo/lines"
)

// A line of Liqo's versions says how such a Liqo is made a broker's or a consumer's, and stock again.
type line interface {
	identified
	required
	looked
	changed
	exporting
}

// changed is how it is changed, and back.
type changed interface {
	installed
	undone
	joining
}

// joining is how clusters become a federation.
type joining interface {
	// pairs returns who peers with whom.
	pairs(f *joined) []pairing
	// mayJoin returns an error unless these peerings can be made, or are there if only people can make them.
	mayJoin(ctx context.Context, f *joined, j *Joining) error
	// joinSteps are the steps before the consumers are prepared, and after it.
	joinSteps(f *joined, keepTokens bool) (before, after []step)
}

// identified is what a line is known by, and what it says of a cluster.
type identified interface {
	liqoline.Line
	// check returns its version; an error unless it runs here, of a version that the steps back are for.
	check(ctx context.Context, o objects) (version string, err error)
}

// required is what must be there before anything is changed. All errors but those of reading are requirements.
type required interface {
	// rights are those that the steps need most; who has them is an administrator.
	rights() []authorizationv1.ResourceAttributes
	// fits returns an error unless a version is the one that was tried.
	fits(version string) error
	// needs returns an error unless the cluster has what all steps onwards need of it.
	needs(ctx context.Context, o objects) error
	// mayBroker returns an error unless the cluster can be a broker, and mayGuard unless it can be guarded by itself.
	mayBroker(ctx context.Context, i *Installer, s *Setup) error
	mayGuard(ctx context.Context, i *Installer) error
}

// looked is how it shows what a cluster was made.
type looked interface {
	// marks adds to a Setup what is particular to the line.
	marks(ctx context.Context, i *Installer, s *Setup) error
	// image returns an image of ours that the cluster uses; empty if it uses none.
	image(ctx context.Context, i *Installer) (string, error)
}

// installed is how it is made more.
type installed interface {
	// broker, consumer and guard are the steps of an installation.
	broker(i *Installer) ([]step, error)
	consumer(i *Installer, broker cluster.Identity) ([]step, error)
	guard(i *Installer) ([]step, error)
}

// undone is how it is changed back.
type undone interface {
	removable
	// brokerUndo, consumerUndo and guardUndo are the steps back.
	brokerUndo(i *Installer) ([]step, error)
	consumerUndo(ctx context.Context, i *Installer) ([]step, error)
	guardUndo(i *Installer) ([]step, error)
	// leaveBroker are the steps by which a cluster ceases to be the consumer of one of several brokers. They are not taken if that is the
	// last thing that it is.
	leaveBroker(ctx context.Context, i *Installer, broker cluster.Identity) (steps []step, last bool, err error)
}

// removable is whether the steps back may be taken. All errors but those of reading are requirements.
type removable interface {
	// mayCease returns an error if the cluster is no broker, and something else would be taken from it.
	mayCease(ctx context.Context, i *Installer, s *Setup) error
	// mayLose returns an error if what else the cluster is would go with the broker.
	mayLose(ctx context.Context, i *Installer) error
	// mayUnguard returns an error if the cluster needs the guard for what it is.
	mayUnguard(s *Setup) error
}

// exporting is how what is installed becomes files.
type exporting interface {
	exportBroker(ctx context.Context, i *Installer) error
	exportConsumer(ctx context.Context, i *Installer, broker cluster.Identity) error
	exportGuard(ctx context.Context, i *Installer) error
}

// lineHere returns the line of Liqo that the API server has the kinds of.
func (i *Installer) lineHere() (line, error) {
	found, err := lines.FindMapped(i.RESTMapper())
	switch {
	case errors.Is(err, lines.ErrNone):
		return nil, requirement("this cluster has no Liqo: install Liqo %s or %s first", LiqoVersion, Liqo1Version)
	case errors.Is(err, lines.ErrSeveral):
		return nil, requirement("%w", err)
	case err != nil:
		return nil, err
	case found.HasPlugin():
		return line09{}, nil
	default:
		return line1{}, nil
	}
}

// peers returns the clusters that this one knows.
func (i *Installer) peers(ctx context.Context, of line) ([]liqo.Peer, error) {
	return of.Reader(i, "").Peers(ctx)
}

// managerTag returns the tag of the image of Liqo's controller manager; an error unless it begins like the versions of a line. The broker
// needs one of them.
func managerTag(ctx context.Context, o objects, begins, needed string) (string, error) {
	var d appsv1.Deployment
	err := o.Get(ctx, client.ObjectKey{Namespace: liqoNamespace, Name: controllerManager}, &d)
	switch {
	case apierrors.IsNotFound(err):
		return "", requirement("this cluster has Liqo's kinds, but no Deployment %s/%s: Liqo must run in namespace %s", liqoNamespace,
			controllerManager, liqoNamespace)
	case apierrors.IsForbidden(err):
		return "", requirement("you may not read Liqo's installation: %w", err)
	case err != nil:
		return "", fmt.Errorf("read Deployment %s/%s: %w", liqoNamespace, controllerManager, err)
	}
	container, err := first(&d)
	if err != nil {
		return "", err
	}
	tag := ImageTag(container.Image)
	if !strings.HasPrefix(tag, begins) {
		return "", requirement("Liqo's controller manager has the image %s, and the broker needs Liqo %s", container.Image, needed)
	}
	return tag, nil
}
