// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/capacitorset/liqo-broker/pkg/trade/registry/registryv1"
	"github.com/capacitorset/liqo-broker/test/golden"
)

// TestAnswers compares the page with sample answers with what a registry answers in which one party has one offer.
func TestAnswers(t *testing.T) {
	r := run(t, newFileDSN(t), nil)
	seller, c := r.member(t, "milan")
	if _, err := c.Publish(t.Context(), seller.ID, "compute", seller.Offer(t, "compute", 1)); err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	out.WriteString("# Sample answers of a registry\n\n<!-- Written by make text. -->\n\n" +
		"What a registry answers a party, in which one has an offer. [The registry](../trade/registry.md) says who may ask, and " +
		"[registry.yaml](../api/registry.yaml)\nwhat each field is. IDs, keys and signatures are shortened here.\n")
	const offers = registryv1.Base + registryv1.PathOffers
	for _, path := range []string{
		registryv1.Base + registryv1.PathRegistry, registryv1.Base + "/parties/" + seller.ID, offers + "?documents=true", "/catalog",
		offers + "?limit=none",
	} {
		a := r.call(t, &seller.Key, http.MethodGet, path, "")
		var indented bytes.Buffer
		if err := json.Indent(&indented, bytes.TrimSpace([]byte(a.body)), "", "  "); err != nil {
			t.Fatalf("%s: %s (%v)", path, a.body, err)
		}
		answered := fmt.Sprintf("\n## GET %s\n\n%d %s, `%s`:\n\n```json\n%s\n```\n", path, a.status, http.StatusText(a.status),
			a.header.Get("Content-Type"), indented.String())
		for _, each := range ofAnyRun {
			answered = each.what.ReplaceAllString(answered, each.as)
		}
		out.WriteString(strings.ReplaceAll(strings.ReplaceAll(answered, seller.ID, "PARTY"), r.address, "registry.example:8443"))
	}
	golden.Check(t, filepath.Join("..", "..", "..", "..", "..", "docs", "reference", "registry-answers.md"), out.String())
}

// ofAnyRun is what is otherwise in each run, and what stands for it.
var ofAnyRun = []struct {
	what *regexp.Regexp
	as   string
}{
	{regexp.MustCompile(`"\d{4}-\d\d-\d\dT[\d:.]+Z"`), `"2026-11-01T10:00:00Z"`},
	{regexp.MustCompile(`"created": 1\d{9}`), `"created": 1793527200`},
	{regexp.MustCompile(`"epoch": "\w+"`), `"epoch": "EPOCH"`},
	{regexp.MustCompile(`"eyJ[\w.-]+"`), `"eyJ..."`},
}
