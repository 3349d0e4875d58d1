// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"path/filepath"
	"regexp"
)

// chart is a Helm chart, and what of it is generated.
type chart struct {
	// folder has it.
	folder string
	// labels is the name of the template with the labels of Helm's objects.
	labels string
	// sources are its manifests.
	sources []source
	// monitoring are patterns below deploy/monitoring of what is copied as it is.
	monitoring []string
	// crds is the pattern of its CRDs, and images are those that its pods run.
	crds   string
	images []string
	// substitutes are the places that depend on a namespace.
	substitutes []substitute
}

// generated is the folder of generated templates. Nothing else is in it.
func (c chart) generated() string { return filepath.Join(c.folder, "templates/generated") }

// source is a group of manifests of which each becomes a template.
type source struct {
	files  string   // A pattern.
	except []string // Names of files that match and are none of the group.
	prefix string   // Of the template's name.
	// when is the condition under which the objects are there; always if empty.
	when string
	// keeps lets the objects stay when the release is uninstalled, unless crds.keep is false.
	keeps bool
	// substitutes come before those of the chart.
	substitutes []substitute
}

// substitute is a text that becomes another one.
type substitute struct {
	from *regexp.Regexp
	to   string
}

// Liqo may run in any namespace.
var (
	inLiqo   = substitute{regexp.MustCompile(`(?m)^( *namespace:) liqo$`), `${1} {{ .Values.liqo.namespace }}`}
	fromLiqo = substitute{regexp.MustCompile(`(?m)^( *kubernetes\.io/metadata\.name:) liqo$`), `${1} {{ .Values.liqo.namespace }}`}
)

// systemNamespaces is what guards, brokers and consumers with Liqo 1.x have in common.
const systemNamespaces = "deploy/guard/policies/system-namespaces/system-namespaces.yaml"

// guardSources are the manifests of the guard, which every chart brings that has peers, with the values guard and podSecurity.
func guardSources(admission string) []source {
	const enabled = ".Values.guard.enabled"
	policies := "and " + enabled + ` (eq (include "` + admission + `" .) "true")`
	return []source{
		{files: "deploy/guard/*.yaml", prefix: "guard-", when: enabled},
		{files: "deploy/guard/networkpolicy*.yaml", prefix: "guard-", when: "and " + enabled + " .Values.networkPolicies.enabled"},
		{files: "deploy/guard/policies/*.yaml", prefix: "guard-policy-", when: policies},
		{files: systemNamespaces, prefix: "guard-policy-", when: policies},
		{files: "deploy/guard/policies/pod-security.yaml", prefix: "guard-policy-", when: policies + ` (ne .Values.podSecurity "privileged")`},
	}
}

// guardSubstitutes are what of the guard has values, besides.
func guardSubstitutes(image string) []substitute {
	return []substitute{
		{regexp.MustCompile(`(?m)^(          image:) capacitorset/liqo-broker #.*$`), `${1} {{ include "` + image + `" . }}`},
		{regexp.MustCompile(`(?m)^  replicas: 1 #.*$`), `  replicas: {{ .Values.guard.replicas }}`},
		// Pods are replaced when the level changes, which they read at their start.
		{regexp.MustCompile(`(?m)^(    metadata:\n)(      labels:\n        app\.kubernetes\.io/name: liqo-broker-guard)$`), `${1}      annotations:
        brokering.liqo.io/pod-security: {{ .Values.podSecurity }}
${2}`},
		{regexp.MustCompile(`(?m)^  level: baseline$`), `  level: {{ .Values.podSecurity }}`},
		{regexp.MustCompile(`(?m)^(            - --liqo-namespace)=liqo$`), `${1}={{ .Values.liqo.namespace }}`},
		{regexp.MustCompile(`(?m)^      securityContext:\n(        .*\n)+`), "      securityContext:\n" +
			"        {{- toYaml .Values.podSecurityContext | nindent 8 }}\n"},
		{regexp.MustCompile(`(?m)^          securityContext:\n(            .*\n)+`), "          securityContext:\n" +
			"            {{- toYaml .Values.containerSecurityContext | nindent 12 }}\n"},
		pulling("guard"),
	}
}

// The chart of a broker is for two lines of Liqo's versions, of which one runs.
const (
	onLiqo09 = `eq (include "liqo-broker.line" .) "0.9"`
	onLiqo1  = `eq (include "liqo-broker.line" .) "1"`
)

// brokerSources are the manifests of the broker's chart besides the guard. What is beside Liqo 0.9's network manager, and what that Liqo
// asks, is not there with 1.x, and the transit is there only with 1.x.
func brokerSources() []source {
	return []source{
		{files: "deploy/guard/rbac-network-manager.yaml", prefix: "guard-", when: "and .Values.guard.enabled (" + onLiqo09 + ")"},
		{
			files: "deploy/guard/networkpolicy-network-manager.yaml", prefix: "guard-",
			when: "and .Values.guard.enabled .Values.networkPolicies.enabled (" + onLiqo09 + ")",
		},
		{files: "deploy/crds/brokering.liqo.io_*.yaml", prefix: "crd-", when: ".Values.crds.install", keeps: true},
		{files: "deploy/broker/*rbac*.yaml"},
		{files: "deploy/broker/rbac-network-manager.yaml", when: onLiqo09},
		{files: "deploy/broker/api.yaml"},
		{files: "deploy/broker/services.yaml"},
		{files: "deploy/broker/plugin.yaml", when: onLiqo09},
		{files: "deploy/broker/webhook.yaml"},
		{files: "deploy/broker/people.yaml", when: ".Values.aggregatedRoles.enabled"},
		{files: "deploy/broker/disruption.yaml", when: ".Values.podDisruptionBudget.enabled"},
		{files: "deploy/broker/networkpolicy*.yaml", when: ".Values.networkPolicies.enabled"},
		{files: "deploy/admission/*.yaml", prefix: "admission-", when: `eq (include "liqo-broker.admission" .) "true"`},
		{files: "deploy/transit/*.yaml", prefix: "transit-", when: onLiqo1, substitutes: transitSubstitutes()},
		{files: "deploy/transit/networkpolicy.yaml", prefix: "transit-", when: "and .Values.networkPolicies.enabled (" + onLiqo1 + ")"},
	}
}

// transitSubstitutes are what of the transit has values of its own.
func transitSubstitutes() []substitute {
	return []substitute{
		{regexp.MustCompile(`(?m)^(          image:) capacitorset/\S+ #.*$`), `${1} {{ include "liqo-broker.transitImage" . }}`},
		{regexp.MustCompile(`(?m)^  replicas: 1 #.*$`), `  replicas: {{ .Values.transit.replicas }}`},
		{regexp.MustCompile(`(?m)^(            - --liqo-namespace)=liqo$`), `${1}={{ .Values.liqo.namespace }}
            {{- range .Values.transit.allow }}
            - --allow={{ . }}
            {{- end }}
            {{- with .Values.transit.maxAddresses }}
            - --max-addresses={{ . }}
            {{- end }}`},
		{regexp.MustCompile(`(?m)^(              value:) 96MiB$`), `${1} {{ .Values.transit.memoryTarget }}`},
		{regexp.MustCompile(`(?m)^          resources:\n(            .*\n)+`), "          resources:\n" +
			"            {{- toYaml .Values.transit.resources | nindent 12 }}\n"},
		pulling("transit"),
	}
}

// pulling has the pods of a program pull by the Secrets that its value names.
func pulling(program string) substitute {
	return substitute{regexp.MustCompile(`(?m)^      serviceAccountName: liqo-broker-` + program + `$`), `${0}
      {{- with .Values.` + program + `.pullSecrets }}
      imagePullSecrets:
        {{- range . }}
        - name: {{ . }}
        {{- end }}
      {{- end }}`}
}

// Templates of Namespaces, of pods, and of Services that have values are written by hand. Of several sources of a chart with the same
// manifest the last one counts.
var charts = []chart{
	{
		// The broker's own namespace is always liqo-broker: the certificate of its webhooks is for that one (ServerName in
		// pkg/webhook/announcer.go).
		folder: "deploy/chart", labels: "liqo-broker.labels",
		crds: "deploy/crds/brokering.liqo.io_*.yaml", images: []string{"liqo-broker", "liqo-broker-network-manager"},
		sources: append(guardSources("liqo-broker.admission"), brokerSources()...),
		monitoring: []string{
			"dashboards/consumer.json", "dashboards/overview.json", "dashboards/provider.json", "rules-broker.yaml",
		},
		substitutes: append(guardSubstitutes("liqo-broker.image"), []substitute{
			inLiqo, fromLiqo,
			{regexp.MustCompile(`request\.namespace == 'liqo'`), `request.namespace == '{{ .Values.liqo.namespace }}'`},
		}...),
	},
	{
		// A cluster has one connector, which is always in the same namespace: its key is there.
		folder: "deploy/chart-connector", labels: "liqo-broker-connector.labels",
		crds: "deploy/connector/crds/brokering.liqo.io_*.yaml", images: []string{"liqo-broker-connector", "liqo-broker"},
		sources: append(guardSources("liqo-broker-connector.admission"), []source{
			{files: "deploy/connector/crds/brokering.liqo.io_*.yaml", prefix: "crd-", when: ".Values.crds.install", keeps: true},
			{files: "deploy/connector/*.yaml", except: []string{"namespace.yaml", "deployment.yaml", "services.yaml"}},
			{files: "deploy/connector/people.yaml", when: ".Values.aggregatedRoles.enabled"},
			{files: "deploy/connector/networkpolicy.yaml", when: ".Values.networkPolicies.enabled"},
		}...),
		monitoring:  []string{"dashboards/trade.json", "rules-connector.yaml"},
		substitutes: append(guardSubstitutes("liqo-broker-connector.guardImage"), inLiqo, fromLiqo),
	},
	{
		// A consumer with Liqo 1.x has one agent, always in the same namespace: the policy that bounds it names its account.
		folder: "deploy/chart-agent", labels: "liqo-broker-agent.labels", images: []string{"liqo-broker-network-manager"},
		sources: []source{
			{files: "deploy/agent/*.yaml", except: []string{"namespace.yaml", "deployment.yaml"}},
			{files: "deploy/agent/networkpolicy.yaml", when: ".Values.networkPolicies.enabled"},
			{files: systemNamespaces, prefix: "policy-", when: `eq (include "liqo-broker-agent.systemNamespaces" .) "true"`},
		},
		substitutes: []substitute{inLiqo},
	},
	{
		// A cluster may have several registries, each in a namespace of its own.
		folder: "deploy/chart-registry", labels: "liqo-broker-registry.labels", images: []string{"liqo-broker-registry"},
		sources: []source{
			{files: "deploy/registry/common/serviceaccount.yaml"},
			{files: "deploy/registry/common/disruption.yaml", when: ".Values.podDisruptionBudget.enabled"},
			{files: "deploy/registry/common/networkpolicy.yaml", when: ".Values.networkPolicies.enabled"},
			{files: "deploy/registry/networkpolicy-egress.yaml", when: "and .Values.networkPolicies.enabled (not .Values.postgres.existingSecret)"},
		},
		monitoring:  []string{"dashboards/registry.json", "rules-registry.yaml"},
		substitutes: []substitute{{regexp.MustCompile(`(?m)^( *namespace:) liqo-broker-registry$`), `${1} {{ .Release.Namespace }}`}},
	},
}
