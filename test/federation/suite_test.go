// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package federation

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestSuite has a program in place of the lab's write down what it is told to do.
func TestSuite(t *testing.T) {
	const up, up09 = "up --kubernetes v1.0 --liqo 1.2 --topology strangers", "up --kubernetes v1.0 --liqo 0.9 --topology strangers"
	for name, tc := range map[string]struct {
		reason string
		// about is the line of Liqo that the suite is about, told the one that the environment says, and is the version that the lab has.
		about, told, is string
		// fails are the commands of the lab that fail.
		fails string
		code  int
		err   error
		want  int
		calls []string
	}{
		"IsUp":      {reason: "Whose lab it is keeps it.", told: "1.2", is: "v1.2.0", calls: []string{"status", "tests false"}},
		"IsUpFails": {reason: "Also when tests fail.", told: "1.2", is: "v1.2.0", code: 2, want: 2, calls: []string{"status", "tests false"}},
		"IsDown": {
			reason: "What was brought up is removed.", told: "1.2", fails: "status",
			calls: []string{"status", "down", up, "tests true", "down"},
		},
		"Fails": {
			reason: "What failed stays.", told: "1.2", fails: "status", code: 1, want: 1,
			calls: []string{"status", "down", up, "tests true"},
		},
		"Breaks": {
			reason: "So does what has no code.", told: "1.2", fails: "status", err: errors.New("no broker"), want: 1,
			calls: []string{"status", "down", up, "tests true"},
		},
		"NotUp": {
			reason: "There is nothing to test.", told: "1.2", fails: "status up", want: 1, calls: []string{"status", "down", up},
		},
		"NotRemoved": {
			reason: "It is not brought up on the ruins of another one.", told: "1.2", fails: "status down", want: 1,
			calls: []string{"status", "down"},
		},
		"OtherLine": {
			reason: "No test runs on what was not meant, and the lab stays.", told: "1.2", is: "v0.9.4", want: 1, calls: []string{"status"},
		},
		"OtherLineToo": {reason: "In the other direction as well.", told: "0.9", is: "v1.2.0", want: 1, calls: []string{"status"}},
		"LongerLine":   {reason: "1.20 is not 1.2.", told: "1.2", is: "v1.20.0", want: 1, calls: []string{"status"}},
		"UnknownLine":  {reason: "Nobody knows what would be tested.", told: "1.2", want: 1, calls: []string{"status"}},
		"RuinsOfOther": {
			reason: "Half a lab is nobody's.", told: "1.2", is: "v0.9.4", fails: "status",
			calls: []string{"status", "down", up, "tests true", "down"},
		},
		"NotTold":     {reason: "Whoever does not say has any.", is: "v1.2.0", calls: []string{"status", "tests false"}},
		"NotToldDown": {reason: "Or the usual one.", fails: "status", calls: []string{"status", "down", up09, "tests true", "down"}},
		"About": {
			reason: "The trade is with 0.9 whatever the journeys are told.", about: "0.9", told: "1.2", is: "v0.9.4",
			calls: []string{"status", "tests false"},
		},
		"AboutOther": {reason: "And with no other.", about: "0.9", told: "1.2", is: "v1.2.0", want: 1, calls: []string{"status"}},
		"AboutDown": {
			reason: "It brings up what it is about.", about: "0.9", told: "1.2", fails: "status",
			calls: []string{"status", "down", up09, "tests true", "down"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			root, err := filepath.EvalSymlinks(t.TempDir())
			if err != nil {
				t.Fatal(err)
			}
			in, lab, calls := filepath.Join(root, "test", "suite"), filepath.Join(root, "lab"), filepath.Join(root, "calls")
			script := "#!/bin/sh\necho \"$@\" >>" + calls + "\ncase \" " + tc.fails + " \" in *\" $1 \"*) exit 3;; esac\n"
			if err := errors.Join(os.MkdirAll(in, 0o755), os.Mkdir(filepath.Join(root, "bin"), 0o755), os.Mkdir(lab, 0o755),
				os.WriteFile(filepath.Join(root, "bin", "lab"), []byte(script), 0o755)); err != nil {
				t.Fatal(err)
			}
			if tc.is != "" {
				state := `{"artifacts": {"liqoVersion": "` + tc.is + `"}}`
				if err := os.WriteFile(filepath.Join(lab, "lab.json"), []byte(state), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			t.Chdir(in)
			t.Setenv("LIQO_BROKER_KUBERNETES", "v1.0")
			t.Setenv("LIQO_BROKER_LIQO", tc.told)
			t.Setenv("LIQO_BROKER_LAB", lab)
			run := func(_ context.Context, at string, brought bool) (int, error) {
				if at != root {
					t.Errorf("the repository is in %s, not in %s", at, root)
				}
				line := "tests false\n"
				if brought {
					line = "tests true\n"
				}
				before, err := os.ReadFile(calls)
				return tc.code, errors.Join(tc.err, err, os.WriteFile(calls, append(before, line...), 0o600))
			}
			s := Suite{Name: name, Liqo: tc.about, Up: []string{"--topology", "strangers"}, Run: run}
			if code := s.Main(); code != tc.want {
				t.Errorf("%s It exits with %d, want %d", tc.reason, code, tc.want)
			}
			called, err := os.ReadFile(calls)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.calls, strings.Split(strings.TrimSpace(string(called)), "\n")); diff != "" {
				t.Errorf("%s -want +got\n%s", tc.reason, diff)
			}
		})
	}
}
