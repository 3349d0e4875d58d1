// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package patched

import (
	"context"
	"testing"

	"github.com/liqotech/liqo/pkg/liqonet/ipam"
	"github.com/liqotech/liqo/pkg/virtualKubelet/reflection/exposition"
	"google.golang.org/grpc"
)

func (c *changingIPAM) MapEndpointIP(context.Context, *ipam.MapRequest, ...grpc.CallOption) (*ipam.MapResponse, error) {
	answer := c.answers[0]
	c.answers = c.answers[1:]
	return &ipam.MapResponse{Ip: answer}, nil
}

func TestEndpointsAreTranslatedEachTime(t *testing.T) {
	relay, direct := "10.202.0.77", "10.201.0.13"
	namespaced := exposition.NewNamespacedEndpointSliceReflector(&changingIPAM{answers: []string{relay, direct}})(namespacedOptions(t))
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
