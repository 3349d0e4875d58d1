// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package docs_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/capacitorset/liqo-broker/test/docs"
)

const page = "# A page\n" + `
<!-- run on broker -->

    kubectl get providers
    # a comment

    kubectl get consumers

Text.

    $ kubectl liqo-broker providers mi
    error: a session

 1. An item:

    <!-- run on consumer in TestX -->

        a=$(kubectl get nodes)
        if true; then
            echo "$a"
        fi

    more of the item, which is no block:
    kubectl get nothing

<!-- not run: it needs the internet -->

    helm repo add liqo https://example.org

<!-- run on broker -->

This sentence is between the comment and the block.

    kubectl get policies

<!-- commands run on provider, consumer -->

` + "```sh\nkubectl get pods\n```\n\n<!-- prints -->\n\n```text\nNAME   READY\nkubectl get pods\n```\n" + `
    {"kubectl": "get nodes"}

<!-- commands not run: it is about kind -->

    kind: Cluster

    kind create cluster

` + "```text\nkubectl get pods\n```\n"

func TestCommands(t *testing.T) {
	got, err := docs.Commands("page.md", page)
	if err != nil {
		t.Fatal(err)
	}
	want := []docs.Block{
		{Page: "page.md", Line: 5, On: []string{"broker"}, Text: "kubectl get providers\n# a comment\n\nkubectl get consumers\n"},
		{Page: "page.md", Line: 19, On: []string{"consumer"}, In: "TestX", Text: "a=$(kubectl get nodes)\nif true; then\n    echo \"$a\"\nfi\n"},
		{Page: "page.md", Line: 29, Reason: "it needs the internet", Text: "helm repo add liqo https://example.org\n"},
		{Page: "page.md", Line: 35, Text: "kubectl get policies\n"},
		{Page: "page.md", Line: 40, On: []string{"provider", "consumer"}, Text: "kubectl get pods\n", Prints: "NAME   READY\nkubectl get pods\n"},
		{Page: "page.md", Line: 54, Reason: "it is about kind", Text: "kind: Cluster\n\nkind create cluster\n"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("Commands(): -want +got\n%s", diff)
	}
	for _, comment := range []string{"run at broker", "run on broker consumer", "run on broker in install", "prints -->\n\nText.\n\n<!-- "} {
		if _, err := docs.Commands("page.md", "<!-- "+comment+" -->\n"); err == nil || !strings.Contains(err.Error(), "page.md:") {
			t.Errorf("%q cannot be understood: error %v", comment, err)
		}
	}
}

// TestReader reads what is for one function, in its order, and nothing else.
func TestReader(t *testing.T) {
	repository := t.TempDir()
	text := "<!-- commands run on broker in TestX -->\n\n    kubectl get NODE\n\n<!-- prints -->\n\n    [broker] kubectl get 1-2\n\nText.\n" +
		"\n    kubectl get pods\n\n<!-- run on broker -->\n\n    kubectl get jobs\n\nText.\n\n    kubectl get secrets\n"
	if err := os.WriteFile(filepath.Join(repository, "page.md"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	blocks, err := docs.Read(repository, "page.md", "TestX")
	if err != nil || len(blocks) != 3 {
		t.Fatalf("Read(): %v, %v", blocks, err)
	}
	r := &docs.Reader{Blocks: blocks, Values: map[string]string{"NODE": "nodes"}, Run: func(
		_ context.Context, b docs.Block, script string,
	) (string, error) {
		return fmt.Sprint(b.On, " ", script), nil
	}}
	if got, err := r.Next(t.Context(), "kubectl get nodes"); err == nil || got != "" {
		t.Errorf("a block that is another one: %q, %v", got, err)
	}
	if got, err := r.Next(t.Context(), "kubectl get NODE"); got != "[broker] kubectl get nodes\n" || err != nil {
		t.Errorf("Next(): %q, %v", got, err)
	}
	if err := errors.Join(r.Skip("kubectl get pods"), r.End()); err == nil || !strings.Contains(err.Error(), "kubectl get secrets") {
		t.Errorf("a block is left: %v", err)
	}
	r.Blocks[0].Prints = "[consumer] kubectl 1-2 3\n"
	if got, err := r.Next(t.Context(), ""); got != "[broker] kubectl get secrets\n" || err == nil ||
		!strings.Contains(err.Error(), "otherwise") || r.End() != nil {
		t.Errorf("Next(): %q, %v, %v", got, err, r.End())
	}
	if _, err := r.Next(t.Context(), "kubectl"); err == nil {
		t.Error("there is one block more than the page has")
	}
}

// TestInstead runs a block of one page in the place of the same one of another page, and no other one.
func TestInstead(t *testing.T) {
	block := func(on, text string) docs.Block {
		return docs.Block{Page: on + ".md", Line: 1, On: []string{on}, Text: text}
	}
	reader := func(blocks ...docs.Block) *docs.Reader {
		return &docs.Reader{Blocks: blocks, Run: func(_ context.Context, b docs.Block, _ string) (string, error) { return b.Page, nil }}
	}
	pods, nodes := "kubectl get pods\n", "kubectl get nodes\n"
	for name, tc := range map[string]struct {
		own, other docs.Block
		want       string
	}{
		"Same":          {block("broker", pods), docs.Block{Page: "other.md", On: []string{"broker"}, Text: pods}, ""},
		"OtherCommand":  {block("broker", nodes), block("broker", pods), "is not the same"},
		"OtherCluster":  {block("consumer", pods), block("broker", pods), "is not the same"},
		"OtherExpected": {block("broker", nodes), block("broker", nodes), "was to come"},
	} {
		t.Run(name, func(t *testing.T) {
			r, of := reader(tc.own), reader(tc.other)
			out, err := r.Instead(t.Context(), of, "kubectl get pods")
			if tc.want == "" {
				if out != tc.own.Page || err != nil || len(r.Blocks)+len(of.Blocks) > 0 {
					t.Errorf("Instead(): %q, %v; %v and %v are left", out, err, r.Blocks, of.Blocks)
				}
			} else if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("Instead(): error %v, want %q", err, tc.want)
			}
		})
	}
}

// TestShape compares what is printed with samples: numbers and names of a day do not count, words and columns do.
func TestShape(t *testing.T) {
	const sample = `
On cluster rome (33aa2f60-…): broker
...
POD        RUNS ON      PATH
web-1-ab   provider-a   direct
web-1-cd   provider-b   relay

The Service answered 20 of 20 requests.
`
	const printed = "[1/2] kinds\nOn cluster rome (1-2): broker\nwarning: slow\n\nPOD      RUNS ON   PATH\nshop-x   oslo      relay\n" +
		"The Service answered 3 of 4 requests.\nmore\n"
	for name, tc := range map[string]struct{ from, to, want string }{
		"Same":     {"", "", ""},
		"Word":     {"answered", "heard", "The Service answered"},
		"Line":     {"The Service answered 3 of 4 requests.\n", "", "The Service answered"},
		"Column":   {"RUNS ON", "NODE", "RUNS ON"},
		"Cell":     {"oslo ", "  ", "3 cells"},
		"NoRow":    {"shop-x   oslo      relay\n", "", "3 cells"},
		"NoHead":   {"POD      RUNS ON   PATH\n", "", "POD"},
		"OneWord":  {"requests.", "requests, late.", "The Service answered"},
		"Order":    {"On cluster rome (1-2): broker\n", "", "On cluster"},
		"MoreRows": {"shop-x ", "shop-w   milan   relay\nshop-x ", ""},
	} {
		t.Run(name, func(t *testing.T) {
			if tc.from != "" && !strings.Contains(printed, tc.from) {
				t.Fatalf("nothing is changed: %q", tc.from)
			}
			err := docs.Shape(sample, strings.Replace(printed, tc.from, tc.to, 1))
			if tc.want == "" && err != nil || tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)) {
				t.Errorf("Shape(): error %v, want %q", err, tc.want)
			}
		})
	}
}

// TestSaid runs commands in running text and in tables.
func TestSaid(t *testing.T) {
	repository := t.TempDir()
	text := "Run `kubectl get pods --namespace\nNAMESPACE`, or `registry`, `--set a=b`.\n\n| what | how |\n|---|---|\n| all | `kubectl get " +
		"nodes` and `kubectl get nodes` |\n\n    kubectl get jobs\n\n`kubectl get jobs --watch` and `kubectl get jobs`\n"
	if err := os.WriteFile(filepath.Join(repository, "page.md"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	inline, err := docs.ReadInline(repository, "page.md")
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, b := range inline {
		got = append(got, fmt.Sprint(b, " ", b.Text))
	}
	want := []string{
		"page.md:1 kubectl get pods --namespace NAMESPACE", "page.md:2 --set a=b", "page.md:6 kubectl get nodes", "page.md:6 kubectl get nodes",
		"page.md:10 kubectl get jobs --watch", "page.md:10 kubectl get jobs",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("ReadInline(): -want +got\n%s", diff)
	}
	r := &docs.Reader{Inline: inline, Values: map[string]string{"NAMESPACE": "shop"}, Run: func(
		_ context.Context, b docs.Block, script string,
	) (string, error) {
		return fmt.Sprint(b.On, " ", script), nil
	}}
	if got, err := r.Said(t.Context(), "broker", "kubectl get pods"); got != "[broker] kubectl get pods --namespace shop\n" || err != nil {
		t.Errorf("Said(): %q, %v", got, err)
	}
	if got, err := r.Said(t.Context(), "broker", "kubectl get nodes"); got != "[broker] kubectl get nodes\n" || err != nil {
		t.Errorf("what is there twice: %q, %v", got, err)
	}
	for _, command := range []string{"kubectl get jobs", "kubectl delete"} {
		if got, err := r.Said(t.Context(), "broker", command); err == nil || got != "" {
			t.Errorf("%q, which is several or none: %q, %v", command, got, err)
		}
	}
}

func TestFill(t *testing.T) {
	b := docs.Block{Page: "page.md", Line: 1, Text: "kubectl get provider PROVIDER_ID PROVIDER -n NAMESPACE $POD_IP\n"}
	got, err := b.Fill(map[string]string{"PROVIDER_ID": "id", "PROVIDER": "name", "NAMESPACE": "shop"})
	if want := "kubectl get provider id name -n shop $POD_IP\n"; got != want || err != nil {
		t.Errorf("Fill(): %q, %v, want %q", got, err, want)
	}
	if _, err := b.Fill(nil); err == nil || !strings.Contains(err.Error(), "NAMESPACE") {
		t.Errorf("Fill() without values: %v", err)
	}
}

// TestShell runs scripts that share variables and a program in the background, and one that fails.
func TestShell(t *testing.T) {
	s, err := docs.NewShell(t.Context(), t.TempDir(), t.TempDir(), "MORE=more")
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}()
	for _, tc := range []struct{ script, want string }{
		{"x=1\nsleep 1000 &\n", ""},
		{"echo $x $WHERE $MORE\necho error >&2\n", "1 there more\nerror\n"},
	} {
		if got, err := s.Run("WHERE", "there", tc.script); got != tc.want || err != nil {
			t.Errorf("%q: %q, %v, want %q", tc.script, got, err, tc.want)
		}
	}
	if got, err := s.Run("WHERE", "there", "echo before\nfalse | true\necho after\n"); err == nil || got != "before\n" {
		t.Errorf("a script that fails: %q, %v", got, err)
	}
}
