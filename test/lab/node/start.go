// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/capacitorset/liqo-broker/test/lab/process"
)

// InitCommand is the hidden subcommand under which a program that calls Start
// must call Init, with the argument that follows it.
const InitCommand = "node-init"

// File descriptors that init inherits.
const (
	goFD = iota + 3
	reportFD
	listenerFD
)

// Start makes the namespaces of a node and returns when all of it is set up; its
// components are then being started. Before anything happens in the node, keep is
// called with the identity of its init, to be remembered for Kill, and connect, to
// give it its interface. If the caller ends before keep has returned, so does init.
//
// A listener, if not nil, stays in the network namespace that it was made in, and
// init forwards its connections to Spec.Forward inside the node.
func Start(ctx context.Context, spec Spec, listener *net.TCPListener, keep, connect func(process.ID) error) error {
	if err := prepare(spec); err != nil {
		return fmt.Errorf("prepare node %s: %w", spec.Name, err)
	}
	start, err := fork(spec, listener)
	if err != nil {
		return fmt.Errorf("start node %s: %w", spec.Name, err)
	}
	defer start.report.Close()
	defer start.proceed.Close()
	id, err := process.Lookup(start.pid)
	if err != nil {
		return fmt.Errorf("start node %s: %w", spec.Name, err)
	}
	for _, step := range []func(process.ID) error{keep, connect} {
		if err := step(id); err != nil {
			return fmt.Errorf("start node %s: %w", spec.Name, err)
		}
	}
	if _, err := start.proceed.Write([]byte{1}); err != nil {
		return fmt.Errorf("start node %s: %w", spec.Name, err)
	}
	stop := context.AfterFunc(ctx, func() { start.report.Close() })
	defer stop()
	report, err := io.ReadAll(start.report)
	if err != nil {
		return fmt.Errorf("start node %s: %w", spec.Name, errors.Join(ctx.Err(), err))
	}
	if string(report) != ready {
		return fmt.Errorf("start node %s: %s (see %s)", spec.Name, strings.TrimSpace(string(report)), spec.LogPath("init"))
	}
	return nil
}

// ready is what init reports when all is set up; anything else is an error.
const ready = "ready"

// prepare makes the folders that init mounts.
func prepare(spec Spec) error {
	for _, dir := range []string{"logs", "root", "var/lib", "var/log", "etc/upper", "etc/work"} {
		if err := os.MkdirAll(filepath.Join(spec.Dir, dir), 0o755); err != nil {
			return err
		}
	}
	return spec.save()
}

// forked is an init that waits for a byte in proceed.
type forked struct {
	pid             int
	proceed, report *os.File
}

// fork starts this program again as the init of new namespaces.
func fork(spec Spec, listener *net.TCPListener) (forked, error) {
	goRead, goWrite, err := os.Pipe()
	if err != nil {
		return forked{}, err
	}
	defer goRead.Close()
	reportRead, reportWrite, err := os.Pipe()
	if err != nil {
		return forked{}, errors.Join(err, goWrite.Close())
	}
	defer reportWrite.Close()
	log, err := os.OpenFile(spec.LogPath("init"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return forked{}, errors.Join(err, goWrite.Close(), reportRead.Close())
	}
	defer log.Close()
	null, err := os.Open(os.DevNull)
	if err != nil {
		return forked{}, errors.Join(err, goWrite.Close(), reportRead.Close())
	}
	defer null.Close()
	files := []*os.File{null, log, log, goRead, reportWrite}
	if listener != nil {
		f, err := listener.File()
		if err != nil {
			return forked{}, errors.Join(err, goWrite.Close(), reportRead.Close())
		}
		defer f.Close()
		files = append(files, f)
	}
	child, err := os.StartProcess("/proc/self/exe", []string{"lab", InitCommand, spec.path()}, &os.ProcAttr{
		Dir: "/", Env: []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin"}, Files: files,
		Sys: &syscall.SysProcAttr{Cloneflags: namespaces, Setsid: true},
	})
	if err != nil {
		return forked{}, errors.Join(err, goWrite.Close(), reportRead.Close())
	}
	pid := child.Pid
	// init outlives this process; as long as both live, it must not stay a zombie when it ends.
	go func() { _, _ = child.Wait() }()
	return forked{pid: pid, proceed: goWrite, report: reportRead}, nil
}
