// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package apiv1

// Event is what an event is about: one of the things is there, but with an event deleted only their key.
type Event struct {
	Kind     string    `json:"kind" enum:"providers,consumers,offers,policies,decisions,workloads,links,flows,advice,status,activity"`
	Key      string    `json:"key" doc:"What the thing is known by in the stream."`
	Provider *Provider `json:"provider,omitempty"`
	Consumer *Consumer `json:"consumer,omitempty"`
	Offer    *Offer    `json:"offer,omitempty"`
	Policy   *Policy   `json:"policy,omitempty"`
	Decision *Decision `json:"decision,omitempty"`
	Workload *Workload `json:"workload,omitempty"`
	Link     *Link     `json:"link,omitempty"`
	Flow     *Flow     `json:"flow,omitempty"`
	Advice   *Advice   `json:"advice,omitempty"`
	Status   *Status   `json:"status,omitempty"`
	Activity *Activity `json:"activity,omitempty"`
}

// Fill adds the value: all of it, or what of it is a consumer's own. It returns false if that is nothing.
func (e *Event) Fill(value any, own, hides bool) bool {
	switch value := value.(type) {
	case Consumer:
		e.Consumer = pointerTo(value, own, hides)
		return true
	case Offer:
		e.Offer = pointerTo(value, own, hides)
		return true
	case Workload:
		e.Workload = pointerTo(value, own, hides)
		return true
	case Advice:
		e.Advice = pointerTo(value, own, hides)
		return true
	case Provider:
		e.Provider = &value
	case Policy:
		e.Policy = &value
	case Decision:
		e.Decision = &value
	case Link:
		e.Link = &value
	case Flow:
		e.Flow = &value
	case Status:
		e.Status = &value
	case Activity:
		e.Activity = &value
	}
	return !own
}

// Owned is of what a consumer may see its own part.
type Owned[T any] interface{ Own(hides bool) T }

func pointerTo[T Owned[T]](value T, own, hides bool) *T {
	if own {
		value = value.Own(hides)
	}
	return &value
}
