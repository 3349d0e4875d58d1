// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/capacitorset/liqo-broker/test/federation"
)

// A faultResult is a line of the report.
type faultResult struct {
	fault  string
	lasted time.Duration
	// How the pods answered from the beginning of the fault until all was as before: at the addresses that they had, and at those
	// that they got meanwhile, and behind their Service.
	direct, relay, moved, service federation.Answers
	// fewest is how many pods the consumer showed as ready, at least.
	fewest int
	// healed is how long it took from the end of the fault until all was as before.
	healed time.Duration
	// tunnelLost is when the consumer's tunnel to provider-a was lost, from the beginning of the fault, and relayed when after that
	// the pods there had relay addresses. Negative if that did not happen.
	tunnelLost, relayed time.Duration
}

func (r faultResult) cells() []string {
	answers := func(a federation.Answers) string {
		if a.Requests == 0 {
			return "-"
		}
		return fmt.Sprintf("%d / %d / %.1f s", a.Requests, a.Errors, a.Gap.Seconds())
	}
	follow := "-"
	if r.tunnelLost >= 0 {
		follow = fmt.Sprintf("lost at %.0f s", r.tunnelLost.Seconds())
		if r.relayed >= 0 {
			follow += fmt.Sprintf(", relay %.1f s later", r.relayed.Seconds())
		}
	}
	return []string{
		r.fault, fmt.Sprintf("%.0f s", r.lasted.Seconds()), answers(r.direct), answers(r.relay), answers(r.moved), answers(r.service),
		fmt.Sprint(r.direct.Wrong + r.relay.Wrong + r.moved.Wrong), fmt.Sprintf("%d of %d", r.fewest, faultReplicas), follow,
		fmt.Sprintf("%.1f s", r.healed.Seconds()),
	}
}

// faultHeader are the titles of the cells. The KPIs of a path are: requests, those without an answer, and the longest time without
// any answer of one and the same pod.
func faultHeader() []string {
	return []string{"fault", "for", "direct", "relay", "new addresses", "Service", "wrong", "ready", "tunnel to provider-a", "healed after"}
}

// A faultReport is the table of a run.
type faultReport struct{ lines []string }

func (r *faultReport) add(result faultResult) {
	r.lines = append(r.lines, "| "+strings.Join(result.cells(), " | ")+" |")
}

// publish prints the table, and adds its lines to the file that the environment names; a file that is not there gets the titles first.
func (r *faultReport) publish(t *testing.T) {
	t.Helper()
	header := "| " + strings.Join(faultHeader(), " | ") + " |\n" + strings.Repeat("|---", len(faultHeader())) + "|\n"
	lines := strings.Join(r.lines, "\n") + "\n"
	t.Logf("what the client saw:\n%s%s", header, lines)
	path := os.Getenv("LIQO_BROKER_FAULT_REPORT")
	if path == "" {
		return
	}
	file, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if at, err := file.Stat(); err == nil && at.Size() == 0 {
		lines = header + lines
	}
	if _, err := file.WriteString(lines); err != nil {
		t.Fatal(err)
	}
}
