// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package federation

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
)

// Suite is the tests of a package that share a lab. The package is two folders below the root of the repository.
type Suite struct {
	// Name is what its errors begin with.
	Name string
	// Up are the arguments of `lab up`, besides the versions of Kubernetes and Liqo.
	Up []string
	// Run runs the tests on the lab, and returns what the process exits with. root is the root of the repository; brought is whether the lab
	// was brought up for them: else it stays.
	Run func(ctx context.Context, root string, brought bool) (code int, err error)
}

// Main brings a lab up unless there is one that is whole, runs the tests, and removes the lab if it brought it up and nothing failed: what
// failed stays up, so that one can look at it. It returns what the process is to exit with. An interrupt ends what runs.
func (s Suite) Main() int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	code, err := s.run(ctx)
	if err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", s.Name, err)
		return 1
	}
	return code
}

func (s Suite) run(ctx context.Context) (int, error) {
	root, err := filepath.Abs("../..")
	if err != nil {
		return 1, err
	}
	program := func(args ...string) error {
		command := exec.CommandContext(ctx, filepath.Join(root, "bin", "lab"), args...) //nolint:gosec // People choose the versions.
		command.Stderr = os.Stderr
		return command.Run()
	}
	brought := program("status") != nil
	if brought {
		// A run that was stopped, or a restart of the machine, left the folder of a lab, or half of one.
		if err := program("down"); err != nil {
			return 1, fmt.Errorf("remove what is left of a lab: %w", err)
		}
		version := cmp.Or(os.Getenv("LIQO_BROKER_KUBERNETES"), "v1.34")
		line := cmp.Or(os.Getenv("LIQO_BROKER_LIQO"), "0.9")
		if err := program(append([]string{"up", "--kubernetes", version, "--liqo", line}, s.Up...)...); err != nil {
			return 1, fmt.Errorf("bring the lab up: %w", err)
		}
	}
	code, err := s.Run(ctx, root, brought)
	if err != nil || code != 0 || !brought {
		return code, err
	}
	if err := program("down"); err != nil {
		return 1, fmt.Errorf("remove the lab: %w", err)
	}
	return 0, nil
}
