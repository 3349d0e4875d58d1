// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/yaml"

	"github.com/capacitorset/liqo-broker/pkg/api/v1alpha1"
	"github.com/capacitorset/liqo-broker/pkg/httpapi"
	"github.com/capacitorset/liqo-broker/pkg/shown/apiv1"
	"github.com/capacitorset/liqo-broker/pkg/snapshot/snapshottest"
	"github.com/capacitorset/liqo-broker/pkg/webhook/audit"
)

// TestAudit has several users change what people decide on a real API server, which asks the daemon as the manifests say: the events name
// who it was, and nothing else is recorded. The daemon has the rights of the manifests, and no others.
func TestAudit(t *testing.T) {
	s := startServer(t)
	f := federation{providers: 2, consumers: 1, namespaces: 1, pods: 2, chosen: 1}
	f.populate(s)
	s.asDeployed()
	s.asked("../../deploy/broker/webhook.yaml")
	stop := s.startDaemon()
	defer stop()
	s.await("all namespaces are offloaded", func() bool { return len(s.offloadings()) == f.namespaces })
	f.playLiqo(s)
	s.await("all pods are counted", func() bool { return f.countedPods(s) == f.namespaces*f.pods })

	// The API server learns of the webhook, and of its certificate, a while later.
	alice, warned := s.user("alice@example.com")
	p := &v1alpha1.Provider{}
	used := s.usedProvider()
	patch := func(by client.Client, change string, options ...client.PatchOption) {
		t.Helper()
		p.Name = used
		if err := by.Patch(t.Context(), p, client.RawPatch(types.MergePatchType, []byte(change)), options...); err != nil {
			t.Fatal(err)
		}
	}
	const drain = `{"spec":{"scheduling":"Drained"}}`
	s.eventually("a warning", func() bool {
		patch(alice, drain, client.DryRunAll)
		return len(warned()) > 0
	})

	// She is told what the preview says, and moves nothing by it; then she does it.
	const want = "Of the pods on the provider 1 would move at once, 1 later, and 0 would stay"
	if got := s.previewed(used); got != want {
		t.Errorf("the preview says %q, want %q", got, want)
	}
	told := func(change string, options ...client.PatchOption) []string {
		t.Helper()
		before := len(warned())
		patch(alice, change, options...)
		return warned()[before:]
	}
	cordoned := []string{"Provider " + used + " has 2 pods of 1 consumer. What is there stays, and nothing new comes."}
	if diff := cmp.Diff(cordoned, told(`{"spec":{"scheduling":"Cordoned"}}`, client.DryRunAll)); diff != "" {
		t.Errorf("who tries to cordon a provider is told: -want +got\n%s", diff)
	}
	// A machine that is busy has no time to foresee anything, and counts.
	s.eventually("what was foreseen", func() bool { return slices.Equal(told(drain, client.DryRunAll), []string{want}) })
	if got := told(drain); len(got) != 1 {
		t.Errorf("who drains a provider is told %q", got)
	}

	// Who changes it is told of, by name. A status and a label are nobody's decision.
	argo, _ := s.user("system:serviceaccount:argocd:controller")
	patch(argo, `{"spec":{"scheduling":null,"price":{"cpu":"500m","currency":"EUR"}}}`)
	patch(argo, `{"metadata":{"labels":{"certified":"yes"}}}`)
	status := client.RawPatch(types.MergePatchType, []byte(`{"status":{"clusterName":"x"}}`))
	if err := argo.Status().Patch(t.Context(), p, status); err != nil {
		t.Fatal(err)
	}
	policy := &v1alpha1.PlacementPolicy{ObjectMeta: metav1.ObjectMeta{Name: f.policy(0).Name}}
	if err := alice.Delete(t.Context(), policy); err != nil {
		t.Fatal(err)
	}
	consumer := &v1alpha1.Consumer{ObjectMeta: metav1.ObjectMeta{Name: "somebody"}}
	consumer.Spec.Mode = v1alpha1.ModeAggregated
	if err := argo.Create(t.Context(), consumer); err != nil {
		t.Fatal(err)
	}
	changes := []string{
		"Provider " + used + ": alice@example.com changed spec.scheduling: Active → Drained",
		"Provider " + used + ": system:serviceaccount:argocd:controller changed spec.price.cpu: none → 500m, " +
			"spec.price.currency: none → EUR, spec.price.period: none → 1h, spec.scheduling: Drained → Active",
		"PlacementPolicy " + policy.Name + ": alice@example.com deleted it",
		"Consumer somebody: system:serviceaccount:argocd:controller created it with spec.capacity.sharePercent: 100, " +
			"spec.mode: Aggregated, spec.nodes: One, spec.scheduling: Active, spec.views: Acknowledged",
	}
	s.eventually("all events", func() bool { return len(s.recorded()) >= len(changes) })
	s.pass(time.Second)
	if diff := cmp.Diff(changes, s.recorded()); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
}

// TestRescheduledByTheAPI has the HTTP API tell of what somebody had it change: the API server takes that for the daemon's own.
func TestRescheduledByTheAPI(t *testing.T) {
	c := snapshottest.NewClient(t, interceptor.Funcs{})
	b, err := newBroker(brokerConfig{options: options{orchestrator: true}, rest: &rest.Config{Host: "https://192.0.2.1"}, log: logr.Discard()})
	if err != nil {
		t.Fatal(err)
	}
	mgr, err := ctrl.NewManager(b.cfg.rest, ctrl.Options{Scheme: b.scheme, Logger: b.cfg.log})
	if err != nil {
		t.Fatal(err)
	}
	o := &brokering{cfg: &b.cfg, mgr: mgr, changes: audit.NewLog(audit.Config{
		Client: c, Component: component, Changes: audit.NewMetrics(), Clock: clock.RealClock{}, Log: logr.Discard(),
	})}
	o.rescheduled(httpapi.Rescheduled{
		By: "alice", From: "Active", To: "Drained", Object: &v1alpha1.Provider{ObjectMeta: metav1.ObjectMeta{Name: "id-a", UID: "u"}},
	})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := o.changes.Run(ctx); err != nil {
		t.Fatal(err)
	}
	var events corev1.EventList
	if err := c.List(t.Context(), &events); err != nil || len(events.Items) != 1 {
		t.Fatalf("%d events, %v", len(events.Items), err)
	}
	want := corev1.ObjectReference{APIVersion: v1alpha1.GroupVersion.String(), Kind: "Provider", Name: "id-a", UID: "u"}
	if e := events.Items[0]; e.InvolvedObject != want || e.Message != "alice changed spec.scheduling: Active → Drained" {
		t.Errorf("%+v: %s", e.InvolvedObject, e.Message)
	}
}

// previewed returns what the HTTP API answers who asks what a drain would lead to.
func (s *server) previewed(provider string) string {
	s.tb.Helper()
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: "dashboard"}}
	may := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: account.Name},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: account.Namespace, Name: account.Name}},
	}
	for _, object := range []client.Object{account, may} {
		if err := s.client.Create(s.tb.Context(), object); err != nil {
			s.tb.Fatal(err)
		}
	}
	token := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{Audiences: []string{httpapi.Audience}}}
	if err := s.client.SubResource("token").Create(s.tb.Context(), account, token); err != nil {
		s.tb.Fatal(err)
	}
	request := httptest.NewRequestWithContext(s.tb.Context(), http.MethodGet, "https://localhost/api/v1/providers/"+provider+"/drain", nil)
	request.Header.Set("Authorization", "Bearer "+token.Status.Token)
	answer := httptest.NewRecorder()
	s.daemon.api.Handler().ServeHTTP(answer, request)
	var preview apiv1.DrainPreview
	if err := json.Unmarshal(answer.Body.Bytes(), &preview); err != nil || answer.Code != http.StatusOK {
		s.tb.Fatalf("status %d, %v: %s", answer.Code, err, answer.Body)
	}
	return preview.Message
}

// usedProvider returns a provider that has pods.
func (s *server) usedProvider() string {
	var pods corev1.PodList
	if err := s.client.List(s.tb.Context(), &pods); err != nil {
		s.tb.Fatal(err)
	}
	node := &corev1.Node{}
	if !s.has(node, pods.Items[0].Spec.NodeName) {
		s.tb.Fatalf("there is no node %s", pods.Items[0].Spec.NodeName)
	}
	id, err := s.daemon.brokering.reader.ClusterOf(s.tb.Context(), node)
	if err != nil {
		s.tb.Fatal(err)
	}
	return string(id)
}

// asked has the API server ask about changes as a manifest says, at an address at which webhooks are served from then on.
func (s *server) asked(file string) {
	s.tb.Helper()
	s.webhooks = freeAddress(s.tb)
	host, port, err := net.SplitHostPort(s.webhooks)
	if err != nil {
		s.tb.Fatal(err)
	}
	number, err := strconv.ParseInt(port, 10, 32)
	if err != nil {
		s.tb.Fatal(err)
	}
	manifest, err := os.ReadFile(file)
	if err != nil {
		s.tb.Fatal(err)
	}
	for document := range strings.SplitSeq(string(manifest), "\n---\n") {
		var validating admissionregistrationv1.ValidatingWebhookConfiguration
		if err := yaml.Unmarshal([]byte(document), &validating); err != nil {
			s.tb.Fatal(err)
		}
		if validating.Kind != "ValidatingWebhookConfiguration" {
			continue
		}
		// The others are about pods, which here are as Liqo makes them once a mutating webhook has been asked.
		validating.Webhooks = slices.DeleteFunc(validating.Webhooks, func(w admissionregistrationv1.ValidatingWebhook) bool {
			return *w.ClientConfig.Service.Path != audit.Path
		})
		reached := &corev1.Service{}
		for i := range validating.Webhooks {
			service := validating.Webhooks[i].ClientConfig.Service
			service.Port, reached.Namespace, reached.Name = new(int32(number)), service.Namespace, service.Name
		}
		reached.Spec.Type, reached.Spec.ExternalName = corev1.ServiceTypeExternalName, host
		for _, object := range []client.Object{&validating, reached} {
			if err := s.client.Create(s.tb.Context(), object); err != nil {
				s.tb.Fatal(err)
			}
		}
	}
}

// user returns a client of somebody who may do everything, and what it was warned of.
func (s *server) user(name string) (is client.Client, warned func() []string) {
	config := rest.CopyConfig(s.config)
	config.Impersonate = rest.ImpersonationConfig{UserName: name, Groups: []string{"system:masters", "system:authenticated"}}
	said := &warnings{}
	config.WarningHandler = said
	is, err := client.New(config, client.Options{Scheme: s.client.Scheme()})
	if err != nil {
		s.tb.Fatal(err)
	}
	return is, said.all
}

// warnings keeps what an API server warns of.
type warnings struct {
	mu   sync.Mutex
	said []string
}

// HandleWarningHeader implements rest.WarningHandler.
func (w *warnings) HandleWarningHeader(_ int, _, text string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.said = append(w.said, text)
}

func (w *warnings) all() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.said)
}

// recorded returns what events say of changes, in the order in which they were written.
func (s *server) recorded() []string {
	var list corev1.EventList
	if err := s.client.List(s.tb.Context(), &list, client.InNamespace(metav1.NamespaceDefault)); err != nil {
		s.tb.Fatal(err)
	}
	list.Items = slices.DeleteFunc(list.Items, func(e corev1.Event) bool { return e.Reason != audit.ReasonChanged })
	revision := func(e corev1.Event) int {
		n, err := strconv.Atoi(e.ResourceVersion)
		if err != nil {
			s.tb.Fatal(err)
		}
		return n
	}
	slices.SortFunc(list.Items, func(a, b corev1.Event) int { return revision(a) - revision(b) })
	var all []string
	for i := range list.Items {
		e := &list.Items[i]
		all = append(all, fmt.Sprintf("%s %s: %s", e.InvolvedObject.Kind, e.InvolvedObject.Name, e.Message))
	}
	return all
}
