// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capacitorset/liqo-broker/pkg/api/v1alpha1"
	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
	"github.com/capacitorset/liqo-broker/pkg/liqo"
	"github.com/capacitorset/liqo-broker/pkg/liqo/line"
	"github.com/capacitorset/liqo-broker/test/federation"
)

// TestAPIServerOfAggregated does what checkAPIServer does with a pod that the consumer reaches by relay.
func TestAPIServerOfAggregated(t *testing.T) {
	needs(t, federation.TokensPass)
	together(t, v1alpha1.ModeAggregated)
	checkAPIServer(t, "api-server-aggregated", fed.ProviderB)
}

// TestAPIServerOfOrchestrated does what checkAPIServer does with a pod that the consumer reaches directly.
func TestAPIServerOfOrchestrated(t *testing.T) {
	needs(t, federation.TokensPass)
	together(t, v1alpha1.ModeOrchestrated)
	checkAPIServer(t, "api-server-orchestrated", fed.ProviderA)
}

// checkAPIServer asks, in a pod two hops away, the API server that the pod was told of who it is: it is the consumer's, by
// certificate, token and answer.
func checkAPIServer(t *testing.T, namespace string, provider *federation.Cluster) {
	t.Helper()
	pin(t, namespace, provider)
	deploy(t, namespace, federation.Shell, 1)
	pod := copies(t, namespace, 1, provider)[0]

	user := whoAmI(t, namespace, pod.Name)
	if want := fmt.Sprintf("system:serviceaccount:%s:default", namespace); user != want {
		t.Errorf("the API server takes the pod for %q, want %q", user, want)
	}
	remote := podOn(t, provider, namespace, pod.Name)
	if got := len(remote.Spec.HostAliases); got != 1 {
		t.Errorf("the pod has %d host aliases: %v", got, remote.Spec.HostAliases)
	}
	seen := map[string]bool{}
	for _, variable := range remote.Spec.Containers[0].Env {
		if seen[variable.Name] {
			t.Errorf("the pod has the variable %s twice", variable.Name)
		}
		seen[variable.Name] = true
	}
}

// whoAmI asks the API server that a pod of the consumer was told of for the user that the pod's token belongs to.
func whoAmI(t *testing.T, namespace, pod string) string {
	t.Helper()
	const ask = `cd /var/run/secrets/kubernetes.io/serviceaccount && exec curl --silent --show-error --max-time 10 --cacert ca.crt \
		--header "Authorization: Bearer $(cat token)" --header 'Content-Type: application/json' \
		--data '{"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}' \
		"https://$KUBERNETES_SERVICE_HOST:$KUBERNETES_SERVICE_PORT/apis/authentication.k8s.io/v1/selfsubjectreviews"`
	var answer string
	eventually(t, time.Minute, func(ctx context.Context) (err error) {
		answer, err = fed.Consumer.Kubectl(ctx, "exec", "--namespace="+namespace, pod, "--", "sh", "-c", ask)
		return err
	})
	var review struct {
		Status struct {
			UserInfo struct {
				Username string `json:"username"`
			} `json:"userInfo"`
		} `json:"status"`
	}
	if err := json.Unmarshal([]byte(answer), &review); err != nil {
		t.Fatalf("the API server answered %s: %v", answer, err)
	}
	return review.Status.UserInfo.Username
}

// podOn returns a pod of the consumer as it is on another cluster.
func podOn(t *testing.T, c *federation.Cluster, namespace, name string) *corev1.Pod {
	t.Helper()
	var pods corev1.PodList
	if err := c.List(t.Context(), &pods); err != nil {
		t.Fatal(err)
	}
	at := slices.IndexFunc(pods.Items, func(pod corev1.Pod) bool {
		return pod.Name == name && strings.HasPrefix(pod.Namespace, namespace)
	})
	if at < 0 {
		t.Fatalf("%s does not have pod %s", c.Name, name)
	}
	return &pods.Items[at]
}

// TestOffloadedTwice offloads a namespace to a provider both directly and through the broker.
func TestOffloadedTwice(t *testing.T) {
	together(t, v1alpha1.ModeAggregated)
	for _, strategy := range []liqo.Mapping{"DefaultName", "EnforceSameName"} {
		t.Run(string(strategy), func(t *testing.T) {
			t.Parallel()
			namespace := "twice-" + strings.ToLower(string(strategy))
			pin(t, namespace, fed.ProviderA)
			removeAtEnd(t, namespace)
			offload(t, namespace, strategy, fed.ProviderA, fed.Broker)
			pods := copies(t, namespace, 2, fed.ProviderA)
			direct, brokered := podOn(t, fed.ProviderA, namespace, pods[0].Name), podOn(t, fed.ProviderA, namespace, pods[1].Name)
			if direct.Namespace == brokered.Namespace {
				t.Errorf("both pods are in namespace %s of the provider", direct.Namespace)
			}
			checkAddresses(t, pods)
		})
	}
}

// longest is the length of the longest name to which Liqo on the consumer can append what names of twins end with.
func longest() int {
	end := "-" + fed.Consumer.Name
	if fed.Consumer.Has(federation.IDInTwins) {
		end += "-123456"
	}
	return 63 - len(end)
}

// TestLongNames offloads namespaces to whose names the broker cannot append its own. Liqo on the consumer does not append a
// name either if that makes more than 63 characters.
func TestLongNames(t *testing.T) {
	together(t, v1alpha1.ModeAggregated)
	cases := map[string]struct {
		length   int
		strategy liqo.Mapping
	}{
		"Of45Characters":                 {45, "DefaultName"},
		"LongestWithTheNameOfTheCluster": {longest(), "DefaultName"},
		"Longest":                        {63, "EnforceSameName"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			namespace := ofLength("long", tc.length)
			removeAtEnd(t, namespace)
			offload(t, namespace, tc.strategy, fed.Broker)
			checkAddresses(t, copies(t, namespace, 1))
		})
	}
}

// TestCollision offloads a namespace with a long name to provider-a directly, and then to the broker as well: provider-a has
// the name already, so that the broker uses provider-b.
func TestCollision(t *testing.T) {
	together(t, v1alpha1.ModeAggregated)
	namespace := ofLength("collision", longest())
	removeAtEnd(t, namespace)
	offload(t, namespace, "DefaultName", fed.ProviderA)
	direct := copies(t, namespace, 1, fed.ProviderA)
	offload(t, namespace, "DefaultName", fed.ProviderA, fed.Broker)
	eventually(t, time.Minute, func(ctx context.Context) error {
		selecting, err := line.OffloadedTo(ctx, fed.Broker, fed.Broker.Line, fed.ProviderA.ID)
		if err != nil {
			return err
		}
		for _, twin := range selecting {
			if strings.HasPrefix(twin, namespace) {
				return fmt.Errorf("namespace %s of the broker goes to provider-a", twin)
			}
		}
		return nil
	})
	pods := copies(t, namespace, 2, fed.ProviderA, fed.ProviderB)
	checkAddresses(t, pods)
	refusals, err := fed.Broker.Kubectl(t.Context(), "get", "events", "--all-namespaces", "--field-selector=reason=NamespaceRefused",
		"--output=jsonpath={.items[*].metadata.namespace}")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(refusals, namespace) {
		t.Errorf("no event says that a provider cannot make the namespace, but for %q", refusals)
	}
	if !slices.ContainsFunc(pods, func(pod federation.Copy) bool { return pod.Name == direct[0].Name }) {
		t.Errorf("pod %s, which was there before, is gone", direct[0].Name)
	}
}

// ofLength returns a name of so many characters.
func ofLength(prefix string, length int) string {
	return (prefix + "-" + strings.Repeat("n", length))[:length]
}

// offload gives the consumer a namespace that goes to the given clusters, and in it for each of them a web
// server that runs there.
func offload(t *testing.T, namespace string, strategy liqo.Mapping, to ...*federation.Cluster) {
	t.Helper()
	apply := func(manifest string, values ...any) {
		t.Helper()
		if err := fed.Consumer.ApplyManifests(t.Context(), fmt.Sprintf(manifest, values...)); err != nil {
			t.Fatal(err)
		}
	}
	apply(`
apiVersion: v1
kind: Namespace
metadata: {name: %s}
%s`, namespace, offloading(namespace, strategy, to...))
	eventually(t, time.Minute, func(ctx context.Context) error {
		var ns corev1.Namespace
		if err := fed.Consumer.Get(ctx, client.ObjectKey{Name: namespace}, &ns); err != nil {
			return err
		}
		of := fed.Consumer.Line
		o, err := line.ReadOffloading(ctx, fed.Consumer, of, of.Kinds().Offloading, namespace)
		if err != nil || o == nil || !o.InForce(&ns) {
			return fmt.Errorf("the offloading of namespace %s is not in force: %w", namespace, err)
		}
		for _, c := range to {
			if !of.ReceptionOf(o.Object, cluster.Identity{ID: c.ID, Name: c.Name}).Present {
				return fmt.Errorf("%s does not have namespace %s yet", c.Name, namespace)
			}
		}
		return nil
	})
	for _, c := range to {
		apply(`
apiVersion: apps/v1
kind: Deployment
metadata: {name: web-%[2]s, namespace: %[1]s}
spec:
  selector: {matchLabels: {app: web-%[2]s}}
  template:
    metadata: {labels: {app: web-%[2]s}}
    spec:
      terminationGracePeriodSeconds: 1
      nodeSelector: {liqo.io/remote-cluster-id: %[3]s}
      containers:
        - name: web
          image: lab.local/web:1
          imagePullPolicy: IfNotPresent
          ports: [{containerPort: 8080}]
          readinessProbe: {httpGet: {path: /, port: 8080}, periodSeconds: 1}
          resources: {requests: {cpu: 50m, memory: 32Mi}}
`, namespace, c.Name, c.ID)
	}
}
