// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package discovery

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/net/dns/dnsmessage"
)

const (
	print1 = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
	print2 = "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"
	well   = "fp=" + print1
	milan  = "milan._liqo-registry._tcp.example.org."
)

// zone is a DNS server on loopback, and what it answers.
type zone struct {
	records map[string][]dnsmessage.ResourceBody
	// code is what it says of all, bare that it has not validated anything, and long that it answers over TCP alone.
	code       dnsmessage.RCode
	bare, long bool
	// forged is sent before each answer over UDP.
	forged func(query dnsmessage.Message) []byte
	// raw takes the place of an answer over TCP.
	raw []byte
}

// of returns a zone with one registry.
func of(srv dnsmessage.SRVResource, txt ...string) *zone {
	return &zone{records: map[string][]dnsmessage.ResourceBody{
		"_liqo-registry._tcp.example.org.": {&dnsmessage.PTRResource{PTR: dnsmessage.MustNewName(milan)}},
		milan:                              {&srv, &dnsmessage.TXTResource{TXT: txt}},
	}}
}

func at(host string, port uint16) dnsmessage.SRVResource {
	return dnsmessage.SRVResource{Target: dnsmessage.MustNewName(host), Port: port}
}

// answer returns the answer to a question.
func (z *zone) answer(t *testing.T, query dnsmessage.Message) []byte {
	t.Helper()
	asked := query.Questions[0]
	m := dnsmessage.Message{Questions: query.Questions}
	m.Header = dnsmessage.Header{ID: query.ID, Response: true, RCode: z.code, AuthenticData: !z.bare && query.AuthenticData}
	for _, body := range z.records[asked.Name.String()] {
		header := dnsmessage.ResourceHeader{Name: asked.Name, Class: dnsmessage.ClassINET}
		kinds := map[string]dnsmessage.Type{
			"*dnsmessage.PTRResource": dnsmessage.TypePTR, "*dnsmessage.SRVResource": dnsmessage.TypeSRV,
			"*dnsmessage.TXTResource": dnsmessage.TypeTXT,
		}
		if kinds[fmt.Sprintf("%T", body)] == asked.Type {
			m.Answers = append(m.Answers, dnsmessage.Resource{Header: header, Body: body})
		}
	}
	text, err := m.Pack()
	if err != nil {
		t.Error(err)
	}
	return text
}

// serve serves the zone until the test ends.
func (z *zone) serve(t *testing.T) *Resolver {
	t.Helper()
	datagrams, err := (&net.ListenConfig{}).ListenPacket(t.Context(), "udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	streams, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", datagrams.LocalAddr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { datagrams.Close(); streams.Close() })
	go func() {
		for buffer := make([]byte, 4096); ; {
			n, from, err := datagrams.ReadFrom(buffer)
			if err != nil {
				return
			}
			var query dnsmessage.Message
			if query.Unpack(buffer[:n]) != nil {
				continue
			}
			if z.forged != nil {
				_, _ = datagrams.WriteTo(z.forged(query), from)
			}
			text := z.answer(t, query)
			if z.long {
				text[2] |= 2 // It is truncated.
				text = text[:min(len(text), 512)]
			}
			_, _ = datagrams.WriteTo(text, from)
		}
	}()
	go func() {
		for {
			conn, err := streams.Accept()
			if err != nil {
				return
			}
			var length [2]byte
			_, _ = io.ReadFull(conn, length[:])
			text := make([]byte, binary.BigEndian.Uint16(length[:]))
			_, _ = io.ReadFull(conn, text)
			var query dnsmessage.Message
			if query.Unpack(text) == nil {
				reply := z.answer(t, query)
				reply = append(binary.BigEndian.AppendUint16(nil, uint16(len(reply))), reply...)
				if z.raw != nil {
					reply = z.raw
				}
				_, _ = conn.Write(reply)
			}
			conn.Close()
		}
	}()
	return &Resolver{Address: datagrams.LocalAddr().String(), Trusted: true, Wait: time.Second}
}

func TestFind(t *testing.T) {
	want := Found{Name: "milan", URL: "https://registry.example.org:30443", Fingerprint: print1, Validated: true}
	change := func(of func(*Found)) Found { f := want; of(&f); return f }
	for name, tc := range map[string]struct {
		reason string
		zone   *zone
		domain string
		want   Found
	}{
		"Usual":     {"all records are read", of(at("registry.example.org.", 30443), well), "example.org", want},
		"UpperCase": {"names have no case", of(at("REGISTRY.example.org.", 30443), well), "Example.ORG.", want},
		"Named":     {"a registry of a domain can be named", of(at("registry.example.org.", 30443), well), strings.TrimSuffix(milan, "."), want},
		"Certificate": {
			"without fp= an ordinary certificate is shown", of(at("registry.example.org.", 443), "txtvers=1"), "example.org",
			change(func(f *Found) { f.URL, f.Fingerprint = "https://registry.example.org", "" }),
		},
		"FirstCounts": {"a second fp= does not count", of(at("registry.example.org.", 30443), "FP="+print1, "fp="+print2), "example.org", want},
		"NotValidated": {
			"the resolver has to say so", func() *zone { z := of(at("registry.example.org.", 30443), well); z.bare = true; return z }(),
			"example.org", change(func(f *Found) { f.Validated = false }),
		},
		"Long": {
			"what is too long is asked for over TCP", func() *zone { z := of(at("registry.example.org.", 30443), well); z.long = true; return z }(),
			"example.org", want,
		},
		"Forged": {
			"an answer to something else, from whoever guesses, is passed over", func() *zone {
				z, liar := of(at("registry.example.org.", 30443), well), of(at("liar.example.org.", 1), "fp="+print2)
				z.forged = func(query dnsmessage.Message) []byte { query.ID++; return liar.answer(t, query) }
				return z
			}(), "example.org", want,
		},
	} {
		t.Run(name, func(t *testing.T) {
			found, err := tc.zone.serve(t).Find(t.Context(), tc.domain)
			if diff := cmp.Diff([]Found{tc.want}, found); err != nil || diff != "" {
				t.Errorf("%s: %v (-want, +found):\n%s", tc.reason, err, diff)
			}
		})
	}
	// Only a resolver that is trusted can say that it has validated.
	resolver := of(at("registry.example.org.", 30443), well).serve(t)
	resolver.Trusted = false
	if found, err := resolver.Find(t.Context(), "example.org"); err != nil || found[0].Validated {
		t.Errorf("a resolver that nobody trusts is believed: %+v, %v", found, err)
	}
}

// TestHostileRecords gives a domain records that are not what they have to be: none is followed, and each error says why.
func TestHostileRecords(t *testing.T) {
	pointer := func(to string) *zone {
		z := of(at("registry.example.org.", 30443), well)
		z.records["_liqo-registry._tcp.example.org."] = []dnsmessage.ResourceBody{&dnsmessage.PTRResource{PTR: dnsmessage.MustNewName(to)}}
		return z
	}
	many := of(at("registry.example.org.", 30443), well)
	for n := range maxFound + 1 {
		many.records["_liqo-registry._tcp.example.org."] = append(many.records["_liqo-registry._tcp.example.org."],
			&dnsmessage.PTRResource{PTR: dnsmessage.MustNewName(fmt.Sprintf("r%d._liqo-registry._tcp.example.org.", n))})
	}
	another := at("a.example.org.", 1)
	endless := of(at("registry.example.org.", 30443), well)
	endless.long = true
	for range maxRecords + 1 {
		endless.records[milan] = append(endless.records[milan], &another)
	}
	twice := of(at("registry.example.org.", 30443), well)
	twice.records[milan] = append(twice.records[milan], &dnsmessage.TXTResource{TXT: []string{"fp=" + print2}})
	services := of(at("registry.example.org.", 30443), well)
	services.records[milan] = append(services.records[milan], &another)
	huge := of(at("registry.example.org.", 30443), well)
	huge.long, huge.raw = true, []byte{0xff, 0xff}
	garbage := of(at("registry.example.org.", 30443), well)
	garbage.long, garbage.raw = true, []byte{0, 3, 1, 2, 3}
	refuses := of(at("registry.example.org.", 30443), well)
	refuses.code = dnsmessage.RCodeServerFailure
	for name, tc := range map[string]struct {
		zone *zone
		want string
		is   error
	}{
		"Nothing":          {&zone{}, "there is no such record", ErrNone},
		"NoName":           {&zone{code: dnsmessage.RCodeNameError}, "there is no such record", ErrNone},
		"Refuses":          {refuses, "it refuses: ServerFailure", nil},
		"OtherDomain":      {pointer("milan._liqo-registry._tcp.liar.org."), "not a name of letters, digits and hyphens below it", ErrHostile},
		"OddName":          {pointer("a\x1b[2Jb._liqo-registry._tcp.example.org."), "not a name of letters", ErrHostile},
		"TwoLabels":        {pointer("a.b._liqo-registry._tcp.example.org."), "not a name of letters", ErrHostile},
		"Many":             {many, "more than 16", ErrHostile},
		"ManyRecords":      {endless, "more than 64 records", ErrHostile},
		"Huge":             {huge, "an answer of 65535 bytes", ErrHostile},
		"NoMessage":        {garbage, "no answer to this question", nil},
		"NoPort":           {of(at("registry.example.org.", 0), well), "has no port", ErrHostile},
		"NoTarget":         {of(at(".", 30443), well), "no name of a domain", ErrHostile},
		"Address":          {of(at("10.0.0.1.", 30443), well), "is an address", ErrHostile},
		"Localhost":        {of(at("localhost.", 30443), well), "not everybody knows", ErrHostile},
		"Cluster":          {of(at("kubernetes.default.svc.", 443), well), "not everybody knows", ErrHostile},
		"OddTarget":        {of(at("a/b?c.example.org.", 30443), well), "no name of a domain", ErrHostile},
		"TwoServices":      {services, "2 SRV records", ErrHostile},
		"TwoTexts":         {twice, "2 TXT records", ErrHostile},
		"ShortFingerprint": {of(at("registry.example.org.", 30443), "fp=abc"), "no fingerprint", ErrHostile},
		"OddFingerprint":   {of(at("registry.example.org.", 30443), "fp="+strings.Repeat("A", fingerprintLength)), "no fingerprint", ErrHostile},
		"EmptyFingerprint": {of(at("registry.example.org.", 30443), "fp="), "no fingerprint", ErrHostile},
	} {
		t.Run(name, func(t *testing.T) {
			found, err := tc.zone.serve(t).Find(t.Context(), "example.org")
			if err == nil || !strings.Contains(err.Error(), tc.want) || tc.is != nil && !errors.Is(err, tc.is) || len(err.Error()) > 700 {
				t.Errorf("%+v, %v, want an error that says %q and is %v", found, err, tc.want, tc.is)
			}
		})
	}
	for _, domain := range []string{"", "example", "a..b", "-a.org", strings.Repeat("a.", 130) + "org", "10.0.0.1", "x.local", "a b.org"} {
		if _, err := (&Resolver{Address: "127.0.0.1:1"}).Find(t.Context(), domain); err == nil || strings.Contains(err.Error(), "127.0.0.1") {
			t.Errorf("the domain %q is asked for: %v", domain, err)
		}
	}
}

// TestSilentResolver holds that nobody waits longer than was said.
func TestSilentResolver(t *testing.T) {
	silent, err := (&net.ListenConfig{}).ListenPacket(t.Context(), "udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	_, err = (&Resolver{Address: silent.LocalAddr().String(), Wait: 20 * time.Millisecond}).Find(ctx, "example.org")
	if err == nil || ctx.Err() != nil || !strings.Contains(err.Error(), "PTR of _liqo-registry._tcp.example.org") {
		t.Errorf("without an answer: %v", err)
	}
}

func TestSystemResolver(t *testing.T) {
	for text, want := range map[string]string{
		"# x\nnameserver 127.0.0.53\noptions edns0 trust-ad\n":     "127.0.0.53:53 true",
		"nameserver 127.0.0.11\noptions ndots:0\n":                 "127.0.0.11:53 false",
		"options trust-ad\nnameserver 192.0.2.1\nnameserver ::1\n": "192.0.2.1:53 false",
		"nameserver ::1\noptions trust-ad":                         "[::1]:53 true",
		"search x\n":                                               "error names none",
		"nameserver here\n":                                        "error unable to parse IP",
	} {
		file := filepath.Join(t.TempDir(), "resolv.conf")
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		r, err := SystemResolver(file)
		got := fmt.Sprint(r.Address, " ", r.Trusted)
		if err != nil {
			got = "error " + err.Error()
		}
		if reason, failed := strings.CutPrefix(want, "error "); got != want && (!failed || !strings.Contains(got, reason)) {
			t.Errorf("%q is %s, want %s", text, got, want)
		}
	}
}

func TestInvitation(t *testing.T) {
	for _, want := range []Invitation{
		{URL: "https://registry.example:30443", Fingerprint: print1, Token: "ABC"}, {URL: "https://registry.example/path"},
		{URL: "https://[2001:db8::1]:8443", Fingerprint: print1}, {URL: "https://203.0.113.7", Token: "x-y_z"},
	} {
		text := want.String()
		if got, err := ParseInvitation(text); err != nil || got != want || strings.ContainsAny(text, " &;#'\"$<>|`\\") {
			t.Errorf("%s is read as %+v, %v", text, got, err)
		}
	}
	const url = "liqo-registry:https://registry.example"
	for text, want := range map[string]string{
		"https://registry.example": "does not begin", "liqo-registry:http://registry.example": "https://HOST", "liqo-registry:": "https://HOST",
		url + "?a=b": "https://HOST", url + ":0": "no port", url + ":70000": "port", "liqo-registry:https://user:secret@host": "https://HOST",
		url + "\x1b[2J": "character", url + ",fp=abc": "no fingerprint", url + ",fp=" + print1 + ",fp=" + print1: "each once",
		url + ",tkoen=secret": "only fp and token", url + ",token=": "no token", url + ",token=secret " + strings.Repeat("s", 10): "no token",
		url + ",token=" + strings.Repeat("s", 300): "no token", url + "/" + strings.Repeat("s", 600): "more than 512",
		url + ",token=secret" + strings.Repeat(",", 1100): "more than 1024",
	} {
		if got, err := ParseInvitation(text); err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "secret") {
			t.Errorf("%.80q is %+v, %v, want an error that says %q", text, got, err, want)
		}
	}
}
