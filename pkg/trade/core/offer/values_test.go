// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package offer

import (
	"encoding/json"
	"math/big"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

func quantity(tb testing.TB, text string) Quantity {
	tb.Helper()
	q, err := ParseQuantity(text)
	if err != nil {
		tb.Fatalf("ParseQuantity(%q): %v", text, err)
	}
	return q
}

func money(tb testing.TB, text string) Amount {
	tb.Helper()
	a, err := ParseAmount(text)
	if err != nil {
		tb.Fatalf("ParseAmount(%q): %v", text, err)
	}
	return a
}

// list returns resources from names and quantities in turn.
func list(tb testing.TB, pairs ...string) Resources {
	tb.Helper()
	of := Resources{}
	for i := 0; i < len(pairs); i += 2 {
		of[pairs[i]] = quantity(tb, pairs[i+1])
	}
	return of
}

func TestParseQuantity(t *testing.T) {
	cases := map[string]struct {
		reason    string
		want      int64
		canonical string
		err       string
	}{
		"8":      {reason: "A whole number is of the unit.", want: 8000, canonical: "8"},
		"500m":   {reason: "m is a thousandth.", want: 500, canonical: "500m"},
		"1500m":  {reason: "More than a unit stays in thousandths.", want: 1500, canonical: "1500m"},
		"2000m":  {reason: "What is whole is shown so.", want: 2000, canonical: "2"},
		"0.5":    {reason: "A point is exact.", want: 500, canonical: "500m"},
		"0.001":  {reason: "This is the least.", want: 1, canonical: "1m"},
		"16Gi":   {reason: "Binary suffixes are powers of 1024.", want: 16 << 30 * 1000, canonical: "16Gi"},
		"1024Mi": {reason: "The largest suffix counts.", want: 1 << 30 * 1000, canonical: "1Gi"},
		"1.5Gi":  {reason: "A part of a suffix is a whole number of the next.", want: 3 << 29 * 1000, canonical: "1536Mi"},
		"1.953125Ki": {
			reason: "What is no multiple of 1024 is decimal, so that it is read as it is written.", want: 2000_000, canonical: "2k",
		},
		"10k":                       {reason: "Decimal suffixes are powers of 1000.", want: 10_000_000, canonical: "10k"},
		"1500":                      {reason: "No suffix would leave a whole number.", want: 1_500_000, canonical: "1500"},
		"1Pi":                       {reason: "This is the most.", want: 1 << 50 * 1000, canonical: "1Pi"},
		"1125899906842625":          {reason: "This is one more than the most.", err: "too large"},
		"1125899906842624.001":      {reason: "So is a thousandth more.", err: "more than 18 digits"},
		"2Pi":                       {reason: "Nobody has as much.", err: "too large"},
		"999999999999999999Pi":      {reason: "Nothing wraps around.", err: "too large"},
		"0":                         {reason: "Nothing is not a quantity.", err: "not positive"},
		"0m":                        {reason: "Neither is nothing with a suffix.", err: "not positive"},
		"-1":                        {reason: "There is no sign.", err: "not a decimal number"},
		"+1":                        {reason: "There is no sign.", err: "not a decimal number"},
		"8GB":                       {reason: "Bytes are not a suffix.", err: "not a"},
		"8gb":                       {reason: "Case counts.", err: "not a"},
		"8K":                        {reason: "A thousand is a small k.", err: "not a quantity"},
		"8KiKi":                     {reason: "There is one suffix.", err: "not a quantity"},
		"8iM":                       {reason: "A suffix has an order.", err: "not a quantity"},
		"Gi":                        {reason: "A suffix needs a number.", err: "not a decimal number"},
		"":                          {reason: "Nothing is no number.", err: "not a decimal number"},
		" 8":                        {reason: "Space is not skipped.", err: "not a decimal number"},
		"8 Gi":                      {reason: "Space is not skipped.", err: "not a decimal number"},
		"1e3":                       {reason: "There are no exponents.", err: "not a decimal number"},
		"1e1.5":                     {reason: "There are no exponents, least of all such.", err: "not a decimal number"},
		"1e999999999":               {reason: "Kubernetes computes with it for minutes.", err: "not a decimal number"},
		"1E":                        {reason: "An exbibyte is too much.", err: "not a decimal number"},
		"NaN":                       {reason: "It is no number.", err: "not a decimal number"},
		"Inf":                       {reason: "It is no number.", err: "not a decimal number"},
		"0x10":                      {reason: "Numbers are decimal.", err: "not a decimal number"},
		"010":                       {reason: "Somebody could take it for eight.", err: "not a decimal number"},
		"1_000":                     {reason: "Only digits are digits.", err: "not a decimal number"},
		"1,5":                       {reason: "A comma is not a point.", err: "not a decimal number"},
		"1.":                        {reason: "Digits follow a point.", err: "not a decimal number"},
		".5":                        {reason: "Digits precede a point.", err: "not a decimal number"},
		"1.2.3":                     {reason: "There is one point.", err: "not a decimal number"},
		"٣":                         {reason: "Digits are those of ASCII.", err: "not a decimal number"},
		"0.0005":                    {reason: "Nothing is rounded.", err: "too many decimal places"},
		"0.5m":                      {reason: "Nothing is rounded.", err: "too many decimal places"},
		"1.00000000000000000000":    {reason: "Numbers have 18 digits.", err: "more than 18 digits"},
		strings.Repeat("1", 33):     {reason: "The text is bounded.", err: "longer than 32"},
		strings.Repeat("k", 10<<10): {reason: "The text is bounded before it is looked at.", err: "longer than 32"},
	}
	for text, tc := range cases {
		t.Run(text[:min(len(text), 40)], func(t *testing.T) {
			got, err := ParseQuantity(text)
			if !matches(err, tc.err) || got.Milli() != tc.want {
				t.Fatalf("%s\nParseQuantity() = %d thousandths, %v, want %d, error %q", tc.reason, got.Milli(), err, tc.want, tc.err)
			}
			if err == nil && got.String() != tc.canonical {
				t.Errorf("%s\nString() = %q, want %q", tc.reason, got.String(), tc.canonical)
			}
			if err != nil && len(err.Error()) > 200 {
				t.Errorf("the error repeats all of the text: %d bytes", len(err.Error()))
			}
		})
	}
}

// matches reports whether an error has one of the texts, which are separated by |, or is nil if there is none.
func matches(err error, texts string) bool {
	if texts == "" || err == nil {
		return texts == "" && err == nil
	}
	for text := range strings.SplitSeq(texts, "|") {
		if strings.Contains(err.Error(), text) {
			return true
		}
	}
	return false
}

func TestQuantitiesOfKubernetes(t *testing.T) {
	cases := map[string]struct {
		reason string
		given  resource.Quantity
		want   string
	}{
		"Cores":        {reason: "Thousandths stay.", given: resource.MustParse("1500m"), want: "cpu 1500m"},
		"Nano":         {reason: "What is finer is rounded down.", given: resource.MustParse("1999999999n"), want: "cpu 1999m"},
		"TooFine":      {reason: "Less than a thousandth is nothing.", given: resource.MustParse("1n"), want: ""},
		"Memory":       {reason: "Binary stays binary.", given: resource.MustParse("16Gi"), want: "cpu 16Gi"},
		"Exponent":     {reason: "Kubernetes' exponents are numbers.", given: resource.MustParse("1e3"), want: "cpu 1k"},
		"Zero":         {reason: "Nothing is left out.", given: resource.MustParse("0"), want: ""},
		"Negative":     {reason: "So is less than nothing.", given: resource.MustParse("-3"), want: ""},
		"NegativePart": {reason: "So is a part less than nothing.", given: resource.MustParse("-3m"), want: ""},
		"Huge":         {reason: "It is as much as possible.", given: resource.MustParse("8Ei"), want: "cpu 1Pi"},
		"MoreThanAll": {reason: "It is as much as possible.", given: func() resource.Quantity {
			q := resource.MustParse("8Ei")
			q.Add(resource.MustParse("8Ei"))
			return q
		}(), want: "cpu 1Pi"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := FromList(corev1.ResourceList{corev1.ResourceCPU: tc.given})
			if got.String() != tc.want {
				t.Fatalf("%s\nFromList() = %q, want %q", tc.reason, got, tc.want)
			}
			if again := FromList(got.List()); !again.Equal(got) || again.String() != got.String() {
				t.Errorf("%q became %q on the way through Kubernetes", got, again)
			}
		})
	}
}

func TestResourcesCover(t *testing.T) {
	has := list(t, "cpu", "4", "memory", "8Gi")
	cases := map[string]struct {
		reason string
		other  Resources
		covers bool
		equal  bool
	}{
		"Same": {
			reason: "It is the same however it is written.", other: list(t, "cpu", "4000m", "memory", "8192Mi"), covers: true, equal: true,
		},
		"Less":    {reason: "Less is covered.", other: list(t, "cpu", "3"), covers: true},
		"More":    {reason: "More is not.", other: list(t, "cpu", "4001m")},
		"Other":   {reason: "What is missing is nothing.", other: list(t, "nvidia.com/gpu", "1")},
		"Nothing": {reason: "Nothing is always covered.", covers: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := has.Covers(tc.other); got != tc.covers {
				t.Errorf("%s\nCovers() = %t, want %t", tc.reason, got, tc.covers)
			}
			if got := has.Equal(tc.other); got != tc.equal {
				t.Errorf("%s\nEqual() = %t, want %t", tc.reason, got, tc.equal)
			}
		})
	}
}

func TestParseAmount(t *testing.T) {
	cases := map[string]struct {
		reason    string
		canonical string
		err       string
	}{
		"0":                       {reason: "Something can be free.", canonical: "0"},
		"0.10":                    {reason: "Zeros at the end are not shown.", canonical: "0.1"},
		"0.1":                     {reason: "It is a tenth, which no float is.", canonical: "0.1"},
		"12.000000001":            {reason: "A billionth counts.", canonical: "12.000000001"},
		"999999999.999999999":     {reason: "This is the most.", canonical: "999999999.999999999"},
		"1000000000":              {reason: "This is more than the most.", err: "too large"},
		"0.0000000001":            {reason: "Nothing is rounded.", err: "too many decimal places"},
		"9999999999.999999999":    {reason: "There are 18 digits.", err: "more than 18 digits"},
		"-1":                      {reason: "Nobody is paid for buying.", err: "not a decimal number"},
		"1e3":                     {reason: "There are no exponents.", err: "not a decimal number"},
		"1 EUR":                   {reason: "The currency is elsewhere.", err: "not a decimal number"},
		"":                        {reason: "Nothing is no number.", err: "not a decimal number"},
		"NaN":                     {reason: "It is no number.", err: "not a decimal number"},
		strings.Repeat("1", 1000): {reason: "The text is bounded.", err: "longer than 32"},
	}
	for text, tc := range cases {
		t.Run(text[:min(len(text), 40)], func(t *testing.T) {
			got, err := ParseAmount(text)
			if !matches(err, tc.err) || err == nil && got.String() != tc.canonical {
				t.Errorf("%s\nParseAmount() = %s, %v, want %q, error %q", tc.reason, got, err, tc.canonical, tc.err)
			}
		})
	}
}

func TestPrice(t *testing.T) {
	price := func(amount string, period Period) Price {
		return Price{Amount: money(t, amount), Currency: "EUR", Period: period}
	}
	cases := map[string]struct {
		reason  string
		a, b    Price
		perHour *big.Rat
		want    int
	}{
		"Same":   {reason: "It costs what it says.", a: price("0.1", Hour), b: price("0.1", Hour), perHour: big.NewRat(1, 10)},
		"Minute": {reason: "An hour has 60 minutes.", a: price("0.001", Minute), b: price("0.06", Hour), perHour: big.NewRat(6, 100)},
		"Day":    {reason: "A third is exact.", a: price("8", Day), b: price("0.333333333", Hour), perHour: big.NewRat(1, 3), want: 1},
		"Week":   {reason: "A week has 168 hours.", a: price("168", Week), b: price("1", Hour), perHour: big.NewRat(1, 1)},
		"Month":  {reason: "A month has 730 hours.", a: price("73", Month), b: price("0.1", Hour), perHour: big.NewRat(1, 10)},
		"Year":   {reason: "A year has 8760 hours, as twelve months.", a: price("12", Year), b: price("1", Month), perHour: big.NewRat(1, 730)},
		"Huge": {
			reason: "Nothing wraps around.", a: price("999999999.999999998", Minute), b: price("999999999.999999999", Minute),
			perHour: new(big.Rat).Mul(big.NewRat(60, 1), big.NewRat(999999999999999998, nano)), want: -1,
		},
		"FarApart": {
			reason: "The product of the larger is 2^64 and little more.", a: price("35096.545041306", Minute), b: price("1", Year),
			perHour: new(big.Rat).Mul(big.NewRat(60, 1), big.NewRat(35096545041306, nano)), want: 1,
		},
		"None": {
			reason: "What has no period costs nothing an hour.", a: Price{Amount: money(t, "1")}, b: price("0", Hour), perHour: new(big.Rat),
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := tc.a.PerHour(); got.Cmp(tc.perHour) != 0 {
				t.Errorf("%s\nPerHour() = %s, want %s", tc.reason, got, tc.perHour)
			}
			if tc.a.Period == "" {
				return
			}
			if got := tc.a.Compare(tc.b); got != tc.want {
				t.Errorf("%s\nCompare() = %d, want %d", tc.reason, got, tc.want)
			}
			if got := tc.b.Compare(tc.a); got != -tc.want {
				t.Errorf("%s\nCompare() the other way = %d, want %d", tc.reason, got, -tc.want)
			}
		})
	}
}

func TestParseDuration(t *testing.T) {
	cases := map[string]struct {
		reason    string
		want      time.Duration
		canonical string
		err       string
	}{
		"P30D":       {reason: "A day has 24 hours.", want: 720 * time.Hour, canonical: "P30D"},
		"PT1H30M":    {reason: "Hours and minutes follow a T.", want: 90 * time.Minute, canonical: "PT1H30M"},
		"P1DT1S":     {reason: "There can be both.", want: 24*time.Hour + time.Second, canonical: "P1DT1S"},
		"P2W":        {reason: "Weeks stand alone.", want: 336 * time.Hour, canonical: "P14D"},
		"PT36H":      {reason: "As many hours as wanted.", want: 36 * time.Hour, canonical: "P1DT12H"},
		"PT0S":       {reason: "It can be nothing.", canonical: "PT0S"},
		"P36500D":    {reason: "This is the most.", want: 36500 * 24 * time.Hour, canonical: "P36500D"},
		"P36500DT1S": {reason: "This is more.", err: "longer than a hundred years"},
		"P36500DT876000H52560000M": {
			reason: "Nor is a sum of what is not too long more than fits.", err: "longer than a hundred years",
		},
		"P99999999999D": {reason: "Nothing wraps around.", err: "not a duration"},
		"P1M":           {reason: "A month is not of one length.", err: "not a duration"},
		"P1Y":           {reason: "Nor is a year.", err: "not a duration"},
		"P1W1D":         {reason: "Weeks stand alone.", err: "not a duration"},
		"P1D1D":         {reason: "Each unit is there once.", err: "not a duration"},
		"PT1M1H":        {reason: "Units have an order.", err: "not a duration"},
		"PT":            {reason: "Something follows a T.", err: "not a duration"},
		"P1DT":          {reason: "Something follows a T.", err: "not a duration"},
		"P":             {reason: "Something follows a P.", err: "not a duration"},
		"":              {reason: "Nothing is no duration.", err: "not a duration"},
		"1h":            {reason: "This is Go's form.", err: "not a duration"},
		"-PT1H":         {reason: "There is no sign.", err: "not a duration"},
		"PT0.5H":        {reason: "Numbers are whole.", err: "not a duration"},
		"PD":            {reason: "A unit needs a number.", err: "not a duration"},
	}
	for text, tc := range cases {
		t.Run(text, func(t *testing.T) {
			got, err := ParseDuration(text)
			if !matches(err, tc.err) || time.Duration(got) != tc.want {
				t.Fatalf("%s\nParseDuration() = %s, %v, want %s, error %q", tc.reason, got, err, tc.want, tc.err)
			}
			if err == nil && got.String() != tc.canonical {
				t.Errorf("%s\nString() = %s, want %s", tc.reason, got, tc.canonical)
			}
		})
	}
}

func TestValuesAsJSON(t *testing.T) {
	type values struct {
		Quantity Quantity `json:"quantity"`
		Amount   Amount   `json:"amount"`
		Duration Duration `json:"duration"`
	}
	const text = `{"quantity":"16Gi","amount":"0.25","duration":"PT1H"}`
	var got values
	if err := json.Unmarshal([]byte(text), &got); err != nil {
		t.Fatalf("Unmarshal(): %v", err)
	}
	want := values{Quantity: quantity(t, "16Gi"), Amount: money(t, "0.25"), Duration: Duration(time.Hour)}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("Unmarshal(): -want +got\n%s", diff)
	}
	if again, err := json.Marshal(got); err != nil || string(again) != text {
		t.Errorf("Marshal() = %s, %v, want %s", again, err, text)
	}
	for _, wrong := range []string{`{"quantity":8}`, `{"amount":0.1}`, `{"duration":3600}`, `{"quantity":"8GB"}`} {
		if err := json.Unmarshal([]byte(wrong), &got); err == nil {
			t.Errorf("Unmarshal(%s) accepts it", wrong)
		}
	}
}

// TestPriceOfAnHour compares what expressions see with the closest number to the exact price.
func TestPriceOfAnHour(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for _, period := range []Period{Minute, Hour, Day, Week, Month, ""} {
		for range 2000 {
			price := Price{Amount: Amount{nano: random.Int64N(maxAmount) >> random.IntN(60)}, Currency: "EUR", Period: period}
			if want, _ := price.PerHour().Float64(); price.perHour() != want {
				t.Fatalf("%s costs %v in an hour, want %v", price, price.perHour(), want)
			}
		}
	}
}
