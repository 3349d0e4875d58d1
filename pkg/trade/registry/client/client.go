// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

// Package client is the other end of a registry's API: it keeps at a registry what a party wants to be known there, and follows what
// others offer.
//
// It trusts a registry with nothing but its availability: each party and each offer that it hands on has been verified against
// the keys of its owner, and is no older than what was seen before. It does not know what offers are wanted for.
package client

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/capacitorset/liqo-broker/pkg/serving/restclient"
	"github.com/capacitorset/liqo-broker/pkg/trade/party"
	"github.com/capacitorset/liqo-broker/pkg/trade/registry/registryv1"
)

const (
	// requestTimeout is longer than a registry takes to answer.
	requestTimeout = 20 * time.Second
	// maxAnswer bounds an answer, in bytes: a page of offers has some 512 KiB. maxList bounds all pages of a list together.
	maxAnswer, maxList = 1 << 20, 16 << 20
	// pageSize is how many offers are asked for at once: the largest ones fit into an answer.
	pageSize = 30
)

// Client calls one registry. It is safe for concurrent use.
type Client struct {
	base string
	rest *restclient.Client
}

// New returns a client of the registry at an https URL. The TLS configuration has the certificate by which the registry knows the party,
// and says how the registry is known; see package party.
func New(registry string, config *tls.Config) (*Client, error) {
	u, err := party.ParseEndpoint(registry)
	switch {
	case err != nil:
		return nil, fmt.Errorf("%q is not the URL of a registry: https://HOST[:PORT][/PATH]", registry)
	case config == nil:
		return nil, errors.New("a client of a registry needs a TLS configuration")
	}
	c := &Client{base: strings.TrimSuffix(u.String(), "/")}
	c.rest = restclient.New(restclient.Config{Base: c.base + registryv1.Base, Server: "the registry", MaxAnswer: maxAnswer,
		Transport: &http.Transport{
			DialContext:     party.Dialer().DialContext,
			TLSClientConfig: config, TLSHandshakeTimeout: 10 * time.Second, ResponseHeaderTimeout: requestTimeout, IdleConnTimeout: 10 * time.Second,
			MaxIdleConnsPerHost: 2, Proxy: http.ProxyFromEnvironment, ReadBufferSize: 4 << 10, WriteBufferSize: 4 << 10,
		}})
	return c, nil
}

// URL is where the registry is.
func (c *Client) URL() string { return c.base }

// Close closes the connections that nobody uses.
func (c *Client) Close() { c.rest.Close() }

// RefusalError is a registry's reason not to do something.
type RefusalError = restclient.RefusalError

// Refused returns why a registry has refused what led to an error; nil if it was not a refusal that lasts.
func Refused(err error) *RefusalError { return restclient.Refused(err) }

// Registry returns what the registry says of itself, and as whom it sees the caller.
func (c *Client) Registry(ctx context.Context) (registryv1.Registry, error) {
	var r registryv1.Registry
	return r, c.call(ctx, http.MethodGet, registryv1.PathRegistry, nil, &r)
}

// Announce announces a party. It may be repeated.
func (c *Client) Announce(ctx context.Context, id string, e registryv1.Enrolment) (registryv1.Party, error) {
	var p registryv1.Party
	return p, c.call(ctx, http.MethodPut, path(registryv1.PathParty, id, ""), e, &p)
}

// Party returns a party, as the registry says it is.
func (c *Client) Party(ctx context.Context, id string) (registryv1.Party, error) {
	var p registryv1.Party
	return p, c.call(ctx, http.MethodGet, path(registryv1.PathParty, id, ""), nil, &p)
}

// Publish publishes an offer. It may be repeated.
func (c *Client) Publish(ctx context.Context, id, offer, jws string) (registryv1.Offer, error) {
	var o registryv1.Offer
	return o, c.call(ctx, http.MethodPut, path(registryv1.PathOffer, id, offer), registryv1.Publication{Offer: jws}, &o)
}

// Withdraw withdraws an offer. It may be repeated: one that is not there is withdrawn.
func (c *Client) Withdraw(ctx context.Context, id, offer string) error {
	err := c.call(ctx, http.MethodDelete, path(registryv1.PathOffer, id, offer), nil, nil)
	if r := Refused(err); r != nil && r.Status == http.StatusNotFound {
		return nil
	}
	return err
}

// Renew renews the lease of a party.
func (c *Client) Renew(ctx context.Context, id string) (registryv1.Lease, error) {
	var l registryv1.Lease
	return l, c.call(ctx, http.MethodPut, path(registryv1.PathLease, id, ""), nil, &l)
}

// Offers returns the offers that pass a filter, as the registry says they are: nothing of it is verified. The error is ErrTooMany for a
// list of more than 16 MiB.
func (c *Client) Offers(ctx context.Context, filter url.Values) ([]registryv1.Offer, error) {
	var all []registryv1.Offer
	err := c.EachOffer(ctx, filter, func(o registryv1.Offer) { all = append(all, o) })
	if err != nil {
		return nil, err
	}
	return all, nil
}

// EachOffer calls do with the offers that pass a filter, one by one, as [Client.Offers] returns them. After an error it may have been
// called with some.
func (c *Client) EachOffer(ctx context.Context, filter url.Values, do func(registryv1.Offer)) error {
	query := url.Values{"limit": {strconv.Itoa(pageSize)}}
	maps.Copy(query, filter)
	room := int64(maxList)
	for pages := 1; ; pages++ {
		page := registryv1.PathOffers + "?" + query.Encode()
		next, size, err := c.page(ctx, page, do)
		// Also a page of nothing takes something: a registry cannot go on for ever.
		if room -= max(size, maxList>>12); err == nil && room < 0 {
			err = fmt.Errorf("%w: more than %d bytes in %d pages", ErrTooMany, maxList, pages)
		}
		if err != nil {
			return fmt.Errorf("GET %s: %w", c.base+registryv1.Base+page, err)
		}
		if next == "" {
			return nil
		}
		query.Set("continue", next)
	}
}

// page calls do with the offers of a page, and returns where the next one begins and how many bytes this one has.
func (c *Client) page(ctx context.Context, path string, do func(registryv1.Offer)) (next string, size int64, err error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	answer, err := c.rest.Send(ctx, http.MethodGet, path, nil, restclient.JSON)
	if err != nil {
		return "", 0, err
	}
	defer answer.Body.Close()
	body := &io.LimitedReader{R: answer.Body, N: maxAnswer}
	next, err = readPage(json.NewDecoder(body), do)
	if body.N <= 0 {
		err = fmt.Errorf("%w: more than %d bytes in a page", ErrTooMany, maxAnswer)
	}
	if err != nil {
		return "", 0, fmt.Errorf("read the answer: %w", err)
	}
	return next, maxAnswer - body.N, nil
}

// readPage reads a page item by item, so that no more than one is in memory.
func readPage(from *json.Decoder, do func(registryv1.Offer)) (next string, err error) {
	if err := delimiter(from, '{'); err != nil {
		return "", err
	}
	for from.More() {
		field, err := from.Token()
		if err != nil {
			return "", err
		}
		// The mark of the next page may come before the items or after them, and a newer registry may say more.
		switch field {
		case "items":
			if err := delimiter(from, '['); err != nil {
				return "", err
			}
			for from.More() {
				var o registryv1.Offer
				if err := from.Decode(&o); err != nil {
					return "", err
				}
				do(o)
			}
			if err := delimiter(from, ']'); err != nil {
				return "", err
			}
		case "continue":
			if err := from.Decode(&next); err != nil {
				return "", err
			}
		default:
			var other json.RawMessage
			if err := from.Decode(&other); err != nil {
				return "", err
			}
		}
	}
	return next, delimiter(from, '}')
}

// delimiter reads a delimiter.
func delimiter(from *json.Decoder, want json.Delim) error {
	got, err := from.Token()
	if err == nil && got != want {
		err = fmt.Errorf("%v where there should be %v", got, want)
	}
	return err
}

// path returns a path with its names.
func path(pattern, id, offer string) string {
	return strings.NewReplacer("{party}", url.PathEscape(id), "{offer}", url.PathEscape(offer)).Replace(pattern)
}

// call makes a request, and reads the answer.
func (c *Client) call(ctx context.Context, method, path string, body, into any) error {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	return c.rest.Call(ctx, method, path, body, into)
}
