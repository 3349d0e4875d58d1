// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	ctrl "sigs.k8s.io/controller-runtime"
)

// leaseName is the name of the replicas' lease.
const leaseName = "liqo-broker"

// A leader that cannot renew its lease ends, so that it has time for an API server that is slow and not away. A replica that ends
// gives the lease back, and one that is killed and started again in its pod takes it up again: only a pod that is gone without a
// word keeps the others waiting.
const (
	leaseDuration = time.Minute
	renewDeadline = 50 * time.Second
	renewTimeout  = 10 * time.Second
)

// withLease makes a manager lead by the replicas' lease, if it is to.
func withLease(manager *ctrl.Options, o *options, config *rest.Config) error {
	if !o.leaderElect {
		return nil
	}
	config = rest.CopyConfig(config)
	config.Timeout = renewTimeout
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("set up the client of the replicas' lease: %w", err)
	}
	lock, err := newLease(client, o)
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

// newLease returns the replicas' lease, as this replica holds it.
func newLease(client kubernetes.Interface, o *options) (resourcelock.Interface, error) {
	identity := o.leaderIdentity
	if identity == "" {
		host, err := os.Hostname()
		if err != nil {
			return nil, fmt.Errorf("name this replica, without --leader-election-identity: %w", err)
		}
		identity = fmt.Sprintf("%s_%d_%d", host, os.Getpid(), time.Now().UnixNano())
	}
	lock, err := resourcelock.New(resourcelock.LeasesResourceLock, o.leaderNamespace, leaseName,
		client.CoreV1(), client.CoordinationV1(), resourcelock.ResourceLockConfig{Identity: identity})
	if err != nil {
		return nil, fmt.Errorf("set up the replicas' lease: %w", err)
	}
	return lock, nil
}
