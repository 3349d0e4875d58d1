// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

// Package together looks at random worlds in which the broker's controllers run together: over one API server, each with a cache
// of its own that is behind, in processes that die between two writes, and that hand over to each other in the middle of one.
//
// What Liqo, the scheduler, providers, consumers and people do is a few lines each. How events lead to reconciles it does not know:
// the controllers are called in any order.
package together
