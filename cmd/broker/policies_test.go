// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"net/netip"
	"testing"

	"github.com/capacitorset/liqo-broker/pkg/peernet"
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
			s := newWebhooks(&options{webhookAllow: tc.allow}, newCertificate(nil), &peernet.Peers{})
			if got := s.Admits(netip.MustParseAddr(tc.from)); got != tc.want {
				t.Errorf("%s\n%s may call: %t, want %t", tc.reason, tc.from, got, tc.want)
			}
		})
	}
}
