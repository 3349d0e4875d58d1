// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package answer

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta/testrestmapper"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/capacitorset/liqo-broker/pkg/api/v1alpha1"
	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
	v1 "github.com/capacitorset/liqo-broker/pkg/liqo/v1"
	"github.com/capacitorset/liqo-broker/pkg/shown/apiv1"
	"github.com/capacitorset/liqo-broker/pkg/shown/feed"
)

// asked is what is answered to a request.
func asked(t *testing.T, a *Answers, method, path, body string) *httptest.ResponseRecorder {
	t.Helper()
	w := httptest.NewRecorder()
	a.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), method, path, strings.NewReader(body)))
	return w
}

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// TestScheduling sets how clusters are scheduled: what is asked is looked at first, and the API server's warnings and refusals come back.
func TestScheduling(t *testing.T) {
	const milan, rome = "/api/v1/providers/milan/scheduling", "/api/v1/consumers/rome/scheduling"
	for name, tc := range map[string]struct {
		reason, path, body string
		cfg                Config
		status             int
		says               string
		is                 v1alpha1.Scheduling
	}{
		"Drain":    {"A provider is drained.", milan, `{"scheduling":"Drained"}`, Config{}, 200, `{"scheduling":"Drained"}`, "Drained"},
		"Suspend":  {"A consumer is suspended.", rome, `{"scheduling":"Suspended"}`, Config{}, 200, "Suspended", ""},
		"Dry":      {"A dry run changes nothing.", milan + "?dryRun=All", `{"scheduling":"Drained"}`, Config{}, 200, "Drained", ""},
		"OtherDry": {"There is one kind of dry run.", milan + "?dryRun=Most", `{"scheduling":"Drained"}`, Config{}, 422, "dryRun is All", ""},
		"ReadOnly": {"Nothing is changed if people say so.", milan, `{"scheduling":"Drained"}`, Config{ReadOnly: true}, 403, "--read-only", ""},
		"Word":     {"Only some words mean something.", milan, `{"scheduling":"drained"}`, Config{}, 422, "Active, Cordoned, Drained", ""},
		"OfOthers": {"They are others for consumers.", rome, `{"scheduling":"Drained"}`, Config{}, 422, "Active, Suspended", ""},
		"Field":    {"Nothing else can be changed.", milan, `{"scheduling":"Drained","spec":{}}`, Config{}, 400, "unknown field", ""},
		"Long":     {"What is too long is not read.", milan, `{"scheduling":"` + strings.Repeat("a", maxBody), Config{}, 400, "too large", ""},
		"None":     {"There must be such a provider.", "/api/v1/providers/oslo/scheduling", `{"scheduling":"Active"}`, Config{}, 404, "oslo", ""},
		"Other":    {"There is nothing else.", "/api/v1/providers/milan", `{}`, Config{}, 404, "there is no PUT", ""},
	} {
		t.Run(name, func(t *testing.T) {
			scheme := runtime.NewScheme()
			if err := v1alpha1.AddToScheme(scheme); err != nil {
				t.Fatal(err)
			}
			provider := &v1alpha1.Provider{ObjectMeta: metav1.ObjectMeta{Name: "milan"}}
			consumer := &v1alpha1.Consumer{ObjectMeta: metav1.ObjectMeta{Name: "rome"}}
			c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(provider, consumer).Build()
			tc.cfg.Broker = true
			w := asked(t, answersOf(tc.cfg, c), http.MethodPut, tc.path, tc.body)
			if w.Code != tc.status || !strings.Contains(w.Body.String(), tc.says) {
				t.Errorf("%s\nit answers %d: %s", tc.reason, w.Code, w.Body)
			}
			if err := c.Get(t.Context(), client.ObjectKeyFromObject(provider), provider); err != nil || provider.Spec.Scheduling != tc.is {
				t.Errorf("%s\nthe provider is %q (%v)", tc.reason, provider.Spec.Scheduling, err)
			}
		})
	}
}

// TestPreview asks what a drain would do: one question at a time, and what the API server refuses is refused.
func TestPreview(t *testing.T) {
	var asking atomic.Int32
	cfg := Config{Broker: true, Preview: func(_ context.Context, id cluster.ID) (apiv1.DrainPreview, error) {
		if asking.Add(1) > 1 {
			t.Error("two previews are made at the same time")
		}
		time.Sleep(time.Millisecond)
		asking.Add(-1)
		if id != "milan" {
			return apiv1.DrainPreview{}, apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, "", errors.New("no right"))
		}
		return apiv1.DrainPreview{Moves: 3}, nil
	}}
	a := answersOf(cfg, fake.NewFakeClient())
	var all sync.WaitGroup
	for range 8 {
		for id, want := range map[string]string{"milan": `"moves":3`, "oslo": "no right"} {
			all.Go(func() {
				w := asked(t, a, http.MethodGet, "/api/v1/providers/"+id+"/drain", "")
				if (w.Code == http.StatusOK) != (id == "milan") || !strings.Contains(w.Body.String(), want) {
					t.Errorf("%s: %d %s", id, w.Code, w.Body)
				}
			})
		}
	}
	all.Wait()
}

// TestRefusals has the API server refuse a change: what it says is shown, but a 401 of it is not one of the page's key.
func TestRefusals(t *testing.T) {
	of := schema.GroupResource{Group: "brokering.liqo.io", Resource: "providers"}
	for name, tc := range map[string]struct {
		err    error
		status int
		says   string
	}{
		"Forbidden":    {apierrors.NewForbidden(of, "milan", errors.New("no right")), 403, "no right"},
		"Conflict":     {apierrors.NewConflict(of, "milan", errors.New("changed")), 409, "changed"},
		"Unauthorized": {apierrors.NewUnauthorized("who are you"), 503, "who are you"},
		"Gone":         {errors.New("connection refused\x1b[2J"), 503, "refused?[2J"},
	} {
		t.Run(name, func(t *testing.T) {
			c := interceptor.NewClient(fake.NewFakeClient(), interceptor.Funcs{
				Patch: func(context.Context, client.WithWatch, client.Object, client.Patch, ...client.PatchOption) error {
					return tc.err
				},
			})
			w := asked(t, answersOf(Config{Broker: true}, c), http.MethodPut, "/api/v1/providers/milan/scheduling", `{"scheduling":"Active"}`)
			if w.Code != tc.status || !strings.Contains(w.Body.String(), tc.says) {
				t.Errorf("it answers %d: %s", w.Code, w.Body)
			}
		})
	}
}

// TestUnread has the API server answer no question for all of a kind: what is waited for is named.
func TestUnread(t *testing.T) {
	silent := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }))
	defer silent.Close()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, v1alpha1.AddToScheme, v1.Line{}.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	fakes := fake.NewClientBuilder().WithScheme(scheme).WithRESTMapper(testrestmapper.TestOnlyStaticRESTMapper(scheme)).Build()
	c := interceptor.NewClient(fakes, interceptor.Funcs{
		Create: func(_ context.Context, _ client.WithWatch, object client.Object, _ ...client.CreateOption) error {
			if review, is := object.(*authorizationv1.SelfSubjectAccessReview); is {
				review.Status.Allowed = true
			}
			return nil
		},
	})
	a := answersOf(Config{Broker: true, Rest: &rest.Config{Host: silent.URL}, Scheme: scheme, Line: v1.Line{}}, c)
	ctx, cancel := context.WithCancel(t.Context())
	ran := make(chan error, 1)
	go func() { ran <- a.Run(ctx) }()
	says := ""
	for begun := time.Now(); !strings.Contains(says, "Pod, Provider,") && time.Since(begun) < 20*time.Second; {
		timed, end := context.WithTimeout(ctx, 100*time.Millisecond)
		w := httptest.NewRecorder()
		a.ServeHTTP(w, httptest.NewRequestWithContext(timed, http.MethodGet, "/api/v1/me", http.NoBody))
		says = w.Body.String()
		end()
	}
	if !strings.Contains(says, "there is no answer yet to the question for all of ") || !strings.Contains(says, "Pod, Provider,") {
		t.Errorf("it says %s", says)
	}
	cancel()
	if err := <-ran; err != nil {
		t.Error(err)
	}
}

// TestWarnings hands each request its own warnings, of which none can write a header of its own.
func TestWarnings(t *testing.T) {
	one, heardOne := withWarnings(t.Context())
	two, heardTwo := withWarnings(t.Context())
	said := warnings{}
	said.HandleWarningHeaderWithContext(one, 299, "-", "12 pods\r\nSet-Cookie: a=b \"would\" move")
	said.HandleWarningHeaderWithContext(one, 199, "-", "of another kind")
	said.HandleWarningHeaderWithContext(two, 299, "-", "")
	said.HandleWarningHeaderWithContext(t.Context(), 299, "-", "of no request")
	if diff := cmp.Diff([]string{`299 - "12 pods? Set-Cookie: a=b \"would\" move"`}, heardOne.all()); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
	if got := heardTwo.all(); len(got) != 0 {
		t.Errorf("another request hears %q", got)
	}
	for range 2 * maxWarnings {
		said.HandleWarningHeaderWithContext(two, 299, "-", "again")
	}
	if got := heardTwo.all(); len(got) != maxWarnings {
		t.Errorf("%d warnings are kept", len(got))
	}
}

// TestAccess shows what somebody may see, and why not the rest.
func TestAccess(t *testing.T) {
	all, seen := accessOf([]feed.Kind{"providers", "workloads"}, func(kind feed.Kind) []string {
		if kind == "workloads" {
			return []string{"list nodes"}
		}
		return nil
	})
	if diff := cmp.Diff([]apiv1.Watchable{{Kind: "providers"}, {Kind: "workloads", Missing: []string{"list nodes"}}}, all); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
	if diff := cmp.Diff([]feed.Kind{"providers"}, seen); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
}
