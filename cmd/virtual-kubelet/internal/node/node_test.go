// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/liqotech/liqo/cmd/virtual-kubelet/root"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/rest"
	clienttesting "k8s.io/client-go/testing"

	"github.com/capacitorset/liqo-broker/pkg/liqo"
)

// TestNodeMayNotBeRegistered has an API server that refuses the node for good: the virtual kubelet says so.
func TestNodeMayNotBeRegistered(t *testing.T) {
	client := fake.NewSimpleClientset()
	client.PrependReactor("create", "nodes", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, apierrors.NewForbidden(corev1.Resource("nodes"), "virtual", errors.New("no right"))
	})
	node := newTestNode(t, client)
	node.config.PingInterval = time.Hour
	node.answers = func(context.Context) (bool, error) { return true, nil }
	if err := node.Run(t.Context()); !apierrors.IsForbidden(err) {
		t.Errorf("run() = %v, want that it is forbidden", err)
	}
}

const tenantNamespace = "liqo-tenant-foreign"

// newTestNode returns a virtual node of a cluster that has no Liqo to ask.
func newTestNode(t *testing.T, client kubernetes.Interface) *Node {
	t.Helper()
	nowhere := &rest.Config{Host: "https://127.0.0.1:1"}
	defaults := root.NewOpts()
	none := Pods{Present: func() bool { return false }, Direct: func() bool { return false }}
	node, err := New(&Config{
		Name: "virtual", IP: "10.0.0.1", Port: root.DefaultListenPort, HomeCluster: "home", ForeignCluster: "foreign",
		Version: "v1.34.0", Local: nowhere, Foreign: nowhere, Resync: defaults.InformerResyncPeriod, CheckNetwork: defaults.NodeCheckNetwork,
		TenantNamespace: tenantNamespace, LeaseDuration: defaults.NodeLeaseDuration, PingTimeout: defaults.NodePingTimeout,
	}, client, none, logr.Discard())
	if err != nil {
		t.Fatal(err)
	}
	return node
}

// TestNodeIsRegisteredLater has an API server that is too slow when the node is registered: the virtual kubelet goes on, and registers
// it when it can.
func TestNodeIsRegisteredLater(t *testing.T) {
	client := fake.NewSimpleClientset()
	var slow atomic.Bool
	slow.Store(true)
	client.PrependReactor("create", "nodes", func(clienttesting.Action) (bool, runtime.Object, error) {
		if slow.Swap(false) {
			return true, nil, apierrors.NewTimeoutError("slow", 1)
		}
		return false, nil, nil
	})
	node := newTestNode(t, client)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- node.Run(ctx) }()
	for {
		_, err := client.CoreV1().Nodes().Get(ctx, "virtual", metav1.GetOptions{})
		if err == nil {
			break
		}
		select {
		case err := <-ended:
			t.Fatalf("the virtual kubelet ends because this cluster is slow: %v", err)
		case <-time.After(50 * time.Millisecond):
		}
	}
	cancel()
	if err := <-ended; err != nil {
		t.Errorf("run() after its end: %v", err)
	}
}

// TestRestoreWhileSettling has one update of the status fail while the virtual kubelet starts: the node stays as it was.
func TestRestoreWhileSettling(t *testing.T) {
	existing := liqoNode(true, true)
	existing.Name = "virtual"
	client := fake.NewSimpleClientset(existing)
	node := newTestNode(t, client)
	node.steady.begin(existing)
	if err := node.restore(t.Context(), context.DeadlineExceeded); err != nil {
		t.Fatal(err)
	}
	after, err := client.CoreV1().Nodes().Get(t.Context(), "virtual", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if !liqo.NodeReady(after) {
		t.Errorf("the node is %s, and was ready", liqo.NodeReadiness(after))
	}
}
