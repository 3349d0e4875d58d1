// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/capacitorset/liqo-broker/pkg/serving/source"
	"github.com/capacitorset/liqo-broker/pkg/trade/core/offer"
	"github.com/capacitorset/liqo-broker/pkg/trade/registry/client"
	"github.com/capacitorset/liqo-broker/pkg/trade/registry/registrytest"
	"github.com/capacitorset/liqo-broker/pkg/trade/registry/registryv1"
)

// publishLarge publishes offers that are about as large as offers may be, with 29 plans of 32 resources each.
func publishLarge(t *testing.T, p *registrytest.Party, c *client.Client, count int) {
	t.Helper()
	one, err := offer.ParseQuantity("1")
	if err != nil {
		t.Fatal(err)
	}
	for n := range count {
		o := p.Document(t, fmt.Sprintf("o%d", n), 1)
		plan := o.Plans[0]
		plan.Resources = offer.Resources{"cpu": one, "memory": one, "pods": one}
		for i := range 29 {
			plan.Resources[fmt.Sprintf("a/%c%c", 'a'+i%26, 'a'+i/26)] = one
		}
		o.Plans = nil
		for i := range 29 {
			plan.ID = fmt.Sprintf("p%d", i)
			o.Plans = append(o.Plans, plan)
		}
		if _, err := c.Publish(t.Context(), p.ID, o.ID, p.Sign(t, offer.Type, o)); err != nil {
			t.Fatal(err)
		}
	}
}

// pagesOf reads a list page after page, and returns its pages; and the status of the last answer, which is another than 200 if the list has
// not come to its end.
func pagesOf(
	t *testing.T, r *registry, p *registrytest.Party, query url.Values,
) (pages []List[registryv1.Offer], bodies []string, status int) {
	t.Helper()
	for {
		a := r.call(t, &p.Key, http.MethodGet, "/v1/offers?"+query.Encode(), "")
		if a.status != http.StatusOK {
			return pages, bodies, a.status
		}
		var page List[registryv1.Offer]
		if err := json.Unmarshal([]byte(a.body), &page); err != nil {
			t.Fatal(err)
		}
		pages, bodies = append(pages, page), append(bodies, a.body)
		if page.Continue == "" {
			return pages, bodies, a.status
		}
		query.Set("continue", page.Continue)
	}
}

// TestDearExpressions asks for offers by an expression that costs as much as one may for each plan: pages end before they have cost much,
// and who has spent its share waits, while others and lists without an expression are answered.
func TestDearExpressions(t *testing.T) {
	r := run(t, newFileDSN(t), nil)
	p, c := r.member(t, "seller")
	other, _ := r.member(t, "other")
	publishLarge(t, p, c, 12)
	dear := func() url.Values {
		return url.Values{"expression": {`plan.resources.all(k, plan.resources.all(l, k != "b")) && false`}}
	}
	pages, _, status := pagesOf(t, r, p, dear())
	if status != http.StatusOK || len(pages) < 3 || len(pages) > 12 {
		t.Errorf("%d pages of a list that nothing passes, and then %d", len(pages), status)
	}
	for _, page := range pages {
		if len(page.Items) > 0 {
			t.Errorf("%d offers pass", len(page.Items))
		}
	}
	for range 200 { // Ten seconds' share is some 50 such offers.
		if _, _, status = pagesOf(t, r, p, dear()); status != http.StatusOK {
			break
		}
	}
	if status != http.StatusTooManyRequests {
		t.Errorf("a party goes on and on: %d", status)
	}
	// It may lack so little that it has its share again at once: what follows is asked ten seconds earlier.
	r.effort.spend(caller{party: r.parties.getParty(p.ID)}, effortEach*burst)
	if _, _, status = pagesOf(t, r, p, url.Values{"region": {"eu-north"}}); status != http.StatusOK {
		t.Errorf("it gets %d without an expression", status)
	}
	if a := r.call(t, &p.Key, http.MethodGet, "/v1/offers?expression="+url.QueryEscape("plan.available > 1")+"&maxPrice=1",
		""); a.status != http.StatusTooManyRequests {
		t.Errorf("it gets %d for an expression", a.status)
	}
	if _, _, status = pagesOf(t, r, other, dear()); status != http.StatusOK {
		t.Errorf("another one gets %d", status)
	}
	for i := range 400 { // Ten seconds' share is some 30 such texts.
		long := fmt.Sprintf("plan.available > %d", i) + strings.Repeat(" ", 900)
		if status = r.call(t, &other.Key, http.MethodGet, "/v1/offers?region=nowhere&expression="+url.QueryEscape(long), "").
			status; status != http.StatusOK {
			break
		}
	}
	if status != http.StatusTooManyRequests {
		t.Errorf("a party has new expressions compiled on and on: %d", status)
	}
}

// TestDearWatch watches with such an expression: the watcher waits for its share, and still learns of everything.
func TestDearWatch(t *testing.T) {
	r := run(t, newFileDSN(t), nil)
	p, c := r.member(t, "seller")
	publishLarge(t, p, c, 2)
	share := r.effort.pace.Of(caller{party: r.parties.getParty(p.ID)}.source())
	before := share.Tokens()
	w := r.watch(t, p, url.Values{"expression": {`plan.resources.all(k, plan.resources.all(l, k != "b")) && false`}})
	w.want("The party comes, and none of its offers.", "snapshot", "+seller", "bookmark")
	if cost := before - share.Tokens(); cost < 29_000 {
		t.Errorf("two offers have cost %f", cost)
	}
}

// TestLargePages asks for all at once: pages are bounded in bytes, and all of them have all.
func TestLargePages(t *testing.T) {
	r := run(t, newFileDSN(t), nil)
	p, c := r.member(t, "seller")
	publishLarge(t, p, c, 50)
	pages, bodies, status := pagesOf(t, r, p, url.Values{"limit": {"500"}, "documents": {"true"}})
	seen := map[string]bool{}
	for i, page := range pages {
		for _, item := range page.Items {
			seen[item.ID] = true
		}
		if len(bodies[i]) > maxPage*5/4 {
			t.Errorf("page %d has %d bytes", i, len(bodies[i]))
		}
	}
	if len(seen) != 50 || len(pages) < 3 || status != http.StatusOK {
		t.Errorf("%d offers on %d pages, and then %d", len(seen), len(pages), status)
	}
	for _, path := range []string{registryv1.PathV0, registryv1.PathREARFlavors} {
		offers := 0
		for next, n := path+"?limit=500", 0; next != ""; n++ {
			a := r.call(t, &p.Key, http.MethodGet, next, "")
			if a.status != http.StatusOK || len(a.body) > maxPage*5/4 || n > 50 {
				t.Fatalf("page %d of %s: %d, %d bytes: %.200s", n, path, a.status, len(a.body), a.body)
			}
			offers += strings.Count(a.body, `"offerID"`) + strings.Count(a.body, `"flavorId"`)
			next, _, _ = strings.Cut(strings.TrimPrefix(a.header.Get("Link"), "<"), ">")
		}
		if want := map[string]int{registryv1.PathV0: 50, registryv1.PathREARFlavors: 50 * 29}[path]; offers != want {
			t.Errorf("%s has %d of %d", path, offers, want)
		}
	}
}

// TestListsAtOnce holds what a party may have on its way: one more list is refused until one has been read, and nothing else is.
func TestListsAtOnce(t *testing.T) {
	r := run(t, newFileDSN(t), nil)
	p, c := r.member(t, "seller")
	var leave func()
	for range answersEach {
		var ok bool
		if leave, ok = r.answers.Enter(source.Caller(p.ID)); !ok {
			t.Fatal("there is no room")
		}
	}
	for _, path := range []string{"/v1/offers", "/v1/parties", registryv1.PathV0, registryv1.PathREARFlavors} {
		if a := r.call(t, &p.Key, http.MethodGet, path, ""); a.status != http.StatusTooManyRequests || a.header.Get("Retry-After") == "" {
			t.Errorf("%s: %d", path, a.status)
		}
	}
	if _, err := c.Renew(t.Context(), p.ID); err != nil {
		t.Error(err)
	}
	leave()
	if a := r.call(t, &p.Key, http.MethodGet, "/v1/offers", ""); a.status != http.StatusOK {
		t.Errorf("there is room again: %d", a.status)
	}
}

// narrow accepts connections that keep little of what is on its way to a reader.
type narrow struct{ net.Listener }

// Accept implements net.Listener.
func (n narrow) Accept() (net.Conn, error) {
	c, err := n.Listener.Accept()
	if tcp, is := c.(*net.TCPConn); is && err == nil {
		err = tcp.SetWriteBuffer(4 << 10)
	}
	return c, err
}

// TestSlowReaders has a party ask for as many lists as it may have on their way, and read no more than how they begin: one more is refused
// until it has gone away from one. A server that keeps answers whole for those who read slowly would have no more lists on their way, and
// all of them in its memory.
func TestSlowReaders(t *testing.T) {
	r := runOn(t, newFileDSN(t), nil, func(l net.Listener) net.Listener { return narrow{l} })
	p, c := r.member(t, "seller")
	publishLarge(t, p, c, 20) // A page of them is more than the buffers of a connection hold.
	const list = "/v1/offers?limit=500&documents=true"
	var slow net.Conn
	for range answersEach {
		var err error
		if slow, err = (&net.Dialer{}).DialContext(t.Context(), "tcp", r.address); err != nil {
			t.Fatal(err)
		}
		defer slow.Close()
		if err := slow.(*net.TCPConn).SetReadBuffer(4 << 10); err != nil {
			t.Fatal(err)
		}
		secure := tls.Client(slow, registrytest.TLS(p.Key, r.key))
		if _, err := fmt.Fprintf(secure, "GET %s HTTP/1.1\r\nHost: x\r\n\r\n", list); err != nil {
			t.Fatal(err)
		}
		begin := make([]byte, len("HTTP/1.1 200"))
		if _, err := io.ReadFull(secure, begin); err != nil || string(begin) != "HTTP/1.1 200" {
			t.Fatalf("a list begins with %q, %v", begin, err)
		}
	}
	if a := r.call(t, &p.Key, http.MethodGet, list, ""); a.status != http.StatusTooManyRequests {
		t.Errorf("with %d lists that are not read, one more is answered with %d", answersEach, a.status)
	}
	_ = slow.Close()
	until(t, "there is room again", func() bool { return r.call(t, &p.Key, http.MethodGet, list, "").status == http.StatusOK })
}
