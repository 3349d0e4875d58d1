// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

// Package install makes a cluster with Liqo a broker, or the consumer of one, and a cluster with nothing but Liqo again.
//
// It writes what is missing, in an order in which no Secret of Liqo's namespace leaves the cluster and Liqo never asks a plugin that is
// not there; it keeps nothing of its own about how far it came, but looks. So a run that was interrupted is finished by the next one,
// and what people have done by hand, as the README says, counts as done.
//
// It does not know who calls it, nor what the daemon does.
package install

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capacitorset/liqo-broker/pkg/liqo"
)

// Options are what people choose about an installation.
type Options struct {
	// Registry is the prefix of the names of the images; empty is the one that the cluster uses already, or that of the manifests. Tag is
	// their tag; empty is that of the manifests.
	Registry, Tag string
	// PullSecret is the namespace and the name of a Secret, with a slash between them, with which the images are pulled: it is copied to where
	// pods of ours are. Empty leaves that as it is.
	PullSecret string
	// Modes are those of the daemon: catalog, orchestrator, aggregator. None means those that it has, and all if it is not there.
	Modes []string
	// modesGiven and registryGiven are whether there are any.
	modesGiven, registryGiven bool
	// Broker names the peer whose consumer this cluster is to be: by its cluster ID, its name, or the beginning of its ID. It may be empty
	// if there is only one peer.
	Broker string
	// DryRun prints what would change, and changes nothing. With Tried the API server also checks each change, and keeps none.
	DryRun, Tried bool
	// Export is a folder, empty or not there, into which what would be applied is written as files, in place of any change. Empty writes none.
	Export string
	// Force removes a broker that is used, and does not wait for peers that do not answer.
	Force bool
	// AlsoBroker makes a broker also of a cluster that is the consumer of another one.
	AlsoBroker bool
	// Downgrade lets older images take the place of newer ones.
	Downgrade bool
	// LiqoUnsupported goes on with another Liqo 0.9 than LiqoVersion, or another 1.x than Liqo1Version.
	LiqoUnsupported bool
	// Timeout is for how long each step may wait; zero is DefaultTimeout.
	Timeout time.Duration
}

// DefaultTimeout is for how long each step may wait.
const DefaultTimeout = 3 * time.Minute

// modes are those that the daemon has.
var modes = []string{"catalog", "orchestrator", "aggregator"}

// Validate returns an error if the options are not such as people may choose.
func (o *Options) Validate() error {
	for _, mode := range o.Modes {
		if !slices.Contains(modes, mode) {
			return field.NotSupported(field.NewPath("modes"), mode, modes)
		}
	}
	if strings.ContainsAny(o.Registry, " @") || strings.HasSuffix(o.Registry, "/") {
		return field.Invalid(field.NewPath("registry"), o.Registry, "must be the part of an image's name before its last slash")
	}
	if strings.ContainsAny(o.Tag, " /:@") {
		return field.Invalid(field.NewPath("tag"), o.Tag, "must be the tag of an image")
	}
	if o.Export != "" && o.DryRun {
		return field.Invalid(field.NewPath("export"), o.Export, "must not stand beside a dry run: neither changes anything")
	}
	if o.Timeout < 0 {
		return field.Invalid(field.NewPath("timeout"), o.Timeout.String(), "must not be negative")
	}
	return o.validatePull()
}

// Installer changes one cluster. Its methods may be called again, but not concurrently.
type Installer struct {
	objects

	options Options
	run     runner
	ofHelm  bool // The daemon is a release of Helm.
	trading bool // The cluster has a connector, and needs what a guard brings.
}

// New returns an Installer that tells of its steps; the client knows the kinds of Kubernetes and those of package lines.
func New(c client.Client, options Options, out io.Writer) (*Installer, error) {
	if err := options.Validate(); err != nil {
		return nil, err
	}
	timeout := options.Timeout
	if timeout == 0 {
		timeout = DefaultTimeout
	}
	if err := options.complete(); err != nil {
		return nil, err
	}
	if options.DryRun {
		c = client.NewDryRunClient(c)
	}
	run := runner{out: out, dryRun: options.DryRun, tried: options.DryRun && options.Tried, timeout: timeout}
	return &Installer{objects: objects{c}, options: options, run: run}, nil
}

// complete fills in what is empty from the manifests.
func (o *Options) complete() error {
	flags, err := additions[string]("controller-manager-broker.json")
	if err != nil {
		return err
	}
	k, err := kubeletOf(flags)
	if err != nil {
		return err
	}
	name, tag, _ := strings.Cut(k.image, ":")
	registry := name[:strings.LastIndex(name, "/")]
	if o.registryGiven = o.Registry != ""; !o.registryGiven {
		o.Registry = registry
	}
	if o.Tag == "" {
		o.Tag = tag
	}
	if o.modesGiven = len(o.Modes) > 0; !o.modesGiven {
		o.Modes = modes
	}
	return nil
}

// image returns one of the images.
func (o *Options) image(name string) string { return o.Registry + "/" + name + ":" + o.Tag }

// Install makes the cluster a broker, which is as Look has seen it. One that is the consumer of another broker becomes one only if the
// options say so.
func (i *Installer) Install(ctx context.Context, seen *Setup) error {
	if err := i.forward(ctx, seen); err != nil {
		return err
	}
	if err := i.mayBecomeBroker(seen); err != nil {
		return err
	}
	return i.makeBroker(ctx, seen)
}

// Upgrade is Install on a cluster that is a broker already, if perhaps not wholly. It makes no cluster one.
func (i *Installer) Upgrade(ctx context.Context, seen *Setup) error {
	if err := i.forward(ctx, seen); err != nil {
		return err
	}
	if err := seen.isBroker(); err != nil {
		return err
	}
	return i.makeBroker(ctx, seen)
}

func (i *Installer) makeBroker(ctx context.Context, seen *Setup) error {
	if err := i.brokerRequirements(ctx, seen); err != nil {
		return err
	}
	if err := i.sameRegistry(ctx, seen.line); err != nil {
		return err
	}
	if i.options.Export != "" {
		return seen.line.exportBroker(ctx, i)
	}
	steps, err := seen.line.broker(i)
	if err != nil {
		return err
	}
	return i.run.runSteps(ctx, steps)
}

// Uninstall undoes Install. What a connector needs stays: our virtual kubelet with its rights, the guard, and somebody whom Liqo asks. A
// cluster that is something else than a broker is left alone, and that is an error; one with nothing but Liqo is as it should be.
func (i *Installer) Uninstall(ctx context.Context, seen *Setup) error {
	if err := i.rights(ctx, seen.line); err != nil {
		return err
	}
	if err := seen.line.mayCease(ctx, i, seen); err != nil {
		return err
	}
	if err := i.unused(ctx, seen.line); err != nil {
		return err
	}
	steps, err := seen.line.brokerUndo(i)
	if err != nil {
		return err
	}
	return i.run.runSteps(ctx, steps)
}

// Prepare makes the cluster the consumer of a broker with which it peers.
func (i *Installer) Prepare(ctx context.Context, seen *Setup) error {
	if err := i.forward(ctx, seen); err != nil {
		return err
	}
	if err := i.mayBecomeConsumer(seen); err != nil {
		return err
	}
	broker, err := i.findBroker(ctx, seen.line)
	if err != nil {
		return err
	}
	if err := i.consumesFrom(ctx, seen, broker); err != nil {
		return err
	}
	if err := i.sameRegistry(ctx, seen.line); err != nil {
		return err
	}
	if i.options.Export != "" {
		return seen.line.exportConsumer(ctx, i, broker)
	}
	steps, err := seen.line.consumer(i, broker)
	if err != nil {
		return err
	}
	return i.run.runSteps(ctx, steps)
}

// Unprepare undoes Prepare: for all brokers, or for the one that the options name, so that the cluster stays the consumer of others. One
// that trades stays guarded.
func (i *Installer) Unprepare(ctx context.Context, seen *Setup) error {
	if err := i.rights(ctx, seen.line); err != nil {
		return err
	}
	if i.options.Broker != "" {
		broker, err := i.findBroker(ctx, seen.line)
		if err != nil {
			return err
		}
		steps, last, err := seen.line.leaveBroker(ctx, i, broker)
		if err != nil {
			return err
		}
		if !last {
			return i.run.runSteps(ctx, steps)
		}
	}
	steps, err := seen.line.consumerUndo(ctx, i)
	if err != nil {
		return err
	}
	return i.run.runSteps(ctx, steps)
}

// sameRegistry takes the images from where the cluster has those of ours from that it uses, unless another place is given.
func (i *Installer) sameRegistry(ctx context.Context, of line) error {
	if i.options.registryGiven {
		return nil
	}
	image, err := of.image(ctx, i)
	if err != nil {
		return err
	}
	if slash := strings.LastIndex(image, "/"); slash > 0 {
		i.options.Registry = image[:slash]
	}
	return nil
}

// kubeletInUse returns the image of our virtual kubelet that a command line of Liqo's controller manager names; empty if it names none.
func kubeletInUse(args []string) (image string) {
	for _, arg := range args {
		if named, is := strings.CutPrefix(arg, flagImage+"="); is && liqo.OwnVirtualKubelet(named) {
			image = named
		}
	}
	return image
}

// RequirementError says what is missing for what was to be done.
type RequirementError struct{ error }

func (e *RequirementError) Unwrap() error { return e.error }

// requirement returns a RequirementError.
func requirement(format string, args ...any) error {
	return &RequirementError{fmt.Errorf("requirement: "+format, args...)}
}
