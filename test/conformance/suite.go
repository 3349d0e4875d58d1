// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
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

// leastLook is how long a look takes at least: with less time than that left, nobody looks again.
const leastLook = time.Minute

// A suite is the tests, with pods at one distance.
type suite struct {
	options
	federation *federation.Federation
	distance   distance
	// until is when the time of all tests is over.
	until time.Time
	known results
	out   io.Writer
}

// run runs the tests side by side, and those that failed without a known reason once more by themselves: the machine is shared
// by four clusters, and many tests have a deadline. The results of the second look replace those of the first. What was found is known
// then.
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
	if failed := s.unexplained(first); len(failed) > 0 {
		second := specs{}
		if time.Until(s.until) > leastLook {
			if second, err = s.look(ctx, "second", exactly(failed), 1); err != nil {
				return err
			}
		}
		first.replace(failed, second)
		s.say(first, "second look at those that failed")
	}
	s.keep(first, time.Now())
	for _, name := range s.unexplained(first) {
		_, _ = fmt.Fprintf(s.out, "%s fails: %s\n", name, first[name].failure)
	}
	return nil
}

// unexplained returns the tests that failed for no reason that is known.
func (s suite) unexplained(found specs) []string {
	return slices.DeleteFunc(found.failed(), func(name string) bool { return explanation(s.at(), name) != "" })
}

func (s suite) at() place { return place{s.release.version, s.distance.name} }

// keep adds what was found by now to what is known. If all tests ran, those that were not found are no more.
func (s suite) keep(found specs, now time.Time) {
	if s.focus == "" && !s.rest && now.Before(s.until) {
		s.known.forget(s.at())
	}
	s.known.add(s.at(), found)
}

func (s suite) say(found specs, what string) {
	_, _ = fmt.Fprintf(s.out, "%s, %s: %d tests passed, %d failed\n", s.distance.name, what, len(found)-len(found.failed()),
		len(found.failed()))
}

// file returns the path of a file of what the tests say.
func (s suite) file(name string) string {
	return filepath.Join(s.reports, s.release.version+"-"+s.distance.name+"-"+name)
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
	args := append(s.choice(focus, time.Now()), "--procs="+strconv.Itoa(shards), "--no-color", "--keep-going", "--json-report="+report,
		"--poll-progress-after=0", "--silence-skips", filepath.Join(s.programs, "e2e.test"), "--", "--kubeconfig="+kubeconfig,
		"--kubectl-path="+s.federation.Consumer.Lab.KubectlPath(), "--provider=skeleton", "--allowed-not-ready-nodes=-1", "--disable-log-dump")
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
	found, unread := readReport(report)
	if unread != nil {
		return nil, fmt.Errorf("%w (see %s)", unread, log.Name())
	}
	if err != nil && len(found) == 0 && time.Now().Before(s.until) {
		return nil, fmt.Errorf("no test ran: %w (see %s)", err, log.Name())
	}
	return found, nil
}

// choice returns the arguments of Ginkgo that say which tests run, and until when.
func (s suite) choice(focus string, now time.Time) []string {
	return []string{
		"--label-filter=Conformance", "--focus=" + cmp.Or(focus, groups), "--skip=" + s.skip(),
		"--timeout=" + s.until.Sub(now).Round(time.Second).String(),
	}
}

// skip returns an expression that matches the names of the tests that are not run: with rest, those of which the result is known, too.
func (s suite) skip() string {
	known := s.known.ran(s.at())
	if !s.rest || len(known) == 0 {
		return skipped()
	}
	return skipped() + "|" + exactly(known)
}

// exactly returns an expression that matches the names and no others.
func exactly(names []string) string {
	quoted := make([]string, len(names))
	for i, name := range names {
		quoted[i] = regexp.QuoteMeta(name)
	}
	return "(" + strings.Join(quoted, "|") + ")$"
}
