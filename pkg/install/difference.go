// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package install

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"
)

// around is how many lines are shown before and after those that differ.
const around = 2

// What becomes of a line.
const (
	kept    = ' '
	removed = '-'
	added   = '+'
)

// edited is a line of a text that becomes another one.
type edited struct {
	mark rune
	text string
}

// difference returns how an object changes, as a unified diff of its YAML: without what the API server notes itself. There are no lines
// if one of the two is nil.
func difference(before, after client.Object) ([]string, error) {
	if before == nil || after == nil {
		return nil, nil
	}
	was, err := linesOf(before)
	if err != nil {
		return nil, err
	}
	is, err := linesOf(after)
	if err != nil {
		return nil, err
	}
	return hunks(compareLines(was, is)), nil
}

// linesOf returns an object as YAML.
func linesOf(object client.Object) ([]string, error) {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	if err != nil {
		return nil, fmt.Errorf("convert %s: %w", key(object), err)
	}
	bare := withoutBookkeeping(&unstructured.Unstructured{Object: content})
	unstructured.RemoveNestedField(bare.Object, "status")
	text, err := yaml.Marshal(bare.Object)
	if err != nil {
		return nil, fmt.Errorf("write %s as YAML: %w", key(object), err)
	}
	return strings.Split(strings.TrimSuffix(string(text), "\n"), "\n"), nil
}

// compareLines returns the lines of two texts, as few of them removed and added as possible.
func compareLines(was, is []string) []edited {
	// common[a][b] is how many lines was[a:] and is[b:] have in common.
	common := make([][]int32, len(was)+1)
	for a := range common {
		common[a] = make([]int32, len(is)+1)
	}
	for a := len(was) - 1; a >= 0; a-- {
		for b := len(is) - 1; b >= 0; b-- {
			common[a][b] = max(common[a+1][b], common[a][b+1])
			if was[a] == is[b] {
				common[a][b] = common[a+1][b+1] + 1
			}
		}
	}
	var lines []edited
	a, b := 0, 0
	for a < len(was) || b < len(is) {
		switch {
		case a < len(was) && b < len(is) && was[a] == is[b]:
			lines = append(lines, edited{kept, was[a]})
			a++
			b++
		case b == len(is) || a < len(was) && common[a+1][b] >= common[a][b+1]:
			lines = append(lines, edited{removed, was[a]})
			a++
		default:
			lines = append(lines, edited{added, is[b]})
			b++
		}
	}
	return lines
}

// hunks returns the lines that differ and some around them, each group below a line that says where it is in both texts.
func hunks(lines []edited) []string {
	near := make([]bool, len(lines)+1)
	for n, line := range lines {
		if line.mark == kept {
			continue
		}
		for m := max(0, n-around); m <= min(len(lines)-1, n+around); m++ {
			near[m] = true
		}
	}
	var out, group []string
	next := map[rune]int{removed: 1, added: 1} // The numbers of the next lines of the two texts.
	count := map[rune]int{}
	for n, line := range lines {
		for _, side := range []rune{removed, added} {
			if line.mark == kept || line.mark == side {
				next[side]++
				if near[n] {
					count[side]++
				}
			}
		}
		if near[n] {
			group = append(group, string(line.mark)+line.text)
		}
		if near[n] && !near[n+1] {
			out = append(out, fmt.Sprintf("@@ -%d,%d +%d,%d @@", next[removed]-count[removed], count[removed], next[added]-count[added],
				count[added]))
			out = append(out, group...)
			group, count = nil, map[rune]int{}
		}
	}
	return out
}
