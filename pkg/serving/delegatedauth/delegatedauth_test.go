// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package delegatedauth

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// apiServer knows some tokens, each "USER@AUDIENCE", and who may read /metrics.
type apiServer struct {
	mu      sync.Mutex
	reviews int
	deaf    bool // It does not know audiences.
	down    bool
}

const ownAudience = "https://kubernetes.default.svc"

func (s *apiServer) Create(_ context.Context, o client.Object, _ ...client.CreateOption) error {
	s.mu.Lock()
	s.reviews++
	s.mu.Unlock()
	if s.down {
		return errors.New("down")
	}
	switch o := o.(type) {
	case *authenticationv1.TokenReview:
		user, audience, _ := strings.Cut(o.Spec.Token, "@")
		wanted := o.Spec.Audiences
		if len(wanted) == 0 {
			wanted = []string{ownAudience}
		}
		o.Status.User.Username = user
		o.Status.Authenticated = user != "nobody" && (s.deaf || slices.Contains(wanted, audience))
		if !s.deaf && o.Status.Authenticated {
			o.Status.Audiences = []string{audience}
		}
	case *authorizationv1.SubjectAccessReview:
		path, resource := o.Spec.NonResourceAttributes, o.Spec.ResourceAttributes
		o.Status.Allowed = o.Spec.User != "weak" && (path != nil && path.Path == "/metrics" && path.Verb == "get" ||
			resource != nil && resource.Group == "brokering.liqo.io" && resource.Resource == "providers" && resource.Verb == "update")
		o.Status.Denied = o.Spec.User == "denied"
	}
	return nil
}

func TestReview(t *testing.T) {
	update := Right{Verb: "update", Group: "brokering.liqo.io", Resource: "providers"}
	cases := map[string]struct {
		reason    string
		server    *apiServer
		audiences []string
		token     string
		right     Right
		want      Caller
		fails     bool
	}{
		"NoToken": {reason: "Nobody is asked about nothing.", right: update},
		"Unknown": {reason: "A made-up token has no name.", token: "nobody@" + ownAudience, right: update},
		"Long":    {reason: "No token is that long.", token: strings.Repeat("a", maxToken+1), right: update},
		"Allowed": {reason: "Who has the right has it.", token: "good@" + ownAudience, right: update, want: Caller{"good", true}},
		"Path": {
			reason: "So for a path.", token: "good@" + ownAudience, right: Right{Verb: "get", Path: "/metrics"}, want: Caller{"good", true},
		},
		"OtherPath": {
			reason: "A right to one path is none to another.", token: "good@" + ownAudience, right: Right{Verb: "get", Path: "/debug"},
			want: Caller{Name: "good"},
		},
		"Weak":   {reason: "A name is no right.", token: "weak@" + ownAudience, right: update, want: Caller{Name: "weak"}},
		"Denied": {reason: "A denial goes before a permission.", token: "denied@" + ownAudience, right: update, want: Caller{Name: "denied"}},
		"Audience": {
			reason: "A token for the audience counts.", audiences: []string{"us"}, token: "good@us", right: update, want: Caller{"good", true},
		},
		"Other": {
			reason: "A token for the API server must not be used elsewhere.", audiences: []string{"us"}, token: "good@" + ownAudience, right: update,
		},
		"Deaf": {
			reason: "An API server that does not look at audiences proves nothing.", server: &apiServer{deaf: true}, audiences: []string{"us"},
			token: "good@other", right: update,
		},
		"Down": {
			reason: "Who cannot be checked has no rights.", server: &apiServer{down: true}, token: "good@" + ownAudience, right: update, fails: true,
		},
		"NoAudience": {reason: "A token for another service is none for this cluster.", token: "good@us", right: update},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := New(cmp.Or(tc.server, &apiServer{}), tc.audiences...).Review(t.Context(), tc.token, tc.right)
			if got != tc.want || (err != nil) != tc.fails {
				t.Errorf("%s\nReview(): %+v, %v; want %+v", tc.reason, got, err, tc.want)
			}
		})
	}
}

// TestReviewAsksRarely checks that neither a caller that comes again nor one that makes
// up tokens can make the API server work without bound.
func TestReviewAsksRarely(t *testing.T) {
	server := &apiServer{}
	r := New(server)
	right := Right{Verb: "get", Path: "/metrics"}
	for range 1000 {
		if caller, err := r.Review(t.Context(), "good@"+ownAudience, right); err != nil || !caller.Allowed {
			t.Fatalf("Review(): %+v, %v", caller, err)
		}
	}
	if server.reviews != 2 {
		t.Errorf("1,000 requests with one token: the API server is asked %d times, want 2", server.reviews)
	}
	var busy int
	for i := range 1000 {
		if _, err := r.Review(t.Context(), fmt.Sprint(i), right); errors.Is(err, ErrBusy) {
			busy++
		}
	}
	if busy < 800 {
		t.Errorf("of 1,000 made-up tokens at once %d are turned away, want nearly all", busy)
	}
	if caller, err := r.Review(t.Context(), "good@"+ownAudience, right); err != nil || !caller.Allowed {
		t.Errorf("who is known is not admitted while strangers call: %+v, %v", caller, err)
	}
	if other, _ := r.Review(t.Context(), "good@"+ownAudience, Right{Verb: "get", Path: "/other"}); other.Allowed {
		t.Error("what was found for one right counts for another")
	}
}

// TestReviewAll holds that many rights are found with one review of the token, are remembered one by one, and cost as much as they ask.
func TestReviewAll(t *testing.T) {
	broker := func(verb, resource string) Right {
		return Right{Verb: verb, Group: "brokering.liqo.io", Resource: resource}
	}
	rights := []Right{broker("list", "providers"), broker("update", "providers"), broker("watch", "links")}
	for name, tc := range map[string]struct {
		reason  string
		token   string
		down    bool
		want    string
		has     []bool
		reviews int
		fails   bool
	}{
		"Good":    {reason: "It has one of them.", token: "good@us", want: "good", has: []bool{false, true, false}, reviews: 4},
		"Weak":    {reason: "A name is no right.", token: "weak@us", want: "weak", has: make([]bool, 3), reviews: 4},
		"Unknown": {reason: "Of nobody no rights are reviewed.", token: "nobody@us", has: make([]bool, 3), reviews: 1},
		"Other":   {reason: "A token for others does not count.", token: "good@other", has: make([]bool, 3), reviews: 1},
		"NoToken": {reason: "Nobody is asked about nothing.", has: make([]bool, 3)},
		"Long":    {reason: "No token is that long.", token: strings.Repeat("a", maxToken+1), has: make([]bool, 3)},
		"Down":    {reason: "Who cannot be checked has no rights.", token: "good@us", down: true, fails: true, reviews: 1},
	} {
		t.Run(name, func(t *testing.T) {
			server := &apiServer{down: tc.down}
			r := New(server, "us")
			got, has, err := r.ReviewAll(t.Context(), tc.token, rights)
			if got != tc.want || !slices.Equal(has, tc.has) || (err != nil) != tc.fails || server.reviews != tc.reviews {
				t.Errorf("%s\nReviewAll(): %q, %v, %v with %d reviews; want %q, %v with %d", tc.reason, got, has, err, server.reviews, tc.want,
					tc.has, tc.reviews)
			}
			if tc.fails {
				return
			}
			again, hasAgain, err := r.ReviewAll(t.Context(), tc.token, rights[1:])
			caller, errOne := r.Review(t.Context(), tc.token, rights[1])
			if again != tc.want || !slices.Equal(hasAgain, tc.has[1:]) || err != nil || errOne != nil || caller.Allowed != tc.has[1] ||
				server.reviews != tc.reviews {
				t.Errorf("it is not remembered: %q, %v, %+v, %v, %v with %d reviews", again, hasAgain, caller, err, errOne, server.reviews)
			}
		})
	}
	server := &apiServer{}
	r, busy := New(server), 0
	for i := range 100 {
		if _, _, err := r.ReviewAll(t.Context(), fmt.Sprintf("user%d@%s", i, ownAudience), rights); errors.Is(err, ErrBusy) {
			busy++
		}
	}
	if busy < 80 || busy > 90 || server.reviews != 4*(100-busy) {
		t.Errorf("of 100 callers at once %d are turned away, and the API server is asked %d times", busy, server.reviews)
	}
	for i := range 30 {
		if caller, err := r.Review(t.Context(), fmt.Sprintf("good%d@%s", i, ownAudience), rights[1]); err != nil || !caller.Allowed {
			t.Errorf("while many ask for all that they may do, others are not admitted: %+v, %v", caller, err)
		}
	}
}

func TestProtect(t *testing.T) {
	cases := map[string]struct {
		reason string
		down   bool
		header string
		method string
		path   string
		code   int
	}{
		"Nobody":  {reason: "A caller must show who it is.", path: "/metrics", code: http.StatusUnauthorized},
		"Basic":   {reason: "Only bearer tokens count.", header: "Basic good@" + ownAudience, path: "/metrics", code: http.StatusUnauthorized},
		"Unknown": {reason: "The token must be known.", header: "Bearer nobody@" + ownAudience, path: "/metrics", code: http.StatusUnauthorized},
		"Weak": {
			reason: "The caller must have the right.", header: "Bearer weak@" + ownAudience, path: "/metrics", code: http.StatusForbidden,
		},
		"Method": {
			reason: "The right is to one method.", method: http.MethodPost, header: "Bearer good@" + ownAudience, path: "/metrics",
			code: http.StatusForbidden,
		},
		"Down": {
			reason: "Who cannot be checked is not admitted.", down: true, header: "Bearer good@" + ownAudience, path: "/metrics",
			code: http.StatusInternalServerError,
		},
		"Good": {reason: "Who has the right is admitted.", header: "bearer good@" + ownAudience, path: "/metrics", code: http.StatusOK},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			const secret = "figures"
			h := New(&apiServer{down: tc.down}).Protect(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				_, _ = w.Write([]byte(secret))
			}))
			request := httptest.NewRequestWithContext(t.Context(), tc.method, tc.path, http.NoBody)
			if tc.header != "" {
				request.Header.Set("Authorization", tc.header)
			}
			w := httptest.NewRecorder()
			h.ServeHTTP(w, request)
			if w.Code != tc.code || strings.Contains(w.Body.String(), secret) != (tc.code == http.StatusOK) {
				t.Errorf("%s\n%d %s, want %d", tc.reason, w.Code, w.Body, tc.code)
			}
		})
	}
}

func TestKnown(t *testing.T) {
	server := &apiServer{}
	r := New(server)
	review := func(token string) {
		t.Helper()
		if _, err := r.Review(t.Context(), token, Right{Verb: "get", Path: "/metrics"}); err != nil {
			t.Fatal(err)
		}
	}
	if _, ok := r.Known("good@" + ownAudience); ok {
		t.Error("a caller is known before it was looked up")
	}
	for _, token := range []string{"good@" + ownAudience, "weak@" + ownAudience, "nobody@" + ownAudience, ""} {
		review(token)
	}
	asked := server.reviews
	cases := map[string]struct{ reason, token, want string }{
		"Allowed": {"Who was looked up is known.", "good@" + ownAudience, "good"},
		"Weak":    {"Also without the right.", "weak@" + ownAudience, "weak"},
		"Nobody":  {"A made-up token is nobody's.", "nobody@" + ownAudience, ""},
		"Other":   {"Another token is not known yet.", "good@us", ""},
		"None":    {"No token is nobody's.", "", ""},
		"Long":    {"No token is that long.", strings.Repeat("a", maxToken+1), ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got, ok := r.Known(tc.token); got != tc.want || ok != (tc.want != "") {
				t.Errorf("%s\nKnown() = %q, %t, want %q", tc.reason, got, ok, tc.want)
			}
		})
	}
	if server.reviews != asked {
		t.Error("the API server is asked who is known")
	}
}
