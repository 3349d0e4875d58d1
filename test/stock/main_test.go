// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package stock

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/capacitorset/liqo-broker/test/docs"
	"github.com/capacitorset/liqo-broker/test/federation"
	"github.com/capacitorset/liqo-broker/test/lab"
	"github.com/capacitorset/liqo-broker/test/lab/topology"
)

// releaseTag is under which images are loaded that no page names otherwise.
const releaseTag = "v0.1.0"

// patience is how long Liqo may take for a step, beside whatever else the machine does.
const patience = 2 * time.Minute

// The consumer uses the broker, and the broker the provider. The consumer and the provider are peered as well, and so are the broker and
// the consumer in the other direction.
var consumer, broker, provider *lab.Cluster

func TestMain(m *testing.M) {
	clusters := strings.Join([]string{topology.Consumer, topology.Broker, topology.ProviderA}, ",")
	os.Exit(federation.Suite{
		Name: "stock", Liqo: "1.2", Up: []string{"--clusters", clusters},
		Run: func(context.Context, string, bool) (int, error) { return run(m) },
	}.Main())
}

// run runs the tests on a lab with Liqo 1.2.
func run(m *testing.M) (int, error) {
	l, err := federation.OpenLab()
	if err != nil {
		return 1, err
	}
	for name, target := range map[string]**lab.Cluster{topology.Consumer: &consumer, topology.Broker: &broker, topology.ProviderA: &provider} {
		if *target, err = l.Cluster(name); err != nil {
			return 1, err
		}
	}
	return m.Run(), nil
}

// kubectl runs kubectl on a cluster, and ends the test if it fails.
func kubectl(t *testing.T, c *lab.Cluster, args ...string) string {
	t.Helper()
	out, err := c.Kubectl(t.Context(), args...)
	if err != nil {
		t.Fatalf("%s: %v", c.Name, err)
	}
	return out
}

// apply applies a manifest on a cluster until the test ends.
func apply(t *testing.T, c *lab.Cluster, manifest string) {
	t.Helper()
	if err := tryApply(t, c, manifest); err != nil {
		t.Fatalf("%s: %v", c.Name, err)
	}
}

// tryApply applies a manifest on a cluster until the test ends, if the cluster takes it.
func tryApply(t *testing.T, c *lab.Cluster, manifest string) error {
	t.Helper()
	path := write(t, "manifest.yaml", []byte(manifest))
	_, err := c.Kubectl(t.Context(), "apply", "-f", path)
	if err == nil {
		t.Cleanup(func() { undo(t, c, "delete", "--ignore-not-found", "-f", path) })
	}
	return err
}

// write writes a file for as long as the test runs.
func write(t *testing.T, name string, data []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// undo runs kubectl on a cluster when a test is over.
func undo(t *testing.T, c *lab.Cluster, args ...string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), patience)
	defer cancel()
	if _, err := c.Kubectl(ctx, args...); err != nil {
		t.Errorf("%s: %v", c.Name, err)
	}
}

// stop ends the pods of a Deployment of a cluster until the returned function is called.
func stop(t *testing.T, c *lab.Cluster, namespace, name string) (start func()) {
	t.Helper()
	replicas := kubectl(t, c, "get", "deployment", "-n", namespace, name, "-o", "jsonpath={.spec.replicas}")
	start = func() {
		t.Helper()
		undo(t, c, "scale", "deployment", "-n", namespace, name, "--replicas="+replicas)
		undo(t, c, "rollout", "status", "deployment", "-n", namespace, name, "--timeout=2m")
	}
	kubectl(t, c, "scale", "deployment", "-n", namespace, name, "--replicas=0")
	err := federation.Until(t.Context(), patience, func(ctx context.Context) error {
		left, err := c.Kubectl(ctx, "get", "pods", "-n", namespace, "-o", "name")
		if err == nil && strings.Contains(left, "pod/"+name+"-") {
			err = fmt.Errorf("pods of %s are still there: %s", name, left)
		}
		return err
	})
	if err != nil {
		start()
		t.Fatal(err)
	}
	return start
}

// eventually waits until a look at something finds nothing missing.
func eventually(t *testing.T, look func(ctx context.Context) error) {
	t.Helper()
	within(t, patience, look)
}

// within waits for that as long as it is told.
func within(t *testing.T, atMost time.Duration, look func(ctx context.Context) error) {
	t.Helper()
	if err := federation.Until(t.Context(), atMost, look); err != nil {
		t.Fatal(err)
	}
}

// offload applies a namespace whose pods go to the virtual nodes of one cluster.
func offload(t *testing.T, c *lab.Cluster, namespace string, to *lab.Cluster) {
	t.Helper()
	apply(t, c, fmt.Sprintf(`{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": %q}}`, namespace))
	reoffload(t, c, namespace, "EnforceSameName", to)
}

// reoffload has the pods of a namespace that is there go to the virtual nodes of one cluster.
func reoffload(t *testing.T, c *lab.Cluster, namespace, strategy string, to *lab.Cluster) {
	t.Helper()
	apply(t, c, offloading(namespace, strategy, "Remote", to))
	eventually(t, func(ctx context.Context) error {
		phase, err := c.Kubectl(ctx, "get", "namespaceoffloading", "offloading", "-n", namespace, "-o", "jsonpath={.status.offloadingPhase}")
		if err == nil && phase != "Ready" {
			err = fmt.Errorf("namespace %s of %s is offloaded: %q, want Ready", namespace, c.Name, phase)
		}
		return err
	})
}

// offloading has the pods of a namespace go to the virtual nodes of one cluster, or also stay, as a strategy of Liqo's says.
func offloading(namespace, names, pods string, to *lab.Cluster) string {
	return fmt.Sprintf(`
apiVersion: offloading.liqo.io/v1beta1
kind: NamespaceOffloading
metadata: {name: offloading, namespace: %s}
spec:
  namespaceMappingStrategy: %s
  podOffloadingStrategy: %s
  clusterSelector: {nodeSelectorTerms: [{matchExpressions: [{key: liqo.io/remote-cluster-id, operator: In, values: [%s]}]}]}
`, namespace, names, pods, to.Name)
}

// web is a pod that answers with its name. Its name is that of no Service: Liqo 1.2 would remove such a Service.
func web(namespace, name string, annotations map[string]string) string {
	text, err := json.Marshal(annotations)
	if err != nil {
		panic(err)
	}
	return fmt.Sprintf(`
apiVersion: v1
kind: Pod
metadata: {name: %s, namespace: %s, labels: {app: %s}, annotations: %s}
spec:
  terminationGracePeriodSeconds: 1
  containers:
    - name: web
      image: lab.local/web:1
      resources: {requests: {cpu: 10m, memory: 16Mi}, limits: {cpu: 200m, memory: 64Mi}}
`, name, namespace, name, text)
}

// pod is what a test looks at of a pod; all empty if there is none.
type pod struct{ uid, phase, ready, address string }

// lookAt reads pods of a cluster, by their names.
func lookAt(ctx context.Context, c *lab.Cluster, namespace string, selected ...string) (map[string]pod, error) {
	out, err := c.Kubectl(ctx, append([]string{"get", "pods", "-n", namespace, "-o", `jsonpath={range .items[*]}{.metadata.name},` +
		`{.metadata.uid},{.status.phase},{.status.conditions[?(@.type=="Ready")].status},{.status.podIP}{"\n"}{end}`}, selected...)...)
	pods := map[string]pod{}
	for line := range strings.Lines(out) {
		fields := strings.Split(strings.TrimSpace(line), ",")
		pods[fields[0]] = pod{uid: fields[1], phase: fields[2], ready: fields[3], address: fields[4]}
	}
	return pods, err
}

// look reads a pod of a cluster.
func look(ctx context.Context, c *lab.Cluster, namespace, name string) (pod, error) {
	pods, err := lookAt(ctx, c, namespace, "--field-selector", "metadata.name="+name)
	return pods[name], err
}

// awaitReady waits until a cluster shows a pod as ready.
func awaitReady(t *testing.T, c *lab.Cluster, namespace, name string) pod {
	t.Helper()
	var p pod
	eventually(t, func(ctx context.Context) (err error) {
		if p, err = look(ctx, c, namespace, name); err == nil && (p.ready != "True" || p.address == "") {
			err = fmt.Errorf("pod %s of %s is %+v, want it ready", name, c.Name, p)
		}
		return err
	})
	return p
}

// ask returns which pod answers at an address, asked by a pod that a cluster runs itself.
func ask(ctx context.Context, c *lab.Cluster, address string) (string, error) {
	out, err := c.Kubectl(ctx, "exec", "tools", "--", "curl", "-s", "-m", "5", "http://"+address+":8080/")
	if err != nil {
		return "", err
	}
	var answer struct {
		Host string `json:"host"`
	}
	return answer.Host, json.Unmarshal([]byte(out), &answer)
}

// load loads one of our images into a cluster, as it was built last.
func load(t *testing.T, c *lab.Cluster, image string) {
	t.Helper()
	archive, err := os.Open(filepath.Join("..", "..", "bin", "images", image+".tar"))
	if err != nil {
		t.Fatal(err)
	}
	_, err = c.Load(t.Context(), archive, releaseTag)
	if err := errors.Join(err, archive.Close()); err != nil {
		t.Fatal(err)
	}
}

// page is what people read.
type page struct{ docs.Reader }

// read opens a page at the commands of a test. They run as they stand there, but for the images, which are those that were built last, and
// for the broker, because the consumer uses another cluster besides.
func read(t *testing.T, name, test string) *page {
	t.Helper()
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	blocks, err := docs.Read(root, name, test)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Dir(broker.KubectlPath()) + ":" + filepath.Join(root, "bin") + ":" + os.Getenv("PATH")
	shell, err := docs.NewShell(t.Context(), root, t.TempDir(), "PATH="+path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := shell.Close(); err != nil {
			t.Error(err)
		}
	})
	edit := strings.NewReplacer(
		"liqo-broker install", "liqo-broker install --tag="+releaseTag,
		"liqo-broker prepare", "liqo-broker prepare --tag="+releaseTag+" --broker="+broker.Name,
	)
	on := map[string]*lab.Cluster{"broker": broker, "consumer": consumer}
	return &page{docs.Reader{Blocks: blocks, Run: func(_ context.Context, b docs.Block, script string) (string, error) {
		return shell.Run("KUBECONFIG", on[b.On[0]].KubeconfigPath(), edit.Replace(script))
	}}}
}

// next runs the next commands of the page, which begin with a certain one, and returns what they say.
func (p *page) next(t *testing.T, command string) string {
	t.Helper()
	out, err := p.Next(t.Context(), command)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%s:\n%s", command, out)
	return out
}
