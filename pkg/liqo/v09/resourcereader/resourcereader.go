// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

// Package resourcereader serves Liqo's resource plugin, in the wire format of Liqo v0.9.4, to whoever knows what to offer. It is apart from
// package v09 because only the daemon serves anything to Liqo.
//
// It does not know what is offered.
package resourcereader

import (
	"context"

	"google.golang.org/grpc"
	corev1 "k8s.io/api/core/v1"

	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
	"github.com/capacitorset/liqo-broker/pkg/liqo/v09/resourcereader/resourcereaderv1"
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
	resourcereaderv1.RegisterResourceReaderServer(s, &server{reader: r})
}

type server struct {
	resourcereaderv1.UnimplementedResourceReaderServer
	reader Reader
}

// ReadResources answers with a virtual node for each pool.
func (s *server) ReadResources(
	ctx context.Context, id *resourcereaderv1.ClusterIdentity,
) (*resourcereaderv1.PoolResourceList, error) {
	pools, err := s.reader.Read(ctx, cluster.ID(id.GetClusterID()))
	if err != nil {
		return nil, err
	}
	answer := &resourcereaderv1.PoolResourceList{}
	for _, pool := range pools {
		resources := make(map[string]*resourcereaderv1.Quantity, len(pool.Resources))
		for name, quantity := range pool.Resources {
			resources[string(name)] = &resourcereaderv1.Quantity{String_: quantity.String()}
		}
		answer.ResourceLists = append(answer.ResourceLists, &resourcereaderv1.ResourceList{PoolName: pool.Name, Resources: resources})
	}
	return answer, nil
}

func (s *server) RemoveCluster(
	ctx context.Context, id *resourcereaderv1.ClusterIdentity,
) (*resourcereaderv1.Empty, error) {
	if err := s.reader.Remove(ctx, cluster.ID(id.GetClusterID())); err != nil {
		return nil, err
	}
	return &resourcereaderv1.Empty{}, nil
}

func (s *server) Subscribe(
	_ *resourcereaderv1.Empty, stream resourcereaderv1.ResourceReader_SubscribeServer,
) error {
	return s.reader.Subscribe(stream.Context(), func(id cluster.ID) error {
		return stream.Send(&resourcereaderv1.ClusterIdentity{ClusterID: string(id)})
	})
}
