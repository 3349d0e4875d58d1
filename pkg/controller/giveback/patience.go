// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package giveback

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/capacitorset/liqo-broker/pkg/core/podstate"
	"github.com/capacitorset/liqo-broker/pkg/excerpt"
)

// AnnotationGiveBack is how the owner of a pod says when to give it back: after a
// duration such as 30s, or Never. It crosses with the pod. Without it, a pod that
// something recreates is given back after the broker's own time, and another one
// is not.
const AnnotationGiveBack = "brokering.liqo.io/give-back"

// Never is the value of AnnotationGiveBack for a pod that is to wait for ever.
const Never = "Never"

const (
	// shortest is the least that a pod waits, whatever its owner wishes: the
	// scheduler has to try it, and the offers to follow.
	shortest = 5 * time.Second
	// longest is the most that a pod of a workload waits whose pods were given back
	// again and again.
	longest = time.Hour
	// skew is how much the clocks of the broker and of the API server, which says when a
	// pod was made, may differ.
	skew = 5 * time.Second
	// maxShown is how much of a wish that is not understood its owner is shown.
	maxShown = 40
)

// controllers are the labels that the pods of Deployments, StatefulSets and Jobs
// have. Owner references do not cross, labels do.
var controllers = []string{
	"pod-template-hash",
	"controller-revision-hash",
	"statefulset.kubernetes.io/pod-name",
	"batch.kubernetes.io/job-name",
	"job-name",
}

// wish returns how long a pod waits before it is given back the first time, and
// false if it never is: then it is how long it waits before its owner is told.
func wish(pod *corev1.Pod, usual time.Duration) (time.Duration, bool) {
	value := pod.Annotations[AnnotationGiveBack]
	if value == Never {
		return usual, false
	}
	// A value that nobody understands is no wish, and its owner is told.
	if wait, err := time.ParseDuration(value); err == nil {
		return max(wait, shortest), true
	}
	for _, label := range controllers {
		if _, ok := pod.Labels[label]; ok {
			return usual, true
		}
	}
	return usual, false
}

// unclear says what is wrong with what the owner of a pod wishes, as the end of a sentence; nothing if that is understood, or if nothing is
// wished.
func unclear(pod *corev1.Pod) string {
	value := pod.Annotations[AnnotationGiveBack]
	if _, err := time.ParseDuration(value); err == nil || value == "" || value == Never {
		return ""
	}
	return fmt.Sprintf(". The annotation %s says %q, which is neither a duration, such as 10m, nor %s", AnnotationGiveBack,
		excerpt.Of(value, maxShown), Never)
}

// stuck reports whether the scheduler finds no place for a pod, since when, and why.
func stuck(pod *corev1.Pod) (since time.Time, why string, is bool) {
	if pod.Spec.NodeName != "" || !pod.DeletionTimestamp.IsZero() || podstate.Ended(pod) {
		return time.Time{}, "", false
	}
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse && c.Reason == corev1.PodReasonUnschedulable {
			return c.LastTransitionTime.Time, c.Message, true
		}
	}
	return time.Time{}, "", false
}

// patience remembers how long the pods of each workload waited before they were
// given back: the ones made after them wait twice as long. It is lost with the
// daemon, and then begins again.
type patience map[string]given

// given is when pods of a workload were first given back that had waited so long.
type given struct {
	wait time.Duration
	at   time.Time
}

// before reports whether a pod was made after the others had been given back. Pods know
// when they were made in whole seconds. Those that were made together with the others were
// made much sooner: a whole wait.
func (g given) before(made time.Time) bool { return made.After(g.at.Add(-min(skew, g.wait/2))) }

// of returns how long a pod of a workload waits that was made at a time.
func (p patience) of(workload string, made time.Time, first time.Duration) time.Duration {
	last, known := p[workload]
	switch {
	case !known:
		return first
	case last.before(made):
		return max(min(2*last.wait, longest), first)
	default:
		return last.wait
	}
}

// note remembers that a pod of a workload was given back, and forgets the workloads
// of which none was for long.
func (p patience) note(workload string, made, now time.Time, wait time.Duration) {
	if last, known := p[workload]; !known || last.before(made) {
		p[workload] = given{wait: wait, at: now}
	}
	for workload, last := range p {
		if now.Sub(last.at) > 2*longest {
			delete(p, workload)
		}
	}
}
