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
	const up = "up --kubernetes v1.0 --liqo 1.2 --topology strangers"
	for name, tc := range map[string]struct {
		reason string
		// fails are the commands of the lab that fail.
		fails string
		code  int
		err   error
		want  int
		calls []string
	}{
		"IsUp":       {"Whose lab it is keeps it.", "-", 0, nil, 0, []string{"status", "tests false"}},
		"IsUpFails":  {"Also when tests fail.", "-", 2, nil, 2, []string{"status", "tests false"}},
		"IsDown":     {"What was brought up is removed.", "status", 0, nil, 0, []string{"status", "down", up, "tests true", "down"}},
		"Fails":      {"What failed stays.", "status", 1, nil, 1, []string{"status", "down", up, "tests true"}},
		"Breaks":     {"So does what has no code.", "status", 0, errors.New("no broker"), 1, []string{"status", "down", up, "tests true"}},
		"NotUp":      {"There is nothing to test.", "status up", 0, nil, 1, []string{"status", "down", up}},
		"NotRemoved": {"It is not brought up on the ruins of another one.", "status down", 0, nil, 1, []string{"status", "down"}},
	} {
		t.Run(name, func(t *testing.T) {
			root, err := filepath.EvalSymlinks(t.TempDir())
			if err != nil {
				t.Fatal(err)
			}
			in, calls := filepath.Join(root, "test", "suite"), filepath.Join(root, "calls")
			script := "#!/bin/sh\necho \"$@\" >>" + calls + "\ncase \" " + tc.fails + " \" in *\" $1 \"*) exit 3;; esac\n"
			if err := errors.Join(os.MkdirAll(in, 0o755), os.Mkdir(filepath.Join(root, "bin"), 0o755),
				os.WriteFile(filepath.Join(root, "bin", "lab"), []byte(script), 0o755)); err != nil {
				t.Fatal(err)
			}
			t.Chdir(in)
			t.Setenv("LIQO_BROKER_KUBERNETES", "v1.0")
			t.Setenv("LIQO_BROKER_LIQO", "1.2")
			s := Suite{Name: name, Up: []string{"--topology", "strangers"}, Run: func(_ context.Context, at string, brought bool) (int, error) {
				if at != root {
					t.Errorf("the repository is in %s, not in %s", at, root)
				}
				line := "tests false\n"
				if brought {
					line = "tests true\n"
				}
				before, err := os.ReadFile(calls)
				return tc.code, errors.Join(tc.err, err, os.WriteFile(calls, append(before, line...), 0o600))
			}}
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
