// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package party

import (
	"net"
	"time"
)

const (
	// dialTimeout is how long another party's machine may take to accept a connection.
	dialTimeout = 5 * time.Second
	// probeAfter and probes are when a connection on which nothing happens is asked for a sign of life, and how often before it is given up.
	probeAfter = 5 * time.Second
	probes     = 2
)

// Dialer returns what clients of other parties dial with. A machine that vanished without a word is noticed within 15 s, also by who waits
// for an answer that may take long.
func Dialer() *net.Dialer {
	return &net.Dialer{
		Timeout:         dialTimeout,
		KeepAliveConfig: net.KeepAliveConfig{Enable: true, Idle: probeAfter, Interval: probeAfter, Count: probes},
	}
}
