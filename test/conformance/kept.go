// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
)

// keptTop is how the file of results begins, and above its columns stands which release of Liqo each is about.
const keptTop = `# What became of Kubernetes' conformance tests, with each release of Liqo. Written by make test-conformance, which makes docs/conformance.md
# of it. A letter each says what happens with pods that are local, one hop and two hops away: p passes, f fails, - was not run.
`

// Letters of the file of results.
const (
	letterPasses = 'p'
	letterFails  = 'f'
	letterNotRun = '-'
)

// keptHead is the line with the releases.
func keptHead() string {
	versions := make([]string, len(releases))
	for i, l := range releases {
		versions[i] = l.version
	}
	return strings.Join(versions, " ")
}

// text returns the results as they are kept in the repository: a line for each test. What a test said that failed is not kept.
func (r results) text() string {
	var out strings.Builder
	out.WriteString(keptTop + keptHead() + "\n")
	for _, name := range slices.Sorted(maps.Keys(r)) {
		for _, l := range releases {
			fmt.Fprintf(&out, "%-*s ", len(l.version), r.letters(name, l))
		}
		out.WriteString(name + "\n")
	}
	return out.String()
}

// letters returns what became of a test with a release of Liqo, at one distance after the other.
func (r results) letters(name string, with release) string {
	letters := make([]rune, len(distances))
	for i, d := range distances {
		passed, ran := r[name][place{with.version, d.name}]
		switch {
		case !ran:
			letters[i] = letterNotRun
		case passed:
			letters[i] = letterPasses
		default:
			letters[i] = letterFails
		}
	}
	return string(letters)
}

// parseResults reads what text returned.
func parseResults(text string) (results, error) {
	r, headed, n := results{}, false, 0
	for line := range strings.Lines(text) {
		line, n = strings.TrimSuffix(line, "\n"), n+1
		switch {
		case strings.HasPrefix(line, "#"):
		case !headed:
			if line != keptHead() {
				return nil, fmt.Errorf("line %d is about the releases %q of Liqo, want %q", n, line, keptHead())
			}
			headed = true
		default:
			if err := r.parse(line); err != nil {
				return nil, fmt.Errorf("line %d: %w", n, err)
			}
		}
	}
	return r, nil
}

// parse reads the line of one test.
func (r results) parse(line string) error {
	by, rest := map[place]bool{}, line
	for _, l := range releases {
		letters, after, _ := strings.Cut(rest, " ")
		if len(letters) != len(distances) {
			return fmt.Errorf("%q has not a letter for each distance", letters)
		}
		for i, letter := range letters {
			switch letter {
			case letterPasses, letterFails:
				by[place{l.version, distances[i].name}] = letter == letterPasses
			case letterNotRun:
			default:
				return fmt.Errorf("%q in %q is not what becomes of a test", letter, letters)
			}
		}
		rest = strings.TrimLeft(after, " ")
	}
	if rest == "" || r[rest] != nil {
		return fmt.Errorf("%q is the name of no test, or of one that was there before", rest)
	}
	r[rest] = by
	return nil
}

// readResults reads the results that the repository has.
func readResults(path string) (results, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	r, err := parseResults(string(data))
	if err != nil {
		return nil, fmt.Errorf("read the results of %s: %w", path, err)
	}
	return r, nil
}
