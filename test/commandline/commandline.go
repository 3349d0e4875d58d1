// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

// Package commandline gives the commands of a program what they must not understand. It does not know what the commands do: none of them is
// run.
package commandline

import (
	"io"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/capacitorset/liqo-broker/pkg/program"
)

// choice is a group of a usage line, such as "(--provider CLUSTER | --consumer CLUSTER)...".
var choice = regexp.MustCompile(`\([^)]*\)(\.\.\.)?`)

// RefuseStrays gives each command of a program, which newCommand returns, one argument more than its usage line shows: that must be an
// error of usage. The program has what cobra adds by itself.
func RefuseStrays(t *testing.T, newCommand func() *cobra.Command) {
	t.Helper()
	for _, path := range paths(prepare(newCommand(), nil)) {
		ran := false
		root := prepare(newCommand(), &ran)
		command, _, err := root.Find(path)
		if err != nil {
			t.Fatal(err)
		}
		shown, bounded := arguments(command.Use)
		if !bounded {
			continue
		}
		line := slices.Concat(path, slices.Repeat([]string{"bogus"}, shown+1))
		root.SetArgs(line)
		err = root.ExecuteContext(t.Context())
		switch {
		case err == nil || ran:
			t.Errorf("%s %s is understood: %v", root.Name(), strings.Join(line, " "), err)
		case program.ExitCode(err) != program.ExitUsage:
			t.Errorf("%s %s exits with %d: %v", root.Name(), strings.Join(line, " "), program.ExitCode(err), err)
		}
	}
}

// prepare adds what cobra adds to a command when it is executed, and has all those that are run only say so.
func prepare(root *cobra.Command, ran *bool) *cobra.Command {
	root.InitDefaultHelpCmd()
	root.InitDefaultCompletionCmd()
	root.SetOut(io.Discard)
	root.SetErr(io.Discard)
	visit(root, func(c *cobra.Command) {
		c.PersistentPreRun, c.PersistentPreRunE = nil, nil
		if c.Runnable() {
			c.Run, c.RunE = func(*cobra.Command, []string) { *ran = true }, nil
		}
	})
	return root
}

// paths are the words that lead to a command and to each of those below it.
func paths(root *cobra.Command) (all [][]string) {
	visit(root, func(c *cobra.Command) {
		var path []string
		for at := c; at != root; at = at.Parent() {
			path = append([]string{at.Name()}, path...)
		}
		all = append(all, path)
	})
	return all
}

func visit(command *cobra.Command, deed func(*cobra.Command)) {
	deed(command)
	for _, child := range command.Commands() {
		visit(child, deed)
	}
}

// arguments returns how many arguments besides flags a usage line shows; false if it shows no bound.
func arguments(use string) (shown int, bounded bool) {
	for _, word := range strings.Fields(choice.ReplaceAllString(use, ""))[1:] {
		switch {
		case strings.HasSuffix(strings.TrimRight(word, "]"), "..."):
			return 0, false
		case !strings.HasPrefix(word, "-"):
			shown++
		}
	}
	return shown, true
}
