// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package arch

import (
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/capacitorset/liqo-broker/test/docs"
)

// TestDocumentsNameWhatIsThere checks the paths and the tests that the documents of developers name.
func TestDocumentsNameWhatIsThere(t *testing.T) {
	tests := map[string]bool{}
	for file, source := range goFiles(t) {
		if !strings.HasSuffix(file, "_test.go") {
			continue
		}
		for _, found := range regexp.MustCompile(`(?m)^func ((?:Test|Fuzz)\w+)\(`).FindAllStringSubmatch(source.text, -1) {
			tests[found[1]] = true
		}
	}
	paths := regexp.MustCompile("`((?:pkg|cmd|test|deploy|patches|build|docs)/[A-Za-z0-9_./-]*)")
	names := regexp.MustCompile("`((?:Test|Fuzz)[A-Z]\\w*)`")
	for _, page := range []string{"ARCHITECTURE.md", "CONTRIBUTING.md", "README.md"} {
		text, err := os.ReadFile(filepath.Join(root, page))
		if err != nil {
			t.Fatal(err)
		}
		for _, found := range paths.FindAllStringSubmatch(string(text), -1) {
			if _, err := os.Stat(filepath.Join(root, found[1])); err != nil && !strings.Contains(found[1], "NAME") {
				t.Errorf("%s names %s: %v", page, found[1], err)
			}
		}
		for _, found := range names.FindAllStringSubmatch(string(text), -1) {
			if !tests[found[1]] {
				t.Errorf("%s names %s, which no test is called", page, found[1])
			}
		}
	}
}

// TestPolicyExamplesAreFiles compares the policies that the page about placement shows with the files that people apply.
func TestPolicyExamplesAreFiles(t *testing.T) {
	page, err := os.ReadFile(filepath.Join(root, "docs/placement/README.md"))
	if err != nil {
		t.Fatal(err)
	}
	const want, folder = 3, "deploy/examples/placementpolicies"
	files, err := os.ReadDir(filepath.Join(root, folder))
	if err != nil {
		t.Fatal(err)
	}
	shown := 0
	for _, file := range files {
		manifest, err := os.ReadFile(filepath.Join(root, folder, file.Name()))
		if err != nil {
			t.Fatal(err)
		}
		_, object, found := strings.Cut(string(manifest), "apiVersion:")
		if !found {
			t.Fatalf("%s has no apiVersion", file.Name())
		}
		object = strings.TrimSpace("apiVersion:" + object)
		if strings.Contains(string(page), "    "+strings.ReplaceAll(object, "\n", "\n    ")+"\n\n") {
			shown++
		}
	}
	if blocks := strings.Count(string(page), "    kind: PlacementPolicy\n"); shown != blocks || shown != want {
		t.Errorf("docs/placement/README.md shows %d policies, of which %d are files; want %d", blocks, shown, want)
	}
}

// TestRoadmapIsAhead holds that the roadmap names nothing that has come: what is next is what another page says is missing, or has no page.
func TestRoadmapIsAhead(t *testing.T) {
	pages, err := docs.Pages(root)
	if err != nil {
		t.Fatal(err)
	}
	missing := map[string]bool{
		"Liqo 1.x": strings.Contains(pages["docs/compatibility.md"], "**Liqo 1.x: no trade, no direct traffic yet.**"),
	}
	rows := regexp.MustCompile(`(?m)^\| (Liqo 1\.x)?.*\|$`).FindAllStringSubmatch(pages["ROADMAP.md"], -1)
	for _, row := range rows[min(1, len(rows)):] {
		if !missing[row[1]] {
			t.Errorf("ROADMAP.md names what has come, or what this test does not know: %s", row[0])
		}
	}
	if len(rows) != 1+len(missing) {
		t.Errorf("ROADMAP.md has %d rows", len(rows))
	}
}

// TestGlossaryIsUsed holds that the words which users find explained are those that they read: each stands on another page of theirs.
func TestGlossaryIsUsed(t *testing.T) {
	pages, err := docs.Pages(root)
	if err != nil {
		t.Fatal(err)
	}
	const glossary = "docs/glossary.md"
	explained := map[string]bool{}
	for _, row := range regexp.MustCompile(`(?m)^\| ([^|]+) \| .+ \|$`).FindAllStringSubmatch(pages[glossary], -1) {
		word := row[1]
		if word == "word" {
			continue
		}
		if explained[word] {
			t.Errorf("%s explains %s twice", glossary, word)
		}
		explained[word] = true
		read := regexp.MustCompile(`(?i)\b` + regexp.QuoteMeta(word))
		used := false
		for page, text := range pages {
			used = used || page != glossary && strings.HasPrefix(page, "docs/") && read.MatchString(text)
		}
		if !used {
			t.Errorf("%s explains %s, which no page says", glossary, word)
		}
	}
	if len(explained) < 20 {
		t.Errorf("%s explains %d words", glossary, len(explained))
	}
}

// TestLinksLeadSomewhere follows every relative link of every page of the repository, to the file and to the heading in it.
func TestLinksLeadSomewhere(t *testing.T) {
	pages, err := docs.Pages(root)
	if err != nil {
		t.Fatal(err)
	}
	followed := 0
	for page, text := range pages {
		for _, link := range relativeLinks(text) {
			followed++
			path, anchor, _ := strings.Cut(link, "#")
			target := page
			if path != "" {
				target = filepath.Join(filepath.Dir(page), path)
			}
			if _, err := os.Stat(filepath.Join(root, target)); err != nil {
				t.Errorf("%s links to %s: %v", page, link, err)
				continue
			}
			if anchor != "" && filepath.Ext(target) == ".md" && !anchors(pages[target])[anchor] {
				t.Errorf("%s links to %s: %s has no such heading", page, link, target)
			}
		}
	}
	if followed < 100 {
		t.Errorf("all pages have %d links", followed)
	}
}

var (
	// What fence and span find shows a text as it is, and has no links.
	fence   = regexp.MustCompile("(?ms)^[ ]*```.*?^[ ]*```[ ]*$")
	span    = regexp.MustCompile("`[^`\n]+`")
	link    = regexp.MustCompile(`\]\(([^()\s]+)\)`)
	heading = regexp.MustCompile(`(?m)^#{1,6} +(.+?)\s*$`)
	named   = regexp.MustCompile(`<a (?:name|id)="([^"]+)"`)
	// In the name of a heading, a link is its text, and mute characters are left out.
	linked = regexp.MustCompile(`\[([^\]]*)\]\([^)]*\)`)
	mute   = regexp.MustCompile(`[^\p{L}\p{N} _-]`)
)

// relativeLinks returns the links of a page that lead into the repository.
func relativeLinks(text string) []string {
	var links []string
	for _, found := range link.FindAllStringSubmatch(span.ReplaceAllString(fence.ReplaceAllString(text, ""), ""), -1) {
		if !strings.Contains(found[1], "://") && !strings.HasPrefix(found[1], "mailto:") {
			links = append(links, found[1])
		}
	}
	return links
}

// anchors returns the names of the headings of a page, as GitHub gives them.
func anchors(text string) map[string]bool {
	names := map[string]bool{}
	text = fence.ReplaceAllString(text, "")
	for _, found := range heading.FindAllStringSubmatch(text, -1) {
		name := linked.ReplaceAllString(found[1], "$1")
		name = strings.ReplaceAll(mute.ReplaceAllString(strings.ToLower(name), ""), " ", "-")
		unique := name
		for n := 1; names[unique]; n++ {
			unique = name + "-" + strconv.Itoa(n)
		}
		names[unique] = true
	}
	for _, found := range named.FindAllStringSubmatch(text, -1) {
		names[found[1]] = true
	}
	return names
}
