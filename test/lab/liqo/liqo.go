// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

// Package liqo installs Liqo in the clusters of a lab and makes peerings, with
// liqoctl, as users do. It knows the command lines and charts of Liqo 0.9 and
// 1.2, and nothing of how the clusters came to be.
package liqo

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"

	"sigs.k8s.io/yaml"

	"github.com/capacitorset/liqo-broker/test/lab/topology"
)

// Liqo is Liqo as it is installed or to be installed in one cluster.
type Liqo struct {
	topology.Cluster
	WAN string
	// Dir has liqoctl and the chart.
	Dir string
	// Version is the version of the chart and the tag of its images.
	Version    string
	Kubeconfig string
	// Logs is the folder for the output of liqoctl.
	Logs string
}

// Install installs or upgrades Liqo and waits until it runs. Each setting is
// "key=value", as for Helm's --set, and wins over the lab's own choice.
func (l Liqo) Install(ctx context.Context, settings ...string) error {
	args, err := l.InstallArgs()
	if err != nil {
		return err
	}
	for _, setting := range settings {
		args = append(args, "--set", setting)
	}
	if _, err := l.liqoctl(ctx, "liqo-install", args...); err != nil {
		return fmt.Errorf("install Liqo in %s: %w", l.Name, err)
	}
	return nil
}

// InstallArgs returns the arguments with which liqoctl installs Liqo as the lab has it. It writes the file of values that they name.
func (l Liqo) InstallArgs() ([]string, error) {
	values, err := yaml.Marshal(l.line().values())
	if err != nil {
		return nil, fmt.Errorf("encode Liqo's values for %s: %w", l.Name, err)
	}
	file := filepath.Join(filepath.Dir(l.Kubeconfig), "config", "liqo-values.yaml")
	if err := os.WriteFile(file, values, 0o644); err != nil {
		return nil, fmt.Errorf("write Liqo's values for %s: %w", l.Name, err)
	}
	return append([]string{
		"install", "--version", l.Version, "--local-chart-path", filepath.Join(l.Dir, "chart"), "--api-server-url", l.apiServer(),
		"--pod-cidr", l.PodCIDR.String(), "--service-cidr", l.ServiceCIDR.String(), "--cluster-labels", joinLabels(l.Labels()),
		"--reserved-subnets", l.WAN, "--skip-validation", "--timeout", "5m", "--values", file,
	}, l.line().install(l)...), nil
}

func (l Liqo) apiServer() string { return fmt.Sprintf("https://%s:6443", l.Address) }

// line is a line of Liqo's versions, as far as its command line and its chart differ from those of others.
type line interface {
	// install returns the arguments of liqoctl that the other lines do not have.
	install(l Liqo) []string
	// values are those that liqoctl has no flag for.
	values() map[string]any
	peer(ctx context.Context, consumer, provider Liqo) error
	unpeer(ctx context.Context, consumer, provider Liqo) error
}

func (l Liqo) line() line {
	if strings.HasPrefix(l.Version, "v0.") {
		return line09{}
	}
	return line1{}
}

func joinLabels(labels map[string]string) string {
	var pairs []string
	for _, key := range slices.Sorted(maps.Keys(labels)) {
		pairs = append(pairs, key+"="+labels[key])
	}
	return strings.Join(pairs, ",")
}

// Peer makes this cluster a consumer of the provider, and waits for the virtual node.
func (l Liqo) Peer(ctx context.Context, provider Liqo) error {
	if err := l.line().peer(ctx, l, provider); err != nil {
		return fmt.Errorf("peer %s with %s: %w", l.Name, provider.Name, err)
	}
	return nil
}

// Unpeer ends what Peer began.
func (l Liqo) Unpeer(ctx context.Context, provider Liqo) error {
	if err := l.line().unpeer(ctx, l, provider); err != nil {
		return fmt.Errorf("unpeer %s from %s: %w", l.Name, provider.Name, err)
	}
	return nil
}

// liqoctl runs liqoctl and returns its standard output. All output but that of
// "generate", which has a token, goes to a log file, which an error names.
func (l Liqo) liqoctl(ctx context.Context, log string, args ...string) (string, error) {
	path := filepath.Join(l.Logs, log+".log")
	file, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return "", err
	}
	defer file.Close()
	cmd := exec.CommandContext(ctx, filepath.Join(l.Dir, "liqoctl"), append([]string{"--kubeconfig", l.Kubeconfig}, args...)...)
	// Helm keeps files in the home folder.
	cmd.Env = append(os.Environ(), "HOME="+filepath.Dir(l.Kubeconfig), "NO_COLOR=1")
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	// The kernel kills liqoctl when the thread ends that started it (prctl(2), PR_SET_PDEATHSIG), as threads do that joined a node.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var stdout, said bytes.Buffer
	told := io.MultiWriter(&said, file)
	cmd.Stdout, cmd.Stderr = io.MultiWriter(&stdout, told), told
	if args[0] == "generate" {
		cmd.Stdout = &stdout
	}
	if err := cmd.Run(); err != nil {
		const most = 2000 // What it said last: the log goes with the lab.
		last := said.Bytes()[max(0, said.Len()-most):]
		return "", fmt.Errorf("liqoctl %s: %w (see %s)\n%s", args[0], errors.Join(ctx.Err(), err), path, bytes.TrimSpace(last))
	}
	return stdout.String(), nil
}
