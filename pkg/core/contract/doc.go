// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

// Package contract decides what becomes of a contract between two clusters: at its seller, by Seller.Apply, and at its buyer, by
// Purchase.Next and Purchase.Observe. The buyer drives, and the seller's record counts: a buyer is in the state that its seller has written
// and shown. A seller never calls a buyer.
//
// It decides from values, with the time as an argument. It makes no call, writes nothing, and does not know keys: signatures are texts that
// the caller has verified. It does not know what is for sale either: the caller brings the policy's verdict and the limits. No function
// changes its arguments, and all can be called concurrently.
//
// Three rules let both sides be killed at any instruction:
//
//   - A side writes what follows from a message before it answers, and what it is about to do before it does it.
//   - The ledger holds what a record needs before the record is written, and gives it back only after.
//   - Everything can be repeated. What comes twice, late or out of order finds that it is done, or that it is too late.
//
// Terms change only by terms with a higher revision that both sign; until both have, the old ones are in force. A revision that was
// proposed once never comes again.
//
// The table says for each state which events have which outcome. Before any other event the time is applied, as by Tick. Errors are short
// there: early is ErrEarly, late ErrLate, unknown ErrUnknown, revision ErrRevision; where there are several outcomes, the terms, the time and
// the ledger decide. ErrTerms can be the answer to Reserve, Sign, Resize, Renew and Confirm in any state.
//
// The table (same: it is so already):
package contract
