// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package remoteipam_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/capacitorset/liqo-broker/pkg/remoteipam"
)

func TestServersSet(t *testing.T) {
	cases := map[string]struct {
		reason  string
		values  []string
		want    remoteipam.Servers
		wantErr string
	}{
		"AsInTheSeed": {reason: "the value that the README of the system shows",
			values: []string{"server=liqo-network-manager.liqo-broker-b9d3d5.svc.cluster.local"},
			want:   remoteipam.Servers{"liqo-network-manager.liqo-broker-b9d3d5.svc.cluster.local:6001"}},
		"Port": {reason: "a port may be given", values: []string{"server=ipam.example:7001"}, want: remoteipam.Servers{"ipam.example:7001"}},
		"IPv4": {reason: "an address is a host", values: []string{"server=10.1.2.3"}, want: remoteipam.Servers{"10.1.2.3:6001"}},
		"IPv6": {
			reason: "a bare IPv6 address has colons and no port", values: []string{"server=fd00::1"}, want: remoteipam.Servers{"[fd00::1]:6001"},
		},
		"IPv6Port": {reason: "brackets carry a port", values: []string{"server=[fd00::1]:7"}, want: remoteipam.Servers{"[fd00::1]:7"}},
		"Twice": {
			reason: "two brokers are two flags", values: []string{"server=a", "server=b"}, want: remoteipam.Servers{"a:6001", "b:6001"},
		},
		"Empty":     {reason: "an empty value names no server", values: []string{""}, wantErr: "no server"},
		"NoKey":     {reason: "the key is not optional", values: []string{"host.example"}, wantErr: "key=value"},
		"WrongKey":  {reason: "a typo must not pass", values: []string{"sever=a"}, wantErr: `"sever"`},
		"TwoInOne":  {reason: "which one would be meant?", values: []string{"server=a,server=b"}, wantErr: "twice"},
		"BadPort":   {reason: "not a port", values: []string{"server=a:70000"}, wantErr: "70000"},
		"ZeroPort":  {reason: "not a port that one can dial", values: []string{"server=a:0"}, wantErr: "port"},
		"BadHost":   {reason: "not a DNS name", values: []string{"server=a_b"}, wantErr: `"a_b"`},
		"EmptyHost": {reason: "nothing to dial", values: []string{"server="}, wantErr: "host"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var got remoteipam.Servers
			var err error
			for _, value := range tc.values {
				if err = got.Set(value); err != nil {
					break
				}
			}
			if tc.wantErr != "" {
				if err == nil || !strings.Contains(err.Error(), tc.wantErr) {
					t.Fatalf("%s: error = %v, want one with %q", tc.reason, err, tc.wantErr)
				}
				return
			}
			if err != nil {
				t.Fatalf("%s: %v", tc.reason, err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}
