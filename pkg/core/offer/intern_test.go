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
	for i := range 2 * maxInterned {
		o.Region, o.Properties = fmt.Sprint("region-", i), map[string]string{"number": fmt.Sprint(i)}
		o.Description = strings.Repeat("x", maxInternedBytes) + o.Region
		in.Intern(o)
		if len(in.texts) > maxInterned || len(in.maps) > maxInterned {
			t.Fatalf("%d texts and %d maps are kept", len(in.texts), len(in.maps))
		}
	}
	for text := range in.texts {
		if len(text) > maxInternedBytes {
			t.Fatalf("a text of %d bytes is kept", len(text))
		}
	}
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
