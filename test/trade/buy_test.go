// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package trade

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capacitorset/liqo-broker/pkg/api/connectorv1alpha1"
	"github.com/capacitorset/liqo-broker/test/federation"
)

// publish has providers offer something, and waits until the consumer knows all offers.
func publish(t *testing.T, prices map[*federation.Cluster]string, change ...func(*connectorv1alpha1.Offer)) {
	t.Helper()
	if err := fed.Publish(t.Context(), prices, change...); err != nil {
		t.Fatal(err)
	}
	eventually(t, time.Minute, func(ctx context.Context) error { return fed.Published(ctx, slices.Collect(maps.Keys(prices))...) })
}

// clean removes what a test that failed has left.
func clean(t *testing.T) {
	t.Helper()
	for _, of := range []client.Object{&connectorv1alpha1.CapacityRequest{}, &connectorv1alpha1.Purchase{}} {
		if err := fed.Consumer.DeleteAllOf(t.Context(), of); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range append(fed.Providers(), fed.Broker) {
		for _, of := range []client.Object{&connectorv1alpha1.Purchase{}, &connectorv1alpha1.Offer{}} {
			if err := c.DeleteAllOf(t.Context(), of); err != nil && !meta.IsNoMatchError(err) && !apierrors.IsNotFound(err) {
				// The broker's connector comes last.
				t.Fatal(err)
			}
		}
	}
	eventually(t, 2*time.Minute, func(ctx context.Context) error { return fed.Consumer.BuysNothing(ctx) })
}

// seller returns who a cluster is as a party.
func seller(t *testing.T, c *federation.Cluster) connectorv1alpha1.PartyID {
	t.Helper()
	id, err := fed.Party(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	return connectorv1alpha1.PartyID(id)
}

// runWeb runs web servers of the consumer on a provider, and waits until they answer.
func runWeb(t *testing.T, namespace string, on *federation.Cluster) (answers func(ctx context.Context) error) {
	t.Helper()
	if err := fed.DeployTo(t.Context(), namespace, on, 1); err != nil {
		t.Fatal(err)
	}
	answers = serving(namespace)
	eventually(t, time.Minute, answers)
	return answers
}

// serving returns what tells whether the web servers of a namespace of the consumer answer.
func serving(namespace string) (answers func(ctx context.Context) error) {
	return func(ctx context.Context) error {
		address, err := fed.Service(ctx, namespace, federation.Web)
		if err != nil {
			return err
		}
		_, err = fed.Host(ctx, address)
		return err
	}
}

// shared is the namespace of the consumer whose web servers run on provider-b while journeys use one contract, one after the other.
const shared = "bounds"

// contracted has the consumer use provider-b by a contract, and returns the Purchase, with what tells whether the consumer's web servers
// there answer. Those that a journey before has left are used again.
func contracted(t *testing.T) (*connectorv1alpha1.Purchase, func(ctx context.Context) error) {
	t.Helper()
	bought, answers := &connectorv1alpha1.Purchase{}, serving(shared)
	left := fed.Consumer.Is(t.Context(), bought, "from-"+fed.ProviderB.Name, connectorv1alpha1.ConditionReady, connectorv1alpha1.ReasonActive)
	if left == nil && answers(t.Context()) == nil {
		return bought, answers
	}
	clean(t)
	publish(t, map[*federation.Cluster]string{fed.ProviderA: "0.20", fed.ProviderB: "0.10"})
	bought = order(t, fed.Consumer, fed.ProviderB, "compute", "small")
	answers = runWeb(t, shared, fed.ProviderB)
	if err := fed.Consumer.Get(t.Context(), client.ObjectKeyFromObject(bought), bought); err != nil {
		t.Fatal(err)
	}
	return bought, answers
}

// TestBuy has the consumer request capacity: the cheapest provider sells it, the consumer gets a node of exactly that size and runs a
// workload there, which notices neither that the registry is killed nor that both sides change their keys. The contract ends, and nothing
// is left.
func TestBuy(t *testing.T) {
	clean(t)
	publish(t, map[*federation.Cluster]string{fed.ProviderA: "0.20", fed.ProviderB: "0.10"})
	request := &connectorv1alpha1.CapacityRequest{
		ObjectMeta: metav1.ObjectMeta{Name: "wanted"},
		Spec: connectorv1alpha1.CapacityRequestSpec{
			Resources: federation.Sold("500m"), Duration: metav1.Duration{Duration: time.Hour}, Regions: []string{"eu-north"},
			MaxPrice: &connectorv1alpha1.Price{Amount: "0.15", Currency: "EUR", Period: "PT1H"},
		},
	}
	began := time.Now()
	if err := fed.Consumer.Create(t.Context(), request); err != nil {
		t.Fatal(err)
	}
	eventually(t, 2*time.Minute, func(ctx context.Context) error {
		return fed.Consumer.Is(ctx, request, "wanted", connectorv1alpha1.ConditionReady, connectorv1alpha1.ReasonActive)
	})
	eventually(t, time.Minute, func(ctx context.Context) error {
		return fed.Consumer.HasBought(ctx, fed.ProviderB, federation.Sold("500m"))
	})
	t.Logf("a node of exactly the size that was bought is there after %.1f s", time.Since(began).Seconds())
	answers := runWeb(t, "bought", fed.ProviderB)

	// The registry is killed: everything but its news goes on. It comes back, and shows nothing again.
	registry.Kill()
	eventually(t, 2*time.Minute, func(ctx context.Context) error {
		return fed.Consumer.Is(ctx, &connectorv1alpha1.Registry{}, federation.RegistryName, connectorv1alpha1.ConditionFollowing,
			connectorv1alpha1.ReasonUnreachable)
	})
	if err := answers(t.Context()); err != nil {
		t.Errorf("without the registry: %v", err)
	}
	if err := registry.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	eventually(t, 2*time.Minute, func(ctx context.Context) error {
		for _, c := range []*federation.Cluster{fed.Consumer, fed.ProviderA, fed.ProviderB} {
			if err := c.Is(ctx, &connectorv1alpha1.Registry{}, federation.RegistryName, connectorv1alpha1.ConditionFollowing,
				connectorv1alpha1.ReasonFollowing); err != nil {
				return err
			}
		}
		return nil
	})
	snapshots, err := registry.Watches(t.Context(), "snapshot")
	resumed, err2 := registry.Watches(t.Context(), "resumed")
	if err := errors.Join(err, err2); err != nil || snapshots != 0 || resumed < 3 {
		t.Errorf("after the registry was killed, %d watches began with everything and %d where they were: %v", snapshots, resumed, err)
	}

	// Both sides get new keys: contracts and offers are those of the same parties.
	for _, c := range []*federation.Cluster{fed.Consumer, fed.ProviderB} {
		if err := fed.RotateKey(t.Context(), c); err != nil {
			t.Fatal(err)
		}
	}
	eventually(t, 2*time.Minute, func(ctx context.Context) error {
		if err := fed.Published(ctx, fed.ProviderA, fed.ProviderB); err != nil {
			return err
		}
		return fed.Consumer.Is(ctx, &connectorv1alpha1.CapacityRequest{}, "wanted", connectorv1alpha1.ConditionReady,
			connectorv1alpha1.ReasonActive)
	})
	if err := answers(t.Context()); err != nil {
		t.Errorf("with new keys: %v", err)
	}

	// The end: the workload leaves, the clusters part, and nothing is left.
	began = time.Now()
	if err := fed.Consumer.Delete(t.Context(), request); err != nil {
		t.Fatal(err)
	}
	eventually(t, 3*time.Minute, func(ctx context.Context) error { return fed.Consumer.HasParted(ctx, fed.ProviderB) })
	eventually(t, time.Minute, func(ctx context.Context) error { return fed.Consumer.BuysNothing(ctx) })
	t.Logf("nothing is left %.1f s after the request was deleted", time.Since(began).Seconds())
	if err := fed.Remove(context.WithoutCancel(t.Context()), "bought"); err != nil {
		t.Error(err)
	}
}

// TestResize has a contract become larger and smaller: the node follows, since Liqo obeys the contract. So it does when a second one ends.
func TestResize(t *testing.T) {
	clean(t)
	publish(t, map[*federation.Cluster]string{fed.ProviderA: "0.10"})
	p := elastic(t, "resized", fed.ProviderA)
	if err := fed.Consumer.Create(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	has := func(cpu string) func(context.Context) error {
		return func(ctx context.Context) error {
			return fed.Consumer.HasBought(ctx, fed.ProviderA, federation.Sold(cpu))
		}
	}
	eventually(t, 2*time.Minute, has("250m"))
	for _, cpu := range []string{"750m", "500m"} {
		began := time.Now()
		eventually(t, time.Minute, func(ctx context.Context) error {
			if err := fed.Consumer.Get(ctx, client.ObjectKeyFromObject(p), p); err != nil {
				return err
			}
			p.Spec.Resources = federation.Sold(cpu)
			return fed.Consumer.Update(ctx, p)
		})
		eventually(t, time.Minute, has(cpu))
		t.Logf("the node has %s %.1f s after it was asked for", cpu, time.Since(began).Seconds())
	}
	endsTopUp(t, p)
	if err := fed.Consumer.Delete(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	eventually(t, 3*time.Minute, func(ctx context.Context) error {
		return errors.Join(fed.Consumer.HasParted(ctx, fed.ProviderA), fed.Consumer.BuysNothing(ctx))
	})
}

// endsTopUp has a second contract make the nodes of one of 500 thousandths of a core larger, fills them with a Deployment, and ends the
// second one: what does not fit any more waits, and the nodes are open for as much as is left.
func endsTopUp(t *testing.T, base *connectorv1alpha1.Purchase) {
	t.Helper()
	second := &connectorv1alpha1.Purchase{ObjectMeta: metav1.ObjectMeta{Name: "top-up"}, Spec: *base.Spec.DeepCopy()}
	second.Spec.Resources = federation.Sold("250m")
	if err := fed.Consumer.Create(t.Context(), second); err != nil {
		t.Fatal(err)
	}
	both := federation.Sold("750m")
	both[corev1.ResourceMemory], both[corev1.ResourcePods] = resource.MustParse("2Gi"), resource.MustParse("20")
	eventually(t, time.Minute, func(ctx context.Context) error { return fed.Consumer.HasBought(ctx, fed.ProviderA, both) })

	const namespace = "topped-up"
	if err := fed.DeployTo(t.Context(), namespace, fed.ProviderA, 0); err != nil {
		t.Fatal(err)
	}
	for _, do := range [][]string{{"set", "resources", "--requests=cpu=300m"}, {"scale", "--replicas=2"}} {
		if _, err := fed.Consumer.Kubectl(t.Context(), append(do, "deployment/"+federation.Web, "--namespace="+namespace)...); err != nil {
			t.Fatal(err)
		}
	}
	ready := func(want int32) func(ctx context.Context) error {
		return func(ctx context.Context) error {
			var web appsv1.Deployment
			err := fed.Consumer.Get(ctx, client.ObjectKey{Namespace: namespace, Name: federation.Web}, &web)
			if err == nil && (web.Status.ReadyReplicas != want || web.Status.Replicas != 2) {
				err = fmt.Errorf("%d of %d pods are ready, not %d of 2", web.Status.ReadyReplicas, web.Status.Replicas, want)
			}
			return err
		}
	}
	eventually(t, time.Minute, ready(2))

	began := time.Now()
	if err := fed.Consumer.Delete(t.Context(), second); err != nil {
		t.Fatal(err)
	}
	eventually(t, 2*time.Minute, func(ctx context.Context) error {
		node, err := fed.Consumer.VirtualNode(ctx, fed.ProviderA)
		if err == nil && node.Spec.Unschedulable {
			err = fmt.Errorf("node %s is closed", node.Name)
		}
		return errors.Join(err, fed.Consumer.HasBought(ctx, fed.ProviderA, federation.Sold("500m")), ready(1)(ctx),
			fed.Consumer.HasNoPurchase(ctx, second.Name))
	})
	t.Logf("%.1f s after the second contract was ended, the nodes are as small as the first one, and open", time.Since(began).Seconds())
	if err := fed.Remove(t.Context(), namespace); err != nil {
		t.Error(err)
	}
}

// elastic is an order of 250 thousandths of a core for an hour, which can become larger and smaller.
func elastic(t *testing.T, name string, from *federation.Cluster) *connectorv1alpha1.Purchase {
	t.Helper()
	return &connectorv1alpha1.Purchase{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: connectorv1alpha1.PurchaseSpec{
			Seller: seller(t, from), Offer: "compute", Plan: "elastic", Resources: federation.Sold("250m"),
			Duration: &metav1.Duration{Duration: time.Hour}, MaxPrice: anyPrice(),
		},
	}
}

// anyPrice is more than anything costs that the journeys buy.
func anyPrice() *connectorv1alpha1.Price {
	return &connectorv1alpha1.Price{Amount: "1000", Currency: "EUR", Period: "PT1H"}
}
