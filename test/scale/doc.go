// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

// Package scale measures the trade at the size that it is for: the real programs of the registry and of the connector, each a
// process of its own, with 10,000 offers of 1,000 parties and 1,000 watchers. It reports what is missed of the goals that
// docs/trade/performance.md names. It looks into no program, and does not know why one is slow.
package scale
