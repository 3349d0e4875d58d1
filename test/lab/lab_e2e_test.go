// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package lab

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/rest"

	"github.com/capacitorset/liqo-broker/test/lab/build"
	"github.com/capacitorset/liqo-broker/test/lab/cache"
	"github.com/capacitorset/liqo-broker/test/lab/node"
	"github.com/capacitorset/liqo-broker/test/lab/topology"
)

// TestMain is the init of the nodes that the tests start, as node.Start demands.
func TestMain(m *testing.M) {
	if len(os.Args) == 3 && os.Args[1] == node.InitCommand {
		fmt.Fprintln(os.Stderr, node.Init(os.Args[2]))
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// one makes a lab with a single cluster and without Liqo, and removes it with the test.
func one(t *testing.T) (*Lab, *Cluster) {
	t.Helper()
	source, err := build.FindSource()
	if err != nil {
		t.Fatal(err)
	}
	dir, err := cache.User()
	if err != nil {
		t.Fatal(err)
	}
	log := filepath.Join(t.TempDir(), "build.log")
	builder := build.Builder{Source: source, Cache: dir, Log: log, Started: func(what string) { t.Log("building", what) }}
	artifacts, err := builder.All(t.Context(), build.DefaultKubernetes, build.DefaultLiqo)
	if err != nil {
		t.Fatal(err)
	}
	federation, err := topology.Overlapping().Select(topology.Consumer)
	if err != nil {
		t.Fatal(err)
	}
	o := Options{
		Dir: filepath.Join(t.TempDir(), "lab"), Topology: federation, Kubernetes: build.DefaultKubernetes, Artifacts: artifacts,
		WithoutLiqo: true, Progress: func(subject, deed string) { t.Log(subject, deed) },
	}
	t.Cleanup(func() {
		if err := Down(context.Background(), o.Dir); err != nil {
			t.Error(err)
		}
	})
	l, err := Up(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	c, err := l.Cluster(topology.Consumer)
	if err != nil {
		t.Fatal(err)
	}
	return l, c
}

// machine is what a lab must not change of the machine.
func machine(t *testing.T) string {
	t.Helper()
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		t.Fatal(err)
	}
	out := []string{string(mounts)}
	for _, command := range [][]string{{"ip", "-o", "address"}, {"ip", "route"}, {"iptables", "-S"}, {"iptables", "-t", "nat", "-S"},
		{"sysctl", "kernel", "vm.overcommit_memory"}} {
		data, err := exec.Command(command[0], command[1:]...).Output()
		if err != nil {
			t.Fatalf("%v: %v", command, err)
		}
		for line := range strings.Lines(string(data)) {
			// Numbers that change by themselves.
			if !strings.Contains(line, "kernel.random.") && !strings.Contains(line, "ns_last_pid") && !strings.Contains(line, "pty.nr") {
				out = append(out, line)
			}
		}
	}
	return strings.Join(out, "")
}

func TestClusterLivesAndLeavesNothing(t *testing.T) {
	before := machine(t)
	l, c := one(t)
	if diff := cmp.Diff(before, machine(t)); diff != "" {
		t.Errorf("the lab changes the machine (-before +after):\n%s", diff)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()

	// The API server answers here, under a certificate that the kubeconfig trusts.
	config, err := c.RESTConfig()
	if err != nil {
		t.Fatal(err)
	}
	if err := ask(config); err != nil {
		t.Errorf("ask the API server: %v", err)
	}
	// A pod finds a Service by its name.
	if out, err := c.kubectl().Retry(ctx, "exec", "tools", "--", "curl", "-sk",
		"https://kubernetes.default.svc.cluster.local/healthz"); err != nil || out != "ok" {
		t.Errorf("a pod asks for the API server by its name: %q, %v", out, err)
	}
	// Nothing answers from outside.
	if out, err := c.Kubectl(ctx, "exec", "tools", "--", "curl", "-sm", "5", "http://192.0.2.1"); err == nil {
		t.Errorf("a pod reaches the outside: %q", out)
	}

	// A cluster survives the loss of its programs.
	var out bytes.Buffer
	kill := node.Command{Args: []string{"sh", "-c", "kill -9 $(pidof etcd kube-apiserver containerd)"}, Stdout: &out, Stderr: &out}
	if err := c.Exec(ctx, kill); err != nil {
		t.Fatalf("kill: %v: %s", err, out.String())
	}
	if _, err := c.kubectl().Retry(ctx, "get", "--raw", "/readyz"); err != nil {
		t.Errorf("the API server does not come back: %v", err)
	}
	if _, err := c.kubectl().Retry(ctx, "exec", "tools", "--", "true"); err != nil {
		t.Errorf("the pod is lost: %v", err)
	}

	if _, err := Up(ctx, Options{Dir: string(l.folder), Topology: l.Topology()}); err == nil ||
		!strings.Contains(err.Error(), "already is a lab") {
		t.Errorf("a second lab in one folder: %v", err)
	}
	init, err := c.pid1()
	if err != nil {
		t.Fatal(err)
	}
	if err := Down(ctx, string(l.folder)); err != nil {
		t.Fatal(err)
	}
	if init.Alive() {
		t.Error("the node still runs")
	}
	left, err := filepath.Glob("/sys/fs/cgroup/*/" + l.folder.cgroup())
	if err != nil || len(left) > 0 {
		t.Errorf("control groups are left: %v, %v", left, err)
	}
	if _, err := os.Stat(string(l.folder)); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the folder is left: %v", err)
	}
	if diff := cmp.Diff(before, machine(t)); diff != "" {
		t.Errorf("the lab changed the machine (-before +after):\n%s", diff)
	}
}

func ask(config *rest.Config) error {
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		return err
	}
	response, err := client.Get(config.Host + "/readyz")
	if err != nil {
		return err
	}
	return response.Body.Close()
}
