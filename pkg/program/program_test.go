// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package program

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/spf13/cobra"
)

// programVariable has this test run one of programs instead of its tests.
const programVariable = "PROGRAM_OF_TEST"

var errOwn = WithCode(errors.New("not all is well"), 3)

// programs are commands by what becomes of them.
func programs() map[string]func(context.Context) error {
	return map[string]func(context.Context) error{
		"Ends":  func(context.Context) error { return nil },
		"Fails": func(context.Context) error { return errors.New("no cluster") },
		"Own":   func(context.Context) error { return fmt.Errorf("look: %w", errOwn) },
		"Usage": func(context.Context) error { return Usage(errors.New("no such flag")) },
		"Signal": func(ctx context.Context) error {
			fmt.Fprintln(os.Stdout, "runs")
			<-ctx.Done()
			if !errors.Is(ctx.Err(), context.Canceled) {
				return ctx.Err()
			}
			return nil
		},
	}
}

func TestMain(m *testing.M) {
	if run := programs()[os.Getenv(programVariable)]; run != nil {
		Main("program", run)
		return
	}
	os.Exit(m.Run())
}

// TestPrograms runs this test as a program: what it says, and how it exits.
func TestPrograms(t *testing.T) {
	for name, tc := range map[string]struct {
		code int
		says string
	}{
		"Ends":   {},
		"Fails":  {ExitFailure, "program: no cluster\n"},
		"Own":    {3, "program: look: not all is well\n"},
		"Usage":  {ExitUsage, "program: no such flag\n"},
		"Signal": {},
	} {
		t.Run(name, func(t *testing.T) {
			command := exec.CommandContext(t.Context(), os.Args[0])
			command.Env = append(os.Environ(), programVariable+"="+name)
			var says strings.Builder
			command.Stderr = &says
			out, err := command.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := command.Start(); err != nil {
				t.Fatal(err)
			}
			if name == "Signal" {
				if _, err := bufio.NewReader(out).ReadString('\n'); err != nil {
					t.Fatal(err)
				}
				if err := command.Process.Signal(syscall.SIGTERM); err != nil {
					t.Fatal(err)
				}
			}
			if _, err := io.Copy(io.Discard, out); err != nil {
				t.Fatal(err)
			}
			_ = command.Wait() // The code is looked at.
			if code := command.ProcessState.ExitCode(); code != tc.code || says.String() != tc.says {
				t.Errorf("it exits with %d and says %q, want %d and %q", code, says.String(), tc.code, tc.says)
			}
		})
	}
}

// TestUsage gives commands what they cannot mean.
func TestUsage(t *testing.T) {
	for line, want := range map[string]string{
		"now":       `unexpected argument "now": see broker --help`,
		"--no":      "unknown flag: --no: see broker --help",
		"guard now": `unexpected argument "now": see broker guard --help`,
		"guard --x": "unknown flag: --x: see broker guard --help",
	} {
		do := func(*cobra.Command, []string) error { return nil }
		command := &cobra.Command{Use: "broker", Args: NoArguments, RunE: do, SilenceErrors: true, SilenceUsage: true}
		command.AddCommand(&cobra.Command{Use: "guard", Args: NoArguments, RunE: do})
		ExplainFlags(command)
		command.SetArgs(strings.Fields(line))
		if err := command.ExecuteContext(t.Context()); err == nil || err.Error() != want || ExitCode(err) != ExitUsage {
			t.Errorf("%s: %v, want %s", line, err, want)
		}
	}
}
