// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package webpage

import (
	"bufio"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// modulesVariable names the folder with what drives a browser, which make test-ui has npm install.
const modulesVariable = "LIQO_BROKER_UI_MODULES"

// longestAnswer is what a page may show, in bytes.
const longestAnswer = 8 << 20

// Browser is a browser that has the page open. It is for one goroutine.
type Browser struct {
	t       *testing.T
	deeds   io.Writer
	answers *bufio.Scanner
	said    []string // By the last deed.
	asked   []string
	wrong   []string
}

// Browse opens a link in a browser, until the test ends. A certificate that the browser does not know is taken, as people take that of a
// daemon. Tests that call it are two folders below the root.
func Browse(t *testing.T, link string) *Browser {
	t.Helper()
	modules := os.Getenv(modulesVariable)
	if modules == "" {
		t.Fatalf("%s does not say where what drives a browser is: run make test-e2e-ui", modulesVariable)
	}
	command := exec.CommandContext(t.Context(), "node", filepath.Join("..", "..", "ui", "test", "driver.mjs"), link)
	command.Env = append(os.Environ(), "MODULES="+modules)
	command.Stderr = os.Stderr
	deeds, err := command.StdinPipe()
	answers, err2 := command.StdoutPipe()
	if err := errors.Join(err, err2, command.Start()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = deeds.Close()
		if err := command.Wait(); err != nil && t.Context().Err() == nil {
			t.Error(err)
		}
	})
	lines := bufio.NewScanner(answers)
	lines.Buffer(nil, longestAnswer)
	return &Browser{t: t, deeds: deeds, answers: lines}
}

// Go opens a route of the page, such as /providers.
func (b *Browser) Go(route string) { b.t.Helper(); b.do("go", route) }

// See waits until the page shows a text, for 30 s or as long as is said, and returns all that it shows then.
func (b *Browser) See(text string, within ...time.Duration) string {
	b.t.Helper()
	return b.do("see", seen("text", text, within))
}

// SeeNot waits until the page shows a text no more.
func (b *Browser) SeeNot(text string, within ...time.Duration) string {
	b.t.Helper()
	return b.do("see", seen("not", text, within))
}

// SeeLabelled waits until the page has something with a label of its own, such as the state of a picture, whose texts are always there.
func (b *Browser) SeeLabelled(label string, within ...time.Duration) string {
	b.t.Helper()
	return b.do("see", seen("label", label, within))
}

func seen(which, text string, within []time.Duration) map[string]any {
	about := map[string]any{which: text}
	if len(within) > 0 {
		about["within"] = within[0].Milliseconds()
	}
	return about
}

// Press presses a button by its name, in the dialog if one is open.
func (b *Browser) Press(name string) { b.t.Helper(); b.do("press", name) }

// PressEach presses each button of the content, also those that may not be used, and returns the names of those that open a dialog, as all
// do that change something. It closes the dialogs.
func (b *Browser) PressEach() []string {
	b.t.Helper()
	b.do("each", nil)
	return b.said
}

// Asked returns what the page has asked of its server so far other than to read something, as "PUT /path".
func (b *Browser) Asked() []string { return b.asked }

// Write writes a text into the field of a label, in the dialog if one is open.
func (b *Browser) Write(label, text string) {
	b.t.Helper()
	b.do("write", map[string]string{"label": label, "text": text})
}

// Follow opens the link of a name.
func (b *Browser) Follow(name string) { b.t.Helper(); b.do("follow", name) }

// Colours has the page in a scheme, light or dark.
func (b *Browser) Colours(scheme string) { b.t.Helper(); b.do("colours", scheme) }

// Picture writes a picture of what is seen to a file.
func (b *Browser) Picture(path string) { b.t.Helper(); b.do("picture", path) }

// Ends fails the test if the browser has complained of something, other than that a server that the test has stopped does not answer, for
// which it has a part of what the browser says.
func (b *Browser) Ends(expected ...string) {
	b.t.Helper()
	for _, wrong := range b.wrong {
		if !slices.ContainsFunc(expected, func(part string) bool { return strings.Contains(wrong, part) }) {
			b.t.Errorf("the browser complains: %s", wrong)
		}
	}
}

// do has the browser do something, and returns the text that the page shows then.
func (b *Browser) do(deed string, about any) string {
	b.t.Helper()
	line, err := json.Marshal(map[string]any{deed: about})
	if err != nil {
		b.t.Fatal(err)
	}
	if _, err := b.deeds.Write(append(line, '\n')); err != nil {
		b.t.Fatal(err)
	}
	var answer struct {
		Text  string   `json:"text"`
		Said  []string `json:"said"`
		Asked []string `json:"asked"`
		Wrong []string `json:"wrong"`
		Error string   `json:"error"`
	}
	if !b.answers.Scan() {
		b.t.Fatalf("the browser is gone: %v", b.answers.Err())
	}
	if err := json.Unmarshal(b.answers.Bytes(), &answer); err != nil {
		b.t.Fatal(err)
	}
	if answer.Error != "" {
		b.t.Fatalf("%s %v: %s\n%s", deed, about, answer.Error, answer.Text)
	}
	b.said, b.asked, b.wrong = answer.Said, answer.Asked, answer.Wrong
	return answer.Text
}
