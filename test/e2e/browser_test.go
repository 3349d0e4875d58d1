// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/capacitorset/liqo-broker/pkg/api/v1alpha1"
	"github.com/capacitorset/liqo-broker/pkg/shown/apiv1"
	"github.com/capacitorset/liqo-broker/test/federation"
)

// modulesVariable names the folder with what drives a browser, which make test-ui has npm install.
const modulesVariable = "LIQO_BROKER_UI_MODULES"

// TestBrowser opens the page in a browser. It shows where pods are; a drain does what was foreseen; and a tunnel that breaks is shown
// broken soon after the broker knows of it, and mended when it is. The browser complains of nothing, and asks nobody else.
func TestBrowser(t *testing.T) {
	const namespace = "browser"
	start(t, v1alpha1.ModeOrchestrated)
	deploy(t, namespace, federation.Web, 4)
	pods := copies(t, namespace, 4)
	p := openPage(t, fed.Broker)
	b := browse(t, fed.Broker)

	// Where pods are, and by which path: three steps from the first screen.
	b.do("see", map[string]any{"text": "Overview"})
	for _, provider := range fed.Providers() {
		b.do("go", "/workloads?provider="+string(provider.ID)+"&namespace="+namespace)
		text := b.do("see", map[string]any{"text": provider.Name})
		for _, pod := range pods {
			if on := pod.RunsOn == provider; strings.Contains(text, pod.Name) != on {
				t.Errorf("pod %s, on %s, is among those at %s: %t\n%s", pod.Name, pod.RunsOn.Name, provider.Name, !on, text)
			}
		}
	}

	// A drain: what is foreseen is shown, and then is what happens.
	a := fed.ProviderA
	var foreseen apiv1.DrainPreview
	if err := json.Unmarshal([]byte(p.ask("GET", "/api/v1/providers/"+string(a.ID)+"/drain", "")), &foreseen); err != nil {
		t.Fatal(err)
	}
	stays := map[string]bool{}
	for _, pod := range foreseen.Pods {
		stays[pod.Pod] = pod.Verdict == "Stays"
	}
	b.do("go", "/providers/"+string(a.ID))
	b.do("press", "Drain")
	b.do("see", map[string]any{"text": foreseen.Message})
	b.do("press", "Drain")
	defer mustPlugin(t, fed.Broker, "enable", a.Name)
	b.do("see", map[string]any{"text": "Drained", "within": 20000})
	eventually(t, 3*time.Minute, func(ctx context.Context) error {
		now, err := fed.Copies(ctx, namespace)
		if err != nil {
			return err
		}
		for _, pod := range now {
			if pod.RunsOn == a && !stays[pod.Name] {
				err = errors.Join(err, fmt.Errorf("pod %s has not left, as was foreseen", pod.Name))
			}
		}
		return err
	})
	for _, pod := range pods {
		if _, told := stays[pod.Name]; told != (pod.RunsOn == a) {
			t.Errorf("of pod %s, on %s, it was told what a drain does: %t", pod.Name, pod.RunsOn.Name, told)
		}
	}
	mustPlugin(t, fed.Broker, "enable", a.Name)

	// A tunnel that breaks.
	b.do("go", "/providers/"+string(a.ID))
	events := p.stream("links")
	linked := func(is bool) {
		t.Helper()
		events.until(t, func(_ string, e apiv1.Event) bool {
			return e.Link != nil && e.Link.To.ID == string(a.ID) && e.Link.Kind == "Broker" && e.Link.Connected == is
		})
	}
	linked(true)
	mend, err := fed.Cut(t.Context(), fed.Broker, a)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := mend(); err != nil {
			t.Error(err)
		}
	}()
	linked(false)
	b.do("see", map[string]any{"text": "down", "within": 5000})
	if err := mend(); err != nil {
		t.Fatal(err)
	}
	linked(true)
	b.do("see", map[string]any{"not": "down", "within": 5000})
	p.stream("providers").until(t, func(_ string, e apiv1.Event) bool {
		return e.Provider != nil && e.Provider.ID == string(a.ID) && e.Provider.Ready
	})
	b.ends()
}

// picturesVariable names the folder into which TestPictures writes.
const picturesVariable = "LIQO_BROKER_PICTURES"

// TestPictures takes pictures of the page for the README, in both themes.
func TestPictures(t *testing.T) {
	to := os.Getenv(picturesVariable)
	if to == "" {
		t.Fatalf("%s does not say where pictures go: run make ui-pictures", picturesVariable)
	}
	const namespace = "shop"
	start(t, v1alpha1.ModeOrchestrated)
	deploy(t, namespace, federation.Web, 6)
	copies(t, namespace, 6)
	b := browse(t, fed.Broker)
	for route, text := range map[string]string{"/map": fed.Consumer.Name, "/": "Capacity"} {
		b.do("go", route)
		b.do("see", map[string]any{"text": text})
		for _, scheme := range []string{"light", "dark"} {
			b.do("colours", scheme)
			name := cmp.Or(strings.TrimPrefix(route, "/"), "overview")
			b.do("picture", filepath.Join(to, fmt.Sprintf("page-%s-%s.png", name, scheme)))
		}
	}
	b.ends()
}

// browser is a browser that has the page open.
type browser struct {
	t       *testing.T
	deeds   io.WriteCloser
	answers *bufio.Scanner
	wrong   []string
}

// browse opens the page of a cluster in a browser, until the test ends.
func browse(t *testing.T, c *federation.Cluster) *browser {
	t.Helper()
	modules := os.Getenv(modulesVariable)
	if modules == "" {
		t.Fatalf("%s does not say where what drives a browser is: run make test-e2e-ui", modulesVariable)
	}
	command := exec.CommandContext(t.Context(), "node", "../../ui/test/driver.mjs", servePage(t, c))
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
	lines.Buffer(nil, 8<<20)
	return &browser{t: t, deeds: deeds, answers: lines}
}

// do has the browser do something, and returns the text that the page shows then.
func (b *browser) do(deed string, about any) string {
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
	b.wrong = answer.Wrong
	return answer.Text
}

// ends fails if the browser has complained of something.
func (b *browser) ends() {
	b.t.Helper()
	for _, wrong := range b.wrong {
		b.t.Errorf("the browser complains: %s", wrong)
	}
}
