// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"sync/atomic"

	"github.com/danielgtaylor/huma/v2"

	"github.com/capacitorset/liqo-broker/pkg/serving/rest"
	"github.com/capacitorset/liqo-broker/pkg/serving/source"
	"github.com/capacitorset/liqo-broker/pkg/trade/party"
	"github.com/capacitorset/liqo-broker/pkg/trade/registry/registryv1"
)

// need is what a caller needs for an operation.
type need int

const (
	// anybody may.
	anybody need = iota
	// certified needs a client certificate, whoever it is.
	certified
	// reads needs an approved party, unless everybody may read.
	reads
	// owns needs the approved party that the path names.
	owns
	// itself needs the party that the path names, also one that is not approved yet, or who reads.
	itself
)

// String is what an operation needs, in words.
func (n need) String() string {
	return map[need]string{
		anybody:   "Everybody may.",
		certified: "Needs a client certificate of the party's current key.",
		reads:     "Needs the client certificate of an approved party, unless the registry lets everybody read.",
		owns:      "Needs the client certificate of the party that is named, which must be approved.",
		itself:    "Needs the client certificate of the party that is named, or what it takes to read what is offered.",
	}[n]
}

// known is a party that has announced itself. It does not change.
type known struct {
	registryv1.Party

	keys        party.Keys
	fingerprint string // Of its current key.
	clusters    []string
}

// parties are those that have announced themselves, in any state.
type parties struct{ all atomic.Pointer[directory] }

// directory is the parties by what they are known by. It does not change. The two are apart, since an ID looks as a fingerprint does: it is
// that of the first key.
type directory struct {
	byID  map[string]*known
	byKey map[string]*known // By the fingerprint of the current key.
}

// getParty returns the party with an ID; nil if there is none.
func (p *parties) getParty(id string) *known {
	if all := p.all.Load(); all != nil {
		return all.byID[id]
	}
	return nil
}

// withKey returns the party whose current key has a fingerprint; nil if there is none.
func (p *parties) withKey(fingerprint string) *known {
	if all := p.all.Load(); all != nil {
		return all.byKey[fingerprint]
	}
	return nil
}

// caller is who makes a request.
type caller struct {
	// fingerprint is that of the key of its certificate; empty if it has shown none.
	fingerprint string
	// party is whose current key that is; nil if nobody's.
	party   *known
	address netip.Addr
}

// source is for whom a caller counts that holds something of the registry.
func (c caller) source() source.Source {
	if c.party != nil {
		return source.Caller(c.party.ID)
	}
	return source.Network(c.address)
}

// called is what logs call a caller.
func (c caller) called() string {
	if c.party != nil {
		return c.party.ID
	}
	return c.address.String()
}

// is reports whether a caller is a party.
func (c caller) is(id string) bool { return c.party != nil && id != "" && c.party.ID == id }

// identify finds out who makes a request. What a request says of itself does not count, only the key with which its connection was made.
func (s *Server) identify(r *http.Request) (caller, error) {
	who := caller{address: source.AddressOfRequest(r)}
	if r.TLS == nil || len(r.TLS.PeerCertificates) == 0 {
		return who, nil
	}
	key, err := party.PeerKey(r.TLS)
	if err != nil {
		return who, rest.Refusal(http.StatusUnauthorized, fmt.Sprintf(messageNoParty, err))
	}
	return s.callerOf(who, party.Fingerprint(key)), nil
}

// callerOf returns a caller as the registry knows it now.
func (s *Server) callerOf(who caller, fingerprint string) caller {
	who.fingerprint, who.party = fingerprint, s.parties.withKey(fingerprint)
	return who
}

// may returns why a caller may not do what has a need; nil if it may. The party is the one that the path names, if it names one.
func (s *Server) may(who caller, n need, named string) error {
	switch {
	case n == anybody, n == reads && s.cfg.AnonymousRead, n == itself && (s.cfg.AnonymousRead || who.is(named)):
		return nil
	case who.fingerprint == "":
		return rest.Refusal(http.StatusUnauthorized, messageNoCertificate)
	case n == certified:
		return nil
	case who.party == nil:
		return rest.Refusal(http.StatusForbidden, fmt.Sprintf(messageUnknownKey, who.fingerprint))
	case who.party.State == registryv1.Revoked:
		return rest.Refusal(http.StatusForbidden, fmt.Sprintf(messageRevoked, who.party.ID))
	case who.party.State != registryv1.Approved:
		return rest.Refusal(http.StatusForbidden, fmt.Sprintf(messagePending, who.party.ID))
	case n == owns && !who.is(named):
		return rest.Refusal(http.StatusForbidden, fmt.Sprintf(messageNotYours, who.party.ID, named))
	}
	return nil
}

func callerFrom(ctx context.Context) caller { return rest.CallerOf[caller](ctx) }

// admit returns a middleware that admits those who have what it needs, and not too often, before anything else of the request is looked at.
func (s *Server) admit(n need) rest.Middleware {
	return rest.Door(s.api, func(ctx huma.Context, r *http.Request) (caller, error) {
		who, err := s.identify(r)
		if err == nil {
			err = s.paced(who)
		}
		if err == nil {
			err = s.may(who, n, ctx.Param("party"))
		}
		return who, err
	})
}

// connectionKey is under which a request's context has its connection.
type connectionKey struct{}

func withConnection(ctx context.Context, c net.Conn) context.Context {
	return context.WithValue(ctx, connectionKey{}, c)
}
