// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package offer

import (
	"fmt"
	"strings"
	"testing"
)

// TestReservedProperties checks what sellers say of the documents by which they sell, when it is written and when it is read.
func TestReservedProperties(t *testing.T) {
	sum := strings.Repeat("0a", 32)
	for name, tc := range map[string]struct {
		properties map[string]string
		err        string
	}{
		"All": {properties: map[string]string{
			"terms-url": "https://rome.example/terms.pdf", "terms-sha256": sum, "sla-url": "https://rome.example:8443/sla?v=2", "sla-sha256": sum,
			"sla-availability": "99.95", "sla-credit": "10", "terms": "on paper",
		}},
		"AllOfIt": {properties: map[string]string{"sla-availability": "100", "sla-credit": "0.5"}},
		"NoTLS": {
			map[string]string{"terms-url": "http://rome.example/t", "terms-sha256": sum},
			`properties["terms-url"]: "http://rome.example/t" is not`,
		},
		"NoHost":   {map[string]string{"sla-url": "https:///sla", "sla-sha256": sum}, `properties["sla-url"]: "https:///sla" is not`},
		"Fragment": {map[string]string{"sla-url": "https://rome.example/#2", "sla-sha256": sum}, `properties["sla-url"]: `},
		"Nonsense": {map[string]string{"sla-url": "https://rome.example:x/", "sla-sha256": sum}, `properties["sla-url"]: `},
		"User": {
			map[string]string{"terms-url": "https://me@rome.example/", "terms-sha256": sum},
			`properties["terms-url"]: it has a credential`,
		},
		"Short": {map[string]string{"terms-url": "https://rome.example/", "terms-sha256": sum[1:]}, `properties["terms-sha256"]: `},
		"UpperCase": {
			map[string]string{"terms-url": "https://rome.example/", "terms-sha256": strings.ToUpper(sum)},
			`properties["terms-sha256"]: `,
		},
		"NoDigest":     {map[string]string{"terms-url": "https://rome.example/"}, `properties["terms-sha256"]: it is missing`},
		"NoURL":        {map[string]string{"sla-sha256": sum}, `properties["sla-url"]: it is missing`},
		"NoNumber":     {map[string]string{"sla-availability": "high"}, `properties["sla-availability"]: "high" is not`},
		"MoreThanAll":  {map[string]string{"sla-availability": "100.1"}, `properties["sla-availability"]: `},
		"Percent":      {map[string]string{"sla-credit": "10%"}, `properties["sla-credit"]: `},
		"LeadingZeros": {map[string]string{"sla-credit": "010"}, `properties["sla-credit"]: `},
	} {
		t.Run(name, func(t *testing.T) {
			o, err := Parse(changed(t, "", ""))
			if err != nil {
				t.Fatal(err)
			}
			o.Properties = tc.properties
			_, written := Encode(o)
			var texts []string
			for key, value := range tc.properties {
				texts = append(texts, fmt.Sprintf("%q: %q", key, value))
			}
			_, read := Parse(changed(t, `"properties": {`, `"properties": {`+strings.Join(texts, ",")+","))
			for did, err := range map[string]error{"written": written, "read": read} {
				switch {
				case tc.err == "" && err != nil:
					t.Errorf("%s: %v", did, err)
				case tc.err != "" && (err == nil || !strings.Contains(err.Error(), tc.err)):
					t.Errorf("%s: %v, want %s", did, err, tc.err)
				}
			}
		})
	}
}

// TestDocumentsOfProperties holds that only what is reserved is a document.
func TestDocumentsOfProperties(t *testing.T) {
	if got := Documents(map[string]string{"colour": "green"}); got != nil {
		t.Errorf("without any: %v", got)
	}
	got := Documents(map[string]string{"colour": "green", TermsURL: "https://rome.example/terms", SLAAvailability: "99.9"})
	if len(got) != 2 || got[TermsURL] != "https://rome.example/terms" || got[SLAAvailability] != "99.9" {
		t.Errorf("of two: %v", got)
	}
}

// TestOtherTerms checks that other terms of business are another offer: what both sides sign has its digest.
func TestOtherTerms(t *testing.T) {
	o, err := Parse(changed(t, "", ""))
	if err != nil {
		t.Fatal(err)
	}
	o.Properties = map[string]string{TermsURL: "https://rome.example/terms", TermsSHA256: strings.Repeat("0a", 32)}
	before := o.Fingerprint()
	o.Properties = map[string]string{TermsURL: "https://rome.example/terms", TermsSHA256: strings.Repeat("0b", 32)}
	if o.Fingerprint() == before {
		t.Error("a document with another digest is not another offer")
	}
}
