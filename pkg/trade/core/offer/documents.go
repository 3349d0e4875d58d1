// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package offer

import (
	"errors"
	"fmt"
	"net/url"
	"regexp"
)

// The properties that are reserved: what a seller says of documents by which it sells, and of how available it is. Since they are part of
// the offer, its digest, which both sign, says which they were.
const (
	// TermsURL is where the terms of business are. There is none without TermsSHA256.
	TermsURL = "terms-url"
	// TermsSHA256 is what the terms are: the SHA-256 of the document.
	TermsSHA256 = "terms-sha256"
	// SLAURL is where that is what the seller promises of its service. There is none without SLASHA256.
	SLAURL = "sla-url"
	// SLASHA256 is what it promises: the SHA-256 of the document.
	SLASHA256 = "sla-sha256"
	// SLAAvailability is for how much of a month it is promised, in percent, such as 99.9.
	SLAAvailability = "sla-availability"
	// SLACredit is how much of the price of a month is given back otherwise, in percent.
	SLACredit = "sla-credit"
)

// Documents returns the reserved ones of an offer's properties; nil if there are none.
func Documents(properties map[string]string) map[string]string {
	var documents map[string]string
	for _, key := range []string{TermsURL, TermsSHA256, SLAURL, SLASHA256, SLAAvailability, SLACredit} {
		if value, is := properties[key]; is {
			if documents == nil {
				documents = map[string]string{}
			}
			documents[key] = value
		}
	}
	return documents
}

// Forms of reserved properties.
var (
	digest  = regexp.MustCompile(`^[0-9a-f]{64}$`)
	percent = regexp.MustCompile(`^(100|[1-9]?[0-9](\.[0-9]{1,6})?)$`)
)

// checkReserved refuses a reserved property that is not of its form.
func checkReserved(key, value string) error {
	switch key {
	case TermsURL, SLAURL:
		return checkURL(value)
	case TermsSHA256, SLASHA256:
		if !digest.MatchString(value) {
			return fmt.Errorf("%.80q is not a SHA-256 in 64 hexadecimal digits of lower case", value)
		}
	case SLAAvailability, SLACredit:
		if !percent.MatchString(value) {
			return fmt.Errorf("%.32q is not a number of percent, such as 99.9", value)
		}
	}
	return nil
}

// checkURL refuses what is not an address of a document that anybody can get.
func checkURL(text string) error {
	parsed, err := url.Parse(text)
	switch {
	case err != nil:
		return fmt.Errorf("%.80q is not a URL", text)
	case parsed.Scheme != "https" || parsed.Hostname() == "" || parsed.User != nil || parsed.Fragment != "" || parsed.Opaque != "":
		return fmt.Errorf("%.80q is not https://HOST/PATH", text)
	}
	return nil
}

// checkPairs refuses a document without its digest, which could change after it was signed, and a digest without a document.
func checkPairs(properties map[string]string) error {
	for _, pair := range [][2]string{{TermsURL, TermsSHA256}, {SLAURL, SLASHA256}} {
		for i, key := range pair {
			if _, is := properties[key]; !is {
				continue
			}
			if _, is := properties[pair[1-i]]; !is {
				return In(fmt.Sprintf("[%q]", pair[1-i]), errors.New("it is missing, while "+key+" is there"))
			}
		}
	}
	return nil
}
