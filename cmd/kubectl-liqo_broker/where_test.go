// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/capacitorset/liqo-broker/pkg/api/v1alpha1"
	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
	"github.com/capacitorset/liqo-broker/pkg/liqo"
	v09 "github.com/capacitorset/liqo-broker/pkg/liqo/v09"
	"github.com/capacitorset/liqo-broker/pkg/liqo/v09/liqotest"
	"github.com/capacitorset/liqo-broker/test/golden"
)

func pod(namespace, name, node, address string) *corev1.Pod {
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: map[string]string{liqo.LabelManagedBy: liqo.ManagedByShadowPod}},
	}
	p.Spec.NodeName, p.Status.PodIP, p.Status.Phase = node, address, corev1.PodPending
	if node != "" {
		p.Status.Phase = corev1.PodRunning
		p.Status.Conditions = []corev1.PodCondition{
			{Type: corev1.PodScheduled, Status: corev1.ConditionTrue, LastTransitionTime: ago(3 * time.Hour)},
			{Type: corev1.PodReady, Status: corev1.ConditionTrue, LastTransitionTime: ago(time.Hour)},
		}
	}
	return p
}

// workload is pods of a consumer on the broker, and some that are none.
func workload() []client.Object {
	rome := cluster.Identity{ID: "33333333-dddd", Name: "rome"}
	twin := liqotest.TwinNamespace("shop-rome-abc", rome)
	twin.Annotations["liqo.io/original-name"] = "shop"
	own := pod("shop-rome-abc", "of-the-broker", "worker", "10.0.0.9")
	own.Labels = nil
	ended := pod("shop-rome-abc", "ended", "liqo-milan", "")
	ended.Status.Phase = corev1.PodSucceeded
	node := liqotest.VirtualNode(cluster.Identity{ID: "11111111-aaaa", Name: "milan"}, true)
	return append(federation(), twin, liqotest.TwinNamespace("other", cluster.Identity{ID: "unknown-consumer"}), node,
		pod("shop-rome-abc", "web-1", node.Name, "10.1.0.7"), pod("shop-rome-abc", "web-2", "", ""), pod("other", "x", "liqo-gone", "10.1.0.8"),
		pod("not-a-twin", "y", node.Name, "10.1.0.9"), own, ended)
}

// consuming is a consumer with pods on a node of the broker, and others.
func consuming() []client.Object {
	broker := liqotest.VirtualNode(cluster.Identity{ID: "55555555-9999", Name: "broker"}, true)
	broker.Labels[liqo.LabelVirtualKubelet] = "v0.1.0"
	perProvider := liqotest.VirtualNode(cluster.Identity{ID: "55555555-9999", Name: "broker-milan"}, true)
	perProvider.Labels[liqo.LabelVirtualKubelet], perProvider.Labels[liqo.LabelProvider] = "v0.1.0", "11111111-aaaa"
	another := liqotest.VirtualNode(cluster.Identity{ID: "another", Name: "another"}, true)
	direct := pod("shop", "web-1", broker.Name, "10.1.0.7")
	direct.Annotations = map[string]string{
		"brokering.liqo.io/path": "direct", "brokering.liqo.io/provider": "11111111-aaaa",
		"brokering.liqo.io/path-since": now.Add(-5 * time.Minute).Format(time.RFC3339),
	}
	relay := pod("shop", "web-2", broker.Name, "10.1.0.8")
	relay.Annotations = map[string]string{"brokering.liqo.io/path": "relay\x1b[2J", "brokering.liqo.io/path-since": "yesterday"}
	fc := &v09.ForeignCluster{ObjectMeta: metav1.ObjectMeta{Name: "milan"}}
	fc.Spec.ClusterIdentity.ClusterID, fc.Spec.ClusterIdentity.ClusterName = "11111111-aaaa", "milan"
	return []client.Object{
		broker, perProvider, another, fc, direct, relay, pod("shop", "web-3", perProvider.Name, "10.1.0.9"),
		pod("default", "cron", broker.Name, "10.1.0.10"), pod("shop", "elsewhere", another.Name, "10.2.0.1"),
		pod("shop", "here", "worker", "10.3.0.1"), pod("shop", "waits", "", ""),
	}
}

// noBroker makes a cluster know nothing of the broker's objects.
func noBroker(c client.WithWatch) client.WithWatch {
	return interceptor.NewClient(c,
		interceptor.Funcs{List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
			if _, is := list.(*v1alpha1.ProviderList); is {
				return &meta.NoKindMatchError{GroupKind: schema.GroupKind{Group: v1alpha1.GroupVersion.Group, Kind: "Provider"}}
			}
			return c.List(ctx, list, options...)
		}})
}

func TestWhere(t *testing.T) {
	for name, c := range map[string]struct {
		line     string
		consumer bool
	}{
		"where_broker.txt":        {line: "where -o wide"},
		"where_broker_all.txt":    {line: "where -A"},
		"where_broker_shop.txt":   {line: "where shop"},
		"where_broker.yaml":       {line: "where shop-rome-abc -o yaml"},
		"where_consumer.txt":      {line: "where shop -o wide", consumer: true},
		"where_consumer_all.txt":  {line: "where -A", consumer: true},
		"where_consumer_here.txt": {line: "where", consumer: true},
	} {
		t.Run(name, func(t *testing.T) {
			at := newCLI(t, workload()...)
			if c.consumer {
				at = &cli{client: noBroker(newFake(t, consuming()...))}
			}
			out, errOut, err := at.run(t, c.line)
			if err != nil || errOut != "" || strings.Contains(out, "\x1b") {
				t.Errorf("%v; %s", err, errOut)
			}
			golden.Check(t, name, out)
		})
	}
}

// TestWhereOtherwise asks where there is nothing to be seen, or not all of it.
func TestWhereOtherwise(t *testing.T) {
	for line, says := range map[string]string{
		"where --context=x -A":  "the cluster of context \"x\" neither is a broker's nor uses one",
		"where a -A":            "--all-namespaces and a namespace exclude each other",
		"where a --namespace=b": `NAMESPACE is "a" and --namespace is "b"`,
	} {
		_, _, err := (&cli{client: noBroker(newFake(t))}).run(t, line)
		if err == nil || !strings.HasPrefix(err.Error(), says) {
			t.Errorf("%s: %v", line, err)
		}
	}
	if out, errOut, err := newCLI(t, workload()...).run(t, "where nowhere"); out != "" || errOut != "No pods are there.\n" || err != nil {
		t.Errorf("%q, %q, %v", out, errOut, err)
	}
	denied := interceptor.NewClient(noBroker(newFake(t, consuming()...)), interceptor.Funcs{
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
			if _, is := list.(*v09.ForeignClusterList); is {
				return apierrors.NewForbidden(schema.GroupResource{}, "", errors.New("no role"))
			}
			return c.List(ctx, list, options...)
		},
	})
	if out, _, err := (&cli{client: denied}).run(t, "where shop"); err != nil || !strings.Contains(out, "11111111-aaaa   direct") {
		t.Errorf("without the names of peers: %s, %v", out, err)
	}
}
