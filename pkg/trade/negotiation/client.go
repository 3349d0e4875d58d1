// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package negotiation

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/capacitorset/liqo-broker/pkg/serving/restclient"
	"github.com/capacitorset/liqo-broker/pkg/trade/core/contract"
	"github.com/capacitorset/liqo-broker/pkg/trade/core/offer"
	"github.com/capacitorset/liqo-broker/pkg/trade/negotiation/negotiationv1"
	"github.com/capacitorset/liqo-broker/pkg/trade/party"
)

const (
	// maxAnswer bounds answers in bytes: a contract has two signatures of terms, one in the other, and an offer.
	maxAnswer = 256 << 10
	// clientIdle is how long a connection is kept for the next request: a seller has many buyers, which look at their contracts now and then.
	clientIdle = 5 * time.Second
)

// ClientConfig is what a client needs.
type ClientConfig struct {
	// Endpoint is the URL of the seller's connector, with https.
	Endpoint string
	// Seller has the keys of the party that must answer there, with the current one.
	Seller party.Keys
	// Buyer has those of the caller, and Key returns its current key.
	Buyer party.Keys
	Key   func() party.Key
	// Elapsed is a clock that never leaps: how much time has passed since some moment; nil is that of the process.
	Elapsed func() time.Duration
}

// Client asks one seller, whose key it has seen in a signed offer. It can be used concurrently.
type Client struct {
	cfg  ClientConfig
	rest *restclient.Client

	mu     sync.Mutex // of seller
	seller party.Keys
	said   atomic.Pointer[said]
}

// said is what time it was by the seller's clock when it answered last.
type said struct {
	date time.Time
	at   time.Duration
}

// NewClient returns a client.
func NewClient(cfg ClientConfig) (*Client, error) {
	_, err := party.ParseEndpoint(cfg.Endpoint)
	switch {
	case err != nil:
		return nil, fmt.Errorf("read the endpoint of a connector: %w", err)
	case cfg.Key == nil || cfg.Seller.Current() == nil || cfg.Buyer.Current() == nil:
		return nil, errors.New("a client of negotiations needs the keys of buyer and seller")
	}
	if cfg.Elapsed == nil {
		began := time.Now()
		cfg.Elapsed = func() time.Duration { return time.Since(began) }
	}
	c := &Client{cfg: cfg, seller: cfg.Seller}
	c.rest = c.over(newTransport(cfg.Key, c.pinned), c.heard)
	return c, nil
}

// over returns what calls the seller over connections, and shows its answers.
func (c *Client) over(connections *http.Transport, answered func(*http.Response)) *restclient.Client {
	means := map[string]error{}
	for _, p := range slices.Backward(problems) { // Of two with one type the first counts.
		means[p.typ] = p.err
	}
	return restclient.New(restclient.Config{
		Base: strings.TrimSuffix(c.cfg.Endpoint, "/") + negotiationv1.Base, Server: "the seller", Transport: connections, MaxAnswer: maxAnswer,
		Errors: means, Decode: party.Decode, Answered: answered,
	})
}

// heard notes what time it is by the seller's clock.
func (c *Client) heard(answer *http.Response) {
	if date, err := http.ParseTime(answer.Header.Get("Date")); err == nil {
		c.said.Store(&said{date.UTC(), c.cfg.Elapsed()})
	}
}

// newTransport returns the connections of a party with a key to one whose key is admitted.
func newTransport(key func() party.Key, admits func(fingerprint string) error) *http.Transport {
	peer := func(fingerprint string) error {
		if err := admits(fingerprint); err != nil {
			return fmt.Errorf("%w: %w", errOtherKey, err)
		}
		return nil
	}
	return &http.Transport{
		DialContext:         party.Dialer().DialContext,
		TLSClientConfig:     party.TLS{Current: key, Peer: peer}.Client(),
		TLSHandshakeTimeout: answerTimeout, MaxResponseHeaderBytes: 16 << 10, MaxIdleConnsPerHost: 4, IdleConnTimeout: clientIdle,
	}
}

// Close ends connections that are not in use.
func (c *Client) Close() { c.rest.Close() }

// SellerTime returns what time it is by the seller's clock: what its last answer said, and what has passed since. It is zero if no answer
// has said one.
func (c *Client) SellerTime() time.Time {
	last := c.said.Load()
	if last == nil {
		return time.Time{}
	}
	return last.date.Add(c.cfg.Elapsed() - last.at)
}

// Replace takes the place of another client of the same seller, with the same Elapsed: it knows what time that one has heard.
func (c *Client) Replace(other *Client) { c.said.Store(other.said.Load()) }

// Quoted is what a seller would sell now.
type Quoted struct {
	Terms   contract.Terms
	Offer   offer.Offer
	Verdict contract.Verdict
	Reason  string
	// Endpoints are where the seller says that its cluster is reached.
	Endpoints negotiationv1.Endpoints
}

// Quote asks for terms, and verifies that they are those of the offer that the seller has signed, and what was asked for.
func (c *Client) Quote(ctx context.Context, request negotiationv1.QuoteRequest) (Quoted, error) {
	var said negotiationv1.Quote
	if err := c.call(ctx, http.MethodPost, "/quotes", request, &said, 0); err != nil {
		return Quoted{}, fmt.Errorf("ask party %s for a quote of offer %s: %w", c.cfg.Seller.ID(), request.Offer, err)
	}
	quoted := Quoted{Verdict: contract.Verdict(said.Verdict), Reason: said.Reason}
	if said.Endpoints != nil {
		quoted.Endpoints = *said.Endpoints
	}
	signed, err := offer.ReadSigned(said.Offer, c.Seller().VerifyAny)
	if err == nil {
		quoted.Offer = signed.Offer
		quoted.Terms, err = readTerms(said.Terms)
	}
	if err == nil {
		err = c.meant(quoted, request)
	}
	if err != nil {
		return Quoted{}, fmt.Errorf("read the quote of offer %s by party %s: %w", request.Offer, c.cfg.Seller.ID(), err)
	}
	return quoted, nil
}

// meant returns an error if a quote is not of what was asked for.
func (c *Client) meant(quoted Quoted, request negotiationv1.QuoteRequest) error {
	terms := quoted.Terms
	wanted, err := offer.ParseResources(request.Resources)
	if err != nil {
		return fmt.Errorf("%w: %w", offer.In("resources", err), contract.ErrTerms)
	}
	plan, _ := quoted.Offer.Plan(request.Plan)
	price, err := plan.Cost(offer.FromList(terms.Resources))
	switch {
	case err != nil:
		return fmt.Errorf("%w: %w", err, contract.ErrTerms)
	case terms.ID != request.ID || terms.Buyer != string(c.cfg.Buyer.ID()) || terms.Seller != string(c.cfg.Seller.ID()) || terms.Revision != 1:
		return fmt.Errorf("terms of another contract, %s: %w", terms.Key(), contract.ErrTerms)
	case terms.Cluster != readCluster(request.Cluster):
		return fmt.Errorf("terms for another cluster, %.80q: %w", terms.Cluster.String(), contract.ErrTerms)
	case terms.Offer != request.Offer || terms.Plan != request.Plan || quoted.Offer.ID != request.Offer ||
		quoted.Offer.Party != terms.Seller ||
		terms.OfferRevision != quoted.Offer.Revision || terms.OfferDigest != quoted.Offer.Fingerprint():
		return fmt.Errorf("terms of another offer: %w", contract.ErrTerms)
	case !offer.FromList(terms.Resources).Covers(wanted):
		return fmt.Errorf("fewer resources than asked for: %w", contract.ErrTerms)
	case terms.Price != price:
		return fmt.Errorf("another price than the offer's: %w", contract.ErrTerms)
	case terms.Notice != time.Duration(plan.Notice):
		return fmt.Errorf("another notice than the offer's: %w", contract.ErrTerms)
	case !terms.StartsAt.Equal(request.StartsAt.Truncate(time.Second)) || !terms.EndsAt.Equal(request.EndsAt.Truncate(time.Second)):
		return fmt.Errorf("another time than asked for: %w", contract.ErrTerms)
	}
	return nil
}

// Do sends a request of the buyer, and returns the contract as its seller shows it after it, with signatures that were verified. If the
// state does not allow the request, the error is one of package contract, and the view is there all the same if the contract is known. It
// is ErrTooMany if the seller wants fewer requests or contracts.
func (c *Client) Do(ctx context.Context, request contract.Request) (contract.View, error) {
	return c.DoAt(ctx, request, nil)
}

// DoAt is Do, and tells with the buyer's signature where its cluster is reached: a seller does not sign otherwise. The error is
// ErrNotReachable if it does not reach the cluster there.
func (c *Client) DoAt(ctx context.Context, request contract.Request, at *negotiationv1.Endpoints) (contract.View, error) {
	path, body := "", any(nil)
	switch request.Event { //nolint:exhaustive // The others are the seller's.
	case contract.Reserve:
		body = negotiationv1.Proposal{Terms: writeTerms(request.Terms)}
	case contract.Resize:
		path, body = "/resize", negotiationv1.Proposal{Terms: writeTerms(request.Terms)}
	case contract.Renew:
		path, body = "/renewal", negotiationv1.Proposal{Terms: writeTerms(request.Terms)}
	case contract.Sign, contract.Confirm:
		path, body = "/signature", negotiationv1.Signature{Signature: request.Signature, Endpoints: at}
	case contract.Peered:
		path = "/provisioned"
	case contract.Drained:
		path = "/drained"
	case contract.Terminate:
		path, body = "/termination", negotiationv1.Termination{Reason: request.Reason}
	default:
		return contract.View{}, fmt.Errorf("%s is no request of a buyer", request.Event)
	}
	view, err := c.contract(ctx, http.MethodPut, request.Key.ID, path, body, 0)
	if err == nil {
		return view, nil
	}
	err = fmt.Errorf("%s contract %s: %w", request.Event, request.Key, err)
	for _, p := range problems {
		if errors.Is(err, p.err) && p.err != contract.ErrUnknown && p.err != ErrTooMany && p.err != ErrStranger && p.err != ErrReplaced { //nolint:errorlint // It is the sentinel itself.
			if shown, failed := c.Get(ctx, request.Key.ID, 0, 0); failed == nil {
				view = shown
			}
			break
		}
	}
	return view, err
}

// Get returns a contract. It waits up to MaxWait until its version is higher than after; wait 0 does not.
func (c *Client) Get(ctx context.Context, id string, after int64, wait time.Duration) (contract.View, error) {
	path := ""
	wait = max(min(wait, MaxWait), 0)
	if seconds := int(wait / time.Second); seconds > 0 || after > 0 {
		path = "?after=" + strconv.FormatInt(after, 10) + "&wait=" + strconv.Itoa(seconds)
	}
	view, err := c.contract(ctx, http.MethodGet, id, path, nil, wait)
	if err != nil {
		return contract.View{}, fmt.Errorf("get contract %s of party %s: %w", id, c.cfg.Seller.ID(), err)
	}
	return view, nil
}

// contract makes a call that is answered with a contract, for which the seller may wait, and verifies it.
func (c *Client) contract(ctx context.Context, method, id, path string, body any, wait time.Duration) (contract.View, error) {
	var shown negotiationv1.Contract
	if err := c.call(ctx, method, "/contracts/"+url.PathEscape(id)+path, body, &shown, wait); err != nil {
		return contract.View{}, err
	}
	view, err := readView(shown, c.cfg.Buyer.ID())
	switch {
	case err != nil:
		return contract.View{}, err
	case view.Key.ID != id:
		return contract.View{}, fmt.Errorf("another contract, %.63q: %w", view.Key.ID, contract.ErrTerms)
	case !view.Signed():
		return view, nil
	}
	signed, err := VerifySigned(view.Signature, view.Countersignature, c.cfg.Buyer, c.Seller())
	switch {
	case err != nil:
		return contract.View{}, err
	case !signed.Equal(view.Terms):
		return contract.View{}, fmt.Errorf("other terms than those that were signed: %w", contract.ErrTerms)
	}
	return view, nil
}

// Secret is a JSON value that is not shown when it is printed or logged.
type Secret struct{ value json.RawMessage }

// Reveal returns the value.
func (s Secret) Reveal() json.RawMessage { return s.value }

// Format implements fmt.Formatter for every verb.
func (s Secret) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, "[secret]") }

// MarshalText returns an error.
func (s Secret) MarshalText() ([]byte, error) {
	return nil, errors.New("credentials are not written into documents")
}

// Credentials returns what the buyer's cluster needs to peer.
func (c *Client) Credentials(ctx context.Context, id string) (Secret, error) {
	var said negotiationv1.Credentials
	if err := c.call(ctx, http.MethodGet, "/contracts/"+url.PathEscape(id)+"/credentials", nil, &said, 0); err != nil {
		return Secret{}, fmt.Errorf("get credentials of contract %s of party %s: %w", id, c.cfg.Seller.ID(), err)
	}
	return Secret{said.Credentials}, nil
}

// call makes a call and reads its answer, for which the seller may wait besides the time that it takes. A seller whose machine vanished
// with the call is asked again soon, over another connection. If one of the two does not know the key of the other, they tell each other,
// once.
func (c *Client) call(ctx context.Context, method, path string, body, into any, wait time.Duration) error {
	err := c.try(ctx, method, path, body, into, wait)
	if !unknown(err) {
		return err
	}
	if failed := c.introduce(ctx); failed != nil {
		return fmt.Errorf("%w; introduced again: %w", err, failed)
	}
	return c.try(ctx, method, path, body, into, wait)
}

// try makes a call once.
func (c *Client) try(ctx context.Context, method, path string, body, into any, wait time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, wait+answerTimeout)
	defer cancel()
	err := c.rest.Call(ctx, method, path, body, into)
	if errors.Is(err, restclient.ErrTooLarge) {
		return fmt.Errorf("%w: %w", err, party.ErrDocument)
	}
	return err
}
