// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capacitorset/liqo-broker/pkg/api/v1alpha1"
	"github.com/capacitorset/liqo-broker/pkg/core/podstate"
	"github.com/capacitorset/liqo-broker/pkg/liqo"
	"github.com/capacitorset/liqo-broker/test/federation"
)

// database is a StatefulSet of two replicas, as an operator of databases makes it, which labels them later.
const database = `
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: db, namespace: %[1]s}
spec:
  replicas: 2
  serviceName: db
  podManagementPolicy: Parallel
  selector: {matchLabels: {app: db}}
  template:
    metadata: {labels: {app: db}}
    spec:
      terminationGracePeriodSeconds: 1
      containers:
        - name: web
          image: lab.local/web:1
          imagePullPolicy: IfNotPresent
          ports: [{containerPort: 8080}]
          readinessProbe: {httpGet: {path: /, port: 8080}, periodSeconds: 1}
          resources: {requests: {cpu: 50m, memory: 32Mi}}
---
apiVersion: v1
kind: Service
metadata: {name: db, namespace: %[1]s}
spec:
  clusterIP: None
  selector: {app: db}
  ports: [{port: 8080}]
`

// TestDrainOfDatabase drains the provider of a StatefulSet of two, one of which is labelled as the primary and one as the standby: labels
// that differ do not make them two workloads of one copy, which would stay. The command ends, there was always one that was ready, and the
// primary is called so at the other provider.
func TestDrainOfDatabase(t *testing.T) {
	const namespace, replicas = "database", 2
	start(t, v1alpha1.ModeOrchestrated)
	schedule(t, fed.ProviderA, v1alpha1.SchedulingActive) // So it is when the test ends.
	cordon(t, fed.ProviderB)
	offloadCapacity(t, fed.Consumer, namespace)
	if err := fed.Consumer.ApplyManifests(t.Context(), fmt.Sprintf(database, namespace)); err != nil {
		t.Fatal(err)
	}
	before := copies(t, namespace, replicas, fed.ProviderA)

	// The labels of running pods arrive at the provider, and no pod is made again for them.
	roles := map[string]string{"db-0": "standby", "db-1": "primary"}
	for pod, role := range roles {
		if _, err := fed.Consumer.Kubectl(t.Context(), "label", "pod", pod, "--namespace="+namespace, "role="+role); err != nil {
			t.Fatal(err)
		}
	}
	inRoles(t, namespace, roles, fed.Broker, fed.ProviderA)
	if after := copies(t, namespace, replicas, fed.ProviderA); after[1].Address[fed.ProviderA.Name] != before[1].Address[fed.ProviderA.Name] {
		t.Errorf("the primary was made again for a label: %v, was %v", after[1], before[1])
	}

	toggle(t, fed.ProviderB, true)
	eventually(t, time.Minute, func(ctx context.Context) error { return takesPods(ctx, fed.ProviderB) })
	watch := watchPods(t, namespace)
	began := time.Now()
	drained := mustPlugin(t, fed.Broker, "drain", string(fed.ProviderA.ID), "--timeout", "3m")
	least := watch.stop()
	t.Logf("drained in %.1f s:\n%s", time.Since(began).Seconds(), drained)
	if !strings.Contains(drained, " drained\n") {
		t.Errorf("it does not say that the provider is drained:\n%s", drained)
	}
	if least == 0 {
		t.Error("there was a moment in which neither pod was ready")
	}
	checkAddresses(t, copies(t, namespace, replicas, fed.ProviderB))
	inRoles(t, namespace, roles, fed.Consumer, fed.Broker, fed.ProviderB)
}

// inRoles waits until clusters show the pods of a namespace of the consumer with these roles, by name.
func inRoles(t *testing.T, namespace string, roles map[string]string, on ...*federation.Cluster) {
	t.Helper()
	eventually(t, time.Minute, func(ctx context.Context) error {
		for _, c := range on {
			var pods corev1.PodList
			if err := c.List(ctx, &pods, client.MatchingLabels{"app": "db"}); err != nil {
				return err
			}
			seen := map[string]string{}
			for i := range pods.Items {
				if pod := &pods.Items[i]; strings.HasPrefix(pod.Namespace, namespace) && pod.DeletionTimestamp.IsZero() {
					seen[pod.Name] = pod.Labels["role"]
				}
			}
			for pod, role := range roles {
				if seen[pod] != role {
					return fmt.Errorf("%s shows roles %v, want %v", c.Name, seen, roles)
				}
			}
		}
		return nil
	})
}

// watchPods looks at how many pods of a namespace of the consumer are ready, until it is stopped.
func watchPods(t *testing.T, namespace string) *readyWatch {
	t.Helper()
	return watchCount(t, func(ctx context.Context) (ready int, err error) {
		var pods corev1.PodList
		if err := fed.Consumer.List(ctx, &pods, client.InNamespace(namespace)); err != nil {
			return 0, err
		}
		for i := range pods.Items {
			if podstate.Ready(&pods.Items[i]) {
				ready++
			}
		}
		return ready, nil
	})
}

// offloading is the offloading of a namespace to the virtual nodes of clusters, as what follows in a file.
func offloading(namespace string, strategy liqo.Mapping, to ...*federation.Cluster) string {
	ids := make([]string, len(to))
	for i, c := range to {
		ids[i] = strconv.Quote(string(c.ID))
	}
	return fmt.Sprintf(`
---
apiVersion: %s
kind: NamespaceOffloading
metadata: {name: offloading, namespace: %s}
spec:
  namespaceMappingStrategy: %s
  podOffloadingStrategy: Remote
  clusterSelector:
    nodeSelectorTerms:
      - matchExpressions: [{key: liqo.io/remote-cluster-id, operator: In, values: [%s]}]
`, fed.Consumer.OffloadingAPI(), namespace, strategy, strings.Join(ids, ", "))
}

// offloadedTo is a namespace and its offloading to clusters, under a name that Liqo gives it there, in one file, as from a repository that
// somebody applies.
func offloadedTo(namespace string, to ...*federation.Cluster) string {
	return fmt.Sprintf(`
apiVersion: v1
kind: Namespace
metadata: {name: %s}`, namespace) + offloading(namespace, "DefaultName", to...)
}

// applied is a namespace and a workload in it, which come before the offloading in one file that Helm or Argo CD sorts: kinds that these do
// not know are the last. %[2]d is the number of replicas.
const applied = `
apiVersion: v1
kind: Namespace
metadata: {name: %[1]s}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: %[1]s}
spec:
  replicas: %[2]d
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      terminationGracePeriodSeconds: 1
      containers:
        - name: web
          image: lab.local/web:1
          imagePullPolicy: IfNotPresent
          ports: [{containerPort: 8080}]
          readinessProbe: {httpGet: {path: /, port: 8080}, periodSeconds: 1}
          resources: {requests: {cpu: 10m, memory: 16Mi}}
`

// TestAppliedAtOnce applies a namespace, its offloading and a Deployment by one command: the pods stay at home, `where` and `diagnose` on
// the consumer name them, and the command that `where` prints has them run on providers.
func TestAppliedAtOnce(t *testing.T) {
	const namespace, replicas, home = "applied", 2, "Pods of namespace applied run at home, though all are to run elsewhere"
	together(t, v1alpha1.ModeAggregated)
	removeAtEnd(t, namespace)
	// Liqo's webhook may not have seen the namespace yet: then the offloading comes by the second try, and the rest is as it was.
	eventually(t, time.Minute, func(ctx context.Context) error {
		return fed.Consumer.ApplyManifests(ctx, fmt.Sprintf(applied, namespace, replicas)+offloading(namespace, "DefaultName", fed.Broker))
	})
	awaitOffloading(t, fed.Consumer, namespace)

	left := atHome(t, namespace, replicas)
	if len(left) == 0 {
		t.Fatal("no pod has stayed at home: Liqo had labelled the namespace before the Deployment's first pod was made")
	}
	where := mustPlugin(t, fed.Consumer, "where", namespace)
	diagnosed, code := exitOf(t, fed.Consumer, "diagnose")
	if code != 3 {
		t.Errorf("diagnose exits with %d, want 3", code)
	}
	for _, said := range append(left, home) {
		for command, out := range map[string]string{"where": where, "diagnose": diagnosed} {
			if !strings.Contains(out, said) {
				t.Errorf("%s does not say %q:\n%s", command, said, out)
			}
		}
	}
	const command = "kubectl rollout restart -n " + namespace + " deployment/web"
	if !strings.Contains(where, command) {
		t.Fatalf("where does not say %q:\n%s", command, where)
	}

	if _, err := fed.Consumer.Kubectl(t.Context(), strings.Fields(command)[1:]...); err != nil {
		t.Fatal(err)
	}
	eventually(t, 2*time.Minute, func(ctx context.Context) error {
		pods, err := fed.Copies(ctx, namespace)
		for _, pod := range pods {
			if pod.RunsOn == fed.Consumer {
				return fmt.Errorf("pod %s still runs at home", pod.Name)
			}
		}
		return err
	})
	checkAddresses(t, copies(t, namespace, replicas))
	if where := mustPlugin(t, fed.Consumer, "where", namespace); strings.Contains(where, home) {
		t.Errorf("all pods are elsewhere, and where says\n%s", where)
	}
}

// atHome returns the names of the pods of a namespace that Liqo's webhook has not let go, once there are so many pods in all.
func atHome(t *testing.T, namespace string, replicas int) []string {
	t.Helper()
	var left []string
	eventually(t, time.Minute, func(ctx context.Context) error {
		var pods corev1.PodList
		if err := fed.Consumer.List(ctx, &pods, client.InNamespace(namespace)); err != nil {
			return err
		}
		if left = nil; len(pods.Items) != replicas {
			return fmt.Errorf("there are %d pods, want %d", len(pods.Items), replicas)
		}
		for i := range pods.Items {
			if !liqo.Admitted(&pods.Items[i]) {
				left = append(left, pods.Items[i].Name)
			}
		}
		return nil
	})
	return left
}
