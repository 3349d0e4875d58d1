// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package scale

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/capacitorset/liqo-broker/pkg/serving/eventstream"
	"github.com/capacitorset/liqo-broker/pkg/serving/servingtest"
	"github.com/capacitorset/liqo-broker/pkg/trade/core/offer"
	"github.com/capacitorset/liqo-broker/pkg/trade/registry/client"
	"github.com/capacitorset/liqo-broker/pkg/trade/registry/registrytest"
	"github.com/capacitorset/liqo-broker/pkg/trade/registry/registryv1"
)

const (
	// firstChange is the revision of offers that change first: how they were published is before that.
	firstChange = 2
	// patience bounds how long a change may take to be seen by all.
	patience = 2 * time.Minute
	// whole is how many of the watchers are the connector's own client, which begins with all that there is and verifies it.
	whole = 4
)

// audience is all who watch. Most of them are as little as a watcher can be, because the same machine runs a thousand: each has its own TLS
// connection, goes on from where the registry was, as a connector does that has its pages, and reads all events.
type audience struct {
	*crowd

	watchers []*watcher
	watching sync.WaitGroup
	// sent is when changes began, in nanoseconds since began, and seen is how many have seen them.
	began      time.Time
	sent, seen []atomic.Int64
	// verified is how long the connector's own clients took.
	mu       sync.Mutex
	verified map[int]took
	// whole is how many of them there are.
	whole int
}

// watcher is one who watches.
type watcher struct {
	member *member
	// after is the last position. It is for one goroutine at a time.
	after string
	// delays are how long changes took to be seen.
	delays []time.Duration
}

// newAudience returns an audience for so many changes, of which nobody watches yet.
func newAudience(c *crowd, changes int) *audience {
	a := &audience{
		crowd: c, began: time.Now(), sent: make([]atomic.Int64, changes), seen: make([]atomic.Int64, changes), verified: map[int]took{},
	}
	for n := range c.watchers {
		a.watchers = append(a.watchers, &watcher{member: c.members[n%len(c.members)], delays: make([]time.Duration, changes)})
	}
	return a
}

// attach connects all watchers, which watch until the registry is killed, and returns how long that took. They go on from a position, or,
// if it is empty, from where they were: none watches then any more.
func (a *audience) attach(tb testing.TB, after string) time.Duration {
	tb.Helper()
	a.watching.Wait()
	began := time.Now()
	group, ctx := errgroup.WithContext(tb.Context())
	group.SetLimit(atOnce)
	for _, w := range a.watchers {
		if after != "" {
			w.after = after
		}
		group.Go(func() error {
			answer, err := w.connect(ctx, a.registry)
			if err != nil {
				return err
			}
			a.watching.Go(func() {
				defer answer.Body.Close()
				_ = w.read(answer.Body, a.note) // It ends when the registry is killed.
			})
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		tb.Fatal(err)
	}
	return time.Since(began)
}

// connect begins to watch.
func (w *watcher) connect(ctx context.Context, r *registry) (*http.Response, error) {
	dialer := &tls.Dialer{Config: registrytest.TLS(w.member.Key, r.fingerprint)}
	conn, err := dialer.DialContext(ctx, "tcp", r.address)
	if err != nil {
		return nil, err
	}
	path := registryv1.Base + registryv1.PathWatch
	if w.after != "" {
		path += "?after=" + url.QueryEscape(w.after)
	}
	if _, err := fmt.Fprintf(conn, "GET %s HTTP/1.1\r\nHost: %s\r\nAccept: %s\r\n\r\n", path, r.address, eventstream.MediaType); err != nil {
		return nil, err
	}
	answer, err := http.ReadResponse(bufio.NewReaderSize(conn, 4<<10), nil)
	if err != nil {
		return nil, err
	}
	answer.Body = closing{answer.Body, conn}
	if answer.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(io.LimitReader(answer.Body, 1<<10))
		answer.Body.Close()
		return nil, fmt.Errorf("watch: %s: %s", answer.Status, text)
	}
	return answer, nil
}

// closing closes the connection with the body.
type closing struct {
	io.Reader
	io.Closer
}

// read reads events until the stream ends, and notes the revisions of offers.
func (w *watcher) read(body io.Reader, note func(w *watcher, revision int64)) error {
	lines := bufio.NewReaderSize(body, 16<<10)
	for {
		line, err := lines.ReadSlice('\n')
		if err != nil {
			return err
		}
		if id, is := bytes.CutPrefix(line, []byte("id: ")); is {
			w.after = string(bytes.TrimSpace(id))
		} else if revision, is := revisionOf(line); is {
			note(w, revision)
		}
	}
}

// revisionOf returns the revision of the offer that a line of a stream tells of.
func revisionOf(line []byte) (int64, bool) {
	data, is := bytes.CutPrefix(line, []byte(`data: {"offer":{`))
	if !is {
		return 0, false
	}
	_, rest, is := bytes.Cut(data, []byte(`,"revision":`))
	digits, _, ends := bytes.Cut(rest, []byte(","))
	revision, err := strconv.ParseInt(string(digits), 10, 64)
	return revision, is && ends && err == nil
}

func TestRevisionOf(t *testing.T) {
	text, err := json.Marshal(registryv1.Upsert{Offer: &registryv1.Offer{Party: "a", ID: "b", Revision: 17, JWS: "x"}})
	if err != nil {
		t.Fatal(err)
	}
	event := eventstream.Append(nil, eventstream.Event{ID: "1", Name: registryv1.EventUpsert, Data: text})
	var found []int64
	for line := range bytes.Lines(event) {
		if revision, is := revisionOf(line); is {
			found = append(found, revision)
		}
	}
	if len(found) != 1 || found[0] != 17 {
		t.Errorf("revisions %v in %s, want 17", found, event)
	}
	if _, is := revisionOf([]byte(`data: {"party":{"id":"a","revision":3,`)); is {
		t.Error("a party is taken for an offer")
	}
}

// note notes that a watcher has seen a change.
func (a *audience) note(w *watcher, revision int64) {
	if k := revision - firstChange; k >= 0 && k < int64(len(a.sent)) && w.delays[k] == 0 {
		w.delays[k] = time.Since(a.began) - time.Duration(a.sent[k].Load())
		a.seen[k].Add(1)
	}
}

// position returns where the registry is: that of a watcher that has read all that there is, how long that took, and how many bytes it was.
func (a *audience) position(tb testing.TB) (after string, took time.Duration, size int64) {
	tb.Helper()
	began := time.Now()
	w := &watcher{member: a.members[0]}
	answer, err := w.connect(tb.Context(), a.registry)
	if err != nil {
		tb.Fatal(err)
	}
	defer answer.Body.Close()
	counted := &counting{Reader: answer.Body}
	lines := bufio.NewReaderSize(counted, 64<<10)
	for bookmark := false; ; {
		line, err := lines.ReadString('\n')
		if err != nil {
			tb.Fatal(err)
		}
		if id, is := strings.CutPrefix(line, "id: "); is {
			after = strings.TrimSpace(id)
		}
		bookmark = bookmark || strings.TrimSpace(line) == "event: "+registryv1.EventBookmark
		if bookmark && strings.TrimSpace(line) == "" {
			return after, time.Since(began), counted.bytes
		}
	}
}

// counting counts what is read.
type counting struct {
	io.Reader

	bytes int64
}

// Read implements io.Reader.
func (c *counting) Read(into []byte) (int, error) {
	n, err := c.Reader.Read(into)
	c.bytes += int64(n)
	return n, err
}

// attachWhole runs the connector's own clients until the test ends, and waits until they have verified everything.
func (a *audience) attachWhole(t *testing.T) {
	t.Helper()
	var reached sync.WaitGroup
	a.whole = min(whole, len(a.members))
	for n := range a.whole {
		m := a.members[n]
		reached.Add(1)
		first := sync.OnceFunc(reached.Done)
		watch := client.NewWatcher(client.WatcherConfig{
			Client: func() *client.Client { return m.client },
			Deliver: func(_ context.Context, changes []client.Change, after string) ([]offer.Key, error) {
				for _, c := range changes {
					if c.Offer != nil {
						a.check(c.Offer.Revision)
					}
				}
				if after != "" {
					first()
				}
				return nil, nil
			},
		})
		servingtest.Run(t, watch.Run)
	}
	reached.Wait()
}

// check notes that one of the connector's own clients has verified a change.
func (a *audience) check(revision int64) {
	k := int(revision) - firstChange
	if k < 0 || k >= len(a.sent) {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.verified[k] = append(a.verified[k], time.Since(a.began)-time.Duration(a.sent[k].Load()))
}

// checked returns how many of the connector's own clients have verified a change.
func (a *audience) checked(k int) int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return len(a.verified[k])
}

// change changes the offer of a change: each is another one, of another party as long as there are some. It returns how long the registry
// took to answer.
func (a *audience) change(ctx context.Context, k int, jws string) (time.Duration, error) {
	m, began := a.members[k%len(a.members)], time.Now()
	a.sent[k].Store(int64(began.Sub(a.began)))
	_, err := m.client.Publish(ctx, m.ID, offerID(k/len(a.members)%a.offersEach), jws)
	return time.Since(began), err
}

// signed returns the offers of some changes.
func (a *audience) signed(tb testing.TB, from, to int) map[int]string {
	tb.Helper()
	all := map[int]string{}
	for k := from; k < to; k++ {
		n := k % len(a.members)
		all[k] = a.members[n].sign(tb, n, k/len(a.members)%a.offersEach, int64(firstChange+k))
	}
	return all
}

// await waits until all have seen some changes, and returns how long each took for each watcher, and for each of the connector's clients.
func (a *audience) await(tb testing.TB, from, to int) (all, verified took) {
	tb.Helper()
	deadline := time.Now().Add(patience)
	for k := from; k < to; k++ {
		for a.seen[k].Load() < int64(len(a.watchers)) {
			if time.Now().After(deadline) {
				tb.Fatalf("%d of %d watchers have seen change %d", a.seen[k].Load(), len(a.watchers), k)
			}
			time.Sleep(time.Millisecond)
		}
		for a.checked(k) < a.whole {
			if time.Now().After(deadline) {
				tb.Fatalf("%d of %d clients have verified change %d", a.checked(k), a.whole, k)
			}
			time.Sleep(time.Millisecond)
		}
	}
	for k := from; k < to; k++ {
		for _, w := range a.watchers {
			all = append(all, w.delays[k])
		}
		a.mu.Lock()
		verified = append(verified, a.verified[k]...)
		a.mu.Unlock()
	}
	return all, verified
}

// oneByOne makes changes one after another, each when all have seen the one before. Answers are how long the registry took to answer.
func (a *audience) oneByOne(tb testing.TB, from, to int) (answers, all, verified took) {
	tb.Helper()
	signed := a.signed(tb, from, to)
	for k := from; k < to; k++ {
		answer, err := a.change(tb.Context(), k, signed[k])
		if err != nil {
			tb.Fatal(err)
		}
		answers = append(answers, answer)
		a.await(tb, k, k+1)
	}
	all, verified = a.await(tb, from, to)
	return answers, all, verified
}

// atOnce makes changes all at the same time, by parties that are connected, as connectors are.
func (a *audience) atOnce(tb testing.TB, from, to int) (answers, all, verified took) {
	tb.Helper()
	signed := a.signed(tb, from, to)
	warm, ctx := errgroup.WithContext(tb.Context())
	warm.SetLimit(atOnce)
	for k := from; k < to; k++ {
		warm.Go(func() error {
			_, err := a.members[k%len(a.members)].client.Registry(ctx)
			return err
		})
	}
	if err := warm.Wait(); err != nil {
		tb.Fatal(err)
	}
	answers = make(took, to-from)
	group, ctx := errgroup.WithContext(tb.Context())
	for k := from; k < to; k++ {
		group.Go(func() error {
			answer, err := a.change(ctx, k, signed[k])
			answers[k-from] = answer
			return err
		})
	}
	if err := group.Wait(); err != nil {
		tb.Fatal(err)
	}
	all, verified = a.await(tb, from, to)
	return answers, all, verified
}
