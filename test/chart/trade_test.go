// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package chart

import (
	"strings"
	"testing"
)

// TestConnectorSwitches sets values of the connector's chart.
func TestConnectorSwitches(t *testing.T) {
	const deployment = "Deployment/liqo-broker-connector/liqo-broker-connector"
	const guard = "Deployment/liqo-broker-guard/liqo-broker-guard"
	const settings = "ConfigMap/liqo-broker-connector/liqo-broker-connector"
	const service = "Service/liqo-broker-connector/liqo-broker-connector-negotiation"
	monitor := []string{
		"ClusterRole/liqo-broker-connector-metrics-reader", "ClusterRoleBinding/liqo-broker-connector-metrics-reader",
		"PodMonitor/liqo-broker-connector/liqo-broker-connector", "Secret/liqo-broker-connector/liqo-broker-connector-metrics-reader",
		"ServiceAccount/liqo-broker-connector/liqo-broker-connector-metrics-reader",
	}
	elsewhere := []string{
		"NetworkPolicy/elsewhere/liqo-broker-network-manager",
		"Role/elsewhere/liqo-broker-connector", "Role/elsewhere/liqo-broker-guard", "RoleBinding/elsewhere/liqo-broker-connector",
		"RoleBinding/elsewhere/liqo-broker-guard",
	}
	changes(t, connector, nil, map[string]change{
		"NoRoles": {
			release: release{set: "aggregatedRoles.enabled=false"}, reason: "Nobody gets rights by Kubernetes' roles.",
			removes: `^ClusterRole/liqo-broker-connector-(view|trade)$`,
		},
		"Namespace": {release: release{set: "namespace.create=true", namespace: "default"},
			reason: "The chart brings its namespace, which admits only restricted pods.",
			adds:   []string{"Namespace/liqo-broker-connector"}, object: "Namespace/liqo-broker-connector",
			has: `"pod-security.kubernetes.io/enforce":"restricted"`},
		"Image": {release: release{set: "image.registry=registry.example:5000/mirror,image.tag=v9,image.pullSecrets={mine}"},
			reason: "Images come from where people say.",
			object: deployment, has: `"image":"registry.example:5000/mirror/liqo-broker-connector:v9"`},
		"Digest": {release: release{set: "image.digest=sha256:" + strings.Repeat("a", 64)}, reason: "A digest names one image for ever.",
			object: deployment, has: `"image":"capacitorset/liqo-broker-connector@sha256:aaaa`},
		"Buyer": {reason: "Without an endpoint nothing is sold.", object: settings, has: `"endpoint":""`, reworded: "buys only"},
		"Seller": {release: release{set: "endpoint=https://203.0.113.7:30446,share=90,drain=1h30m,name=north"},
			reason: "What the cluster says of itself is in the ConfigMap.", object: settings,
			has:      `"data":{"drain":"1h30m","endpoint":"https://203.0.113.7:30446","name":"north","share":"90"}`,
			reworded: "--resource-plugin-address=liqo-broker-connector-plugin.liqo-broker-connector:7000"},
		"Devices": {release: release{set: "shareDevices=50"}, reason: "Some devices are not for sale.",
			object: deployment, has: `"--share-devices=50"`},
		"NodeLabels": {release: release{set: "nodeLabels={nvidia.com/gpu.product,nvidia.com/gpu.memory}"}, reason: "Offers tell the model.",
			object: deployment, has: `"--node-labels=nvidia.com/gpu.product,nvidia.com/gpu.memory"`},
		"Keeps": {release: release{set: "keepContracts=9600h"}, reason: "Who is audited keeps contracts for longer.",
			object: deployment, has: `"--keep-contracts=9600h"`},
		"Broker": {release: release{set: "broker=true,endpoint=https://203.0.113.7:30446"}, reason: "The broker serves the resource plugin.",
			removes: "^Service/.*-plugin$", object: deployment, has: `"--broker"`, reworded: "what the broker of this cluster aggregates"},
		"Resells": {release: release{set: "broker=true,guard.enabled=false"}, reason: "The broker has the guard, and serves the resource plugin.",
			removes: ofGuard(t) + "|^Service/.*-plugin$", object: deployment, has: `"--broker"`},
		"Level": {release: release{set: "podSecurity=restricted"}, reason: "Another level is another ConfigMap.",
			object: "ConfigMap/liqo-broker-guard/liqo-broker-guard", has: `"level":"restricted"`},
		"PodSecurity": {release: release{set: "podSecurity=restricted"}, reason: "The guard reads it at its start.",
			object: guard, has: `"brokering.liqo.io/pod-security":"restricted"`},
		"Privileged": {
			release: release{set: "podSecurity=privileged"}, reason: "No policy refuses what the operator admits.",
			removes: `^ValidatingAdmissionPolicy(Binding)?/pod-security`,
		},
		"Guards": {release: release{set: "guard.replicas=3"}, reason: "More guards answer.", object: guard, has: `"replicas":3`},
		"AnyUser": {release: release{set: anyUser}, reason: "A cluster may choose the user.", object: deployment,
			has: `"securityContext":{"runAsNonRoot":true,"seccompProfile":{"type":"RuntimeDefault"}}`, hasNot: "65532"},
		"GuardPull": {release: release{set: "guard.pullSecrets={mine}"}, reason: "Its namespace has a Secret of its own.",
			object: guard, has: `"imagePullSecrets":[{"name":"mine"}]`},
		"GuardRegistry": {release: release{set: "image.registry=registry.example:5000/mirror"},
			reason: "All images are in one place, unless people say otherwise.", object: guard,
			has: `"image":"registry.example:5000/mirror/liqo-broker:`},
		"GuardImage": {release: release{set: "guard.image.registry=registry.example:5000/mirror,guard.image.tag=v9"},
			reason: "The guard has an image of its own.", object: guard, has: `"image":"registry.example:5000/mirror/liqo-broker:v9"`},
		"NoGuard": {
			release: release{set: "guard.enabled=false"}, reason: "Another release brings the guard, and its policies.", removes: ofGuard(t),
		},
		"NoPolicies": {
			release: release{set: "admissionPolicies.enabled=false"}, reason: "The policies go.", removes: `^ValidatingAdmissionPolicy`,
		},
		"Stopped": {release: release{set: "replicas=0"}, reason: "It can be stopped.", object: deployment, has: `"replicas":0`},
		"LoadBalancer": {release: release{
			set: "service.type=LoadBalancer,service.nodePort=0,service.port=443,service.annotations.a=b,service.externalTrafficPolicy=Local",
		},
			reason: "Clouds have an address for it.", object: service, has: `"externalTrafficPolicy":"Local","ports":[{"name":"negotiation","port":443,"targetPort":"negotiation"}]`},
		"Inside": {
			release: release{set: "service.type=ClusterIP"}, reason: "Something else passes connections on.", object: service,
			has: `"type":"ClusterIP"`, hasNot: "nodePort",
		},
		"Node": {release: release{set: "nodeSelector.disk=ssd,tolerations[0].key=infra,priorityClassName=system-cluster-critical"},
			reason: "It goes where people want it.",
			object: deployment, has: `"nodeSelector":{"disk":"ssd"},"priorityClassName":"system-cluster-critical"`},
		"Flags": {
			release: release{set: "extraArgs={--decide-for=48h}"}, reason: "Every flag can be given.", object: deployment,
			has: `"--decide-for=48h"]`,
		},
		"NoCRDs": {
			release: release{set: "crds.install=false"}, reason: "Somebody else may install the CRDs.", removes: `^CustomResourceDefinition/`,
		},
		"CRDsGo": {release: release{set: "crds.keep=false"}, reason: "Who wants the CRDs gone is told what that means.",
			object: "CustomResourceDefinition/purchases.brokering.liqo.io", hasNot: "resource-policy", reworded: `(?s)all contracts are deleted`},
		"NoNetworkPolicies": {
			release: release{set: "networkPolicies.enabled=false"}, reason: "All network policies go.", removes: `^NetworkPolicy/`,
		},
		"Monitor": {release: release{set: "podMonitor.enabled=true,podMonitor.interval=15s,podMonitor.labels.release=prometheus"},
			reason: "The operator gets a token.",
			adds:   monitor, object: "PodMonitor/liqo-broker-connector/liqo-broker-connector", has: `"interval":"15s"`},
		"Dashboards": {release: release{set: "dashboards.enabled=true,dashboards.labels.team=a"}, reason: "Grafana finds it by a label.",
			adds:   []string{"ConfigMap/liqo-broker-connector/liqo-broker-connector-dashboard"},
			object: "ConfigMap/liqo-broker-connector/liqo-broker-connector-dashboard", has: `"grafana_dashboard":"1","helm.sh/chart"`},
		"Liqo": {release: release{set: "liqo.namespace=elsewhere"}, reason: "Liqo may run elsewhere.", removes: `/liqo/`,
			adds:   elsewhere,
			object: deployment, has: `"--liqo-namespace=elsewhere"`},
		"LiqoCalls": {release: release{set: "liqo.namespace=elsewhere"}, reason: "Only Liqo reaches the plugin.", removes: `/liqo/`,
			adds:   elsewhere,
			object: "NetworkPolicy/liqo-broker-connector/liqo-broker-connector", has: `"kubernetes.io/metadata.name":"elsewhere"`},
	})
}

// TestConnectorRefusals holds that a typing error is refused before anything is applied.
func TestConnectorRefusals(t *testing.T) {
	refused(t, connector, map[string]refusal{
		"Unknown":  {release: release{set: "endpiont=https://a"}, reason: "A value that nothing reads is a typing error.", err: "endpiont"},
		"Plain":    {release: release{set: "endpoint=http://a:1"}, reason: "Nothing goes in plain text.", err: "endpoint"},
		"User":     {release: release{set: "endpoint=https://a@b"}, reason: "A URL with a user shows a password.", err: "endpoint"},
		"Share":    {release: release{set: "share=101"}, reason: "Nobody sells more than all.", err: "share"},
		"Drain":    {release: release{set: "drain=5"}, reason: "A duration has a unit.", err: "drain"},
		"Devices":  {release: release{set: "shareDevices=101"}, reason: "Nobody sells more devices than all.", err: "shareDevices"},
		"Labels":   {release: release{set: "nodeLabels={gpu product}"}, reason: "No label is called so.", err: "nodeLabels"},
		"Resold":   {release: release{set: "broker=true,nodeLabels={gpu}"}, reason: "A broker sells nodes of others.", err: "nodeLabels"},
		"Keeps":    {release: release{set: "keepContracts=400d"}, reason: "Hours are the longest unit.", err: "keepContracts"},
		"Replicas": {release: release{set: "replicas=2"}, reason: "Buyers would reach the one that waits.", err: "replicas"},
		"Port":     {release: release{set: "service.nodePort=70000"}, reason: "Ports have 16 bits.", err: "nodePort"},
		"Type":     {release: release{set: "service.type=Ingress"}, reason: "TLS ends in the connector.", err: "type"},
		"Range": {
			release: release{set: "service.loadBalancerSourceRanges={all}"}, reason: "A prefix has a length.", err: "loadBalancerSourceRanges",
		},
		"Level":    {release: release{set: "podSecurity=none"}, reason: "Kubernetes knows three levels.", err: "podSecurity"},
		"NoGuards": {release: release{set: "guard.replicas=0"}, reason: "Who wants no guard says so.", err: "replicas"},
		"Flag":     {release: release{set: "extraArgs={decide-for=5m}"}, reason: "Flags have two dashes.", err: "extraArgs"},
		"Namespace": {
			release: release{namespace: "default"}, reason: "The key of the cluster is in one namespace.", err: "--namespace liqo-broker-connector",
		},
	})
}

// TestRegistrySwitches sets values of the registry's chart.
func TestRegistrySwitches(t *testing.T) {
	const set = "StatefulSet/liqo-broker-registry/liqo-broker-registry"
	const deployment = "Deployment/liqo-broker-registry/liqo-broker-registry"
	const sqlite = "^StatefulSet|NetworkPolicy/.*-egress$"
	changes(t, registryChart, nil, map[string]change{
		"Elsewhere": {release: release{namespace: "markets"}, reason: "A cluster may have several, each in a namespace of its own.",
			removes: "/liqo-broker-registry/",
			adds: []string{
				"NetworkPolicy/markets/liqo-broker-registry", "NetworkPolicy/markets/liqo-broker-registry-egress",
				"PodDisruptionBudget/markets/liqo-broker-registry", "Service/markets/liqo-broker-registry",
				"Service/markets/liqo-broker-registry-metrics", "ServiceAccount/markets/liqo-broker-registry",
				"StatefulSet/markets/liqo-broker-registry",
			}, reworded: "kubectl -n markets exec statefulset/liqo-broker-registry"},
		"AnyUser": {release: release{set: anyUser + ",podSecurityContext.fsGroup=null"}, reason: "A cluster may choose the user.", object: set,
			has: `"securityContext":{"runAsNonRoot":true,"seccompProfile":{"type":"RuntimeDefault"}}`, hasNot: "65532"},
		"Pull": {release: release{set: "image.pullSecrets={mine}"}, reason: "Private registries need a Secret.", object: set,
			has: `"imagePullSecrets":[{"name":"mine"}]`},
		"Volume": {release: release{set: "persistence.size=20Gi,persistence.storageClassName=fast"}, reason: "People choose the volume.",
			object: set, has: `"resources":{"requests":{"storage":"20Gi"}},"storageClassName":"fast"`},
		"Claim": {release: release{set: "persistence.existingClaim=mine"}, reason: "A volume that is there is not made.", object: set,
			has: `"persistentVolumeClaim":{"claimName":"mine"}`, hasNot: "volumeClaimTemplates"},
		"PostgreSQL": {release: release{set: "replicas=3,postgres.existingSecret=db,postgres.secretKey=uri,key.existingSecret=key"},
			reason:  "The state is elsewhere.",
			removes: sqlite, adds: []string{deployment}, object: deployment, has: `"valueFrom":{"secretKeyRef":{"key":"uri","name":"db"}}`,
			hasNot: "sqlite", reworded: "exec deployment/liqo-broker-registry"},
		"Key": {release: release{set: "key.existingSecret=mine"}, reason: "A registry that moves brings its key.", object: set,
			has: `"--key-file=/etc/liqo-broker/key/registry.key"`, hasNot: `"--key-file=/var`},
		"Certificate": {release: release{set: "tls.existingSecret=mine"}, reason: "An ordinary certificate needs no key.", object: set,
			has: `"--tls-cert-file=/etc/liqo-broker/tls/tls.crt","--tls-private-key-file=/etc/liqo-broker/tls/tls.key"`, hasNot: "--key-file"},
		"Authorities": {release: release{set: "authorities.existingConfigMap=cas"}, reason: "Authorities let parties in.", object: set,
			has: `"--ca-file=/etc/liqo-broker/authorities/ca.crt"`},
		"Open": {release: release{set: "anonymous.read=true,autoApprove=true"}, reason: "Who opens it to all is told so.", object: set,
			has: `"--anonymous-read","--auto-approve"`, reworded: "Everybody who reaches the registry is let in"},
		"Flags": {
			release: release{set: "extraArgs={--max-offers=50}"}, reason: "Every flag can be given.", object: set, has: `"--max-offers=50"]`,
		},
		"LoadBalancer": {release: release{set: "service.type=LoadBalancer,service.nodePort=0,service.port=443"},
			reason: "Clouds have an address for it.",
			object: "Service/liqo-broker-registry/liqo-broker-registry", has: `"ports":[{"name":"api","port":443,"targetPort":"api"}]`},
		"Inside": {release: release{set: "service.type=ClusterIP"}, reason: "Something else passes connections on.",
			object: "Service/liqo-broker-registry/liqo-broker-registry", has: `"type":"ClusterIP"`, hasNot: "externalTrafficPolicy"},
		"NoNetworkPolicies": {
			release: release{set: "networkPolicies.enabled=false"}, reason: "Both network policies go.", removes: `^NetworkPolicy/`,
		},
		"NoBudget": {
			release: release{set: "podDisruptionBudget.enabled=false"}, reason: "The budget goes.", removes: `^PodDisruptionBudget/`,
		},
		"Monitor": {release: release{set: "podMonitor.enabled=true,podMonitor.interval=15s"}, reason: "The operator reads the metrics.",
			adds: []string{"PodMonitor/liqo-broker-registry/liqo-broker-registry"}, object: "PodMonitor/liqo-broker-registry/liqo-broker-registry",
			has: `"interval":"15s"`},
		"Dashboards": {release: release{set: "dashboards.enabled=true,dashboards.labels.team=a"}, reason: "Grafana finds it by a label.",
			adds:   []string{"ConfigMap/liqo-broker-registry/liqo-broker-registry-dashboard"},
			object: "ConfigMap/liqo-broker-registry/liqo-broker-registry-dashboard", has: `"team":"a"`},
	})
}

// TestRegistryRefusals holds that a typing error is refused before anything is applied.
func TestRegistryRefusals(t *testing.T) {
	refused(t, registryChart, map[string]refusal{
		"Unknown":    {release: release{set: "store.dsn=x"}, reason: "A DSN is in a Secret.", err: "store"},
		"Password":   {release: release{set: "postgres.password=x"}, reason: "And its password too.", err: "password"},
		"Replicas":   {release: release{set: "replicas=2"}, reason: "SQLite has one process.", err: "postgres.existingSecret"},
		"NoKey":      {release: release{set: "postgres.existingSecret=db"}, reason: "Replicas would have a key each.", err: "key.existingSecret"},
		"AccessMode": {release: release{set: "persistence.accessModes={ReadWriteMany}"}, reason: "One pod writes the file.", err: "accessModes"},
		"Size":       {release: release{set: "persistence.size=large"}, reason: "Quantities are numbers.", err: "size"},
		"Secret":     {release: release{set: "tls.existingSecret=A_B"}, reason: "Kubernetes has no such names.", err: "existingSecret"},
		"Anonymous":  {release: release{set: "anonymous.read=sometimes"}, reason: "A switch has two positions.", err: "read"},
		"Flag":       {release: release{set: "extraArgs={max-offers=5}"}, reason: "Flags have two dashes.", err: "extraArgs"},
		"OwnLabel": {
			release: release{set: `podLabels.app\.kubernetes\.io/name=x`}, reason: "The label selects the pods.", err: "app.kubernetes.io/name",
		},
	})
}
