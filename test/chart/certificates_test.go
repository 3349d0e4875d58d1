// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package chart

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// TestCertificatesOfThePage installs both charts with the values of the page about cert-manager: what the program of each reads is in the
// Secret that the Certificate of the page makes, in the namespace of its pods. The page names all programs that take a certificate.
func TestCertificatesOfThePage(t *testing.T) {
	files := filesOf(t, "docs/admin/certificates.md")
	for name, tc := range map[string]struct{ reason, chart, workload string }{
		"broker":   {"The values have the files in the pod.", ours, "Deployment/liqo-broker/liqo-broker"},
		"registry": {"A value is enough.", registryChart, "StatefulSet/liqo-broker-registry/liqo-broker-registry"},
	} {
		t.Run(name, func(t *testing.T) {
			made := decode(t, name, files[name+"/certificate.yaml"][0])[0]
			var values map[string]any
			if err := yaml.UnmarshalStrict([]byte(files[name+"/values.yaml"][0]), &values); err != nil {
				t.Fatal(err)
			}
			objects, _ := release{values: values}.render(t, load(t, tc.chart))
			workload := objects[tc.workload]
			if at(made, "metadata", "namespace") != at(workload, "metadata", "namespace") {
				t.Errorf("%s The Certificate is in namespace %v, and the pods in %v", tc.reason, at(made, "metadata", "namespace"),
					at(workload, "metadata", "namespace"))
			}
			mounted := map[string]string{} // The folder of each volume.
			mounts, _ := container(workload)["volumeMounts"].([]any)
			for _, m := range mounts {
				volume, _ := at(m, "name").(string)
				mounted[volume], _ = at(m, "mountPath").(string)
			}
			folder := ""
			volumes, _ := at(workload, "spec", "template", "spec", "volumes").([]any)
			for _, v := range volumes {
				if secret := at(v, "secret", "secretName"); secret != nil && secret == at(made, "spec", "secretName") {
					volume, _ := at(v, "name").(string)
					folder = mounted[volume]
				}
			}
			for flag, file := range map[string]string{"--tls-cert-file=": "tls.crt", "--tls-private-key-file=": "tls.key"} {
				if args := arguments(workload); folder == "" || !slices.Contains(args, flag+folder+"/"+file) {
					t.Errorf("%s No argument is %s%s/%s: %v", tc.reason, flag, folder, file, args)
				}
			}
		})
	}
	flags, err := os.ReadFile(filepath.Join(root, "docs/reference/flags.md"))
	if err != nil {
		t.Fatal(err)
	}
	if programs := strings.Count(string(flags), " --tls-private-key-file string"); programs != len(files)/2 {
		t.Errorf("%d programs take a certificate, and the page has %d", programs, len(files)/2)
	}
}
