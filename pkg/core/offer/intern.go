// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package offer

import (
	"encoding/binary"
	"maps"
	"slices"
)

const (
	// maxInterned bounds how many values of a kind an Interner keeps, and maxInternedBytes how long one is.
	maxInterned, maxInternedBytes = 1 << 14, 512
)

// Interner makes equal parts of offers one part. Those of a catalog name the same resources, regions, labels and amounts, and most of an
// offer's memory are the maps of its plans. It keeps a bounded number of values, and begins again with none when it has as many: what
// it has made one stays so. The zero Interner is ready. It must not be used concurrently.
type Interner struct {
	texts     interned[string]
	maps      interned[map[string]string]
	resources interned[Resources]
	prices    interned[map[string]UnitPrice]
	lists     interned[[]string]
	key       []byte
}

// interned are values by what they say.
type interned[T any] map[string]T

// one returns the value that says the same as another one, which is that from now on if there is none.
func (all *interned[T]) one(key []byte, value T) T {
	if len(key) > maxInternedBytes {
		return value
	}
	if same, known := (*all)[string(key)]; known {
		return same
	}
	if *all == nil || len(*all) >= maxInterned {
		*all = make(interned[T])
	}
	(*all)[string(key)] = value
	return value
}

// Intern returns an equal offer that shares what it can with those that were interned before.
func (in *Interner) Intern(o Offer) Offer {
	for _, text := range []*string{&o.Party, &o.ID, (*string)(&o.Kind), &o.Name, &o.Description, &o.Type, &o.Region, &o.Zone} {
		*text = in.text(*text)
	}
	o.Architectures = in.list(o.Architectures)
	o.Properties, o.Labels = in.texted(o.Properties), in.texted(o.Labels)
	o.Plans, o.KPIs = slices.Clone(o.Plans), slices.Clone(o.KPIs)
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
	p.Resources = in.amounts(p.Resources)
	if p.Range != nil {
		p.Range = &Range{Min: in.amounts(p.Range.Min), Max: in.amounts(p.Range.Max), Step: in.amounts(p.Range.Step)}
	}
	p.UnitPrices = share(in, &in.prices, p.UnitPrices, func(key []byte, unit UnitPrice) []byte {
		return unit.Per.appendKey(binary.AppendVarint(key, unit.Amount.nano))
	})
}

func (in *Interner) amounts(r Resources) Resources {
	return share(in, &in.resources, r, func(key []byte, q Quantity) []byte { return q.appendKey(key) })
}

func (in *Interner) texted(texts map[string]string) map[string]string {
	return share(in, &in.maps, texts, appendText)
}

func (in *Interner) text(text string) string {
	in.key = append(in.key[:0], text...)
	return in.texts.one(in.key, text)
}

func (in *Interner) list(list []string) []string {
	if list == nil {
		return nil
	}
	in.key = in.key[:0]
	for _, text := range list {
		in.key = appendText(in.key, text)
	}
	return in.lists.one(in.key, slices.Clip(list))
}

// share returns the map that is equal to another one; add appends a value to a key.
func share[M ~map[string]V, V any](in *Interner, all *interned[M], m M, add func(key []byte, value V) []byte) M {
	if m == nil {
		return nil
	}
	in.key = in.key[:0]
	for _, name := range slices.Sorted(maps.Keys(m)) {
		in.key = add(appendText(in.key, name), m[name])
	}
	return all.one(in.key, m)
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
