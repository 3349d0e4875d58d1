// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package liqotest

import (
	"context"
	"fmt"

	"google.golang.org/grpc"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
	"github.com/capacitorset/liqo-broker/pkg/liqo/v09/resourcereader"
	"github.com/capacitorset/liqo-broker/pkg/liqo/v09/resourcereader/resourcereaderv1"
)

// ResourceReaderClient asks a resource plugin as Liqo does.
type ResourceReaderClient struct {
	client resourcereaderv1.ResourceReaderClient
}

// NewResourceReaderClient returns a client that uses conn.
func NewResourceReaderClient(conn grpc.ClientConnInterface) *ResourceReaderClient {
	return &ResourceReaderClient{client: resourcereaderv1.NewResourceReaderClient(conn)}
}

// Read returns what the plugin offers to a consumer.
func (c *ResourceReaderClient) Read(ctx context.Context, consumer cluster.ID) ([]resourcereader.Pool, error) {
	answer, err := c.client.ReadResources(ctx, &resourcereaderv1.ClusterIdentity{ClusterID: string(consumer)})
	if err != nil {
		return nil, err
	}
	pools := make([]resourcereader.Pool, len(answer.GetResourceLists()))
	for i, pool := range answer.GetResourceLists() {
		pools[i] = resourcereader.Pool{Name: pool.GetPoolName(), Resources: corev1.ResourceList{}}
		for name, quantity := range pool.GetResources() {
			amount, err := resource.ParseQuantity(quantity.GetString_())
			if err != nil {
				return nil, fmt.Errorf("%s of pool %q: %w", name, pool.GetPoolName(), err)
			}
			pools[i].Resources[corev1.ResourceName(name)] = amount
		}
	}
	return pools, nil
}

// Remove tells the plugin to forget a consumer.
func (c *ResourceReaderClient) Remove(ctx context.Context, consumer cluster.ID) error {
	_, err := c.client.RemoveCluster(ctx, &resourcereaderv1.ClusterIdentity{ClusterID: string(consumer)})
	return err
}

// Subscribe calls notify for each notification of the plugin until ctx is done,
// the stream ends or notify fails.
func (c *ResourceReaderClient) Subscribe(ctx context.Context, notify func(cluster.ID) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stream, err := c.client.Subscribe(ctx, &resourcereaderv1.Empty{})
	if err != nil {
		return err
	}
	for {
		id, err := stream.Recv()
		if err != nil {
			return err
		}
		if err := notify(cluster.ID(id.GetClusterID())); err != nil {
			return err
		}
	}
}
