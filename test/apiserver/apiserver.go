// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

// Package apiserver starts a real etcd and kube-apiserver for a test, with the kinds of the broker and of Liqo 0.9. It knows where the
// programs and the kinds are, and nothing of what a test asks.
package apiserver

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
)

// programsVariable names the folder of kube-apiserver, which bin/lab build prints. Of etcd the one in the PATH is taken.
const programsVariable = "LIQO_BROKER_TEST_PROGRAMS"

// Options are what a server has besides; the zero value is one that has nothing.
type Options struct {
	// NoBroker is whether it has the kinds of Liqo, and none of the broker.
	NoBroker bool
	// Kinds are folders of this repository with further CRDs, as seen from its root.
	Kinds []string
	// Arguments are further ones of kube-apiserver, by their names without dashes.
	Arguments map[string]string
}

// Start starts both on the loopback interface, and stops them when the test has ended. What it returns has the config of who may do
// everything. The test is skipped if the environment variable does not say where the programs are.
func Start(tb testing.TB, o Options) *envtest.Environment {
	tb.Helper()
	programs := os.Getenv(programsVariable)
	if programs == "" {
		tb.Skipf("%s does not say where kube-apiserver is", programsVariable)
	}
	etcd, err := exec.LookPath("etcd")
	if err != nil {
		tb.Fatal(err)
	}
	environment := &envtest.Environment{
		CRDDirectoryPaths: o.kinds(tb), ErrorIfCRDPathMissing: true,
		ControlPlaneStartTimeout: 3 * time.Minute, ControlPlaneStopTimeout: time.Minute,
	}
	environment.ControlPlane.Etcd = &envtest.Etcd{Path: etcd}
	environment.ControlPlane.Etcd.Configure().Set("unsafe-no-fsync", "true") // The data need not survive.
	server := environment.ControlPlane.GetAPIServer()
	server.Path = filepath.Join(programs, "kube-apiserver")
	for name, value := range o.Arguments {
		server.Configure().Set(name, value)
	}
	if _, err := environment.Start(); err != nil {
		tb.Fatalf("start the API server: %v", err)
	}
	tb.Cleanup(func() {
		if err := environment.Stop(); err != nil {
			tb.Errorf("stop the API server: %v", err)
		}
	})
	return environment
}

// Create makes an object, which is then what was made of it, with the status that it has.
func Create(ctx context.Context, c client.Client, o client.Object) error {
	full, is := o.DeepCopyObject().(client.Object)
	if !is {
		return fmt.Errorf("a copy of %T is no object", o)
	}
	if err := c.Create(ctx, o); err != nil {
		return fmt.Errorf("create %T %s: %w", o, o.GetName(), err)
	}
	full.SetResourceVersion(o.GetResourceVersion())
	full.SetUID(o.GetUID())
	if err := c.Status().Update(ctx, full); err != nil {
		return fmt.Errorf("update the status of %T %s: %w", o, o.GetName(), err)
	}
	return nil
}

// Audit returns the arguments with which an API server writes down what a policy says, and the file into which it does.
func Audit(tb testing.TB, policy string) (arguments map[string]string, log string) {
	tb.Helper()
	file := filepath.Join(tb.TempDir(), "policy.yaml")
	if err := os.WriteFile(file, []byte(policy), 0o600); err != nil {
		tb.Fatal(err)
	}
	log = filepath.Join(tb.TempDir(), "audit.log")
	return map[string]string{"audit-policy-file": file, "audit-log-path": log}, log
}

// kinds returns the folders of the CRDs.
func (o *Options) kinds(tb testing.TB) []string {
	tb.Helper()
	modules := []string{"github.com/capacitorset/liqo-broker", "github.com/liqotech/liqo"}
	folders, err := exec.CommandContext(tb.Context(), "go", append([]string{"list", "-m", "-f", "{{.Dir}}"}, modules...)...).Output()
	if err != nil {
		tb.Fatalf("find the CRDs: %v", err)
	}
	ours, liqos, _ := strings.Cut(strings.TrimSpace(string(folders)), "\n")
	all := []string{filepath.Join(liqos, "deployments/liqo/crds")}
	if !o.NoBroker {
		all = append(all, filepath.Join(ours, "deploy/crds"))
	}
	for _, folder := range o.Kinds {
		all = append(all, filepath.Join(ours, folder))
	}
	return all
}
