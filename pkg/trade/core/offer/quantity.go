// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package offer

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/capacitorset/liqo-broker/pkg/core/resources"
)

// Bounds of quantities.
const (
	// maxText is the length of a quantity, an amount of money or a duration as text.
	maxText = 32
	// maxUnits is the largest quantity: a pebibyte of memory, or as many cores. A thousand
	// times of it is still an int64.
	maxUnits = 1 << 50
	// milli is how many thousandths a unit has.
	milli = 1000
)

// Quantity is a positive amount of a resource in thousandths of its unit: of a core, of a
// byte, of a pod. As text it is a quantity of Kubernetes, but strictly: digits, perhaps a point
// and digits, and one of the suffixes m, k, M, G, T, P, Ki, Mi, Gi, Ti and Pi; nothing that has
// to be rounded, is more than 2^50 units or is longer than 32 characters. The zero Quantity is
// none of the resource; ParseQuantity never returns it. Compare and Equal
// tell how much it is; == also tells 1Ki from 1024, which are as much.
type Quantity struct {
	milli int64
	// binary: it is a multiple of 1024 that was written so, and is again.
	binary bool
}

// suffixes of quantities: how many thousandths of a unit they mean. The longest come first.
var suffixes = [...]struct {
	text   string
	milli  int64
	binary bool
}{
	{"Pi", milli << 50, true}, {"Ti", milli << 40, true}, {"Gi", milli << 30, true}, {"Mi", milli << 20, true}, {"Ki", milli << 10, true},
	{"P", milli * 1e15, false}, {"T", milli * 1e12, false}, {"G", milli * 1e9, false}, {"M", milli * 1e6, false}, {"k", milli * 1e3, false},
	{"m", 1, false}, {"", milli, false},
}

// ParseQuantity reads a quantity. The error names the text and what is wrong with it.
func ParseQuantity(text string) (Quantity, error) {
	if len(text) > maxText {
		return Quantity{}, fmt.Errorf("%.*q... is longer than %d characters", maxText, text, maxText)
	}
	number := strings.TrimRight(text, "KMGTPikm")
	for _, suffix := range suffixes {
		if text[len(number):] != suffix.text {
			continue
		}
		n, err := parseDecimal(number, uint64(suffix.milli), maxUnits*milli) //nolint:gosec // No suffix is negative.
		if err != nil {
			return Quantity{}, fmt.Errorf("%q %w", text, err)
		}
		if n == 0 {
			return Quantity{}, fmt.Errorf("%q is not positive", text)
		}
		return newQuantity(n, suffix.binary), nil
	}
	return Quantity{}, fmt.Errorf("%q is not a quantity such as 500m, 8 or 16Gi", text)
}

func newQuantity(n int64, binary bool) Quantity {
	return Quantity{milli: n, binary: binary && n%(milli<<10) == 0}
}

// MarshalText implements encoding.TextMarshaler. The zero Quantity is "0".
func (q Quantity) MarshalText() ([]byte, error) { return []byte(q.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler, as ParseQuantity does.
func (q *Quantity) UnmarshalText(text []byte) (err error) {
	*q, err = ParseQuantity(string(text))
	return err
}

// String returns the quantity with the largest suffix that leaves a whole number.
func (q Quantity) String() string {
	if q.milli == 0 {
		return "0"
	}
	if q.milli%milli == 0 && q.milli/milli < milli {
		return strconv.FormatInt(q.milli/milli, 10)
	}
	for _, suffix := range suffixes {
		if suffix.binary == q.binary && suffix.milli > milli && q.milli%suffix.milli == 0 {
			return strconv.FormatInt(q.milli/suffix.milli, 10) + suffix.text
		}
	}
	if q.milli%milli == 0 {
		return strconv.FormatInt(q.milli/milli, 10)
	}
	return strconv.FormatInt(q.milli, 10) + "m"
}

// Milli returns the thousandths of the unit.
func (q Quantity) Milli() int64 { return q.milli }

// Compare returns -1, 0 or 1, as cmp.Compare does.
func (q Quantity) Compare(other Quantity) int {
	switch {
	case q.milli < other.milli:
		return -1
	case q.milli > other.milli:
		return 1
	default:
		return 0
	}
}

// Equal reports whether two quantities are as much, however they were written.
func (q Quantity) Equal(other Quantity) bool { return q.milli == other.milli }

// IsZero reports whether it is none of the resource.
func (q Quantity) IsZero() bool { return q.milli == 0 }

// Kubernetes returns the quantity as Kubernetes has it.
func (q Quantity) Kubernetes() resource.Quantity {
	format := resource.DecimalSI
	if q.binary {
		format = resource.BinarySI
	}
	if q.milli%milli == 0 {
		return *resource.NewQuantity(q.milli/milli, format)
	}
	return *resource.NewMilliQuantity(q.milli, format)
}

// Resources are amounts by the name of the resource. One that is missing is none of it. Plans and prices are counted in them; what is held,
// granted and free are lists of Kubernetes, whose arithmetic is in package resources.
type Resources map[string]Quantity

// ParseResources reads texts, by the names of their resources; nil if there are none. The error is a FieldError if it is about one of them.
func ParseResources(texts map[string]string) (Resources, error) {
	if len(texts) > maxResources {
		return nil, fmt.Errorf("there are %d, which is more than %d", len(texts), maxResources)
	}
	if len(texts) == 0 {
		return nil, nil //nolint:nilnil // None is no error.
	}
	read := make(Resources, len(texts))
	for _, name := range slices.Sorted(maps.Keys(texts)) {
		quantity, err := ParseQuantity(texts[name])
		if err != nil {
			return nil, In(fmt.Sprintf("[%.64q]", name), err)
		}
		read[name] = quantity
	}
	return read, nil
}

// ReadList is ParseResources of the texts of a list of Kubernetes.
func ReadList(list corev1.ResourceList) (Resources, error) {
	texts := make(map[string]string, len(list))
	for name, quantity := range list {
		texts[string(name)] = quantity.String()
	}
	return ParseResources(texts)
}

// Texts returns what ParseResources reads; nil if there is nothing.
func (r Resources) Texts() map[string]string {
	if len(r) == 0 {
		return nil
	}
	texts := make(map[string]string, len(r))
	for name, quantity := range r {
		texts[name] = quantity.String()
	}
	return texts
}

// FromList returns what a list of Kubernetes has, rounded down to thousandths. What is
// negative or zero is left out, and what is more than a quantity can be is as much as possible.
func FromList(list corev1.ResourceList) Resources {
	of := make(Resources, len(list))
	for name, quantity := range list {
		if n := resources.Thousandths(quantity, maxUnits*milli); n > 0 {
			of[string(name)] = newQuantity(n, quantity.Format == resource.BinarySI)
		}
	}
	return of
}

// List returns the resources as Kubernetes has them.
func (r Resources) List() corev1.ResourceList {
	list := make(corev1.ResourceList, len(r))
	for name, quantity := range r {
		list[corev1.ResourceName(name)] = quantity.Kubernetes()
	}
	return list
}

// Covers reports whether there is at least as much of every resource as another has.
func (r Resources) Covers(other Resources) bool {
	for name, quantity := range other {
		if r[name].milli < quantity.milli {
			return false
		}
	}
	return true
}

// Equal reports whether both are as much of everything.
func (r Resources) Equal(other Resources) bool { return r.Covers(other) && other.Covers(r) }

// String returns the resources in the order of their names, for people.
func (r Resources) String() string {
	parts := make([]string, 0, len(r))
	for _, name := range slices.Sorted(maps.Keys(r)) {
		parts = append(parts, name+" "+r[name].String())
	}
	return strings.Join(parts, ", ")
}
