// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"maps"
	"os"
	"reflect"
	"strings"
	"testing"
)

// repository returns the results that the repository has.
func repository(t *testing.T) results {
	t.Helper()
	known, err := readResults("results.txt")
	if err != nil {
		t.Fatal(err)
	}
	return known
}

// TestPageIsOfTheResults compares the page with what is made of the results that are kept, and those with what they are written as.
func TestPageIsOfTheResults(t *testing.T) {
	known := repository(t)
	for path, want := range map[string]string{"../../docs/conformance.md": known.page(explanation), "results.txt": known.text()} {
		got, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if string(got) != want {
			t.Errorf("%s is not what is made of results.txt by bin/conformance -distances= -page docs/conformance.md", path)
		}
	}
	if err := known.judge(explanation); err != nil {
		t.Error(err)
	}
}

// only09 returns results without those of later releases.
func only09(all results) results {
	only := results{}
	for name, by := range all {
		for at, passed := range by {
			if at.liqo == releases[0].version {
				only.add(at, specs{name: {passed: passed}})
			}
		}
	}
	return only
}

// TestLaterReleasesAddColumns has the page say of the first release what it says without a later one, byte for byte.
func TestLaterReleasesAddColumns(t *testing.T) {
	before := only09(repository(t))
	both := only09(repository(t))
	for name, by := range before {
		for at, passed := range by {
			both.add(place{"1.2.0", at.distance}, specs{name: {passed: passed}})
		}
	}
	var got strings.Builder
	columns := 0 // Of the first release in this table; 0 if it has no others.
	for line := range strings.Lines(strings.Replace(both.page(explanation), "\n"+pageOf1, "", 1)) {
		switch {
		case strings.HasPrefix(line, "| pods |"):
			columns = 3
		case strings.HasPrefix(line, "| test |"):
			columns = 5
		case !strings.HasPrefix(line, "|") || strings.HasPrefix(line, "| tests |"):
			columns = 0
		}
		if columns > 0 {
			cells := strings.SplitAfter(line, "|")
			line = strings.Join(cells[:columns+1], "") + "\n"
		}
		got.WriteString(line)
	}
	if want := before.page(explanation); got.String() != want {
		t.Errorf("without the columns of 1.2.0 the page is\n%s\nwant\n%s", got.String(), want)
	}
}

// some are results with both releases.
func some() results {
	return results{
		"[sig-a] both [Conformance]":  {local09: true, near09: false, far09: false, local12: true, near12: false, far12: false},
		"[sig-a] later [Conformance]": {local09: true, near09: true, far09: true, local12: true, near12: true, far12: false},
		"[sig-b] first|second":        {local09: true, near09: true, far09: false, local12: true, near12: true, far12: true},
		"[sig-b] new":                 {local12: true, near12: true, far12: true},
		"[sig-b] other reason":        {local09: true, near09: false, far09: false, local12: true, near12: false, far12: false},
		"[sig-b] well":                {local09: true, near09: true, far09: true, local12: true, near12: true, far12: true},
	}
}

func someReasons(at place, name string) string {
	switch {
	case !strings.Contains(name, "reason"):
		return "by design"
	case at == near12:
		return "near."
	case at == far12:
		return "far."
	}
	return "other."
}

// TestPageOfTwoReleases says a word twice where a table does.
//
//nolint:dupword // Cells that are next to each other are the same.
func TestPageOfTwoReleases(t *testing.T) {
	page := some().page(someReasons)
	for _, want := range []string{
		"\nitself.\n\nWith Liqo 1.2.0",
		"\n| pods | tests passed | failed | 1.2.0: passed | failed |\n|---|---|---|---|---|\n| local | 5 | 0 | 6 | 0 |\n" +
			"| one-hop | 3 | 2 | 4 | 2 |\n| two-hops | 2 | 3 | 3 | 3 |\n",
		"\n| test | local | one hop | two hops | why | 1.2.0: local, one hop, two hops | why |\n|---|---|---|---|---|---|---|\n",
		"\n| [sig-a] both | passes | **fails** | **fails** | by design | passes, **fails**, **fails** | as with 0.9.4 |\n",
		"\n| [sig-a] later | passes | passes | passes |  | passes, passes, **fails** | by design |\n",
		"\n| [sig-b] first\\|second | passes | passes | **fails** | by design | passes, passes, passes |  |\n",
		"\n| [sig-b] other reason | passes | **fails** | **fails** | other. | passes, **fails**, **fails** | near. far. |\n",
		"\n## What passes everywhere\n\n* [sig-b] well\n\n## What passes, and was not run everywhere\n\n" +
			"| test | local | one hop | two hops | 1.2.0: local, one hop, two hops |\n|---|---|---|---|---|\n" +
			"| [sig-b] new | not run | not run | not run | passes, passes, passes |\n",
	} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %q:\n%s", want, page)
		}
	}
}

// TestPlacesThatWereNotRunAreNotMissed runs one distance alone with the later release.
func TestPlacesThatWereNotRunAreNotMissed(t *testing.T) {
	all := results{"[sig-a] well": {local09: true, near09: true, far09: true, far12: true}}
	page := all.page(someReasons)
	if !strings.Contains(page, "\n* [sig-a] well\n") || strings.Contains(page, "not run everywhere") {
		t.Errorf("what passes wherever tests ran is not listed as such:\n%s", page)
	}
	if want := "| local | 1 | 0 | not run | |\n"; !strings.Contains(page, want) {
		t.Errorf("the page lacks %q:\n%s", want, page)
	}
	if want := "Liqo 0.9.4, local: 1 passed, 0 failed\nLiqo 0.9.4, one-hop: 1 passed, 0 failed\nLiqo 0.9.4, two-hops: 1 passed, 0 failed\n" +
		"Liqo 1.2.0, two-hops: 1 passed, 0 failed\n"; all.summary() != want {
		t.Errorf("the summary is %q, want %q", all.summary(), want)
	}
}

// TestResultsAreReadBack reads what was written.
func TestResultsAreReadBack(t *testing.T) {
	all := some()
	text := all.text()
	if want := "\n0.9.4 1.2.0\npff   pff   [sig-a] both [Conformance]\n"; !strings.Contains(text, want) { //nolint:dupword // Two releases have the same.
		t.Errorf("the text lacks %q:\n%s", want, text)
	}
	if want := "\n---   ppp   [sig-b] new\n"; !strings.Contains(text, want) {
		t.Errorf("the text lacks %q:\n%s", want, text)
	}
	got, err := parseResults(text)
	if err != nil || !reflect.DeepEqual(got, all) {
		t.Errorf("read %v (%v), want %v", got, err, all)
	}
}

func TestBadResultsAreRefused(t *testing.T) {
	const head = "0.9.4 1.2.0\n"
	for text, want := range map[string]string{
		"0.9.4 1.1.0\n":                  `line 1 is about the releases "0.9.4 1.1.0" of Liqo, want "0.9.4 1.2.0"`,
		head + "pp    ppp   a\n":         `line 2: "pp" has not a letter for each distance`,
		head + "ppx   ppp   a\n":         `line 2: 'x' in "ppx" is not what becomes of a test`,
		head + "ppp   ppp   \n":          `line 2: "" is the name of no test, or of one that was there before`,
		head + "ppp --- a\nppp --- a\n":  `line 3: "a" is the name of no test, or of one that was there before`,
		"# a comment\n" + head + "ppp\n": `line 3: "" has not a letter for each distance`,
	} {
		if _, err := parseResults(text); err == nil || err.Error() != want {
			t.Errorf("%q is refused with %v, want %s", text, err, want)
		}
	}
	got, err := parseResults("# comment\n" + head)
	if err != nil || !maps.EqualFunc(got, results{}, maps.Equal[map[place]bool]) {
		t.Errorf("no results are %v (%v)", got, err)
	}
}
