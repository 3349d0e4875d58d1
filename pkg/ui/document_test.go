// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package ui_test

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"regexp"
	"strings"
	"testing"
)

// TestDocument makes a file of the page: what it has in it is what its policy lets run, and no text of the data is more than a text.
func TestDocument(t *testing.T) {
	const hostile = "</script><script>alert(1)</script><!--<script>\u2028&"
	data, err := json.Marshal(map[string]string{hostile: hostile})
	if err != nil {
		t.Fatal(err)
	}
	raw := []byte(`{"a":"` + strings.ReplaceAll(hostile, "\n", "") + `"}`) // JSON that others have made escapes nothing.
	for name, data := range map[string][]byte{"Escaped": data, "Raw": raw} {
		t.Run(name, func(t *testing.T) {
			text, err := page(t).Document(data)
			if err != nil {
				t.Fatal(err)
			}
			document := string(text)
			if !strings.Contains(document, "<html data-saved ") || strings.Contains(document, `src="`) || strings.Contains(document, "stylesheet") {
				t.Error("it is not marked, or needs other files")
			}
			blocks := regexp.MustCompile(`(?s)<(script|style)([^>]*)>(.*?)</(?:script|style)>`).FindAllStringSubmatch(document, -1)
			if len(blocks) != 3 || blocks[0][1] != "style" ||
				blocks[1][2] != ` type="application/json" id="data"` || blocks[2][2] != ` type="module"` {
				t.Fatalf("it has %d scripts and styles", len(blocks))
			}
			var want, got any
			if err := json.Unmarshal(data, &want); err != nil {
				t.Fatal(err)
			}
			if strings.Contains(blocks[1][3], "<") || json.Unmarshal([]byte(blocks[1][3]), &got) != nil {
				t.Errorf("its data are %q", blocks[1][3])
			}
			if first, second := mustJSON(t, want), mustJSON(t, got); first != second {
				t.Errorf("its data are %s, and not %s", second, first)
			}
			policy := regexp.MustCompile(`<meta http-equiv="Content-Security-Policy" content="([^"]+)">`).FindStringSubmatch(document)
			if policy == nil || strings.Index(document, policy[0]) > strings.Index(document, "<style>") {
				t.Fatal("it has no policy, or one that comes too late")
			}
			for _, rule := range []string{
				"default-src 'none'", "connect-src 'none'", "script-src '" + hash(blocks[2][3]) + "'", "style-src '" + hash(blocks[0][3]) + "'",
				"base-uri 'none'", "form-action 'none'", "trusted-types 'none'",
			} {
				if !strings.Contains(policy[1]+";", rule+";") {
					t.Errorf("its policy lacks %s: %s", rule, policy[1])
				}
			}
		})
	}
	if _, err := page(t).Document([]byte(`{"a":`)); err == nil {
		t.Error("what is no JSON is taken")
	}
	if answer, _ := ask(t, http.MethodGet, "/saved.js"); answer.Code != http.StatusNotFound {
		t.Error("a server sends the script of a file")
	}
}

func mustJSON(t *testing.T, value any) string {
	t.Helper()
	text, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func hash(text string) string {
	sum := sha256.Sum256([]byte(text))
	return "sha256-" + base64.StdEncoding.EncodeToString(sum[:])
}
