// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package probe

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

func listen(t *testing.T) net.Listener {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func TestAsk(t *testing.T) {
	const times = 5
	name, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	// A pod of the test, one that nobody is, one of something else, and one that answers only now and then.
	l := listen(t)
	ctx, stop := context.WithCancel(t.Context())
	served := make(chan error, 1)
	go func() { served <- Serve(ctx, l) }()
	closed := listen(t)
	nobody := closed.Addr().String()
	if err := closed.Close(); err != nil {
		t.Fatal(err)
	}
	other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte(strings.Repeat("x", maxAnswer+1)))
	}))
	defer other.Close()
	var n atomic.Int32
	flaky := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if n.Add(1)%2 == 0 {
			http.Error(w, "", http.StatusBadGateway)
			return
		}
		_, _ = w.Write([]byte("f"))
	}))
	defer flaky.Close()

	address := l.Addr().String()
	answers, err := Ask(t.Context(), []Target{
		{name, address}, {"", address}, {"another", address}, {"", nobody},
		{"", other.Listener.Addr().String()}, {"f", flaky.Listener.Addr().String()},
	}, times, 300*time.Millisecond)
	if err != nil {
		t.Fatal(err)
	}
	well, either, wrong, gone, strange, half := answers[0], answers[1], answers[2], answers[3], answers[4], answers[5]
	if !well.Well() || well.Answered != times || well.Hosts != 1 || well.Reason != "" ||
		well.First == 0 || well.Median == 0 || well.Slowest < well.Median {
		t.Errorf("who was asked answered so: %+v", well)
	}
	if !either.Well() || either.Pod != "" {
		t.Errorf("whom any may answer for, was answered so: %+v", either)
	}
	if wrong.Well() || wrong.Wrong != times || wrong.Answered != 0 || !strings.Contains(wrong.Reason, name) {
		t.Errorf("for whom another answers, was answered so: %+v", wrong)
	}
	if gone.Well() || gone.Asked != 1 || gone.First != 0 || !strings.Contains(gone.Reason, "refused") {
		t.Errorf("nobody answered so: %+v", gone)
	}
	if strange.Well() || !strings.Contains(strange.Reason, "not as a pod of the test") {
		t.Errorf("something else answered so: %+v", strange)
	}
	if half.Well() || half.Asked != times || half.Answered == 0 || half.Answered == times || !strings.Contains(half.Reason, "502") {
		t.Errorf("who answers now and then answered so: %+v", half)
	}

	stop()
	if err := <-served; err != nil {
		t.Error(err)
	}
}

func TestAskEnds(t *testing.T) {
	ctx, stop := context.WithCancelCause(t.Context())
	why := errors.New("enough")
	stop(why)
	if answers, err := Ask(ctx, []Target{{"", "127.0.0.1:1"}}, 1, time.Hour); !errors.Is(err, why) || answers[0].Well() {
		t.Errorf("it ends with %v and %+v", err, answers)
	}
}

func TestParseTarget(t *testing.T) {
	for text, want := range map[string]Target{
		"web-1=10.0.0.1:8080": {"web-1", "10.0.0.1:8080"}, "=server.test.svc:8080": {"", "server.test.svc:8080"},
	} {
		got, err := ParseTarget(text)
		if err != nil || got != want || got.String() != text {
			t.Errorf("%q is %+v, %v", text, got, err)
		}
	}
	for _, text := range []string{"", "web-1", "web-1=", "web-1=10.0.0.1", "10.0.0.1:8080", "web-1=:8080", "a=b:http", "a=b:70000", "a=b:-1"} {
		if got, err := ParseTarget(text); err == nil || !strings.Contains(err.Error(), text) {
			t.Errorf("%q is %+v, %v", text, got, err)
		}
	}
}
