// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package v1

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestReclass(t *testing.T) {
	cases := map[string]struct{ reason, slice, want string }{
		"Default": {
			"Liqo itself would grant all of it.", `{"metadata": {"labels": {"liqo.io/replicated": "true"}}, "spec": {"class": "default"}}`,
			`{"metadata": {"labels": {"liqo.io/replicated": "true"}}, "spec": {"class": "liqo-broker"}}`,
		},
		"None": {
			"No class is Liqo's own.", `{"metadata": {"labels": {"liqo.io/replicated": "true"}}, "spec": {"csr": "YQ=="}}`,
			`{"metadata": {"labels": {"liqo.io/replicated": "true"}}, "spec": {"class": "liqo-broker", "csr": "YQ=="}}`,
		},
		"NoSpec": {
			"Nor is no spec.", `{"metadata": {"labels": {"liqo.io/replicated": "true"}}}`,
			`{"metadata": {"labels": {"liqo.io/replicated": "true"}}, "spec": {"class": "liqo-broker"}}`,
		},
		"Large": {
			"Numbers stay what they are.",
			`{"metadata": {"generation": 9007199254740993, "labels": {"liqo.io/replicated": "true"}}, "spec": {}}`,
			`{"metadata": {"generation": 9007199254740993, "labels": {"liqo.io/replicated": "true"}}, "spec": {"class": "liqo-broker"}}`,
		},
		"Broker":  {"It is for the broker.", `{"metadata": {"labels": {"liqo.io/replicated": "true"}}, "spec": {"class": "liqo-broker"}}`, ""},
		"Another": {"Somebody else answers.", `{"metadata": {"labels": {"liqo.io/replicated": "true"}}, "spec": {"class": "gold"}}`, ""},
		"Ours":    {"A provider answers it.", `{"metadata": {"labels": {"liqo.io/replication": "true"}}, "spec": {"class": "default"}}`, ""},
		"Replica": {"It says that it is no copy.", `{"metadata": {"labels": {"liqo.io/replicated": "false"}}, "spec": {}}`, ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := Reclass([]byte(tc.slice))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(content(t, tc.want), content(t, string(got))); diff != "" {
				t.Errorf("%s\nReclass(): -want +got\n%s", tc.reason, diff)
			}
		})
	}
	for _, broken := range []string{
		`{`, `{"metadata": {"labels": 1}}`, `{"metadata": {"labels": {"liqo.io/replicated": "true"}}, "spec": {"class": 1}}`,
	} {
		if got, err := Reclass([]byte(broken)); err == nil {
			t.Errorf("Reclass(%s) = %s", broken, got)
		}
	}
}

// content returns what JSON says, with all digits of its numbers.
func content(t *testing.T, text string) any {
	t.Helper()
	if text == "" {
		return nil
	}
	decoder := json.NewDecoder(strings.NewReader(text))
	decoder.UseNumber()
	var parsed any
	if err := decoder.Decode(&parsed); err != nil {
		t.Fatal(err)
	}
	return parsed
}
