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
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	k8sfake "k8s.io/client-go/kubernetes/fake"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	agent "github.com/capacitorset/liqo-broker/pkg/agent/report"
	"github.com/capacitorset/liqo-broker/pkg/core/views"
	"github.com/capacitorset/liqo-broker/pkg/liqo"
	"github.com/capacitorset/liqo-broker/pkg/liqo/v1/api"
	"github.com/capacitorset/liqo-broker/pkg/liqo/v1/report"
)

const tenant, there = "liqo-tenant-broker", "liqo-tenant-home"

// TestReporter tells a broker at once what is new, again each minute what is not, and also that there is nothing any more.
func TestReporter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		scheme := runtime.NewScheme()
		for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, api.AddToScheme} {
			if err := add(scheme); err != nil {
				t.Fatal(err)
			}
		}
		namespace, other := there, "liqo-tenant-other"
		identity := func(name string, of api.IdentityType, cluster, secret string, at *string) *api.Identity {
			return &api.Identity{
				ObjectMeta: metav1.ObjectMeta{Namespace: tenant, Name: name},
				Spec:       api.IdentitySpec{ClusterID: cluster, Type: of, Namespace: at},
				Status:     api.IdentityStatus{KubeconfigSecretRef: &corev1.LocalObjectReference{Name: secret}},
			}
		}
		labels := map[string]string{liqo.LabelRemoteClusterID: "p"}
		home := fake.NewClientBuilder().WithScheme(scheme).WithObjects(
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
			synctest.Wait()
			m, err := broker.CoreV1().ConfigMaps(there).Get(ctx, report.Name, metav1.GetOptions{})
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
		scheme := runtime.NewScheme()
		if err := errors.Join(clientgoscheme.AddToScheme(scheme), api.AddToScheme(scheme)); err != nil {
			t.Fatal(err)
		}
		namespace := there
		home := fake.NewClientBuilder().WithScheme(scheme).WithObjects(
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
