// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package purchases

import (
	"cmp"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/capacitorset/liqo-broker/pkg/api/connectorv1alpha1"
	"github.com/capacitorset/liqo-broker/pkg/conditions"
	"github.com/capacitorset/liqo-broker/pkg/trade/core/contract"
)

const (
	// renewalShare is which part of the time in which a contract can be used is left when a later end is asked for, and longestLead how much
	// at most: somebody may have to approve it, which takes up to a day. Half of that is left to buy elsewhere, so that pods can move.
	renewalShare = 3
	longestLead  = 48 * time.Hour
	// renewalTries is how often a later end is asked for that is refused.
	renewalTries = 4
)

// renewal is how it stands with a later end that is asked for without people.
type renewal struct {
	// Ends is the end that is to become a later one, and Asked when that was asked for last; zero if it was not.
	Ends  time.Time `json:"ends"`
	Asked time.Time `json:"asked,omitzero"`
	// Times is how often the end has become a later one.
	Times int `json:"times,omitempty"`
	// Over is whether it is too late: the contract ends. Why is what was said against it.
	Over bool   `json:"over,omitempty"`
	Why  string `json:"why,omitempty"`
}

// renews reports whether people want a later end without asking for each.
func (d *drive) renews() bool {
	return d.object.Spec.Renew && d.object.Spec.Duration != nil && !d.leaves() && d.record != nil && !d.record.Purchase.Ending
}

// renewalTimes returns from when on a later end is asked for, and until when it has to be agreed.
func (d *drive) renewalTimes() (from, until time.Time) {
	terms := d.record.Purchase.Terms
	lead := min(max(d.object.Spec.Duration.Duration-terms.Drain, 0)/renewalShare, longestLead)
	drains := terms.EndsAt.Add(-terms.Drain)
	return drains.Add(-lead).Truncate(time.Second), drains.Add(-lead / 2).Truncate(time.Second)
}

// renewalClock is what time it is for a renewal: what both clocks have reached, so that one that leaps does not buy twice.
func (d *drive) renewalClock() time.Time {
	now := d.now()
	return now.Add(min(d.record.Purchase.Ahead, 0))
}

// followRenewal notes what has become of a later end, and gives up in time what the seller has not agreed to.
func (d *drive) followRenewal() {
	p := d.record.Purchase
	switch {
	case !d.renews():
		d.record.Renewal = nil
		return
	case !p.State().InUse() && d.record.Renewal == nil, p.State().Final():
		return // It has not begun, or it is over.
	}
	if d.record.Renewal == nil {
		d.record.Renewal = &renewal{Ends: p.Terms.EndsAt}
	}
	r := *d.record.Renewal
	defer func() { d.record.Renewal = &r }()
	if !r.Ends.Equal(p.Terms.EndsAt) {
		r = renewal{Ends: p.Terms.EndsAt, Times: r.Times + 1}
	}
	_, until := d.renewalTimes()
	proposed := p.Proposal != nil && p.Proposal.Event == contract.Renew
	switch {
	case r.Over || d.renewalClock().Before(until), proposed && p.Proposal.Signature != "":
		return // What is signed comes into force, or the seller says why not.
	case proposed:
		p.Proposal = nil
		d.record.Purchase = p
	}
	r.Over, r.Why = true, cmp.Or(r.Why, "The seller has not agreed in time.")
}

// renewalDue reports whether a later end is to be asked for now.
func (d *drive) renewalDue() bool {
	r := d.record.Renewal
	if r == nil || r.Over {
		return false
	}
	from, until := d.renewalTimes()
	now := d.renewalClock()
	return !now.Before(from) && now.Before(until) && (r.Asked.IsZero() || now.Sub(r.Asked) >= until.Sub(from)/renewalTries)
}

// asksToRenew notes that a later end is asked for, and returns it.
func (d *drive) asksToRenew() time.Time {
	r := *d.record.Renewal
	r.Asked, r.Why = d.renewalClock(), ""
	d.record.Renewal = &r
	return r.Ends.Add(d.object.Spec.Duration.Duration)
}

// notRenewed notes what was said against a later end.
func (d *drive) notRenewed(why string) {
	if r := d.record.Renewal; r != nil && !r.Over {
		because := *r
		because.Why = why
		d.record.Renewal = &because
	}
}

// refusedRenewal notes what was said against new terms, if they were a later end.
func (d *drive) refusedRenewal(event contract.Event) {
	if event == contract.Renew {
		d.notRenewed(d.record.Note)
	}
}

// asksAnew has a later end be asked for at once that was refused, since people have changed what it may cost. It reports whether the end
// has become a later one without them: that people have said an earlier one then does not mean that they want it.
func (d *drive) asksAnew() (renewed bool) {
	if d.record.Renewal == nil {
		return false
	}
	r := *d.record.Renewal
	r.Asked = time.Time{}
	d.record.Renewal = &r
	return r.Times > 0
}

// sayRenewal sets the condition Renewal, if people want one. Of a contract that is over, it stays as it was.
func (d *drive) sayRenewal() {
	all := &d.object.Status.Conditions
	switch {
	case d.record != nil && d.record.Purchase.State().Final() && d.object.Spec.Renew:
		return
	case !d.renews() || d.record.Renewal == nil:
		meta.RemoveStatusCondition(all, connectorv1alpha1.ConditionRenewal)
		return
	}
	r := d.record.Renewal
	from, until := d.renewalTimes()
	is := metav1.Condition{Type: connectorv1alpha1.ConditionRenewal, Status: metav1.ConditionFalse}
	ends, asked, agreed := r.Ends.Format(time.RFC3339), from.Format(time.RFC3339), until.Format(time.RFC3339)
	proposal := d.record.Purchase.Proposal
	switch {
	case r.Over:
		is.Reason, is.Message = connectorv1alpha1.ReasonNotRenewed, fmt.Sprintf("It ends at %s: %s", ends, r.Why)
	case proposal != nil && proposal.Event == contract.Renew:
		is.Reason, is.Message = connectorv1alpha1.ReasonRenewalAsked, fmt.Sprintf(
			"It ends at %s, and the seller was asked for %s. It has time until %s.", ends, proposal.Terms.EndsAt.Format(time.RFC3339), agreed)
	case r.Why != "":
		is.Reason, is.Message = connectorv1alpha1.ReasonRenewalRefused, fmt.Sprintf(
			"It ends at %s, and a later end is asked for again until %s: %s", ends, agreed, r.Why)
	case r.Times > 0:
		is.Status, is.Reason, is.Message = metav1.ConditionTrue, connectorv1alpha1.ReasonRenewed, fmt.Sprintf(
			"It was renewed until %s, and a later end is asked for at %s.", ends, asked)
	default:
		is.Status, is.Reason, is.Message = metav1.ConditionTrue, connectorv1alpha1.ReasonRenews, fmt.Sprintf(
			"It ends at %s, and a later end is asked for at %s.", ends, asked)
	}
	conditions.Set(all, d.object.Generation, is)
}
