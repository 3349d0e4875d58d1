// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package kubelet

import (
	"context"
	"fmt"
	"maps"

	"github.com/go-logr/logr"
	nodeprovider "github.com/liqotech/liqo/pkg/virtualKubelet/liqoNodeProvider"
	"github.com/virtual-kubelet/virtual-kubelet/node"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/capacitorset/liqo-broker/pkg/liqo"
	"github.com/capacitorset/liqo-broker/pkg/version"
)

// virtualNode is the node that stands for the foreign cluster.
type virtualNode struct {
	liqo   *nodeprovider.LiqoNodeProvider
	steady *steadyNode
}

// newVirtualNode sets up the node.
func newVirtualNode(o *Options, local, remote *rest.Config, client kubernetes.Interface, pods answering) (*virtualNode, error) {
	version, err := client.Discovery().ServerVersion()
	if err != nil {
		return nil, fmt.Errorf("ask this cluster for its version: %w", err)
	}
	provider := nodeprovider.NewLiqoNodeProvider(&nodeprovider.InitConfig{
		HomeConfig:           local,
		RemoteConfig:         remote,
		HomeClusterID:        o.HomeCluster.ClusterID,
		RemoteClusterID:      o.ForeignCluster.ClusterID,
		Namespace:            o.TenantNamespace,
		NodeName:             o.NodeName,
		InternalIP:           o.NodeIP,
		DaemonPort:           o.ListenPort,
		Version:              version.GitVersion,
		ExtraLabels:          withSign(o.NodeExtraLabels.StringMap),
		ExtraAnnotations:     o.NodeExtraAnnotations.StringMap,
		InformerResyncPeriod: o.InformerResyncPeriod,
		PingDisabled:         o.NodePingInterval == 0,
		CheckNetworkStatus:   o.NodeCheckNetwork,
	})
	return &virtualNode{liqo: provider, steady: newSteadyNode(provider, pods)}, nil
}

// withSign returns the labels of a virtual node with the one by which it is known that no
// Secret leaves namespace liqo by it.
func withSign(labels map[string]string) map[string]string {
	signed := maps.Clone(labels)
	if signed == nil {
		signed = map[string]string{}
	}
	signed[liqo.LabelVirtualKubelet] = version.String()
	if len(validation.IsValidLabelValue(version.String())) > 0 {
		signed[liqo.LabelVirtualKubelet] = "unknown"
	}
	return signed
}

// run keeps the node until the context ends.
func (v *virtualNode) run(ctx context.Context, o *Options, client kubernetes.Interface, log logr.Logger) error {
	nodes := client.CoreV1().Nodes()
	restore := func(ctx context.Context, _ error) error {
		if v.liqo.IsTerminating() {
			return nil
		}
		wanted := v.liqo.GetNode().DeepCopy()
		wanted.ResourceVersion = ""
		existing, err := nodes.Get(ctx, wanted.Name, metav1.GetOptions{})
		switch {
		case apierrors.IsNotFound(err):
			log.Info("Creating the virtual node", "virtualNode", wanted.Name)
			_, err = nodes.Create(ctx, wanted, metav1.CreateOptions{})
		case err == nil:
			existing.Status = wanted.Status
			_, err = nodes.UpdateStatus(ctx, existing, metav1.UpdateOptions{})
		}
		if err != nil {
			return fmt.Errorf("restore virtual node %s: %w", wanted.Name, err)
		}
		return nil
	}
	// Before the provider's informers run, nobody else holds its node.
	ready := v.liqo.StartProvider(ctx)
	controller, err := node.NewNodeController(v.steady, v.liqo.GetNode(), nodes,
		node.WithNodeEnableLeaseV1(client.CoordinationV1().Leases(corev1.NamespaceNodeLease), int32(o.NodeLeaseDuration.Seconds())),
		node.WithNodePingInterval(o.NodePingInterval),
		node.WithNodePingTimeout(o.NodePingTimeout),
		node.WithNodeStatusUpdateErrorHandler(restore))
	if err != nil {
		return fmt.Errorf("set up virtual node %s: %w", o.NodeName, err)
	}
	go func() {
		select {
		case <-controller.Ready():
			close(ready)
		case <-ctx.Done():
		}
	}()
	// It may wait for a controller that has ended with the context, and then ends with
	// the process.
	go v.steady.run(ctx)
	if err := controller.Run(ctx); err != nil {
		return fmt.Errorf("run virtual node %s: %w", o.NodeName, err)
	}
	return nil
}
