// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package daemon

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/spf13/pflag"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache/informertest"
)

func TestReplicaFlags(t *testing.T) {
	defaults := ReplicaOptions{HealthAddress: ":1", LiqoNamespace: "liqo", LeaderNamespace: "own"}
	for name, tc := range map[string]struct {
		reason string
		args   []string
		want   ReplicaOptions
		err    string
	}{
		"Defaults": {"What is not given is as it was.", nil, defaults, ""},
		"Given": {
			"What is given counts.",
			[]string{
				"--health-address=0", "--liqo-namespace=l", "--leader-elect", "--leader-election-identity=a", "--leader-election-namespace=n",
			},
			ReplicaOptions{HealthAddress: "0", LiqoNamespace: "l", LeaderElect: true, LeaderIdentity: "a", LeaderNamespace: "n"}, "",
		},
		"Nowhere": {
			"Probes need a port.", []string{"--health-address=x"}, ReplicaOptions{HealthAddress: "x", LiqoNamespace: "liqo", LeaderNamespace: "own"},
			"--health-address=x is not [HOST]:PORT",
		},
	} {
		t.Run(name, func(t *testing.T) {
			o, flags := defaults, pflag.NewFlagSet("", pflag.ContinueOnError)
			o.AddFlags(flags, "writes")
			if err := flags.Parse(tc.args); err != nil {
				t.Fatal(err)
			}
			err := o.Validate()
			if tc.want.Log = o.Log; o != tc.want {
				t.Errorf("%s\ngot  %+v\nwant %+v", tc.reason, o, tc.want)
			}
			if got := err != nil; got != (tc.err != "") || got && !strings.Contains(err.Error(), tc.err) {
				t.Errorf("%s\nValidate() = %v, want %q", tc.reason, err, tc.err)
			}
		})
	}
}

// server is an API server that knows nothing, and notes whether it is asked for the lease of a program.
func server(t *testing.T) (config *rest.Config, asked *atomic.Bool) {
	t.Helper()
	asked = &atomic.Bool{}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/apis/coordination.k8s.io/v1/namespaces/own/leases/program" {
			asked.Store(true)
		}
		http.NotFound(w, r)
	}))
	t.Cleanup(s.Close)
	return &rest.Config{Host: s.URL}, asked
}

// open returns a replica whose probes are asked at an address.
func open(t *testing.T, config *rest.Config, o ReplicaOptions) *Replica {
	t.Helper()
	scheme, err := Kinds()
	if err != nil {
		t.Fatal(err)
	}
	admits := func(a netip.Addr) bool { return a != netip.MustParseAddr("127.0.0.2") }
	return &Replica{
		Log: logr.Discard(), Scheme: scheme, Rest: config, made: NewParts[Made](),
		cfg: ReplicaConfig{ReplicaOptions: o, Name: "program", Admits: admits},
	}
}

// filling is a cache that is filled once a channel is closed.
type filling struct {
	*informertest.FakeInformers

	filled <-chan struct{}
}

func (f filling) Start(ctx context.Context) error {
	<-ctx.Done()
	return nil
}

func (f filling) WaitForCacheSync(ctx context.Context) bool {
	select {
	case <-ctx.Done():
		return false
	case <-f.filled:
		return true
	}
}

// manager returns one whose caches are filled once a channel is closed.
func manager(t *testing.T, r *Replica, filled <-chan struct{}) ctrl.Manager {
	t.Helper()
	mgr, err := r.Manager(ctrl.Options{NewCache: func(*rest.Config, cache.Options) (cache.Cache, error) {
		return filling{&informertest.FakeInformers{Scheme: r.Scheme}, filled}, nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	return mgr
}

// probe asks a program something, from an address, and returns the answer's code; 0 if it is not heard.
func probe(t *testing.T, from, address, path string) int {
	t.Helper()
	dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}}
	caller := http.Client{Transport: &http.Transport{DialContext: dialer.DialContext, DisableKeepAlives: true}, Timeout: 5 * time.Second}
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+address+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := caller.Do(request)
	if err != nil {
		return 0
	}
	defer answer.Body.Close()
	return answer.StatusCode
}

// free returns an address where nobody listens.
func free(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	return listener.Addr().String()
}

// TestReplica holds that a program lives before its parts are made, and is ready only when they work.
func TestReplica(t *testing.T) {
	for name, tc := range map[string]struct {
		reason string
		filled bool
		ready  func(context.Context) bool
		want   int
	}{
		"Filled":   {"There is nothing else to wait for.", true, nil, http.StatusOK},
		"Empty":    {"The caches are not filled.", false, nil, http.StatusServiceUnavailable},
		"Ready":    {"What it waits for besides works.", true, func(context.Context) bool { return true }, http.StatusOK},
		"NotReady": {"It does not.", true, func(context.Context) bool { return false }, http.StatusServiceUnavailable},
	} {
		t.Run(name, func(t *testing.T) {
			config, asked := server(t)
			address := free(t)
			r := open(t, config, ReplicaOptions{HealthAddress: address})
			filled := make(chan struct{})
			fill := sync.OnceFunc(func() { close(filled) })
			if tc.filled {
				fill()
			}
			made := Made{Manager: manager(t, r, filled), Ready: tc.ready}
			ctx, cancel := context.WithCancel(t.Context())
			may, ran := make(chan struct{}), make(chan error, 1)
			go func() {
				ran <- r.Run(ctx, func(context.Context) (Made, error) {
					<-may
					return made, nil
				})
			}()
			defer func() {
				fill() // A manager does not end before.
				<-made.Manager.Elected()
				cancel()
				if err := <-ran; err != nil {
					t.Errorf("Run(): %v", err)
				}
			}()
			for deadline := time.Now().Add(time.Minute); probe(t, "127.0.0.1", address, "/healthz") != http.StatusOK; {
				time.Sleep(10 * time.Millisecond)
				if time.Now().After(deadline) {
					t.Fatal("the program does not live before its parts are made")
				}
			}
			if got := probe(t, "127.0.0.1", address, "/readyz"); got != http.StatusServiceUnavailable {
				t.Errorf("before the parts are made, the answer is %d", got)
			}
			if got := probe(t, "127.0.0.2", address, "/healthz"); got != 0 {
				t.Errorf("who is not admitted is answered with %d", got)
			}
			close(may)
			if _, err := r.made.made.Get(ctx); err != nil {
				t.Fatal(err)
			}
			if got := probe(t, "127.0.0.1", address, "/readyz"); got != tc.want {
				t.Errorf("%s The answer is %d, want %d", tc.reason, got, tc.want)
			}
			if asked.Load() {
				t.Error("a replica that does not elect asks for the lease")
			}
		})
	}
}

// TestReplicaFails holds that a program ends when its parts cannot be made.
func TestReplicaFails(t *testing.T) {
	config, _ := server(t)
	broken := errors.New("broken")
	err := open(t, config, ReplicaOptions{HealthAddress: "0"}).Run(t.Context(), func(context.Context) (Made, error) { return Made{}, broken })
	if !errors.Is(err, broken) {
		t.Errorf("Run() = %v", err)
	}
}

// TestReplicaElects holds that a replica leads only with the lease of its program.
func TestReplicaElects(t *testing.T) {
	config, asked := server(t)
	r := open(t, config, ReplicaOptions{HealthAddress: "0", LeaderElect: true, LeaderNamespace: "own", LeaderIdentity: "a"})
	filled := make(chan struct{})
	close(filled)
	made := Made{Manager: manager(t, r, filled)}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	ran := make(chan error, 1)
	go func() { ran <- r.Run(ctx, func(context.Context) (Made, error) { return made, nil }) }()
	for !asked.Load() && ctx.Err() == nil {
		time.Sleep(10 * time.Millisecond)
	}
	select {
	case <-made.Manager.Elected():
		t.Error("it leads without the lease")
	default:
	}
	if !asked.Load() {
		t.Error("it does not ask for the lease")
	}
	cancel()
	<-ran
}
