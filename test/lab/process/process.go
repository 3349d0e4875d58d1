// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

// Package process names processes in a way that survives the reuse of process
// numbers, and ends them. It does not know what the processes do.
package process

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// ID is one process of one boot of the machine.
type ID struct {
	PID int `json:"pid"`
	// Start is the start time in clock ticks since boot (field 22 of proc_pid_stat(5)).
	Start uint64 `json:"start"`
	// Boot is the kernel's identifier of the boot.
	Boot string `json:"boot"`
}

// Lookup returns the identity of the process that has this number at the moment.
func Lookup(pid int) (ID, error) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return ID{}, fmt.Errorf("look up process %d: %w", pid, err)
	}
	start, err := startTime(string(stat))
	if err != nil {
		return ID{}, fmt.Errorf("look up process %d: %w", pid, err)
	}
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return ID{}, fmt.Errorf("look up process %d: %w", pid, err)
	}
	return ID{PID: pid, Start: start, Boot: strings.TrimSpace(string(boot))}, nil
}

// startTime finds field 22. The second field, the name of the program, may itself
// hold spaces and parentheses, so the count starts after the last parenthesis.
func startTime(stat string) (uint64, error) {
	fields := strings.Fields(stat[strings.LastIndexByte(stat, ')')+1:])
	if len(fields) < 20 {
		return 0, fmt.Errorf("unexpected stat line %q", stat)
	}
	return strconv.ParseUint(fields[19], 10, 64)
}

// CPU returns how long the process has used a processor, with its children that have ended (fields 14 to 17 of proc_pid_stat(5)).
func (id ID) CPU() (time.Duration, error) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", id.PID))
	if err != nil {
		return 0, fmt.Errorf("read the times of process %d: %w", id.PID, err)
	}
	fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
	if len(fields) < 20 {
		return 0, fmt.Errorf("unexpected stat line %q", stat)
	}
	var ticks int64
	for _, field := range fields[11:15] {
		n, err := strconv.ParseInt(field, 10, 64)
		if err != nil {
			return 0, fmt.Errorf("read the times of process %d: %w", id.PID, err)
		}
		ticks += n
	}
	return time.Duration(ticks) * tick, nil
}

// tick is the unit of time in /proc, USER_HZ, which Linux does not let change.
const tick = 10 * time.Millisecond

// Alive reports whether the very process still runs. A zombie does not.
func (id ID) Alive() bool {
	fd, err := id.Open()
	if err != nil {
		return false
	}
	defer unix.Close(fd)
	return !ended(fd, 0)
}

// Open returns a pidfd of the process, which the caller closes, or an error that
// is unix.ESRCH if the process is gone.
func (id ID) Open() (int, error) {
	if id.PID <= 0 {
		return -1, unix.ESRCH
	}
	fd, err := unix.PidfdOpen(id.PID, 0)
	if err != nil {
		return -1, fmt.Errorf("open process %d: %w", id.PID, err)
	}
	if now, err := Lookup(id.PID); err != nil || now != id {
		unix.Close(fd)
		return -1, fmt.Errorf("open process %d: %w", id.PID, unix.ESRCH)
	}
	return fd, nil
}

// Signal sends the process a signal. A process that does not exist is no error.
func (id ID) Signal(signal unix.Signal) error {
	fd, err := id.Open()
	if errors.Is(err, unix.ESRCH) {
		return nil
	}
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	if err := unix.PidfdSendSignal(fd, signal, nil, 0); err != nil && !errors.Is(err, unix.ESRCH) {
		return fmt.Errorf("send process %d the signal %s: %w", id.PID, unix.SignalName(signal), err)
	}
	return nil
}

// Kill ends the process at once and waits until it is gone. A process that does
// not exist is no error.
func (id ID) Kill(ctx context.Context) error {
	fd, err := id.Open()
	if errors.Is(err, unix.ESRCH) {
		return nil
	}
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	if err := unix.PidfdSendSignal(fd, unix.SIGKILL, nil, 0); err != nil && !errors.Is(err, unix.ESRCH) {
		return fmt.Errorf("kill process %d: %w", id.PID, err)
	}
	for !ended(fd, 100*time.Millisecond) {
		if err := ctx.Err(); err != nil {
			return fmt.Errorf("wait for the end of process %d: %w", id.PID, err)
		}
	}
	return nil
}

// ended waits up to the timeout until the process of a pidfd has ended.
func ended(fd int, timeout time.Duration) bool {
	files := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}} //nolint:gosec // The kernel's file numbers fit.
	n, err := unix.Poll(files, int(timeout.Milliseconds()))
	return err == nil && n > 0
}
