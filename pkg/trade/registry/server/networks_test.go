// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"net"
	"net/http"
	"net/netip"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/capacitorset/liqo-broker/pkg/trade/registry/registrytest"
	"github.com/capacitorset/liqo-broker/pkg/trade/registry/registryv1"
	"github.com/capacitorset/liqo-broker/pkg/trade/registry/store"
)

// TestNetworkOf has one network for all addresses that one customer may have, and others for those of others.
func TestNetworkOf(t *testing.T) {
	for address, want := range map[string]string{
		"192.0.2.1": "192.0.2.0/24", "192.0.2.254": "192.0.2.0/24", "192.0.3.1": "192.0.3.0/24",
		"2001:db8:0:12ff::1": "2001:db8:0:1200::/56", "2001:db8:0:1200:ffff::": "2001:db8:0:1200::/56",
		"2001:db8:0:1300::1": "2001:db8:0:1300::/56",
	} {
		if got := networkOf(netip.MustParseAddr(address)); got != want {
			t.Errorf("%s is of network %q, want %q", address, got, want)
		}
	}
	if got := networkOf(netip.Addr{}); got != "" {
		t.Errorf("nobody knows from where, and it is network %q", got)
	}
}

// TestNetworkFillsItsPlaces has addresses of one network announce more parties than may wait for it: one that waits from another network
// stays.
func TestNetworkFillsItsPlaces(t *testing.T) {
	r := run(t, newFileDSN(t), func(c *Config) { c.AutoApprove = false })
	announce := func(from string) *registrytest.Party {
		t.Helper()
		p := registrytest.NewParty(t, "waits")
		dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}}
		transport := &http.Transport{TLSClientConfig: registrytest.TLS(p.Key, r.key), DialContext: dialer.DialContext}
		defer transport.CloseIdleConnections()
		path := strings.ReplaceAll(registryv1.Base+registryv1.PathParty, "{party}", p.ID)
		request, err := http.NewRequestWithContext(t.Context(), http.MethodPut, "https://"+r.address+path,
			strings.NewReader(text(t, p.Enrolment(t, 1, ""))))
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("Content-Type", "application/json")
		response, err := (&http.Client{Transport: transport}).Do(request)
		if err != nil {
			t.Fatal(err)
		}
		defer response.Body.Close()
		if response.StatusCode != http.StatusOK {
			t.Fatalf("it is answered %s", response.Status)
		}
		return p
	}
	others := announce("127.0.1.1")
	for n := range store.MaxWaitingEach + 2 {
		announce([]string{"127.0.0.1", "127.0.0.2"}[n%2])
	}
	if _, err := r.store.Party(t.Context(), others.ID); err != nil {
		t.Errorf("who waits from another network has lost its place: %v", err)
	}
	snapshot, err := r.store.Snapshot(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	waiting := map[string]int{}
	for _, p := range snapshot.Parties {
		waiting[p.Network]++
	}
	if diff := cmp.Diff(map[string]int{"127.0.1.0/24": 1, "127.0.0.0/24": store.MaxWaitingEach}, waiting); diff != "" {
		t.Errorf("who waits: -want +got\n%s", diff)
	}
}
