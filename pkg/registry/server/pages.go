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

	"github.com/capacitorset/liqo-broker/pkg/registry/journal"
)

// Paging is what part of a list is asked for.
type Paging struct {
	Limit       int    `default:"100"                                                                                                                   doc:"How many items are answered at most. A page has fewer, or none, if they are large, or if their filter costs much: the list ends where there is no continue." maximum:"500"    minimum:"1" query:"limit"`
	Continue    string `doc:"What the page before has as continue. What has come or gone since is in the further pages or not; nothing is there twice." maxLength:"512"                                                                                                                                                   query:"continue"`
	IfNoneMatch string `doc:"An ETag of an earlier answer: if it is still right, the answer is 304."                                                    header:"If-None-Match"                                                                                                                                            maxLength:"1024"`
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
	last journal.Key
}

func (p position) token() string {
	return base64.RawURLEncoding.EncodeToString([]byte(p.list + "/" + p.last.String()))
}

// after returns the key after which a page begins.
func (p position) after(token string) (journal.Key, error) {
	if token == "" {
		return journal.Key{}, nil
	}
	text, err := base64.RawURLEncoding.DecodeString(token)
	key, ours := strings.CutPrefix(string(text), p.list+"/")
	party, offer, whole := strings.Cut(key, "/")
	if err != nil || !ours || !whole {
		return journal.Key{}, wrong(http.StatusBadRequest, "query.continue", fmt.Errorf("is not from a page of this list with the same filters"))
	}
	return journal.Key{Party: party, Offer: offer}, nil
}

// request is what of which entries a page has.
type request[T any] struct {
	view *journal.View
	// filters are as they are written, by which a page knows that the next one is of the same list.
	filters string
	// keep reports whether an entry is in the list, and what it has cost to find out.
	keep func(*journal.Entry) (keep bool, cost int)
	// show returns an item, and at least how many bytes it has as text.
	show func(*journal.Entry) (item T, size int, err error)
}

// pageOf answers with a page: it ends when it has as many items as are asked for, or maxPage bytes, or when effortOnce is spent. What is spent is the caller's.
func pageOf[T any](ctx context.Context, s *Server, in Paging, of request[T]) (*listed[T], error) {
	here := position{list: tagOf(of.filters)}
	after, err := here.after(in.Continue)
	if err != nil {
		return nil, err
	}
	page := List[T]{Items: []T{}, Revision: of.view.Revision}
	tag := sha256.New()
	spent, size := 0, 0
	defer func() { s.effort.spend(callerFrom(ctx), spent) }()
	for i, e := range of.view.After(after) {
		if i%256 == 255 && ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if spent >= effortOnce {
			page.Continue = here.token()
			break
		}
		keep, cost := of.keep(e)
		if spent += cost; !keep {
			here.last = e.Key
			continue
		}
		if len(page.Items) == in.Limit {
			page.Continue = here.token()
			break
		}
		shown, bytes, err := of.show(e)
		if err != nil {
			return nil, err
		}
		if size += bytes; size > maxPage && len(page.Items) > 0 {
			page.Continue = here.token()
			break
		}
		page.Items, here.last = append(page.Items, shown), e.Key
		fmt.Fprintf(tag, "%s %d %t,", e.Key, e.Revision, aliveIn(of.view, e))
	}
	fmt.Fprint(tag, here.list, page.Continue)
	etag := quoted(tag)
	return &listed[T]{ETag: etag, Body: page}, unmodified(in.IfNoneMatch, etag)
}

// answering bounds how many lists are on their way to their readers, who may be slow.
func (s *Server) answering(ctx huma.Context, next func(huma.Context)) {
	leave, ok := s.answers.Enter(callerFrom(ctx.Context()).source())
	if !ok {
		s.refuseContext(ctx, later(http.StatusTooManyRequests,
			fmt.Sprintf("too many lists at once: there may be %d of each party, and %d in all", answersEach, answersAtOnce), soon))
		return
	}
	defer leave()
	next(ctx)
}

// aliveIn reports whether the party of an entry is alive.
func aliveIn(view *journal.View, e *journal.Entry) bool {
	owner := view.Get(journal.Key{Party: e.Key.Party})
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
