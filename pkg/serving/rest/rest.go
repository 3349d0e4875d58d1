// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

// Package rest is the frame of the REST APIs: how operations are described and registered, what is answered where there is none, how
// refusals and failures are told, lists in pages, and what is kept of each caller.
//
// The same header means the same in all of them. It does not know who callers are, what they may do, nor what is served, and it imports no
// client of Kubernetes: a registry needs none.
package rest

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"mime"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"
	"github.com/go-logr/logr"

	"github.com/capacitorset/liqo-broker/pkg/serving/eventstream"
	"github.com/capacitorset/liqo-broker/pkg/serving/restclient"
)

// Middleware is what a request passes before it is answered. It calls next, or refuses the request.
type Middleware = func(ctx huma.Context, next func(huma.Context))

// Config is what an API needs. Only Title, Base, Timeout and MaxBody must be there.
type Config struct {
	// Title and Description are those of the OpenAPI document, and Schemes say how callers show who they are.
	Title, Description string
	Schemes            map[string]*huma.SecurityScheme
	// Host and Port say where the API is if nobody has chosen otherwise, for whoever reads the document; empty if that is not to be said.
	Host, Port string
	// Base is the beginning of the paths of operations.
	Base string
	// Timeout is how long an operation may take, and MaxBody bounds the body of a request in bytes.
	Timeout time.Duration
	MaxBody int64
	// Secret has nobody keep an answer; otherwise callers may, who ask each time whether it is still right.
	Secret bool
	// Unmarshal reads bodies; nil for any JSON.
	Unmarshal func(text []byte, into any) error
	// Explain returns the problem by which an error of the server is told, and nil for one that is not; nil if none is.
	Explain func(error) *huma.ErrorModel
	// Failed is told where the reason is not, and says who has it.
	Failed string
	// Caller returns what logs call the caller of a request; nil if they do not name it.
	Caller func(context.Context) string
	Log    logr.Logger
}

// API is a REST API. Operations are registered with Register and Stream, and then Seal is called: it is safe for concurrent use after it.
type API struct {
	cfg  Config
	mux  *http.ServeMux
	huma huma.API
	// elsewhere has the paths that are described here, and that other handlers serve.
	elsewhere map[string]bool
	// cache is the header Cache-Control of answers.
	cache string
}

// New returns an API that adds its paths to a mux. There is nothing in its description that a browser would load.
func New(cfg Config, mux *http.ServeMux) *API {
	described := huma.DefaultConfig(cfg.Title, "v1")
	described.Info.Description = cfg.Description
	described.Info.Contact = &huma.Contact{Name: "Issues", URL: "https://github.com/capacitorset/liqo-broker/issues"}
	described.Info.License = &huma.License{Name: "Apache-2.0", Identifier: "Apache-2.0"}
	if cfg.Host != "" {
		described.Servers = []*huma.Server{{
			URL: "https://{host}:{port}",
			Variables: map[string]*huma.ServerVariable{
				"host": {Default: cfg.Host, Description: "A name or an address at which it is reached."}, "port": {Default: cfg.Port},
			},
		}}
	}
	described.OpenAPIPath, described.DocsPath, described.SchemasPath, described.CreateHooks = "", "", "", nil
	format := huma.DefaultJSONFormat
	if cfg.Unmarshal != nil {
		format.Unmarshal = cfg.Unmarshal
	}
	described.Formats = map[string]huma.Format{restclient.JSON: format, "json": format}
	described.RejectUnknownQueryParameters = true
	described.Components.SecuritySchemes = cfg.Schemes
	a := &API{cfg: cfg, mux: mux, huma: humago.New(mux, described), elsewhere: map[string]bool{}, cache: "private, no-cache"}
	if cfg.Secret {
		a.cache = "no-store"
	}
	return a
}

// OpenAPI returns the description of what was registered.
func (a *API) OpenAPI() *huma.OpenAPI { return a.huma.OpenAPI() }

// Describe adds an operation to the description whose path another handler serves. Its tags are the caller's.
func (a *API) Describe(op *huma.Operation) {
	a.elsewhere[op.Path] = true
	a.OpenAPI().AddOperation(op)
}

// tag returns what an operation is about: the first part of its path. The document has a list of these.
func (a *API) tag(path string) string {
	name, _, _ := strings.Cut(strings.TrimPrefix(path, "/"), "/")
	document := a.OpenAPI()
	if !slices.ContainsFunc(document.Tags, func(t *huma.Tag) bool { return t.Name == name }) {
		document.Tags = append(document.Tags, &huma.Tag{Name: name})
	}
	return name
}

// Operation describes an operation: its name, method and path below the base, and what it does. The door is passed by those who may do it,
// before anything of the request but its header Accept is looked at; nil if it was passed already.
func (a *API) Operation(id, method, path, summary string, door Middleware) huma.Operation {
	op := huma.Operation{
		OperationID: id, Method: method, Path: a.cfg.Base + path, Summary: summary, MaxBodyBytes: a.cfg.MaxBody,
		Tags:        []string{a.tag(path)},
		Middlewares: huma.Middlewares{a.keep, a.accepts},
		Errors: []int{
			http.StatusNotAcceptable, http.StatusUnprocessableEntity, http.StatusTooManyRequests, http.StatusInternalServerError,
			http.StatusGatewayTimeout,
		},
	}
	if door != nil {
		op.Middlewares = append(op.Middlewares, door)
	}
	op.Middlewares = append(op.Middlewares, a.once)
	if method == http.MethodPut || method == http.MethodPost {
		op.Errors = append(op.Errors, http.StatusBadRequest, http.StatusRequestEntityTooLarge, http.StatusUnsupportedMediaType)
	} else if strings.Contains(path, "{") {
		op.Errors = append(op.Errors, http.StatusNotFound)
	}
	return op
}

// Register adds an operation. What goes wrong inside is logged and not told.
func Register[I, O any](a *API, op huma.Operation, answer func(context.Context, *I) (*O, error)) {
	huma.Register(a.huma, op, func(ctx context.Context, in *I) (*O, error) {
		ctx, cancel := context.WithTimeout(ctx, a.cfg.Timeout)
		defer cancel()
		out, err := answer(ctx, in)
		if err != nil {
			return nil, a.told(ctx, op.OperationID, err)
		}
		return out, nil
	})
}

// Stream adds an operation that is answered with server-sent events, once begin has not refused it. What sends them bounds its time itself.
func Stream[I any](a *API, op huma.Operation, begin func(context.Context, *I) (send func(huma.Context), err error)) {
	op.Responses = map[string]*huma.Response{"200": {
		Description: "The events", Content: map[string]*huma.MediaType{eventstream.MediaType: {Schema: &huma.Schema{Type: huma.TypeString}}},
	}}
	Register(a, op, func(ctx context.Context, in *I) (*huma.StreamResponse, error) {
		send, err := begin(ctx, in)
		return &huma.StreamResponse{Body: send}, err
	})
}

// streams reports whether an operation is answered with server-sent events.
func streams(op *huma.Operation) bool {
	answer := op.Responses["200"]
	return answer != nil && answer.Content[eventstream.MediaType] != nil
}

// Seal makes the OpenAPI document of all that was registered, and serves it to whom door returns no error. It refuses other methods, and
// all other paths below a pattern of the mux.
func (a *API) Seal(others string, door func(*http.Request) error) error {
	text, err := json.MarshalIndent(a.OpenAPI(), "", "  ")
	if err != nil {
		return fmt.Errorf("write the OpenAPI document: %w", err)
	}
	yaml, err := a.OpenAPI().YAML()
	if err != nil {
		return fmt.Errorf("write the OpenAPI document: %w", err)
	}
	for name, text := range map[string][]byte{"json": append(text, '\n'), "yaml": yaml} {
		path := a.cfg.Base + "/openapi." + name
		a.mux.HandleFunc("GET "+path, func(w http.ResponseWriter, r *http.Request) {
			if err := door(r); err != nil {
				a.Refuse(w, r, err)
				return
			}
			w.Header().Set("Content-Type", "application/openapi+"+name)
			w.Header().Set("Cache-Control", a.cache)
			w.Header().Set("X-Content-Type-Options", "nosniff")
			_, _ = w.Write(text) // A caller that has gone away is nobody's concern.
		})
		a.mux.HandleFunc(path, NotAllowed("GET, HEAD"))
	}
	for path, item := range a.OpenAPI().Paths {
		if a.elsewhere[path] || a.within(path) {
			continue
		}
		operations := map[string]*huma.Operation{
			http.MethodGet: item.Get, http.MethodPut: item.Put, http.MethodPost: item.Post, http.MethodDelete: item.Delete,
		}
		maps.DeleteFunc(operations, func(_ string, op *huma.Operation) bool { return op == nil })
		if item.Get != nil && !streams(item.Get) {
			operations[http.MethodHead] = item.Get
		}
		refuse := NotAllowed(strings.Join(slices.Sorted(maps.Keys(operations)), ", "))
		a.mux.HandleFunc(path, refuse)
		if item.Get != nil && operations[http.MethodHead] == nil {
			a.mux.HandleFunc(http.MethodHead+" "+path, refuse) // Else the mux takes it for a GET.
		}
	}
	a.mux.HandleFunc(others, func(w http.ResponseWriter, r *http.Request) {
		a.Refuse(w, r, Refusal(http.StatusNotFound, "not found: "+a.cfg.Base+"/openapi.yaml has the paths"))
	})
	return nil
}

// within reports whether another path with a parameter means a path, too: what is not there for the one is refused there.
func (a *API) within(path string) bool {
	parts := strings.Split(path, "/")
	for other := range a.OpenAPI().Paths {
		of := strings.Split(other, "/")
		if other == path || len(of) != len(parts) {
			continue
		}
		same := true
		for i := range parts {
			same = same && (of[i] == parts[i] || strings.HasPrefix(of[i], "{"))
		}
		if same {
			return true
		}
	}
	return false
}

// keep says who may keep an answer, and has no browser guess what it is.
func (a *API) keep(ctx huma.Context, next func(huma.Context)) {
	ctx.SetHeader("Cache-Control", a.cache)
	ctx.SetHeader("X-Content-Type-Options", "nosniff")
	next(ctx)
}

// accepts refuses who does not accept the answer, before anything is done.
func (a *API) accepts(ctx huma.Context, next func(huma.Context)) {
	mediaType := restclient.JSON
	if streams(ctx.Operation()) {
		mediaType = eventstream.MediaType
	}
	if !acceptable(ctx.Header("Accept"), mediaType) {
		a.RefuseIn(ctx, Refusal(http.StatusNotAcceptable, "the answer is "+mediaType+", which the header Accept excludes"))
		return
	}
	next(ctx)
}

// acceptable reports whether a header Accept admits a media type (RFC 9110, section 12.5.1): what it says most exactly counts, and a weight
// of 0 excludes.
func acceptable(accept, mediaType string) bool {
	kind, _, _ := strings.Cut(mediaType, "/")
	exactness, admits := 0, accept == ""
	for candidate := range strings.SplitSeq(accept, ",") {
		name, parameters, err := mime.ParseMediaType(candidate)
		exact := 1 + slices.Index([]string{"*/*", kind + "/*", mediaType}, name)
		if err != nil || exact == 0 || exact < exactness {
			continue
		}
		weight, err := strconv.ParseFloat(cmp.Or(parameters["q"], "1"), 64)
		admits = err == nil && weight > 0 || admits && exact == exactness
		exactness = exact
	}
	return admits
}

// once refuses parameters that are given more than once and have one value: which one is meant?
func (a *API) once(ctx huma.Context, next func(huma.Context)) {
	request, _ := humago.Unwrap(ctx)
	given := request.URL.Query()
	for _, p := range ctx.Operation().Parameters {
		if p.In == "query" && p.Schema.Type != huma.TypeArray && len(given[p.Name]) > 1 {
			a.RefuseIn(ctx, Wrong(http.StatusUnprocessableEntity, "query."+p.Name, errors.New("is given more than once")))
			return
		}
	}
	next(ctx)
}
