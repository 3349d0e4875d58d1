// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"slices"
	"strings"

	"github.com/capacitorset/liqo-broker/pkg/serving/rest"
	"github.com/capacitorset/liqo-broker/pkg/shown"
	"github.com/capacitorset/liqo-broker/pkg/shown/apiv1"
	"github.com/capacitorset/liqo-broker/pkg/shown/feed"
)

// List is a page of a list.
type List[T any] struct {
	Items    []T    `json:"items" nullable:"false"`
	Continue string `json:"continue,omitempty" doc:"For the next page; missing on the last one."`
}

// listed is the answer with a page.
type listed[T any] struct {
	ETag string `header:"ETag"`
	Body List[T]
}

// answered is the answer with one thing.
type answered[T any] struct {
	ETag string `header:"ETag"`
	Body T
}

// query is which items of a list are asked for.
type query[T any] struct {
	rest.Paging

	// filters are the filters as they are written, by which a page knows that the next one is of the same list.
	filters []string
	keep    func(T) bool
}

// list registers what answers with a page of the items of a kind.
func list[T, I any](v *v1, id, path string, kind feed.Kind, need access, summary string, asked func(*I) query[T]) {
	need.verb = "list"
	rest.Register(v.api, v.operation(id, http.MethodGet, path, need, summary), func(ctx context.Context, in *I) (*listed[T], error) {
		return pageOf(ctx, v, kind, asked(in))
	})
}

// pageOf answers with a page of the items of a kind that the caller may see.
func pageOf[T any](ctx context.Context, v *v1, kind feed.Kind, q query[T]) (*listed[T], error) {
	who, seen := callerOf(ctx), ""
	if who.consumer != "" { // All others who may see it see the same.
		seen = who.called()
	}
	// A page belongs to the question and to who asks: the mark of another one is refused.
	page, after, err := rest.NewPage[T](q.Paging, strings.Join(append([]string{string(kind), seen}, q.filters...), "\x00"))
	if err != nil {
		return nil, err
	}
	view, err := v.feed.View(ctx, kind)
	if err != nil {
		return nil, err
	}
	if kind == shown.Activity {
		view = newestFirst(view)
	}
	// Filters are asked about what the caller may see, and so tell a consumer nothing that is hidden from it.
	hides := v.hides(ctx, who)
	for _, item := range view.After(after) {
		value, ok := item.Value.(T)
		if !ok || !who.sees(item.Consumer) {
			continue
		}
		if who.consumer != "" {
			if value, ok = ownOf(value, hides); !ok {
				continue
			}
		}
		if !q.keep(value) {
			continue
		}
		// There is one more, so that the page has a next one.
		if page.Full() {
			page.End()
			break
		}
		tag, err := tagFor(who, item.Tag, value)
		if err != nil {
			return nil, err
		}
		page.Add(item.Key, tag, value)
	}
	etag, unmodified := page.ETag()
	return &listed[T]{ETag: etag, Body: List[T]{Items: page.Items, Continue: page.Continue}}, unmodified
}

// newestFirst returns a view of what has happened in the order of time, which is in the keys: what comes while somebody turns pages is
// before all of them.
func newestFirst(view *feed.View) *feed.View {
	items := slices.Clone(view.Items)
	for i := range items {
		if a, ok := items[i].Value.(apiv1.Activity); ok {
			items[i].Key = fmt.Sprintf("%019d/%s", math.MaxInt64-max(a.Time.UnixMicro(), 0), items[i].Key)
		}
	}
	slices.SortFunc(items, func(a, b feed.Item) int { return cmp.Compare(a.Key, b.Key) })
	return &feed.View{Items: items}
}

// get registers what answers with one item of a kind.
func get[T, I any](
	v *v1, id, path string, kind feed.Kind, need access, summary string, asked func(*I) (key string, known rest.Conditional),
) {
	need.verb = "get"
	rest.Register(v.api, v.operation(id, http.MethodGet, path, need, summary), func(ctx context.Context, in *I) (*answered[T], error) {
		key, known := asked(in)
		return itemOf[T](ctx, v, kind, key, known)
	})
}

// itemOf answers with the item of a kind with a key.
func itemOf[T any](ctx context.Context, v *v1, kind feed.Kind, key string, known rest.Conditional) (*answered[T], error) {
	who := callerOf(ctx)
	view, err := v.feed.View(ctx, kind)
	if err != nil {
		return nil, err
	}
	item, found := view.Get(key)
	value, ok := item.Value.(T)
	switch {
	case who.consumer != "" && (!found || !who.sees(item.Consumer)): // It learns not even whether there is one.
		return nil, rest.Refusal(http.StatusForbidden, messageNotOwn)
	case !found || !ok:
		return nil, rest.Refusal(http.StatusNotFound, fmt.Sprintf(messageNoItem, key, kind))
	}
	if who.consumer != "" {
		if value, ok = ownOf(value, v.hides(ctx, who)); !ok {
			return nil, rest.Refusal(http.StatusForbidden, messageHidden)
		}
	}
	tag, err := tagFor(who, item.Tag, value)
	if err != nil {
		return nil, err
	}
	etag := rest.ETag(tag)
	return &answered[T]{ETag: etag, Body: value}, known.Unmodified(etag)
}

// ownOf returns what a consumer sees of a value; false if nothing.
func ownOf[T any](value T, hides bool) (T, bool) {
	own, ok := any(value).(apiv1.Owned[T])
	if !ok {
		return value, false
	}
	return own.Own(hides), true
}

// tagFor returns the tag of what a caller sees of an item, whose own tag would tell a consumer when something changes that is hidden from
// it.
func tagFor[T any](c caller, tag string, shown T) (string, error) {
	if c.consumer == "" {
		return tag, nil
	}
	text, err := json.Marshal(shown)
	if err != nil {
		return "", fmt.Errorf("write a tag: %w", err)
	}
	return rest.Tag(text), nil
}
