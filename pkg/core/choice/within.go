// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package choice

import (
	"cmp"
	"slices"
	"time"

	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
)

// ChooseWithin is Choose for who has room for so many providers, which is at least one. If more
// would be chosen, the room is a limit of the criteria, and who is chosen changes as seldom
// as under any other limit. What still is too much, because a group has more providers or an
// absent one has a substitute, is cut off: substitutes first, then those that were not chosen
// before, and the worst first.
func (c *Chooser) ChooseWithin(room int, now time.Time, providers []Provider, memory Memory) (Decision, error) {
	made, err := c.Choose(now, providers, memory)
	if err == nil && len(made.Chosen) > room && c.criteria.Group == "" && (c.criteria.Max <= 0 || c.criteria.Max > room) {
		made, err = c.Limited(room).Choose(now, providers, memory)
	}
	if err != nil || len(made.Chosen) <= room {
		return made, err
	}
	made.cut(room, memory.Chosen)
	return made, nil
}

// cut takes from a decision what there is no room for.
func (d *Decision) cut(room int, before []cluster.ID) {
	substitute, known := cluster.SetOf(d.Substitutes), cluster.SetOf(before)
	place := make(map[cluster.ID]int, len(d.Ranking))
	for i := range d.Ranking {
		place[d.Ranking[i].ID] = i
	}
	class := func(id cluster.ID) int {
		switch {
		case substitute[id]:
			return 2
		case !known[id]:
			return 1
		}
		return 0
	}
	chosen := slices.Clone(d.Chosen)
	slices.SortFunc(chosen, func(a, b cluster.ID) int {
		return cmp.Or(cmp.Compare(class(a), class(b)), cmp.Compare(place[a], place[b]))
	})
	d.Chosen = chosen[:room]
	slices.Sort(d.Chosen)
	stays := cluster.SetOf(d.Chosen)
	d.Substitutes = slices.DeleteFunc(slices.Clone(d.Substitutes), func(id cluster.ID) bool { return !stays[id] })
	for i := range d.Ranking {
		d.Ranking[i].Chosen = stays[d.Ranking[i].ID]
	}
}
