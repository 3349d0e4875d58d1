// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"context"
	"crypto/sha256"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/time/rate"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	eventname "k8s.io/client-go/tools/record/util"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capacitorset/liqo-broker/pkg/excerpt"
	"github.com/capacitorset/liqo-broker/pkg/sheet"
)

// ReasonChanged is the reason of the events.
const ReasonChanged = "Changed"

// Bounds of what is written, so that nobody floods etcd, which keeps events for an hour, or keeps others out of it.
const (
	// maxQueued bounds the changes that wait to be looked at, and maxPairs the pairs of an object and a user that are remembered, in all and
	// of each user.
	maxQueued, maxPairs, maxPairsEach = 256, 1024, 256
	// Events about one object by one user.
	pairBurst, pairEvery = 10, time.Minute
	// Events of one user, and of all.
	userBurst, userEvery = 50, time.Second
	allBurst, allEvery   = 200, 250 * time.Millisecond
	// idle is after what time a pair is forgotten, whose rate is then what it was at the beginning.
	idle = pairBurst * pairEvery
	// maxRetry is after what time the API server does not try a request again: by default it is given up then.
	maxRetry = time.Minute
	// look is how often it is looked whether what had to wait may be written, and sayEvery how often it is said for how many there was no
	// room.
	look, sayEvery = time.Second, time.Minute
	// writeTimeout bounds writing an event, and endTimeout all that is left when the daemon ends.
	writeTimeout, endTimeout = 5 * time.Second, 3 * time.Second
)

// Deed is what somebody did to an object.
type Deed string

// The deeds.
const (
	Created Deed = "created"
	Changed Deed = "changed"
	Deleted Deed = "deleted"
)

// Change is what somebody has decided about an object.
type Change struct {
	// User is who did it, as the API server calls it; empty for who is not known.
	User string
	// Object is what it was done to.
	Object corev1.ObjectReference
	Deed   Deed
	// Fields are the first that differ, and More is how many there are besides.
	Fields []Field
	More   int
	// generation is that of the object before; zero if it is not known.
	generation int64
	// was and is are digests of its spec before and after.
	was, is [sha256.Size]byte
}

// retries reports whether a change is what the API server has asked about before, as another one by the same user of the same object, or
// what the user tries again since it was not done. The API server tries with what it knows of an object, and once more if that was old: it
// asks both times, and the generation differs if somebody has changed the spec meanwhile.
func (c *Change) retries(last *Change, passed time.Duration) bool {
	switch {
	case c.String() != last.String():
		return false
	case c.generation == last.generation && c.generation > 0:
		return true // The last one has changed nothing.
	case passed >= maxRetry:
		return false
	case c.Deed == Deleted:
		return c.Object.UID != "" // It is deleted once.
	default:
		// What comes next is what the last one has made of it, or another one in its stead.
		return last.generation > 0 && c.generation == last.generation+1 && c.was != last.is
	}
}

// String says what was done in a line, without the user.
func (c *Change) String() string {
	told := make([]string, 0, len(c.Fields)+1)
	for _, f := range c.Fields {
		if c.Deed == Changed {
			told = append(told, f.Path+": "+f.Old+" → "+f.New)
		} else {
			told = append(told, f.Path+": "+f.New)
		}
	}
	if c.More > 0 {
		told = append(told, fmt.Sprintf("%d more", c.More))
	}
	switch {
	case c.Deed == Deleted:
		return "deleted it"
	case c.Deed == Created && len(told) == 0:
		return "created it"
	case c.Deed == Created:
		return "created it with " + strings.Join(told, ", ")
	default:
		return "changed " + strings.Join(told, ", ")
	}
}

// What became of changes: the values of the label outcome.
const (
	outcomeWritten  = "written"
	outcomeCombined = "combined" // It is in an event with a later one.
	outcomeRepeated = "repeated" // It is tried again.
	outcomeDropped  = "dropped"  // There was no room for it.
	outcomeFailed   = "failed"   // The API server did not take the event.
)

// NewMetrics returns what counts changes. It is registered by the caller.
func NewMetrics() *prometheus.CounterVec {
	changes := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "liqo_broker_changes_total",
		Help: "Changes of what people decide, by what became of them: written as an event, combined with a later one of the same user, " +
			"repeated by the API server, dropped because there were too many, or failed to be written.",
	}, []string{"outcome"})
	for _, outcome := range []string{outcomeWritten, outcomeCombined, outcomeRepeated, outcomeDropped, outcomeFailed} {
		changes.WithLabelValues(outcome)
	}
	return changes
}

// Config is what a Log needs.
type Config struct {
	// Client creates events.
	Client client.Writer
	// Component is their source.
	Component string
	// Changes is what NewMetrics returned; nil in a program that has no metrics: its log says for how many there was no room.
	Changes *prometheus.CounterVec
	Clock   clock.WithTicker
	Log     logr.Logger
}

// Log writes events about changes, bounded in number, rate and size. Changes of one user to one object that come too fast are combined,
// so that what is at last is always told.
type Log struct {
	cfg     Config
	queue   chan Change
	dropped atomic.Int64 // Changes for which there was no room, and that nobody was told of yet.

	// Of the goroutine that runs.
	said  time.Time // When it was told of dropped ones.
	all   *rate.Limiter
	pairs map[pair]*waiting
	users map[string]*budget
}

// pair is an object and a user.
type pair struct {
	user   string
	object types.UID
	name   string // With the kind, for what has no UID.
}

// waiting is what a pair is remembered by.
type waiting struct {
	rate    *rate.Limiter
	user    *budget
	last    Change
	count   int       // Changes that are not told yet; last is the last of them.
	first   time.Time // When the first of them came.
	latest  time.Time
	touched bool
}

// budget is that of a user.
type budget struct {
	rate  *rate.Limiter
	pairs int
}

// NewLog returns a Log that writes while it runs.
func NewLog(cfg Config) *Log {
	return &Log{
		cfg: cfg, queue: make(chan Change, maxQueued), all: rate.NewLimiter(rate.Every(allEvery), allBurst),
		pairs: map[pair]*waiting{}, users: map[string]*budget{},
	}
}

// Tell has a change written later, and does not wait. What there is no room for is counted. It may be called concurrently.
func (l *Log) Tell(change Change) {
	change.User = excerpt.Of(sheet.Plain(change.User), maxUser)
	select {
	case l.queue <- change:
	default:
		l.count(outcomeDropped)
	}
}

// Run writes events until the context ends, and then what was told before, as far as that is possible within a few seconds.
func (l *Log) Run(ctx context.Context) error {
	ticker := l.cfg.Clock.NewTicker(look)
	defer ticker.Stop()
	writing := context.WithoutCancel(ctx) // What is being written when the context ends is written.
	for {
		select {
		case <-ctx.Done():
			ending, cancel := context.WithTimeout(writing, endTimeout)
			defer cancel()
			l.finish(ending)
			l.said = time.Time{}
			l.sayDropped()
			return nil
		case change := <-l.queue:
			l.take(writing, change)
		case <-ticker.C():
			l.writeWaiting(writing)
			l.sayDropped()
		}
	}
}

// finish writes what is left, without waiting until there may be more about one object.
func (l *Log) finish(ctx context.Context) {
	for {
		select {
		case change := <-l.queue:
			l.take(ctx, change)
			continue
		default:
		}
		break
	}
	for key, w := range l.pairs {
		if w.count > 0 && l.all.AllowN(l.cfg.Clock.Now(), 1) {
			l.writeEvent(ctx, key.user, w)
		}
	}
}

// take remembers a change, and writes it if it may.
func (l *Log) take(ctx context.Context, change Change) {
	key := pair{change.User, change.Object.UID, ""}
	if key.object == "" {
		key.name = change.Object.Kind + " " + change.Object.Name
	}
	w := l.pairs[key]
	if w == nil {
		if w = l.remember(key); w == nil {
			l.count(outcomeDropped)
			return
		}
	}
	now := l.cfg.Clock.Now()
	if w.touched && change.retries(&w.last, now.Sub(w.latest)) {
		w.last.generation, w.last.is = change.generation, change.is // Of the one that may be done.
		l.count(outcomeRepeated)
		return
	}
	w.latest = now
	if w.count == 0 {
		w.first = now
	} else {
		l.count(outcomeCombined)
	}
	w.last, w.touched = change, true
	w.count++
	l.writeIfAllowed(ctx, key.user, w)
}

// remember makes room for a pair; nil if there is none.
func (l *Log) remember(key pair) *waiting {
	user := l.users[key.user]
	if len(l.pairs) >= maxPairs || user != nil && user.pairs >= maxPairsEach {
		l.forget()
		user = l.users[key.user]
	}
	if len(l.pairs) >= maxPairs || user != nil && user.pairs >= maxPairsEach {
		return nil
	}
	if user == nil {
		user = &budget{rate: rate.NewLimiter(rate.Every(userEvery), userBurst)}
		l.users[key.user] = user
	}
	user.pairs++
	w := &waiting{rate: rate.NewLimiter(rate.Every(pairEvery), pairBurst), user: user}
	l.pairs[key] = w
	return w
}

// forget forgets pairs of which nothing was heard for long.
func (l *Log) forget() {
	for key, w := range l.pairs {
		if w.count > 0 || l.cfg.Clock.Since(w.latest) < idle {
			continue
		}
		delete(l.pairs, key)
		if w.user.pairs--; w.user.pairs == 0 {
			delete(l.users, key.user)
		}
	}
}

// writeWaiting writes what had to wait and may be written now, and forgets what nobody waits for.
func (l *Log) writeWaiting(ctx context.Context) {
	for key, w := range l.pairs {
		if w.count > 0 {
			l.writeIfAllowed(ctx, key.user, w)
		}
	}
	l.forget()
}

// writeIfAllowed writes what a pair has if neither it, nor its user, nor all have written too much.
func (l *Log) writeIfAllowed(ctx context.Context, user string, w *waiting) {
	now := l.cfg.Clock.Now()
	limits := []*rate.Limiter{w.rate, w.user.rate, l.all}
	for _, limit := range limits {
		if limit.TokensAt(now) < 1 {
			return
		}
	}
	for _, limit := range limits {
		limit.AllowN(now, 1)
	}
	l.writeEvent(ctx, user, w)
}

// writeEvent writes an event of what a pair has. What the API server does not take is not tried again.
func (l *Log) writeEvent(ctx context.Context, by string, w *waiting) {
	ctx, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	event := l.event(by, w)
	w.count = 0
	if err := l.cfg.Client.Create(ctx, event); err != nil {
		l.count(outcomeFailed)
		l.cfg.Log.Error(err, "Cannot write who has changed an object", "object", w.last.Object.Name, "kind", w.last.Object.Kind,
			"change", event.Message)
		return
	}
	l.count(outcomeWritten)
}

// event returns an event of what a pair has.
func (l *Log) event(by string, w *waiting) *corev1.Event {
	message := user(by) + " " + w.last.String()
	if w.count > 1 {
		message = fmt.Sprintf("%s changed it %d times since %s, and at last %s", user(by), w.count,
			w.first.UTC().Format(time.TimeOnly+" UTC"), w.last.String())
	}
	namespace := w.last.Object.Namespace
	if namespace == "" {
		namespace = metav1.NamespaceDefault // As all events of what is in no namespace.
	}
	return &corev1.Event{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Name: eventname.GenerateEventName(w.last.Object.Name, l.cfg.Clock.Now().UnixNano()),
		},
		InvolvedObject: w.last.Object,
		Type:           corev1.EventTypeNormal, Reason: ReasonChanged, Message: excerpt.Of(message, maxMessage),
		Source: corev1.EventSource{Component: l.cfg.Component}, ReportingController: l.cfg.Component,
		FirstTimestamp: metav1.NewTime(w.first), LastTimestamp: metav1.NewTime(w.latest),
		Count: int32(min(w.count, 1<<30)), //nolint:gosec // It is less.
	}
}

// sayDropped says for how many changes there was no room, not too often.
func (l *Log) sayDropped() {
	if now := l.cfg.Clock.Now(); now.Sub(l.said) >= sayEvery {
		if dropped := l.dropped.Swap(0); dropped > 0 {
			l.said = now
			l.cfg.Log.Info("Had no room to write who has changed objects", "changes", dropped)
		}
	}
}

func (l *Log) count(outcome string) {
	if outcome == outcomeDropped {
		l.dropped.Add(1)
	}
	if l.cfg.Changes != nil {
		l.cfg.Changes.WithLabelValues(outcome).Inc()
	}
}
