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

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	vkv1alpha1 "github.com/liqotech/liqo/apis/virtualkubelet/v1alpha1"

	"github.com/capacitorset/liqo-broker/pkg/api/v1alpha1"
)

// atOnce is a namespace, its offloading and pods in one file, as from a repository that somebody applies. The pods require the
// broker's node, so that none of them stays at home while Liqo takes note of the namespace.
const atOnce = `
apiVersion: v1
kind: Namespace
metadata:
  name: %[1]s
---
apiVersion: offloading.liqo.io/v1alpha1
kind: NamespaceOffloading
metadata:
  name: offloading
  namespace: %[1]s
spec:
  namespaceMappingStrategy: DefaultName
  podOffloadingStrategy: Remote
  clusterSelector:
    nodeSelectorTerms:
      - matchExpressions:
          - {key: liqo.io/remote-cluster-id, operator: In, values: ["%[2]s"]}
`

// lonePod is a pod that nothing recreates, with lines that follow in its spec.
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
	start(t, v1alpha1.ModeOrchestrated)
	var names []string
	var manifest strings.Builder
	for i := range namespaces {
		name := fmt.Sprintf("at-once-%d", i)
		names = append(names, name)
		fmt.Fprintf(&manifest, atOnce, name, fed.Broker.ID)
		fmt.Fprintf(&manifest, lonePod, name, "web", fed.Broker.ID)
		manifest.WriteString("---")
	}
	removeAtEnd(t, names...)
	bindings := watchBindings(t, "at-once-")
	if err := fed.Consumer.Apply(t.Context(), manifest.String()); err != nil {
		t.Fatal(err)
	}
	for _, namespace := range names {
		copies(t, namespace, 1)
	}
	bindings.check(t, namespaces)
}

// removeAtEnd removes namespaces of the consumer now, of a run that failed, and when the test has ended well.
func removeAtEnd(t *testing.T, namespaces ...string) {
	t.Helper()
	remove := func(ctx context.Context) error {
		group, ctx := errgroup.WithContext(ctx)
		for _, namespace := range namespaces {
			group.Go(func() error { return fed.Remove(ctx, namespace) })
		}
		return group.Wait()
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("namespaces %v stay, to look at", namespaces)
			return
		}
		if err := remove(context.WithoutCancel(t.Context())); err != nil {
			t.Errorf("remove namespaces %v: %v", namespaces, err)
		}
	})
	if err := remove(t.Context()); err != nil {
		t.Fatal(err)
	}
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
	follow(t, &vkv1alpha1.ShadowPodList{}, func(o client.Object) {
		if key := client.ObjectKeyFromObject(o).String(); strings.HasPrefix(key, prefix) && b.asked[key].IsZero() {
			b.asked[key] = time.Now()
		}
	}, &b.mu)
	follow(t, &corev1.PodList{}, func(o client.Object) {
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

// follow calls a function for each object of a kind on the broker that comes or changes from now on, until the test ends, one call at
// a time.
func follow(t *testing.T, list client.ObjectList, see func(client.Object), mu *sync.Mutex) {
	t.Helper()
	if err := fed.Broker.List(t.Context(), list); err != nil {
		t.Fatal(err)
	}
	since := &client.ListOptions{Raw: &metav1.ListOptions{ResourceVersion: list.GetResourceVersion()}}
	watcher, err := fed.Broker.Watch(t.Context(), list, since)
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
	for _, key := range slices.Sorted(maps.Keys(b.strays)) {
		t.Errorf("pod %s was bound to the broker's own node %s", key, b.strays[key])
	}
	var took []time.Duration
	for key, at := range b.bound {
		took = append(took, at.Sub(b.asked[key]))
	}
	slices.Sort(took)
	if len(took) != pods {
		t.Fatalf("%d pods were bound to virtual nodes, want %d", len(took), pods)
	}
	t.Logf("from ShadowPod to bound: median %.2f s, longest %.2f s, of %d pods", took[len(took)/2].Seconds(), took[len(took)-1].Seconds(), len(took))
}
