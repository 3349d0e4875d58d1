// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package offer

import (
	"errors"
	"fmt"
	"maps"
	"math/bits"
	"slices"
)

// Errors of Grant and Cost, for errors.Is.
var (
	// ErrTooMuch: the plan has less than that, or nothing of a resource.
	ErrTooMuch = errors.New("the plan does not have as much")
	// ErrNotGranted: the plan does not come in this amount.
	ErrNotGranted = errors.New("the plan does not come in this amount")
)

// Grant returns the least that a plan of a valid offer gives to who requests some resources: all of fixed
// resources, and of a range the smallest steps that cover the request. What is not requested is the
// minimum. The result can be the plan's own map. The error is ErrTooMuch and names a resource.
func (p Plan) Grant(request Resources) (Resources, error) {
	if granted, ok := p.grant(request); ok {
		return granted, nil
	}
	most := p.most()
	for _, name := range slices.Sorted(maps.Keys(request)) {
		if request[name].milli > most[name].milli {
			return nil, fmt.Errorf("%w: %.64s: %s of at most %s", ErrTooMuch, name, request[name], most[name])
		}
	}
	return nil, ErrTooMuch
}

// most returns the most that the plan gives.
func (p *Plan) most() Resources {
	if p.Range != nil {
		return p.Range.Max
	}
	return p.Resources
}

func (p *Plan) grant(request Resources) (Resources, bool) {
	switch most := p.most(); {
	case !most.Covers(request):
		return nil, false
	case p.Range == nil:
		return p.Resources, true
	}
	granted := make(Resources, len(p.Range.Max))
	for name, most := range p.Range.Max {
		n := p.Range.Min[name].milli
		if missing := request[name].milli - n; missing > 0 {
			step := p.Range.Step[name].milli
			if step <= 0 {
				return nil, false
			}
			n += (missing + step - 1) / step * step
		}
		if n > most.milli {
			return nil, false
		}
		if n > 0 {
			granted[name] = newQuantity(n, most.binary)
		}
	}
	return granted, true
}

// Cost returns what resources cost that a plan of a valid offer has granted: exactly, and for the
// period of its price. The error is ErrNotGranted if Grant never returns them.
func (p Plan) Cost(granted Resources) (Price, error) {
	again, ok := p.grant(granted)
	if !ok || !again.Equal(granted) {
		return Price{}, fmt.Errorf("%w: %.200s", ErrNotGranted, granted)
	}
	price, err := p.cost(granted)
	if err != nil {
		return Price{}, fmt.Errorf("the price of %.200s %w", granted, err)
	}
	return price, nil
}

// cost adds up the prices of an amount that the plan grants.
func (p *Plan) cost(granted Resources) (Price, error) {
	price := p.Price
	for name, unit := range p.UnitPrices {
		n, err := unit.of(granted[name])
		if err != nil {
			return Price{}, err
		}
		if price.Amount.nano += n; price.Amount.nano > maxAmount {
			return Price{}, errTooLarge
		}
	}
	return price, nil
}

// of returns the price of a quantity in billionths, if it is exact and not too large.
func (u UnitPrice) of(quantity Quantity) (int64, error) {
	amount, per := uint64(quantity.milli), uint64(u.Per.milli) //nolint:gosec // No quantity is negative.
	high, low := bits.Mul64(uint64(u.Amount.nano), amount)     //nolint:gosec // Nor is money.
	if high >= per {
		return 0, errTooLarge
	}
	price, rest := bits.Div64(high, low, per)
	switch {
	case price > maxAmount:
		return 0, errTooLarge
	case rest != 0:
		return 0, errTooFine
	default:
		return int64(price), nil
	}
}
