// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package docs_test

import (
	"cmp"
	"maps"
	"regexp"
	"strings"
	"testing"

	"github.com/capacitorset/liqo-broker/test/docs"
)

// runBy says of commands in the running text of the pages about trading, by how they begin, which test runs them, or why none does. What is
// part of a block that is run needs no word.
var runBy = map[string]struct{ test, reason string }{
	"kubectl liqo-broker offers --output wide":                {test: "TestTraders"},
	"kubectl liqo-broker contracts --output wide":             {test: "TestTraders"},
	"kubectl get sales --output wide":                         {test: "TestTraders"},
	"kubectl patch sale SALE":                                 {test: "TestTraders"},
	"kubectl delete purchase render":                          {test: "TestTraders"},
	"kubectl delete deployments":                              {test: "TestTraders"},
	"kubectl delete nodes":                                    {test: "TestTraders"},
	"kubectl -n liqo rollout restart deployment liqo-gateway": {test: "TestTraders"},
	"kubectl get resourcerequests --all-namespaces":           {test: "TestTraders"},
	"registry fingerprint":                                    {test: "TestOperator"},
	"registry serve --mdns":                                   {reason: "TestLocal, TestLoopback and TestMulticast announce and find"},
	"registry join URL":                                       {reason: "TestJoin joins by a URL, with and without a fingerprint"},
	"registry migrate":                                        {test: "TestOperator"},
	"registry parties drop --pending":                         {test: "TestOperator"},
	"--set broker=true,guard.enabled=false":                   {test: "TestConnectorSwitches"},
	"--set replicas=2,postgres.existingSecret=":               {test: "TestChartEqualsKustomize"},
	"kubectl delete namespace liqo-broker-connector": {
		reason: "kubectl delete -k deploy/connector removes it too, which TestTraders runs at the seller",
	},
	"helm uninstall liqo-broker-registry": {
		reason: "no journey installs the registry by Helm: the block that does says who tests the chart",
	},
	"kubectl patch purchase NAME --type merge --patch": {reason: "the tests of package requests change spec.renew"},
	"kubectl drain":                                     {reason: "it is named, without the node that it needs"},
	"liqoctl generate peer-command":                     {reason: "it is said what its answer is no good for"},
	"go test -run TestWorlds ./pkg/trade/core/contract": {reason: "make test runs it, with all tests"},
}

// TestInlineCommandsAreRun holds that each command in the running text of a page about trading, as in its blocks, is run by a test, or that
// it is said why not.
func TestInlineCommandsAreRun(t *testing.T) {
	in := functions(t, "test/trade/*_test.go")
	maps.Copy(in, functions(t, "test/chart/*_test.go"))
	targets := matches(t, `(?m)^([a-z0-9/-]+):`, "Makefile")
	pages, err := docs.Pages(root)
	if err != nil {
		t.Fatal(err)
	}
	// What is run is taken as one text.
	var run strings.Builder
	run.WriteString(" ")
	for page, text := range pages {
		blocks, err := docs.Commands(page, text)
		if err != nil {
			t.Fatal(err)
		}
		for _, b := range blocks {
			if len(b.On) > 0 {
				run.WriteString(strings.Join(strings.Fields(b.Text), " ") + " ")
			}
		}
	}
	var commands []docs.Block
	used := map[string]bool{}
	runByTest := func(b docs.Block) string {
		for begins := range runBy {
			if strings.HasPrefix(b.Text, begins) {
				return begins
			}
		}
		return ""
	}
	for page, text := range pages {
		if !strings.HasPrefix(page, "docs/trade/") {
			continue
		}
		found, err := docs.Inline(page, text)
		if err != nil {
			t.Fatal(err)
		}
		for _, b := range found {
			begins := runByTest(b)
			who := runBy[begins]
			used[begins] = true
			switch literal := strings.TrimPrefix(begins, "--set "); {
			case begins == "":
				commands = append(commands, b)
			case (who.test == "") == (who.reason == ""):
				t.Errorf("%q: either a test runs it, or there is a reason", begins)
			case who.test != "" && !strings.Contains(in[who.test], `"`+literal):
				t.Errorf("%s: %s does not run %q", b, who.test, begins)
			case who.test != "":
				run.WriteString(b.Text + " ")
			}
		}
	}
	makes := regexp.MustCompile(`^make ([a-z0-9/-]+)$`)
	for _, b := range commands {
		if target := makes.FindStringSubmatch(b.Text); target != nil && targets[target[1]] {
			continue
		}
		if !strings.Contains(run.String(), " "+b.Text+" ") {
			t.Errorf("%s: no test runs %q, and nothing says why not", b, b.Text)
		}
	}
	for begins := range runBy {
		if !used[begins] {
			t.Errorf("no page has a command that begins with %q", cmp.Or(begins, "nothing"))
		}
	}
	if len(commands) < 10 {
		t.Errorf("only %d commands stand in the running text", len(commands))
	}
}
