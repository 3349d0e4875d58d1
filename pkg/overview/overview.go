// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

// Package overview puts the objects of a broker, and those of a cluster that trades, into what people read at a glance: tables, a summary with advice, where pods run,
// and why they run there. It works on values, with the time as an argument, and what it returns for a table or a sentence has no
// control characters: clusters choose their names themselves.
//
// It does not know where the objects come from, nor how a terminal or a script is written to.
package overview

import (
	"strings"
	"unicode"

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

// column is one column of a table; a wide one is for who asks for more, and a long one has sentences.
type column[T any] struct {
	name       string
	wide, long bool
	cell       func(T) string
}

// table returns the rows of some items.
func table[T any](items []T, columns []column[T]) *metav1.Table {
	t := &metav1.Table{Rows: make([]metav1.TableRow, 0, len(items))}
	for _, c := range columns {
		definition := metav1.TableColumnDefinition{Name: c.name, Type: "string"}
		if c.wide {
			definition.Priority = 1
		}
		t.ColumnDefinitions = append(t.ColumnDefinitions, definition)
	}
	for _, item := range items {
		row := metav1.TableRow{Cells: make([]any, 0, len(columns))}
		for _, c := range columns {
			most := maxCell
			if c.long {
				most = maxSentence
			}
			text := excerpt.Of(Plain(c.cell(item)), most)
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
