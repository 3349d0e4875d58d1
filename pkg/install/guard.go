// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package install

import (
	"context"
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capacitorset/liqo-broker/pkg/version"
)

const (
	// GuardName is the name of the guard's namespace, Deployment, Service and webhook configurations (deploy/guard).
	GuardName = "liqo-broker-guard"
	// ConnectorName is the name of the connector's namespace, Deployment, lease, settings and Secret (deploy/connector).
	ConnectorName = "liqo-broker-connector"
	// flagPlugin says whom Liqo asks what to offer.
	flagPlugin = "--resource-plugin-address"
	// brokerPlugin begins what it is for a broker. A connector's is named otherwise.
	brokerPlugin = BrokerName + "-resource-plugin."
	// connectorPlugin is what it is for who trades, and is no broker.
	connectorPlugin = ConnectorName + "-plugin." + ConnectorName + ":7000"
)

// Guard keeps the peers in bounds that a connector brings: it runs the guard, closes Liqo's IPAM to them, and has Liqo use our virtual
// kubelet and ask the connector what to offer. A broker is guarded, and stays what it is. With Liqo 1.x it runs the guard alone, with what
// holds while that does not run, and needs no connector.
func (i *Installer) Guard(ctx context.Context, seen *Setup) error {
	if err := i.forward(ctx, seen); err != nil {
		return err
	}
	if err := seen.line.mayGuard(ctx, i); err != nil {
		return err
	}
	if err := i.sameRegistry(ctx, seen.line); err != nil {
		return err
	}
	if i.options.Export != "" {
		return seen.line.exportGuard(ctx, i)
	}
	steps, err := seen.line.guard(i)
	if err != nil {
		return err
	}
	return i.run.runSteps(ctx, steps)
}

// Unguard undoes Guard, on a cluster that does not trade any more.
func (i *Installer) Unguard(ctx context.Context, seen *Setup) error {
	if err := i.rights(ctx, seen.line); err != nil {
		return err
	}
	trades, err := i.trades(ctx)
	if err != nil {
		return err
	}
	if trades {
		return requirement("the connector still brings peers: end its contracts, and kubectl delete %s", version.Applied("deploy/connector"))
	}
	if err := seen.line.mayUnguard(seen); err != nil {
		return err
	}
	steps, err := seen.line.guardUndo(i)
	if err != nil {
		return err
	}
	return i.run.runSteps(ctx, steps)
}

// trades reports whether the cluster has a connector.
func (i *Installer) trades(ctx context.Context) (bool, error) {
	at := client.ObjectKey{Namespace: ConnectorName, Name: ConnectorName}
	err := i.Get(ctx, at, &appsv1.Deployment{})
	if client.IgnoreNotFound(err) != nil {
		return false, fmt.Errorf("read Deployment %s: %w", at, err)
	}
	return err == nil, nil
}

// guardSteps are those of Guard: Liqo asks the connector, and uses our virtual kubelet, when both are there.
func (i *Installer) guardSteps() ([]step, error) {
	wanted, err := i.guardObjects()
	if err != nil {
		return nil, err
	}
	flags, err := managerFlags("controller-manager-trader.json", i.options.image(kubeletImage), "")
	if err != nil {
		return nil, err
	}
	withFlags := func(d *appsv1.Deployment) error {
		container, err := first(d)
		if err != nil {
			return err
		}
		add := flags
		if slices.ContainsFunc(container.Args, isOtherPlugin) { // A broker has one.
			add = slices.DeleteFunc(slices.Clone(flags), func(flag string) bool { return strings.HasPrefix(flag, flagPlugin+"=") })
		}
		return addFlags(d, add, outdated)
	}
	return slices.Concat(i.guarding(wanted), i.pulling(liqoNamespace), []step{
		i.shareOfGateway(),
		i.beside("close Liqo's IPAM to all but virtual kubelets", patchIPAMGuard),
		i.rightsOfVirtualKubelets(),
		i.tellingOfMetrics(i.configuring("have Liqo ask the connector, and use our virtual kubelet", withFlags)),
		i.virtualKubelets("give the peerings that exist our virtual kubelet", true, withFlags),
	}), nil
}

// guardUndo are the steps back: peers are bounded until Liqo makes no more of them.
func (i *Installer) guardUndo() ([]step, error) {
	base, err := i.guardObjects()
	if err != nil {
		return nil, err
	}
	policies, err := build("guard/policies")
	if err != nil {
		return nil, err
	}
	without := func(d *appsv1.Deployment) error {
		flags, err := additions[string]("controller-manager-trader.json")
		if err != nil {
			return err
		}
		ours := func(flag string) bool { return slices.Contains(flags, flag) || outdated(flag) }
		if err := addFlags(d, nil, ours); err != nil {
			return err
		}
		return stockKubelet(d)
	}
	guard := i.guardingUndo(base, policies)
	return []step{
		i.configuring("have Liqo ask nobody, and use its own virtual kubelet", without),
		i.virtualKubelets("give the peerings Liqo's virtual kubelet", false, without),
		guard[0],
		{"open Liqo's IPAM again", i.alone(patchIPAMGuard), i.rollout(liqoNamespace, networkManager)},
		guard[1],
		i.noRightsOfVirtualKubelets(),
		i.noShareOfGateway(),
		{"remove what our virtual kubelets have written", i.traces, nil},
	}, nil
}

// isOtherPlugin reports whether a flag has Liqo ask somebody else than the connector what to offer.
func isOtherPlugin(flag string) bool {
	address, is := strings.CutPrefix(flag, flagPlugin+"=")
	return is && address != "" && address != connectorPlugin
}

// guarding are the steps that run the guard, with what holds while it does not.
func (i *Installer) guarding(wanted []*unstructured.Unstructured) []step {
	return []step{
		i.running("run the guard", GuardName, wanted), i.policies("add the rules that hold without the guard", "guard/policies"),
	}
}

// guardingUndo are the two steps back from guarding.
func (i *Installer) guardingUndo(base, policies []*unstructured.Unstructured) []step {
	return []step{
		{"remove the rules that hold without the guard", func(ctx context.Context) ([]change, error) {
			unwanted, err := i.unsealed(ctx, policies, AgentName)
			if err != nil {
				return nil, err
			}
			return i.remove(ctx, unwanted)
		}, nil},
		i.removing("remove the guard", base, func(ctx context.Context) error { return i.gone(ctx, base) }),
	}
}

// running is the step that runs one of our programs. One that is a release of Helm, with whatever it is part of, is only waited for.
func (i *Installer) running(what, name string, wanted []*unstructured.Unstructured) step {
	return step{what, func(ctx context.Context) ([]change, error) {
		d, err := i.program(ctx, name)
		if err != nil {
			return nil, err
		}
		if ofHelm(d) {
			return nil, nil
		}
		chosen, err := i.withChoices(ctx, wanted)
		if err != nil {
			return nil, err
		}
		pull, err := i.pullSecrets(ctx, name)
		if err != nil {
			return nil, err
		}
		return i.apply(ctx, slices.Insert(chosen, kindsOf(chosen), pull...))
	}, i.rollout(name, name)}
}

// guardObjects returns the objects of the guard, with the image that was chosen.
func (i *Installer) guardObjects() ([]*unstructured.Unstructured, error) {
	base, err := build("guard")
	if err != nil {
		return nil, err
	}
	return base, i.setImages(base, BrokerName)
}

// withoutGuard returns objects without those of the guard if somebody else needs it, who trades, and without what a consumer needs.
func (i *Installer) withoutGuard(ctx context.Context, all []*unstructured.Unstructured) ([]*unstructured.Unstructured, error) {
	all, err := i.unsealed(ctx, all, AgentName)
	if err != nil {
		return nil, err
	}
	trades, err := i.trades(ctx)
	if err != nil || !trades {
		return all, err
	}
	return slices.DeleteFunc(slices.Clone(all), func(o *unstructured.Unstructured) bool { return o.GetLabels()[labelName] == GuardName }), nil
}
