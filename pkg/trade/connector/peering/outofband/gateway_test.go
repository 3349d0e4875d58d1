// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package outofband_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
	v09 "github.com/capacitorset/liqo-broker/pkg/liqo/v09"
	"github.com/capacitorset/liqo-broker/pkg/liqo/v09/liqotest"
	"github.com/capacitorset/liqo-broker/pkg/trade/connector/clocktest"
	"github.com/capacitorset/liqo-broker/pkg/trade/connector/peering/outofband"
)

// TestGateway restarts the gateway once for a tunnel that does not come up, and has the addresses of one that has just ended.
func TestGateway(t *testing.T) {
	first, second := cluster.Identity{ID: "1", Name: "first"}, cluster.Identity{ID: "2", Name: "second"}
	for name, tc := range map[string]struct {
		reason string
		// pause is how long after the end of the first tunnel the second one begins, and prefix what it leads to.
		pause  time.Duration
		prefix string
		up     bool
		// unseen is whether the process began only after the first tunnel had ended.
		unseen bool
		want   bool
	}{
		"Reused":       {reason: "It never comes up by itself.", pause: time.Second, prefix: "10.71.0.0/16", want: true},
		"Up":           {reason: "Nothing is wrong.", pause: time.Second, prefix: "10.71.0.0/16", up: true},
		"Late":         {reason: "The old translation is forgotten.", pause: 3 * time.Minute, prefix: "10.71.0.0/16"},
		"OtherAddress": {reason: "Nothing was translated for it.", pause: time.Second, prefix: "10.72.0.0/16"},
		"Unseen":       {reason: "Why it does not come up is not known.", pause: time.Second, prefix: "10.71.0.0/16", unseen: true},
	} {
		t.Run(name, func(t *testing.T) {
			scheme := runtime.NewScheme()
			if err := clientgoscheme.AddToScheme(scheme); err != nil {
				t.Fatal(err)
			}
			if err := v09.AddToScheme(scheme); err != nil {
				t.Fatal(err)
			}
			now := time.Unix(1_800_000_000, 0)
			gateway := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "liqo", Name: v09.GatewayName}}
			c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(gateway).Build()
			g := outofband.NewGateway(c, "liqo", clocktest.Func(func() time.Time { return now }))
			look := func(of client.Object) ctrl.Result {
				t.Helper()
				result, err := g.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(of)})
				if err != nil {
					t.Fatalf("Reconcile(): %v", err)
				}
				return result
			}
			begin := func(id cluster.Identity, prefix, took string) *v09.TunnelEndpoint {
				t.Helper()
				made := liqotest.Tunnel(id, took, now)
				made.UID, made.CreationTimestamp = types.UID(id.ID), metav1.NewTime(now)
				made.Spec.RemotePodCIDR, made.Spec.RemoteNATPodCIDR = "10.200.0.0/16", prefix
				if err := c.Create(t.Context(), made); err != nil {
					t.Fatal(err)
				}
				return made
			}
			old := begin(first, "10.71.0.0/16", "1ms")
			if !tc.unseen {
				look(old)
			}
			now = now.Add(time.Hour)
			if err := c.Delete(t.Context(), old); err != nil {
				t.Fatal(err)
			}
			look(old)
			now = now.Add(tc.pause)
			took := "0"
			if tc.up {
				took = "1ms"
			}
			next := begin(second, tc.prefix, took)
			if result := look(next); (result.RequeueAfter > 0) != tc.want {
				t.Errorf("%s: it is looked at again after %s", tc.reason, result.RequeueAfter)
			}
			restarts := ""
			for range 3 {
				now = now.Add(30 * time.Second)
				look(next)
				if err := c.Get(t.Context(), client.ObjectKeyFromObject(gateway), gateway); err != nil {
					t.Fatal(err)
				}
				at := gateway.Spec.Template.Annotations["kubectl.kubernetes.io/restartedAt"]
				if (at != "") != tc.want || restarts != "" && at != restarts {
					t.Errorf("%s: the gateway was restarted at %q, and at %q before", tc.reason, at, restarts)
				}
				restarts = at
			}
		})
	}
}

// TestGatewayIsSpared holds that no peer has the gateway restarted again and again: one that makes tunnels which never come up, with the
// same addresses, ends all other tunnels for some seconds each time. Nor is it restarted for a tunnel that is being removed.
func TestGatewayIsSpared(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := clientgoscheme.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	if err := v09.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	now := time.Unix(1_800_000_000, 0)
	restarts, fails := 0, false
	gateway := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "liqo", Name: v09.GatewayName}}
	c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(gateway).WithInterceptorFuncs(interceptor.Funcs{
		Patch: func(ctx context.Context, c client.WithWatch, o client.Object, patch client.Patch, opts ...client.PatchOption) error {
			if fails {
				return errors.New("no")
			}
			restarts++
			return c.Patch(ctx, o, patch, opts...)
		},
	}).Build()
	g := outofband.NewGateway(c, "liqo", clocktest.Func(func() time.Time { return now }))
	begin := func(n int, finalizers ...string) *v09.TunnelEndpoint {
		t.Helper()
		made := liqotest.Tunnel(cluster.Identity{ID: "1", Name: "peer"}, "0", now)
		made.UID, made.CreationTimestamp, made.Finalizers = types.UID(fmt.Sprint(n)), metav1.NewTime(now), finalizers
		made.Spec.RemotePodCIDR, made.Spec.RemoteNATPodCIDR = "10.200.0.0/16", "10.71.0.0/16"
		if err := c.Create(t.Context(), made); err != nil {
			t.Fatal(err)
		}
		return made
	}
	// watch looks at a tunnel for a time, as often as is asked for.
	watch := func(of client.Object, until time.Duration) {
		t.Helper()
		for end := now.Add(until); now.Before(end); {
			result, err := g.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(of)})
			if (err != nil) != fails {
				t.Fatalf("Reconcile(): %v", err)
			}
			switch {
			case fails:
				now = now.Add(time.Minute) // As after a failure.
			case result.RequeueAfter > 0 && now.Add(result.RequeueAfter).Before(end):
				now = now.Add(result.RequeueAfter)
			default:
				now = end
			}
		}
	}
	drop := func(of client.Object) {
		t.Helper()
		if err := c.Delete(t.Context(), of); err != nil {
			t.Fatal(err)
		}
		watch(of, time.Second)
	}

	first := begin(0)
	watch(first, time.Minute)
	if restarts != 0 {
		t.Fatalf("%d restarts for the first tunnel with its addresses", restarts)
	}
	for n := range 20 { // Half an hour of tunnels that nobody answers.
		drop(first)
		first = begin(n + 1)
		watch(first, 89*time.Second)
	}
	if restarts < 2 || restarts > 4 {
		t.Errorf("%d restarts in half an hour", restarts)
	}

	// The one that waits has its turn, though the addresses were used before the last restart.
	before := restarts
	watch(first, 20*time.Minute)
	if restarts != before+1 {
		t.Errorf("%d restarts for the tunnel that stays, want 1", restarts-before)
	}

	// A restart that fails is tried again, for as long as the tunnel needs it.
	drop(first)
	first = begin(100)
	now = now.Add(40 * time.Second)
	fails = true
	watch(first, 6*time.Minute)
	fails, before = false, restarts
	watch(first, 20*time.Minute)
	if restarts != before+1 {
		t.Errorf("%d restarts after some that failed, want 1", restarts-before)
	}

	// What is being removed needs no gateway.
	now = now.Add(time.Hour)
	drop(first)
	first = begin(200, "liqo.io/keep")
	if err := c.Delete(t.Context(), first); err != nil {
		t.Fatal(err)
	}
	before = restarts
	watch(first, 20*time.Minute)
	if restarts != before {
		t.Errorf("%d restarts for a tunnel that is being removed", restarts-before)
	}
}
