// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

// Package period reads for how long something is paid, in the two forms in which people write it: as a duration of ISO 8601, and as one of
// Go. It works on values, and does not know what is paid.
package period

import (
	"fmt"
	"regexp"
	"strconv"
	"time"
)

// A month has 730 hours and a year 8760, wherever they begin, so that prices can be compared and depend on no calendar.
const (
	Day   = 24 * time.Hour
	Week  = 7 * Day
	Month = 730 * time.Hour
	Year  = 8760 * time.Hour
)

// iso is a duration of ISO 8601 of one unit, such as P1D or PT6H. No number of units is longer than a time.Duration can be. The schema of a
// Provider's price has the same form.
var iso = regexp.MustCompile(
	`^P(?:([1-9][0-9]?)(Y)|([1-9][0-9]{0,2})(M)|([1-9][0-9]{0,3})([WD])|T([1-9][0-9]{0,3})([HMS]))$`)

// units are how long the units are, in the order of the groups of iso.
var units = []map[string]time.Duration{
	{"Y": Year}, {"M": Month}, {"W": Week, "D": Day}, {"H": time.Hour, "M": time.Minute, "S": time.Second},
}

// Parse returns how long a period is, which is written as a duration of ISO 8601, such as PT1H, P1D or P1M, or of Go, such as 1h or 24h.
// The error names the text.
func Parse(text string) (time.Duration, error) {
	if found := iso.FindStringSubmatch(text); found != nil {
		for i, lengths := range units {
			if number := found[1+2*i]; number != "" {
				n, err := strconv.Atoi(number)
				return time.Duration(n) * lengths[found[2+2*i]], err
			}
		}
	}
	length, err := time.ParseDuration(text)
	if err != nil || length <= 0 {
		return 0, fmt.Errorf("%.40q is not a positive duration such as 1h, 24h, PT1H or P1D", text)
	}
	return length, nil
}
