// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package negotiation

import (
	"context"
	"crypto/ed25519"
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"github.com/capacitorset/liqo-broker/pkg/serving/rest"
	"github.com/capacitorset/liqo-broker/pkg/trade/negotiation/negotiationv1"
	"github.com/capacitorset/liqo-broker/pkg/trade/party"
)

// pathKeys is where parties that know each other tell each other their keys.
const pathKeys = "/keys"

// Learn takes in the chain of keys of a party whose current key has called. The error is ErrStranger if the party is not known, or the
// chain does not continue the one that is.
type Learn func(ctx context.Context, keys party.Keys) error

// shown is the caller who introduces itself: the key of its connection is all that is known of it.
type shown struct{ key ed25519.PublicKey }

type (
	introducing struct{ Body negotiationv1.Keys }
	introduced  struct{ Body negotiationv1.Keys }
)

// introduces reports whether a request is that of somebody who says who it is.
func introduces(r *http.Request) bool {
	return r.Method == http.MethodPut && r.URL.Path == negotiationv1.Base+pathKeys
}

// introduce takes in the keys of a caller, and answers with the seller's.
func (s *Server) introduce(ctx context.Context, in *introducing) (*introduced, error) {
	keys, err := party.ParseKeys(in.Body.Keys)
	if err != nil {
		return nil, err
	}
	shown := rest.CallerOf[shown](ctx).key
	if !keys.Current().Equal(shown) {
		return nil, forbidden(negotiationv1.ProblemStranger, "the caller's key "+party.Fingerprint(shown)+" is not the last of the chain")
	}
	if s.cfg.Learn == nil || s.cfg.Keys == nil {
		return nil, forbidden(negotiationv1.ProblemStranger, ErrStranger.Error()+": "+party.Fingerprint(shown))
	}
	if err := s.cfg.Learn(ctx, keys); err != nil {
		return nil, fmt.Errorf("learn the keys of party %s: %w", keys.ID(), err)
	}
	return &introduced{negotiationv1.Keys{Keys: s.cfg.Keys().Chain()}}, nil
}

// forbidden returns the refusal of a caller.
func forbidden(typ, detail string) *huma.ErrorModel {
	return &huma.ErrorModel{Type: typ, Title: http.StatusText(http.StatusForbidden), Status: http.StatusForbidden, Detail: detail}
}

// Seller returns the keys of the seller, with those that it has shown meanwhile.
func (c *Client) Seller() party.Keys {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.seller
}

// pinned returns what admits the seller's current key alone.
func (c *Client) pinned(fingerprint string) error {
	return party.Pin(party.Fingerprint(c.Seller().Current()))(fingerprint)
}

// unknown reports whether a call has failed since one of the two does not know the current key of the other.
func unknown(err error) bool {
	return errors.Is(err, ErrStranger) || errors.Is(err, errOtherKey)
}

// errOtherKey means that whoever answers at the seller's endpoint has another key.
var errOtherKey = errors.New("the seller has another key")

// introduce tells the seller the chain of the buyer's keys, and learns the seller's, also if it has another key by now: it is believed if
// the chain continues the one that is known and ends with the key that has answered.
func (c *Client) introduce(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	var connection *tls.ConnectionState
	anyone := newTransport(c.cfg.Key, func(string) error { return nil })
	calls := c.over(anyone, func(answer *http.Response) { connection = answer.TLS })
	defer calls.Close()
	var said negotiationv1.Keys
	if err := calls.Call(ctx, http.MethodPut, pathKeys, negotiationv1.Keys{Keys: c.cfg.Buyer.Chain()}, &said); err != nil {
		return err
	}
	keys, err := party.ParseKeys(said.Keys)
	if err != nil {
		return err
	}
	answered, err := party.PeerKey(connection)
	switch {
	case err != nil:
		return err
	case keys.ID() != c.cfg.Seller.ID() || !keys.Current().Equal(answered):
		return fmt.Errorf("the chain of party %s does not end with the key %s: %w", keys.ID(), party.Fingerprint(answered), party.ErrSignature)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if !keys.Continues(c.seller) {
		return fmt.Errorf("the keys of party %s do not continue those that were seen: %w", keys.ID(), party.ErrSignature)
	}
	c.seller = keys
	return nil
}
