// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package virtualkubelet

import (
	"context"
	"errors"
	"fmt"

	"github.com/go-logr/logr"
	vkv1alpha1 "github.com/liqotech/liqo/apis/virtualkubelet/v1alpha1"
	liqoclient "github.com/liqotech/liqo/pkg/client/clientset/versioned"
	"github.com/liqotech/liqo/pkg/virtualKubelet/forge"
	"github.com/liqotech/liqo/pkg/virtualKubelet/reflection/configuration"
	"github.com/liqotech/liqo/pkg/virtualKubelet/reflection/event"
	"github.com/liqotech/liqo/pkg/virtualKubelet/reflection/exposition"
	"github.com/liqotech/liqo/pkg/virtualKubelet/reflection/generic"
	"github.com/liqotech/liqo/pkg/virtualKubelet/reflection/manager"
	"github.com/liqotech/liqo/pkg/virtualKubelet/reflection/namespacemap"
	"github.com/liqotech/liqo/pkg/virtualKubelet/reflection/storage"
	"github.com/liqotech/liqo/pkg/virtualKubelet/reflection/workload"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/record"
	metricsclient "k8s.io/metrics/pkg/client/clientset/versioned"

	"github.com/capacitorset/liqo-broker/cmd/virtual-kubelet/internal/address"
	"github.com/capacitorset/liqo-broker/cmd/virtual-kubelet/internal/events"
	"github.com/capacitorset/liqo-broker/cmd/virtual-kubelet/internal/guard"
	"github.com/capacitorset/liqo-broker/cmd/virtual-kubelet/internal/node"
	"github.com/capacitorset/liqo-broker/cmd/virtual-kubelet/internal/remotepods"
	"github.com/capacitorset/liqo-broker/cmd/virtual-kubelet/internal/serve"
	"github.com/capacitorset/liqo-broker/cmd/virtual-kubelet/internal/transit"
	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
)

// reflection reflects the objects of the offloaded namespaces between this
// cluster and the foreign one.
type reflection struct {
	manager manager.Manager
	// joinNamespaces returns when nothing looks any more which namespaces are offloaded.
	joinNamespaces func()
	// pods gives access to the reflected pods: exec, logs and so on.
	pods workload.PodHandler
	// answering tells of the pods in the foreign cluster.
	answering node.Pods
	// joinPods returns when nothing is written into pods any more about their addresses and paths.
	joinPods func()
	// translated are the reflectors whose objects hold addresses.
	translated []manager.Reflector
}

// newReflection composes Liqo's reflectors, as liqo/pkg/virtualKubelet/provider
// @v0.9.4 does, each behind a guard.
func newReflection(
	o *Options, first *given, local *rest.Config, translation *address.Translation, broadcaster record.EventBroadcaster,
	metrics *serve.Metrics, log logr.Logger,
) (*reflection, error) {
	if err := vkv1alpha1.AddToScheme(scheme.Scheme); err != nil {
		return nil, fmt.Errorf("register Liqo's types: %w", err)
	}
	forge.Init(o.HomeCluster, o.ForeignCluster, o.NodeName, o.NodeIP)

	// Clients of both clusters.
	remote := first.identity.config
	localClient, err1 := kubernetes.NewForConfig(compact(local))
	localLiqo, err2 := liqoclient.NewForConfig(local)
	remoteClient, err3 := kubernetes.NewForConfig(compact(remote))
	remoteLiqo, err4 := liqoclient.NewForConfig(remote)
	remoteMetrics, err5 := metricsclient.NewForConfig(remote)
	localDynamic, err6 := dynamic.NewForConfig(local)
	if err := errors.Join(err1, err2, err3, err4, err5, err6); err != nil {
		return nil, fmt.Errorf("set up API clients: %w", err)
	}
	apiServer := first.apiServer
	configs, err := o.reflectors()
	if err != nil {
		return nil, err
	}

	if addresses := translation.Addresses(); addresses != nil {
		addresses.Measure(metrics.Mapped)
	}

	// Liqo's reflectors, and ours around and in place of some.
	pods := workload.NewPodReflector(remote, remoteMetrics.MetricsV1beta1().PodMetricses, translation.Client(), &workload.PodReflectorConfig{
		APIServerSupport:    apiServer,
		DisableIPReflection: o.DisableIPReflection,
		HomeAPIServerHost:   o.HomeAPIServerHost,
		HomeAPIServerPort:   o.HomeAPIServerPort,
	}, &generic.ReflectorConfig{})
	ruled := remotepods.NewRuled(pods, configs[generic.Pod].NumWorkers)

	reflectors := []manager.Reflector{
		exposition.NewServiceReflector(configs[generic.Service]),
		exposition.NewIngressReflector(configs[generic.Ingress]),
		configuration.NewConfigMapReflector(configs[generic.ConfigMap]),
		transit.NewSecretReflector(apiServer == forge.APIServerSupportLegacy, configs[generic.Secret], generic.ConcurrencyModeLeader),
		transit.NewTokenReflector(apiServer == forge.APIServerSupportTokenAPI, configs[generic.ServiceAccount]),
		storage.NewPersistentVolumeClaimReflector(o.VirtualStorageClassName, o.RemoteRealStorageClassName,
			o.EnableStorage, configs[generic.PersistentVolumeClaim]),
		transit.NewEvents(event.NewEventReflector(configs[generic.Event])),
	}
	// What is reflected again when an address changes is kept apart; all are behind the guard.
	m := manager.New(localClient, remoteClient, localLiqo, remoteLiqo, o.InformerResyncPeriod, events.QuietInTransit(broadcaster),
		o.LabelsNotReflected.StringList, o.AnnotationsNotReflected.StringList)
	guarded := o.guardedNamespace()
	log.Info("Of Liqo's namespace only the Service of the IPAM is reflected", "namespace", guarded, "service", guard.IPAMService)
	addresses := translation.Addresses()
	var mapper transit.Mapper
	if addresses != nil {
		mapper = addresses
	}
	ownAddress := transit.NewOwnAddress(transit.NewPods(ruled, mapper), log.WithName("pods"))
	told, joinPods := manager.Reflector(ownAddress), ownAddress.Join
	if addresses != nil {
		paths := transit.NewPaths(ownAddress, addresses, metrics.Pods, log.WithName("pods"))
		told, joinPods = paths, func() {
			paths.Join()
			ownAddress.Join()
		}
	}
	// Pods and endpoints have addresses, whose translation can change while they exist.
	remotePods := remotepods.New(told, o.NodeName, translation.Hold, translation.Release)
	translated := []manager.Reflector{guard.New(remotePods, guarded)}
	if !o.DisableIPReflection {
		var endpoints manager.Reflector
		if addresses == nil {
			endpoints = exposition.NewEndpointSliceReflector(nil, configs[generic.EndpointSlice])
		} else {
			endpoints = transit.NewEndpoints(addresses, addresses, o.EndpointsPerCluster, metrics.RefusedEndpoints,
				configs[generic.EndpointSlice], log.WithName("addresses"))
		}
		translated = append(translated, guard.New(endpoints, guarded))
	}
	for _, reflector := range translated {
		m.With(reflector)
	}
	for _, reflector := range reflectors {
		m.With(guard.New(reflector, guarded))
	}
	// Which namespaces are reflected.
	namespaces, join := guard.NewNamespaces(namespacemap.NewHandler(localLiqo, o.TenantNamespace, o.InformerResyncPeriod), guard.Peering{
		Own:             cluster.Identity{ID: cluster.ID(o.HomeCluster.ClusterID), Name: o.HomeCluster.ClusterName},
		Foreign:         cluster.ID(o.ForeignCluster.ClusterID),
		TenantNamespace: o.TenantNamespace, LiqoNamespace: guarded, RolePatch: rolePatch,
	}, guard.Clients{Kubernetes: localClient, Liqo: localLiqo, Dynamic: localDynamic}, log.WithName("namespaces"))
	m.WithNamespaceHandler(namespaces)
	return &reflection{
		manager: m, joinNamespaces: join, pods: pods, joinPods: joinPods, translated: translated,
		answering: node.Pods{
			Present: func() bool { return remotePods.AnyAt(func(string) bool { return true }) },
			Direct:  func() bool { return remotePods.AnyAt(translation.ReachedDirectly) },
		},
	}, nil
}

// start begins to reflect; it goes on until the context ends.
func (r *reflection) start(ctx context.Context) { r.manager.Start(ctx) }

// join returns when what start began and must not outlast it has ended; the context
// must have ended.
func (r *reflection) join() {
	r.joinNamespaces()
	r.joinPods()
}

// translateAgain reflects again all objects that hold addresses.
func (r *reflection) translateAgain() error {
	var failures []error
	for _, reflector := range r.translated {
		failures = append(failures, reflector.Resync())
	}
	return errors.Join(failures...)
}

// apiServerSupport tells how an offloaded pod authenticates at the API server of
// this cluster.
func apiServerSupport(o *Options, client kubernetes.Interface) (forge.APIServerSupportType, error) {
	if !o.EnableAPIServerSupport {
		return forge.APIServerSupportDisabled, nil
	}
	resources, err := client.Discovery().ServerResourcesForGroupVersion(corev1.SchemeGroupVersion.String())
	if err != nil {
		return "", fmt.Errorf("ask the API server whether it issues service account tokens: %w", err)
	}
	for i := range resources.APIResources {
		if resources.APIResources[i].Name == "serviceaccounts/token" {
			return forge.APIServerSupportTokenAPI, nil
		}
	}
	return forge.APIServerSupportLegacy, nil
}
