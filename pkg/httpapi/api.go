// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

// Package httpapi serves the broker's HTTP API: version 1, which shows what the broker knows,
// decides and advises, with an OpenAPI document of it; the list of clusters and the toggle
// that activates or drains a provider; and the plans for consumers' namespaces.
//
// It says what people ask for (the spec of a Provider), and shows what Liqo records of
// the peers, what policies have decided and what is planned. It neither places workloads
// nor knows what follows from a toggle.
package httpapi

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/go-logr/logr"
	"golang.org/x/time/rate"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
	"github.com/capacitorset/liqo-broker/pkg/liqo/line"
	"github.com/capacitorset/liqo-broker/pkg/serving/delegatedauth"
	"github.com/capacitorset/liqo-broker/pkg/serving/httpserver"
	"github.com/capacitorset/liqo-broker/pkg/serving/rest"
	"github.com/capacitorset/liqo-broker/pkg/serving/restclient"
	"github.com/capacitorset/liqo-broker/pkg/serving/source"
	"github.com/capacitorset/liqo-broker/pkg/shown"
	"github.com/capacitorset/liqo-broker/pkg/shown/apiv1"
)

// Audience is what tokens for the API are for, unless others are configured.
const Audience = "liqo-broker"

const (
	requestTimeout = 15 * time.Second
	// Bounds of the connections in all, and of each for whom they count.
	maxConnections, maxConnectionsEach = 256, 32
)

// Config is what the API needs.
type Config struct {
	// Client reads from a cache and writes to the API server.
	Client client.Client
	// Line is that of Liqo, whose records of peers the Client reads.
	Line line.Line
	// Reviewer says who callers are and what they may do.
	Reviewer *delegatedauth.Reviewer
	// Source tells for whom an address counts; nil for its network.
	Source source.Func
	Log    logr.Logger
	// Identify tells consumers by their certificates; nil if no certificate counts.
	Identify Identify
	// Known returns the consumer of a connection that Identify has identified lately, without asking anybody; nil if none is known.
	Known func(connection *tls.ConnectionState) (cluster.ID, bool)
	// Own is the broker's cluster.
	Own cluster.Identity
	// Origins are those whose web pages may use version 1 of the API, such as https://example.com.
	Origins []string
	// Page answers everybody below /ui/, as if it were at the root, over TLS only: it has no data. Nil for none.
	Page http.Handler
	// Hosts are the names by which the page is called, without a port; nil for any.
	Hosts []string
	// Changed is told what somebody has had the API change, and does not wait; nil for nobody. It is called concurrently.
	Changed func(Rescheduled)
	// Explainer explains the plans for namespaces; nil if there are none.
	Explainer Explainer
	// TryPolicy says what the policy of a text would decide now. The error is [apiv1.FaultsError] for a text that has no good one. It is
	// called once at a time; nil if nothing can be tried.
	TryPolicy func(ctx context.Context, text string) (apiv1.PolicyTrial, error)
	// Catalog, Orchestrator and Aggregator are the modes that the broker runs. The list
	// of clusters is served by a catalog and an orchestrator, the toggle only by an
	// orchestrator, and version 1 by an orchestrator and an aggregator.
	Catalog      bool
	Orchestrator bool
	Aggregator   bool
	// AnonymousToggle lets everybody toggle, by POST. Otherwise a caller needs
	// the right to update Providers.
	AnonymousToggle bool
	// AnonymousCatalog shows the providers to everybody, also by an aggregator, whose
	// consumers are not to see them. Otherwise a caller needs the right to list Providers
	// there.
	AnonymousCatalog bool
}

// brokers reports whether there are consumers, and not only a catalog.
func (c *Config) brokers() bool { return c.Orchestrator || c.Aggregator }

// API is the HTTP API.
type API struct {
	cfg  Config
	all  *rate.Limiter // Of all who are not known.
	each *rest.Callers[*rate.Limiter]
	// Of files of the page.
	allFiles *rate.Limiter
	eachFile *rest.Callers[*rate.Limiter]

	mux  *http.ServeMux
	rest *rest.API
	v1   *v1 // Nil if there are no consumers.
}

// New returns the API.
func New(cfg Config) (*API, error) {
	if cfg.Client == nil || cfg.Line == nil || cfg.Reviewer == nil {
		return nil, errors.New("the HTTP API needs a client, a line of Liqo, and an authorizer")
	}
	if cfg.Source == nil {
		cfg.Source = source.Network
	}
	a := &API{cfg: cfg, mux: http.NewServeMux(), all: rate.NewLimiter(perSecondAll, atOnceAll)}
	a.each = rest.NewCallers(maxCallers, rememberedAs, func(source.Source) *rate.Limiter { return rate.NewLimiter(perSecondEach, atOnceEach) })
	a.allFiles = rate.NewLimiter(perSecondAllFiles, atOnceAllFiles)
	a.eachFile = rest.NewCallers(maxCallers, atOnceFiles/perSecondFiles*time.Second, func(source.Source) *rate.Limiter {
		return rate.NewLimiter(perSecondFiles, atOnceFiles)
	})
	a.rest = newREST(&a.cfg, a.mux)
	if cfg.brokers() {
		var err error
		if a.v1, err = newV1(&a.cfg, a.rest); err != nil {
			return nil, err
		}
	}
	a.routes()
	return a, nil
}

// known returns for whom a request counts whose caller was identified lately; false if that is not known, or if the token was sent in
// clear.
func (a *API) known(r *http.Request) (source.Source, bool) {
	if r.TLS == nil {
		return source.Source{}, false
	}
	if name, ok := a.cfg.Reviewer.Known(delegatedauth.Bearer(r)); ok {
		return source.Caller(caller{name: name}.called()), true
	}
	if a.cfg.Known == nil || !anonymous(r) {
		return source.Source{}, false
	}
	id, ok := a.cfg.Known(r.TLS)
	return source.Caller(caller{consumer: id}.called()), ok
}

// objects are those of the broker's cluster.
func (c *Config) objects() *shown.Objects {
	modes := []string{}
	for _, mode := range []struct {
		name string
		runs bool
	}{{"catalog", c.Catalog}, {"orchestrator", c.Orchestrator}, {"aggregator", c.Aggregator}} {
		if mode.runs {
			modes = append(modes, mode.name)
		}
	}
	return &shown.Objects{Reader: c.Client, Line: c.Line, Own: c.Own, Running: modes}
}

// Watch tells the API what changes in a cache, which is started later.
func (a *API) Watch(ctx context.Context, informers cache.Informers) error {
	if a.v1 == nil {
		return nil
	}
	return a.cfg.objects().Watch(ctx, informers, shown.Kinds(), nil, a.v1.feed.Changed)
}

// Start keeps ready what version 1 shows, until ctx ends.
func (a *API) Start(ctx context.Context) error {
	if a.v1 == nil {
		<-ctx.Done()
		return nil
	}
	return a.v1.feed.Run(ctx)
}

// What callers are told beside what package rest tells them, and what a parameter or a field lacks by itself.
const (
	// Who calls, and how.
	messageNoToken        = "a bearer token of the broker's cluster is required, for the audience " + Audience
	messageBadToken       = "the bearer token is not valid for the audience " + Audience
	messageMayNot         = "%s may not %s"
	messageTooManyCallers = "too many callers: try again in a second"
	messageNoRights       = "the caller's rights cannot be checked"
	messageNoConsumer     = "the client certificate cannot be checked"
	messageInClear        = "tokens are accepted over TLS only: this one was sent in plain text, do not use it again"
	messagePageTLS        = "the page is served over TLS only"
	messageHost           = "the page is called otherwise: the daemon answers to the names of its Service, and to those of --tls-name"
	messageTLS            = "version 1 of the API is served over TLS only"
	messageOtherSite      = "cross-origin requests may not toggle providers"
	messageOnlyPost       = "without a token only POST is allowed here"

	// What consumers see.
	messageOnlyOwn = "a consumer may only see what is its own: consumers/%[1]s, consumers/%[1]s/advice, offers, workloads, and " +
		"events of these"
	messageNotOwn         = "a consumer may only see what is its own"
	messageHidden         = "a consumer may not see this"
	messageTooManyStreams = "too many streams of events: there may be %d of each caller, and %d in all"

	// What there is.
	messageNoPath = "not found: the paths are /api/clusters, /api/toggle, /api/v1/openapi.yaml and those that it describes, and " +
		"/debug/namespaces/NAME"
	messageNoV1           = "version 1 of the API is not served: the broker runs neither as orchestrator nor as aggregator"
	messageNoClusters     = "the list of clusters is not served: the broker runs neither as catalog nor as orchestrator"
	messageNoToggle       = "providers cannot be toggled: the broker does not run as orchestrator"
	messageNoTrials       = "policies cannot be tried here"
	messageNoPlans        = "there are no plans: the broker runs neither as orchestrator nor as aggregator"
	messageNoItem         = "there is no %q among the %s"
	messageNoProvider     = "no provider has the cluster ID %q"
	messageNoSuchConsumer = "no consumer has the cluster ID %q"
	messageNoNamespace    = "the broker offloads no namespace %q of a consumer"

	messageFailed = "the request cannot be answered: the log of the broker says why"
)

// routes adds all paths but those of version 1.
func (a *API) routes() {
	a.mux.HandleFunc("GET /api/clusters", a.clusters)
	a.mux.HandleFunc("GET /api/toggle", a.toggle)
	a.mux.HandleFunc("POST /api/toggle", a.toggle)
	a.mux.HandleFunc("GET /debug/namespaces/{name}", a.namespace)
	a.mux.HandleFunc("HEAD /api/toggle", rest.NotAllowed("GET, POST"))
	a.mux.HandleFunc("/api/clusters", rest.NotAllowed("GET, HEAD"))
	a.mux.HandleFunc("/api/toggle", rest.NotAllowed("GET, POST"))
	a.mux.HandleFunc("/debug/namespaces/{name}", rest.NotAllowed("GET, HEAD"))
	if a.cfg.Page != nil {
		a.mux.Handle(pagePath, a.page())
	}
	a.mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		if a.v1 == nil && strings.HasPrefix(r.URL.Path, base+"/") {
			rest.Write(w, rest.Refusal(http.StatusNotFound, messageNoV1))
			return
		}
		rest.Write(w, rest.Refusal(http.StatusNotFound, messageNoPath))
	})
}

// Handler returns the handler of all paths.
func (a *API) Handler() http.Handler {
	return a.paced(withoutTokenInClear(crossOrigin(a.cfg.Origins, a.mux)))
}

// writeJSON answers with a value.
func writeJSON(w http.ResponseWriter, v any) {
	body, err := json.Marshal(v)
	if err != nil {
		rest.Write(w, rest.Refusal(http.StatusInternalServerError, messageFailed))
		return
	}
	h := w.Header()
	h.Set("Content-Type", restclient.JSON)
	h.Set("Cache-Control", "no-store")
	h.Set("X-Content-Type-Options", "nosniff")
	_, _ = w.Write(append(body, '\n')) // A caller that has gone away is nobody's concern.
}

// withoutTokenInClear refuses requests that bring a token without TLS: whoever saw the
// packet has it.
func withoutTokenInClear(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.TLS == nil && r.Header.Get("Authorization") != "" {
			rest.Write(w, rest.Refusal(http.StatusForbidden, messageInClear))
			return
		}
		next.ServeHTTP(w, r)
	})
}

// Run serves on a listener until ctx ends, and returns when all requests have ended.
// Without a TLS configuration it accepts no tokens.
func (a *API) Run(ctx context.Context, listener net.Listener, config *tls.Config) error {
	bounded := httpserver.Bound(listener, httpserver.Bounds{Of: a.cfg.Source, All: maxConnections, Each: maxConnectionsEach})
	return httpserver.Server{Name: "the HTTP API", Handler: a.Handler(), TLS: config, Timeout: requestTimeout,
		Endless: endless}.Run(ctx, bounded)
}
