// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package chart

import (
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"
)

// A change is what values do to the objects.
type change struct {
	release

	reason   string
	adds     []string // Keys of objects.
	removes  string   // A pattern for keys of objects; all that match are gone.
	object   string   // The key of an object ...
	has      string   // ... and what must be in it, ...
	hasNot   string   // ... and what must not.
	reworded string   // A pattern of the notes.
}

// changes sets values of a chart one by one, on an API server with kinds of Liqo, and looks at what becomes of the objects.
func changes(t *testing.T, dir string, kinds []string, cases map[string]change) {
	t.Helper()
	c := load(t, dir)
	before, _ := release{kinds: kinds}.render(t, c)
	for name, tc := range cases {
		tc.kinds = kinds
		t.Run(name, func(t *testing.T) {
			got, notes := tc.render(t, c)
			var want []string
			gone := regexp.MustCompile(tc.removes)
			for key := range before {
				if tc.removes == "" || !gone.MatchString(key) {
					want = append(want, key)
				}
			}
			if tc.removes != "" && len(want) == len(before) {
				t.Errorf("nothing matches %s", tc.removes)
			}
			want = append(want, tc.adds...)
			slices.Sort(want)
			if diff := cmp.Diff(want, slices.Sorted(maps.Keys(got))); diff != "" {
				t.Errorf("%s -want +got\n%s", tc.reason, diff)
			}
			if o := text(t, got[tc.object]); !strings.Contains(o, tc.has) || tc.hasNot != "" && strings.Contains(o, tc.hasNot) {
				t.Errorf("%s %s is\n%s\nwant %s and not %s", tc.reason, tc.object, o, tc.has, tc.hasNot)
			}
			if !regexp.MustCompile(tc.reworded).MatchString(notes) {
				t.Errorf("%s the notes do not say %s:\n%s", tc.reason, tc.reworded, notes)
			}
		})
	}
}

// anyUser are the values with which the cluster chooses as whom pods run.
const anyUser = "podSecurityContext.runAsUser=null,podSecurityContext.runAsGroup=null"

// TestSwitches sets values of the broker's chart.
func TestSwitches(t *testing.T) {
	const deployment = "Deployment/liqo-broker/liqo-broker"
	const guard = "Deployment/liqo-broker-guard/liqo-broker-guard"
	monitor := []string{
		"ClusterRoleBinding/liqo-broker-metrics-reader", "PodMonitor/liqo-broker/liqo-broker",
		"PodMonitor/liqo-broker/liqo-broker-network-manager", "PodMonitor/liqo-broker/liqo-broker-virtual-kubelet",
		"Secret/liqo-broker/liqo-broker-metrics-reader", "ServiceAccount/liqo-broker/liqo-broker-metrics-reader",
	}
	changes(t, ours, nil, map[string]change{
		"Namespace": {release: release{set: "namespace.create=true", namespace: "default"},
			reason: "The chart brings its namespace, which admits only restricted pods.",
			adds:   []string{"Namespace/liqo-broker"}, object: "Namespace/liqo-broker", has: `"pod-security.kubernetes.io/enforce":"restricted"`},
		"Registry": {release: release{set: "image.registry=registry.example:5000/mirror,image.tag=v9"},
			reason: "Images come from where people say.",
			object: deployment, has: `"image":"registry.example:5000/mirror/liqo-broker:v9"`},
		"Digest": {release: release{set: "image.digest=sha256:" + strings.Repeat("a", 64)}, reason: "A digest names one image for ever.",
			object: deployment, has: `"image":"capacitorset/liqo-broker@sha256:aaaa`},
		"Pull": {release: release{set: "image.pullPolicy=Always,image.pullSecrets={mine}"}, reason: "Private registries need a Secret.",
			object: deployment, has: `"imagePullSecrets":[{"name":"mine"}]`},
		"Modes": {release: release{set: "modes.catalog=false,modes.orchestrator=false"}, reason: "Modes that are not wanted are not served.",
			object: deployment, has: `"args":["--with-aggregator","--leader-elect"`},
		"Page": {release: release{set: "ui.enabled=true"}, reason: "Browsers get the page.", object: deployment, has: `"--ui"]`},
		"Flags": {release: release{set: `extraArgs={--give-back-after=5m,--namespace-quota=count/secrets=7}`}, reason: "Every flag can be given.",
			object: deployment, has: `"--give-back-after=5m","--namespace-quota=count/secrets=7"]`},
		"Replicas": {release: release{set: "replicas=3"}, reason: "More replicas answer.", object: deployment, has: `"replicas":3`},
		"Level": {release: release{set: "podSecurity=restricted"}, reason: "Another level is another ConfigMap.",
			object: "ConfigMap/liqo-broker-guard/liqo-broker-guard", has: `"level":"restricted"`},
		"PodSecurity": {release: release{set: "podSecurity=restricted"}, reason: "The guard reads it at its start.",
			object: guard, has: `"brokering.liqo.io/pod-security":"restricted"`},
		"Privileged": {
			release: release{set: "podSecurity=privileged"}, reason: "No policy refuses what the operator admits.",
			removes: `^ValidatingAdmissionPolicy(Binding)?/pod-security`,
		},
		"AnyUser": {release: release{set: anyUser}, reason: "A cluster may choose the user.", object: deployment,
			has: `"securityContext":{"runAsNonRoot":true,"seccompProfile":{"type":"RuntimeDefault"}}`, hasNot: "65532"},
		"AnyUserGuards": {release: release{set: anyUser}, reason: "And that of the guard.", object: guard,
			has: `"securityContext":{"runAsNonRoot":true,"seccompProfile":{"type":"RuntimeDefault"}}`, hasNot: "65532"},
		"Rights": {release: release{set: "containerSecurityContext.capabilities.add={SYSLOG}"}, reason: "People know what they need.",
			object: guard, has: `"capabilities":{"add":["SYSLOG"],"drop":["ALL"]}`},
		"Guards": {release: release{set: "guard.replicas=3"}, reason: "More guards answer.", object: guard, has: `"replicas":3`},
		"GuardPull": {release: release{set: "guard.pullSecrets={mine}"}, reason: "Its namespace has a Secret of its own.",
			object: guard, has: `"imagePullSecrets":[{"name":"mine"}]`},
		"GuardImage": {release: release{set: "image.registry=registry.example:5000/mirror,image.tag=v9"},
			reason: "The guard is of the broker's image.", object: guard, has: `"image":"registry.example:5000/mirror/liqo-broker:v9"`},
		"NoGuard": {
			release: release{set: "guard.enabled=false"}, reason: "Another release brings the guard, and its policies.", removes: ofGuard(t),
		},
		"Node": {release: release{set: "nodeSelector.disk=ssd,tolerations[0].key=infra,priorityClassName=system-cluster-critical"},
			reason: "The daemon goes where people want it.",
			object: deployment, has: `"nodeSelector":{"disk":"ssd"},"priorityClassName":"system-cluster-critical"`},
		"NoCRDs": {
			release: release{set: "crds.install=false"}, reason: "Somebody else may install the CRDs.", removes: `^CustomResourceDefinition/`,
		},
		"CRDsGo": {release: release{set: "crds.keep=false"}, reason: "Who wants the CRDs gone is told what that means.",
			object: "CustomResourceDefinition/providers.brokering.liqo.io", hasNot: "resource-policy",
			reworded: `(?s)Providers, Consumers and policies are deleted`},
		"NoNetworkPolicies": {
			release: release{set: "networkPolicies.enabled=false"}, reason: "All network policies go.", removes: `^NetworkPolicy/`,
		},
		"NoBudget": {
			release: release{set: "podDisruptionBudget.enabled=false"}, reason: "The budget goes.", removes: `^PodDisruptionBudget/liqo-broker/`,
		},
		"NoRoles": {
			release: release{set: "aggregatedRoles.enabled=false"}, reason: "Nobody gets rights by Kubernetes' roles.",
			removes: `^ClusterRole/liqo-broker-(view|edit|admin)$`,
		},
		"NoPolicies": {
			release: release{set: "admissionPolicies.enabled=false"}, reason: "The policies go.", removes: `^ValidatingAdmissionPolicy`,
		},
		"Monitor": {release: release{set: "podMonitor.enabled=true,podMonitor.interval=15s,podMonitor.labels.release=prometheus"},
			reason: "The operator gets a token and the CA.",
			adds:   monitor, object: "PodMonitor/liqo-broker/liqo-broker", has: `"serverName":"liqo-broker.liqo-broker.svc"`},
		"Rules": {release: release{set: "prometheusRule.enabled=true,prometheusRule.labels.release=prometheus"},
			reason: "The operator gets the alerts.",
			adds:   []string{"PrometheusRule/liqo-broker/liqo-broker"}, object: "PrometheusRule/liqo-broker/liqo-broker",
			has: `"release":"prometheus"`},
		"Dashboards": {release: release{set: "dashboards.enabled=true,dashboards.labels.team=a"}, reason: "Grafana finds them by a label.",
			adds: []string{
				"ConfigMap/liqo-broker/liqo-broker-dashboard-consumer", "ConfigMap/liqo-broker/liqo-broker-dashboard-overview",
				"ConfigMap/liqo-broker/liqo-broker-dashboard-provider",
			}, object: "ConfigMap/liqo-broker/liqo-broker-dashboard-overview", has: `"grafana_dashboard":"1","helm.sh/chart"`},
		"Liqo": {release: release{set: "liqo.namespace=elsewhere"}, reason: "Liqo may run elsewhere.", removes: `/liqo/`,
			adds: []string{
				"NetworkPolicy/elsewhere/liqo-broker-network-manager", "Role/elsewhere/liqo-broker-guard", "Role/elsewhere/liqo-broker-identity",
				"RoleBinding/elsewhere/liqo-broker-guard", "RoleBinding/elsewhere/liqo-broker-identity",
			},
			object: deployment, has: `"--liqo-namespace=elsewhere"`},
	})
}

// ofGuard returns a pattern for the keys of all objects of the guard.
func ofGuard(t *testing.T) string {
	t.Helper()
	var keys []string
	for key := range kustomized(t, filepath.Join(root, "deploy/guard"), filepath.Join(root, "deploy/guard/policies")) {
		keys = append(keys, regexp.QuoteMeta(key))
	}
	return "^(" + strings.Join(keys, "|") + ")$"
}

// TestLiqoElsewhere holds that nothing is about namespace liqo where Liqo runs in another one.
func TestLiqoElsewhere(t *testing.T) {
	about := regexp.MustCompile(`"(namespace|kubernetes\.io/metadata\.name)":"liqo"|'liqo'[^ ]*$|== 'liqo'|-namespace=liqo"`)
	for _, dir := range []string{ours, connector, agentChart} {
		for key, o := range everywhere(t, load(t, dir), "liqo.namespace=elsewhere") {
			if found := about.FindString(text(t, o)); found != "" {
				t.Errorf("%s of %s has %s", key, dir, found)
			}
		}
	}
}

// TestRules holds that the operator gets the alerts as they are, which Helm could take for templates.
func TestRules(t *testing.T) {
	for _, of := range []struct{ dir, program, object string }{
		{ours, "broker", "PrometheusRule/liqo-broker/liqo-broker"},
		{connector, "connector", "PrometheusRule/liqo-broker-connector/liqo-broker-connector"},
		{registryChart, "registry", "PrometheusRule/liqo-broker-registry/liqo-broker-registry"},
	} {
		objects, _ := release{set: "prometheusRule.enabled=true"}.render(t, load(t, of.dir))
		rules, err := os.ReadFile(filepath.Join(root, "deploy/monitoring/rules-"+of.program+".yaml"))
		if err != nil {
			t.Fatal(err)
		}
		var want any
		if err := yaml.Unmarshal(rules, &want); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, objects[of.object]["spec"]); diff != "" {
			t.Errorf("%s: -deploy/monitoring +chart\n%s", of.program, diff)
		}
	}
}

// TestDashboards holds that Grafana gets each dashboard as it is, which has braces that Helm could take for its own, from one chart.
func TestDashboards(t *testing.T) {
	shown := map[string]string{}
	for dir, maps := range map[string]string{
		ours: "ConfigMap/liqo-broker/liqo-broker-dashboard-", connector: "ConfigMap/liqo-broker-connector/liqo-broker-connector-dashboard",
		registryChart: "ConfigMap/liqo-broker-registry/liqo-broker-registry-dashboard",
	} {
		objects, _ := release{set: "dashboards.enabled=true"}.render(t, load(t, dir))
		for key, o := range objects {
			if !strings.HasPrefix(key, maps) {
				continue
			}
			data, _ := o["data"].(map[string]any)
			for file, text := range data {
				if _, twice := shown[file]; twice {
					t.Errorf("%s is in two charts", file)
				}
				shown[file] = strings.TrimSpace(text.(string))
			}
		}
	}
	want := map[string]string{}
	files, err := filepath.Glob(filepath.Join(root, "deploy/monitoring/dashboards/*.json"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		want[filepath.Base(file)] = strings.TrimSpace(string(text))
	}
	if diff := cmp.Diff(want, shown); diff != "" {
		t.Errorf("-deploy/monitoring +charts\n%s", diff)
	}
}

// A refusal is of a release.
type refusal struct {
	release

	reason string
	err    string
}

// refused holds that a typing error is refused before anything is applied.
func refused(t *testing.T, dir string, cases map[string]refusal) {
	t.Helper()
	c := load(t, dir)
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := tc.files(c)
			if err == nil || !strings.Contains(err.Error(), tc.err) {
				t.Errorf("%s got %v, want an error about %s", tc.reason, err, tc.err)
			}
		})
	}
}

func TestRefusals(t *testing.T) {
	refused(t, ours, map[string]refusal{
		"Unknown": {release: release{set: "replica=2"}, reason: "A value that nothing reads is a typing error.", err: "replica"},
		"UnknownRight": {
			release: release{set: "podSecurityContext.runAsUsr=1"}, reason: "Nor does Kubernetes know it.", err: "runAsUsr",
		},
		"UnknownRightOfContainer": {
			release: release{set: "containerSecurityContext.privilegd=false"}, reason: "A right that is mistyped is none.", err: "privilegd",
		},
		"UnknownBelow": {release: release{set: "image.name=x"}, reason: "Also inside.", err: "name"},
		"NoMode": {
			release: release{set: "modes.catalog=false,modes.orchestrator=false,modes.aggregator=false"}, reason: "The daemon would not start.",
			err: "modes",
		},
		"Tag": {release: release{set: "image.tag=a:b"}, reason: "A tag is no image.", err: "tag"},
		"Repository": {
			release: release{set: "image.repository=liqo-broker:v1"}, reason: "The tag is a value of its own.", err: "repository",
		},
		"Digest":      {release: release{set: "image.digest=abc"}, reason: "A digest names its hash.", err: "digest"},
		"Pull":        {release: release{set: "image.pullPolicy=Sometimes"}, reason: "Kubernetes knows three.", err: "pullPolicy"},
		"PodSecurity": {release: release{set: "podSecurity=none"}, reason: "Kubernetes knows three levels.", err: "podSecurity"},
		"Replicas":    {release: release{set: "replicas=-1"}, reason: "Replicas are counted.", err: "replicas"},
		"Memory":      {release: release{set: "resources.limits.memory=lots"}, reason: "Quantities are numbers.", err: "memory"},
		"Page":        {release: release{set: "ui.enabled=maybe"}, reason: "It is there or not.", err: "enabled"},
		"Flag":        {release: release{set: "extraArgs={give-back-after=5m}"}, reason: "Flags have two dashes.", err: "extraArgs"},
		"Admission": {
			release: release{set: "admissionPolicies.enabled=maybe"}, reason: "A switch has three positions.", err: "admissionPolicies",
		},
		"OwnLabel": {
			release: release{set: `podLabels.app\.kubernetes\.io/name=x`}, reason: "The label selects the pods.", err: "app.kubernetes.io/name",
		},
		"Namespace": {
			release: release{namespace: "default"}, reason: "The certificate of the webhooks is for one namespace.", err: "--namespace liqo-broker",
		},
		"Kubernetes": {release: release{kubernetes: "v1.27.3"}, reason: "Older ones are not tested.", err: "1.28"},
	})
}

// TestSchemaKnowsAllValues holds that each value has a schema, each schema a value, and that no object takes what it does not know.
func TestSchemaKnowsAllValues(t *testing.T) {
	for _, dir := range charts() {
		t.Run(path.Base(dir), func(t *testing.T) { schemaKnowsAllValues(t, dir) })
	}
}

func schemaKnowsAllValues(t *testing.T, dir string) {
	t.Helper()
	read := func(file string) (content map[string]any) {
		text, err := os.ReadFile(filepath.Join(dir, file))
		if err != nil {
			t.Fatal(err)
		}
		if err := yaml.Unmarshal(text, &content); err != nil {
			t.Fatal(err)
		}
		return content
	}
	schema, values := read("values.schema.json"), read("values.yaml")
	definitions := schema["definitions"].(map[string]any)
	var compare func(path string, schema map[string]any, value any)
	compare = func(path string, schema map[string]any, value any) {
		if name, found := schema["$ref"].(string); found {
			schema = definitions[strings.TrimPrefix(name, "#/definitions/")].(map[string]any)
		}
		if schema["type"] != "object" {
			return
		}
		properties, hasProperties := schema["properties"].(map[string]any)
		if schema["additionalProperties"] != false {
			if _, typed := schema["additionalProperties"].(map[string]any); !typed || hasProperties {
				t.Errorf("the schema of %s takes anything", path)
			}
			return
		}
		known, _ := value.(map[string]any)
		if len(known) == 0 && path != "" { // As affinity: Kubernetes says what may be there.
			return
		}
		if _, found := properties["global"]; found && path == "" {
			delete(properties, "global")
		}
		if diff := cmp.Diff(slices.Sorted(maps.Keys(properties)), slices.Sorted(maps.Keys(known))); diff != "" {
			t.Errorf("%q: -schema +values\n%s", path, diff)
		}
		for name, property := range properties {
			compare(strings.TrimPrefix(path+"."+name, "."), property.(map[string]any), known[name])
		}
	}
	compare("", schema, values)
}

// TestObjectsAreKubernetes holds that Kubernetes knows every field of the objects, with all values that add some.
func TestObjectsAreKubernetes(t *testing.T) {
	const monitor = "podMonitor.enabled=true,podMonitor.labels.a=b,podMonitor.interval=1m,"
	const placed = "image.pullSecrets={a,b},priorityClassName=p," +
		"nodeSelector.a=b,podLabels.a=b,podAnnotations.a=b,tolerations[0].key=a," +
		"affinity.nodeAffinity.preferredDuringSchedulingIgnoredDuringExecution[0].weight=1,extraArgs={--log-level=debug},"
	const pods = monitor + placed
	const spread = "topologySpreadConstraints[0].maxSkew=1,topologySpreadConstraints[0].topologyKey=a," +
		"topologySpreadConstraints[0].whenUnsatisfiable=ScheduleAnyway,"
	const volumes = "extraVolumes[0].name=a,extraVolumes[0].secret.secretName=b,extraVolumeMounts[0].name=a,extraVolumeMounts[0].mountPath=/a,"
	const service = "service.type=LoadBalancer,service.annotations.a=b,service.loadBalancerSourceRanges={203.0.113.0/24}," +
		"service.externalTrafficPolicy=Local,"
	cases := map[string]struct {
		reason, chart, set string
		program            string // It knows the flags.
		kinds, unknown     []string
	}{
		"Broker": {reason: "All that the broker has.", chart: ours, unknown: []string{"PodMonitor", "PrometheusRule"},
			set: "namespace.create=true,dashboards.enabled=true,prometheusRule.enabled=true," + pods + spread + volumes},
		"Liqo1": {reason: "All that it has with Liqo 1.x.", chart: ours, kinds: []string{of1}, unknown: []string{"PodMonitor", "PrometheusRule"},
			set: "namespace.create=true,dashboards.enabled=true,prometheusRule.enabled=true,transit.allow={192.0.2.0/24},transit.pullSecrets={a}," +
				"transit.maxAddresses=7," + pods + spread + volumes},
		"Agent": {reason: "All that the agent has.", chart: agentChart, program: "network-manager agent",
			set: "namespace.create=true,brokers[0].clusterID=a," + placed + spread},
		"Connector": {reason: "All that the connector has.", chart: connector, program: "connector",
			unknown: []string{"PodMonitor"},
			set: "namespace.create=true,dashboards.enabled=true,broker=true,endpoint=https://seller.example:30446,name=a,liqo.namespace=b," +
				pods + service},
		"SQLite": {reason: "A registry with all that is mounted.", chart: registryChart, program: "registry",
			unknown: []string{"PodMonitor"},
			set: "dashboards.enabled=true,persistence.storageClassName=fast,persistence.accessModes={ReadWriteOncePod},key.existingSecret=k," +
				"authorities.existingConfigMap=c,anonymous.read=true,autoApprove=true," + pods + spread + volumes + service},
		"Claim": {reason: "A volume that is there.", chart: registryChart, program: "registry", unknown: []string{"PodMonitor"},
			set: "persistence.existingClaim=c," + pods + spread + volumes + service},
		"PostgreSQL": {reason: "The other store, with an ordinary certificate.", chart: registryChart, program: "registry",
			unknown: []string{"PodMonitor"},
			set: "replicas=3,postgres.existingSecret=s,postgres.secretKey=uri,tls.existingSecret=t,authorities.existingConfigMap=c," +
				pods + spread + volumes + service},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			objects, _ := release{kinds: tc.kinds, set: strings.TrimSuffix(tc.set, ",")}.render(t, load(t, tc.chart))
			if diff := cmp.Diff(tc.unknown, strangers(t, objects)); diff != "" {
				t.Errorf("%s Kinds that are not checked: -want +got\n%s", tc.reason, diff)
			}
			for key, pod := range podsOf(t, objects) {
				switch {
				case key == "Deployment/liqo-broker-guard/liqo-broker-guard":
					wellMade(t, key, "broker guard", pod)
				case key == transit:
					wellMade(t, key, "network-manager transit", pod)
				case tc.program != "":
					wellMade(t, key, tc.program, pod)
				}
			}
		})
	}
}
