// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package trade

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capacitorset/liqo-broker/pkg/api/connectorv1alpha1"
	"github.com/capacitorset/liqo-broker/pkg/serving/eventstream"
	"github.com/capacitorset/liqo-broker/pkg/shown/tradev1"
	"github.com/capacitorset/liqo-broker/test/federation"
)

// page is the page of a cluster, which the plugin serves, with its key.
type page struct {
	t            *testing.T
	address, key string
}

// openPage has the plugin serve the page of a cluster until the test ends, and opens it as a browser does.
func openPage(t *testing.T, c *federation.Cluster) *page {
	t.Helper()
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	command := exec.CommandContext(ctx, filepath.Join("..", "..", "bin", "kubectl-liqo_broker"),
		"--kubeconfig="+c.Lab.KubeconfigPath(), "ui", "--no-open")
	command.Stderr = os.Stderr
	command.Cancel = func() error { return command.Process.Signal(os.Interrupt) }
	out, err := command.StdoutPipe()
	if err := errors.Join(err, command.Start()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cancel()
		if err := command.Wait(); err != nil && !errors.Is(err, context.Canceled) {
			t.Errorf("kubectl liqo-broker ui: %v", err)
		}
	})
	link := regexp.MustCompile(`(http://127\.0\.0\.1:\d+)/#code=(\w+)`)
	for lines := bufio.NewScanner(out); lines.Scan(); {
		if said := link.FindStringSubmatch(lines.Text()); said != nil {
			p := &page{t: t, address: said[1]}
			var session struct {
				Key string `json:"key"`
			}
			p.ask(http.MethodPost, "/session", map[string]string{"code": said[2]}, &session)
			p.key = session.Key
			return p
		}
	}
	t.Fatal("kubectl liqo-broker ui shows no link")
	return nil
}

// request asks for something with the key.
func (p *page) request(method, path string, body any) *http.Response {
	p.t.Helper()
	text, err := json.Marshal(body)
	if err != nil {
		p.t.Fatal(err)
	}
	r, err := http.NewRequestWithContext(p.t.Context(), method, p.address+path, strings.NewReader(string(text)))
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

// ask asks for something, and reads the answer into a value.
func (p *page) ask(method, path string, body, into any) {
	p.t.Helper()
	answer := p.request(method, path, body)
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil || answer.StatusCode != http.StatusOK {
		p.t.Fatalf("%s %s: %s, %v: %s", method, path, answer.Status, err, text)
	}
	if err := json.Unmarshal(text, into); err != nil {
		p.t.Fatalf("%s %s: %v: %s", method, path, err, text)
	}
}

// contract waits until the page is told of a contract that is as wanted.
func (p *page) contract(wanted func(c *tradev1.Contract) bool) *tradev1.Contract {
	p.t.Helper()
	answer := p.request(http.MethodGet, "/api/v1/events?kinds=contracts", nil)
	defer answer.Body.Close()
	defer time.AfterFunc(3*time.Minute, func() { answer.Body.Close() }).Stop()
	var last string
	for events := eventstream.NewReader(answer.Body, 1<<20); ; {
		event, err := events.Next()
		if err != nil {
			p.t.Fatalf("the stream ends: %v, after %s", err, last)
		}
		var about struct {
			Contract *tradev1.Contract `json:"contract"`
		}
		if len(event.Data) == 0 {
			continue
		}
		if err := json.Unmarshal(event.Data, &about); err != nil {
			p.t.Fatal(err)
		}
		if about.Contract != nil {
			last = string(event.Data)
			if wanted(about.Contract) {
				return about.Contract
			}
		}
	}
}

// TestPage buys by the page of a cluster that is no broker: what is needed is found in the order of choice, what is tried writes nothing,
// the price that is shown is the price that is signed, and the contract is ended by who has seen it as it is.
func TestPage(t *testing.T) {
	clean(t)
	publish(t, map[*federation.Cluster]string{fed.ProviderA: "0.20", fed.ProviderB: "0.10"})
	p := openPage(t, fed.Consumer)
	var me struct {
		Kinds []struct {
			Kind string `json:"kind"`
		} `json:"kinds"`
	}
	p.ask(http.MethodGet, "/api/v1/me", nil, &me)
	if text := fmt.Sprint(me.Kinds); !strings.Contains(text, "market") || strings.Contains(text, "providers") {
		t.Errorf("a cluster that trades and is no broker shows %s", text)
	}

	// The cheapest comes first, and costs what its seller has signed.
	need := tradev1.Need{
		Resources: tradev1.Quantities{"cpu": "500m", "memory": "256Mi", "pods": "5"}, Duration: "2h", Regions: []string{"eu-north"},
	}
	var found tradev1.Found
	p.ask(http.MethodPost, "/api/v1/market/find", need, &found)
	if len(found.Plans) == 0 || found.Plans[0].Seller.ID != string(seller(t, fed.ProviderB)) || found.Plans[0].Total == nil {
		t.Fatalf("found is %+v", found)
	}
	best := found.Plans[0]

	// What is tried writes nothing.
	order := tradev1.Order{Need: need, Name: "by-page", Reference: best.Reference}
	order.MaxPrice = best.Price.Text
	var ordered tradev1.Ordered
	p.ask(http.MethodPost, "/api/v1/orders?dryRun=All", order, &ordered)
	if len(ordered.Would) != 1 || ordered.Would[0].Reference != best.Reference {
		t.Errorf("it would buy %+v", ordered)
	}
	if err := fed.Consumer.BuysNothing(t.Context()); err != nil {
		t.Errorf("a dry run has written something: %v", err)
	}

	// It is bought, and the stream tells how far it is.
	p.ask(http.MethodPost, "/api/v1/orders", order, &ordered)
	active := p.contract(func(c *tradev1.Contract) bool {
		return c.Name == "by-page" && c.State == "Active" && c.Ready.Status == "True"
	})
	if active.Price == nil || active.Price.Text != best.Price.Text || active.Cost == nil || len(active.Steps) == 0 {
		t.Errorf("%s was shown, and signed is %+v", best.Price.Text, active)
	}

	// Who has seen something else ends nothing; who has seen it as it is does.
	var done struct {
		Done string `json:"done"`
	}
	old := p.request(http.MethodPost, "/api/v1/contracts/buys/by-page/end", tradev1.Deed{Version: "0"})
	old.Body.Close()
	if old.StatusCode != http.StatusConflict {
		t.Errorf("a deed about what was never seen is answered with %s", old.Status)
	}
	p.ask(http.MethodPost, "/api/v1/contracts/buys/by-page/end", tradev1.Deed{Version: active.Version, Reason: "seen enough"}, &done)
	ended := p.contract(func(c *tradev1.Contract) bool { return c.Name == "by-page" && c.State == "Ended" })
	if text := fmt.Sprint(ended.Steps); !strings.Contains(text, "seen enough") || len(ended.Deeds) != 0 {
		t.Errorf("it has ended as %+v", ended)
	}
	bought := &connectorv1alpha1.Purchase{}
	bought.Name = "by-page"
	if err := fed.Consumer.Delete(t.Context(), bought); client.IgnoreNotFound(err) != nil {
		t.Fatal(err)
	}
	eventually(t, 3*time.Minute, func(ctx context.Context) error { return fed.Consumer.HasParted(ctx, fed.ProviderB) })
	eventually(t, time.Minute, func(ctx context.Context) error { return fed.Consumer.BuysNothing(ctx) })
}
