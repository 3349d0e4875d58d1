// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package liqotest

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"strconv"
	"testing"

	netv1alpha1 "github.com/liqotech/liqo/apis/net/v1alpha1"
	"github.com/liqotech/liqo/pkg/liqonet/ipam"
	"github.com/liqotech/liqo/pkg/liqonet/natmappinginflater"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/fake"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
	"github.com/capacitorset/liqo-broker/pkg/liqo/v09/ipamclient"
)

// IPAMState is what Liqo's IPAM keeps in the API, and outlives it.
type IPAMState struct {
	dynamic.Interface

	// BeforeRecord is called before the IPAM writes down which addresses it has mapped;
	// nil is nothing. Another call of the IPAM may come in between like this.
	BeforeRecord func()
}

// NewIPAMState returns the state of an IPAM with some peers and no addresses.
func NewIPAMState(tb testing.TB, peers ...cluster.ID) *IPAMState {
	tb.Helper()
	scheme := runtime.NewScheme()
	scheme.AddKnownTypeWithName(netv1alpha1.GroupVersion.WithKind("ipamstorages"), &netv1alpha1.IpamStorage{})
	scheme.AddKnownTypeWithName(netv1alpha1.GroupVersion.WithKind("natmappings"), &netv1alpha1.NatMapping{})
	kinds := map[schema.GroupVersionResource]string{
		netv1alpha1.IpamGroupVersionResource: "ipamstoragesList",
		netv1alpha1.NatMappingGroupResource:  "natmappingsList",
	}
	var mappings []runtime.Object
	for i, peer := range peers {
		mapping, err := natmappinginflater.ForgeNatMapping(string(peer), fmt.Sprintf("10.%d.0.0/16", 100+i), "10.202.0.0/24", map[string]string{})
		if err != nil {
			tb.Fatal(err)
		}
		mapping.SetName(NatMappingOf(peer))
		mappings = append(mappings, mapping)
	}
	return &IPAMState{Interface: fake.NewSimpleDynamicClientWithCustomListKinds(scheme, kinds, mappings...)}
}

// NatMappingOf returns the name of a peer's NatMapping.
func NatMappingOf(peer cluster.ID) string { return "of-" + string(peer) }

// IPAM is Liqo's own IPAM, as the network manager of Liqo runs it.
type IPAM struct {
	*ipamclient.Client

	server *ipam.IPAM
}

// StartIPAM runs an IPAM for some peers until the test ends. Its external CIDR is of the
// given length.
func StartIPAM(tb testing.TB, state *IPAMState, bits uint8, peers ...cluster.ID) *IPAM {
	tb.Helper()
	listener, err := (&net.ListenConfig{}).Listen(tb.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		tb.Fatal(err)
	}
	port := listener.Addr().(*net.TCPAddr).Port
	if err := listener.Close(); err != nil {
		tb.Fatal(err)
	}
	server := ipam.NewIPAM()
	if err := server.Init(ipam.Pools, state, port); err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(server.Terminate)
	if err := server.SetPodCIDR("10.201.0.0/16"); err != nil {
		tb.Fatal(err)
	}
	if _, err := server.GetExternalCIDR(bits); err != nil {
		tb.Fatal(err)
	}
	for i, peer := range peers {
		if _, _, err := server.GetSubnetsPerCluster(fmt.Sprintf("10.%d.0.0/16", 100+i), fmt.Sprintf("10.81.%d.0/24", i),
			string(peer)); err != nil {
			tb.Fatal(err)
		}
		if err := server.AddLocalSubnetsPerCluster("None", "None", string(peer)); err != nil {
			tb.Fatal(err)
		}
	}
	client, err := ipamclient.New(net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := client.Close(); err != nil {
			tb.Error(err)
		}
	})
	return &IPAM{Client: client, server: server}
}

// EndPeering does what Liqo's network manager does when a peering has ended.
func (i *IPAM) EndPeering(peer cluster.ID) error { return i.server.RemoveClusterConfig(string(peer)) }

// Resource implements dynamic.Interface.
func (s *IPAMState) Resource(resource schema.GroupVersionResource) dynamic.NamespaceableResourceInterface {
	return observedResource{s.Interface.Resource(resource), s}
}

// observedResource are the objects of one kind.
type observedResource struct {
	dynamic.NamespaceableResourceInterface

	state *IPAMState
}

// Patch implements dynamic.ResourceInterface.
func (r observedResource) Patch(
	ctx context.Context, name string, kind types.PatchType, patch []byte, options metav1.PatchOptions, subresources ...string,
) (*unstructured.Unstructured, error) {
	if r.state.BeforeRecord != nil && bytes.Contains(patch, []byte(`"/spec/endpointMappings"`)) {
		r.state.BeforeRecord()
	}
	return r.NamespaceableResourceInterface.Patch(ctx, name, kind, patch, options, subresources...)
}

// NatMappings reads the NatMappings of the state, and nothing else.
func (s *IPAMState) NatMappings() client.Reader { return natMappings{state: s} }

type natMappings struct {
	client.Reader

	state *IPAMState
}

// List implements client.Reader.
func (n natMappings) List(ctx context.Context, list client.ObjectList, _ ...client.ListOption) error {
	found, err := n.state.Resource(netv1alpha1.NatMappingGroupResource).List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	return runtime.DefaultUnstructuredConverter.FromUnstructured(found.UnstructuredContent(), list)
}

// Get implements client.Reader.
func (n natMappings) Get(ctx context.Context, key client.ObjectKey, object client.Object, _ ...client.GetOption) error {
	found, err := n.state.Resource(netv1alpha1.NatMappingGroupResource).Get(ctx, key.Name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	return runtime.DefaultUnstructuredConverter.FromUnstructured(found.UnstructuredContent(), object)
}
