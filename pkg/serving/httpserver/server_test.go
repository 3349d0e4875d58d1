// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package httpserver

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/capacitorset/liqo-broker/pkg/serving/servingtest"
	"github.com/capacitorset/liqo-broker/pkg/serving/source"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// listen runs a server with bounds on loopback until the test ends, and returns its address.
func listen(t *testing.T, b Bounds, s Server) string {
	t.Helper()
	return servingtest.Serve(t, func(ctx context.Context, inner net.Listener) error { return s.Run(ctx, Bound(inner, b)) })
}

var ok = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("ok")) })

// dial connects from an address of loopback, and closes the connection when the test ends. It returns nil if the connection
// was refused before it was known to be there.
func dial(t *testing.T, from, to string) net.Conn {
	t.Helper()
	d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}}
	c, err := d.DialContext(t.Context(), "tcp", to)
	if errors.Is(err, syscall.ECONNRESET) {
		return nil
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// answers reports whether a connection is served.
func answers(t *testing.T, c net.Conn) bool {
	t.Helper()
	if c == nil {
		return false
	}
	if err := c.SetDeadline(time.Now().Add(10 * time.Second)); err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(c, "GET / HTTP/1.1\r\nHost: x\r\n\r\n"); err != nil {
		return false
	}
	r, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		var timeout net.Error
		if errors.As(err, &timeout) && timeout.Timeout() {
			t.Fatal("neither served nor refused")
		}
		return false
	}
	_, _ = io.Copy(io.Discard, r.Body)
	return r.Body.Close() == nil && r.StatusCode == http.StatusOK
}

func TestBounds(t *testing.T) {
	const friend, other, third = "127.0.0.1", "127.0.0.2", "127.0.0.3"
	noPeer := func(a netip.Addr) bool { return a != netip.MustParseAddr(other) }
	peers := func(a netip.Addr) source.Source {
		if a == netip.MustParseAddr(friend) {
			return source.Address(a)
		}
		return source.Peer("peer")
	}
	cases := map[string]struct {
		reason string
		bounds Bounds
		open   []string // Connections that stay open.
		from   string
		want   bool
	}{
		"Admitted": {reason: "Who may connect is served.", bounds: Bounds{Admits: noPeer, All: 2, Each: 2}, from: friend, want: true},
		"Stranger": {reason: "Who may not is not.", bounds: Bounds{Admits: noPeer, All: 2, Each: 2}, from: other},
		"All":      {reason: "Without a rule everybody may.", bounds: Bounds{All: 2, Each: 2}, from: other, want: true},
		"Each": {
			reason: "One address cannot take all connections ...", bounds: Bounds{All: 4, Each: 2}, open: []string{other, other}, from: other,
		},
		"Others": {
			reason: "... so that others have some.", bounds: Bounds{All: 4, Each: 2}, open: []string{other, other, other}, from: friend, want: true,
		},
		"Full": {reason: "All have a bound too.", bounds: Bounds{All: 2, Each: 2}, open: []string{other, third}, from: friend},
		"Peer": {
			reason: "One who has several addresses counts as one.", bounds: Bounds{Of: peers, All: 4, Each: 2}, open: []string{other, third},
			from: other,
		},
		"NoPeer": {
			reason: "Who is none does not count for one.", bounds: Bounds{Of: peers, All: 4, Each: 2}, open: []string{other, third},
			from: friend, want: true,
		},
		"NotCounted": {
			reason: "A refused connection takes no place.", bounds: Bounds{Admits: noPeer, All: 1, Each: 1}, open: []string{other, other},
			from: friend, want: true,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			address := listen(t, tc.bounds, Server{Name: "the test", Handler: ok, Timeout: time.Minute})
			for _, from := range tc.open {
				answers(t, dial(t, from, address)) // Accepted, or refused, when this returns.
			}
			if got := answers(t, dial(t, tc.from, address)); got != tc.want {
				t.Errorf("%s\nserved: %t, want %t", tc.reason, got, tc.want)
			}
		})
	}
}

// TestClosedConnectionsAreNotCounted opens and closes more connections than there may be.
func TestClosedConnectionsAreNotCounted(t *testing.T) {
	address := listen(t, Bounds{All: 1, Each: 1}, Server{Name: "the test", Handler: ok, Timeout: time.Minute})
	for i := range 5 {
		served := false
		for range 1000 { // The server needs a moment to see the end of the one before.
			c := dial(t, "127.0.0.1", address)
			if served = answers(t, c); served {
				_ = c.Close()
				break
			}
			time.Sleep(10 * time.Millisecond)
		}
		if !served {
			t.Fatalf("connection %d is refused, though all before are closed", i)
		}
	}
}

// TestKnown takes a connection out of the bounds, as it is and under TLS.
func TestKnown(t *testing.T) {
	inner, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer inner.Close()
	bounded := Bound(inner, Bounds{All: 1, Each: 1})
	accept := func() net.Conn {
		t.Helper()
		dial(t, "127.0.0.1", inner.Addr().String())
		if err := inner.(*net.TCPListener).SetDeadline(time.Now().Add(200 * time.Millisecond)); err != nil {
			t.Fatal(err)
		}
		c, err := bounded.Accept()
		if err != nil {
			return nil
		}
		t.Cleanup(func() { _ = c.Close() })
		return c
	}
	plain := accept()
	Known(plain)
	under := accept()
	if under == nil {
		t.Fatal("a connection that is known takes the place of others")
	}
	if c := accept(); c != nil {
		t.Error("one that is not known takes no place")
	}
	Known(tls.Server(under, &tls.Config{MinVersion: tls.VersionTLS13}))
	if accept() == nil {
		t.Error("a connection that is known under TLS takes the place of others")
	}
	_ = plain.Close()
	if c := accept(); c != nil {
		t.Error("a place is free twice: once known, and once closed")
	}
	Known(nil) // Of whatever else it is nothing known.
}

// TestSlowRequestsEnd checks that neither a handler nor a sender can hold a connection.
func TestSlowRequestsEnd(t *testing.T) {
	slow := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		<-r.Context().Done()
	})
	address := listen(t, Bounds{All: 9, Each: 9}, Server{Name: "the test", Handler: slow, Timeout: 200 * time.Millisecond})
	for name, request := range map[string]string{
		"Handler": "GET / HTTP/1.1\r\nHost: x\r\n\r\n",
		"Header":  "GET / HTTP/1.1\r\nHost:",
		"Body":    "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\n1",
		"Large":   "GET / HTTP/1.1\r\nHost: x\r\nX-Large: " + strings.Repeat("a", 64<<10) + "\r\n\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			c := dial(t, "127.0.0.1", address)
			if err := c.SetDeadline(time.Now().Add(10 * time.Second)); err != nil {
				t.Fatal(err)
			}
			_, _ = io.WriteString(c, request) // The server may have enough before the end.
			answer := make([]byte, 64)
			n, err := c.Read(answer)
			var timeout net.Error
			if errors.As(err, &timeout) && timeout.Timeout() {
				t.Fatal("the connection is still held after 10 s")
			}
			if strings.Contains(string(answer[:n]), " 200 ") {
				t.Errorf("answered %s", answer[:n])
			}
		})
	}
}

// TestEndless answers longer than a request may take, until the server ends; the other requests have their bounds.
func TestEndless(t *testing.T) {
	const timeout = 200 * time.Millisecond
	ended := make(chan struct{})
	h := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		control := http.NewResponseController(w)
		_ = control.SetReadDeadline(time.Time{})
		for until := time.Now().Add(3 * timeout); time.Now().Before(until); {
			select {
			case <-r.Context().Done():
				return
			case <-time.After(timeout / 4):
			}
			_, _ = io.WriteString(w, "beat ")
			_ = control.Flush()
		}
		_, _ = io.WriteString(w, "still ")
		_ = control.Flush()
		<-r.Context().Done()
		close(ended)
	})
	server := Server{Name: "the test", Handler: h, Timeout: timeout, Endless: func(r *http.Request) bool { return r.URL.Path == "/endless" }}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	listener := servingtest.Listen(t)
	done := make(chan error, 1)
	go func() { done <- server.Run(ctx, listener) }()
	get := func(path string) *bufio.Reader {
		c := dial(t, "127.0.0.1", listener.Addr().String())
		if _, err := io.WriteString(c, "GET "+path+" HTTP/1.1\r\nHost: x\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
		return bufio.NewReader(c)
	}
	if status, err := get("/other").ReadString('\n'); err != nil || !strings.Contains(status, " 503 ") {
		t.Errorf("another request is answered %q (%v)", status, err)
	}
	stream := get("/endless")
	for {
		line, err := stream.ReadString(' ')
		if err != nil {
			t.Fatalf("the stream ends early: %v", err)
		}
		if strings.Contains(line, "still") {
			break
		}
	}
	cancel()
	select {
	case <-ended:
	case <-time.After(10 * time.Second):
		t.Error("the stream does not end with the server")
	}
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// TestIdle leaves a connection alone after a request: the server closes it in the time that is set, and not after a minute.
func TestIdle(t *testing.T) {
	address := listen(t, Bounds{All: 1, Each: 1}, Server{Name: "the test", Handler: ok, Timeout: time.Minute, Idle: 50 * time.Millisecond})
	c := dial(t, "127.0.0.1", address)
	if !answers(t, c) {
		t.Fatal("the connection is not served")
	}
	if _, err := c.Read(make([]byte, 1)); !errors.Is(err, io.EOF) { // answers has set a deadline.
		t.Errorf("the connection ends by %v, want its end", err)
	}
}

// TestDirect reads what a handler has written before it ends, which it does when its time is over.
func TestDirect(t *testing.T) {
	ended := make(chan error, 1)
	address := listen(t, Bounds{All: 4, Each: 4}, Server{
		Name: "the test", Timeout: 300 * time.Millisecond, Direct: true,
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			_, _ = w.Write(make([]byte, 64<<10)) // More than is gathered before something is sent.
			<-r.Context().Done()
			ended <- r.Context().Err()
		}),
	})
	c := dial(t, "127.0.0.1", address)
	if _, err := io.WriteString(c, "GET / HTTP/1.1\r\nHost: a\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	first := make([]byte, 12)
	if _, err := io.ReadFull(c, first); err != nil || string(first) != "HTTP/1.1 200" {
		t.Errorf("the answer begins with %q: %v", first, err)
	}
	if len(ended) > 0 {
		t.Error("the answer was kept until the handler ended")
	}
	if err := <-ended; !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("the context ends with %v", err)
	}
}
