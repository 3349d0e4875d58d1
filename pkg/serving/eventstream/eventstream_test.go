// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package eventstream

import (
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/capacitorset/liqo-broker/pkg/serving/servingtest"
)

func TestReader(t *testing.T) {
	cases := map[string]struct {
		reason string
		text   string
		want   []Event
		err    error
	}{
		"Written": {
			reason: "What Append writes is read.",
			text:   string(Append(Append(nil, Event{ID: "7", Name: "a", Data: []byte(`{"x":1}`)}), Event{Name: "b", Data: []byte("{}")})),
			want:   []Event{{ID: "7", Name: "a", Data: []byte(`{"x":1}`)}, {Name: "b", Data: []byte("{}")}}, err: io.EOF,
		},
		"Comment": {
			reason: "A comment is a sign of life and nothing else.", text: ": alive\n\nevent: a\ndata: 1\n\n",
			want: []Event{{Name: "a", Data: []byte("1")}}, err: io.EOF,
		},
		"IDAlone": {
			reason: "An ID without data counts for what comes next.", text: "id: 5\n\nevent: a\ndata: 1\n\n",
			want: []Event{{ID: "5", Name: "a", Data: []byte("1")}}, err: io.EOF,
		},
		"Lines": {
			reason: "Data may be in several lines, and lines may end as on Windows.", text: "data: 1\r\ndata:2\r\n\r\n",
			want: []Event{{Data: []byte("1\n2")}}, err: io.EOF,
		},
		"Cut":       {reason: "An event that is not whole is none.", text: "event: a\ndata: 1\n", err: io.ErrUnexpectedEOF},
		"CutInLine": {reason: "Nor is one whose line is not.", text: "data: 1", err: io.ErrUnexpectedEOF},
		"Large":     {reason: "A line may not fill the memory ...", text: "data: " + strings.Repeat("x", 1000) + "\n\n", err: ErrTooLarge},
		"ManyLines": {reason: "... nor may many short ones.", text: strings.Repeat("data: x\n", 100), err: ErrTooLarge},
		"Endless":   {reason: "Nor one that never ends.", text: strings.Repeat("x", 100_000), err: ErrTooLarge},
		"AfterIdle": {
			reason: "The bound is that of one event, and not of the silence before it.", text: strings.Repeat(": alive\n\n", 100) + "data: 1\n\n",
			want: []Event{{Data: []byte("1")}}, err: io.EOF,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			r := NewReader(strings.NewReader(tc.text), 200)
			var got []Event
			for {
				e, err := r.Next()
				if err != nil {
					if !errors.Is(err, tc.err) {
						t.Errorf("%s\nerror %v, want %v", tc.reason, err, tc.err)
					}
					break
				}
				got = append(got, e)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\n-want +got\n%s", tc.reason, diff)
			}
		})
	}
}

// FuzzReader reads whatever comes: it ends, within its bound.
func FuzzReader(f *testing.F) {
	f.Add("id: 5\n\nevent: a\ndata: 1\n\n")
	f.Add(": alive\r\n\r\ndata\n\n")
	f.Fuzz(func(t *testing.T, text string) {
		r := NewReader(strings.NewReader(text), 64)
		for {
			e, err := r.Next()
			if err != nil {
				return
			}
			if len(e.Data) > 64 {
				t.Fatalf("%d bytes of data", len(e.Data))
			}
		}
	})
}

// TestSlowReader sends to who does not read.
func TestSlowReader(t *testing.T) {
	ended := make(chan error, 1)
	handler := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		out := Begin(w, 100*time.Millisecond)
		event := Append(nil, Event{Name: "a", Data: []byte(strings.Repeat("x", 64<<10))})
		for {
			if err := out.Send(event); err != nil {
				ended <- err
				return
			}
		}
	})
	listener := servingtest.Listen(t)
	server := &http.Server{Handler: handler, ReadHeaderTimeout: time.Second}
	defer server.Close()
	go func() { _ = server.Serve(listener) }()
	c, err := net.Dial("tcp", listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := io.WriteString(c, "GET / HTTP/1.1\r\nHost: x\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	select {
	case err := <-ended:
		if !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("the stream ends by %v", err)
		}
	case <-time.After(10 * time.Second):
		t.Error("a reader that does not read holds the stream")
	}
}
