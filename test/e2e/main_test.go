// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/capacitorset/liqo-broker/test/federation"
)

// fed is the federation that all tests use. Each test sets the modes and toggles that it needs. install gives it its broker, once.
var (
	fed     *federation.Federation
	install func() error
)

func TestMain(m *testing.M) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	code, err := run(ctx, m)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "e2e:", err)
		code = 1
	}
	os.Exit(code)
}

// run brings a federation up unless there is one that is whole, runs the tests, and removes it if it brought it up and nothing
// failed.
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
		// A run that was stopped, or a restart of the machine, left the folder of a lab, or half of one.
		if err := lab("down").Run(); err != nil {
			return 1, fmt.Errorf("remove what is left of a lab: %w", err)
		}
		up := lab("up", "--kubernetes", cmp.Or(os.Getenv("LIQO_BROKER_KUBERNETES"), "v1.34"),
			"--topology", cmp.Or(os.Getenv("LIQO_BROKER_TOPOLOGY"), "overlapping"), "--without-peerings") // They are made as the README says.
		if err := up.Run(); err != nil {
			return 1, fmt.Errorf("bring the lab up: %w", err)
		}
	}
	fed, err = federation.Connect(ctx, root)
	if err != nil {
		return 1, err
	}
	if !fed.Peered() {
		return 1, errors.New("the lab that is up is one of strangers: bin/lab down removes it")
	}
	install = sync.OnceValue(func() error {
		if err := fed.Install(ctx, federation.NewProgress(os.Stderr)); err != nil {
			return err
		}
		return federation.Until(ctx, time.Minute, func(ctx context.Context) error {
			token, err := fed.APIToken(ctx)
			if err != nil {
				return err
			}
			_, _, err = fed.AskAPI(ctx, token, "/api/clusters")
			return err
		})
	})
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
	if wasUp && code == 0 {
		// Who has the lab has its broker.
		return code, install()
	}
	if code != 0 {
		return code, nil // A federation that failed stays up, so that one can look at it.
	}
	return code, lab("down").Run()
}

// installed gives the federation its broker, unless a journey before has done so.
func installed(t *testing.T) {
	t.Helper()
	if err := install(); err != nil {
		t.Fatal(err)
	}
}
