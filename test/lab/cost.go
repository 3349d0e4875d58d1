// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package lab

import "time"

// Components are the names of the programs of a cluster's Kubernetes.
func Components() []string {
	return []string{"etcd", "kube-apiserver", "containerd", "kube-controller-manager", "kube-scheduler", "kubelet", "kube-proxy"}
}

// CPU returns how long a component of the cluster's Kubernetes has used a processor.
func (c *Cluster) CPU(component string) (time.Duration, error) {
	id, err := c.component(component)
	if err != nil {
		return 0, err
	}
	return id.CPU()
}

// CPU returns how long the processes that the container has at the moment have used a processor.
func (c Container) CPU() (time.Duration, error) {
	processes, err := c.Processes()
	if err != nil {
		return 0, err
	}
	var sum time.Duration
	for _, each := range processes {
		used, err := each.CPU()
		if err != nil {
			return 0, err
		}
		sum += used
	}
	return sum, nil
}
