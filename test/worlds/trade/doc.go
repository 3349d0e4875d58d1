// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

// Package trade looks at random worlds in which clusters trade: some sell and some buy, with the real controllers, books and negotiations
// over TLS. Connectors die before and after each write and each deed, caches are behind, writes end in a way that nobody knows, messages
// are lost and come late and twice, clocks leap, nodes shrink late, old leaders go on with what they had begun, and people change their
// minds.
//
// Where things are:
//
//   - world_test.go: a world, and what happens in it, with the list of all events
//   - faults_test.go: how often what goes wrong
//   - process_test.go: a run of a connector: what it reads is old, and it may die at each call
//   - slow_test.go: calls in the middle of which others happen
//   - network_test.go: what becomes of messages
//   - registry_test.go: what parties know of each other, and keys that are replaced
//   - seller_test.go, buyer_test.go, liqo_test.go: who trades, and what stands for their Liqo
//   - people_test.go: what people want
//   - always_test.go, past_test.go: what holds after each step, and what may follow after what was there before
//   - stuck_test.go: contracts of which nothing becomes though nothing goes wrong
//   - rest_test.go, over_test.go: what holds when nothing is under way, and when all is over
//
// A new fault is a field of faults and a place that asks for it, or an event. A new promise is a line in one of the lists always, rest
// and over. How events lead to reconciles the worlds do not know: controllers are called in any order.
package trade
