// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package negotiation

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/go-logr/logr"
	"golang.org/x/time/rate"
	"k8s.io/apimachinery/pkg/util/cache"
	"k8s.io/utils/clock"

	"github.com/capacitorset/liqo-broker/pkg/serving/rest"
	"github.com/capacitorset/liqo-broker/pkg/serving/restclient"
	"github.com/capacitorset/liqo-broker/pkg/serving/source"
	"github.com/capacitorset/liqo-broker/pkg/trade/core/contract"
	"github.com/capacitorset/liqo-broker/pkg/trade/negotiation/negotiationv1"
	"github.com/capacitorset/liqo-broker/pkg/trade/party"
)

const (
	// maxBody bounds the body of a request, in bytes.
	maxBody = 32 << 10
	// answerTimeout is how long a request may take beside a long poll.
	answerTimeout = 15 * time.Second
	// MaxWait is how long a long poll waits at most; who serves the handler must let a request take this and 15 seconds more.
	MaxWait = 30 * time.Second
	// maxCallers bounds the parties whose pace is remembered.
	maxCallers, rememberedAs = 1 << 14, 10 * time.Minute
	// reachedFor is for how long a cluster counts as reached, and maxReached bounds those that are remembered.
	reachedFor, maxReached = time.Minute, 1 << 12
	// messageFailed is told where the reason is not.
	messageFailed = "the request cannot be answered now: the log of the seller says why; it can be repeated"
	// defaultTryFor is Config.TryFor.
	defaultTryFor = 5 * time.Second
)

// Limits bound what one party may ask of a seller.
type Limits struct {
	// PerSecond is how many of its requests are answered in a second, and AtOnce how many at once.
	PerSecond, AtOnce int
	// NewPerMinute is how many contracts it may begin in a minute, and NewAtOnce how many at once.
	NewPerMinute, NewAtOnce int
	// Open is how many contracts it may have that are not over, and Kept how many in all: also those that are over are stored for a time.
	Open, Kept int
	// Lapsed is of how many contracts it may not have signed what was reserved for it: reservations cost nothing. Those count that are stored.
	Lapsed int
	// AllOpen and AllKept are those of all parties.
	AllOpen, AllKept int
	// TriesPerMinute is how often the clusters of one party are tried to be reached in a minute, TriesAtOnce how often at once, and Tries
	// bounds those of all parties at once.
	TriesPerMinute, TriesAtOnce, Tries int
	// Bytes is how large the records of its contracts may be when it begins another one, as they are kept in memory, and AllBytes those of all
	// parties.
	Bytes, AllBytes int
	// Polls bounds long polls in all, and PollsEach those of one party.
	Polls, PollsEach int
	// Strangers is how many requests of callers that nobody knows are looked at in a second from one network, and StrangersAtOnce how many at
	// once.
	Strangers, StrangersAtOnce int
	// Connections bounds the connections of parties in all, and ConnectionsEach those of one; more of them count for their network.
	Connections, ConnectionsEach int
}

// DefaultLimits are those of a seller for some hundred buyers. A Sale has some ten kilobytes, or some hundred if its terms have changed
// often: all that are kept take some 80 MB of an etcd, and a GB at most. All that are open fit into the ledger with six resources each, and
// fewer of larger ones. In memory a record has 5 KB, and 2 KB when its contract is over, whatever its buyer writes: as much again where it
// is read.
func DefaultLimits() Limits {
	return Limits{
		PerSecond: 20, AtOnce: 100, NewPerMinute: 10, NewAtOnce: 32, Open: 32, Kept: 256, Lapsed: 4, AllOpen: 2048, AllKept: 8192,
		TriesPerMinute: 6, TriesAtOnce: 8, Tries: 32, Polls: 512, PollsEach: 32,
		Strangers: 5, StrangersAtOnce: 50, Connections: 1536, ConnectionsEach: 64, Bytes: 1 << 20, AllBytes: 16 << 20,
	}
}

// positive reports whether all limits are.
func (l Limits) positive() bool {
	return min(l.PerSecond, l.AtOnce, l.NewPerMinute, l.NewAtOnce, l.Open, l.Kept, l.Lapsed, l.AllOpen, l.AllKept, l.TriesPerMinute,
		l.TriesAtOnce, l.Tries, l.Polls, l.PollsEach,
		l.Strangers, l.StrangersAtOnce, l.Connections, l.ConnectionsEach, l.Bytes, l.AllBytes) > 0
}

// Config is what a server needs. All but Audit, TryFor, Refused and Clock must be there.
type Config struct {
	// Party is the seller, and Key returns its current key.
	Party party.ID
	Key   func() party.Key
	// Keys returns the chain of its keys, and Learn takes in those of callers that have a new one; nil if callers cannot introduce themselves.
	Keys  func() party.Keys
	Learn Learn
	// Identify tells who calls.
	Identify    Identify
	Store       Store
	Offers      Offers
	Admission   Admission
	Credentials Credentials
	Reach       Reach
	// TryFor is how long the clusters of buyers may take to be reached; zero is some seconds.
	TryFor time.Duration
	// Audit is nil if nobody is to be told.
	Audit Audit
	// Seller is how long reservations last, and Drain how long buyers get to move their workloads away.
	Seller contract.Seller
	Drain  time.Duration
	Limits Limits
	Log    logr.Logger
	// Refused is told why a request was refused, by one of Refusals; nil if nobody is to be told. It is called concurrently and must not
	// block.
	Refused func(reason string)
	// Clock is the clock; nil is that of the process.
	Clock clock.PassiveClock
}

// Server answers buyers. It is an http.Handler for TLS with party.TLS, and can be used concurrently.
type Server struct {
	cfg  Config
	mux  *http.ServeMux
	api  *rest.API
	poll *source.Limit
	// connections are those of parties.
	connections *source.Limit
	// tries are those to reach the clusters of parties, and reached those that were recently.
	tries   *source.Limit
	reached *cache.LRUExpireCache
	// pace is that of parties, and of networks with strangers.
	pace *rest.Callers[pacer]
}

// NewServer returns a server.
func NewServer(cfg Config) (*Server, error) {
	switch {
	case cfg.Party == "" || cfg.Key == nil || cfg.Identify == nil || cfg.Store == nil || cfg.Offers == nil || cfg.Admission == nil ||
		cfg.Credentials == nil ||
		cfg.Reach == nil:
		return nil,
			errors.New("a server of negotiations needs a party with a key, somebody who identifies callers, a store, offers, an admission, " +
				"credentials and somebody who tries to reach buyers")
	case cfg.Seller.ReserveFor <= 0 || cfg.Seller.DecideFor <= 0 || cfg.Drain < 0:
		return nil, fmt.Errorf("a server of negotiations reserves for %s, decides for %s and drains for %s: they must be positive",
			cfg.Seller.ReserveFor, cfg.Seller.DecideFor, cfg.Drain)
	case !cfg.Limits.positive():
		return nil, fmt.Errorf("limits of a server of negotiations must be positive: %+v", cfg.Limits)
	}
	return describe(cfg)
}

// describe returns a server with its paths.
func describe(cfg Config) (*Server, error) {
	if cfg.Clock == nil {
		cfg.Clock = clock.RealClock{}
	}
	if cfg.Refused == nil {
		cfg.Refused = func(string) {}
	}
	if cfg.TryFor <= 0 {
		cfg.TryFor = defaultTryFor
	}
	s := &Server{
		connections: source.NewLimit(cfg.Limits.Connections, cfg.Limits.ConnectionsEach),
		tries:       source.NewLimit(cfg.Limits.Tries, cfg.Limits.TriesAtOnce), reached: cache.NewLRUExpireCacheWithClock(maxReached, cfg.Clock),

		cfg: cfg, mux: http.NewServeMux(), poll: source.NewLimit(cfg.Limits.Polls, cfg.Limits.PollsEach),
		pace: rest.NewCallers(maxCallers, rememberedAs, cfg.Limits.pacer),
	}
	s.api = rest.New(rest.Config{
		Title:       "liqo-broker negotiation",
		Description: "What connectors say to each other to negotiate contracts. Errors are problem documents (RFC 9457).",
		Schemes: map[string]*huma.SecurityScheme{"key": {
			Type: "mutualTLS", Description: "A self-signed certificate of the caller's Ed25519 key, over TLS 1.3.",
		}},
		Host: "connector.example", Port: "8446",
		Base: negotiationv1.Base, Timeout: MaxWait + answerTimeout, MaxBody: maxBody, Secret: true, Unmarshal: strictly, Explain: explain,
		Failed: messageFailed, Caller: func(ctx context.Context) string { return string(callerOf(ctx).ID()) }, Log: cfg.Log,
	}, s.mux)
	s.operations()
	return s, s.api.Seal("/", func(*http.Request) error { return nil }) // Who comes so far was identified.
}

// OpenAPI returns the document of the protocol, as YAML.
func OpenAPI() ([]byte, error) {
	s, err := describe(Config{})
	if err != nil {
		return nil, err
	}
	return s.api.OpenAPI().YAML()
}

// refusals are the reasons that Config.Refused is told, by the status of the answer.
var refusals = map[int]string{
	http.StatusBadRequest: "malformed", http.StatusRequestEntityTooLarge: "malformed", http.StatusUnauthorized: "stranger",
	http.StatusForbidden: "stranger", http.StatusNotFound: "unknown", http.StatusConflict: "state", http.StatusUnprocessableEntity: "terms",
	http.StatusTooManyRequests: "too-many", http.StatusMethodNotAllowed: "malformed", http.StatusNotAcceptable: "malformed",
	http.StatusUnsupportedMediaType: "malformed", http.StatusFailedDependency: "not-reachable",
}

// failed is the reason that Config.Refused is told where the seller could not answer.
const failed = "failed"

// Refusals returns all reasons for which requests are refused, as Config.Refused is told them.
func Refusals() []string {
	return slices.Compact(slices.Sorted(slices.Values(append(slices.Collect(maps.Values(refusals)), failed))))
}

// counted tells the status of an answer.
type counted struct {
	http.ResponseWriter

	refused func(reason string)
}

// WriteHeader implements http.ResponseWriter.
func (c *counted) WriteHeader(status int) {
	if status >= http.StatusBadRequest && status != restclient.StatusGone {
		reason, known := refusals[status]
		if !known {
			reason = failed
		}
		c.refused(reason)
	}
	c.ResponseWriter.WriteHeader(status)
}

// ServeHTTP implements http.Handler.
func (s *Server) ServeHTTP(plain http.ResponseWriter, r *http.Request) {
	w := http.ResponseWriter(&counted{plain, s.cfg.Refused})
	if err := s.crowded(r); err != nil {
		w.Header().Set("Connection", "close")
		s.tooMany(w, r, err)
		return
	}
	if introduces(r) {
		s.met(r, "") // It is known afterwards.
		key, err := party.PeerKey(r.TLS)
		if err != nil {
			s.api.Refuse(w, r, rest.Refusal(http.StatusUnauthorized, err.Error()))
			return
		}
		r.Body = http.MaxBytesReader(plain, r.Body, maxBody+1)
		s.mux.ServeHTTP(w, rest.WithCaller(r, shown{key}))
		return
	}
	who, err := s.identify(r)
	if err != nil {
		s.met(r, "")
		w.Header().Set("Connection", "close")
		s.api.Refuse(w, r, err)
		return
	}
	s.met(r, who.ID())
	if !s.pacer(who.ID()).requests.Allow() {
		s.tooMany(w, r, fmt.Errorf("requests of party %s", who.ID()))
		return
	}
	r.Body = http.MaxBytesReader(plain, r.Body, maxBody+1)
	s.mux.ServeHTTP(w, rest.WithCaller(r, who))
}

// tooMany refuses a request that can be made again.
func (s *Server) tooMany(w http.ResponseWriter, r *http.Request, which error) {
	w.Header().Set("Retry-After", "1")
	s.api.Refuse(w, r, fmt.Errorf("%w %w: try again in a second", ErrTooMany, which))
}

// callerOf returns the keys of the caller.
func callerOf(ctx context.Context) party.Keys { return rest.CallerOf[party.Keys](ctx) }

// identify finds out who calls, by what the TLS connection has proved.
func (s *Server) identify(r *http.Request) (party.Keys, error) {
	key, err := party.PeerKey(r.TLS)
	if err != nil {
		return party.Keys{}, rest.Refusal(http.StatusUnauthorized, err.Error())
	}
	who, err := s.cfg.Identify(r.Context(), key)
	switch {
	case errors.Is(err, ErrStranger):
		return party.Keys{}, forbidden(negotiationv1.ProblemStranger, ErrStranger.Error()+": "+party.Fingerprint(key))
	case err != nil:
		return party.Keys{}, fmt.Errorf("identify the party with the key %s: %w", party.Fingerprint(key), err)
	case !key.Equal(who.Current()):
		return party.Keys{}, forbidden(negotiationv1.ProblemReplaced, "the key "+party.Fingerprint(key)+" of party "+string(who.ID())+
			" was replaced")
	}
	return who, nil
}

// pacer is how fast a party may ask, begin contracts, and have its clusters tried. A network of strangers may only ask.
type pacer struct {
	requests, contracts, tries *rate.Limiter
	// reserving is held while a contract begins, so that the party's limit counts also at once.
	reserving *sync.Mutex
}

// pacer returns that of a party or a network that has not called before.
func (l Limits) pacer(who source.Source) pacer {
	if !who.IsCaller() {
		return pacer{requests: rate.NewLimiter(rate.Limit(l.Strangers), l.StrangersAtOnce)}
	}
	return pacer{
		requests:  rate.NewLimiter(rate.Limit(l.PerSecond), l.AtOnce),
		contracts: rate.NewLimiter(rate.Limit(l.NewPerMinute)/60, l.NewAtOnce),
		tries:     rate.NewLimiter(rate.Limit(l.TriesPerMinute)/60, l.TriesAtOnce),
		reserving: &sync.Mutex{},
	}
}

// pacer returns that of a party.
func (s *Server) pacer(who party.ID) pacer { return s.pace.Of(source.Caller(string(who))) }

// strictly reads a body as strictly as a signed document. huma reads it twice: for the schema, and into its type.
func strictly(text []byte, into any) error {
	if _, schema := into.(*any); schema {
		var unused json.RawMessage
		if err := party.Decode(text, &unused); err != nil {
			return err
		}
		return json.Unmarshal(text, into)
	}
	return party.Decode(text, into)
}

// problems are the types of the problem documents by which a buyer knows why a request is refused.
var problems = []struct {
	err    error
	status int
	typ    string
}{
	{contract.ErrUnknown, http.StatusNotFound, negotiationv1.ProblemUnknown},
	{contract.ErrEarly, http.StatusConflict, negotiationv1.ProblemEarly},
	{contract.ErrLate, http.StatusConflict, negotiationv1.ProblemLate},
	{contract.ErrRevision, http.StatusConflict, negotiationv1.ProblemRevision},
	{contract.ErrTerms, http.StatusUnprocessableEntity, negotiationv1.ProblemTerms},
	{ErrTooMany, http.StatusTooManyRequests, negotiationv1.ProblemTooMany},
	{ErrNotReachable, http.StatusFailedDependency, negotiationv1.ProblemNotReachable},
	{ErrStranger, http.StatusForbidden, negotiationv1.ProblemStranger},
	{ErrReplaced, http.StatusForbidden, negotiationv1.ProblemReplaced},
	{party.ErrSignature, http.StatusUnprocessableEntity, negotiationv1.ProblemTerms},
	{party.ErrDocument, http.StatusUnprocessableEntity, negotiationv1.ProblemTerms},
}

// explain returns how an error is told that a buyer can do something about; nil for others.
func explain(err error) *huma.ErrorModel {
	for _, p := range problems {
		if errors.Is(err, p.err) {
			return &huma.ErrorModel{Type: p.typ, Title: http.StatusText(p.status), Status: p.status, Detail: err.Error()}
		}
	}
	return nil
}
