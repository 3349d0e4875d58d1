// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package party

import (
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/go-jose/go-jose/v4"
	"github.com/google/go-cmp/cmp"
)

// newKey returns a key that is always the same.
func newKey(tb testing.TB, seed byte) Key {
	tb.Helper()
	key, err := GenerateKey(strings.NewReader(strings.Repeat(string(rune(seed)), 32)))
	if err != nil {
		tb.Fatal(err)
	}
	return key
}

// note is a payload of tests.
type note struct {
	Text string            `json:"text"`
	More map[string]string `json:"more,omitempty"`
}

const noteType = "note+jws"

// TestKey reads a key back.
func TestKey(t *testing.T) {
	key := newKey(t, 'a')
	again, err := ParseKey(key.PEM())
	if err != nil || !again.Public().Equal(key.Public()) {
		t.Errorf("ParseKey(PEM()): %v, %v", again, err)
	}
	der, err := x509.MarshalPKIXPublicKey(key.Public())
	if err != nil {
		t.Fatal(err)
	}
	if own := append([]byte(subjectPublicKeyInfo), key.Public()...); !slices.Equal(own, der) {
		t.Errorf("SubjectPublicKeyInfo is %x, not %x", own, der)
	}
	if id := string(key.ID()); len(id) != 52 || strings.Trim(id, "abcdefghijklmnopqrstuvwxyz234567") != "" {
		t.Errorf("the ID is %q", id)
	}
	if _, err := GenerateKey(strings.NewReader("short")); err == nil {
		t.Error("GenerateKey: a key of too few random bytes")
	}
}

// TestParseKeyRefuses reads what is not a key.
func TestParseKeyRefuses(t *testing.T) {
	other, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(other)
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string][]byte{
		"nothing":        nil,
		"no PEM":         []byte("secret"),
		"another type":   pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: der}),
		"another key":    pem.EncodeToMemory(&pem.Block{Type: pemType, Bytes: der}),
		"not PKCS#8":     pem.EncodeToMemory(&pem.Block{Type: pemType, Bytes: []byte("secret")}),
		"far too long":   []byte(strings.Repeat(string(newKey(t, 'a').PEM()), 100)),
		"a public block": pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der}),
	} {
		if _, err := ParseKey(text); !errors.Is(err, ErrDocument) || strings.Contains(fmt.Sprint(err), "secret") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestKeyHidden prints a key in every way.
func TestKeyHidden(t *testing.T) {
	key := newKey(t, 'a')
	holder := struct{ Key Key }{key}
	var out strings.Builder
	for _, verb := range []string{"v", "+v", "#v", "s", "q", "x", "X", "d", "o", "b", "c", "U"} {
		fmt.Fprintf(&out, "%"+verb+" %"+verb+"\n", key, holder)
	}
	slog.New(slog.NewTextHandler(&out, nil)).Info("key", "key", key, "holder", holder)
	slog.New(slog.NewJSONHandler(&out, nil)).Info("key", "key", key, "holder", holder)
	fmt.Fprint(&out, key.MarshalLog())
	if text, err := json.Marshal(holder); err == nil { //nolint:musttag // It is to fail.
		t.Errorf("json.Marshal: %s", text)
	}
	seed := key.private.Seed()
	for _, secret := range []string{
		string(seed), fmt.Sprintf("%x", seed), fmt.Sprintf("%X", seed), "97 97 97", "0x61, 0x61", "141 141", "1100001", "U+0061",
		base64.StdEncoding.EncodeToString(seed)[:40],
	} {
		if strings.Contains(out.String(), secret) {
			t.Errorf("%q is shown:\n%s", secret, out.String())
		}
	}
	if !strings.Contains(out.String(), key.Fingerprint()) {
		t.Error("the fingerprint is not shown")
	}
}

// TestZeroKey uses no key.
func TestZeroKey(t *testing.T) {
	var key Key
	if key.ID() != "" || key.Public() != nil || key.PEM() != nil || key.Announce() != "" {
		t.Errorf("the zero Key: %q, %v, %q, %q", key.ID(), key.Public(), key.PEM(), key.Announce())
	}
	if jws, err := key.Sign(noteType, note{}); err == nil {
		t.Errorf("Sign: %s", jws)
	}
	if err := Verify(sign(t, newKey(t, 'a'), note{}), noteType, key.Public(), &note{}); !errors.Is(err, ErrSignature) {
		t.Errorf("Verify: %v", err)
	}
	if _, err := Rotate(Keys{}, key, key); !errors.Is(err, ErrSignature) {
		t.Errorf("Rotate: %v", err)
	}
}

func sign(tb testing.TB, key Key, payload any) string {
	tb.Helper()
	jws, err := key.Sign(noteType, payload)
	if err != nil {
		tb.Fatal(err)
	}
	return jws
}

// TestSign signs and verifies.
func TestSign(t *testing.T) {
	key := newKey(t, 'a')
	want := note{Text: "t", More: map[string]string{"b": "1", "a": "2"}}
	jws := sign(t, key, want)
	if again := sign(t, key, want); again != jws {
		t.Errorf("the same payload is another document: %s and %s", jws, again)
	}
	var got note
	if err := Verify(jws, noteType, key.Public(), &got); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if signer, err := Signer(jws); err != nil || signer != key.Fingerprint() {
		t.Errorf("Signer: %q, %v", signer, err)
	}
	if payload, err := Payload(jws); err != nil || string(payload) != `{"text":"t","more":{"a":"2","b":"1"}}` {
		t.Errorf("Payload: %s, %v", payload, err)
	}
	if _, err := key.Sign(noteType, note{Text: strings.Repeat("x", MaxDocument)}); !errors.Is(err, ErrDocument) {
		t.Errorf("Sign, too large: %v", err)
	}
}

// raw signs a payload and a header as they are.
func raw(key Key, header, payload string) string {
	e := base64.RawURLEncoding
	text := e.EncodeToString([]byte(header)) + "." + e.EncodeToString([]byte(payload))
	signature := ed25519.Sign(key.private, []byte(text))
	return text + "." + e.EncodeToString(signature)
}

// TestVerifyRefuses verifies what others made.
func TestVerifyRefuses(t *testing.T) {
	key, other := newKey(t, 'a'), newKey(t, 'b')
	header := func(change ...string) string {
		members := map[string]string{"alg": `"EdDSA"`, "typ": `"` + noteType + `"`, "kid": `"` + key.Fingerprint() + `"`}
		for i := 0; i+1 < len(change); i += 2 {
			members[change[i]] = change[i+1]
		}
		var list []string
		for _, name := range slices.Sorted(maps.Keys(members)) {
			if members[name] != "" {
				list = append(list, `"`+name+`":`+members[name])
			}
		}
		return "{" + strings.Join(list, ",") + "}"
	}
	good := raw(key, header(), `{"text":"t"}`)
	parts := strings.Split(good, ".")
	ecKey, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	by := func(algorithm jose.SignatureAlgorithm, with any) string {
		signer, err := jose.NewSigner(jose.SigningKey{Algorithm: algorithm, Key: jose.JSONWebKey{Key: with, KeyID: key.Fingerprint()}},
			(&jose.SignerOptions{}).WithType(noteType))
		if err != nil {
			t.Fatal(err)
		}
		signed, err := signer.Sign([]byte(`{"text":"t"}`))
		if err != nil {
			t.Fatal(err)
		}
		compact, _ := signed.CompactSerialize()
		return compact
	}
	deep := strings.Repeat(`{"a":`, 12_000)
	for name, c := range map[string]struct {
		reason string
		jws    string
		want   error // nil: it is accepted
	}{
		"good":           {"the others are made of it", good, nil},
		"alg none":       {"nobody has signed it", raw(key, header("alg", `"none"`), `{"text":"t"}`), ErrSignature},
		"no signature":   {"nobody has signed it", parts[0] + "." + parts[1] + ".", ErrDocument},
		"HS256":          {"the public key is no secret", by(jose.HS256, []byte(key.Public())), ErrSignature},
		"ES256":          {"another kind of key", by(jose.ES256, ecKey), ErrSignature},
		"no alg":         {"the header must say it", raw(key, header("alg", ""), `{"text":"t"}`), ErrSignature},
		"other type":     {"an offer is no terms", raw(key, header("typ", `"offer+jws"`), `{"text":"t"}`), ErrDocument},
		"no type":        {"the header must say it", raw(key, header("typ", ""), `{"text":"t"}`), ErrDocument},
		"type as number": {"a type is text", raw(key, header("typ", "1"), `{"text":"t"}`), ErrDocument},
		"other kid":      {"the header must name the key", raw(key, header("kid", `"`+other.Fingerprint()+`"`), `{"text":"t"}`), ErrSignature},
		"no kid":         {"the header must name the key", raw(key, header("kid", ""), `{"text":"t"}`), ErrSignature},
		"other key":      {"it claims to be of the key", raw(other, header(), `{"text":"t"}`), ErrSignature},
		"own key inside": {
			"a key in the header proves nothing",
			raw(other, header("jwk", `{"kty":"OKP","crv":"Ed25519","x":"`+base64.RawURLEncoding.EncodeToString(other.Public())+`"}`),
				`{"text":"t"}`), ErrDocument,
		},
		"crit":        {"an extension that is not known", raw(key, header("crit", `["b64"]`, "b64", "false"), `{"text":"t"}`), ErrDocument},
		"more header": {"the header is closed", raw(key, header("x", `"y"`), `{"text":"t"}`), ErrDocument},
		"nonce":       {"the header is closed", raw(key, header("nonce", `"y"`), `{"text":"t"}`), ErrDocument},
		"alg twice":   {"two readers could read two algorithms", raw(key, `{"alg":"none",`+header()[1:], `{"text":"t"}`), ErrDocument},
		"other payload": {
			"it was changed", parts[0] + "." + base64.RawURLEncoding.EncodeToString([]byte(`{"text":"u"}`)) + "." + parts[2], ErrSignature,
		},
		"detached": {"there is no payload", parts[0] + ".." + parts[2], ErrDocument},
		"other form": {
			"the same bytes have one form", good[:len(good)-1] + map[bool]string{true: "B", false: "R"}[strings.HasSuffix(good, "A")], ErrDocument,
		},
		"end of line": {"the same bytes have one form", good + "\n", ErrDocument},
		"padding":     {"the same bytes have one form", good + "=", ErrDocument},
		"four parts":  {"not a compact JWS", good + "." + parts[2], ErrDocument},
		"JSON form": {
			"not a compact JWS", `{"payload":"` + parts[1] + `","protected":"` + parts[0] + `","signature":"` + parts[2] + `"}`, ErrDocument,
		},
		"nothing":          {"not a compact JWS", "", ErrDocument},
		"huge":             {"10 MB are not read", strings.Repeat("A", 10<<20), ErrDocument},
		"unknown field":    {"fields are closed", raw(key, header(), `{"text":"t","token":"x"}`), ErrDocument},
		"name twice":       {"two readers could read two values", raw(key, header(), `{"text":"t","text":"u"}`), ErrDocument},
		"name twice below": {"two readers could read two values", raw(key, header(), `{"text":"t","more":{"a":"b","a":"c"}}`), ErrDocument},
		"escaped twice":    {"two ways to write a name", raw(key, header(), `{"text":"t","\u0074ext":"u"}`), ErrDocument},
		"other case":       {"Go's reader would take it", raw(key, header(), `{"Text":"t"}`), ErrDocument},
		"not an object":    {"a document is an object", raw(key, header(), `["t"]`), ErrDocument},
		"null":             {"a document is an object", raw(key, header(), `null`), ErrDocument},
		"two objects":      {"something follows", raw(key, header(), `{"text":"t"}{"text":"u"}`), ErrDocument},
		"rest":             {"something follows", raw(key, header(), `{"text":"t"} x`), ErrDocument},
		"half":             {"it has no end", raw(key, header(), `{"text":"t"`), ErrDocument},
		"not UTF-8":        {"a replaced letter is not what was signed", raw(key, header(), "{\"text\":\"\xff\"}"), ErrDocument},
		"deep":             {"it takes no stack", raw(key, header(), deep), ErrDocument},
	} {
		var got note
		err := Verify(c.jws, noteType, key.Public(), &got)
		if c.want == nil && err != nil || c.want != nil && !errors.Is(err, c.want) {
			t.Errorf("%s (%s): %v, not %v", name, c.reason, err, c.want)
		}
		if err != nil && len(err.Error()) > 1000 {
			t.Errorf("%s: an error of %d bytes", name, len(err.Error()))
		}
	}
}

// TestVerifyRaw reads a payload as it is, and finds a repeated name all the same.
func TestVerifyRaw(t *testing.T) {
	key := newKey(t, 'a')
	var text json.RawMessage
	if err := Verify(sign(t, key, note{Text: "t"}), noteType, key.Public(), &text); err != nil || string(text) != `{"text":"t"}` {
		t.Errorf("Verify: %s, %v", text, err)
	}
	twice := sign(t, key, json.RawMessage(`{"a":[{"b":1},{"b":2,"b":3}]}`))
	if err := Verify(twice, noteType, key.Public(), &text); !errors.Is(err, ErrDocument) {
		t.Errorf("Verify, a name that is repeated: %v", err)
	}
	lists := sign(t, key, json.RawMessage(`{"a":["a","a",{"a":"a"},["b","b"]],"b":{"a":"b","b":"a"},"c":"a"}`))
	if err := Verify(lists, noteType, key.Public(), &text); err != nil {
		t.Errorf("Verify, values that are repeated: %v", err)
	}
}
