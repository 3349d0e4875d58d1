// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package install

import (
	"context"
	"fmt"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
	"github.com/capacitorset/liqo-broker/pkg/liqo/v1/api"
)

// A line of Liqo's versions says how such a Liqo is made a broker's or a consumer's, and stock again. One that is known and not supported
// says so in its check, and has no steps.
type line interface {
	identified
	installed
	guarded
	exporting
}

// identified is what a line is known by.
type identified interface {
	// name is what people call it.
	name() string
	// kind is one of its kinds that no other line has.
	kind() schema.GroupKind
	// check returns its version; an error unless it runs here, of a version that the steps are for.
	check(ctx context.Context, o objects) (version string, err error)
}

// installed is how it is changed, and changed back.
type installed interface {
	// broker and consumer are the steps of an installation, and the others those back.
	broker(i *Installer) ([]step, error)
	brokerUndo(i *Installer) ([]step, error)
	consumer(i *Installer, broker cluster.Identity) ([]step, error)
	consumerUndo(i *Installer) ([]step, error)
}

// guarded is how its guard comes, by itself, and goes.
type guarded interface {
	guard(i *Installer) ([]step, error)
	guardUndo(i *Installer) ([]step, error)
}

// exporting is how what is installed becomes files.
type exporting interface {
	exportBroker(ctx context.Context, i *Installer) error
	exportConsumer(ctx context.Context, i *Installer, broker cluster.Identity) error
	exportGuard(ctx context.Context, i *Installer) error
}

// lines returns those that are known.
func lines() []line { return []line{line09{}, line1{}} }

// lineHere returns the line of Liqo that the API server has the kinds of.
func (i *Installer) lineHere() (line, error) {
	for _, l := range lines() {
		_, err := i.RESTMapper().RESTMapping(l.kind())
		switch {
		case err == nil:
			return l, nil
		case !meta.IsNoMatchError(err):
			return nil, fmt.Errorf("ask the API server for Liqo's kinds: %w", err)
		}
	}
	return nil, requirement("this cluster has no Liqo: install Liqo 0.9 first")
}

// line09 is Liqo 0.9: its controller manager has flags for the virtual kubelets and for a resource plugin.
type line09 struct{}

// LiqoVersion is the one that the virtual kubelet is built of and that tests run. Others of its line are worked with on request only
// (Options.LiqoUnsupported), and can be left by whoever has them.
const LiqoVersion = "v0.9.4"

// versions09 begins the tags of the images of line 0.9.
const versions09 = "v0.9."

func (line09) name() string { return "0.9" }

func (line09) kind() schema.GroupKind {
	return schema.GroupKind{Group: "discovery.liqo.io", Kind: "ForeignCluster"}
}

func (line09) check(ctx context.Context, o objects) (string, error) {
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
	if !strings.HasPrefix(tag, versions09) {
		return "", requirement("Liqo's controller manager has the image %s, and the broker needs Liqo %s", container.Image, LiqoVersion)
	}
	return tag, nil
}

func (line09) broker(i *Installer) ([]step, error)     { return i.brokerSteps() }
func (line09) brokerUndo(i *Installer) ([]step, error) { return i.brokerUndo() }

func (line09) consumer(i *Installer, broker cluster.Identity) ([]step, error) {
	return i.consumerSteps(broker)
}

func (line09) consumerUndo(i *Installer) ([]step, error) { return i.consumerUndo(), nil }

func (line09) guard(i *Installer) ([]step, error)     { return i.guardSteps() }
func (line09) guardUndo(i *Installer) ([]step, error) { return i.guardUndo() }

func (line09) exportBroker(ctx context.Context, i *Installer) error { return i.exportBroker(ctx) }

func (line09) exportConsumer(ctx context.Context, i *Installer, broker cluster.Identity) error {
	return i.exportConsumer(ctx, remoteIPAMOf(broker))
}

func (line09) exportGuard(ctx context.Context, i *Installer) error { return i.exportGuard(ctx) }

// line1 is Liqo 1.x, which has neither these flags nor a resource plugin.
type line1 struct{}

func (line1) name() string { return "1.x" }

func (line1) kind() schema.GroupKind {
	return schema.GroupKind{Group: api.CoreGroup, Kind: api.ForeignClusterKind}
}

func (line1) unsupported() error {
	return requirement("Liqo 1.x is not supported yet; this cluster has it, and the broker needs Liqo 0.9")
}

func (l line1) check(context.Context, objects) (string, error) { return "", l.unsupported() }
func (l line1) broker(*Installer) ([]step, error)              { return nil, l.unsupported() }
func (l line1) brokerUndo(*Installer) ([]step, error)          { return nil, l.unsupported() }

func (l line1) consumer(*Installer, cluster.Identity) ([]step, error) { return nil, l.unsupported() }
func (l line1) consumerUndo(*Installer) ([]step, error)               { return nil, l.unsupported() }
func (l line1) guard(*Installer) ([]step, error)                      { return nil, l.unsupported() }
func (l line1) guardUndo(*Installer) ([]step, error)                  { return nil, l.unsupported() }

func (l line1) exportBroker(context.Context, *Installer) error { return l.unsupported() }
func (l line1) exportConsumer(context.Context, *Installer, cluster.Identity) error {
	return l.unsupported()
}
func (l line1) exportGuard(context.Context, *Installer) error { return l.unsupported() }
