// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capacitorset/liqo-broker/pkg/api/v1alpha1"
	"github.com/capacitorset/liqo-broker/pkg/liqo/line"
	"github.com/capacitorset/liqo-broker/test/federation"
	"github.com/capacitorset/liqo-broker/test/walk"
)

// lonePod is a pod that nothing recreates, with lines that follow in its spec. It requires the broker's node, so that it does not stay at
// home while Liqo takes note of a namespace that is applied with it.
const lonePod = `
---
apiVersion: v1
kind: Pod
metadata:
  name: %[2]s
  namespace: %[1]s
spec:
  terminationGracePeriodSeconds: 1
  nodeSelector: {liqo.io/remote-cluster-id: "%[3]s"}
  tolerations: [{key: virtual-node.liqo.io/not-allowed, operator: Exists}]
  containers:
    - name: web
      image: lab.local/web:1
      imagePullPolicy: IfNotPresent
      resources:
        requests: {cpu: 10m, memory: 16Mi}
        limits: {cpu: 500m, memory: 64Mi}
`

// TestPodsKeepOffTheBroker applies namespaces, offloadings and pods at once, and follows where the broker's scheduler binds the pods:
// to virtual nodes only, from the first moment on.
func TestPodsKeepOffTheBroker(t *testing.T) {
	const namespaces = 12
	together(t, v1alpha1.ModeOrchestrated)
	var names []string
	var manifest strings.Builder
	for i := range namespaces {
		name := fmt.Sprintf("at-once-%d", i)
		names = append(names, name)
		manifest.WriteString(offloadedTo(name, fed.Broker))
		fmt.Fprintf(&manifest, lonePod, name, "web", fed.Broker.ID)
		manifest.WriteString("---\n")
	}
	removeAtEnd(t, names...)
	bindings := watchBindings(t, "at-once-")
	if err := fed.Consumer.ApplyManifests(t.Context(), manifest.String()); err != nil {
		t.Fatal(err)
	}
	for _, namespace := range names {
		copies(t, namespace, 1)
	}
	bindings.check(t, namespaces)
}

// bindings are what the broker's scheduler did with the pods of some twin namespaces.
type bindings struct {
	mu sync.Mutex
	// asked is when the consumer asked for a pod: a ShadowPod came.
	asked map[string]time.Time
	// bound is when a pod was bound to a virtual node the last time.
	bound map[string]time.Time
	// strays are the pods that were bound to one of the broker's own nodes.
	strays map[string]string
}

// watchBindings follows the pods of the twin namespaces whose names have a prefix, until the test ends.
func watchBindings(t *testing.T, prefix string) *bindings {
	t.Helper()
	var nodes corev1.NodeList
	if err := fed.Broker.List(t.Context(), &nodes, client.MatchingLabels{"liqo.io/type": "virtual-node"}); err != nil {
		t.Fatal(err)
	}
	virtual := map[string]bool{}
	for i := range nodes.Items {
		virtual[nodes.Items[i].Name] = true
	}
	b := &bindings{asked: map[string]time.Time{}, bound: map[string]time.Time{}, strays: map[string]string{}}
	follow(t, fed.Broker, fed.Broker.Line.Kinds().Wishes, func(o client.Object) {
		if key := client.ObjectKeyFromObject(o).String(); strings.HasPrefix(key, prefix) && b.asked[key].IsZero() {
			b.asked[key] = time.Now()
		}
	}, &b.mu)
	follow(t, fed.Broker, &corev1.PodList{}, func(o client.Object) {
		node, key := o.(*corev1.Pod).Spec.NodeName, client.ObjectKeyFromObject(o).String()
		switch {
		case node == "" || !strings.HasPrefix(key, prefix):
		case !virtual[node]:
			b.strays[key] = node
		case b.bound[key].IsZero():
			b.bound[key] = time.Now()
		}
	}, &b.mu)
	return b
}

// follow calls a function for each object of a kind on a cluster that comes or changes from now on, until the test ends, one call at
// a time.
func follow(t *testing.T, c *federation.Cluster, list client.ObjectList, see func(client.Object), mu *sync.Mutex) {
	t.Helper()
	if err := c.List(t.Context(), list); err != nil {
		t.Fatal(err)
	}
	since := &client.ListOptions{Raw: &metav1.ListOptions{ResourceVersion: list.GetResourceVersion()}}
	watcher, err := c.Watch(t.Context(), list, since)
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for event := range watcher.ResultChan() {
			if o, ok := event.Object.(client.Object); ok && event.Type != watch.Deleted {
				mu.Lock()
				see(o)
				mu.Unlock()
			}
		}
	}()
	t.Cleanup(func() {
		watcher.Stop()
		<-done
	})
}

// check fails unless so many pods were bound, and none of them astray at any time. It prints how long binding took.
func (b *bindings) check(t *testing.T, pods int) {
	t.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	b.reportStrays(t)
	var took []time.Duration
	for key, at := range b.bound {
		took = append(took, at.Sub(b.asked[key]))
	}
	slices.Sort(took)
	if len(took) != pods {
		t.Fatalf("%d pods were bound to virtual nodes, want %d", len(took), pods)
	}
	t.Logf("from ShadowPod to bound: median %.2f s, longest %.2f s, of %d pods", took[len(took)/2].Seconds(),
		took[len(took)-1].Seconds(), len(took))
}

// none fails if a pod was bound to any node.
func (b *bindings) none(t *testing.T) {
	t.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	b.reportStrays(t)
	for key := range b.bound {
		t.Errorf("pod %s was bound to a virtual node", key)
	}
}

// reportStrays fails if a pod was bound to a node of the broker itself. The caller holds the lock.
func (b *bindings) reportStrays(t *testing.T) {
	t.Helper()
	for _, key := range slices.Sorted(maps.Keys(b.strays)) {
		t.Errorf("pod %s was bound to the broker's own node %s", key, b.strays[key])
	}
}

// TestPodsWait asks for pods where no provider may take them: they wait, and run when somebody may.
func TestPodsWait(t *testing.T) {
	const namespace = "waits"
	together(t, v1alpha1.ModeOrchestrated)
	removeAtEnd(t, namespace)
	bindings := watchBindings(t, namespace+"-")
	apply(t, fmt.Sprintf(nobody, fed.Consumer.ID, `["nowhere"] == "at all"`))
	manifest := offloadedTo(namespace, fed.Broker)
	if err := fed.Consumer.ApplyManifests(t.Context(), manifest+fmt.Sprintf(lonePod, namespace, "undecided", fed.Broker.ID)); err != nil {
		t.Fatal(err)
	}
	waits(t, namespace, "undecided")
	status, body := api(t, "/debug/namespaces/"+twinOf(t, namespace))
	for _, want := range []string{
		`"policy":"nobody"`, `"reason":"NoProviderChosen"`, `"name":"undecided"`, `"why":"no provider takes new pods"`,
	} {
		if status != "200" || !strings.Contains(body, want) {
			t.Errorf("who asks why it waits gets status %s, want %s in %s", status, want, body)
		}
	}
	// Somebody passes now, and what waits goes there.
	apply(t, fmt.Sprintf(nobody, fed.Consumer.ID, `["liqo.io/type"] == "virtual-node"`))
	copies(t, namespace, 1)

	// A policy that cannot decide any more keeps what runs, and gets nothing new.
	apply(t, fmt.Sprintf(nobody, fed.Consumer.ID, `["nowhere"] == "at all"`))
	eventually(t, time.Minute, func(ctx context.Context) error {
		output, err := fed.Broker.Kubectl(ctx, "get", "placementdecisions", "--output=jsonpath={.items[*].chosen[*].barred}")
		if err == nil && !strings.Contains(output, "true") {
			err = fmt.Errorf("no provider is barred: %q", output)
		}
		return err
	})
	addPod(t, namespace, "barred")
	waits(t, namespace, "barred")
	if _, err := fed.Broker.Kubectl(t.Context(), "delete", "placementpolicy", "nobody"); err != nil {
		t.Fatal(err)
	}
	copies(t, namespace, 2)
	bindings.check(t, 2)
}

// TestPodsWaitForTheDaemon asks for a pod while there is no daemon: the broker does not even make it, until the daemon is back.
func TestPodsWaitForTheDaemon(t *testing.T) {
	const namespace = "unheard"
	start(t, v1alpha1.ModeOrchestrated)
	removeAtEnd(t, namespace)
	bindings := watchBindings(t, namespace+"-")
	manifest := offloadedTo(namespace, fed.Broker)
	if err := fed.Consumer.ApplyManifests(t.Context(), manifest+fmt.Sprintf(lonePod, namespace, "heard", fed.Broker.ID)); err != nil {
		t.Fatal(err)
	}
	copies(t, namespace, 1)

	scaleBroker(t, 0)
	t.Cleanup(func() { scaleBroker(t, 1) })
	addPod(t, namespace, "unheard")
	for range 5 {
		time.Sleep(time.Second)
		err := fed.Broker.Get(t.Context(), client.ObjectKey{Namespace: twinOf(t, namespace), Name: "unheard"}, &corev1.Pod{})
		if !apierrors.IsNotFound(err) {
			t.Fatalf("a pod was made without the daemon: %v", err)
		}
	}
	scaleBroker(t, 1)
	copies(t, namespace, 2)
	bindings.check(t, 2)
}

// scaleBroker runs so many replicas of the daemon, and waits until they answer.
func scaleBroker(t *testing.T, replicas int) {
	t.Helper()
	ctx := context.WithoutCancel(t.Context())
	for _, args := range [][]string{
		{"scale", "--namespace=liqo-broker", "deployment/liqo-broker", fmt.Sprintf("--replicas=%d", replicas)},
		{"rollout", "status", "--namespace=liqo-broker", "deployment/liqo-broker", "--timeout=2m"},
	} {
		if _, err := fed.Broker.Kubectl(ctx, args...); err != nil {
			t.Fatal(err)
		}
	}
	if err := federation.Until(ctx, time.Minute, func(ctx context.Context) error {
		_, _, err := fed.AskAPI(ctx, "", "/api/clusters")
		if replicas == 0 {
			err = nil
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
}

// nobody is a policy for a namespace of the consumer with a filter of labels.
const nobody = `
apiVersion: brokering.liqo.io/v1alpha1
kind: PlacementPolicy
metadata:
  name: nobody
spec:
  appliesTo: {scope: Namespaces, consumers: [%s], namespaces: {names: [waits]}}
  filters: ['labels%s']
`

// addPod adds a pod to a namespace of the consumer.
func addPod(t *testing.T, namespace, name string) {
	t.Helper()
	if err := fed.Consumer.ApplyManifests(t.Context(), fmt.Sprintf(lonePod, namespace, name, fed.Broker.ID)); err != nil {
		t.Fatal(err)
	}
}

// wished waits until the broker has been asked for a pod.
func wished(t *testing.T, namespace, name string) {
	t.Helper()
	eventually(t, time.Minute, func(ctx context.Context) error {
		shadow := line.Empty(fed.Broker.Line.Kinds().Wish)
		return fed.Broker.Get(ctx, client.ObjectKey{Namespace: twinOf(t, namespace), Name: name}, shadow)
	})
}

// waits fails unless a pod gets to the broker and stays there without a node for a while.
func waits(t *testing.T, namespace, name string) {
	t.Helper()
	var pod corev1.Pod
	eventually(t, time.Minute, func(ctx context.Context) error {
		twin, err := fed.Broker.Twin(ctx, fed.Consumer, namespace)
		if err != nil {
			return err
		}
		return fed.Broker.Get(ctx, client.ObjectKey{Namespace: twin, Name: name}, &pod)
	})
	for range 5 {
		time.Sleep(time.Second)
		if err := fed.Broker.Get(t.Context(), client.ObjectKeyFromObject(&pod), &pod); client.IgnoreNotFound(err) != nil {
			t.Fatal(err)
		}
		if pod.Spec.NodeName != "" {
			t.Fatalf("pod %s does not wait: it is bound to %s", name, pod.Spec.NodeName)
		}
	}
}

// TestPodsAreConfined asks for what no pod of a consumer gets: nodes of the broker, and the host. The consumer is told why.
func TestPodsAreConfined(t *testing.T) {
	const namespace = "confined"
	together(t, v1alpha1.ModeOrchestrated)
	deploy(t, namespace, federation.Web, 1)
	twin := twinOf(t, namespace)
	user, err := fed.QuotaUser(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	// Liqo gives the rights to a user, or to a group that is called like the cluster.
	as := []string{"--as=" + user, "--as-group=" + string(fed.Consumer.ID)}
	version := fed.Broker.Traits().ShadowPods
	marks, _, _ := strings.Cut(version, "/")
	cases := map[string]struct{ reason, spec, refusal string }{
		"Plain":      {"an ordinary pod", ``, ""},
		"NodeName":   {"a pod that names its node", `"nodeName": "broker"`, "spec.nodeName"},
		"HostPath":   {"a pod with the root of its node", `"volumes": [{"name": "host", "hostPath": {"path": "/"}}]`, "hostPath"},
		"HostPID":    {"a pod that sees its node's processes", `"hostPID": true`, "host namespaces"},
		"Network":    {"a pod in its node's network", `"hostNetwork": true`, "host namespaces"},
		"Priority":   {"a pod that evicts others", `"priorityClassName": "system-node-critical"`, "priority"},
		"Privileged": {"a privileged pod", `"initContainers": [{"name": "root", "image": "lab.local/web:1", "securityContext": {"privileged": true}}]`, "privileged"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			pod := `"containers": [{"name": "web", "image": "lab.local/web:1", "imagePullPolicy": "IfNotPresent"}]`
			if tc.spec != "" {
				pod += ", " + tc.spec
			}
			err := createAs(t, fmt.Sprintf(`{"apiVersion": "%s", "kind": "ShadowPod",
				"metadata": {"name": "wish-%s", "namespace": "%s", "labels": {"%[4]s/origin": "%[5]s", "%[4]s/destination": "%[6]s"}},
				"spec": {"pod": {%[7]s}}}`, version, strings.ToLower(name), twin, marks, fed.Consumer.ID, fed.Broker.ID, pod), as...)
			if tc.refusal == "" && err != nil || tc.refusal != "" && (err == nil || !strings.Contains(err.Error(), tc.refusal)) {
				t.Errorf("%s: %v, want %q", tc.reason, err, tc.refusal)
			}
		})
	}

	// The consumer's own user reads it in the events of the pod.
	privileged := strings.Replace(fmt.Sprintf(lonePod, namespace, "host", fed.Broker.ID),
		"  containers:", "  volumes: [{name: host, hostPath: {path: /}}]\n  containers:", 1)
	if err := fed.Consumer.ApplyManifests(t.Context(), privileged); err != nil {
		t.Fatal(err)
	}
	eventually(t, time.Minute, func(ctx context.Context) error {
		output, err := fed.Consumer.Kubectl(ctx, "get", "events", "--namespace="+namespace, "--field-selector=involvedObject.name=host",
			"--output=jsonpath={.items[*].message}")
		if err == nil && !strings.Contains(output, "hostPath") {
			err = fmt.Errorf("the events of the pod do not say why it does not run: %q", output)
		}
		return err
	})
}

// TestPodsAreConfinedWithoutWebhooks makes pods in a namespace that looks like a consumer's, while the API server does not know the
// webhooks of the broker, and Liqo's own does not look at the namespace.
func TestPodsAreConfinedWithoutWebhooks(t *testing.T) {
	installed(t)
	const twin = "bare-twin"
	if !withPolicies(t) {
		t.Skip("this Kubernetes has no admission policies")
	}
	walk.KubectlAtEnd(t, fed.Broker, "delete", "namespace", twin, "--ignore-not-found")
	if err := fed.Broker.ApplyManifests(t.Context(), fmt.Sprintf(`{"apiVersion": "v1", "kind": "Namespace",
		"metadata": {"name": %q, "labels": {"liqo.io/remote-cluster-id": %q}}}`, twin, fed.Consumer.ID)); err != nil {
		t.Fatal(err)
	}
	withoutWebhooks(t)
	const container = `"containers": [{"name": "web", "image": "lab.local/web:1"}]`
	const virtual = `"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [
		{"matchExpressions": [{"key": "liqo.io/type", "operator": "In", "values": ["virtual-node"]}]}]}}}`
	cases := map[string]struct{ spec, refusal string }{
		"Anywhere": {container, "does not require liqo.io/type=virtual-node"},
		"NodeName": {container + `, "nodeName": "broker", ` + virtual, "spec.nodeName"},
		"HostPath": {container + `, "volumes": [{"name": "host", "hostPath": {"path": "/"}}], ` + virtual, "path of the host"},
		"HostPID":  {container + `, "hostPID": true, ` + virtual, "namespace of the host"},
		"Plain":    {container + `, ` + virtual, ""},
	}
	for name, tc := range cases {
		eventually(t, time.Minute, func(context.Context) error { // The API server needs a moment to forget the webhooks.
			err := createAs(t, fmt.Sprintf(`{"apiVersion": "v1", "kind": "Pod",
				"metadata": {"generateName": "bare-%s-", "namespace": "%s"}, "spec": {%s}}`, strings.ToLower(name), twin, tc.spec),
				"--as=system:serviceaccount:liqo:liqo-controller-manager")
			refusal := ""
			if err != nil {
				refusal = err.Error()
			}
			if (refusal == "") != (tc.refusal == "") || !strings.Contains(refusal, tc.refusal) {
				return fmt.Errorf("%s: refused because of %q, want %q", name, refusal, tc.refusal)
			}
			return nil
		})
	}
}
