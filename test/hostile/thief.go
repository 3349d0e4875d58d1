// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package hostile

import (
	"fmt"
	"net/http"
	"strings"

	"github.com/capacitorset/liqo-broker/pkg/trade/negotiation/negotiationv1"
	"github.com/capacitorset/liqo-broker/pkg/trade/registry/registryv1"
)

// Thief is somebody with a key of a party that buys, and with nothing else of it.
type Thief struct {
	// Party is the party.
	Party string
	// Contract is one that it has, New one that the thief begins, and Ends the one of both that the thief tries to end.
	Contract, New, Ends string
	// Announcement, Offer and Keys are what is signed with the key. Successor is an announcement with a key of the thief's own that follows
	// it, and SuccessorKeys the keys of that one.
	Announcement, Successor registryv1.Enrolment
	Offer                   registryv1.Publication
	Keys, SuccessorKeys     negotiationv1.Keys
	// Quote asks for the terms of the new contract, which are Terms; Larger are terms of the contract of an offer that the seller does not
	// have.
	Quote         negotiationv1.QuoteRequest
	Terms, Larger negotiationv1.Terms
}

// Theft is a request by a key.
type Theft struct {
	// Name says what is tried, and Gain what would be won.
	Name, Gain string

	Method, Path string
	// Body is nil for none.
	Body any
	// Good is the status while the key is the party's: StatusOK for any success. StatusConflict and StatusUnprocessableEntity are about the
	// contract, and only who has the key is told: the key was accepted, and nothing is ruined. 0 means that it is not tried.
	Good int
	// Replaced is the status once the party has replaced the key, and Got is part of the answer then.
	Replaced int
	Got      string
}

// What is said about keys that are nobody's any more.
const (
	notCurrent = "is not the current one of a party" // By a registry.
	notIts     = "-key"                              // By a seller: replaced, or not known any more.
	notNext    = "body.keys"                         // By a registry, about a chain that leads elsewhere.
)

// AtRegistry are what the thief tries at a registry.
func (t Thief) AtRegistry() []Theft {
	party := registryv1.Base + "/parties/" + t.Party
	offer := party + "/offers/compute"
	return []Theft{
		{
			"read the offers", "what only parties see", http.MethodGet, registryv1.Base + registryv1.PathOffers, nil, http.StatusOK,
			http.StatusForbidden, notCurrent,
		},
		{"watch the offers", "what only parties see", http.MethodGet, registryv1.Base + registryv1.PathWatch, nil,
			http.StatusOK, http.StatusForbidden, notCurrent},
		{
			"say that the party is there", "offers that look alive", http.MethodPut, party + "/lease", nil, http.StatusOK,
			http.StatusForbidden, notCurrent,
		},
		{
			"publish an offer with the highest revision", "what the party offers", http.MethodPut, offer, t.Offer, http.StatusOK,
			http.StatusForbidden, notCurrent,
		},
		{"withdraw an offer", "a party that sells nothing", http.MethodDelete, offer, nil, http.StatusOK, http.StatusForbidden, notCurrent},
		{"announce the party with the highest revision", "where others look for it", http.MethodPut, party, t.Announcement,
			http.StatusOK, http.StatusConflict, notNext},
	}
}

// AtSeller are what the thief tries at a seller of the party.
func (t Thief) AtSeller() []Theft {
	contracts := negotiationv1.Base + "/contracts/"
	one, terms := contracts+t.Contract, negotiationv1.Proposal{Terms: t.Larger}
	return []Theft{
		{"look at the contract", "what was bought", http.MethodGet, one, nil, http.StatusOK, http.StatusForbidden, notIts},
		{"get the credentials", "a peering", http.MethodGet, one + "/credentials", nil, http.StatusOK, http.StatusForbidden, notIts},
		{"make the contract larger", "what the party pays for", http.MethodPut, one + "/resize", terms,
			http.StatusUnprocessableEntity, http.StatusForbidden, notIts},
		{"renew the contract", "what the party pays for", http.MethodPut, one + "/renewal", terms,
			http.StatusUnprocessableEntity, http.StatusForbidden, notIts},
		{
			"say that the buyer has left", "a contract that is over", http.MethodPut, one + "/drained", nil, http.StatusConflict,
			http.StatusForbidden, notIts,
		},
		{
			"get a quote", "prices for this party", http.MethodPost, negotiationv1.Base + "/quotes", t.Quote, http.StatusOK,
			http.StatusForbidden, notIts,
		},
		{
			"reserve", "what the party pays for", http.MethodPut, contracts + t.New, negotiationv1.Proposal{Terms: t.Terms}, http.StatusOK,
			http.StatusForbidden, notIts,
		},
		{"end a contract", "a buyer without resources", http.MethodPut, contracts + t.Ends + "/termination",
			negotiationv1.Termination{Reason: "stolen"}, http.StatusOK, http.StatusForbidden, notIts},
		{"tell the keys", "a seller that believes in the key again", http.MethodPut, negotiationv1.Base + "/keys", t.Keys,
			http.StatusOK, http.StatusForbidden, negotiationv1.ProblemReplaced},
	}
}

// BySuccessor are what the thief tries by a key of its own that follows the stolen one: at a registry, and at a seller. With a good key it
// would be the party's next one, and its owner's no more; so it is tried only after the owner has replaced it.
func (t Thief) BySuccessor() (atRegistry, atSeller []Theft) {
	return []Theft{
			{
				"announce another successor", "the party", http.MethodPut, registryv1.Base + "/parties/" + t.Party, t.Successor, 0,
				http.StatusConflict, notNext,
			},
		}, []Theft{
			{"tell the seller another successor", "the contracts", http.MethodPut, negotiationv1.Base + "/keys", t.SuccessorKeys,
				0, http.StatusForbidden, negotiationv1.ProblemStranger},
			{"look at the contract with another successor", "what was bought", http.MethodGet, negotiationv1.Base + "/contracts/" + t.Contract, nil,
				0, http.StatusForbidden, negotiationv1.ProblemStranger},
		}
}

// Thefts are all of them: what is tried at a registry, and at a seller.
func (t Thief) Thefts() (atRegistry, atSeller []Theft) {
	registry, seller := t.BySuccessor()
	return append(t.AtRegistry(), registry...), append(t.AtSeller(), seller...)
}

// ReportThefts is a table of requests and answers, in Markdown.
func ReportThefts(thefts []Theft) string {
	var table strings.Builder
	table.WriteString("| what was tried | to get | with the key | with one that was replaced |\n|---|---|---|---|\n")
	for _, theft := range thefts {
		good := "done"
		switch theft.Good {
		case 0:
			good = "not tried"
		case http.StatusConflict, http.StatusUnprocessableEntity:
			good = fmt.Sprintf("%d, for the contract", theft.Good)
		}
		fmt.Fprintf(&table, "| %s | %s | %s | %d |\n", theft.Name, theft.Gain, good, theft.Replaced)
	}
	return table.String()
}
