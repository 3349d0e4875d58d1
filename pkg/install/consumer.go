// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package install

import (
	"context"
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
	v09 "github.com/capacitorset/liqo-broker/pkg/liqo/v09"
	"github.com/capacitorset/liqo-broker/pkg/sheet"
)

// consumerSteps are those of a consumer.
func (i *Installer) consumerSteps(broker cluster.Identity) ([]step, error) {
	flags, err := managerFlags("controller-manager-consumer.json", i.options.image(kubeletImage), remoteIPAMOf(broker))
	if err != nil {
		return nil, err
	}
	withFlags := func(d *appsv1.Deployment) error { return addFlags(d, flags, outdated) }
	return slices.Concat([]step{
		i.shareOfGateway(),
		{fmt.Sprintf("let %s peer with this cluster too, if it sells by a contract and was named", called(broker)), i.letIn(broker), nil},
		{
			fmt.Sprintf("wait for the remote IPAM of %s to arrive", called(broker)), nothing,
			func(ctx context.Context) error { return i.arrived(ctx, broker) },
		},
	}, i.pulling(), []step{
		i.rightsOfVirtualKubelets(),
		i.tellingOfMetrics(i.configuring("have Liqo use the broker's virtual kubelet", withFlags)),
		i.virtualKubelets("give the peerings that exist the broker's virtual kubelet", true, withFlags),
	}), nil
}

// annotationContract is on a ForeignCluster that a connector has made.
const annotationContract = "brokering.liqo.io/by-contract"

// letIn returns the change by which a broker can peer with this cluster that has sold to it: a connector lets no seller in, so that people
// have to name it. Where they have made the peering, it is as they want it.
func (i *Installer) letIn(broker cluster.Identity) func(context.Context) ([]change, error) {
	return func(ctx context.Context) ([]change, error) {
		if i.options.Broker == "" {
			return nil, nil
		}
		fc, err := v09.ForeignClusterOf(ctx, i, broker.ID)
		if err != nil || fc == nil || fc.Annotations[annotationContract] == "" {
			return nil, err
		}
		return i.mutateRead(fc, func() error { v09.Provide(fc); return nil })
	}
}

// consumerUndo are the steps back.
func (i *Installer) consumerUndo() []step {
	return []step{
		i.configuring("have Liqo use its own virtual kubelet", withoutFlags),
		i.virtualKubelets("give the peerings Liqo's virtual kubelet", false, withoutFlags),
		i.noRightsOfVirtualKubelets(),
		i.noShareOfGateway(),
		{"remove what the broker's virtual kubelets have written", i.traces, nil},
	}
}

func nothing(context.Context) ([]change, error) { return nil, nil }

// arrived returns an error that says what is missing, unless the Service has arrived by which virtual kubelets reach the remote IPAM of a
// broker.
func (i *Installer) arrived(ctx context.Context, broker cluster.Identity) error {
	at := client.ObjectKey{Namespace: v09.TwinNameOfLiqo(broker), Name: networkManager}
	err := i.Get(ctx, at, &corev1.Service{})
	if apierrors.IsNotFound(err) {
		return fmt.Errorf("there is no Service %s: the broker must be installed on %s, and peer with this cluster, which one that sells by a "+
			"contract may where --broker names it", at, called(broker))
	}
	if err != nil {
		return fmt.Errorf("read Service %s: %w", at, err)
	}
	return nil
}

// called returns what a cluster is called, which chooses its name itself.
func called(c cluster.Identity) string {
	if c.Name == string(c.ID) {
		return sheet.Plain(c.Name)
	}
	return fmt.Sprintf("%s (%s)", sheet.Plain(c.Name), sheet.Plain(string(c.ID)))
}

// flagOfRemoteIPAM begins the flags of Liqo's controller manager that name a broker's remote IPAM.
const flagOfRemoteIPAM = flagExtraArgs + "=" + flagRemoteIPAM + "="

// leaveOne are the steps by which this cluster is the consumer of one broker less, and whether that is the last thing that it is: then
// there are none.
func (i *Installer) leaveOne(ctx context.Context, broker cluster.Identity) (steps []step, last bool, err error) {
	args, err := i.managerArgs(ctx)
	if err != nil {
		return nil, false, err
	}
	flag := flagOfRemoteIPAM + "server=" + remoteIPAMOf(broker)
	if !slices.Contains(args, flag) {
		return nil, false, requirement("this cluster is no consumer of %s: %s has no flag %s", called(broker), controllerManager, flag)
	}
	err = i.Get(ctx, client.ObjectKey{Namespace: BrokerNamespace, Name: BrokerName}, &appsv1.Deployment{})
	if err != nil && !apierrors.IsNotFound(err) {
		return nil, false, fmt.Errorf("read Deployment %s/%s: %w", BrokerNamespace, BrokerName, err)
	}
	other := func(arg string) bool { return strings.HasPrefix(arg, flagOfRemoteIPAM) && arg != flag }
	if err != nil && !slices.ContainsFunc(args, other) {
		return nil, true, nil
	}
	return i.askingNoMore(called(broker), flag), false, nil
}

// askingNoMore are the steps by which virtual kubelets ask nobody for addresses whom a flag names that begins like this. They stay ours.
func (i *Installer) askingNoMore(whom, begins string) []step {
	without := func(d *appsv1.Deployment) error {
		return addFlags(d, nil, func(arg string) bool { return strings.HasPrefix(arg, begins) })
	}
	return []step{
		i.configuring(fmt.Sprintf("have Liqo ask %s for no addresses", whom), without),
		i.virtualKubelets("have its virtual kubelets ask it for none", true, without),
	}
}

// remoteIPAMOf returns the address under which the remote IPAM of a broker is reached.
func remoteIPAMOf(broker cluster.Identity) string {
	return fmt.Sprintf("%s.%s.svc.cluster.local", networkManager, v09.TwinNameOfLiqo(broker))
}
