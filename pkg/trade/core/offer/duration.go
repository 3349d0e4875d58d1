// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package offer

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// maxDuration bounds durations: a hundred years of 365 days.
const maxDuration = 100 * 365 * day

const day = 24 * time.Hour

// Duration is how long something lasts, in whole seconds. As text it is a duration of ISO 8601 with
// weeks alone, or days, hours, minutes and seconds, such as P30D, PT1H30M or P2W: without years and months,
// which are not of one length. A day has 24 hours. Zero is PT0S.
type Duration time.Duration

// ParseDuration reads a duration. The error names the text and what is wrong with it.
func ParseDuration(text string) (Duration, error) {
	if len(text) > maxText {
		return 0, fmt.Errorf("%.*q... is longer than %d characters", maxText, text, maxText)
	}
	wrong := fmt.Errorf("%q is not a duration such as P30D or PT1H30M", text)
	rest, ok := strings.CutPrefix(text, "P")
	if !ok {
		return 0, wrong
	}
	date, clock, hasClock := strings.Cut(rest, "T")
	if date == "" && clock == "" || hasClock && clock == "" {
		return 0, wrong
	}
	total := time.Duration(0)
	read := func(part string, units string, lengths ...time.Duration) bool {
		for part != "" {
			end := strings.IndexAny(part, units)
			if end < 0 {
				return false
			}
			at := strings.IndexByte(units, part[end])
			n, err := parseDecimal(part[:end], 1, uint64(maxDuration/lengths[at])) //nolint:gosec // No length is negative.
			if err != nil {
				return false
			}
			total = min(total+time.Duration(n)*lengths[at], maxDuration+1) // A sum of four times the most would wrap around.
			part, units, lengths = part[end+1:], units[at+1:], lengths[at+1:]
		}
		return true
	}
	weeks := strings.HasSuffix(date, "W") && !hasClock
	switch {
	case weeks && !read(date, "W", 7*day), !weeks && !read(date, "D", day), !read(clock, "HMS", time.Hour, time.Minute, time.Second):
		return 0, wrong
	case total > maxDuration:
		return 0, fmt.Errorf("%q is longer than a hundred years", text)
	default:
		return Duration(total), nil
	}
}

// MarshalText implements encoding.TextMarshaler.
func (d Duration) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler, as ParseDuration does.
func (d *Duration) UnmarshalText(text []byte) (err error) {
	*d, err = ParseDuration(string(text))
	return err
}

// String returns the duration with days, hours, minutes and seconds.
func (d Duration) String() string {
	if d == 0 {
		return "PT0S"
	}
	text, rest := "P", time.Duration(d)
	write := func(length time.Duration, unit string) {
		if n := int64(rest / length); n != 0 {
			text += strconv.FormatInt(n, 10) + unit
		}
		rest %= length
	}
	write(day, "D")
	if rest != 0 {
		text += "T"
	}
	write(time.Hour, "H")
	write(time.Minute, "M")
	write(time.Second, "S")
	return text
}
