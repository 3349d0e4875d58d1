// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

// Package objects writes values of the trade into Kubernetes objects, and reads them from there. The API has types of its own, so that who
// uses it links no trade: here, and nowhere else, they become those of the trade, and the other way round.
//
// It does not know which objects there are.
package objects

import (
	"github.com/capacitorset/liqo-broker/pkg/api/connectorv1alpha1"
	"github.com/capacitorset/liqo-broker/pkg/trade/core/offer"
)

// ReadPrice returns the price that an object has, whose period is written as ISO 8601 or Go write it. The error is an offer.FieldError.
func ReadPrice(p connectorv1alpha1.Price) (offer.Price, error) {
	of := offer.Period(p.Period)
	if known, err := offer.ParsePeriod(string(p.Period)); err == nil {
		of = known
	}
	return offer.ParsePrice(string(p.Amount), p.Currency, string(of))
}

// ReadMoney returns how much money an object has. The error is an offer.FieldError.
func ReadMoney(m connectorv1alpha1.Money) (offer.Amount, error) {
	amount, err := offer.ParseAmount(string(m.Amount))
	if err != nil {
		return offer.Amount{}, offer.In("amount", err)
	}
	return amount, nil
}

// maxProperty bounds the value of a property in bytes, as the API does.
const maxProperty = 253

// Documents returns the documents of an offer as objects have them, without what is too long for that; nil if there are none.
func Documents(of map[string]string) map[string]connectorv1alpha1.PropertyValue {
	var documents map[string]connectorv1alpha1.PropertyValue
	for key, value := range of {
		if len(value) > maxProperty {
			continue
		}
		if documents == nil {
			documents = map[string]connectorv1alpha1.PropertyValue{}
		}
		documents[key] = connectorv1alpha1.PropertyValue(value)
	}
	return documents
}

// Price returns a price as objects have it.
func Price(p offer.Price) connectorv1alpha1.Price {
	return connectorv1alpha1.Price{
		Amount: connectorv1alpha1.Amount(p.Amount.String()), Currency: p.Currency, Period: connectorv1alpha1.Period(p.Period),
	}
}
