// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

// Conformance runs Kubernetes' own conformance tests of workloads on the consumer of a federation, with pods that stay
// at home, that go to a provider, and that go to the providers through the broker, and compares what fails.
//
// What it finds it keeps in the repository, for each line of Liqo, and makes the page docs/conformance.md of it. A run on a lab with one
// line keeps what is known of the other one.
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
	"regexp"
	"slices"
	"strings"
	"syscall"
	"time"

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

// A release is one of Liqo.
type release struct {
	// line is what people call the line of versions, and version which of them runs.
	line, version string
	// about is what the page says of a later one.
	about string
}

var releases = []release{
	{line: "0.9", version: "0.9.4"},
	{line: "1.2", version: "1.2.0", about: pageOf1},
}

// runs returns an error unless the version of the Liqo that a lab has is that of the release.
func (l release) runs(version string) error {
	if version != "v"+l.version {
		return fmt.Errorf("the lab that is up has Liqo %s, and --liqo=%s is v%s: bin/lab down removes it", version, l.line, l.version)
	}
	return nil
}

// options are the flags.
type options struct {
	root, programs, reports, results, page, focus string

	release   release
	distances []distance
	shards    int
	rest      bool
	within    time.Duration
}

func parse(args []string) (options, error) {
	var o options
	flags := flag.NewFlagSet("conformance", flag.ContinueOnError)
	flags.StringVar(&o.root, "root", ".", "folder of the repository")
	flags.StringVar(&o.programs, "programs", ".build/conformance", "folder of agnhost, e2e.test and ginkgo")
	flags.StringVar(&o.reports, "reports", ".build/conformance/reports", "folder of what the tests say")
	flags.StringVar(&o.results, "results", "test/conformance/results.txt", "file of results; those of tests that are not run now are kept")
	flags.StringVar(&o.page, "page", "", "file to write the page of results to")
	flags.StringVar(&o.focus, "focus", "", "run only the tests whose name matches this regular expression, and keep the results of the others")
	flags.BoolVar(&o.rest, "rest", false, "run only the tests that have no result yet with this Liqo at that distance")
	flags.DurationVar(&o.within, "within", 9*time.Hour, "begin no test later; what has not ended by then is left to -rest")
	flags.IntVar(&o.shards, "shards", 4, "how many tests run at a time")
	line := flags.String("liqo", releases[0].line, "line of the Liqo that the lab has: 0.9 or 1.2")
	wanted := flags.String("distances", "local,one-hop,two-hops", "how far away pods run; none to write the page of what is known")
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	i := slices.IndexFunc(releases, func(l release) bool { return l.line == *line })
	if i < 0 {
		return o, fmt.Errorf("--liqo: there is no line %q: 0.9 or 1.2", *line)
	}
	o.release = releases[i]
	for name := range strings.FieldsFuncSeq(*wanted, func(r rune) bool { return r == ',' }) {
		i := slices.IndexFunc(distances, func(d distance) bool { return d.name == name })
		if i < 0 {
			return o, fmt.Errorf("--distances: there is no distance %q: local, one-hop or two-hops", name)
		}
		o.distances = append(o.distances, distances[i])
	}
	return o, nil
}

func run(ctx context.Context, args []string, out io.Writer) error {
	o, err := parse(args)
	if err != nil {
		return err
	}
	known, err := readResults(o.results)
	if err != nil {
		return err
	}
	known.leaveOut(regexp.MustCompile(skipped()).MatchString)
	if len(o.distances) > 0 {
		if err := runAll(ctx, o, known, out); err != nil {
			return err
		}
	}
	if err := o.write(known); err != nil {
		return err
	}
	fmt.Fprint(out, known.summary())
	return known.judge(explanation)
}

// runAll runs the tests at all distances that the options name, and writes what is known after each of them.
func runAll(ctx context.Context, o options, known results, out io.Writer) (err error) {
	if err := os.MkdirAll(o.reports, 0o755); err != nil {
		return err
	}
	fed, err := federation.Connect(ctx, o.root)
	if err != nil {
		return err
	}
	if err := o.release.runs(fed.Consumer.Lab.LiqoVersion()); err != nil {
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
	until := time.Now().Add(o.within)
	for _, d := range o.distances {
		if time.Until(until) < leastLook {
			_, _ = fmt.Fprintf(out, "%s: no time is left\n", d.name)
			continue
		}
		s := suite{options: o, federation: fed, distance: d, until: until, known: known, out: out}
		if err := s.run(ctx); err != nil {
			return fmt.Errorf("run the tests with pods at distance %s: %w", d.name, err)
		}
		if err := o.write(known); err != nil {
			return err
		}
	}
	return nil
}

// write writes the results, and their page.
func (o options) write(known results) error {
	if err := os.WriteFile(o.results, []byte(known.text()), 0o644); err != nil {
		return err
	}
	if o.page == "" {
		return nil
	}
	return os.WriteFile(o.page, []byte(known.page(explanation)), 0o644)
}
