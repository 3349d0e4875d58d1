// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	"github.com/liqotech/liqo/cmd/virtual-kubelet/root"
	"github.com/virtual-kubelet/virtual-kubelet/node/api"
	"github.com/virtual-kubelet/virtual-kubelet/node/api/statsv1alpha1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/version"
	discoveryfake "k8s.io/client-go/discovery/fake"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/rest"
	k8stesting "k8s.io/client-go/testing"

	"github.com/capacitorset/liqo-broker/pkg/serving/servingtest"
	"github.com/capacitorset/liqo-broker/pkg/serving/source"
)

const (
	testNode      = "liqo-provider-a"
	testRolePatch = "role.json"
)

func testAdmission() AdmissionConfig {
	return AdmissionConfig{NodeName: testNode, ClientCA: DefaultClientCA, RolePatch: testRolePatch}
}

// servedPods is a handler of one pod.
type servedPods struct{}

func (servedPods) List(context.Context) ([]*corev1.Pod, error) {
	return []*corev1.Pod{{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "db"}}}, nil
}

func (servedPods) Exec(context.Context, string, string, string, []string, api.AttachIO) error {
	return nil
}
func (servedPods) Attach(context.Context, string, string, string, api.AttachIO) error { return nil }

func (servedPods) PortForward(context.Context, string, string, int32, io.ReadWriteCloser) error {
	return nil
}

func (servedPods) Logs(context.Context, string, string, string, api.ContainerLogOpts) (io.ReadCloser, error) {
	return io.NopCloser(strings.NewReader("a line of the log")), nil
}

func (servedPods) Stats(context.Context) (*statsv1alpha1.Summary, error) {
	return &statsv1alpha1.Summary{}, nil
}

// sign returns a certificate that is valid for an hour.
func sign(t *testing.T, a *servingtest.Authority, name string, groups ...string) *tls.Certificate {
	t.Helper()
	return a.Sign(t, time.Now().Add(time.Hour), name, groups...)
}

func authorities(pem string) *corev1.ConfigMap {
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "extension-apiserver-authentication"},
		Data:       map[string]string{"client-ca-file": pem},
	}
}

// reviewer answers for the API server: who is in allowed may do what the right says.
func reviewer(client *fake.Clientset, allowed map[string]string, mayReview bool) {
	client.PrependReactor("create", "subjectaccessreviews", func(action k8stesting.Action) (bool, runtime.Object, error) {
		if !mayReview {
			return true, nil, apierrors.NewForbidden(schema.GroupResource{Resource: "subjectaccessreviews"}, "", nil)
		}
		review := action.(k8stesting.CreateAction).GetObject().(*authorizationv1.SubjectAccessReview).DeepCopy()
		wanted := review.Spec.ResourceAttributes
		for _, who := range append(review.Spec.Groups, review.Spec.User) {
			review.Status.Allowed = review.Status.Allowed || allowed[who] == wanted.Verb+" "+wanted.Subresource && wanted.Name == testNode
		}
		return true, review, nil
	})
}

// tokens are clients of those who have a token.
func tokens(allowed map[string]string) func(string) (kubernetes.Interface, error) {
	return func(token string) (kubernetes.Interface, error) {
		client := fake.NewSimpleClientset()
		client.PrependReactor("create", "selfsubjectaccessreviews", func(action k8stesting.Action) (bool, runtime.Object, error) {
			right, known := allowed[token]
			if !known {
				return true, nil, apierrors.NewUnauthorized("no such token")
			}
			review := action.(k8stesting.CreateAction).GetObject().(*authorizationv1.SelfSubjectAccessReview).DeepCopy()
			wanted := review.Spec.ResourceAttributes
			review.Status.Allowed = right == wanted.Verb+" "+wanted.Subresource && wanted.Name == testNode
			return true, review, nil
		})
		return client, nil
	}
}

// serveKubelet serves the kubelet API until the test ends, and returns its URL.
func serveKubelet(t *testing.T, client kubernetes.Interface, as func(string) (kubernetes.Interface, error)) string {
	t.Helper()
	admission, err := NewAdmission(testAdmission(), client, as, source.Network, logr.Discard())
	if err != nil {
		t.Fatal(err)
	}
	server, err := NewServer(&Config{NodeName: testNode, NodeIP: "127.0.0.1", CertificateType: root.CertificateTypeSelfSigned}, servedPods{},
		client, nil, admission)
	if err != nil {
		t.Fatal(err)
	}
	return "https://" + servingtest.Serve(t, server.serve)
}

// ask sends one request with a certificate or a token; both may be missing.
func ask(t *testing.T, method, url string, certificate *tls.Certificate, token string) (code int, body string) {
	t.Helper()
	config := &tls.Config{InsecureSkipVerify: true}
	if certificate != nil {
		config.Certificates = []tls.Certificate{*certificate}
	}
	request, err := http.NewRequestWithContext(t.Context(), method, url, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	transport := &http.Transport{TLSClientConfig: config}
	defer transport.CloseIdleConnections()
	response, err := transport.RoundTrip(request)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, string(text)
}

// eventually asks until the authority of certificates is known.
func eventually(t *testing.T, condition func() bool) {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Second); !condition(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("it does not become true")
		}
	}
}

func TestWhoMayUseTheKubeletAPI(t *testing.T) {
	own, other := servingtest.NewAuthority(t), servingtest.NewAuthority(t)
	apiServer := sign(t, own, "kube-apiserver-kubelet-client", "system:masters")
	kubeadm := sign(t, own, "kube-apiserver-kubelet-client", kubeadmAdmins)
	peer := sign(t, own, "4a1c-consumer", "liqo.io")
	logs, exec, metrics := "/containerLogs/shop/db/db", "/exec/shop/db/db", "/stats/summary"
	rights := map[string]string{"reader": "get proxy", "scraper": "get stats", "operator": "create proxy", kubeadmAdmins: "get proxy"}

	cases := map[string]struct {
		reason      string
		certificate *tls.Certificate
		token       string
		method      string
		path        string
		// noRights is without the right to ask what others may do.
		noRights bool
		// kubeadm is the version of the cluster, if kubeadm made it.
		kubeadm string
		want    int
		text    string
	}{
		"Nobody": {
			reason: "anybody who has a route reaches the port", path: logs, want: http.StatusUnauthorized, text: "client certificate",
		},
		"NobodyPods":        {reason: "the list has the environment of all pods", path: "/pods", want: http.StatusUnauthorized},
		"NobodyExec":        {reason: "a shell in any pod", method: http.MethodPost, path: exec, want: http.StatusUnauthorized},
		"NobodyMetrics":     {reason: "metrics name the pods of all consumers", path: "/metrics/resource", want: http.StatusUnauthorized},
		"NobodyUnknownPath": {reason: "what is not served tells nothing either", path: "/none", want: http.StatusUnauthorized},
		"APIServer":         {reason: "kubectl logs", certificate: apiServer, path: logs, want: http.StatusOK, text: "a line of the log"},
		"APIServerExec": {
			reason: "the handler wants the headers of a stream", certificate: apiServer, method: http.MethodPost,
			path: exec + "?command=id&output=1", want: http.StatusBadRequest,
		},
		"APIServerNoRights": {
			reason: "kubectl logs works without the patch", certificate: apiServer, path: logs, noRights: true, want: http.StatusOK,
		},
		"Peer": {
			reason: "its certificate is of the same authority", certificate: peer, path: logs, want: http.StatusForbidden,
			text: "may not get nodes/proxy",
		},
		"PeerNoRights": {
			reason: "who cannot be judged is not let in", certificate: peer, path: logs, noRights: true, want: http.StatusForbidden,
			text: testRolePatch,
		},
		"OtherAuthority": {
			reason: "anybody can sign certificates", certificate: sign(t, other, "kube-apiserver-kubelet-client", "system:masters"), path: logs,
			want: http.StatusUnauthorized,
		},
		"Certificate": {reason: "the API server grants it", certificate: sign(t, own, "reader"), path: logs, want: http.StatusOK},
		"ReaderExec": {
			reason: "reading is not running commands, also where it is a GET", certificate: sign(t, own, "reader"),
			path: exec + "?command=id&output=1", want: http.StatusForbidden, text: "create nodes/proxy",
		},
		"Scraper": {reason: "metrics-server", token: "scraper", path: metrics, want: http.StatusOK},
		"ScraperNoRights": {
			reason: "a token is used to ask for its owner, which needs no right", token: "scraper", path: metrics, noRights: true,
			want: http.StatusOK,
		},
		"ScraperLogs":  {reason: "who may read metrics may not read logs", token: "scraper", path: logs, want: http.StatusForbidden},
		"UnknownToken": {reason: "the API server does not know it", token: "stolen", path: metrics, want: http.StatusUnauthorized},
		"BadCertAndToken": {
			reason: "a client may have both", certificate: sign(t, other, "x"), token: "reader", path: logs, want: http.StatusOK,
		},
		"Kubeadm": {reason: "kubeadm 1.29 and later", certificate: kubeadm, path: logs, want: http.StatusOK},
		"KubeadmNoRights": {
			reason: "its group is bound to cluster-admin", certificate: kubeadm, path: logs, noRights: true, kubeadm: "v1.34.4", want: http.StatusOK,
		},
		"OldKubeadmNoRights": {
			reason: "before, anybody whose certificate Liqo signs could call itself so", certificate: kubeadm, path: logs, noRights: true,
			kubeadm: "v1.28.15", want: http.StatusForbidden,
		},
		"NotKubeadmNoRights": {
			reason: "the group means nothing there", certificate: kubeadm, path: logs, noRights: true, want: http.StatusForbidden,
			text: testRolePatch,
		},
		"OddMethod": {
			reason: "there is no right for it", certificate: apiServer, method: http.MethodConnect, path: "/metrics",
			want: http.StatusMethodNotAllowed,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			client := fake.NewSimpleClientset(authorities(own.PEM()))
			client.Discovery().(*discoveryfake.FakeDiscovery).FakedServerVersion = &version.Info{GitVersion: "v1.34.4"}
			if tc.kubeadm != "" {
				client.Discovery().(*discoveryfake.FakeDiscovery).FakedServerVersion = &version.Info{GitVersion: tc.kubeadm}
				if err := client.Tracker().Add(&corev1.ConfigMap{
					ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: kubeadmConfig},
				}); err != nil {
					t.Fatal(err)
				}
			}
			reviewer(client, rights, !tc.noRights)
			url := serveKubelet(t, client, tokens(rights))
			eventually(t, func() bool {
				code, _ := ask(t, http.MethodGet, url+logs, apiServer, "")
				return code == http.StatusOK
			})
			method := tc.method
			if method == "" {
				method = http.MethodGet
			}
			code, text := ask(t, method, url+tc.path, tc.certificate, tc.token)
			if code != tc.want || !strings.Contains(text, tc.text) {
				t.Errorf("%s: %s %s is answered with %d %q, want %d with %q", tc.reason, method, tc.path, code, text, tc.want, tc.text)
			}
		})
	}
}

func TestAuthorityIsFollowed(t *testing.T) {
	first, second := servingtest.NewAuthority(t), servingtest.NewAuthority(t)
	client := fake.NewSimpleClientset()
	url := serveKubelet(t, client, tokens(nil)) + "/containerLogs/shop/db/db"
	logs := func(by *servingtest.Authority) func() bool {
		certificate := sign(t, by, "kube-apiserver-kubelet-client", "system:masters")
		return func() bool {
			code, _ := ask(t, http.MethodGet, url, certificate, "")
			return code == http.StatusOK
		}
	}
	if logs(first)() {
		t.Error("a certificate is accepted before the authority is known")
	}
	if _, err := client.CoreV1().ConfigMaps("kube-system").Create(t.Context(), authorities(first.PEM()), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, logs(first))
	if _, err := client.CoreV1().ConfigMaps("kube-system").Update(t.Context(), authorities(second.PEM()), metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, logs(second))
	if logs(first)() {
		t.Error("certificates of an authority that was replaced are accepted")
	}
}

func TestAttributes(t *testing.T) {
	cases := map[string]struct {
		reason, method, path string
		verb, subresource    string
	}{
		"Metrics":      {"scraped by Prometheus", http.MethodGet, "/metrics", "get", "metrics"},
		"Cadvisor":     {"a path below", http.MethodGet, "/metrics/cadvisor", "get", "metrics"},
		"LooksLike":    {"a name that begins alike is another path", http.MethodGet, "/metricsx", "get", "proxy"},
		"Stats":        {"kubectl top", http.MethodGet, "/stats/summary", "get", "stats"},
		"NodeLogs":     {"the kubelet's own", http.MethodGet, "/logs/x", "get", "log"},
		"Logs":         {"logs of a container", http.MethodGet, "/containerLogs/a/b/c", "get", "proxy"},
		"Pods":         {"specs of all pods", http.MethodGet, "/pods", "get", "proxy"},
		"Exec":         {"SPDY", http.MethodPost, "/exec/a/b/c", "create", "proxy"},
		"ExecSocket":   {"a WebSocket begins with a GET", http.MethodGet, "/exec/a/b/c", "create", "proxy"},
		"AttachSocket": {"a WebSocket begins with a GET", http.MethodGet, "/attach/a/b/c", "create", "proxy"},
		"PortForward":  {"a WebSocket begins with a GET", http.MethodGet, "/portForward/a/b", "create", "proxy"},
		"Disguised":    {"the handler cleans the path as well", http.MethodGet, "/metrics/../exec/a/b/c", "create", "proxy"},
		"Slashes":      {"the handler cleans the path as well", http.MethodGet, "//exec/a/b/c", "create", "proxy"},
		"OddMethod":    {"there is no right for it", "BREW", "/exec/a/b/c", "", "proxy"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			request := httptest.NewRequestWithContext(t.Context(), tc.method, "/", http.NoBody)
			request.URL.Path = tc.path
			want := &authorizationv1.ResourceAttributes{Verb: tc.verb, Version: "v1", Resource: "nodes", Subresource: tc.subresource, Name: testNode}
			if diff := cmp.Diff(want, attributes(testNode, request)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

func TestRequestsAreBounded(t *testing.T) {
	a, err := NewAdmission(testAdmission(), fake.NewSimpleClientset(), tokens(map[string]string{"reader": "get proxy"}), source.Network,
		logr.Discard())
	if err != nil {
		t.Fatal(err)
	}
	entered, release := make(chan struct{}), make(chan struct{})
	handler := a.guard(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		entered <- struct{}{}
		<-release
	}))
	send := func(token string) int {
		request := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/containerLogs/a/b/c", http.NoBody)
		request.Header.Set("Authorization", "Bearer "+token)
		recorder := httptest.NewRecorder()
		handler.ServeHTTP(recorder, request)
		return recorder.Code
	}
	codes := make(chan int, maxRequests)
	for range maxRequests {
		go func() { codes <- send("reader") }()
		<-entered
	}
	if code := send("reader"); code != http.StatusServiceUnavailable {
		t.Errorf("request %d is answered with %d", maxRequests+1, code)
	}
	if code := send("stranger"); code != http.StatusUnauthorized {
		t.Errorf("streams take the place of those who are to be identified: %d", code)
	}
	close(release)
	for range maxRequests {
		if code := <-codes; code != http.StatusOK {
			t.Errorf("a request within the bound is answered with %d", code)
		}
	}
	if len(a.requests) != 0 {
		t.Errorf("%d requests keep their places", len(a.requests))
	}
}

// TestChecksAreShared has a peer send tokens from many addresses while the API server does not answer who has them.
func TestChecksAreShared(t *testing.T) {
	authority := servingtest.NewAuthority(t)
	asked, answer := make(chan struct{}), make(chan struct{})
	as := func(string) (kubernetes.Interface, error) {
		asked <- struct{}{}
		<-answer
		return nil, errors.New("the API server does not answer")
	}
	peer := netip.MustParsePrefix("10.60.0.0/16")
	a, err := NewAdmission(testAdmission(), fake.NewSimpleClientset(authorities(authority.PEM())), as, func(a netip.Addr) source.Source {
		if peer.Contains(a) {
			return source.Peer("peer")
		}
		return source.Network(a)
	}, logr.Discard())
	if err != nil {
		t.Fatal(err)
	}
	codes := make(chan int, maxChecks)
	refused := 0
	handler := a.guard(http.NotFoundHandler())
	send := func(from netip.Addr) {
		go func() {
			request := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/containerLogs/a/b/c", http.NoBody)
			request.RemoteAddr = netip.AddrPortFrom(from, 40000).String()
			request.Header.Set("Authorization", "Bearer made-up")
			recorder := httptest.NewRecorder()
			handler.ServeHTTP(recorder, request)
			codes <- recorder.Code
		}()
		select {
		case <-asked:
		case code := <-codes:
			refused++
			if code != http.StatusServiceUnavailable {
				t.Errorf("answered %d", code)
			}
		}
	}
	from := peer.Addr()
	for range 2 * maxChecksEach {
		from = from.Next()
		send(from)
	}
	if refused != maxChecksEach {
		t.Errorf("of %d tokens of a peer %d are refused, want %d", 2*maxChecksEach, refused, maxChecksEach)
	}
	refused = 0
	send(netip.MustParseAddr("192.0.2.1"))
	if refused > 0 {
		t.Error("a peer takes the place of those who are to be identified")
	}
	close(answer)
	for range maxChecksEach + 1 {
		<-codes
	}
}

// TestNamesOfPeersAreNotBelieved has a peer call by the name of the API server, for which Liqo signs it a certificate: the peer takes
// its own share, and not that of the API server.
func TestNamesOfPeersAreNotBelieved(t *testing.T) {
	const name = "kube-apiserver-kubelet-client"
	authority := servingtest.NewAuthority(t)
	client := fake.NewSimpleClientset(authorities(authority.PEM()))
	asked, answer := make(chan struct{}), make(chan struct{})
	slow := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		asked <- struct{}{}
		<-answer
		http.Error(w, "slow", http.StatusGatewayTimeout)
	}))
	t.Cleanup(slow.Close)
	reviewer, err := kubernetes.NewForConfig(&rest.Config{Host: slow.URL, QPS: 1000, Burst: 1000})
	if err != nil {
		t.Fatal(err)
	}
	peer := netip.MustParseAddr("10.60.0.1")
	a, err := NewAdmission(testAdmission(), client, tokens(nil), func(a netip.Addr) source.Source {
		if a == peer {
			return source.Peer("peer")
		}
		return source.Network(a)
	}, logr.Discard())
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { a.runAuthority(ctx) })
	eventually(t, func() bool { _, ok := a.authority.VerifyOptions(); return ok })
	a.client = reviewer
	handler := a.guard(http.NotFoundHandler())
	send := func(from netip.Addr, shown *tls.Certificate) int {
		request := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/containerLogs/a/b/c", http.NoBody)
		request.RemoteAddr = netip.AddrPortFrom(from, 40000).String()
		leaf, err := x509.ParseCertificate(shown.Certificate[0])
		if err != nil {
			t.Error(err)
		}
		request.TLS = &tls.ConnectionState{PeerCertificates: []*x509.Certificate{leaf}}
		recorder := httptest.NewRecorder()
		handler.ServeHTTP(recorder, request)
		return recorder.Code
	}
	forged := sign(t, authority, name, "liqo.io")
	for range maxChecksEach {
		running.Go(func() { send(peer, forged) })
		<-asked
	}
	if code := send(peer, forged); code != http.StatusServiceUnavailable {
		t.Errorf("a peer that has its share is answered %d", code)
	}
	if code := send(netip.MustParseAddr("192.0.2.1"), sign(t, authority, name, "system:masters")); code != http.StatusNotFound {
		t.Errorf("the API server is answered %d", code)
	}
	close(answer)
	cancel()
	running.Wait()
}

// TestStrangersHaveAShare connects from one network without a word, and then as the API server: from another one, and,
// where it is known already, from the same.
func TestStrangersHaveAShare(t *testing.T) {
	authority := servingtest.NewAuthority(t)
	client := fake.NewSimpleClientset(authorities(authority.PEM()))
	url := serveKubelet(t, client, tokens(nil)) + "/containerLogs/shop/db/db"
	apiServer := sign(t, authority, "kube-apiserver-kubelet-client", "system:masters")
	eventually(t, func() bool {
		code, _ := ask(t, http.MethodGet, url, apiServer, "")
		return code == http.StatusOK
	})
	address := strings.TrimSuffix(strings.TrimPrefix(url, "https://"), "/containerLogs/shop/db/db")
	from := func(host string) *net.Dialer { return &net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(host)}} }
	// caller keeps its one connection.
	caller := func(host string, http2 bool) func() error {
		transport := &http.Transport{
			ForceAttemptHTTP2: http2,
			DialContext:       from(host).DialContext,
			TLSClientConfig:   &tls.Config{InsecureSkipVerify: true, Certificates: []tls.Certificate{*apiServer}},
		}
		t.Cleanup(transport.CloseIdleConnections)
		return func() error {
			request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, http.NoBody)
			if err != nil {
				return err
			}
			response, err := transport.RoundTrip(request)
			if err != nil {
				return err
			}
			_, _ = io.Copy(io.Discard, response.Body)
			return response.Body.Close()
		}
	}
	known := caller("127.0.0.9", false)
	for i := range maxStrangersEach + 1 {
		if i == 0 {
			if err := known(); err != nil {
				t.Fatal(err)
			}
		} else if err := caller("127.0.0.9", i%2 == 0)(); err != nil {
			t.Fatalf("who is let in counts as a stranger: connection %d: %v", i+1, err)
		}
	}
	for i := range maxStrangersEach {
		c, err := from(fmt.Sprintf("127.0.0.%d", 10+i)).DialContext(t.Context(), "tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close() })
	}
	eventually(t, func() bool { return caller("127.0.0.9", false)() != nil }) // All have been accepted.
	if err := known(); err != nil {
		t.Errorf("strangers end the connection of who is known: %v", err)
	}
	if err := caller("127.0.1.9", true)(); err != nil {
		t.Errorf("strangers of one network keep another one out: %v", err)
	}
}
