// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"net/http"
	"strings"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"github.com/capacitorset/liqo-broker/pkg/registry/catalog"
)

// Paging is what part of a list is asked for.
type Paging struct {
	Limit       int    `default:"100"                                                                                                                   doc:"How many items are answered at most." maximum:"500"    minimum:"1" query:"limit"`
	Continue    string `doc:"What the page before has as continue. What has come or gone since is in the further pages or not; nothing is there twice." maxLength:"512"                            query:"continue"`
	IfNoneMatch string `doc:"An ETag of an earlier answer: if it is still right, the answer is 304."                                                    header:"If-None-Match"                     maxLength:"1024"`
}

// List is a page of a list.
type List[T any] struct {
	Items    []T    `json:"items"                                        nullable:"false"`
	Continue string `doc:"For the next page; missing on the last one."   json:"continue,omitempty"`
	Revision int64  `doc:"The registry's revision of which the page is." json:"registryRevision"`
}

// listed is the answer with a page.
type listed[T any] struct {
	ETag string `header:"ETag"`
	Body List[T]
}

// once refuses parameters that are given more than once and have one value: which one is meant?
func (s *Server) once(ctx huma.Context, next func(huma.Context)) {
	request, _ := humago.Unwrap(ctx)
	given := request.URL.Query()
	for _, p := range ctx.Operation().Parameters {
		if p.In == "query" && p.Schema.Type != huma.TypeArray && len(given[p.Name]) > 1 {
			s.refuseContext(ctx, wrong(http.StatusUnprocessableEntity, "query."+p.Name, errors.New("is given more than once")))
			return
		}
	}
	next(ctx)
}

// position is after which key a page begins, of which list.
type position struct {
	list string // What makes this list another one than others.
	last catalog.Key
}

func (p position) token() string {
	return base64.RawURLEncoding.EncodeToString([]byte(p.list + "/" + p.last.String()))
}

// after returns the key after which a page begins.
func (p position) after(token string) (catalog.Key, error) {
	if token == "" {
		return catalog.Key{}, nil
	}
	text, err := base64.RawURLEncoding.DecodeString(token)
	key, ours := strings.CutPrefix(string(text), p.list+"/")
	party, offer, whole := strings.Cut(key, "/")
	if err != nil || !ours || !whole {
		return catalog.Key{}, wrong(http.StatusBadRequest, "query.continue", fmt.Errorf("is not from a page of this list with the same filters"))
	}
	return catalog.Key{Party: party, Offer: offer}, nil
}

// pageOf answers with a page of the entries that are kept. The filters are as they are written, by which a page knows that the next one is of the same list.
func pageOf[T any](ctx context.Context, view *catalog.View, in Paging, filters string, keep func(*catalog.Entry) bool, show func(*catalog.Entry) (T, error)) (*listed[T], error) {
	here := position{list: tagOf(filters)}
	after, err := here.after(in.Continue)
	if err != nil {
		return nil, err
	}
	page := List[T]{Items: []T{}, Revision: view.Revision}
	tag := sha256.New()
	for i, e := range view.After(after) {
		if i%256 == 255 && ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if !keep(e) {
			continue
		}
		if len(page.Items) == in.Limit {
			page.Continue = here.token()
			break
		}
		shown, err := show(e)
		if err != nil {
			return nil, err
		}
		page.Items, here.last = append(page.Items, shown), e.Key
		fmt.Fprintf(tag, "%s %d %t,", e.Key, e.Revision, aliveIn(view, e))
	}
	fmt.Fprint(tag, here.list, page.Continue)
	etag := quoted(tag)
	return &listed[T]{ETag: etag, Body: page}, unmodified(in.IfNoneMatch, etag)
}

// aliveIn reports whether the party of an entry is alive.
func aliveIn(view *catalog.View, e *catalog.Entry) bool {
	owner := view.Get(catalog.Key{Party: e.Key.Party})
	return owner != nil && owner.Party.Alive
}

func quoted(h hash.Hash) string { return `"` + hex.EncodeToString(h.Sum(nil)[:12]) + `"` }

// tagOf returns a tag of a text: other texts have other tags.
func tagOf(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:12])
}

// unmodified returns the error that answers 304 if one of the ETags is right, by weak comparison (RFC 9110, section 13.1.2).
func unmodified(ifNoneMatch, etag string) error {
	for candidate := range strings.SplitSeq(ifNoneMatch, ",") {
		candidate = strings.TrimPrefix(strings.TrimSpace(candidate), "W/")
		if candidate == "*" || candidate == etag {
			return huma.ErrorWithHeaders(huma.Status304NotModified(), http.Header{"ETag": {etag}})
		}
	}
	return nil
}
