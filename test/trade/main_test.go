// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package trade

import (
	"context"
	"errors"
	"os"
	"testing"
	"time"

	"github.com/capacitorset/liqo-broker/test/federation"
)

// fed are four clusters that are not peered, and registry is what they find each other by. All journeys use them.
var (
	fed      *federation.Federation
	registry *federation.Registry
)

func TestMain(m *testing.M) {
	os.Exit(federation.Suite{
		Name: "trade", Liqo: "0.9", Up: []string{"--topology", "strangers"},
		Run: func(ctx context.Context, root string, _ bool) (int, error) { return run(ctx, m, root) },
	}.Main())
}

// run runs the journeys on a lab of strangers.
func run(ctx context.Context, m *testing.M, root string) (int, error) {
	var err error
	if fed, err = federation.Connect(ctx, root); err != nil {
		return 1, err
	}
	if fed.Peered() {
		return 1, errors.New("the lab that is up is not one of strangers: bin/lab down removes it")
	}
	if registry, err = fed.InstallMarket(ctx, federation.NewProgress(os.Stderr)); err != nil {
		return 1, err
	}
	defer func() { registry.Kill() }()
	return m.Run(), nil
}

func eventually(t *testing.T, timeout time.Duration, check func(context.Context) error) {
	t.Helper()
	if err := federation.Until(t.Context(), timeout, check); err != nil {
		t.Fatal(err)
	}
}
