// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/resource"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/client-go/util/jsonpath"
)

// sortingFlag is the flag that says by what a list is sorted, as kubectl has it.
const sortingFlag = "sort-by"

// sortKey is what one item of a list is sorted by. What has nothing comes first, then amounts by how much they are, then texts.
type sortKey struct {
	kind   sortKind
	amount resource.Quantity
	text   string
}

// sortKind is of what kind it is, in the order in which kinds come.
type sortKind int

const (
	sortNothing sortKind = iota
	sortAmount
	sortText
)

func (k sortKey) compare(than sortKey) int {
	if k.kind == sortAmount && than.kind == sortAmount {
		return k.amount.Cmp(than.amount)
	}
	return cmp.Or(cmp.Compare(k.kind, than.kind), cmp.Compare(k.text, than.text))
}

// keyOf returns the key of an item, which the path finds in what JSON has of it. Of several values the first counts.
func keyOf(item any, path *jsonpath.JSONPath) (sortKey, error) {
	text, err := json.Marshal(item)
	if err != nil {
		return sortKey{}, err
	}
	var generic any
	if err := utiljson.Unmarshal(text, &generic); err != nil {
		return sortKey{}, err
	}
	found, err := path.FindResults(generic)
	if err != nil || len(found) == 0 || len(found[0]) == 0 || !found[0][0].IsValid() || found[0][0].Interface() == nil {
		return sortKey{}, err
	}
	said := fmt.Sprint(found[0][0].Interface())
	if amount, err := resource.ParseQuantity(said); err == nil {
		return sortKey{kind: sortAmount, amount: amount}, nil
	}
	return sortKey{kind: sortText, text: said}, nil
}

// sortBy sorts items by what the command line says, each as the format json prints it; without that they stay as they are. That no item has
// the field is an error, since it is misspelt then.
func sortBy[T any](o *output, items []T) error {
	if o.sortBy == nil || len(items) == 0 {
		return nil
	}
	type keyed struct {
		key  sortKey
		item T
	}
	all := make([]keyed, len(items))
	for i := range items {
		key, err := keyOf(&items[i], o.sortBy)
		if err != nil {
			return fmt.Errorf("--%s: %w", sortingFlag, err)
		}
		all[i] = keyed{key, items[i]}
	}
	if !slices.ContainsFunc(all, func(k keyed) bool { return k.key.kind != sortNothing }) {
		return fmt.Errorf("--%s=%s: none of these has the field; see -o json", sortingFlag, o.sorting)
	}
	slices.SortStableFunc(all, func(a, b keyed) int { return a.key.compare(b.key) })
	for i := range all {
		items[i] = all[i].item
	}
	return nil
}
