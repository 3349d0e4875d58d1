// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package party

import (
	"crypto/sha256"
	"errors"
	"slices"
	"strings"
	"testing"
)

// chainOf returns a chain of keys that followed one another.
func chainOf(tb testing.TB, keys ...Key) Keys {
	tb.Helper()
	chain, err := ParseKeys([]string{keys[0].Announce()})
	if err != nil {
		tb.Fatal(err)
	}
	for i := 1; i < len(keys); i++ {
		if chain, err = Rotate(chain, keys[i-1], keys[i]); err != nil {
			tb.Fatal(err)
		}
	}
	return chain
}

// TestRotate changes keys.
func TestRotate(t *testing.T) {
	a, b, c := newKey(t, 'a'), newKey(t, 'b'), newKey(t, 'c')
	chain := chainOf(t, a, b, c)
	if chain.ID() != a.ID() || !chain.Current().Equal(c.Public()) {
		t.Errorf("party %s with the key %s", chain.ID(), Fingerprint(chain.Current()))
	}
	again, err := ParseKeys(chain.Chain())
	if err != nil || again.ID() != chain.ID() || !again.Current().Equal(chain.Current()) {
		t.Errorf("ParseKeys(Chain()): %v, %v", again, err)
	}
	if !chain.Retired(sign(t, a, note{})) || !chain.Retired(sign(t, b, note{})) || chain.Retired(sign(t, c, note{})) || chain.Retired("x") {
		t.Error("Retired is wrong")
	}
	if key, known := chain.Key(a.Fingerprint()); !known || !key.Equal(a.Public()) {
		t.Error("a key that was replaced is not known")
	}
	if _, known := chain.Key(newKey(t, 'd').Fingerprint()); known {
		t.Error("a stranger's key is known")
	}
	if _, err := Rotate(chain, b, newKey(t, 'd')); !errors.Is(err, ErrSignature) {
		t.Errorf("Rotate by a key that was replaced: %v", err)
	}
	if _, err := Rotate(chain, c, a); !errors.Is(err, ErrDocument) {
		t.Errorf("Rotate to a key that was replaced: %v", err)
	}
	if got := (Keys{}); got.ID() != "" || got.Current() != nil || len(got.Chain()) != 0 || got.Retired(sign(t, a, note{})) {
		t.Errorf("the zero Keys: %q, %v", got.ID(), got.Current())
	}
}

// TestContinues compares chains.
func TestContinues(t *testing.T) {
	a, b, c := newKey(t, 'a'), newKey(t, 'b'), newKey(t, 'c')
	for name, tc := range map[string]struct {
		reason       string
		new, earlier Keys
		want         bool
	}{
		"same":    {"nothing has changed", chainOf(t, a, b), chainOf(t, a, b), true},
		"longer":  {"the key was changed", chainOf(t, a, b, c), chainOf(t, a), true},
		"shorter": {"a replay of an old chain", chainOf(t, a), chainOf(t, a, b), false},
		"fork":    {"the old key was stolen, and used for another", chainOf(t, a, c), chainOf(t, a, b), false},
		"longer fork": {
			"the old key was stolen, and used twice", chainOf(t, a, c, newKey(t, 'd')), chainOf(t, a, b), false,
		},
		"other party": {"not the same party", chainOf(t, b), chainOf(t, a), false},
		"first":       {"nothing was known", chainOf(t, a), Keys{}, true},
		"nothing":     {"a known chain does not vanish", Keys{}, chainOf(t, a), false},
	} {
		if got := tc.new.Continues(tc.earlier); got != tc.want {
			t.Errorf("%s (%s): %v", name, tc.reason, got)
		}
	}
}

// TestParseKeysRefuses reads forged chains.
func TestParseKeysRefuses(t *testing.T) {
	a, b, c := newKey(t, 'a'), newKey(t, 'b'), newKey(t, 'c')
	chain := chainOf(t, a, b)
	sum := func(link string) []byte { s := sha256.Sum256([]byte(link)); return s[:] }
	// link makes a rotation that old, next and said sign or say.
	link := func(old, next Key, said rotation) string {
		inner, err := old.Sign(rotationType, said)
		if err != nil {
			t.Fatal(err)
		}
		outer, err := next.Sign(keyType, acceptance{Rotation: inner})
		if err != nil {
			t.Fatal(err)
		}
		return outer
	}
	said := rotation{Party: a.ID(), Sequence: 1, Key: b.Public(), Previous: sum(a.Announce())}
	with := func(change func(*rotation)) rotation { changed := said; change(&changed); return changed }
	typed := func(key Key, typ string, payload any) string {
		jws, err := key.Sign(typ, payload)
		if err != nil {
			t.Fatal(err)
		}
		return jws
	}
	inner := typed(a, rotationType, said)
	many := []Key{a}
	for i := range byte(MaxRotations) {
		many = append(many, newKey(t, '0'+i))
	}
	full := chainOf(t, many...)
	if _, err := Rotate(full, many[len(many)-1], newKey(t, 'z')); !errors.Is(err, ErrDocument) {
		t.Errorf("a rotation too many: %v", err)
	}
	for name, tc := range map[string]struct {
		reason string
		chain  []string
		want   error
	}{
		"good":           {"the others are made of it", []string{a.Announce(), link(a, b, said)}, nil},
		"empty":          {"there is no party", nil, ErrDocument},
		"too long":       {"it is bounded", slices.Repeat([]string{a.Announce()}, MaxRotations+2), ErrDocument},
		"huge":           {"a link is bounded", []string{strings.Repeat("A", 10<<20)}, ErrDocument},
		"no beginning":   {"the first key is the party", chain.Chain()[1:], ErrDocument},
		"two beginnings": {"a key without the signature of the old one", []string{a.Announce(), b.Announce()}, ErrDocument},
		"another's key":  {"the first key has not signed", []string{typed(b, keyType, announcement{Key: a.Public()})}, ErrSignature},
		"short key":      {"not a key", []string{typed(a, keyType, announcement{Key: a.Public()[:31]})}, ErrSignature},
		"no key":         {"not a key", []string{typed(a, keyType, announcement{})}, ErrSignature},
		"old only":       {"the new key has not agreed", []string{a.Announce(), link(a, a, said)}, ErrSignature},
		"old only, bare": {"the new key has not agreed", []string{a.Announce(), inner}, ErrDocument},
		"new only":       {"the old key has not agreed", []string{a.Announce(), link(b, b, said)}, ErrSignature},
		"third for old":  {"the old key has not agreed", []string{a.Announce(), link(c, b, said)}, ErrSignature},
		"third for new":  {"the new key has not agreed", []string{a.Announce(), link(a, c, said)}, ErrSignature},
		"other party":    {"of another chain", []string{a.Announce(), link(a, b, with(func(r *rotation) { r.Party = c.ID() }))}, ErrSignature},
		"other link": {
			"of another chain", []string{a.Announce(), link(a, b, with(func(r *rotation) { r.Previous = sum("x") }))}, ErrSignature,
		},
		"sequence":   {"a number is missing", []string{a.Announce(), link(a, b, with(func(r *rotation) { r.Sequence = 2 }))}, ErrDocument},
		"same key":   {"nothing changes", []string{a.Announce(), link(a, a, with(func(r *rotation) { r.Key = a.Public() }))}, ErrDocument},
		"no new key": {"not a key", []string{a.Announce(), link(a, b, with(func(r *rotation) { r.Key = nil }))}, ErrSignature},
		"link twice": {"a link has one place", append(chain.Chain(), chain.Chain()[1]), ErrSignature},
		"inner type": {
			"another document of the old key", []string{a.Announce(), typed(b, keyType, acceptance{Rotation: typed(a, noteType, said)})},
			ErrDocument,
		},
		"outer type": {
			"another document of the new key", []string{a.Announce(), typed(b, noteType, acceptance{Rotation: inner})}, ErrDocument,
		},
		"announcement type": {"another document of the key", []string{typed(a, noteType, announcement{Key: a.Public()})}, ErrDocument},
	} {
		got, err := ParseKeys(tc.chain)
		if tc.want == nil && err != nil || tc.want != nil && !errors.Is(err, tc.want) {
			t.Errorf("%s (%s): %v, not %v", name, tc.reason, err, tc.want)
		}
		if err != nil && got.Current() != nil {
			t.Errorf("%s: keys beside an error", name)
		}
	}
}

// FuzzVerify changes documents: one that is accepted is what was signed.
func FuzzVerify(f *testing.F) {
	key := newKey(f, 'a')
	good := sign(f, key, note{Text: "t"})
	f.Add(good)
	f.Add(raw(key, `{"alg":"none"}`, `{"text":"t"}`))
	f.Add(raw(key, `{"alg":"EdDSA","kid":"`+key.Fingerprint()+`","typ":"`+noteType+`","crit":["x"]}`, `{"text":"t"}`))
	f.Add("..")
	f.Fuzz(func(t *testing.T, jws string) {
		var got note
		if err := Verify(jws, noteType, key.Public(), &got); err == nil && jws != good {
			t.Errorf("accepted: %q", jws)
		}
		_, _ = Signer(jws)
		_, _ = Payload(jws)
	})
}

// FuzzDecode reads payloads, as if they were signed.
func FuzzDecode(f *testing.F) {
	for _, text := range []string{
		`{"text":"t","more":{"a":"b"}}`, `{"text":"t","text":"u"}`, `{"more":[{}]}`, `{}`, `[`, `{"a":{"b":[1,{"c":null}]}}`,
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		var first, second note
		if Decode([]byte(text), &first) != nil {
			return
		}
		if again := sign(t, newKey(t, 'a'), first); Verify(again, noteType, newKey(t, 'a').Public(), &second) != nil {
			t.Errorf("what was read from %q cannot be read again", text)
		}
	})
}

// FuzzParseKeys changes chains.
func FuzzParseKeys(f *testing.F) {
	a, b := newKey(f, 'a'), newKey(f, 'b')
	good := chainOf(f, a, b)
	f.Add(good.Chain()[0], good.Chain()[1])
	f.Add(b.Announce(), a.Announce())
	f.Add("", ".")
	f.Fuzz(func(t *testing.T, first, second string) {
		keys, err := ParseKeys([]string{first, second})
		if err == nil && !slices.Equal(keys.Chain(), good.Chain()) {
			t.Errorf("accepted: %q", keys.Chain())
		}
		_, _ = ParseKeys([]string{first})
	})
}
