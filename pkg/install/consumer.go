// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package install

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
	"github.com/capacitorset/liqo-broker/pkg/liqo"
)

// consumerSteps are those of a consumer.
func (i *Installer) consumerSteps(broker cluster.Identity) []step {
	withFlags := func(ctx context.Context, d *appsv1.Deployment) error {
		address, err := i.remoteIPAM(ctx, broker)
		if err != nil {
			return err
		}
		flags, err := managerFlags("controller-manager-consumer.json", i.options.image("liqo-broker-vk"), address)
		if err != nil {
			return err
		}
		return addFlags(d, flags, i.outdated)
	}
	return []step{
		{"wait for the remote IPAM of " + broker.Name + " to arrive", nothing, func(ctx context.Context) error {
			_, err := i.remoteIPAM(ctx, broker)
			return err
		}},
		i.rightsOfVirtualKubelets(),
		i.configuring("have Liqo use the broker's virtual kubelet", withFlags),
		i.virtualKubelets("give the peerings that exist the broker's virtual kubelet", true, withFlags),
	}
}

// consumerUndo are the steps back.
func (i *Installer) consumerUndo() []step {
	return []step{
		i.configuring("have Liqo use its own virtual kubelet", i.withoutFlags),
		i.virtualKubelets("give the peerings Liqo's virtual kubelet", false, i.withoutFlags),
		i.noRightsOfVirtualKubelets(),
		{"remove what the broker's virtual kubelets have written", i.traces, nil},
	}
}

func nothing(context.Context) ([]change, error) { return nil, nil }

// remoteIPAM returns the name under which virtual kubelets reach the remote IPAM of a broker; an error that says what is missing while
// it has not arrived.
func (i *Installer) remoteIPAM(ctx context.Context, broker cluster.Identity) (string, error) {
	var namespaces corev1.NamespaceList
	if err := i.List(ctx, &namespaces, client.MatchingLabels{liqo.LabelRemoteClusterID: string(broker.ID)}); err != nil {
		return "", fmt.Errorf("list the namespaces of %s: %w", broker.Name, err)
	}
	for n := range namespaces.Items {
		twin := namespaces.Items[n].Name
		if !liqo.TwinOfLiqo(twin, broker) {
			continue
		}
		var service corev1.Service
		err := i.Get(ctx, client.ObjectKey{Namespace: twin, Name: networkManager}, &service)
		switch {
		case apierrors.IsNotFound(err):
			return "", fmt.Errorf("namespace %s has no Service %s yet", twin, networkManager)
		case err != nil:
			return "", fmt.Errorf("read Service %s/%s: %w", twin, networkManager, err)
		}
		return fmt.Sprintf("%s.%s.svc.cluster.local", networkManager, twin), nil
	}
	return "", fmt.Errorf("%s has not offered its remote IPAM: the broker must be installed there, and peer with this cluster", broker.Name)
}
