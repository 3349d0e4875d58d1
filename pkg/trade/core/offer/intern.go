// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package offer

import (
	"encoding/binary"
	"maps"
	"slices"
)

const (
	// maxInternedBytes bounds how long the key of one value is that an Interner keeps, and maxPool what it keeps in all, in bytes.
	maxInternedBytes, maxPool = 512, 4 << 20
	// sharedBytes is about what an Interner takes besides the keys and the values, for each value.
	sharedBytes = 160
)

// Interner makes equal parts of offers one part. Those of a catalog name the same resources, regions, labels and amounts, and most of an
// offer's memory are the maps of its plans. What it keeps is bounded in bytes. The zero Interner is ready. It must not be used
// concurrently.
//
// Use it either by Intern, or by Hold and Release.
type Interner struct {
	pool map[string]*shared
	// bytes is about how much memory the pool takes.
	bytes int
	key   []byte

	// While an offer is interned: what it holds, or nothing if it holds nothing, and the bytes that it does not share.
	holds bool
	held  []*shared
	own   int
}

// shared is a value that offers share.
type shared struct {
	key   string
	value any
	// refs is how many offers hold it.
	refs, bytes int
}

// Holding is what of an Interner an offer holds, until it is released.
type Holding struct {
	shared []*shared
	own    int
}

// Size returns about how many bytes of memory the offer takes that nobody else shares.
func (h Holding) Size() int { return h.own + 8*len(h.shared) }

// The kinds of values, which begin their keys.
const (
	kindText byte = iota
	kindTexts
	kindResources
	kindPrices
	kindList
)

// one returns the value that says the same as another one, by the interner's key, which is that from now on if there is none and there is
// room. Bytes is how much memory it takes.
func one[T any](in *Interner, value T, bytes int) T {
	if len(in.key) > maxInternedBytes {
		in.own += bytes
		return value
	}
	s := in.pool[string(in.key)]
	if s == nil {
		need := len(in.key) + bytes + sharedBytes
		if in.bytes+need > maxPool {
			if in.holds {
				in.own += bytes
				return value
			}
			in.pool, in.bytes = nil, 0
		}
		if in.pool == nil {
			in.pool = map[string]*shared{}
		}
		s = &shared{key: string(in.key), value: value, bytes: need}
		in.pool[s.key] = s
		in.bytes += need
	}
	if in.holds && !slices.Contains(in.held, s) {
		s.refs++
		in.held = append(in.held, s)
	}
	same, _ := s.value.(T)
	return same
}

// begin begins the key of a value.
func (in *Interner) begin(kind byte) { in.key = append(in.key[:0], kind) }

// Hold returns an equal offer that shares what it can with others that are held, and what it holds for that, which is to be released when
// the offer is not used any more. When there is no room for more that is shared, the offer has it for itself.
func (in *Interner) Hold(o Offer) (Offer, Holding) {
	in.holds, in.held, in.own = true, nil, 0
	o = in.intern(o)
	h := Holding{shared: slices.Clip(in.held), own: in.own}
	in.holds, in.held = false, nil
	return o, h
}

// Release takes back what an offer held. It must be called once for each Hold.
func (in *Interner) Release(h Holding) {
	for _, s := range h.shared {
		if s.refs--; s.refs == 0 {
			delete(in.pool, s.key)
			in.bytes -= s.bytes
		}
	}
}

// Intern returns an equal offer that shares what it can with those that were interned before. What is kept for that begins again with
// nothing when it is too much: what was made one stays so.
func (in *Interner) Intern(o Offer) Offer { return in.intern(o) }

// About how many bytes parts of an offer take besides what they refer to.
const (
	planBytes, kpiBytes, rangeBytes, numberBytes = 176, 128, 32, 8
)

func (in *Interner) intern(o Offer) Offer {
	for _, text := range []*string{&o.Party, &o.ID, (*string)(&o.Kind), &o.Name, &o.Description, &o.Type, &o.Region, &o.Zone} {
		*text = in.text(*text)
	}
	o.Architectures = in.list(o.Architectures)
	o.Properties, o.Labels = in.texted(o.Properties), in.texted(o.Labels)
	o.Plans, o.KPIs = slices.Clone(o.Plans), slices.Clone(o.KPIs)
	in.own += planBytes*len(o.Plans) + kpiBytes*len(o.KPIs)
	for i := range o.Plans {
		in.plan(&o.Plans[i])
	}
	for i := range o.KPIs {
		kpi := &o.KPIs[i]
		kpi.Name, kpi.Unit, kpi.MeasuredBy = in.text(kpi.Name), in.text(kpi.Unit), in.text(kpi.MeasuredBy)
	}
	return o
}

func (in *Interner) plan(p *Plan) {
	for _, text := range []*string{&p.ID, &p.Name, &p.Price.Currency, (*string)(&p.Price.Period)} {
		*text = in.text(*text)
	}
	if p.Stock != nil {
		in.own += numberBytes
	}
	p.Resources = in.amounts(p.Resources)
	if p.Range != nil {
		p.Range = &Range{Min: in.amounts(p.Range.Min), Max: in.amounts(p.Range.Max), Step: in.amounts(p.Range.Step)}
		in.own += rangeBytes
	}
	p.UnitPrices = share(in, kindPrices, p.UnitPrices, func(key []byte, unit UnitPrice) []byte {
		return unit.Per.appendKey(binary.AppendVarint(key, unit.Amount.nano))
	}, func(UnitPrice) int { return 0 })
}

func (in *Interner) amounts(r Resources) Resources {
	return share(in, kindResources, r, func(key []byte, q Quantity) []byte { return q.appendKey(key) }, func(Quantity) int { return 0 })
}

func (in *Interner) texted(texts map[string]string) map[string]string {
	return share(in, kindTexts, texts, appendText, textBytes)
}

func (in *Interner) text(text string) string {
	in.begin(kindText)
	in.key = append(in.key, text...)
	return one(in, text, textBytes(text))
}

func (in *Interner) list(list []string) []string {
	if list == nil {
		return nil
	}
	in.begin(kindList)
	bytes := 16 * len(list)
	for _, text := range list {
		in.key = appendText(in.key, text)
		bytes += textBytes(text)
	}
	return one(in, slices.Clip(list), bytes)
}

// share returns the map that is equal to another one; add appends a value to a key, and refers is how many bytes a value refers to.
func share[M ~map[string]V, V any](in *Interner, kind byte, m M, add func(key []byte, value V) []byte, refers func(V) int) M {
	if m == nil {
		return nil
	}
	in.begin(kind)
	bytes := mapBytes(len(m))
	for _, name := range slices.Sorted(maps.Keys(m)) {
		in.key = add(appendText(in.key, name), m[name])
		bytes += textBytes(name) + refers(m[name])
	}
	return one(in, m, bytes)
}

// textBytes is about how much memory a text takes that was read: texts are allocated in steps of 16 bytes, and more when they are long.
func textBytes(text string) int { return len(text) + len(text)/8 + 15 }

// mapBytes is about how much memory a map takes besides what its keys and values refer to: it has eight entries, or twice as many as before
// whenever seven eighths are in use, and each takes up to 40 bytes.
func mapBytes(entries int) int {
	room := 8
	for room > 8 && entries > room/8*7 || entries > room {
		room *= 2
	}
	return 64 + 41*room
}

// appendText appends a text so that none can be taken for two.
func appendText(key []byte, text string) []byte {
	return append(binary.AppendUvarint(key, uint64(len(text))), text...)
}

// appendKey appends all of a quantity, also how it is written.
func (q Quantity) appendKey(key []byte) []byte {
	if q.binary {
		return append(binary.AppendVarint(key, q.milli), 1)
	}
	return append(binary.AppendVarint(key, q.milli), 0)
}
