// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// restartDelay keeps a program that fails at once from using the machine up.
	restartDelay = time.Second
	// pollDelay is the time between two looks at what a component waits for.
	pollDelay = 50 * time.Millisecond
)

// supervisor is the part of an init that has children. Every process of the node
// whose parent ends becomes its child, so it waits for all, not only for its own.
type supervisor struct {
	mu      sync.Mutex
	waiters map[int]chan syscall.WaitStatus
}

func newSupervisor() *supervisor {
	return &supervisor{waiters: map[int]chan syscall.WaitStatus{}}
}

// reap collects every child that ends, for ever.
func (s *supervisor) reap() {
	ended := make(chan os.Signal, 1)
	signal.Notify(ended, unix.SIGCHLD)
	for {
		var status syscall.WaitStatus
		// The lock makes sure that a child is known before it is collected.
		s.mu.Lock()
		pid, err := syscall.Wait4(-1, &status, syscall.WNOHANG, nil)
		waiter := s.waiters[pid]
		delete(s.waiters, pid)
		s.mu.Unlock()
		if err == syscall.EINTR {
			continue
		}
		if err != nil || pid == 0 {
			<-ended
			continue
		}
		if waiter != nil {
			waiter <- status
		}
	}
}

// OneProcessor makes a program in Go use one processor at a time. Four nodes share the processors of a small machine, with some fifteen
// programs each: with a thread for each processor, a good part of the time goes to waking them.
const OneProcessor = "GOMAXPROCS=1"

// start runs a program in a session of its own, which weighs as its niceness says, and returns where its end is told.
func (s *supervisor) start(args []string, log *os.File, nice int) (<-chan syscall.WaitStatus, error) {
	program, err := exec.LookPath(args[0])
	if err != nil {
		return nil, err
	}
	attributes := &syscall.ProcAttr{
		Dir: "/", Env: append(os.Environ(), "HOME=/root", OneProcessor),
		Files: []uintptr{os.Stdin.Fd(), log.Fd(), log.Fd()},
		Sys:   &syscall.SysProcAttr{Setsid: true},
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	pid, err := syscall.ForkExec(program, args, attributes)
	if err != nil {
		return nil, err
	}
	waiter := make(chan syscall.WaitStatus, 1)
	s.waiters[pid] = waiter
	if nice != 0 { // Sessions share the processors, and what is in them shares that; a kernel without autogroups has no such file (sched(7)).
		if err := os.WriteFile(fmt.Sprintf("/proc/%d/autogroup", pid), []byte(strconv.Itoa(nice)), 0); err != nil {
			fmt.Fprintf(os.Stderr, "%s is as nice as others: %v\n", program, err)
		}
	}
	return waiter, nil
}

// run runs a program to its end. Its output goes to init's log.
func (s *supervisor) run(args []string) error {
	ended, err := s.start(args, os.Stderr, 0)
	if err != nil {
		return err
	}
	if status := <-ended; status != 0 {
		return fmt.Errorf("it ended with status %d", status.ExitStatus())
	}
	return nil
}

// keep starts a component, and starts it again whenever it ends, until the context does.
func (s *supervisor) keep(ctx context.Context, c Component) {
	log, err := os.OpenFile(filepath.Join("/lab/logs", c.Name+".log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", c.Name, err)
		return
	}
	defer log.Close()
	for {
		if !waitFor(ctx, c.After) {
			return
		}
		ended, err := s.start(c.Args, log, c.Nice)
		if err != nil {
			fmt.Fprintf(os.Stderr, "%s: %v\n", c.Name, err)
			return
		}
		select {
		case <-ctx.Done():
			return
		case status := <-ended:
			fmt.Fprintf(os.Stderr, "%s ended with status %d, signal %d; starting it again\n", c.Name, status.ExitStatus(), status.Signal())
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(restartDelay):
		}
	}
}

// waitFor returns true when the address is there, in the sense of Component.After,
// and false when the context ends.
func waitFor(ctx context.Context, address string) bool {
	for !present(address) {
		select {
		case <-ctx.Done():
			return false
		case <-time.After(pollDelay):
		}
	}
	return true
}

func present(address string) bool {
	network, rest, _ := strings.Cut(address, ":")
	switch network {
	case "":
		return true
	case "https":
		return succeeds(address)
	}
	conn, err := net.DialTimeout(network, rest, time.Second)
	if err != nil {
		return false
	}
	conn.Close()
	return true
}

func succeeds(url string) bool {
	transport := &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}} //nolint:gosec // Nothing is sent or believed.
	defer transport.CloseIdleConnections()
	client := &http.Client{Transport: transport, Timeout: 2 * time.Second}
	response, err := client.Get(url)
	if err != nil {
		return false
	}
	response.Body.Close()
	return response.StatusCode == http.StatusOK
}
