// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package lenient_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capacitorset/liqo-broker/pkg/api/v1alpha1"
	"github.com/capacitorset/liqo-broker/pkg/lenient"
)

const (
	goodPolicy = `{"apiVersion":"brokering.liqo.io/v1alpha1","kind":"PlacementPolicy","metadata":{"name":"good","uid":"1","resourceVersion":"1"},` +
		`"spec":{"steady":{"duration":"10s"}}}`
	badPolicy = `{"apiVersion":"brokering.liqo.io/v1alpha1","kind":"PlacementPolicy","metadata":{"name":"bad","uid":"2","resourceVersion":"2"},` +
		`"spec":{"appliesTo":{"scope":"Consumers","consumers":["c1"]},"failover":{"grace":"soon","mode":"Never"},"steady":{"duration":"10","marginPercent":7}},` +
		`"status":{"summary":"p1","conditions":[{"type":"Decided","lastTransitionTime":"yesterday"}]}}`
	badDecision = `{"apiVersion":"brokering.liqo.io/v1alpha1","kind":"PlacementDecision","metadata":{"name":"bad.c1","uid":"3","resourceVersion":"3"},` +
		`"policy":"bad","consumer":"c1","chosen":[{"id":"p1"}],"better":[{"id":"p2","sinceTime":"yesterday"}]}`
)

// declared is a provider of some cores.
func declared(cpu string) string {
	return `{"apiVersion":"brokering.liqo.io/v1alpha1","kind":"Provider","metadata":{"name":"p","uid":"3","resourceVersion":"3"},` +
		`"spec":{"capacity":{"declared":{"cpu":"` + cpu + `","memory":"1Gi"}}}}`
}

// kinds are those that a test reads.
func kinds(tb testing.TB) *runtime.Scheme {
	tb.Helper()
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), v1alpha1.AddToScheme(scheme)); err != nil {
		tb.Fatal(err)
	}
	return scheme
}

// apiServer answers all requests with the same, and watches with events and then nothing more.
func apiServer(t *testing.T, body string) client.WithWatch {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, body)
		if r.URL.Query().Has("watch") {
			w.(http.Flusher).Flush()
			<-r.Context().Done()
		}
	}))
	t.Cleanup(server.CloseClientConnections)
	config := &rest.Config{Host: server.URL}
	scheme := kinds(t)
	lenient.Wrap(config, scheme, funcr.New(func(_, text string) { t.Log(text) }, funcr.Options{}))
	mapper := meta.NewDefaultRESTMapper(nil)
	for gvk := range scheme.AllKnownTypes() {
		mapper.Add(gvk, meta.RESTScopeRoot)
	}
	c, err := client.NewWithWatch(config, client.Options{Scheme: scheme, Mapper: mapper})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestOneBadObjectHidesNoOther(t *testing.T) {
	c := apiServer(t, `{"apiVersion":"brokering.liqo.io/v1alpha1","kind":"PlacementPolicyList","metadata":{"resourceVersion":"9"},"items":[`+
		badPolicy+`,`+goodPolicy+`]}`)
	var list v1alpha1.PlacementPolicyList
	if err := c.List(t.Context(), &list); err != nil {
		t.Fatalf("List(): %v", err)
	}
	if len(list.Items) != 2 || list.ResourceVersion != "9" {
		t.Fatalf("List(): %d policies of version %s", len(list.Items), list.ResourceVersion)
	}
	bad, good := &list.Items[0], &list.Items[1]
	if text := lenient.Unreadable(good); text != "" || good.Spec.Steady.Duration.Duration != 10*time.Second {
		t.Errorf("the good one is changed: %q %v", text, good.Spec.Steady.Duration)
	}
	for _, field := range []string{"spec.steady.duration", "spec.failover.grace", "status.conditions[0].lastTransitionTime"} {
		if lenient.UnreadableIn(bad, field) == "" {
			t.Errorf("the bad one does not say that %s is missing: %q", field, lenient.Unreadable(bad))
		}
	}
	if text := lenient.UnreadableIn(bad, "spec.stead"); text != "" {
		t.Errorf("UnreadableIn() of another field: %q", text)
	}
	// All else stays, so that it still says whom it is for and what was decided.
	margin := int32(7)
	want := v1alpha1.PlacementPolicySpec{
		AppliesTo: v1alpha1.AppliesTo{Scope: v1alpha1.ScopeConsumers, Consumers: []string{"c1"}},
		Failover:  v1alpha1.Failover{Mode: v1alpha1.FailoverNever}, Steady: v1alpha1.Steadiness{MarginPercent: &margin},
	}
	if diff := cmp.Diff(want, bad.Spec); diff != "" {
		t.Errorf("the bad one's spec (-want +got):\n%s", diff)
	}
	if bad.Status.Summary != "p1" {
		t.Errorf("the bad one's status: %+v", bad.Status)
	}
}

// TestDecisionWithoutABadField reads what was decided, of which one field does not fit.
func TestDecisionWithoutABadField(t *testing.T) {
	var d v1alpha1.PlacementDecision
	if err := apiServer(t, badDecision).Get(t.Context(), client.ObjectKey{Name: "bad.c1"}, &d); err != nil {
		t.Fatalf("Get(): %v", err)
	}
	if d.Policy != "bad" || d.Consumer != "c1" || len(d.Chosen) != 1 || d.Chosen[0].ID != "p1" ||
		lenient.UnreadableIn(&d, "better[0].sinceTime") == "" {
		t.Errorf("%+v", d)
	}
}

func TestOneBadEventEndsNoWatch(t *testing.T) {
	const event = `{"type":"MODIFIED","object":%s}` + "\n"
	c := apiServer(t, fmt.Sprintf(event, badPolicy)+
		fmt.Sprintf(event, `{"apiVersion":"brokering.liqo.io/v1alpha1","kind":"PlacementPolicy","metadata":7}`)+
		fmt.Sprintf(event, goodPolicy))
	watch, err := c.Watch(t.Context(), &v1alpha1.PlacementPolicyList{})
	if err != nil {
		t.Fatalf("Watch(): %v", err)
	}
	defer watch.Stop()
	for _, want := range []string{"bad", "good"} { // What has no metadata is left out.
		e := <-watch.ResultChan()
		policy, ok := e.Object.(*v1alpha1.PlacementPolicy)
		if !ok || policy.Name != want || (lenient.Unreadable(policy) != "") != (want == "bad") {
			t.Fatalf("event %s of %v, want %s", e.Type, e.Object, want)
		}
	}
}

func TestQuantities(t *testing.T) {
	for _, test := range []struct {
		reason, cpu string
		unreadable  bool
	}{
		{reason: "as Kubernetes writes it", cpu: "1500m"},
		{reason: "with an exponent", cpu: "1e3"},
		{reason: "with a sign and a point", cpu: "+1.5Ki"},
		{reason: "whether it is negative is for the reader to judge", cpu: "-1"},
		{reason: "a CRD lets it through, and Kubernetes cannot read it", cpu: "1e1.5", unreadable: true},
		{reason: "Kubernetes takes minutes to read it", cpu: "1e-2147483647", unreadable: true},
		{reason: "Kubernetes takes minutes to add it", cpu: "1e2147483647", unreadable: true},
		{reason: "the exponent is not the last thing in it", cpu: `1e2147483647\n`, unreadable: true},
		{reason: "Kubernetes takes long to read so many digits", cpu: strings.Repeat("9", 1<<20), unreadable: true},
		{reason: "so many digits after the point, too", cpu: "0." + strings.Repeat("9", 1<<20), unreadable: true},
		{reason: "no number", cpu: "NaN", unreadable: true},
	} {
		t.Run(test.reason, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
			defer cancel()
			var p v1alpha1.Provider
			if err := apiServer(t, declared(test.cpu)).Get(ctx, client.ObjectKey{Name: "p"}, &p); err != nil {
				t.Fatalf("Get(): %v", err)
			}
			text := lenient.UnreadableIn(&p, "spec.capacity.declared")
			if (text != "") != test.unreadable || len(text) > 512 {
				t.Errorf("Unreadable() = %q", text)
			}
			has := p.Spec.Capacity.Declared
			if memory := has[corev1.ResourceMemory]; memory.Cmp(resource.MustParse("1Gi")) != 0 {
				t.Errorf("the memory is %s", memory.String())
			}
			if cpu, ok := has[corev1.ResourceCPU]; test.unreadable && (!ok || !cpu.IsZero()) {
				t.Errorf("the cores are there %t: %s, want none of them, and not no limit", ok, cpu.String())
			}
		})
	}
}

func TestNothingFitsButTheMetadata(t *testing.T) {
	c := apiServer(t, `{"apiVersion":"brokering.liqo.io/v1alpha1","kind":"Provider","metadata":{"name":"p","annotations":{"a":"b"}},"spec":[1],"status":"x"}`)
	var p v1alpha1.Provider
	if err := c.Get(t.Context(), client.ObjectKey{Name: "p"}, &p); err != nil {
		t.Fatalf("Get(): %v", err)
	}
	if p.Name != "p" || p.Annotations["a"] != "b" || lenient.UnreadableIn(&p, "spec") == "" {
		t.Errorf("Get() = %v", p.ObjectMeta)
	}
}

func TestUnreadableIsBounded(t *testing.T) {
	p := &v1alpha1.Provider{
		ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{lenient.AnnotationUnreadable: strings.Repeat("é", 1<<17)}},
	}
	if text := lenient.Unreadable(p); len(text) > 1024 {
		t.Errorf("Unreadable() has %d bytes of what somebody else wrote", len(text))
	}
}
