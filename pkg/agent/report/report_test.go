// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package report_test

import (
	"context"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr/funcr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	k8sfake "k8s.io/client-go/kubernetes/fake"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	agent "github.com/capacitorset/liqo-broker/pkg/agent/report"
	"github.com/capacitorset/liqo-broker/pkg/core/views"
	"github.com/capacitorset/liqo-broker/pkg/daemon"
	"github.com/capacitorset/liqo-broker/pkg/liqo"
	"github.com/capacitorset/liqo-broker/pkg/liqo/v1/api"
	"github.com/capacitorset/liqo-broker/pkg/liqo/v1/report"
)

const tenant, there = "liqo-tenant-broker", "liqo-tenant-home"

// newHome returns what makes the objects of a consumer.
func newHome(t *testing.T) *fake.ClientBuilder {
	t.Helper()
	scheme, err := daemon.Kinds(api.AddToScheme)
	if err != nil {
		t.Fatal(err)
	}
	return fake.NewClientBuilder().WithScheme(scheme)
}

// TestReporter tells a broker at once what is new, again each minute what is not, and also that there is nothing any more.
func TestReporter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		namespace, other := there, "liqo-tenant-other"
		identity := func(name string, of api.IdentityType, cluster, secret string, at *string) *api.Identity {
			return &api.Identity{
				ObjectMeta: metav1.ObjectMeta{Namespace: tenant, Name: name},
				Spec:       api.IdentitySpec{ClusterID: cluster, Type: of, Namespace: at},
				Status:     api.IdentityStatus{KubeconfigSecretRef: &corev1.LocalObjectReference{Name: secret}},
			}
		}
		labels := map[string]string{liqo.LabelRemoteClusterID: "p"}
		home := newHome(t).WithObjects(
			identity("a", api.IdentityResourceSlice, "broker", "wrong", &other), identity("b", api.IdentityControlPlane, "x", "wrong", &other),
			identity("c", api.IdentityControlPlane, "broker", "right", &namespace),
			&corev1.Secret{
				ObjectMeta: metav1.ObjectMeta{Namespace: tenant, Name: "right"}, Data: map[string][]byte{"kubeconfig": []byte("to the broker")},
			},
			&api.Configuration{ObjectMeta: metav1.ObjectMeta{Namespace: "liqo-tenant-p", Name: "p", Labels: labels}},
			&api.Connection{
				ObjectMeta: metav1.ObjectMeta{Namespace: "liqo-tenant-p", Name: "p", Labels: labels},
				Status: api.ConnectionStatus{
					Value: api.Connected, Latency: api.ConnectionLatency{Value: "2ms", Timestamp: metav1.NewTime(time.Unix(9000, 0))},
				},
			},
		).Build()
		broker := k8sfake.NewSimpleClientset(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: there, Name: report.Name}})
		r := agent.New(agent.Config{
			Cached: home, Live: home, Version: "v1", Clock: clock.RealClock{},
			Dial: func(kubeconfig []byte) (kubernetes.Interface, error) {
				if string(kubeconfig) != "to the broker" {
					t.Errorf("it dials %q", kubeconfig)
				}
				return broker, nil
			},
		})
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- r.Start(ctx) }()
		told := func() report.Report {
			t.Helper()
			synctest.Wait()
			return (&far{client: broker}).told(t)
		}

		if first := told(); !first.At.IsZero() {
			t.Errorf("it tells what was not planned: %+v", first)
		}
		want := map[string]netip.Prefix{"n1": netip.MustParsePrefix("10.69.0.0/16")}
		r.Planned("broker", tenant, &views.Plan{Acknowledged: want})
		first := told()
		if !maps.Equal(first.Views, want) || first.Agent != "v1" || !first.At.Equal(time.Now().Truncate(time.Second)) {
			t.Errorf("at first it tells %+v", first)
		}
		link := report.Link{Cluster: "p", Connected: true, RoundTrip: 2 * time.Millisecond, At: time.Unix(9000, 0).UTC()}
		if len(first.Links) != 1 || first.Links[0] != link {
			t.Errorf("links %+v, want %+v", first.Links, link)
		}
		time.Sleep(61 * time.Second)
		if again := told(); !again.At.After(first.At) {
			t.Errorf("it tells nothing more: %+v", again)
		}
		r.Planned("broker", tenant, &views.Plan{})
		if none := told(); len(none.Views) > 0 || !none.At.Equal(time.Now().Truncate(time.Second)) {
			t.Errorf("what it told before goes on counting: %+v", none)
		}

		// A plan that nobody makes again says nothing of how things are.
		r.Planned("broker", tenant, &views.Plan{Acknowledged: want})
		was := told().At
		time.Sleep(5 * time.Minute)
		if last := told(); last.At.Sub(was) > 2*time.Minute {
			t.Errorf("it tells what was planned %s ago as if it still were", last.At.Sub(was))
		}
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

// far is a broker, in a test of several of them.
type far struct {
	client *k8sfake.Clientset
	// lost is why it cannot be reached; nil if it can.
	lost error
	// answers is closed when it answers; nil if it always does.
	answers chan struct{}
}

// told returns what it was told last.
func (f *far) told(t *testing.T) report.Report {
	t.Helper()
	m, err := f.client.CoreV1().ConfigMaps(there).Get(t.Context(), report.Name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if m.Data[report.Key] == "" {
		return report.Report{}
	}
	read, err := report.Parse(m.Data[report.Key])
	if err != nil {
		t.Fatal(err)
	}
	return read
}

// tellerOf returns what tells some brokers on a consumer of theirs.
func tellerOf(t *testing.T, brokers map[string]*far) *agent.Reporter {
	t.Helper()
	b, namespace := newHome(t), there
	for name, f := range brokers {
		meta := metav1.ObjectMeta{Namespace: "liqo-tenant-" + name, Name: name}
		b = b.WithObjects(
			&api.Identity{
				ObjectMeta: meta, Spec: api.IdentitySpec{ClusterID: name, Type: api.IdentityControlPlane, Namespace: &namespace},
				Status: api.IdentityStatus{KubeconfigSecretRef: &corev1.LocalObjectReference{Name: name}},
			},
			&corev1.Secret{ObjectMeta: meta, Data: map[string][]byte{"kubeconfig": []byte(name)}},
		)
		f.client = k8sfake.NewSimpleClientset(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: there, Name: report.Name}})
	}
	home := b.Build()
	return agent.New(agent.Config{
		Cached: home, Live: home, Version: "v1", Clock: clock.RealClock{},
		Dial: func(kubeconfig []byte) (kubernetes.Interface, error) {
			f := brokers[string(kubeconfig)]
			if f.answers != nil {
				<-f.answers
			}
			return f.client, f.lost
		},
	})
}

// TestBelieved knows what became of what brokers were told, so that it is known what they may believe.
func TestBelieved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &far{}
		r := tellerOf(t, map[string]*far{"broker": f})
		a := netip.MustParsePrefix("10.69.0.0/16")
		with := &views.Plan{Acknowledged: map[string]netip.Prefix{"n1": a}}
		without := &views.Plan{}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- r.Start(ctx) }()
		has := func(reason string, want bool) {
			t.Helper()
			synctest.Wait()
			if got := r.Believed("broker").Has(a, time.Now()); got != want {
				t.Errorf("%s: the broker may believe that the view is there: %t, want %t", reason, got, want)
			}
		}
		plan := func(p *views.Plan, last time.Duration) { // As who plans does it.
			t.Helper()
			for range last / (10 * time.Second) {
				r.Planned("broker", tenant, p)
				time.Sleep(10 * time.Second)
			}
			synctest.Wait()
		}

		has("nothing was told by this program", true)
		plan(without, 20*time.Second)
		has("it was told that nothing is there", false)
		plan(with, 20*time.Second)
		has("it was told that the view is", true)

		// What is told may arrive, or not.
		f.lost = errors.New("no route")
		plan(without, 9*time.Minute)
		has("it may have been told, and not that it is gone", true)
		f.lost = nil
		plan(without, 80*time.Second)
		has("it is told again, each minute", false)

		// While it is told something, it may be about to be told something else.
		f.answers = make(chan struct{})
		time.Sleep(time.Minute)
		r.Planned("broker", tenant, with)
		synctest.Wait()
		close(f.answers)
		synctest.Wait()
		if told := f.told(t).Views; len(told) != 1 {
			t.Errorf("what was planned meanwhile was not told: %v", told)
		}
		f.answers = make(chan struct{})
		time.Sleep(time.Minute) // It is being told that the view is there.
		plan(without, 20*time.Second)
		has("what it is being told may arrive yet", true)
		close(f.answers)
		plan(without, 20*time.Second)
		has("then it was told that it is gone", false)

		// Who plans nothing any more is forgotten with what it has told.
		time.Sleep(3 * time.Minute)
		has("nobody knows anything", true)
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

// TestSeveralBrokers has no broker wait for another one that does not answer.
func TestSeveralBrokers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		silent, other := &far{answers: make(chan struct{})}, &far{}
		r := tellerOf(t, map[string]*far{"broker": silent, "other": other})
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- r.Start(ctx) }()
		began := time.Now()
		r.Planned("broker", tenant, &views.Plan{})
		r.Planned("other", "liqo-tenant-other", &views.Plan{})
		synctest.Wait()
		if other.told(t).At.IsZero() || !silent.told(t).At.IsZero() {
			t.Errorf("told %+v and %+v", other.told(t), silent.told(t))
		}
		r.Planned("other", "liqo-tenant-other", &views.Plan{Acknowledged: map[string]netip.Prefix{"n1": netip.MustParsePrefix("10.69.0.0/16")}})
		synctest.Wait()
		if len(other.told(t).Views) != 1 {
			t.Errorf("it is told later what is new: %+v", other.told(t))
		}
		time.Sleep(5 * time.Second)
		close(silent.answers)
		synctest.Wait()
		if at := silent.told(t).At; !at.Equal(began.Truncate(time.Second)) {
			t.Errorf("what was so at %s is told to be so at %s", began, at)
		}

		silent.answers = make(chan struct{})
		r.Planned("broker", tenant, &views.Plan{Acknowledged: map[string]netip.Prefix{"n1": netip.MustParsePrefix("10.69.0.0/16")}})
		synctest.Wait()
		cancel()
		synctest.Wait()
		select {
		case <-done:
			t.Error("it ends while it tells")
		default:
		}
		close(silent.answers)
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

// TestDial refuses a kubeconfig that would do more than reach a cluster.
func TestDial(t *testing.T) {
	config := func(ca, user string) []byte { return kubeconfig("https://192.0.2.1", ca, user) }
	if _, err := agent.Dial(config("", "token: x")); err != nil {
		t.Error(err)
	}
	for reason, text := range map[string][]byte{
		"it runs a program":   config("", "exec: {apiVersion: client.authentication.k8s.io/v1, command: sh, interactiveMode: Never}"),
		"it reads a file":     config("", "tokenFile: /etc/passwd"),
		"it reads a CA":       config(", certificate-authority: /etc/passwd", "token: x"),
		"it is no kubeconfig": []byte("{"),
	} {
		if _, err := agent.Dial(text); err == nil {
			t.Errorf("%s, and is taken", reason)
		}
	}
}

// TestLogged logs no more of what a broker says than people can read.
func TestLogged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		namespace := there
		home := newHome(t).WithObjects(
			&api.Identity{
				ObjectMeta: metav1.ObjectMeta{Namespace: tenant, Name: "c"},
				Spec:       api.IdentitySpec{ClusterID: "broker", Type: api.IdentityControlPlane, Namespace: &namespace},
				Status:     api.IdentityStatus{KubeconfigSecretRef: &corev1.LocalObjectReference{Name: "right"}},
			},
			&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: tenant, Name: "right"}},
		).Build()
		r := agent.New(agent.Config{
			Cached: home, Live: home, Clock: clock.RealClock{},
			Dial: func([]byte) (kubernetes.Interface, error) { return nil, errors.New(strings.Repeat("x", 1<<20)) },
		})
		var logged []string
		log := funcr.New(func(_, args string) { logged = append(logged, args) }, funcr.Options{})
		ctx, cancel := context.WithCancel(ctrl.LoggerInto(t.Context(), log))
		done := make(chan error)
		go func() { done <- r.Start(ctx) }()
		r.Planned("broker", tenant, &views.Plan{})
		synctest.Wait()
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
		if len(logged) != 1 || len(logged[0]) > 1024 || !strings.Contains(logged[0], "reach the broker by secret") {
			t.Errorf("%d lines are logged: %.100s", len(logged), logged)
		}
	})
}

// TestHostileBroker reads no more of an answer than it needs, and goes nowhere that one says.
func TestHostileBroker(t *testing.T) {
	elsewhere := 0
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { elsewhere++ }))
	defer other.Close()
	sent := 0
	for name, tc := range map[string]struct {
		reason string
		answer func(http.ResponseWriter, *http.Request)
	}{
		"Endless": {"It would take all memory.", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			for text := []byte(`{"data":{"x":"`); sent < 64<<20; text = []byte(strings.Repeat("x", 64<<10)) {
				n, err := w.Write(text)
				if sent += n; err != nil {
					return
				}
			}
		}},
		"Elsewhere": {"It would call what only this cluster reaches.", func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, other.URL, http.StatusTemporaryRedirect)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			broker := httptest.NewTLSServer(http.HandlerFunc(tc.answer))
			defer broker.Close()
			ca := base64.StdEncoding.EncodeToString(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: broker.Certificate().Raw}))
			c, err := agent.Dial(kubeconfig(broker.URL, ", certificate-authority-data: "+ca, "token: x"))
			if err != nil {
				t.Fatal(err)
			}
			if _, err := c.CoreV1().ConfigMaps(there).Get(t.Context(), report.Name, metav1.GetOptions{}); err == nil {
				t.Errorf("%s: the answer is taken", tc.reason)
			}
			if sent > 16<<20 || elsewhere > 0 {
				t.Errorf("%s: %d bytes were sent, and %d calls went elsewhere", tc.reason, sent, elsewhere)
			}
		})
	}
}

func kubeconfig(server, ca, user string) []byte {
	const head = "apiVersion: v1\nkind: Config\ncurrent-context: c\ncontexts: [{name: c, context: {cluster: c, user: u}}]\n" +
		"clusters: [{name: c, cluster: {server: '%SERVER%'%CA%}}]\nusers: [{name: u, user: {%USER%}}]\n"
	return []byte(strings.NewReplacer("%SERVER%", server, "%CA%", ca, "%USER%", user).Replace(head))
}
