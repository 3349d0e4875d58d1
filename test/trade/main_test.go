// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package trade

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
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
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	code, err := run(ctx, m)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "trade:", err)
		code = 1
	}
	os.Exit(code)
}

// run brings a lab of strangers up unless there is one, runs the journeys, and removes it if it brought it up and nothing failed.
func run(ctx context.Context, m *testing.M) (int, error) {
	root, err := filepath.Abs("../..")
	if err != nil {
		return 1, err
	}
	lab := func(args ...string) *exec.Cmd {
		command := exec.CommandContext(ctx, filepath.Join(root, "bin", "lab"), args...)
		command.Stderr = os.Stderr
		return command
	}
	wasUp := lab("status").Run() == nil
	if !wasUp {
		if err := lab("down").Run(); err != nil {
			return 1, fmt.Errorf("remove what is left of a lab: %w", err)
		}
		if err := lab("up", "--kubernetes", cmp.Or(os.Getenv("LIQO_BROKER_KUBERNETES"), "v1.34"), "--topology", "strangers").Run(); err != nil {
			return 1, fmt.Errorf("bring the lab up: %w", err)
		}
	}
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
	code := m.Run()
	if wasUp || code != 0 {
		return code, nil // What failed stays up, so that one can look at it.
	}
	return code, lab("down").Run()
}

func eventually(t *testing.T, timeout time.Duration, check func(context.Context) error) {
	t.Helper()
	if err := federation.Until(t.Context(), timeout, check); err != nil {
		t.Fatal(err)
	}
}
