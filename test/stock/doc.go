// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

// Package stock shows what Liqo 1.2 does and leaves open without a broker, on real clusters: a consumer, a broker and a provider, in a
// chain. Each test is a reason for a rule of ours: when it turns red with a newer Liqo, that rule may go. TestCatalog
// and TestBroker do what of ours there is for this Liqo; the others install nothing of ours.
package stock
