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
	"strings"

	"github.com/capacitorset/liqo-broker/test/lab/build"
)

// Suite is the tests of a package that share a lab. The package is two folders below the root of the repository.
type Suite struct {
	// Name is what its errors begin with.
	Name string
	// Liqo is the line of Liqo that the tests are about. If it is empty they run on the one that the environment says. If that says none,
	// any lab that is up will do.
	Liqo string
	// Up are the arguments of `lab up`, besides the versions of Kubernetes and Liqo.
	Up []string
	// Run runs the tests on the lab, and returns what the process exits with. root is the root of the repository; brought is whether the lab
	// was brought up for them: else it stays.
	Run func(ctx context.Context, root string, brought bool) (code int, err error)
}

// Main brings a lab up unless there is one that is whole, runs the tests, and removes the lab if it brought it up and nothing failed: what
// failed stays up, so that one can look at it. A lab with another line of Liqo stays as well, and no test runs on it: that is an error. It
// returns what the process is to exit with. An interrupt ends what runs.
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
	brought, err := s.up(program)
	if err != nil {
		return 1, err
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

// up brings a lab up unless one is.
func (s Suite) up(program func(args ...string) error) (brought bool, err error) {
	line := cmp.Or(s.Liqo, os.Getenv("LIQO_BROKER_LIQO"))
	if program("status") == nil {
		return false, has(line)
	}
	// A run that was stopped, or a restart of the machine, left the folder of a lab, or half of one.
	if err := program("down"); err != nil {
		return false, fmt.Errorf("remove what is left of a lab: %w", err)
	}
	version := cmp.Or(os.Getenv("LIQO_BROKER_KUBERNETES"), build.DefaultKubernetes)
	up := append([]string{"up", "--kubernetes", version, "--liqo", cmp.Or(line, build.DefaultLiqo)}, s.Up...)
	if err := program(up...); err != nil {
		return false, fmt.Errorf("bring the lab up: %w", err)
	}
	return true, nil
}

// has returns an error if the lab that is up has another line of Liqo than the given one. Any will do if that is empty.
func has(line string) error {
	l, err := OpenLab()
	if err != nil {
		return err
	}
	if version := l.LiqoVersion(); line != "" && !strings.HasPrefix(version, "v"+line+".") {
		return fmt.Errorf("the lab that is up has Liqo %s, and the tests are to run with Liqo %s: bin/lab down removes it", version, line)
	}
	return nil
}
