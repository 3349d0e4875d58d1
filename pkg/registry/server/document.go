// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"github.com/capacitorset/liqo-broker/pkg/registry/registryv1"
)

// document makes the OpenAPI document, and serves it to everybody.
func (s *Server) document() error {
	described := s.huma.OpenAPI()
	text, err := json.MarshalIndent(described, "", "  ")
	if err != nil {
		return fmt.Errorf("write the OpenAPI document: %w", err)
	}
	text = append(text, '\n')
	s.json = text
	if s.yaml, err = described.YAML(); err != nil {
		return fmt.Errorf("write the OpenAPI document: %w", err)
	}
	for name, text := range map[string][]byte{"json": s.json, "yaml": s.yaml} {
		path := registryv1.Base + "/openapi." + name
		s.mux.HandleFunc("GET "+path, func(w http.ResponseWriter, r *http.Request) {
			if !s.pace.allow(caller{}, r) {
				s.refuse(w, later(http.StatusTooManyRequests, "too many requests: try again in a second", soon))
				return
			}
			w.Header().Set("Content-Type", "application/openapi+"+name)
			w.Header().Set("X-Content-Type-Options", "nosniff")
			_, _ = w.Write(text) // A caller that has gone away is nobody's concern.
		})
		s.mux.HandleFunc(path, notAllowed(s, "GET, HEAD"))
	}
	return nil
}

// others answers what is not served: other methods, and other paths.
func (s *Server) others() {
	for path, item := range s.huma.OpenAPI().Paths {
		var methods []string
		for method, op := range map[string]*huma.Operation{
			http.MethodGet: item.Get, http.MethodPut: item.Put, http.MethodPost: item.Post, http.MethodDelete: item.Delete,
		} {
			if op != nil {
				methods = append(methods, method)
			}
		}
		watch := path == registryv1.Base+registryv1.PathWatch
		if item.Get != nil && !watch {
			methods = append(methods, http.MethodHead)
		}
		slices.Sort(methods)
		allowed := strings.Join(methods, ", ")
		s.mux.HandleFunc(path, notAllowed(s, allowed))
		if watch {
			s.mux.HandleFunc(http.MethodHead+" "+path, notAllowed(s, allowed))
		}
	}
	s.mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) {
		s.refuse(w, refusal(http.StatusNotFound, "not found: "+registryv1.Base+"/openapi.yaml has the paths"))
	})
}

// OpenAPI returns the document of the registry's API, as YAML.
func OpenAPI() ([]byte, error) {
	s, err := describe(Config{})
	if err != nil {
		return nil, err
	}
	return s.yaml, nil
}
