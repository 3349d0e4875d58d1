// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package liqo

import (
	"context"

	resourcemonitors "github.com/liqotech/liqo/pkg/liqo-controller-manager/resource-request-controller/resource-monitors"
	"google.golang.org/grpc"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
)

// ResourceReader answers Liqo's questions about what to offer to consumers. Its
// errors reach Liqo as they are, so they should be gRPC statuses.
type ResourceReader interface {
	// Read returns what to offer to a consumer: a virtual node for each pool. Liqo
	// never takes back a pool that it was told of, so that one that ceases to exist
	// has to be in the answers, as zero.
	Read(ctx context.Context, consumer cluster.ID) ([]PluginPool, error)
	// Remove forgets a consumer.
	Remove(ctx context.Context, consumer cluster.ID) error
	// Subscribe calls notify for each consumer whose offer may have changed, with
	// an empty ID for all, until ctx is done or notify fails.
	Subscribe(ctx context.Context, notify func(cluster.ID) error) error
}

// PluginPool is what Liqo offers to a consumer on one virtual node.
type PluginPool struct {
	// Name is what the node is called at the consumer. Without a name, it is called
	// after this cluster.
	Name      string
	Resources corev1.ResourceList
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

// ReadResources answers with a virtual node for each pool.
func (s *resourceReaderServer) ReadResources(
	ctx context.Context, id *resourcemonitors.ClusterIdentity,
) (*resourcemonitors.PoolResourceList, error) {
	pools, err := s.reader.Read(ctx, cluster.ID(id.GetClusterID()))
	if err != nil {
		return nil, err
	}
	answer := &resourcemonitors.PoolResourceList{}
	for _, pool := range pools {
		resources := make(map[string]*resource.Quantity, len(pool.Resources))
		for name, quantity := range pool.Resources {
			resources[string(name)] = &quantity
		}
		answer.ResourceLists = append(answer.ResourceLists, &resourcemonitors.ResourceList{PoolName: pool.Name, Resources: resources})
	}
	return answer, nil
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
