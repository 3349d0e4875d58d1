// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

// Command journeys runs the journeys of a package, and the ones that fail once more. Its arguments are those of go test, of which the last
// is the package:
//
//	.build/bin/journeys -tags=e2e -count=1 -timeout=30m ./test/trade
//
// It prints what go test -v prints. A journey, which is a test with all that is below it, that fails is run again by itself, on the lab
// that is up. If it passes then, it is flaky, and the run is green. The last lines name what was flaky and what is red, each with what its
// first run said. There is no second run
//
//   - if more than five journeys fail: that is no accident;
//   - if a panic, a time limit or a signal ended the run, or something failed that is no journey: nobody knows what the others would
//     have done;
//   - if the lab is not whole: the second run would be on another one.
//
// The lab's cache remembers how many runs in a row a journey was flaky with a line of Liqo, also those of other clones. Three are red.
// Where nothing can be remembered, a run stands for itself.
//
// A lab that is up before is up after. Another one is removed when all is green, and stays to be looked at else.
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"

	"github.com/capacitorset/liqo-broker/test/lab/cache"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, os.Args[1:], os.Stdout)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "journeys:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, out io.Writer) error {
	if len(args) == 0 {
		return fmt.Errorf("which journeys? The arguments are those of go test")
	}
	r := &runner{lab: lab, kept: filepath.Join(".build", "failed"), line: os.Getenv("LIQO_BROKER_LIQO"), out: out}
	if dir, err := cache.User(); err != nil {
		fmt.Fprintf(out, "--- what was flaky before is not known: %v\n", err)
	} else {
		r.memory = filepath.Join(dir.Path(), "flaky.json")
	}
	return r.run(ctx, args)
}

// lab runs a command of the repository's lab.
func lab(ctx context.Context, command string) error {
	if said, err := exec.CommandContext(ctx, "bin/lab", command).CombinedOutput(); err != nil {
		return fmt.Errorf("bin/lab %s: %w: %s", command, err, said)
	}
	return nil
}
