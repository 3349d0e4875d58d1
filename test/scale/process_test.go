// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package scale

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/capacitorset/liqo-broker/pkg/trade/party"
)

// programsVariable names the folder of the programs registry and connector: without it, nothing is measured.
const programsVariable = "LIQO_BROKER_TEST_REGISTRY"

// program returns the path of a program that was built.
func program(tb testing.TB, name string) string {
	tb.Helper()
	folder := os.Getenv(programsVariable)
	if folder == "" {
		tb.Skipf("%s does not say where %s is", programsVariable, name)
	}
	return filepath.Join(folder, name)
}

// process is a program that runs.
type process struct {
	tb      testing.TB
	name    string
	command *exec.Cmd
	log     bytes.Buffer
	ended   bool
	// looking looks at its memory until stop is closed.
	looking sync.WaitGroup
	stop    chan struct{}
	// anonymous is the most memory in MiB that it had besides its file. It is read when looking has ended, or with mu.
	mu        sync.Mutex
	anonymous float64
}

// start starts a program, which is killed when the test ends at the latest.
func start(tb testing.TB, environment []string, name string, args ...string) *process {
	tb.Helper()
	p := &process{
		tb: tb, name: filepath.Base(name), stop: make(chan struct{}),
		command: exec.CommandContext(context.WithoutCancel(tb.Context()), name, args...),
	}
	p.command.Env = append(os.Environ(), environment...)
	p.command.Stdout, p.command.Stderr = &p.log, &p.log
	if err := p.command.Start(); err != nil {
		tb.Fatal(err)
	}
	p.looking.Go(p.look)
	tb.Cleanup(p.kill)
	return p
}

// watchProcess looks at a program that runs already, and that somebody else ends, until the test ends.
func watchProcess(tb testing.TB, name string, pid int) *process {
	tb.Helper()
	found, err := os.FindProcess(pid)
	if err != nil {
		tb.Fatal(err)
	}
	p := &process{tb: tb, name: name, stop: make(chan struct{}), command: &exec.Cmd{Process: found}}
	p.looking.Go(p.look)
	tb.Cleanup(func() {
		close(p.stop)
		p.looking.Wait()
	})
	return p
}

// look looks at the memory again and again: the kernel remembers the most of it only together with the program's file.
func (p *process) look() {
	ticker := time.NewTicker(10 * time.Millisecond)
	defer ticker.Stop()
	for {
		select {
		case <-p.stop:
			return
		case <-ticker.C:
		}
		if now, err := p.status("RssAnon"); err == nil { // It may be ending.
			p.mu.Lock()
			p.anonymous = max(p.anonymous, now)
			p.mu.Unlock()
		}
	}
}

// kill ends it by SIGKILL.
func (p *process) kill() {
	if p.ended {
		return
	}
	p.ended = true
	close(p.stop)
	p.looking.Wait()
	if err := p.command.Process.Kill(); err != nil {
		p.tb.Errorf("kill %s: %v", p.name, err)
	}
	_ = p.command.Wait() // It was killed.
	if text := p.log.String(); p.tb.Failed() {
		p.tb.Logf("%s says:\n%s", p.name, text[max(0, len(text)-4<<10):])
	}
}

// await waits until an address answers with success, and returns how long the process then runs.
func (p *process) await(url string, began time.Time) time.Duration {
	p.tb.Helper()
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(5 * time.Millisecond) {
		if answer, err := http.Get(url); err == nil {
			answer.Body.Close()
			if answer.StatusCode == http.StatusOK {
				return time.Since(began)
			}
		}
		if time.Now().After(deadline) {
			p.tb.Fatalf("%s does not answer at %s", p.name, url)
		}
	}
}

// memory returns a value of the process's memory in MiB: VmRSS is what is resident, and VmHWM the most that was.
func (p *process) memory(field string) float64 {
	p.tb.Helper()
	value, err := p.status(field)
	if err != nil {
		p.tb.Fatal(err)
	}
	return value
}

// status returns a number of kilobytes that the kernel tells of the process, in MiB.
func (p *process) status(field string) (float64, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.command.Process.Pid))
	if err != nil {
		return 0, fmt.Errorf("read the status of %s: %w", p.name, err)
	}
	for line := range strings.Lines(string(text)) {
		if value, ok := strings.CutPrefix(line, field+":"); ok {
			kilobytes, err := strconv.ParseFloat(strings.TrimSuffix(strings.TrimSpace(value), " kB"), 64)
			if err != nil {
				return 0, fmt.Errorf("read %s of %s: %w", field, p.name, err)
			}
			return kilobytes / (1 << 10), nil
		}
	}
	return 0, fmt.Errorf("%s has no %s", p.name, field)
}

// processor returns how much of a processor the process has used. The kernel counts hundredths of a second.
func (p *process) processor() time.Duration {
	p.tb.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.command.Process.Pid))
	if err != nil {
		p.tb.Fatal(err)
	}
	fields := strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:])) // Fields 14 and 15 of proc_pid_stat(5), less the first two.
	var ticks int
	for _, field := range fields[11:13] {
		n, err := strconv.Atoi(field)
		if err != nil {
			p.tb.Fatal(err)
		}
		ticks += n
	}
	return time.Duration(ticks) * 10 * time.Millisecond
}

// others returns how many processors the machine's other programs use, looked at for a while in which the test does nothing.
func others(tb testing.TB) float64 {
	tb.Helper()
	const while = 2 * time.Second
	idle := func() float64 {
		text, err := os.ReadFile("/proc/stat")
		if err != nil {
			tb.Fatal(err)
		}
		var user, nice, system, free float64 // Hundredths of a second.
		if _, err := fmt.Sscanf(string(text), "cpu %g %g %g %g", &user, &nice, &system, &free); err != nil {
			tb.Fatal(err)
		}
		return free / 100
	}
	before := idle()
	time.Sleep(while)
	return max(0, float64(runtime.NumCPU())-(idle()-before)/while.Seconds())
}

// mebibytes prints memory.
func mebibytes(of float64) string { return fmt.Sprintf("%.0f MiB", of) }

// free returns an address of loopback that nobody uses.
func free(tb testing.TB) string {
	tb.Helper()
	l, err := (&net.ListenConfig{}).Listen(tb.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		tb.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// registry is a registry with its database, and the process that serves it.
type registry struct {
	tb                       testing.TB
	dsn, folder              string
	address, health, metrics string
	fingerprint              string
	*process
}

// newRegistry returns a registry that runs.
func newRegistry(tb testing.TB, dsn string) *registry {
	tb.Helper()
	r := &registry{tb: tb, dsn: dsn, folder: tb.TempDir(), address: free(tb), health: free(tb), metrics: free(tb)}
	r.serve()
	text, err := os.ReadFile(filepath.Join(r.folder, "registry.key"))
	if err != nil {
		tb.Fatal(err)
	}
	key, err := party.ParseKey(text)
	if err != nil {
		tb.Fatal(err)
	}
	r.fingerprint = key.Fingerprint()
	return r
}

// serve starts the process, and returns how long it takes until it is ready. Bounds of strangers are wide: all parties are of one machine
// here.
func (r *registry) serve() time.Duration {
	r.tb.Helper()
	began := time.Now()
	r.process = start(r.tb, r.environment(), program(r.tb, "registry"), "serve", "--address="+r.address, "--health-address="+r.health,
		"--metrics-address="+r.metrics,
		"--key-file="+filepath.Join(r.folder, "registry.key"), "--max-connections-of-address=8192", "--max-requests=100000")
	return r.await("http://"+r.health+"/readyz", began)
}

// metric returns a metric without labels in MiB.
func (r *registry) metric(name string) float64 {
	r.tb.Helper()
	answer, err := http.Get("http://" + r.metrics + "/metrics")
	if err != nil {
		r.tb.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		r.tb.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		var value float64
		if _, err := fmt.Sscanf(line, name+" %g", &value); err == nil {
			return value / (1 << 20)
		}
	}
	r.tb.Fatalf("the registry has no metric %s", name)
	return 0
}

// environment is as deploy/registry has it.
func (r *registry) environment() []string {
	return []string{"REGISTRY_STORE=" + r.dsn, "GOMEMLIMIT=400MiB"}
}

// token returns a token that lets parties in.
func (r *registry) token(uses int) string {
	r.tb.Helper()
	command := exec.CommandContext(r.tb.Context(), program(r.tb, "registry"), "tokens", "create", "--uses="+strconv.Itoa(uses))
	command.Env = append(os.Environ(), r.environment()...)
	out, err := command.CombinedOutput()
	if err != nil {
		r.tb.Fatalf("make a token: %v: %s", err, out)
	}
	return strings.TrimSpace(string(out))
}
