// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

// Package contract decides what becomes of a contract between two clusters: at its seller, by Seller.Apply, and at its buyer, by
// Purchase.Next, Purchase.Observe and Purchase.Hear. The buyer drives, and the seller's record counts: a buyer is in the state that its seller has written
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
//
//	None
//	  -> Reserved, -> Proposed, -> Rejected    Reserve
//	  unknown                                  Sign Peered Resize Renew Confirm Terminate Drained Approve Refuse Grant Fail Suspend Resume Notice Withdrawn
//	  same                                     Tick
//	Proposed
//	  same                                     Reserve
//	  early                                    Sign Peered Resize Renew Confirm Drained Grant Fail Suspend Resume Notice Withdrawn
//	  -> Ended                                 Terminate
//	  -> Reserved, -> Rejected                 Approve
//	  -> Rejected                              Refuse
//	  -> Proposed, -> Expired, same            Tick
//	Reserved
//	  same                                     Reserve Approve
//	  -> Signed                                Sign
//	  early                                    Peered Resize Renew Confirm Drained Grant Fail Suspend Resume Notice Withdrawn
//	  -> Ended                                 Terminate
//	  late                                     Refuse
//	  -> Reserved, -> Expired, same            Tick
//	Signed
//	  same                                     Reserve Sign Approve
//	  early                                    Peered Resize Renew Confirm Drained Suspend Resume Withdrawn
//	  -> Terminating                           Terminate
//	  late                                     Refuse
//	  -> Provisioning                          Grant
//	  -> Failed                                Fail
//	  -> Signed, -> Terminating, same          Notice
//	  -> Terminating, same                     Tick
//	Provisioning
//	  same                                     Reserve Sign Approve Grant
//	  -> Active                                Peered
//	  early                                    Resize Renew Confirm Drained Suspend Resume Withdrawn
//	  -> Terminating                           Terminate
//	  late                                     Refuse
//	  -> Failed                                Fail
//	  -> Provisioning, -> Terminating, same    Notice
//	  -> Terminating, same                     Tick
//	Active
//	  same                                     Reserve Sign Peered Approve Grant Resume
//	  -> Resizing, -> Active, same, revision   Resize Renew
//	  same, revision                           Confirm
//	  -> Terminating                           Terminate
//	  early                                    Drained Withdrawn
//	  late                                     Refuse Fail
//	  -> Suspended                             Suspend
//	  -> Active, -> Terminating, same          Notice
//	  -> Terminating, same                     Tick
//	Resizing
//	  same                                     Reserve Sign Peered Grant Resume
//	  -> Resizing, -> Active, same, revision   Resize Renew
//	  -> Active, same, early, revision         Confirm
//	  -> Terminating                           Terminate
//	  early                                    Drained Withdrawn
//	  -> Resizing, -> Active, same             Approve
//	  -> Active, late                          Refuse
//	  late                                     Fail
//	  -> Suspended                             Suspend
//	  -> Active, -> Terminating                Notice
//	  -> Resizing, -> Active, -> Terminating, same Tick
//	Suspended
//	  same                                     Reserve Sign Peered Approve Grant Suspend
//	  early                                    Resize Renew Drained Withdrawn
//	  same, revision                           Confirm
//	  -> Terminating                           Terminate
//	  late                                     Refuse Fail
//	  -> Active                                Resume
//	  -> Suspended, -> Terminating, same       Notice
//	  -> Terminating, same                     Tick
//	Terminating
//	  same                                     Reserve Sign Terminate Notice
//	  late                                     Peered Resize Renew Approve Refuse Grant Fail Suspend Resume
//	  same, revision                           Confirm
//	  -> Ended                                 Drained
//	  early                                    Withdrawn
//	  -> Terminating, -> Ended, same           Tick
//	Ended
//	  same                                     Reserve Terminate Drained Notice Tick
//	  same, late                               Sign
//	  late                                     Peered Resize Renew Approve Refuse Grant Fail Suspend Resume
//	  same, revision                           Confirm
//	  -> Ended, same                           Withdrawn
//	Rejected
//	  same                                     Reserve Terminate Drained Refuse Notice Withdrawn Tick
//	  late                                     Sign Peered Resize Renew Confirm Approve Grant Fail Suspend Resume
//	Expired
//	  same                                     Reserve Terminate Drained Notice Withdrawn Tick
//	  late                                     Sign Peered Resize Renew Confirm Approve Refuse Grant Fail Suspend Resume
//	Failed
//	  same                                     Reserve Sign Terminate Drained Fail Notice Tick
//	  late                                     Peered Resize Renew Confirm Approve Refuse Grant Suspend Resume
//	  -> Failed, same                          Withdrawn
package contract
