// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package liqo1

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	authv1beta1 "github.com/liqotech/liqo/apis/authentication/v1beta1"
	networkingv1beta1 "github.com/liqotech/liqo/apis/networking/v1beta1"
	"github.com/liqotech/liqo/pkg/consts"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capacitorset/liqo-broker/pkg/liqo/peerwrite"
	v1 "github.com/capacitorset/liqo-broker/pkg/liqo/v1"
)

// made returns what liqoctl makes in the tenant namespace of the peer milano-1, in Liqo's own types: by the functions of
// pkg/liqo-controller-manager/networking/forge and authentication/forge, which would bring much to compile.
func made() (server *networkingv1beta1.GatewayServer, way *networkingv1beta1.GatewayClient, all map[string]client.Object) {
	meta := metav1.ObjectMeta{
		Name: "milano-1", Namespace: "liqo-tenant-milano-1", Labels: map[string]string{consts.RemoteClusterID: "milano-1"},
	}
	version := networkingv1beta1.GroupVersion.String()
	server = &networkingv1beta1.GatewayServer{ObjectMeta: *meta.DeepCopy(), Spec: networkingv1beta1.GatewayServerSpec{
		MTU: 1340, Endpoint: networkingv1beta1.Endpoint{Port: 51840, ServiceType: corev1.ServiceTypeLoadBalancer},
		ServerTemplateRef: corev1.ObjectReference{
			Name: "wireguard-server", Namespace: "liqo", Kind: networkingv1beta1.WgGatewayServerTemplateKind, APIVersion: version,
		},
	}}
	way = &networkingv1beta1.GatewayClient{ObjectMeta: *meta.DeepCopy(), Spec: networkingv1beta1.GatewayClientSpec{
		MTU: 1340, Endpoint: networkingv1beta1.EndpointStatus{Addresses: []string{"203.0.113.7"}, Port: 51840, Protocol: new(corev1.ProtocolUDP)},
		ClientTemplateRef: corev1.ObjectReference{
			Name: "wireguard-client", Namespace: "liqo", Kind: networkingv1beta1.WgGatewayClientTemplateKind, APIVersion: version,
		},
	}}
	nonce := &corev1.Secret{ObjectMeta: *meta.DeepCopy()}
	nonce.Name, nonce.Labels[consts.NonceSecretLabelKey] = "liqo-nonce", "true"
	return server, way, map[string]client.Object{
		"gatewayservers.networking.liqo.io": server, "gatewayclients.networking.liqo.io": way,
		"publickeies.networking.liqo.io": &networkingv1beta1.PublicKey{ObjectMeta: *meta.DeepCopy()},
		"configurations.networking.liqo.io": &networkingv1beta1.Configuration{
			ObjectMeta: *meta.DeepCopy(),
			Spec: networkingv1beta1.ConfigurationSpec{Remote: networkingv1beta1.ClusterConfig{CIDR: networkingv1beta1.ClusterConfigCIDR{
				Pod: []networkingv1beta1.CIDR{"10.55.0.0/16"}, External: []networkingv1beta1.CIDR{"10.56.0.0/16"},
			}}},
		},
		"tenants.authentication.liqo.io": &authv1beta1.Tenant{
			ObjectMeta: *meta.DeepCopy(), Spec: authv1beta1.TenantSpec{ClusterID: "milano-1", CSR: make([]byte, 1000)},
		},
		"secrets.": nonce,
	}
}

// check asks whether milano-1 may create an object of a kind.
func check(t *testing.T, kind string, o client.Object) error {
	t.Helper()
	text, err := json.Marshal(o)
	if err != nil {
		t.Fatal(err)
	}
	resource, group, _ := strings.Cut(kind, ".")
	return v1.Line{}.PeerRules().Check(&peerwrite.Write{User: "milano-1", Resource: resource, Group: group, New: text}, "milano-1", "own")
}

// TestHonestPeers has a peer write what liqoctl writes, and then what it does not.
func TestHonestPeers(t *testing.T) {
	server, way, all := made()
	for kind, o := range all {
		if err := check(t, kind, o); err != nil {
			t.Errorf("%s: %v", kind, err)
		}
	}
	for field, change := range map[string]func(*networkingv1beta1.GatewayServer){
		"serverTemplateRef":  func(s *networkingv1beta1.GatewayServer) { s.Spec.ServerTemplateRef.Kind = "ConfigMap" },
		"secretRef":          func(s *networkingv1beta1.GatewayServer) { s.Spec.SecretRef.Name = "x" },
		"serviceAnnotations": func(s *networkingv1beta1.GatewayServer) { s.Spec.ServiceAnnotations = map[string]string{"a": "b"} },
		"serviceLabels":      func(s *networkingv1beta1.GatewayServer) { s.Spec.ServiceLabels = map[string]string{"a": "b"} },
		"serviceType":        func(s *networkingv1beta1.GatewayServer) { s.Spec.Endpoint.ServiceType = corev1.ServiceTypeExternalName },
		"nodePort":           func(s *networkingv1beta1.GatewayServer) { s.Spec.Endpoint.NodePort = new(int32(30443)) },
		"loadBalancerIP":     func(s *networkingv1beta1.GatewayServer) { s.Spec.Endpoint.LoadBalancerIP = new("203.0.113.1") },
	} {
		changed := server.DeepCopy()
		change(changed)
		if err := check(t, "gatewayservers.networking.liqo.io", changed); err == nil || !strings.Contains(err.Error(), field) {
			t.Errorf("%s of a GatewayServer is the peer's to set: %v", field, err)
		}
	}
	for field, change := range map[string]func(*networkingv1beta1.GatewayClient){
		"clientTemplateRef": func(c *networkingv1beta1.GatewayClient) { c.Spec.ClientTemplateRef.Kind = "ConfigMap" },
		"secretRef":         func(c *networkingv1beta1.GatewayClient) { c.Spec.SecretRef.Name = "x" },
		"addresses":         func(c *networkingv1beta1.GatewayClient) { c.Spec.Endpoint.Addresses = []string{"127.0.0.1"} },
	} {
		changed := way.DeepCopy()
		change(changed)
		if err := check(t, "gatewayclients.networking.liqo.io", changed); err == nil || !strings.Contains(err.Error(), field) {
			t.Errorf("%s of a GatewayClient is the peer's to set: %v", field, err)
		}
	}
	configuration, is := all["configurations.networking.liqo.io"].(*networkingv1beta1.Configuration)
	if !is {
		t.Fatal("no Configuration")
	}
	configuration.Spec.Local = &networkingv1beta1.ClusterConfig{}
	if err := check(t, "configurations.networking.liqo.io", configuration); err == nil || !strings.Contains(err.Error(), "spec.local") {
		t.Errorf("spec.local of a Configuration is the peer's to set: %v", err)
	}
}

// TestRolesOfPeers compares the names of the roles that Liqo binds to peers, of a chart that is released as liqo.
func TestRolesOfPeers(t *testing.T) {
	for _, name := range []string{
		"liqo-remote-controlplane", consts.RemoteNamespaceClusterRoleName, "liqo-virtual-kubelet-remote-clusterwide",
	} {
		if _, err := os.Stat(filepath.Join(liqoFolder(t), "deployments/liqo/files", name+"-ClusterRole.yaml")); err != nil {
			t.Errorf("role %s: %v", name, err)
		}
	}
}
