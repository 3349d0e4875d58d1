// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/xml"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/capacitorset/liqo-broker/pkg/promquery/promquerytest"
)

// samples are what a daemon with two providers tells.
const samples = `liqo_broker_build_info{program="broker",version="v0"} 1
liqo_broker_provider_ready{provider="a"} 1
liqo_broker_provider_ready{provider="b"} 1
liqo_broker_provider_info{provider="a",name="rome",state="Offering"} 1
liqo_broker_provider_info{provider="b",name="<b>",state="Offering"} 1
liqo_broker_provider_pods{provider="a",state="ready"} 3
liqo_broker_provider_pods{provider="b",state="ready"} 5
liqo_broker_providers{state="Offering"} 2
`

// TestPicture draws the overview from a real Prometheus.
func TestPicture(t *testing.T) {
	server := promquerytest.Start(t)
	server.Expose(samples)
	out := filepath.Join(t.TempDir(), "picture.svg")
	args := []string{
		"-prometheus", server.Address(), "-dashboard", "../../deploy/monitoring/dashboards/overview.json", "-out", out, "-range", "30s",
	}
	var picture string
	for deadline := time.Now().Add(30 * time.Second); !strings.Contains(picture, ">rome<"); time.Sleep(200 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("no pods of the provider are drawn:\n%s", picture)
		}
		if err := run(t.Context(), args, time.Now()); err != nil {
			picture = err.Error() // It starts.
			continue
		}
		text, err := os.ReadFile(out)
		if err != nil {
			t.Fatal(err)
		}
		picture = string(text)
	}
	decoder := xml.NewDecoder(strings.NewReader(picture))
	for {
		if _, err := decoder.Token(); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatalf("the picture is no XML: %v", err)
		}
	}
	for _, want := range []string{"Liqo broker: overview", ">Offering<", "<polyline", "No data", "&lt;b&gt;"} {
		if !strings.Contains(picture, want) {
			t.Errorf("the picture has no %q", want)
		}
	}

	// An error of the query is told.
	broken := filepath.Join(t.TempDir(), "broken.json")
	if err := os.WriteFile(broken, []byte(`{"panels":[{"title":"x","targets":[{"expr":"sum("}]}]}`), 0o600); err != nil {
		t.Fatal(err)
	}
	args[3] = broken
	if err := run(t.Context(), args, time.Now()); err == nil || !strings.Contains(err.Error(), "parse error") {
		t.Errorf("a query that does not parse: %v", err)
	}
}

func TestFormat(t *testing.T) {
	for want, of := range map[string]struct {
		value float64
		unit  string
	}{
		"1.5 GiB": {1.5 * (1 << 30), "bytes"}, "2.5 ms": {.0025, "s"}, "3 s": {3, "s"}, "Yes": {1, "bool_yes_no"}, "No": {0, "bool_yes_no"},
		"12": {12, "none"},
	} {
		if got := format(of.value, of.unit); got != want {
			t.Errorf("%v %s is %q, want %q", of.value, of.unit, got, want)
		}
	}
}
