// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package shown

import (
	"context"
	"fmt"
	"reflect"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/capacitorset/liqo-broker/pkg/api/v1alpha1"
	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
	"github.com/capacitorset/liqo-broker/pkg/core/kpi"
	v09 "github.com/capacitorset/liqo-broker/pkg/liqo/v09"
	"github.com/capacitorset/liqo-broker/pkg/liqo/v09/liqotest"
	"github.com/capacitorset/liqo-broker/pkg/shown/feed"
	"github.com/capacitorset/liqo-broker/pkg/shown/showntest"
	"github.com/capacitorset/liqo-broker/pkg/snapshot/snapshottest"
)

// sharing hands out some lists without copying what is in them, as a cache does.
type sharing struct {
	client.Client

	lists map[reflect.Type]client.ObjectList
}

// List implements client.Reader.
func (c *sharing) List(ctx context.Context, into client.ObjectList, options ...client.ListOption) error {
	if list, is := c.lists[reflect.TypeOf(into)]; is {
		reflect.ValueOf(into).Elem().Set(reflect.ValueOf(list).Elem())
		return nil
	}
	return c.Client.List(ctx, into, options...)
}

// BenchmarkItems makes what is shown of 1,000 providers and of 3,000 pods.
func BenchmarkItems(b *testing.B) {
	const providers, consumers, pods = 1000, 100, 3000
	provide, consume := &v1alpha1.ProviderList{}, &v1alpha1.ConsumerList{}
	histories, offers := &v1alpha1.ProviderHistoryList{}, &v09.ResourceOfferList{}
	nodes, namespaces, run := &corev1.NodeList{}, &corev1.NamespaceList{}, &corev1.PodList{}
	policies := &v1alpha1.PlacementPolicyList{Items: make([]v1alpha1.PlacementPolicy, 10)}
	for i := range policies.Items {
		p := &policies.Items[i]
		p.Name, p.Spec.AppliesTo.Scope = fmt.Sprintf("policy-%d", i), v1alpha1.ScopeDefault
	}
	for i := range providers {
		id := cluster.Identity{ID: cluster.ID(fmt.Sprintf("11111111-2222-3333-4444-%012d", i)), Name: fmt.Sprintf("provider-%d", i)}
		node := liqotest.VirtualNode(id, true)
		for k := range 10 {
			node.Labels[fmt.Sprintf("example.com/label-%d", k)] = "value"
		}
		offer, history := liqotest.Offer(id, nil), kpi.History{}
		offer.Spec.NodeName = node.Name
		for minute := range 24 * 60 {
			history = history.Observe(showntest.Midnight.Add(time.Duration(minute)*time.Minute), minute%7 != 0)
		}
		offers.Items, histories.Items = append(offers.Items, *offer), append(histories.Items, v1alpha1.ProviderHistory{
			ObjectMeta: metav1.ObjectMeta{Name: string(id.ID)}, History: history.String(),
		})
		provide.Items, nodes.Items = append(provide.Items, *showntest.NewProvider(id)), append(nodes.Items, *node)
	}
	for i := range consumers {
		id := cluster.Identity{ID: cluster.ID(fmt.Sprintf("55555555-6666-7777-8888-%012d", i)), Name: fmt.Sprintf("consumer-%d", i)}
		consume.Items = append(consume.Items, *showntest.NewConsumer(id, v1alpha1.ModeOrchestrated))
		namespaces.Items = append(namespaces.Items, *liqotest.TwinNamespace(fmt.Sprintf("shop-%d", i), id))
	}
	for i := range pods {
		pod := liqotest.Pod(liqotest.ShadowPod(fmt.Sprintf("shop-%d", i%consumers), fmt.Sprintf("web-%d", i), nil), nodes.Items[i%providers].Name)
		pod.Spec.Containers = []corev1.Container{{Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{
			corev1.ResourceCPU: resource.MustParse("250m"), corev1.ResourceMemory: resource.MustParse("64Mi"),
		}}}}
		run.Items = append(run.Items, *pod)
	}
	c := &sharing{Client: snapshottest.NewClient(b, interceptor.Funcs{}), lists: map[reflect.Type]client.ObjectList{}}
	for _, list := range []client.ObjectList{provide, consume, nodes, namespaces, run, policies, histories, offers} {
		c.lists[reflect.TypeOf(list)] = list
	}
	o := &Objects{Reader: c, Line: v09.Line{}, Own: showntest.Broker}
	for _, kind := range []feed.Kind{Providers, Workloads, Flows, Advice} {
		b.Run(string(kind), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				items, err := o.Items(b.Context(), kind)
				if err != nil || len(items) == 0 {
					b.Fatal(len(items), err)
				}
			}
		})
	}
}
