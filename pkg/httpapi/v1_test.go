// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/go-logr/logr"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/record"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/capacitorset/liqo-broker/pkg/api/v1alpha1"
	"github.com/capacitorset/liqo-broker/pkg/controller/twin/planning"
	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
	v09 "github.com/capacitorset/liqo-broker/pkg/liqo/v09"
	"github.com/capacitorset/liqo-broker/pkg/liqo/v09/liqotest"
	"github.com/capacitorset/liqo-broker/pkg/serving/delegatedauth"
	"github.com/capacitorset/liqo-broker/pkg/serving/servingtest"
	"github.com/capacitorset/liqo-broker/pkg/shown"
	"github.com/capacitorset/liqo-broker/pkg/shown/showntest"
	"github.com/capacitorset/liqo-broker/pkg/snapshot/snapshottest"
	"github.com/capacitorset/liqo-broker/test/apiclient"
)

// The clusters of the world that is served: everything about a provider that a consumer might find has "hidden" in it.
var (
	broker, milan, turin = showntest.Broker, showntest.Milan, showntest.Turin
	sees, blind          = showntest.Sees, showntest.Blind
)

// everything is what operator may do.
const everything = "list get watch update"

// people is an API server that knows some people: nobody has rights, all others what their name says, as VERB/RESOURCE.
func people(o client.Object) {
	switch o := o.(type) {
	case *authenticationv1.TokenReview:
		o.Status.Authenticated, o.Status.Audiences = o.Spec.Token != "unknown", o.Spec.Audiences
		o.Status.User.Username = o.Spec.Token
	case *authorizationv1.SubjectAccessReview:
		a := o.Spec.ResourceAttributes
		o.Status.Allowed = a.Group == v1alpha1.Group && (o.Spec.User == "operator" && slices.Contains(strings.Fields(everything), a.Verb) ||
			o.Spec.User == a.Verb+"/"+a.Resource)
	}
}

// served is the API over TLS.
type served struct {
	*API

	url       string
	client    client.Client
	roots     *x509.CertPool
	authority *servingtest.Authority
}

// serve runs the API of a world until the test ends. A certificate of the authority counts for the cluster that it names, if that is
// a consumer.
func serve(t *testing.T, change func(*Config), objects ...client.Object) *served {
	t.Helper()
	s := &served{authority: servingtest.NewAuthority(t), roots: x509.NewCertPool()}
	trusted := x509.NewCertPool()
	trusted.AppendCertsFromPEM([]byte(s.authority.PEM()))
	s.client = snapshottest.NewClient(t,
		interceptor.Funcs{Create: func(_ context.Context, _ client.WithWatch, o client.Object, _ ...client.CreateOption) error {
			people(o)
			return nil
		}}, objects...)
	cfg := Config{
		Client: s.client, Line: v09.Line{}, Reviewer: delegatedauth.New(s.client, Audience), Log: logr.Discard(), Own: broker,
		Orchestrator: true, Aggregator: true,
		Identify: func(ctx context.Context, connection *tls.ConnectionState) (cluster.ID, error) {
			leaf := connection.PeerCertificates[0]
			var c v1alpha1.Consumer
			_, err := leaf.Verify(x509.VerifyOptions{Roots: trusted, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}})
			if err != nil || s.client.Get(ctx, client.ObjectKey{Name: leaf.Subject.CommonName}, &c) != nil {
				return "", ErrNoConsumer
			}
			return cluster.ID(c.Name), nil
		},
	}
	cfg.Explainer = &planning.Explainer{
		Client: s.client, Reader: snapshottest.Reader(s.client, broker.ID),
		Planner: planning.NewPlanner(record.NewFakeRecorder(100), clock.RealClock{}, nil),
	}
	if change != nil {
		change(&cfg)
	}
	var err error
	if s.API, err = New(cfg); err != nil {
		t.Fatal(err)
	}
	if s.v1 != nil {
		s.v1.timing.Heartbeat = 50 * time.Millisecond
	}
	certificate, ca := servingtest.Certificate(t, "localhost")
	s.roots.AppendCertsFromPEM(ca)
	servingtest.Run(t, s.Start)
	s.url = "https://" + servingtest.Serve(t, func(ctx context.Context, l net.Listener) error {
		return s.Run(ctx, l, &tls.Config{GetCertificate: certificate.Get, MinVersion: tls.VersionTLS12, ClientAuth: tls.RequestClientCert})
	})
	return s
}

// as returns a client with a token, and with a certificate unless that is nil.
func (s *served) as(t *testing.T, token string, certificate *tls.Certificate) *apiclient.ClientWithResponses {
	t.Helper()
	config := &tls.Config{RootCAs: s.roots, ServerName: "localhost", MinVersion: tls.VersionTLS12}
	if certificate != nil {
		// As is, also where the server names other authorities.
		config.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return certificate, nil }
	}
	transport := &http.Transport{TLSClientConfig: config}
	t.Cleanup(transport.CloseIdleConnections)
	c, err := apiclient.NewClientWithResponses(s.url, apiclient.WithHTTPClient(&http.Client{Transport: transport}),
		apiclient.WithRequestEditorFn(func(_ context.Context, r *http.Request) error {
			if token != "" {
				r.Header.Set("Authorization", "Bearer "+token)
			}
			return nil
		}))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// consumer returns a client with the certificate of a cluster.
func (s *served) consumer(t *testing.T, id cluster.ID) *apiclient.ClientWithResponses {
	t.Helper()
	return s.as(t, "", s.authority.Sign(t, time.Now().Add(time.Hour), string(id), "liqo.io"))
}

// ok returns an answer.
func ok[T any](answer T, err error) T {
	if err != nil {
		panic(err) // The call itself fails, in no test.
	}
	return answer
}

// want fails the test if an answer has another status.
func want(t *testing.T, reason string, answer interface{ StatusCode() int }, err error, code int) {
	t.Helper()
	if err != nil || answer.StatusCode() != code {
		t.Errorf("%s\n%d, %v; want %d", reason, answer.StatusCode(), err, code)
	}
}

// changed tells the API that providers have changed, and waits until it has seen that.
func (s *served) changed(t *testing.T) {
	t.Helper()
	before := ok(s.v1.feed.View(t.Context(), shown.Providers))
	s.v1.feed.Changed(shown.Providers)
	for ok(s.v1.feed.View(t.Context(), shown.Providers)) == before {
		time.Sleep(10 * time.Millisecond)
	}
}

// TestDocument compares the document that is checked in with the one that is served.
func TestDocument(t *testing.T) {
	checkedIn, err := os.ReadFile("../../docs/api/openapi.yaml")
	if err != nil {
		t.Fatal(err)
	}
	s := serve(t, nil)
	get := func(name, token string) (int, string, string) {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.url+"/api/v1/openapi."+name, http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		if token != "" {
			request.Header.Set("Authorization", "Bearer "+token)
		}
		answer, err := s.as(t, "", nil).ClientInterface.(*apiclient.Client).Client.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		defer answer.Body.Close()
		text, err := io.ReadAll(answer.Body)
		if err != nil {
			t.Fatal(err)
		}
		return answer.StatusCode, answer.Header.Get("Content-Type"), string(text)
	}
	if code, mediaType, text := get("yaml", "somebody"); code != http.StatusOK || mediaType != "application/openapi+yaml" ||
		text != string(checkedIn) {
		t.Errorf("the document is served with %d as %s; it is the one that is checked in: %t. Run make generate", code, mediaType,
			text == string(checkedIn))
	}
	code, _, text := get("json", "somebody")
	type named struct {
		Name string `json:"name"`
	}
	var document struct {
		OpenAPI string `json:"openapi"`
		Info    struct {
			Contact struct {
				URL string `json:"url"`
			} `json:"contact"`
		} `json:"info"`
		Tags  []named `json:"tags"`
		Paths map[string]map[string]struct {
			Tags []string `json:"tags"`
		} `json:"paths"`
	}
	if err := json.Unmarshal([]byte(text), &document); err != nil || code != http.StatusOK || document.OpenAPI != "3.1.0" ||
		len(document.Paths) < 13 {
		t.Errorf("%d: OpenAPI %s with %d paths (%v)", code, document.OpenAPI, len(document.Paths), err)
	}
	if document.Info.Contact.URL == "" {
		t.Error("the document does not say whom to ask")
	}
	for path, operations := range document.Paths {
		for method, operation := range operations {
			if len(operation.Tags) != 1 || !slices.ContainsFunc(document.Tags, func(t named) bool {
				return t.Name == operation.Tags[0]
			}) {
				t.Errorf("%s %s has the tags %v, of %v", method, path, operation.Tags, document.Tags)
			}
		}
	}
	for token, want := range map[string]int{"": http.StatusUnauthorized, "unknown": http.StatusUnauthorized} {
		if code, mediaType, _ := get("json", token); code != want || mediaType != "application/problem+json" {
			t.Errorf("as %q: %d %s, want %d", token, code, mediaType, want)
		}
	}
}

// TestEveryOperation calls each with the client that is generated from the document.
func TestEveryOperation(t *testing.T) {
	s := serve(t, nil, showntest.World()...)
	c, ctx := s.as(t, "operator", nil), t.Context()
	called := map[string]bool{}
	call := func(operation string) { called[operation] = true }

	call("listProviders")
	if a := ok(c.ListProvidersWithResponse(ctx, nil)); a.JSON200 == nil || len(a.JSON200.Items) != 2 {
		t.Errorf("listProviders: %s", a.Body)
	}
	call("getProvider")
	if a := ok(c.GetProviderWithResponse(ctx, string(milan.ID), nil)); a.JSON200 == nil || *a.JSON200.Name != milan.Name || !a.JSON200.Ready ||
		(*a.JSON200.Capacity.Free)["cpu"] != "3" || a.JSON200.Price.Currency != "EUR" || (*a.JSON200.Kpis)[0].Value != 1.5 ||
		(*a.JSON200.Labels)["region"] != "hidden-north" || (*a.JSON200.History)[0].UpSeconds[0] != 60 ||
		a.JSON200.Link == nil || !a.JSON200.Link.Connected || *a.JSON200.Link.RoundTripSeconds != 0.00085 {
		t.Errorf("getProvider: %s", a.Body)
	}
	call("previewDrain")
	if a := ok(c.PreviewDrainWithResponse(ctx, string(milan.ID), nil)); a.JSON200 == nil || a.JSON200.Scheduling != "Drained" ||
		a.JSON200.Stays == 0 || len(a.JSON200.Pods) != int(a.JSON200.Stays+a.JSON200.Moves+a.JSON200.Later) {
		t.Errorf("previewDrain: %d %s", a.StatusCode(), a.Body)
	}
	call("setScheduling")
	if a := ok(
		c.SetSchedulingWithResponse(ctx, string(turin.ID), apiclient.Scheduling{Scheduling: apiclient.SchedulingSchedulingDrained}),
	); a.JSON200 == nil || a.JSON200.Scheduling != "Drained" {
		t.Errorf("setScheduling: %d %s", a.StatusCode(), a.Body)
	}
	var p v1alpha1.Provider
	if err := s.client.Get(ctx, client.ObjectKey{Name: string(turin.ID)}, &p); err != nil || p.Spec.Scheduling != v1alpha1.SchedulingDrained {
		t.Errorf("the provider is %s (%v)", p.Spec.Scheduling, err)
	}
	call("setConsumerScheduling")
	if a := ok(
		c.SetConsumerSchedulingWithResponse(ctx, string(blind.ID), apiclient.SchedulingOfConsumer{Scheduling: "Suspended"}),
	); a.JSON200 == nil || a.JSON200.Scheduling != "Suspended" {
		t.Errorf("setConsumerScheduling: %d %s", a.StatusCode(), a.Body)
	}
	var suspended v1alpha1.Consumer
	if err := s.client.Get(ctx, client.ObjectKey{Name: string(blind.ID)}, &suspended); err != nil ||
		suspended.Spec.Scheduling != v1alpha1.ConsumerSuspended {
		t.Errorf("the consumer is %s (%v)", suspended.Spec.Scheduling, err)
	}
	call("listConsumers")
	if a := ok(c.ListConsumersWithResponse(ctx, nil)); a.JSON200 == nil || len(a.JSON200.Items) != 2 {
		t.Errorf("listConsumers: %s", a.Body)
	}
	call("getConsumer")
	if a := ok(c.GetConsumerWithResponse(ctx, string(sees.ID), nil)); a.JSON200 == nil || *a.JSON200.Mode != "Orchestrated" ||
		a.JSON200.SharePercent != 100 {
		t.Errorf("getConsumer: %s", a.Body)
	}
	call("listOffers")
	if a := ok(c.ListOffersWithResponse(ctx, nil)); a.JSON200 == nil || len(a.JSON200.Items) != 2 ||
		(*a.JSON200.Items[0].Offered)["cpu"] != "6" {
		t.Errorf("listOffers: %s", a.Body)
	}
	call("listPolicies")
	if a := ok(c.ListPoliciesWithResponse(ctx, nil)); a.JSON200 == nil || len(a.JSON200.Items) != 1 {
		t.Errorf("listPolicies: %s", a.Body)
	}
	call("getPolicy")
	if a := ok(c.GetPolicyWithResponse(ctx, "cheap", nil)); a.JSON200 == nil || a.JSON200.Scope != "Default" {
		t.Errorf("getPolicy: %s", a.Body)
	}
	call("tryPolicy")
	if a := ok(c.TryPolicyWithResponse(ctx, apiclient.TryPolicyJSONRequestBody{Policy: "x"})); a.ApplicationproblemJSON404 == nil {
		t.Errorf("tryPolicy where nothing can be tried: %d %s", a.StatusCode(), a.Body)
	}
	call("listDecisions")
	if a := ok(c.ListDecisionsWithResponse(ctx, nil)); a.JSON200 == nil || len(a.JSON200.Items) != 2 {
		t.Errorf("listDecisions: %s", a.Body)
	}
	call("getDecision")
	if a := ok(c.GetDecisionWithResponse(ctx, "cheap", string(sees.ID), nil)); a.JSON200 == nil || !a.JSON200.Complete ||
		len(a.JSON200.Providers) != 2 ||
		!a.JSON200.Providers[0].Chosen || *a.JSON200.Providers[0].Score != 87.5 || *a.JSON200.Providers[1].Excluded != "it costs too much" ||
		(*a.JSON200.Providers[0].Terms)[0].Points != 88 || (*a.JSON200.Better)[0].Id != string(milan.ID) ||
		a.JSON200.Scaling.OffloadAbove != 200 || *a.JSON200.Scaling.Value != 120 {
		t.Errorf("getDecision: %s", a.Body)
	}
	call("listWorkloads")
	if a := ok(c.ListWorkloadsWithResponse(ctx, nil)); a.JSON200 == nil || len(a.JSON200.Items) != 2 ||
		*a.JSON200.Items[0].Path != "relay" || *a.JSON200.Items[1].Path != "direct" || a.JSON200.Items[1].Provider.Id != string(milan.ID) ||
		*a.JSON200.Items[1].Address != "10.66.6.6" || a.JSON200.Items[1].Namespace != "shop" ||
		a.JSON200.Items[1].BrokerNamespace != "shop-sees" || *a.JSON200.Items[1].Policy != "cheap" ||
		(*a.JSON200.Items[1].Requests)["cpu"] != "250m" || a.JSON200.Items[1].Why != nil {
		t.Errorf("listWorkloads: %s", a.Body)
	}
	call("listLinks")
	if a := ok(c.ListLinksWithResponse(ctx, nil)); a.JSON200 == nil || len(a.JSON200.Items) != 3 {
		t.Errorf("listLinks: %s", a.Body)
	}
	call("listFlows")
	direct := apiclient.ListFlowsParamsPathDirect
	if a := ok(c.ListFlowsWithResponse(ctx, &apiclient.ListFlowsParams{Path: &direct})); a.JSON200 == nil || len(a.JSON200.Items) != 1 ||
		a.JSON200.Items[0].Consumer.Id != string(sees.ID) || a.JSON200.Items[0].Provider.Id != string(milan.ID) ||
		a.JSON200.Items[0].Pods != 1 {
		t.Errorf("listFlows: %s", a.Body)
	}
	call("listActivity")
	if a := ok(c.ListActivityWithResponse(ctx, nil)); a.JSON200 == nil || len(a.JSON200.Items) != 0 {
		t.Errorf("listActivity: %s", a.Body)
	}
	call("getStatus")
	if a := ok(c.GetStatusWithResponse(ctx, nil)); a.JSON200 == nil ||
		!slices.Equal(a.JSON200.Modes, []string{"orchestrator", "aggregator"}) || a.JSON200.Providers.Total != 2 ||
		a.JSON200.Decisions.Total != 2 || len(a.JSON200.Next) == 0 || strings.Contains(string(a.Body), "Deployment") {
		t.Errorf("getStatus: %s", a.Body)
	}
	call("getAdvice")
	if a := ok(c.GetAdviceWithResponse(ctx, string(sees.ID), nil)); a.JSON200 == nil || !a.JSON200.Done || len(a.JSON200.Peers) != 1 ||
		a.JSON200.Peers[0].Provider.Id != string(milan.ID) || !a.JSON200.Peers[0].Connected || a.JSON200.Peers[0].Running != 1 {
		t.Errorf("getAdvice, with Turin drained: %s", a.Body)
	}
	call("getMe")
	if a := ok(c.GetMeWithResponse(ctx)); a.JSON200 == nil || a.JSON200.Name != "operator" || a.JSON200.Broker.Id != string(broker.ID) ||
		!slices.Contains(a.JSON200.May, "update consumers") || len(a.JSON200.Kinds) != len(shown.Kinds()) {
		t.Errorf("getMe: %d %s", a.StatusCode(), a.Body)
	}
	call("listClusters")
	if a := ok(c.ListClustersWithResponse(ctx)); a.JSON200 == nil || len(*a.JSON200) != 2 {
		t.Errorf("listClusters: %d %s", a.StatusCode(), a.Body)
	}
	for _, how := range []string{"toggleProvider", "toggleProviderByGet"} {
		call(how)
		var is *apiclient.Toggled
		if how == "toggleProvider" {
			is = ok(c.ToggleProviderWithResponse(ctx, &apiclient.ToggleProviderParams{Id: string(turin.ID)})).JSON200
		} else {
			is = ok(c.ToggleProviderByGetWithResponse(ctx, &apiclient.ToggleProviderByGetParams{Id: string(turin.ID)})).JSON200
		}
		if is == nil || is.Enabled || is.Id != string(turin.ID) {
			t.Errorf("%s: %+v", how, is)
		}
	}
	call("watchEvents")
	if got := s.watch(t, ctx, c, "").next(t, 3); got[0].name != "reset" || got[1].name != "set" || got[2].name != "set" {
		t.Errorf("watchEvents: %v", got)
	}

	for path, item := range s.v1.api.OpenAPI().Paths {
		for _, op := range []*string{operationID(item.Get), operationID(item.Put), operationID(item.Post)} {
			if op != nil && !called[*op] {
				t.Errorf("%s of %s is not tested", *op, path)
			}
		}
	}
}

// TestConsumersSeeTheirOwn calls everything by the certificate of a consumer.
func TestConsumersSeeTheirOwn(t *testing.T) {
	s, ctx := serve(t, nil, showntest.World()...), t.Context()
	c := s.consumer(t, sees.ID)
	if a := ok(c.GetConsumerWithResponse(ctx, string(sees.ID), nil)); a.JSON200 == nil || a.JSON200.Id != string(sees.ID) {
		t.Errorf("getConsumer: %s", a.Body)
	}
	if a := ok(c.ListWorkloadsWithResponse(ctx, nil)); a.JSON200 == nil || len(a.JSON200.Items) != 1 ||
		a.JSON200.Items[0].Provider.Name == nil || a.JSON200.Items[0].Policy != nil || (*a.JSON200.Items[0].Requests)["cpu"] != "250m" {
		t.Errorf("listWorkloads: %s", a.Body)
	}
	if a := ok(c.ListOffersWithResponse(ctx, nil)); a.JSON200 == nil || len(a.JSON200.Items) != 1 ||
		a.JSON200.Items[0].Consumer.Id != string(sees.ID) {
		t.Errorf("listOffers: %s", a.Body)
	}
	if a := ok(c.GetAdviceWithResponse(ctx, string(sees.ID), nil)); a.JSON200 == nil || a.JSON200.Done || len(a.JSON200.Peers) != 2 ||
		a.JSON200.Peers[0].Provider.Id != string(turin.ID) {
		t.Errorf("getAdvice: %s", a.Body)
	}
	for name, id := range map[string]string{"another one": string(blind.ID), "nobody": "nobody", "a provider": string(milan.ID)} {
		a, err := c.GetConsumerWithResponse(ctx, id, nil)
		want(t, "A consumer learns nothing of "+name+".", a, err, http.StatusForbidden)
		b, err := c.GetAdviceWithResponse(ctx, id, nil)
		want(t, "Nor what "+name+" is advised.", b, err, http.StatusForbidden)
	}
	other := string(blind.ID)
	if a := ok(c.ListWorkloadsWithResponse(ctx, &apiclient.ListWorkloadsParams{Consumer: &other})); a.JSON200 == nil ||
		len(a.JSON200.Items) != 0 {
		t.Errorf("the pods of another consumer: %s", a.Body)
	}
	for name, call := range map[string]func() (interface{ StatusCode() int }, error){
		"providers": func() (interface{ StatusCode() int }, error) { return c.ListProvidersWithResponse(ctx, nil) },
		"provider": func() (interface{ StatusCode() int }, error) {
			return c.GetProviderWithResponse(ctx, string(milan.ID), nil)
		},
		"consumers": func() (interface{ StatusCode() int }, error) { return c.ListConsumersWithResponse(ctx, nil) },
		"policies":  func() (interface{ StatusCode() int }, error) { return c.ListPoliciesWithResponse(ctx, nil) },
		"policy":    func() (interface{ StatusCode() int }, error) { return c.GetPolicyWithResponse(ctx, "cheap", nil) },
		"decisions": func() (interface{ StatusCode() int }, error) { return c.ListDecisionsWithResponse(ctx, nil) },
		"decision": func() (interface{ StatusCode() int }, error) {
			return c.GetDecisionWithResponse(ctx, "cheap", string(sees.ID), nil)
		},
		"links":    func() (interface{ StatusCode() int }, error) { return c.ListLinksWithResponse(ctx, nil) },
		"flows":    func() (interface{ StatusCode() int }, error) { return c.ListFlowsWithResponse(ctx, nil) },
		"status":   func() (interface{ StatusCode() int }, error) { return c.GetStatusWithResponse(ctx, nil) },
		"activity": func() (interface{ StatusCode() int }, error) { return c.ListActivityWithResponse(ctx, nil) },
		"scheduling": func() (interface{ StatusCode() int }, error) {
			return c.SetSchedulingWithResponse(ctx, string(milan.ID), apiclient.Scheduling{Scheduling: "Drained"})
		},
		"scheduling of its own": func() (interface{ StatusCode() int }, error) {
			return c.SetConsumerSchedulingWithResponse(ctx, string(sees.ID), apiclient.SchedulingOfConsumer{Scheduling: "Active"})
		},
		"rights": func() (interface{ StatusCode() int }, error) { return c.GetMeWithResponse(ctx) },
		"events": func() (interface{ StatusCode() int }, error) {
			return c.WatchEventsWithResponse(ctx, &apiclient.WatchEventsParams{Kinds: []apiclient.WatchEventsParamsKinds{"workloads", "links"}})
		},
	} {
		a, err := call()
		want(t, "A consumer sees no "+name+".", a, err, http.StatusForbidden)
	}
}

// TestAggregatedConsumersLearnNothing looks for anything of a provider in all that such a consumer can get.
func TestAggregatedConsumersLearnNothing(t *testing.T) {
	s, ctx := serve(t, nil, showntest.World()...), t.Context()
	c := s.consumer(t, blind.ID)
	told := map[string]string{
		"getConsumer":   string(ok(c.GetConsumerWithResponse(ctx, string(blind.ID), nil)).Body),
		"getAdvice":     string(ok(c.GetAdviceWithResponse(ctx, string(blind.ID), nil)).Body),
		"listOffers":    string(ok(c.ListOffersWithResponse(ctx, nil)).Body),
		"listWorkloads": string(ok(c.ListWorkloadsWithResponse(ctx, nil)).Body),
	}
	for _, e := range s.watch(t, ctx, c, "", "workloads", "offers", "consumers", "advice").next(t, 6) {
		told["event "+e.name+" "+e.data] = e.data
	}
	for what, text := range told {
		if slices.ContainsFunc([]string{"hidden", "10.66.6.6", "direct", "cheap"}, func(of string) bool { return strings.Contains(text, of) }) {
			t.Errorf("%s tells of a provider: %s", what, text)
		}
	}
	if len(told) != 4+6 || !strings.Contains(told["listWorkloads"], `"path":"relay"`) || !strings.Contains(told["getAdvice"], `"done":true`) {
		t.Errorf("it is told %v", told)
	}
	// The filters do not tell either: what matches is what is shown.
	for _, provider := range []string{string(milan.ID), milan.Name} {
		if a := ok(c.ListWorkloadsWithResponse(ctx, &apiclient.ListWorkloadsParams{Provider: &provider})); a.JSON200 == nil ||
			len(a.JSON200.Items) != 0 {
			t.Errorf("the filter tells that a pod is on %s: %s", provider, a.Body)
		}
	}
	// Nor does a tag: it does not change with what is hidden.
	before := ok(c.ListWorkloadsWithResponse(ctx, nil)).HTTPResponse.Header.Get("ETag")
	var node corev1.Node
	if err := s.client.Get(ctx, client.ObjectKey{Name: "liqo-hidden-node"}, &node); err != nil {
		t.Fatal(err)
	}
	node.Labels = liqotest.VirtualNode(turin, true).Labels
	if err := s.client.Update(ctx, &node); err != nil {
		t.Fatal(err)
	}
	s.v1.feed.Changed(shown.Workloads)
	operator := s.as(t, "operator", nil)
	for ok(operator.ListWorkloadsWithResponse(ctx, nil)).JSON200.Items[0].Provider.Id != string(turin.ID) {
		time.Sleep(200 * time.Millisecond) // Within the limit of calls.
	}
	if after := ok(c.ListWorkloadsWithResponse(ctx, nil)).HTTPResponse.Header.Get("ETag"); after != before || after == "" {
		t.Errorf("the tag was %s and is %s", before, after)
	}
}

// TestWhoMay calls with bad certificates and tokens.
func TestWhoMay(t *testing.T) {
	s, ctx := serve(t, nil, showntest.World()...), t.Context()
	later := time.Now().Add(time.Hour)
	cases := map[string]struct {
		reason      string
		token       string
		certificate *tls.Certificate
		code        int
	}{
		"Nobody":   {reason: "Nothing is served to who does not say who it is.", code: http.StatusUnauthorized},
		"Unknown":  {reason: "A token must be known.", token: "unknown", code: http.StatusUnauthorized},
		"Weak":     {reason: "A name is no right.", token: "somebody", code: http.StatusForbidden},
		"Other":    {reason: "The right to something else is none.", token: "get/providers", code: http.StatusForbidden},
		"Verb":     {reason: "The right to list is none to get.", token: "list/consumers", code: http.StatusForbidden},
		"Right":    {reason: "Who has the right gets it.", token: "get/consumers", code: http.StatusOK},
		"Consumer": {reason: "A consumer gets its own.", certificate: s.authority.Sign(t, later, string(sees.ID)), code: http.StatusOK},
		"Stranger": {
			reason: "A certificate of another authority does not count.", certificate: servingtest.NewAuthority(t).Sign(t, later, string(sees.ID)),
			code: http.StatusUnauthorized,
		},
		"Expired": {
			reason: "Nor does one that has expired.", certificate: s.authority.Sign(t, time.Now().Add(-time.Minute), string(sees.ID)),
			code: http.StatusUnauthorized,
		},
		"NoConsumer": {
			reason: "The authority signs for others too.", certificate: s.authority.Sign(t, later, "system:node:a"), code: http.StatusUnauthorized,
		},
		"Provider": {
			reason: "Who only provides has nothing of its own here.", certificate: s.authority.Sign(t, later, string(milan.ID)),
			code: http.StatusUnauthorized,
		},
		"OtherTenant": {
			reason: "A consumer does not see another.", certificate: s.authority.Sign(t, later, string(blind.ID)), code: http.StatusForbidden,
		},
		"BadToken": {
			reason: "A token that is shown must be good, also beside a certificate.", token: "unknown",
			certificate: s.authority.Sign(t, later, string(sees.ID)), code: http.StatusUnauthorized,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			a, err := s.as(t, tc.token, tc.certificate).GetConsumerWithResponse(ctx, string(sees.ID), nil)
			want(t, tc.reason, a, err, tc.code)
			if a.StatusCode() != http.StatusOK && a.HTTPResponse.Header.Get("Content-Type") != "application/problem+json" {
				t.Errorf("%s\nno problem: %s", tc.reason, a.HTTPResponse.Header)
			}
		})
	}
	t.Run("Changes", func(t *testing.T) {
		suspended := apiclient.SchedulingOfConsumer{Scheduling: "Suspended"}
		for token, code := range map[string]int{
			"": http.StatusUnauthorized, "get/consumers": http.StatusForbidden, "update/providers": http.StatusForbidden,
			"update/consumers": http.StatusOK,
		} {
			a, err := s.as(t, token, nil).SetConsumerSchedulingWithResponse(ctx, string(sees.ID), suspended)
			want(t, "To suspend a consumer needs the right to update consumers, not "+token+".", a, err, code)
		}
	})
	t.Run("CannotTell", func(t *testing.T) {
		s := serve(t, func(c *Config) {
			c.Identify = func(context.Context, *tls.ConnectionState) (cluster.ID, error) { return "", errors.New("s3cret") }
		}, showntest.World()...)
		a, err := s.consumer(t, sees.ID).GetConsumerWithResponse(ctx, string(sees.ID), nil)
		if want(t, "Who cannot be checked is not admitted.", a, err, http.StatusServiceUnavailable); strings.Contains(string(a.Body), "s3cret") {
			t.Errorf("it is told why: %s", a.Body)
		}
	})
	t.Run("Plain", func(t *testing.T) {
		if w := call(t, s.Handler(), http.MethodGet, "http://"+host+"/api/v1/providers"); w.Code != http.StatusForbidden {
			t.Errorf("without TLS: %d", w.Code)
		}
	})
	t.Run("Flags", func(t *testing.T) {
		s := serve(t, func(c *Config) { c.AnonymousToggle, c.AnonymousCatalog = true, true }, showntest.World()...)
		a, err := s.as(t, "", nil).ListProvidersWithResponse(ctx, nil)
		want(t, "The flags are for the two older paths.", a, err, http.StatusUnauthorized)
		b, err := s.as(t, "", nil).SetSchedulingWithResponse(ctx, string(milan.ID), apiclient.Scheduling{Scheduling: "Drained"})
		want(t, "So for changes.", b, err, http.StatusUnauthorized)
	})
}

// TestPages walks through a list that changes.
func TestPages(t *testing.T) {
	var objects []client.Object
	for i := range 25 {
		objects = append(objects, showntest.NewProvider(cluster.Identity{ID: cluster.ID(fmt.Sprintf("id-%02d", i)), Name: "p"}))
	}
	s, ctx := serve(t, nil, objects...), t.Context()
	c := s.as(t, "operator", nil)
	limit := int64(10)
	var got []string
	params := &apiclient.ListProvidersParams{Limit: &limit}
	for page := 0; ; page++ {
		a := ok(c.ListProvidersWithResponse(ctx, params))
		if a.JSON200 == nil {
			t.Fatalf("page %d: %d %s", page, a.StatusCode(), a.Body)
		}
		for _, p := range a.JSON200.Items {
			got = append(got, p.Id)
		}
		if params.Continue = a.JSON200.Continue; params.Continue == nil {
			break
		}
		if page == 0 { // The item at which the next page begins is deleted: it is stable.
			if err := s.client.Delete(ctx, showntest.NewProvider(cluster.Identity{ID: "id-09"})); err != nil {
				t.Fatal(err)
			}
			s.changed(t)
		}
	}
	if len(got) != 25 || !slices.IsSorted(got) || len(slices.Compact(got)) != 25 {
		t.Errorf("the pages have %v", got)
	}
	active := apiclient.ListProvidersParamsScheduling("Active")
	token := ok(c.ListProvidersWithResponse(ctx, &apiclient.ListProvidersParams{Limit: &limit})).JSON200.Continue
	a, err := c.ListProvidersWithResponse(ctx, &apiclient.ListProvidersParams{Limit: &limit, Continue: token, Scheduling: &active})
	want(t, "A token is for one list.", a, err, http.StatusBadRequest)
	for _, junk := range []string{"x", "e30", "%00", strings.Repeat("A", 2000), "A" + *token} {
		a, err := c.ListProvidersWithResponse(ctx, &apiclient.ListProvidersParams{Continue: &junk})
		want(t, "A made-up token is refused.", a, err, http.StatusBadRequest)
	}
}

// TestTags asks for what has not changed, and for what has.
func TestTags(t *testing.T) {
	s, ctx := serve(t, nil, showntest.World()...), t.Context()
	c := s.as(t, "operator", nil)
	tag := ok(c.GetProviderWithResponse(ctx, string(milan.ID), nil)).HTTPResponse.Header.Get("ETag")
	listTag := ok(c.ListProvidersWithResponse(ctx, nil)).HTTPResponse.Header.Get("ETag")
	for _, match := range []string{tag, `"other", W/` + tag, "*"} {
		a := ok(c.GetProviderWithResponse(ctx, string(milan.ID), &apiclient.GetProviderParams{IfNoneMatch: &match}))
		if a.StatusCode() != http.StatusNotModified || len(a.Body) > 0 || a.HTTPResponse.Header.Get("ETag") != tag {
			t.Errorf("%s: %d %s %s", match, a.StatusCode(), a.HTTPResponse.Header, a.Body)
		}
	}
	if a := ok(
		c.ListProvidersWithResponse(ctx, &apiclient.ListProvidersParams{IfNoneMatch: &listTag}),
	); a.StatusCode() != http.StatusNotModified {
		t.Errorf("the list: %d", a.StatusCode())
	}
	ok(c.SetSchedulingWithResponse(ctx, string(milan.ID), apiclient.Scheduling{Scheduling: "Cordoned"}))
	s.changed(t)
	if a := ok(
		c.GetProviderWithResponse(ctx, string(milan.ID), &apiclient.GetProviderParams{IfNoneMatch: &tag}),
	); a.StatusCode() != http.StatusOK || a.JSON200.Scheduling != "Cordoned" {
		t.Errorf("after a change: %d %s", a.StatusCode(), a.Body)
	}
	if a := ok(c.ListProvidersWithResponse(ctx, &apiclient.ListProvidersParams{IfNoneMatch: &listTag})); a.StatusCode() != http.StatusOK {
		t.Errorf("the list after a change: %d", a.StatusCode())
	}
}

// TestProblems makes mistakes: each answer is a problem, and nothing changes.
func TestProblems(t *testing.T) {
	s := serve(t, nil, showntest.World()...)
	cases := map[string]struct {
		method, path, accept, mediaType, body string
		code                                  int
	}{
		"Path":        {path: "/nothing", code: http.StatusNotFound},
		"Root":        {path: "/", code: http.StatusNotFound},
		"Provider":    {path: "/providers/nobody", code: http.StatusNotFound},
		"Slash":       {path: "/providers/a%2F..%2Fb", code: http.StatusUnprocessableEntity},
		"Control":     {path: "/providers/a%00%1b%5B31m", code: http.StatusUnprocessableEntity},
		"PolicySlash": {path: "/policies/..%2f..%2fetc%2fpasswd", code: http.StatusNotFound},
		"PolicyTerm":  {path: "/policies/%1b%5B31m", code: http.StatusNotFound},
		"LongID":      {path: "/providers/" + strings.Repeat("a", 254), code: http.StatusUnprocessableEntity},
		"Method":      {method: http.MethodDelete, path: "/providers", code: http.StatusMethodNotAllowed},
		"Patch":       {method: http.MethodPatch, path: "/providers/" + string(milan.ID) + "/scheduling", code: http.StatusMethodNotAllowed},
		"HeadEvents":  {method: http.MethodHead, path: "/events?kinds=providers", code: http.StatusMethodNotAllowed},
		"Accept":      {path: "/providers", accept: "text/html, application/json;q=0", code: http.StatusNotAcceptable},
		"EventsJSON":  {path: "/events?kinds=providers", accept: "application/json", code: http.StatusNotAcceptable},
		"NoKinds":     {path: "/events", code: http.StatusUnprocessableEntity},
		"Kinds":       {path: "/events?kinds=secrets", code: http.StatusUnprocessableEntity},
		"Limit":       {path: "/providers?limit=1000000000", code: http.StatusUnprocessableEntity},
		"NoLimit":     {path: "/providers?limit=0", code: http.StatusUnprocessableEntity},
		"Twice":       {path: "/providers?limit=1&limit=2", code: http.StatusUnprocessableEntity},
		"Word":        {path: "/providers?limit=all", code: http.StatusUnprocessableEntity},
		"Parameter":   {path: "/providers?limt=1", code: http.StatusUnprocessableEntity},
		"Filter":      {path: "/providers?scheduling=Off", code: http.StatusUnprocessableEntity},
		"Body": {
			method: http.MethodPut, path: "/providers/" + string(milan.ID) + "/scheduling", body: `{"scheduling":"Off"}`,
			code: http.StatusUnprocessableEntity,
		},
		"NoConsumer": {
			method: http.MethodPut, path: "/consumers/" + string(milan.ID) + "/scheduling", body: `{"scheduling":"Active"}`,
			code: http.StatusNotFound,
		},
		"ConsumersBody": {
			method: http.MethodPut, path: "/consumers/" + string(sees.ID) + "/scheduling", body: `{"scheduling":"Drained"}`,
			code: http.StatusUnprocessableEntity,
		},
		"NoBody": {method: http.MethodPut, path: "/providers/" + string(milan.ID) + "/scheduling", code: http.StatusBadRequest},
		"NoJSON": {method: http.MethodPut, path: "/providers/" + string(milan.ID) + "/scheduling", body: `{`, code: http.StatusBadRequest},
		"More": {
			method: http.MethodPut, path: "/providers/" + string(milan.ID) + "/scheduling", body: `{"scheduling":"Drained","more":1}`,
			code: http.StatusUnprocessableEntity,
		},
		"Large": {
			method: http.MethodPut, path: "/providers/" + string(milan.ID) + "/scheduling", body: strings.Repeat(" ", maxBody+1),
			code: http.StatusRequestEntityTooLarge,
		},
		"Type": {
			method: http.MethodPut, path: "/providers/" + string(milan.ID) + "/scheduling", mediaType: "text/plain",
			body: `{"scheduling":"Drained"}`, code: http.StatusUnsupportedMediaType,
		},
		"NotAccepted": {
			method: http.MethodPut, path: "/providers/" + string(milan.ID) + "/scheduling", accept: "image/png", body: `{"scheduling":"Drained"}`,
			code: http.StatusNotAcceptable,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if tc.method == "" {
				tc.method = http.MethodGet
			}
			request, err := http.NewRequestWithContext(t.Context(), tc.method, s.url+base+tc.path, strings.NewReader(tc.body))
			if err != nil {
				t.Fatal(err)
			}
			request.Header.Set("Authorization", "Bearer operator")
			for header, value := range map[string]string{"Accept": tc.accept, "Content-Type": tc.mediaType} {
				if value != "" {
					request.Header.Set(header, value)
				}
			}
			answer, err := s.as(t, "", nil).ClientInterface.(*apiclient.Client).Client.Do(request)
			if err != nil {
				t.Fatal(err)
			}
			defer answer.Body.Close()
			var got huma.ErrorModel
			if err := json.NewDecoder(answer.Body).Decode(&got); err != nil && tc.method != http.MethodHead {
				t.Fatal(err)
			}
			if answer.StatusCode != tc.code || answer.Header.Get("Content-Type") != "application/problem+json" {
				t.Errorf("%d %s %+v, want %d", answer.StatusCode, answer.Header, got, tc.code)
			}
			if tc.method != http.MethodHead && (got.Status != tc.code || got.Title == "" || got.Detail == "") {
				t.Errorf("the problem is %+v", got)
			}
			var p v1alpha1.Provider
			if err := s.client.Get(t.Context(), client.ObjectKey{Name: string(milan.ID)}, &p); err != nil || p.Spec.Scheduling != "" {
				t.Errorf("the provider was changed: %s (%v)", p.Spec.Scheduling, err)
			}
		})
	}
}

// TestErrorsAreNotTold has a client that fails.
func TestErrorsAreNotTold(t *testing.T) {
	s := serve(t, func(c *Config) {
		c.Client = snapshottest.NewClient(t,
			interceptor.Funcs{List: func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) error {
				return errors.New("s3cret")
			}})
	})
	a, err := s.as(t, "operator", nil).ListProvidersWithResponse(t.Context(), nil)
	if want(t, "What fails is an error.", a, err, http.StatusInternalServerError); strings.Contains(string(a.Body), "s3cret") {
		t.Errorf("what went wrong inside is shown: %s", a.Body)
	}
}

// TestOrigins asks as pages of several origins.
func TestOrigins(t *testing.T) {
	const dashboard = "https://dashboard.example.com"
	cases := map[string]struct {
		reason  string
		origins []string
		origin  string
		path    string
		want    string
	}{
		"Off":     {reason: "By default no page of another origin reads anything.", origin: dashboard, path: "/api/v1/providers"},
		"Allowed": {reason: "Who is allowed may.", origins: []string{dashboard}, origin: dashboard, path: "/api/v1/providers", want: dashboard},
		"Other":   {reason: "Others may not.", origins: []string{dashboard}, origin: "https://evil.example.com", path: "/api/v1/providers"},
		"Suffix": {
			reason: "Origins are compared as they are.", origins: []string{dashboard}, origin: dashboard + ".evil.example",
			path: "/api/v1/providers",
		},
		"Null":   {reason: "A page without an origin has none.", origins: []string{dashboard}, origin: "null", path: "/api/v1/providers"},
		"Toggle": {reason: "Only version 1 is for others' pages.", origins: []string{dashboard}, origin: dashboard, path: "/api/clusters"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			h := serve(t, func(c *Config) { c.Origins = tc.origins }, showntest.World()...).Handler()
			for _, method := range []string{http.MethodGet, http.MethodOptions} {
				w := call(t, h, method, tc.path, "Origin", tc.origin, "Access-Control-Request-Method", "PUT")
				if got := w.Header().Get("Access-Control-Allow-Origin"); got != tc.want {
					t.Errorf("%s\n%s: %q, want %q", tc.reason, method, got, tc.want)
				}
				if w.Header().Get("Access-Control-Allow-Credentials") != "" {
					t.Errorf("%s: with credentials", method)
				}
				if method == http.MethodOptions && (w.Code == http.StatusNoContent) != (tc.want != "") {
					t.Errorf("%s\nOPTIONS: %d", tc.reason, w.Code)
				}
			}
		})
	}
}

// TestCatalogHasNoV1 asks a broker that has no consumers.
func TestCatalogHasNoV1(t *testing.T) {
	h := newHandler(t, Config{Client: newClient(t, reviews()), Catalog: true})
	if w := call(t, h, http.MethodGet, "/api/v1/providers", "Authorization", "Bearer lister"); w.Code != http.StatusNotFound ||
		!strings.Contains(w.Body.String(), "orchestrator") {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}
