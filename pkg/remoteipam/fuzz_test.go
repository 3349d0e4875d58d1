// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package remoteipam_test

import (
	"fmt"
	"net"
	"strings"
	"testing"

	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
	"github.com/capacitorset/liqo-broker/pkg/remoteipam"
)

// maxError is how long an error may be that says what somebody else wrote.
const maxError = 2048

// FuzzDirectConsumers holds that what is read are prefixes, that one bad text takes nothing from the others, and that errors are short.
func FuzzDirectConsumers(f *testing.F) {
	for _, text := range []string{
		"10.0.0.0/16", "10.1.2.3/16", "fd00::/8", "::ffff:10.0.0.0/104", "10.0.0.0/33", "10.0.0.0", "fe80::1%eth0/64", "", "/",
		"0.0.0.0/0", "\x00", strings.Repeat("9", 1<<16),
	} {
		f.Add("consumer", text)
	}
	f.Fuzz(func(t *testing.T, id, text string) {
		data := map[string]string{"good": "10.7.0.0/16"}
		for n := range 10 {
			data[fmt.Sprint(id, n)] = text
		}
		got, err := remoteipam.ParseDirectConsumers(data)
		if prefix := got["good"]; prefix.String() != "10.7.0.0/16" {
			t.Errorf("the good one is %s", prefix)
		}
		for id, prefix := range got {
			if !prefix.IsValid() || prefix != prefix.Masked() {
				t.Errorf("%s of %q is %v", id, text, prefix)
			}
		}
		if err != nil && len(err.Error()) > maxError+10*len(id) {
			t.Errorf("the error has %d bytes", len(err.Error()))
		}
	})
}

// FuzzAnnouncement holds that an announcement that is read can be used, and is the one that was written.
func FuzzAnnouncement(f *testing.F) {
	f.Add("broker", "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n", "ab")
	f.Add("", "", "")
	f.Add(strings.Repeat("x", 254), strings.Repeat("-----BEGIN ", 1<<10), "\x00")
	f.Fuzz(func(t *testing.T, broker, ca, client string) {
		written := remoteipam.Announcement{Broker: cluster.ID(broker), CA: []byte(ca), Client: client}
		got, err := remoteipam.ParseAnnouncement(written.Data())
		if err != nil {
			if len(err.Error()) > maxError {
				t.Errorf("the error has %d bytes", len(err.Error()))
			}
			return
		}
		if got.Broker != written.Broker || string(got.CA) != ca || len(got.Broker) > 253 {
			t.Errorf("wrote %+v, read %+v", written, got)
		}
		if _, err := got.Roots(); err != nil {
			t.Errorf("Roots(): %v", err)
		}
	})
}

// FuzzServers holds that a server that the flag takes can be dialled, and is taken again.
func FuzzServers(f *testing.F) {
	for _, value := range []string{
		"server=a", "server=a:1", "server=[fd00::1]:7", "server=fd00::1", "server=fe80::1%eth0", "server=a;server=b", "server==", "=", ";,;",
		"server=a:0x10", "server=:1",
	} {
		f.Add(value)
	}
	f.Fuzz(func(t *testing.T, value string) {
		var servers remoteipam.Servers
		if servers.Set(value) != nil {
			if len(servers) > 0 {
				t.Errorf("%q is refused, and %v taken", value, servers)
			}
			return
		}
		host, port, err := net.SplitHostPort(servers[0])
		if err != nil || host == "" || port == "" {
			t.Errorf("%q is taken as %q: %v", value, servers[0], err)
		}
		if err := servers.Set("server=" + servers[0]); err != nil || servers[1] != servers[0] {
			t.Errorf("%q is taken as %q, and that as %v: %v", value, servers[0], servers, err)
		}
	})
}
