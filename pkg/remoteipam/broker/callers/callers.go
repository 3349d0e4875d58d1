// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

// Package callers knows which cluster a certificate was issued to.
//
// The common name alone does not say it: Liqo signs whatever name a cluster asks for that
// has the broker's token. What counts is the certificate that Liqo wrote down for the
// cluster when it issued it.
//
// It does not know what callers may do.
package callers

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"
	"k8s.io/utils/clock"

	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
	"github.com/capacitorset/liqo-broker/pkg/remoteipam"
)

var (
	// ErrUntrusted means that a certificate is not signed by an authority of this
	// cluster, or not valid any more.
	ErrUntrusted = errors.New("the certificate is not one of this cluster's clients")
	// ErrNotIssued means that a certificate is not the one that was issued to the cluster
	// that it names.
	ErrNotIssued = errors.New("the certificate is not the one that this cluster issued to the cluster that it names")
)

const (
	// knownFor is how long a certificate counts without another look, and so how long
	// one counts that was taken back.
	knownFor = 5 * time.Minute
	// knownAtMost is how long it does while it cannot be looked at.
	knownAtMost = time.Hour
	// lookAgain is the pause between two looks because of certificates that do not count.
	lookAgain = 5 * time.Second
	// lookTimeout bounds one look.
	lookTimeout = 5 * time.Second
)

// Issued looks up the key in the certificate that was issued to a cluster, as
// [remoteipam.KeyHash] has it; empty if none was. It may ask the API server.
type Issued func(ctx context.Context, id cluster.ID) (hash string, err error)

// Callers tells callers by their certificates. It is safe for concurrent use.
type Callers struct {
	authorities *Authorities
	issued      Issued
	clock       clock.PassiveClock

	lookups singleflight.Group
	mu      sync.Mutex
	known   map[cluster.ID]known
}

// known is what was found out about a cluster.
type known struct {
	hash string // Empty if there is none.
	// found is when that was looked up; failed, when it could not be, for that reason.
	found, failed time.Time
	failure       error
}

// New returns callers that the authorities vouch for.
func New(authorities *Authorities, issued Issued) *Callers {
	return &Callers{authorities: authorities, issued: issued, clock: clock.RealClock{}, known: map[cluster.ID]known{}}
}

// Name returns the name in the certificate that the peer of a connection showed, whose key
// it has. The error is [ErrUntrusted]. It answers from memory.
func (c *Callers) Name(connection *tls.ConnectionState) (cluster.ID, error) {
	if len(connection.PeerCertificates) == 0 {
		return "", ErrUntrusted
	}
	leaf, intermediates := connection.PeerCertificates[0], x509.NewCertPool()
	for _, certificate := range connection.PeerCertificates[1:] {
		intermediates.AddCert(certificate)
	}
	// The connection may be older than the authority's end, or the certificate's.
	_, err := leaf.Verify(x509.VerifyOptions{
		Roots: c.authorities.Pool(), Intermediates: intermediates, CurrentTime: c.clock.Now(),
		KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	})
	if err != nil {
		return "", fmt.Errorf("%w: %w", ErrUntrusted, err)
	}
	return cluster.ID(leaf.Subject.CommonName), nil
}

// Check fails with [ErrNotIssued] unless the certificate that the peer of a connection
// showed has the key of the one that was issued to the cluster. Any other error says that
// nobody can tell. A certificate that was replaced counts for some minutes more.
func (c *Callers) Check(ctx context.Context, id cluster.ID, connection *tls.ConnectionState) error {
	if len(connection.PeerCertificates) == 0 {
		return ErrNotIssued
	}
	shown := remoteipam.KeyHash(connection.PeerCertificates[0].RawSubjectPublicKeyInfo)
	last := c.last(id)
	matches := func() bool { return last.hash == shown }
	age := func(t time.Time) time.Duration { return c.clock.Now().Sub(t) }
	if matches() && age(last.found) < knownFor {
		return nil
	}
	if age(last.found) >= lookAgain && age(last.failed) >= lookAgain {
		last = c.lookUp(ctx, id)
	}
	switch {
	case matches() && age(last.found) < knownAtMost:
		return nil
	case last.failure != nil:
		return fmt.Errorf("look up the certificate of cluster %s: %w", id, last.failure)
	default:
		return ErrNotIssued
	}
}

// Known returns the cluster to which the certificate was issued that the peer of a connection showed; false if that was not found out
// lately. It answers from memory: TLS has seen that the peer has the key, and [Callers.Check] whose the key is.
func (c *Callers) Known(connection *tls.ConnectionState) (cluster.ID, bool) {
	if len(connection.PeerCertificates) == 0 {
		return "", false
	}
	leaf := connection.PeerCertificates[0]
	id := cluster.ID(leaf.Subject.CommonName)
	last := c.last(id)
	return id, last.hash != "" && last.hash == remoteipam.KeyHash(leaf.RawSubjectPublicKeyInfo) && c.clock.Now().Sub(last.found) < knownAtMost
}

func (c *Callers) last(id cluster.ID) known {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.known[id]
}

// lookUp asks for the certificate of a cluster, once for all callers at a time.
func (c *Callers) lookUp(ctx context.Context, id cluster.ID) known {
	shared, _, _ := c.lookups.Do(string(id), func() (any, error) {
		// Others wait for it: it must not end with its first caller.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), lookTimeout)
		defer cancel()
		hash, err := c.issued(ctx, id)
		c.mu.Lock()
		defer c.mu.Unlock()
		fresh := c.known[id]
		if err != nil {
			fresh.failed, fresh.failure = c.clock.Now(), err
		} else {
			fresh = known{hash: hash, found: c.clock.Now()}
		}
		c.known[id] = fresh
		return fresh, nil
	})
	fresh, _ := shared.(known) // Always: the function returns nothing else.
	return fresh
}
