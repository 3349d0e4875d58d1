// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/capacitorset/liqo-broker/test/lab/process"
)

// A component that is slow runs for runTime, and then stands still for stopTime, again and again.
const (
	runTime  = 200 * time.Millisecond
	stopTime = 2 * time.Second
)

// Slow makes a component of the cluster's Kubernetes run for an eleventh of the time, as on a machine that is far too small, until the
// returned function is called.
func (c *Cluster) Slow(ctx context.Context, component string) (end func() error, err error) {
	id, err := c.component(component)
	if err != nil {
		return nil, err
	}
	slowing, cancel := context.WithCancel(context.WithoutCancel(ctx))
	var group sync.WaitGroup
	var failure error
	group.Go(func() { failure = stutter(slowing, id) })
	return func() error {
		cancel()
		group.Wait()
		return failure
	}, nil
}

// stutter stops a process most of the time until the context ends. It runs then.
func stutter(ctx context.Context, id process.ID) error {
	wait := func(d time.Duration) {
		select {
		case <-ctx.Done():
		case <-time.After(d):
		}
	}
	for ctx.Err() == nil {
		if err := id.Signal(unix.SIGSTOP); err != nil {
			return err
		}
		wait(stopTime)
		if err := id.Signal(unix.SIGCONT); err != nil {
			return err
		}
		wait(runTime)
	}
	return nil
}

// component returns the process of a component, which the cluster's first process has started.
func (c *Cluster) component(name string) (process.ID, error) {
	init, err := c.pid1()
	if err != nil {
		return process.ID{}, err
	}
	processes, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		return process.ID{}, err
	}
	for _, dir := range processes {
		if parentOf(dir) != init.PID {
			continue
		}
		command, err := os.ReadFile(filepath.Join(dir, "cmdline"))
		if err != nil {
			continue // It has ended meanwhile.
		}
		program, _, _ := strings.Cut(string(command), "\x00")
		if filepath.Base(program) != name {
			continue
		}
		pid, err := strconv.Atoi(filepath.Base(dir))
		if err != nil {
			return process.ID{}, err
		}
		return process.Lookup(pid)
	}
	return process.ID{}, fmt.Errorf("cluster %s has no process %s", c.Name, name)
}

// parentOf returns the number of the parent of a process, whose folder in /proc is given; 0 if it has ended.
func parentOf(dir string) int {
	status, err := os.ReadFile(filepath.Join(dir, "status"))
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(status)) {
		if value, found := strings.CutPrefix(line, "PPid:"); found {
			parent, err := strconv.Atoi(strings.TrimSpace(value))
			if err != nil {
				return 0
			}
			return parent
		}
	}
	return 0
}
