// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

// Package views decides, on a consumer with Liqo 1.x, which networks it reaches through a broker: those of the broker itself, and the
// views that the broker grants, which are the prefixes under which it sees the pods of providers. It says in which order they are listed,
// which virtual kubelets must be replaced because they have read another list, which views the broker may rely on, and when it is told so.
//
// It decides on values and remembers nothing: what it has to know again is in [Record] and [Telling]. It does not know how a list is
// written, nor how packets travel.
package views

import (
	"cmp"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"time"

	"github.com/capacitorset/liqo-broker/pkg/core/addressing"
)

const (
	// slack is by how much the clocks of this program and of the API server may differ, which writes times in whole seconds.
	slack = 2 * time.Second
	// settle is how long a virtual kubelet has to take up its pods before another one is replaced: several at once under load have ended
	// pods that ran.
	settle = 30 * time.Second
	// impatience is how long Liqo may take to decide about a list before it is taken for stuck, and despair if pods would notice what is
	// done then.
	impatience = 10 * time.Second
	despair    = 5 * time.Minute
	// maxEpochs is how many lists are remembered. A virtual kubelet that is older than all of them is replaced.
	maxEpochs = 16
)

// State is what there is on a consumer at one moment, of one broker.
type State struct {
	// Granted are the prefixes that the broker grants, by their keys, as it has written them.
	Granted map[string]netip.Prefix
	// Networks are the list as it is, each as the broker knows it and as it is seen here; Seen is not valid while Liqo has not decided.
	Networks []addressing.View
	// Generation is that of the object which has the list, and Since when this program has seen it first, zero if it never has. Observed is
	// the generation about which Liqo has said something last, and Decided tells that it has decided about all of the list as it is.
	Generation, Observed int64
	Since                time.Time
	Decided              bool
	// Taken are the networks of this cluster, and those under which it sees other peers.
	Taken []netip.Prefix
	// Hosts are the addresses of this cluster's nodes that Liqo does not know: what goes there would be led to the broker.
	Hosts []netip.Addr
	// Shown are the addresses of this cluster's pods on the nodes of the broker.
	Shown []netip.Addr
	// Kubelets are the virtual kubelets of these nodes.
	Kubelets []Kubelet
	// Record is that of the last plan, and Looked when this program has last planned with what was there; zero if it has not.
	Record Record
	Looked time.Time
	// Acknowledged is what this program acknowledged then.
	Acknowledged map[string]netip.Prefix
	// Belief is what the broker may take for installed; nil if nothing is known of that.
	Belief *Belief
	// Now is the time.
	Now time.Time
}

// Kubelet is a virtual kubelet. It reads the list when it starts, and never again.
type Kubelet struct {
	Name string
	// Made is when its pod was made.
	Made  time.Time
	Ready bool
}

// Record is what must be known again at the next plan. It is stored beside the list, and written together with it.
type Record struct {
	// Views are the networks of the list that are none of the broker's own.
	Views []netip.Prefix `json:"views,omitempty"`
	// Epochs are the lists that virtual kubelets have read, in the order of time; the last one may still last.
	Epochs []Epoch `json:"epochs,omitempty"`
}

// Epoch is a time during which the list was decided and the same.
type Epoch struct {
	// From is when it was first seen so, and zero if it was before anything is known; Until when it was last, and zero while it lasts.
	From  time.Time `json:"from,omitzero"`
	Until time.Time `json:"until,omitzero"`
	// Generation is that of the list.
	Generation int64 `json:"generation"`
	// Remapped are the networks that are seen under other prefixes here.
	Remapped map[netip.Prefix]netip.Prefix `json:"remapped,omitempty"`
}

// Plan is what is to be done.
type Plan struct {
	// List is what the list is to be; what Liqo makes of it is known at a later plan.
	List []netip.Prefix
	// Record is to be written with it.
	Record Record
	// Restart is the virtual kubelet that is to be replaced now; empty if none is. There may be more afterwards.
	Restart string
	// Acknowledged are the views that are installed: what a virtual kubelet shows in one of them is the address of that pod here. While Liqo
	// decides about the list, they are those that were acknowledged before, and are as they were.
	Acknowledged map[string]netip.Prefix
	// Waiting and Refused are why others are not, by their keys: they may be soon, or not as they are.
	Waiting, Refused map[string]string
}

// Make returns what is to be done.
//
// The order of the list never changes: the broker's own networks, as they are, and then the views, the oldest first. A view that is not
// granted any more stays while a pod is shown under an address in it, and while the broker may believe that it is there: it is told first
// that it is not. If the list was overwritten, it becomes what it was, once Liqo has dealt with what was written.
func Make(s *State) Plan {
	p := planner{State: s, plan: Plan{Waiting: map[string]string{}, Refused: map[string]string{}, Acknowledged: map[string]netip.Prefix{}}}
	p.split()
	if len(p.own) == 0 {
		// Whatever came first would count as the broker's own.
		p.plan.List, p.plan.Record = p.listed(), s.Record
		return p.plan
	}
	p.choose()
	p.plan.List = p.next(slices.Concat(p.own, p.views))
	p.plan.Record = Record{Views: p.recorded(), Epochs: p.epochs()}
	p.judge()
	return p.plan
}

// planner is a plan in the making.
type planner struct {
	*State
	plan Plan
	// own are the networks of the list that are the broker's, and views those that follow them.
	own, views []netip.Prefix
	// wanted are the granted views that can be listed.
	wanted map[string]netip.Prefix
	// leaving is a view that is to be taken out of the list for a moment, once the broker does not believe in it; not valid if none is.
	leaving netip.Prefix
}

// listed returns the list as it is.
func (p *planner) listed() []netip.Prefix {
	list := make([]netip.Prefix, len(p.Networks))
	for i := range p.Networks {
		list[i] = p.Networks[i].Own
	}
	return list
}

// split tells the broker's own networks from the views.
func (p *planner) split() {
	for i, prefix := range p.listed() {
		if !p.isView(i) {
			p.own = append(p.own, prefix)
		}
	}
}

// isView reports whether a network of the list is none of the broker's own. The first one always is, unless it is recorded; one behind it
// that is granted, too, somebody has put there by hand.
func (s *State) isView(at int) bool {
	own := s.Networks[at].Own
	granted := slices.Contains(slices.Collect(maps.Values(s.Granted)), own)
	return slices.Contains(s.Record.Views, own) || at > 0 && granted
}

// Seen returns under which prefixes the listed views are seen here, in their order; none while Liqo has not decided about all of the list.
func (s *State) Seen() []netip.Prefix {
	if !s.Decided {
		return nil
	}
	var seen []netip.Prefix
	for i := range s.Networks {
		if s.isView(i) && s.Networks[i].Seen.IsValid() {
			seen = append(seen, s.Networks[i].Seen)
		}
	}
	return seen
}

// choose decides which views are listed: those that were, as long as they are wanted or used, and then new ones by key.
func (p *planner) choose() {
	// Which could be. What is listed is not put at risk by what comes.
	p.wanted = map[string]netip.Prefix{}
	order := slices.SortedFunc(maps.Keys(p.Granted), func(a, b string) int {
		return cmp.Or(p.age(a)-p.age(b), cmp.Compare(a, b))
	})
	var taken []netip.Prefix
	for _, prefix := range p.Record.Views {
		if p.stays(prefix) {
			taken = append(taken, prefix)
		}
	}
	for _, key := range order {
		prefix := p.Granted[key]
		if reason := p.checkView(key, prefix, taken); reason != "" {
			p.plan.Refused[key] = reason
			continue
		}
		p.wanted[key] = prefix
		if !slices.Contains(taken, prefix) {
			taken = append(taken, prefix)
		}
	}

	// Which are.
	for _, prefix := range p.Record.Views {
		if p.stays(prefix) || slices.Contains(slices.Collect(maps.Values(p.wanted)), prefix) {
			p.views = append(p.views, prefix)
		}
	}
	for _, key := range order {
		if prefix, is := p.wanted[key]; is && !slices.Contains(p.views, prefix) {
			p.views = append(p.views, prefix)
		}
	}
}

// next returns which list is written now on the way to the one that is wanted.
//
// Liqo 1.2.0 writes which generation it has decided about only if it writes something else as well: its copy of a Configuration shares the
// conditions with the original, in which it looks for changes (ConfigurationStatus.DeepCopyInto in liqo/apis/networking/v1beta1@v1.2.0). A
// list that becomes again what it was, before Liqo has said anything about what it was in between, is never decided, neither for liqoctl
// nor virtual kubelets. So each list stays until Liqo has dealt with it, and one about which it says nothing is changed, and then changed
// back: two views in another order are reached as before, and a single one is taken out when the broker does not believe in it.
func (p *planner) next(wanted []netip.Prefix) []netip.Prefix {
	listed := p.listed()
	var waited time.Duration
	if !p.Since.IsZero() {
		waited = p.Now.Sub(p.Since)
	}
	same, last := slices.Equal(wanted, listed), len(wanted)-1
	switch {
	case p.Generation == p.Observed, !same && waited >= impatience:
		return wanted // Liqo has dealt with the list, or it is not to stay as it is anyway.
	case waited < impatience:
		return listed // Liqo may say something yet.
	case len(p.views) == 0:
		return listed // The broker's own networks are not for this program to change.
	case len(p.views) > 1:
		return append(slices.Clone(wanted[:last-1]), wanted[last], wanted[last-1]) // No pod notices.
	case waited >= despair, !p.isShown(wanted[last]):
		if p.Belief.Has(wanted[last], p.Now) {
			p.leaving = wanted[last]
			return listed // The broker is told first.
		}
		return wanted[:last] // Nothing else can be changed, and no pod notices, or it has to.
	default:
		return listed // Pods are shown in the only view: Liqo has some more time.
	}
}

// recorded returns the views, with those that are listed still although they are not wanted any more: else they would be taken for the
// broker's own.
func (p *planner) recorded() []netip.Prefix {
	all := slices.DeleteFunc(slices.Clone(p.Record.Views), func(v netip.Prefix) bool {
		return !slices.Contains(p.views, v) && !slices.Contains(p.plan.List, v)
	})
	for _, v := range p.views {
		if !slices.Contains(all, v) {
			all = append(all, v)
		}
	}
	return all
}

// age returns the place of a granted view among those that are listed, and one behind them for others.
func (p *planner) age(key string) int {
	if at := slices.Index(p.Record.Views, p.Granted[key]); at >= 0 {
		return at
	}
	return len(p.Record.Views)
}

// checkView returns why a view cannot be listed beside others; empty if it can.
func (p *planner) checkView(key string, prefix netip.Prefix, others []netip.Prefix) string {
	if err := cmp.Or(CheckKey(key), CheckPrefix(prefix)); err != nil {
		return err.Error()
	}
	if len(others) >= MaxViews && !slices.Contains(others, prefix) {
		return fmt.Sprintf("there are more than %d views", MaxViews)
	}
	if prefix != prefix.Masked() {
		return fmt.Sprintf("prefix %s has bits that are not of the network", prefix)
	}
	if at := slices.IndexFunc(p.Hosts, prefix.Contains); at >= 0 {
		return fmt.Sprintf("prefix %s has %s, the address of a node of this cluster, which Liqo does not know: set ipam.reservedSubnets", prefix,
			p.Hosts[at])
	}
	for _, other := range p.own {
		if prefix.Overlaps(other) {
			return fmt.Sprintf("prefix %s overlaps %s, which is the broker's own", prefix, other)
		}
	}
	for _, other := range others {
		if prefix.Overlaps(other) && (prefix != other || slices.Contains(slices.Collect(maps.Values(p.wanted)), prefix)) {
			return fmt.Sprintf("prefix %s overlaps %s, which is another view", prefix, other)
		}
	}
	return ""
}

// stays reports whether a network may not go yet: a pod is shown in it, or the broker may place one there.
func (p *planner) stays(own netip.Prefix) bool { return p.isShown(own) || p.Belief.Has(own, p.Now) }

// isShown reports whether a pod is shown under an address in a network: as the broker knows it, or as it is seen here.
func (p *planner) isShown(own netip.Prefix) bool {
	return slices.ContainsFunc(p.Shown, func(a netip.Addr) bool {
		if own.Contains(a) || p.seen(own).Contains(a) {
			return true
		}
		// Liqo may have been deciding again since the address was shown.
		return slices.ContainsFunc(p.Record.Epochs, func(e Epoch) bool { return e.Remapped[own].Contains(a) })
	})
}

// seen returns under which prefix a network of the list is seen here; it is not valid if Liqo has not decided, or it is not listed.
func (p *planner) seen(own netip.Prefix) netip.Prefix {
	for _, n := range p.Networks {
		if n.Own == own {
			return n.Seen
		}
	}
	return netip.Prefix{}
}

// epochs returns the lists that virtual kubelets have read, with the present one if it is decided.
func (p *planner) epochs() []Epoch {
	epochs := slices.Clone(p.Record.Epochs)
	now := Epoch{From: p.Now, Generation: p.Generation, Remapped: map[netip.Prefix]netip.Prefix{}}
	for _, n := range p.Networks {
		if n.Seen.IsValid() && n.Seen != n.Own {
			now.Remapped[n.Own] = n.Seen
		}
	}
	if len(epochs) == 0 && len(p.Record.Views) == 0 {
		now.From = time.Time{} // Nothing was changed yet: virtual kubelets that are there have read it.
	}

	// What lasted has ended, unless it still does.
	lasts := false
	if last := len(epochs) - 1; last >= 0 && epochs[last].Until.IsZero() {
		if e := &epochs[last]; p.Decided && e.Generation == now.Generation && maps.Equal(e.Remapped, now.Remapped) {
			lasts = true
		} else {
			if e.Until = p.Looked; e.Until.Before(e.From) {
				e.Until = e.From
			}
			if e.Until.IsZero() {
				e.Until = time.Unix(0, 0) // Nobody knows until when it lasted.
			}
		}
	}
	switch {
	case p.Decided && !lasts:
		epochs = append(epochs, now)
	case len(epochs) == 0:
		epochs = append(epochs, Epoch{Until: time.Unix(0, 0)}) // Nobody knows what virtual kubelets have read that are there.
	}
	if last := len(epochs) - 1; last >= 0 && epochs[last].Until.IsZero() && !slices.Equal(p.plan.List, p.listed()) {
		epochs[last].Until = p.Now // It ends by what is written now.
	}

	// What nobody has read, and no pod is shown by, is forgotten, but for the last one: it tells that this is not the beginning.
	last := len(epochs) - 1
	kept := slices.DeleteFunc(epochs[:max(0, last)], func(e Epoch) bool {
		return !e.Until.IsZero() && !slices.ContainsFunc(p.Kubelets, func(k Kubelet) bool { return e.has(k.Made) }) &&
			!slices.ContainsFunc(p.Shown, e.isSeen)
	})
	kept = append(kept, epochs[max(0, last):]...)
	return kept[max(0, len(kept)-maxEpochs):]
}

// has reports whether a virtual kubelet that was made at a time has certainly read the list of an epoch.
func (e *Epoch) has(made time.Time) bool {
	return (e.From.IsZero() || made.After(e.From.Add(slack))) && (e.Until.IsZero() || made.Add(slack).Before(e.Until))
}

// shows returns under which prefix a virtual kubelet that has read the list of an epoch shows pods in a network. What is not remapped it
// shows as it is told.
func (e *Epoch) shows(own netip.Prefix) netip.Prefix {
	if seen, is := e.Remapped[own]; is {
		return seen
	}
	return own
}

// isSeen reports whether an address is in a network that is remapped.
func (e *Epoch) isSeen(a netip.Addr) bool {
	for _, seen := range e.Remapped {
		if seen.Contains(a) {
			return true
		}
	}
	return false
}

// judge decides which views are installed, and which virtual kubelet is replaced.
func (p *planner) judge() {
	if !p.Decided || !slices.Equal(p.plan.List, p.listed()) {
		p.hold()
		return
	}
	stale := map[string]bool{}
	for _, key := range slices.Sorted(maps.Keys(p.wanted)) {
		own := p.wanted[key]
		seen := p.seen(own)
		switch wrong, behind := p.checkSeen(own, seen), p.behind(own, seen); {
		case wrong != "":
			p.plan.Refused[key] = wrong
		case len(behind) > 0:
			p.plan.Waiting[key] = fmt.Sprintf("%d virtual kubelets have read another list, the first is %s", len(behind), behind[0])
			for _, name := range behind {
				stale[name] = true
			}
		default:
			p.plan.Acknowledged[key] = own
		}
	}
	p.plan.Restart = p.replaced(stale)
}

// hold acknowledges, while Liqo decides, what was acknowledged before, and is listed and seen as it was. A list that grows makes nobody
// wait for what was there before: Liqo gives each network its prefix once. What is not listed, now and by what is written next, or is seen
// otherwise, may lead anywhere. That includes a network whose place in the list was another, because what Liqo has decided is in the order
// of the list of before. What is about to be taken out is not either: the broker knows first.
func (p *planner) hold() {
	before := &p.plan.Record.Epochs[len(p.plan.Record.Epochs)-1]
	for key, own := range p.wanted {
		seen := p.seen(own)
		isAsBefore := p.Acknowledged[key] == own && own != p.leaving && slices.Contains(p.plan.List, own) && before.shows(own) == seen
		if isAsBefore && p.checkSeen(own, seen) == "" && len(p.behind(own, seen)) == 0 {
			p.plan.Acknowledged[key] = own
		} else {
			p.plan.Waiting[key] = "Liqo decides under which prefixes networks are seen here"
		}
	}
}

// checkSeen returns why a view cannot be seen under a prefix here; empty if it can. Liqo gives each network one of its own; what says
// otherwise was not written by it.
func (p *planner) checkSeen(own, seen netip.Prefix) string {
	if !seen.IsValid() || seen.Bits() != own.Bits() {
		return fmt.Sprintf("prefix %s cannot be seen as %s", own, seen)
	}
	others := slices.Clone(p.Taken)
	for _, n := range p.Networks {
		if n.Own != own && n.Seen.IsValid() {
			others = append(others, n.Seen)
		}
	}
	if err := addressing.CheckReport(seen, others...); err != nil {
		return err.Error()
	}
	return ""
}

// behind returns the virtual kubelets that do not show pods in a network as it is seen here, or may not.
func (p *planner) behind(own, seen netip.Prefix) []string {
	var names []string
	for _, k := range p.Kubelets {
		read := slices.IndexFunc(p.plan.Record.Epochs, func(e Epoch) bool { return e.has(k.Made) })
		if read < 0 || p.plan.Record.Epochs[read].shows(own) != seen {
			names = append(names, k.Name)
		}
	}
	slices.Sort(names)
	return names
}

// replaced returns which of the virtual kubelets that have read another list is replaced now: the oldest one, once the others have taken up
// their pods, and it had the time to do so itself.
func (p *planner) replaced(stale map[string]bool) string {
	var oldest *Kubelet
	for i := range p.Kubelets {
		k := &p.Kubelets[i]
		if p.Now.Sub(k.Made) < settle {
			return ""
		}
		if stale[k.Name] && (oldest == nil || cmp.Or(k.Made.Compare(oldest.Made), cmp.Compare(k.Name, oldest.Name)) < 0) {
			oldest = k
		}
	}
	if oldest == nil {
		return ""
	}
	for i := range p.Kubelets {
		if k := &p.Kubelets[i]; !k.Ready && k.Name != oldest.Name {
			return ""
		}
	}
	return oldest.Name
}
