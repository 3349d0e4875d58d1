// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package discovery

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
	"time"

	"golang.org/x/net/dns/dnsmessage"
	"golang.org/x/sync/errgroup"
	"golang.org/x/time/rate"
)

const (
	// lan is the domain of the local network, and lanPort the port at which its machines answer (RFC 6762, sections 3 and 5).
	lan, lanPort = "local", 5353
	// cacheFlush is a bit of a record's class that says that no other machine has such a record (RFC 6762, section 10.2).
	cacheFlush = dnsmessage.Class(1 << 15)
	// lifetime is how long an answer counts, in seconds.
	lifetime = 120
	// lanTime is how long answers of the local network are waited for, and asked how often the question is sent meanwhile.
	lanTime, lanAsked = 2 * time.Second, 2
	// maxPackets is how many answers are read, of all who answer together, and maxPacket how long one may be, in bytes.
	maxPackets, maxPacket = 64, 1500
	// answersEach and answersAtOnce bound how often an announcer answers, in a second and at once: it must not serve to flood others.
	answersEach, answersAtOnce = 10, 20
)

// group is the address at which all machines of a local network are asked.
func group() *net.UDPAddr { return &net.UDPAddr{IP: net.IPv4(224, 0, 0, 251), Port: lanPort} }

// A Link is a socket in a part of the local network, and the addresses that are there.
type Link struct {
	net.PacketConn

	Prefixes []netip.Prefix
}

// near reports whether an address is one of that part of the network: nobody else is asked, nor answered (RFC 6762, section 11).
func (l *Link) near(from net.Addr) (netip.AddrPort, bool) {
	at, is := from.(*net.UDPAddr)
	if !is {
		return netip.AddrPort{}, false
	}
	source := netip.AddrPortFrom(at.AddrPort().Addr().Unmap(), at.AddrPort().Port())
	return source, slices.ContainsFunc(l.Prefixes, func(p netip.Prefix) bool { return p.Contains(source.Addr()) })
}

// links opens a socket on each interface that can ask many machines at once. The error says that there is none.
func links(open func(i *net.Interface, own netip.Addr) (net.PacketConn, error)) ([]*Link, error) {
	interfaces, err := net.Interfaces()
	if err != nil {
		return nil, fmt.Errorf("list network interfaces: %w", err)
	}
	var all []*Link
	var failed error
	for n := range interfaces {
		i := &interfaces[n]
		if i.Flags&net.FlagUp == 0 || i.Flags&net.FlagMulticast == 0 || i.Flags&net.FlagLoopback != 0 {
			continue
		}
		prefixes, err := prefixesOf(i)
		if err != nil || len(prefixes) == 0 {
			failed = errors.Join(failed, err)
			continue
		}
		conn, err := open(i, prefixes[0].Addr())
		if err != nil {
			failed = errors.Join(failed, fmt.Errorf("interface %s: %w", i.Name, err))
			continue
		}
		all = append(all, &Link{PacketConn: conn, Prefixes: prefixes})
	}
	if len(all) == 0 {
		return nil, errors.Join(errors.New("no network interface has an IPv4 address and multicast"), failed)
	}
	return all, nil
}

// prefixesOf returns the IPv4 addresses of an interface with the lengths of their prefixes.
func prefixesOf(i *net.Interface) ([]netip.Prefix, error) {
	addresses, err := i.Addrs()
	if err != nil {
		return nil, fmt.Errorf("addresses of interface %s: %w", i.Name, err)
	}
	var all []netip.Prefix
	for _, a := range addresses {
		if p, err := netip.ParsePrefix(a.String()); err == nil && p.Addr().Is4() {
			all = append(all, p)
		}
	}
	return all, nil
}

// closeLinks closes sockets.
func closeLinks(all []*Link) {
	for _, l := range all {
		_ = l.Close() // What was to be sent is sent.
	}
}

// Announcer answers who asks in the local network which registries there are. It answers as if its name were its own: two of the same name
// are told apart by their fingerprints. The zero value is of no use.
type Announcer struct {
	// Name is what the registry is called, a label of the DNS, and Fingerprint that of its key.
	Name, Fingerprint string
	// Port is where it is served.
	Port uint16
}

// LocalName makes a name for an Announcer of the name of a machine.
func LocalName(machine string) string {
	name, _, _ := strings.Cut(strings.ToLower(machine), ".")
	if !isLabel(name) {
		return "registry"
	}
	return name
}

// Run answers on all interfaces until ctx ends. The error says that none can be used.
func (a Announcer) Run(ctx context.Context) error {
	all, err := links(func(i *net.Interface, _ netip.Addr) (net.PacketConn, error) {
		return net.ListenMulticastUDP("udp4", i, group())
	})
	if err != nil {
		return err
	}
	return a.Answer(ctx, all...)
}

// Answer answers on some links until ctx ends, and closes them.
func (a Announcer) Answer(ctx context.Context, all ...*Link) error {
	context.AfterFunc(ctx, func() { closeLinks(all) })
	var running errgroup.Group
	limit := rate.NewLimiter(answersEach, answersAtOnce)
	for _, l := range all {
		running.Go(func() error {
			buffer := make([]byte, maxPacket)
			for {
				n, from, err := l.ReadFrom(buffer)
				switch {
				case ctx.Err() != nil:
					return nil //nolint:nilerr // The program ends.
				case err != nil:
					return fmt.Errorf("answer in the local network: %w", err)
				}
				source, near := l.near(from)
				if !near {
					continue
				}
				if reply := a.reply(buffer[:n], source.Port() != lanPort, l.Prefixes); reply != nil && limit.Allow() {
					to := from
					if source.Port() == lanPort {
						to = group()
					}
					_, _ = l.WriteTo(reply, to) // Who asked asks again.
				}
			}
		})
	}
	return running.Wait()
}

// reply returns what is answered to a message; nil if it is no question about registries. Who asks from another port than that of mDNS gets
// an answer as in the DNS (RFC 6762, section 6.7).
func (a Announcer) reply(query []byte, legacy bool, own []netip.Prefix) []byte {
	var p dnsmessage.Parser
	header, err := p.Start(query)
	if err != nil || header.Response || header.OpCode != 0 {
		return nil
	}
	questions, err := p.AllQuestions()
	if err != nil || len(questions) == 0 || len(questions) > maxRecords {
		return nil
	}
	service, full := Service+"."+lan+".", a.Name+"."+Service+"."+lan+"."
	for _, asked := range questions {
		name := asked.Name.String()
		if !strings.EqualFold(name, service) && !strings.EqualFold(name, full) || asked.Class&^cacheFlush != dnsmessage.ClassINET {
			continue
		}
		said := dnsmessage.Header{Response: true, Authoritative: true}
		var repeated []dnsmessage.Question
		if legacy {
			said.ID, repeated = header.ID, []dnsmessage.Question{asked}
		}
		reply, err := a.pack(said, repeated, own)
		if err != nil {
			return nil
		}
		return reply
	}
	return nil
}

// pack returns an answer with all that is said of the registry.
func (a Announcer) pack(header dnsmessage.Header, asked []dnsmessage.Question, own []netip.Prefix) ([]byte, error) {
	service, err := dnsmessage.NewName(Service + "." + lan + ".")
	if err != nil {
		return nil, err
	}
	full, err := dnsmessage.NewName(a.Name + "." + service.String())
	if err != nil {
		return nil, err
	}
	host, err := dnsmessage.NewName(a.Name + "." + lan + ".")
	if err != nil {
		return nil, err
	}
	m := dnsmessage.Message{Header: header, Questions: asked}
	of := func(name dnsmessage.Name) dnsmessage.ResourceHeader {
		return dnsmessage.ResourceHeader{Name: name, Class: dnsmessage.ClassINET, TTL: lifetime}
	}
	m.Answers = []dnsmessage.Resource{{Header: of(service), Body: &dnsmessage.PTRResource{PTR: full}}}
	m.Additionals = []dnsmessage.Resource{
		{Header: of(full), Body: &dnsmessage.SRVResource{Target: host, Port: a.Port}},
		{Header: of(full), Body: &dnsmessage.TXTResource{TXT: []string{"fp=" + a.Fingerprint}}},
	}
	for _, p := range own {
		m.Additionals = append(m.Additionals, dnsmessage.Resource{Header: of(host), Body: &dnsmessage.AResource{A: p.Addr().As4()}})
	}
	return m.Pack()
}

// FindLocal asks the local network which registries there are. It waits two seconds for all who answer, not only for the first one. Whoever
// is in that network can answer, in whatever name: what is found is in the order of names and fingerprints, not of time.
func FindLocal(ctx context.Context) ([]Found, error) {
	all, err := links(func(_ *net.Interface, own netip.Addr) (net.PacketConn, error) {
		return net.ListenUDP("udp4", &net.UDPAddr{IP: own.AsSlice()}) // What is sent from here leaves by its interface.
	})
	if err != nil {
		return nil, err
	}
	return FindOn(ctx, group(), lanTime, all...)
}

// FindOn asks on some links at an address for so long, and closes them. The error is ErrNone if nobody answers, and ErrHostile if too many
// do.
func FindOn(ctx context.Context, at net.Addr, wait time.Duration, all ...*Link) ([]Found, error) {
	asked, err := question(Service+"."+lan, dnsmessage.TypePTR)
	if err != nil {
		return nil, err
	}
	var number [2]byte
	if _, err := rand.Read(number[:]); err != nil {
		return nil, err
	}
	id := binary.BigEndian.Uint16(number[:])
	query, err := packed(id, asked)
	if err != nil {
		return nil, err
	}
	// Reading ends with the time: the sockets are closed then.
	ctx, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	context.AfterFunc(ctx, func() { closeLinks(all) })
	// All links are asked, and all who answer are heard.
	heard := make(chan Found)
	var running errgroup.Group
	var sent error
	for _, l := range all {
		_, err := l.WriteTo(query, at)
		sent = cmp.Or(sent, err)
		running.Go(func() error { l.listen(ctx, id, heard); return nil })
	}
	again := time.NewTicker(wait / lanAsked)
	defer again.Stop()
	found := map[Found]bool{}
	var many error
	for open := true; open; {
		select {
		case f := <-heard:
			if found[f] = true; len(found) > maxFound {
				many = fmt.Errorf("more than %d registries answer: %w", maxFound, ErrHostile)
				open = false
			}
		case <-again.C:
			for _, l := range all {
				_, _ = l.WriteTo(query, at) // The first time has said what is wrong.
			}
		case <-ctx.Done():
			open = false
		}
	}
	// The order is one that nobody who answers can choose.
	cancel()
	_ = running.Wait() // It says nothing.
	switch {
	case many != nil:
		return nil, many
	case len(found) == 0:
		return nil, errors.Join(fmt.Errorf("nobody in the local network says that it is a registry: %w", ErrNone), sent)
	}
	sorted := make([]Found, 0, len(found))
	for f := range found {
		sorted = append(sorted, f)
	}
	slices.SortFunc(sorted, func(a, b Found) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.Fingerprint, b.Fingerprint), cmp.Compare(a.URL, b.URL))
	})
	return sorted, nil
}

// listen passes on which registries answer, until the socket is closed or too many have.
func (l *Link) listen(ctx context.Context, id uint16, heard chan<- Found) {
	buffer := make([]byte, maxPacket)
	for range maxPackets {
		n, from, err := l.ReadFrom(buffer)
		if err != nil {
			return
		}
		source, near := l.near(from)
		if !near {
			continue
		}
		found, err := announced(buffer[:n], id, source.Addr())
		if err != nil {
			continue // Somebody is wrong, or lies: others answer too.
		}
		select {
		case heard <- found:
		case <-ctx.Done():
			return
		}
	}
}

// announced returns the registry of an answer. It is where the answer comes from, whatever that says: nobody names another machine.
func announced(text []byte, id uint16, from netip.Addr) (Found, error) {
	service, err := dnsmessage.NewName(Service + "." + lan + ".")
	if err != nil {
		return Found{}, err
	}
	// The name.
	var p dnsmessage.Parser
	header, err := p.Start(text)
	if err != nil || !header.Response || header.ID != id {
		return Found{}, errOther
	}
	var named, said records
	if err := p.SkipAllQuestions(); err != nil {
		return Found{}, fmt.Errorf("%w: %w", ErrHostile, err)
	}
	if err := named.add(&p, p.AnswerHeader, p.SkipAnswer, service.String(), dnsmessage.TypePTR); err != nil {
		return Found{}, err
	}
	if len(named.pointers) != 1 {
		return Found{}, fmt.Errorf("%d names: %w", len(named.pointers), ErrHostile)
	}
	name, err := instance(named.pointers[0], lan)
	if err != nil {
		return Found{}, err
	}
	// What is said of it.
	if err := p.SkipAllAuthorities(); err != nil {
		return Found{}, fmt.Errorf("%w: %w", ErrHostile, err)
	}
	if err := said.add(&p, p.AdditionalHeader, p.SkipAdditional, name+"."+service.String(), 0); err != nil {
		return Found{}, err
	}
	where, err := said.service()
	if err != nil {
		return Found{}, err
	}
	fingerprint, err := said.fingerprint()
	if err != nil || fingerprint == "" {
		return Found{}, fmt.Errorf("%s: without a fingerprint it is anybody: %w", name, errors.Join(err, ErrHostile))
	}
	return Found{Name: name, URL: address(from.String(), where.Port), Fingerprint: fingerprint}, nil
}
