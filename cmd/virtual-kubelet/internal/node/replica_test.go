// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
)

// runningReplica is a replica that runs until stop is called, and then gives its error to ended.
type runningReplica struct {
	*Replica
	stop  context.CancelFunc
	ended chan error
}

func startReplica(t *testing.T, client kubernetes.Interface, pod string) *runningReplica {
	t.Helper()
	r, err := NewReplica(ReplicaConfig{Namespace: "tenant", Node: "virtual", Pod: pod}, client, logr.Discard())
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	running := &runningReplica{Replica: r, stop: stop, ended: make(chan error, 1)}
	go func() { running.ended <- r.Run(ctx) }()
	t.Cleanup(stop)
	return running
}

func (r *runningReplica) acts() bool {
	select {
	case <-r.leads:
		return true
	default:
		return false
	}
}

// TestReplicas runs two virtual kubelets for one node.
func TestReplicas(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := fake.NewSimpleClientset()
		first := startReplica(t, client, "first")
		time.Sleep(time.Second)
		second := startReplica(t, client, "second")
		time.Sleep(time.Minute)
		if !first.acts() || second.acts() {
			t.Fatalf("the first replica acts: %t, and the second: %t", first.acts(), second.acts())
		}
		first.stop()
		if err := <-first.ended; err != nil {
			t.Errorf("run() after its end: %v", err)
		}
		time.Sleep(2 * replicaRetry)
		if !second.acts() {
			t.Error("the second replica does not act though the first one has ended")
		}
		second.stop()
		<-second.ended
	})
}

// TestReplicaOfSlowCluster has an API server that does not answer for longer than the lease lasts. A lone replica goes on. Of two, one
// acts afterwards, and the other one has ended or waits.
func TestReplicaOfSlowCluster(t *testing.T) {
	for name, replicas := range map[string]int{"Alone": 1, "OfTwo": 2} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				client := fake.NewSimpleClientset()
				var slow atomic.Bool
				client.PrependReactor("*", "leases", func(clienttesting.Action) (bool, runtime.Object, error) {
					return slow.Load(), nil, apierrors.NewTimeoutError("slow", 1)
				})
				var all []*runningReplica
				for _, pod := range []string{"first", "second"}[:replicas] {
					all = append(all, startReplica(t, client, pod))
					time.Sleep(time.Second)
				}
				slow.Store(true)
				time.Sleep(2 * time.Minute)
				if !all[0].acts() {
					t.Error("the first replica does not act")
				}
				select {
				case err := <-all[0].ended:
					t.Fatalf("the virtual kubelet ends because this cluster is slow: %v", err)
				default:
				}
				slow.Store(false)
				time.Sleep(2 * time.Minute)
				acting := 0
				for _, r := range all {
					select {
					case err := <-r.ended:
						if !errors.Is(err, errTakenOver) {
							t.Errorf("run() = %v", err)
						}
					default:
						if r.acts() {
							acting++
						}
					}
					r.stop()
				}
				if acting != 1 {
					t.Errorf("%d replicas act, want 1", acting)
				}
				synctest.Wait()
			})
		})
	}
}
