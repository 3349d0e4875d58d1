// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package report_test

import (
	"fmt"
	"net/netip"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
	"github.com/capacitorset/liqo-broker/pkg/core/views"
	"github.com/capacitorset/liqo-broker/pkg/liqo/v1/report"
)

var noon = time.Date(2026, 11, 28, 12, 0, 0, 0, time.UTC)

func TestFormat(t *testing.T) {
	r := report.Report{
		Agent: "v1.0.0", At: noon.Add(300 * time.Millisecond), Views: map[string]netip.Prefix{"n1": netip.MustParsePrefix("10.69.0.0/16")},
		Links: []report.Link{{Cluster: "p", Connected: true, RoundTrip: 1500 * time.Microsecond, At: noon}, {Cluster: "q"}},
	}
	text, err := r.Format()
	const want = `{"version":1,"agent":"v1.0.0","at":"2026-11-28T12:00:00Z","views":{"n1":"10.69.0.0/16"},` +
		`"links":[{"cluster":"p","connected":true,"roundTrip":"1.5ms","at":"2026-11-28T12:00:00Z"},{"cluster":"q","connected":false}]}`
	if err != nil || text != want {
		t.Fatalf("%s, %v; want %s", text, err, want)
	}
	r.At = noon
	if read, err := report.Parse(text); err != nil || !reflect.DeepEqual(read, r) {
		t.Errorf("read %+v, %v; want %+v", read, err, r)
	}
	r.Views["a/b"] = netip.MustParsePrefix("10.70.0.0/16")
	if _, err := r.Format(); err == nil {
		t.Error("a key is written that nobody reads")
	}
}

// TestFormatLong leaves out tunnels, and no views.
func TestFormatLong(t *testing.T) {
	r := report.Report{Agent: strings.Repeat("v", 10<<10), Views: map[string]netip.Prefix{}}
	for i := range views.MaxViews {
		r.Views[fmt.Sprintf("%063d", i)] = netip.MustParsePrefix("100.100.100.0/24")
	}
	for i := range 2 * report.MaxLinks {
		id := cluster.ID(fmt.Sprintf("%063d", i))
		r.Links = append(r.Links, report.Link{Cluster: id, Connected: true, RoundTrip: time.Nanosecond, At: noon})
	}
	text, err := r.Format()
	if err != nil || len(text) > report.MaxBytes {
		t.Fatalf("%d bytes, %v", len(text), err)
	}
	read, err := report.Parse(text)
	if err != nil || len(read.Views) != len(r.Views) || len(read.Links) == 0 || len(read.Links) > report.MaxLinks {
		t.Errorf("%d views and %d links are read: %v", len(read.Views), len(read.Links), err)
	}
}

func TestParse(t *testing.T) {
	prefixes := func(of ...string) map[string]netip.Prefix {
		all := map[string]netip.Prefix{}
		for i := 0; i < len(of); i += 2 {
			all[of[i]] = netip.MustParsePrefix(of[i+1])
		}
		return all
	}
	cases := map[string]struct {
		reason, text string
		views        map[string]netip.Prefix
		links        []report.Link
		fails        string
	}{
		"Empty":     {reason: "The ConfigMap is made empty.", fails: "read the report"},
		"NoObject":  {reason: "It is an object.", text: `[]`, fails: "read the report"},
		"NoTime":    {reason: "Without a time nothing is fresh, which is not for here.", text: `{"version":1}`, views: prefixes()},
		"BadTime":   {reason: "A time that cannot be read is none to believe.", text: `{"version":1,"at":"noon"}`, fails: "read the report"},
		"NoVersion": {reason: "Nobody knows what it means.", text: `{"views":{"a":"10.69.0.0/16"}}`, fails: "version 0"},
		"Later":     {reason: "A later one is not for this one.", text: `{"version":2,"views":{"a":"10.69.0.0/16"}}`, fails: "version 2"},
		"UnknownKey": {
			reason: "Later agents tell more.",
			text:   `{"version":1,"mood":"fine","views":{"a":"10.69.0.0/16"}}`, views: prefixes("a", "10.69.0.0/16"),
		},
		"BadView": {
			reason: "One that cannot be takes no other away.", text: `{"version":1,"views":{"a":"10.69.0.0/16","b":"8.8.8.0/24","c":7,"d":"x"}}`,
			views: prefixes("a", "10.69.0.0/16"), fails: "view b: prefix 8.8.8.0/24 is not in a private range",
		},
		"BadViewType": {
			reason: "Neither does one of another type.",
			text:   `{"version":1,"views":{"a":"10.69.0.0/16","c":{}}}`, views: prefixes("a", "10.69.0.0/16"), fails: "view c",
		},
		"BadPrefix": {
			reason: "Or with no prefix.",
			text:   `{"version":1,"views":{"a":"10.69.0.0/16","d":"x"}}`, views: prefixes("a", "10.69.0.0/16"), fails: `view d is "x"`,
		},
		"BadKey":   {reason: "It is a label.", text: `{"version":1,"views":{"a/b":"10.69.0.0/16"}}`, views: prefixes(), fails: "is not"},
		"HostBits": {reason: "It is its network.", text: `{"version":1,"views":{"a":"10.69.1.2/16"}}`, views: prefixes("a", "10.69.0.0/16")},
		"BadLink": {
			reason: "Nor does a link.", text: `{"version":1,"links":[{"cluster":"P!"},{"cluster":"p"},3]}`, views: prefixes(),
			links: []report.Link{{Cluster: "p"}}, fails: "links[0]",
		},
		"TwoLinks": {
			reason: "A cluster has one.", text: `{"version":1,"links":[{"cluster":"p","connected":true},{"cluster":"p"}]}`, views: prefixes(),
			links: []report.Link{{Cluster: "p", Connected: true}}, fails: "links[1]: cluster p is there",
		},
		"NoTrip": {
			reason: "A time that cannot be is none, and that of a tunnel that is down does not count.", views: prefixes(),
			text: `{"version":1,"links":[{"cluster":"p","connected":true,"roundTrip":"-1s","at":"2026-11-28T12:00:00Z"},` +
				`{"cluster":"q","roundTrip":"1s","at":"2026-11-28T12:00:00Z"},{"cluster":"r","connected":true,"roundTrip":"1s"},` +
				`{"cluster":"s","connected":true,"roundTrip":7,"at":"2026-11-28T12:00:00Z"},` +
				`{"cluster":"t","connected":true,"roundTrip":"1s","at":"0001-01-01T00:00:00Z"}]}`,
			links: []report.Link{
				{Cluster: "p", Connected: true}, {Cluster: "q"}, {Cluster: "r", Connected: true}, {Cluster: "s", Connected: true},
				{Cluster: "t", Connected: true},
			},
		},
		"Long": {
			reason: "What is longer than it may be is not read.", text: `{"version":1,"agent":"` + strings.Repeat("x", report.MaxBytes) + `"}`,
			fails: "more than 65536",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			r, err := report.Parse(tc.text)
			if tc.fails == "" && err != nil || tc.fails != "" && (err == nil || !strings.Contains(err.Error(), tc.fails)) {
				t.Errorf("%s: error = %v, want %q", tc.reason, err, tc.fails)
			}
			if !reflect.DeepEqual(r.Views, tc.views) || !reflect.DeepEqual(r.Links, tc.links) {
				t.Errorf("%s: %+v", tc.reason, r)
			}
		})
	}
}

// FuzzParse holds that what is read can be, is bounded, and can be written and read again, and that errors are short.
func FuzzParse(f *testing.F) {
	for _, text := range []string{
		"", "{}", "null", `{"version":1}`, `{"version":1,"at":"2026-11-28T12:00:00Z","views":{"a":"10.69.0.0/16","b":"::/0","":"x"},"agent":7}`,
		`{"version":1,"links":[{"cluster":"p","connected":true,"roundTrip":"1ms","at":"2026-11-28T12:00:00Z"},null,[],{"cluster":null}]}`,
		`{"version":1,"views":{"` + strings.Repeat("k", 5000) + `":"10.0.0.0/16"},"agent":"` + strings.Repeat("\xff", 500) + `"}`,
		strings.Repeat("[", 1<<16), `{"version":1,"views":null,"links":null,"at":null}`, `{"version":1,"at":"9999-12-31T23:59:59Z"}`,
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		r, err := report.Parse(text)
		if err != nil && len(err.Error()) > 2048 {
			t.Errorf("the error has %d bytes", len(err.Error()))
		}
		if len(r.Views) > views.MaxViews || len(r.Links) > report.MaxLinks || len(r.Agent) > 64 {
			t.Errorf("%d views, %d links, %d bytes of version", len(r.Views), len(r.Links), len(r.Agent))
		}
		for key, prefix := range r.Views {
			if views.CheckKey(key) != nil || views.CheckPrefix(prefix) != nil || prefix != prefix.Masked() {
				t.Errorf("view %q is %v", key, prefix)
			}
		}
		for _, l := range r.Links {
			if l.Cluster == "" || len(l.Cluster) > 63 || l.RoundTrip < 0 || l.RoundTrip > 0 && (l.At.IsZero() || !l.Connected) {
				t.Errorf("link %+v", l)
			}
		}
		if r.Views == nil || r.At.Year() < 0 || r.At.Year() > 9999 {
			return
		}
		again, err := r.Format()
		if err != nil {
			t.Fatal(err)
		}
		if read, err := report.Parse(again); err != nil || !reflect.DeepEqual(read.Views, r.Views) {
			t.Errorf("read %+v, wrote %s, read %+v: %v", r, again, read, err)
		}
	})
}
