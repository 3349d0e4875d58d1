// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package node

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/capacitorset/liqo-broker/test/lab/process"
)

// TestMain is the init of the nodes that the tests start, as Start demands.
func TestMain(m *testing.M) {
	if len(os.Args) == 3 && os.Args[1] == InitCommand {
		fmt.Fprintln(os.Stderr, Init(os.Args[2]))
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// start starts a node without a network, and ends it with the test.
func start(t *testing.T, spec Spec, listener *net.TCPListener) process.ID {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("namespaces need root")
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	spec.Name, spec.Dir = "test", t.TempDir()
	var init process.ID
	keep := func(id process.ID) error { init = id; return nil }
	t.Cleanup(func() {
		if err := init.Kill(context.Background()); err != nil {
			t.Errorf("end node: %v", err)
		}
	})
	if err := Start(ctx, spec, listener, keep, func(process.ID) error { return nil }); err != nil {
		t.Fatal(err)
	}
	return init
}

// output runs a shell command in the node.
func output(t *testing.T, init process.ID, script string) string {
	t.Helper()
	var out bytes.Buffer
	if err := Exec(t.Context(), init, Command{Args: []string{"sh", "-c", script}, Stdout: &out, Stderr: &out}); err != nil {
		t.Fatalf("%s: %v: %s", script, err, out.String())
	}
	return strings.TrimSpace(out.String())
}

func eventually(t *testing.T, what string, check func() bool) {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Second); !check(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%s did not come true", what)
		}
	}
}

func TestNodeIsAMachineOfItsOwn(t *testing.T) {
	init := start(
		t, Spec{Shadows: map[string]string{"kernel/panic": "10"}, Files: map[string]string{"resolv.conf": "# none\n", "sub/file": "x"}}, nil,
	)
	for name, tc := range map[string]struct{ reason, script, want string }{
		"HostName": {"a node has its own", "hostname", "test"},
		"Init":     {"a node has its own processes", "readlink /proc/1/exe | grep -c .", "1"},
		"Links":    {"a node has its own network", "ls /sys/class/net", "lo"},
		"ReadOnly": {"the machine's programs cannot be changed", "touch /usr/x 2>/dev/null || echo no", "no"},
		"Files":    {"a node has its own files in /etc", "cat /etc/resolv.conf /etc/sub/file", "# none\nx"},
		"Shadow":   {"a shadow can be changed", "echo 9 > /proc/sys/kernel/panic; cat /proc/sys/kernel/panic", "9"},
		"Home":     {"the machine's files are not shown", "ls /home 2>/dev/null || echo none", "none"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := output(t, init, tc.script); got != tc.want {
				t.Errorf("%s gives %q, want %q: %s", tc.script, got, tc.want, tc.reason)
			}
		})
	}
	if data, err := os.ReadFile("/proc/sys/kernel/panic"); err != nil || strings.TrimSpace(string(data)) == "9" {
		t.Errorf("a node changed a setting of the machine: %s, %v", data, err)
	}
	if mounts, err := os.ReadFile("/proc/self/mountinfo"); err != nil || strings.Contains(string(mounts), t.Name()) {
		t.Errorf("the mounts of a node are visible outside: %v", err)
	}
}

func TestComponentRunsAgain(t *testing.T) {
	init := start(t, Spec{Components: []Component{{Name: "once", Args: []string{"sh", "-c", "echo started"}}}}, nil)
	eventually(t, "a second start", func() bool {
		return strings.Count(output(t, init, "cat /lab/logs/once.log 2>/dev/null || true"), "started") > 1
	})
}

func TestComponentWaits(t *testing.T) {
	init := start(t, Spec{Components: []Component{{Name: "late", Args: []string{"sh", "-c", "echo started"}, After: "unix:/tmp/door"}}}, nil)
	time.Sleep(200 * time.Millisecond)
	if log := output(t, init, "cat /lab/logs/late.log 2>/dev/null || true"); log != "" {
		t.Errorf("a component started before what it needs: %s", log)
	}
}

func TestEverythingEndsWithInit(t *testing.T) {
	init := start(t, Spec{Components: []Component{{Name: "orphan", Args: []string{"sh", "-c", "setsid sleep 1000 & sleep 1000"}}}}, nil)
	namespace := func() string {
		link, _ := os.Readlink(fmt.Sprintf("/proc/%d/ns/pid", init.PID))
		return link
	}()
	count := func() (n int) {
		links, _ := filepath.Glob("/proc/[0-9]*/ns/pid")
		for _, l := range links {
			if target, _ := os.Readlink(l); target == namespace {
				n++
			}
		}
		return n
	}
	eventually(t, "a node with an orphan", func() bool { return count() > 2 })
	if err := init.Kill(t.Context()); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the end of all processes", func() bool { return count() == 0 })
}

func TestForward(t *testing.T) {
	listener, err := net.ListenTCP("tcp4", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	address := listener.Addr().String()
	start(t, Spec{
		Forward:    "127.0.0.1:80",
		Components: []Component{{Name: "server", Args: []string{"sh", "-c", "while hostname | busybox nc -l -p 80; do :; done"}}},
	}, listener)
	eventually(t, "an answer from the node", func() bool {
		conn, err := net.Dial("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		answer := make([]byte, 16)
		n, _ := conn.Read(answer)
		return strings.TrimSpace(string(answer[:n])) == "test"
	})
}

func TestFailedSetUpIsReported(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("namespaces need root")
	}
	var init process.ID
	keep := func(id process.ID) error { init = id; return nil }
	spec := Spec{Name: "test", Dir: t.TempDir(), Setup: [][]string{{"sh", "-c", "exit 3"}}}
	err := Start(t.Context(), spec, nil, keep, func(process.ID) error { return nil })
	if err == nil || !strings.Contains(err.Error(), "status 3") {
		t.Errorf("error %v, want the status of the command", err)
	}
	eventually(t, "the end of init", func() bool { return !init.Alive() })
}

func TestForgottenInitEnds(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("namespaces need root")
	}
	var init process.ID
	keep := func(id process.ID) error { init = id; return fmt.Errorf("disk full") }
	if err := Start(t.Context(), Spec{Name: "test", Dir: t.TempDir()}, nil, keep, keep); err == nil {
		t.Error("no error though the identity could not be kept")
	}
	eventually(t, "the end of init", func() bool { return !init.Alive() })
}

func TestParseMount(t *testing.T) {
	for name, tc := range map[string]struct{ reason, line, place, kind string }{
		"V1":    {"a hierarchy", "35 30 0:31 / /sys/fs/cgroup/cpu rw,relatime - cgroup none rw,cpu", "/sys/fs/cgroup/cpu", "cgroup"},
		"V2":    {"with optional fields", "30 25 0:26 / /sys/fs/cgroup rw shared:9 - cgroup2 none rw", "/sys/fs/cgroup", "cgroup2"},
		"Short": {"not a mount", "nothing", "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			if place, kind := parseMount(tc.line); place != tc.place || kind != tc.kind {
				t.Errorf("parseMount = %q, %q; want %q, %q: %s", place, kind, tc.place, tc.kind, tc.reason)
			}
		})
	}
}

// TestWeigh gives groups of both versions a weight, and writes no file that is not there.
func TestWeigh(t *testing.T) {
	cpu, memory, v2 := t.TempDir(), t.TempDir(), t.TempDir()
	for name, is := range map[string]string{filepath.Join(cpu, "cpu.shares"): "1024", filepath.Join(v2, "cpu.weight"): "100"} {
		if err := os.WriteFile(name, []byte(is), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := (Cgroups{dirs: []string{cpu, memory, v2}}).Weigh(16); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{filepath.Join(cpu, "cpu.shares"): "16384", filepath.Join(v2, "cpu.weight"): "1600"} {
		if is, err := os.ReadFile(name); err != nil || string(is) != want {
			t.Errorf("%s is %q, %v, want %q", filepath.Base(name), is, err, want)
		}
	}
	for _, dir := range []string{cpu, memory, v2} {
		if files, err := os.ReadDir(dir); err != nil || len(files) > 1 {
			t.Errorf("%s has %d files: %v", dir, len(files), err)
		}
	}
}
