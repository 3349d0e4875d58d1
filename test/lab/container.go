// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
	corev1 "k8s.io/api/core/v1"

	"github.com/capacitorset/liqo-broker/test/lab/node"
	"github.com/capacitorset/liqo-broker/test/lab/process"
)

// Container is a container that runs on the node of a cluster. The kubelet gives a container that it starts again another ID.
type Container struct {
	pod string // The control group of the pod, which has one for each container.
	id  string
}

// Container returns a container of a pod that runs on the cluster's node.
func (c *Cluster) Container(pod *corev1.Pod, name string) (Container, error) {
	describe := func(err error) error {
		return fmt.Errorf("find container %s of pod %s/%s: %w", name, pod.Namespace, pod.Name, err)
	}
	at := slices.IndexFunc(pod.Status.ContainerStatuses, func(s corev1.ContainerStatus) bool { return s.Name == name })
	if at < 0 || pod.Status.ContainerStatuses[at].State.Running == nil {
		return Container{}, describe(errors.New("it does not run"))
	}
	groups, err := node.FindCgroups(filepath.Join(c.lab.folder.cgroup(), c.Name, "kubepods"))
	if err != nil {
		return Container{}, describe(err)
	}
	// Pods are grouped by their quality of service, unless it is the best one.
	var found []string
	for _, class := range []string{"", "burstable", "besteffort"} {
		dir := filepath.Join(groups.Dir(), class, "pod"+string(pod.UID))
		if _, err := os.Stat(dir); err == nil {
			found = append(found, dir)
		}
	}
	if len(found) != 1 {
		return Container{}, describe(fmt.Errorf("the pod has %d control groups, want 1", len(found)))
	}
	_, id, _ := strings.Cut(pod.Status.ContainerStatuses[at].ContainerID, "://")
	return Container{pod: found[0], id: id}, nil
}

// Process is the first process of the container; it is an error if the container has ended.
func (c Container) Process() (process.ID, error) {
	processes, err := c.Processes()
	if err != nil {
		return process.ID{}, err
	}
	if len(processes) == 0 {
		return process.ID{}, fmt.Errorf("container %s has no process", c.id)
	}
	return processes[0], nil
}

// Processes are the processes of the container, the first one first. There is none when the container has ended.
func (c Container) Processes() ([]process.ID, error) {
	data, err := os.ReadFile(filepath.Join(c.pod, c.id, "cgroup.procs"))
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ENODEV) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("list the processes of container %s: %w", c.id, err)
	}
	var all []process.ID
	for field := range strings.FieldsSeq(string(data)) {
		pid, err := strconv.Atoi(field)
		if err != nil {
			return nil, fmt.Errorf("list the processes of container %s: %w", c.id, err)
		}
		if id, err := process.Lookup(pid); err == nil { // Others ended meanwhile.
			all = append(all, id)
		}
	}
	return all, nil
}

// An Outage is a container whose processes were killed, and that is kept from running again.
type Outage struct {
	cancel context.CancelFunc
	done   chan struct{}
	held   []process.ID
	err    error
}

// holdDelay is how long a process that the kubelet has started again may run before it is stopped. A program that is written in Go
// takes longer to read its configuration.
const holdDelay = 2 * time.Millisecond

// Kill kills the container's processes. The kubelet starts others in their place, which are stopped as soon as there are any, so
// that they do nothing until the outage ends; nor has the kubelet a reason to wait longer with each time.
func (c Container) Kill(ctx context.Context) (*Outage, error) {
	known, err := c.siblings()
	if err != nil {
		return nil, err
	}
	processes, err := c.Processes()
	if err != nil {
		return nil, err
	}
	if len(processes) == 0 {
		return nil, fmt.Errorf("kill container %s: it has no process", c.id)
	}
	holding, cancel := context.WithCancel(context.WithoutCancel(ctx))
	o := &Outage{cancel: cancel, done: make(chan struct{})}
	go func() {
		defer close(o.done)
		o.err = o.hold(holding, c.pod, known)
	}()
	for _, each := range processes {
		if err := each.Kill(ctx); err != nil {
			return nil, errors.Join(err, o.End())
		}
	}
	return o, nil
}

// siblings are the IDs of the pod's containers.
func (c Container) siblings() ([]string, error) {
	entries, err := os.ReadDir(c.pod)
	if err != nil {
		return nil, fmt.Errorf("list the containers of a pod: %w", err)
	}
	var ids []string
	for _, e := range entries {
		if e.IsDir() {
			ids = append(ids, e.Name())
		}
	}
	return ids, nil
}

// hold stops the processes of all containers of a pod that are not among the known ones.
func (o *Outage) hold(ctx context.Context, pod string, known []string) error {
	ticker := time.NewTicker(holdDelay)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
		ids, err := Container{pod: pod}.siblings()
		if err != nil {
			return err
		}
		for _, id := range ids {
			if slices.Contains(known, id) {
				continue
			}
			if err := o.stop(Container{pod: pod, id: id}); err != nil {
				return err
			}
		}
	}
}

// stop stops those processes of a container that are not stopped yet.
func (o *Outage) stop(c Container) error {
	processes, err := c.Processes()
	if err != nil {
		return err
	}
	for _, each := range processes {
		if slices.Contains(o.held, each) || setsUp(each) {
			continue
		}
		if err := each.Signal(unix.SIGSTOP); err != nil {
			return err
		}
		o.held = append(o.held, each)
	}
	return nil
}

// setsUp reports whether a process is still the container runtime's, which makes it the container's program when all is ready.
func setsUp(id process.ID) bool {
	program, err := os.Readlink(fmt.Sprintf("/proc/%d/exe", id.PID))
	return err == nil && strings.Contains(program, "runc")
}

// End lets the container run again.
func (o *Outage) End() error {
	o.cancel()
	<-o.done
	errs := []error{o.err}
	for _, each := range o.held {
		errs = append(errs, each.Signal(unix.SIGCONT))
	}
	return errors.Join(errs...)
}
