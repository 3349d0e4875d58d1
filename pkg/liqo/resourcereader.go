// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package liqo

import (
	"context"

	resourcemonitors "github.com/liqotech/liqo/pkg/liqo-controller-manager/resource-request-controller/resource-monitors"
	"google.golang.org/grpc"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/capacitorset/liqo-broker/pkg/cluster"
)

// ResourceReader answers Liqo's questions about what to offer to consumers. Its
// errors reach Liqo as they are, so they should be gRPC statuses.
type ResourceReader interface {
	// Read returns what to offer to a consumer.
	Read(ctx context.Context, consumer cluster.ID) (corev1.ResourceList, error)
	// Remove forgets a consumer.
	Remove(ctx context.Context, consumer cluster.ID) error
	// Subscribe calls notify for each consumer whose offer may have changed, with
	// an empty ID for all, until ctx is done or notify fails.
	Subscribe(ctx context.Context, notify func(cluster.ID) error) error
}

// RegisterResourceReader serves r as Liqo's resource plugin, in the wire format
// of Liqo v0.9.4 (service resource_reader).
func RegisterResourceReader(s grpc.ServiceRegistrar, r ResourceReader) {
	resourcemonitors.RegisterResourceReaderServer(s, &resourceReaderServer{reader: r})
}

type resourceReaderServer struct {
	resourcemonitors.UnimplementedResourceReaderServer
	reader ResourceReader
}

// ReadResources answers with one unnamed pool: one virtual node at the consumer.
func (s *resourceReaderServer) ReadResources(
	ctx context.Context, id *resourcemonitors.ClusterIdentity,
) (*resourcemonitors.PoolResourceList, error) {
	list, err := s.reader.Read(ctx, cluster.ID(id.GetClusterID()))
	if err != nil {
		return nil, err
	}
	resources := make(map[string]*resource.Quantity, len(list))
	for name, quantity := range list {
		resources[string(name)] = &quantity
	}
	return &resourcemonitors.PoolResourceList{
		ResourceLists: []*resourcemonitors.ResourceList{{Resources: resources}},
	}, nil
}

func (s *resourceReaderServer) RemoveCluster(
	ctx context.Context, id *resourcemonitors.ClusterIdentity,
) (*resourcemonitors.Empty, error) {
	if err := s.reader.Remove(ctx, cluster.ID(id.GetClusterID())); err != nil {
		return nil, err
	}
	return &resourcemonitors.Empty{}, nil
}

func (s *resourceReaderServer) Subscribe(
	_ *resourcemonitors.Empty, stream resourcemonitors.ResourceReader_SubscribeServer,
) error {
	return s.reader.Subscribe(stream.Context(), func(id cluster.ID) error {
		return stream.Send(&resourcemonitors.ClusterIdentity{ClusterID: string(id)})
	})
}

// ResourceReaderClient asks a resource plugin as Liqo does.
type ResourceReaderClient struct {
	client resourcemonitors.ResourceReaderClient
}

// NewResourceReaderClient returns a client that uses conn.
func NewResourceReaderClient(conn grpc.ClientConnInterface) *ResourceReaderClient {
	return &ResourceReaderClient{client: resourcemonitors.NewResourceReaderClient(conn)}
}

// Read returns what the plugin offers to a consumer, over all pools.
func (c *ResourceReaderClient) Read(ctx context.Context, consumer cluster.ID) ([]corev1.ResourceList, error) {
	answer, err := c.client.ReadResources(ctx, &resourcemonitors.ClusterIdentity{ClusterID: string(consumer)})
	if err != nil {
		return nil, err
	}
	pools := make([]corev1.ResourceList, len(answer.GetResourceLists()))
	for i, pool := range answer.GetResourceLists() {
		pools[i] = corev1.ResourceList{}
		for name, quantity := range pool.GetResources() {
			pools[i][corev1.ResourceName(name)] = *quantity
		}
	}
	return pools, nil
}

// Remove tells the plugin to forget a consumer.
func (c *ResourceReaderClient) Remove(ctx context.Context, consumer cluster.ID) error {
	_, err := c.client.RemoveCluster(ctx, &resourcemonitors.ClusterIdentity{ClusterID: string(consumer)})
	return err
}

// Subscribe calls notify for each notification of the plugin until ctx is done,
// the stream ends or notify fails.
func (c *ResourceReaderClient) Subscribe(ctx context.Context, notify func(cluster.ID) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stream, err := c.client.Subscribe(ctx, &resourcemonitors.Empty{})
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
