// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/capacitorset/liqo-broker/test/federation"
)

// groups are the special interest groups of Kubernetes whose tests concern workloads.
const groups = `\[sig-(apps|network|node|storage|cli|auth)\]`

// A suite is the tests, with pods at one distance.
type suite struct {
	options
	federation *federation.Federation
	distance   distance
	out        io.Writer
}

// run runs the tests side by side, and those that failed without a known reason once more by themselves: the machine is shared
// by four clusters, and many tests have a deadline. The results of the second look replace those of the first.
func (s suite) run(ctx context.Context) error {
	config, err := s.federation.Consumer.Lab.RESTConfig()
	if err != nil {
		return err
	}
	to, node := s.distance.to(s.federation), ""
	if to != nil {
		virtual, err := s.federation.Consumer.VirtualNode(ctx, to)
		if err != nil {
			return err
		}
		node = virtual.Name
	}
	p, err := newProxy(config, node, func(ctx context.Context, namespace string) error {
		if to == nil {
			return nil
		}
		return s.federation.Offload(ctx, namespace, to)
	})
	if err != nil {
		return err
	}
	kubeconfig := s.file("kubeconfig")
	stop, err := p.serve(ctx, kubeconfig)
	if err != nil {
		return err
	}
	defer stop()
	defer func() { _ = os.Remove(kubeconfig) }()

	first, err := s.look(ctx, "first", s.focus, s.shards)
	if err != nil {
		return err
	}
	s.say(first, "first look")
	known := func(name string) bool { return explanation(name) != "" }
	if failed := slices.DeleteFunc(first.failed(), known); len(failed) > 0 {
		second, err := s.look(ctx, "second", exactly(failed), 1)
		if err != nil {
			return err
		}
		first.replace(second)
		s.say(first, "second look at those that failed")
	}
	return s.keep(first)
}

// keep writes the results, those of a focus beside those of earlier runs.
func (s suite) keep(found specs) error {
	path := filepath.Join(s.results, s.distance.name+".json")
	if s.focus != "" {
		all, err := readResults(path)
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
		if all == nil {
			all = specs{}
		}
		maps.Copy(all, found)
		found = all
	}
	return found.write(path)
}

func (s suite) say(found specs, what string) {
	_, _ = fmt.Fprintf(s.out, "%s, %s: %d tests passed, %d failed\n", s.distance.name, what, len(found)-len(found.failed()),
		len(found.failed()))
}

// file returns the path of a file of the results.
func (s suite) file(name string) string {
	return filepath.Join(s.results, s.distance.name+"-"+name)
}

// look runs the tests whose name matches the focus, so many at a time.
func (s suite) look(ctx context.Context, name, focus string, shards int) (specs, error) {
	report, err := filepath.Abs(s.file(name + "-report.json"))
	if err != nil {
		return nil, err
	}
	log, err := os.Create(s.file(name + ".log"))
	if err != nil {
		return nil, err
	}
	defer func() { _ = log.Close() }()
	kubeconfig, err := filepath.Abs(s.file("kubeconfig"))
	if err != nil {
		return nil, err
	}
	args := []string{
		"--procs=" + strconv.Itoa(shards), "--no-color", "--label-filter=Conformance", "--timeout=3h", "--keep-going",
		"--json-report=" + report, "--poll-progress-after=0", "--silence-skips",
	}
	args = append(args, "--focus="+cmp.Or(focus, groups), "--skip="+skipped(), filepath.Join(s.programs, "e2e.test"), "--",
		"--kubeconfig="+kubeconfig, "--kubectl-path="+s.federation.Consumer.Lab.KubectlPath(), "--provider=skeleton",
		"--allowed-not-ready-nodes=-1", "--disable-log-dump")
	ginkgo := exec.CommandContext(ctx, filepath.Join(s.programs, "ginkgo"), args...)
	ginkgo.Stdout, ginkgo.Stderr = log, log
	// Ginkgo and the tests get the signal together, as from a terminal: the tests remove what they made.
	ginkgo.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	ginkgo.Cancel = func() error { return syscall.Kill(-ginkgo.Process.Pid, syscall.SIGINT) }
	ginkgo.WaitDelay = 2 * time.Minute
	began := time.Now()
	err = ginkgo.Run()
	// That a test failed is a result.
	if failure := (*exec.ExitError)(nil); err != nil && !errors.As(err, &failure) {
		return nil, err
	}
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	_, _ = fmt.Fprintf(s.out, "%s, %s look: took %.0f s\n", s.distance.name, name, time.Since(began).Seconds())
	found, err := readReport(report)
	if err != nil {
		return nil, fmt.Errorf("%w (see %s)", err, log.Name())
	}
	return found, nil
}

// exactly returns an expression that matches the names and no others.
func exactly(names []string) string {
	quoted := make([]string, len(names))
	for i, name := range names {
		quoted[i] = regexp.QuoteMeta(name)
	}
	return "(" + strings.Join(quoted, "|") + ")$"
}
