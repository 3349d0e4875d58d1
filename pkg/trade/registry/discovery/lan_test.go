// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package discovery

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/net/dns/dnsmessage"
)

// packet is what passes a network.
type packet struct {
	text     []byte
	from, to *net.UDPAddr
}

// lanWire is a local network in memory.
type lanWire struct {
	mu   sync.Mutex
	ends []*wireEnd
}

// wireEnd is a socket in it, which hears what is sent to it or to the group.
type wireEnd struct {
	net.PacketConn

	wire  *lanWire
	own   *net.UDPAddr
	heard chan packet
	done  chan struct{}
	once  sync.Once
}

func (w *lanWire) join(address string) *wireEnd {
	own, err := net.ResolveUDPAddr("udp", address)
	if err != nil {
		panic(err)
	}
	e := &wireEnd{wire: w, own: own, heard: make(chan packet, 256), done: make(chan struct{})}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.ends = append(w.ends, e)
	return e
}

// link returns the socket as one in 192.0.2.0/24.
func (e *wireEnd) link() *Link {
	own := e.own.AddrPort().Addr().Unmap()
	return &Link{PacketConn: e, Prefixes: []netip.Prefix{netip.PrefixFrom(own, 24)}}
}

func (e *wireEnd) WriteTo(text []byte, to net.Addr) (int, error) {
	e.wire.mu.Lock()
	defer e.wire.mu.Unlock()
	at, _ := to.(*net.UDPAddr)
	for _, other := range e.wire.ends {
		if other != e && (at.String() == other.own.String() || at.IP.IsMulticast() && other.own.Port == at.Port) {
			select {
			case other.heard <- packet{append([]byte(nil), text...), e.own, at}:
			default:
			}
		}
	}
	return len(text), nil
}

func (e *wireEnd) ReadFrom(buffer []byte) (int, net.Addr, error) {
	select {
	case p := <-e.heard:
		return copy(buffer, p.text), p.from, nil
	case <-e.done:
		return 0, nil, net.ErrClosed
	}
}

func (e *wireEnd) Close() error { e.once.Do(func() { close(e.done) }); return nil }

// announce has a registry answer until the test ends.
func announce(t *testing.T, a Announcer, l *Link) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() {
		if err := a.Answer(ctx, l); err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(func() { cancel(); running.Wait() })
}

const soon = 200 * time.Millisecond

// TestLocal asks a network with an honest registry and one that answers first under the same name with its own key, one of somewhere else,
// and one that says that it is at another machine: both of this network are shown, each where it answers from, in an order that is not that
// of time.
func TestLocal(t *testing.T) {
	wire := &lanWire{}
	announce(t, Announcer{Name: "milan", Fingerprint: print2, Port: 8443}, wire.join("192.0.2.66:5353").link())
	announce(t, Announcer{Name: "milan", Fingerprint: print1, Port: 30443}, wire.join("192.0.2.7:5353").link())
	stranger := wire.join("198.51.100.9:5353").link()
	stranger.Prefixes = []netip.Prefix{netip.MustParsePrefix("0.0.0.0/0")}
	announce(t, Announcer{Name: "away", Fingerprint: print1, Port: 1}, stranger)
	found, err := FindOn(t.Context(), group(), soon, wire.join("192.0.2.99:40000").link())
	want := []Found{
		{Name: "milan", URL: "https://192.0.2.7:30443", Fingerprint: print1},
		{Name: "milan", URL: "https://192.0.2.66:8443", Fingerprint: print2},
	}
	if diff := cmp.Diff(want, found); err != nil || diff != "" {
		t.Errorf("%v (-want, +found):\n%s", err, diff)
	}
	if found, err := FindOn(t.Context(), group(), soon, (&lanWire{}).join("192.0.2.99:40000").link()); !errors.Is(err, ErrNone) {
		t.Errorf("where nobody answers: %+v, %v", found, err)
	}
}

// TestHostileLocal holds that wrong answers are passed over, and that a flood of right ones ends the search.
func TestHostileLocal(t *testing.T) {
	wire := &lanWire{}
	announce(t, Announcer{Name: "milan", Fingerprint: print1, Port: 30443}, wire.join("192.0.2.7:5353").link())
	liar := wire.join("192.0.2.66:5353")
	well := Announcer{Name: "liar", Fingerprint: print1, Port: 1}
	go func() {
		query := <-liar.heard
		var asked dnsmessage.Message
		if err := asked.Unpack(query.text); err != nil {
			t.Error(err)
		}
		for _, wrong := range []struct {
			a  Announcer
			id uint16
		}{
			{Announcer{Name: "a b", Fingerprint: print1, Port: 1}, asked.ID}, {Announcer{Name: "x", Port: 1}, asked.ID},
			{Announcer{Name: "x", Fingerprint: "abc", Port: 1}, asked.ID}, {Announcer{Name: "x", Fingerprint: print1}, asked.ID},
			{well, asked.ID + 1},
		} {
			reply, err := wrong.a.pack(dnsmessage.Header{ID: wrong.id, Response: true}, nil, nil)
			if err != nil {
				t.Error(err)
			}
			_, _ = liar.WriteTo(reply, query.from)
			_, _ = liar.WriteTo(reply[:len(reply)/2], query.from)
		}
		reply, err := well.pack(dnsmessage.Header{ID: asked.ID, Response: true}, nil, nil)
		if err != nil {
			t.Error(err)
		}
		_, _ = liar.WriteTo(bytes.Replace(reply, []byte("fp="), []byte("no="), 1), query.from)
	}()
	found, err := FindOn(t.Context(), group(), soon, wire.join("192.0.2.99:40000").link())
	if err != nil || len(found) != 1 || found[0].Name != "milan" {
		t.Errorf("among wrong answers %+v is found, %v", found, err)
	}

	flood := (&lanWire{})
	for n := range maxFound + 1 {
		announce(t, Announcer{Name: fmt.Sprintf("r%d", n), Fingerprint: print1, Port: 1}, flood.join(fmt.Sprintf("192.0.2.%d:5353", n+1)).link())
	}
	if found, err := FindOn(t.Context(), group(), 5*time.Second, flood.join("192.0.2.99:40000").link()); !errors.Is(err, ErrHostile) {
		t.Errorf("of very many %d are found, %v", len(found), err)
	}
}

// TestAnnouncer holds what an announcer answers: questions of its network about registries, and no more of them than it may.
func TestAnnouncer(t *testing.T) {
	wire := &lanWire{}
	announce(t, Announcer{Name: "milan", Fingerprint: print1, Port: 30443}, wire.join("192.0.2.7:5353").link())
	ask := func(from *wireEnd, name string) {
		asked, err := question(name, dnsmessage.TypePTR)
		if err != nil {
			t.Fatal(err)
		}
		text, err := packed(1, asked)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = from.WriteTo(text, group())
	}
	hears := func(e *wireEnd) int {
		n := 0
		for {
			select {
			case <-e.heard:
				n++
			case <-time.After(soon):
				return n
			}
		}
	}
	asks, listens, away := wire.join("192.0.2.99:40000"), wire.join("192.0.2.98:5353"), wire.join("198.51.100.1:40000")
	ask(asks, "_printer._tcp.local")
	_, _ = asks.WriteTo([]byte("no message"), group())
	ask(away, Service+".local")
	if n := hears(asks) + hears(away); n > 0 {
		t.Errorf("%d answers to questions about something else, or from elsewhere", n)
	}
	ask(asks, Service+".local")
	if n := hears(asks); n != 1 {
		t.Errorf("%d answers to a question", n)
	}
	drained := hears(listens)
	mdns := wire.join("192.0.2.97:5353")
	ask(mdns, "milan."+Service+".local")
	if all, own := hears(listens), hears(mdns); drained == 0 || all < 2 || own != 1 {
		t.Errorf("a question of mDNS is heard with its answer %d times by others, and answered %d times", all, own)
	}
	for range 4 * answersAtOnce {
		ask(asks, Service+".local")
	}
	if n := hears(asks); n > answersAtOnce+2*answersEach {
		t.Errorf("%d answers at once", n)
	}
}

// TestLoopback has both ends speak over the loopback interface.
func TestLoopback(t *testing.T) {
	open := func() *Link {
		conn, err := (&net.ListenConfig{}).ListenPacket(t.Context(), "udp4", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		return &Link{PacketConn: conn, Prefixes: []netip.Prefix{netip.MustParsePrefix("127.0.0.1/8")}}
	}
	registry := open()
	to := registry.LocalAddr()
	announce(t, Announcer{Name: LocalName("Milan.example.org"), Fingerprint: print1, Port: 8443}, registry)
	found, err := FindOn(t.Context(), to, soon, open())
	if diff := cmp.Diff([]Found{{Name: "milan", URL: "https://127.0.0.1:8443", Fingerprint: print1}}, found); err != nil || diff != "" {
		t.Errorf("%v (-want, +found):\n%s", err, diff)
	}
	if got := LocalName("a_b"); got != "registry" {
		t.Errorf("a machine without a name of the DNS is %q", got)
	}
}

// TestMulticast asks the machine's own network, where it has one with multicast.
func TestMulticast(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	ended := make(chan error, 1)
	go func() { ended <- Announcer{Name: "milan-of-a-test", Fingerprint: print1, Port: 8443}.Run(ctx) }()
	select {
	case err := <-ended:
		t.Skipf("no multicast here: %v", err)
	case <-time.After(soon):
	}
	found, err := FindLocal(t.Context())
	cancel()
	if stopped := <-ended; stopped != nil {
		t.Error(stopped)
	}
	if errors.Is(err, ErrNone) || os.IsPermission(err) {
		t.Skipf("the network passes no multicast on to the machine itself: %v", err)
	}
	if err != nil || len(found) == 0 {
		t.Errorf("%+v, %v", found, err)
	}
}
