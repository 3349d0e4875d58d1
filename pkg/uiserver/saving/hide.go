// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package saving

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/capacitorset/liqo-broker/pkg/sheet"
)

// Hide returns a moment with pseudonyms in the place of all names, the same for the same name. What is not known to have no name in it is
// left out.
func Hide(m *Moment) (*Moment, error) {
	h := &hider{aliases: map[string]string{}, numbers: map[string]int{}, known: map[string]string{}, hidden: map[string]bool{}}
	events := make([]map[string]any, len(m.Events))
	for i, text := range m.Events {
		if err := decode(text, &events[i]); err != nil {
			return nil, err
		}
	}
	var me map[string]any
	if err := decode(m.Me, &me); err != nil {
		return nil, err
	}

	// Sentences can name what comes after them: all names are gathered first.
	hidden := &Moment{At: m.At, Hidden: true, Events: []json.RawMessage{}}
	for range 2 {
		h.index()
		text, err := json.Marshal(whoSees(h, me, nil))
		if err != nil {
			return nil, fmt.Errorf("hide who sees the page: %w", err)
		}
		hidden.Me = text
		hidden.Events = hidden.Events[:0]
		for _, kind := range inTurn {
			for _, event := range events {
				if event["kind"] != kind {
					continue
				}
				text, err := json.Marshal(h.event(kind, event))
				if err != nil {
					return nil, fmt.Errorf("hide the names of %s: %w", kind, err)
				}
				hidden.Events = append(hidden.Events, text)
			}
		}
	}
	return hidden, nil
}

func decode(text []byte, into *map[string]any) error {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber() // As they are written.
	if err := d.Decode(into); err != nil {
		return fmt.Errorf("read what the page shows: %w", err)
	}
	return nil
}

// hider knows which pseudonym stands for what.
type hider struct {
	aliases map[string]string // By class and name.
	numbers map[string]int    // How many a class has.
	known   map[string]string // Pseudonyms by names as they are in sentences, in lower case.
	lengths []int             // Those of known names, the longest first.
	hidden  map[string]bool   // All names, in lower case, as they are and without what no word has.
	traces  map[string]bool   // What a sentence may not have in it any more.
	asked   map[string]bool   // Whether words name something, as far as it was asked.
}

// clusters is the class of all clusters: one that both provides and consumes has one pseudonym.
const clusters = "cluster"

// alias returns the pseudonym of a name of a class, which begins with a word.
func (h *hider) alias(class, word, name string) string {
	key := class + "/" + name
	alias, is := h.aliases[key]
	if !is {
		h.numbers[word]++
		alias = word + "-" + strconv.Itoa(h.numbers[word])
		h.aliases[key] = alias
	}
	if class == words {
		return alias
	}
	h.hide(name)
	if !slices.Contains(unsaid, class) {
		h.learn(name, alias)
	}
	return alias
}

// isAlias reports whether a word is a pseudonym that stands for something.
func (h *hider) isAlias(text string) bool {
	word, number, _ := strings.Cut(text, "-")
	n, err := strconv.Atoi(number)
	return err == nil && 1 <= n && n <= h.numbers[word]
}

// words is the class of words that may name something, and hide nothing themselves.
const words = "word"

// unsaid are classes that no sentence of the broker names. Many of them are words, too.
var unsaid = []string{"region", "zone", "label", "kpi", "plan", "event", "id", "object"}

// hide takes down that nothing that is told may have a name in it.
func (h *hider) hide(name string) {
	for _, name := range []string{name, sheet.Plain(name)} {
		name = strings.ToLower(strings.TrimSpace(name))
		h.hidden[name] = true
		h.hidden[strings.Map(func(r rune) rune {
			if isWord(r) {
				return r
			}
			return -1
		}, name)] = true
	}
}

// longestWord is what is looked through for names, in bytes. It is more than any word has whose shape is known.
const longestWord = 64

// names reports whether a word is a name, or has a longer one in it. Of a word that is too long it is taken for granted. How long it takes
// does not depend on how many names there are: others may have made up as many words.
func (h *hider) names(word string) bool {
	is, known := h.asked[word]
	if known {
		return is
	}
	lower := strings.ToLower(word)
	is = h.hidden[lower] || len(lower) > longestWord
	for from := 0; !is && from < len(lower); from++ {
		for to := from + inWords; !is && to <= len(lower); to++ {
			is = h.hidden[lower[from:to]]
		}
	}
	h.asked[word] = is
	return is
}

// learn takes down that sentences can have a name.
func (h *hider) learn(name, alias string) {
	h.hide(name)
	for _, name := range []string{name, sheet.Plain(name)} {
		name = strings.ToLower(strings.TrimSpace(name))
		if _, is := h.known[name]; !is && name != "" {
			h.known[name] = alias
		}
	}
}

// Names that are at least this long may not be within another word, and the beginning of longer ones may not be left of a cut name.
const inWords, beginning = 4, 12

// index makes ready what is known for looking it up.
func (h *hider) index() {
	lengths := map[int]bool{}
	h.traces, h.asked = map[string]bool{}, map[string]bool{}
	for name := range h.known {
		lengths[len(name)] = true
	}
	for name := range h.hidden {
		if len(name) >= inWords {
			h.traces[name[:min(len(name), beginning)]] = true
		}
	}
	h.lengths = slices.Sorted(maps.Keys(lengths))
	slices.Reverse(h.lengths)
}

// sentence returns a sentence with pseudonyms for the names that it has; false if something may be left of one.
func (h *hider) sentence(text string) (string, bool) {
	text = sheet.Plain(text)
	lower := strings.ToLower(text)
	if len(lower) != len(text) {
		text = lower // What is elsewhere in other letters has no place here.
	}
	var out, rest strings.Builder
	before := ' '
	for at := 0; at < len(text); {
		r, size := utf8.DecodeRuneInString(lower[at:])
		if name := h.nameAt(lower[at:], before); name != "" {
			out.WriteString(h.known[name])
			rest.WriteByte('\n')
			at += len(name)
			before, _ = utf8.DecodeLastRuneInString(name)
			continue
		}
		out.WriteString(text[at : at+size])
		rest.WriteString(lower[at : at+size])
		before, at = r, at+size
	}
	left := rest.String()
	for at := range left {
		for length := inWords; length <= min(beginning, len(left)-at); length++ {
			if h.traces[left[at:at+length]] {
				return out.String(), false
			}
		}
	}
	return out.String(), !strings.HasSuffix(left, "...") // It was cut, perhaps within a name.
}

// nameAt returns the longest known name with which a text begins, and which is no part of a word; empty if there is none.
func (h *hider) nameAt(text string, before rune) string {
	first, _ := utf8.DecodeRuneInString(text)
	if isWord(before) && isWord(first) {
		return ""
	}
	for _, length := range h.lengths {
		if length > len(text) {
			continue
		}
		name := text[:length]
		if _, is := h.known[name]; !is {
			continue
		}
		after, _ := utf8.DecodeRuneInString(text[length:])
		last, _ := utf8.DecodeLastRuneInString(name)
		if length == len(text) || !isWord(after) || !isWord(last) {
			return name
		}
	}
	return ""
}

func isWord(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }

// A rule returns what may be told of a value, given the object that it is in; nil if nothing may.
type rule func(h *hider, value any, in map[string]any) any

// object is of an object with some fields. All others are left out.
func object(fields map[string]rule) rule {
	return func(h *hider, value any, _ map[string]any) any {
		in, is := value.(map[string]any)
		if !is {
			return nil
		}
		out := map[string]any{}
		for _, name := range sorted(in) {
			if of := fields[name]; of != nil {
				if told := of(h, in[name], in); told != nil {
					out[name] = told
				}
			}
		}
		return out
	}
}

func sorted(of map[string]any) []string {
	names := make([]string, 0, len(of))
	for name := range of {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// all is of a list.
func all(of rule) rule {
	return func(h *hider, value any, in map[string]any) any {
		list, is := value.([]any)
		if !is {
			return nil
		}
		out := make([]any, 0, len(list))
		for _, one := range list {
			if told := of(h, one, in); told != nil {
				out = append(out, told)
			}
		}
		return out
	}
}

// by is of an object whose fields are names, too.
func by(name, of rule) rule {
	return func(h *hider, value any, _ map[string]any) any {
		in, is := value.(map[string]any)
		if !is {
			return nil
		}
		out := map[string]any{}
		for _, key := range sorted(in) {
			key, told := name(h, key, in), of(h, in[key], in)
			if key, is := key.(string); is && told != nil {
				out[key] = told
			}
		}
		return out
	}
}

// number is of what is a number, or true or false.
func number(_ *hider, value any, _ map[string]any) any {
	switch value.(type) {
	case json.Number, bool:
		return value
	}
	return nil
}

// shaped is of texts that look so, and have no names.
func shaped(as string) rule {
	pattern := regexp.MustCompile(as)
	return func(_ *hider, value any, _ map[string]any) any {
		if text, is := value.(string); is && pattern.MatchString(text) {
			return text
		}
		return nil
	}
}

// unnamed is of texts that others may have chosen: they are told if nothing is called so.
func unnamed(of rule) rule {
	return func(h *hider, value any, in map[string]any) any {
		if text, is := of(h, value, in).(string); is && !h.names(text) {
			return text
		}
		return nil
	}
}

// either is of what one rule tells, or else another.
func either(one, other rule) rule {
	return func(h *hider, value any, in map[string]any) any {
		if told := one(h, value, in); told != nil {
			return told
		}
		return other(h, value, in)
	}
}

// oneWord is how words look that programs use, such as reasons.
var oneWord = regexp.MustCompile(`^[A-Z][A-Za-z0-9]{0,39}$`)

// word is of words that others may have chosen: ours, and those that nothing is called, are told.
func word(h *hider, value any, _ map[string]any) any {
	text, is := value.(string)
	switch {
	case !is || text == "":
		return nil
	case slices.Contains(ours, text), oneWord.MatchString(text) && !h.names(text):
		return text
	}
	return h.alias(words, words, text)
}

// moment is of times.
func moment(_ *hider, value any, _ map[string]any) any {
	if text, is := value.(string); is {
		if _, err := time.Parse(time.RFC3339, text); err == nil {
			return text
		}
	}
	return nil
}

// always stands for whatever is there.
func always(text string) rule {
	return func(*hider, any, map[string]any) any { return text }
}

// name is of names of a class.
func name(class string) rule {
	return func(h *hider, value any, _ map[string]any) any {
		if text, is := value.(string); is && text != "" {
			return h.alias(class, class, text)
		}
		return nil
	}
}

// id is of IDs of clusters that are seen as what the word says, unless they were seen as something else before.
func id(word string) rule {
	return func(h *hider, value any, _ map[string]any) any {
		if text, is := value.(string); is && text != "" {
			return h.alias(clusters, word, text)
		}
		return nil
	}
}

// called is of the name of what the same object has the ID of.
func called(of rule) rule {
	return func(h *hider, value any, in map[string]any) any {
		text, is := value.(string)
		alias, known := of(h, in["id"], in).(string)
		if !is || text == "" || !known {
			return nil
		}
		h.learn(text, alias)
		return alias
	}
}

// with returns the fields of a cluster, and others.
func with(word string, others map[string]rule) rule {
	fields := map[string]rule{"id": id(word), "name": called(id(word))}
	maps.Copy(fields, others)
	return object(fields)
}

// said is of sentences of the broker, with names that are known.
func said(h *hider, value any, _ map[string]any) any {
	text, is := value.(string)
	if !is {
		return nil
	}
	told, ok := h.sentence(text)
	if !ok {
		return leftOut
	}
	return told
}

// chosenShape is of what names providers, the first of them, as policies do.
var chosenShape = regexp.MustCompile(`^(?:none|([a-z]+-[0-9]+)(?:, ([a-z]+-[0-9]+))?(?: and [0-9]+ more)?)$`)

// chosen is of which providers a policy has chosen. It may be older than what is known of those, and name others.
func chosen(h *hider, value any, in map[string]any) any {
	told, _ := said(h, value, in).(string)
	parts := chosenShape.FindStringSubmatch(told)
	if parts == nil || slices.ContainsFunc(parts[1:], func(name string) bool { return name != "" && !h.isAlias(name) }) {
		return ""
	}
	return told
}

var (
	// findingShape is of a finding with pseudonyms that says of what it is, what somebody has written into a condition, and the reason.
	findingShape = regexp.MustCompile(`^((?:Provider|Consumer|Policy) [a-z]+-[0-9]+)(?: \([a-z]+-[0-9]+\))?: .*\(([A-Z][A-Za-z0-9]*)\)$`)
	// ofCondition is of every finding that ends with the reason of a condition.
	ofCondition = regexp.MustCompile(`\([A-Za-z][A-Za-z0-9_,:]*\)$`)
	// naming is of where findings, and the commands in them, name things.
	naming = regexp.MustCompile(
		`(?:^(?:Provider|Consumer|Policy)|\.brokering\.liqo\.io|(?:status|info) peer|explain|gateway to| -n) +([^\s:;,]+)`)
)

// namesNobody are the words at the places of names that are no names.
var namesNobody = []string{"NAME", "it", "liqo", "liqo-broker", "liqo-broker-agent"}

// found is of what a finding says and what to do about it. Of the objects that it can name, queries and slices are not known, nor others
// that may not be seen, or have gone.
func found(h *hider, value any, _ map[string]any) any {
	text, is := value.(string)
	if !is || strings.HasPrefix(text, "Query ") || strings.Contains(text, "ResourceSlice") || strings.Contains(text, "providerquery") {
		return leftOut
	}
	told, ok := h.sentence(text)
	for _, named := range naming.FindAllStringSubmatch(told, -1) {
		if name := strings.TrimSuffix(named[1], "."); !h.isAlias(name) && !slices.Contains(namesNobody, name) {
			return leftOut
		}
	}
	if parts := findingShape.FindStringSubmatch(told); parts != nil {
		return fmt.Sprintf("%s (%s)", parts[1], word(h, parts[2], nil))
	}
	if !ok || ofCondition.MatchString(text) {
		return leftOut
	}
	return told
}

// leftOut stands for what had to be left out.
const leftOut = "What this says is left out, with the names in it."

// event hides the names of an event.
func (h *hider) event(kind string, event map[string]any) map[string]any {
	of := things[kind]
	out := map[string]any{"kind": kind}
	if value, is := event[of.field]; is {
		out[of.field] = of.rule(h, value, event)
	}
	key, _ := event["key"].(string)
	parts := strings.SplitN(key, "/", len(of.key))
	ofParts := of.key[len(of.key)-len(parts):] // A pod of the cluster itself has no consumer before it.
	for i, part := range parts {
		// What is empty stays so.
		parts[i], _ = ofParts[i](h, part, event).(string)
	}
	out["key"] = strings.Join(parts, "/")
	return out
}
