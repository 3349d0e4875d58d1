// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package peering

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
)

const valid = `{"version":1,"clusterID":"2222","clusterName":"seller","authURL":"https://192.0.2.1:30443","token":"s3cret"}`

func TestParseCredentials(t *testing.T) {
	with := func(old, replacement string) string { return strings.Replace(valid, old, replacement, 1) }
	for name, tc := range map[string]struct {
		reason, text string
		ok           bool
	}{
		"Valid":     {"All is there.", valid, true},
		"Port":      {"The usual port needs no number.", with(":30443", ""), true},
		"Nothing":   {"There is no document.", "", false},
		"Array":     {"It is no object.", "[]", false},
		"Unknown":   {"A field that this version does not know may matter.", with("{", `{"proxy":"x",`), false},
		"Two":       {"Something follows.", valid + valid, false},
		"Version":   {"A later version may mean something else.", with(":1,", ":2,"), false},
		"NoVersion": {"Which version is it?", with(`"version":1,`, ""), false},
		"ID":        {"The ID becomes a label and a part of names.", with("2222", "../x"), false},
		"NoID":      {"Whose are they?", with("2222", ""), false},
		"Name":      {"The name becomes a part of names.", with("seller", "Sel ler"), false},
		"Plain":     {"The token would pass in clear.", with("https", "http"), false},
		"User":      {"A URL has no password.", with("https://", "https://a:b@"), false},
		"Query":     {"A URL has no parameters.", with("30443", "30443/?a=b"), false},
		"NoHost":    {"There is nobody to ask.", with("192.0.2.1:30443", ""), false},
		"NoToken":   {"There is nothing to show.", with("s3cret", ""), false},
		"Long":      {"Tokens are short.", with("s3cret", strings.Repeat("x", 3000)), false},
		"Path":      {"It is Liqo that says where it authenticates.", with("30443", "30443/latest"), false},
		"Loopback":  {"It is the buyer's own machine.", with("192.0.2.1", "127.0.0.1"), false},
		"Loopback6": {"In IPv6.", with("192.0.2.1", "[::1]"), false},
		"Mapped":    {"In another form.", with("192.0.2.1", "[::ffff:127.0.0.1]"), false},
		"Link":      {"Clouds give the credentials of machines there.", with("192.0.2.1", "169.254.169.254"), false},
		"Link6":     {"In IPv6.", with("192.0.2.1", "[fe80::1]"), false},
		"Zone":      {"It is an address of one machine.", with("192.0.2.1", "[fd00::1%25eth0]"), false},
		"Nowhere":   {"It is the machine itself on Linux.", with("192.0.2.1", "0.0.0.0"), false},
		"Multicast": {"It is nobody's.", with("192.0.2.1", "224.0.0.1"), false},
		"Service":   {"It is in the buyer's cluster.", with("192.0.2.1", "kubernetes.default.svc"), false},
		"Service2":  {"By its whole name.", with("192.0.2.1", "kubernetes.default.svc.cluster.local"), false},
		"Label":     {"It is completed by the buyer's DNS.", with("192.0.2.1", "kubernetes"), false},
		"Number":    {"Some read it as an address.", with("192.0.2.1", "2130706433"), false},
		"Named":     {"A name in the DNS of all.", with("192.0.2.1", "auth.example.org"), true},
		"Huge":      {"Documents are short.", with("s3cret", strings.Repeat("x", 1<<20)), false},
	} {
		t.Run(name, func(t *testing.T) {
			c, err := ParseCredentials([]byte(tc.text))
			switch {
			case !tc.ok && !errors.Is(err, ErrCredentials):
				t.Errorf("%s\n%v, want %v", tc.reason, err, ErrCredentials)
			case tc.ok && err != nil:
				t.Errorf("%s\n%v", tc.reason, err)
			}
			if err != nil && strings.Contains(err.Error(), "s3cret") {
				t.Errorf("the error quotes the token: %v", err)
			}
			if tc.ok {
				document, err := c.Document()
				again, err2 := ParseCredentials(document)
				if err != nil || err2 != nil || again.Cluster() != c.Cluster() || again.AuthURL() != c.AuthURL() || again.Token() != c.Token() {
					t.Errorf("what is written is read as something else: %v, %v", err, err2)
				}
			}
		})
	}
}

// TestCredentialsDoNotPrint prints credentials by every way that a careless program may take.
func TestCredentialsDoNotPrint(t *testing.T) {
	c, err := NewCredentials(cluster.Identity{ID: "2222", Name: "seller"}, "https://192.0.2.1", "s3cret")
	if err != nil {
		t.Fatal(err)
	}
	var log strings.Builder
	slog.New(slog.NewJSONHandler(&log, nil)).Info("issued", "credentials", c, "in", struct{ C Credentials }{c})
	text, err := json.Marshal(map[string]any{"c": c, "p": &c})
	if err != nil {
		t.Fatal(err)
	}
	all := []string{c.String(), log.String(), string(text), fmt.Sprint(c.MarshalLog())}
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%d"} {
		all = append(all, fmt.Sprintf(verb, c), fmt.Sprintf(verb, &c), fmt.Sprintf(verb, []Credentials{c}),
			fmt.Sprintf(verb, struct{ C Credentials }{c}), fmt.Sprintf(verb, struct{ c Credentials }{c}))
	}
	for _, printed := range all {
		if strings.Contains(printed, "s3cret") || strings.Contains(printed, fmt.Sprintf("%x", "s3cret")) {
			t.Errorf("the token is printed: %s", printed)
		}
	}
}

func FuzzParseCredentials(f *testing.F) {
	f.Add([]byte(valid))
	f.Add([]byte(`{"version":1e0}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		c, err := ParseCredentials(text)
		if err != nil {
			return
		}
		document, err := c.Document()
		if err != nil {
			t.Fatal(err)
		}
		if again, err := ParseCredentials(document); err != nil || again.Token() != c.Token() || again.Cluster() != c.Cluster() {
			t.Errorf("%q is read as something else when it is written: %v", text, err)
		}
	})
}
