// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package offer

import (
	"cmp"
	"fmt"
	"math/big"
	"math/bits"
	"strconv"
	"strings"
	"time"

	"github.com/capacitorset/liqo-broker/pkg/core/period"
)

// Bounds of money.
const (
	// nano is how many parts of a currency's unit an Amount counts.
	nano = 1_000_000_000
	// nanoPlaces are the decimal places of that.
	nanoPlaces = 9
	// maxAmount is the largest amount: nine digits before the point and nine after it.
	maxAmount = nano*nano - 1
)

// Amount is money in billionths of a unit of a currency, from zero to 999999999.999999999. As text
// it is a decimal number without sign and exponent, such as 0.0125. Amounts can be
// compared with ==, and prices with Compare.
type Amount struct{ nano int64 }

// ParseAmount reads an amount of money. The error names the text and what is wrong with it.
func ParseAmount(text string) (Amount, error) {
	if len(text) > maxText {
		return Amount{}, fmt.Errorf("%.*q... is longer than %d characters", maxText, text, maxText)
	}
	n, err := parseDecimal(text, nano, maxAmount)
	if err != nil {
		return Amount{}, fmt.Errorf("%q %w", text, err)
	}
	return Amount{nano: n}, nil
}

// MarshalText implements encoding.TextMarshaler.
func (a Amount) MarshalText() ([]byte, error) { return []byte(a.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler, as ParseAmount does.
func (a *Amount) UnmarshalText(text []byte) (err error) {
	*a, err = ParseAmount(string(text))
	return err
}

// String returns the amount without zeros at its end.
func (a Amount) String() string {
	whole, part := strconv.FormatInt(a.nano/nano, 10), a.nano%nano
	if part == 0 {
		return whole
	}
	return whole + "." + strings.TrimRight(fmt.Sprintf("%0*d", nanoPlaces, part), "0")
}

// Equal reports whether both are the same money.
func (a Amount) Equal(other Amount) bool { return a == other }

// Rat returns the amount as an exact number of the currency's unit.
func (a Amount) Rat() *big.Rat { return big.NewRat(a.nano, nano) }

// Period is how long a price is for, as a duration of ISO 8601.
type Period string

// Periods of prices. A month is 730 hours and a year 8760, wherever they begin: prices can
// be compared, and do not depend on a calendar.
const (
	Minute Period = "PT1M"
	Hour   Period = "PT1H"
	Day    Period = "P1D"
	Week   Period = "P1W"
	Month  Period = "P1M"
	Year   Period = "P1Y"
)

// minutes returns how long a period is; zero if it is none.
func (p Period) minutes() int64 {
	const hour = 60
	switch p {
	case Minute:
		return 1
	case Hour:
		return hour
	case Day:
		return 24 * hour
	case Week:
		return 7 * 24 * hour
	case Month:
		return 730 * hour
	case Year:
		return 8760 * hour
	default:
		return 0
	}
}

// Periods returns all periods that a price can have, the shortest first.
func Periods() []Period { return []Period{Minute, Hour, Day, Week, Month, Year} }

// ParsePeriod reads a period, as package period does: PT1H and 1h are the same, and so are P1D, PT24H and 24h. The error names the text.
func ParsePeriod(text string) (Period, error) {
	length, err := period.Parse(text)
	if err != nil {
		return "", err
	}
	for _, p := range Periods() {
		if p.Duration() == length {
			return p, nil
		}
	}
	return "", fmt.Errorf("%.40q is not a minute, an hour, a day, a week, 730 hours or 8760 hours", text)
}

// Short returns what people call the period: min, h, d, w, mo or y. One that a price cannot have is itself.
func (p Period) Short() string {
	switch p {
	case Minute:
		return "min"
	case Hour:
		return "h"
	case Day:
		return "d"
	case Week:
		return "w"
	case Month:
		return "mo"
	case Year:
		return "y"
	}
	return string(p)
}

// Duration returns how long the period is; zero if it is none that a price can have.
func (p Period) Duration() time.Duration { return time.Duration(p.minutes()) * time.Minute }

// Price is money for a period.
type Price struct {
	Amount Amount `json:"amount"`
	// Currency is a code of ISO 4217, such as EUR.
	Currency string `json:"currency"`
	Period   Period `json:"period"`
}

// ParsePrice reads a price. The error is a FieldError.
func ParsePrice(amount, currency, period string) (Price, error) {
	money, err := ParseAmount(amount)
	if err != nil {
		return Price{}, In("amount", err)
	}
	p := Price{Amount: money, Currency: currency, Period: Period(period)}
	return p, p.Validate()
}

// PerHour returns the exact price of an hour; zero if the period is none.
func (p Price) PerHour() *big.Rat {
	minutes := p.Period.minutes()
	if minutes == 0 {
		return new(big.Rat)
	}
	hourly := big.NewRat(60, minutes)
	return hourly.Mul(hourly, p.Amount.Rat())
}

// perHour returns the number that is closest to the price of an hour; zero if the period is none.
func (p Price) perHour() float64 {
	const exact = 1 << 53 // Up to here, each whole number is a float, and the quotient of two is the closest there is.
	if minutes := p.Period.minutes(); minutes > 0 && p.Amount.nano <= exact/60 {
		return float64(p.Amount.nano*60) / float64(minutes*nano)
	}
	number, _ := p.PerHour().Float64()
	return number
}

// Compare compares what an hour costs, and returns -1, 0 or 1 as cmp.Compare does. Only prices
// in one currency can be compared: Compare does not look at it.
func (p Price) Compare(other Price) int {
	high, low := bits.Mul64(uint64(p.Amount.nano), uint64(other.Period.minutes()))           //nolint:gosec // Neither is negative.
	otherHigh, otherLow := bits.Mul64(uint64(other.Amount.nano), uint64(p.Period.minutes())) //nolint:gosec // Neither is negative.
	return cmp.Or(cmp.Compare(high, otherHigh), cmp.Compare(low, otherLow))
}

// String returns the price for people, such as "0.5 EUR/d".
func (p Price) String() string {
	return p.Amount.String() + " " + p.Currency + "/" + p.Period.Short()
}
