// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

// Package probe asks pods over HTTP who they are, and answers as such a pod: how a person sees whether pods are reached where they run.
//
// It does not know of clusters, nor how its pods come into being.
package probe

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/capacitorset/liqo-broker/pkg/excerpt"
)

const (
	// Port is where pods answer.
	Port = 8080
	// MaxTargets is how many are asked at once: the answers of more do not fit into the message of a container's end.
	MaxTargets = 21
	// patience is how long a request waits. A TCP connection whose first packet was lost tries again after one second.
	patience = 2 * time.Second
	// interval is the time between two requests to one target, and retry that between two while it has not answered yet.
	interval = 50 * time.Millisecond
	retry    = 250 * time.Millisecond
	// maxAnswer bounds in bytes what is read of an answer: the longest name of a host.
	maxAnswer = 253
	// maxReason bounds in bytes why a target did not answer.
	maxReason = 120
)

// Target is what is asked.
type Target struct {
	// Pod is who is to answer; empty if any may, as with a Service.
	Pod string
	// Address is HOST:PORT.
	Address string
}

// String is the form that ParseTarget reads: POD=HOST:PORT.
func (t Target) String() string { return t.Pod + "=" + t.Address }

// ParseTarget reads a target, as String writes it.
func ParseTarget(text string) (Target, error) {
	pod, address, is := strings.Cut(text, "=")
	host, port, err := net.SplitHostPort(address)
	if !is || err != nil || host == "" {
		return Target{}, fmt.Errorf("target %q: it must be [POD]=HOST:PORT", text)
	}
	if _, err := netip.ParseAddrPort("127.0.0.1:" + port); err != nil {
		return Target{}, fmt.Errorf("target %q: %q is no port", text, port)
	}
	return Target{pod, address}, nil
}

// Answer is how a target answered.
type Answer struct {
	Pod     string `json:"pod,omitempty"`
	Address string `json:"address"`
	// Asked counts the requests since its first answer, Answered those that were answered by whom they were for, and Wrong those that another
	// one answered. A target that never answered was asked once, as it counts.
	Asked    int `json:"asked"`
	Answered int `json:"answered"`
	Wrong    int `json:"wrong,omitempty"`
	// First is after what time it answered for the first time; Median and Slowest are how long answers took, connections included. They are
	// in nanoseconds, and zero if there is no answer.
	First   time.Duration `json:"first,omitempty"`
	Median  time.Duration `json:"median,omitempty"`
	Slowest time.Duration `json:"slowest,omitempty"`
	// Hosts counts who answered.
	Hosts int `json:"hosts,omitempty"`
	// Reason is why the last request failed that did; empty if none has failed since the first answer.
	Reason string `json:"reason,omitempty"`
}

// Well reports whether each request was answered, and by whom it was for.
func (a *Answer) Well() bool { return a.Asked > 0 && a.Answered == a.Asked }

// Ask asks all targets at once, each so many times from its first answer on, over a connection for each request. One that has not answered
// within a time is given up. The answers are in the order of the targets; the error is that of a context that has ended.
func Ask(ctx context.Context, targets []Target, times int, within time.Duration) ([]Answer, error) {
	// A proxy of the environment would be asked in place of the pods.
	c := &http.Client{Timeout: patience, Transport: &http.Transport{DisableKeepAlives: true}}
	answers := make([]Answer, len(targets))
	var asking sync.WaitGroup
	for i, target := range targets {
		asking.Go(func() { answers[i] = ask(ctx, c, target, times, within) })
	}
	asking.Wait()
	return answers, context.Cause(ctx)
}

// ask asks one target.
func ask(ctx context.Context, c *http.Client, target Target, times int, within time.Duration) Answer {
	a := Answer{Pod: target.Pod, Address: target.Address}
	began := time.Now()
	// Until it answers: the way to it may still be made.
	for {
		_, err := host(ctx, c, target)
		if err == nil {
			break
		}
		if ctx.Err() != nil || time.Since(began) >= within {
			a.Asked, a.Reason = 1, reason(err)
			return a
		}
		pause(ctx, retry)
	}
	a.First = time.Since(began)

	// From then on all requests count.
	var took []time.Duration // Of each request that the right one answered.
	hosts := map[string]bool{}
	for range times {
		sent := time.Now()
		who, err := host(ctx, c, target)
		if ctx.Err() != nil {
			break
		}
		a.Asked++
		switch {
		case err != nil:
			a.Reason = reason(err)
		case target.Pod != "" && who != target.Pod:
			a.Wrong++
			a.Reason = excerpt.Of(fmt.Sprintf("%s answered", who), maxReason)
		default:
			a.Answered++
			hosts[who] = true
			took = append(took, time.Since(sent))
		}
		pause(ctx, interval)
	}

	// What they say together.
	a.Hosts = len(hosts)
	if slices.Sort(took); len(took) > 0 {
		a.Median, a.Slowest = took[len(took)/2], took[len(took)-1]
	}
	return a
}

// reason says why a request failed, without the URL that everybody knows.
func reason(err error) string {
	var network *net.OpError
	switch {
	case os.IsTimeout(err):
		return "no answer within " + patience.String()
	case errors.As(err, &network):
		err = network
	}
	return excerpt.Of(err.Error(), maxReason)
}

func pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}

// host asks a target once who it is.
func host(ctx context.Context, c *http.Client, target Target) (string, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+target.Address+"/", http.NoBody)
	if err != nil {
		return "", fmt.Errorf("ask %s: %w", target.Address, err)
	}
	response, err := c.Do(request)
	if err != nil {
		return "", err
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(io.LimitReader(response.Body, maxAnswer+1))
	switch {
	case err != nil:
		return "", fmt.Errorf("read what %s answers: %w", target.Address, err)
	case response.StatusCode != http.StatusOK || len(body) == 0 || len(body) > maxAnswer:
		return "", fmt.Errorf("%s answers %s with %d bytes, and not as a pod of the test does", target.Address, response.Status, len(body))
	}
	return string(body), nil
}

// Serve answers each request with the name of this host until the context ends. It closes the listener.
func Serve(ctx context.Context, listener net.Listener) error {
	name, err := os.Hostname()
	if err != nil {
		return errors.Join(fmt.Errorf("read the name of this host: %w", err), listener.Close())
	}
	server := &http.Server{
		ReadHeaderTimeout: patience, ReadTimeout: patience, WriteTimeout: patience, IdleTimeout: patience, MaxHeaderBytes: 4 << 10,
		Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/plain; charset=utf-8")
			_, _ = io.WriteString(w, name) // Who has gone does not read it.
		}),
	}
	stopped := context.AfterFunc(ctx, func() { _ = server.Close() })
	defer stopped()
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve on %s: %w", listener.Addr(), err)
	}
	return nil
}
