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

// TestStrict gives commands that have others below them words that name none.
func TestStrict(t *testing.T) {
	do := func(command *cobra.Command, _ []string) error {
		fmt.Fprintln(command.OutOrStdout(), "done")
		return nil
	}
	for line, want := range map[string]struct {
		says, prints string
	}{
		"parties list":          {prints: "done\n"},
		"parties":               {prints: "Exit codes: 0 done."},
		"":                      {prints: "Exit codes: 0 done."},
		"offers":                {prints: "done\n"},
		"help parties list":     {prints: "List them"},
		"paries list --all":     {says: `unknown command "paries" for "registry": did you mean parties? See registry --help`},
		"parties lits":          {says: `unknown command "lits" for "registry parties": did you mean list? See registry parties --help`},
		"parties nothing --all": {says: `unknown command "nothing" for "registry parties": see registry parties --help`},
		"offers lits":           {says: `unknown command "lits" for "registry offers": did you mean list? See registry offers --help`},
		"parties list all":      {says: `unexpected argument "all": see registry parties list --help`},
		"parties list --all":    {says: "unknown flag: --all: see registry parties list --help"},
		"parties --all":         {says: "unknown flag: --all: see registry parties --help"},
		"help partes":           {says: `unknown command "partes" for "registry": did you mean parties? See registry --help`},
		"completion bsh":        {says: `unknown command "bsh" for "registry completion": did you mean bash or fish or zsh? See registry completion --help`},
	} {
		list := func() *cobra.Command {
			return &cobra.Command{Use: "list", Short: "List them", Args: NoArguments, RunE: do}
		}
		root := &cobra.Command{Use: "registry", Short: "A registry", SilenceErrors: true, SilenceUsage: true}
		parties, offers := &cobra.Command{Use: "parties"}, &cobra.Command{Use: "offers", RunE: do}
		parties.AddCommand(list())
		offers.AddCommand(list())
		root.AddCommand(parties, offers)
		ExplainFlags(root)
		Strict(root, "0 done.")
		var out strings.Builder
		root.SetOut(&out)
		root.SetArgs(strings.Fields(line))
		err := root.ExecuteContext(t.Context())
		if want.says == "" {
			if err != nil || !strings.Contains(out.String(), want.prints) {
				t.Errorf("%q: %v, and prints %q", line, err, out.String())
			}
			continue
		}
		if err == nil || err.Error() != want.says || ExitCode(err) != ExitUsage || out.Len() > 0 {
			t.Errorf("%q: %v, want %s; it prints %q", line, err, want.says, out.String())
		}
	}
}
