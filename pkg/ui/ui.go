// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

// Package ui is the page of the broker: the files that make ui has made of the folder ui, and how they are served. They are the same for
// everybody, and have nothing of any cluster in them. The package knows nothing of what the page asks for: who serves it serves that, too.
package ui

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"io"
	"maps"
	"mime"
	"net/http"
	"path"
	"regexp"
	"strings"
	"time"
)

//go:embed dist
var dist embed.FS

// policy is what a browser lets the page do: run its own scripts, and call who has served it. It cannot make scripts of texts.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; base-uri 'none'; " +
	"form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"

// maxFile is more than any file of the page has, in bytes.
const maxFile = 4 << 20

// ofContent is of files that are called after what is in them: another one has another name.
var ofContent = regexp.MustCompile(`-[A-Z0-9]{8}\.js$`)

// A Page serves the files of the page.
type Page struct {
	files map[string]file
	// saved is the script of a page that is a file.
	saved []byte
}

type file struct {
	kind, tag        string
	packed, unpacked []byte
}

// New reads the files. The error says which one is broken, which tests would have seen.
func New() (*Page, error) {
	const folder, end, saved = "dist", ".gz", "saved.js"
	entries, err := dist.ReadDir(folder)
	if err != nil {
		return nil, fmt.Errorf("read the page: %w", err)
	}
	p := &Page{files: map[string]file{}}
	for _, entry := range entries {
		packed, err := dist.ReadFile(path.Join(folder, entry.Name()))
		if err != nil {
			return nil, fmt.Errorf("read the page: %w", err)
		}
		unpacked, err := unpack(packed)
		if err != nil {
			return nil, fmt.Errorf("read %s of the page: %w", entry.Name(), err)
		}
		name := strings.TrimSuffix(entry.Name(), end)
		if name == saved {
			p.saved = unpacked
			continue
		}
		sum := sha256.Sum256(unpacked)
		p.files["/"+name] = file{
			kind: mime.FormatMediaType(kindOf(name), map[string]string{"charset": "utf-8"}), tag: hex.EncodeToString(sum[:16]),
			packed: packed, unpacked: unpacked,
		}
	}

	// What browsers ask for, and what files are made of.
	const index = "/index.html"
	p.files["/"] = p.files[index]
	if len(p.files["/"].packed) == 0 {
		return nil, fmt.Errorf("the page has no %s", index)
	}
	if len(p.saved) == 0 {
		return nil, fmt.Errorf("the page has no %s", saved)
	}
	return p, nil
}

// kindOf returns the media type of a file. It does not ask the machine, of which each has its own list.
func kindOf(name string) string {
	switch path.Ext(name) {
	case ".html":
		return "text/html"
	case ".js":
		return "text/javascript"
	case ".css":
		return "text/css"
	}
	return "text/plain"
}

func unpack(packed []byte) ([]byte, error) {
	r, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return nil, err
	}
	return io.ReadAll(io.LimitReader(r, maxFile))
}

// Hosted returns the same page for a server of which the page does not begin a session, but whose data it asks for with a token that its
// person gives. It learns so from an attribute of its document.
func (p *Page) Hosted() (*Page, error) {
	const element, index = "<html ", "/index.html"
	h := &Page{files: maps.Clone(p.files), saved: p.saved}
	before := p.files[index]
	marked := bytes.Replace(before.unpacked, []byte(element), []byte(element+"data-hosted "), 1)
	if len(marked) == len(before.unpacked) {
		return nil, fmt.Errorf("%s of the page has no %q", index, element)
	}
	var packed bytes.Buffer
	w := gzip.NewWriter(&packed)
	if _, err := w.Write(marked); err != nil {
		return nil, fmt.Errorf("pack %s of the page: %w", index, err)
	}
	if err := w.Close(); err != nil {
		return nil, fmt.Errorf("pack %s of the page: %w", index, err)
	}
	sum := sha256.Sum256(marked)
	h.files[index] = file{kind: before.kind, tag: hex.EncodeToString(sum[:16]), packed: packed.Bytes(), unpacked: marked}
	h.files["/"] = h.files[index]
	return h, nil
}

// ServeHTTP serves a file of the page, and for every other path says that there is nothing.
func (p *Page) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	header := w.Header()
	for name, value := range map[string]string{
		"Content-Security-Policy": policy, "X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer",
		"Cross-Origin-Opener-Policy": "same-origin", "Cross-Origin-Resource-Policy": "same-origin",
	} {
		header.Set(name, value)
	}
	found, is := p.files[r.URL.Path]
	switch {
	case !is:
		http.Error(w, "There is nothing here.", http.StatusNotFound)
		return
	case r.Method != http.MethodGet && r.Method != http.MethodHead:
		header.Set("Allow", "GET, HEAD")
		http.Error(w, "The page can only be read.", http.StatusMethodNotAllowed)
		return
	}
	header.Set("Content-Type", found.kind)
	header.Set("Cache-Control", "no-cache") // It is asked for each time, and answered without a body as long as it is the same.
	if ofContent.MatchString(r.URL.Path) {
		header.Set("Cache-Control", "max-age=31536000, immutable")
	}
	header.Set("Vary", "Accept-Encoding")
	body, tag := found.unpacked, found.tag
	if takesGzip(r.Header.Values("Accept-Encoding")) {
		body, tag = found.packed, found.tag+"-gzip"
		header.Set("Content-Encoding", "gzip")
	}
	header.Set("ETag", `"`+tag+`"`)
	r.Header.Del("Range") // Parts of what is packed are of no use.
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(body))
}

// takesGzip reports whether a browser reads gzip, by what it says that it accepts.
func takesGzip(accepts []string) bool {
	for coding := range strings.SplitSeq(strings.Join(accepts, ","), ",") {
		name, quality, _ := strings.Cut(coding, ";")
		if strings.EqualFold(strings.TrimSpace(name), "gzip") {
			value, _ := strings.CutPrefix(strings.ReplaceAll(quality, " ", ""), "q=")
			return value == "" || strings.Trim(value, "0.") != ""
		}
	}
	return false
}
