// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package image

import (
	"net/http"
	"strconv"
	"strings"
)

// Registry serves the images of several stores; the first store that has a name
// answers for it. It speaks as much of the distribution API as a pull needs, and
// takes the name of the registry that it stands for from the parameter ns, which
// containerd sends to mirrors.
// https://github.com/opencontainers/distribution-spec/blob/v1.1.0/spec.md#pull
type Registry struct{ stores []Store }

var _ http.Handler = (*Registry)(nil)

// NewRegistry returns a registry of the stores.
func NewRegistry(stores ...Store) *Registry { return &Registry{stores: stores} }

// ServeHTTP answers a request for a manifest or a blob.
func (r *Registry) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	path, ok := strings.CutPrefix(request.URL.Path, "/v2/")
	if !ok {
		http.NotFound(w, request)
		return
	}
	if path == "" {
		return
	}
	if name, reference, ok := cutLast(path, "/manifests/"); ok {
		digest := reference
		if !strings.HasPrefix(reference, "sha256:") {
			digest = r.resolve(FullName(request.URL.Query().Get("ns") + "/" + name + ":" + reference))
		}
		r.serve(w, request, digest, manifestType)
		return
	}
	if _, digest, ok := cutLast(path, "/blobs/"); ok {
		r.serve(w, request, digest, "application/octet-stream")
		return
	}
	http.NotFound(w, request)
}

func (r *Registry) resolve(name string) string {
	for _, s := range r.stores {
		if digest, err := s.Resolve(name); err == nil {
			return digest
		}
	}
	return ""
}

func (r *Registry) serve(w http.ResponseWriter, request *http.Request, digest, contentType string) {
	for _, s := range r.stores {
		f, err := s.Open(digest)
		if err != nil {
			continue
		}
		defer f.Close()
		info, err := f.Stat()
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		w.Header().Set("Content-Type", contentType)
		w.Header().Set("Docker-Content-Digest", digest)
		w.Header().Set("Content-Length", strconv.FormatInt(info.Size(), 10))
		http.ServeContent(w, request, "", info.ModTime(), f)
		return
	}
	http.NotFound(w, request)
}

func cutLast(s, separator string) (before, after string, found bool) {
	i := strings.LastIndex(s, separator)
	if i < 0 {
		return s, "", false
	}
	return s[:i], s[i+len(separator):], true
}
