// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package server

// What callers are told beside what package rest tells them, and what a field of a request lacks by itself.
const (
	// Who calls.
	messageNoParty       = "the client certificate is not one of a party: %s"
	messageNoCertificate = "a client certificate is required: the key of a certificate says which party calls"
	messageUnknownKey    = "the key %s of the client certificate is not the current one of a party that is enrolled here: announce the " +
		"party first"
	messageRevoked  = "the party %s is revoked"
	messagePending  = "the party %[1]s waits for the approval of an administrator of the registry: registry parties approve %[1]s"
	messageNotYours = "the party %s may not write what belongs to %s"

	// How much each may ask for.
	messageTooDear = "the expressions of filters cost too much: try again in a second, with parameters that need none, or with one " +
		"that costs less"
	messageTooManyLists   = "too many lists at once: there may be %d of each party, and %d in all"
	messageTooManyWatches = "too many watches: there may be %d of each party, and %d in all"
	messageBehind         = "the registry has not come to what the watcher knows already"

	// What there is.
	messageNoSuchParty = "there is no party %s"
	messageNoSuchOffer = "there is no offer %s of the party %s"
	messageClaimed     = "cluster %s is named by party %s: an administrator of the registry can revoke that party if it is not its"

	// What a registry never does.
	messageNoFlavor = "is not a flavor that is listed here. A registry never trades, and knows no transactions: " +
		"owner.additionalInformation.endpoint of a flavor says where its seller negotiates"
	messageNoEndpoint = "a registry never trades, and the seller %s has not said where it negotiates"
	messageElsewhere  = "a registry never trades: the seller %s negotiates at %s"

	messageFailed = "the request cannot be answered: the log of the registry says why"
)
