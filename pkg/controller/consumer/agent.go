// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package consumer

import (
	"context"
	"fmt"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"

	"github.com/capacitorset/liqo-broker/pkg/api/v1alpha1"
	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
	"github.com/capacitorset/liqo-broker/pkg/core/grant"
	"github.com/capacitorset/liqo-broker/pkg/excerpt"
)

// maxNamed is how many providers are named whose networks are not acknowledged.
const maxNamed = 5

// settle is how long something has to be missing of an agent before it is said not to report any more. Agents report once in that time, so
// that neither a new provider nor a clock that is wrong by just so much has the condition come and go.
const settle = time.Minute

// agents tell how the agents of consumers are. They may be used concurrently.
type agents struct {
	heard func(context.Context, cluster.ID) (grant.Heard, error)
	clock clock.PassiveClock

	mu sync.Mutex
	// since is from when on something is missing of an agent that is still said to report, by its consumer.
	since map[string]time.Time
}

// condition returns the AgentReporting condition of a consumer, and after how long it may be another one though nothing happens; zero for
// never.
func (a *agents) condition(ctx context.Context, c *v1alpha1.Consumer, peers bool) (is metav1.Condition, later time.Duration, err error) {
	heard, err := a.heard(ctx, cluster.ID(c.Name))
	if err != nil {
		return metav1.Condition{}, 0, err
	}
	is, later = reporting(&heard, peers)
	was := meta.FindStatusCondition(c.Status.Conditions, is.Type)
	if is.Status != metav1.ConditionFalse || was == nil || was.Status != metav1.ConditionTrue {
		a.forget(c.Name)
		return is, later, nil
	}
	wait := a.waits(c.Name)
	if wait <= 0 {
		a.forget(c.Name)
		return is, later, nil
	}
	if later == 0 || wait < later {
		later = wait
	}
	return *was, later, nil
}

// waits returns how much longer an agent is said to report of which something is missing.
func (a *agents) waits(consumer string) time.Duration {
	a.mu.Lock()
	defer a.mu.Unlock()
	now := a.clock.Now()
	since, is := a.since[consumer]
	if !is {
		since = now
		a.since[consumer] = now
	}
	return settle - now.Sub(since)
}

// forget has nothing be missing of an agent, or of one that is not there any more.
func (a *agents) forget(consumer string) {
	if a == nil {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.since, consumer)
}

// reporting returns what the AgentReporting condition of a consumer says of what was heard, and after how long it says something else.
func reporting(heard *grant.Heard, peers bool) (metav1.Condition, time.Duration) {
	is := func(status metav1.ConditionStatus, reason, format string, args ...any) metav1.Condition {
		return metav1.Condition{
			Type: v1alpha1.ConditionAgentReporting, Status: status, Reason: reason, Message: fmt.Sprintf(format, args...),
		}
	}
	agent, turns := heard.Agent()
	switch {
	case agent == grant.AgentNotAsked:
		return is(metav1.ConditionUnknown, v1alpha1.ReasonNotAsked, "spec.views is %s: no agent has to acknowledge networks of providers",
			v1alpha1.ViewsUnchecked), 0
	case !peers:
		return is(metav1.ConditionUnknown, v1alpha1.ReasonNotPeered, "There is no incoming peering with the cluster"), 0
	case agent == grant.AgentUnreadable:
		return is(metav1.ConditionFalse, v1alpha1.ReasonUnreadable, "What the cluster's agent tells cannot be read: %s", heard.Unreadable), turns
	case agent == grant.AgentNeverHeard:
		return is(metav1.ConditionFalse, v1alpha1.ReasonAgentMissing,
			"The cluster's agent was never heard: it gets nothing new until kubectl liqo-broker prepare has run there"), turns
	case agent == grant.AgentSilent:
		return is(metav1.ConditionFalse, v1alpha1.ReasonSilent,
			"The cluster's agent was not heard for more than %s, or its clock is wrong: the cluster gets nothing new", grant.MaxSilence), turns
	case agent == grant.AgentBehind:
		return is(metav1.ConditionFalse, v1alpha1.ReasonViewsUnknown, "The cluster's agent has not acknowledged %d of %d networks of providers%s",
			heard.Behind(), len(heard.ToldViews), named(heard.Lacking())), turns
	default:
		return is(metav1.ConditionTrue, v1alpha1.ReasonReporting, "The cluster's agent has acknowledged all %d networks of providers",
			len(heard.ToldViews)), turns
	}
}

// named returns the first of some providers, as the end of a sentence.
func named(providers []cluster.ID) string {
	if len(providers) == 0 {
		return ""
	}
	names := make([]string, len(providers))
	for i, id := range providers {
		names[i] = string(id)
	}
	return ": " + excerpt.Names(names, maxNamed)
}
