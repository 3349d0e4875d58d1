// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package offer

import (
	"fmt"
	"reflect"
	"runtime"
	"strings"
	"testing"
	"unsafe"
)

// TestIntern holds that what is made one was equal, down to how a quantity is written, and that nothing of an offer is left out.
func TestIntern(t *testing.T) {
	var in Interner
	var offers []Offer
	for _, change := range [][2]string{
		{"", ""},
		{"", ""},
		{`"8Gi"`, `"8589934592"`},
		{`"region": "eu-north"`, `"region": ""`},
		{`"name": "Cores in the north"`, `"name": "` + strings.Repeat("n", 63) + `"`},
	} {
		offers = append(offers, parse(t, change[0], change[1]))
	}
	for range 2 {
		for i, o := range offers {
			got := in.Intern(o)
			if !reflect.DeepEqual(got, o) || got.Fingerprint() != o.Fingerprint() {
				t.Errorf("offer %d has become %+v, it was %+v", i, got, o)
			}
		}
	}
	first, second := in.Intern(offers[0]), in.Intern(offers[1])
	for i := range first.Plans {
		for name, maps := range map[string][2]any{
			"resources":   {first.Plans[i].Resources, second.Plans[i].Resources},
			"unit prices": {first.Plans[i].UnitPrices, second.Plans[i].UnitPrices},
			"properties":  {first.Properties, second.Properties},
			"labels":      {first.Labels, second.Labels},
		} {
			if reflect.ValueOf(maps[0]).Pointer() != reflect.ValueOf(maps[1]).Pointer() {
				t.Errorf("plan %d: the %s are there twice", i, name)
			}
		}
	}
	if unsafe.StringData(first.Region) != unsafe.StringData(second.Region) {
		t.Error("the region is there twice")
	}
}

// TestInternIsBounded has a hostile seller use other words in each offer, and long ones.
func TestInternIsBounded(t *testing.T) {
	var in Interner
	o := parse(t, "", "")
	for i := range 1 << 15 {
		o.Region, o.Properties = fmt.Sprint("region-", i), map[string]string{"number": fmt.Sprint(i)}
		o.Description = strings.Repeat("x", maxInternedBytes) + o.Region
		in.Intern(o)
		if in.bytes > maxPool {
			t.Fatalf("%d bytes are kept", in.bytes)
		}
	}
	for key := range in.pool {
		if len(key) > maxInternedBytes {
			t.Fatalf("a key of %d bytes is kept", len(key))
		}
	}
}

// TestHold counts what offers share and what they have for themselves, against the heap: equal ones, some that have nothing alike, and more
// than can be shared. Nothing is kept for those that are released.
func TestHold(t *testing.T) {
	large := func(i int) Offer {
		o := parse(t, "", "")
		o.ID, o.Plans = fmt.Sprint("o", i), nil
		for p := range 24 {
			of := Resources{}
			for r := range 29 {
				of[fmt.Sprintf("a%d/r%d", i, r)] = newQuantity(int64(i*1000+p*30+r+1), false)
			}
			o.Plans = append(o.Plans, Plan{ID: fmt.Sprintf("p%d", p), Resources: of, Price: Price{Currency: "EUR", Period: Hour}})
		}
		return o
	}
	for name, tc := range map[string]struct {
		many  int
		offer func(int) Offer
		most  int // Bytes for each offer.
	}{
		"Equal": {many: 4000, most: 1500, offer: func(i int) Offer { return parse(t, `"name": "Cores`, fmt.Sprintf(`"name": "%d Cores`, i)) }},
		"Large": {many: 400, most: 120 << 10, offer: large},
		"LongTexts": {many: 1000, most: 16 << 10, offer: func(i int) Offer {
			o := parse(t, "", "")
			o.Description = strings.Repeat(fmt.Sprint(i%10), 8000)
			return o
		}},
		"ManyWithin": {
			many: 4000, most: 6 << 10, offer: func(i int) Offer {
				o := parse(t, "", "")
				o.Labels = map[string]string{"n": fmt.Sprint(i)}
				return o
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			var in Interner
			kept, held := make([]Offer, tc.many), make([]Holding, tc.many)
			before, size := heap(), 0
			for i := range tc.many {
				kept[i], held[i] = in.Hold(tc.offer(i))
				size += held[i].Size()
			}
			took := heap() - before
			if counted := size + in.bytes; counted < took*9/10 || counted > 3*took+1<<20 || size/tc.many > tc.most || in.bytes > maxPool {
				t.Errorf("%d offers: %d bytes are counted, %d of them shared, and the heap has %d", tc.many, counted, in.bytes, took)
			}
			runtime.KeepAlive(kept)
			for _, h := range held {
				in.Release(h)
			}
			if len(in.pool) != 0 || in.bytes != 0 {
				t.Errorf("%d values of %d bytes are kept for nobody", len(in.pool), in.bytes)
			}
		})
	}
}

// heap is how many bytes are in use.
func heap() int {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return int(m.HeapAlloc)
}

// BenchmarkIntern prints how much of a heap an offer of a catalog takes as it is read, and interned.
func BenchmarkIntern(b *testing.B) {
	for name, intern := range map[string]func(*Interner, Offer) Offer{
		"AsRead":   func(_ *Interner, o Offer) Offer { return o },
		"Interned": func(in *Interner, o Offer) Offer { return in.Intern(o) },
	} {
		b.Run(name, func(b *testing.B) {
			const many = 2000
			var in Interner
			var before, after runtime.MemStats
			for b.Loop() {
				b.StopTimer()
				kept := make([]Offer, 0, many)
				runtime.GC()
				runtime.ReadMemStats(&before)
				b.StartTimer()
				for i := range many {
					kept = append(kept, intern(&in, parse(b, `"region": "eu-north"`, fmt.Sprintf(`"region": "region-%d"`, i%20))))
				}
				b.StopTimer()
				runtime.GC()
				runtime.ReadMemStats(&after)
				b.ReportMetric(float64(after.HeapAlloc-before.HeapAlloc)/many, "bytes/offer")
				runtime.KeepAlive(kept)
				b.StartTimer()
			}
		})
	}
}
