// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package contract_test

import (
	"fmt"
	"log"
	"time"

	"github.com/capacitorset/liqo-broker/pkg/trade/core/contract"
	"github.com/capacitorset/liqo-broker/pkg/trade/core/ledger"
)

// The life of a contract. What a caller does beside printing is left out: it writes what it is given, makes signatures, and carries
// requests and views between the two sides.
func Example() {
	stock := int64(1)
	limits := ledger.Limits{Stock: &stock, Capacity: resourcesOf(8, 32)}
	seller := contract.Seller{ReserveFor: 10 * time.Minute, DecideFor: time.Hour}
	now, books := begin, ledger.Ledger{}
	var record *contract.Record
	purchase, err := contract.NewPurchase(termsOf("buyer", 4, 16), time.Time{})
	if err != nil {
		log.Fatal(err)
	}
	tell := func(who string, request contract.Request) {
		request.Key, request.Verdict, request.Countersignature = purchase.Terms.Key(), contract.Accept, "the seller's signature"
		result, err := seller.Apply(record, request, now, books, limits)
		if err != nil {
			log.Fatal(err)
		}
		record, books = &result.Record, result.After
		fmt.Printf("%s: %s -> %s, %d sold\n", who, request.Event, record.State, books.Sold("o", "small", now))
	}
	for range 20 {
		if record != nil {
			if purchase, err = purchase.Observe(record.View, now); err != nil {
				log.Fatal(err)
			}
		}
		action := purchase.Next(now)
		purchase = purchase.Begin(action)
		switch {
		case action.Deed == contract.Send:
			tell("buyer", action.Request)
		case action.Deed != contract.Watch:
			fmt.Println("buyer:", action.Deed)
		case record.Duty() == contract.GrantDuty:
			tell("seller", contract.Request{Event: contract.Grant})
		default:
			now = record.Ends.Add(-record.Terms.Drain)
			tell("time", contract.Request{Event: contract.Tick})
		}
		purchase = purchase.Finish(action, "the buyer's signature")
		if action.Deed == contract.Over {
			break
		}
	}
	tell("seller", contract.Request{Event: contract.Withdrawn})
	// Output:
	// buyer: Reserve -> Reserved, 1 sold
	// buyer: SignTerms
	// buyer: Sign -> Signed, 1 sold
	// seller: Grant -> Provisioning, 1 sold
	// buyer: Peer
	// buyer: Peered -> Active, 1 sold
	// time: Tick -> Terminating, 1 sold
	// buyer: Drain
	// buyer: Unpeer
	// buyer: Drained -> Ended, 1 sold
	// buyer: Over
	// seller: Withdrawn -> Ended, 0 sold
}
