// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package chart

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// TestRights holds that the page about policies of clusters says of each container of ours as whom it runs and what it may do.
func TestRights(t *testing.T) {
	page, err := os.ReadFile(filepath.Join(root, "docs/compatibility.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(page), "\n## OpenShift and policy engines\n")
	section, _, _ = strings.Cut(section, "\n## ")
	stock := readStock(t)
	before := podsOf(t, composed(t, "", stock))
	objects := composed(t, filepath.Join(root, "deploy/liqo/component/broker"), stock)
	maps.Copy(objects, kustomized(t, filepath.Join(root, "deploy"), filepath.Join(root, "deploy/connector"),
		filepath.Join(root, "deploy/registry"), filepath.Join(root, "deploy/transit"), filepath.Join(root, "deploy/agent")))
	seen := 0
	for key, pod := range podsOf(t, objects) {
		ofLiqo := before[key].Spec
		for _, c := range slices.Concat(pod.Spec.InitContainers, pod.Spec.Containers) {
			if slices.ContainsFunc(ofLiqo.Containers, func(of corev1.Container) bool { return of.Name == c.Name }) {
				continue
			}
			seen++
			row := fmt.Sprintf("| `%s` | ", c.Name)
			_, said, found := strings.Cut(section, "\n"+row)
			said, _, _ = strings.Cut(said, "\n")
			if want := rightsOf(pod.Spec, c); !found || !strings.HasSuffix(said, want) {
				t.Errorf("of %s of %s the page says %q, want %q", c.Name, key, said, want)
			}
			rights := c.SecurityContext
			seccomp := rights.SeccompProfile
			if seccomp == nil {
				seccomp = pod.Spec.SecurityContext.SeccompProfile
			}
			if !*rights.ReadOnlyRootFilesystem || *rights.AllowPrivilegeEscalation || seccomp.Type != corev1.SeccompProfileTypeRuntimeDefault {
				t.Errorf("%s of %s may do %v", c.Name, key, rights)
			}
		}
	}
	if rows := strings.Count(section, "\n| `"); rows != seen || seen == 0 {
		t.Errorf("the page has %d containers, and there are %d", rows, seen)
	}
}

// rightsOf says as whom a container runs and what it may do, as the page does.
func rightsOf(pod corev1.PodSpec, c corev1.Container) string {
	user := c.SecurityContext.RunAsUser
	if user == nil {
		user = pod.SecurityContext.RunAsUser
	}
	capabilities := "none"
	if added := c.SecurityContext.Capabilities.Add; len(added) > 0 {
		capabilities = fmt.Sprintf("`%s`", added[0])
	}
	if *user != 0 && capabilities == "none" {
		return fmt.Sprintf("| %d, or any but 0 | none | restricted |", *user)
	}
	return fmt.Sprintf("| %d | %s | privileged |", *user, capabilities)
}

// TestGateways holds that the examples of Gateways pass TLS on, to Services and ports that there are.
func TestGateways(t *testing.T) {
	services := kustomized(t, filepath.Join(root, "deploy"), filepath.Join(root, "deploy/connector"), filepath.Join(root, "deploy/registry"))
	for file, port := range map[string]float64{"broker.yaml": 8000, "connector.yaml": 8446, "registry.yaml": 8443} {
		manifest, err := os.ReadFile(filepath.Join(root, "deploy/examples/gateway", file))
		if err != nil {
			t.Fatal(err)
		}
		named := "/liqo-broker" + map[string]string{"connector.yaml": "-connector", "registry.yaml": "-registry"}[file] + "/liqo-broker-tls"
		objects := decoded(t, string(manifest))
		gateway, route := objects["Gateway"+named], objects["TLSRoute"+named]
		if len(objects) != 2 || gateway == nil || route == nil {
			t.Fatalf("%s has other objects than wanted: %v", file, objects)
		}
		listener := at(gateway, "spec", "listeners", "0")
		if at(listener, "tls", "mode") != "Passthrough" || at(listener, "protocol") != "TLS" ||
			at(listener, "hostname") != at(route, "spec", "hostnames", "0") ||
			at(route, "spec", "parentRefs", "0", "name") != at(gateway, "metadata", "name") {
			t.Errorf("%s: the listener is %v, and the route %v", file, listener, route)
		}
		to := at(route, "spec", "rules", "0", "backendRefs", "0")
		service := services["Service/"+at(route, "metadata", "namespace").(string)+"/"+at(to, "name").(string)]
		if at(to, "port") != port || at(service, "spec", "ports", "0", "port") != port {
			t.Errorf("%s leads to %v, and the Service is %v", file, to, service)
		}
	}
}
