// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

// Package transit gives pods what they need because they run elsewhere, and not in the cluster that
// they belong to: above all those that came from another cluster and go on to the foreign one. It
// reflects their API server, hosts, tokens, endpoints and events so that these mean there what they
// mean at home, and tells by which path they are reached. It does not know how addresses are translated.
package transit

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	vkv1alpha1 "github.com/liqotech/liqo/apis/virtualkubelet/v1alpha1"
	"github.com/liqotech/liqo/pkg/virtualKubelet/forge"
	"github.com/liqotech/liqo/pkg/virtualKubelet/reflection/manager"
	"github.com/liqotech/liqo/pkg/virtualKubelet/reflection/options"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes/scheme"
	corev1listers "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/record"

	"github.com/capacitorset/liqo-broker/cmd/virtual-kubelet/internal/address"
	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
	"github.com/capacitorset/liqo-broker/pkg/liqo"
)

const (
	// apiServerName is the name that Liqo makes lead, by a host alias and the
	// environment, to the API server of the cluster that a pod belongs to
	// (liqo/pkg/virtualKubelet/forge/pods.go@v0.9.4).
	apiServerName = "kubernetes.default"

	// ReasonNoAPIServer is the reason of the event on a pod that cannot reach the
	// API server of its own cluster. It is for that cluster.
	ReasonNoAPIServer = "APIServerNotReachable"
)

// inTransit reports whether a pod came from another cluster, which has offloaded it
// here. Liqo's webhook sees to it that the label of its origin is true.
func inTransit(pod *corev1.Pod) (origin cluster.ID, ok bool) {
	origin = cluster.ID(pod.Labels[forge.LiqoOriginClusterIDKey])
	return origin, pod.Labels[liqo.LabelManagedBy] == liqo.ManagedByShadowPod && origin != ""
}

// Mapper translates addresses in other clusters, as this one sees them, for the foreign
// cluster. Implementations may be used concurrently.
type Mapper interface {
	// MapExternal translates the address at which pods of an owner reach its API server. It returns an
	// [address.NotAPIServerError] if the address cannot be that of one.
	MapExternal(ctx context.Context, owner cluster.ID, address string) (netip.Addr, error)
	// MapHost returns under which address the foreign cluster reaches what this one reaches
	// at an address: the same if that is not one of Liqo's. The origin is where the pod
	// comes from that names it; empty for a pod of this cluster. An error is
	// [address.ErrHostUnknown], or passes by itself.
	MapHost(origin cluster.ID, address netip.Addr) (netip.Addr, error)
}

// NewPods returns a reflector of pods that reflects as another one does, but forges the
// remote pods so that each reaches, from the foreign cluster, its own API server and the hosts that it
// names. The mapper is nil if addresses mean the same in all clusters.
func NewPods(reflector manager.Reflector, mapper Mapper) manager.Reflector {
	return &transit{Reflector: reflector, mapper: mapper}
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
	mapper Mapper
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
	mapper  Mapper
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
	there, err := n.mapper.MapExternal(ctx, origin, here)
	switch refused := address.NotAPIServerError(""); {
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
	n.events.Eventf(local, corev1.EventTypeWarning, ReasonNoAPIServer, "The pod cannot reach the API server of its cluster: %s", why)
	forgetAPIServer(local.Name, spec)
}

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
