// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

// Package netflag has values of flags that name parts of a network. It does not know what they
// are for.
package netflag

import (
	"net/netip"
	"strings"
)

// Prefixes are the values of a flag that may be repeated, each with no bits set beyond its length.
type Prefixes []netip.Prefix

// Set implements pflag.Value.
func (p *Prefixes) Set(text string) error {
	prefix, err := netip.ParsePrefix(text)
	if err != nil {
		return err
	}
	*p = append(*p, prefix.Masked())
	return nil
}

// String implements pflag.Value.
func (p *Prefixes) String() string {
	texts := make([]string, len(*p))
	for i, prefix := range *p {
		texts[i] = prefix.String()
	}
	return strings.Join(texts, ",")
}

// Type implements pflag.Value.
func (*Prefixes) Type() string { return "CIDR" }
