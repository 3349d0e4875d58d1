// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package v1

import (
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/capacitorset/liqo-broker/pkg/core/addressing"
	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
	"github.com/capacitorset/liqo-broker/pkg/liqo"
	"github.com/capacitorset/liqo-broker/pkg/liqo/v1/api"
)

// configuration returns that of the peer p, with what it says of its networks, and how Liqo sees them.
func configuration(own api.CIDRs, seen *api.ClusterNetworks) *api.Configuration {
	return &api.Configuration{
		ObjectMeta: metav1.ObjectMeta{Namespace: "tenant-p", Name: "p", Labels: map[string]string{liqo.LabelRemoteClusterID: "p"}},
		Spec:       api.ConfigurationSpec{Remote: api.ClusterNetworks{CIDR: own}},
		Status:     api.ConfigurationStatus{Remote: seen},
	}
}

// tunnel returns the Connection to the peer p.
func tunnel(state api.ConnectionState, latency string, measured time.Time) *api.Connection {
	return &api.Connection{
		ObjectMeta: metav1.ObjectMeta{Namespace: "tenant-p", Name: "p", Labels: map[string]string{liqo.LabelRemoteClusterID: "p"}},
		Status:     api.ConnectionStatus{Value: state, Latency: api.ConnectionLatency{Value: latency, Timestamp: metav1.NewTime(measured)}},
	}
}

func prefixes(texts ...string) []netip.Prefix {
	var all []netip.Prefix
	for _, text := range texts {
		all = append(all, netip.MustParsePrefix(text))
	}
	return all
}

func view(own, seen string) addressing.View {
	return addressing.View{Own: netip.MustParsePrefix(own), Seen: netip.MustParsePrefix(seen)}
}

func TestLink(t *testing.T) {
	at := time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC)
	own := api.CIDRs{Pod: []string{"10.10.0.0/16", "10.20.0.0/16"}, External: []string{"10.70.0.0/16"}}
	seen := &api.ClusterNetworks{CIDR: api.CIDRs{Pod: []string{"10.61.0.0/16", "10.62.0.0/16"}, External: []string{"10.70.0.0/16"}}}
	external := view("10.70.0.0/16", "10.70.0.0/16")
	all := prefixes("10.61.0.0/16", "10.62.0.0/16", "10.70.0.0/16")
	pods := view("10.10.0.0/16", "10.61.0.0/16")
	cases := map[string]struct {
		reason        string
		configuration *api.Configuration
		tunnel        *api.Connection
		want          liqo.Link
		err           string
	}{
		"Up": {
			reason: "The tunnel is measured.", configuration: configuration(own, seen), tunnel: tunnel(api.Connected, "12ms", at),
			want: liqo.Link{
				Path: addressing.Peer{Pods: pods, External: external, Connected: true}, Seen: all, Connected: true,
				RoundTrip: 12 * time.Millisecond, Measured: at, Said: at,
			},
		},
		"Microseconds": {
			reason: "Liqo writes them with a Greek letter.", configuration: configuration(own, seen), tunnel: tunnel(api.Connected, "812μs", at),
			want: liqo.Link{
				Path: addressing.Peer{Pods: pods, External: external, Connected: true}, Seen: all, Connected: true,
				RoundTrip: 812 * time.Microsecond, Measured: at, Said: at,
			},
		},
		"NotMeasured": {
			reason: "Liqo writes N/A.", configuration: configuration(own, seen), tunnel: tunnel(api.Connected, "N/A", at),
			want: liqo.Link{Path: addressing.Peer{Pods: pods, External: external, Connected: true}, Seen: all, Connected: true, Said: at},
		},
		"Never": {
			reason: "It is not said when.", configuration: configuration(own, seen), tunnel: tunnel(api.Connected, "12ms", time.Time{}),
			want: liqo.Link{Path: addressing.Peer{Pods: pods, External: external, Connected: true}, Seen: all, Connected: true},
		},
		"Down": {
			reason: "What was measured is from before.", configuration: configuration(own, seen), tunnel: tunnel(api.Connecting, "12ms", at),
			want: liqo.Link{Path: addressing.Peer{Pods: pods, External: external}, Seen: all},
		},
		"NoGateway": {
			reason: "There is no Connection.", configuration: configuration(own, seen),
			want: liqo.Link{Path: addressing.Peer{Pods: pods, External: external}, Seen: all},
		},
		"New": {
			reason: "Liqo has decided about nothing.", configuration: configuration(own, nil), err: "pod CIDR of cluster p: not seen here yet",
		},
		"Half": {
			reason:        "An empty place is undecided, and not as it is.",
			configuration: configuration(own, &api.ClusterNetworks{CIDR: api.CIDRs{Pod: []string{"", "10.62.0.0/16"}, External: []string{""}}}),
			want:          liqo.Link{Seen: prefixes("10.62.0.0/16")}, err: "not seen here yet",
		},
		"NoExternal": {
			reason:        "Only that is undecided.",
			configuration: configuration(own, &api.ClusterNetworks{CIDR: api.CIDRs{Pod: []string{"10.10.0.0/16"}}}),
			want:          liqo.Link{Path: addressing.Peer{Pods: view("10.10.0.0/16", "10.10.0.0/16")}, Seen: prefixes("10.10.0.0/16")},
		},
		"Junk": {
			reason:        "It is no prefix.",
			configuration: configuration(api.CIDRs{Pod: []string{"x"}}, &api.ClusterNetworks{CIDR: api.CIDRs{Pod: []string{"y"}}}),
			err:           `parse prefix "x"`,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			tc.want.Tenant, tc.want.Peer = "tenant-p", "p"
			got := LinkOf(tc.configuration, tc.tunnel)
			if err := got.Negotiating; (err == nil) != (tc.err == "") || err != nil && !strings.Contains(err.Error(), tc.err) {
				t.Errorf("%s\nNegotiating is %v, want %q", tc.reason, err, tc.err)
			}
			opts := cmp.Options{cmpopts.IgnoreFields(liqo.Link{}, "Negotiating"), cmpopts.EquateComparable(netip.Prefix{})}
			if diff := cmp.Diff(tc.want, got, opts); diff != "" {
				t.Errorf("%s\nLinkOf(): -want +got\n%s", tc.reason, diff)
			}
		})
	}
	nameless := configuration(own, seen)
	nameless.Labels = nil
	if link := LinkOf(nameless, nil); link.Negotiating == nil {
		t.Error("a Configuration without the ID of a cluster has a path")
	}
}

func TestLinksFindTheirTunnel(t *testing.T) {
	other := configuration(api.CIDRs{}, nil)
	other.Namespace, other.Labels = "tenant-q", map[string]string{liqo.LabelRemoteClusterID: "q"}
	up := *tunnel(api.Connected, "", time.Time{})
	elsewhere := tunnel(api.Connected, "", time.Time{})
	elsewhere.Namespace = "tenant-q" // It says that it leads to p, in the namespace of q.
	for name, tc := range map[string]struct {
		tunnels []api.Connection
		want    map[cluster.ID]bool
	}{
		"One":     {[]api.Connection{up}, map[cluster.ID]bool{"p": true, "q": false}},
		"Other":   {[]api.Connection{*elsewhere}, map[cluster.ID]bool{"p": false, "q": false}},
		"Several": {[]api.Connection{up, *tunnel(api.Connecting, "", time.Time{})}, map[cluster.ID]bool{"p": true, "q": false}},
		"Later":   {[]api.Connection{*tunnel(api.ConnectionError, "", time.Time{}), up}, map[cluster.ID]bool{"p": true, "q": false}},
	} {
		got := map[cluster.ID]bool{}
		for _, link := range LinksOf([]api.Configuration{*configuration(api.CIDRs{}, nil), *other}, tc.tunnels) {
			got[link.Peer] = link.Connected
		}
		if diff := cmp.Diff(tc.want, got); diff != "" {
			t.Errorf("%s: LinksOf(): -want +got\n%s", name, diff)
		}
	}
}

// TestLastSaid has two tunnels to one peer: the one counts of which it was said last that it is up.
func TestLastSaid(t *testing.T) {
	at := time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC)
	early, late := *tunnel(api.Connected, "", at), *tunnel(api.Connected, "", at.Add(time.Minute))
	down := *tunnel(api.ConnectionError, "", at.Add(time.Hour))
	for name, tunnels := range map[string][]api.Connection{
		"InOrder": {early, late, down}, "Reversed": {down, late, early}, "Between": {early, down, late},
	} {
		links := LinksOf([]api.Configuration{*configuration(api.CIDRs{}, nil)}, tunnels)
		if got := links[0]; !got.Connected || !got.Said.Equal(late.Status.Latency.Timestamp.Time) {
			t.Errorf("%s: connected: %v, as was said at %s", name, got.Connected, got.Said)
		}
	}
}
