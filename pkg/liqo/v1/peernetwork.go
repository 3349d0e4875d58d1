// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package v1

import (
	"fmt"
	"net/netip"
	"reflect"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/capacitorset/liqo-broker/pkg/core/addressing"
	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
	"github.com/capacitorset/liqo-broker/pkg/liqo/peerwrite"
	"github.com/capacitorset/liqo-broker/pkg/liqo/v1/api"
)

// maxEndpoints is how many addresses the gateway of a peer may have: those of a node or of a load balancer. Liqo uses the first one.
const maxEndpoints = 16

// checkSingle returns why an object is not the only one of its kind that a peer makes. Of Configurations it changes no other one either:
// liqoctl goes on with a gateway that is called otherwise, and with nothing else.
func checkSingle(w *peerwrite.Write, peer cluster.ID) error {
	if len(w.New) == 0 || len(w.Old) > 0 && w.Kind() != configurations {
		return nil
	}
	return checkName(w, peer)
}

// checkName returns why an object that is to be written is not called like a cluster.
func checkName(w *peerwrite.Write, id cluster.ID) error {
	var o metav1.PartialObjectMetadata
	if err := peerwrite.Decode(w.New, &o); err != nil {
		return err
	}
	return peerwrite.MustBe("metadata.name", o.Name, id)
}

// kept is a field that is not a peer's to set or to change.
type kept struct {
	field string
	// optional tells that the peer may take it away: liqoctl does, which replaces what is around it.
	optional bool
	reason   string
}

// checkKept returns the first of some fields that a peer sets or changes. An empty text is none.
func checkKept(w *peerwrite.Write, fields ...kept) error {
	var before, after map[string]any
	if err := peerwrite.Decode(w.New, &after); err != nil {
		return err
	}
	if len(w.Old) > 0 {
		if err := peerwrite.Decode(w.Old, &before); err != nil {
			return err
		}
	}
	for _, f := range fields {
		was, err := valueOf(before, f.field)
		if err != nil {
			return err
		}
		is, err := valueOf(after, f.field)
		if err != nil {
			return err
		}
		if (!f.optional || is != nil) && !reflect.DeepEqual(was, is) {
			return fmt.Errorf("%s is not the peer's to set: %s", f.field, f.reason)
		}
	}
	return nil
}

// valueOf returns the value of a field of an object, nil if it has none.
func valueOf(object map[string]any, field string) (any, error) {
	got, _, err := unstructured.NestedFieldNoCopy(object, strings.Split(field, ".")...)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", field, err)
	}
	if got == "" {
		got = nil
	}
	return got, nil
}

func checkPeersConfiguration(w *peerwrite.Write, _, _ cluster.ID) error {
	if err := checkKept(w, kept{field: "spec.local", reason: "these are the networks of this cluster, as Liqo here writes them"}); err != nil {
		return err
	}
	var c api.Configuration
	if err := peerwrite.Decode(w.New, &c); err != nil {
		return err
	}
	for _, of := range []struct {
		field string
		cidrs []string
	}{{"spec.remote.cidr.pod", c.Spec.Remote.CIDR.Pod}, {"spec.remote.cidr.external", c.Spec.Remote.CIDR.External}} {
		if err := checkNumber(of.field, of.cidrs); err != nil {
			return err
		}
		for i, cidr := range of.cidrs {
			if cidr == "" {
				continue // Not told yet.
			}
			prefix, err := netip.ParsePrefix(cidr)
			if err == nil {
				err = addressing.CheckReport(prefix)
			}
			if err != nil {
				return fmt.Errorf("%s[%d]: %w", of.field, i, err)
			}
		}
	}
	return nil
}

func checkNumber(field string, cidrs []string) error {
	if n := len(cidrs); n > maxCIDRs {
		return fmt.Errorf("%s has %d networks: a peer may have up to %d", field, n, maxCIDRs)
	}
	return nil
}

// gateway is the part of a GatewayServer or a GatewayClient that is checked.
type gateway struct {
	Spec struct {
		ServerTemplateRef corev1.ObjectReference `json:"serverTemplateRef"`
		ClientTemplateRef corev1.ObjectReference `json:"clientTemplateRef"`
		Endpoint          struct {
			ServiceType corev1.ServiceType `json:"serviceType"`
			Addresses   []string           `json:"addresses"`
		} `json:"endpoint"`
	} `json:"spec"`
}

// The templates of gateways that come with Liqo. Only people here make such.
const (
	serverTemplate   = "WgGatewayServerTemplate"
	clientTemplate   = "WgGatewayClientTemplate"
	templatesVersion = api.NetworkingGroup + "/v1beta1"
)

// gatewaysOf reads a gateway as it is, which is empty if it is to be created, and as it is to be.
func gatewaysOf(w *peerwrite.Write) (before, after gateway, err error) {
	if len(w.Old) > 0 {
		if err := peerwrite.Decode(w.Old, &before); err != nil {
			return before, after, err
		}
	}
	return before, after, peerwrite.Decode(w.New, &after)
}

// checkTemplate returns why a peer must not have a gateway made of a template: it is not one of Liqo's, and not the one that the gateway
// has. Liqo reads whatever object it is told, and makes what that says.
func checkTemplate(field string, before, after corev1.ObjectReference, kind string) error {
	if after == before || after.Kind == kind && after.APIVersion == templatesVersion {
		return nil
	}
	return fmt.Errorf("%s is a %s of %q, want a %s of %q", field, after.Kind, after.APIVersion, kind, templatesVersion)
}

// checkPeersServer checks a gateway that waits for the peer here. For that it needs a Service, of the type that the peer says; which
// address, which port and which annotations and labels it has, is up to people here.
func checkPeersServer(w *peerwrite.Write, _, _ cluster.ID) error {
	before, after, err := gatewaysOf(w)
	if err != nil {
		return err
	}
	const field = "spec.serverTemplateRef"
	if err := checkTemplate(field, before.Spec.ServerTemplateRef, after.Spec.ServerTemplateRef, serverTemplate); err != nil {
		return err
	}
	served := []corev1.ServiceType{"", corev1.ServiceTypeClusterIP, corev1.ServiceTypeNodePort, corev1.ServiceTypeLoadBalancer}
	if service := after.Spec.Endpoint.ServiceType; !slices.Contains(served, service) {
		return fmt.Errorf("spec.endpoint.serviceType is %q: no gateway of this cluster is reached so", service)
	}
	return checkKept(w,
		kept{field: "spec.secretRef.name", reason: "Liqo here makes the key of a gateway of this cluster"},
		kept{field: "spec.serviceAnnotations", reason: "this cluster says what becomes of its Services"},
		kept{field: "spec.serviceLabels", reason: "this cluster says what becomes of its Services"},
		kept{field: "spec.endpoint.nodePort", optional: true, reason: "Kubernetes chooses the port of the nodes"},
		kept{field: "spec.endpoint.loadBalancerIP", optional: true, reason: "it is an address of this cluster"},
	)
}

// checkPeersClient checks a gateway of this cluster that goes to the peer: it sends to whatever address the peer has.
func checkPeersClient(w *peerwrite.Write, _, _ cluster.ID) error {
	before, after, err := gatewaysOf(w)
	if err != nil {
		return err
	}
	const field = "spec.clientTemplateRef"
	if err := checkTemplate(field, before.Spec.ClientTemplateRef, after.Spec.ClientTemplateRef, clientTemplate); err != nil {
		return err
	}
	addresses := after.Spec.Endpoint.Addresses
	if n := len(addresses); n > maxEndpoints {
		return fmt.Errorf("spec.endpoint.addresses has %d addresses: a gateway may have up to %d", n, maxEndpoints)
	}
	for i, address := range addresses {
		if err := checkEndpoint(address); err != nil {
			return fmt.Errorf("spec.endpoint.addresses[%d]: %w", i, err)
		}
	}
	return checkKept(w, kept{field: "spec.secretRef.name", reason: "Liqo here makes the key of a gateway of this cluster"})
}

// checkEndpoint returns why an address is none of another cluster: it is no IP address of another machine and no name in the DNS. Liqo
// passes it to a program as an argument, in which Kubernetes puts variables of the container for what looks like a name of them.
func checkEndpoint(address string) error {
	ip, err := netip.ParseAddr(address)
	if err == nil {
		if !ip.IsGlobalUnicast() || ip.Zone() != "" {
			return fmt.Errorf("%s is no address of another cluster", ip)
		}
		return nil
	}
	if len(validation.IsDNS1123Subdomain(strings.ToLower(strings.TrimSuffix(address, ".")))) > 0 {
		return fmt.Errorf("%q is neither an address nor a name", address)
	}
	return nil
}
