// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package resourcereader_test

import (
	"context"
	"net"
	"testing"

	"github.com/google/go-cmp/cmp"
	discoveryv1alpha1 "github.com/liqotech/liqo/apis/discovery/v1alpha1"
	"github.com/liqotech/liqo/pkg/consts"
	resourcerequests "github.com/liqotech/liqo/pkg/liqo-controller-manager/resource-request-controller"
	resourcemonitors "github.com/liqotech/liqo/pkg/liqo-controller-manager/resource-request-controller/resource-monitors"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/test/bufconn"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
	"github.com/capacitorset/liqo-broker/pkg/liqo"
	"github.com/capacitorset/liqo-broker/pkg/liqo/liqotest"
	"github.com/capacitorset/liqo-broker/pkg/liqo/resourcereader"
)

// answers is a resource plugin that answers with what a test wants.
type answers []resourcereader.Pool

func (a *answers) Read(context.Context, cluster.ID) ([]resourcereader.Pool, error) { return *a, nil }

func (a *answers) Remove(context.Context, cluster.ID) error { return nil }

func (a *answers) Subscribe(ctx context.Context, _ func(cluster.ID) error) error {
	<-ctx.Done()
	return ctx.Err()
}

// TestPoolsBecomeOffers lets Liqo's own offer updater ask a resource plugin: each pool
// is an offer that names its node, and none is ever taken back.
func TestPoolsBecomeOffers(t *testing.T) {
	consumer := discoveryv1alpha1.ClusterIdentity{ClusterID: "id-c", ClusterName: "consumer"}
	request := &discoveryv1alpha1.ResourceRequest{
		ObjectMeta: metav1.ObjectMeta{Namespace: "liqo-tenant-consumer", Name: "consumer", Labels: map[string]string{
			consts.ReplicationStatusLabel: "true", consts.ReplicationOriginLabel: consumer.ClusterID,
		}},
		Spec: discoveryv1alpha1.ResourceRequestSpec{ClusterIdentity: consumer},
	}
	c := fake.NewClientBuilder().WithScheme(liqotest.Scheme(t)).WithObjects(request).Build()
	plugin := &answers{}
	listener := bufconn.Listen(1 << 16)
	server := grpc.NewServer()
	resourcereader.Register(server, plugin)
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	t.Cleanup(func() {
		server.Stop()
		<-served
	})
	conn, err := grpc.NewClient("passthrough:broker", grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return listener.DialContext(ctx) }))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	monitor := &resourcemonitors.ExternalResourceMonitor{ResourceReaderClient: resourcemonitors.NewResourceReaderClient(conn)}
	home := discoveryv1alpha1.ClusterIdentity{ClusterID: "id-broker", ClusterName: "broker"}
	updater := resourcerequests.NewOfferUpdater(t.Context(), c, home, nil, monitor, 5, "", false)

	pool := func(name, cpu string) resourcereader.Pool {
		return resourcereader.Pool{Name: name, Resources: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu)}}
	}
	for _, step := range []struct {
		reason string
		pools  answers
		want   map[string]string // CPU by the name of the offer and of its node.
	}{
		{"One node is called after the broker.", answers{pool("", "6")}, map[string]string{"broker/": "6"}},
		{"Each pool has an offer.", answers{pool("", "500m"), pool("node-a", "3500m")}, map[string]string{"broker/": "500m", "node-a/node-a": "3500m"}},
		{"A pool that is not in the answer keeps its offer.", answers{pool("", "500m")}, map[string]string{"broker/": "500m", "node-a/node-a": "3500m"}},
		{"So it has to be there, as zero.", answers{pool("", "6"), pool("node-a", "0")}, map[string]string{"broker/": "6", "node-a/node-a": "0"}},
	} {
		*plugin = step.pools
		if _, err := updater.CreateOrUpdateOffer(consumer); err != nil {
			t.Fatalf("%s\n%v", step.reason, err)
		}
		var offers liqo.ResourceOfferList
		if err := c.List(t.Context(), &offers); err != nil {
			t.Fatal(err)
		}
		got := map[string]string{}
		for i := range offers.Items {
			o := &offers.Items[i]
			if liqo.OfferedTo(o) != "id-c" {
				t.Errorf("offer %s is to %q", o.Name, liqo.OfferedTo(o))
			}
			got[o.Name+"/"+o.Spec.NodeName] = o.Spec.ResourceQuota.Hard.Cpu().String()
		}
		if diff := cmp.Diff(step.want, got); diff != "" {
			t.Errorf("%s\n-want +got\n%s", step.reason, diff)
		}
	}
}
