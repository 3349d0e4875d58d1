// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package chart

import (
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// transit is the key of the Deployment that a broker has with Liqo 1.x only.
const transit = "Deployment/liqo-broker-transit/liqo-broker-transit"

// crdFolders are where Liqo's modules have the definitions of its kinds, by the folder of ours that names the version.
func crdFolders(t *testing.T) map[string]string {
	t.Helper()
	return map[string]string{
		"0.9": filepath.Join(liqoModule(t, root), "deployments/liqo/crds"),
		"1":   filepath.Join(liqoModule(t, root+"/test/liqo1"), "deployments/liqo/charts/liqo-crds/crds"),
	}
}

// kindsOf returns the kinds that an API server has with the definitions of a folder, as Helm writes them.
func kindsOf(t *testing.T, folder string) (kinds []string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(folder, "*.yaml"))
	if err != nil || len(files) == 0 {
		t.Fatalf("%s has no definitions: %v", folder, err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, o := range decode(t, file, string(text)) {
			group, _ := at(o, "spec", "group").(string)
			kind, _ := at(o, "spec", "names", "kind").(string)
			versions, _ := at(o, "spec", "versions").([]any)
			for _, version := range versions {
				if name, _ := at(version, "name").(string); at(version, "served") == true {
					kinds = append(kinds, path.Join(group, name, kind))
				}
			}
		}
	}
	return kinds
}

// TestLines has the charts find out by Liqo's own definitions which line of its versions runs.
func TestLines(t *testing.T) {
	folders := crdFolders(t)
	old, current := kindsOf(t, folders["0.9"]), kindsOf(t, folders["1"])
	cases := map[string]struct {
		reason string
		release

		transit bool
		err     string // Parts of it, with a | between.
	}{
		"Liqo09": {reason: "A broker with Liqo 0.9 has no transit.", release: release{kinds: old}},
		"Liqo1":  {reason: "One with 1.x has it.", release: release{kinds: current}, transit: true},
		"Both": {reason: "Nobody guesses which one runs.", release: release{kinds: slices.Concat(old, current)},
			err: "the kinds of Liqo 0.9 and of Liqo 1.x|delete the definitions of the one that does not run"},
		"None": {reason: "Nor where there is none, as without an API server to ask.", release: release{kinds: []string{}},
			err: "set the value liqo.line to 0.9 or 1"},
		"Said09":   {reason: "People can say so.", release: release{kinds: []string{}, set: "liqo.line=0.9"}},
		"Said1":    {reason: "Also the other one.", release: release{kinds: []string{}, set: "liqo.line=1"}, transit: true},
		"Settled":  {reason: "And of two.", release: release{kinds: slices.Concat(old, current), set: "liqo.line=1"}, transit: true},
		"Number09": {reason: "In a file of values it is a number.", release: release{kinds: current, values: lineOf(0.9)}},
		"Number1":  {reason: "As the other one.", release: release{kinds: old, values: lineOf(1.0)}, transit: true},
		"Text1":    {reason: "Or a text.", release: release{kinds: old, values: lineOf("1")}, transit: true},
		"Unset":    {reason: "Who takes the value out, says nothing.", release: release{kinds: current, set: "liqo.line=null"}, transit: true},
	}
	c := load(t, ours)
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if tc.err != "" {
				_, err := tc.files(c)
				for part := range strings.SplitSeq(tc.err, "|") {
					if err == nil || !strings.Contains(err.Error(), part) {
						t.Errorf("%s got %v, want an error with %q", tc.reason, err, part)
					}
				}
				return
			}
			objects, _ := tc.render(t, c)
			_, is := objects[transit]
			_, asked := objects["Service/liqo-broker/liqo-broker-resource-plugin"]
			if is != tc.transit || asked == tc.transit {
				t.Errorf("%s there is a transit: %t, and a Service for Liqo 0.9: %t", tc.reason, is, asked)
			}
		})
	}
}

// lineOf returns values that say which line of Liqo's versions runs.
func lineOf(line any) map[string]any { return map[string]any{"liqo": map[string]any{"line": line}} }

// TestSwitches1 sets values of the broker's chart with Liqo 1.x.
func TestSwitches1(t *testing.T) {
	cases := map[string]change{
		"Allow": {release: release{set: "transit.allow={192.0.2.0/24,198.51.100.7/32}"}, reason: "People open what they need.", object: transit,
			has: `"--liqo-namespace=liqo","--allow=192.0.2.0/24","--allow=198.51.100.7/32"]`},
		"Closed": {reason: "Nothing is open by itself.", object: transit, has: `"--liqo-namespace=liqo"]`, hasNot: "--allow"},
		"Addresses": {release: release{set: "transit.maxAddresses=4000"}, reason: "A consumer may have many endpoints.", object: transit,
			has: `"--liqo-namespace=liqo","--max-addresses=4000"]`},
		"Replicas": {
			release: release{set: "transit.replicas=2,replicas=5,guard.replicas=3"}, reason: "Another one takes over.", object: transit,
			has: `"replicas":2`,
		},
		"Resources": {release: release{set: "transit.resources.limits.memory=256Mi,transit.resources.requests.cpu=50m"},
			reason: "Brokers with many peers need more.", object: transit,
			has: `"resources":{"limits":{"memory":"256Mi"},"requests":{"cpu":"50m","memory":"40Mi"}}`},
		"Memory": {release: release{set: "transit.memoryTarget=200MiB"}, reason: "And use it.", object: transit,
			has: `{"name":"GOMEMLIMIT","value":"200MiB"}`},
		"Registry": {release: release{set: "image.registry=registry.example:5000/mirror,image.tag=v9"},
			reason: "Images come from one place, and each program has its tag.", object: transit,
			has: `"image":"registry.example:5000/mirror/liqo-broker-network-manager:v0.1.0"`},
		"Image": {
			release: release{set: "transit.image.registry=registry.example,transit.image.repository=nm,transit.image.tag=v9"},
			reason:  "The transit has an image of its own.", object: transit, has: `"image":"registry.example/nm:v9"`,
		},
		"Digest": {release: release{set: "transit.image.digest=sha256:" + strings.Repeat("a", 64)}, reason: "A digest names one image for ever.",
			object: transit, has: `"image":"capacitorset/liqo-broker-network-manager@sha256:aaaa`},
		"Pull": {release: release{set: "transit.pullSecrets={mine}"}, reason: "Its namespace has a Secret of its own.", object: transit,
			has: `"imagePullSecrets":[{"name":"mine"}]`},
		"OthersPull": {release: release{set: "image.pullSecrets={a},guard.pullSecrets={b}"}, reason: "Others have others.", object: transit,
			hasNot: "imagePullSecrets"},
		"AnyUser": {release: release{set: anyUser}, reason: "A cluster may choose the user.", object: transit,
			has: `"securityContext":{"runAsNonRoot":true,"seccompProfile":{"type":"RuntimeDefault"}}`, hasNot: "65532"},
		"Rights": {release: release{set: "containerSecurityContext.capabilities.add={SYSLOG}"}, reason: "People know what they need.",
			object: transit, has: `"capabilities":{"add":["SYSLOG"],"drop":["ALL"]}`},
		"NoNetworkPolicies": {release: release{set: "networkPolicies.enabled=false"}, reason: "All network policies go.",
			removes: `^NetworkPolicy/`},
		"NoGuard": {release: release{set: "guard.enabled=false"}, reason: "Somebody else brings the guard, and the transit stays.",
			removes: ofGuard(t)},
		"Monitor": {release: release{set: "podMonitor.enabled=true"}, reason: "Nothing else has metrics of ours.",
			adds: []string{
				"ClusterRoleBinding/liqo-broker-metrics-reader", "PodMonitor/liqo-broker/liqo-broker",
				"Secret/liqo-broker/liqo-broker-metrics-reader", "ServiceAccount/liqo-broker/liqo-broker-metrics-reader",
			}},
		"Liqo": {release: release{set: "liqo.namespace=elsewhere"}, reason: "Liqo may run elsewhere.", removes: `/liqo/`,
			adds: []string{
				"Role/elsewhere/liqo-broker-guard", "Role/elsewhere/liqo-broker-identity", "Role/elsewhere/liqo-broker-transit",
				"RoleBinding/elsewhere/liqo-broker-guard", "RoleBinding/elsewhere/liqo-broker-identity", "RoleBinding/elsewhere/liqo-broker-transit",
			},
			object: transit, has: `"--liqo-namespace=elsewhere"]`},
		"Notes": {release: release{set: "crds.keep=false"}, reason: "People are told what is particular with Liqo 1.x.",
			object: "CustomResourceDefinition/providers.brokering.liqo.io", hasNot: "resource-policy",
			reworded: `(?s)^[^\n].*-n liqo-broker-transit get firewallconfigurations.*install --dry-run=server.*until they are restarted.*` +
				`Consumers and policies are deleted`},
		"Mode": {release: release{set: "modes.catalog=false,modes.aggregator=false"}, reason: "One mode is enough.",
			object: "Deployment/liqo-broker/liqo-broker", has: `"--with-orchestrator","--leader-elect"`},
	}
	changes(t, ours, []string{of1}, cases)
	allSet(t, ours, "transit.", cases)
}

// allSet holds that cases set each value of a chart whose name begins in a way.
func allSet(t *testing.T, dir, begins string, cases map[string]change) {
	t.Helper()
	readme, err := os.ReadFile(filepath.Join(dir, "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	var all strings.Builder
	for _, tc := range cases {
		all.WriteString("," + tc.set)
	}
	found := 0
	for line := range strings.Lines(string(readme)) {
		_, row, is := strings.Cut(line, "| `"+begins)
		name, _, ended := strings.Cut(row, "`")
		if !is || !ended || !strings.Contains(row, "` | `") {
			continue
		}
		found++
		if name = begins + name; !slices.ContainsFunc([]string{"=", ".", "["}, func(next string) bool {
			return strings.Contains(all.String(), ","+name+next)
		}) {
			t.Errorf("no case sets %s", name)
		}
	}
	if found == 0 {
		t.Errorf("%s has no values that begin with %q", dir, begins)
	}
}

// TestRefusals1 holds that what does not go with Liqo 1.x is refused before anything is applied.
func TestRefusals1(t *testing.T) {
	cases := map[string]refusal{
		"Kubernetes": {release: release{kubernetes: "v1.29.9"}, reason: "Without policies nothing bounds peers.", err: "must be 1.30 or later"},
		"NoPolicies": {release: release{set: "admissionPolicies.enabled=false"}, reason: "Nor if people do not want them.",
			err: "admissionPolicies.enabled auto or true"},
		"Catalog": {release: release{set: "modes.orchestrator=false,modes.aggregator=false"}, reason: "The webhooks would wait for nobody.",
			err: "kubectl apply -k deploy/catalog"},
		"Line":      {release: release{set: "liqo.line=2"}, reason: "There is no such line.", err: "/liqo/line"},
		"LineFull":  {release: release{set: "liqo.line=v1.2.0"}, reason: "A line is no version.", err: "/liqo/line"},
		"Address":   {release: release{set: "transit.allow={192.0.2.1}"}, reason: "A prefix has a length.", err: "/transit/allow/0"},
		"IPv6":      {release: release{set: "transit.allow={2001:db8::/64}"}, reason: "Liqo 1.2 has nothing but IPv4.", err: "/transit/allow/0"},
		"Addresses": {release: release{set: "transit.maxAddresses=-1"}, reason: "Nothing is without a bound.", err: "/transit/maxAddresses"},
		"None":      {release: release{set: "transit.replicas=0"}, reason: "Without it nothing keeps peers apart.", err: "/transit/replicas"},
		"Disabled":  {release: release{set: "transit.enabled=false"}, reason: "It is part of each broker.", err: "/transit"},
		"Resources": {release: release{set: "transit.resources.limit.memory=1Gi"}, reason: "Kubernetes knows limits.", err: "/transit/resources"},
		"Memory":    {release: release{set: "transit.memoryTarget=lots"}, reason: "Memory is counted.", err: "/transit/memoryTarget"},
		"Tag":       {release: release{set: "transit.image.tag=a:b"}, reason: "A tag is no image.", err: "/transit/image/tag"},
	}
	for name, tc := range cases {
		tc.kinds = []string{of1}
		cases[name] = tc
	}
	refused(t, ours, cases)
}

// TestAgentSwitches sets values of the agent's chart.
func TestAgentSwitches(t *testing.T) {
	const deployment = "Deployment/liqo-broker-agent/liqo-broker-agent"
	const spread = "topologySpreadConstraints[0].maxSkew=1,topologySpreadConstraints[0].topologyKey=zone," +
		"topologySpreadConstraints[0].whenUnsatisfiable=ScheduleAnyway"
	cases := map[string]change{
		"Namespace": {release: release{set: "namespace.create=true", namespace: "default"},
			reason: "The chart brings its namespace, which admits only restricted pods.",
			adds:   []string{"Namespace/liqo-broker-agent"}, object: "Namespace/liqo-broker-agent",
			has: `"pod-security.kubernetes.io/enforce":"restricted"`},
		"Image": {release: release{set: "image.registry=registry.example:5000/mirror,image.repository=nm,image.tag=v9"},
			reason: "Images come from where people say.", object: deployment, has: `"image":"registry.example:5000/mirror/nm:v9"`},
		"Digest": {release: release{set: "image.tag=v9,image.digest=sha256:" + strings.Repeat("a", 64)},
			reason: "A digest names one image for ever.", object: deployment, has: `"image":"capacitorset/liqo-broker-network-manager@sha256:aaaa`},
		"Pull": {release: release{set: "image.pullPolicy=Always,image.pullSecrets={mine}"}, reason: "Private registries need a Secret.",
			object: deployment, has: `"imagePullPolicy":"Always"`},
		"PullSecret": {release: release{set: "image.pullSecrets={mine}"}, reason: "Pods name it.",
			object: deployment, has: `"imagePullSecrets":[{"name":"mine"}]`},
		"Broker": {release: release{set: "brokers[0].clusterID=milan"}, reason: "The agent reads one Secret of the broker's tenant namespace.",
			adds:   []string{"Role/liqo-tenant-milan/liqo-broker-agent", "RoleBinding/liqo-tenant-milan/liqo-broker-agent"},
			object: "Role/liqo-tenant-milan/liqo-broker-agent", has: `"resourceNames":["kubeconfig-controlplane-milan"]`,
			reworded: `kubectl annotate foreignclusters.core.liqo.io milan brokering.liqo.io/broker=true\n`},
		"Brokers": {release: release{set: "brokers[0].clusterID=milan,brokers[1].clusterID=rome,brokers[1].tenantNamespace=tenants," +
			"brokers[1].secret=mine"}, reason: "There may be several, which people have named otherwise.",
			adds: []string{
				"Role/liqo-tenant-milan/liqo-broker-agent", "RoleBinding/liqo-tenant-milan/liqo-broker-agent", "Role/tenants/liqo-broker-agent",
				"RoleBinding/tenants/liqo-broker-agent",
			},
			object: "Role/tenants/liqo-broker-agent", has: `"resourceNames":["mine"]`,
			reworded: `(?s)io milan brokering.liqo.io/broker=true\n.*io rome brokering.liqo.io/broker=true\n.*io rome brokering.liqo.io/broker-\n`},
		"NoBroker": {reason: "Who names none is told what is missing.", reworded: `It knows no broker yet(?s).*kubectl liqo-broker prepare`},
		"Flags": {
			release: release{set: "extraArgs={--log-level=debug}"}, reason: "Every flag can be given.", object: deployment,
			has: `"--liqo-namespace=liqo","--log-level=debug"]`,
		},
		"Liqo": {release: release{set: "liqo.namespace=elsewhere"}, reason: "Liqo may run elsewhere.", removes: `/liqo/`,
			adds:   []string{"Role/elsewhere/liqo-broker-agent", "RoleBinding/elsewhere/liqo-broker-agent"},
			object: deployment, has: `"--liqo-namespace=elsewhere"`},
		"Replicas": {release: release{set: "replicas=3"}, reason: "More can take over.", object: deployment, has: `"replicas":3`},
		"Stopped":  {release: release{set: "replicas=0"}, reason: "It can be stopped.", object: deployment, has: `"replicas":0`},
		"Resources": {
			release: release{set: "resources.limits.memory=256Mi,memoryTarget=200MiB"}, reason: "Consumers with many pods need more.",
			object: deployment, has: `"limits":{"memory":"256Mi"}`,
		},
		"Memory": {release: release{set: "memoryTarget=200MiB"}, reason: "And use it.", object: deployment,
			has: `{"name":"GOMEMLIMIT","value":"200MiB"}`},
		"AnyUser": {release: release{set: anyUser}, reason: "A cluster may choose the user.", object: deployment,
			has: `"securityContext":{"runAsNonRoot":true,"seccompProfile":{"type":"RuntimeDefault"}}`, hasNot: "65532"},
		"Rights": {release: release{set: "containerSecurityContext.capabilities.add={SYSLOG}"}, reason: "People know what they need.",
			object: deployment, has: `"capabilities":{"add":["SYSLOG"],"drop":["ALL"]}`},
		"Marks": {release: release{set: "podAnnotations.team=a,podLabels.cost=b"}, reason: "Pods have what people write on them.",
			object: deployment, has: `"annotations":{"team":"a"},"labels":{"app.kubernetes.io/name":"liqo-broker-agent","cost":"b"}`},
		"Node": {release: release{set: "nodeSelector.disk=ssd,priorityClassName=system-cluster-critical"},
			reason: "It goes where people want it.", object: deployment,
			has: `"nodeSelector":{"disk":"ssd"},"priorityClassName":"system-cluster-critical"`},
		"Taint": {release: release{set: "tolerations[0].key=infra"}, reason: "Also where others do not.", object: deployment,
			has: `"tolerations":[{"key":"infra"}]`},
		"Affinity": {release: release{set: "affinity.podAntiAffinity.a=b"}, reason: "And not where others are.", object: deployment,
			has: `"affinity":{"podAntiAffinity":{"a":"b"}}`},
		"Spread": {release: release{set: spread}, reason: "Replicas are spread as people say.", object: deployment,
			has: `"topologySpreadConstraints":[{"maxSkew":1,"topologyKey":"zone","whenUnsatisfiable":"ScheduleAnyway"}]`},
		"NoNetworkPolicies": {
			release: release{set: "networkPolicies.enabled=false"}, reason: "The network policy goes.", removes: `^NetworkPolicy/`,
		},
		"Unsealed": {
			release: release{set: "systemNamespaces=false"}, reason: "Another release brings it.",
			removes: `^ValidatingAdmissionPolicy(Binding)?/system-namespaces`,
		},
	}
	changes(t, agentChart, nil, cases)
	allSet(t, agentChart, "", cases)
}

// TestAgentReads holds that the agent may do at each broker what kubectl liqo-broker prepare lets it do, and nothing else. The plugin's own
// test compares what that makes with the same file.
func TestAgentReads(t *testing.T) {
	const file = root + "/pkg/install/testdata/readers.yaml"
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]object{}
	for _, o := range decode(t, file, string(text)) {
		want[o.key()] = o
	}
	c := load(t, agentChart)
	before, _ := release{}.render(t, c)
	got, _ := release{set: "brokers[0].clusterID=milan"}.render(t, c)
	maps.DeleteFunc(got, func(key string, _ object) bool { return before[key] != nil })
	for key := range got {
		adapt(t, c, key, got[key])
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-prepare +chart\n%s", diff)
	}
}

// TestNamesOfLiqo1 holds that Liqo calls what the chart takes for granted as the chart does: the tenant namespace of a peer, and the Secret
// with the credentials there.
func TestNamesOfLiqo1(t *testing.T) {
	module := liqoModule(t, root+"/test/liqo1")
	for file, want := range map[string]string{
		"pkg/tenantNamespace/const.go":                                             `NamePrefix = "liqo-tenant"`,
		"pkg/liqo-controller-manager/authentication/forge/identity.go":             `return "controlplane-" + string(remoteClusterID)`,
		"pkg/liqo-controller-manager/authentication/forge/kubeconfig.go":           `return "kubeconfig-" + identity.Name`,
		"deployments/liqo/charts/liqo-crds/crds/core.liqo.io_foreignclusters.yaml": "plural: foreignclusters\n",
	} {
		if text, err := os.ReadFile(filepath.Join(module, file)); err != nil || !strings.Contains(string(text), want) {
			t.Errorf("Liqo's %s has no %s: %v", file, want, err)
		}
	}
}

// TestAgentRefusals holds that a typing error is refused before anything is applied.
func TestAgentRefusals(t *testing.T) {
	refused(t, agentChart, map[string]refusal{
		"Unknown":  {release: release{set: "broker=milan"}, reason: "A value that nothing reads is a typing error.", err: "broker"},
		"Nameless": {release: release{set: "brokers[0].secret=a"}, reason: "A broker has an ID.", err: "clusterID"},
		"Broker":   {release: release{set: "brokers[0].id=milan"}, reason: "Also inside.", err: "id"},
		"Text":     {release: release{set: "brokers={milan}"}, reason: "A broker is more than its ID.", err: "brokers"},
		"ID":       {release: release{set: "brokers[0].clusterID=Milan"}, reason: "Liqo has no such IDs.", err: "clusterID"},
		"Replicas": {release: release{set: "replicas=-1"}, reason: "Replicas are counted.", err: "replicas"},
		"Flag":     {release: release{set: "extraArgs={log-level=debug}"}, reason: "Flags have two dashes.", err: "extraArgs"},
		"Right":    {release: release{set: "podSecurityContext.runAsUsr=1"}, reason: "Kubernetes does not know it.", err: "runAsUsr"},
		"OwnLabel": {
			release: release{set: `podLabels.app\.kubernetes\.io/name=x`}, reason: "The label selects the pods.", err: "app.kubernetes.io/name",
		},
		"Namespace": {release: release{namespace: "default"}, reason: "A policy bounds one account.", err: "--namespace liqo-broker-agent"},
		"Liqo09":    {release: release{kinds: []string{of09}}, reason: "The agent knows no other Liqo.", err: "a consumer with Liqo 1.x"},
		"Kubernetes": {
			release: release{kubernetes: "v1.29.9"}, reason: "Without policies nothing bounds the agent.", err: "1.30",
		},
	})
}
