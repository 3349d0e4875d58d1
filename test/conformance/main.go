// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

// Conformance runs Kubernetes' own conformance tests of workloads on the consumer of a federation, with pods that stay
// at home, that go to a provider, and that go to the providers through the broker, and compares what fails.
//
// The tests, and the program that their pods run, are built from Kubernetes' module; other images are made of Debian's
// programs. A proxy in front of the consumer's API server offloads each namespace that the tests make before it answers.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"

	"github.com/capacitorset/liqo-broker/test/federation"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Stdout)
	stop()
	if err != nil {
		if !errors.Is(err, flag.ErrHelp) {
			fmt.Fprintln(os.Stderr, "conformance:", err)
		}
		os.Exit(1)
	}
}

// A distance is how far away the pods of the tests run.
type distance struct {
	name string
	// to returns the cluster that the consumer offloads to; nil if it does not.
	to func(*federation.Federation) *federation.Cluster
}

var distances = []distance{
	{"local", func(*federation.Federation) *federation.Cluster { return nil }},
	{"one-hop", func(f *federation.Federation) *federation.Cluster { return f.ProviderA }},
	{"two-hops", func(f *federation.Federation) *federation.Cluster { return f.Broker }},
}

// options are the flags.
type options struct {
	root, programs, results, page, focus string
	distances                            string
	shards                               int
}

func run(ctx context.Context, args []string, out io.Writer) error {
	var o options
	flags := flag.NewFlagSet("conformance", flag.ContinueOnError)
	flags.StringVar(&o.root, "root", ".", "folder of the repository")
	flags.StringVar(&o.programs, "programs", ".build/conformance", "folder of agnhost, e2e.test and ginkgo")
	flags.StringVar(&o.results, "results", ".build/conformance/results", "folder of results; those of distances that are not run now are kept")
	flags.StringVar(&o.page, "page", "", "file to write the page of results to")
	flags.StringVar(&o.focus, "focus", "", "run only the tests whose name matches this regular expression, and keep the results of the others")
	flags.StringVar(&o.distances, "distances", "local,one-hop,two-hops", "how far away pods run")
	flags.IntVar(&o.shards, "shards", 4, "how many tests run at a time")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if err := os.MkdirAll(o.results, 0o755); err != nil {
		return err
	}
	if o.distances != "" {
		if err := runAll(ctx, o, out); err != nil {
			return err
		}
	}
	return report(o, out)
}

// runAll runs the tests at all distances that the options name.
func runAll(ctx context.Context, o options, out io.Writer) (err error) {
	wanted := map[string]bool{}
	for name := range strings.SplitSeq(o.distances, ",") {
		wanted[name] = true
	}
	fed, err := federation.Connect(ctx, o.root)
	if err != nil {
		return err
	}
	if err := load(ctx, fed, o.programs, out); err != nil {
		return err
	}
	// Pods then find the names of DNS that they know from home.
	end, err := fed.RunDaemonWith(ctx, "--namespace-mapping-strategy=EnforceSameName")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, end()) }()
	for _, d := range distances {
		if !wanted[d.name] {
			continue
		}
		delete(wanted, d.name)
		s := suite{options: o, federation: fed, distance: d, out: out}
		if err := s.run(ctx); err != nil {
			return fmt.Errorf("run the tests with pods at distance %s: %w", d.name, err)
		}
	}
	for name := range wanted {
		return fmt.Errorf("--distances: there is no distance %q", name)
	}
	return nil
}

// report prints what was found, and fails if pods behave worse through the broker than with one hop and nobody says why.
func report(o options, out io.Writer) error {
	all := results{}
	for _, d := range distances {
		specs, err := readResults(filepath.Join(o.results, d.name+".json"))
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err != nil {
			return err
		}
		all.add(d.name, specs.without(regexp.MustCompile(skipped())))
	}
	text := all.page(explanation)
	if o.page != "" {
		if err := os.WriteFile(o.page, []byte(text), 0o644); err != nil {
			return err
		}
	}
	fmt.Fprint(out, all.summary())
	return all.judge(explanation)
}
