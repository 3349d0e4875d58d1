// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

// Package grant decides how the requests of a consumer are answered: which of them get what the consumer is offered, how much of that, and
// why others get nothing.
//
// It decides on values and has no memory. It knows neither how a consumer asks nor how it is told; what it is offered is the rule of
// package capacity.
package grant

import (
	"cmp"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/capacitorset/liqo-broker/pkg/core/capacity"
	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
	"github.com/capacitorset/liqo-broker/pkg/core/nodename"
	"github.com/capacitorset/liqo-broker/pkg/core/resources"
)

const (
	// MaxRequests is how many requests of one consumer are looked at: each becomes a node, with a program of its own that keeps it.
	MaxRequests = 64
	// shown is how many nodes a message names.
	shown = 10
)

// Verdict is what becomes of a request.
type Verdict int

// The verdicts.
const (
	// Open: nobody has decided.
	Open Verdict = iota
	// Accepted: there is a node, which has what is granted. That may be nothing.
	Accepted
	// Denied: there is no node.
	Denied
)

// Reason is why a request is answered as it is, in a word.
type Reason string

// The reasons.
const (
	// Granted: the node has what is offered, and no more than was asked for.
	Granted Reason = "Granted"
	// NothingOffered: nobody has anything for the node at present.
	NothingOffered Reason = "NothingOffered"
	// NothingRequested: what is asked for is too little for any pod.
	NothingRequested Reason = "NothingRequested"
	// InvalidRequest: what is asked for cannot be read.
	InvalidRequest Reason = "InvalidRequest"
	// OneNode: the consumer has one node, and this request cannot have it.
	OneNode Reason = "OneNode"
	// NodePerProvider: the consumer has a node for each provider, and none that is called so.
	NodePerProvider Reason = "NodePerProvider"
	// TooManyRequests: the consumer has more of them than MaxRequests.
	TooManyRequests Reason = "TooManyRequests"
	// AgentMissing: the consumer's agent has not told for a while which views it has installed.
	AgentMissing Reason = "AgentMissing"
	// ViewUnknown: the consumer has not installed the view without which it would show wrong addresses.
	ViewUnknown Reason = "ViewUnknown"
)

// Request is what a consumer asks for, for one node.
type Request struct {
	// Name is that of the node.
	Name string
	// Made is since when it asks.
	Made time.Time
	// Wanted is the most that is granted of the resources that it names. Of others everything is.
	Wanted corev1.ResourceList
	// Unreadable says what of Wanted is left out because it cannot be read; empty if it is whole.
	Unreadable string
	// Authenticated tells that the consumer has the certificate without which it cannot use what it is granted.
	Authenticated bool
	// Frozen tells that people want it to get nothing more.
	Frozen bool
	// Ending tells that it is being withdrawn. It has its node until it is gone, for which the consumer may let it wait.
	Ending bool
	// Verdict and Granted are what became of it before.
	Verdict Verdict
	Granted corev1.ResourceList
}

// Answer is what becomes of a request. One that is Open leaves all as it is.
type Answer struct {
	Verdict Verdict
	// Granted is what the node has. What the request was granted before and is no more is there as zero.
	Granted corev1.ResourceList
	// Provider is the only one to which the pods of the node go; empty for all. Unknown tells that there is only one, of which nothing is
	// known at present: what the node says of it stays.
	Provider cluster.ID
	Unknown  bool
	// Views are the prefixes that the consumer is to install for the node, by their keys; none if it is not asked to.
	Views map[string]netip.Prefix
	// Nodes are the nodes of single providers that the consumer is to have, by their names; nil if it is not told of them here.
	Nodes map[string]cluster.ID
	// Reason and Message are why, for programs and for people.
	Reason  Reason
	Message string
}

// Decide answers the requests of a consumer, each at its place, by what it is offered on each of its nodes. perProvider tells that the
// consumer is to have a node for each provider, and none for all of them.
//
// A request gets what is offered on the node that is called like it. The node for all providers is that of the first other request: one
// that was accepted already, or else the oldest one, so that nothing moves when a request is added. What a consumer uses it keeps: its
// nodes are offered that even if nothing else is. One that is frozen, or being withdrawn, gets less if less is offered, and never more.
//
// What was accepted once is not denied any more: what is withdrawn is granted as zero. Liqo v1.2.0 copies only what is accepted to the
// consumer's virtual node and to the quota of its pods (virtualnodecreator_controller.go and quotacreator_controller.go in
// liqo/pkg/liqo-controller-manager), so that a node whose request is denied later would keep all that it had. Before it is accepted there
// is no node, and nothing is lost by denying it until there is something: people read why, and Liqo takes the node up as soon as the
// request is accepted. Liqo's own answer to a cordoned tenant is no other: remoteresourceslice_controller.go denies what is not accepted.
// What is not accepted any more because somebody else has written so counts as accepted, because its node is there.
//
// Where views are asked for, a request is told its views first, and gets something when they are acknowledged. One that had something
// keeps it as if it were frozen: its pods run, and are shown under addresses that were right.
func Decide(requests []Request, offers []capacity.NodeOffer, perProvider bool, views Views) []Answer {
	d := decision{
		perProvider: perProvider, views: views, offers: offers, offered: make(map[string]capacity.NodeOffer, len(offers)),
		requested: make(map[string]bool, len(requests)),
	}
	for _, o := range offers {
		d.offered[o.Node] = o
	}
	for i := range requests {
		d.requested[requests[i].Name] = true
	}
	answers := make([]Answer, len(requests))
	for rank, i := range ranked(requests) {
		if r := &requests[i]; r.isDecided() {
			answers[i] = d.answer(r, rank)
		} else if r.hasNode() {
			d.node(r) // It has its node until it is gone.
		}
	}
	return answers
}

// getsNoMore reports whether a request gets at most what it was granted before.
func (r *Request) getsNoMore() bool { return r.Ending || r.Frozen }

// isDecided reports whether a request is answered now. One that gets nothing more is if it has something, and one without a certificate
// waits for that.
func (r *Request) isDecided() bool {
	if r.getsNoMore() && !r.hasNode() {
		return false
	}
	return r.Authenticated || r.Verdict != Open
}

// hasNode reports whether there is a node of the request. What was never accepted has nothing; one that has something was accepted before,
// whatever somebody else says.
func (r *Request) hasNode() bool {
	if r.Verdict == Accepted {
		return true
	}
	for _, quantity := range r.Granted {
		if quantity.Sign() > 0 {
			return true
		}
	}
	return false
}

// ranked returns the places of the requests, in the order in which they choose.
func ranked(requests []Request) []int {
	order := make([]int, len(requests))
	for i := range order {
		order[i] = i
	}
	first := func(a, b bool) int {
		switch {
		case a == b:
			return 0
		case a:
			return -1
		default:
			return 1
		}
	}
	slices.SortFunc(order, func(i, j int) int {
		a, b := &requests[i], &requests[j]
		return cmp.Or(
			first(a.hasNode(), b.hasNode()), first(a.Authenticated, b.Authenticated),
			a.Made.Compare(b.Made), cmp.Compare(a.Name, b.Name),
		)
	})
	return order
}

// decision is what is decided of one consumer's requests so far.
type decision struct {
	perProvider bool
	views       Views
	offers      []capacity.NodeOffer
	offered     map[string]capacity.NodeOffer // By the name of the node.
	requested   map[string]bool
	// first is the request that has the node for all providers; empty while none has it.
	first string
}

// node returns what is offered on the node of a request, and whether the request may have it. Known is false if what is offered is of a
// moment before the request was accepted.
func (d *decision) node(r *Request) (offer capacity.NodeOffer, known, may bool) {
	if offer, known = d.offered[r.Name]; known {
		return offer, true, true
	}
	ofProvider := isOfProvider(r)
	switch {
	case ofProvider && r.Verdict == Accepted:
		return capacity.NodeOffer{}, false, false
	case ofProvider || d.first != "" || d.perProvider && !r.hasNode():
		return capacity.NodeOffer{}, true, false
	}
	d.first = r.Name
	offer, known = d.offered[""]
	return offer, known, true
}

// isOfProvider reports whether a request is called like a node of one provider.
func isOfProvider(r *Request) bool {
	_, is := nodename.MarkOf(r.Name)
	return is
}

// answer returns that to a request, given how many chose before it.
func (d *decision) answer(r *Request, rank int) Answer {
	// What there is for it.
	var offer capacity.NodeOffer
	known, may := true, false
	if rank < MaxRequests {
		offer, known, may = d.node(r)
	}
	if !known && !r.Ending {
		return Answer{} // What is offered soon says it.
	}
	granted := corev1.ResourceList{}
	if may && r.Unreadable == "" {
		granted = resources.AtMost(offer.Offered, resources.Subtract(r.Wanted, nil))
	}
	isEnough, missing, why := !resources.IsZero(granted), Reason(""), ""
	if !r.Ending {
		missing, why = d.views.missing(offer.Provider)
	}
	if r.getsNoMore() || missing != "" {
		granted = resources.Min(granted, resources.Bounded(r.Granted))
	}
	if !isEnough {
		missing = "" // No pod could start anyway, and that is said.
	}

	// What it is told.
	a := Answer{
		Verdict: Accepted, Provider: offer.Provider, Unknown: offer.Provider == "" && isOfProvider(r),
		Reason: Granted, Message: "The cluster has what it is offered, as far as it asks for that",
	}
	if may {
		a.Views = d.views.ofProvider(offer.Provider)
	}
	if missing != "" {
		a.Reason, a.Message = missing, why
	}
	if resources.IsZero(granted) {
		if missing == "" {
			a.Reason, a.Message = d.refusal(r, rank, may, offer)
		}
		if !r.hasNode() {
			a.Verdict, a.Provider, a.Unknown, granted = Denied, "", false, nil
		}
	}
	a.Granted = withdrawn(granted, r.Granted)
	return a
}

// refusal returns why a request gets nothing, and what people can do about it.
func (d *decision) refusal(r *Request, rank int, may bool, offer capacity.NodeOffer) (Reason, string) {
	const nothing = "Nothing is offered to the cluster on this node at present"
	switch {
	case rank >= MaxRequests:
		return TooManyRequests, fmt.Sprintf("The cluster has more than %d resource slices: delete some", MaxRequests)
	case r.Unreadable != "":
		return InvalidRequest, "What cannot be read counts as zero: " + r.Unreadable
	case r.Ending:
		return NothingOffered, "The resource slice is being deleted: it gets nothing more"
	case r.Frozen:
		return NothingOffered, "The cluster is cordoned: it gets nothing more"
	case !resources.IsZero(offer.Offered):
		return NothingRequested, "No pod can start without cpu, memory and pods: ask for some of each, or do not name them"
	case !may && d.perProvider && isOfProvider(r):
		return NodePerProvider, "The cluster has a node for each provider, and none that is called so" + d.others("; others could be called ")
	case !may && d.perProvider:
		return NodePerProvider, "The cluster has a node for each provider, and none for all of them. By this resource slice its agent is told " +
			"of which, and makes one for each: keep this one" + d.others("; without an agent, make resource slices called ")
	case !may && isOfProvider(r):
		return OneNode, "The cluster has one node, which cannot be called like that of a provider: make a resource slice with another name"
	case !may:
		return OneNode, fmt.Sprintf("The cluster has one node, which is that of resource slice %s: delete one of the two", d.first)
	case d.perProvider:
		return NothingOffered, nothing + d.others("; other resource slices could be called ")
	default:
		return NothingOffered, nothing
	}
}

// others says which nodes a consumer could have besides those that it has, after some words; nothing if there are none.
func (d *decision) others(words string) string {
	var names []string
	for _, o := range d.offers {
		if o.Node != "" && !resources.IsZero(o.Offered) && !d.requested[o.Node] {
			names = append(names, o.Node)
		}
	}
	if len(names) == 0 {
		return ""
	}
	text := words + strings.Join(names[:min(len(names), shown)], ", ")
	if more := len(names) - shown; more > 0 {
		text += fmt.Sprintf(", and %d more", more)
	}
	return text
}

// withdrawn returns what is granted, and as zero what was granted before: a node keeps a resource that is not named any more. Of those that
// are zero already there are no more than can be meant, because providers name resources as they like.
func withdrawn(granted, before corev1.ResourceList) corev1.ResourceList {
	all := make(corev1.ResourceList, len(granted)+len(before))
	maps.Copy(all, granted)
	var gone []corev1.ResourceName
	for name, quantity := range before {
		if _, named := granted[name]; named {
			continue
		}
		if quantity.IsZero() {
			gone = append(gone, name)
		} else {
			all[name] = resource.Quantity{Format: quantity.Format}
		}
	}
	slices.Sort(gone)
	for _, name := range gone[:min(len(gone), max(0, resources.MaxResources-len(all)))] {
		all[name] = resource.Quantity{}
	}
	return all
}
