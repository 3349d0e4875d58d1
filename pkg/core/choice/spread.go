// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package choice

import "strconv"

// maxTries bounds how many providers are tried until the spread constraints are met, beside
// each of them once. It takes a few milliseconds, and only where constraints that can be met
// one by one can hardly be met together, or cannot.
const maxTries = 20_000

// spread returns the first of the ranked providers, as many as allowed, that meet the spread
// constraints.
func (c *Chooser) spread(ranked []Ranked, most int) ([]Ranked, bool) {
	s := search{
		spread: c.criteria.Spread, ranked: ranked, most: most, tries: len(ranked) + maxTries,
		values: make([]string, len(ranked)), barred: map[string]bool{}, counts: make([]map[string]int, len(c.criteria.Spread)),
	}
	for i := range s.counts {
		s.counts[i] = map[string]int{}
	}
	for i, r := range ranked {
		s.add(r, 1)
		for _, constraint := range s.spread {
			if value, ok := r.labels[constraint.Label]; ok {
				s.values[i] += strconv.Itoa(len(value)) + ":" + value
			}
			s.values[i] += ","
		}
	}
	if s.missing() > 0 {
		return nil, false // Not even by all of them.
	}
	for i := range s.counts {
		clear(s.counts[i])
	}
	ok := s.from(0)
	return s.picked, ok
}

// search looks for providers that meet the spread constraints together: it takes one after
// the other unless the places after it would not suffice for the values that are missing,
// and goes back where none is left. With one constraint it never has to.
type search struct {
	spread []Spread
	ranked []Ranked
	most   int
	tries  int

	picked []Ranked
	// counts are the values of each constraint that are picked.
	counts []map[string]int
	// values are equal for providers that do the same for the constraints. Those that are
	// barred were tried in vain: another provider with them would do no better.
	values []string
	barred map[string]bool
}

// from picks from a place in the ranking on, and reports whether the constraints are met.
func (s *search) from(start int) bool {
	var tried []string
	for i := start; i < len(s.ranked) && len(s.picked) < s.most; i++ {
		if s.barred[s.values[i]] {
			continue
		}
		if s.tries--; s.tries < 0 {
			return false
		}
		s.picked = append(s.picked, s.ranked[i])
		s.add(s.ranked[i], 1)
		if s.missing() <= s.most-len(s.picked) && s.from(i+1) {
			return true
		}
		s.picked = s.picked[:len(s.picked)-1]
		s.add(s.ranked[i], -1)
		s.barred[s.values[i]] = true
		tried = append(tried, s.values[i])
	}
	if s.missing() == 0 {
		return true
	}
	for _, values := range tried {
		delete(s.barred, values)
	}
	return false
}

// add counts the values of a provider, or no longer.
func (s *search) add(r Ranked, n int) {
	for i, constraint := range s.spread {
		if value, ok := r.labels[constraint.Label]; ok {
			if s.counts[i][value] += n; s.counts[i][value] == 0 {
				delete(s.counts[i], value)
			}
		}
	}
}

// missing returns how many values are missing for the constraint that is furthest from
// being met. A provider without the label has no value.
func (s *search) missing() int {
	most := 0
	for i, constraint := range s.spread {
		most = max(most, constraint.Distinct-len(s.counts[i]))
	}
	return most
}
