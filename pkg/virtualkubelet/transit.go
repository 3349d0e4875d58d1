// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package virtualkubelet

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"

	vkv1alpha1 "github.com/liqotech/liqo/apis/virtualkubelet/v1alpha1"
	"github.com/liqotech/liqo/pkg/liqonet/ipam"
	"github.com/liqotech/liqo/pkg/virtualKubelet/forge"
	"github.com/liqotech/liqo/pkg/virtualKubelet/reflection/manager"
	"github.com/liqotech/liqo/pkg/virtualKubelet/reflection/options"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes/scheme"
	corev1listers "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/record"

	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
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

// inTransit reports whether a pod came from another cluster, which has offloaded it
// here. Liqo's webhook sees to it that the label of its origin is true.
func inTransit(pod *corev1.Pod) (origin cluster.ID, ok bool) {
	origin = cluster.ID(pod.Labels[forge.LiqoOriginClusterIDKey])
	return origin, pod.Labels[liqo.LabelManagedBy] == liqo.ManagedByShadowPod && origin != ""
}

// endpointMapper translates an address in another cluster, as this one sees it,
// for the foreign cluster.
type endpointMapper interface {
	// mapExternal returns a notAPIServerError if the address cannot be that of the API
	// server of its owner.
	mapExternal(ctx context.Context, owner cluster.ID, address string) (netip.Addr, error)
	hostMapper
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

// forge returns what Liqo forged, with the name of the namespace beside its token, and with
// the hosts that it names as the foreign cluster reaches them. One for a pod in transit is
// forged again, without access to the API server of this cluster.
func (n *transitNamespace) forge(ctx context.Context, forged *vkv1alpha1.ShadowPod) (*vkv1alpha1.ShadowPod, error) {
	local, err := n.pods.Get(forged.Name)
	if err != nil {
		return nil, fmt.Errorf("find the pod that ShadowPod %s/%s is for: %w", forged.Namespace, forged.Name, err)
	}
	origin, ok := inTransit(local)
	if !ok {
		keepTokenNamespace(local, &forged.Spec.Pod)
		nameAPIServerInFull(&forged.Spec.Pod)
		return forged, n.mapHosts("", local, &forged.Spec.Pod)
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
	return shadow, n.mapHosts(origin, local, &shadow.Spec.Pod)
}

// mapAliases makes the host aliases of the origin's API server lead there from the
// foreign cluster. If one cannot, the pod loses all that speaks of that server:
// the name would lead to another one, and the token with it.
func (n *transitNamespace) mapAliases(ctx context.Context, origin cluster.ID, local *corev1.Pod, spec *corev1.PodSpec) error {
	var aliases []*corev1.HostAlias
	for i := range spec.HostAliases {
		if slices.Contains(spec.HostAliases[i].Hostnames, apiServerName) {
			aliases = append(aliases, &spec.HostAliases[i])
		}
	}
	if len(aliases) == 0 {
		return nil
	}
	here := aliases[0].IP
	if slices.ContainsFunc(aliases, func(alias *corev1.HostAlias) bool { return alias.IP != here }) {
		n.refuseAPIServer(local, spec, "it names more than one")
		return nil
	}
	there, err := n.mapper.mapExternal(ctx, origin, here)
	switch refused := notAPIServerError(""); {
	case errors.As(err, &refused):
		n.refuseAPIServer(local, spec, refused.Error())
		return nil
	case err != nil:
		return err
	}
	for _, alias := range aliases {
		alias.IP = there.String()
	}
	return nil
}

// refuseAPIServer lets a pod start without access to the API server of its cluster.
func (n *transitNamespace) refuseAPIServer(local *corev1.Pod, spec *corev1.PodSpec, why string) {
	n.events.Eventf(local, corev1.EventTypeWarning, reasonNoAPIServer, "The pod cannot reach the API server of its cluster: %s", why)
	forgetAPIServer(local.Name, spec)
}

// notAPIServerError says why an address is not taken for that of an API server.
type notAPIServerError string

func (e notAPIServerError) Error() string { return string(e) }

// forgetAPIServer takes from a pod the host aliases, the environment and the token
// that Liqo gave it to reach the API server of its own cluster. A file with the name of its
// namespace stays, as that of where it runs.
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
			ofServer := isOf(forge.ServiceAccountSecretName(name))
			namespaces := namespaceFiles(projected.Sources, ofServer)
			projected.Sources = append(slices.DeleteFunc(projected.Sources, ofServer), namespaces...)
		}
	}
}

// mapExternal implements endpointMapper. A pod says itself where its aliases lead,
// so that nothing but its own cluster may be opened for them, and of that only what
// can be its API server: each address takes one of the external CIDR of this cluster.
func (a *addresses) mapExternal(ctx context.Context, owner cluster.ID, address string) (netip.Addr, error) {
	a.mu.Lock()
	external := a.peers[owner].External.Seen
	a.mu.Unlock()
	parsed, err := netip.ParseAddr(address)
	if err != nil || !external.Contains(parsed) {
		return netip.Addr{}, notAPIServerError(address + " is not in the external CIDR of that cluster")
	}
	if !a.apiServers.admit(owner, parsed, time.Now()) {
		return netip.Addr{}, notAPIServerError("pods of that cluster name others already than " + address)
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

const (
	// apiServersPerCluster is one, and another that it may change to.
	apiServersPerCluster = 2
	// apiServerHold is how long an address of an API server counts that no new pod names.
	apiServerHold = 24 * time.Hour
)

// apiServers are the addresses that pods of each cluster name as that of its API server.
// The zero value is ready for use.
type apiServers struct {
	mu sync.Mutex
	// named is when each was named last.
	named map[cluster.ID]map[netip.Addr]time.Time
}

// admit reports whether an address may be that of the API server of a cluster.
func (s *apiServers) admit(owner cluster.ID, address netip.Addr, now time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.named == nil {
		s.named = map[cluster.ID]map[netip.Addr]time.Time{}
	}
	if s.named[owner] == nil {
		s.named[owner] = map[netip.Addr]time.Time{}
	}
	named := s.named[owner]
	if _, known := named[address]; !known && len(named) >= apiServersPerCluster {
		maps.DeleteFunc(named, func(_ netip.Addr, last time.Time) bool { return now.Sub(last) >= apiServerHold })
		if len(named) >= apiServersPerCluster {
			return false
		}
	}
	named[address] = now
	return true
}
