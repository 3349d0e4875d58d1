// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"os"
	"strings"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"sigs.k8s.io/yaml"
)

// Webhooks reads the webhooks in a file, mutating and validating ones, which differ in what the former may do besides. The names are
// without the domain of this project.
func Webhooks(tb testing.TB, file string) []admissionregistrationv1.ValidatingWebhook {
	tb.Helper()
	manifest, err := os.ReadFile(file)
	if err != nil {
		tb.Fatal(err)
	}
	var all []admissionregistrationv1.ValidatingWebhook
	for document := range strings.SplitSeq(string(manifest), "\n---\n") {
		var configuration struct {
			Webhooks []admissionregistrationv1.ValidatingWebhook
		}
		if err := yaml.Unmarshal([]byte(document), &configuration); err != nil {
			tb.Fatal(err)
		}
		all = append(all, configuration.Webhooks...)
	}
	for i := range all {
		all[i].Name = strings.TrimSuffix(all[i].Name, ".brokering.liqo.io")
	}
	return all
}
