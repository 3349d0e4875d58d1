// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

// The lease of a virtual node ends soon enough for another replica to take over before
// Kubernetes calls the node not ready, which it does after 40 s
// (--node-monitor-grace-period of kube-controller-manager v1.28).
const (
	replicaLease    = 15 * time.Second
	replicaDeadline = 10 * time.Second
	replicaRetry    = 2 * time.Second
)

// errTakenOver says that another replica acts for the virtual node now.
var errTakenOver = errors.New("another replica of this virtual kubelet has taken over")

// Replica is one of the virtual kubelets of one virtual node, of which one acts and the
// others wait. A lone one that cannot renew its lease, because its API server is slow,
// goes on: nobody else does its work.
type Replica struct {
	elector *leaderelection.LeaderElector
	// leads is closed when this replica is to act.
	leads chan struct{}
	// taken is closed when another one acts instead.
	taken chan struct{}
}

// ReplicaConfig tells which replica of which node one is.
type ReplicaConfig struct {
	// Node is the virtual node, and Namespace where its lease is.
	Namespace, Node string
	// Pod is the name of this replica.
	Pod string
}

// NewReplica returns a replica that stands for the lease of the virtual node when it runs.
func NewReplica(c ReplicaConfig, client kubernetes.Interface, log logr.Logger) (*Replica, error) {
	r := &Replica{leads: make(chan struct{}), taken: make(chan struct{})}
	lock, err := resourcelock.New(resourcelock.LeasesResourceLock, c.Namespace, c.Node,
		client.CoreV1(), client.CoordinationV1(), resourcelock.ResourceLockConfig{Identity: c.Pod})
	if err != nil {
		return nil, fmt.Errorf("set up the lease of virtual node %s: %w", c.Node, err)
	}
	led := sync.OnceFunc(func() { close(r.leads) })
	lost := sync.OnceFunc(func() { close(r.taken) })
	r.elector, err = leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		Lock: lock, LeaseDuration: replicaLease, RenewDeadline: replicaDeadline, RetryPeriod: replicaRetry, ReleaseOnCancel: true,
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: func(context.Context) { led() },
			OnStoppedLeading: func() {},
			OnNewLeader: func(identity string) {
				if identity == "" || identity == c.Pod {
					return
				}
				select {
				case <-r.leads:
					// What is told late may be of before.
					if r.elector.IsLeader() || r.elector.GetLeader() != identity {
						return
					}
					lost()
				default:
					log.Info("This replica waits while another one acts for the virtual node", "virtualNode", c.Node, "replica", identity)
				}
			},
		},
	})
	if err != nil {
		return nil, fmt.Errorf("set up the election of a virtual kubelet for node %s: %w", c.Node, err)
	}
	return r, nil
}

// Leads returns what is closed when this replica is to act.
func (r *Replica) Leads() <-chan struct{} { return r.leads }

// Run holds the lease, or waits for it, until the context ends or another replica has
// taken over, which is an error. It may be called once.
func (r *Replica) Run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	var standing sync.WaitGroup
	defer standing.Wait()
	defer cancel()
	standing.Go(func() {
		for ctx.Err() == nil {
			r.elector.Run(ctx) // It returns when the lease is lost.
		}
	})
	select {
	case <-ctx.Done():
		return nil
	case <-r.taken:
		return errTakenOver
	}
}
