// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/capacitorset/liqo-broker/pkg/api/v1alpha1"
	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
	"github.com/capacitorset/liqo-broker/pkg/liqo"
	v09 "github.com/capacitorset/liqo-broker/pkg/liqo/v09"
	"github.com/capacitorset/liqo-broker/pkg/liqo/v09/liqotest"
	"github.com/capacitorset/liqo-broker/pkg/program"
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
		"brokering.liqo.io/path": "direct", "brokering.liqo.io/provider": "11111111-aaaa", "brokering.liqo.io/provider-name": "not milan",
		"brokering.liqo.io/path-since": now.Add(-5 * time.Minute).Format(time.RFC3339),
	}
	relay := pod("shop", "web-2", broker.Name, "10.1.0.8")
	relay.Annotations = map[string]string{
		"brokering.liqo.io/path": "relay\x1b[2J", "brokering.liqo.io/path-since": "yesterday",
		"brokering.liqo.io/provider": "22222222-bbbb", "brokering.liqo.io/provider-name": "turin\x1b[2J",
	}
	hidden := pod("shop", "web-4", broker.Name, "10.1.0.11")
	hidden.Annotations = map[string]string{"brokering.liqo.io/path": "relay"}
	fc := &v09.ForeignCluster{ObjectMeta: metav1.ObjectMeta{Name: "milan"}}
	fc.Spec.ClusterIdentity.ClusterID, fc.Spec.ClusterIdentity.ClusterName = "11111111-aaaa", "milan"
	return []client.Object{
		broker, perProvider, another, fc, direct, relay, hidden, pod("shop", "web-3", perProvider.Name, "10.1.0.9"),
		pod("default", "cron", broker.Name, "10.1.0.10"), pod("shop", "elsewhere", another.Name, "10.2.0.1"),
		pod("shop", "here", "worker", "10.3.0.1"), pod("shop", "waits", "", ""),
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop"}}, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "default"}},
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
	// Nothing is there, or there is no such place.
	empty := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "empty"}}
	twin := liqotest.TwinNamespace("empty-rome-abc", cluster.Identity{ID: "33333333-dddd", Name: "rome"})
	at := map[bool]*cli{
		true: newCLI(t, append(workload(), twin)...), false: {client: noBroker(newFake(t, append(consuming(), empty)...))},
	}
	const all = ". For all namespaces: kubectl liqo-broker where -A\n"
	for _, tc := range []struct {
		broker              bool
		line, says, refuses string
	}{
		{true, "where empty-rome-abc", "No pods are in namespace empty-rome-abc of a consumer" + all, ""},
		{true, "where empty-rome-abc -o json", "", ""},
		{true, "where nowhere", "", `no namespace of a consumer is called "nowhere", here or at its consumer. For all that have pods: kubectl`},
		{true, "where nowhere -o json", "", `no namespace of a consumer is called "nowhere"`},
		{true, "where not-a-twin", "", `no namespace of a consumer is called "not-a-twin"`},
		{false, "where empty", "No pod of namespace empty is at a broker" + all, ""},
		{false, "where nowhere", "", `there is no namespace "nowhere": see kubectl get namespaces, or kubectl liqo-broker where -A`},
		{false, "where -n nowhere -o yaml", "", `there is no namespace "nowhere"`},
	} {
		_, errOut, err := at[tc.broker].run(t, tc.line)
		if errOut != tc.says || (err == nil) != (tc.refuses == "") || err != nil && (!strings.HasPrefix(err.Error(), tc.refuses) ||
			program.ExitCode(err) != program.ExitFailure) {
			t.Errorf("%s: %q, %v", tc.line, errOut, err)
		}
	}
	if _, errOut, err := newCLI(t, federation()...).run(t, "where"); errOut != "No consumer has pods here.\n" || err != nil {
		t.Errorf("%q, %v", errOut, err)
	}
	denied := interceptor.NewClient(noBroker(newFake(t, consuming()...)), interceptor.Funcs{
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
			if _, is := list.(*v09.ForeignClusterList); is {
				return apierrors.NewForbidden(schema.GroupResource{}, "", errors.New("no role"))
			}
			return c.List(ctx, list, options...)
		},
	})
	if out, _, err := (&cli{client: denied}).run(t, "where shop"); err != nil || !strings.Contains(out, "not milan       direct") {
		t.Errorf("without the names of peers, that which the broker tells: %s, %v", out, err)
	}
}

// TestWhereAtHome asks on a consumer whose namespace was offloaded in the moment in which its pods were made: people are told which pods
// have stayed, and how they leave.
func TestWhereAtHome(t *testing.T) {
	offloading := liqotest.Offloading("shop", "55555555-9999")
	offloading.Labels = nil // It is the consumer's own.
	at := newFake(t, append(consuming(), offloading)...)
	const told = "Pods of namespace shop run at home, though all are to run elsewhere: they were made before Liqo had labelled the " +
		"namespace. There are 2: here, waits\nLiqo has not labelled the namespace yet. See why: kubectl describe namespaceoffloading -n shop " +
		"offloading. Then: delete and create yourself what nothing else creates again: here, waits\n"
	for line, want := range map[string]string{"where shop": told, "where -A": told, "where default": "", "where shop -o json": ""} {
		if out, errOut, err := (&cli{client: noBroker(at)}).run(t, line); err != nil || errOut != want || out == "" {
			t.Errorf("%s: %v, %q", line, err, errOut)
		}
	}
	forbidden := interceptor.NewClient(noBroker(at), interceptor.Funcs{
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
			if _, is := list.(*v09.NamespaceOffloadingList); is {
				return apierrors.NewForbidden(schema.GroupResource{}, "", errors.New("no role"))
			}
			return c.List(ctx, list, options...)
		},
	})
	if out, errOut, err := (&cli{client: forbidden}).run(t, "where shop"); err != nil || errOut != "" || out == "" {
		t.Errorf("with fewer rights: %v, %q, %q", err, out, errOut)
	}
}

// TestElsewhere runs commands for brokers on clusters that are none: each says what the cluster is, and what to ask whom.
func TestElsewhere(t *testing.T) {
	broker := liqotest.ForeignCluster(cluster.Identity{ID: "55555555-9999", Name: "athens"}, false, true)
	file := filepath.Join(t.TempDir(), "policy.yaml")
	if err := os.WriteFile(file, []byte(header+"metadata: {name: all}\nspec: {appliesTo: {scope: Default}}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	consumer := newFake(t, append(consuming(), broker)...)
	hidden := interceptor.NewClient(consumer, interceptor.Funcs{
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
			if _, is := list.(*corev1.NodeList); is {
				return apierrors.NewForbidden(schema.GroupResource{Resource: "nodes"}, "", errors.New("no role"))
			}
			if _, is := list.(*v09.ForeignClusterList); is {
				return apierrors.NewForbidden(schema.GroupResource{Resource: "foreignclusters"}, "", errors.New("no role"))
			}
			return c.List(ctx, list, options...)
		},
	})
	for name, tc := range map[string]struct {
		at   client.WithWatch
		says string
	}{
		"Consumer": {consumer, "this cluster is a consumer: its broker athens (55555555-9999) decides where its pods run"},
		"Provider": {newFake(t, broker), "this cluster only provides: this is asked on the broker"},
		"Unknown":  {newFake(t), "there is no broker on this cluster"},
		"Hidden":   {hidden, "there is no broker on this cluster"},
	} {
		for _, line := range []string{
			"explain shop", "policy check " + file, "providers", "consumers -o json", "status", "cordon milan", "suspend rome",
		} {
			peers := 0 // How often they were read.
			c := &cli{client: interceptor.NewClient(brokerless(tc.at), interceptor.Funcs{
				List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
					if _, is := list.(*v09.ForeignClusterList); is {
						peers++
					}
					return c.List(ctx, list, options...)
				},
			})}
			if out, _, err := c.run(t, line); err == nil || !strings.HasPrefix(err.Error(), tc.says) || out != "" ||
				program.ExitCode(err) != program.ExitFailure || peers != 1 {
				t.Errorf("%s, %s: %q, %v; the peers were read %d times", name, line, out, err, peers)
			}
		}
	}
}

// brokerless makes a cluster know none of the broker's kinds.
func brokerless(c client.WithWatch) client.WithWatch {
	none := &meta.NoKindMatchError{GroupKind: schema.GroupKind{Group: v1alpha1.GroupVersion.Group, Kind: "Provider"}}
	ours := func(o runtime.Object) bool {
		gvk, err := c.GroupVersionKindFor(o)
		return err == nil && gvk.Group == v1alpha1.GroupVersion.Group
	}
	return interceptor.NewClient(c, interceptor.Funcs{
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
			if ours(list) {
				return none
			}
			return c.List(ctx, list, options...)
		},
		Create: func(ctx context.Context, c client.WithWatch, o client.Object, options ...client.CreateOption) error {
			if ours(o) {
				return none
			}
			return c.Create(ctx, o, options...)
		},
	})
}
