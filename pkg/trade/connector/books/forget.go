// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package books

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capacitorset/liqo-broker/pkg/api/connectorv1alpha1"
)

// Forget deletes Sales that are kept for people alone, when all of these have more than a number of bytes in memory: of the buyer that has
// the most bytes the one that has been over for longest, and so on until the others fit. So no buyer can have the contracts of another one
// forgotten. It returns those that it has deleted, also with an error.
func (s *Store) Forget(ctx context.Context, now time.Time, most int) ([]Known, error) {
	all, err := s.All(ctx)
	if err != nil {
		return nil, err
	}
	var gone []Known
	for _, k := range excess(all, now, most) {
		sale := &connectorv1alpha1.Sale{ObjectMeta: metav1.ObjectMeta{Name: k.Name}}
		// Without the UID the same contract could be another Sale by now.
		if err := s.cfg.Client.Delete(ctx, sale, client.Preconditions{UID: &k.uid}); client.IgnoreNotFound(err) != nil {
			return gone, fmt.Errorf("forget sale %s: %w", k.Name, err)
		}
		gone = append(gone, k)
	}
	return gone, nil
}

// excess returns what has to go so that what is kept for people alone has at most a number of bytes.
func excess(all []Known, now time.Time, most int) []Known {
	kept, bytes, total := map[string][]Known{}, map[string]int{}, 0
	for _, k := range all {
		if k.archived(now) {
			kept[k.Key.Buyer] = append(kept[k.Key.Buyer], k)
			bytes[k.Key.Buyer] += k.bytes
			total += k.bytes
		}
	}
	for _, of := range kept {
		slices.SortFunc(of, func(a, b Known) int { return cmp.Or(a.changed().Compare(b.changed()), strings.Compare(a.Name, b.Name)) })
	}
	var gone []Known
	for total > most {
		largest := ""
		for buyer, has := range bytes {
			if largest == "" || has > bytes[largest] || has == bytes[largest] && buyer < largest {
				largest = buyer
			}
		}
		first := kept[largest][0]
		gone, kept[largest] = append(gone, first), kept[largest][1:]
		if bytes[largest] -= first.bytes; len(kept[largest]) == 0 {
			delete(bytes, largest)
		}
		total -= first.bytes
	}
	return gone
}
