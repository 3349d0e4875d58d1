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
	"github.com/danielgtaylor/huma/v2/adapters/humago"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capacitorset/liqo-broker/pkg/api/v1alpha1"
	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
	"github.com/capacitorset/liqo-broker/pkg/overview"
	"github.com/capacitorset/liqo-broker/pkg/serving/delegatedauth"
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

// named is what it takes where a name is enough.
func named() access { return access{verb: "get", resource: "providers", own: true, anybody: true} }

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

// refusal is why a caller gets no answer. It is written as a problem.
func refusal(status int, detail string, headers ...string) error {
	var err error = huma.NewError(status, detail)
	for i := 0; i+1 < len(headers); i += 2 {
		err = huma.ErrorWithHeaders(err, http.Header{headers[i]: {headers[i+1]}})
	}
	return err
}

// identify finds out who makes a request, and whether it has the rights. Identity follows from what the broker's API server has
// signed or says, and never from what a request says of itself.
func (v *v1) identify(ctx context.Context, r *http.Request, needed ...access) (caller, error) {
	ctx, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	switch {
	case r.TLS == nil:
		return caller{}, refusal(http.StatusForbidden, "version 1 of the API is served over TLS only")
	case !anonymous(r):
		return v.person(ctx, delegatedauth.Bearer(r), needed)
	case len(r.TLS.PeerCertificates) > 0 && v.cfg.Identify != nil:
		return v.consumer(ctx, r.TLS, needed)
	default:
		return caller{}, refusal(http.StatusUnauthorized, "a bearer token of the broker's cluster is required, for the audience "+Audience+
			", or the client certificate of a consumer", "WWW-Authenticate", "Bearer")
	}
}

// person finds out whose a token is.
func (v *v1) person(ctx context.Context, token string, needed []access) (caller, error) {
	var name string
	for _, need := range needed {
		found, err := v.cfg.Reviewer.Review(ctx, token, right(need.verb, need.resource))
		switch {
		case errors.Is(err, delegatedauth.ErrBusy):
			return caller{}, refusal(http.StatusTooManyRequests, "too many callers: try again in a second", "Retry-After", "1")
		case err != nil:
			v.cfg.Log.Error(err, "Cannot authorize a caller")
			return caller{}, refusal(http.StatusServiceUnavailable, "the caller's rights cannot be checked", "Retry-After", "1")
		case found.Name == "":
			return caller{}, refusal(http.StatusUnauthorized, "the bearer token is not valid for the audience "+Audience, "WWW-Authenticate", `Bearer error="invalid_token"`)
		case !found.Allowed && !need.anybody:
			return caller{}, refusal(http.StatusForbidden, fmt.Sprintf("%s may not %s", found.Name, right(need.verb, need.resource)))
		}
		name = found.Name
	}
	return caller{name: name}, nil
}

// consumer finds out to which consumer a certificate was issued.
func (v *v1) consumer(ctx context.Context, connection *tls.ConnectionState, needed []access) (caller, error) {
	id, err := v.cfg.Identify(ctx, connection)
	switch {
	case errors.Is(err, ErrNoConsumer):
		return caller{}, refusal(http.StatusUnauthorized, ErrNoConsumer.Error(), "WWW-Authenticate", "Bearer")
	case err != nil:
		v.cfg.Log.Error(err, "Cannot identify a consumer")
		return caller{}, refusal(http.StatusServiceUnavailable, "the client certificate cannot be checked", "Retry-After", "1")
	}
	for _, need := range needed {
		if !need.own {
			return caller{}, refusal(http.StatusForbidden, "a consumer may only see what is its own: consumers/"+string(id)+
				", consumers/"+string(id)+"/advice, offers, workloads, and events of these")
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

// callerKey is under which a request's context has the caller.
type callerKey struct{}

// callerOf returns who makes the request of a context.
func callerOf(ctx context.Context) caller {
	who, _ := ctx.Value(callerKey{}).(caller)
	return who
}

// admit returns a middleware that admits those who have a right, before anything else of the request is looked at.
func (v *v1) admit(need access) func(huma.Context, func(huma.Context)) {
	return func(ctx huma.Context, next func(huma.Context)) {
		request, _ := humago.Unwrap(ctx)
		who, err := v.identify(ctx.Context(), request, need)
		if err != nil {
			v.refuse(ctx, err)
			return
		}
		next(huma.WithValue(ctx, callerKey{}, who))
	}
}

// refuse writes a refusal.
func (v *v1) refuse(ctx huma.Context, err error) {
	var headers huma.HeadersError
	if errors.As(err, &headers) {
		for name, values := range headers.GetHeaders() {
			for _, value := range values {
				ctx.SetHeader(name, value)
			}
		}
	}
	_, w := humago.Unwrap(ctx)
	var status huma.StatusError
	if errors.As(err, &status) {
		writeProblem(w, status.GetStatus(), status.Error())
		return
	}
	v.cfg.Log.Error(err, "Cannot answer a request")
	writeProblem(w, http.StatusInternalServerError, "the request cannot be answered: the log of the broker says why")
}
