// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"fmt"
	"net/http"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"github.com/capacitorset/liqo-broker/pkg/serving/rest"
	"github.com/capacitorset/liqo-broker/pkg/trade/core/offer"
	"github.com/capacitorset/liqo-broker/pkg/trade/registry/journal"
)

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

// pageOf answers with a page: it ends when it has as many items as are asked for, or maxPage bytes, or when effortOnce is spent. What is
// spent is the caller's.
func pageOf[T any](ctx context.Context, s *Server, in rest.Paging, of request[T]) (*listed[T], error) {
	page, after, err := rest.NewPage[T](in, of.filters)
	if err != nil {
		return nil, err
	}
	party, id, _ := strings.Cut(after, "/")
	spent, size := 0, 0
	defer func() { s.effort.spend(callerFrom(ctx), spent) }()
	for i, e := range of.view.After(offer.Key{Party: party, Offer: id}) {
		if i%256 == 255 && ctx.Err() != nil {
			return nil, ctx.Err()
		}
		// Who filters much and finds little gets a page that is short, and goes on from where it ends.
		if spent >= effortOnce {
			page.End()
			break
		}
		keep, cost := of.keep(e)
		if spent += cost; !keep {
			page.Pass(e.String())
			continue
		}
		if page.Full() {
			page.End()
			break
		}
		// One item is shown, however large it is: otherwise nobody would get past it.
		shown, bytes, err := of.show(e)
		if err != nil {
			return nil, err
		}
		if size += bytes; size > maxPage && len(page.Items) > 0 {
			page.End()
			break
		}
		page.Add(e.String(), fmt.Sprint(e.Revision, aliveIn(of.view, e)), shown)
	}
	etag, unmodified := page.ETag()
	return &listed[T]{ETag: etag, Body: List[T]{Items: page.Items, Continue: page.Continue, Revision: of.view.Revision}}, unmodified
}

// answering bounds how many lists are on their way to their readers, who may be slow.
func (s *Server) answering(ctx huma.Context, next func(huma.Context)) {
	leave, ok := s.answers.Enter(callerFrom(ctx.Context()).source())
	if !ok {
		s.api.RefuseIn(ctx, rest.Later(http.StatusTooManyRequests,
			fmt.Sprintf(messageTooManyLists, answersEach, answersAtOnce), "1"))
		return
	}
	defer leave()
	next(ctx)
}

// aliveIn reports whether the party of an entry is alive.
func aliveIn(view *journal.View, e *journal.Entry) bool {
	owner := view.Get(offer.Key{Party: e.Key.Party})
	return owner != nil && owner.Party.Alive
}
