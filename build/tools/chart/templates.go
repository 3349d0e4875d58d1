// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"regexp"
	"strings"
)

// generated is the folder of generated templates. Nothing else is in it.
const generated = "deploy/chart/templates/generated"

// source is a group of manifests of which each becomes a template.
type source struct {
	files  string // A pattern.
	prefix string // Of the template's name.
	// when is the condition under which the objects are there; always if empty.
	when string
	// keeps lets the objects stay when the release is uninstalled, unless crds.keep is false.
	keeps bool
}

// The templates of the Namespace and of the Deployment are written by hand.
var sources = []source{
	{files: "deploy/crds/brokering.liqo.io_*.yaml", prefix: "crd-", when: ".Values.crds.install", keeps: true},
	{files: "deploy/broker/*rbac*.yaml"},
	{files: "deploy/broker/api.yaml"},
	{files: "deploy/broker/services.yaml"},
	{files: "deploy/broker/webhook.yaml"},
	{files: "deploy/broker/people.yaml", when: ".Values.aggregatedRoles.enabled"},
	{files: "deploy/broker/disruption.yaml", when: ".Values.podDisruptionBudget.enabled"},
	{files: "deploy/broker/networkpolicy*.yaml", when: ".Values.networkPolicies.enabled"},
	{files: "deploy/admission/*.yaml", prefix: "admission-", when: `eq (include "liqo-broker.admission" .) "true"`},
	// Of several sources with the same manifest the last one counts.
	{
		files: "deploy/admission/pod-security.yaml", prefix: "admission-",
		when: `and (eq (include "liqo-broker.admission" .) "true") (ne .Values.podSecurity "privileged")`,
	},
}

// Helm's own labels follow the one that each object has.
var labels = regexp.MustCompile(`(?m)^(metadata:\n(?:  .*\n)*?  labels:\n    app\.kubernetes\.io/name: \S+\n)`)

// substitutes are the places that depend on the namespace of Liqo. The broker's own namespace is always liqo-broker: the
// certificate of its webhooks is for that one (ServerName in pkg/webhook/announcer.go).
var substitutes = []struct {
	from *regexp.Regexp
	to   string
}{
	{regexp.MustCompile(`(?m)^( *namespace:) liqo$`), `${1} {{ .Values.liqo.namespace }}`},
	{regexp.MustCompile(`(?m)^( *kubernetes\.io/metadata\.name:) liqo$`), `${1} {{ .Values.liqo.namespace }}`},
	{regexp.MustCompile(`request\.namespace == 'liqo'`), `request.namespace == '{{ .Values.liqo.namespace }}'`},
}

const keep = `    {{- if .Values.crds.keep }}
    helm.sh/resource-policy: keep
    {{- end }}
`

// template returns the template that renders the objects of a manifest.
func (s source) template(from, text string) string {
	text = strings.ReplaceAll(text, "{{", `{{ "{{" }}`)
	text = labels.ReplaceAllString(text, "${1}    {{- include \"liqo-broker.labels\" . | nindent 4 }}\n")
	for _, substitute := range substitutes {
		text = substitute.from.ReplaceAllString(text, substitute.to)
	}
	if s.keeps {
		text = strings.Replace(text, "\n  annotations:\n", "\n  annotations:\n"+keep, 1)
	}
	head := fmt.Sprintf("{{- /* Generated from %s by make generate. */}}\n", from)
	if s.when == "" {
		return head + text
	}
	return fmt.Sprintf("%s{{- if %s }}\n%s{{- end }}\n", head, s.when, text)
}
