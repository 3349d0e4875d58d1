// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capacitorset/liqo-broker/pkg/api/v1alpha1"
	"github.com/capacitorset/liqo-broker/test/federation"
)

// TestOrchestrator runs replicas on the provider that the consumer chose, reads from one of them past the broker, and moves
// them to the other provider, which the consumer is not peered with, while they serve. They stay there when it is cordoned.
func TestOrchestrator(t *testing.T) {
	const namespace, replicas = "orchestrator", 6
	start(t, v1alpha1.ModeOrchestrated)
	cordon(t, fed.ProviderB)
	deploy(t, namespace, federation.Web, replicas)
	pods := copies(t, namespace, replicas, fed.ProviderA)
	checkAddresses(t, pods)
	if direct() {
		for _, pod := range pods {
			if pod.Path != federation.PathDirect {
				t.Errorf("pod %s on %s is reached by path %q, not directly", pod.Name, pod.RunsOn.Name, pod.Path)
			}
		}
		checkTold(t, v1alpha1.ModeOrchestrated, namespace, pods)
		checkBypassesBroker(t, pods[0])
	}
	checkCallers(t, pods)

	// Move, with a daemon that is killed on the way.
	watch := watchReady(t, namespace)
	began := time.Now()
	toggle(t, fed.ProviderB, true)
	toggle(t, fed.ProviderA, false)
	if _, err := fed.Broker.Kubectl(t.Context(), "delete", "pod", "--namespace=liqo-broker", "--all", "--wait=false"); err != nil {
		t.Fatal(err)
	}
	pods = copies(t, namespace, replicas, fed.ProviderB)
	t.Logf("%d replicas moved in %.1f s", replicas, time.Since(began).Seconds())
	if least := watch.stop(); least == 0 {
		t.Error("there was a moment in which no replica was ready")
	} else {
		t.Logf("at least %d replicas were ready at any time", least)
	}
	for _, pod := range pods {
		if pod.Path != federation.PathRelay {
			t.Errorf("pod %s on %s is reached by path %q, though the consumer is not peered with that provider", pod.Name, pod.RunsOn.Name, pod.Path)
		}
	}
	checkAddresses(t, pods)
	checkTold(t, v1alpha1.ModeOrchestrated, namespace, pods)
	checkCallers(t, pods)

	// One of them is recreated while its provider is cordoned: it alone goes elsewhere.
	cordon(t, fed.ProviderB)
	toggle(t, fed.ProviderA, true)
	eventually(t, time.Minute, func(ctx context.Context) error { return takesPods(ctx, fed.ProviderA) })
	if _, err := fed.Consumer.Kubectl(t.Context(), "delete", "pod", pods[0].Name, "--namespace="+namespace); err != nil {
		t.Fatal(err)
	}
	stay := map[string]bool{}
	for _, pod := range copies(t, namespace, replicas, fed.ProviderA, fed.ProviderB) {
		stay[pod.Name] = pod.RunsOn == fed.ProviderB
	}
	for _, pod := range pods[1:] {
		if !stay[pod.Name] {
			t.Errorf("pod %s did not stay on %s, which is cordoned", pod.Name, pod.RunsOn.Name)
		}
	}
}

// takesPods returns an error unless new pods can go to a provider.
func takesPods(ctx context.Context, c *federation.Cluster) error {
	var provider v1alpha1.Provider
	if err := fed.Broker.Get(ctx, client.ObjectKey{Name: string(c.ID)}, &provider); err != nil {
		return err
	}
	ready := meta.FindStatusCondition(provider.Status.Conditions, v1alpha1.ConditionReady)
	if ready == nil || ready.Status != metav1.ConditionTrue || ready.ObservedGeneration != provider.Generation {
		return fmt.Errorf("no pods can go to %s: %+v", c.Name, ready)
	}
	return nil
}

// checkCallers asks each pod from where it was called: directly from the caller's own address as the provider sees it, and by relay from
// the first address of the broker's pod CIDR, as the provider sees it, whoever calls.
func checkCallers(t *testing.T, pods []federation.Copy) {
	t.Helper()
	if !direct() {
		return // Liqo 1.x shows its gateway's own address for whoever it does not know.
	}
	caller := pod(t, fed.Consumer, "default", "tools").Status.PodIP
	for _, p := range pods {
		output, err := fed.Consumer.Curl(t.Context(), fmt.Sprintf("http://%s:8080/", p.Address[fed.Consumer.Name]))
		if err != nil {
			t.Fatal(err)
		}
		var answer struct {
			Client string `json:"client"`
		}
		if err := json.Unmarshal([]byte(output), &answer); err != nil {
			t.Fatalf("pod %s answered %q: %v", p.Name, output, err)
		}
		toBroker, err := p.RunsOn.Link(t.Context(), fed.Broker)
		if err != nil || toBroker == nil {
			t.Fatalf("%s has no tunnel to %s: %v", p.RunsOn.Name, fed.Broker.Name, err)
		}
		want := toBroker.Path.Pods.Seen.Masked().Addr().String()
		if p.Path == federation.PathDirect {
			want = seen(t, p.RunsOn, fed.Consumer, caller)
		}
		if answer.Client != want {
			t.Errorf("pod %s, reached by path %q, was called from %s, want %s", p.Name, p.Path, answer.Client, want)
		}
	}
}

// checkBypassesBroker downloads 50 MB from a pod and looks at what arrives at the broker meanwhile.
func checkBypassesBroker(t *testing.T, pod federation.Copy) {
	t.Helper()
	const size, most = 50_000_000, 1_000_000
	before, err := received(fed.Broker)
	if err != nil {
		t.Fatal(err)
	}
	url := fmt.Sprintf("http://%s:8080/bytes/%d", pod.Address[fed.Consumer.Name], size)
	got, err := fed.Consumer.Curl(t.Context(), "--max-time", "60", "--output", "/dev/null", "--write-out", "%{size_download}", url)
	if err != nil {
		t.Fatal(err)
	}
	if want := fmt.Sprint(size); got != want {
		t.Fatalf("GET %s: got %s bytes, want %s", url, got, want)
	}
	after, err := received(fed.Broker)
	if err != nil {
		t.Fatal(err)
	}
	if grown := after - before; grown > most {
		t.Errorf("%d bytes reached the broker during a download of %d bytes that should not pass it", grown, size)
	}
}

func received(c *federation.Cluster) (uint64, error) {
	bytes, _, err := c.Lab.Traffic()
	return bytes, err
}

// A readyWatch keeps in mind how few replicas of a workload were ready.
type readyWatch struct {
	cancel context.CancelFunc
	done   sync.WaitGroup
	least  int
}

// watchReady looks at the ready replicas of the workload of a namespace of the consumer until it is stopped.
func watchReady(t *testing.T, namespace string) *readyWatch {
	t.Helper()
	return watchCount(t, func(ctx context.Context) (int, error) { return fed.ReadyReplicas(ctx, namespace, federation.Web) })
}

// watchCount counts again and again until it is stopped.
func watchCount(t *testing.T, count func(context.Context) (int, error)) *readyWatch {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	w := &readyWatch{cancel: cancel, least: 1 << 30}
	w.done.Go(func() {
		for ctx.Err() == nil {
			if ready, err := count(ctx); err == nil {
				w.least = min(w.least, ready)
			}
			select {
			case <-ctx.Done():
			case <-time.After(200 * time.Millisecond):
			}
		}
	})
	t.Cleanup(func() { w.stop() })
	return w
}

// stop returns the smallest number of ready replicas that was seen.
func (w *readyWatch) stop() int {
	w.cancel()
	w.done.Wait()
	return w.least
}
