// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

// Package trade has the journeys of the trade: clusters that do not know each other find, buy, use and end capacity, over a registry on a
// machine of its own. All are set up by the commands of docs/trade. They run on a lab of their own (make test-trade), whose clusters are
// not peered. What measures has a command of its own (make bench-trade).
package trade
