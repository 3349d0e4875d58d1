// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package wan

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"

	"github.com/capacitorset/liqo-broker/test/lab/node"
	"github.com/capacitorset/liqo-broker/test/lab/process"
)

// An End is a node on the WAN.
type End struct {
	Init    process.ID // Of the node.
	Address netip.Addr // Of the node on the WAN.
}

// SetPair cuts what goes between two nodes, or mends it. Each of the two loses what arrives from the other, before anything else
// looks at it, so that connections break off as they do when a cable is cut: without an answer.
func SetPair(ctx context.Context, a, b End, up bool) error {
	for _, way := range [][2]End{{a, b}, {b, a}} {
		if err := way[0].setLoss(ctx, way[1].Address, !up); err != nil {
			return fmt.Errorf("set the link between %s and %s: %w", a.Address, b.Address, err)
		}
	}
	return nil
}

// Loses reports whether the node loses what arrives from an address, because of SetPair.
func (e End) Loses(ctx context.Context, from netip.Addr) (bool, error) {
	err := e.rule(ctx, "--check", from)
	if code, failed := node.IsExit(err); failed && code == 1 {
		return false, nil // There is no such rule.
	}
	return err == nil, err
}

func (e End) setLoss(ctx context.Context, from netip.Addr, lose bool) error {
	loses, err := e.Loses(ctx, from)
	if err != nil || loses == lose {
		return err
	}
	return e.rule(ctx, map[bool]string{true: "--insert", false: "--delete"}[lose], from)
}

// rule does something with the rule that loses what arrives from an address.
func (e End) rule(ctx context.Context, do string, from netip.Addr) error {
	var out bytes.Buffer
	err := node.Exec(ctx, e.Init, node.Command{
		Args: slices.Concat([]string{"iptables", "--wait", "--table=raw", do, "PREROUTING"},
			[]string{"--in-interface", node.Interface, "--source", from.String(), "--jump", "DROP"}),
		Stdout: &out, Stderr: &out,
	})
	if err != nil {
		return errors.Join(err, errors.New(out.String()))
	}
	return nil
}
