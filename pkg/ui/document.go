// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package ui

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
)

// alone is what a browser lets a page do that is a file: run the script and show the style that it has, which have these hashes, and ask
// nobody for anything.
const alone = "default-src 'none'; script-src '%s'; style-src '%s'; connect-src 'none'; img-src data:; base-uri 'none'; " +
	"form-action 'none'; require-trusted-types-for 'script'; trusted-types 'none'"

// Document returns the page as one document that needs no server, and shows data, which must be JSON. Texts in the data cannot become
// elements of the document.
func (p *Page) Document(data []byte) ([]byte, error) {
	// json.Marshal writes < > and & of what is JSON already as escapes of JSON.
	text, err := json.Marshal(json.RawMessage(data))
	if err != nil {
		return nil, fmt.Errorf("write the data of the page: %w", err)
	}
	script, style, licences := p.saved, p.files["/app.css"].unpacked, p.files["/licences.txt"].unpacked
	for name, of := range map[string]struct {
		text []byte
		ends []string
	}{
		"script": {script, []string{"</script", "<!--", "<script"}}, "style": {style, []string{"</style", "<!--"}},
		"licences": {licences, []string{"--", "<"}},
	} {
		for _, end := range of.ends {
			if bytes.Contains(bytes.ToLower(of.text), []byte(end)) || len(of.text) == 0 {
				return nil, fmt.Errorf("the %s of the page cannot be within a document: it is empty, or has %q", name, end)
			}
		}
	}

	// What the document of a server names is in this one.
	rest := string(p.files["/index.html"].unpacked)
	var out bytes.Buffer
	for _, part := range []struct{ before, instead string }{
		{"<html ", "<!--\n" + string(licences) + "-->\n<html data-saved "},
		{"<meta name=\"viewport\"", fmt.Sprintf("<meta http-equiv=\"Content-Security-Policy\" content=\"%s\">\n<meta name=\"viewport\"",
			fmt.Sprintf(alone, hashOf(script), hashOf(style)))},
		{"<link rel=\"stylesheet\" href=\"app.css\">", "<style>" + string(style) + "</style>"},
		{
			"<script type=\"module\" src=\"app.js\"></script>",
			"<script type=\"application/json\" id=\"data\">" + string(text) + "</script>\n<script type=\"module\">" + string(script) + "</script>",
		},
	} {
		before, after, found := strings.Cut(rest, part.before)
		if !found {
			return nil, fmt.Errorf("the document of the page has no %q", part.before)
		}
		out.WriteString(before)
		out.WriteString(part.instead)
		rest = after
	}
	out.WriteString(rest)
	return out.Bytes(), nil
}

// hashOf returns the hash by which a policy lets a text of the document be what it is.
func hashOf(text []byte) string {
	sum := sha256.Sum256(text)
	return "sha256-" + base64.StdEncoding.EncodeToString(sum[:])
}
