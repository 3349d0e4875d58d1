// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

// Package partytest connects parties in tests. It does not know what they say.
package partytest

import (
	"crypto/tls"

	"github.com/capacitorset/liqo-broker/pkg/trade/party"
)

// Client returns the configuration of a client with one key, which speaks only to the server with the key of a fingerprint.
func Client(key party.Key, fingerprint string) *tls.Config {
	return party.TLS{Current: func() party.Key { return key }, Peer: party.Pin(fingerprint)}.Client()
}
