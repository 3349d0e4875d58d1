// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package offer

import (
	"errors"
	"fmt"
	"math/bits"
	"strings"
)

// maxDigits is how many digits a number can have: as many as always fit into an int64.
const maxDigits = 18

// Errors of numbers, which follow the text in question.
var (
	errNumber   = errors.New("is not a decimal number such as 8 or 0.5")
	errDigits   = fmt.Errorf("has more than %d digits", maxDigits)
	errTooLarge = errors.New("is too large")
	errTooFine  = errors.New("has too many decimal places")
)

// parseDecimal reads a decimal number without sign and exponent, and returns it times a scale.
// It refuses what would be more than the most, which is an int64, or have to be rounded.
func parseDecimal(text string, scale, most uint64) (int64, error) {
	whole, part, point := strings.Cut(text, ".")
	if whole == "" || point && part == "" || len(whole) > 1 && whole[0] == '0' {
		return 0, errNumber
	}
	n, divisor := uint64(0), uint64(1)
	if len(whole)+len(part) > maxDigits {
		if strings.Trim(whole+part, "0123456789") != "" {
			return 0, errNumber
		}
		return 0, errDigits
	}
	for _, digit := range []byte(whole + part) {
		if digit < '0' || digit > '9' {
			return 0, errNumber
		}
		n = n*10 + uint64(digit-'0')
	}
	for range part {
		divisor *= 10
	}
	high, low := bits.Mul64(n, scale)
	if high >= divisor {
		return 0, errTooLarge
	}
	quotient, rest := bits.Div64(high, low, divisor)
	switch {
	case quotient > most || quotient == most && rest != 0:
		return 0, errTooLarge
	case rest != 0:
		return 0, errTooFine
	default:
		return int64(quotient), nil //nolint:gosec // It is not more than the most.
	}
}
