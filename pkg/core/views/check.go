// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package views

import (
	"errors"
	"fmt"
	"net/netip"
	"regexp"

	"github.com/capacitorset/liqo-broker/pkg/core/addressing"
)

const (
	// MaxViews is how many views of one broker are looked at: each is a network of its own in Liqo, and a route on each node.
	MaxViews = 256
	// minBits keeps a broker from taking up most of a private range, and maxBits from naming single pods.
	minBits, maxBits = 10, 30
	// maxKey is how long a key may be: it is the name of a label.
	maxKey = 63
)

// keys are those that the name of a label may be.
var keys = regexp.MustCompile(`^[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$`)

// errKey says what the key of a view is not.
var errKey = errors.New("is not the key of a view")

// CheckKey returns why a text cannot be the key of a view; nil if it can.
func CheckKey(key string) error {
	if len(key) > maxKey || !keys.MatchString(key) {
		return fmt.Errorf("%.*q %w", maxKey, key, errKey)
	}
	return nil
}

// CheckPrefix returns why a prefix cannot be one under which a broker sees the pods of a provider; nil if it can. The broker names it, and
// the consumer's nodes get routes to what becomes of it.
func CheckPrefix(prefix netip.Prefix) error {
	switch {
	case !prefix.IsValid() || !prefix.Addr().Is4():
		return fmt.Errorf("prefix %s is not of IPv4", prefix)
	case prefix.Bits() < minBits || prefix.Bits() > maxBits:
		return fmt.Errorf("prefix %s has %d bits: want %d to %d", prefix, prefix.Bits(), minBits, maxBits)
	}
	return addressing.CheckReport(prefix)
}
