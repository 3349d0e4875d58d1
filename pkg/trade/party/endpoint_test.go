// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package party

import (
	"errors"
	"strings"
	"testing"
)

// TestParseEndpoint reads where somebody answers, and refuses what is no such place or might be secret.
func TestParseEndpoint(t *testing.T) {
	for _, text := range []string{
		"https://seller.example", "https://203.0.113.7:30446", "https://[2001:db8::1]:8443/path", "HTTPS://Seller.example/",
	} {
		if u, err := ParseEndpoint(text); err != nil || u.Hostname() == "" {
			t.Errorf("%s: %v, %v", text, u, err)
		}
	}
	for name, text := range map[string]string{
		"nothing":        "",
		"no scheme":      "s3cret.example:443",
		"plain":          "http://s3cret.example",
		"no host":        "https:///s3cret",
		"a port only":    "https://:443/s3cret",
		"user":           "https://s3cret@seller.example",
		"password":       "https://user:s3cret@seller.example",
		"query":          "https://seller.example/?token=s3cret",
		"empty query":    "https://seller.example/s3cret?",
		"fragment":       "https://seller.example/#s3cret",
		"bad escape":     "https://seller.example/%zzs3cret",
		"control":        "https://seller.example/\ns3cret",
		"opaque":         "https:s3cret",
		"not a port":     "https://seller.example:s3cret",
		"a bracket only": "https://[s3cret",
	} {
		if u, err := ParseEndpoint(text); !errors.Is(err, ErrDocument) || strings.Contains(err.Error(), "s3cret") {
			t.Errorf("%s: %v, %v", name, u, err)
		}
	}
}
