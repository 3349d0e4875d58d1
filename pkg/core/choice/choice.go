// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

// Package choice chooses providers by criteria: filters exclude some, weighted
// KPIs rank the rest, spread constraints and a limit pick from the ranking,
// and steadiness keeps what is chosen until something better lasts.
//
// It decides from a snapshot, with the time and its memory as arguments: the same
// input gives the same decision. It does not know where the KPIs come from,
// nor for whom and to what end it chooses.
package choice

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
	"github.com/capacitorset/liqo-broker/pkg/core/kpi"
)

// MaxWeight bounds the weight of a KPI, in both directions.
const MaxWeight = 10

// FullScore is the score of a provider that is the best in everything.
const FullScore = 100

// Errors of Choose, for errors.Is. With them nothing is chosen.
var (
	// ErrNobody: the filters exclude every provider, or there is none.
	ErrNobody = errors.New("no provider passes the filters")
	// ErrSpread: the spread constraints cannot be met.
	ErrSpread = errors.New("the spread constraints cannot be met")
)

// Provider is a provider that can be chosen.
type Provider struct {
	ID     cluster.ID
	Name   string
	Labels map[string]string
	KPIs   map[string]kpi.KPI
	// Away is why the provider cannot be used at the moment, as when it is out of
	// reach; empty if it can.
	Away string
}

// Criteria are what providers are chosen by.
type Criteria struct {
	// Filters are CEL expressions that must all hold for a provider.
	Filters []string
	// Weights tell how much each KPI counts, from -MaxWeight to MaxWeight: more
	// is better if positive, less is better if negative.
	Weights map[string]int
	// Max is the largest number of providers to choose, or of groups; zero for no limit.
	Max int
	// Group is a label whose values are chosen instead of single providers: all that
	// share one of them are chosen together, and those without it never are. A group
	// is as good as its best provider. Spread does not go with it.
	Group string
	// Spread are constraints that the chosen providers meet together.
	Spread []Spread
	// Margin is how much better, as a part of FullScore, a provider must be than a
	// chosen one to take its place, and Lasting for how long without a break. For so long, too, one
	// that is away keeps its place, and has a substitute.
	Margin  float64
	Lasting time.Duration
}

// Spread demands that the chosen providers have so many distinct values of a label.
type Spread struct {
	Label    string
	Distinct int
}

// Memory is what one decision has to know of those before. The zero Memory is
// that of the first.
type Memory struct {
	// Chosen are the chosen providers, in order of their IDs.
	Chosen []cluster.ID
	// Better tells since when others are better by the margin than a chosen one.
	Better map[cluster.ID]time.Time
	// Away tells since when chosen providers are away.
	Away map[cluster.ID]time.Time
	// Substitutes are those of the chosen providers that go when the ones are back that
	// are away, in order of their IDs.
	Substitutes []cluster.ID
}

// Decision is what was decided, and why.
type Decision struct {
	Memory

	// Ranking are all providers: those that pass the filters, the best first, and
	// then those that do not.
	Ranking []Ranked
	// Wait is the time until others take the place of the chosen providers, if
	// nothing changes; zero if nothing will.
	Wait time.Duration
}

// Ranked explains what became of a provider.
type Ranked struct {
	ID     cluster.ID
	Name   string
	Chosen bool
	// Excluded is why the provider cannot be chosen; empty if it can.
	Excluded string
	// Away tells that it is excluded because it cannot be used at the moment, and not by
	// a filter.
	Away  bool
	Score float64
	// Terms are what the score is made of, in order of their KPIs' names.
	Terms []Term

	labels  map[string]string
	unknown int
}

// Term is what one KPI adds to a score.
type Term struct {
	KPI   string
	Value float64
	Unit  string
	// Unknown is why the value does not count; empty if it does.
	Unknown string
	// Normalized is 1 for the best provider that passes the filters, 0 for the worst.
	Normalized float64
	Weight     int
}

// Chooser chooses by criteria. It may be used concurrently.
type Chooser struct {
	criteria Criteria
	filters  []filter
	weighted []string // Those with a weight, in order.
}

// New returns a Chooser, or an error that tells what is wrong with the criteria.
func New(c Criteria) (*Chooser, error) {
	filters, err := compile(c.Filters)
	if err != nil {
		return nil, err
	}
	if c.Group != "" && len(c.Spread) > 0 {
		return nil, fmt.Errorf("providers are chosen by %s, and cannot be spread beside that", c.Group)
	}
	chooser := &Chooser{criteria: c, filters: filters}
	for name, weight := range c.Weights {
		if weight < -MaxWeight || weight > MaxWeight {
			return nil, fmt.Errorf("the weight of %s is %d, not from %d to %d", name, weight, -MaxWeight, MaxWeight)
		}
		if weight != 0 {
			chooser.weighted = append(chooser.weighted, name)
		}
	}
	slices.Sort(chooser.weighted)
	return chooser, nil
}

// Limited returns a Chooser that chooses at most so many providers, or groups.
func (c *Chooser) Limited(most int) *Chooser {
	limited := *c
	limited.criteria.Max = most
	return &limited
}

// Choose decides among providers, whose IDs are distinct. When it returns an
// error, the decision has a ranking as far as there is one, and the memory that
// it was given.
func (c *Chooser) Choose(now time.Time, providers []Provider, memory Memory) (Decision, error) {
	decision := Decision{Memory: memory}
	here, away := split(providers)
	passed, excluded, err := c.filter(now, here)
	if err != nil {
		return decision, err
	}
	ranked := c.score(now, passed)
	slices.SortFunc(ranked, better(nil))
	decision.Ranking = slices.Concat(ranked, excluded, away)
	if len(ranked) == 0 {
		return decision, ErrNobody
	}
	absent := c.absent(now, away, memory)
	memory.Chosen = slices.DeleteFunc(slices.Clone(memory.Chosen), func(id cluster.ID) bool { _, ok := absent[id]; return ok })
	memory.Chosen = c.dismiss(ranked, away, memory, absent)

	// Those that are chosen have an advantage over the others: the margin.
	for i := range ranked {
		ranked[i].Chosen = slices.Contains(memory.Chosen, ranked[i].ID)
	}
	slices.SortFunc(ranked, better(func(r Ranked) float64 {
		if r.Chosen {
			return r.Score + c.criteria.Margin
		}
		return r.Score
	}))
	wanted, ok := c.pick(ranked)
	if !ok {
		return decision, ErrSpread
	}
	decision.Memory, decision.Wait = c.settle(now, ranked, wanted, memory)
	decision.Substitutes = c.substitutes(ranked, away, absent, decision.Chosen, memory)
	decision.Chosen, decision.Away = slices.Clone(decision.Chosen), nil
	for id := range absent {
		decision.Chosen, decision.Away = append(decision.Chosen, id), absent
	}
	slices.Sort(decision.Chosen)
	for i := range decision.Ranking {
		decision.Ranking[i].Chosen = slices.Contains(decision.Chosen, decision.Ranking[i].ID)
	}
	return decision, nil
}

// Count returns how many of the ranked providers, or of their groups, are among some
// that are chosen, and how many pass the filters.
func (c *Chooser) Count(ranking []Ranked, chosen []cluster.ID) (of, passed int) {
	all, good := map[string]bool{}, map[string]bool{}
	for _, r := range ranking {
		if slices.Contains(chosen, r.ID) {
			all[c.unit(r)] = true
		}
		if r.Excluded == "" {
			good[c.unit(r)] = true
		}
	}
	return len(all), len(good)
}

// split takes the providers apart that cannot be used at the moment, which are in
// order of their IDs.
func split(providers []Provider) (here []Provider, away []Ranked) {
	here = make([]Provider, 0, len(providers))
	for _, p := range providers {
		if p.Away == "" {
			here = append(here, p)
		} else {
			away = append(away, Ranked{ID: p.ID, Name: p.Name, Excluded: p.Away, Away: true, labels: p.Labels})
		}
	}
	slices.SortFunc(away, func(a, b Ranked) int { return cmp.Compare(a.ID, b.ID) })
	return here, away
}

// absent returns the chosen providers that are away and keep their place: for a
// while if another one has to take it, and else for as long as it takes.
func (c *Chooser) absent(now time.Time, away []Ranked, memory Memory) map[cluster.ID]time.Time {
	absent := map[cluster.ID]time.Time{}
	for _, p := range away {
		if !slices.Contains(memory.Chosen, p.ID) {
			continue
		}
		since, known := memory.Away[p.ID]
		if !known || since.After(now) {
			since = now
		}
		if c.criteria.Max <= 0 || now.Sub(since) < c.criteria.Lasting {
			absent[p.ID] = since
		}
	}
	return absent
}

// settle decides whether the wanted providers take the place of those of the chosen ones
// that pass the filters: at once if that takes nothing away or these cannot stay as they
// are. Otherwise the best of those do that have been better for long enough. Until then the
// worst of the chosen ones go if there are too many, and others join them if there are too
// few.
func (c *Chooser) settle(now time.Time, ranked []Ranked, wanted []cluster.ID, memory Memory) (Memory, time.Duration) {
	var kept, others []Ranked
	beaten := -1 // The last of the chosen ones that would lose their place.
	for i, r := range ranked {
		if !r.Chosen {
			others = append(others, r)
			continue
		}
		kept = append(kept, r)
		if !slices.Contains(wanted, r.ID) {
			beaten = i
		}
	}
	// If nothing is lost by it, or not enough of what was chosen can stay, what is best is taken at once.
	resized, fits := c.pick(slices.Concat(kept, others))
	if beaten < 0 || !fits || slices.Equal(resized, wanted) {
		return Memory{Chosen: wanted}, 0
	}
	// Others take a place when they have been better for long enough; until then the clock of each runs.
	better, wait := map[cluster.ID]time.Time{}, time.Duration(0)
	open := c.units(kept)
	for _, r := range c.contenders(ranked, beaten, wanted, open, memory) {
		since := memory.Better[r.ID]
		if since.IsZero() || since.After(now) {
			since = now
		}
		better[r.ID] = since
		if rest := c.criteria.Lasting - now.Sub(since); rest <= 0 {
			open[c.unit(r)] = true
		} else if wait == 0 || rest < wait {
			wait = rest
		}
	}
	// Whoever has a place comes before all that have none, each in the order of their scores.
	var first, last []Ranked
	for _, r := range ranked {
		if open[c.unit(r)] {
			first = append(first, r)
		} else {
			last = append(last, r)
		}
	}
	chosen, ok := c.pick(slices.Concat(first, last))
	if !ok || slices.Equal(chosen, wanted) {
		return Memory{Chosen: wanted}, 0
	}
	maps.DeleteFunc(better, func(id cluster.ID, _ time.Time) bool { return slices.Contains(chosen, id) })
	return Memory{Chosen: chosen, Better: better}, wait
}

// maxContenders bounds how many providers are remembered to be better. Those that are
// remembered stay, so that many that take turns being the best do not keep each other from
// lasting.
const maxContenders = 16

// contenders returns the providers that would take the place of chosen ones, the first of
// a ranking of which the one at beaten is the last to lose its place.
func (c *Chooser) contenders(ranked []Ranked, beaten int, wanted []cluster.ID, kept map[string]bool, memory Memory) []Ranked {
	var known, others []Ranked
	for i, r := range ranked {
		if kept[c.unit(r)] || i > beaten && !slices.Contains(wanted, r.ID) {
			continue
		}
		if _, is := memory.Better[r.ID]; is {
			known = append(known, r)
		} else {
			others = append(others, r)
		}
	}
	all := slices.Concat(known, others)
	return all[:min(len(all), maxContenders)]
}

// dismiss returns the chosen providers that are here without the substitutes whose place is
// needed by those that are back: the worst of them go. Substitutes that are absent
// themselves are dropped when no place is left for any.
func (c *Chooser) dismiss(ranked, away []Ranked, memory Memory, absent map[cluster.ID]time.Time) []cluster.ID {
	if c.criteria.Max <= 0 || len(memory.Substitutes) == 0 {
		return memory.Chosen
	}
	seats := map[string]bool{}
	for _, r := range ranked {
		if slices.Contains(memory.Chosen, r.ID) && !slices.Contains(memory.Substitutes, r.ID) {
			seats[c.unit(r)] = true
		}
	}
	for _, r := range away {
		if slices.Contains(memory.Substitutes, r.ID) && !seats[c.unit(r)] && len(seats) >= c.criteria.Max {
			delete(absent, r.ID)
		}
	}
	stay := map[cluster.ID]bool{}
	for _, r := range ranked {
		if slices.Contains(memory.Substitutes, r.ID) && (seats[c.unit(r)] || len(seats) < c.criteria.Max) {
			seats[c.unit(r)], stay[r.ID] = true, true
		}
	}
	return slices.DeleteFunc(slices.Clone(memory.Chosen), func(id cluster.ID) bool {
		return slices.Contains(memory.Substitutes, id) && !stay[id]
	})
}

// substitutes returns those of the chosen providers that stand in for absent ones: those
// that did already, and then the worst of those that were not chosen before. One that is
// absent itself goes on to be one, and the providers of a group are or are not together.
func (c *Chooser) substitutes(ranked, away []Ranked, absent map[cluster.ID]time.Time, chosen []cluster.ID, memory Memory) []cluster.ID {
	if c.criteria.Max <= 0 {
		return nil
	}
	held := c.units(slices.DeleteFunc(slices.Clone(ranked), func(r Ranked) bool { return !slices.Contains(chosen, r.ID) }))
	empty := map[string]bool{}
	for _, r := range away {
		if _, is := absent[r.ID]; is && !held[c.unit(r)] {
			empty[c.unit(r)] = true
		}
	}
	standing := map[string]bool{}
	for _, again := range []bool{true, false} {
		for _, r := range slices.Backward(ranked) {
			was := slices.Contains(memory.Substitutes, r.ID)
			kept := !was && slices.Contains(memory.Chosen, r.ID)
			if slices.Contains(chosen, r.ID) && !kept && was == again && len(standing) < len(empty) {
				standing[c.unit(r)] = true
			}
		}
	}
	var ids []cluster.ID
	for _, r := range ranked {
		if slices.Contains(chosen, r.ID) && standing[c.unit(r)] {
			ids = append(ids, r.ID)
		}
	}
	for _, r := range away {
		_, is := absent[r.ID]
		if unit := c.unit(r); is && slices.Contains(memory.Substitutes, r.ID) && (standing[unit] || !held[unit]) {
			ids = append(ids, r.ID)
		}
	}
	slices.Sort(ids)
	return ids
}

// unit returns what is chosen as one: the provider, or its group.
func (c *Chooser) unit(r Ranked) string {
	if c.criteria.Group == "" {
		return string(r.ID)
	}
	return r.labels[c.criteria.Group]
}

// units returns the units of some providers.
func (c *Chooser) units(ranked []Ranked) map[string]bool {
	units := make(map[string]bool, len(ranked))
	for _, r := range ranked {
		units[c.unit(r)] = true
	}
	return units
}

// pick returns the first of the ranked providers, as many as allowed, that meet the
// spread constraints, in order of their IDs. A provider is passed over if the places after
// it would not suffice for the values that are missing.
func (c *Chooser) pick(ranked []Ranked) ([]cluster.ID, bool) {
	if c.criteria.Group != "" {
		return c.pickGroups(ranked)
	}
	most := c.criteria.Max
	if most <= 0 || most > len(ranked) {
		most = len(ranked)
	}
	picked := ranked[:most]
	if len(c.criteria.Spread) > 0 {
		var ok bool
		if picked, ok = c.spread(ranked, most); !ok {
			return nil, false
		}
	}
	ids := make([]cluster.ID, len(picked))
	for i, p := range picked {
		ids[i] = p.ID
	}
	slices.Sort(ids)
	return ids, len(ids) > 0
}

// pickGroups returns the providers of the first groups of a ranking, as many as
// allowed, in order of their IDs.
func (c *Chooser) pickGroups(ranked []Ranked) ([]cluster.ID, bool) {
	var ids []cluster.ID
	picked := map[string]bool{}
	for _, r := range ranked {
		if group := r.labels[c.criteria.Group]; picked[group] || c.criteria.Max <= 0 || len(picked) < c.criteria.Max {
			picked[group] = true
			ids = append(ids, r.ID)
		}
	}
	slices.Sort(ids)
	return ids, len(ids) > 0
}

// better orders providers: by score, then those with fewer unknown KPIs, then
// by ID. The score is that of the function, if there is one.
func better(score func(Ranked) float64) func(a, b Ranked) int {
	if score == nil {
		score = func(r Ranked) float64 { return r.Score }
	}
	return func(a, b Ranked) int {
		return cmp.Or(cmp.Compare(score(b), score(a)), cmp.Compare(a.unknown, b.unknown), cmp.Compare(a.ID, b.ID))
	}
}
