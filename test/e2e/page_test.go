// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capacitorset/liqo-broker/pkg/api/v1alpha1"
	"github.com/capacitorset/liqo-broker/pkg/serving/eventstream"
	"github.com/capacitorset/liqo-broker/pkg/shown/apiv1"
	"github.com/capacitorset/liqo-broker/test/federation"
)

// TestPage has the plugin serve the page of the broker, and asks for what a browser asks: it shows the pods of the consumer as the
// federation has them, and what people change there is changed in the cluster and comes back by the stream.
func TestPage(t *testing.T) {
	const namespace = "page"
	start(t, v1alpha1.ModeOrchestrated)
	deploy(t, namespace, federation.Web, 2)
	pods := copies(t, namespace, 2)
	p := openPage(t, fed.Broker)

	// The page is there, and says who has opened it.
	if text := p.ask(http.MethodGet, "/", ""); !strings.Contains(text, "<script") {
		t.Errorf("the page is\n%s", text)
	}
	var me apiv1.Me
	if err := json.Unmarshal([]byte(p.ask(http.MethodGet, "/api/v1/me", "")), &me); err != nil {
		t.Fatal(err)
	}
	if me.Broker == nil || me.Broker.ID != string(fed.Broker.ID) || me.Name == "" || len(me.May) == 0 {
		t.Errorf("it was opened by %+v", me)
	}

	// What it shows is what there is.
	events := p.stream("providers,workloads,flows,links,status")
	shown := map[string]apiv1.Workload{}
	providers := map[string]bool{}
	events.until(t, func(name string, e apiv1.Event) bool {
		switch {
		case e.Provider != nil:
			providers[e.Provider.ID] = e.Provider.Ready
		case e.Workload != nil && e.Workload.Namespace == namespace:
			shown[e.Workload.Pod] = *e.Workload
		}
		return name == "synced"
	})
	for _, provider := range fed.Providers() {
		if !providers[string(provider.ID)] {
			t.Errorf("provider %s is not shown as ready", provider.Name)
		}
	}
	for _, pod := range pods {
		if is := shown[pod.Name]; is.Provider == nil || is.Provider.ID != string(pod.RunsOn.ID) || !is.Ready || is.Path == "" {
			t.Errorf("pod %s on %s is shown as %+v", pod.Name, pod.RunsOn.Name, is)
		}
	}

	// What is tried changes nothing, and what is done does.
	scheduling := func() v1alpha1.Scheduling {
		t.Helper()
		var provider v1alpha1.Provider
		if err := fed.Broker.Get(t.Context(), client.ObjectKey{Name: string(fed.ProviderA.ID)}, &provider); err != nil {
			t.Fatal(err)
		}
		return provider.EffectiveScheduling()
	}
	path := "/api/v1/providers/" + string(fed.ProviderA.ID) + "/scheduling"
	p.ask(http.MethodPut, path+"?dryRun=All", `{"scheduling":"Cordoned"}`)
	if is := scheduling(); is != v1alpha1.SchedulingActive {
		t.Errorf("a dry run has made provider-a %s", is)
	}
	for _, wanted := range []v1alpha1.Scheduling{v1alpha1.SchedulingCordoned, v1alpha1.SchedulingActive} {
		p.ask(http.MethodPut, path, fmt.Sprintf(`{"scheduling":%q}`, wanted))
		if is := scheduling(); is != wanted {
			t.Errorf("provider-a is %s, and not %s", is, wanted)
		}
		events.until(t, func(_ string, e apiv1.Event) bool {
			return e.Provider != nil && e.Provider.ID == string(fed.ProviderA.ID) && e.Provider.Scheduling == string(wanted)
		})
	}
}

// opened is the page that the plugin serves, with its key.
type opened struct {
	t            *testing.T
	address, key string
}

// openPage serves the page until the test ends, and opens it as a browser does.
func openPage(t *testing.T, c *federation.Cluster) *opened {
	t.Helper()
	address, code, _ := strings.Cut(servePage(t, c), "/#code=")
	p := &opened{t: t, address: address}
	var session struct {
		Key string `json:"key"`
	}
	if err := json.Unmarshal([]byte(p.ask(http.MethodPost, "/session", fmt.Sprintf(`{"code":%q}`, code))), &session); err != nil {
		t.Fatal(err)
	}
	p.key = session.Key
	return p
}

// servePage has the plugin serve the page until the test ends, and returns the link that opens it.
func servePage(t *testing.T, c *federation.Cluster) string {
	t.Helper()
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	command := pluginCommand(ctx, c, "ui", "--no-open")
	command.Cancel = func() error { return command.Process.Signal(os.Interrupt) }
	command.WaitDelay = 10 * time.Second
	var said bytes.Buffer
	command.Stderr = &said
	out, err := command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cancel()
		if err := command.Wait(); err != nil && !errors.Is(err, context.Canceled) {
			t.Errorf("kubectl liqo-broker ui: %v\n%s", err, said.String())
		}
	})
	for lines := bufio.NewScanner(out); lines.Scan(); {
		if link := regexp.MustCompile(`http://127\.0\.0\.1:\d+/#code=\w+`).FindString(lines.Text()); link != "" {
			return link
		}
	}
	t.Fatalf("kubectl liqo-broker ui shows no link:\n%s", said.String())
	return ""
}

// request asks with the key.
func (p *opened) request(method, path, body string) *http.Response {
	p.t.Helper()
	r, err := http.NewRequestWithContext(p.t.Context(), method, p.address+path, strings.NewReader(body))
	if err != nil {
		p.t.Fatal(err)
	}
	if p.key != "" {
		r.Header.Set("Authorization", "Bearer "+p.key)
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		p.t.Fatal(err)
	}
	return answer
}

// ask returns an answer, which must be one.
func (p *opened) ask(method, path, body string) string {
	p.t.Helper()
	answer := p.request(method, path, body)
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil || answer.StatusCode != http.StatusOK {
		p.t.Fatalf("%s %s: %s, %v: %s", method, path, answer.Status, err, text)
	}
	return string(text)
}

// live is the stream of a page.
type live struct{ events *eventstream.Reader }

func (p *opened) stream(kinds string) *live {
	p.t.Helper()
	answer := p.request(http.MethodGet, "/api/v1/events?kinds="+kinds, "")
	p.t.Cleanup(func() { answer.Body.Close() })
	if answer.StatusCode != http.StatusOK {
		p.t.Fatalf("the stream is answered with %s", answer.Status)
	}
	deadline := time.AfterFunc(2*time.Minute, func() { answer.Body.Close() })
	p.t.Cleanup(func() { deadline.Stop() })
	return &live{eventstream.NewReader(answer.Body, 1<<20)}
}

// until reads events until one is as wanted.
func (l *live) until(t *testing.T, wanted func(name string, e apiv1.Event) bool) {
	t.Helper()
	for {
		event, err := l.events.Next()
		if err != nil {
			t.Fatalf("the stream ends: %v", err)
		}
		var about apiv1.Event
		if len(event.Data) > 0 {
			if err := json.Unmarshal(event.Data, &about); err != nil {
				t.Fatal(err)
			}
		}
		if wanted(event.Name, about) {
			return
		}
	}
}
