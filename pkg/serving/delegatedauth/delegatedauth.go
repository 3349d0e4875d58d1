// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

// Package delegatedauth asks a cluster's API server who a caller is and what it may
// do, by TokenReview and SubjectAccessReview, and protects HTTP handlers with it.
//
// It does not know what is protected. k8s.io/apiserver has the same, with an API
// server's other 250 packages.
package delegatedauth

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	"golang.org/x/time/rate"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/util/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Who calls again within a moment is not looked up again. A right that is taken away,
// or a token that is revoked, is good for as long.
const (
	knownFor   = 30 * time.Second
	unknownFor = 5 * time.Second
	maxCached  = 1024
	// namedFor is how long it is remembered whose a token was. That gives no rights.
	namedFor = 10 * time.Minute
	// maxToken bounds a token, in bytes: those of service accounts have about 1,000.
	maxToken = 8 << 10
	// What is asked of the API server per second: strangers can make up tokens.
	reviewsPerSecond, reviewsAtOnce = 20, 40
	// How often all rights of a caller are looked up per second, of which sideBySide at the same time. It has a limit of its own, so that
	// who has many tokens and asks for that keeps nobody from what needs one right.
	allPerSecond, allAtOnce = 2, 10
	sideBySide              = 8
)

// ErrBusy says that too many callers have to be looked up at this moment.
var ErrBusy = errors.New("too many callers at once")

// Creator creates the reviews. A client without a cache is one.
type Creator interface {
	Create(ctx context.Context, o client.Object, opts ...client.CreateOption) error
}

// Right is what a caller must be allowed to do: with a resource of a group, or with a
// path of HTTP.
type Right struct {
	Verb            string
	Group, Resource string
	Namespace       string // Of the resource; empty for all.
	Path            string // Instead of group and resource.
}

func (r Right) String() string {
	if r.Path != "" {
		return r.Verb + " " + r.Path
	}
	if r.Namespace != "" {
		return fmt.Sprintf("%s %s.%s in namespace %s", r.Verb, r.Resource, r.Group, r.Namespace)
	}
	return fmt.Sprintf("%s %s.%s", r.Verb, r.Resource, r.Group)
}

// Caller is what is known of a caller.
type Caller struct {
	// Name is empty if the caller has shown no token that counts.
	Name    string
	Allowed bool
}

// Reviewer looks callers up. It may be used concurrently.
type Reviewer struct {
	creator   Creator
	audiences []string
	known     *cache.LRUExpireCache
	names     *cache.LRUExpireCache // Of callers, by the hash of their token.
	limit     *rate.Limiter
	limitAll  *rate.Limiter // Of ReviewAll.
}

// New returns a Reviewer. Only tokens that are for one of the audiences count; without
// any, those that are for the API server.
func New(creator Creator, audiences ...string) *Reviewer {
	return &Reviewer{
		creator: creator, audiences: audiences,
		known: cache.NewLRUExpireCache(maxCached), names: cache.NewLRUExpireCache(maxCached),
		limit: rate.NewLimiter(reviewsPerSecond, reviewsAtOnce), limitAll: rate.NewLimiter(allPerSecond, allAtOnce),
	}
}

// key is what a caller was looked up for. It does not hold the token.
type key struct {
	token [sha256.Size]byte
	right Right
}

// Review returns who has a token, and whether it has a right. An error is ErrBusy, or
// says that the API server cannot be asked.
func (r *Reviewer) Review(ctx context.Context, token string, right Right) (Caller, error) {
	if token == "" || len(token) > maxToken {
		return Caller{}, nil
	}
	k := key{sha256.Sum256([]byte(token)), right}
	found, _ := r.known.Get(k)
	if caller, ok := found.(Caller); ok {
		return caller, nil
	}
	if !r.limit.Allow() {
		return Caller{}, ErrBusy
	}
	caller, err := r.ask(ctx, token, right)
	if err != nil {
		return Caller{}, err
	}
	r.remember(k, caller)
	return caller, nil
}

// remember keeps what was found, for a moment.
func (r *Reviewer) remember(k key, caller Caller) {
	lifetime := unknownFor
	if caller.Allowed {
		lifetime = knownFor
	}
	r.known.Add(k, caller, lifetime)
	if caller.Name != "" {
		r.names.Add(k.token, caller.Name, namedFor)
	}
}

// Known returns whose a token was some minutes ago, and asks nobody. That is enough to count
// a caller, and not to let it do anything.
func (r *Reviewer) Known(token string) (name string, ok bool) {
	if token == "" || len(token) > maxToken {
		return "", false
	}
	found, _ := r.names.Get(sha256.Sum256([]byte(token)))
	name, ok = found.(string)
	return name, ok
}

// ReviewAll returns who has a token, empty if it does not count, and which of some rights it has, parallel to them. What is not known yet
// is looked up side by side. An error is that of Review. It may be called for a fixed list of some dozens at most.
func (r *Reviewer) ReviewAll(ctx context.Context, token string, rights []Right) (name string, has []bool, err error) {
	if token == "" || len(token) > maxToken {
		return "", make([]bool, len(rights)), nil
	}
	of, all := sha256.Sum256([]byte(token)), make([]Caller, len(rights))
	var unknown []int
	for i, right := range rights {
		found, _ := r.known.Get(key{of, right})
		var is bool
		if all[i], is = found.(Caller); !is {
			unknown = append(unknown, i)
		}
	}
	if len(unknown) > 0 {
		if !r.limitAll.Allow() {
			return "", nil, ErrBusy
		}
		if err := r.askAll(ctx, token, rights, unknown, all); err != nil {
			return "", nil, err
		}
		for _, i := range unknown {
			r.remember(key{of, rights[i]}, all[i])
		}
	}
	has = make([]bool, len(rights))
	for i := range all {
		name, has[i] = cmp.Or(name, all[i].Name), all[i].Allowed
	}
	return name, has, nil
}

// askAll looks up some of the rights, and writes what it finds into all.
func (r *Reviewer) askAll(ctx context.Context, token string, rights []Right, unknown []int, all []Caller) error {
	user, is, err := r.identify(ctx, token)
	if err != nil || !is {
		return err
	}
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(sideBySide)
	for _, i := range unknown {
		group.Go(func() (err error) {
			all[i], err = r.authorize(ctx, user, rights[i])
			return err
		})
	}
	return group.Wait()
}

func (r *Reviewer) ask(ctx context.Context, token string, right Right) (Caller, error) {
	user, is, err := r.identify(ctx, token)
	if err != nil || !is {
		return Caller{}, err
	}
	return r.authorize(ctx, user, right)
}

// identify finds out who has a token; false if it does not count.
func (r *Reviewer) identify(ctx context.Context, token string) (user authenticationv1.UserInfo, is bool, err error) {
	who := &authenticationv1.TokenReview{Spec: authenticationv1.TokenReviewSpec{Token: token, Audiences: r.audiences}}
	if err := r.creator.Create(ctx, who); err != nil {
		return user, false, fmt.Errorf("review a token: %w", err)
	}
	return who.Status.User, who.Status.Authenticated && r.isFor(who.Status.Audiences), nil
}

// authorize finds out whether somebody has a right.
func (r *Reviewer) authorize(ctx context.Context, user authenticationv1.UserInfo, right Right) (Caller, error) {
	extra := make(map[string]authorizationv1.ExtraValue, len(user.Extra))
	for name, values := range user.Extra {
		extra[name] = authorizationv1.ExtraValue(values)
	}
	may := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		User: user.Username, UID: user.UID, Groups: user.Groups, Extra: extra,
	}}
	if right.Path != "" {
		may.Spec.NonResourceAttributes = &authorizationv1.NonResourceAttributes{Path: right.Path, Verb: right.Verb}
	} else {
		may.Spec.ResourceAttributes = &authorizationv1.ResourceAttributes{
			Group: right.Group, Resource: right.Resource, Namespace: right.Namespace, Verb: right.Verb,
		}
	}
	if err := r.creator.Create(ctx, may); err != nil {
		return Caller{}, fmt.Errorf("review the access of %s: %w", user.Username, err)
	}
	return Caller{Name: user.Username, Allowed: may.Status.Allowed && !may.Status.Denied}, nil
}

// isFor reports whether a token that was reviewed is for one of the audiences. An API
// server that does not know audiences returns none (TokenReviewStatus in
// k8s.io/api/authentication/v1).
func (r *Reviewer) isFor(audiences []string) bool {
	return len(r.audiences) == 0 || slices.ContainsFunc(audiences, func(a string) bool { return slices.Contains(r.audiences, a) })
}

// Bearer returns the bearer token of a request; empty if it has none.
func Bearer(r *http.Request) string { return BearerIn(r.Header.Get("Authorization")) }

// BearerIn returns the bearer token in a header Authorization; empty if it has none.
func BearerIn(header string) string {
	scheme, token, _ := strings.Cut(header, " ")
	if !strings.EqualFold(scheme, "Bearer") {
		return ""
	}
	return strings.TrimSpace(token)
}

// Protect returns a handler that passes on the requests of those who may do with the
// path what the method says: for GET of /metrics, as granted to a ClusterRole with
// nonResourceURLs [/metrics] and verbs [get].
func (r *Reviewer) Protect(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		right := Right{Verb: strings.ToLower(request.Method), Path: request.URL.Path}
		caller, err := r.Review(request.Context(), Bearer(request), right)
		switch {
		case errors.Is(err, ErrBusy):
			w.Header().Set("Retry-After", "1")
			http.Error(w, "too many requests", http.StatusTooManyRequests)
		case err != nil:
			http.Error(w, "the caller's rights cannot be checked", http.StatusInternalServerError)
		case caller.Name == "":
			w.Header().Set("WWW-Authenticate", "Bearer")
			http.Error(w, "a bearer token of this cluster is required", http.StatusUnauthorized)
		case !caller.Allowed:
			http.Error(w, "not allowed", http.StatusForbidden)
		default:
			next.ServeHTTP(w, request)
		}
	})
}
