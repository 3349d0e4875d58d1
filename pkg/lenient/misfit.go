// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package lenient

import (
	"encoding"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/runtime"
	kjson "sigs.k8s.io/json"

	"github.com/capacitorset/liqo-broker/pkg/excerpt"
)

// Bounds of what is said: of a field's path, of a reason, and how many are named.
const (
	maxKey    = 64
	maxReason = 160
	maxFaults = 8
)

// misfits takes out of the content of an object what does not fit its Go type, and names it, each with the reason.
func misfits(content map[string]any, typed runtime.Object) []string {
	var f finder
	f.fits(content, reflect.TypeOf(typed).Elem(), "")
	if more := f.found - len(f.faults); more > 0 {
		f.faults = append(f.faults, fmt.Sprintf("and %d more", more))
	}
	return f.faults
}

// finder walks over the content of an object and its type.
type finder struct {
	faults []string
	found  int
}

func (f *finder) fault(path string, err error) bool {
	if f.found++; len(f.faults) < maxFaults {
		f.faults = append(f.faults, path+": "+excerpt.Of(err.Error(), maxReason))
	}
	return false
}

var (
	unmarshaler     = reflect.TypeFor[json.Unmarshaler]()
	textUnmarshaler = reflect.TypeFor[encoding.TextUnmarshaler]()
	quantity        = reflect.TypeFor[resource.Quantity]()
)

// fits reports whether a value fits a type, once what is below it and does not fit has been taken out: fields are absent
// then, and what is in maps and lists is null, which is read as zero, so that a limit of something does not vanish.
func (f *finder) fits(value any, t reflect.Type, path string) bool {
	if value == nil && !reflect.PointerTo(t).Implements(unmarshaler) {
		return true
	}
	if t.Kind() == reflect.Pointer {
		return f.fits(value, t.Elem(), path)
	}
	if reflect.PointerTo(t).Implements(unmarshaler) || reflect.PointerTo(t).Implements(textUnmarshaler) {
		return f.decodes(value, t, path)
	}
	// An object, a map or a list is kept, without what is in it and does not fit.
	switch t.Kind() { //nolint:exhaustive // All others are decoded.
	case reflect.Struct:
		fields, ok := value.(map[string]any)
		if !ok {
			return f.fault(path, errors.New("not an object"))
		}
		f.structure(fields, t, path)
		return true
	case reflect.Map:
		entries, ok := value.(map[string]any)
		if !ok {
			return f.fault(path, errors.New("not a map"))
		}
		for _, key := range slices.Sorted(maps.Keys(entries)) {
			if !f.fits(entries[key], t.Elem(), path+"["+excerpt.Of(key, maxKey)+"]") {
				entries[key] = nil
			}
		}
		return true
	case reflect.Slice:
		// The places of a list stay: its other elements are found where they were.
		elements, ok := value.([]any)
		if !ok {
			return f.decodes(value, t, path) // Bytes are a string.
		}
		for i, element := range elements {
			if !f.fits(element, t.Elem(), fmt.Sprintf("%s[%d]", path, i)) {
				elements[i] = nil
			}
		}
		return true
	default:
		return f.decodes(value, t, path)
	}
}

// structure takes out of an object's fields those that do not fit.
func (f *finder) structure(fields map[string]any, t reflect.Type, path string) {
	for field := range t.Fields() {
		name, options, _ := strings.Cut(field.Tag.Get("json"), ",")
		if inline := strings.Contains(","+options+",", ",inline,") || field.Anonymous && name == ""; inline {
			embedded := field.Type
			if embedded.Kind() == reflect.Pointer {
				embedded = embedded.Elem()
			}
			if embedded.Kind() == reflect.Struct {
				f.structure(fields, embedded, path)
			}
			continue
		}
		if value, ok := fields[name]; ok && name != "" && name != "-" && !f.fits(value, field.Type, strings.TrimPrefix(path+"."+name, ".")) {
			delete(fields, name)
		}
	}
}

// decodes reports whether a value is decoded into a type.
func (f *finder) decodes(value any, t reflect.Type, path string) bool {
	raw := encode(value)
	if t == quantity {
		if err := soundQuantity(raw); err != nil {
			return f.fault(path, err)
		}
	}
	if err := kjson.UnmarshalCaseSensitivePreserveInts(raw, reflect.New(t).Interface()); err != nil {
		return f.fault(path, err)
	}
	return true
}

// sound is a quantity that can be computed with in no time: with an exponent of thousands, Kubernetes' Quantity takes minutes
// and gigabytes for one addition.
var sound = regexp.MustCompile(`^[+-]?[0-9.]{1,40}([a-zA-Z]{0,2}|[eE][+-]?[0-9]{1,2})$`)

func soundQuantity(raw []byte) error {
	if text := strings.TrimSpace(strings.Trim(string(raw), `"`)); text != "null" && !sound.MatchString(text) {
		return fmt.Errorf("%q is not a quantity, or is out of range", excerpt.Of(text, maxKey))
	}
	return nil
}
