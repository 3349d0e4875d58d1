// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

// Package contract decides what becomes of a contract between two clusters: at its seller, by Seller.Apply, and at its buyer, by
// Purchase.Next, Purchase.Observe and Purchase.Hear. The buyer drives, and the seller's record counts: a buyer is in the state that its
// seller has written and shown. A seller never calls a buyer. A buyer whose seller does not answer as it should is in a state of its own
// beside that, its Standing.
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
// there: early is ErrEarly, late ErrLate, unknown ErrUnknown, revision ErrRevision; where there are several outcomes, the terms, the time
// and the ledger decide. ErrTerms can be the answer to Reserve, Sign, Resize, Renew and Confirm in any state.
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
//
// The buyer's table says how it stands to its seller after it has heard it: to be Right, Silent, Wrong, Unknown or Older. The first outcome
// counts whose conditions hold. It lasts when a seller has been Unknown for 5 minutes, Older for a minute, and else for a drain, a minute
// at least. The end, and what is counted from it, two clocks have to say: a buyer that began while its seller is silent guesses the one of
// its seller, and goes by that in what can be undone. None of it happens by one answer, Closed not by one clock, and a right answer
// undoes all that is not Closed, also when its clusters have parted:
//
//	Heard
//	  Right                               same
//	  Silent Wrong Unknown Older          -> Closed if nothing is signed and nobody wants it
//	                                      -> Doubting
//	Doubting
//	  Right                               -> Heard
//	  Silent                              -> Closed if nothing is signed and nobody wants it
//	                                      same if nothing is signed
//	                                      -> Alone if it lasts and the buyer has ended it
//	                                      -> Alone if it lasts and its last drain has begun
//	                                      same
//	  Wrong                               -> Closed if nothing is signed and nobody wants it
//	                                      same if nothing is signed
//	                                      -> Alone if it lasts and the buyer has ended it
//	                                      -> Alone if it lasts and it has been over for a drain
//	                                      same
//	  Unknown                             -> Closed if nothing is signed and nobody wants it
//	                                      -> Closed if nothing is signed and it lasts
//	                                      -> Alone if it lasts
//	                                      same
//	  Older                               -> Closed if nothing is signed and nobody wants it
//	                                      -> Heard if it lasts
//	                                      same
//	Alone
//	  Right                               -> Heard
//	  Silent                              -> Closed if the clusters have parted and it has been over for a drain by all clocks
//	                                      same
//	  Wrong Unknown                       -> Closed if the clusters have parted and it has been over for a drain by all clocks
//	                                      -> Left if the clusters have parted and it lasts
//	                                      same
//	  Older                               -> Heard if it lasts
//	                                      -> Closed if the clusters have parted and it has been over for a drain by all clocks
//	                                      same
//	Left
//	  Right                               -> Heard
//	  Silent Wrong Unknown                -> Closed if it has been over for a drain by all clocks
//	                                      same
//	  Older                               -> Heard if it lasts
//	                                      -> Closed if it has been over for a drain by all clocks
//	                                      same
//	Closed
//	  Right Silent Wrong Unknown Older    same
package contract
