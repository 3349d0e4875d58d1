// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package guard

import (
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/informers/core"
	corev1informers "k8s.io/client-go/informers/core/v1"
	"k8s.io/client-go/informers/discovery"
	discoveryv1informers "k8s.io/client-go/informers/discovery/v1"
	"k8s.io/client-go/informers/networking"
	networkingv1informers "k8s.io/client-go/informers/networking/v1"
)

// IPAMService names the only Service of Liqo's namespace that may be reflected.
const IPAMService = "liqo-network-manager"

// What may be seen of the kinds that are reflected from Liqo's namespace.
func nothing(options *metav1.ListOptions) {
	options.FieldSelector = fields.OneTermEqualSelector("metadata.name", "").String()
}

func onlyIPAMService(options *metav1.ListOptions) {
	options.FieldSelector = fields.OneTermEqualSelector("metadata.name", IPAMService).String()
}

func onlyIPAMEndpoints(options *metav1.ListOptions) {
	options.LabelSelector = labels.Set{discoveryv1.LabelServiceName: IPAMService}.String()
}

// guardFactory restricts the informers of the reflected kinds. The factory keeps
// one informer of each kind, so that whoever uses the kind first decides what
// all others see; therefore every reflector of the namespace must be guarded.
func guardFactory(factory informers.SharedInformerFactory, namespace string) informers.SharedInformerFactory {
	return &guardedFactory{SharedInformerFactory: factory, namespace: namespace}
}

type guardedFactory struct {
	informers.SharedInformerFactory
	namespace string
}

func (f *guardedFactory) core(tweak func(*metav1.ListOptions)) corev1informers.Interface {
	return core.New(f.SharedInformerFactory, f.namespace, tweak).V1()
}

// Core restricts Services, Secrets, ConfigMaps and PersistentVolumeClaims.
func (f *guardedFactory) Core() core.Interface { return guardedCore{f} }

type guardedCore struct{ factory *guardedFactory }

func (c guardedCore) V1() corev1informers.Interface {
	return guardedCoreV1{Interface: c.factory.SharedInformerFactory.Core().V1(), factory: c.factory}
}

type guardedCoreV1 struct {
	corev1informers.Interface
	factory *guardedFactory
}

func (c guardedCoreV1) Services() corev1informers.ServiceInformer {
	return c.factory.core(onlyIPAMService).Services()
}

func (c guardedCoreV1) Secrets() corev1informers.SecretInformer {
	return c.factory.core(nothing).Secrets()
}

func (c guardedCoreV1) ConfigMaps() corev1informers.ConfigMapInformer {
	return c.factory.core(nothing).ConfigMaps()
}

func (c guardedCoreV1) PersistentVolumeClaims() corev1informers.PersistentVolumeClaimInformer {
	return c.factory.core(nothing).PersistentVolumeClaims()
}

// Discovery restricts EndpointSlices.
func (f *guardedFactory) Discovery() discovery.Interface {
	return guardedDiscovery{Interface: f.SharedInformerFactory.Discovery(), factory: f}
}

type guardedDiscovery struct {
	discovery.Interface
	factory *guardedFactory
}

func (d guardedDiscovery) V1() discoveryv1informers.Interface {
	return discovery.New(d.factory.SharedInformerFactory, d.factory.namespace, onlyIPAMEndpoints).V1()
}

// Networking restricts Ingresses.
func (f *guardedFactory) Networking() networking.Interface {
	return guardedNetworking{Interface: f.SharedInformerFactory.Networking(), factory: f}
}

type guardedNetworking struct {
	networking.Interface
	factory *guardedFactory
}

func (n guardedNetworking) V1() networkingv1informers.Interface {
	return networking.New(n.factory.SharedInformerFactory, n.factory.namespace, nothing).V1()
}
