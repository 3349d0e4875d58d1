// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capacitorset/liqo-broker/pkg/api/v1alpha1"
	v09 "github.com/capacitorset/liqo-broker/pkg/liqo/v09"
	"github.com/capacitorset/liqo-broker/test/federation"
	"github.com/capacitorset/liqo-broker/test/walk"
)

// hungryNamespace has the pods of hungryPod.
const hungryNamespace = "hungry"

// TestTwoConsumers lets two consumers ask at the same moment for more than half of the memory of the only provider that is on:
// one of them gets it and the other one gets its pod back, and is offered what is left.
func TestTwoConsumers(t *testing.T) {
	start(t, v1alpha1.ModeOrchestrated)
	consumers := []*federation.Cluster{fed.Consumer, fed.ProviderA}
	secondConsumer(t, fed.ProviderA)
	for _, c := range consumers { // Both are providers as well.
		schedule(t, c, v1alpha1.SchedulingDrained)
	}
	only := measured(t, fed.ProviderB).Value()
	part := resource.NewQuantity(only*6/10, resource.BinarySI)
	whole := map[*federation.Cluster]int64{} // What each is offered before.
	for _, c := range consumers {
		offloadCapacity(t, c, hungryNamespace)
		eventually(t, time.Minute, func(ctx context.Context) (err error) {
			whole[c], err = offeredMemory(ctx, c)
			if err == nil && (whole[c] < part.Value() || whole[c] > only) {
				err = fmt.Errorf("%s is offered %d bytes of memory, of the %d of the only provider that is on", c.Name, whole[c], only)
			}
			if err != nil {
				return err
			}
			return checkMemory(ctx, c, whole[c])
		})
	}

	asked := time.Now()
	for _, c := range consumers {
		if err := c.ApplyManifests(t.Context(), hungryPod(c, part)); err != nil {
			t.Fatal(err)
		}
	}
	var winner, loser *federation.Cluster
	var given *corev1.Pod
	eventually(t, time.Minute, func(ctx context.Context) error {
		winner, loser = nil, nil
		for _, c := range consumers {
			pod, err := podOf(ctx, c, c)
			if err != nil {
				return err
			}
			switch onBroker, err := podOf(ctx, fed.Broker, c); {
			case pod.Status.Phase == corev1.PodFailed:
				loser, given = c, pod
			case client.IgnoreNotFound(err) != nil:
				return err
			case err == nil && onBroker.Spec.NodeName != "":
				winner = c
			}
		}
		if winner == nil || loser == nil {
			return fmt.Errorf("%v has the memory, and %v got its pod back", winner, loser)
		}
		return nil
	})
	t.Logf("%s has the memory, and %s got its pod back after %.1f s: %s: %s",
		winner.Name, loser.Name, time.Since(asked).Seconds(), given.Status.Reason, given.Status.Message)
	if given.Status.Reason != "OffloadingAborted" || given.Status.Message == "" {
		t.Errorf("the pod ended with reason %q and message %q", given.Status.Reason, given.Status.Message)
	}

	// The broker does not keep a pod that was given back, and offers each what the other one does not use.
	eventually(t, time.Minute, func(ctx context.Context) error {
		if _, err := podOf(ctx, fed.Broker, loser); client.IgnoreNotFound(err) != nil {
			return err
		} else if err == nil {
			return fmt.Errorf("the broker still has the pod of %s", loser.Name)
		}
		if err := checkMemory(ctx, winner, whole[winner]); err != nil {
			return err
		}
		return checkMemory(ctx, loser, whole[loser]-part.Value())
	})
	checkAccounts(t, winner, part, loser)

	if _, err := winner.Kubectl(t.Context(), "delete", "pod", "--namespace="+hungryNamespace, hungryName(winner)); err != nil {
		t.Fatal(err)
	}
	ended := time.Now()
	eventually(t, time.Minute, func(ctx context.Context) error { return checkMemory(ctx, loser, whole[loser]) })
	t.Logf("%s is offered the whole again after %.1f s", loser.Name, time.Since(ended).Seconds())
}

// TestFragmentation asks for more memory than any provider has, and less than all have together. The pod comes back to its
// Deployment, which makes another one, and that one waits longer.
func TestFragmentation(t *testing.T) {
	const namespace, first = "fragmentation", 5 * time.Second
	start(t, v1alpha1.ModeAggregated)
	offloadCapacity(t, fed.Consumer, namespace)
	whole, err := fed.OfferedToConsumer(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	memory := whole[corev1.ResourceMemory]
	if err := fed.Consumer.ApplyManifests(t.Context(), fmt.Sprintf(`
apiVersion: apps/v1
kind: Deployment
metadata: {name: hungry, namespace: %s}
spec:
  replicas: 1
  selector: {matchLabels: {app: hungry}}
  template:
    metadata:
      labels: {app: hungry, run: "%d"}
      annotations: {brokering.liqo.io/give-back: %s}
    spec:
      containers:
        - {name: tools, image: "lab.local/tools:1", imagePullPolicy: IfNotPresent, resources: {requests: {cpu: 10m, memory: "%d"}}}
`, namespace, time.Now().Unix(), first, memory.Value()*6/10)); err != nil { // Pods like those of an earlier run would wait longer.
		t.Fatal(err)
	}
	// pods returns when each pod of the Deployment that came back was made, and how many there are.
	pods := func(ctx context.Context) (made []time.Time, all int, err error) {
		var list corev1.PodList
		if err := fed.Consumer.List(ctx, &list, client.InNamespace(namespace)); err != nil {
			return nil, 0, err
		}
		for i := range list.Items {
			if list.Items[i].Status.Reason == "OffloadingAborted" {
				made = append(made, list.Items[i].CreationTimestamp.Time)
			}
		}
		slices.SortFunc(made, time.Time.Compare)
		return made, len(list.Items), nil
	}
	eventually(t, time.Minute, func(ctx context.Context) error {
		made, all, err := pods(ctx)
		if err == nil && (len(made) < 2 || all != len(made)+1) {
			err = fmt.Errorf("%d of %d pods came back, want two, and one that waits", len(made), all)
		}
		return err
	})
	back := time.Now()
	made, _, err := pods(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("the second pod was made %.0f s after the first, and came back after %.0f s", made[1].Sub(made[0]).Seconds(),
		back.Sub(made[1]).Seconds())
	// Times of objects are whole seconds.
	if waited := back.Sub(made[1]); waited < 2*first-time.Second {
		t.Errorf("the second pod came back after %s, and should wait %s", waited, 2*first)
	}
}

// checkAccounts looks at what the broker's objects say while one consumer uses a part of provider-b.
func checkAccounts(t *testing.T, user *federation.Cluster, part *resource.Quantity, other *federation.Cluster) {
	t.Helper()
	eventually(t, time.Minute, func(ctx context.Context) error {
		var provider v1alpha1.Provider
		if err := fed.Broker.Get(ctx, client.ObjectKey{Name: string(fed.ProviderB.ID)}, &provider); err != nil {
			return err
		}
		rest := provider.Status.Offered.Memory().Value() - provider.Status.Used.Memory().Value()
		for what, list := range map[string]corev1.ResourceList{"free": provider.Status.Free, "the largest pod": provider.Status.LargestPod} {
			if list.Memory().Value() != rest {
				return fmt.Errorf("%s of %s is %s of memory, want %d", what, fed.ProviderB.Name, list.Memory(), rest)
			}
		}
		for _, c := range []*federation.Cluster{user, other} {
			var consumer v1alpha1.Consumer
			if err := fed.Broker.Get(ctx, client.ObjectKey{Name: string(c.ID)}, &consumer); err != nil {
				return err
			}
			if used := consumer.Status.Used.Memory(); (used.Cmp(*part) >= 0) != (c == user) {
				return fmt.Errorf("consumer %s uses %s of memory, and %s uses %s", c.Name, used, user.Name, part)
			}
			if o, g := consumer.Status.Offered.Memory(), consumer.Status.Granted.Memory(); o.Cmp(*g) != 0 {
				return fmt.Errorf("consumer %s is offered %s of memory and granted %s", c.Name, o, g)
			}
		}
		return nil
	})
}

// secondConsumer peers a provider with the broker the other way round, until the test ends.
func secondConsumer(t *testing.T, c *federation.Cluster) {
	t.Helper()
	letIn(t, c)
	walk.AtEnd(t, func(ctx context.Context) error { // After the end of the peering.
		consumer := &v1alpha1.Consumer{ObjectMeta: metav1.ObjectMeta{Name: string(c.ID)}}
		return client.IgnoreNotFound(fed.Broker.Delete(ctx, consumer))
	})
	peer(t, c, fed.Broker)
	if !fed.Broker.Has(federation.Agents) {
		return // Liqo's own virtual kubelet tells what it runs.
	}
	walk.AtEnd(t, func(ctx context.Context) error { return fed.Unprepare(ctx, c, federation.NewProgress(t.Output())) })
	if err := fed.Prepare(t.Context(), c, federation.NewProgress(t.Output())); err != nil {
		t.Fatal(err)
	}
}

// letIn has the broker let a cluster consume until the test ends, as people do who peer by hand: join lets a provider only provide.
func letIn(t *testing.T, c *federation.Cluster) {
	t.Helper()
	if !fed.Broker.Has(federation.LetIn) {
		return // Whoever peers may.
	}
	fc, err := v09.ForeignClusterOf(t.Context(), fed.Broker, c.ID)
	if err != nil || fc == nil {
		t.Fatalf("the broker does not know %s: %v", c.Name, err)
	}
	before, open := fc.DeepCopy(), fc.DeepCopy()
	v09.Provide(open)
	r := read(t, "docs/install.md", "TestTwoConsumers", map[string]string{"PROVIDER": fc.Name})
	r.Next("kubectl patch foreigncluster")
	r.End()
	walk.AtEnd(t, func(ctx context.Context) error {
		return fed.Broker.Patch(ctx, before.DeepCopy(), client.MergeFrom(open))
	})
}

// schedule sets the scheduling of a provider, which is Active again when the test ends.
func schedule(t *testing.T, c *federation.Cluster, scheduling v1alpha1.Scheduling) {
	t.Helper()
	walk.AtEnd(t, func(ctx context.Context) error { return setScheduling(ctx, c, v1alpha1.SchedulingActive) })
	if err := setScheduling(t.Context(), c, scheduling); err != nil {
		t.Fatal(err)
	}
}

// setScheduling sets the scheduling of a provider, and leaves it so.
func setScheduling(ctx context.Context, c *federation.Cluster, scheduling v1alpha1.Scheduling) error {
	var p v1alpha1.Provider
	if err := fed.Broker.Get(ctx, client.ObjectKey{Name: string(c.ID)}, &p); err != nil {
		return err
	}
	before := p.DeepCopy()
	p.Spec.Scheduling = scheduling
	return fed.Broker.Patch(ctx, &p, client.MergeFrom(before))
}

// measured returns the memory that a provider offers to the broker.
func measured(t *testing.T, c *federation.Cluster) *resource.Quantity {
	t.Helper()
	var provider v1alpha1.Provider
	if err := fed.Broker.Get(t.Context(), client.ObjectKey{Name: string(c.ID)}, &provider); err != nil {
		t.Fatal(err)
	}
	return provider.Status.Measured.Memory()
}

// offeredMemory returns the memory that the broker offers to a consumer.
func offeredMemory(ctx context.Context, c *federation.Cluster) (int64, error) {
	var consumer v1alpha1.Consumer
	if err := fed.Broker.Get(ctx, client.ObjectKey{Name: string(c.ID)}, &consumer); err != nil {
		return 0, err
	}
	return consumer.Status.Offered.Memory().Value(), nil
}

// offloadCapacity makes a namespace of a cluster whose pods go to the broker, until the test ends. That of a cluster that is no consumer
// otherwise is gone before the peering ends.
func offloadCapacity(t *testing.T, c *federation.Cluster, namespace string) {
	t.Helper()
	if c == fed.Consumer {
		removeAtEnd(t, namespace)
	} else {
		walk.KubectlAtEnd(t, c, "delete", "namespace", namespace, "--ignore-not-found", "--timeout=60s")
	}
	// Liqo's webhook admits the offloading in a namespace that it has seen.
	eventually(t, time.Minute, func(ctx context.Context) error {
		return c.ApplyManifests(ctx, offloadedTo(namespace, fed.Broker))
	})
	awaitOffloading(t, c, namespace)
}

// awaitOffloading waits until Liqo has taken note that a namespace of a cluster is offloaded.
func awaitOffloading(t *testing.T, c *federation.Cluster, namespace string) {
	t.Helper()
	eventually(t, time.Minute, func(ctx context.Context) error {
		phase, err := c.Kubectl(ctx, "get", "namespaceoffloading", "offloading", "--namespace="+namespace,
			"--output=jsonpath={.status.offloadingPhase}")
		if err == nil && phase != "Ready" {
			err = fmt.Errorf("the offloading of namespace %s of %s is %q, not Ready", namespace, c.Name, phase)
		}
		return err
	})
}

// hungryPod is a pod that a cluster binds to its node for the broker, whatever it was offered, and wants back soon if it fits nowhere.
func hungryPod(c *federation.Cluster, memory *resource.Quantity) string {
	return fmt.Sprintf(`
apiVersion: v1
kind: Pod
metadata:
  name: %s
  namespace: %s
  annotations: {brokering.liqo.io/give-back: 5s}
spec:
  nodeName: %s
  terminationGracePeriodSeconds: 0
  containers:
    - {name: tools, image: "lab.local/tools:1", imagePullPolicy: IfNotPresent, resources: {requests: {cpu: 10m, memory: "%d"}}}
`, hungryName(c), hungryNamespace, fed.Broker.NodeName(), memory.Value())
}

func hungryName(c *federation.Cluster) string { return "hungry-of-" + c.Name }

// podOf returns the hungry pod of a consumer as another cluster has it.
func podOf(ctx context.Context, on, consumer *federation.Cluster) (*corev1.Pod, error) {
	var pods corev1.PodList
	if err := on.List(ctx, &pods, client.MatchingFields{"metadata.name": hungryName(consumer)}); err != nil {
		return nil, err
	}
	if len(pods.Items) == 0 {
		return nil, apierrors.NewNotFound(corev1.Resource("pods"), hungryName(consumer))
	}
	return &pods.Items[0], nil
}

// checkMemory returns an error unless a cluster's node for the broker has so much memory.
func checkMemory(ctx context.Context, c *federation.Cluster, want int64) error {
	node, err := c.VirtualNode(ctx, fed.Broker)
	if err != nil {
		return err
	}
	if got := node.Status.Allocatable.Memory().Value(); got != want {
		return fmt.Errorf("the node of %s for the broker has %d bytes of memory, want %d", c.Name, got, want)
	}
	return nil
}
