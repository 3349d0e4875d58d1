// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package chart

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/yaml"
)

// strangers checks that Kubernetes knows every field of objects, and returns the kinds that it does not know.
func strangers(t *testing.T, objects map[string]object) []string {
	t.Helper()
	unknown := map[string]bool{}
	for key, o := range objects {
		kind := schema.FromAPIVersionAndKind(o["apiVersion"].(string), o["kind"].(string))
		typed, err := scheme.Scheme.New(kind)
		if err != nil {
			unknown[kind.Kind] = true
			continue
		}
		manifest, err := json.Marshal(o)
		if err != nil {
			t.Fatal(err)
		}
		if err := yaml.UnmarshalStrict(manifest, typed); err != nil {
			t.Errorf("%s: %v", key, err)
		}
	}
	return slices.Sorted(maps.Keys(unknown))
}

// podsOf returns the pods that objects make, by the keys of the objects.
func podsOf(t *testing.T, objects map[string]object) map[string]corev1.PodTemplateSpec {
	t.Helper()
	pods := map[string]corev1.PodTemplateSpec{}
	for key, o := range objects {
		var made appsv1.Deployment // Or something else with a template.
		if err := json.Unmarshal([]byte(text(t, o)), &made); err == nil && len(made.Spec.Template.Spec.Containers) > 0 {
			pods[key] = made.Spec.Template
		}
	}
	return pods
}

// TestManifests holds that Kubernetes knows what kubectl applies, that programs know the flags that they are given, and that what is
// mounted, selected and routed is there.
func TestManifests(t *testing.T) {
	for dir, tc := range map[string]struct {
		program  string
		policies int // How many network policies are about each pod.
	}{
		"deploy/connector":         {"connector", 1},
		"deploy/guard":             {"broker guard", 1},
		"deploy/transit":           {"network-manager transit", 1},
		"deploy/agent":             {"network-manager agent", 1},
		"deploy/registry":          {"registry", 2},
		"deploy/registry/postgres": {"registry", 1},
	} {
		t.Run(dir, func(t *testing.T) {
			objects := kustomized(t, filepath.Join(root, dir))
			if unknown := strangers(t, objects); len(unknown) > 0 {
				t.Errorf("kinds that are not checked: %v", unknown)
			}
			pods := podsOf(t, objects)
			if len(pods) != 1 {
				t.Fatalf("%d objects make pods", len(pods))
			}
			for key, pod := range pods {
				wellMade(t, key, tc.program, pod)
				routed(t, objects, pod, tc.policies)
			}
		})
	}
}

// helpOf returns the help of a program, of the page with all flags.
func helpOf(t *testing.T, program string) string {
	t.Helper()
	const file = "docs/reference/flags.md"
	page, err := os.ReadFile(filepath.Join(root, file))
	if err != nil {
		t.Fatal(err)
	}
	_, help, found := strings.Cut(string(page), "\n## "+program+"\n")
	if !found {
		t.Fatalf("%s has no section %s", file, program)
	}
	help, _, _ = strings.Cut(help, "\n## ")
	return help
}

// wellMade checks the flags, the mounts and the rights of a pod.
func wellMade(t *testing.T, key, program string, pod corev1.PodTemplateSpec) {
	t.Helper()
	help := helpOf(t, program)
	volumes := map[string]bool{"data": true} // Of a StatefulSet's claims.
	for _, v := range pod.Spec.Volumes {
		volumes[v.Name] = true
	}
	c := pod.Spec.Containers[0]
	for _, arg := range c.Args {
		flag, _, _ := strings.Cut(arg, "=")
		if strings.HasPrefix(flag, "--") && !regexp.MustCompile(`(?m)^ +(-., )?`+regexp.QuoteMeta(flag)+`\b`).MatchString(help) {
			t.Errorf("%s: %s has no flag %s", key, program, flag)
		}
	}
	for _, m := range c.VolumeMounts {
		if !volumes[m.Name] {
			t.Errorf("%s mounts %s, which is not there", key, m.Name)
		}
	}
	const container = `{"capabilities":{"drop":["ALL"]},"readOnlyRootFilesystem":true,"allowPrivilegeEscalation":false}`
	if rights := text(t, c.SecurityContext); rights != container {
		t.Errorf("%s has the rights %s, want %s", key, rights, container)
	}
	for _, want := range []string{`"runAsNonRoot":true`, `"runAsUser":65532`, `"seccompProfile":{"type":"RuntimeDefault"}`} {
		if rights := text(t, pod.Spec.SecurityContext); !strings.Contains(rights, want) {
			t.Errorf("the pod of %s has the rights %s, want %s", key, rights, want)
		}
	}
}

// routed checks that Services and network policies find a pod and its ports.
func routed(t *testing.T, objects map[string]object, pod corev1.PodTemplateSpec, policies int) {
	t.Helper()
	ports := map[string]bool{}
	for _, p := range pod.Spec.Containers[0].Ports {
		ports[p.Name] = true
	}
	about := 0
	for key, o := range objects {
		if strings.Contains(key, "/liqo/") {
			continue // Liqo's pods are not in the manifests.
		}
		var selected map[string]string
		var named []string
		switch o["kind"] {
		case "Service":
			var service corev1.Service
			if err := json.Unmarshal([]byte(text(t, o)), &service); err != nil {
				t.Fatal(err)
			}
			selected = service.Spec.Selector
			for _, p := range service.Spec.Ports {
				named = append(named, p.TargetPort.StrVal)
			}
		case "NetworkPolicy":
			var policy networkingv1.NetworkPolicy
			if err := json.Unmarshal([]byte(text(t, o)), &policy); err != nil {
				t.Fatal(err)
			}
			selected, about = policy.Spec.PodSelector.MatchLabels, about+1
			for _, from := range policy.Spec.Ingress {
				for _, port := range from.Ports {
					named = append(named, port.Port.StrVal)
				}
			}
		case "PodDisruptionBudget":
			var budget policyv1.PodDisruptionBudget
			if err := json.Unmarshal([]byte(text(t, o)), &budget); err != nil {
				t.Fatal(err)
			}
			selected = budget.Spec.Selector.MatchLabels
		default:
			continue
		}
		if !cmp.Equal(selected, map[string]string{"app.kubernetes.io/name": pod.Labels["app.kubernetes.io/name"]}) {
			t.Errorf("%s is about %v", key, selected)
		}
		for _, name := range named {
			if !ports[name] {
				t.Errorf("%s names the port %q, which the pod does not have", key, name)
			}
		}
	}
	if about != policies {
		t.Errorf("%d network policies, want %d", about, policies)
	}
}

// TestTwinSelectors holds that what the charts make selects no tenant namespaces of Liqo 1.x where it selects the namespaces of peers.
func TestTwinSelectors(t *testing.T) {
	for _, dir := range charts() {
		objects := everywhere(t, load(t, dir), "")
		found := 0
		for key, o := range objects {
			eachSelector(map[string]any(o), func(requirements []any) {
				all := text(t, requirements)
				if !strings.Contains(all, `{"key":"liqo.io/remote-cluster-id","operator":"Exists"}`) {
					return
				}
				found++
				if !strings.Contains(all, `{"key":"liqo.io/tenant-namespace","operator":"DoesNotExist"}`) {
					t.Errorf("%s: %s selects with %s", dir, key, all)
				}
			})
		}
		if (found > 0) != (dir == ours || dir == connector) { // The others do nothing there.
			t.Errorf("%s selects the namespaces of peers %d times", dir, found)
		}
	}
}

// eachSelector calls a function for what each label selector within a value requires.
func eachSelector(value any, call func(requirements []any)) {
	switch value := value.(type) {
	case map[string]any:
		if requirements, is := value["matchExpressions"].([]any); is {
			call(requirements)
		}
		for _, inner := range value {
			eachSelector(inner, call)
		}
	case []any:
		for _, inner := range value {
			eachSelector(inner, call)
		}
	}
}
