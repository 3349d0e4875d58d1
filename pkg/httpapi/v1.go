// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/capacitorset/liqo-broker/pkg/serving/rest"
	"github.com/capacitorset/liqo-broker/pkg/serving/source"
	"github.com/capacitorset/liqo-broker/pkg/shown"
	"github.com/capacitorset/liqo-broker/pkg/shown/feed"
)

const (
	// base is the beginning of all paths of version 1.
	base = "/api/v1"
	// answerTimeout is less than what ends a request without an answer.
	answerTimeout = requestTimeout - 2*time.Second
	// maxBody is more than most bodies that there are, in bytes, and maxPolicyBody more than a policy as a text in JSON.
	maxBody, maxPolicyBody = 1 << 10, 160 << 10
)

// v1 is version 1 of the API.
type v1 struct {
	cfg      *Config
	feed     *feed.Feed
	watchers *source.Limit
	trying   chan struct{} // One for each policy that is tried.
	timing   timing
	api      *rest.API
}

// newREST returns the frame of the API, without operations.
func newREST(cfg *Config, mux *http.ServeMux) *rest.API {
	return rest.New(rest.Config{
		Title: "liqo-broker", Description: "What a broker of Liqo clusters knows, decides and advises. Errors are problem documents (RFC " +
			"9457). See https://github.com/capacitorset/liqo-broker/blob/main/docs/api.md.",
		Schemes: map[string]*huma.SecurityScheme{
			"token": {
				Type: "http", Scheme: "bearer",
				Description: "A token of the broker's Kubernetes cluster for the audience liqo-broker, such as of kubectl create token.",
			},
			"certificate": {
				Type: "mutualTLS",
				Description: "The client certificate that the broker's cluster issued to a consumer when it peered. It gives the consumer what " +
					"is its own.",
			},
		},
		Host: "liqo-broker.liqo-broker.svc", Port: "8000",
		Base: base, Timeout: answerTimeout, MaxBody: maxBody, Failed: messageFailed,
		Caller: func(ctx context.Context) string { return callerOf(ctx).called() }, Log: cfg.Log,
	}, mux)
}

// newV1 adds version 1 to an API.
func newV1(cfg *Config, api *rest.API) (*v1, error) {
	v := &v1{cfg: cfg, api: api, watchers: source.NewLimit(maxWatchers, maxWatchersEach), timing: defaultTiming}
	v.trying = make(chan struct{}, 1)
	v.feed = feed.New(cfg.objects().Items, shown.Kinds()...)
	v.operations()
	return v, v.api.Seal(base+"/", func(r *http.Request) error {
		_, err := v.identify(r.Context(), r, named())
		return err
	})
}

// operation describes an operation: its name, method and path below the base, what it needs, and what it does.
func (v *v1) operation(id, method, path string, need access, summary string) huma.Operation {
	return v.describeOperation(v.api.Operation(id, method, path, summary, v.admit(need)), need)
}

// describeOperation adds to an operation what it needs.
func (v *v1) describeOperation(op huma.Operation, need access) huma.Operation {
	op.Description = "Needs the right to " + right(need.verb, need.resource).String() + "."
	op.Security = []map[string][]string{{"token": {}}}
	op.Errors = append(op.Errors, http.StatusUnauthorized, http.StatusForbidden, http.StatusServiceUnavailable)
	if need.own {
		op.Description += " A consumer gets what is its own by its certificate."
		op.Security = append(op.Security, map[string][]string{"certificate": {}})
	}
	return op
}

// OpenAPI returns the document of version 1 of the API, as YAML, and in the older version 3.0 of OpenAPI, which generators of
// clients know, as JSON.
func OpenAPI() (current, older []byte, err error) {
	cfg := &Config{}
	v, err := newV1(cfg, newREST(cfg, http.NewServeMux()))
	if err != nil {
		return nil, nil, err
	}
	if older, err = v.api.OpenAPI().Downgrade(); err != nil {
		return nil, nil, fmt.Errorf("write the document in OpenAPI 3.0: %w", err)
	}
	var indented bytes.Buffer
	if err := json.Indent(&indented, older, "", "  "); err != nil {
		return nil, nil, fmt.Errorf("write the document in OpenAPI 3.0: %w", err)
	}
	current, err = v.api.OpenAPI().YAML()
	return current, append(indented.Bytes(), '\n'), err
}

// crossOrigin lets pages of some origins use version 1 of the API from a browser, with tokens of their own: a browser sends no
// cookies along, and no certificates.
func crossOrigin(origins []string, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !strings.HasPrefix(r.URL.Path, base+"/") || len(origins) == 0 {
			next.ServeHTTP(w, r)
			return
		}
		h := w.Header()
		h.Add("Vary", "Origin")
		if origin := r.Header.Get("Origin"); slices.Contains(origins, origin) {
			h.Set("Access-Control-Allow-Origin", origin)
			h.Set("Access-Control-Expose-Headers", "ETag, Retry-After")
			if r.Method == http.MethodOptions && r.Header.Get("Access-Control-Request-Method") != "" {
				h.Set("Access-Control-Allow-Methods", "GET, HEAD, PUT, POST")
				h.Set("Access-Control-Allow-Headers", "Authorization, Content-Type, If-None-Match, Last-Event-ID")
				h.Set("Access-Control-Max-Age", "600")
				w.WriteHeader(http.StatusNoContent)
				return
			}
		}
		next.ServeHTTP(w, r)
	})
}
