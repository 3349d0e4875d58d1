// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

// Package answer answers what the page asks of a cluster that is a broker, uses one, or trades, with the rights of one person: from a cache
// of what that person may read, as the API of the daemon answers it, and by changes that the API server sees under the person's name.
//
// It does not know how requests come, nor whether the person has made them.
package answer

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capacitorset/liqo-broker/pkg/api/v1alpha1"
	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
	"github.com/capacitorset/liqo-broker/pkg/lenient"
	"github.com/capacitorset/liqo-broker/pkg/liqo/line"
	"github.com/capacitorset/liqo-broker/pkg/sheet"
	"github.com/capacitorset/liqo-broker/pkg/shown"
	"github.com/capacitorset/liqo-broker/pkg/shown/apiv1"
	"github.com/capacitorset/liqo-broker/pkg/shown/feed"
	"github.com/capacitorset/liqo-broker/pkg/shown/stream"
	"github.com/capacitorset/liqo-broker/pkg/uiserver"
)

// How long what takes. With each heartbeat the API server is asked for a sign of life.
const (
	heartbeat = 5 * time.Second
	syncing   = 20 * time.Second
	reaching  = 4 * time.Second
)

// maxStreams bounds the tabs that are live at the same time.
const maxStreams = 8

// maxBody bounds what is read of a request, in bytes.
const maxBody = 4 << 10

// Config is what answers are made of.
type Config struct {
	// Rest is how the person reaches the API server, and Scheme has the kinds.
	Rest   *rest.Config
	Scheme *runtime.Scheme
	// Line is Liqo's on the cluster.
	Line line.Line
	// Programs are where the broker's programs are.
	Programs shown.Programs
	// Context and Version are shown.
	Context, Version string
	// Preview returns what would become of the pods on a provider that is drained. It is called once at a time.
	Preview func(ctx context.Context, provider cluster.ID) (apiv1.DrainPreview, error)
	// Policies reads, tries and writes texts of policies; nil if there is nothing of the kind. It is called concurrently.
	Policies Policies
	// Broker is whether the cluster has the objects of a broker, and Trades whether it has those of a connector.
	Broker, Trades bool
	// Consumes has the pods of the cluster itself shown that are at brokers; it is no broker.
	Consumes bool
	// ReadOnly refuses all changes.
	ReadOnly bool
}

// Answers answers. It may be used concurrently.
type Answers struct {
	cfg    Config
	client client.Client
	mux    *http.ServeMux
	places chan struct{} // One for each stream.
	turn   chan struct{} // Of previews, and trying of policies that are tried.
	trying chan struct{}

	mu      sync.Mutex
	ctx     context.Context //nolint:containedctx // Of Run: sightings end with it, and not with the request that begins one.
	sighted *sighting       // What is known of the cluster; nil for nothing yet, or nothing any more.
	group   errgroup.Group
}

// New returns what answers.
func New(cfg Config) (*Answers, error) {
	cfg.Rest = rest.CopyConfig(cfg.Rest)
	lenient.Wrap(cfg.Rest, cfg.Scheme, logr.Discard()) // One object that cannot be read hides no other.
	cfg.Rest.WarningHandlerWithContext = warnings{}
	c, err := client.New(cfg.Rest, client.Options{Scheme: cfg.Scheme})
	if err != nil {
		return nil, fmt.Errorf("reach the cluster: %w", err)
	}
	return answersOf(cfg, c), nil
}

func answersOf(cfg Config, c client.Client) *Answers {
	a := &Answers{cfg: cfg, client: c, mux: http.NewServeMux(), places: make(chan struct{}, maxStreams), turn: make(chan struct{}, 1)}
	a.trying = make(chan struct{}, 1)
	a.mux.HandleFunc("GET /api/v1/me", a.me)
	a.mux.HandleFunc("GET /api/v1/events", a.events)
	if cfg.Broker {
		a.mux.HandleFunc("GET /api/v1/providers/{id}/drain", a.drain)
		a.mux.HandleFunc("PUT /api/v1/providers/{id}/scheduling", a.schedules(func() client.Object { return &v1alpha1.Provider{} },
			string(v1alpha1.SchedulingActive), string(v1alpha1.SchedulingCordoned), string(v1alpha1.SchedulingDrained)))
		a.mux.HandleFunc("PUT /api/v1/consumers/{id}/scheduling", a.schedules(func() client.Object { return &v1alpha1.Consumer{} },
			string(v1alpha1.ConsumerActive), string(v1alpha1.ConsumerSuspended)))
	}
	if cfg.Trades {
		a.mux.HandleFunc("POST /api/v1/market/find", a.find)
		a.mux.HandleFunc("POST /api/v1/orders", a.order)
		a.mux.HandleFunc("POST /api/v1/contracts/{side}/{name}/{deed}", a.decide)
		a.mux.HandleFunc("PUT /api/v1/ownoffers/{name}/sale", a.sell)
		a.mux.HandleFunc("DELETE /api/v1/requests/{name}", a.withdraw)
	}
	if cfg.Policies != nil {
		a.mux.HandleFunc("POST /api/v1/policies/try", a.tryPolicy)
		a.mux.HandleFunc("PUT /api/v1/policies/{name}", a.applyPolicy)
		a.mux.HandleFunc("GET /api/v1/policies/{name}/manifest", a.manifest)
	}
	a.mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		uiserver.Refuse(w, http.StatusNotFound, fmt.Sprintf("there is no %s %s", r.Method, sheet.Plain(r.URL.Path)))
	})
	return a
}

// Run keeps what is answered ready until ctx ends. Requests before and after it are refused.
func (a *Answers) Run(ctx context.Context) error {
	a.mu.Lock()
	a.ctx = ctx
	a.mu.Unlock()
	<-ctx.Done()
	a.mu.Lock()
	a.ctx = nil
	a.mu.Unlock()
	return a.group.Wait()
}

// ServeHTTP implements [http.Handler].
func (a *Answers) ServeHTTP(w http.ResponseWriter, r *http.Request) { a.mux.ServeHTTP(w, r) }

// sighting returns what is known of the cluster. What was seen before the API server could not be reached, or said no, is forgotten: the
// cache would go on telling it.
func (a *Answers) sighting(ctx context.Context) (*sighting, error) {
	if err := a.reached(ctx); err != nil {
		return nil, err
	}
	s, err := a.begun() //nolint:contextcheck // It goes on when whoever has asked is gone.
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, syncing)
	defer cancel()
	select {
	case <-s.ready:
		return s, nil
	case <-s.lost:
		return nil, s.err
	case <-ctx.Done():
		if unread := s.noted.unread(); len(unread) > 0 {
			return nil, fmt.Errorf("there is no answer yet to the question for all of %s: it goes on", strings.Join(unread, ", "))
		}
		return nil, errors.New("not all has been read yet: it goes on")
	}
}

// begun returns a sighting that has begun, and has not been lost.
func (a *Answers) begun() (*sighting, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.ctx == nil || a.ctx.Err() != nil {
		return nil, errors.New("the server ends")
	}
	if a.sighted == nil || a.sighted.isLost() {
		s := newSighting(a.cfg, a.client)
		a.sighted = s
		ctx := a.ctx
		a.group.Go(func() error {
			s.run(ctx)
			return nil
		})
	}
	return a.sighted, nil
}

// reached returns why the API server does not answer. Whatever else it answers than that it does not know the person, it is there.
func (a *Answers) reached(ctx context.Context) error {
	timed, cancel := context.WithTimeout(ctx, reaching)
	defer cancel()
	_, err := whoIs(timed, a.client)
	switch status := apierrors.APIStatus(nil); {
	case err == nil, errors.As(err, &status) && !apierrors.IsUnauthorized(err) && status.Status().Code < http.StatusInternalServerError:
		return nil
	default:
		a.mu.Lock()
		defer a.mu.Unlock()
		if a.sighted != nil && ctx.Err() == nil {
			a.sighted.lose(err)
		}
		return fmt.Errorf("the API server does not answer: %w", err)
	}
}

// refuse says why something was not done.
func refuse(w http.ResponseWriter, err error) {
	status := http.StatusServiceUnavailable
	if said := apierrors.APIStatus(nil); errors.As(err, &said) && said.Status().Code >= http.StatusBadRequest {
		// 401 is about the key of the page.
		if status = int(said.Status().Code); status == http.StatusUnauthorized {
			status = http.StatusServiceUnavailable
		}
	}
	uiserver.Refuse(w, status, sheet.Plain(err.Error()))
}

// me says who the person is.
func (a *Answers) me(w http.ResponseWriter, r *http.Request) {
	s, err := a.sighting(r.Context())
	if err != nil {
		refuse(w, err)
		return
	}
	uiserver.Answer(w, s.me)
}

// events streams what there is and what changes of it.
func (a *Answers) events(w http.ResponseWriter, r *http.Request) {
	select {
	case a.places <- struct{}{}:
		defer func() { <-a.places }()
	default:
		uiserver.Refuse(w, http.StatusTooManyRequests, fmt.Sprintf("%d tabs are live already: close one", maxStreams))
		return
	}
	asked := strings.Split(r.URL.Query().Get("kinds"), ",")
	s, err := a.sighting(r.Context())
	if err != nil {
		refuse(w, err)
		return
	}
	var kinds []feed.Kind
	for _, kind := range a.cfg.kinds() {
		if slices.Contains(asked, string(kind)) && slices.Contains(s.kinds, kind) {
			kinds = append(kinds, kind)
		}
	}
	if len(kinds) == 0 {
		uiserver.Refuse(w, http.StatusForbidden, "you may not see anything of this")
		return
	}
	// A stream ends with what it was made of: the page calls again, and sees what there is then.
	ctx, end := context.WithCancel(r.Context())
	defer end()
	defer context.AfterFunc(s.life, end)() //nolint:contextcheck // That of the request is above.
	watch := stream.Stream{
		Feed: s.feed, Kinds: kinds, Last: r.Header.Get("Last-Event-ID"), Watcher: stream.Watcher{Name: "the person"},
		Timing: stream.Timing{Heartbeat: heartbeat, Write: 10 * time.Second},
		May:    func(ctx context.Context) bool { return a.reached(ctx) == nil },
	}
	if err := watch.Run(ctx, w); err != nil {
		refuse(w, err)
	}
}

// drain previews a drain.
func (a *Answers) drain(w http.ResponseWriter, r *http.Request) {
	leave, ok := await(r.Context(), a.turn)
	if !ok {
		return
	}
	defer leave()
	preview, err := a.cfg.Preview(r.Context(), cluster.ID(r.PathValue("id")))
	if err != nil {
		refuse(w, err)
		return
	}
	uiserver.Answer(w, preview)
}

// await waits for its turn, and returns what ends that; false if whoever asks has gone.
func await(ctx context.Context, turn chan struct{}) (leave func(), ok bool) {
	select {
	case turn <- struct{}{}:
		return func() { <-turn }, true
	case <-ctx.Done():
		return nil, false
	}
}

// schedules answers how a cluster is scheduled from now on.
func (a *Answers) schedules(empty func() client.Object, values ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		var asked struct {
			Scheduling string `json:"scheduling"`
		}
		if err := decode(w, r, maxBody, &asked); err != nil {
			uiserver.Refuse(w, http.StatusBadRequest, "this is no JSON with scheduling alone: "+sheet.Plain(err.Error()))
			return
		}
		if !slices.Contains(values, asked.Scheduling) {
			uiserver.Refuse(w, http.StatusUnprocessableEntity, "scheduling is one of "+strings.Join(values, ", "))
			return
		}
		dry, ok := a.mayChange(w, r)
		if !ok {
			return
		}
		object := empty()
		object.SetName(r.PathValue("id"))
		a.schedule(w, r, object, asked.Scheduling, dry)
	}
}

// schedule patches one field of one object, as the commands of the plugin do.
func (a *Answers) schedule(w http.ResponseWriter, r *http.Request, object client.Object, scheduling string, dry bool) {
	if err := a.set(w, r, dry, object, "scheduling", scheduling); err != nil {
		refuse(w, fmt.Errorf("set scheduling of %s: %w", object.GetName(), err))
		return
	}
	uiserver.Answer(w, struct {
		Scheduling string `json:"scheduling"`
	}{scheduling})
}

// accessOf returns what of the kinds a person sees who lacks some rights to read objects.
func accessOf(kinds []feed.Kind, missing func(feed.Kind) []string) (all []apiv1.Watchable, seen []feed.Kind) {
	for _, kind := range kinds {
		lacks := missing(kind)
		all = append(all, apiv1.Watchable{Kind: string(kind), Missing: lacks})
		if len(lacks) == 0 {
			seen = append(seen, kind)
		}
	}
	return all, seen
}
