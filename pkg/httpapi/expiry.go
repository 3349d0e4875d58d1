// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"encoding/base64"
	"encoding/json"
	"strings"
	"time"
)

// expiryOf returns when a token expires by what it says of itself; zero if it does not say. It verifies nothing: who calls it has had the
// token reviewed, and a review does not say when a token expires.
func expiryOf(token string) time.Time {
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		return time.Time{}
	}
	text, err := base64.RawURLEncoding.DecodeString(parts[1])
	var claims struct {
		Expires float64 `json:"exp"` // Seconds, also with a fraction (RFC 7519).
	}
	const last = 1 << 37 // Seconds, in the year 6325: what is later cannot be written.
	if err != nil || json.Unmarshal(text, &claims) != nil || claims.Expires <= 0 || claims.Expires > last {
		return time.Time{}
	}
	return time.Unix(int64(claims.Expires), 0).UTC()
}
