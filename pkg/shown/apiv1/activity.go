// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package apiv1

import (
	"cmp"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/capacitorset/liqo-broker/pkg/excerpt"
	"github.com/capacitorset/liqo-broker/pkg/sheet"
)

// Activity is what has happened to an object of the broker.
type Activity struct {
	Time     time.Time `json:"time" doc:"When it happened, or happened last."`
	First    time.Time `json:"first,omitzero" doc:"When it happened first, if it has happened several times."`
	Count    int32     `json:"count" minimum:"1" doc:"How many times it has happened."`
	Kind     string    `json:"kind" doc:"The kind of the object that it is about, such as Provider."`
	Name     string    `json:"name" doc:"The name of the object; that of a provider or a consumer is its cluster ID."`
	Provider *Cluster  `json:"provider,omitempty" doc:"The provider that it is about."`
	Consumer *Cluster  `json:"consumer,omitempty" doc:"The consumer that it is about."`
	Reason   string    `json:"reason" doc:"A word for programs."`
	Message  string    `json:"message" doc:"A sentence for people."`
	Warning  bool      `json:"warning" doc:"Somebody should look at it."`
	By       string    `json:"by,omitempty" doc:"The user who has changed the object, if it is told who."`
	Source   string    `json:"source,omitempty" doc:"The program that tells of it."`
}

// changed is the reason of events that say who has changed an object, in the beginning of their messages.
const changed = "Changed"

// Bounds of what is shown of an event, in bytes. The API server bounds none of these fields.
const (
	maxActivityMessage = 1 << 10
	maxActivityName    = 253
	maxActivityWord    = 128
)

// ActivityOf returns what an event tells, given the names of the providers and consumers that are known, by ID.
func ActivityOf(e *corev1.Event, providers, consumers map[string]string) Activity {
	a := Activity{
		Time: LastOf(e), Count: max(e.Count, 1), Kind: word(e.InvolvedObject.Kind, maxActivityWord),
		Name: word(e.InvolvedObject.Name, maxActivityName), Reason: word(e.Reason, maxActivityWord),
		Message: word(e.Message, maxActivityMessage), Warning: e.Type == corev1.EventTypeWarning,
		Source: word(cmp.Or(e.ReportingController, e.Source.Component), maxActivityWord),
	}
	first := e.FirstTimestamp.Time
	if e.Series != nil {
		a.Count, first = max(a.Count, e.Series.Count), e.EventTime.Time
	}
	if a.Count > 1 && !first.IsZero() {
		a.First = first.UTC()
	}
	switch a.Kind {
	case "Provider":
		a.Provider = &Cluster{a.Name, word(providers[e.InvolvedObject.Name], maxActivityName)}
	case "Consumer":
		a.Consumer = &Cluster{a.Name, word(consumers[e.InvolvedObject.Name], maxActivityName)}
	}
	if e.Reason == changed {
		a.By = userIn(a.Message)
	}
	return a
}

// LastOf returns when what an event tells has happened last. Those of the older and of the newer API have other fields for it.
func LastOf(e *corev1.Event) time.Time {
	last := e.LastTimestamp.Time
	if e.Series != nil && e.Series.LastObservedTime.After(last) {
		last = e.Series.LastObservedTime.Time
	}
	for _, at := range []time.Time{e.EventTime.Time, e.FirstTimestamp.Time, e.CreationTimestamp.Time} {
		if last.IsZero() {
			last = at
		}
	}
	return last.UTC()
}

// word returns a text of others, plain and short.
func word(text string, most int) string {
	return excerpt.Of(sheet.Plain(excerpt.Of(text, most)), most) // Plain characters may be more bytes, and texts are very long.
}

// userIn returns the name that the message of a change begins with: one word, or what is between quotation marks. Who is not known has no
// name.
func userIn(message string) string {
	if quoted, is := strings.CutPrefix(message, `"`); is {
		name, _, closed := strings.Cut(quoted, `"`)
		if !closed {
			return ""
		}
		return name
	}
	if strings.HasPrefix(message, "somebody who is not known ") {
		return ""
	}
	name, _, more := strings.Cut(message, " ")
	if !more {
		return ""
	}
	return name
}
