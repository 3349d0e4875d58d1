// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package store

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"
)

// Digest returns the SHA-256 of a document, or of the secret of a token, in 64 hexadecimal digits. A secret must be random: nothing slows
// down those who guess.
func Digest(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

// micros is a time as the database has it: microseconds since 1970, or 0 for no time.
func micros(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMicro()
}

// fromMicros is the reverse of micros, in UTC.
func fromMicros(n int64) time.Time {
	if n == 0 {
		return time.Time{}
	}
	return time.UnixMicro(n).UTC()
}

// flag is a truth as the database has it.
func flag(is bool) int64 {
	if is {
		return 1
	}
	return 0
}

// text is a value to be stored, with its name for the error.
type text struct {
	name, value string
	least, most int // bytes
}

// id returns the text of an ID.
func id(name, value string) text { return text{name: name, value: value, least: 1, most: MaxText} }

// document returns the text of a signed document.
func document(name, value string) text {
	return text{name: name, value: value, least: 1, most: MaxDocument}
}

// line returns a text for people, which may be empty.
func line(name, value string) text { return text{name: name, value: value, most: MaxText} }

// checkTexts refuses what is too long, too short, or what only one of the two databases would take.
func checkTexts(texts ...text) error {
	for _, t := range texts {
		switch {
		case len(t.value) < t.least:
			return fmt.Errorf("%w: %s is empty", ErrInvalid, t.name)
		case len(t.value) > t.most:
			return fmt.Errorf("%w: %s has %d bytes, more than %d", ErrInvalid, t.name, len(t.value), t.most)
		case !utf8.ValidString(t.value) || strings.ContainsRune(t.value, 0):
			return fmt.Errorf("%w: %s is not text", ErrInvalid, t.name)
		}
	}
	return nil
}

// encodeKeys writes a chain of keys into one column.
func encodeKeys(chain []string) (string, error) {
	if len(chain) == 0 {
		return "", fmt.Errorf("%w: the chain of keys is empty", ErrInvalid)
	}
	for i, statement := range chain {
		if err := checkTexts(document(fmt.Sprintf("statement %d of the chain of keys", i), statement)); err != nil {
			return "", err
		}
	}
	encoded, err := json.Marshal(chain)
	if err != nil {
		return "", fmt.Errorf("encode the chain of keys: %w", err)
	}
	return string(encoded), checkTexts(document("the chain of keys", string(encoded)))
}
