// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

// Package services keeps the Services of peers from taking what is not theirs: addresses outside of this cluster, which the nodes would
// lead to the peer's pods (CVE-2020-8554), ports of the nodes, and load balancers.
//
// Liqo makes the twin of a Service of the same type as the Service is (RemoteServiceSpec in
// liqo/pkg/virtualKubelet/forge/services.go@v0.9.4). [Confinement] makes one for pods of it, so that workloads find it as at home; it is
// a mutating admission webhook. [Guard] refuses what no honest peer writes; it is a validating one. Neither knows where pods run.
package services

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
)

const (
	// ConfinePath is where [Confinement] is served.
	ConfinePath = "/confine-services"
	// GuardPath is where [Guard] is served.
	GuardPath = "/guard-services"
)

// Types are what Services of peers may be, besides such as only pods reach, which are always allowed.
type Types []corev1.ServiceType

// ParseTypes returns the types with some names: NodePort, LoadBalancer.
func ParseTypes(names []string) (Types, error) {
	var types Types
	for _, name := range names {
		t := corev1.ServiceType(name)
		if t != corev1.ServiceTypeNodePort && t != corev1.ServiceTypeLoadBalancer {
			return nil, fmt.Errorf("unknown type of Services %q: it must be %s or %s", name, corev1.ServiceTypeNodePort,
				corev1.ServiceTypeLoadBalancer)
		}
		types = append(types, t)
	}
	return types, nil
}

// allow reports whether peers may have Services of a type. A load balancer has a port of the nodes as well.
func (types Types) allow(t corev1.ServiceType) bool {
	return t != corev1.ServiceTypeNodePort && t != corev1.ServiceTypeLoadBalancer || slices.Contains(types, t)
}

// Confinement makes Services for pods of those that a peer may not have, and has this cluster choose their cluster IPs. It may be used
// concurrently.
type Confinement struct {
	decoder admission.Decoder
	types   Types
}

var _ admission.Handler = (*Confinement)(nil)

// NewConfinement returns a Confinement that leaves Services of some types as they are.
func NewConfinement(scheme *runtime.Scheme, types Types) *Confinement {
	return &Confinement{decoder: admission.NewDecoder(scheme), types: types}
}

// Handle answers the API server when a peer's Service is written.
func (c *Confinement) Handle(_ context.Context, req admission.Request) admission.Response {
	service, before, err := decode(c.decoder, req)
	if err != nil {
		return admission.Errored(http.StatusBadRequest, err)
	}
	changed := unchoose(&service.Spec, &before.Spec)
	if !goes(service, before) && !c.types.allow(service.Spec.Type) {
		confine(&service.Spec)
		changed = true
	}
	if !changed {
		return admission.Allowed("")
	}
	confined, err := json.Marshal(service)
	if err != nil {
		return admission.Errored(http.StatusInternalServerError, err)
	}
	return admission.PatchResponseFromRaw(req.Object.Raw, confined)
}

// decode returns a Service that is written, and what it was before: an empty one if it is new.
func decode(decoder admission.Decoder, req admission.Request) (service, before *corev1.Service, err error) {
	service, before = &corev1.Service{}, &corev1.Service{}
	if err := decoder.Decode(req, service); err != nil {
		return nil, nil, err
	}
	if req.Operation == admissionv1.Update {
		if err := decoder.DecodeRaw(req.OldObject, before); err != nil {
			return nil, nil, fmt.Errorf("read what the Service was: %w", err)
		}
	}
	return service, before, nil
}

// goes reports whether a Service is being deleted and is what it was: it must be possible to take its finalizers from it, whatever is wrong
// with it. A peer may have set them, so that it can change more for as long as it likes.
func goes(service, before *corev1.Service) bool {
	return !service.DeletionTimestamp.IsZero() && equality.Semantic.DeepEqual(service.Spec, before.Spec)
}

// unchoose has this cluster give a Service each cluster IP that it has not had before, and reports whether the peer had chosen one: it may
// be that of a Service to come. A Service without any gets its first one when it is no ExternalName any more, and one that has one can get
// another of the other family. The API server gives them before it asks validating webhooks, which cannot tell one from the other.
func unchoose(spec, before *corev1.ServiceSpec) bool {
	kept := 0
	for kept < min(len(spec.ClusterIPs), len(before.ClusterIPs)) && spec.ClusterIPs[kept] == before.ClusterIPs[kept] {
		kept++
	}
	had := kept == len(spec.ClusterIPs) && (spec.ClusterIP == "" || spec.ClusterIP == before.ClusterIP)
	if had || spec.ClusterIP == corev1.ClusterIPNone {
		return false
	}
	spec.ClusterIP, spec.ClusterIPs = "", spec.ClusterIPs[:kept]
	if kept > 0 {
		spec.ClusterIP = spec.ClusterIPs[0]
	}
	return true
}

// confine makes a Service one for pods, without what only others may have.
func confine(spec *corev1.ServiceSpec) {
	spec.Type = corev1.ServiceTypeClusterIP
	spec.ExternalTrafficPolicy, spec.HealthCheckNodePort = "", 0
	spec.AllocateLoadBalancerNodePorts, spec.LoadBalancerClass, spec.LoadBalancerSourceRanges = nil, nil, nil
	for i := range spec.Ports {
		spec.Ports[i].NodePort = 0
	}
}

// Guard refuses Services of peers that take what is not theirs. It may be used concurrently.
type Guard struct {
	decoder admission.Decoder
	types   Types
}

var _ admission.Handler = (*Guard)(nil)

// NewGuard returns a Guard that admits Services of some types, besides those for pods.
func NewGuard(scheme *runtime.Scheme, types Types) *Guard {
	return &Guard{decoder: admission.NewDecoder(scheme), types: types}
}

// Handle answers the API server when a peer's Service is written.
func (g *Guard) Handle(_ context.Context, req admission.Request) admission.Response {
	service, before, err := decode(g.decoder, req)
	if err != nil {
		return admission.Errored(http.StatusBadRequest, err)
	}
	if goes(service, before) {
		return admission.Allowed("")
	}
	if wrong := g.wrong(&service.Spec); len(wrong) > 0 {
		return admission.Denied("this cluster does not take the Service: " + strings.Join(wrong, "; "))
	}
	return admission.Allowed("")
}

// wrong returns what a Service takes that is not the peer's.
func (g *Guard) wrong(spec *corev1.ServiceSpec) (wrong []string) {
	if len(spec.ExternalIPs) > 0 {
		wrong = append(wrong, "spec.externalIPs takes addresses that are not the peer's")
	}
	if spec.LoadBalancerIP != "" {
		wrong = append(wrong, "spec.loadBalancerIP takes an address that is not the peer's")
	}
	if !g.types.allow(spec.Type) {
		wrong = append(wrong, fmt.Sprintf("spec.type %s takes ports of the nodes, or a load balancer", spec.Type))
	}
	if !slices.Contains(g.types, corev1.ServiceTypeNodePort) && !slices.Contains(g.types, corev1.ServiceTypeLoadBalancer) &&
		slices.ContainsFunc(spec.Ports, func(p corev1.ServicePort) bool { return p.NodePort != 0 }) {
		wrong = append(wrong, "spec.ports takes ports of the nodes")
	}
	return wrong
}
