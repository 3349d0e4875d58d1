// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package trial

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/capacitorset/liqo-broker/pkg/probe"
	"github.com/capacitorset/liqo-broker/pkg/sheet"
)

// Table returns a row for each pod of a result.
func (r *Result) Table() *metav1.Table {
	column := func(name string, cell func(*Tried) string) sheet.Column[Tried] {
		return sheet.Column[Tried]{Name: name, Cell: cell}
	}
	answer := func(name string, cell func(*probe.Answer) string) sheet.Column[Tried] {
		return column(name, func(t *Tried) string {
			if t.Answer == nil {
				return ""
			}
			return cell(t.Answer)
		})
	}
	return sheet.Table(r.Pods, []sheet.Column[Tried]{
		column("Pod", func(t *Tried) string { return t.Pod }),
		column("Provider", func(t *Tried) string {
			if t.Provider == nil {
				return ""
			}
			return cmp.Or(t.Provider.Name, t.Provider.ID)
		}),
		column("Path", func(t *Tried) string { return t.Path }),
		column("Status", func(t *Tried) string { return t.Status }),
		column("Address", func(t *Tried) string { return t.Address }),
		answer("Answered", func(a *probe.Answer) string { return fmt.Sprintf("%d of %d", a.Answered, a.Asked) }),
		answer("First", func(a *probe.Answer) string { return short(a.First) }),
		answer("Median", func(a *probe.Answer) string { return short(a.Median) }),
		answer("Slowest", func(a *probe.Answer) string { return short(a.Slowest) }),
	})
}

// short returns a time with as much of it as people read; nothing for zero.
func short(d time.Duration) string {
	switch {
	case d == 0:
		return ""
	case d >= time.Second:
		return d.Round(10 * time.Millisecond).String()
	default:
		return d.Round(10 * time.Microsecond).String()
	}
}

// Summary says in a line how the Service answered, and in others what is not as it should be.
func (r *Result) Summary() string {
	var lines []string
	if s := r.Service; s != nil {
		lines = append(lines, fmt.Sprintf("The Service answered %d of %d requests, from %d of %d pods.", s.Answered, s.Asked, s.Hosts,
			len(r.Pods)))
	}
	for _, problem := range r.Problems {
		lines = append(lines, "! "+sheet.Plain(problem))
	}
	return strings.Join(lines, "\n")
}
