// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package views_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/capacitorset/liqo-broker/pkg/core/addressing"
	"github.com/capacitorset/liqo-broker/pkg/core/views"
)

// at returns a second of the tests.
func at(second int) time.Time { return time.Unix(1_000_000+int64(second), 0) }

// list reads prefixes.
func list(all ...string) []netip.Prefix {
	var prefixes []netip.Prefix
	for _, text := range all {
		prefixes = append(prefixes, netip.MustParsePrefix(text))
	}
	return prefixes
}

// granted reads views, each written as key=prefix.
func granted(all ...string) map[string]netip.Prefix {
	views := map[string]netip.Prefix{}
	for _, text := range all {
		key, prefix, _ := strings.Cut(text, "=")
		views[key] = netip.MustParsePrefix(prefix)
	}
	return views
}

// networks reads a list as it is, each written as own or as own=seen; own= is not decided.
func networks(all ...string) []addressing.View {
	var views []addressing.View
	for _, text := range all {
		own, seen, remapped := strings.Cut(text, "=")
		v := addressing.View{Own: netip.MustParsePrefix(own), Seen: netip.MustParsePrefix(own)}
		if remapped {
			v.Seen = netip.Prefix{}
		}
		if seen != "" {
			v.Seen = netip.MustParsePrefix(seen)
		}
		views = append(views, v)
	}
	return views
}

func addresses(all ...string) []netip.Addr {
	var addrs []netip.Addr
	for _, text := range all {
		addrs = append(addrs, netip.MustParseAddr(text))
	}
	return addrs
}

// epoch returns one with some networks that are remapped, each written as own=seen. A second of -1 is no time.
func epoch(from, until int, remapped ...string) views.Epoch {
	e := views.Epoch{Generation: 1, Remapped: map[netip.Prefix]netip.Prefix{}}
	if from >= 0 {
		e.From = at(from)
	}
	if until >= 0 {
		e.Until = at(until)
	}
	for _, v := range networks(remapped...) {
		e.Remapped[v.Own] = v.Seen
	}
	return e
}

// believed returns the Belief of a broker that was told of views a second before the tests look, each written as key=prefix.
func believed(all ...string) *views.Belief {
	b := &views.Belief{}
	b.Tell(granted(all...), at(99))
	return b
}

func kubelet(name string, made int) views.Kubelet {
	return views.Kubelet{Name: name, Made: at(made), Ready: true}
}

func TestMake(t *testing.T) {
	const own, a, b, c = "10.201.0.0/16", "10.69.0.0/16", "10.65.0.0/16", "10.66.0.0/16"
	const elsewhere = "10.64.0.0/16" // Where b is seen.
	installed := func(of ...string) views.Record {
		return views.Record{Views: list(of...), Epochs: []views.Epoch{epoch(-1, -1)}}
	}
	cases := map[string]struct {
		reason       string
		state        views.State
		list         []netip.Prefix
		acknowledged map[string]netip.Prefix
		waiting      string
		refused      string
		restart      string
	}{
		"Nothing": {
			reason: "Without views the list is the broker's.", state: views.State{Networks: networks(own)}, list: list(own),
		},
		"First": {
			reason: "Views follow the broker's own, by key, and are not acknowledged before Liqo has decided.",
			state:  views.State{Granted: granted("b="+b, "a="+a), Networks: networks(own)}, list: list(own, a, b), waiting: "Liqo decides",
		},
		"OwnOrder": {
			reason: "The broker's own networks stay as they are.", waiting: "Liqo decides",
			state: views.State{Granted: granted("a=" + a), Networks: networks(own, "10.9.0.0/16")}, list: list(own, "10.9.0.0/16", a),
		},
		"Installed": {
			reason: "What is there as it is told needs no virtual kubelet to be replaced.",
			state: views.State{
				Granted: granted("a=" + a), Networks: networks(own, a), Record: installed(a), Kubelets: []views.Kubelet{kubelet("old", 1)},
			},
			list: list(own, a), acknowledged: granted("a=" + a),
		},
		"NotDecided": {
			reason: "Of what comes Liqo has not decided.", list: list(own, b, a), waiting: "Liqo decides", acknowledged: granted("b=" + b),
			state: views.State{
				Granted: granted("a="+a, "b="+b), Networks: networks(own, b, a+"="), Record: installed(b, a), Generation: -1,
				Acknowledged: granted("b=" + b), Looked: at(90),
				Kubelets: []views.Kubelet{kubelet("old", 1)},
			},
		},
		"NotDecidedRemapped": {
			reason: "What was remapped may be so as before.", list: list(own, b, a), waiting: "Liqo decides", acknowledged: granted("b=" + b),
			state: views.State{
				Granted: granted("a="+a, "b="+b), Networks: networks(own, b+"="+elsewhere, a+"="), Generation: -1,
				Acknowledged: granted("b=" + b), Looked: at(90),
				Kubelets: []views.Kubelet{kubelet("new", 30)},
				Record:   views.Record{Views: list(b, a), Epochs: []views.Epoch{epoch(-1, 10), epoch(20, -1, b+"="+elsewhere)}},
			},
		},
		"NotDecidedMoved": {
			reason: "What is seen otherwise meanwhile may lead anywhere.", list: list(own, b), waiting: "Liqo decides",
			state: views.State{
				Granted: granted("b=" + b), Networks: networks(own, b+"="+elsewhere), Record: installed(b), Generation: -1,
				Acknowledged: granted("b=" + b), Looked: at(90),
			},
		},
		"NotDecidedPlace": {
			reason: "What Liqo has decided is in the order of the list of before.", list: list(own, b, a), waiting: "Liqo decides",
			state: views.State{
				Granted: granted("a="+a, "b="+b), Networks: networks(own, b+"="+a, a+"="+b), Record: installed(b, a), Generation: -1,
				Acknowledged: granted("b=" + b),
			},
		},
		"NotDecidedTaken": {
			reason: "What is taken meanwhile is not relied on.", list: list(own, b), waiting: "Liqo decides",
			state: views.State{
				Granted: granted("b=" + b), Networks: networks(own, b), Record: installed(b), Generation: -1,
				Acknowledged: granted("b=" + b), Taken: list("10.65.3.0/24"),
			},
		},
		"NotDecidedRead": {
			reason: "One that is made meanwhile shows no address at all.", list: list(own, b), waiting: "Liqo decides",
			state: views.State{
				Granted: granted("b=" + b), Networks: networks(own, b), Record: installed(b), Generation: -1,
				Acknowledged: granted("b=" + b), Looked: at(90),
				Kubelets: []views.Kubelet{kubelet("old", 1), kubelet("odd", 95)},
			},
		},
		"NotDecidedBefore": {
			reason: "What was not acknowledged is not yet.", list: list(own, b), waiting: "Liqo decides",
			state: views.State{Granted: granted("b=" + b), Networks: networks(own, b), Record: installed(b), Generation: -1},
		},
		"NotDecidedKey": {
			reason: "Nor what was acknowledged of another network.", list: list(own, b), waiting: "Liqo decides",
			state: views.State{
				Granted: granted("b=" + b), Networks: networks(own, b), Record: installed(b), Generation: -1, Acknowledged: granted("b=" + a),
			},
		},
		"Later": {
			reason: "What comes later is listed last, whatever its key is.", list: list(own, b, a), waiting: "Liqo decides",
			state: views.State{
				Granted: granted("a="+a, "b="+b), Networks: networks(own, b), Record: installed(b), Acknowledged: granted("b=" + b),
			},
			acknowledged: granted("b=" + b),
		},
		"Overwritten": {
			reason: "What somebody has taken out is listed again, in the same order.", list: list(own, b, a), waiting: "Liqo decides",
			state: views.State{Granted: granted("a="+a, "b="+b), Networks: networks(own), Record: installed(b, a)},
		},
		"OverwrittenByOthers": {
			reason: "What somebody has put there is the broker's own.", list: list(own, c, a), waiting: "Liqo decides",
			state: views.State{Granted: granted("a=" + a), Networks: networks(own, c), Record: installed(a)},
		},
		"ByHand": {
			reason: "What somebody has listed by hand is taken over.", list: list(own, a), acknowledged: granted("a=" + a),
			state: views.State{Granted: granted("a=" + a), Networks: networks(own, a)},
		},
		"NotTheFirst": {
			reason: "But not the first one, without which nothing of the broker is reached.", list: list(own), refused: "the broker's own",
			state: views.State{Granted: granted("a=" + own), Networks: networks(own)},
		},
		"NoList": {
			reason: "A list that names nothing is not there yet.", state: views.State{Granted: granted("a=" + a)},
		},
		"OnlyViews": {
			reason: "If the broker's own is gone, nothing takes its place.", list: list(a),
			state: views.State{Granted: granted("a=" + a), Networks: networks(a), Record: installed(a)},
		},
		"Remapped": {
			reason: "A virtual kubelet that was made before is replaced first.", list: list(own, b), restart: "old", waiting: "1 virtual kubelets",
			state: views.State{
				Granted: granted("b=" + b), Networks: networks(own, b+"="+elsewhere), Kubelets: []views.Kubelet{kubelet("old", 1)},
				Record: views.Record{Views: list(b), Epochs: []views.Epoch{epoch(-1, 10), epoch(20, -1, b+"="+elsewhere)}},
			},
		},
		"RemappedLater": {
			reason: "One that was made afterwards knows it.", list: list(own, b), acknowledged: granted("b=" + b),
			state: views.State{
				Granted: granted("b=" + b), Networks: networks(own, b+"="+elsewhere), Kubelets: []views.Kubelet{kubelet("new", 30)},
				Record: views.Record{Views: list(b), Epochs: []views.Epoch{epoch(-1, 10), epoch(20, -1, b+"="+elsewhere)}},
			},
		},
		"Between": {
			reason: "One that was made while Liqo decided shows no address at all.", list: list(own, a), restart: "odd", waiting: "odd",
			state: views.State{
				Granted: granted("a=" + a), Networks: networks(own, a), Kubelets: []views.Kubelet{kubelet("odd", 15), kubelet("old", 1)},
				Record: views.Record{Views: list(a), Epochs: []views.Epoch{epoch(-1, 10), epoch(20, -1)}},
			},
		},
		"SameSecond": {
			reason: "Times are whole seconds: who may have been made while Liqo decided has been.", restart: "odd", waiting: "odd",
			state: views.State{
				Granted: granted("a=" + a), Networks: networks(own, a), Kubelets: []views.Kubelet{kubelet("odd", 9)},
				Record: views.Record{Views: list(a), Epochs: []views.Epoch{epoch(-1, 10), epoch(20, -1)}},
			},
			list: list(own, a),
		},
		"SameSecondLater": {
			reason: "Nor is it known of one that was made just then.", restart: "odd", waiting: "odd", list: list(own, a),
			state: views.State{
				Granted: granted("a=" + a), Networks: networks(own, a), Kubelets: []views.Kubelet{kubelet("odd", 21)},
				Record: views.Record{Views: list(a), Epochs: []views.Epoch{epoch(-1, 10), epoch(20, -1)}},
			},
		},
		"NotRemappedAnyMore": {
			reason: "One that knows another prefix is replaced as well.", list: list(own, b), restart: "old", waiting: "old",
			state: views.State{
				Granted: granted("b=" + b), Networks: networks(own, b), Kubelets: []views.Kubelet{kubelet("old", 1)},
				Record: views.Record{Views: list(b), Epochs: []views.Epoch{epoch(-1, 10, b+"="+elsewhere), epoch(20, -1)}},
			},
		},
		"NothingIsKnown": {
			reason: "Who comes while Liqo decides does not know what is read.", list: list(own, a), restart: "old", waiting: "old",
			state: views.State{
				Granted: granted("a=" + a), Networks: networks(own, a), Kubelets: []views.Kubelet{kubelet("old", 1)},
				Record: views.Record{Views: list(a), Epochs: []views.Epoch{{Until: time.Unix(0, 0)}}},
			},
		},
		"MovedWithoutAWord": {
			reason: "Liqo may give another prefix while the list is the same.", list: list(own, b), restart: "old", waiting: "old",
			state: views.State{
				Granted: granted("b=" + b), Networks: networks(own, b+"="+elsewhere), Kubelets: []views.Kubelet{kubelet("old", 1)},
				Record: views.Record{Views: list(b), Epochs: []views.Epoch{epoch(-1, -1, b+"=10.63.0.0/16")}}, Looked: at(90),
			},
		},
		"OthersGoOn": {
			reason: "A view that needs no other virtual kubelet does not wait for one that does.", list: list(own, a, b), restart: "old",
			waiting: "old", acknowledged: granted("a=" + a),
			state: views.State{
				Granted: granted("a="+a, "b="+b), Networks: networks(own, a, b+"="+elsewhere), Kubelets: []views.Kubelet{kubelet("old", 1)},
				Record: views.Record{Views: list(a, b), Epochs: []views.Epoch{epoch(-1, 10), epoch(20, -1, b+"="+elsewhere)}},
			},
		},
		"OneAtATime": {
			reason: "The next is replaced when the one before has had time.", list: list(own, b), waiting: "old",
			state: views.State{
				Granted: granted("b=" + b), Networks: networks(own, b+"="+elsewhere),
				Kubelets: []views.Kubelet{kubelet("old", 1), kubelet("new", 80)},
				Record:   views.Record{Views: list(b), Epochs: []views.Epoch{epoch(-1, 10), epoch(20, -1, b+"="+elsewhere)}},
			},
		},
		"OneIsNotReady": {
			reason: "Nor while one is not ready.", list: list(own, b), waiting: "old",
			state: views.State{
				Granted: granted("b=" + b), Networks: networks(own, b+"="+elsewhere),
				Kubelets: []views.Kubelet{kubelet("old", 1), {Name: "older", Made: at(0)}, {Name: "new", Made: at(60)}},
				Record:   views.Record{Views: list(b), Epochs: []views.Epoch{epoch(-1, 10), epoch(20, -1, b+"="+elsewhere)}},
			},
		},
		"AnotherIsNotReady": {
			reason: "Nor while another one is not that is to be replaced.", list: list(own, b), waiting: "old",
			state: views.State{
				Granted: granted("b=" + b), Networks: networks(own, b+"="+elsewhere),
				Kubelets: []views.Kubelet{kubelet("old", 0), {Name: "older", Made: at(1)}},
				Record:   views.Record{Views: list(b), Epochs: []views.Epoch{epoch(-1, 10), epoch(20, -1, b+"="+elsewhere)}},
			},
		},
		"Itself": {
			reason: "One that is not ready itself is replaced all the same.", list: list(own, b), waiting: "old", restart: "old",
			state: views.State{
				Granted: granted("b=" + b), Networks: networks(own, b+"="+elsewhere), Kubelets: []views.Kubelet{{Name: "old", Made: at(1)}},
				Record: views.Record{Views: list(b), Epochs: []views.Epoch{epoch(-1, 10), epoch(20, -1, b+"="+elsewhere)}},
			},
		},
		"Withdrawn": {
			reason: "What nobody uses goes, and what follows it stays as it is.", list: list(own, b), acknowledged: granted("b=" + b),
			state: views.State{
				Granted: granted("b=" + b), Networks: networks(own, a, b), Record: installed(a, b), Acknowledged: granted("b=" + b),
			},
		},
		"Used": {
			reason: "What a pod is shown in stays, in its place, and is not acknowledged.", list: list(own, a, b), acknowledged: granted("b=" + b),
			state: views.State{
				Granted: granted("b=" + b), Networks: networks(own, a, b), Record: installed(a, b), Shown: addresses("10.69.0.7"),
			},
		},
		"UsedRemapped": {
			reason: "Also if it is shown under another prefix here.", list: list(own, b),
			state: views.State{Networks: networks(own, b+"="+elsewhere), Record: installed(b), Shown: addresses("10.64.0.7")},
		},
		"UsedBefore": {
			reason: "Also if that was overwritten in between.", list: list(own, b),
			state: views.State{
				Networks: networks(own), Shown: addresses("10.64.0.7"),
				Record: views.Record{Views: list(b), Epochs: []views.Epoch{epoch(1, -1, b+"="+elsewhere)}},
			},
		},
		"InTheWay": {
			reason: "What comes waits until what it overlaps is not used any more.", list: list(own, a), refused: "another view",
			state: views.State{
				Granted: granted("a=10.69.128.0/17"), Networks: networks(own, a), Record: installed(a), Shown: addresses("10.69.0.7"),
			},
		},
		"Believed": {
			reason: "What the broker may believe to be there stays, in its place, and is not acknowledged.", list: list(own, a, b),
			acknowledged: granted("b=" + b),
			state: views.State{
				Granted: granted("b=" + b), Networks: networks(own, a, b), Record: installed(a, b), Belief: believed("a="+a, "b="+b),
				Acknowledged: granted("a="+a, "b="+b),
			},
		},
		"BelievedOverwritten": {
			reason: "Also if somebody has taken it out.", list: list(own, a),
			state: views.State{Networks: networks(own), Record: installed(a), Belief: believed("a=" + a)},
		},
		"BelievedOther": {
			reason: "What has another prefix now comes at once, and what it had stays.", list: list(own, a, b), waiting: "Liqo decides",
			state: views.State{Granted: granted("a=" + b), Networks: networks(own, a), Record: installed(a), Belief: believed("a=" + a)},
		},
		"BelievedOtherKey": {
			reason: "A prefix stays, whatever it is called.", list: list(own, a), acknowledged: granted("b=" + a),
			state: views.State{Granted: granted("b=" + a), Networks: networks(own, a), Record: installed(a), Belief: believed("a=" + a)},
		},
		"BelievedInTheWay": {
			reason: "What overlaps it waits until it is gone.", list: list(own, a), refused: "another view",
			state: views.State{
				Granted: granted("a=10.69.128.0/17"), Networks: networks(own, a), Record: installed(a), Belief: believed("a=" + a),
			},
		},
		"BelievedRefused": {
			reason: "What cannot be listed any more goes no sooner.", list: list("10.69.7.0/24", a), refused: "the broker's own",
			state: views.State{
				Granted: granted("a=" + a), Networks: networks("10.69.7.0/24", a), Record: installed(a), Belief: believed("a=" + a),
			},
		},
		"NothingTold": {
			reason: "Who has told nothing yet does not know what the broker believes.", list: list(own, a, b), acknowledged: granted("b=" + b),
			state: views.State{
				Granted: granted("b=" + b), Networks: networks(own, a, b), Record: installed(a, b), Belief: views.NewBelief(at(99)),
			},
		},
		"Twice": {
			reason: "Two views are not one.", list: list(own, a), refused: "another view", acknowledged: granted("a=" + a),
			state: views.State{Granted: granted("a="+a, "b=10.69.7.0/24"), Networks: networks(own, a), Record: installed(a)},
		},
		"TwiceTheSame": {
			reason: "Not even if they are equal.", list: list(own, a), refused: "another view", acknowledged: granted("a=" + a),
			state: views.State{Granted: granted("a="+a, "b="+a), Networks: networks(own, a), Record: installed(a)},
		},
		"SteadyAgainstHostile": {
			reason: "What is listed is not put out by what comes with a smaller key.", list: list(own, a), refused: "another view",
			acknowledged: granted("n=" + a),
			state:        views.State{Granted: granted("n="+a, "a=10.69.7.0/24"), Networks: networks(own, a), Record: installed(a)},
		},
		"Public": {
			reason: "Nobody routes the Internet to a broker.", list: list(own), refused: "not in a private range",
			state: views.State{Granted: granted("a=8.8.0.0/16"), Networks: networks(own)},
		},
		"TooLarge": {
			reason: "Nor most of a private range.", list: list(own), refused: "want 10 to 30",
			state: views.State{Granted: granted("a=10.0.0.0/9"), Networks: networks(own)},
		},
		"Nodes": {
			reason: "Nobody leads the traffic of the nodes to a broker.", list: list(own, b), refused: "10.69.3.2, the address of a node",
			state:   views.State{Granted: granted("a="+a, "b="+b), Networks: networks(own), Hosts: addresses("10.201.0.1", "10.69.3.2")},
			waiting: "Liqo decides",
		},
		"NodesLater": {
			reason: "Nor is it led there any more.", list: list(own), refused: "the address of a node",
			state: views.State{
				Granted: granted("a=" + a), Networks: networks(own, a), Record: installed(a), Acknowledged: granted("a=" + a),
				Hosts: addresses("10.69.3.2"),
			},
		},
		"IPv6": {
			reason: "Liqo 1.2 routes IPv4.", list: list(own), refused: "not of IPv4",
			state: views.State{Granted: granted("a=fd00::/64"), Networks: networks(own)},
		},
		"HostBits": {
			reason: "The list is compared as text.", list: list(own), refused: "not of the network",
			state: views.State{Granted: granted("a=10.69.0.1/16"), Networks: networks(own)},
		},
		"Key": {
			reason: "A key is the name of a label.", list: list(own), refused: "is not the key",
			state: views.State{Granted: granted("a/b=" + a), Networks: networks(own)},
		},
		"TheBrokers": {
			reason: "What overlaps the broker's own would be translated as that.", list: list(own), refused: "the broker's own",
			state: views.State{Granted: granted("a=10.201.128.0/17"), Networks: networks(own)},
		},
		"SeenAsTaken": {
			reason: "What is seen as one's own network is not relied on.", list: list(own, b), refused: "which is taken",
			state: views.State{
				Granted: granted("b=" + b), Networks: networks(own, b), Record: installed(b), Taken: list("10.65.3.0/24"),
			},
		},
		"SeenAsAnother": {
			reason: "Nor two views as one.", list: list(own, a, b), refused: "which is taken",
			state: views.State{
				Granted: granted("a="+a, "b="+b), Networks: networks(own, a, b+"="+a), Record: installed(a, b),
			},
		},
		"SeenLonger": {
			reason: "Addresses of one would be those of another.", list: list(own, b), refused: "cannot be seen",
			state: views.State{Granted: granted("b=" + b), Networks: networks(own, b+"=10.64.0.0/17"), Record: installed(b)},
		},
		"UndecidedYet": {
			reason: "Liqo deals with what was overwritten first.", list: list(own), waiting: "Liqo decides",
			state: views.State{
				Granted: granted("a=" + a), Networks: networks(own), Record: installed(a), Generation: -1, Observed: -1, Since: at(91),
			},
		},
		"UndecidedAtFirst": {
			reason: "Nobody knows how long it has had.", list: list(own), waiting: "Liqo decides",
			state: views.State{Granted: granted("a=" + a), Networks: networks(own), Record: installed(a), Generation: -1, Observed: -1},
		},
		"UndecidedForLong": {
			reason: "Nobody waits for that without end.", list: list(own, a), waiting: "Liqo decides",
			state: views.State{
				Granted: granted("a=" + a), Networks: networks(own), Record: installed(a), Generation: -1, Observed: -1, Since: at(90),
			},
		},
		"Deciding": {
			reason: "What is right stays.", list: list(own, a, b), waiting: "Liqo decides",
			state: views.State{
				Granted: granted("a="+a, "b="+b), Networks: networks(own, a, b), Record: installed(a, b), Generation: -1, Observed: -1, Since: at(91),
			},
		},
		"Stuck": {
			reason: "Another order has Liqo decide.", list: list(own, c, b, a), waiting: "Liqo decides",
			state: views.State{
				Granted: granted("a="+a, "b="+b, "c="+c), Networks: networks(own, c, a, b), Record: installed(c, a, b), Generation: -1, Observed: -1,
				Since: at(90),
			},
		},
		"StuckWithOne": {
			reason: "Another list has Liqo decide.", list: list(own), waiting: "Liqo decides",
			state: views.State{
				Granted: granted("a=" + a), Networks: networks(own, a), Record: installed(a), Generation: -1, Observed: -1, Since: at(90),
				Acknowledged: granted("a=" + a),
			},
		},
		"StuckWithOneBelieved": {
			reason: "But first the broker is told that it goes.", list: list(own, a), waiting: "Liqo decides",
			state: views.State{
				Granted: granted("a=" + a), Networks: networks(own, a), Record: installed(a), Generation: -1, Observed: -1, Since: at(90),
				Acknowledged: granted("a=" + a), Belief: believed("a=" + a),
			},
		},
		"StuckWithPods": {
			reason: "Pods are not cut off so soon.", list: list(own, a), waiting: "Liqo decides",
			state: views.State{
				Granted: granted("a=" + a), Networks: networks(own, a), Record: installed(a), Generation: -1, Observed: -1, Since: at(-199),
				Shown: addresses("10.69.0.7"),
			},
		},
		"StuckWithPodsForLong": {
			reason: "Without it none that come would ever have an address.", list: list(own), waiting: "Liqo decides",
			state: views.State{
				Granted: granted("a=" + a), Networks: networks(own, a), Record: installed(a), Generation: -1, Observed: -1, Since: at(-200),
				Shown: addresses("10.69.0.7"),
			},
		},
		"StuckAlone": {
			reason: "There is no view to be taken out.", list: list(own),
			state: views.State{Networks: networks(own), Record: installed(), Generation: -1, Observed: -1, Since: at(90)},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := tc.state
			s.Now = at(100)
			s.Decided = s.Generation >= 0
			if s.Generation = 1; s.Observed == 0 {
				s.Observed = 1
			}
			if s.Belief == nil {
				s.Belief = &views.Belief{}
			}
			plan := views.Make(&s)
			if !slices.Equal(plan.List, tc.list) {
				t.Errorf("%s: list = %v, want %v", tc.reason, plan.List, tc.list)
			}
			if !maps.Equal(plan.Acknowledged, tc.acknowledged) {
				t.Errorf("%s: acknowledged = %v, want %v", tc.reason, plan.Acknowledged, tc.acknowledged)
			}
			if plan.Restart != tc.restart {
				t.Errorf("%s: restart %q, want %q", tc.reason, plan.Restart, tc.restart)
			}
			for what, of := range map[string]struct {
				says map[string]string
				want string
			}{"waiting": {plan.Waiting, tc.waiting}, "refused": {plan.Refused, tc.refused}} {
				said := strings.Join(slices.Sorted(maps.Values(of.says)), "; ")
				if (said == "") != (of.want == "") || !strings.Contains(said, of.want) {
					t.Errorf("%s: %s %q, want %q", tc.reason, what, said, of.want)
				}
			}
		})
	}
}

// TestLeaving does not take a view that is to go for a network of the broker, while Liqo has not dealt with the list.
func TestLeaving(t *testing.T) {
	const own, a = "10.201.0.0/16", "10.69.0.0/16"
	s := views.State{
		Networks: networks(own, a), Record: views.Record{Views: list(a)}, Generation: 2, Observed: 1, Since: at(99), Now: at(100),
		Belief: &views.Belief{},
	}
	plan := views.Make(&s)
	if !slices.Equal(plan.List, list(own, a)) {
		t.Fatalf("list = %v while Liqo decides", plan.List)
	}
	s.Record, s.Observed, s.Decided = plan.Record, 2, true
	if plan = views.Make(&s); !slices.Equal(plan.List, list(own)) || len(plan.Record.Views) > 0 {
		t.Errorf("list = %v with views %v, want %s alone", plan.List, plan.Record.Views, own)
	}
}

// TestSeen looks for the views in a list as it is.
func TestSeen(t *testing.T) {
	const own, a, b, c = "10.201.0.0/16", "10.69.0.0/16", "10.65.0.0/16", "10.66.0.0/16"
	for name, tc := range map[string]struct {
		reason string
		state  views.State
		want   []netip.Prefix
	}{
		"None": {"The list has the broker's own networks alone.", views.State{Decided: true, Networks: networks(own, c)}, nil},
		"Recorded": {
			"What is recorded is a view, as it is seen here, also if it is not granted any more.",
			views.State{Decided: true, Networks: networks(own, a, b+"=10.64.0.0/16"), Record: views.Record{Views: list(a, b)}},
			list(a, "10.64.0.0/16"),
		},
		"ByHand": {
			"What people have listed behind the broker's own, and is granted, is a view.",
			views.State{Decided: true, Networks: networks(own, c, a), Granted: granted("a=" + a)}, list(a),
		},
		"First": {
			"The first network is the broker's own, whatever is granted.",
			views.State{Decided: true, Networks: networks(own), Granted: granted("a=" + own)}, nil,
		},
		"NotDecided": {"Liqo decides yet.", views.State{Networks: networks(own, a), Record: views.Record{Views: list(a)}}, nil},
		"Without": {
			"Liqo has not decided about one of them.",
			views.State{Decided: true, Networks: networks(own, a, b+"="), Record: views.Record{Views: list(a, b)}}, list(a),
		},
	} {
		if got := tc.state.Seen(); !slices.Equal(got, tc.want) {
			t.Errorf("%s: %s Seen() = %v, want %v", name, tc.reason, got, tc.want)
		}
	}
}

// TestFirstLook remembers that nothing was known when Liqo was deciding, and what was there when it was not.
func TestFirstLook(t *testing.T) {
	for _, decided := range []bool{true, false} {
		s := views.State{Networks: networks("10.201.0.0/16"), Decided: decided, Now: at(100), Kubelets: []views.Kubelet{kubelet("old", 1)}}
		s.Record, s.Looked = views.Make(&s).Record, s.Now
		s.Granted, s.Decided, s.Now = granted("a=10.69.0.0/16"), false, at(110)
		s.Record, s.Looked = views.Make(&s).Record, s.Now
		s.Networks, s.Generation, s.Decided, s.Now = networks("10.201.0.0/16", "10.69.0.0/16"), 1, true, at(120)
		if plan := views.Make(&s); (len(plan.Acknowledged) == 1) != decided || (plan.Restart == "") != decided {
			t.Errorf("decided at first %t: acknowledged %v, restart %q, record %+v", decided, plan.Acknowledged, plan.Restart, plan.Record)
		}
	}
}

// TestEpochs follows what virtual kubelets may have read.
func TestEpochs(t *testing.T) {
	const own, a = "10.201.0.0/16", "10.69.0.0/16"
	s := views.State{Networks: networks(own), Generation: 1, Now: at(100)}
	step := func(second int, change func()) views.Plan {
		t.Helper()
		s.Looked, s.Now = s.Now, at(second)
		change()
		plan := views.Make(&s)
		s.Record = plan.Record
		return plan
	}
	restart := func(reason, want string, p views.Plan) {
		t.Helper()
		if p.Restart != want {
			t.Errorf("%s: restart %q, want %q; %+v", reason, p.Restart, want, p.Record)
		}
	}
	step(101, func() {})
	step(110, func() { s.Decided = true; s.Kubelets = []views.Kubelet{kubelet("early", 105)} })
	step(190, func() { s.Granted = granted("a=" + a); s.Kubelets = append(s.Kubelets, kubelet("late", 187)) })
	p := step(200, func() { s.Networks, s.Generation = networks(own, a), 2 })
	restart("nothing is replaced while the last one is young", "", p)
	restart("who was made before anything was decided is replaced", "early", step(240, func() {}))
	s.Kubelets = s.Kubelets[1:]
	restart("who was made until the list was written has read it", "", step(300, func() {}))
	restart("another list may have been there in between", "", step(310, func() { s.Generation = 4 }))
	restart("who was made then may have read that", "odd", step(400, func() { s.Kubelets = append(s.Kubelets, kubelet("odd", 305)) }))
	s.Kubelets = []views.Kubelet{kubelet("late", 187)}
	step(410, func() { s.Networks = networks(own, a+"=10.64.0.0/16") })
	s.Kubelets = []views.Kubelet{kubelet("new", 420)}
	restart("who was made after a network has moved has read that", "", step(460, func() {}))
}

// TestRecord writes a record and reads it again.
func TestRecord(t *testing.T) {
	r := views.Record{Views: list("10.65.0.0/16"), Epochs: []views.Epoch{epoch(-1, 10), epoch(20, -1, "10.65.0.0/16=10.64.0.0/16")}}
	text, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	var read views.Record
	if err := json.Unmarshal(text, &read); err != nil {
		t.Fatal(err)
	}
	if len(read.Epochs) != 2 || !read.Epochs[0].From.IsZero() || !read.Epochs[0].Until.Equal(at(10)) || !read.Epochs[1].Until.IsZero() ||
		!maps.Equal(read.Epochs[1].Remapped, r.Epochs[1].Remapped) || !slices.Equal(read.Views, r.Views) {
		t.Errorf("wrote %s, read %+v", text, read)
	}
}

// TestMany bounds what a broker may have a consumer route.
func TestMany(t *testing.T) {
	s := views.State{Granted: map[string]netip.Prefix{}, Networks: networks("10.201.0.0/16"), Decided: true, Now: at(100)}
	for i := range views.MaxViews + 3 {
		s.Granted[fmt.Sprint("n", i)] = netip.PrefixFrom(netip.AddrFrom4([4]byte{10, byte(i >> 8), byte(i), 0}), 24)
	}
	plan := views.Make(&s)
	if len(plan.List) != 1+views.MaxViews || len(plan.Refused) != 3 {
		t.Errorf("%d networks are listed and %d refused", len(plan.List), len(plan.Refused))
	}

	// Nor does it have more routed by changing its mind while it cannot be told anything.
	s.Record, s.Belief, s.Granted = plan.Record, views.NewBelief(s.Now), map[string]netip.Prefix{}
	s.Networks = nil
	for _, prefix := range plan.List {
		s.Networks = append(s.Networks, addressing.View{Own: prefix, Seen: prefix})
	}
	for i := range 3 {
		s.Granted[fmt.Sprint("n", i)] = netip.PrefixFrom(netip.AddrFrom4([4]byte{10, 9, byte(i), 0}), 24)
	}
	s.Granted["n3"] = plan.Record.Views[3]
	if plan = views.Make(&s); len(plan.List) != 1+views.MaxViews || len(plan.Refused) != 3 || len(plan.Acknowledged) != 1 {
		t.Errorf("%d networks are listed, %d refused and %v acknowledged", len(plan.List), len(plan.Refused), plan.Acknowledged)
	}
}
