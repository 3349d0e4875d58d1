// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

// Package resourcereader serves Liqo's resource plugin, in the wire format of Liqo v0.9.4, to whoever knows what to offer. It is apart from
// package liqo because only the daemon needs Liqo's own code for it, and all that this depends on.
//
// It does not know what is offered.
package resourcereader

import (
	"context"

	resourcemonitors "github.com/liqotech/liqo/pkg/liqo-controller-manager/resource-request-controller/resource-monitors"
	"google.golang.org/grpc"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
)

// Reader answers Liqo's questions about what to offer to consumers. Its
// errors reach Liqo as they are, so they should be gRPC statuses.
type Reader interface {
	// Read returns what to offer to a consumer: a virtual node for each pool. Liqo
	// never takes back a pool that it was told of, so that one that ceases to exist
	// has to be in the answers, as zero.
	Read(ctx context.Context, consumer cluster.ID) ([]Pool, error)
	// Remove forgets a consumer.
	Remove(ctx context.Context, consumer cluster.ID) error
	// Subscribe calls notify for each consumer whose offer may have changed, with
	// an empty ID for all, until ctx is done or notify fails.
	Subscribe(ctx context.Context, notify func(cluster.ID) error) error
}

// Pool is what Liqo offers to a consumer on one virtual node.
type Pool struct {
	// Name is what the node is called at the consumer. Without a name, it is called
	// after this cluster.
	Name      string
	Resources corev1.ResourceList
}

// Register serves r as Liqo's resource plugin, in the wire format
// of Liqo v0.9.4 (service resource_reader).
func Register(s grpc.ServiceRegistrar, r Reader) {
	resourcemonitors.RegisterResourceReaderServer(s, &server{reader: r})
}

type server struct {
	resourcemonitors.UnimplementedResourceReaderServer
	reader Reader
}

// ReadResources answers with a virtual node for each pool.
func (s *server) ReadResources(
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

func (s *server) RemoveCluster(
	ctx context.Context, id *resourcemonitors.ClusterIdentity,
) (*resourcemonitors.Empty, error) {
	if err := s.reader.Remove(ctx, cluster.ID(id.GetClusterID())); err != nil {
		return nil, err
	}
	return &resourcemonitors.Empty{}, nil
}

func (s *server) Subscribe(
	_ *resourcemonitors.Empty, stream resourcemonitors.ResourceReader_SubscribeServer,
) error {
	return s.reader.Subscribe(stream.Context(), func(id cluster.ID) error {
		return stream.Send(&resourcemonitors.ClusterIdentity{ClusterID: string(id)})
	})
}
