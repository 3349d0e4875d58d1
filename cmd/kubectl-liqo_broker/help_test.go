// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/capacitorset/liqo-broker/pkg/program"
	"github.com/capacitorset/liqo-broker/pkg/trial"
	"github.com/capacitorset/liqo-broker/test/commandline"
	"github.com/capacitorset/liqo-broker/test/golden"
)

func TestHelp(t *testing.T) {
	t.Setenv("HOME", "/home/user")
	var out bytes.Buffer
	if err := run(t.Context(), []string{"--help"}, genericiooptions.IOStreams{Out: &out, ErrOut: &out}); err != nil {
		t.Fatal(err)
	}
	golden.Check(t, "help.txt", out.String())
}

// TestHelpOfCommands holds what each command says of itself: the reference of flags is made of it.
func TestHelpOfCommands(t *testing.T) {
	t.Setenv("HOME", "/home/user")
	for _, command := range below(newCommand(genericiooptions.NewTestIOStreamsDiscard())) {
		path := strings.Fields(command.CommandPath())[2:] // Without "kubectl liqo-broker".
		if path[0] == "help" || path[0] == "completion" {
			continue
		}
		var out bytes.Buffer
		if err := run(t.Context(), append(path, "--help"), genericiooptions.IOStreams{Out: &out, ErrOut: &out}); err != nil {
			t.Fatal(err)
		}
		if strings.Contains(command.Name(), "-") {
			t.Errorf("%s: a hyphen stands for a space in the names of these files", command.CommandPath())
		}
		own, _, _ := strings.Cut(out.String(), "\nGlobal Flags:")
		golden.Check(t, "help-"+strings.Join(path, "-")+".txt", own)
	}
}

// TestExamples holds that help shows each command as it is given, with flags that are there.
func TestExamples(t *testing.T) {
	t.Setenv("HOME", t.TempDir())
	for _, command := range below(newCommand(genericiooptions.NewTestIOStreamsDiscard())) {
		_, own, _ := strings.Cut(command.CommandPath(), "liqo-broker ")
		if first := strings.Fields(own)[0]; first == "help" || first == "completion" {
			continue
		}
		shown := false
		unquoted := regexp.MustCompile(`'[^']*'|"[^"]*"`).ReplaceAllString(command.Example, "quoted")
		for _, example := range regexp.MustCompile(`kubectl liqo-broker ([^|>&\n]*)`).FindAllStringSubmatch(unquoted, -1) {
			shown = shown || strings.Contains(example[1], own)
			if err := understood(example[1]); err != nil {
				t.Errorf("%s: %s: %v", command.CommandPath(), example[0], err)
			}
		}
		if !shown {
			t.Errorf("%s: its help has no example", command.CommandPath())
		}
	}
}

// TestExitCodes holds that the table of exit codes names the commands of which the help says that they have one for what they have looked
// at.
func TestExitCodes(t *testing.T) {
	t.Setenv("HOME", t.TempDir())
	page, err := os.ReadFile("../../docs/kubectl.md")
	if err != nil {
		t.Fatal(err)
	}
	row := regexp.MustCompile(fmt.Sprintf(`(?m)^\| %d \|.*$`, exitUnhealthy)).FindString(string(page))
	var named, own []string
	for _, found := range regexp.MustCompile("`([a-z][a-z ]*)(?: --[a-z]+)?`").FindAllStringSubmatch(row, -1) {
		named = append(named, found[1])
	}
	for _, command := range below(newCommand(genericiooptions.NewTestIOStreamsDiscard())) {
		if strings.Contains(strings.ReplaceAll(command.Long, "\n", " "), fmt.Sprintf("the exit code is %d", exitUnhealthy)) {
			_, name, _ := strings.Cut(command.CommandPath(), "liqo-broker ")
			own = append(own, name)
		}
	}
	slices.Sort(named)
	slices.Sort(own)
	if len(own) == 0 || !slices.Equal(own, named) {
		t.Errorf("docs/kubectl.md says that %q have an exit code of their own, help says it of %q", named, own)
	}
}

// TestVerdict holds that scripts can tell a test in which not all is well from one that could not be made.
func TestVerdict(t *testing.T) {
	if err := verdict(&trial.Result{}); err != nil {
		t.Errorf("all is well: %v", err)
	}
	if err := verdict(&trial.Result{Problems: []string{"Nobody answers."}}); program.ExitCode(err) != exitUnhealthy {
		t.Errorf("a test with a problem exits with %d: %v", program.ExitCode(err), err)
	}
}

// TestStrayArguments gives each command more arguments than it takes.
func TestStrayArguments(t *testing.T) {
	commandline.RefuseStrays(t, func() *cobra.Command { return newCommand(genericiooptions.NewTestIOStreamsDiscard()) })
}
