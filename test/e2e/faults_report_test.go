// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

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
type faultReport struct {
	title string // Of the table: which Liqo the clusters run.
	lines []string
}

func (r *faultReport) add(result faultResult) {
	r.lines = append(r.lines, "| "+strings.Join(result.cells(), " | ")+" |")
}

// publish prints the table, and adds its lines to the file that the environment names, with the titles unless the last table there is of
// clusters that run that Liqo.
func (r *faultReport) publish(t *testing.T) {
	t.Helper()
	table := r.title + "\n\n| " + strings.Join(faultHeader(), " | ") + " |\n" + strings.Repeat("|---", len(faultHeader())) + "|\n"
	lines := strings.Join(r.lines, "\n") + "\n"
	t.Logf("what the client saw:\n%s%s", table, lines)
	path := os.Getenv("LIQO_BROKER_FAULT_REPORT")
	if path == "" {
		return
	}
	before, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	switch at := strings.LastIndex(string(before), titleOf("")); {
	case len(before) == 0:
		lines = table + lines
	case at < 0 || !strings.HasPrefix(string(before[at:]), r.title+"\n"):
		lines = "\n" + table + lines
	}
	file, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if _, err := file.WriteString(lines); err != nil {
		t.Fatal(err)
	}
}

// titleOf returns the title of a table of clusters that run a version of Liqo.
func titleOf(version string) string { return "With Liqo " + version }

// A chronicle is what changed while a part of the federation was away.
type chronicle struct {
	last  map[string]string
	lines []string
	next  time.Time // When the clusters are looked at again.
}

// note adds what something is, unless it was that before.
func (c *chronicle) note(at time.Time, what, is string) {
	if was, known := c.last[what]; !known || was != is {
		c.last[what] = is
		c.lines = append(c.lines, timeOfDay(at)+" "+what+": "+is)
	}
}

// look notes how the nodes and the tunnels of all clusters are, at most every 2 s. It is no error if one of them does not answer.
func (c *chronicle) look(ctx context.Context, at time.Time) {
	if at.Before(c.next) {
		return
	}
	c.next = at.Add(2 * time.Second)
	for _, each := range fed.Clusters() {
		of := " of cluster " + each.Name
		var nodes corev1.NodeList
		if err := each.List(ctx, &nodes); err != nil {
			c.note(at, "nodes"+of, err.Error())
		}
		for i := range nodes.Items {
			var is []string
			for _, condition := range nodes.Items[i].Status.Conditions {
				if condition.Type == corev1.NodeReady || condition.Type == corev1.NodeNetworkUnavailable {
					is = append(is, fmt.Sprintf("%s is %s (%s)", condition.Type, condition.Status, condition.Reason))
				}
			}
			c.note(at, "node "+nodes.Items[i].Name+of, strings.Join(is, ", "))
		}
		links, err := each.Liqo().Links(ctx)
		if err != nil {
			c.note(at, "tunnels"+of, err.Error())
		}
		for i := range links {
			if link := &links[i]; link.Negotiating != nil {
				c.note(at, "tunnel to "+string(link.Peer)+of, link.Negotiating.Error())
			} else {
				c.note(at, "tunnel to "+string(link.Peer)+of, fmt.Sprintf("connected %t", link.Connected))
			}
		}
	}
}

// tell prints what changed, and what the clusters show of their tunnels now, if the test has failed.
func (w *faultWatch) tell(t *testing.T) {
	t.Helper()
	if !t.Failed() {
		return
	}
	t.Logf("what changed, with the first look at each:\n%s", strings.Join(w.seen.lines, "\n"))
	ctx := context.WithoutCancel(t.Context())
	queries := [][]string{{"get", "pods", "--namespace=liqo", "--output=wide"}, {"get", "tunnelendpoints.net.liqo.io", "--all-namespaces"}}
	if !direct() {
		queries = [][]string{
			{"get", "pods", "--all-namespaces", "--selector=networking.liqo.io/component=gateway", "--output=wide"},
			{"get", "connections.networking.liqo.io", "--all-namespaces"},
		}
	}
	for _, c := range fed.Clusters() {
		for _, query := range queries {
			shown, err := c.Kubectl(ctx, query...)
			if err != nil {
				shown = err.Error()
			}
			t.Logf("%s: kubectl %s\n%s", c.Name, strings.Join(query, " "), shown)
		}
	}
}
