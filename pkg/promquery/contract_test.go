// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package promquery

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/capacitorset/liqo-broker/pkg/promquery/promquerytest"
)

// backend is a server with one exporter that it asks for metrics.
type backend interface {
	Address() string
	// Expose lets the exporter show some metrics; none at all if it is to be down.
	Expose(metrics string)
	Stop()
}

// TestContract asks the fake and a real Prometheus the same.
func TestContract(t *testing.T) {
	for name, start := range map[string]func(*testing.T) backend{"Fake": newFake, "Prometheus": newReal} {
		t.Run(name, func(t *testing.T) { contract(t, start(t)) })
	}
}

func contract(t *testing.T, b backend) {
	t.Helper()
	c, err := New(Config{URL: b.Address(), Timeout: 10 * time.Second})
	if err != nil {
		t.Fatalf("New(): %v", err)
	}
	ask := func(query string) string {
		samples, err := c.Query(t.Context(), query)
		for _, kind := range []error{ErrNone, ErrUnavailable, ErrRefused, ErrAnswer} {
			if errors.Is(err, kind) {
				return kind.Error()
			}
		}
		if err != nil {
			t.Errorf("query %q: %v", query, err)
		}
		var lines []string
		for _, s := range samples {
			if age := time.Since(s.At).Abs(); age > time.Minute {
				t.Errorf("query %q: evaluated %s ago", query, age)
			}
			lines = append(lines, fmt.Sprintf("%s%v", s.Labels["path"], s.Value))
		}
		return strings.Join(lines, " ")
	}
	eventually := func(want string) {
		t.Helper()
		for end := time.Now().Add(20 * time.Second); ; {
			got := ask("delay")
			if got == want {
				return
			}
			if time.Now().After(end) {
				t.Fatalf("the delay is %s, want %q", got, want)
			}
			select {
			case <-t.Context().Done():
			case <-time.After(100 * time.Millisecond):
			}
		}
	}

	b.Expose("delay{path=\"a\"} 120.5\ndelay{path=\"b\"} NaN\nlimit{path=\"a\"} +Inf\nlimit{path=\"b\"} 1\n")
	eventually("a120.5 bNaN")
	for query, want := range map[string]string{
		"limit":              "a+Inf b1",
		"nothing":            "",
		"42":                 "42",
		"NaN":                "NaN",
		"delay[1m]":          ErrAnswer.Error(),
		`"text"`:             ErrAnswer.Error(),
		"delay{":             ErrRefused.Error(),
		"delay + on() limit": ErrRefused.Error(), // It matches more than one with more than one.
	} {
		if got := ask(query); got != want {
			t.Errorf("query %q: %s, want %q", query, got, want)
		}
	}
	b.Expose("delay{path=\"a\"} 80\n")
	eventually("a80")
	b.Expose("") // A value of an exporter that is down is not kept.
	eventually("")
	b.Stop()
	eventually(ErrUnavailable.Error())
}

func newReal(t *testing.T) backend {
	t.Helper()
	return promquerytest.Start(t)
}

// TestNone asks where there is nobody.
func TestNone(t *testing.T) {
	if _, err := (None{}).Query(t.Context(), "1"); !errors.Is(err, ErrNone) {
		t.Errorf("error %v, want %v", err, ErrNone)
	}
}
