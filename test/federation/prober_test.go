// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package federation

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestCount(t *testing.T) {
	start := time.Date(2024, 5, 1, 12, 0, 0, 0, time.UTC)
	at := func(second float64) time.Time { return start.Add(time.Duration(second * float64(time.Second))) }
	target := Target{Pod: "web-1", Address: "192.0.2.1:8080", Path: PathDirect}
	for name, tc := range map[string]struct {
		reason string
		probes []probe
		want   Answers
	}{
		"None": {
			"without an answer the gap is the whole period",
			nil,
			Answers{Gap: 10 * time.Second, GapFrom: at(0)},
		},
		"Failed": {
			"what did not answer does not end a gap",
			[]probe{{at(1), at(2), "web-1"}, {at(4), at(5), ""}, {at(7), at(8), "web-1"}},
			Answers{Requests: 3, Errors: 1, Gap: 6 * time.Second, GapFrom: at(2)},
		},
		"Wrong": {
			"the answer of another pod is no answer",
			[]probe{{at(1), at(2), "web-1"}, {at(4), at(5), "web-2"}, {at(8), at(9), "web-1"}},
			Answers{Requests: 3, Wrong: 1, Gap: 7 * time.Second, GapFrom: at(2)},
		},
		"Order": {
			"a request that waits is overtaken by those after it",
			[]probe{{at(2), at(3), "web-1"}, {at(1), at(7), "web-1"}},
			Answers{Requests: 2, Gap: 4 * time.Second, GapFrom: at(3)},
		},
		"Outside": {
			"requests from before and after the period do not count, answers in it do",
			[]probe{{at(-3), at(-2), ""}, {at(-1), at(5), "web-1"}, {at(9), at(11), "web-1"}, {at(12), at(13), ""}},
			Answers{Requests: 1, Gap: 5 * time.Second, GapFrom: at(0)},
		},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, count(target, tc.probes, at(0), at(10))); diff != "" {
				t.Errorf("answers (-want +got), %s:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestProber(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, `{"host": "web-1"}`)
	}))
	defer server.Close()
	address := strings.TrimPrefix(server.URL, "http://")
	right := Target{Pod: "web-1", Address: address, Path: PathDirect}
	wrong := Target{Pod: "web-2", Address: address, Path: PathRelay}
	service := Target{Address: address}
	lost := Target{Pod: "web-1", Address: "127.0.0.1:1", Path: PathRelay} // Nothing listens there.

	began := time.Now()
	p := newProber(t.Context(), new(net.Dialer).DialContext)
	for _, target := range []Target{right, right, wrong, service, lost} {
		p.Add(target)
	}
	var got map[Target]Answers
	err := Until(t.Context(), 10*time.Second, func(context.Context) error {
		got = p.Answers(began, time.Now())
		for target, answers := range got {
			if answers.Requests < 3 {
				return fmt.Errorf("%v was asked %d times", target, answers.Requests)
			}
		}
		return nil
	})
	p.Stop()
	if err != nil {
		t.Fatal(err)
	}
	for target, want := range map[Target]Answers{
		right:   {},
		service: {},
		wrong:   {Wrong: got[wrong].Requests},
		lost:    {Errors: got[lost].Requests},
	} {
		want.Requests, want.Gap, want.GapFrom = got[target].Requests, got[target].Gap, got[target].GapFrom
		if diff := cmp.Diff(want, got[target]); diff != "" {
			t.Errorf("answers of %v (-want +got):\n%s", target, diff)
		}
	}
	took := p.Took(began, time.Now())
	if len(took[PathDirect]) == 0 || len(took[PathRelay]) == 0 {
		t.Fatalf("the requests took %v", took)
	}
	if slices.Max(took[PathDirect]) >= probePatience || slices.Min(took[PathRelay]) != probePatience {
		t.Errorf("answers of the pod, and none of it, took %v", took)
	}
	if answered := p.Last(right); answered.Before(began) {
		t.Errorf("%v answered last at %s", right, answered)
	}
	if answered := p.Last(lost); !answered.IsZero() {
		t.Errorf("%v answered at %s", lost, answered)
	}
}
