// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

// Package lease makes the replicas of a program elect a leader by a Lease. It does not know what only a leader does.
package lease

import (
	"context"
	"fmt"
	"os"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/manager"
)

// A leader that cannot renew its lease ends, so that it has time for an API server that is slow and not away. A replica that ends
// gives the lease back, and one that is killed and started again in its pod takes it up again: only a pod that is gone without a
// word keeps the others waiting.
const (
	leaseDuration = time.Minute
	renewDeadline = 50 * time.Second
	renewTimeout  = 10 * time.Second
)

// EveryReplica is what a manager runs also where another replica leads.
type EveryReplica func(context.Context) error

var _ manager.LeaderElectionRunnable = EveryReplica(nil)

// Start implements manager.Runnable.
func (run EveryReplica) Start(ctx context.Context) error { return run(ctx) }

// NeedLeaderElection implements manager.LeaderElectionRunnable.
func (EveryReplica) NeedLeaderElection() bool { return false }

// Lease is that of the replicas of a program.
type Lease struct {
	// Namespace and Name are those of the Lease.
	Namespace, Name string
	// Identity names this replica, and should survive a restart, such as the name of its pod; another one each time if empty.
	Identity string
}

// Elect has a manager lead only while it holds the lease.
func (l Lease) Elect(manager *ctrl.Options, config *rest.Config) error {
	config = rest.CopyConfig(config)
	config.Timeout = renewTimeout
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("set up the client of the replicas' lease: %w", err)
	}
	lock, err := l.lock(client)
	if err != nil {
		return err
	}
	duration, deadline := leaseDuration, renewDeadline
	manager.LeaderElection = true
	manager.LeaderElectionResourceLockInterface = lock
	manager.LeaderElectionReleaseOnCancel = true
	manager.LeaseDuration, manager.RenewDeadline = &duration, &deadline
	return nil
}

// lock returns the lease, as this replica holds it.
func (l Lease) lock(client kubernetes.Interface) (resourcelock.Interface, error) {
	identity := l.Identity
	if identity == "" {
		host, err := os.Hostname()
		if err != nil {
			return nil, fmt.Errorf("name this replica, without --leader-election-identity: %w", err)
		}
		identity = fmt.Sprintf("%s_%d_%d", host, os.Getpid(), time.Now().UnixNano())
	}
	lock, err := resourcelock.New(resourcelock.LeasesResourceLock, l.Namespace, l.Name,
		client.CoreV1(), client.CoordinationV1(), resourcelock.ResourceLockConfig{Identity: identity})
	if err != nil {
		return nil, fmt.Errorf("set up the replicas' lease: %w", err)
	}
	return lock, nil
}
