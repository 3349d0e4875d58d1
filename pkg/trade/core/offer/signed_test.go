// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package offer

import (
	"encoding/json"
	"errors"
	"testing"
)

// TestSigned signs an offer and reads it again, and holds that what is not verified is read by nobody.
func TestSigned(t *testing.T) {
	o := parse(t, "", "")
	signed, err := Sign(o, func(typ string, payload any) (string, error) {
		text, err := json.Marshal(payload)
		return typ + " " + string(text), err
	})
	if err != nil {
		t.Fatal(err)
	}
	verify := func(jws, typ string, into any) (int, error) { return 3, json.Unmarshal([]byte(jws[len(typ)+1:]), into) }
	read, err := ReadSigned(signed.JWS, verify)
	if err != nil || read.Keys != 3 || read.JWS != signed.JWS {
		t.Fatalf("read %d keys, %.20q: %v", read.Keys, read.JWS, err)
	}
	if read.Fingerprint() != o.Fingerprint() {
		t.Errorf("offer %s is read, and %s was signed", read.Fingerprint(), o.Fingerprint())
	}

	failed := errors.New("forged")
	forged := func(jws, typ string, into any) (int, error) {
		_, _ = verify(jws, typ, into)
		return 3, failed
	}
	if read, err := ReadSigned(signed.JWS, forged); !errors.Is(err, failed) || read.JWS != "" || read.ID != "" {
		t.Errorf("what is forged is read as offer %q: %v", read.ID, err)
	}
	if _, err := ReadSigned(Type+` {"id":"x"}`, verify); !errors.Is(err, ErrInvalid) {
		t.Errorf("what makes no sense is read: %v", err)
	}
	o.ID = ""
	if _, err := Sign(o, func(string, any) (string, error) { return "signed", nil }); !errors.Is(err, ErrInvalid) {
		t.Errorf("what makes no sense is signed: %v", err)
	}
}
