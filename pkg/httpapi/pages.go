// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"github.com/capacitorset/liqo-broker/pkg/httpapi/feed"
)

// Paging is what part of a list is asked for.
type Paging struct {
	Limit       int    `query:"limit" minimum:"1" maximum:"500" default:"100" doc:"How many items are answered at most."`
	Continue    string `query:"continue" maxLength:"2048" doc:"What the page before has as continue. What has come or gone since is in the further pages or not; nothing is there twice."`
	IfNoneMatch string `header:"If-None-Match" maxLength:"1024" doc:"An ETag of an earlier answer: if it is still right, the answer is 304."`
}

// Conditional is for which version of a thing an answer is wanted.
type Conditional struct {
	IfNoneMatch string `header:"If-None-Match" maxLength:"1024" doc:"An ETag of an earlier answer: if it is still right, the answer is 304."`
}

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

// shown is the answer with one thing.
type shown[T any] struct {
	ETag string `header:"ETag"`
	Body T
}

// owned is what consumers see a part of.
type owned[T any] interface{ Own(hides bool) T }

// query is which items of a list are asked for.
type query[T any] struct {
	Paging
	// filters are the filters as they are written, by which a page knows that the next one is of the same list.
	filters []string
	keep    func(T) bool
}

// position is where the next page begins.
type position struct {
	Kind feed.Kind
	List string // What makes this list another one than others of its kind.
	Last string // The key of the last item before.
}

// separator is in neither kinds nor tags.
const separator = "/"

func (p position) token() string {
	return base64.RawURLEncoding.EncodeToString([]byte(string(p.Kind) + separator + p.List + separator + p.Last))
}

// after returns the key after which a page begins.
func (p position) after(token string) (string, error) {
	if token == "" {
		return "", nil
	}
	text, err := base64.RawURLEncoding.DecodeString(token)
	last, ours := strings.CutPrefix(string(text), string(p.Kind)+separator+p.List+separator)
	if err != nil || !ours {
		return "", refusal(http.StatusBadRequest, "the parameter continue is not from a page of this list with the same filters")
	}
	return last, nil
}

// list answers with a page of the items of a kind that the caller may see.
func list[T any](ctx context.Context, v *v1, kind feed.Kind, q query[T]) (*listed[T], error) {
	who := callerOf(ctx)
	here := position{Kind: kind, List: feed.Tag([]byte(strings.Join(q.filters, "\x00") + "\x00" + who.called()))}
	if who.consumer == "" {
		here.List = feed.Tag([]byte(strings.Join(q.filters, "\x00"))) // All who may see it see the same.
	}
	after, err := here.after(q.Continue)
	if err != nil {
		return nil, err
	}
	view, err := v.feed.View(ctx, kind)
	if err != nil {
		return nil, err
	}
	hides := v.hides(ctx, who)
	page := List[T]{Items: []T{}}
	tags := make([]string, 0, q.Limit+1)
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
		if len(page.Items) == q.Limit {
			page.Continue = here.token()
			break
		}
		page.Items, tags, here.Last = append(page.Items, value), append(tags, item.Tag), item.Key
	}
	etag := quoted(feed.Tag([]byte(strings.Join(append(tags, page.Continue), ","))))
	if who.consumer != "" {
		if etag, err = tagOf(page); err != nil {
			return nil, err
		}
	}
	return &listed[T]{ETag: etag, Body: page}, unmodified(q.IfNoneMatch, etag)
}

// get answers with the item of a kind with a key.
func get[T any](ctx context.Context, v *v1, kind feed.Kind, key, ifNoneMatch string) (*shown[T], error) {
	who := callerOf(ctx)
	view, err := v.feed.View(ctx, kind)
	if err != nil {
		return nil, err
	}
	item, found := view.Get(key)
	value, ok := item.Value.(T)
	switch {
	case who.consumer != "" && (!found || !who.sees(item.Consumer)): // It learns not even whether there is one.
		return nil, refusal(http.StatusForbidden, "a consumer may only see what is its own")
	case !found || !ok:
		return nil, refusal(http.StatusNotFound, fmt.Sprintf("there is no %q among the %s", key, kind))
	}
	etag := quoted(item.Tag)
	if who.consumer != "" {
		if value, ok = ownOf(value, v.hides(ctx, who)); !ok {
			return nil, refusal(http.StatusForbidden, "a consumer may not see this")
		}
		if etag, err = tagOf(value); err != nil {
			return nil, err
		}
	}
	return &shown[T]{ETag: etag, Body: value}, unmodified(ifNoneMatch, etag)
}

// ownOf returns what a consumer sees of a value; false if nothing.
func ownOf[T any](value T, hides bool) (T, bool) {
	own, ok := any(value).(owned[T])
	if !ok {
		return value, false
	}
	return own.Own(hides), true
}

func quoted(tag string) string { return `"` + tag + `"` }

// tagOf returns the ETag of what is shown: that of what is hidden would tell when it changes.
func tagOf(value any) (string, error) {
	text, err := json.Marshal(value)
	if err != nil {
		return "", fmt.Errorf("write a tag: %w", err)
	}
	return quoted(feed.Tag(text)), nil
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
