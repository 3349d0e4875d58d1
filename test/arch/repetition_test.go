// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package arch

import (
	"fmt"
	"go/scanner"
	"go/token"
	"hash/maphash"
	"maps"
	"path"
	"slices"
	"strings"
	"testing"
)

// repeated is how many tokens nobody writes twice: about ten lines. The linter dupl compares the shapes of what is in one package; this
// compares the words of all packages.
const repeated = 70

// word is a token of a Go file.
type word struct {
	text, file string
	line       int
}

// words returns the tokens of a file behind its imports.
func words(name string, from file) []word {
	begin := 0
	for _, imports := range from.syntax.Decls {
		begin = int(imports.End())
	}
	source := token.NewFileSet().AddFile(name, 1, len(from.text))
	var s scanner.Scanner
	s.Init(source, []byte(from.text), nil, 0)
	var all []word
	for {
		at, kind, literal := s.Scan()
		switch {
		case kind == token.EOF:
			return all
		case int(at) < begin:
			continue
		case !kind.IsLiteral():
			literal = kind.String() // Also of a semicolon that is not there to see.
		}
		all = append(all, word{literal, name, source.Line(at)})
	}
}

// repetitions returns where the same words follow each other in two places, so many or more.
func repetitions(all []word, least int) []string {
	seed, places := maphash.MakeSeed(), map[uint64][]int{}
	for i := range len(all) - least + 1 {
		var run maphash.Hash
		run.SetSeed(seed)
		for _, w := range all[i : i+least] {
			_, _ = run.WriteString(w.text + "\n")
		}
		places[run.Sum64()] = append(places[run.Sum64()], i)
	}
	var found []string
	for _, same := range places {
		for _, again := range same[1:] {
			one, other := same[0], again
			if one == 0 || all[one-1].text != all[other-1].text { // Otherwise it begins before.
				found = append(found, fmt.Sprintf("%s:%d and %s:%d", all[one].file, all[one].line, all[other].file, all[other].line))
			}
		}
	}
	slices.Sort(found)
	return found
}

// TestNothingIsWrittenTwice refuses what was copied, in code that is no test.
func TestNothingIsWrittenTwice(t *testing.T) {
	files := goFiles(t)
	var all []word
	for _, name := range slices.Sorted(maps.Keys(files)) {
		ours := (within("pkg", name) || within("cmd", name)) && !files[name].generated
		if ours && !strings.HasSuffix(name, "_test.go") && !strings.HasSuffix(path.Dir(name), "test") {
			all = append(all, words(name, files[name])...)
			all = append(all, word{text: name}) // The next file is another text.
		}
	}
	for _, twice := range repetitions(all, repeated) {
		t.Errorf("%s are the same, for %d tokens or more: write it once", twice, repeated)
	}
}

func TestRepetitions(t *testing.T) {
	var all []word
	for i, text := range strings.Fields("a b c d e | a b c x b c d e") {
		all = append(all, word{text, "f.go", i})
	}
	want := []string{"f.go:0 and f.go:6", "f.go:1 and f.go:10"}
	if got := repetitions(all, 3); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
