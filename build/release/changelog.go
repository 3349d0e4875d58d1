// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"sigs.k8s.io/yaml"
)

// A chartChange is a line of the changelog as Artifact Hub shows it (https://artifacthub.io/docs/topics/annotations/helm/).
type chartChange struct {
	Kind        string `json:"kind"`
	Description string `json:"description"`
}

var (
	// linkText finds the links of Markdown, which are shown as their texts.
	linkText = regexp.MustCompile(`\[([^\]]*)\]\([^)]*\)`)
	// sentenceEnd is where the first sentence of an item ends.
	sentenceEnd = regexp.MustCompile(`\.(\s|$)`)
)

// changesOf returns what the changelog says of a version, or of what comes next if it says nothing of that: the first sentence of each
// item, with the kind that its heading says.
func changesOf(s source) ([]chartChange, error) {
	const name = "CHANGELOG.md"
	text, err := os.ReadFile(filepath.Join(s.Root, name))
	if err != nil {
		return nil, err
	}
	_, section, found := strings.Cut(string(text), "\n## ["+s.number()+"]")
	if !found {
		if _, section, found = strings.Cut(string(text), "\n## [Unreleased]"); !found {
			return nil, fmt.Errorf("%s has neither %s nor what is not released", name, s.number())
		}
	}
	section, _, _ = strings.Cut(section, "\n## ")
	section, _, _ = strings.Cut(section, "\n[Unreleased]:")
	var changes []chartChange
	for _, part := range strings.Split(section, "\n### ")[1:] {
		heading, items, _ := strings.Cut(part, "\n")
		for _, item := range strings.Split("\n"+items, "\n* ")[1:] {
			sentence := linkText.ReplaceAllString(strings.Join(strings.Fields(item), " "), "$1")
			if end := sentenceEnd.FindStringIndex(sentence); end != nil {
				sentence = sentence[:end[0]]
			}
			changes = append(changes, chartChange{strings.ToLower(strings.TrimSpace(heading)), sentence})
		}
	}
	if len(changes) == 0 {
		return nil, fmt.Errorf("%s says nothing of %s", name, s.number())
	}
	return changes, nil
}

// withChanges returns a Chart.yaml, which ends with its annotations, with what only a release knows: what has changed, and whether it is
// one for everybody.
func withChanges(s source, chart []byte) ([]byte, error) {
	changes, err := changesOf(s)
	if err != nil {
		return nil, err
	}
	listed, err := yaml.Marshal(changes)
	if err != nil {
		return nil, fmt.Errorf("write the changes: %w", err)
	}
	prerelease := fmt.Sprintf("  artifacthub.io/prerelease: %q\n", fmt.Sprint(strings.Contains(s.Version, "-")))
	list := "  artifacthub.io/changes: |\n    " + strings.ReplaceAll(strings.TrimSpace(string(listed)), "\n", "\n    ") + "\n"
	return append(chart, prerelease+list...), nil
}
