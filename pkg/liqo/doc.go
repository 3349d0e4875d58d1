// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

// Package liqo is what the broker says and asks of Liqo whatever its version: peers, offers and links as values, labels and annotations,
// what is done to nodes, namespaces and pods, and the command line of its controller manager.
//
// It imports nothing of Liqo, and does not know the kinds of any of its versions: package v09 does, and reads and forges them.
package liqo
