// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package transit

import (
	"net/netip"
	"slices"
	"time"

	"github.com/liqotech/liqo/pkg/virtualKubelet/forge"
	"github.com/liqotech/liqo/pkg/virtualKubelet/reflection/generic"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/informers/core"
	corev1informers "k8s.io/client-go/informers/core/v1"
	corev1listers "k8s.io/client-go/listers/core/v1"

	"github.com/capacitorset/liqo-broker/cmd/virtual-kubelet/internal/address"
	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
	"github.com/capacitorset/liqo-broker/pkg/core/podstate"
)

// Kubernetes makes the slices of Services that select pods, and the foreign cluster makes
// its own for the pods that it runs: those are as in stock Liqo. Slices that somebody else
// makes, for a Service without a selector, name pods by their addresses and mostly without
// their nodes. Nobody makes them in the foreign cluster, so that all of their endpoints are
// reflected, also the pods that run there. Endpoints that are no pods are reflected as by stock
// Liqo, if they name a node of this cluster.
//
// Stock Liqo leaves out endpoints without a node, and those on the virtual node
// (EndpointToBeReflected in liqo/pkg/virtualKubelet/forge/endpointslices.go@v0.9.4).

const (
	// kubernetesSlices is the manager of the slices that Kubernetes makes
	// (controllerName in k8s.io/kubernetes/pkg/controller/endpointslice@v1.34.4).
	kubernetesSlices = "endpointslice-controller.k8s.io"

	// reasonNotReflected is the reason of the event on a slice with endpoints that are
	// not reflected.
	reasonNotReflected = "EndpointsNotReflected"

	// manualRetry is after what time a slice is looked at again that names pods of the
	// foreign cluster, which come and go without a change of the slice.
	manualRetry = time.Minute
	// manualWait is how long nothing of a slice is reflected that names a pod which is not
	// known, for once: after a start of the virtual kubelet it may be soon. After that time
	// it is also looked at again.
	manualWait = 10 * time.Second
)

// manual reports whether neither Kubernetes nor a peer has made a slice.
func manual(slice *discoveryv1.EndpointSlice) bool {
	return !fromPeer(slice) && slice.Labels[discoveryv1.LabelManagedBy] != kubernetesSlices
}

// reflectedByHand reports whether a slice is one that somebody has made here, and to be reflected.
func (s *transitSlices) reflectedByHand(slice *discoveryv1.EndpointSlice) bool {
	if !manual(slice) || slice.Namespace == corev1.NamespaceDefault && slice.Name == "kubernetes" {
		return false // Liqo leaves out that of the API server.
	}
	skips, ok := s.NamespacedReflector.(interface {
		ShouldSkipReflection(object metav1.Object) (bool, error)
	})
	if !ok {
		return true
	}
	skip, err := skips.ShouldSkipReflection(slice)
	return err == nil && !skip // Liqo itself finds the same.
}

// await returns an error, once, if a slice names a pod that is not known.
func (s *transitSlices) await(slice *discoveryv1.EndpointSlice) error {
	if !slices.ContainsFunc(slice.Endpoints, s.strange) {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, seen := s.leftOut[slice.Name]; seen {
		return nil
	}
	s.leftOut[slice.Name] = leftOut{again: manualWait}
	return generic.EnqueueAfter(manualWait)
}

// strange reports whether an endpoint is not reflected: nobody knows a pod with its address, and
// it names no node for which stock Liqo would reflect it.
func (s *transitSlices) strange(endpoint discoveryv1.Endpoint) bool {
	if s.isPod(endpoint) {
		return false
	}
	for _, text := range endpoint.Addresses {
		if _, err := netip.ParseAddr(text); err != nil {
			return true // The IPAM would refuse it, and Liqo with it the whole slice.
		}
	}
	return endpoint.NodeName == nil || !forge.EndpointToBeReflected(&endpoint, s.nodes)
}

// isPod reports whether somebody knows pods with all addresses of an endpoint.
func (s *transitSlices) isPod(endpoint discoveryv1.Endpoint) bool {
	return !slices.ContainsFunc(endpoint.Addresses, func(text string) bool {
		at, err := netip.ParseAddr(text)
		return err != nil || s.transit.known.Place(at) == address.PlaceUnknown
	})
}

// podsOnly returns a slice that somebody has made here, with the endpoints that are known to
// be pods, whatever their nodes are, and those that stock Liqo reflects.
func (s *transitSlices) podsOnly(slice *discoveryv1.EndpointSlice) *discoveryv1.EndpointSlice {
	s.transit.budget.forgetSlice(s.key(slice.Name), time.Now())
	known := slice.DeepCopy()
	known.Endpoints = slices.DeleteFunc(known.Endpoints, s.strange)
	left := leftOut{strange: len(slice.Endpoints) - len(known.Endpoints)}
	if slices.ContainsFunc(addressesOf(known), func(at netip.Addr) bool { return s.transit.known.Place(at) == address.PlacePassing }) {
		left.again = manualRetry
	}
	if left.strange > 0 {
		left.again = manualWait
	}
	s.tellManual(slice, left)
	for i := range known.Endpoints {
		if s.isPod(known.Endpoints[i]) {
			known.Endpoints[i].NodeName = new(nodeOfAny)
		}
	}
	return known
}

// tellManual says what is left out of a slice, once.
func (s *transitSlices) tellManual(slice *discoveryv1.EndpointSlice, now leftOut) {
	was := s.noteLeftOut(slice.Name, now)
	if now.strange > 0 && now.strange != was.strange {
		s.events.Eventf(slice, corev1.EventTypeWarning, reasonNotReflected,
			"%d endpoints are not reflected: this cluster knows no pods with their addresses", now.strange)
	}
}

// findBeside notes which pods of the namespace a slice of another cluster names, if it names pods
// that this one runs for it; such a slice may name no others. It asks nobody, however often the
// other cluster writes the slice.
func (s *transitSlices) findBeside(owner cluster.ID, slice *discoveryv1.EndpointSlice) {
	needed := map[netip.Addr]struct{}{}
	for _, at := range addressesOf(slice) {
		if !s.transit.known.Owns(owner, at) && s.transit.known.Place(at) != address.PlaceUnknown {
			needed[at] = struct{}{}
		}
	}
	var beside map[netip.Addr]struct{}
	if len(needed) > 0 {
		beside = s.podsAt(needed)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(needed) > 0 {
		s.beside[slice.Name] = beside
	} else {
		delete(s.beside, slice.Name)
	}
}

// isBeside reports whether an address in a slice is that of a pod of the same namespace.
func (s *transitSlices) isBeside(slice string, at netip.Addr) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, ok := s.beside[slice][at]
	return ok && s.transit.known.Place(at) != address.PlaceUnknown
}

// siblingsRetry is after what time a slice is looked at again that names pods of its own
// namespace; zero if it names none.
func (s *transitSlices) siblingsRetry(slice string) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, asked := s.beside[slice]; asked {
		return manualRetry
	}
	return 0
}

// podsAt returns those of some addresses that pods of the namespace have that have not ended.
func (s *transitSlices) podsAt(those map[netip.Addr]struct{}) map[netip.Addr]struct{} {
	pods, err := s.pods.List(labels.Everything())
	utilruntime.Must(err) // It reads a cache.
	found := map[netip.Addr]struct{}{}
	for _, pod := range pods {
		if podstate.Ended(pod) || pod.Spec.HostNetwork {
			continue
		}
		if address, err := netip.ParseAddr(pod.Status.PodIP); err == nil {
			if _, is := those[address]; is {
				found[address] = struct{}{}
			}
		}
	}
	return found
}

// nodeOfAny names a node that no cluster can have, and Liqo takes for one of this cluster:
// what is on it is reflected everywhere.
const nodeOfAny = ""

type manualCore struct{ core.Interface }

func (c manualCore) V1() corev1informers.Interface { return manualCoreV1{c.Interface.V1()} }

type manualCoreV1 struct{ corev1informers.Interface }

func (v manualCoreV1) Nodes() corev1informers.NodeInformer {
	return manualNodeInformer{v.Interface.Nodes()}
}

type manualNodeInformer struct{ corev1informers.NodeInformer }

func (i manualNodeInformer) Lister() corev1listers.NodeLister {
	return manualNodes{i.NodeInformer.Lister()}
}

type manualNodes struct{ corev1listers.NodeLister }

// Get returns a node.
func (n manualNodes) Get(name string) (*corev1.Node, error) {
	if name == nodeOfAny {
		// Liqo wants any labels.
		return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{}}}, nil
	}
	return n.NodeLister.Get(name)
}
