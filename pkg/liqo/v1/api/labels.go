// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package api

// Labels and annotations that Liqo 1.x has and 0.9 has not, or has under another name. Those that are equal are in package liqo. The module
// test/liqo1 compares them with Liqo's own.
const (
	// TenantNamePrefix begins the names of tenant namespaces, before a dash.
	TenantNamePrefix = "liqo-tenant"

	// LabelOriginCluster and LabelDestinationCluster are on all that virtual kubelets make, with the IDs of the peer and of the cluster where
	// it is made.
	LabelOriginCluster      = "offloading.liqo.io/origin"
	LabelDestinationCluster = "offloading.liqo.io/destination"

	// AnnotationCreateNode is on ResourceSlices of which Liqo makes a virtual node of the same name, unless its value is "false".
	AnnotationCreateNode = "liqo.io/create-virtual-node"
	// LabelSlice is on such virtual nodes, and on the Identities that they use, with the name of the ResourceSlice.
	LabelSlice = "liqo.io/resourceslice-name"

	// AnnotationAPIServer is on pods that are to be told nothing of the API server of their own cluster, with the value APIServerDisabled.
	AnnotationAPIServer = "liqo.io/api-server-support"
	APIServerDisabled   = "disabled"

	// AnnotationCordon and AnnotationCordonTenant are on ResourceSlices and Tenants that get nothing new.
	AnnotationCordon       = "liqo.io/cordon"
	AnnotationCordonTenant = "liqo.io/cordon-tenant"

	// LabelSkipWebhooks is on objects about which the API server does not ask Liqo's webhooks.
	LabelSkipWebhooks = "liqo.io/webhook-skip" //nolint:gosec // It is no credential.

	// LabelWebhook and AnnotationWebhookService are on the Secret with the certificate of Liqo's webhooks.
	LabelWebhook             = "liqo.io/webhook"
	AnnotationWebhookService = "liqo.io/webhook-service-name"
	// LabelIdentityType is on Secrets with the credentials for another cluster, and AnnotationRemoteTenant says which namespace there they are
	// for.
	LabelIdentityType      = "liqo.io/identity-type"
	AnnotationRemoteTenant = "liqo.io/remote-tenant-namespace"
	// LabelNonce is on the Secret with what a cluster has to sign, and LabelSignedNonce on that with what this cluster signs.
	LabelNonce       = "liqo.io/nonce"
	LabelSignedNonce = "liqo.io/signed-nonce"
	// LabelGatewayResource is on the Secrets with the keys of gateways.
	LabelGatewayResource = "networking.liqo.io/gateway-resource"

	// EndpointsReflected is who manages the EndpointSlices that virtual kubelets make, by the label that Kubernetes has for that.
	EndpointsReflected = "endpointslice.reflection.liqo.io"

	// LabelNetworkType is on the Networks of this cluster, with one of the values below it.
	LabelNetworkType    = "ipam.liqo.io/network-type"
	NetworkTypePods     = "pod-cidr"
	NetworkTypeServices = "service-cidr"
	NetworkTypeExternal = "external-cidr"
	NetworkTypeInternal = "internal-cidr"

	// LabelIPType is on the IPs that Liqo itself makes, with IPTypeProxy on that by which its proxy of the API server is reached.
	LabelIPType = "ipam.liqo.io/ip-type"
	IPTypeProxy = "api-server-proxy"

	// LabelFirewallCategory and LabelFirewallSubcategory say where a FirewallConfiguration is in force: on all gateways, with both values
	// below them, or, with the first one and LabelFirewallUnique, on that of one peer, whose ID the latter has.
	LabelFirewallCategory    = "networking.liqo.io/firewall-category"
	FirewallCategoryGateway  = "gateway"
	LabelFirewallSubcategory = "networking.liqo.io/firewall-subcategory"
	FirewallAllGateways      = "all-gateways"
	LabelFirewallUnique      = "networking.liqo.io/firewall-unique"
)

// Tunnel is what the device of the tunnel to a peer is called in its gateway.
const Tunnel = "liqo-tunnel"
