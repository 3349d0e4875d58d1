// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package kubernetes

import (
	"bytes"
	"context"
	"embed"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"
)

//go:embed manifests
var manifests embed.FS

// Kubectl runs kubectl on one cluster, as a user would.
type Kubectl struct {
	// Program is the path of kubectl.
	Program    string
	Kubeconfig string
}

// Run runs kubectl and returns what it prints.
func (k Kubectl) Run(ctx context.Context, args ...string) (string, error) {
	return k.run(ctx, "", args...)
}

func (k Kubectl) run(ctx context.Context, stdin string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, k.Program, append([]string{"--kubeconfig", k.Kubeconfig}, args...)...)
	// Without a home folder of its own kubectl would fill the user's with caches of clusters that come and go.
	cmd.Env = append(os.Environ(), "HOME="+filepath.Dir(k.Kubeconfig))
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	// The kernel kills kubectl when the thread ends that started it (prctl(2), PR_SET_PDEATHSIG), as threads do that joined a node.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	cmd.Stdin = strings.NewReader(stdin)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("kubectl %s: %w: %s", strings.Join(args, " "), errors.Join(ctx.Err(), err), strings.TrimSpace(stderr.String()))
	}
	// The API server drops a field that it does not know, and kubectl patch only warns: nobody means that.
	if warnings := stderr.String(); strings.Contains(warnings, "unknown field") {
		return "", fmt.Errorf("kubectl %s: %s", strings.Join(args, " "), strings.TrimSpace(warnings))
	}
	return strings.TrimSpace(stdout.String()), nil
}

// Retry repeats kubectl until it succeeds or the context ends.
func (k Kubectl) Retry(ctx context.Context, args ...string) (string, error) {
	return k.retry(ctx, "", args...)
}

func (k Kubectl) retry(ctx context.Context, stdin string, args ...string) (string, error) {
	for {
		out, err := k.run(ctx, stdin, args...)
		if err == nil {
			return out, nil
		}
		select {
		case <-ctx.Done():
			return "", err
		case <-time.After(500 * time.Millisecond):
		}
	}
}

// WaitReady waits for the API server, adds the cluster's DNS and the pod `tools`,
// and waits until the node and both are ready.
func (c Cluster) WaitReady(ctx context.Context, k Kubectl) error {
	if _, err := k.Retry(ctx, "get", "--raw", "/readyz"); err != nil {
		return fmt.Errorf("wait for the API server: %w", err)
	}
	for _, name := range []string{"coredns.yaml", "tools.yaml"} {
		manifest, err := manifests.ReadFile("manifests/" + name)
		if err != nil {
			return fmt.Errorf("read manifest %s: %w", name, err)
		}
		content := strings.ReplaceAll(string(manifest), "${DNS_IP}", c.DNSIP().String())
		// The controllers make what a pod needs, such as its service account, a moment later.
		if _, err := k.retry(ctx, content, "apply", "-f", "-"); err != nil {
			return fmt.Errorf("apply manifest %s: %w", name, err)
		}
	}
	for _, wait := range [][]string{
		{"wait", "--for=condition=Ready", "node/" + c.Name, "--timeout=60s"},
		{"wait", "--for=condition=Ready", "pod/tools", "--timeout=60s"},
		{"-n", "kube-system", "rollout", "status", "deployment/coredns", "--timeout=60s"},
	} {
		if _, err := k.Retry(ctx, wait...); err != nil {
			return err
		}
	}
	return nil
}
