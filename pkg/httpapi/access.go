// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"

	"github.com/danielgtaylor/huma/v2"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capacitorset/liqo-broker/pkg/api/v1alpha1"
	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
	"github.com/capacitorset/liqo-broker/pkg/overview"
	"github.com/capacitorset/liqo-broker/pkg/serving/delegatedauth"
	"github.com/capacitorset/liqo-broker/pkg/serving/rest"
	"github.com/capacitorset/liqo-broker/pkg/shown"
	"github.com/capacitorset/liqo-broker/pkg/shown/feed"
)

// ErrNoConsumer means that a client certificate is not one that was issued to a consumer.
var ErrNoConsumer = errors.New("the client certificate is not one that the broker's cluster issued to a consumer")

// Identify returns the consumer whose certificate the caller of a connection has shown. The error is [ErrNoConsumer], or says
// that nobody can tell. It is called concurrently.
type Identify func(ctx context.Context, connection *tls.ConnectionState) (cluster.ID, error)

// access is what a caller needs for an operation.
type access struct {
	verb, resource string
	// own is true where a consumer may see what is its own, by its certificate.
	own bool
	// anybody is true where a name is enough, and no right is needed.
	anybody bool
}

// readers returns what it takes to read each kind. Of the resources workloads, links, advice, status and activity there are no
// objects: they are there for the right.
func readers() map[feed.Kind]access {
	return map[feed.Kind]access{
		shown.Providers: {resource: "providers"},
		shown.Consumers: {resource: "consumers", own: true},
		shown.Offers:    {resource: "consumers", own: true},
		shown.Policies:  {resource: "placementpolicies"},
		shown.Decisions: {resource: "placementdecisions"},
		shown.Workloads: {resource: "workloads", own: true},
		shown.Links:     {resource: "links"},
		shown.Flows:     {resource: "workloads"},
		shown.Advice:    {resource: "advice", own: true},
		shown.Status:    {resource: "status"},
		shown.Activity:  {resource: "activity"},
	}
}

// named is what it takes where a name is enough.
func named() access { return access{verb: "get", resource: "providers", own: true, anybody: true} }

// ofPeople returns the same for people alone.
func (a access) ofPeople() access {
	a.own = false
	return a
}

// caller is who makes a request.
type caller struct {
	// name is that of a person or a program in the broker's cluster; empty for consumers.
	name string
	// consumer is empty for people.
	consumer cluster.ID
}

// called is for whom a caller counts.
func (c caller) called() string {
	if c.consumer != "" {
		return "consumer " + string(c.consumer)
	}
	return "user " + c.name
}

// sees reports whether a caller may see what belongs to a consumer.
func (c caller) sees(consumer string) bool { return c.consumer == "" || string(c.consumer) == consumer }

// identify finds out who makes a request, and whether it has the rights. Identity follows from what the broker's API server has
// signed or says, and never from what a request says of itself.
func (v *v1) identify(ctx context.Context, r *http.Request, needed ...access) (caller, error) {
	ctx, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	switch {
	case r.TLS == nil:
		return caller{}, rest.Refusal(http.StatusForbidden, messageTLS)
	case !anonymous(r):
		return v.person(ctx, delegatedauth.Bearer(r), needed)
	case len(r.TLS.PeerCertificates) > 0 && v.cfg.Identify != nil:
		return v.consumer(ctx, r.TLS, needed)
	default:
		return caller{}, rest.Refusal(http.StatusUnauthorized, messageNoToken+", or the client certificate of a consumer",
			"WWW-Authenticate", "Bearer")
	}
}

// person finds out whose a token is.
func (v *v1) person(ctx context.Context, token string, needed []access) (who caller, err error) {
	for _, need := range needed {
		who.name, err = v.cfg.review(ctx, token, right(need.verb, need.resource))
		if err != nil && (who.name == "" || !need.anybody) {
			return caller{}, err
		}
	}
	return who, nil
}

// review returns whose a token is. The error refuses who lacks a right; the name is there with it.
func (c *Config) review(ctx context.Context, token string, needed delegatedauth.Right) (name string, err error) {
	found, err := c.Reviewer.Review(ctx, token, needed)
	if err := c.reviewed(ctx, found.Name, err); err != nil {
		return "", err
	}
	if !found.Allowed {
		return found.Name, rest.Refusal(http.StatusForbidden, fmt.Sprintf(messageMayNot, found.Name, needed))
	}
	return found.Name, nil
}

// reviewAll returns whose a token is, and which of some rights it has, parallel to them.
func (c *Config) reviewAll(ctx context.Context, token string, rights []delegatedauth.Right) (name string, has []bool, err error) {
	name, has, err = c.Reviewer.ReviewAll(ctx, token, rights)
	return name, has, c.reviewed(ctx, name, err)
}

// reviewed returns the refusal that follows from a review, which may be nil.
func (c *Config) reviewed(ctx context.Context, name string, err error) error {
	switch {
	case errors.Is(err, delegatedauth.ErrBusy):
		return rest.Later(http.StatusTooManyRequests, messageTooManyCallers, "1")
	case errors.Is(ctx.Err(), context.Canceled):
		return ctx.Err()
	case err != nil:
		c.Log.Error(err, "Cannot authorize a caller")
		return rest.Later(http.StatusServiceUnavailable, messageNoRights, "1")
	case name == "":
		return rest.Refusal(http.StatusUnauthorized, messageBadToken, "WWW-Authenticate", `Bearer error="invalid_token"`)
	}
	return nil
}

// consumer finds out to which consumer a certificate was issued.
func (v *v1) consumer(ctx context.Context, connection *tls.ConnectionState, needed []access) (caller, error) {
	id, err := v.cfg.Identify(ctx, connection)
	switch {
	case errors.Is(err, ErrNoConsumer):
		return caller{}, rest.Refusal(http.StatusUnauthorized, ErrNoConsumer.Error(), "WWW-Authenticate", "Bearer")
	case errors.Is(ctx.Err(), context.Canceled):
		return caller{}, ctx.Err()
	case err != nil:
		v.cfg.Log.Error(err, "Cannot identify a consumer")
		return caller{}, rest.Later(http.StatusServiceUnavailable, messageNoConsumer, "1")
	}
	for _, need := range needed {
		if !need.own {
			return caller{}, rest.Refusal(http.StatusForbidden, fmt.Sprintf(messageOnlyOwn, id))
		}
	}
	return caller{consumer: id}, nil
}

// hides reports whether a caller must not learn of the providers. While that cannot be told, it must not.
func (v *v1) hides(ctx context.Context, who caller) bool {
	if who.consumer == "" {
		return false
	}
	var c v1alpha1.Consumer
	if err := v.cfg.Client.Get(ctx, client.ObjectKey{Name: string(who.consumer)}, &c); err != nil {
		if !apierrors.IsNotFound(err) {
			v.cfg.Log.Error(err, "Cannot get a consumer", "consumer", who.consumer)
		}
		return true
	}
	return overview.Hides(&c)
}

// callerOf returns who makes the request of a context.
func callerOf(ctx context.Context) caller { return rest.CallerOf[caller](ctx) }

// admit returns a middleware that admits those who have a right, before anything else of the request is looked at.
func (v *v1) admit(need access) rest.Middleware {
	return rest.Door(v.api, func(ctx huma.Context, r *http.Request) (caller, error) { return v.identify(ctx.Context(), r, need) })
}

// right returns what a caller must be allowed to do with the objects of the broker.
func right(verb, resource string) delegatedauth.Right {
	return delegatedauth.Right{Verb: verb, Group: v1alpha1.Group, Resource: resource}
}

// anonymous reports whether a caller shows no token.
func anonymous(r *http.Request) bool { return r.Header.Get("Authorization") == "" }

// authorized finds out who a caller is and asks the broker's cluster for its rights. It
// answers the request if the caller lacks the right.
func (a *API) authorized(w http.ResponseWriter, r *http.Request, needed delegatedauth.Right) bool {
	_, may := a.identified(w, r, needed)
	return may
}

// identified does the same, and returns the name of a caller who has the right.
func (a *API) identified(w http.ResponseWriter, r *http.Request, needed delegatedauth.Right) (name string, may bool) {
	err := rest.Refusal(http.StatusUnauthorized, messageNoToken, "WWW-Authenticate", "Bearer")
	if !anonymous(r) {
		name, err = a.cfg.review(r.Context(), delegatedauth.Bearer(r), needed)
	}
	if err != nil {
		a.rest.Refuse(w, r, err)
	}
	return name, err == nil
}

// sameSite answers the request if a web page of another site makes a browser send it:
// whoever is shown that page has not asked for it.
func sameSite(w http.ResponseWriter, r *http.Request) bool {
	changing := r.WithContext(r.Context())
	changing.Method = http.MethodPost // A GET of /api/toggle changes something too.
	if http.NewCrossOriginProtection().Check(changing) != nil {
		rest.Write(w, rest.Refusal(http.StatusForbidden, messageOtherSite))
		return false
	}
	return true
}
