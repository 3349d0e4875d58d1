// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package stock

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/capacitorset/liqo-broker/test/federation"
	"github.com/capacitorset/liqo-broker/test/lab"
	"github.com/capacitorset/liqo-broker/test/lab/topology"
)

// patience is how long Liqo may take for a step, beside whatever else the machine does.
const patience = 2 * time.Minute

// The consumer uses the broker, and the broker the provider. The consumer and the provider are peered as well, and so are the broker and
// the consumer in the other direction.
var consumer, broker, provider *lab.Cluster

func TestMain(m *testing.M) {
	clusters := strings.Join([]string{topology.Consumer, topology.Broker, topology.ProviderA}, ",")
	os.Exit(federation.Suite{
		Name: "stock", Up: []string{"--liqo", "1.2", "--clusters", clusters},
		Run: func(context.Context, string, bool) (int, error) { return run(m) },
	}.Main())
}

// run runs the tests on a lab with Liqo 1.2.
func run(m *testing.M) (int, error) {
	l, err := lab.Open(cmp.Or(os.Getenv("LIQO_BROKER_LAB"), lab.DefaultDir))
	if err != nil {
		return 1, err
	}
	for name, target := range map[string]**lab.Cluster{topology.Consumer: &consumer, topology.Broker: &broker, topology.ProviderA: &provider} {
		if *target, err = l.Cluster(name); err != nil {
			return 1, err
		}
	}
	if version := broker.LiqoVersion(); !strings.HasPrefix(version, "v1.") {
		return 1, fmt.Errorf("the lab that is up has Liqo %s: bin/lab down removes it", version)
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
	path := filepath.Join(t.TempDir(), "manifest.yaml")
	if err := os.WriteFile(path, []byte(manifest), 0o600); err != nil {
		t.Fatal(err)
	}
	kubectl(t, c, "apply", "-f", path)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), patience)
		defer cancel()
		if _, err := c.Kubectl(ctx, "delete", "--ignore-not-found", "-f", path); err != nil {
			t.Errorf("%s: %v", c.Name, err)
		}
	})
}

// eventually waits until a look at something finds nothing missing.
func eventually(t *testing.T, look func(ctx context.Context) error) {
	t.Helper()
	if err := federation.Until(t.Context(), patience, look); err != nil {
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
	apply(t, c, fmt.Sprintf(`
apiVersion: offloading.liqo.io/v1beta1
kind: NamespaceOffloading
metadata: {name: offloading, namespace: %s}
spec:
  namespaceMappingStrategy: %s
  podOffloadingStrategy: Remote
  clusterSelector: {nodeSelectorTerms: [{matchExpressions: [{key: liqo.io/remote-cluster-id, operator: In, values: [%s]}]}]}
`, namespace, strategy, to.Name))
	eventually(t, func(ctx context.Context) error {
		phase, err := c.Kubectl(ctx, "get", "namespaceoffloading", "offloading", "-n", namespace, "-o", "jsonpath={.status.offloadingPhase}")
		if err == nil && phase != "Ready" {
			err = fmt.Errorf("namespace %s of %s is offloaded: %q, want Ready", namespace, c.Name, phase)
		}
		return err
	})
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

// look reads a pod of a cluster.
func look(ctx context.Context, c *lab.Cluster, namespace, name string) (pod, error) {
	out, err := c.Kubectl(ctx, "get", "pods", "-n", namespace, "--field-selector", "metadata.name="+name, "-o", `jsonpath={range .items[*]}`+
		`{.metadata.uid},{.status.phase},{.status.conditions[?(@.type=="Ready")].status},{.status.podIP}{end}`)
	if err != nil || out == "" {
		return pod{}, err
	}
	fields := strings.SplitN(out, ",", 4)
	return pod{uid: fields[0], phase: fields[1], ready: fields[2], address: fields[3]}, nil
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
