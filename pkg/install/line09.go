// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package install

import (
	"context"
	"slices"
	"strings"

	authorizationv1 "k8s.io/api/authorization/v1"

	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
	v09 "github.com/capacitorset/liqo-broker/pkg/liqo/v09"
	"github.com/capacitorset/liqo-broker/pkg/version"
)

// line09 is Liqo 0.9: its controller manager has flags for the virtual kubelets and for a resource plugin.
type line09 struct{ v09.Line }

// LiqoVersion is the one that the virtual kubelet is built of and that tests run. Others of its line are worked with on request only
// (Options.LiqoUnsupported), and can be left by whoever has them.
const LiqoVersion = "v0.9.4"

// versions09 begins the tags of the images of line 0.9.
const versions09 = "v0.9."

func (line09) check(ctx context.Context, o objects) (string, error) {
	return managerTag(ctx, o, versions09, LiqoVersion)
}

func (line09) rights() []authorizationv1.ResourceAttributes {
	return []authorizationv1.ResourceAttributes{
		{Verb: "patch", Group: "apps", Resource: "deployments", Namespace: liqoNamespace},
		{Verb: "patch", Group: "rbac.authorization.k8s.io", Resource: "clusterroles"},
		{Verb: "create", Group: "apiextensions.k8s.io", Resource: "customresourcedefinitions"},
		{Verb: "patch", Group: "virtualkubelet.liqo.io", Resource: "virtualnodes"},
	}
}

func (line09) fits(version string) error {
	if version != LiqoVersion {
		return requirement("this cluster has Liqo %s, and our virtual kubelet is built of %s: with --liqo-unsupported it is tried "+
			"all the same", version, LiqoVersion)
	}
	return nil
}

func (line09) needs(context.Context, objects) error { return nil }

func (l line09) mayBroker(ctx context.Context, i *Installer, _ *Setup) error {
	peers, err := i.peers(ctx, l)
	if err != nil {
		return err
	}
	for n := range peers {
		if peers[n].InBand {
			return requirement("the peering with cluster %s is in-band, and the broker needs out-of-band peerings: end it and peer again",
				called(peers[n].Identity))
		}
	}
	return i.unclaimed(ctx)
}

func (line09) mayGuard(ctx context.Context, i *Installer) error {
	trades, err := i.trades(ctx)
	if err != nil {
		return err
	}
	if !trades && i.options.Export == "" { // A repository brings both.
		return requirement("there is no connector on this cluster, which Liqo could ask what to offer: kubectl apply %s",
			version.Applied("deploy/connector"))
	}
	return i.unclaimed(ctx)
}

func (l line09) marks(ctx context.Context, i *Installer, s *Setup) error {
	args, err := i.managerArgs(ctx)
	if err != nil {
		return err
	}
	s.Tag = ImageTag(kubeletInUse(args))
	for _, arg := range args {
		s.Broker = s.Broker || strings.HasPrefix(arg, flagPlugin+"="+brokerPlugin)
		if address, is := strings.CutPrefix(arg, flagExtraArgs+"="+flagRemoteIPAM+"=server="); is {
			host, _, _ := strings.Cut(address, ":")
			s.RemoteIPAMs = append(s.RemoteIPAMs, host)
		}
	}

	// Which peers the addresses are those of.
	peers, err := i.peers(ctx, l)
	if err != nil {
		return err
	}
	for n := range peers {
		if id := peers[n].Identity; slices.Contains(s.RemoteIPAMs, remoteIPAMOf(id)) {
			s.Brokers = append(s.Brokers, id)
		}
	}
	return nil
}

func (line09) image(ctx context.Context, i *Installer) (string, error) {
	args, err := i.managerArgs(ctx)
	return kubeletInUse(args), err
}

func (line09) broker(i *Installer) ([]step, error) { return i.brokerSteps() }

func (line09) consumer(i *Installer, broker cluster.Identity) ([]step, error) {
	return i.consumerSteps(broker)
}

func (line09) guard(i *Installer) ([]step, error) { return i.guardSteps() }

func (line09) mayCease(ctx context.Context, i *Installer, s *Setup) error { return i.mayCease(ctx, s) }

// mayLose goes by the virtual kubelet, which a broker shares with what it is besides.
func (line09) mayLose(ctx context.Context, i *Installer) error { return i.noConsumer(ctx) }

func (line09) mayUnguard(s *Setup) error {
	if s.Broker || s.consumes() {
		return requirement("this cluster is a broker, or the consumer of one, and needs our virtual kubelet: run uninstall or unprepare")
	}
	return nil
}

func (line09) brokerUndo(i *Installer) ([]step, error) { return i.brokerUndo() }

func (line09) consumerUndo(ctx context.Context, i *Installer) ([]step, error) {
	if err := i.notABroker(ctx); err != nil {
		return nil, err
	}
	trades, err := i.trades(ctx)
	if err != nil {
		return nil, err
	}
	if trades { // Its guard needs our virtual kubelet.
		return i.askingNoMore("brokers", flagOfRemoteIPAM), nil
	}
	return i.consumerUndo(), nil
}

func (line09) guardUndo(i *Installer) ([]step, error) { return i.guardUndo() }

func (line09) leaveBroker(ctx context.Context, i *Installer, broker cluster.Identity) ([]step, bool, error) {
	return i.leaveOne(ctx, broker)
}

func (line09) exportBroker(ctx context.Context, i *Installer) error { return i.exportBroker(ctx) }

func (line09) exportConsumer(ctx context.Context, i *Installer, broker cluster.Identity) error {
	return i.exportConsumer(ctx, remoteIPAMOf(broker))
}

func (line09) exportGuard(ctx context.Context, i *Installer) error { return i.exportGuard(ctx) }
