// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"github.com/capacitorset/liqo-broker/pkg/httpapi/feed"
	"github.com/capacitorset/liqo-broker/pkg/serving/source"
)

const (
	// base is the beginning of all paths of version 1.
	base = "/api/v1"
	// answerTimeout is less than what ends a request without an answer.
	answerTimeout = requestTimeout - 2*time.Second
	// maxBody is more than the one body that there is, in bytes.
	maxBody = 1 << 10
)

// The media types of answers.
const (
	jsonType   = "application/json"
	eventsType = "text/event-stream"
)

// v1 is version 1 of the API.
type v1 struct {
	cfg      *Config
	feed     *feed.Feed
	watchers *source.Limit
	timing   timing
	huma     huma.API
	// The OpenAPI document, as it is served.
	json, yaml []byte
}

// newV1 adds version 1 of the API to what a mux serves.
func newV1(cfg *Config, mux *http.ServeMux) (*v1, error) {
	all := make([]feed.Kind, 0, len(kinds()))
	for _, k := range kinds() {
		all = append(all, k.kind)
	}
	v := &v1{cfg: cfg, watchers: source.NewLimit(maxWatchers, maxWatchersEach), timing: defaultTiming}
	v.feed = feed.New((&objects{reader: cfg.Client, own: cfg.Own}).items, all...)
	v.huma = humago.New(mux, config())
	v.operations()
	if err := v.document(mux); err != nil {
		return nil, err
	}
	v.others(mux)
	return v, nil
}

// config returns how the API is described. There is nothing in it that a browser would load.
func config() huma.Config {
	c := huma.DefaultConfig("liqo-broker", "v1")
	c.Info.Description = "What a broker of Liqo clusters knows, decides and advises. Errors are problem documents (RFC 9457). See docs/api.md."
	c.Info.License = &huma.License{Name: "Apache-2.0", Identifier: "Apache-2.0"}
	c.OpenAPIPath, c.DocsPath, c.SchemasPath, c.CreateHooks = "", "", "", nil
	c.Formats = map[string]huma.Format{jsonType: huma.DefaultJSONFormat, "json": huma.DefaultJSONFormat}
	c.RejectUnknownQueryParameters = true
	c.Components.SecuritySchemes = map[string]*huma.SecurityScheme{
		"token": {
			Type: "http", Scheme: "bearer",
			Description: "A token of the broker's Kubernetes cluster for the audience liqo-broker, such as of kubectl create token.",
		},
		"certificate": {
			Type:        "mutualTLS",
			Description: "The client certificate that the broker's cluster issued to a consumer when it peered. It gives the consumer what is its own.",
		},
	}
	return c
}

// operation describes an operation: its name, method and path below the base, what it needs, and what it does.
func (v *v1) operation(id, method, path string, need access, summary string) huma.Operation {
	op := huma.Operation{
		OperationID: id, Method: method, Path: base + path, Summary: summary, MaxBodyBytes: maxBody,
		Description: "Needs the right to " + right(need.verb, need.resource).String() + ".",
		Security:    []map[string][]string{{"token": {}}},
		Middlewares: huma.Middlewares{private, accepts(jsonType), v.admit(need)},
		Errors: []int{
			http.StatusUnauthorized, http.StatusForbidden, http.StatusNotAcceptable, http.StatusUnprocessableEntity, http.StatusTooManyRequests,
			http.StatusInternalServerError, http.StatusServiceUnavailable,
		},
	}
	if need.own {
		op.Description += " A consumer gets what is its own by its certificate."
		op.Security = append(op.Security, map[string][]string{"certificate": {}})
	}
	if strings.Contains(path, "{") {
		op.Errors = append(op.Errors, http.StatusNotFound)
	}
	return op
}

// private keeps answers out of caches that others share, and lets none be used without asking whether it is still right.
func private(ctx huma.Context, next func(huma.Context)) {
	ctx.SetHeader("Cache-Control", "private, no-cache")
	ctx.SetHeader("X-Content-Type-Options", "nosniff")
	next(ctx)
}

// accepts returns a middleware that refuses who does not accept a media type, before anything is done.
func accepts(mediaType string) func(huma.Context, func(huma.Context)) {
	return func(ctx huma.Context, next func(huma.Context)) {
		if accept := ctx.Header("Accept"); !acceptable(accept, mediaType) {
			_, w := humago.Unwrap(ctx)
			writeProblem(w, http.StatusNotAcceptable, "the answer is "+mediaType+", which the header Accept excludes")
			return
		}
		next(ctx)
	}
}

// acceptable reports whether a header Accept admits a media type (RFC 9110, section 12.5.1).
func acceptable(accept, mediaType string) bool {
	if accept == "" {
		return true
	}
	kind, _, _ := strings.Cut(mediaType, "/")
	for candidate := range strings.SplitSeq(accept, ",") {
		name, parameters, _ := strings.Cut(strings.ToLower(candidate), ";")
		name = strings.TrimSpace(name)
		if name != "*/*" && name != kind+"/*" && name != mediaType {
			continue
		}
		quality := strings.ReplaceAll(parameters, " ", "")
		if !strings.Contains(quality, "q=0") || strings.Trim(quality[strings.Index(quality, "q=0")+len("q=0"):], ".0") != "" {
			return true
		}
	}
	return false
}

// register adds an operation. What goes wrong inside is logged and not told.
func register[I, O any](v *v1, op huma.Operation, answer func(context.Context, *I) (*O, error)) {
	huma.Register(v.huma, op, func(ctx context.Context, input *I) (*O, error) {
		ctx, cancel := context.WithTimeout(ctx, answerTimeout)
		defer cancel()
		output, err := answer(ctx, input)
		var told huma.StatusError
		switch {
		case err == nil:
			return output, nil
		case errors.As(err, &told):
			return nil, err
		case ctx.Err() != nil:
			return nil, refusal(http.StatusServiceUnavailable, "the request took too long", "Retry-After", "1")
		default:
			v.cfg.Log.Error(err, "Cannot answer a request", "operation", op.OperationID)
			return nil, refusal(http.StatusInternalServerError, "the request cannot be answered: the log of the broker says why")
		}
	})
}

// document makes the OpenAPI document, and serves it to who has any valid token or certificate.
func (v *v1) document(mux *http.ServeMux) error {
	described := v.huma.OpenAPI()
	text, err := json.MarshalIndent(described, "", "  ")
	if err != nil {
		return fmt.Errorf("write the OpenAPI document: %w", err)
	}
	text = append(text, '\n')
	v.json = text
	if v.yaml, err = described.YAML(); err != nil {
		return fmt.Errorf("write the OpenAPI document: %w", err)
	}
	for name, of := range map[string]struct {
		mediaType string
		text      []byte
	}{"json": {"application/openapi+json", v.json}, "yaml": {"application/openapi+yaml", v.yaml}} {
		mux.HandleFunc("GET "+base+"/openapi."+name, func(w http.ResponseWriter, r *http.Request) {
			if _, err := v.identify(r.Context(), r, named()); err != nil {
				v.refuse(humago.NewContext(&huma.Operation{}, r, w), err)
				return
			}
			w.Header().Set("Content-Type", of.mediaType)
			w.Header().Set("X-Content-Type-Options", "nosniff")
			_, _ = w.Write(of.text) // A caller that has gone away is nobody's concern.
		})
		mux.HandleFunc(base+"/openapi."+name, notAllowed("GET, HEAD"))
	}
	return nil
}

// others answers what is not served: other methods, and other paths.
func (v *v1) others(mux *http.ServeMux) {
	for path, item := range v.huma.OpenAPI().Paths {
		var methods []string
		for method, op := range map[string]*huma.Operation{http.MethodGet: item.Get, http.MethodPut: item.Put} {
			if op != nil {
				methods = append(methods, method)
			}
		}
		if item.Get != nil && path != base+eventsPath {
			methods = append(methods, http.MethodHead)
		}
		slices.Sort(methods)
		allowed := strings.Join(methods, ", ")
		mux.HandleFunc(path, notAllowed(allowed))
		if path == base+eventsPath {
			mux.HandleFunc(http.MethodHead+" "+path, notAllowed(allowed))
		}
	}
	mux.HandleFunc(base+"/", func(w http.ResponseWriter, _ *http.Request) {
		writeProblem(w, http.StatusNotFound, "not found: "+base+"/openapi.yaml has the paths")
	})
}

// OpenAPI returns the document of version 1 of the API, as YAML, and in the older version 3.0 of OpenAPI, which generators of
// clients know, as JSON.
func OpenAPI() (current, older []byte, err error) {
	v, err := newV1(&Config{}, http.NewServeMux())
	if err != nil {
		return nil, nil, err
	}
	older, err = v.huma.OpenAPI().Downgrade()
	if err != nil {
		return nil, nil, fmt.Errorf("write the document in OpenAPI 3.0: %w", err)
	}
	var indented bytes.Buffer
	if err := json.Indent(&indented, older, "", "  "); err != nil {
		return nil, nil, fmt.Errorf("write the document in OpenAPI 3.0: %w", err)
	}
	return v.yaml, append(indented.Bytes(), '\n'), nil
}

// crossOrigin lets pages of some origins use version 1 of the API from a browser, with tokens of their own: a browser sends no
// cookies along, and no certificates.
func crossOrigin(origins []string, next http.Handler) http.Handler {
	allowed := maps.Collect(func(yield func(string, bool) bool) {
		for _, o := range origins {
			if !yield(o, true) {
				return
			}
		}
	})
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !strings.HasPrefix(r.URL.Path, base+"/") || len(allowed) == 0 {
			next.ServeHTTP(w, r)
			return
		}
		h := w.Header()
		h.Add("Vary", "Origin")
		if origin := r.Header.Get("Origin"); allowed[origin] {
			h.Set("Access-Control-Allow-Origin", origin)
			h.Set("Access-Control-Expose-Headers", "ETag, Retry-After")
			if r.Method == http.MethodOptions && r.Header.Get("Access-Control-Request-Method") != "" {
				h.Set("Access-Control-Allow-Methods", "GET, HEAD, PUT")
				h.Set("Access-Control-Allow-Headers", "Authorization, Content-Type, If-None-Match, Last-Event-ID")
				h.Set("Access-Control-Max-Age", "600")
				w.WriteHeader(http.StatusNoContent)
				return
			}
		}
		next.ServeHTTP(w, r)
	})
}
