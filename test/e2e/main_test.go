// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"os"
	"sync"
	"testing"

	"github.com/capacitorset/liqo-broker/test/federation"
)

// fed is the federation that all tests use. Each test sets the modes and toggles that it needs. install gives it its broker, once.
var (
	fed     *federation.Federation
	install func() error
)

func TestMain(m *testing.M) {
	os.Exit(federation.Suite{
		Name: "e2e",
		// Peerings are made as the README says.
		Up:  []string{"--topology", cmp.Or(os.Getenv("LIQO_BROKER_TOPOLOGY"), "overlapping"), "--without-peerings"},
		Run: func(ctx context.Context, root string, brought bool) (int, error) { return run(ctx, m, root, brought) },
	}.Main())
}

// run runs the tests on the federation. Who had the lab before has its broker in the end.
func run(ctx context.Context, m *testing.M, root string, brought bool) (int, error) {
	var err error
	fed, err = federation.Connect(ctx, root)
	if err != nil {
		return 1, err
	}
	if !fed.Peered() {
		return 1, errors.New("the lab that is up is one of strangers: bin/lab down removes it")
	}
	install = sync.OnceValue(func() error { return fed.Install(ctx, federation.NewProgress(os.Stderr)) })
	// The pods of the demo would move with those of the journeys, and take their time.
	if err := fed.Scale(ctx, federation.DemoNamespace, federation.Web, 0); err != nil {
		return 1, err
	}
	// The crowd of journeys says how many run at a time.
	flag.Parse()
	if err := flag.Set("test.parallel", "1000"); err != nil {
		return 1, err
	}
	code := m.Run()
	if err := removals.wait(); err != nil {
		return 1, err
	}
	if err := fed.Scale(ctx, federation.DemoNamespace, federation.Web, federation.DemoReplicas); err != nil {
		return 1, err
	}
	if !brought && code == 0 {
		return code, install()
	}
	return code, nil
}

// needs leaves a journey out, or a part of one, if the line of Liqo that runs lacks a trait, and says why. docs/compatibility.md has the
// same in tables.
func needs(t *testing.T, trait federation.Trait) {
	t.Helper()
	if why := fed.Broker.Traits().Lacks[trait]; why != "" {
		t.Skip(why)
	}
}

// direct reports whether consumers that are peered with a provider reach its pods past the broker.
func direct() bool { return fed.Broker.Has(federation.DirectPaths) }

// installed gives the federation its broker, unless a journey before has done so.
func installed(t *testing.T) {
	t.Helper()
	if err := install(); err != nil {
		t.Fatal(err)
	}
}
