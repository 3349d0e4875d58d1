// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build patched

package patched

import (
	"context"
	"testing"

	liqofake "github.com/liqotech/liqo/pkg/client/clientset/versioned/fake"
	liqoinformers "github.com/liqotech/liqo/pkg/client/informers/externalversions"
	"github.com/liqotech/liqo/pkg/liqonet/ipam"
	"github.com/liqotech/liqo/pkg/virtualKubelet/forge"
	"github.com/liqotech/liqo/pkg/virtualKubelet/reflection/exposition"
	"github.com/liqotech/liqo/pkg/virtualKubelet/reflection/options"
	"google.golang.org/grpc"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"
)

func (c *changingIPAM) MapEndpointIP(context.Context, *ipam.MapRequest, ...grpc.CallOption) (*ipam.MapResponse, error) {
	answer := c.answers[0]
	c.answers = c.answers[1:]
	return &ipam.MapResponse{Ip: answer}, nil
}

func TestEndpointsAreTranslatedEachTime(t *testing.T) {
	relay, direct := "10.202.0.77", "10.201.0.13"
	client, liqoClient := fake.NewSimpleClientset(), liqofake.NewSimpleClientset()
	broadcaster := record.NewBroadcaster()
	t.Cleanup(broadcaster.Shutdown)
	factory, liqoFactory := informers.NewSharedInformerFactory(client, 0), liqoinformers.NewSharedInformerFactory(liqoClient, 0)
	namespaced := exposition.NewNamespacedEndpointSliceReflector(&changingIPAM{answers: []string{relay, direct}})(options.NewNamespaced().
		WithLocal("home", client, factory).WithLiqoLocal(liqoClient, liqoFactory).
		WithRemote("twin", client, factory).WithLiqoRemote(liqoClient, liqoFactory).
		WithHandlerFactory(func(options.Keyer, ...options.EventFilter) cache.ResourceEventHandler {
			return cache.ResourceEventHandlerFuncs{}
		}).
		WithEventBroadcaster(broadcaster).WithForgingOpts(&forge.ForgingOpts{}))
	reflector, ok := namespaced.(*exposition.NamespacedEndpointSliceReflector)
	if !ok {
		t.Fatalf("got a reflector of type %T", namespaced)
	}

	for _, want := range []string{relay, direct} {
		got, err := reflector.MapEndpointIPs(t.Context(), "web-abcde", []string{"10.200.0.13"})
		if err != nil {
			t.Fatal(err)
		}
		if len(got) != 1 || got[0] != want {
			t.Errorf("MapEndpointIPs(...): got %v, want %s", got, want)
		}
	}
}
