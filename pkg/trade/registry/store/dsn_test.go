// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package store

import (
	"net/url"
	"strings"
	"testing"
)

// TestPasswordIsNotTold breaks DSNs at many places.
func TestPasswordIsNotTold(t *testing.T) {
	const password = "hunter2-correct-horse"
	for reason, c := range map[string]struct{ dsn, want string }{
		"nobody listens":        {"postgres://user:" + password + "@127.0.0.1:1/db", "connection refused"},
		"not a port":            {"postgres://user:" + password + "@host:port/db", "the DSN is not a URL"},
		"a slash in it":         {"postgres://user:12/" + password + "@host/db", "the DSN is not a URL"},
		"a question mark in it": {"postgres://user:12?" + password + "@host/db", "the DSN is not a URL"},
		"a number sign in it":   {"postgres://user:12#" + password + "@host/db", "the DSN is not a URL"},
		"a bad escape in it":    {"postgres://user:%zz" + password + "@host/db", "the DSN is not a URL"},
		"an unknown mode":       {"postgres://user:" + password + "@host/db?sslmode=" + password, "sslmode is invalid"},
		"as a parameter":        {"postgres://user@host/db?sslmode=perhaps&password=" + password, "sslmode is invalid"},
		"a file that is absent": {"postgres://user:" + password + "@host/db?sslmode=verify-full&sslrootcert=/nowhere", "/nowhere"},
		"another database":      {"mysql://user:" + password + "@host/db", `must be "sqlite:FILE" or`},
		"no scheme":             {"user:" + password + "@host/db", `must be "sqlite:FILE" or`},
		"nothing":               {"", `must be "sqlite:FILE" or`},
		"no file":               {"sqlite:", "must name a file"},
		"memory":                {"sqlite::memory:", "must name a file"},
		"a zero byte":           {"sqlite:a\x00b", "zero byte"},
	} {
		s, err := Open(t.Context(), c.dsn)
		if err == nil {
			s.Close()
			t.Errorf("%s: opened", reason)
			continue
		}
		if strings.Contains(err.Error(), password) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %q, want %q", reason, err, c.want)
		}
	}
}

// FuzzDSN puts a password into a DSN as it is and as it should be, and breaks the rest.
func FuzzDSN(f *testing.F) {
	f.Add("p@ss/w:rd%", "host:5432/db")
	f.Add("12/34567890", "host/db?sslmode=nonsense")
	f.Add("a?b=c&d=efgh", "[::1]:x/db")
	f.Add("password=secret1", "/db?host=/tmp")
	f.Fuzz(func(t *testing.T, password, rest string) {
		password = "SECRET" + password + "TERCES"
		if strings.Contains(rest, "SECRET") || strings.Contains(rest, "TERCES") {
			t.Skip("the password would be found in the rest")
		}
		for _, dsn := range []string{
			"postgres://user:" + password + "@" + rest,
			"postgres://" + url.UserPassword("user", password).String() + "@" + rest,
			"postgres://host/db?password=" + url.QueryEscape(password) + "&sslmode=" + rest,
		} {
			place, err := parseDSN(dsn)
			var told string
			if err != nil {
				told = err.Error()
			} else {
				told = place.String()
			}
			if strings.Contains(told, "SECRET") || strings.Contains(told, "TERCES") {
				t.Errorf("DSN %q: told %q", dsn, told)
			}
		}
	})
}
