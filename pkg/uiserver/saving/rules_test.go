// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package saving

import (
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/capacitorset/liqo-broker/pkg/shown"
	"github.com/capacitorset/liqo-broker/pkg/shown/apiv1"
	"github.com/capacitorset/liqo-broker/pkg/shown/tradev1"
	"github.com/capacitorset/liqo-broker/pkg/uiserver/trading"
)

// withoutRule are the fields that are left out on purpose, and why. What is not here has a rule.
var withoutRule = map[string]string{
	"activity.source":                   anybodys,
	"advice.peers.authURL":              "an address of a cluster",
	"consumers.conditions.message":      anybodys,
	"contracts.conditions.message":      anybodys,
	"contracts.promise.document.sha256": "by it one finds whose document it is",
	"contracts.promise.document.url":    "an address of a party",
	"contracts.ready.message":           anybodys,
	"contracts.steps.reason":            "what one party has told the other",
	"contracts.terms.sha256":            "by it one finds whose document it is",
	"contracts.terms.url":               "an address of a party",
	"decisions.providers.why":           "it names filters, and KPIs of queries",
	"me.context":                        "how the cluster is reached",
	"me.expires":                        "about a token",
	"ownoffers.conditions.message":      anybodys,
	"ownoffers.plans.title":             "people have written it",
	"policies.conditions.message":       anybodys,
	"policies.filters":                  "people have written them",
	"providers.conditions.message":      anybodys,
	"registries.conditions.message":     anybodys,
	"requests.expression":               "people have written it",
	"requests.ready.message":            anybodys,
	"workloads.why":                     "it names nodes and whatever schedulers say",
}

const anybodys = "other programs and people can write it"

// shownTypes returns of what type a thing of each kind is.
func shownTypes(tb testing.TB) map[string]reflect.Type {
	tb.Helper()
	types := map[string]reflect.Type{
		"contracts": reflect.TypeFor[tradev1.Contract](), "requests": reflect.TypeFor[tradev1.Request](),
		"ownoffers": reflect.TypeFor[tradev1.OwnOffer](), "registries": reflect.TypeFor[tradev1.Registry](),
		"market": reflect.TypeFor[tradev1.Market](),
	}
	byField := map[string]string{}
	for kind, of := range things {
		byField[of.field] = kind
	}
	for _, field := range reflect.VisibleFields(reflect.TypeFor[apiv1.Event]()) {
		if field.Type.Kind() != reflect.Pointer {
			continue
		}
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		if byField[name] == "" {
			tb.Errorf("no rule is of a kind whose events have a field %s", name)
			continue
		}
		types[byField[name]] = field.Type.Elem()
	}
	for _, kind := range slices.Concat(shown.Kinds(), trading.Kinds()) {
		if _, is := things[string(kind)]; !is || types[string(kind)] == nil || !slices.Contains(inTurn, string(kind)) {
			tb.Errorf("the kind %s has no rule, no type or no turn", kind)
		}
	}
	types["me"] = reflect.TypeFor[apiv1.Me]()
	return types
}

// fill puts something into every field of a value: into texts one after the other what text returns, into maps an entry with a key.
func fill(v reflect.Value, text func() string, key string) {
	switch v.Kind() { //nolint:exhaustive // Another type has no field here.
	case reflect.String:
		v.SetString(text())
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int32, reflect.Int64:
		v.SetInt(1)
	case reflect.Float64:
		v.SetFloat(1)
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem(), text, key)
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		fill(v.Index(0), text, key)
	case reflect.Map:
		one := reflect.New(v.Type().Elem()).Elem()
		fill(one, text, key)
		v.Set(reflect.MakeMap(v.Type()))
		v.SetMapIndex(reflect.ValueOf(key), one)
	case reflect.Struct:
		if v.Type() == reflect.TypeFor[time.Time]() {
			v.Set(reflect.ValueOf(at))
			return
		}
		for _, field := range v.Fields() {
			fill(field, text, key)
		}
	default:
		panic("a field of another type: " + v.Type().String())
	}
}

// filled returns a value of a type that has a text in one of its fields, and others in all others.
func filled(of reflect.Type, field int, text, key string) any {
	thing, n := reflect.New(of).Elem(), -1
	fill(thing, func() string {
		if n++; n == field {
			return text
		}
		return "other" + strconv.Itoa(n)
	}, key)
	return thing.Interface()
}

// textsOf returns how many texts a value of a type has when it is filled.
func textsOf(of reflect.Type) (n int) {
	fill(reflect.New(of).Elem(), func() string {
		n++
		return ""
	}, "")
	return n
}

// leaves adds the places of all that is in a value and has nothing in it, without keys of maps.
func leaves(to map[string]bool, place string, value any, ofMap func(place string) bool) {
	switch value := value.(type) {
	case map[string]any:
		for name, one := range value {
			if ofMap(place) {
				name = "*"
			}
			leaves(to, place+"."+name, one, ofMap)
		}
	case []any:
		for _, one := range value {
			leaves(to, place, one, ofMap)
		}
	default:
		to[place] = true
	}
}

// mapsOf adds the places of all maps of a type.
func mapsOf(to map[string]bool, place string, of reflect.Type) {
	switch of.Kind() { //nolint:exhaustive // The others have no parts.
	case reflect.Pointer, reflect.Slice:
		mapsOf(to, place, of.Elem())
	case reflect.Map:
		to[place] = true
		mapsOf(to, place+".*", of.Elem())
	case reflect.Struct:
		for field := range of.Fields() {
			if name, _, _ := strings.Cut(field.Tag.Get("json"), ","); name != "" {
				mapsOf(to, place+"."+name, field.Type)
			} else if field.Anonymous {
				mapsOf(to, place, field.Type)
			}
		}
	}
}

// generic returns a value as JSON has it.
func generic(tb testing.TB, value any) (as any) {
	tb.Helper()
	text, err := json.Marshal(value)
	if err == nil {
		err = json.Unmarshal(text, &as)
	}
	if err != nil {
		tb.Fatal(err)
	}
	return as
}

// withoutNames returns what is told of a thing of some kind, or of who sees it, when names are hidden.
func withoutNames(t *testing.T, kind string, thing any) any {
	t.Helper()
	m := &Moment{}
	texts := map[string]any{"me": thing, "events": []any{map[string]any{"kind": kind, "key": "a/b/c", things[kind].field: thing}}}
	if text, err := json.Marshal(texts); err != nil || json.Unmarshal(text, m) != nil {
		t.Fatalf("%s: %v", text, err)
	}
	h, err := Hide(m)
	if err != nil {
		t.Fatal(err)
	}
	if kind == "me" {
		return generic(t, h.Me)
	}
	event, _ := generic(t, h.Events[0]).(map[string]any)
	return event[things[kind].field]
}

// TestOurs holds that the words of the page's own data stay, whatever clusters are called.
func TestOurs(t *testing.T) {
	for kind, of := range shownTypes(t) {
		enumsOf(of, func(field, word string) {
			if !slices.Contains(ours, word) {
				t.Errorf("%s: %s is no word of ours: %s", kind, field, word)
			}
		})
	}
}

// enumsOf calls a function with all words that fields of a type can have.
func enumsOf(of reflect.Type, each func(field, word string)) {
	switch of.Kind() { //nolint:exhaustive // The others have no parts.
	case reflect.Pointer, reflect.Slice, reflect.Map:
		enumsOf(of.Elem(), each)
	case reflect.Struct:
		for field := range of.Fields() {
			for word := range strings.SplitSeq(field.Tag.Get("enum"), ",") {
				if word != "" {
					each(field.Name, word)
				}
			}
			enumsOf(field.Type, each)
		}
	}
}

// TestRules walks all that a page can show: of each field there is a rule, or it is said above why there is none. Whoever adds a field
// decides whether it may have a name in it.
func TestRules(t *testing.T) {
	// One of these has the shape that a rule wants.
	texts := []string{"Word", "1", "1.5 EUR/h", "EUR", "24h", "PT1H", "list nodes"}
	keys := []string{"cpu", "topology.kubernetes.io/region"} // Of maps.
	there, told, isMap := map[string]bool{}, map[string]bool{}, map[string]bool{}
	ofMap := func(place string) bool { return isMap[place] }
	for kind, of := range shownTypes(t) {
		mapsOf(isMap, kind, of)
		for _, text := range texts {
			for _, key := range keys {
				for field := range textsOf(of) {
					thing := filled(of, field, text, key)
					leaves(there, kind, generic(t, thing), ofMap)
					leaves(told, kind, withoutNames(t, kind, thing), ofMap)
				}
			}
		}
	}
	for _, place := range slices.Sorted(maps.Keys(there)) {
		switch reason := withoutRule[place]; {
		case !told[place] && reason == "":
			t.Errorf("%s has no rule: may it have a name in it?", place)
		case told[place] && reason != "":
			t.Errorf("%s has a rule, and is said to have none", place)
		}
	}
	for place := range withoutRule {
		if !there[place] {
			t.Errorf("there is no %s any more", place)
		}
	}
}
