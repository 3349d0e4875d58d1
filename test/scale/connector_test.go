// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package scale

import (
	"bufio"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/capacitorset/liqo-broker/pkg/api/connectorv1alpha1"
	"github.com/capacitorset/liqo-broker/pkg/liqo"
	v09 "github.com/capacitorset/liqo-broker/pkg/liqo/v09"
	"github.com/capacitorset/liqo-broker/test/apiserver"
)

// namespace is that of the connector, and connectorUser who it is to the API server.
const namespace, connectorUser = "liqo-broker-connector", "connector"

// ownID is the ID of the connector's cluster.
const ownID = "00000000-1f2e-4d3c-8b5a-000000000000"

// auditPolicy has the API server write down each request of the connector when it has ended.
const auditPolicy = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived, ResponseStarted]
rules: [{level: Metadata, users: [` + connectorUser + `]}, {level: None}]
`

// TestConnector measures a connector, on a real API server, that follows a registry with all offers: as it begins, and when it begins
// again.
func TestConnector(t *testing.T) {
	program(t, "connector")
	s := sized(t)
	k := startKubernetes(t)
	r := newRegistry(t, "sqlite:"+filepath.Join(t.TempDir(), "registry.db"))
	c, _ := newCrowd(t, s, r)
	m := &measurement{t: t}
	m.table.value("offers, parties", fmt.Sprintf("%d, %d", s.parties*s.offersEach, s.parties))

	began := time.Now()
	p := k.startBuyer()
	p.await("http://"+k.health+"/readyz", began)
	k.measure(m, "a connector without a registry", p, goalConnector)
	k.join(r, r.token(1))
	began = time.Now()
	k.await(c)
	m.table.value("a registry is named, until all is followed and remembered", fmt.Sprintf("%.1f s", time.Since(began).Seconds()))
	k.measure(m, "a connector that has read all", p, goalConnector)
	p.kill()

	began = time.Now()
	p = k.startBuyer()
	m.table.value("started again, until it is ready", fmt.Sprintf("%.1f s", p.await("http://"+k.health+"/readyz", began).Seconds()))
	k.follows(c, p)
	k.measure(m, "a connector that has read its pages", p, goalConnector)
	t.Logf("the connector:\n%s", &m.table)
}

// kubernetes is an API server, and where the connector is.
type kubernetes struct {
	client.Client

	t               testing.TB
	config          string
	health, metrics string
	token           string
	audit           string // The file of the API server's log of what the connector asks.
	heard           int64  // Up to where that was read.
}

// startKubernetes starts etcd and an API server with the CRDs, on loopback, and makes there what the connector needs of Liqo.
func startKubernetes(tb testing.TB) *kubernetes {
	tb.Helper()
	ctrl.SetLogger(logr.Discard())
	arguments, audit := apiserver.Audit(tb, auditPolicy)
	environment := apiserver.Start(tb, apiserver.Options{Kinds: []string{"deploy/connector/crds"}, Arguments: arguments})
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, connectorv1alpha1.AddToScheme, v09.AddToScheme} {
		if err := add(scheme); err != nil {
			tb.Fatal(err)
		}
	}
	k := &kubernetes{t: tb, config: filepath.Join(tb.TempDir(), "config"), health: free(tb), metrics: free(tb), audit: audit}
	var err error
	if k.Client, err = client.New(environment.Config, client.Options{Scheme: scheme}); err != nil {
		tb.Fatal(err)
	}
	user, err := environment.AddUser(envtest.User{Name: connectorUser, Groups: []string{"system:masters"}}, environment.Config)
	if err != nil {
		tb.Fatal(err)
	}
	text, err := user.KubeConfig()
	if err == nil {
		err = os.WriteFile(k.config, text, 0o600)
	}
	if err != nil {
		tb.Fatal(err)
	}
	k.prepare()
	return k
}

// prepare makes what the connector finds on a cluster with Liqo, and who may read its metrics.
func (k *kubernetes) prepare() {
	k.t.Helper()
	reader := metav1.ObjectMeta{Name: "reader", Namespace: namespace}
	for _, o := range []client.Object{
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}},
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: liqo.DefaultNamespace}},
		&corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Name: liqo.IdentityName, Namespace: liqo.DefaultNamespace},
			Data:       map[string]string{"CLUSTER_ID": ownID, "CLUSTER_NAME": "own"},
		},
		&corev1.ServiceAccount{ObjectMeta: reader},
		&rbacv1.ClusterRole{
			ObjectMeta: metav1.ObjectMeta{Name: reader.Name},
			Rules:      []rbacv1.PolicyRule{{NonResourceURLs: []string{"/metrics"}, Verbs: []string{"get"}}},
		},
		&rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: reader.Name},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: reader.Name},
			Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Name: reader.Name, Namespace: namespace}},
		},
	} {
		if err := k.Create(k.t.Context(), o); err != nil {
			k.t.Fatal(err)
		}
	}
	var token authenticationv1.TokenRequest
	if err := k.SubResource("token").Create(k.t.Context(), &corev1.ServiceAccount{ObjectMeta: reader}, &token); err != nil {
		k.t.Fatal(err)
	}
	k.token = token.Status.Token
}

// join has the connector use a registry.
func (k *kubernetes) join(r *registry, token string) {
	k.t.Helper()
	for _, o := range []client.Object{
		&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "token"}, Data: map[string][]byte{"token": []byte(token)}},
		&connectorv1alpha1.Registry{
			ObjectMeta: metav1.ObjectMeta{Name: "large"},
			Spec: connectorv1alpha1.RegistrySpec{
				URL: "https://" + r.address, Fingerprint: r.fingerprint, TokenSecret: connectorv1alpha1.SecretReference{Name: "token"},
			},
		},
	} {
		if err := k.Create(k.t.Context(), o); err != nil {
			k.t.Fatal(err)
		}
	}
}

// startBuyer starts a connector that buys.
func (k *kubernetes) startBuyer() *process {
	k.t.Helper()
	return k.startConnector("--address=0", "--resource-plugin-address=0")
}

// startConnector starts a connector with the environment that deploy/connector gives it.
func (k *kubernetes) startConnector(args ...string) *process {
	k.t.Helper()
	args = append(args, "--namespace="+namespace, "--leader-election-identity=one", "--metrics-address="+k.metrics,
		"--health-address="+k.health)
	return start(k.t, []string{"KUBECONFIG=" + k.config, "GOMEMLIMIT=" + memoryLimit}, program(k.t, "connector"), args...)
}

// memoryLimit is that of deploy/connector.
const memoryLimit = "96MiB"

// await waits until the connector follows the registry, and has remembered all that this shows.
func (k *kubernetes) await(c *crowd) {
	k.t.Helper()
	for deadline := time.Now().Add(2 * time.Minute); ; time.Sleep(100 * time.Millisecond) {
		var found connectorv1alpha1.Registry
		if err := k.Get(k.t.Context(), client.ObjectKey{Name: "large"}, &found); err != nil {
			k.t.Fatal(err)
		}
		if int(found.Status.Offers) == c.parties*c.offersEach && found.Status.Position != "" &&
			meta.IsStatusConditionTrue(found.Status.Conditions, connectorv1alpha1.ConditionFollowing) {
			return
		}
		if time.Now().After(deadline) {
			k.t.Fatalf("not everything is followed: %+v", found.Status)
		}
	}
}

// follows waits until the connector, which has begun again, watches the registry: it sees an offer that changes.
func (k *kubernetes) follows(c *crowd, p *process) {
	k.t.Helper()
	var before connectorv1alpha1.Registry
	if err := k.Get(k.t.Context(), client.ObjectKey{Name: "large"}, &before); err != nil {
		k.t.Fatal(err)
	}
	m := c.members[0]
	if _, err := m.client.Publish(k.t.Context(), m.ID, offerID(0), m.sign(k.t, 0, 0, firstChange)); err != nil {
		k.t.Fatal(err)
	}
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(100 * time.Millisecond) {
		var found connectorv1alpha1.Registry
		if err := k.Get(k.t.Context(), client.ObjectKey{Name: "large"}, &found); err != nil {
			k.t.Fatal(err)
		}
		if found.Status.Position != before.Status.Position {
			return
		}
		if time.Now().After(deadline) {
			k.t.Fatalf("%s does not go on: %+v", p.name, found.Status)
		}
	}
}

// settle is for how long a connector is left alone before its memory is looked at: until its garbage is collected, as it is every two
// minutes at least, and what it does not need any more is given back.
const settle = 5 * time.Second

// measure notes the memory of the connector, of which its own has a goal.
func (k *kubernetes) measure(m *measurement, what string, p *process, goal float64) {
	m.t.Helper()
	time.Sleep(settle)
	heap := k.heap()
	m.table.value(what+": heap", mebibytes(heap))
	p.mu.Lock()
	most := p.anonymous
	p.mu.Unlock()
	m.table.value(what+": memory of its own", fmt.Sprintf("%s, at most %s", mebibytes(p.memory("RssAnon")), mebibytes(most)))
	m.table.value(what+": pages of the program's file", mebibytes(p.memory("RssFile")))
	if most > goal {
		m.t.Errorf("%s: %s, want at most %s", what, mebibytes(most), mebibytes(goal))
	}
}

// asked returns how often the connector has asked the API server for what, as "verb resource", since this was called last.
func (k *kubernetes) asked() map[string]int {
	k.t.Helper()
	log, err := os.Open(k.audit)
	if err != nil {
		k.t.Fatal(err)
	}
	defer log.Close()
	if _, err := log.Seek(k.heard, io.SeekStart); err != nil {
		k.t.Fatal(err)
	}
	all := map[string]int{}
	for lines := bufio.NewReader(log); ; {
		line, err := lines.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return all // The last line may not be whole yet.
		}
		var event struct {
			Verb      string `json:"verb"`
			ObjectRef struct {
				Resource    string `json:"resource"`
				Subresource string `json:"subresource"`
			} `json:"objectRef"`
		}
		if err == nil {
			err = json.Unmarshal(line, &event)
		}
		if err != nil {
			k.t.Fatal(err)
		}
		k.heard += int64(len(line))
		all[strings.TrimSuffix(event.Verb+" "+event.ObjectRef.Resource+"/"+event.ObjectRef.Subresource, "/")]++
	}
}

// heap returns the bytes of objects of the connector's heap in MiB, as its metrics say.
func (k *kubernetes) heap() float64 {
	k.t.Helper()
	request, err := http.NewRequestWithContext(context.WithoutCancel(k.t.Context()), http.MethodGet, "https://"+k.metrics+"/metrics",
		http.NoBody)
	if err != nil {
		k.t.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer "+k.token)
	by := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
	defer by.CloseIdleConnections()
	answer, err := by.Do(request)
	if err != nil {
		k.t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		k.t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		var value float64
		if _, err := fmt.Sscanf(line, "go_memstats_heap_alloc_bytes %g", &value); err == nil {
			return value / (1 << 20)
		}
	}
	k.t.Fatalf("the metrics of the connector have no heap: %s: %.200s", answer.Status, text)
	return 0
}
