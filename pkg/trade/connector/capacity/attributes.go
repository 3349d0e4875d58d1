// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package capacity

import (
	"context"
	"fmt"
	"maps"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capacitorset/liqo-broker/pkg/core/resources"
	"github.com/capacitorset/liqo-broker/pkg/liqo"
)

// Attributes are what is to be known of the devices of a cluster: by device, the labels that all nodes with it have with one and the same
// value.
type Attributes map[corev1.ResourceName]map[string]string

// AttributesOfCluster returns what reads the attributes of a cluster from those labels of its own nodes that have some keys, and from no
// others. The reader may be a cache; nobody changes what it returns.
func AttributesOfCluster(reader client.Reader, keys []string) func(context.Context) (Attributes, error) {
	return func(ctx context.Context) (Attributes, error) {
		var nodes corev1.NodeList
		if err := reader.List(ctx, &nodes, client.UnsafeDisableDeepCopy); err != nil {
			return nil, fmt.Errorf("list %T: %w", &nodes, err)
		}
		return Shared(nodes.Items, keys), nil
	}
}

// Shared returns the attributes of some nodes. Those count too that are not ready or take no pods: an offer is not another one because a
// node is away for a moment. Nodes that stand for other clusters do not.
func Shared(nodes []corev1.Node, keys []string) Attributes {
	found := Attributes{}
	for i := range nodes {
		node := &nodes[i]
		if node.Labels[liqo.LabelNodeType] == liqo.NodeTypeVirtual {
			continue
		}
		for device, amount := range node.Status.Allocatable {
			if !resources.IsDevice(device) || amount.Sign() <= 0 {
				continue
			}
			if labels, seen := found[device]; seen {
				keepEqual(labels, node.Labels)
			} else {
				found[device] = named(node.Labels, keys)
			}
		}
	}
	return found
}

// Of returns the attributes that some devices share, of those that the cluster has. The caller may change them.
func (a Attributes) Of(devices ...corev1.ResourceName) map[string]string {
	var shared map[string]string
	for _, device := range devices {
		labels, has := a[device]
		switch {
		case !has:
		case shared == nil:
			shared = maps.Clone(labels)
		default:
			keepEqual(shared, labels)
		}
	}
	return shared
}

// named returns those labels that have one of some keys.
func named(labels map[string]string, keys []string) map[string]string {
	found := map[string]string{}
	for _, key := range keys {
		if value, has := labels[key]; has {
			found[key] = value
		}
	}
	return found
}

// keepEqual removes the labels that others do not have with the same value.
func keepEqual(labels, others map[string]string) {
	maps.DeleteFunc(labels, func(key, value string) bool {
		other, has := others[key]
		return !has || other != value
	})
}
