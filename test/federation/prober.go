// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package federation

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capacitorset/liqo-broker/test/lab/node"
	"github.com/capacitorset/liqo-broker/test/lab/process"
)

const (
	// probeInterval is the time between two requests to one address, whether or not the first one was answered.
	probeInterval = 200 * time.Millisecond
	// probePatience is how long a request may wait for its answer. A TCP connection whose first packet was lost tries again
	// after one second, and once more two seconds later.
	probePatience = 2 * time.Second
)

// A Target is an address at which a pod is to answer.
type Target struct {
	Pod     string // Empty for a Service, where any pod may answer.
	Address string
	Path    Path
}

// A probe is one request to a target, and what became of it.
type probe struct {
	sent, done time.Time
	host       string // Who answered, or empty.
}

// A Prober is a client in the consumer that asks the web servers at some addresses for their names, again and again, each request
// over a connection of its own.
type Prober struct {
	client *http.Client
	ctx    context.Context //nolint:containedctx // That of all requests, which begin and end with the prober.
	cancel context.CancelFunc
	asking sync.WaitGroup

	mu     sync.Mutex
	asked  map[Target]time.Time // Since when.
	probes map[Target][]probe
}

// NewProber returns a prober that has no target yet. Its requests leave from the network of the consumer's pod `tools`.
func (f *Federation) NewProber(ctx context.Context) (*Prober, error) {
	dial, err := f.Consumer.dialer(ctx)
	if err != nil {
		return nil, err
	}
	return newProber(ctx, dial), nil
}

// dialer returns a dialer whose connections leave from the network of the cluster's pod `tools`.
func (c *Cluster) dialer(ctx context.Context) (dialer, error) {
	var tools corev1.Pod
	if err := c.Get(ctx, client.ObjectKey{Namespace: "default", Name: "tools"}, &tools); err != nil {
		return nil, err
	}
	id, err := c.processOf(&tools)
	if err != nil {
		return nil, err
	}
	return dialIn(id), nil
}

type dialer func(ctx context.Context, network, address string) (net.Conn, error)

// dialIn returns a dialer whose connections leave from the network namespace of a process.
func dialIn(id process.ID) dialer {
	return func(ctx context.Context, network, address string) (conn net.Conn, err error) {
		err = node.InNetwork(id, func() error {
			conn, err = new(net.Dialer).DialContext(ctx, network, address)
			return err
		})
		return conn, err
	}
}

func newProber(ctx context.Context, dial dialer) *Prober {
	p := &Prober{asked: map[Target]time.Time{}, probes: map[Target][]probe{}}
	p.ctx, p.cancel = context.WithCancel(ctx)
	p.client = &http.Client{Timeout: probePatience, Transport: &http.Transport{DialContext: dial, DisableKeepAlives: true}}
	return p
}

// Add begins to ask a target, unless it is asked already.
func (p *Prober) Add(target Target) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if _, known := p.asked[target]; known {
		return
	}
	p.asked[target] = time.Now()
	p.asking.Go(func() {
		ticker := time.NewTicker(probeInterval)
		defer ticker.Stop()
		for p.ctx.Err() == nil {
			p.asking.Go(func() { p.ask(target) })
			select {
			case <-p.ctx.Done():
			case <-ticker.C:
			}
		}
	})
}

// Stop ends all requests and waits until they have ended.
func (p *Prober) Stop() {
	p.cancel()
	p.asking.Wait()
}

func (p *Prober) ask(target Target) {
	sent := time.Now()
	host, err := p.host("http://" + target.Address + "/")
	if p.ctx.Err() != nil {
		return // The prober was stopped; that is no failure of the target.
	}
	if err != nil {
		host = ""
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.probes[target] = append(p.probes[target], probe{sent: sent, done: time.Now(), host: host})
}

func (p *Prober) host(url string) (string, error) {
	request, err := http.NewRequestWithContext(p.ctx, http.MethodGet, url, nil)
	if err != nil {
		return "", err
	}
	response, err := p.client.Do(request)
	if err != nil {
		return "", err
	}
	defer func() { _ = response.Body.Close() }()
	var answer struct {
		Host string `json:"host"`
	}
	if err := json.NewDecoder(response.Body).Decode(&answer); err != nil {
		return "", fmt.Errorf("read what %s answered: %w", url, err)
	}
	return answer.Host, nil
}

// Answers says how a target answered for some time, or several together.
type Answers struct {
	Requests, Errors int
	// Wrong is how often another pod answered than the one that was asked.
	Wrong int
	// Gap is the longest time without an answer of the pod, and GapFrom when that began.
	Gap     time.Duration
	GapFrom time.Time
}

// answeredBy reports whether a host is who should answer.
func (t Target) answeredBy(host string) bool {
	return host != "" && (t.Pod == "" || t.Pod == host)
}

// lengthen makes a time without an answer the gap, if it is longer than that.
func (a *Answers) lengthen(from time.Time, gap time.Duration) {
	if gap > a.Gap {
		a.GapFrom, a.Gap = from, gap
	}
}

// Answers returns what became of the requests to each target that were made in a period and have ended. For a target that was
// added meanwhile the period begins with that.
func (p *Prober) Answers(from, to time.Time) map[Target]Answers {
	p.mu.Lock()
	defer p.mu.Unlock()
	all := map[Target]Answers{}
	for target, since := range p.asked {
		if since.Before(from) {
			since = from
		}
		if since.Before(to) {
			all[target] = count(target, p.probes[target], since, to)
		}
	}
	return all
}

// Took returns how long the requests took that were made in a period, by path. One without an answer of the pod took as long as it was
// waited for.
func (p *Prober) Took(from, to time.Time) map[Path][]time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	took := map[Path][]time.Duration{}
	for target, probes := range p.probes {
		for _, each := range probes {
			switch {
			case each.sent.Before(from) || each.sent.After(to):
			case target.answeredBy(each.host):
				took[target.Path] = append(took[target.Path], each.done.Sub(each.sent))
			default:
				took[target.Path] = append(took[target.Path], probePatience)
			}
		}
	}
	return took
}

// Last returns when the last request was made that the target answered.
func (p *Prober) Last(target Target) time.Time {
	p.mu.Lock()
	defer p.mu.Unlock()
	var last time.Time
	for _, each := range p.probes[target] {
		if target.answeredBy(each.host) && each.sent.After(last) {
			last = each.sent
		}
	}
	return last
}

func count(target Target, probes []probe, from, to time.Time) Answers {
	var a Answers
	answered := []time.Time{from, to}
	for _, each := range probes {
		if target.answeredBy(each.host) && each.done.After(from) && each.done.Before(to) {
			answered = append(answered, each.done)
		}
		if each.sent.Before(from) || each.sent.After(to) {
			continue
		}
		a.Requests++
		switch {
		case each.host == "":
			a.Errors++
		case !target.answeredBy(each.host):
			a.Wrong++
		}
	}
	slices.SortFunc(answered, time.Time.Compare)
	for i := range answered[1:] {
		a.lengthen(answered[i], answered[i+1].Sub(answered[i]))
	}
	return a
}

// Sum returns the answers of several targets together; its gap is the longest of theirs.
func Sum(all ...Answers) Answers {
	var sum Answers
	for _, a := range all {
		sum.Requests += a.Requests
		sum.Errors += a.Errors
		sum.Wrong += a.Wrong
		sum.lengthen(a.GapFrom, a.Gap)
	}
	return sum
}
