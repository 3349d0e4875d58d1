// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package period_test

import (
	"strings"
	"testing"
	"time"

	"github.com/capacitorset/liqo-broker/pkg/core/period"
)

func TestParse(t *testing.T) {
	for text, want := range map[string]time.Duration{
		"1h": time.Hour, "24h0m0s": period.Day, "90m": 90 * time.Minute, "PT1H": time.Hour, "PT90M": 90 * time.Minute, "PT30S": 30 * time.Second,
		"P1D": period.Day, "P30D": 30 * period.Day, "P1W": period.Week, "P1M": period.Month, "PT1M": time.Minute, "P1Y": period.Year,
		"P99Y": 99 * period.Year, "P999M": 999 * period.Month, "P9999W": 9999 * period.Week,
	} {
		if got, err := period.Parse(text); err != nil || got != want {
			t.Errorf("Parse(%q) = %s, %v, want %s", text, got, err, want)
		}
	}
	for _, text := range []string{
		"", "0s", "-1h", "P", "PT", "P0D", "P1", "P1H", "PT1D", "P1DT1H", "P100Y", "p1d", "1d", "h", "P1D ", " 1h", "P01D", "1",
		strings.Repeat("1", 1<<20),
	} {
		if got, err := period.Parse(text); err == nil || len(err.Error()) > 256 {
			t.Errorf("Parse(%.40q) = %s, %v, want an error that is short", text, got, err)
		}
	}
}
