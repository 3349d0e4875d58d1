// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// journeys are what go test runs here: TestA to TestG each do what the environment says.
const journeys = `package fixture

import (
	"fmt"
	"os"
	"testing"
)

func TestMain(m *testing.M) {
	code := m.Run()
	if os.Getenv("AFTER") != "" {
		fmt.Fprintln(os.Stderr, "fixture: something is left")
	}
	os.Exit(code)
}

func TestA(t *testing.T) { walk(t) }
func TestB(t *testing.T) { walk(t) }
func TestC(t *testing.T) { walk(t) }
func TestD(t *testing.T) { walk(t) }
func TestE(t *testing.T) { walk(t) }
func TestF(t *testing.T) { walk(t) }
func TestG(t *testing.T) { t.Parallel(); walk(t) }

func walk(t *testing.T) {
	file := t.Name() + ".ran"
	_, err := os.Stat(file)
	first := err != nil
	os.WriteFile(file, nil, 0o600)
	switch os.Getenv(t.Name()) {
	case "flaky":
		t.Run("Sub", func(t *testing.T) {
			if first {
				t.Error("it is late")
			}
		})
	case "skipped":
		if !first {
			t.Skip("not here")
		}
		t.Error("it is wrong")
	case "red":
		t.Error("it is wrong")
	case "panic":
		panic("it is broken")
	case "exit":
		os.Exit(1)
	case "never":
		select {}
	}
}
`

// A fakeLab is up or not, and notes what it is told.
type fakeLab struct {
	up bool
	// breaks says that it is not whole after the first run.
	breaks bool
	told   []string
}

func (l *fakeLab) run(_ context.Context, command string) error {
	l.told = append(l.told, command)
	if command == "down" || l.up || len(l.told) > 1 && !l.breaks { // The first run brings it up.
		return nil
	}
	return errors.New("it is not up")
}

// inFixture makes a folder of a module with journeys the one of the test.
func inFixture(t *testing.T) {
	t.Helper()
	t.Chdir(t.TempDir())
	for name, text := range map[string]string{
		"go.mod": "module example.org/fixture\n\ngo 1.24\n", "fixture_test.go": journeys,
		"broken_test.go": "//go:build broken\n\npackage fixture\n\nvar none int = \"some\"\n",
	} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// TestRun runs journeys that fail in many ways.
func TestRun(t *testing.T) {
	inFixture(t)
	for name, tc := range map[string]struct {
		reason string
		env    map[string]string
		args   []string
		line   string
		lab    fakeLab
		before string // What is remembered.
		fails  string // What the error has, empty if the run is green.
		flaky  []string
		red    []string
		after  string
		told   string
		prints []string
	}{
		"Green": {
			reason: "Nothing is run again, and what passes at once is not flaky any more.", before: `{"fixture":{"TestA":2,"TestOther":1}}`,
			after: `{"fixture":{"TestOther":1}}`, told: "status",
		},
		"Flaky": {
			reason: "What passes by itself is green, and named, and the lab goes as it came.",
			env:    map[string]string{"TestB": "flaky", "TestG": "flaky"},
			flaky:  []string{"TestB", "TestG"}, after: `{"fixture":{"TestB":1,"TestG":1}}`, told: "status status status down", //nolint:dupword // It is asked more than once.
			prints: []string{"--- flaky: TestB of fixture failed", "runs in a row: 1", "--- flaky:     fixture_test.go:34: it is late"},
		},
		"UpBefore": {
			reason: "Who had the lab keeps it.", env: map[string]string{"TestB": "flaky"}, lab: fakeLab{up: true},
			flaky: []string{"TestB"}, after: `{"fixture":{"TestB":1}}`, told: "status status", //nolint:dupword // It is asked more than once.
		},
		"ThirdTime": {
			reason: "What is flaky three times in a row is red.", env: map[string]string{"TestB": "flaky"}, before: `{"fixture":{"TestB":2}}`,
			fails: "TestB was flaky in 3 runs in a row", flaky: []string{"TestB"}, after: `{"fixture":{"TestB":3}}`, told: "status status", //nolint:dupword // It is asked more than once.
		},
		"Line": {
			reason: "What is flaky with one line of Liqo may pass with another one.", env: map[string]string{"TestB": "flaky"}, line: "1.2",
			before: `{"fixture":{"TestA":1},"fixture-0.9":{"TestA":1,"TestB":2},"fixture-1.2":{"TestA":1,"TestB":1}}`, flaky: []string{"TestB"},
			after:  `{"fixture":{"TestA":1},"fixture-0.9":{"TestA":1,"TestB":2},"fixture-1.2":{"TestB":2}}`,
			told:   "status status down", //nolint:dupword // It is asked more than once.
			prints: []string{"--- flaky: TestB of fixture-1.2 failed"},
		},
		"Unreadable": {
			reason: "A memory that says nothing is none.", env: map[string]string{"TestB": "flaky"}, before: `{"fixture":`,
			flaky: []string{"TestB"}, after: `{"fixture":{"TestB":1}}`, told: "status status down", //nolint:dupword // It is asked more than once.
		},
		"Red": {
			reason: "What fails twice is red, and the lab stays.", env: map[string]string{"TestA": "flaky", "TestC": "red"},
			before: `{"fixture":{"TestC":2}}`, fails: "TestC failed, and does not pass by itself", flaky: []string{"TestA"}, red: []string{"TestC"},
			after: `{"fixture":{"TestA":1,"TestC":2}}`, told: "status status status", //nolint:dupword // It is asked more than once.
			prints: []string{
				"--- red: TestC of fixture failed; its first log: kept/fixture-TestC.log", "--- red:     fixture_test.go:43: it is wrong",
			},
		},
		"Many": {
			reason: "Six at once are no accident.", fails: "more than 5 journeys failed: TestA, TestB, TestC, TestD, TestE, TestF",
			env:  map[string]string{"TestA": "flaky", "TestB": "flaky", "TestC": "flaky", "TestD": "flaky", "TestE": "flaky", "TestF": "flaky"},
			red:  []string{"TestA", "TestB", "TestC", "TestD", "TestE", "TestF"},
			told: "status", after: `{"fixture":{}}`,
		},
		"Panic": {
			reason: "Those after a panic did not run.", env: map[string]string{"TestA": "flaky", "TestB": "panic"},
			fails: "did not come to its end: failed [TestA TestB]", red: []string{"TestA", "TestB"}, told: "status",
		},
		"TimeLimit": {
			reason: "Nor did those after one that never ends.", env: map[string]string{"TestB": "never"}, args: []string{"-timeout=1s"},
			fails: "did not come to its end: failed [], cut off [TestB]", told: "status", after: `{"fixture":{}}`,
		},
		"Exit": {
			reason: "Nor those after one that ends the program.", env: map[string]string{"TestA": "flaky", "TestB": "exit"},
			fails: "cut off [TestB]", red: []string{"TestA"}, told: "status",
		},
		"After": {
			reason: "What goes wrong after the journeys is no journey's.", env: map[string]string{"TestA": "flaky", "AFTER": "yes"},
			fails: "did not come to its end: failed [TestA]", red: []string{"TestA"}, told: "status", after: `{"fixture":{}}`,
		},
		"Broken": {
			reason: "What does not compile has no journeys.", args: []string{"-tags=broken"}, fails: "failed []", told: "status",
		},
		"LabIsNotWhole": {
			reason: "The second run would be on another lab.", env: map[string]string{"TestA": "flaky"}, lab: fakeLab{breaks: true},
			fails: "TestA failed, and is not run again, since the lab is not whole", red: []string{"TestA"},
			told:  "status status", //nolint:dupword // It is asked more than once.
			after: `{"fixture":{}}`,
		},
		"SkippedThen": {
			reason: "A second run without the journey says nothing.", env: map[string]string{"TestA": "skipped"},
			fails: "TestA failed, and does not pass by itself", red: []string{"TestA"}, told: "status status", after: `{"fixture":{}}`, //nolint:dupword // It is asked more than once.
		},
	} {
		t.Run(name, func(t *testing.T) {
			ran, err := filepath.Glob("*.ran")
			if err != nil {
				t.Fatal(err)
			}
			for _, file := range append(ran, "kept") {
				if err := os.RemoveAll(file); err != nil {
					t.Fatal(err)
				}
			}
			for name, value := range tc.env {
				t.Setenv(name, value)
			}
			memory := filepath.Join(t.TempDir(), "cache", "flaky.json")
			if tc.before != "" {
				if err := os.MkdirAll(filepath.Dir(memory), 0o700); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(memory, []byte(tc.before), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			var out bytes.Buffer
			r := &runner{lab: tc.lab.run, kept: "kept", memory: memory, line: tc.line, out: &out}
			err = r.run(t.Context(), slices.Concat([]string{"-count=1"}, tc.args, []string{"."}))
			if tc.fails == "" && err != nil || tc.fails != "" && (err == nil || !strings.Contains(err.Error(), tc.fails)) {
				t.Errorf("%s\nrun(): %v, want %q\n%s", tc.reason, err, tc.fails, out.String())
			}
			if told := strings.Join(tc.lab.told, " "); told != tc.told {
				t.Errorf("%s\nthe lab is told %q, want %q", tc.reason, told, tc.told)
			}
			logs, err := filepath.Glob("kept/*")
			if err != nil {
				t.Fatal(err)
			}
			group := "fixture"
			if tc.line != "" {
				group += "-" + tc.line
			}
			var want []string
			for _, test := range slices.Concat(tc.flaky, tc.red) {
				want = append(want, "kept/"+group+"-"+test+".log")
			}
			if diff := cmp.Diff(want, logs); diff != "" {
				t.Errorf("%s\nlogs: -want +got\n%s", tc.reason, diff)
			}
			for _, log := range logs {
				if text, err := os.ReadFile(log); err != nil || !strings.Contains(string(text), "it is ") ||
					!strings.Contains(string(text), "--- FAIL") {
					t.Errorf("%s\nthe log %s has %q, %v", tc.reason, log, text, err)
				}
			}
			for _, text := range tc.prints {
				if !strings.Contains(out.String(), text) {
					t.Errorf("%s\n%q is not printed:\n%s", tc.reason, text, out.String())
				}
			}
			remembered, err := os.ReadFile(memory)
			if err != nil && !errors.Is(err, fs.ErrNotExist) {
				t.Fatal(err)
			}
			if got := strings.Join(strings.Fields(string(remembered)), ""); got != tc.after {
				t.Errorf("%s\nremembered: %s, want %s", tc.reason, got, tc.after)
			}
		})
	}
}
