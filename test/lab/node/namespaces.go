// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/capacitorset/liqo-broker/test/lab/process"
)

// namespaces are the kinds of namespace that a node has for itself.
const namespaces = unix.CLONE_NEWNET | unix.CLONE_NEWNS | unix.CLONE_NEWUTS | unix.CLONE_NEWPID | unix.CLONE_NEWIPC

// Command is a program to run in the namespaces of a node.
type Command struct {
	// Args are the program, looked for in Path unless it has a slash, and its arguments.
	Args []string
	// Path are the folders to look in, besides the usual ones.
	Path []string
	// Env are variables besides PATH, HOME and TERM.
	Env            []string
	Stdin          io.Reader
	Stdout, Stderr io.Writer
}

// Exec runs a program in all namespaces of the node whose pid 1 is init, and
// waits for it. If the program fails, the error is an *exec.ExitError.
func Exec(ctx context.Context, init process.ID, command Command) error {
	return inside(init, namespaces, func() error {
		path := append(slices.Clone(command.Path), "/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin")
		cmd := exec.CommandContext(ctx, find(command.Args[0], path), command.Args[1:]...)
		cmd.Args[0] = command.Args[0]
		cmd.Dir = "/"
		cmd.Env = append([]string{"PATH=" + strings.Join(path, ":"), "HOME=/root", "TERM=" + os.Getenv("TERM")}, command.Env...)
		cmd.Stdin, cmd.Stdout, cmd.Stderr = command.Stdin, command.Stdout, command.Stderr
		return cmd.Run()
	})
}

// find looks for a program where the thread that calls it sees it. One that it does
// not find is returned as it is, so that starting it fails with its name.
func find(program string, path []string) string {
	if strings.Contains(program, "/") {
		return program
	}
	for _, dir := range path {
		if found, err := exec.LookPath(filepath.Join(dir, program)); err == nil {
			return found
		}
	}
	return program
}

// InNetwork calls do on a thread that is in the network namespace of the process.
// Sockets that do opens stay in that namespace; goroutines that it starts do not.
func InNetwork(id process.ID, do func() error) error {
	return inside(id, unix.CLONE_NEWNET, do)
}

// inside runs do on a thread of its own in some namespaces of a process. The
// thread ends with the goroutine, because nothing can undo what it joined.
func inside(id process.ID, kinds int, do func() error) error {
	done := make(chan error)
	go func() {
		runtime.LockOSThread()
		if unix.Gettid() == unix.Getpid() {
			// The first thread is what others see as the process, and it cannot end alone.
			err := inside(id, kinds, do)
			runtime.UnlockOSThread()
			done <- err
			return
		}
		done <- func() error {
			fd, err := id.Open()
			if err != nil {
				return err
			}
			defer unix.Close(fd)
			// A thread that shares its root folder with others cannot change the mount namespace.
			if err := unix.Unshare(unix.CLONE_FS); err != nil {
				return fmt.Errorf("unshare file system attributes: %w", err)
			}
			if err := unix.Setns(fd, kinds); err != nil {
				return fmt.Errorf("join namespaces of process %d: %w", id.PID, err)
			}
			return do()
		}()
	}()
	return <-done
}

// IsExit reports whether an error of Exec is the program's own failure, and its exit code.
func IsExit(err error) (code int, ok bool) {
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return exit.ExitCode(), true
	}
	return 0, false
}
