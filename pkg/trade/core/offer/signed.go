// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package offer

import (
	"encoding/json"
	"fmt"
)

// Signed is an offer as its seller has signed it. Only Sign and ReadSigned make one: who has it need not look at the signature. Whether the
// offer is still valid depends on the time.
type Signed struct {
	Offer

	// JWS is the signed document.
	JWS string
	// Keys is how many keys the seller had when it was signed; 0 if nobody has counted them. What is signed with a later key counts more,
	// whatever its revision is.
	Keys int
}

// ReadSigned reads a signed offer. Verify reads a signed document of a type into a value, and returns how many keys its seller had then.
// Errors are those of verify, and ErrInvalid.
func ReadSigned(jws string, verify func(jws, typ string, into any) (keys int, err error)) (Signed, error) {
	var document json.RawMessage
	keys, err := verify(jws, Type, &document)
	if err != nil {
		return Signed{}, err
	}
	o, err := Parse(document)
	if err != nil {
		return Signed{}, err
	}
	return Signed{Offer: o, JWS: jws, Keys: keys}, nil
}

// Sign signs an offer as its seller, whose keys nobody counts here. Errors are those of sign, and ErrInvalid.
func Sign(o Offer, sign func(typ string, payload any) (jws string, err error)) (Signed, error) {
	text, err := Encode(o)
	if err != nil {
		return Signed{}, err
	}
	jws, err := sign(Type, json.RawMessage(text))
	if err != nil {
		return Signed{}, fmt.Errorf("sign offer %s: %w", o.ID, err)
	}
	return Signed{Offer: o, JWS: jws}, nil
}
