// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package party

import (
	"crypto/ed25519"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/go-jose/go-jose/v4"
	strict "sigs.k8s.io/json"
)

// MaxDocument is how many bytes a signed document has at most.
const MaxDocument = 64 << 10

// encoding is that of the parts of a JWS (RFC 7515, section 2). It is strict, so that a document has one form only.
var encoding = base64.RawURLEncoding.Strict()

// Sign returns the JSON of a payload as a compact JWS (RFC 7515) with EdDSA (RFC 8037). Its header says by typ what kind of document it
// is, and by kid which key has signed. The same payload is the same document. The error is ErrDocument if it is too large to be verified.
func (k Key) Sign(typ string, payload any) (string, error) {
	if k.IsZero() {
		return "", fmt.Errorf("sign %s: there is no key", typ)
	}
	text, err := json.Marshal(payload)
	if err != nil {
		return "", fmt.Errorf("sign %s: %w", typ, err)
	}
	signer, err := jose.NewSigner(
		jose.SigningKey{Algorithm: jose.EdDSA, Key: jose.JSONWebKey{Key: k.private, KeyID: k.Fingerprint()}},
		(&jose.SignerOptions{}).WithType(jose.ContentType(typ)))
	if err != nil {
		return "", fmt.Errorf("sign %s: %w", typ, err)
	}
	signed, err := signer.Sign(text)
	if err != nil {
		return "", fmt.Errorf("sign %s: %w", typ, err)
	}
	compact, err := signed.CompactSerialize()
	if err != nil {
		return "", fmt.Errorf("sign %s: %w", typ, err)
	}
	if len(compact) > MaxDocument {
		return "", fmt.Errorf("sign %s: it has %d bytes, more than %d: %w", typ, len(compact), MaxDocument, ErrDocument)
	}
	return compact, nil
}

// Verify reads the payload of a document of one type that a key has signed. It accepts compact JWS with EdDSA, and a header of alg, typ and
// kid, in the only form that they have in base64; the payload is a JSON object in which no name is repeated, unknown, or in another case
// than that of into. The error is ErrSignature if the key has not signed it, and ErrDocument otherwise; into is then of no use.
func Verify(jws, typ string, key ed25519.PublicKey, into any) error {
	signed, header, err := parse(jws)
	if err != nil {
		return err
	}
	if len(key) != ed25519.PublicKeySize || header.KeyID != Fingerprint(key) {
		return fmt.Errorf("document of the key %.60q, not of %s: %w", header.KeyID, Fingerprint(key), ErrSignature)
	}
	payload, err := signed.Verify(key)
	if err != nil {
		return fmt.Errorf("document of the key %s: %w", header.KeyID, ErrSignature)
	}
	if got := header.ExtraHeaders[jose.HeaderType]; got != typ {
		return fmt.Errorf("document of type %.60q, not %q: %w", got, typ, ErrDocument)
	}
	return Decode(payload, into)
}

// Payload returns what a document says without looking at its signature: for documents that were verified when they were stored. The
// error is ErrDocument, or ErrSignature for another algorithm than EdDSA.
func Payload(jws string) ([]byte, error) {
	signed, _, err := parse(jws)
	if err != nil {
		return nil, err
	}
	return signed.UnsafePayloadWithoutVerification(), nil
}

// Signer returns the fingerprint of the key that a document claims to be signed by, without looking at the signature. The errors are
// those of Payload.
func Signer(jws string) (string, error) {
	_, header, err := parse(jws)
	if err != nil {
		return "", err
	}
	return header.KeyID, nil
}

// parse takes a document apart, within its bounds.
func parse(jws string) (*jose.JSONWebSignature, jose.Header, error) {
	if len(jws) > MaxDocument {
		return nil, jose.Header{}, fmt.Errorf("document of %d bytes, more than %d: %w", len(jws), MaxDocument, ErrDocument)
	}
	parts := strings.Split(jws, ".")
	if len(parts) != 3 {
		return nil, jose.Header{}, fmt.Errorf("document of %d parts, not a compact JWS: %w", len(parts), ErrDocument)
	}
	for i, part := range parts {
		// Go's decoder skips the ends of lines.
		if _, err := encoding.DecodeString(part); err != nil || part == "" || strings.ContainsAny(part, "\r\n") {
			return nil, jose.Header{}, fmt.Errorf("part %d of a document is not base64 without padding: %w", i+1, ErrDocument)
		}
	}
	signed, err := jose.ParseSignedCompact(jws, []jose.SignatureAlgorithm{jose.EdDSA})
	if err != nil {
		kind := ErrDocument
		if unexpected := (*jose.ErrUnexpectedSignatureAlgorithm)(nil); errors.As(err, &unexpected) {
			kind = ErrSignature
		}
		return nil, jose.Header{}, fmt.Errorf("not a compact JWS with EdDSA: %.200s: %w", err.Error(), kind)
	}
	header := signed.Signatures[0].Protected
	if header.JSONWebKey != nil || header.Nonce != "" {
		return nil, jose.Header{}, fmt.Errorf("the header of a document has more than alg, typ and kid: %w", ErrDocument)
	}
	for name := range header.ExtraHeaders {
		if name != jose.HeaderType {
			return nil, jose.Header{}, fmt.Errorf("the header of a document has %.60q beside alg, typ and kid: %w", name, ErrDocument)
		}
	}
	return signed, header, nil
}

// Decode reads a JSON object as strictly as Verify does, for what comes without a signature of its own. The caller bounds its size; at
// most MaxDocument is meant. The error is ErrDocument.
func Decode(text []byte, into any) error {
	if !utf8.Valid(text) {
		return fmt.Errorf("the payload is not UTF-8: %w", ErrDocument)
	}
	if err := unique(text); err != nil {
		return fmt.Errorf("the payload: %.200s: %w", err.Error(), ErrDocument)
	}
	unknown, err := strict.UnmarshalStrict(text, into)
	if err = errors.Join(append(unknown, err)...); err != nil {
		return fmt.Errorf("the payload: %.300s: %w", err.Error(), ErrDocument)
	}
	return nil
}

// unique returns an error if a text is not one JSON object, or repeats a name in any object in it.
func unique(text []byte) error {
	decoder := json.NewDecoder(strings.NewReader(string(text)))
	decoder.UseNumber()
	// open has for each open object the names that were seen and whether a value follows one; a list has no names.
	type level struct {
		names map[string]bool
		value bool
	}
	var open []level
	for first := true; ; first = false {
		token, err := decoder.Token()
		switch {
		case errors.Is(err, io.EOF) && !first:
			return nil
		case err != nil:
			return err
		case first && token != json.Delim('{'):
			return errors.New("it is not an object")
		case !first && len(open) == 0:
			return errors.New("something follows its end")
		}
		// In an object, names and values take turns, and each name comes once.
		if last := len(open) - 1; last >= 0 && open[last].names != nil && token != json.Delim('}') {
			if name, is := token.(string); is && !open[last].value {
				if open[last].names[name] {
					return fmt.Errorf("the name %.60q is repeated", name)
				}
				open[last].names[name], open[last].value = true, true
				continue
			}
			open[last].value = false
		}
		// Deeper, or back.
		switch token {
		case json.Delim('{'):
			open = append(open, level{names: map[string]bool{}})
		case json.Delim('['):
			open = append(open, level{})
		case json.Delim('}'), json.Delim(']'):
			open = open[:len(open)-1]
		}
	}
}
