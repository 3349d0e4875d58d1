// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"bytes"
	"cmp"
	"fmt"
	"regexp"
	"strings"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	gmtext "github.com/yuin/goldmark/text"
)

// Block is a block of commands in a page.
type Block struct {
	// Page is the path of the page in the repository, and Line where the block begins, from 1.
	Page string
	Line int
	// Text is what stands in the block, without its indentation.
	Text string
	// On are the names of the clusters on which it runs, on each of them; none if it does not.
	On []string
	// In is the function that runs it, a test or one that sets clusters up; empty for the test that runs the pages.
	In string
	// Reason says why nobody runs it; empty if somebody does, or if nothing is said.
	Reason string
	// Prints is a sample of what is printed; empty if the page has none.
	Prints string
}

func (b Block) String() string { return fmt.Sprintf("%s:%d", b.Page, b.Line) }

var (
	comment = regexp.MustCompile(`(?s)^\s*<!-- (.*?) -->\s*$`)
	runOn   = regexp.MustCompile(`^(commands )?run on (\w[\w-]*(?:, \w[\w-]*)*)(?: in ([A-Z]\w*))?$`)
	notRun  = regexp.MustCompile(`^(commands )?not run: (.+)$`)
	program = regexp.MustCompile(`^\s*(?:sudo )?(?:(?:kubectl|helm|curl|make|liqoctl|jq|git|docker|kind|api|crane|promtool|sha256sum|tar|export|registry) |[a-z_]+=\$?\()`)
)

// Commands returns the blocks of a page that have commands, in their order.
func Commands(page, text string) ([]Block, error) {
	source := []byte(text)
	var blocks []Block
	var said, always *Block // Nil while nothing is said.
	isSample := false       // Of what the last block prints.
	visit := func(n ast.Node) error {
		at := 1
		if lines := n.Lines(); lines.Len() > 0 {
			at += bytes.Count(source[:lines.At(0).Start], []byte("\n"))
		}
		found := comment.FindSubmatch(n.Lines().Value(source))
		isCode := n.Kind() == ast.KindCodeBlock || n.Kind() == ast.KindFencedCodeBlock
		switch {
		case n.Kind() == ast.KindHTMLBlock && found != nil && string(found[1]) == "prints":
			isSample = true
			return nil
		case isSample && (!isCode || len(blocks) == 0):
			return fmt.Errorf("%s:%d: a block of what a command prints was to come", page, at)
		case isSample:
			blocks[len(blocks)-1].Prints, isSample = string(n.Lines().Value(source)), false
		case n.Kind() == ast.KindHTMLBlock && found != nil:
			next, isDefault, err := parse(string(found[1]))
			if err != nil {
				return fmt.Errorf("%s:%d: %w", page, at, err)
			}
			if isDefault {
				always = next
			} else {
				said = next
			}
			return nil
		case isCode && language(n, source) != "text":
			b := Block{}
			if who := cmp.Or(said, always); who != nil {
				b = *who
			}
			b.Page, b.Line, b.Text = page, at, string(n.Lines().Value(source))
			if hasCommand(b.Text) {
				blocks = append(blocks, b)
			}
		}
		said = nil // What is said is about the very next block.
		return nil
	}
	err := ast.Walk(goldmark.DefaultParser().Parse(gmtext.NewReader(source)), func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		switch {
		case !entering || n.Type() == ast.TypeInline:
			return ast.WalkSkipChildren, nil
		case n.HasChildren() && n.FirstChild().Type() == ast.TypeBlock:
			return ast.WalkContinue, nil
		default:
			return ast.WalkSkipChildren, visit(n)
		}
	})
	return blocks, err
}

// inline finds the commands in running text: flags of Helm too.
var inline = regexp.MustCompile(`^(?:kubectl|helm|curl|make|liqoctl|docker|go|openssl|registry|--set) \S`)

// Inline returns the commands that stand in the running text and the tables of a page, in their order, each in one line.
func Inline(page, text string) ([]Block, error) {
	source := []byte(text)
	var commands []Block
	err := ast.Walk(goldmark.New(goldmark.WithExtensions(extension.Table)).Parser().Parse(gmtext.NewReader(source)),
		func(n ast.Node, entering bool) (ast.WalkStatus, error) {
			if !entering || n.Kind() != ast.KindCodeSpan {
				return ast.WalkContinue, nil
			}
			var command strings.Builder
			at := -1
			for child := n.FirstChild(); child != nil; child = child.NextSibling() {
				part, is := child.(*ast.Text)
				if !is {
					continue
				}
				if at < 0 {
					at = part.Segment.Start
				}
				command.Write(bytes.ReplaceAll(part.Value(source), []byte("\n"), []byte(" ")))
			}
			if inline.MatchString(command.String()) {
				commands = append(commands, Block{Page: page, Line: 1 + bytes.Count(source[:at], []byte("\n")), Text: command.String()})
			}
			return ast.WalkSkipChildren, nil
		})
	return commands, err
}

// language returns of what language a fenced block says that it is.
func language(n ast.Node, source []byte) string {
	fenced, is := n.(*ast.FencedCodeBlock)
	if !is {
		return ""
	}
	return string(fenced.Language(source))
}

// parse reads a comment. It returns nil for one that is about something else.
func parse(text string) (said *Block, isDefault bool, err error) {
	if found := runOn.FindStringSubmatch(text); found != nil {
		return &Block{On: strings.Split(found[2], ", "), In: found[3]}, found[1] != "", nil
	}
	if found := notRun.FindStringSubmatch(text); found != nil {
		return &Block{Reason: found[2]}, found[1] != "", nil
	}
	if strings.HasPrefix(text, "run") || strings.HasPrefix(text, "not run") || strings.HasPrefix(text, "commands") {
		return nil, false, fmt.Errorf("comment %q cannot be understood", text)
	}
	return nil, false, nil
}

// hasCommand reports whether a line of a block starts a program. A session, whose commands follow a prompt, shows what is printed too:
// nobody copies it.
func hasCommand(text string) bool {
	for line := range strings.Lines(text) {
		if program.MatchString(line) {
			return true
		}
	}
	return false
}

// placeholders are what stands for something in commands.
var placeholders = regexp.MustCompile(`\b(?:PROVIDER|CONSUMER|BROKER)(?:_ID)?\b|\b(?:TWIN_|TENANT_|REMOTE_)?NAMESPACE\b|\b(?:POD|DEPLOYMENT|POLICY|NODE|PARTY|SALE|TOKEN(?:_ID)?|INVITATION)\b`)

// Fill returns the text of a block with values in the place of placeholders. It is an error if there is none for one.
func (b Block) Fill(values map[string]string) (string, error) {
	var missing []string
	text := placeholders.ReplaceAllStringFunc(b.Text, func(name string) string {
		value, known := values[name]
		if !known {
			missing = append(missing, name)
		}
		return value
	})
	if len(missing) > 0 {
		return "", fmt.Errorf("%s: no value for %s", b, strings.Join(missing, ", "))
	}
	return text, nil
}
