// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package kubelet

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	vkv1alpha1 "github.com/liqotech/liqo/apis/virtualkubelet/v1alpha1"
	"github.com/liqotech/liqo/pkg/liqonet/ipam"
	"github.com/liqotech/liqo/pkg/virtualKubelet/forge"
	"github.com/liqotech/liqo/pkg/virtualKubelet/reflection/manager"
	"github.com/liqotech/liqo/pkg/virtualKubelet/reflection/options"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes/scheme"
	corev1listers "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/record"

	"github.com/capacitorset/liqo-broker/pkg/cluster"
	"github.com/capacitorset/liqo-broker/pkg/liqo"
)

const (
	// apiServerName is the name that Liqo makes lead, by a host alias and the
	// environment, to the API server of the cluster that a pod belongs to
	// (liqo/pkg/virtualKubelet/forge/pods.go@v0.9.4).
	apiServerName = "kubernetes.default"

	// reasonNoAPIServer is the reason of the event on a pod that cannot reach the
	// API server of its own cluster.
	reasonNoAPIServer = "APIServerNotReachable"
)

// inTransit tells whether a pod came from another cluster, which has offloaded it
// here. Liqo's webhook sees to it that the label of its origin is true.
func inTransit(pod *corev1.Pod) (origin cluster.ID, ok bool) {
	origin = cluster.ID(pod.Labels[forge.LiqoOriginClusterIDKey])
	return origin, pod.Labels[liqo.LabelManagedBy] == liqo.ManagedByShadowPod && origin != ""
}

// endpointMapper translates an address in another cluster, as this one sees it,
// for the foreign cluster.
type endpointMapper interface {
	// mapExternal returns an invalid address if the given one is none by which this
	// cluster reaches into the external CIDR of its owner.
	mapExternal(ctx context.Context, owner cluster.ID, address string) (netip.Addr, error)
}

// transit is a reflector of pods that knows the pods of other clusters from those
// of this one.
//
// Liqo gives each pod that it offloads a way back to the API server of this
// cluster. A pod in transit belongs to another API server, and the way to that
// one was given to it before: it is kept, and made one that leads there from the
// foreign cluster too.
type transit struct {
	manager.Reflector

	// mapper is nil if addresses mean the same in all clusters.
	mapper endpointMapper
	// pods are the pods of this cluster on the virtual node.
	pods corev1listers.PodLister
}

// Start begins the reflection.
func (t *transit) Start(ctx context.Context, opts *options.ReflectorOpts) {
	t.pods = opts.LocalPodInformer.Lister()
	t.Reflector.Start(ctx, opts)
}

// StartNamespace begins the reflection of a namespace.
func (t *transit) StartNamespace(opts *options.NamespacedOpts) {
	opts.RemoteLiqoClient = transitClient{opts.RemoteLiqoClient, &transitNamespace{
		mapper:  t.mapper,
		pods:    t.pods.Pods(opts.LocalNamespace),
		forging: opts.ForgingOpts,
		events:  opts.EventBroadcaster.NewRecorder(scheme.Scheme, corev1.EventSource{Component: "liqo-pod-reflection"}),
	}}
	t.Reflector.StartNamespace(opts)
}

// transitNamespace forges the remote pods of one namespace.
type transitNamespace struct {
	mapper  endpointMapper
	pods    corev1listers.PodNamespaceLister
	forging *forge.ForgingOpts
	events  record.EventRecorder
}

// forge returns what Liqo forged unless it is for a pod in transit. That one is
// forged anew, without access to the API server of this cluster.
func (n *transitNamespace) forge(ctx context.Context, forged *vkv1alpha1.ShadowPod) (*vkv1alpha1.ShadowPod, error) {
	local, err := n.pods.Get(forged.Name)
	if err != nil {
		return nil, fmt.Errorf("find the pod that ShadowPod %s/%s is for: %w", forged.Namespace, forged.Name, err)
	}
	origin, ok := inTransit(local)
	if !ok {
		return forged, nil
	}
	const none = forge.APIServerSupportDisabled
	shadow := forge.RemoteShadowPod(local, nil, forged.Namespace, n.forging,
		forge.APIServerSupportMutator(none, local.Annotations, "", nil, nil, "", ""),
		forge.ServiceAccountMutator(none, local.Annotations))
	liqo.Release(&shadow.Spec.Pod)
	if n.mapper == nil {
		return shadow, nil
	}
	if err := n.mapAliases(ctx, origin, local, &shadow.Spec.Pod); err != nil {
		return nil, err
	}
	return shadow, nil
}

// mapAliases makes the host aliases of the origin's API server lead there from the
// foreign cluster. If one cannot, the pod loses all that speaks of that server:
// the name would lead to another one, and the token with it.
func (n *transitNamespace) mapAliases(ctx context.Context, origin cluster.ID, local *corev1.Pod, spec *corev1.PodSpec) error {
	for i := range spec.HostAliases {
		alias := &spec.HostAliases[i]
		if !slices.Contains(alias.Hostnames, apiServerName) {
			continue
		}
		address, err := n.mapper.mapExternal(ctx, origin, alias.IP)
		if err != nil {
			return err
		}
		if !address.IsValid() {
			n.events.Eventf(local, corev1.EventTypeWarning, reasonNoAPIServer,
				"The pod cannot reach the API server of its cluster: %s is not in the external CIDR of that cluster", alias.IP)
			forgetAPIServer(local.Name, spec)
			return nil
		}
		alias.IP = address.String()
	}
	return nil
}

// forgetAPIServer takes from a pod the host aliases, the environment and the token
// that Liqo gave it to reach the API server of its own cluster.
func forgetAPIServer(name string, spec *corev1.PodSpec) {
	spec.HostAliases = slices.DeleteFunc(spec.HostAliases, func(alias corev1.HostAlias) bool {
		return slices.Contains(alias.Hostnames, apiServerName)
	})
	for _, containers := range [][]corev1.Container{spec.InitContainers, spec.Containers} {
		for i := range containers {
			containers[i].Env = slices.DeleteFunc(containers[i].Env, func(variable corev1.EnvVar) bool {
				return strings.HasPrefix(variable.Name, "KUBERNETES_SERVICE_") || strings.HasPrefix(variable.Name, "KUBERNETES_PORT")
			})
		}
	}
	for i := range spec.Volumes {
		if projected := spec.Volumes[i].Projected; projected != nil {
			projected.Sources = slices.DeleteFunc(projected.Sources, func(source corev1.VolumeProjection) bool {
				return source.Secret != nil && source.Secret.Name == forge.ServiceAccountSecretName(name)
			})
		}
	}
}

// mapExternal implements endpointMapper. A pod says itself where its aliases lead,
// so that nothing but its own cluster may be opened for them.
func (a *addresses) mapExternal(ctx context.Context, owner cluster.ID, address string) (netip.Addr, error) {
	a.mu.Lock()
	external := a.peers[owner].External.Seen
	a.mu.Unlock()
	if parsed, err := netip.ParseAddr(address); err != nil || !external.Contains(parsed) {
		return netip.Addr{}, nil //nolint:nilerr // What is no address is none of the owner's.
	}
	response, err := a.IpamClient.MapEndpointIP(ctx, &ipam.MapRequest{ClusterID: string(a.foreign), Ip: address})
	if err != nil {
		return netip.Addr{}, fmt.Errorf("map %s for cluster %s: %w", address, a.foreign, err)
	}
	mapped, err := netip.ParseAddr(response.GetIp())
	if err != nil {
		return netip.Addr{}, fmt.Errorf("map %s for cluster %s: the IPAM answered %q: %w", address, a.foreign, response.GetIp(), err)
	}
	return mapped, nil
}
