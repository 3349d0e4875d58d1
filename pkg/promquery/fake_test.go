// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package promquery

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// fake speaks as much of Prometheus' HTTP API and of PromQL as the contract needs.
type fake struct {
	server *httptest.Server

	mu      sync.Mutex
	metrics string // In the text format of exporters.
}

func newFake(t *testing.T) backend {
	t.Helper()
	f := &fake{}
	f.server = httptest.NewServer(f)
	t.Cleanup(f.server.Close)
	return f
}

func (f *fake) Address() string { return f.server.URL }

func (f *fake) Expose(metrics string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.metrics = metrics
}

func (f *fake) Stop() { f.server.Close() }

var (
	series = regexp.MustCompile(`^(\w+)(?:\{(\w+)="(\w+)"\})? (\S+)$`)
	metric = regexp.MustCompile(`^[a-z]\w*$`)
	ranges = regexp.MustCompile(`^[a-z]\w*\[\w+\]$`)
	sums   = regexp.MustCompile(`^([a-z]\w*) \+ on\(\) ([a-z]\w*)$`)
)

// ServeHTTP implements http.Handler.
func (f *fake) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	query := req.FormValue("query")
	now := float64(time.Now().UnixMilli()) / 1000
	switch number, err := strconv.ParseFloat(query, 64); {
	case req.URL.Path != "/api/v1/query" || req.Method != http.MethodPost:
		http.NotFound(w, req)
	case err == nil:
		answer(w, "scalar", []any{now, strconv.FormatFloat(number, 'f', -1, 64)})
	case strings.HasPrefix(query, `"`):
		answer(w, "string", []any{now, strings.Trim(query, `"`)})
	case ranges.MatchString(query):
		answer(w, "matrix", []any{})
	case metric.MatchString(query):
		answer(w, "vector", f.vector(query, now))
	case sums.MatchString(query):
		fail(w, http.StatusUnprocessableEntity, "execution", "found duplicate series for the match group")
	default:
		fail(w, http.StatusBadRequest, "bad_data", "parse error")
	}
}

func (f *fake) vector(name string, now float64) []any {
	f.mu.Lock()
	defer f.mu.Unlock()
	found := []any{}
	for line := range strings.Lines(f.metrics) {
		m := series.FindStringSubmatch(strings.TrimSpace(line))
		if m == nil || m[1] != name {
			continue
		}
		labels := map[string]string{"__name__": name, "job": "test"}
		if m[2] != "" {
			labels[m[2]] = m[3]
		}
		found = append(found, map[string]any{"metric": labels, "value": []any{now, m[4]}})
	}
	return found
}

func answer(w http.ResponseWriter, kind string, result any) {
	write(w, http.StatusOK, map[string]any{"status": "success", "data": map[string]any{"resultType": kind, "result": result}})
}

func fail(w http.ResponseWriter, code int, kind, message string) {
	write(w, code, map[string]any{"status": "error", "errorType": kind, "error": message})
}

func write(w http.ResponseWriter, code int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	if err := json.NewEncoder(w).Encode(body); err != nil {
		panic(fmt.Sprintf("the fake cannot answer: %v", err))
	}
}
