// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package bill

import (
	"math/big"
	"strings"
)

// places are the decimal places of money, as of an offer.Amount, and scale how many of the smallest part are one unit.
const places, scale = 9, 1_000_000_000

// Money is an amount of a currency in billionths, of any size. As text, also in JSON, it is a decimal number without exponent, such as
// 0.0125. The zero Money is none. Nobody changes it: it can be used concurrently.
type Money struct{ nano *big.Int }

// round returns the money that is closest to an exact number of the currency's unit, and of two as close the even one.
func round(exact *big.Rat) Money {
	scaled := new(big.Rat).Mul(exact, big.NewRat(scale, 1))
	whole, rest := new(big.Int).QuoRem(scaled.Num(), scaled.Denom(), new(big.Int))
	twice := rest.Lsh(rest, 1)
	if order := twice.CmpAbs(scaled.Denom()); order > 0 || order == 0 && whole.Bit(0) == 1 {
		whole.Add(whole, big.NewInt(int64(scaled.Sign())))
	}
	return Money{whole}
}

// number returns the billionths.
func (m Money) number() *big.Int {
	if m.nano == nil {
		return new(big.Int)
	}
	return m.nano
}

func (m Money) plus(other Money) Money  { return Money{new(big.Int).Add(m.number(), other.number())} }
func (m Money) minus(other Money) Money { return Money{new(big.Int).Sub(m.number(), other.number())} }

// Compare returns -1, 0 or 1 as cmp.Compare does.
func (m Money) Compare(other Money) int { return m.number().Cmp(other.number()) }

// Sign returns -1, 0 or 1 for less than nothing, nothing and more.
func (m Money) Sign() int { return m.number().Sign() }

// Float returns the number of the currency's unit that is closest.
func (m Money) Float() float64 {
	number, _ := new(big.Rat).SetFrac(m.number(), big.NewInt(scale)).Float64()
	return number
}

// String returns the money without zeros at its end.
func (m Money) String() string {
	text := new(big.Rat).SetFrac(m.number(), big.NewInt(scale)).FloatString(places)
	return strings.TrimSuffix(strings.TrimRight(text, "0"), ".")
}

// MarshalJSON implements json.Marshaler: money is a number.
func (m Money) MarshalJSON() ([]byte, error) { return []byte(m.String()), nil }
