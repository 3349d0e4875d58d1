// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package rest

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"net/http"
	"strconv"
	"strings"

	"github.com/danielgtaylor/huma/v2"
)

// Conditional is for which version of a thing an answer is wanted.
type Conditional struct {
	IfNoneMatch string `doc:"An ETag of an earlier answer: if it is still right, the answer is 304." header:"If-None-Match" maxLength:"1024"`
}

// Paging is what part of a list is asked for.
type Paging struct {
	Conditional

	Limit    int    `default:"100"                                                                                                                   doc:"How many items are answered at most. A page may have fewer, or none: the list ends where there is no continue." maximum:"500"    minimum:"1" query:"limit"`
	Continue string `doc:"What the page before has as continue. What has come or gone since is in the further pages or not; nothing is there twice." maxLength:"2048"                                                                                                     query:"continue"`
}

// Page is a page of a list while its items are added. It is for one goroutine.
type Page[T any] struct {
	Items []T
	// Continue is where the next page begins; empty if this one is the last.
	Continue string

	paging     Paging
	list, last string
	versions   hash.Hash
	// line is written to versions next. It is there so that an item needs no memory of its own.
	line []byte
}

// NewPage returns a page without items, and the key after which its items begin. What list it is of is a text that differs for other
// filters and for who sees others: the parameter continue of another list is refused.
func NewPage[T any](paging Paging, list string) (page *Page[T], after string, err error) {
	p := &Page[T]{Items: []T{}, paging: paging, list: Tag([]byte(list)), versions: sha256.New()}
	if paging.Continue == "" {
		return p, "", nil
	}
	text, err := base64.RawURLEncoding.DecodeString(paging.Continue)
	after, ours := strings.CutPrefix(string(text), p.list+"/")
	if err != nil || !ours {
		return nil, "", Wrong(http.StatusBadRequest, "query.continue", errors.New("is not from a page of this list with the same filters"))
	}
	p.last = after
	return p, after, nil
}

// Full reports whether no more items are wanted.
func (p *Page[T]) Full() bool { return len(p.Items) == p.paging.Limit }

// Add adds an item with its key, and a text that is another one for each version of it.
func (p *Page[T]) Add(key, version string, item T) {
	p.Items, p.last = append(p.Items, item), key
	// Quoted, no key and version together look like others.
	p.line = strconv.AppendQuote(strconv.AppendQuote(p.line[:0], key), version)
	p.versions.Write(p.line)
}

// Pass passes over an item that is not in the list.
func (p *Page[T]) Pass(key string) { p.last = key }

// End ends the page before the end of the list: the next one goes on after the last key.
func (p *Page[T]) End() {
	p.Continue = base64.RawURLEncoding.EncodeToString([]byte(p.list + "/" + p.last))
}

// ETag returns that of the page, and the error that answers 304 if the caller has it already.
func (p *Page[T]) ETag() (etag string, unmodified error) {
	fmt.Fprint(p.versions, p.list, p.Continue)
	etag = ETag(tag(p.versions))
	return etag, p.paging.Unmodified(etag)
}

// Tag returns a short text that is another one for other texts.
func Tag(text []byte) string {
	h := sha256.New()
	h.Write(text)
	return tag(h)
}

func tag(h hash.Hash) string { return hex.EncodeToString(h.Sum(nil)[:12]) }

// ETag returns the header ETag with a tag.
func ETag(tag string) string { return `"` + tag + `"` }

// Unmodified returns the error that answers 304 if one of the caller's ETags is right, by weak comparison (RFC 9110, section 13.1.2); nil
// otherwise.
func (c Conditional) Unmodified(etag string) error {
	for candidate := range strings.SplitSeq(c.IfNoneMatch, ",") {
		candidate = strings.TrimPrefix(strings.TrimSpace(candidate), "W/")
		if candidate == "*" || candidate == etag {
			return huma.ErrorWithHeaders(huma.Status304NotModified(), http.Header{"ETag": {etag}})
		}
	}
	return nil
}
