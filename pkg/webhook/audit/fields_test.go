// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
)

func TestDifferences(t *testing.T) {
	key := "-----BEGIN PRIVATE KEY-----" + strings.Repeat("x", 200)
	cases := map[string]struct {
		reason, before, after string
		want                  []Field
		more                  int
	}{
		"Same":  {reason: "What is equal has not changed.", before: `{"a":1}`, after: `{"a":1}`},
		"Order": {reason: "Nor has what is written otherwise.", before: `{"a":1,"b":2}`, after: `{ "b":2, "a":1 }`},
		"Value": {
			reason: "A field has another value.", before: `{"scheduling":"Active","x":1}`, after: `{"scheduling":"Drained","x":1}`,
			want: []Field{{"spec.scheduling", "Active", "Drained"}},
		},
		"Added": {
			reason: "What was not there was none, field by field.", before: `{}`, after: `{"price":{"perHour":"3","currency":"EUR"}}`,
			want: []Field{{"spec.price.currency", "none", "EUR"}, {"spec.price.perHour", "none", "3"}},
		},
		"Removed": {
			reason: "So is what is not there any more, and null is nothing.", before: `{"a":{"b":true},"c":null}`, after: ``,
			want: []Field{{"spec.a.b", "true", "none"}},
		},
		"Number": {
			reason: "A number is told as it was written.", before: `{"n":9223372036854775807}`, after: `{"n":9223372036854775806}`,
			want: []Field{{"spec.n", "9223372036854775807", "9223372036854775806"}},
		},
		"Lists": {
			reason: "Of lists that are as long as before, what differs in them is told; of others how long they are.",
			before: `{"a":[{"b":1},{"b":2}],"c":[1,2]}`, after: `{"a":[{"b":1},{"b":3}],"c":[1]}`,
			want: []Field{{"spec.a[1].b", "2", "3"}, {"spec.c", "a list of 2", "a list of 1"}},
		},
		"Kinds": {
			reason: "A value that is of another kind is told as it is.", before: `{"a":{"b":1}}`, after: `{"a":"x y"}`,
			want: []Field{{"spec.a", "1 fields", `"x y"`}},
		},
		"Emptied": {reason: "A map that is empty now.", before: `{"a":{"b":1}}`, after: `{"a":{}}`, want: []Field{{"spec.a.b", "1", "none"}}},
		"Empty":   {reason: "A map that came empty.", before: `{}`, after: `{"a":{}}`, want: []Field{{"spec.a", "none", "0 fields"}}},
		"Key": {
			reason: "A key that is no name is quoted.", before: `{}`, after: `{"limits":{"example.com/gpu":"1"}}`,
			want: []Field{{`spec.limits["example.com/gpu"]`, "none", "1"}},
		},
		"Forged": {
			reason: "A text does not look like another field.", before: `{"a":"b"}`, after: `{"a":"b, spec.scheduling: Active → \"Drained\""}`,
			want: []Field{{"spec.a", "b", `"b, spec.scheduling: Active → 'Drained'"`}},
		},
		"Hostile": {
			reason: "What moves the cursor or turns the direction is not printed.", before: `{"a":"b"}`, after: `{"a":"\u001b[31m\u202ex\n"}`,
			want: []Field{{"spec.a", "b", `"?[31m?x "`}},
		},
		"Long": {
			reason: "A long text may be a key: not even its beginning is told.", before: `{"a":"b"}`, after: `{"a":"` + key + `"}`,
			want: []Field{{"spec.a", "b", "a text of 227 characters"}},
		},
		"Secret": {
			reason: "What is called a secret is not told, nor what is below it.", before: `{}`,
			after: `{"tokenSecret":{"name":"x"},"userPassword":"y"}`,
			want:  []Field{{"spec.tokenSecret.name", "none", "not shown"}, {"spec.userPassword", "none", "not shown"}},
		},
		"Many": {
			reason: "The first are told, and the others counted.", before: `{}`, after: `{"a":1,"b":1,"c":1,"d":1,"e":1,"f":1,"g":1,"h":1}`,
			want: []Field{
				{"spec.a", "none", "1"}, {"spec.b", "none", "1"}, {"spec.c", "none", "1"}, {"spec.d", "none", "1"}, {"spec.e", "none", "1"},
				{"spec.f", "none", "1"},
			},
			more: 2,
		},
		"Megabytes": {
			reason: "What is too long is not compared.", before: `{}`, after: `{"a":"` + strings.Repeat("x", 1<<20) + `"}`,
			want: []Field{{"spec", "2 bytes", "1048584 bytes"}},
		},
		"Broken": {reason: "Nor is what cannot be read.", before: `{}`, after: `{"a":`, want: []Field{{"spec", "2 bytes", "5 bytes"}}},
		"Deep": {
			reason: "What is deep is one value.", before: `{}`,
			after: strings.Repeat(`{"a":`, 500) + `1` + strings.Repeat(`}`, 500),
			want:  []Field{{"spec.a.a.a.a.a.a.a.a", "none", "1 fields"}},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, more := differences([]byte(tc.before), []byte(tc.after))
			if diff := cmp.Diff(tc.want, got); diff != "" || more != tc.more {
				t.Errorf("%s\n%d more, want %d; -want +got\n%s", tc.reason, more, tc.more, diff)
			}
		})
	}
}

// FuzzDifferences holds that whatever is in a spec, what is told of it is short, plain, and about something.
func FuzzDifferences(f *testing.F) {
	f.Add(`{"a":1}`, `{"a":[{"b":"\u202e"}]}`)
	f.Add(`{"`+strings.Repeat("k", 317)+`":{}}`, `[]`)
	f.Add(`null`, `"`+strings.Repeat("é", 100)+`"`)
	f.Fuzz(func(t *testing.T, before, after string) {
		fields, more := differences([]byte(before), []byte(after))
		if len(fields) > maxFields || more > 0 && len(fields) < maxFields {
			t.Errorf("%d fields and %d more", len(fields), more)
		}
		for _, field := range fields {
			for _, told := range []string{field.Path, field.Old, field.New} {
				if len(told) > maxPath || !utf8.ValidString(told) || strings.ContainsAny(told, "\n\x1b\u202e") {
					t.Errorf("%q is told", told)
				}
			}
		}
	})
}

// TestMessageIsShort tells the longest of everything.
func TestMessageIsShort(t *testing.T) {
	spec := map[string]any{}
	for i := range 2 * maxFields {
		spec[fmt.Sprint(i, strings.Repeat("é", 300))] = strings.Repeat("\u202e", maxText/3)
	}
	text, err := json.Marshal(spec)
	if err != nil {
		t.Fatal(err)
	}
	w := &waiting{count: 1e9}
	w.last = Change{Deed: Changed}
	w.last.Fields, w.last.More = differences(nil, text)
	message := quietLog(nil).event(strings.Repeat("u", maxUser), w).Message
	if len(message) > maxMessage || !utf8.ValidString(message) {
		t.Errorf("%d bytes: %s", len(message), message)
	}
}
