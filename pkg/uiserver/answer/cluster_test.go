// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package answer

import (
	"context"
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capacitorset/liqo-broker/pkg/api/connectorv1alpha1"
	"github.com/capacitorset/liqo-broker/pkg/api/v1alpha1"
	"github.com/capacitorset/liqo-broker/pkg/liqo"
	"github.com/capacitorset/liqo-broker/pkg/liqo/lines"
	v09 "github.com/capacitorset/liqo-broker/pkg/liqo/v09"
	"github.com/capacitorset/liqo-broker/pkg/serving/eventstream"
	"github.com/capacitorset/liqo-broker/pkg/shown"
	"github.com/capacitorset/liqo-broker/pkg/shown/apiv1"
	"github.com/capacitorset/liqo-broker/test/apiserver"
)

// kubernetes is a real API server with the kinds of the broker, of a connector and of Liqo 0.9, and the way there, which can be cut.
type kubernetes struct {
	t      *testing.T
	config *rest.Config
	scheme *runtime.Scheme
	client client.Client
	audit  string // The file of the API server's audit log.

	mu    sync.Mutex
	cut   bool
	conns []net.Conn
}

func startKubernetes(t *testing.T) *kubernetes {
	t.Helper()
	arguments, audit := apiserver.Audit(t, auditPolicy)
	config := apiserver.Start(t, apiserver.Options{Kinds: []string{"deploy/connector/crds"}, Arguments: arguments}).Config
	k := &kubernetes{t: t, config: config, scheme: runtime.NewScheme(), audit: audit}
	for _, add := range []func(*runtime.Scheme) error{
		clientgoscheme.AddToScheme, v1alpha1.AddToScheme, connectorv1alpha1.AddToScheme, lines.AddToScheme,
	} {
		if err := add(k.scheme); err != nil {
			t.Fatal(err)
		}
	}
	var err error
	if k.client, err = client.New(config, client.Options{Scheme: k.scheme}); err != nil {
		t.Fatal(err)
	}
	return k
}

// serve answers with the rights of a user; of who has all rights if that is empty. The way to the API server is that which can be cut.
func (k *kubernetes) serve(user string) *httptest.Server {
	k.t.Helper()
	return k.serveAs(user, Config{Broker: true})
}

// serveAs answers so, of a cluster that is what is said of it.
func (k *kubernetes) serveAs(user string, cfg Config) *httptest.Server {
	k.t.Helper()
	config := rest.CopyConfig(k.config)
	config.Impersonate.UserName = user
	config.Dial = func(ctx context.Context, network, address string) (net.Conn, error) {
		k.mu.Lock()
		defer k.mu.Unlock()
		if k.cut {
			return nil, errors.New("the way is cut")
		}
		c, err := (&net.Dialer{Timeout: time.Second}).DialContext(ctx, network, address)
		if err == nil {
			k.conns = append(k.conns, c)
		}
		return c, err
	}
	cfg.Rest, cfg.Scheme, cfg.Line, cfg.Context, cfg.Version = config, k.scheme, v09.Line{}, "here", "v1.2.3"
	cfg.Programs = shown.Programs{Daemon: client.ObjectKey{Namespace: "liqo-broker", Name: "liqo-broker"}, Liqo: "liqo"}
	answers, err := New(cfg)
	if err != nil {
		k.t.Fatal(err)
	}
	server := httptest.NewServer(answers)
	ctx, cancel := context.WithCancel(context.WithoutCancel(k.t.Context()))
	ran := make(chan error)
	go func() { ran <- answers.Run(ctx) }()
	k.t.Cleanup(func() {
		cancel()
		if err := <-ran; err != nil {
			k.t.Error(err)
		}
		server.CloseClientConnections()
		server.Close()
	})
	return server
}

// reach cuts the way to the API server, or mends it.
func (k *kubernetes) reach(is bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.cut = !is
	if k.cut {
		for _, c := range k.conns {
			_ = c.Close()
		}
		k.conns = nil
	}
}

func (k *kubernetes) do(err error) {
	k.t.Helper()
	if err != nil {
		k.t.Fatal(err)
	}
}

// ask answers a request.
func (k *kubernetes) ask(s *httptest.Server, method, path, body string, into any) int {
	k.t.Helper()
	r, err := http.NewRequestWithContext(k.t.Context(), method, s.URL+path, strings.NewReader(body))
	k.do(err)
	answer, err := s.Client().Do(r)
	k.do(err)
	defer answer.Body.Close()
	if into != nil {
		k.do(json.NewDecoder(answer.Body).Decode(into))
	}
	return answer.StatusCode
}

// watching is a stream that is read.
type watching struct {
	k      *kubernetes
	answer *http.Response
	events *eventstream.Reader
}

func (k *kubernetes) watch(s *httptest.Server) *watching {
	k.t.Helper()
	path := s.URL + "/api/v1/events?kinds=providers,status,workloads,flows"
	r, err := http.NewRequestWithContext(k.t.Context(), http.MethodGet, path, http.NoBody)
	k.do(err)
	answer, err := s.Client().Do(r) //nolint:bodyclose // The stream is read until it ends, or is closed by its reader.
	k.do(err)
	if answer.StatusCode != http.StatusOK {
		k.t.Fatalf("a stream is answered with %s", answer.Status)
	}
	return &watching{k, answer, eventstream.NewReader(answer.Body, 1<<20)}
}

// until reads events until one of them is as wanted, and returns all.
func (w *watching) until(wanted func(eventstream.Event, apiv1.Event) bool) []eventstream.Event {
	w.k.t.Helper()
	timer := time.AfterFunc(time.Minute, func() { w.answer.Body.Close() })
	defer timer.Stop()
	var all []eventstream.Event
	for {
		e, err := w.events.Next()
		if err != nil {
			w.k.t.Fatalf("the stream ends after %q: %v", all, err)
		}
		all = append(all, e)
		var about apiv1.Event
		if len(e.Data) > 0 {
			w.k.do(json.Unmarshal(e.Data, &about))
		}
		if wanted(e, about) {
			return all
		}
	}
}

// ends reads the stream to its end, and reports whether that came in time.
func (w *watching) ends() bool {
	late := make(chan struct{})
	timer := time.AfterFunc(heartbeat+reaching+5*time.Second, func() {
		close(late)
		w.answer.Body.Close()
	})
	defer timer.Stop()
	for {
		if _, err := w.events.Next(); err != nil {
			break
		}
	}
	select {
	case <-late:
		return false
	default:
		return true
	}
}

func synced(e eventstream.Event, _ apiv1.Event) bool { return e.Name == "synced" }

// draining wants an event that a provider is to be drained.
func draining(_ eventstream.Event, about apiv1.Event) bool {
	return about.Provider != nil && about.Provider.Scheduling == "Drained"
}

// TestCluster answers from a real API server: what there is and what changes, to who may, by their own name; and nothing of what was while
// the API server is away.
func TestCluster(t *testing.T) {
	k := startKubernetes(t)
	k.do(k.client.Create(t.Context(), &v1alpha1.Provider{ObjectMeta: metav1.ObjectMeta{Name: "milan"}}))
	k.grant("carol", rbacv1.PolicyRule{
		APIGroups: []string{"brokering.liqo.io"}, Resources: []string{"*"}, Verbs: []string{"get", "list", "watch"},
	}, rbacv1.PolicyRule{
		APIGroups: []string{"net.liqo.io", "discovery.liqo.io", "sharing.liqo.io"}, Resources: []string{"*"},
		Verbs: []string{"list", "watch"},
	}, rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"namespaces"}, Verbs: []string{"list", "watch"}})

	t.Run("Person", func(t *testing.T) {
		all, some := k.serve(""), k.serve("carol")
		var me apiv1.Me
		if status := k.ask(all, http.MethodGet, "/api/v1/me", "", &me); status != http.StatusOK || me.Name == "" || me.Context != "here" ||
			!slices.Equal(me.May, []string{"patch providers", "patch consumers", "patch placementpolicies"}) || len(me.Kinds) != len(shown.Kinds()) {
			t.Errorf("%d: %+v", status, me)
		}
		for _, kind := range me.Kinds {
			if len(kind.Missing) > 0 {
				t.Errorf("who has all rights lacks %q", kind)
			}
		}
		me = apiv1.Me{}
		k.ask(some, http.MethodGet, "/api/v1/me", "", &me)
		lacks := map[string][]string{}
		for _, kind := range me.Kinds {
			lacks[kind.Kind] = kind.Missing
		}
		if me.Name != "carol" || len(me.May) != 0 || len(lacks["providers"]) != 0 ||
			!slices.Equal(lacks["workloads"], []string{"list nodes", "list pods", "watch nodes", "watch pods"}) {
			t.Errorf("carol: %+v", me)
		}
		// What she may not see is no part of what she watches, and what she may not do is refused by the API server.
		began := k.watch(some).until(synced)
		if len(began) != 4 { // reset, a provider, the status, synced
			t.Errorf("carol sees %q", began)
		}
		var problem struct{ Detail string }
		status := k.ask(some, http.MethodPut, "/api/v1/providers/milan/scheduling", `{"scheduling":"Drained"}`, &problem)
		if status != http.StatusForbidden || !strings.Contains(problem.Detail, `User "carol" cannot patch`) {
			t.Errorf("carol drains: %d %s", status, problem.Detail)
		}
	})

	// Whoever may read nothing of Liqo still sees what is the broker's alone.
	k.grant("dave", rbacv1.PolicyRule{
		APIGroups: []string{"brokering.liqo.io"}, Resources: []string{"*"}, Verbs: []string{"get", "list", "watch"},
	})
	t.Run("NothingOfLiqo", func(t *testing.T) {
		var me apiv1.Me
		if status := k.ask(k.serve("dave"), http.MethodGet, "/api/v1/me", "", &me); status != http.StatusOK || me.Name != "dave" {
			t.Fatalf("%d: %+v", status, me)
		}
		for _, kind := range me.Kinds {
			if sees := len(kind.Missing) == 0; sees != slices.Contains([]string{"consumers", "offers", "policies", "decisions"}, kind.Kind) {
				t.Errorf("dave sees %s: %t, for he lacks %q", kind.Kind, sees, kind.Missing)
			}
		}
	})

	t.Run("Live", func(t *testing.T) {
		s := k.serve("")
		w := k.watch(s)
		w.until(synced)
		if status := k.ask(s, http.MethodPut, "/api/v1/providers/milan/scheduling?dryRun=All", `{"scheduling":"Drained"}`, nil); status != 200 {
			t.Fatalf("a dry run: %d", status)
		}
		var milan v1alpha1.Provider
		k.do(k.client.Get(t.Context(), client.ObjectKey{Name: "milan"}, &milan))
		if milan.Spec.Scheduling == v1alpha1.SchedulingDrained {
			t.Fatal("a dry run drains")
		}
		if status := k.ask(s, http.MethodPut, "/api/v1/providers/milan/scheduling", `{"scheduling":"Drained"}`, nil); status != 200 {
			t.Fatalf("a drain: %d", status)
		}
		w.until(draining)

		// The stream ends with the API server: nobody is told what was for what is.
		k.reach(false)
		if !w.ends() {
			t.Error("the page stays live without an API server")
		}
		if status := k.ask(s, http.MethodGet, "/api/v1/events?kinds=providers", "", nil); status != http.StatusServiceUnavailable {
			t.Errorf("without an API server a stream is answered with %d", status)
		}

		// What has changed in the meantime is there when it is back.
		milan.Spec.Scheduling = v1alpha1.SchedulingCordoned
		k.do(k.client.Get(t.Context(), client.ObjectKey{Name: "milan"}, &milan))
		milan.Spec.Scheduling = v1alpha1.SchedulingCordoned
		k.do(k.client.Update(t.Context(), &milan))
		k.reach(true)
		for _, e := range k.watch(s).until(synced) {
			if strings.Contains(string(e.Data), "Drained") {
				t.Errorf("it shows what was: %s", e.Data)
			}
		}
	})

	t.Run("Consumer", k.consumer)

	t.Run("Audited", k.audited)

	t.Run("RightTaken", func(t *testing.T) {
		s := k.serve("carol")
		w := k.watch(s)
		w.until(synced)
		k.do(k.client.Delete(t.Context(), &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "carol"}}))
		k.reach(false) // Her watches begin again, as they do from time to time.
		k.reach(true)
		if !w.ends() {
			t.Error("the page stays live without a right")
		}
		if status := k.ask(s, http.MethodGet, "/api/v1/events?kinds=providers", "", nil); status != http.StatusForbidden {
			t.Errorf("without a right a stream is answered with %d", status)
		}
	})
}

// consumer answers of a cluster that is no broker: which of its pods are at brokers as they come and as their paths change, and what of
// that who may read only some of it sees.
func (k *kubernetes) consumer(t *testing.T) {
	cfg := Config{Consumes: true}
	core := rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"nodes", "pods"}, Verbs: []string{"list", "watch"}}
	k.grant("erin", core)
	var me apiv1.Me
	erin := k.serveAs("erin", cfg)
	status := k.ask(erin, http.MethodGet, "/api/v1/me", "", &me)
	if status != http.StatusOK || !me.Consumes || me.Broker != nil || len(me.May) > 0 {
		t.Fatalf("%d: %+v", status, me)
	}
	lacks := map[string][]string{}
	for _, kind := range me.Kinds {
		lacks[kind.Kind] = kind.Missing
	}
	want := map[string][]string{"workloads": nil, "flows": nil, "status": {
		"list namespaceoffloadings", "list namespaces", "watch namespaceoffloadings", "watch namespaces",
	}}
	if !reflect.DeepEqual(lacks, want) {
		t.Errorf("erin lacks %q", lacks)
	}

	// Without a broker there is nothing but how one would be used.
	all := k.watch(k.serveAs("", cfg))
	began := all.until(synced)
	if len(began) != 3 || !strings.Contains(string(began[1].Data), "neither is a broker's nor uses one") {
		t.Errorf("without a broker there is %q", began)
	}

	// A pod comes, and takes another path.
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "athens", Labels: map[string]string{
		liqo.LabelNodeType: liqo.NodeTypeVirtual, liqo.LabelRemoteClusterID: "athens-id", liqo.LabelVirtualKubelet: "v1",
	}}}
	k.do(k.client.Create(t.Context(), node))
	k.do(k.client.Create(t.Context(), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "default"}}))
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web", Annotations: map[string]string{liqo.AnnotationPath: "direct"}},
		Spec: corev1.PodSpec{NodeName: "athens", Containers: []corev1.Container{{Name: "web", Image: "web"}},
			Tolerations: []corev1.Toleration{{Key: "virtual-node.liqo.io/not-allowed", Operator: corev1.TolerationOpExists}}},
	}
	elsewhere := pod.DeepCopy()
	elsewhere.Name, elsewhere.Spec.NodeName = "elsewhere", "worker"
	k.do(errors.Join(k.client.Create(t.Context(), elsewhere), k.client.Create(t.Context(), pod)))
	some := k.watch(erin)
	for who, w := range map[string]*watching{"all": all, "erin": some} {
		for _, e := range w.until(func(_ eventstream.Event, about apiv1.Event) bool {
			return about.Workload != nil && about.Workload.Pod == "web" && about.Workload.Path == "direct" && about.Workload.Broker.ID == "athens-id"
		}) {
			if strings.Contains(string(e.Data), "elsewhere") {
				t.Errorf("%s sees what is not at a broker: %s", who, e.Data)
			}
		}
	}
	pod.Annotations[liqo.AnnotationPath] = "relay"
	k.do(k.client.Update(t.Context(), pod))
	for _, w := range []*watching{all, some} {
		w.until(func(_ eventstream.Event, about apiv1.Event) bool {
			return about.Flow != nil && about.Flow.Path == "relay" && about.Flow.Pods == 1
		})
	}
}

// grant gives a user rights in the whole cluster.
func (k *kubernetes) grant(user string, rules ...rbacv1.PolicyRule) {
	k.t.Helper()
	named := metav1.ObjectMeta{Name: user}
	k.do(k.client.Create(k.t.Context(), &rbacv1.ClusterRole{ObjectMeta: named, Rules: rules}))
	k.do(k.client.Create(k.t.Context(), &rbacv1.ClusterRoleBinding{
		ObjectMeta: named, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: user},
		Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user}},
	}))
}
