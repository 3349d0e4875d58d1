// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package outofband_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
	"github.com/capacitorset/liqo-broker/pkg/liqo/v09/liqotest"
	"github.com/capacitorset/liqo-broker/pkg/trade/connector/peering"
	"github.com/capacitorset/liqo-broker/pkg/trade/connector/peering/outofband"
)

// served is a server on loopback, and how many connections it has seen.
type served struct {
	*httptest.Server

	connections atomic.Int32
}

func serve(t *testing.T, answer http.HandlerFunc) *served {
	t.Helper()
	s := &served{Server: httptest.NewUnstartedServer(answer)}
	s.Config.ErrorLog = log.New(t.Output(), "", 0)
	s.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			s.connections.Add(1)
		}
	}
	s.StartTLS()
	t.Cleanup(s.Close)
	return s
}

// ids answers as liqo-auth of the cluster "there" does.
func ids(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path != "/ids" || r.Method != http.MethodGet {
		http.NotFound(w, r)
		return
	}
	fmt.Fprintf(w, `{"clusterId":%q,"clusterName":"remote"}`, "there")
}

// anywhere admits all hosts.
func anywhere(string) error { return nil }

// nobody returns an address of loopback where nobody listens.
func nobody(t *testing.T, network string) string {
	t.Helper()
	if network == "udp" {
		c, err := (&net.ListenConfig{}).ListenPacket(t.Context(), network, "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		return c.LocalAddr().String()
	}
	c, err := (&net.ListenConfig{}).Listen(t.Context(), network, "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	return c.Addr().String()
}

// TestTry tries clusters of which something is not where they say.
func TestTry(t *testing.T) {
	var followed atomic.Bool
	elsewhere := serve(t, func(w http.ResponseWriter, r *http.Request) { followed.Store(true); ids(w, r) })
	auth, api := serve(t, ids), serve(t, http.NotFound)
	gateway, err := (&net.ListenConfig{}).ListenPacket(t.Context(), "udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { gateway.Close() })
	plain := httptest.NewServer(http.HandlerFunc(ids))
	t.Cleanup(plain.Close)
	silent, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { silent.Close() })

	const isAuth, isAPI, isGateway = peering.AuthEndpoint, peering.APIServerEndpoint, peering.GatewayEndpoint
	for name, tc := range map[string]struct {
		change    func(at *peering.Endpoints)
		endpoint  string
		why       string
		notLonger time.Duration
	}{
		"All":            {change: func(at *peering.Endpoints) { at.Gateway = gateway.LocalAddr().String() }},
		"NoGateway":      {change: func(*peering.Endpoints) {}},
		"AnotherCluster": {change: func(at *peering.Endpoints) { at.Cluster = "here" }, endpoint: isAuth, why: `cluster "there" answers`},
		"NoAuth":         {change: func(at *peering.Endpoints) { at.Auth = "" }, endpoint: isAuth, why: "it is not told"},
		"NoAPIServer":    {change: func(at *peering.Endpoints) { at.APIServer = "" }, endpoint: isAPI, why: "it is not told"},
		"AuthRefuses": {
			change: func(at *peering.Endpoints) { at.Auth = "https://" + nobody(t, "tcp") }, endpoint: isAuth, why: "connection refused",
		},
		"APIRefuses": {
			change: func(at *peering.Endpoints) { at.APIServer = "https://" + nobody(t, "tcp") }, endpoint: isAPI, why: "connection refused",
		},
		"GatewayRefuses": {change: func(at *peering.Endpoints) { at.Gateway = nobody(t, "udp") }, endpoint: isGateway, why: "connection refused"},
		"AuthIsOther":    {change: func(at *peering.Endpoints) { at.Auth = api.URL }, endpoint: isAuth, why: "it answers with status 404"},
		"AuthPath":       {change: func(at *peering.Endpoints) { at.Auth += "/latest" }, endpoint: isAuth, why: "it is not https://HOST[:PORT]"},
		"AuthUser": {
			change: func(at *peering.Endpoints) { at.Auth = strings.Replace(at.Auth, "//", "//a:b@", 1) }, endpoint: isAuth,
			why: "it is not https://HOST[:PORT]",
		},
		"AuthPlain": {change: func(at *peering.Endpoints) { at.Auth = plain.URL }, endpoint: isAuth, why: "it is not https://HOST[:PORT]"},
		"APIServerPlain": {
			change: func(at *peering.Endpoints) { at.APIServer = "https://" + plain.Listener.Addr().String() }, endpoint: isAPI,
			why: "tls: first record",
		},
		"APIServerSilent": {
			change: func(at *peering.Endpoints) { at.APIServer = "https://" + silent.Addr().String() }, endpoint: isAPI, why: "no answer in 4s",
			notLonger: 6 * time.Second,
		},
		"GatewayNoPort": {change: func(at *peering.Endpoints) { at.Gateway = "127.0.0.1" }, endpoint: isGateway, why: "it is not HOST:PORT"},
		"Redirects": {change: func(at *peering.Endpoints) {
			at.Auth = serve(t, func(w http.ResponseWriter, r *http.Request) {
				http.Redirect(w, r, elsewhere.URL+"/ids", http.StatusFound)
			}).URL
		}, endpoint: isAuth, why: "it answers with status 302"},
		"Endless": {change: func(at *peering.Endpoints) {
			at.Auth = serve(t, func(w http.ResponseWriter, r *http.Request) {
				for r.Context().Err() == nil {
					if _, err := w.Write([]byte(strings.Repeat(" ", 1<<20))); err != nil {
						return
					}
				}
			}).URL
		}, endpoint: isAuth, why: "it does not answer as liqo-auth does", notLonger: 3 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			at := peering.Endpoints{Cluster: "there", Auth: auth.URL, APIServer: api.URL}
			tc.change(&at)
			began := time.Now()
			err := outofband.NewReach(nil, "liqo", anywhere).Try(t.Context(), at)
			took := time.Since(began)
			found := peering.UnreachedError(nil)
			switch as := errors.As(err, &found); {
			case tc.endpoint == "" && err != nil:
				t.Errorf("it is not reached: %v", err)
			case tc.endpoint != "" && (!as || !errors.Is(err, peering.ErrNotReachable) || len(found) != 1 || found[0].Endpoint != tc.endpoint ||
				!strings.Contains(found[0].Why, tc.why)):
				t.Errorf("%v, want %s: %s", err, tc.endpoint, tc.why)
			case tc.notLonger > 0 && took > tc.notLonger:
				t.Errorf("it took %s", took)
			}
		})
	}
	if followed.Load() {
		t.Error("a redirect is followed")
	}
}

// TestTryInside connects to nothing that is not outside, also where a name leads inside.
func TestTryInside(t *testing.T) {
	auth, api := serve(t, ids), serve(t, http.NotFound)
	var heard atomic.Int32
	gateway, err := (&net.ListenConfig{}).ListenPacket(t.Context(), "udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { gateway.Close() })
	go func() {
		for {
			if _, _, err := gateway.ReadFrom(make([]byte, 8)); err != nil {
				return
			}
			heard.Add(1)
		}
	}()
	named := func(address string) string { return strings.Replace(address, "127.0.0.1", "localhost", 1) }
	namesPass := func(host string) error {
		if _, err := netip.ParseAddr(host); err != nil {
			return nil //nolint:nilerr // As one in the DNS of all, which leads here.
		}
		return peering.Outside(host)
	}
	addressesPass := func(host string) error {
		if _, err := netip.ParseAddr(host); err == nil {
			return nil // As that of a Service, which may be one of another cluster as well.
		}
		return peering.Outside(host)
	}
	for name, tc := range map[string]struct {
		admits func(string) error
		at     peering.Endpoints
	}{
		"Address": {nil, peering.Endpoints{Cluster: "there", Auth: auth.URL, APIServer: api.URL, Gateway: gateway.LocalAddr().String()}},
		"Inside": {
			nil, peering.Endpoints{Cluster: "there", Auth: named(auth.URL), APIServer: named(api.URL), Gateway: named(gateway.LocalAddr().String())},
		},
		"Service": {
			addressesPass, peering.Endpoints{
				Cluster: "there", Auth: named(auth.URL), APIServer: named(api.URL), Gateway: named(gateway.LocalAddr().String()),
			},
		},
		"Name": {
			namesPass, peering.Endpoints{
				Cluster: "there", Auth: named(auth.URL), APIServer: named(api.URL), Gateway: named(gateway.LocalAddr().String()),
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			err := outofband.NewReach(nil, "liqo", tc.admits).Try(t.Context(), tc.at)
			found := peering.UnreachedError(nil)
			if !errors.As(err, &found) || len(found) != 3 || strings.Count(err.Error(), peering.ErrInside.Error()) != 3 {
				t.Errorf("%v, want all three inside", err)
			}
		})
	}
	if n := auth.connections.Load() + api.connections.Load() + heard.Load(); n != 0 {
		t.Errorf("%d connections inside", n)
	}
}

// TestTryEnds ends with who asks.
func TestTryEnds(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	err := outofband.NewReach(nil, "liqo", anywhere).Try(ctx,
		peering.Endpoints{Cluster: "there", Auth: "https://192.0.2.1", APIServer: "https://192.0.2.1"})
	if !errors.Is(err, context.Canceled) || errors.Is(err, peering.ErrNotReachable) {
		t.Errorf("%v, want %v", err, context.Canceled)
	}
}

// TestOwn finds where this cluster is reached, as Liqo tells others.
func TestOwn(t *testing.T) {
	named := func(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Namespace: "liqo", Name: name} }
	told := func(args ...string) *appsv1.Deployment {
		d := &appsv1.Deployment{ObjectMeta: named("liqo-auth")}
		d.Spec.Template.Spec.Containers = []corev1.Container{{Name: "auth", Command: []string{"/usr/bin/auth-service"}, Args: args}}
		return d
	}
	balanced := func(name, at string, port corev1.ServicePort) *corev1.Service {
		s := &corev1.Service{
			ObjectMeta: named(name), Spec: corev1.ServiceSpec{Type: corev1.ServiceTypeLoadBalancer, Ports: []corev1.ServicePort{port}},
		}
		s.Status.LoadBalancer.Ingress = []corev1.LoadBalancerIngress{{IP: at}}
		return s
	}
	auth := balanced("liqo-auth", "192.0.2.7", corev1.ServicePort{Name: "https", Port: 443})
	gateway := balanced("liqo-gateway", "192.0.2.8", corev1.ServicePort{Name: "wireguard", Port: 5871, Protocol: corev1.ProtocolUDP})
	onNode := gateway.DeepCopy()
	onNode.Annotations, onNode.Spec.Type = map[string]string{"net.liqo.io/gatewayNodeIP": "192.0.2.20"}, corev1.ServiceTypeNodePort
	onNode.Spec.Ports[0].NodePort = 30871
	node := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: "control", Labels: map[string]string{"node-role.kubernetes.io/control-plane": ""}},
	}
	node.Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: "192.0.2.20"}}

	for name, tc := range map[string]struct {
		objects []client.Object
		want    peering.Endpoints
		fails   string
	}{
		"Told": {
			objects: []client.Object{auth, gateway, told("--namespace=liqo", "--advertise-api-server-address=api.example.org:443")},
			want: peering.Endpoints{
				Cluster: "here", Auth: "https://192.0.2.7", APIServer: "https://api.example.org:443", Gateway: "192.0.2.8:5871",
			},
		},
		"Nodes": {
			objects: []client.Object{auth, onNode, told(), node},
			want: peering.Endpoints{
				Cluster: "here", Auth: "https://192.0.2.7", APIServer: "https://192.0.2.20:6443", Gateway: "192.0.2.20:30871",
			},
		},
		"NoGateway": {
			objects: []client.Object{auth, told("--advertise-api-server-address", "https://192.0.2.9:6443")},
			want:    peering.Endpoints{Cluster: "here", Auth: "https://192.0.2.7", APIServer: "https://192.0.2.9:6443"}, fails: "liqo-gateway",
		},
		"NoAPIServer": {
			objects: []client.Object{auth, gateway, told()},
			want:    peering.Endpoints{Cluster: "here", Auth: "https://192.0.2.7", Gateway: "192.0.2.8:5871"},
			fails:   "--advertise-api-server-address",
		},
		"Nothing": {want: peering.Endpoints{Cluster: "here"}, fails: "liqo-auth"},
	} {
		t.Run(name, func(t *testing.T) {
			identity := liqotest.Liqo(cluster.Identity{ID: "here", Name: "home"}, "token")[0]
			c := fake.NewClientBuilder().WithScheme(liqotest.Scheme(t)).WithObjects(append(tc.objects, identity)...).Build()
			r := outofband.NewReach(c, "liqo", nil)
			for range 2 { // The second answer is the first one.
				got, err := r.Own(t.Context())
				if got != tc.want || (err == nil) != (tc.fails == "") || err != nil && !strings.Contains(err.Error(), tc.fails) {
					t.Errorf("%+v, %v\nwant %+v, %q", got, err, tc.want, tc.fails)
				}
				if err := c.DeleteAllOf(t.Context(), &corev1.Service{}, client.InNamespace("liqo")); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}
