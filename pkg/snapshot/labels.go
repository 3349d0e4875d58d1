// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package snapshot

import (
	"context"
	"fmt"
	"maps"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capacitorset/liqo-broker/pkg/api/v1alpha1"
	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
	"github.com/capacitorset/liqo-broker/pkg/liqo"
)

// ShownLabels returns the labels that Liqo shows of each cluster: those that all virtual nodes have which it has offered. They share memory
// with the cache.
func (r *Reader) ShownLabels(ctx context.Context) (map[cluster.ID]map[string]string, error) {
	var nodes corev1.NodeList
	if err := r.reader.List(ctx, &nodes, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list nodes: %w", err)
	}
	owners, err := r.Owners(ctx)
	if err != nil {
		return nil, err
	}
	of := make(map[cluster.ID][]*corev1.Node, len(nodes.Items))
	for i := range nodes.Items {
		if node := &nodes.Items[i]; owners.Offer(node) {
			of[liqo.NodeCluster(node)] = append(of[liqo.NodeCluster(node)], node)
		}
	}
	shown := make(map[cluster.ID]map[string]string, len(of))
	for id, nodes := range of {
		shown[id] = liqo.CommonLabels(nodes)
	}
	return shown, nil
}

// LabelsOf returns the labels by which policies choose a provider, given those that Liqo shows of it: those that people put on the Provider
// go before them.
func LabelsOf(p *v1alpha1.Provider, shown map[string]string) map[string]string {
	labels := make(map[string]string, len(shown)+len(p.Labels))
	for _, source := range []map[string]string{shown, p.Labels} {
		maps.Copy(labels, source)
	}
	return labels
}
