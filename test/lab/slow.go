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

// A component that is slow stands still for stopTime, and then runs until it has done what waited for it, for leastRun at least and mostRun
// at most, again and again. A time that is the same for all would be too short where other programs need the processors as well: work would
// pile up for ever.
const (
	stopTime = 1500 * time.Millisecond
	leastRun = 200 * time.Millisecond
	mostRun  = time.Second
	// lookTime is how long one look at a component lasts, which has nothing to do if it has used less than a fifth of that.
	lookTime = 100 * time.Millisecond
)

// Slow makes a component of the cluster's Kubernetes stand still most of the time, as on a machine that is far too small, until the
// returned function is called: what it is asked it answers after seconds.
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

// Freeze makes a component of the cluster's Kubernetes stand still until the returned function is called. Connections to it stay open, and
// nothing is answered.
func (c *Cluster) Freeze(component string) (end func() error, err error) {
	id, err := c.component(component)
	if err != nil {
		return nil, err
	}
	if err := id.Signal(unix.SIGSTOP); err != nil {
		return nil, err
	}
	return func() error { return id.Signal(unix.SIGCONT) }, nil
}

// Kill kills a component of the cluster's Kubernetes, which starts again soon.
func (c *Cluster) Kill(ctx context.Context, component string) error {
	id, err := c.component(component)
	if err != nil {
		return err
	}
	return id.Kill(ctx)
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
		began := time.Now()
		for used, busy := time.Duration(0), true; ctx.Err() == nil && (busy && time.Since(began) < mostRun || time.Since(began) < leastRun); {
			wait(lookTime)
			now, err := id.CPU()
			if err != nil {
				return err
			}
			used, busy = now, now-used > lookTime/5
		}
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
