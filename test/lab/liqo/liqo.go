// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

// Package liqo installs Liqo in the clusters of a lab and makes peerings, with
// liqoctl, as users do. It knows Liqo 0.9's command line and chart, and nothing of
// how the clusters came to be.
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
	values, err := yaml.Marshal(l.values())
	if err != nil {
		return fmt.Errorf("encode Liqo's values for %s: %w", l.Name, err)
	}
	file := filepath.Join(filepath.Dir(l.Kubeconfig), "config", "liqo-values.yaml")
	if err := os.WriteFile(file, values, 0o644); err != nil {
		return fmt.Errorf("write Liqo's values for %s: %w", l.Name, err)
	}
	args := []string{
		"install", "--version", l.Version, "--local-chart-path", filepath.Join(l.Dir, "chart"), "--cluster-name", l.Name,
		"--api-server-url", l.apiServer(), "--pod-cidr", l.PodCIDR.String(), "--service-cidr", l.ServiceCIDR.String(),
		"--cluster-labels", joinLabels(l.Labels()), "--reserved-subnets", l.WAN, "--sharing-percentage", "80",
		"--service-type", "NodePort", "--skip-validation", "--timeout", "5m", "--values", file,
	}
	for _, setting := range settings {
		args = append(args, "--set", setting)
	}
	if _, err := l.liqoctl(ctx, "liqo-install", args...); err != nil {
		return fmt.Errorf("install Liqo in %s: %w", l.Name, err)
	}
	return nil
}

func (l Liqo) apiServer() string { return fmt.Sprintf("https://%s:6443", l.Address) }

// values are those that liqoctl has no flag for.
func (l Liqo) values() map[string]any {
	type values = map[string]any
	return values{
		"metricAgent": values{"enable": false},
		"storage":     values{"enable": false},
		"common":      values{"nodeSelector": values{"lab/real": "true"}},
		// In-band peering is not used, and there is no image of its proxy; anything that runs will do.
		"proxy": values{"imageName": "lab.local/pause:1"},
	}
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
	out, err := provider.liqoctl(ctx, "liqo-peer-command", "generate", "peer-command", "--only-command")
	if err != nil {
		return fmt.Errorf("ask %s how to peer with it: %w", provider.Name, err)
	}
	args, err := parsePeerCommand(out)
	if err != nil {
		return fmt.Errorf("ask %s how to peer with it: %w", provider.Name, err)
	}
	if _, err := l.liqoctl(ctx, "liqo-peer-"+provider.Name, args...); err != nil {
		return fmt.Errorf("peer %s with %s: %w", l.Name, provider.Name, err)
	}
	return nil
}

// Unpeer ends what Peer began.
func (l Liqo) Unpeer(ctx context.Context, provider string) error {
	if _, err := l.liqoctl(ctx, "liqo-unpeer-"+provider, "unpeer", "out-of-band", provider, "--skip-confirm"); err != nil {
		return fmt.Errorf("unpeer %s from %s: %w", l.Name, provider, err)
	}
	return nil
}

// parsePeerCommand finds the arguments of the command that liqoctl tells to run.
func parsePeerCommand(output string) ([]string, error) {
	for line := range strings.Lines(output) {
		fields := strings.Fields(line)
		// The first word is the program under the name that it was started with.
		if len(fields) > 1 && filepath.Base(fields[0]) == "liqoctl" && fields[1] == "peer" {
			return fields[1:], nil
		}
	}
	return nil, errors.New("liqoctl printed no peer command")
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
	var stdout bytes.Buffer
	cmd.Stdout, cmd.Stderr = io.MultiWriter(&stdout, file), file
	if args[0] == "generate" {
		cmd.Stdout = &stdout
	}
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("liqoctl %s: %w (see %s)", args[0], errors.Join(ctx.Err(), err), path)
	}
	return stdout.String(), nil
}
