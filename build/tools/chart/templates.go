// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// Helm's own labels follow the one that each object has.
var labels = regexp.MustCompile(`(?m)^(metadata:\n(?:  .*\n)*?  labels:\n    app\.kubernetes\.io/name: \S+\n)`)

const keep = `    {{- if .Values.crds.keep }}
    helm.sh/resource-policy: keep
    {{- end }}
`

// template returns the template that renders the objects of a manifest.
func (c chart) template(s source, from, text string) string {
	text = strings.ReplaceAll(text, "{{", `{{ "{{" }}`)
	text = labels.ReplaceAllString(text, "${1}    {{- include \""+c.labels+"\" . | nindent 4 }}\n")
	for _, substitute := range slices.Concat(s.substitutes, c.substitutes) {
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
