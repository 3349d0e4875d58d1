// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	stdcmp "cmp"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/danielgtaylor/huma/v2"
	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/capacitorset/liqo-broker/pkg/api/v1alpha1"
	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
	v09 "github.com/capacitorset/liqo-broker/pkg/liqo/v09"
	"github.com/capacitorset/liqo-broker/pkg/liqo/v09/liqotest"
	"github.com/capacitorset/liqo-broker/pkg/serving/delegatedauth"
	"github.com/capacitorset/liqo-broker/pkg/serving/source"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// host is what callers call the broker.
const host = "broker.example"

// providerID is the cluster that the documentation of the API toggles.
const providerID = "fb51002c-7f1b-4327-898b-a8a5aa0f6f95"

func newClient(t *testing.T, funcs interceptor.Funcs, objects ...client.Object) client.Client {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		v09.AddToScheme, v1alpha1.AddToScheme, authenticationv1.AddToScheme, authorizationv1.AddToScheme,
	} {
		if err := add(scheme); err != nil {
			t.Fatalf("AddToScheme(): %v", err)
		}
	}
	return fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).WithInterceptorFuncs(funcs).Build()
}

func newHandler(t *testing.T, cfg Config) http.Handler {
	t.Helper()
	cfg.Log, cfg.Line = logr.Discard(), v09.Line{}
	cfg.Reviewer = delegatedauth.New(cfg.Client, Audience)
	api, err := New(cfg)
	if err != nil {
		t.Fatalf("New(): %v", err)
	}
	return api.Handler()
}

// call sends a request over TLS, unless the target says otherwise.
func call(t *testing.T, h http.Handler, method, target string, header ...string) *httptest.ResponseRecorder {
	t.Helper()
	if strings.HasPrefix(target, "/") {
		target = "https://" + host + target
	}
	r := httptest.NewRequestWithContext(t.Context(), method, target, http.NoBody)
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

func foreignCluster() *v09.ForeignCluster {
	fc := &v09.ForeignCluster{ObjectMeta: metav1.ObjectMeta{
		Name:        "polito-labs-79eba8",
		Labels:      map[string]string{"discovery.liqo.io/discovery-type": "LAN", "example.com/contract": "s3cret"},
		Annotations: map[string]string{"kubectl.kubernetes.io/last-applied-configuration": "s3cret"},
		ManagedFields: []metav1.ManagedFieldsEntry{{
			Manager: "s3cret", Operation: metav1.ManagedFieldsOperationApply, APIVersion: "v1", FieldsType: "FieldsV1",
			FieldsV1: &metav1.FieldsV1{Raw: []byte("{}")},
		}},
	}}
	fc.Spec.ClusterIdentity.ClusterID = "32f0b45b-5c06-4cc4-84b6-03a323ffc93d"
	fc.Spec.ClusterIdentity.ClusterName = "polito-labs"
	fc.Spec.OutgoingPeeringEnabled = "Auto"
	fc.Spec.IncomingPeeringEnabled = "Auto"
	fc.Spec.ForeignAuthURL = "https://user:s3cret@194.116.77.112:31520/?token=s3cret#s3cret"
	fc.Spec.ForeignProxyURL = "https://s3cret"
	fc.Spec.InsecureSkipTLSVerify = new(false)
	fc.Spec.TTL = 90
	fc.Status.TenantNamespace.Local = "s3cret"
	return fc
}

func TestClusters(t *testing.T) {
	h := newHandler(t, Config{Client: newClient(t, interceptor.Funcs{}, foreignCluster()), Catalog: true})
	w := call(t, h, http.MethodGet, "/api/clusters")
	if w.Code != http.StatusOK || w.Header().Get("Content-Type") != "application/json" {
		t.Fatalf("GET /api/clusters: %d, %s", w.Code, w.Header())
	}
	if strings.Contains(w.Body.String(), "s3cret") {
		t.Errorf("the answer holds what must not be shown: %s", w.Body)
	}
	var got []map[string]any
	if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil {
		t.Fatalf("no JSON array: %v: %s", err, w.Body)
	}
	want := []map[string]any{{
		"kind":       "ForeignCluster",
		"apiVersion": "discovery.liqo.io/v1alpha1",
		"metadata": map[string]any{
			"name":              "polito-labs-79eba8",
			"labels":            map[string]any{"discovery.liqo.io/discovery-type": "LAN"},
			"creationTimestamp": nil,
		},
		"spec": map[string]any{
			"clusterIdentity": map[string]any{
				"clusterID": "32f0b45b-5c06-4cc4-84b6-03a323ffc93d", "clusterName": "polito-labs",
			},
			"outgoingPeeringEnabled": "Auto",
			"incomingPeeringEnabled": "Auto",
			"foreignAuthUrl":         "https://194.116.77.112:31520/",
			"insecureSkipTLSVerify":  false,
			"ttl":                    90.,
		},
		"status": map[string]any{},
	}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("GET /api/clusters: -want +got\n%s", diff)
	}
}

func TestNoClustersIsAnEmptyArray(t *testing.T) {
	h := newHandler(t, Config{Client: newClient(t, interceptor.Funcs{}), Orchestrator: true})
	if got := strings.TrimSpace(call(t, h, http.MethodGet, "/api/clusters").Body.String()); got != "[]" {
		t.Errorf("GET /api/clusters: %s, want []", got)
	}
}

// TestWhoIsListed asks for the clusters as everybody, and as somebody who may list Providers.
func TestWhoIsListed(t *testing.T) {
	named := func(name string, outgoing, incoming bool) *v09.ForeignCluster {
		return liqotest.ForeignCluster(cluster.Identity{ID: cluster.ID("id-" + name), Name: name}, outgoing, incoming)
	}
	provider, off := named("provider", true, false), named("provider-off", true, false)
	consumer, backwards := named("consumer", false, true), named("consumer-peered-back", true, true)
	both, former := named("both", true, true), named("former", false, false)
	switched := func(name string, is v1alpha1.Scheduling) *v1alpha1.Provider {
		return &v1alpha1.Provider{ObjectMeta: metav1.ObjectMeta{Name: "id-" + name}, Spec: v1alpha1.ProviderSpec{Scheduling: is}}
	}
	objects := []client.Object{
		provider, off, consumer, backwards, both, former,
		switched("provider", v1alpha1.SchedulingActive), switched("provider-off", v1alpha1.SchedulingDrained),
		switched("consumer-peered-back", v1alpha1.SchedulingDrained), switched("both", v1alpha1.SchedulingCordoned),
		switched("former", v1alpha1.SchedulingActive),
	}
	everybody := []string{"both", "consumer", "consumer-peered-back", "former", "provider", "provider-off"}
	providers := []string{"both", "provider", "provider-off"}
	cases := map[string]struct {
		reason string
		cfg    Config
		token  string
		code   int
		want   []string
	}{
		"Catalog": {
			reason: "A catalog without consumers shows to everybody who advertises: also who has a peering towards it.", cfg: Config{Catalog: true},
			code: http.StatusOK, want: everybody,
		},
		"Orchestrator": {
			reason: "Strangers learn of no consumer.", cfg: Config{Catalog: true, Orchestrator: true}, code: http.StatusOK, want: providers,
		},
		"Aggregator": {
			reason: "Its consumers are not to learn of the providers.", cfg: Config{Catalog: true, Orchestrator: true, Aggregator: true},
			code: http.StatusUnauthorized,
		},
		"Asked": {
			reason: "Who wants it open says so.", cfg: Config{Catalog: true, Aggregator: true, AnonymousCatalog: true},
			code: http.StatusOK, want: providers,
		},
		"Reader": {
			reason: "Who may list Providers sees all.", cfg: Config{Orchestrator: true, Aggregator: true}, token: "lister", code: http.StatusOK,
			want: everybody,
		},
		"Weak": {
			reason: "Who may not is told so.", cfg: Config{Orchestrator: true, Aggregator: true}, token: "good", code: http.StatusForbidden,
		},
		"Unknown": {
			reason: "A token that nobody knows is not taken for none.", cfg: Config{Catalog: true}, token: "bad", code: http.StatusUnauthorized,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			tc.cfg.Client = newClient(t, reviews(), objects...)
			var header []string
			if tc.token != "" {
				header = []string{"Authorization", "Bearer " + tc.token}
			}
			w := call(t, newHandler(t, tc.cfg), http.MethodGet, "/api/clusters", header...)
			if w.Code != tc.code {
				t.Fatalf("%s\n%d %s, want %d", tc.reason, w.Code, w.Body, tc.code)
			}
			if tc.code != http.StatusOK {
				return
			}
			var list []v09.PublicForeignCluster
			if err := json.Unmarshal(w.Body.Bytes(), &list); err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, c := range list {
				got = append(got, c.Spec.ClusterIdentity.ClusterName)
			}
			slices.Sort(got)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\n-want +got\n%s", tc.reason, diff)
			}
			if told := strings.Contains(w.Body.String(), "IncomingPeering\""); told != (tc.token != "") {
				t.Errorf("%s\ntells who consumes: %t", tc.reason, told)
			}
		})
	}
}

func TestToggle(t *testing.T) {
	cases := map[string]struct {
		reason string
		method string
		target string
		was    v1alpha1.Scheduling
		want   bool
	}{
		"Off": {reason: "A provider is drained.", method: http.MethodGet, target: "enable=false", want: false},
		"On":  {reason: "A provider is activated.", method: http.MethodGet, target: "enable=true", was: v1alpha1.SchedulingDrained, want: true},
		"Uncordon": {
			reason: "So is one that is cordoned.", method: http.MethodPost, target: "enable=true", was: v1alpha1.SchedulingCordoned, want: true,
		},
		"Drain": {reason: "Or it is drained.", method: http.MethodPost, target: "enable=false", was: v1alpha1.SchedulingCordoned, want: false},
		"Post":  {reason: "POST does the same.", method: http.MethodPost, target: "enable=false", was: v1alpha1.SchedulingActive, want: false},
		"AlreadyOff": {
			reason: "A repeated call is no error.", method: http.MethodPost, target: "enable=false", was: v1alpha1.SchedulingDrained, want: false,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			p := &v1alpha1.Provider{ObjectMeta: metav1.ObjectMeta{Name: providerID}, Spec: v1alpha1.ProviderSpec{Scheduling: tc.was}}
			c := newClient(t, reviews(), p)
			h := newHandler(t, Config{Client: c, Orchestrator: true})
			if w := call(t, h, tc.method, "/api/toggle?id="+providerID+"&"+tc.target, "Authorization", "Bearer good"); w.Code != http.StatusOK {
				t.Errorf("%s\n%s: %d %s", tc.reason, tc.target, w.Code, w.Body)
			}
			if got := enabled(t, c); got != tc.want {
				t.Errorf("%s\nenabled = %v, want %v", tc.reason, got, tc.want)
			}
		})
	}
}

// TestToggleWithoutToken turns a provider off as somebody whom nobody knows.
func TestToggleWithoutToken(t *testing.T) {
	cases := map[string]struct {
		reason string
		open   bool
		method string
		header []string
		code   int
	}{
		"Get":  {reason: "Nobody turns a provider off without saying who it is.", method: http.MethodGet, code: http.StatusUnauthorized},
		"Post": {reason: "So with POST.", method: http.MethodPost, code: http.StatusUnauthorized},
		"OpenGet": {
			reason: "A link changes nothing, whatever the flags say.", open: true, method: http.MethodGet, code: http.StatusMethodNotAllowed,
		},
		"OpenPost": {reason: "Who asks for it has an open switch.", open: true, method: http.MethodPost, code: http.StatusOK},
		"OpenToken": {
			reason: "A token that is shown must be good.", open: true, method: http.MethodPost, header: []string{"Authorization", "Bearer bad"},
			code: http.StatusUnauthorized,
		},
		"CrossSite": {
			reason: "A page of another site does not turn it.", open: true, method: http.MethodPost,
			header: []string{"Sec-Fetch-Site", "cross-site"}, code: http.StatusForbidden,
		},
		"SameSite": {
			reason: "Nor does one of another host of the site.", open: true, method: http.MethodPost,
			header: []string{"Sec-Fetch-Site", "same-site"}, code: http.StatusForbidden,
		},
		"Origin": {
			reason: "Browsers that do not say so say whose page it is.", open: true, method: http.MethodPost,
			header: []string{"Origin", "https://evil.example"}, code: http.StatusForbidden,
		},
		"Dashboard": {
			reason: "A page from the same place does.", open: true, method: http.MethodPost,
			header: []string{"Sec-Fetch-Site", "same-origin", "Origin", "https://" + host}, code: http.StatusOK,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c := newClient(t, reviews(), &v1alpha1.Provider{ObjectMeta: metav1.ObjectMeta{Name: providerID}})
			h := newHandler(t, Config{Client: c, Orchestrator: true, AnonymousToggle: tc.open})
			w := call(t, h, tc.method, "/api/toggle?id="+providerID+"&enable=false", tc.header...)
			if w.Code != tc.code {
				t.Errorf("%s\n%d %s, want %d", tc.reason, w.Code, w.Body, tc.code)
			}
			if got := !enabled(t, c); got != (tc.code == http.StatusOK) {
				t.Errorf("%s\nturned off: %v", tc.reason, got)
			}
		})
	}
	c := newClient(t, reviews(), &v1alpha1.Provider{ObjectMeta: metav1.ObjectMeta{Name: providerID}})
	h := newHandler(t, Config{Client: c, Orchestrator: true})
	w := call(t, h, http.MethodGet, "/api/toggle?id="+providerID+"&enable=false", "Authorization", "Bearer good", "Sec-Fetch-Site",
		"cross-site")
	if w.Code != http.StatusForbidden || !enabled(t, c) {
		t.Errorf("a page of another site toggles with a token: %d %s", w.Code, w.Body)
	}
}

// TestTokenInClear sends a token without TLS: it is not even looked up, and nothing is served.
func TestTokenInClear(t *testing.T) {
	asked := false
	funcs := interceptor.Funcs{Create: func(context.Context, client.WithWatch, client.Object, ...client.CreateOption) error {
		asked = true
		return nil
	}}
	c := newClient(t, funcs, &v1alpha1.Provider{ObjectMeta: metav1.ObjectMeta{Name: providerID}})
	h := newHandler(t, Config{Client: c, Catalog: true, Orchestrator: true, AnonymousToggle: true})
	for _, path := range []string{
		"/api/clusters", "/api/v1/decisions", "/api/toggle?enable=false&id=" + providerID, "/debug/namespaces/shop",
	} {
		if w := call(t, h, http.MethodPost, "http://"+host+path, "Authorization", "Bearer good"); w.Code != http.StatusForbidden {
			t.Errorf("%s: %d %s, want %d", path, w.Code, w.Body, http.StatusForbidden)
		}
	}
	if asked || !enabled(t, c) {
		t.Errorf("the token was looked up: %t; the provider is on: %t", asked, enabled(t, c))
	}
	if w := call(t, h, http.MethodGet, "http://"+host+"/api/clusters"); w.Code != http.StatusOK {
		t.Errorf("what needs no token: %d %s", w.Code, w.Body)
	}
}

// TestRate calls faster than the API answers one peer, from all its addresses: others are not held up.
func TestRate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // No time passes between the calls.
		peer := netip.MustParsePrefix("192.0.2.0/24")
		h := newHandler(t, Config{Client: newClient(t, interceptor.Funcs{}), Catalog: true, Source: func(a netip.Addr) source.Source {
			if peer.Contains(a) {
				return source.Peer("peer")
			}
			return source.Address(a)
		}})
		from := func(address string) int {
			r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "https://"+host+"/api/clusters", http.NoBody)
			r.RemoteAddr = address
			w := httptest.NewRecorder()
			h.ServeHTTP(w, r)
			return w.Code
		}
		refused := 0
		for i := range 2 * atOnceEach {
			if code := from(fmt.Sprintf("192.0.2.%d:1000", i)); code == http.StatusTooManyRequests {
				refused++
			} else if code != http.StatusOK {
				t.Fatalf("request %d: %d", i, code)
			}
		}
		if refused != atOnceEach {
			t.Errorf("of %d requests at once %d are refused, want %d", 2*atOnceEach, refused, atOnceEach)
		}
		if code := from("203.0.113.2:1000"); code != http.StatusOK {
			t.Errorf("another caller: %d", code)
		}
		refused = 0
		for i := range 3 * atOnceAll {
			if from(fmt.Sprintf("198.51.%d.%d:1", i/256, i%256)) == http.StatusTooManyRequests {
				refused++
			}
		}
		if refused < atOnceAll {
			t.Errorf("of %d callers at once %d are refused, want about %d", 3*atOnceAll, refused, 2*atOnceAll)
		}
	})
}

// TestRateOfKnownCallers has strangers call more often than is answered: who is known is not held up, and has a bound too.
func TestRateOfKnownCallers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // No time passes between the calls.
		c := newClient(t, reviews(), &v1alpha1.Provider{ObjectMeta: metav1.ObjectMeta{Name: providerID}})
		h := newHandler(t, Config{Client: c, Catalog: true, Orchestrator: true})
		toggle := func() int {
			return call(t, h, http.MethodPost, "/api/toggle?enable=false&id="+providerID, "Authorization", "Bearer good").Code
		}
		if code := toggle(); code != http.StatusOK {
			t.Fatalf("before anybody else calls: %d", code)
		}
		for range 2 * atOnceEach {
			call(t, h, http.MethodGet, "/api/clusters")
		}
		if code := call(t, h, http.MethodGet, "/api/clusters").Code; code != http.StatusTooManyRequests {
			t.Fatalf("strangers are answered %d", code)
		}
		if code := call(t, h, http.MethodPost, "http://"+host+"/api/toggle?enable=false&id="+providerID, "Authorization",
			"Bearer good").Code; code != http.StatusTooManyRequests {
			t.Errorf("a token in clear is answered %d", code)
		}
		refused := 0
		for i := range 2 * atOnceEach {
			if code := toggle(); code == http.StatusTooManyRequests {
				refused++
			} else if code != http.StatusOK {
				t.Fatalf("request %d: %d", i, code)
			}
		}
		if refused == 2*atOnceEach || refused < atOnceEach/2 {
			t.Errorf("of %d requests of a known caller %d are refused, want about %d", 2*atOnceEach, refused, atOnceEach)
		}
	})
}

// TestRateOfKnownConsumers has strangers call more often than is answered: a consumer that was identified lately is answered, and has a
// bound too.
func TestRateOfKnownConsumers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // No time passes between the calls.
		h := newHandler(t, Config{
			Client: newClient(t, reviews()), Catalog: true, Orchestrator: true,
			Known: func(connection *tls.ConnectionState) (cluster.ID, bool) {
				return "consumer", connection.ServerName == "known"
			},
		})
		from := func(name string) int {
			r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "https://"+host+"/api/clusters", http.NoBody)
			r.TLS.ServerName = name
			w := httptest.NewRecorder()
			h.ServeHTTP(w, r)
			return w.Code
		}
		for range 2 * atOnceEach {
			from("stranger")
		}
		if code := from("stranger"); code != http.StatusTooManyRequests {
			t.Fatalf("strangers are answered %d", code)
		}
		refused := 0
		for range 2 * atOnceEach {
			if from("known") == http.StatusTooManyRequests {
				refused++
			}
		}
		if refused == 2*atOnceEach || refused < atOnceEach/2 {
			t.Errorf("of %d requests of a known consumer %d are refused, want about %d", 2*atOnceEach, refused, atOnceEach)
		}
	})
}

func enabled(t *testing.T, c client.Client) bool {
	t.Helper()
	var p v1alpha1.Provider
	if err := c.Get(t.Context(), client.ObjectKey{Name: providerID}, &p); err != nil {
		t.Fatalf("Get(): %v", err)
	}
	return p.EffectiveScheduling() == v1alpha1.SchedulingActive
}

func TestBadInputChangesNothing(t *testing.T) {
	all := Config{Catalog: true, Orchestrator: true}
	cases := map[string]struct {
		reason string
		cfg    Config
		token  string // By default that of somebody who may toggle.
		method string
		target string
		funcs  interceptor.Funcs
		code   int
		detail string
	}{
		"NoID": {
			reason: "The provider must be named.", cfg: all, target: "/api/toggle?enable=false",
			code: http.StatusBadRequest, detail: "the parameter id is missing",
		},
		"NoEnable": {
			reason: "The state must be named.", cfg: all, target: "/api/toggle?id=" + providerID,
			code: http.StatusBadRequest, detail: "the parameter enable is missing",
		},
		"Maybe": {
			reason: "There are two states.", cfg: all, target: "/api/toggle?id=" + providerID + "&enable=maybe",
			code: http.StatusBadRequest, detail: `the parameter enable is "maybe": it must be true or false`,
		},
		"Spelling": {
			reason: "The spelling is that of the documentation.", cfg: all, target: "/api/toggle?id=" + providerID + "&enable=FALSE",
			code: http.StatusBadRequest, detail: `the parameter enable is "FALSE": it must be true or false`,
		},
		"TwoStates": {
			reason: "Which of two values is meant cannot be known.", cfg: all,
			target: "/api/toggle?id=" + providerID + "&enable=false&enable=true",
			code:   http.StatusBadRequest, detail: "the parameter enable is given 2 times",
		},
		"Escape": {
			reason: "A broken escape is not guessed.", cfg: all, target: "/api/toggle?id=%zz&enable=false",
			code: http.StatusBadRequest, detail: `the parameters cannot be read: invalid URL escape "%zz"`,
		},
		"Long": {
			reason: "Parameters have a bound.", cfg: all, target: "/api/toggle?enable=false&id=" + strings.Repeat("a", maxQuery),
			code: http.StatusBadRequest, detail: "the parameters are longer than 1024 bytes",
		},
		"Unknown": {
			reason: "An unknown provider is not made up.", cfg: all, target: "/api/toggle?id=nobody&enable=false",
			code: http.StatusNotFound, detail: `no provider has the cluster ID "nobody"`,
		},
		"Put": {
			reason: "Other methods are refused.", cfg: all, method: http.MethodPut,
			target: "/api/toggle?id=" + providerID + "&enable=false",
			code:   http.StatusMethodNotAllowed, detail: "PUT is not allowed here, only GET, POST",
		},
		"Head": {
			reason: "HEAD must not change anything.", cfg: all, method: http.MethodHead,
			target: "/api/toggle?id=" + providerID + "&enable=false",
			code:   http.StatusMethodNotAllowed, detail: "HEAD is not allowed here, only GET, POST",
		},
		"NoOrchestrator": {
			reason: "A catalog has no switch.", cfg: Config{Catalog: true},
			target: "/api/toggle?id=" + providerID + "&enable=false",
			code:   http.StatusNotFound, detail: "providers cannot be toggled: the broker does not run as orchestrator",
		},
		"NoCatalog": {
			reason: "An aggregator shows no clusters.", target: "/api/clusters",
			code: http.StatusNotFound, detail: "the list of clusters is not served: the broker runs neither as catalog nor as orchestrator",
		},
		"Elsewhere": {
			reason: "Other paths say which there are.", cfg: all, target: "/api/nothing",
			code: http.StatusNotFound, detail: messageNoPath,
		},
		"Broken": {
			reason: "What went wrong inside is not shown.", cfg: all, token: "lister", target: "/api/clusters",
			funcs: interceptor.Funcs{List: func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) error {
				return errors.New("s3cret")
			}},
			code: http.StatusInternalServerError, detail: messageFailed,
		},
		"NotWritten": {
			reason: "A failed change is an error.", cfg: all, target: "/api/toggle?id=" + providerID + "&enable=false",
			funcs: interceptor.Funcs{
				Patch: func(context.Context, client.WithWatch, client.Object, client.Patch, ...client.PatchOption) error {
					return errors.New("s3cret")
				},
			},
			code: http.StatusInternalServerError, detail: messageFailed,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			tc.funcs.Create = reviews().Create
			c := newClient(t, tc.funcs, &v1alpha1.Provider{ObjectMeta: metav1.ObjectMeta{Name: providerID}})
			tc.cfg.Client = c
			if tc.method == "" {
				tc.method = http.MethodGet
			}
			w := call(t, newHandler(t, tc.cfg), tc.method, tc.target, "Authorization", "Bearer "+stdcmp.Or(tc.token, "good"))
			var got huma.ErrorModel
			if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil {
				t.Fatalf("%s\nno problem document: %v: %s", tc.reason, err, w.Body)
			}
			want := huma.ErrorModel{Title: http.StatusText(tc.code), Status: tc.code, Detail: tc.detail}
			if diff := cmp.Diff(want, got); diff != "" || w.Code != tc.code {
				t.Errorf("%s\n%d: -want +got\n%s", tc.reason, w.Code, diff)
			}
			if ct := w.Header().Get("Content-Type"); ct != "application/problem+json" {
				t.Errorf("%s\nContent-Type: %s", tc.reason, ct)
			}
			if !enabled(t, c) {
				t.Errorf("%s\nthe provider was disabled", tc.reason)
			}
		})
	}
}

// reviews is an API server that knows three people: who may toggle, who may read decisions and who may list providers.
func reviews() interceptor.Funcs {
	rights := map[string]string{
		"good": "update providers brokering.liqo.io", "reader": "list placementdecisions brokering.liqo.io",
		"lister": "list providers brokering.liqo.io", "operator": "get plans brokering.liqo.io shop-consumer",
	}
	return interceptor.Funcs{Create: func(_ context.Context, _ client.WithWatch, o client.Object, _ ...client.CreateOption) error {
		switch o := o.(type) {
		case *authenticationv1.TokenReview:
			if o.Spec.Token == "down" {
				return errors.New("down")
			}
			_, o.Status.Authenticated = rights[o.Spec.Token]
			o.Status.Audiences = o.Spec.Audiences
			o.Status.User.Username = o.Spec.Token
		case *authorizationv1.SubjectAccessReview:
			a := o.Spec.ResourceAttributes
			o.Status.Allowed = rights[o.Spec.User] == strings.TrimSpace(a.Verb+" "+a.Resource+" "+a.Group+" "+a.Namespace)
		}
		return nil
	}}
}

func TestToken(t *testing.T) {
	cases := map[string]struct {
		reason string
		header []string
		code   int
	}{
		"Nobody":  {reason: "A caller must show who it is.", code: http.StatusUnauthorized},
		"Basic":   {reason: "Only bearer tokens count.", header: []string{"Authorization", "Basic good"}, code: http.StatusUnauthorized},
		"Unknown": {reason: "The token must be known.", header: []string{"Authorization", "Bearer bad"}, code: http.StatusUnauthorized},
		"Weak":    {reason: "The caller must have the right.", header: []string{"Authorization", "Bearer reader"}, code: http.StatusForbidden},
		"Down": {
			reason: "Who cannot be checked is not admitted.", header: []string{"Authorization", "Bearer down"}, code: http.StatusServiceUnavailable,
		},
		"Good": {reason: "Who has the right is admitted.", header: []string{"Authorization", "Bearer good"}, code: http.StatusOK},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c := newClient(t, reviews(), &v1alpha1.Provider{ObjectMeta: metav1.ObjectMeta{Name: providerID}})
			h := newHandler(t, Config{Client: c, Orchestrator: true})
			w := call(t, h, http.MethodPost, "/api/toggle?id="+providerID+"&enable=false", tc.header...)
			if w.Code != tc.code {
				t.Errorf("%s\n%d %s, want %d", tc.reason, w.Code, w.Body, tc.code)
			}
			if got := !enabled(t, c); got != (tc.code == http.StatusOK) {
				t.Errorf("%s\nturned off: %v", tc.reason, got)
			}
		})
	}
}

func TestRun(t *testing.T) {
	c := newClient(t, interceptor.Funcs{})
	api, err := New(Config{Client: c, Line: v09.Line{}, Reviewer: delegatedauth.New(c), Catalog: true, Log: logr.Discard()})
	if err != nil {
		t.Fatalf("New(): %v", err)
	}
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatalf("Listen(): %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- api.Run(ctx, listener, nil) }()
	caller := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+listener.Addr().String()+"/api/clusters", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := caller.Do(request)
	if err != nil {
		t.Fatalf("GET: %v", err)
	}
	body, _ := io.ReadAll(answer.Body)
	_ = answer.Body.Close()
	if strings.TrimSpace(string(body)) != "[]" {
		t.Errorf("GET: %s, want []", body)
	}
	cancel()
	if err := <-done; err != nil {
		t.Errorf("Run(): %v", err)
	}
}

func TestNewNeedsAClient(t *testing.T) {
	c := newClient(t, interceptor.Funcs{})
	for name, cfg := range map[string]Config{
		"a client": {Line: v09.Line{}, Reviewer: delegatedauth.New(c)}, "a line": {Client: c, Reviewer: delegatedauth.New(c)},
		"a reviewer": {Client: c, Line: v09.Line{}},
	} {
		if _, err := New(cfg); err == nil {
			t.Errorf("New() without %s: no error", name)
		}
	}
}
