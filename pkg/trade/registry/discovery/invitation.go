// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package discovery

import (
	"errors"
	"fmt"
	"strings"
)

// Scheme is how an invitation begins.
const Scheme = "liqo-registry:"

// maxInvitation bounds an invitation, in bytes.
const maxInvitation = 1024

// Invitation is what the operator of a registry tells a party, in one text that no shell and no messenger changes.
type Invitation struct {
	URL string
	// Fingerprint is that of the registry's key; empty if it shows an ordinary certificate.
	Fingerprint string
	// Token is an enrolment token, which is a secret; empty if there is none.
	Token string
}

// String returns liqo-registry:URL[,fp=FINGERPRINT][,token=TOKEN], the token included: it is for who is invited.
func (i Invitation) String() string {
	text := Scheme + i.URL
	if i.Fingerprint != "" {
		text += ",fp=" + i.Fingerprint
	}
	if i.Token != "" {
		text += ",token=" + i.Token
	}
	return text
}

// ParseInvitation reads what String returns. The error has nothing of a token.
func ParseInvitation(text string) (Invitation, error) {
	rest, is := strings.CutPrefix(text, Scheme)
	switch {
	case !is:
		return Invitation{}, fmt.Errorf("it does not begin with %s", Scheme)
	case len(text) > maxInvitation:
		return Invitation{}, fmt.Errorf("it has more than %d bytes", maxInvitation)
	}
	parts := strings.Split(rest, ",")
	i := Invitation{URL: parts[0]}
	if err := CheckURL(i.URL); err != nil {
		return Invitation{}, fmt.Errorf("its URL: %w", err)
	}
	for _, part := range parts[1:] {
		key, value, _ := strings.Cut(part, "=")
		var err error
		switch {
		case key == "fp" && i.Fingerprint == "":
			i.Fingerprint, err = value, CheckFingerprint(value)
		case key == "token" && i.Token == "":
			i.Token, err = value, CheckToken(value)
		default:
			err = errors.New("only fp and token follow the URL, each once")
		}
		if err != nil {
			return Invitation{}, err
		}
	}
	return i, nil
}
