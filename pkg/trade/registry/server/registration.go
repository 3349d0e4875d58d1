// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"crypto/ed25519"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/capacitorset/liqo-broker/pkg/serving/rest"
	"github.com/capacitorset/liqo-broker/pkg/trade/party"
	"github.com/capacitorset/liqo-broker/pkg/trade/registry/registryv1"
	"github.com/capacitorset/liqo-broker/pkg/trade/registry/store"
)

const (
	// skew is by how much clocks of parties may be ahead.
	skew = 10 * time.Minute
	// maxName and maxEndpoint bound what an announcement says, in bytes.
	maxName, maxEndpoint = 256, 512
	// maxWaiting bounds the parties that wait for an approval; store.MaxWaitingEach those of one network.
	maxWaiting = 1000
	// maxCertificates bounds the chain of certificates that a party shows to be let in.
	maxCertificates = 5
)

// Named names a party in a path.
type Named struct {
	Party string `doc:"The ID of a party." maxLength:"52" minLength:"52" path:"party" pattern:"^[a-z2-7]+$"`
}

type enrolInput struct {
	Named

	Body registryv1.Enrolment
}

type shownParty struct{ Body registryv1.Party }

// registration registers what parties say of themselves.
func (s *Server) registration() {
	about := s.operation("getRegistry", http.MethodGet, registryv1.PathRegistry, anybody,
		"Get what the registry says of itself and of the caller")
	rest.Register(s.api, about, func(ctx context.Context, _ *struct{}) (*struct{ Body registryv1.Registry }, error) {
		return &struct{ Body registryv1.Registry }{s.about(callerFrom(ctx))}, nil
	})
	put := s.operation("putParty", http.MethodPut, registryv1.PathParty, certified, "Announce a party, or its new keys")
	put.Description += " A party that brings a token or a certificate of an authority is approved at once, others when an administrator " +
		"approves them. An announcement with a chain that has one more key makes that the current one, and withdraws what was signed with the " +
		"one before; revisions may begin again with it. The current key is no other party's, nor another party's first one. The same " +
		"announcement again changes nothing."
	rest.Register(s.api, put, s.enrol)
	get := s.operation("getParty", http.MethodGet, registryv1.PathParty, itself, "Get a party")
	rest.Register(s.api, get, func(ctx context.Context, in *Named) (*shownParty, error) { return s.party(ctx, in.Party) })
	list := s.listing("listParties", registryv1.Base+registryv1.PathParties, "List the parties that are approved")
	rest.Register(s.api, list, s.listParties)
	lease := s.operation("renewLease", http.MethodPut, registryv1.PathLease, owns, "Renew the lease of a party: it is alive")
	rest.Register(s.api, lease, func(ctx context.Context, in *Named) (*struct{ Body registryv1.Lease }, error) {
		return s.renew(ctx, in.Party)
	})
}

// about returns what the registry says of itself.
func (s *Server) about(who caller) registryv1.Registry {
	view := s.journal.View()
	r := registryv1.Registry{
		Epoch: view.Epoch, Revision: view.Revision, Parties: view.Parties, Offers: view.Offers, Version: s.cfg.Version,
		LeaseSeconds: int64(s.cfg.Lease / time.Second), MaxOffers: s.cfg.Limits.Offers,
	}
	if who.fingerprint != "" {
		r.Caller = &registryv1.Caller{Fingerprint: who.fingerprint}
		if who.party != nil {
			r.Caller.Party, r.Caller.State = who.party.ID, who.party.State
		}
	}
	return r
}

// enrol keeps what a party says of itself, if the party has said it.
func (s *Server) enrol(ctx context.Context, in *enrolInput) (*shownParty, error) {
	who := callerFrom(ctx)
	now, err := s.cfg.Store.Now(ctx)
	if err != nil {
		return nil, err
	}

	// The keys make the ID, and the connection was made with the current one.
	keys, err := party.ParseKeys(in.Body.Keys)
	if err != nil {
		return nil, rest.Wrong(http.StatusUnprocessableEntity, "body.keys", err)
	}
	current := party.Fingerprint(keys.Current())
	switch {
	case string(keys.ID()) != in.Party:
		return nil, rest.Wrong(http.StatusForbidden, "body.keys", fmt.Errorf("these are the keys of %s, and not of %s", keys.ID(), in.Party))
	case current != who.fingerprint:
		return nil, rest.Wrong(http.StatusForbidden, "body.keys",
			fmt.Errorf("the current key is %s, and the connection was made with %s", current, who.fingerprint))
	}

	// The announcement is signed with it.
	var said registryv1.Announcement
	if err := party.Verify(in.Body.Announcement, registryv1.TypeAnnouncement, keys.Current(), &said); err != nil {
		return nil, rest.Wrong(http.StatusUnprocessableEntity, "body.announcement", err)
	}
	if field, err := checkAnnouncement(said, in.Party, now); err != nil {
		return nil, rest.Wrong(http.StatusUnprocessableEntity, "body.announcement."+field, err)
	}
	if err := s.unclaimed(in.Party, said.Clusters); err != nil {
		return nil, err
	}

	// Who lets it in.
	announced := store.Party{
		ID: in.Party, State: store.Pending, Announcement: in.Body.Announcement, Revision: said.Revision, Keys: keys.Chain(), CurrentKey: current,
		Name: said.Name, Endpoint: said.Endpoint, EnrolledAt: now, Network: networkOf(who.address), LeaseUntil: now.Add(s.cfg.Lease),
	}
	kept, err := s.admitted(ctx, announced, in.Body, keys.Current())
	if err != nil {
		return nil, err
	}
	return s.enrolled(ctx, kept, keys)
}

// admitted keeps a party: approved, if it brings what lets it in.
func (s *Server) admitted(ctx context.Context, p store.Party, in registryv1.Enrolment, key ed25519.PublicKey) (store.Party, error) {
	now := p.EnrolledAt
	switch {
	case in.Certificates != "":
		if err := s.issued(in.Certificates, key, now); err != nil {
			return store.Party{}, rest.Wrong(http.StatusForbidden, "body.certificates", err)
		}
		p.State, p.EnrolledBy = store.Approved, "certificate"
	case in.Token != "":
		kept, err := s.cfg.Store.AdmitByToken(ctx, p, store.Digest(in.Token), now)
		return kept, s.fromStore(err, "body.announcement")
	case s.cfg.AutoApprove:
		p.State, p.EnrolledBy = store.Approved, store.OpenRegistry
	}
	kept, err := s.cfg.Store.PutParty(ctx, p, maxWaiting)
	return kept, s.fromStore(err, "body.announcement")
}

// enrolled withdraws what a party has signed with earlier keys, and returns the party once everybody sees it.
func (s *Server) enrolled(ctx context.Context, kept store.Party, keys party.Keys) (*shownParty, error) {
	view, err := s.journal.At(ctx, kept.RegistryRevision)
	if err != nil {
		return nil, err
	}
	for _, e := range view.Of(kept.ID) {
		if signer, err := party.Signer(e.Offer.JWS); err == nil && signer == party.Fingerprint(keys.Current()) {
			continue
		}
		if err := s.withdraw(ctx, kept.ID, e.Key.Offer); err != nil && rest.StatusOf(err) != http.StatusNotFound {
			return nil, err
		}
	}
	shown := partyOf(&kept)
	if !kept.LeaseUntil.IsZero() {
		shown.LeaseUntil = &kept.LeaseUntil
	}
	return &shownParty{shown}, nil
}

// networkOf returns the network of an address, as who has one may have all of its addresses: a /24, or the /56 that providers give to their
// customers; empty if the address is not known.
func networkOf(a netip.Addr) string {
	bits := 56
	if a.Is4() {
		bits = 24
	}
	network, err := a.Prefix(bits)
	if err != nil || !network.IsValid() {
		return ""
	}
	return network.String()
}

// checkAnnouncement returns which field of an announcement is wrong, and why.
func checkAnnouncement(said registryv1.Announcement, id string, now time.Time) (field string, err error) {
	switch {
	case said.Party != id:
		return "party", fmt.Errorf("%q is not %s", said.Party, id)
	case said.Revision <= 0:
		return "revision", errors.New("must be positive")
	case said.Name == "" || len(said.Name) > maxName || !printable(said.Name):
		return "name", fmt.Errorf("must be a line of at most %d bytes", maxName)
	case said.IssuedAt.After(now.Add(skew)):
		return "issuedAt", fmt.Errorf("%s is in the future: it is %s here", said.IssuedAt.Format(time.RFC3339), now.Format(time.RFC3339))
	}
	if err := checkClusters(said.Clusters); err != nil {
		return "clusters", err
	}
	if said.Endpoint == "" {
		return "", nil
	}
	return "endpoint", checkEndpoint(said.Endpoint)
}

// checkEndpoint returns why an endpoint is none: it is an https URL without anything that might be secret.
func checkEndpoint(endpoint string) error {
	if len(endpoint) > maxEndpoint {
		return fmt.Errorf("has more than %d bytes", maxEndpoint)
	}
	if _, err := party.ParseEndpoint(endpoint); err != nil || !printable(endpoint) {
		return errors.New("must be https://HOST[:PORT][/PATH], without a user, a password or a query")
	}
	return nil
}

// printable reports whether people can be shown a text as one line.
func printable(text string) bool {
	return utf8.ValidString(text) && strings.IndexFunc(text, func(r rune) bool { return !unicode.IsPrint(r) }) < 0
}

// issued returns why certificates do not let a key in.
func (s *Server) issued(certificates string, key ed25519.PublicKey, now time.Time) error {
	if s.cfg.Authorities == nil {
		return errors.New("this registry trusts no authority")
	}
	var chain []*x509.Certificate
	for rest := []byte(certificates); len(strings.TrimSpace(string(rest))) > 0; {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil || block.Type != "CERTIFICATE" || len(chain) == maxCertificates {
			return fmt.Errorf("must be at most %d certificates as PEM, and nothing else", maxCertificates)
		}
		c, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return fmt.Errorf("read certificate %d: %w", len(chain)+1, err)
		}
		chain = append(chain, c)
	}
	if len(chain) == 0 {
		return errors.New("has no certificate")
	}
	if of, ok := chain[0].PublicKey.(ed25519.PublicKey); !ok || !of.Equal(key) {
		return errors.New("the first certificate is of another key")
	}
	between := x509.NewCertPool()
	for _, c := range chain[1:] {
		between.AddCert(c)
	}
	_, err := chain[0].Verify(x509.VerifyOptions{
		Roots: s.cfg.Authorities(), Intermediates: between, CurrentTime: now, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	})
	return err
}

// party answers with a party. One that is not approved is seen by itself alone.
func (s *Server) party(ctx context.Context, id string) (*shownParty, error) {
	found := s.parties.getParty(id)
	own := callerFrom(ctx).is(id)
	if found == nil || found.State != registryv1.Approved && !own {
		return nil, rest.Refusal(http.StatusNotFound, fmt.Sprintf(messageNoSuchParty, id))
	}
	shown := found.Party
	if own {
		kept, err := s.cfg.Store.Party(ctx, id)
		if err != nil {
			return nil, s.fromStore(err, "")
		}
		if !kept.LeaseUntil.IsZero() {
			shown.LeaseUntil = &kept.LeaseUntil
		}
	}
	return &shownParty{shown}, nil
}

// renew notes that a party is alive.
func (s *Server) renew(ctx context.Context, id string) (*struct{ Body registryv1.Lease }, error) {
	now, err := s.cfg.Store.Now(ctx)
	if err != nil {
		return nil, err
	}
	until := now.Add(s.cfg.Lease)
	if err := s.cfg.Store.RenewLease(ctx, id, until); err != nil {
		return nil, s.fromStore(err, "")
	}
	return &struct{ Body registryv1.Lease }{registryv1.Lease{
		Until: until, Seconds: int64(s.cfg.Lease / time.Second), Offers: len(s.journal.View().Of(id)),
	}}, nil
}

// fromStore returns the answer to what the store refuses; a failure of the store as it is.
func (s *Server) fromStore(err error, field string) error {
	var status int
	switch {
	case errors.Is(err, store.ErrToken):
		status, field = http.StatusForbidden, "body.token"
	case errors.Is(err, store.ErrChain) && field == "body.announcement", errors.Is(err, store.ErrKey):
		status, field = http.StatusConflict, "body.keys"
	case errors.Is(err, store.ErrChain):
		status, field = http.StatusConflict, "body.offer"
	case errors.Is(err, store.ErrStale):
		status = http.StatusConflict
	case errors.Is(err, store.ErrNotApproved), errors.Is(err, store.ErrRevoked):
		status, field = http.StatusForbidden, ""
	case errors.Is(err, store.ErrLimit):
		status, field = http.StatusConflict, ""
	case errors.Is(err, store.ErrNotFound):
		status, field = http.StatusNotFound, ""
	case errors.Is(err, store.ErrInvalid):
		status = http.StatusUnprocessableEntity
	default:
		return err // Nil, or a failure.
	}
	if field == "" {
		return rest.Refusal(status, err.Error())
	}
	return rest.Wrong(status, field, err)
}
