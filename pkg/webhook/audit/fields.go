// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/capacitorset/liqo-broker/pkg/excerpt"
	"github.com/capacitorset/liqo-broker/pkg/sheet"
)

// Bounds of what is told of a change, in bytes unless it says otherwise. An Event has to be short, also one of what nobody can mean.
const (
	maxSpec    = 64 << 10 // Of each of two specs that are compared.
	maxDepth   = 8        // Levels that have names; what is deeper is one value.
	maxFields  = 6        // Fields that are told; the others are counted.
	maxText    = 64       // A text that is longer is counted.
	maxPath    = 120
	maxUser    = 128
	maxMessage = 1000
)

// Field is a field of a spec that has changed, in words: one line each, short, and without what moves a cursor.
type Field struct {
	// Path is where it is, such as spec.scheduling.
	Path string
	// Old and New are its values; of a field that is not there, none.
	Old, New string
}

const (
	none   = "none"
	hidden = "not shown"
)

// differences compares two specs, as JSON, and returns the first fields that differ, in order, and how many there are besides. A spec that
// is empty has no fields. What is too long to be compared, or cannot be read, is one field.
func differences(before, after []byte) (fields []Field, more int) {
	if bytes.Equal(before, after) {
		return nil, 0
	}
	if len(before) > maxSpec || len(after) > maxSpec {
		return []Field{{"spec", long(before), long(after)}}, 0
	}
	d := differ{}
	old, errOld := decode(before)
	now, errNew := decode(after)
	if errOld != nil || errNew != nil {
		return []Field{{"spec", long(before), long(after)}}, 0
	}
	d.compare("spec", old, now, 0, false)
	return d.fields, d.more
}

// long describes a value that is not shown.
func long(value []byte) string {
	if len(value) == 0 {
		return none
	}
	return fmt.Sprintf("%d bytes", len(value))
}

// decode reads a value; nothing is null.
func decode(text []byte) (value any, err error) {
	if len(text) == 0 {
		return nil, nil //nolint:nilnil // There is none.
	}
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber() // A number is told as it was written.
	err = decoder.Decode(&value)
	return value, err
}

// differ collects fields that differ.
type differ struct {
	fields []Field
	more   int
}

// compare compares the values at a path, of which one may not be there. What is below a secret is one.
func (d *differ) compare(path string, was, is any, depth int, secret bool) {
	if reflect.DeepEqual(was, is) {
		return
	}
	wasMap, wasIsMap := was.(map[string]any)
	isMap, isIsMap := is.(map[string]any)
	if depth < maxDepth && (wasIsMap || was == nil) && (isIsMap || is == nil) && len(wasMap)+len(isMap) > 0 {
		names := maps.Clone(wasMap)
		if names == nil {
			names = map[string]any{}
		}
		maps.Copy(names, isMap)
		for _, name := range slices.Sorted(maps.Keys(names)) {
			d.compare(path+segment(name), wasMap[name], isMap[name], depth+1, secret || secretName.MatchString(name))
		}
		return
	}
	wasList, wasIsList := was.([]any)
	isList, isIsList := is.([]any)
	if depth < maxDepth && wasIsList && isIsList && len(wasList) == len(isList) {
		for i := range isList {
			d.compare(fmt.Sprintf("%s[%d]", path, i), wasList[i], isList[i], depth+1, secret)
		}
		return
	}
	if len(d.fields) == maxFields {
		d.more++
		return
	}
	if secret {
		was, is = secretly(was), secretly(is)
	}
	d.fields = append(d.fields, Field{excerpt.Of(path, maxPath), words(was), words(is)})
}

// A covered stands for the value of a secret.
type covered struct{}

func secretly(value any) any {
	if value == nil {
		return nil
	}
	return covered{}
}

// secretName matches the names of fields that nobody is shown. No spec has a secret; somebody may add one.
var secretName = regexp.MustCompile(`(?i)token|secret|password|credential|private`)

// plainName matches the names of fields, and plainText what is understood without quotes: nothing of what joins the words of a message.
var (
	plainName = regexp.MustCompile(`^[A-Za-z0-9_-]+$`)
	plainText = regexp.MustCompile(`^[A-Za-z0-9_./:@%+=-]+$`)
)

// segment returns a step of a path: the name of a field, or the key of a map.
func segment(name string) string {
	if plainName.MatchString(name) {
		return "." + excerpt.Of(name, maxText)
	}
	return "[" + quoted(excerpt.Of(sheet.Plain(name), maxText)) + "]"
}

// words returns a value as it is told.
func words(value any) string {
	switch v := value.(type) {
	case nil:
		return none
	case covered:
		return hidden
	case bool:
		return strconv.FormatBool(v)
	case json.Number:
		return excerpt.Of(v.String(), maxText)
	case string:
		return text(v)
	case []any:
		return fmt.Sprintf("a list of %d", len(v))
	case map[string]any:
		return fmt.Sprintf("%d fields", len(v))
	default:
		return hidden
	}
}

// text returns a text as it is told: of a long one how long it is, since it may be a key or a program.
func text(s string) string {
	if len(s) > maxText {
		return fmt.Sprintf("a text of %d characters", len([]rune(s)))
	}
	return readable(s)
}

// readable returns a short text of others in a message, so that it is seen where it ends.
func readable(s string) string {
	if plainText.MatchString(s) {
		return s
	}
	return quoted(sheet.Plain(s))
}

func quoted(s string) string { return `"` + strings.ReplaceAll(s, `"`, `'`) + `"` }

// user returns the name of a user in a message.
func user(s string) string {
	if s == "" {
		return "somebody who is not known"
	}
	return readable(s)
}
