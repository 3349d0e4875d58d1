// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package chart

import (
	"encoding/base64"
	"encoding/json"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"helm.sh/helm/v3/pkg/action"
	"helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/cli"
	"helm.sh/helm/v3/pkg/registry"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
)

// programsVariable names the folder with kube-apiserver, which bin/lab build prints.
const programsVariable = "LIQO_BROKER_TEST_PROGRAMS"

// ourName is what the broker's chart is called. Each chart, its release and its namespace have one name.
const ourName = "liqo-broker"

// cluster is a real API server with Liqo's custom resources, on which Helm acts. Nothing else runs there.
type cluster struct {
	t      *testing.T
	client client.Client
	// kubeconfig is that of an administrator.
	kubeconfig string
	ca         string // A CA certificate, as webhooks have it.
	version    string // Of Kubernetes.
	// rendered is what each chart is there, by its name and by key.
	rendered map[string]map[string]object
}

// TestRelease installs, upgrades, uninstalls and installs again on a real API server, with what a daemon and people have written
// in the meantime.
func TestRelease(t *testing.T) {
	c := startCluster(t, "0.9")
	c.apply(object{"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": "liqo"}})
	c.apply(object{"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": "liqo-broker"}})

	// The version before has another image, and other custom resource definitions.
	before, now := load(t, ours), load(t, ours)
	before.Metadata.Version, before.Metadata.AppVersion = "0.0.9", "v0.0.9"
	rewrite(t, before, "crd-brokering.liqo.io_providers.yaml", "- bprov\n", "- before\n")
	c.install(before, false)

	const pem = "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n"
	provider := object{
		"apiVersion": "brokering.liqo.io/v1alpha1", "kind": "Provider",
		"metadata": map[string]any{"name": "7b0d5c5e-1f2a-4a0e-9d61-0d2f6c1b8a11"}, "spec": map[string]any{"scheduling": "Drained"},
	}
	c.eventually(func() error { return c.create(provider) })
	c.change("ConfigMap/liqo-broker/liqo-broker-api-ca", func(o *unstructured.Unstructured) {
		o.Object["data"] = map[string]any{"ca.crt": pem}
	})
	const webhooks = "MutatingWebhookConfiguration/liqo-broker"
	c.change(webhooks, func(o *unstructured.Unstructured) {
		for _, webhook := range o.Object["webhooks"].([]any) {
			webhook.(map[string]any)["clientConfig"].(map[string]any)["caBundle"] = c.ca
		}
	})
	state := func(when string) {
		t.Helper()
		if got := text(t, c.get("Provider/7b0d5c5e-1f2a-4a0e-9d61-0d2f6c1b8a11")); !strings.Contains(got, `"scheduling":"Drained"`) {
			t.Errorf("%s the Provider is %s", when, got)
		}
	}

	upgrade := action.NewUpgrade(c.helm(ourName))
	upgrade.Namespace = ourName
	if _, err := upgrade.Run(ourName, now, nil); err != nil {
		t.Fatalf("upgrade: %v", err)
	}
	state("after the upgrade")
	for key, want := range map[string]string{
		"Deployment/liqo-broker/liqo-broker":       `capacitorset/liqo-broker:v0.1.0"`,
		"ConfigMap/liqo-broker/liqo-broker-api-ca": `BEGIN CERTIFICATE`,
		webhooks: c.ca,
		"CustomResourceDefinition/providers.brokering.liqo.io":         `"bprov"`,
		"ValidatingAdmissionPolicy/daemon.brokering.liqo.io":           `system:serviceaccount:liqo-broker:liqo-broker`,
		"ClusterRole/liqo-broker-view":                                 `aggregate-to-view`,
		"NetworkPolicy/liqo/liqo-broker-network-manager":               `"Ingress"`,
		"PodDisruptionBudget/liqo-broker/liqo-broker":                  `"maxUnavailable":1`,
		"ValidatingWebhookConfiguration/liqo-broker-guard":             `isolate.brokering.liqo.io`,
		"Deployment/liqo-broker-guard/liqo-broker-guard":               `capacitorset/liqo-broker:v0.1.0"`,
		"RoleBinding/kube-system/liqo-broker-network-manager":          `extension-apiserver-authentication-reader`,
		"ValidatingAdmissionPolicyBinding/peers.brokering.liqo.io":     `liqo-clusterid-configmap`,
		"CustomResourceDefinition/placementpolicies.brokering.liqo.io": `PlacementPolicy`,
	} {
		if c.rendered[ourName][key] == nil { // Kubernetes 1.28 has no admission policies.
			continue
		}
		if got := text(t, c.get(key)); !strings.Contains(got, want) {
			t.Errorf("after the upgrade %s has no %s: %s", key, want, got)
		}
	}

	c.uninstall(ourName)
	state("after it is uninstalled")

	c.install(now, false)
	state("after it is installed again")
	c.uninstall(ourName)

	// Who has installed with kubectl goes over to Helm, and loses nothing.
	applied := kustomized(t, filepath.Join(root, "deploy"), filepath.Join(root, "deploy/admission"))
	maps.DeleteFunc(applied, func(key string, _ object) bool { return c.rendered[ourName][key] == nil })
	c.applyAll(applied)
	c.install(now, true)
	state("after Helm has taken over")
}

// TestReleasesSideBySide installs all charts on one cluster, as one has them that sells what it aggregates and runs a registry. Each can
// be uninstalled, and installed again over what kubectl has applied, without anything of the others or of the trade being lost. The
// broker's chart brings the guard.
func TestReleasesSideBySide(t *testing.T) {
	c := startCluster(t, "0.9")
	c.apply(object{"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": "liqo"}})
	loaded := map[string]*chart.Chart{}
	for _, dir := range chartsWith("0.9") {
		one := load(t, dir)
		loaded[one.Name()] = one
		c.apply(object{"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": one.Name()}})
		c.install(one, false)
	}
	joined := object{
		"apiVersion": "brokering.liqo.io/v1alpha1", "kind": "Registry", "metadata": map[string]any{"name": "market"},
		"spec": map[string]any{"url": "https://registry.example:30443", "fingerprint": strings.Repeat("a", 52)},
	}
	c.eventually(func() error { return c.create(joined) })
	whole := func(when string) {
		t.Helper()
		for name, objects := range c.rendered {
			for _, key := range slices.Sorted(maps.Keys(objects)) {
				if c.get(key) == nil {
					t.Errorf("%s %s of %s is gone", when, key, name)
				}
			}
		}
		if c.get("Registry/market") == nil {
			t.Errorf("%s the Registry is gone", when)
		}
	}
	whole("after they are installed")
	for name, manifests := range map[string]string{"liqo-broker-connector": "deploy/connector", "liqo-broker-registry": "deploy/registry"} {
		c.uninstall(name)
		c.applyAll(kustomized(t, filepath.Join(root, manifests)))
		c.install(loaded[name], true)
		whole("after " + name + " is installed again")
	}
}

// TestReleaseWithLiqo1 installs the broker's chart on an API server that has the kinds of Liqo 1.x, and that of the agent, which a cluster
// has that is a consumer as well. The first finds out by itself what is for that Liqo. Both leave nothing but the kinds of the broker when
// they are uninstalled, and the agent is installed over what kubectl has applied.
func TestReleaseWithLiqo1(t *testing.T) {
	c := startCluster(t, "1")
	if c.rendered[agentName] == nil {
		t.Skipf("Kubernetes %s has no admission policies, which Liqo 1.x needs", c.version)
	}
	for _, name := range []string{"liqo", ourName, agentName, "liqo-tenant-milan"} {
		c.apply(object{"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": name}})
	}
	// Both have the rule about namespaces with keys, which stays that of the first.
	for _, kind := range []string{"ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding"} {
		key := kind + "/system-namespaces.brokering.liqo.io"
		if c.rendered[ourName][key] == nil || c.rendered[agentName][key] == nil {
			t.Errorf("not both charts have %s", key)
		}
		delete(c.rendered[agentName], key)
	}
	broker, agent := load(t, ours), load(t, agentChart)
	whole := func(when, name string) {
		t.Helper()
		for _, key := range slices.Sorted(maps.Keys(c.rendered[name])) {
			if c.get(key) == nil {
				t.Errorf("%s %s of %s is gone", when, key, name)
			}
		}
	}
	c.install(broker, false)
	c.install(agent, false)
	whole("after it is installed", ourName)
	whole("after it is installed", agentName)
	if c.get(transit) == nil || c.get("Role/liqo-tenant-milan/liqo-broker-agent") == nil {
		t.Error("the transit or the right to read at the broker is not there")
	}
	for _, key := range only09() {
		if c.get(key) != nil {
			t.Errorf("%s is there", key)
		}
	}

	c.uninstall(agentName)
	whole("after the agent is uninstalled", ourName)
	c.applyAll(kustomized(t, filepath.Join(root, "deploy/agent")))
	c.install(agent, true)
	whole("after Helm has taken over", agentName)
	c.uninstall(ourName)
	whole("after the broker is uninstalled", agentName)
}

// chartsWith returns the charts that are for a line of Liqo's versions.
func chartsWith(line string) []string {
	if line == "1" {
		return []string{ours, agentChart}
	}
	return []string{ours, connector, registryChart}
}

// startCluster starts etcd and an API server with the custom resources of a line of Liqo's versions on the loopback interface.
func startCluster(t *testing.T, line string) *cluster {
	t.Helper()
	programs := os.Getenv(programsVariable)
	if programs == "" {
		t.Skipf("%s does not say where kube-apiserver is: make test-values", programsVariable)
	}
	etcd, err := exec.LookPath("etcd")
	if err != nil {
		t.Fatal(err)
	}
	environment := &envtest.Environment{
		CRDDirectoryPaths: []string{crdFolders(t)[line]}, ErrorIfCRDPathMissing: true,
		BinaryAssetsDirectory:    t.TempDir(),
		ControlPlaneStartTimeout: 3 * time.Minute, ControlPlaneStopTimeout: time.Minute,
	}
	for name, program := range map[string]string{"etcd": etcd, "kube-apiserver": filepath.Join(programs, "kube-apiserver")} {
		if err := os.Symlink(program, filepath.Join(environment.BinaryAssetsDirectory, name)); err != nil {
			t.Fatal(err)
		}
	}
	environment.ControlPlane.Etcd = &envtest.Etcd{}
	environment.ControlPlane.Etcd.Configure().Set("unsafe-no-fsync", "true") // The data need not survive.
	config, err := environment.Start()
	if err != nil {
		t.Fatalf("start the API server: %v", err)
	}
	t.Cleanup(func() {
		if err := environment.Stop(); err != nil {
			t.Errorf("stop the API server: %v", err)
		}
	})
	return newCluster(t, line, environment, config)
}

func newCluster(t *testing.T, line string, environment *envtest.Environment, config *rest.Config) *cluster {
	t.Helper()
	direct, err := client.New(config, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	user, err := environment.AddUser(envtest.User{Name: "administrator", Groups: []string{"system:masters"}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	kubeconfig, err := user.KubeConfig()
	if err != nil {
		t.Fatal(err)
	}
	c := &cluster{
		t: t, client: direct, kubeconfig: filepath.Join(t.TempDir(), "kubeconfig"), ca: base64.StdEncoding.EncodeToString(config.CAData),
		rendered: map[string]map[string]object{},
	}
	if err := os.WriteFile(c.kubeconfig, kubeconfig, 0o600); err != nil {
		t.Fatal(err)
	}
	asked, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	version, err := asked.ServerVersion()
	if err != nil {
		t.Fatal(err)
	}
	c.version = version.GitVersion
	kubernetes, err := chartutil.ParseKubeVersion(c.version)
	if err != nil {
		t.Fatal(err)
	}
	if line == "1" && !chartutil.IsCompatibleRange(load(t, agentChart).Metadata.KubeVersion, kubernetes.Version) {
		return c
	}
	for _, dir := range chartsWith(line) {
		loaded := load(t, dir)
		on := release{kubernetes: c.version, kinds: kindsOf(t, crdFolders(t)[line]), values: besides(loaded)}
		c.rendered[loaded.Name()], _ = on.render(t, loaded)
	}
	return c
}

// helm returns what Helm acts with on releases in a namespace.
func (c *cluster) helm(namespace string) *action.Configuration {
	c.t.Helper()
	settings := cli.New()
	settings.KubeConfig = c.kubeconfig
	settings.SetNamespace(namespace)
	helm := new(action.Configuration)
	if err := helm.Init(settings.RESTClientGetter(), namespace, "secrets", c.t.Logf); err != nil {
		c.t.Fatal(err)
	}
	var err error
	if helm.RegistryClient, err = registry.NewClient(registry.ClientOptWriter(io.Discard)); err != nil {
		c.t.Fatal(err)
	}
	return helm
}

// besides returns the values of a chart by which it can be on one cluster with the others: one of them brings the guard. The agent has a
// broker.
func besides(of *chart.Chart) map[string]any {
	switch of.Name() {
	case "liqo-broker-connector":
		return map[string]any{"guard": map[string]any{"enabled": false}}
	case agentName:
		return map[string]any{"brokers": []any{map[string]any{"clusterID": "milan"}}}
	default:
		return nil
	}
}

func (c *cluster) install(what *chart.Chart, takesOver bool) {
	c.t.Helper()
	install := action.NewInstall(c.helm(what.Name()))
	install.ReleaseName, install.Namespace, install.TakeOwnership = what.Name(), what.Name(), takesOver
	if _, err := install.Run(what, besides(what)); err != nil {
		c.t.Fatalf("install %s: %v", what.Name(), err)
	}
}

// uninstall removes a release. All that is left of it are the custom resource definitions, and Helm says so.
func (c *cluster) uninstall(name string) {
	c.t.Helper()
	response, err := action.NewUninstall(c.helm(name)).Run(name)
	if err != nil {
		c.t.Fatalf("uninstall %s: %v", name, err)
	}
	for _, key := range slices.Sorted(maps.Keys(c.rendered[name])) {
		definition, kept := strings.CutPrefix(key, "CustomResourceDefinition/")
		if kept != (c.get(key) != nil) {
			c.t.Errorf("after %s is uninstalled %s must stay: %t", name, key, kept)
		}
		if kept && !strings.Contains(response.Info, definition) {
			c.t.Errorf("Helm does not say that %s stays: %s", key, response.Info)
		}
		if namespace, deleted := strings.CutPrefix(key, "Namespace/"); deleted {
			c.finalize(namespace)
		}
	}
}

// finalize lets a namespace go that is deleted, as Kubernetes' namespace controller does, which does not run here.
func (c *cluster) finalize(name string) {
	c.t.Helper()
	namespace := &corev1.Namespace{}
	err := c.client.Get(c.t.Context(), client.ObjectKey{Name: name}, namespace)
	if err == nil {
		namespace.Spec.Finalizers = nil
		err = c.client.SubResource("finalize").Update(c.t.Context(), namespace)
	}
	if client.IgnoreNotFound(err) != nil {
		c.t.Fatalf("finalize namespace %s: %v", name, err)
	}
}

// applyAll applies objects, namespaces before what is in them.
func (c *cluster) applyAll(objects map[string]object) {
	c.t.Helper()
	for _, namespaces := range []bool{true, false} {
		for key, o := range objects {
			if strings.HasPrefix(key, "Namespace/") == namespaces {
				c.apply(o)
			}
		}
	}
}

// apply writes an object as kubectl apply --server-side does, once the API server knows its kind.
func (c *cluster) apply(o object) {
	c.t.Helper()
	c.eventually(func() error {
		written := &unstructured.Unstructured{Object: copied(c.t, o)}
		return c.client.Patch(c.t.Context(), written, client.Apply, client.FieldOwner("kubectl"), client.ForceOwnership)
	})
}

func (c *cluster) create(o object) error {
	return c.client.Create(c.t.Context(), &unstructured.Unstructured{Object: copied(c.t, o)})
}

// change changes an object that is there.
func (c *cluster) change(key string, how func(*unstructured.Unstructured)) {
	c.t.Helper()
	o := c.get(key)
	if o == nil {
		c.t.Fatalf("there is no %s", key)
	}
	how(o)
	if err := c.client.Update(c.t.Context(), o); err != nil {
		c.t.Fatal(err)
	}
}

// get reads an object by its key, and returns nil if there is none.
func (c *cluster) get(key string) *unstructured.Unstructured {
	c.t.Helper()
	kind, rest, _ := strings.Cut(key, "/")
	namespace, name, namespaced := strings.Cut(rest, "/")
	if !namespaced {
		namespace, name = "", rest
	}
	o := &unstructured.Unstructured{}
	o.SetGroupVersionKind(c.kind(kind))
	err := c.client.Get(c.t.Context(), client.ObjectKey{Namespace: namespace, Name: name}, o)
	if apierrors.IsNotFound(err) || o.GetDeletionTimestamp() != nil {
		return nil
	}
	if err != nil {
		c.t.Fatalf("get %s: %v", key, err)
	}
	return o
}

// kind returns the group and the version of a kind of the charts.
func (c *cluster) kind(kind string) schema.GroupVersionKind {
	c.t.Helper()
	for _, objects := range c.rendered {
		for key, o := range objects {
			if strings.HasPrefix(key, kind+"/") {
				return schema.FromAPIVersionAndKind(o["apiVersion"].(string), kind)
			}
		}
	}
	return schema.GroupVersionKind{Group: "brokering.liqo.io", Version: "v1alpha1", Kind: kind}
}

// eventually tries until it works: the API server serves a custom resource a moment after its definition.
func (c *cluster) eventually(try func() error) {
	c.t.Helper()
	var err error
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
		if err = try(); err == nil {
			return
		}
	}
	c.t.Fatal(err)
}

func copied(t *testing.T, o object) (result map[string]any) {
	t.Helper()
	if err := json.Unmarshal([]byte(text(t, o)), &result); err != nil {
		t.Fatal(err)
	}
	return result
}

// rewrite changes a text in a template of a chart.
func rewrite(t *testing.T, c *chart.Chart, template, from, to string) {
	t.Helper()
	for _, file := range c.Templates {
		if filepath.Base(file.Name) == template {
			changed := strings.Replace(string(file.Data), from, to, 1)
			if changed == string(file.Data) {
				t.Fatalf("%s has no %q", template, from)
			}
			file.Data = []byte(changed)
			return
		}
	}
	t.Fatalf("the chart has no %s", template)
}
