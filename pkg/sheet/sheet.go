// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

// Package sheet makes tables for people, and what stands in their cells: amounts, ages, conditions and shortened IDs. A table has no
// control characters, and in each cell only as much as there is room for: clusters choose their names themselves.
//
// It does not know what the rows are about, nor how a terminal or a script is written to.
package sheet

import (
	"strings"
	"unicode"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/capacitorset/liqo-broker/pkg/excerpt"
)

// Bounds of what is shown of a text of others, in bytes.
const (
	maxCell     = 64
	maxSentence = 512
)

// none is shown where there is nothing.
const none = "-"

// Column is one column of a table; a wide one is for who asks for more, and a long one has room for a sentence. Cell returns what stands in
// the row of an item; where that is empty, a dash is shown.
type Column[T any] struct {
	Name       string
	Wide, Long bool
	Cell       func(*T) string
}

// Table returns a row for each item, in their order.
func Table[T any](items []T, columns []Column[T]) *metav1.Table {
	t := &metav1.Table{Rows: make([]metav1.TableRow, 0, len(items))}
	for _, c := range columns {
		definition := metav1.TableColumnDefinition{Name: c.Name, Type: "string"}
		if c.Wide {
			definition.Priority = 1
		}
		t.ColumnDefinitions = append(t.ColumnDefinitions, definition)
	}
	for i := range items {
		row := metav1.TableRow{Cells: make([]any, 0, len(columns))}
		for _, c := range columns {
			most := maxCell
			if c.Long {
				most = maxSentence
			}
			text := excerpt.Of(Plain(c.Cell(&items[i])), most)
			if text == "" {
				text = none
			}
			row.Cells = append(row.Cells, text)
		}
		t.Rows = append(t.Rows, row)
	}
	return t
}

// Plain returns a text in one line that leaves a terminal as it is: a space stands for each tab and end of a line, and a
// question mark for each other character that is not for printing, such as those that move the cursor or turn the direction of writing.
func Plain(text string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case unicode.IsPrint(r):
			return r
		case r == '\n' || r == '\t':
			return ' '
		default:
			return '?'
		}
	}, strings.ToValidUTF8(text, "?"))
}

// Sentence returns a text of others as it is shown in a sentence: plain, and shortened.
func Sentence(text string) string { return excerpt.Of(Plain(text), maxSentence) }

// State returns whether a condition is true, false or unknown, which it also is without the condition.
func State(conditions []metav1.Condition, of string) string {
	if c := meta.FindStatusCondition(conditions, of); c != nil {
		return string(c.Status)
	}
	return string(metav1.ConditionUnknown)
}

// Reason returns the reason of a condition; nothing without the condition.
func Reason(conditions []metav1.Condition, of string) string {
	if c := meta.FindStatusCondition(conditions, of); c != nil {
		return c.Reason
	}
	return ""
}

// shortID is how much of an ID is shown where that is enough to tell it from the others.
const shortID = 8

// Shortener returns how IDs are shown: their beginning, and the whole where several begin like that.
func Shortener(ids []string) func(id string) string {
	count := map[string]int{}
	for _, id := range ids {
		count[id[:min(len(id), shortID)]]++
	}
	return func(id string) string {
		if short := id[:min(len(id), shortID)]; count[short] <= 1 {
			return short
		}
		return id
	}
}
