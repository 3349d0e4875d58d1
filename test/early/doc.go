// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

// Package early installs a connector on a real cluster before Liqo, as docs/trade/provider.md says: who sells may begin with what it sells
// by. The lab is one cluster on which nothing runs.
package early
