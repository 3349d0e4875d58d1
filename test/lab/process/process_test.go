// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package process

import (
	"os"
	"os/exec"
	"testing"
	"time"
)

func TestStartTime(t *testing.T) {
	for name, tc := range map[string]struct {
		reason string
		stat   string
		want   uint64
		fails  bool
	}{
		"Plain": {"field 22", "7 (cat) S 1 7 7 0 -1 4194304 1 0 0 0 0 0 0 0 20 0 1 0 4711 1 1", 4711, false},
		"Hostile": {
			"a name may look like fields", "7 (a) S 1 2) S 1 7 7 0 -1 4194304 1 0 0 0 0 0 0 0 20 0 1 0 4711 1 1", 4711, false,
		},
		"Short": {"no field 22", "7 (cat) S 1", 0, true},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := startTime(tc.stat)
			if got != tc.want || (err != nil) != tc.fails {
				t.Errorf("startTime = %d, %v; want %d: %s", got, err, tc.want, tc.reason)
			}
		})
	}
}

func TestKill(t *testing.T) {
	cmd := exec.Command("sleep", "60")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	id, err := Lookup(cmd.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	if !id.Alive() {
		t.Error("a running process is not alive")
	}
	if err := id.Kill(t.Context()); err != nil {
		t.Errorf("Kill: %v", err)
	}
	if id.Alive() {
		t.Error("a killed process is alive, though it is a zombie at most")
	}
	_ = cmd.Wait()
	if err := id.Kill(t.Context()); err != nil {
		t.Errorf("Kill of a process that is gone: %v", err)
	}
}

func TestKillSparesSuccessor(t *testing.T) {
	id, err := Lookup(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	// The same number, but a process that started at another time.
	id.Start--
	if id.Alive() {
		t.Error("another process with the same number counts as alive")
	}
	if err := id.Kill(t.Context()); err != nil {
		t.Errorf("Kill: %v", err)
	}
}

func TestCPU(t *testing.T) {
	id, err := Lookup(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	before, err := id.CPU()
	if err != nil {
		t.Fatal(err)
	}
	for began := time.Now(); time.Since(began) < 10*time.Second; {
		after, err := id.CPU()
		if err != nil {
			t.Fatal(err)
		}
		if after > before {
			return
		}
	}
	t.Errorf("the process has used a processor for %s, and for no more after ten busy seconds", before)
}
