// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package discovery

import (
	"bufio"
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"slices"
	"strings"
	"time"

	"golang.org/x/net/dns/dnsmessage"
)

const (
	// answerTime is how long one answer may take, and tries how often it is asked for.
	answerTime, tries = 3 * time.Second, 2
	// maxDatagram is what is asked for over UDP, as the DNS flag day of 2020 advises, and maxAnswer what is read over TCP, in bytes.
	maxDatagram, maxAnswer = 1232, 16 << 10
	// maxRecords is how many records of an answer are looked at, and maxFound how many registries a domain may name.
	maxRecords, maxFound = 64, 16
	// maxConfiguration bounds the file that names the resolver, in bytes.
	maxConfiguration = 64 << 10
)

// Errors of what a domain says, for errors.Is.
var (
	// ErrNone: there is no such record, or no such name.
	ErrNone = errors.New("there is no such record")
	// ErrHostile: what is there is not of the form that it has to have.
	ErrHostile = errors.New("the record is malformed")
)

// Resolver asks a resolver of the DNS. It may be used concurrently.
type Resolver struct {
	// Address is HOST:PORT of the resolver.
	Address string
	// Trusted says that its word counts when it says that it has validated an answer by DNSSEC.
	Trusted bool
	// Wait is how long an answer may take; 3 seconds if it is zero.
	Wait time.Duration
}

// SystemResolver returns the first resolver that a resolv.conf names. It is trusted if it is on this machine, and the file says so by the
// option trust-ad (resolv.conf(5)): there are proxies on loopback that pass on what anybody says.
func SystemResolver(file string) (Resolver, error) {
	f, err := os.Open(file)
	if err != nil {
		return Resolver{}, fmt.Errorf("find the resolver: %w", err)
	}
	defer f.Close()
	var server netip.Addr
	trusts := false
	for lines := bufio.NewScanner(io.LimitReader(f, maxConfiguration)); lines.Scan(); {
		words := strings.Fields(lines.Text())
		switch {
		case len(words) < 2:
		case words[0] == "nameserver" && !server.IsValid():
			if server, err = netip.ParseAddr(words[1]); err != nil {
				return Resolver{}, fmt.Errorf("find the resolver: %s: %w", file, err)
			}
		case words[0] == "options":
			trusts = trusts || slices.Contains(words[1:], "trust-ad")
		}
	}
	if !server.IsValid() {
		return Resolver{}, fmt.Errorf("find the resolver: %s names none", file)
	}
	return Resolver{Address: netip.AddrPortFrom(server, 53).String(), Trusted: trusts && server.IsLoopback()}, nil
}

// Find returns the registries that a domain names, in the order of their names: PTR records of _liqo-registry._tcp.DOMAIN name them, and an
// SRV and a TXT record of each say where it is, and which fingerprint it has. Of NAME._liqo-registry._tcp.DOMAIN it returns that one.
func (r *Resolver) Find(ctx context.Context, domain string) ([]Found, error) {
	domain = strings.TrimSuffix(strings.ToLower(domain), ".")
	if name, below, named := strings.Cut(domain, "."+Service+"."); named {
		if err := CheckDomain(below); err != nil || !isLabel(name) {
			return nil, fmt.Errorf("%.80q is not NAME.%s.DOMAIN: %w", domain, Service, ErrHostile)
		}
		found, err := r.registry(ctx, name, below)
		return []Found{found}, err
	}
	if err := CheckDomain(domain); err != nil {
		return nil, err
	}
	// Which there are.
	named, err := r.ask(ctx, Service+"."+domain, dnsmessage.TypePTR)
	if err != nil {
		return nil, err
	}
	names := make([]string, 0, len(named.pointers))
	for _, pointer := range named.pointers {
		name, err := instance(pointer, domain)
		if err != nil {
			return nil, err
		}
		names = append(names, name)
	}
	slices.Sort(names)
	if names = slices.Compact(names); len(names) > maxFound {
		return nil, fmt.Errorf("%s names %d registries, more than %d: %w", domain, len(names), maxFound, ErrHostile)
	}
	// What is said of each.
	all := make([]Found, 0, len(names))
	for _, name := range names {
		found, err := r.registry(ctx, name, domain)
		if err != nil {
			return nil, err
		}
		found.Validated = found.Validated && named.validated
		all = append(all, found)
	}
	return all, nil
}

// registry returns what the records of one registry say.
func (r *Resolver) registry(ctx context.Context, name, domain string) (Found, error) {
	full := name + "." + Service + "." + domain
	where, err := r.ask(ctx, full, dnsmessage.TypeSRV)
	if err != nil {
		return Found{}, err
	}
	which, err := r.ask(ctx, full, dnsmessage.TypeTXT)
	if err != nil {
		return Found{}, err
	}
	found := Found{Name: name, Validated: where.validated && which.validated}
	service, err := where.service()
	if err != nil {
		return Found{}, fmt.Errorf("%s: %w", full, err)
	}
	host := strings.ToLower(strings.TrimSuffix(service.Target.String(), "."))
	if err := CheckDomain(host); err != nil {
		return Found{}, fmt.Errorf("%s: its SRV record: %w: %w", full, err, ErrHostile)
	}
	found.URL = address(host, service.Port)
	if found.Fingerprint, err = which.fingerprint(); err != nil {
		return Found{}, fmt.Errorf("%s: %w", full, err)
	}
	return found, nil
}

// instance returns the first part of a name that a PTR record of a domain has.
func instance(pointer, domain string) (string, error) {
	name, is := strings.CutSuffix(strings.ToLower(strings.TrimSuffix(pointer, ".")), "."+Service+"."+domain)
	if !is || !isLabel(name) {
		return "", fmt.Errorf("%s names %.80q, which is not a name of letters, digits and hyphens below it: %w", domain, pointer, ErrHostile)
	}
	return name, nil
}

// ask asks for the records of a name, some times if there is no answer. The error is ErrNone if there are none.
func (r *Resolver) ask(ctx context.Context, name string, kind dnsmessage.Type) (said records, err error) {
	asked, err := question(name, kind)
	if err != nil {
		return said, err
	}
	for range tries {
		if said, err = r.exchange(ctx, asked); err == nil || ctx.Err() != nil || errors.Is(err, ErrHostile) {
			break
		}
	}
	switch {
	case err != nil:
		return said, fmt.Errorf("ask %s for %s of %.253s: %w", r.Address, typeName(kind), name, err)
	case said.code != dnsmessage.RCodeSuccess && said.code != dnsmessage.RCodeNameError:
		return said, fmt.Errorf("ask %s for %s of %.253s: it refuses: %s", r.Address, typeName(kind), name,
			strings.TrimPrefix(said.code.String(), "RCode"))
	case said.empty():
		return said, fmt.Errorf("%s of %.253s: %w", typeName(kind), name, ErrNone)
	}
	said.validated = said.validated && r.Trusted
	return said, nil
}

// exchange asks over UDP, and over TCP for what is too long for that.
func (r *Resolver) exchange(ctx context.Context, asked dnsmessage.Question) (records, error) {
	wait := r.Wait
	if wait == 0 {
		wait = answerTime
	}
	ctx, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	said, err := r.over(ctx, "udp", asked)
	if err == nil && said.truncated {
		return r.over(ctx, "tcp", asked)
	}
	return said, err
}

// over asks once. An answer over UDP that is none to this question is passed over, as somebody else may have sent it.
func (r *Resolver) over(ctx context.Context, network string, asked dnsmessage.Question) (records, error) {
	var id [2]byte
	if _, err := rand.Read(id[:]); err != nil {
		return records{}, err
	}
	query, err := packed(binary.BigEndian.Uint16(id[:]), asked)
	if err != nil {
		return records{}, err
	}
	// A socket has another port each time, which whoever forges answers must guess too.
	conn, err := (&net.Dialer{}).DialContext(ctx, network, r.Address)
	if err != nil {
		return records{}, err
	}
	defer conn.Close()
	if deadline, ok := ctx.Deadline(); ok {
		if err := conn.SetDeadline(deadline); err != nil {
			return records{}, err
		}
	}
	if network == "tcp" {
		query = append(binary.BigEndian.AppendUint16(nil, uint16(len(query))), query...) //nolint:gosec // A question is short.
	}
	if _, err := conn.Write(query); err != nil {
		return records{}, err
	}
	// Over TCP there is one answer, over UDP there can be others before it.
	if network == "tcp" {
		answer, err := readLong(conn)
		if err != nil {
			return records{}, err
		}
		return parseAnswer(answer, binary.BigEndian.Uint16(id[:]), asked)
	}
	for buffer := make([]byte, maxDatagram); ; {
		n, err := conn.Read(buffer)
		if err != nil {
			return records{}, err
		}
		said, err := parseAnswer(buffer[:n], binary.BigEndian.Uint16(id[:]), asked)
		if !errors.Is(err, errOther) {
			return said, err
		}
	}
}

// readLong reads an answer over TCP, which says first how long it is.
func readLong(conn io.Reader) ([]byte, error) {
	var length [2]byte
	if _, err := io.ReadFull(conn, length[:]); err != nil {
		return nil, err
	}
	n := binary.BigEndian.Uint16(length[:])
	if n > maxAnswer {
		return nil, fmt.Errorf("an answer of %d bytes, more than %d: %w", n, maxAnswer, ErrHostile)
	}
	answer := make([]byte, n)
	_, err := io.ReadFull(conn, answer)
	return answer, err
}
