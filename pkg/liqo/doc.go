// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

// Package liqo is the only place where Liqo's API types, labels and wire formats
// enter the broker: the rest says what it wants to know of them in the broker's
// own words.
//
// It follows Liqo v0.9.4. It reads and forges values; it talks to no API server.
package liqo
