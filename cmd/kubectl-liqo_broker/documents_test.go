// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/capacitorset/liqo-broker/test/docs"
)

// TestDocumentsNameCommands holds that each command of the plugin that a document names is there, with the flags that it is given.
func TestDocumentsNameCommands(t *testing.T) {
	t.Setenv("HOME", t.TempDir())
	named := regexp.MustCompile("kubectl liqo-broker([^`\n|;&#)]*)")
	count := 0
	pages, err := docs.Pages("../..")
	if err != nil {
		t.Fatal(err)
	}
	for path, text := range pages {
		for _, found := range named.FindAllStringSubmatch(text, -1) {
			line := strings.TrimRight(strings.TrimSpace(found[1]), ".,:")
			if line == "" || !regexp.MustCompile(`^[a-z-]`).MatchString(line) || strings.Contains(found[0], "$(") {
				continue
			}
			count++
			if err := understood(line); err != nil {
				t.Errorf("%s: kubectl liqo-broker %s: %v", path, line, err)
			}
		}
	}
	if count < 20 {
		t.Errorf("all documents name %d commands", count)
	}
}

// understood returns an error unless the plugin has a command, and its flags.
func understood(line string) error {
	root := newCommand(genericiooptions.NewTestIOStreamsDiscard())
	root.InitDefaultHelpFlag()
	root.InitDefaultCompletionCmd(strings.Fields(line)...)
	command, rest, err := root.Find(strings.Fields(line))
	if err != nil {
		return err
	}
	command.InitDefaultHelpFlag()
	if err := command.ParseFlags(rest); err != nil {
		return err
	}
	if command == root && len(command.Flags().Args()) > 0 {
		return cobra.NoArgs(command, command.Flags().Args())
	}
	return nil
}
