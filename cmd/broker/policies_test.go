// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"maps"
	"net/netip"
	"os"
	"regexp"
	"slices"
	"testing"

	"github.com/capacitorset/liqo-broker/pkg/peernet"
	"github.com/capacitorset/liqo-broker/pkg/webhook/identities"
	"github.com/capacitorset/liqo-broker/pkg/webhook/offering"
)

// TestWebhookCallers checks whom the webhooks answer: where the API servers' addresses are not given, nobody until the
// peers are known.
func TestWebhookCallers(t *testing.T) {
	cases := map[string]struct {
		reason string
		allow  []netip.Prefix
		from   string
		want   bool
	}{
		"PeersUnknown": {reason: "As long as the peers are not known, a caller may be one.", from: "192.0.2.1"},
		"Given":        {reason: "Addresses that are given may call.", allow: []netip.Prefix{netip.MustParsePrefix("192.0.2.0/24")}, from: "192.0.2.1", want: true},
		"Other":        {reason: "Then no other may.", allow: []netip.Prefix{netip.MustParsePrefix("192.0.2.0/24")}, from: "198.51.100.1"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			certificate, _ := newCertificate(nil)
			s := newWebhooks(&options{webhookAllow: tc.allow}, certificate, &peernet.Peers{})
			if got := s.Admits(netip.MustParseAddr(tc.from)); got != tc.want {
				t.Errorf("%s\n%s may call: %t, want %t", tc.reason, tc.from, got, tc.want)
			}
		})
	}
}

// TestManifestAsksWhatIsServed compares the paths in deploy/broker/webhook.yaml with those that the daemon serves, in whatever mode:
// the API server refuses what it cannot ask about.
func TestManifestAsksWhatIsServed(t *testing.T) {
	manifest, err := os.ReadFile("../../deploy/broker/webhook.yaml")
	if err != nil {
		t.Fatal(err)
	}
	asked := map[string]bool{}
	for _, match := range regexp.MustCompile(`(?m)^ +path: (/\S+)$`).FindAllStringSubmatch(string(manifest), -1) {
		asked[match[1]] = true
	}
	served := append(brokeringPaths(), identities.Path, offering.Path)
	slices.Sort(served)
	if got := slices.Sorted(maps.Keys(asked)); !slices.Equal(got, served) {
		t.Errorf("the API server asks %v, and the daemon serves %v", got, served)
	}
}
