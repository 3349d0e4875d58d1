// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"
	appsv1 "k8s.io/api/apps/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/yaml"

	"github.com/capacitorset/liqo-broker/pkg/cached"
	"github.com/capacitorset/liqo-broker/pkg/controller/giveback"
	"github.com/capacitorset/liqo-broker/pkg/liqo"
	"github.com/capacitorset/liqo-broker/pkg/liqo/lines"
	v09 "github.com/capacitorset/liqo-broker/pkg/liqo/v09"
	"github.com/capacitorset/liqo-broker/pkg/liqo/v09/liqotest"
	"github.com/capacitorset/liqo-broker/pkg/program"
	"github.com/capacitorset/liqo-broker/pkg/serving/delegatedauth"
)

// run carries out a command line.
func run(ctx context.Context, args []string, stdout io.Writer) error {
	command := newCommand()
	command.SetArgs(args)
	command.SetOut(stdout)
	return command.ExecuteContext(ctx)
}

func TestCommandLine(t *testing.T) {
	t.Setenv("KUBECONFIG", filepath.Join(t.TempDir(), "none"))
	t.Setenv("HOME", t.TempDir())
	cases := map[string]struct {
		reason string
		args   []string
		code   int
		err    string
	}{
		"NoMode": {
			reason: "A daemon without a mode does nothing, so it does not start.", code: program.ExitUsage,
			err: "no mode is given: use at least one of --with-catalog, --with-orchestrator and --with-aggregator",
		},
		"UnknownFlag": {
			reason: "An unknown flag is named.", args: []string{"--with-catalogue"}, code: program.ExitUsage,
			err: "unknown flag: --with-catalogue: see broker --help",
		},
		"Argument": {
			reason: "There are no arguments.", args: []string{"--with-catalog", "now"}, code: program.ExitUsage,
			err: `unknown command "now" for "broker": see broker --help`,
		},
		"Address": {
			reason: "A bad address names the flag.", args: []string{"--with-catalog", "--api-address=8000"}, code: program.ExitUsage,
			err: "--api-address=8000 is not [HOST]:PORT: address 8000: missing port in address",
		},
		"HalfACertificate": {
			reason: "A certificate needs its key.", args: []string{"--with-catalog", "--tls-cert-file=tls.crt"}, code: program.ExitUsage,
			err: "--tls-cert-file and --tls-private-key-file need each other",
		},
		"AnyAudience": {
			reason: "Tokens for the API server must not be asked for by accident.", args: []string{"--with-catalog", "--api-audience="},
			code: program.ExitUsage, err: "--api-audience must not be empty",
		},
		"Origin": {
			reason: "All origins cannot be allowed.", args: []string{"--with-catalog", "--api-cors-origin=*"}, code: program.ExitUsage,
			err: "--api-cors-origin=* is not SCHEME://HOST[:PORT], such as https://dashboard.example.com",
		},
		"OriginWithPath": {
			reason: "A browser sends no path.", args: []string{"--with-catalog", "--api-cors-origin=https://a.example/"}, code: program.ExitUsage,
			err: "--api-cors-origin=https://a.example/ is not SCHEME://HOST[:PORT], such as https://dashboard.example.com",
		},
		"PageOfACatalog": {
			reason: "A page that shows nothing serves nobody.", args: []string{"--with-catalog", "--ui"}, code: program.ExitUsage,
			err: "--ui needs --with-orchestrator or --with-aggregator: a catalog does not serve what the page shows",
		},
		"PlainAddress": {
			reason: "A bad second address names the flag.", args: []string{"--with-catalog", "--plain-api-address=8001"}, code: program.ExitUsage,
			err: "--plain-api-address=8001 is not [HOST]:PORT: address 8001: missing port in address",
		},
		"Allow": {
			reason: "A bad prefix names the flag.", args: []string{"--with-catalog", "--webhook-allow=node"}, code: program.ExitUsage,
			err: `invalid argument "node" for "--webhook-allow" flag: netip.ParsePrefix("node"): no '/': see broker --help`,
		},
		"Mapping": {
			reason: "A bad strategy names the flag.", args: []string{"--with-catalog", "--namespace-mapping-strategy=any"}, code: program.ExitUsage,
			err: `--namespace-mapping-strategy: unknown namespace mapping strategy "any": use one of [DefaultName EnforceSameName]`,
		},
		"LogLevel": {
			reason: "A bad level names the flag.", args: []string{"--with-catalog", "--log-level=loud"}, code: program.ExitUsage,
			err: "--log-level=loud: must be debug, info or error",
		},
		"NoCluster": {
			reason: "Without a cluster the command line is right and the daemon fails.", args: []string{"--with-catalog"}, code: program.ExitFailure,
			err: "find the Kubernetes API, by KUBECONFIG or a pod's service account: ",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			err := run(t.Context(), tc.args, &bytes.Buffer{})
			if err == nil || !strings.HasPrefix(err.Error(), tc.err) || strings.Contains(err.Error(), "\n") {
				t.Fatalf("%s\nrun(): %v, want %s", tc.reason, err, tc.err)
			}
			if got := program.ExitCode(err); got != tc.code {
				t.Errorf("%s\nexit code %d, want %d", tc.reason, got, tc.code)
			}
		})
	}
}

func TestHelpShowsTheModes(t *testing.T) {
	var out bytes.Buffer
	if err := run(t.Context(), []string{"--help"}, &out); err != nil {
		t.Fatalf("run(): %v", err)
	}
	for _, flag := range []string{"--with-catalog", "--with-orchestrator", "--with-aggregator", "--anonymous-toggle", "--anonymous-catalog"} {
		if !strings.Contains(out.String(), flag) {
			t.Errorf("the help does not show %s:\n%s", flag, &out)
		}
	}
}

// grantedBy returns verbs by group, resource, subresource and name.
func grantedBy(t *testing.T, rules []rbacv1.PolicyRule) map[string][]string {
	t.Helper()
	granted := map[string][]string{}
	for _, r := range rules {
		for _, group := range r.APIGroups {
			for _, resource := range r.Resources {
				resource, sub, _ := strings.Cut(resource, "/")
				n := need{group: group, resource: resource, subresource: sub, name: strings.Join(r.ResourceNames, ",")}
				granted[n.String()] = append(granted[n.String()], slices.Sorted(slices.Values(r.Verbs))...)
			}
		}
	}
	return granted
}

// TestDeploymentGrantsWhatIsNeeded compares deploy/broker with the preflight, with all lines of Liqo: the
// daemon must start with it, and have no right that it does not use.
func TestDeploymentGrantsWhatIsNeeded(t *testing.T) {
	manifest, err := os.ReadFile("../../deploy/broker/rbac.yaml")
	if err != nil {
		t.Fatal(err)
	}
	granted := map[string]map[string][]string{}
	for document := range strings.SplitSeq(string(manifest), "\n---\n") {
		var m metav1.PartialObjectMetadata
		if err := yaml.Unmarshal([]byte(document), &m); err != nil {
			t.Fatal(err)
		}
		if m.Kind == "RoleBinding" && m.Namespace == metav1.NamespaceSystem &&
			strings.Contains(document, "name: extension-apiserver-authentication-reader\n") {
			granted[m.Namespace] = grantedBy(t, []rbacv1.PolicyRule{{ // The role is Kubernetes' own.
				APIGroups: []string{""}, Resources: []string{"configmaps"}, ResourceNames: []string{"extension-apiserver-authentication"},
				Verbs: []string{"get", "list", "watch"},
			}})
		}
		if m.Kind == "ClusterRole" || m.Kind == "Role" {
			var role rbacv1.ClusterRole // A Role has the same fields.
			if err := yaml.UnmarshalStrict([]byte(document), &role); err != nil {
				t.Fatal(err)
			}
			granted[role.Namespace] = grantedBy(t, role.Rules)
		}
	}
	needed := map[string]map[string][]string{"": {}, "liqo-broker": {}, "liqo": {}, metav1.NamespaceDefault: {}, metav1.NamespaceSystem: {}}
	all := options{
		catalog: true, orchestrator: true, aggregator: true, leaderElect: true, leaderNamespace: "liqo-broker", namespace: "liqo-broker",
		liqoNamespace: liqo.DefaultNamespace,
	}
	for _, of := range lines.All() {
		for _, n := range needs(&all, of) {
			namespace := n.namespace
			n.namespace = ""
			needed[namespace][n.String()] = slices.Sorted(slices.Values(n.verbs))
		}
	}
	if diff := cmp.Diff(needed, granted); diff != "" {
		t.Errorf("deploy/broker/rbac.yaml: -needed +granted, by namespace\n%s", diff)
	}
}

// TestDeploymentHasMemory compares the memory that deploy/broker gives to the daemon with what docs/placement/scale.md says that it holds.
func TestDeploymentHasMemory(t *testing.T) {
	largest := resource.MustParse("142Mi") // Live, with 1,000 providers and each namespace on all of them.
	manifest, err := os.ReadFile("../../deploy/broker/deployment.yaml")
	if err != nil {
		t.Fatal(err)
	}
	documents := strings.Split(string(manifest), "\n---\n")
	var deployment appsv1.Deployment
	if err := yaml.UnmarshalStrict([]byte(documents[len(documents)-1]), &deployment); err != nil {
		t.Fatal(err)
	}
	container := deployment.Spec.Template.Spec.Containers[0]
	for _, env := range container.Env {
		if env.Name != "GOMEMLIMIT" {
			continue
		}
		soft, hard := resource.MustParse(strings.TrimSuffix(env.Value, "B")), container.Resources.Limits.Memory()
		if soft.Value() < largest.Value()*4/3 || soft.Value() > hard.Value()*4/5 {
			t.Errorf("GOMEMLIMIT is %s: want more than %s, with room for garbage, and less than the limit %s, with room for what Go does not count",
				env.Value, largest.String(), hard)
		}
		return
	}
	t.Error("the daemon has no GOMEMLIMIT")
}

// TestDeploymentAsksForTokens checks that nobody toggles providers, or reads an aggregator's list of them, unless the operator
// wants it.
func TestDeploymentAsksForTokens(t *testing.T) {
	manifest, err := os.ReadFile("../../deploy/broker/deployment.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, flag := range []string{"--anonymous-toggle", "--anonymous-catalog"} {
		if strings.Contains(string(manifest), "- "+flag) {
			t.Errorf("deploy/broker has %s", flag)
		}
	}
}

// TestPlainModesNeedLess checks that a mode does not ask for the rights of another.
func TestPlainModesNeedLess(t *testing.T) {
	names := func(o options) []string {
		all := map[string]bool{}
		for _, n := range needs(&o, v09.Line{}) {
			all[n.String()] = true
		}
		return slices.Sorted(maps.Keys(all))
	}
	plain := []string{
		"configmaps liqo-broker-remote-ipam", "foreignclusters.discovery.liqo.io",
		"mutatingwebhookconfigurations.admissionregistration.k8s.io liqo-broker", "namespaces", "subjectaccessreviews.authorization.k8s.io",
		"tokenreviews.authentication.k8s.io", "tunnelendpoints.net.liqo.io",
		"validatingwebhookconfigurations.admissionregistration.k8s.io liqo-broker",
	}
	if diff := cmp.Diff(plain, names(options{catalog: true})); diff != "" {
		t.Errorf("a catalog: -want +got\n%s", diff)
	}
	// With another line, the kinds of this one are not there.
	only := map[string][]string{
		"0.9": {"resourceoffers.sharing.liqo.io", "shadowpods.virtualkubelet.liqo.io", "configmaps liqo-broker-direct-consumers"},
		"1.x": {
			"connections.networking.liqo.io", "identities.authentication.liqo.io", "resourceslices.authentication.liqo.io",
			"resourceslices/status.authentication.liqo.io", "shadowpods.offloading.liqo.io", "tenants.authentication.liqo.io",
		},
	}
	both := []string{
		"mutatingwebhookconfigurations.admissionregistration.k8s.io liqo-broker", "namespaceoffloadings.offloading.liqo.io",
		"validatingwebhookconfigurations.admissionregistration.k8s.io liqo-broker",
	}
	for _, of := range lines.All() {
		all := map[string]bool{}
		for _, n := range needs(&options{aggregator: true}, of) {
			all[n.String()] = true
			if n.ofCatalog {
				t.Errorf("with Liqo %s, what grants %s is that of a catalog", of.Name(), n)
			}
		}
		for _, name := range both {
			if !all[name] {
				t.Errorf("with Liqo %s, a broker does not need %s", of.Name(), name)
			}
		}
		for line, names := range only {
			for _, name := range names {
				if all[name] != (line == of.Name()) {
					t.Errorf("with Liqo %s, a broker needs %s: %t", of.Name(), name, all[name])
				}
			}
		}
	}
	announces := func(o options) bool {
		return slices.Contains(names(o), "configmaps liqo-broker-api-ca in namespace own")
	}
	if !announces(options{catalog: true, namespace: "own"}) {
		t.Error("a catalog with its own certificate does not announce it")
	}
	if announces(options{catalog: true, namespace: "own", tlsCertFile: "tls.crt"}) {
		t.Error("a catalog whose certificate others made announces it")
	}
}

func TestNamespaces(t *testing.T) {
	file := filepath.Join(t.TempDir(), "namespace")
	if err := os.WriteFile(file, []byte("own\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	cases := map[string]struct {
		reason string
		o      options
		file   string
		own    string
		want   string
		fails  bool
	}{
		"Alone":   {reason: "A daemon that is alone needs no lease.", file: "none"},
		"AloneIn": {reason: "It knows its namespace nevertheless.", file: file, own: "own"},
		"Given": {
			reason: "What is given counts.", o: options{leaderElect: true, leaderNamespace: "given"}, file: file, own: "own", want: "given",
		},
		"InAPod":    {reason: "A pod knows its namespace.", o: options{leaderElect: true}, file: file, own: "own", want: "own"},
		"Elsewhere": {reason: "Elsewhere it must be given.", o: options{leaderElect: true}, file: file + "none", fails: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			err := tc.o.findNamespaces(tc.file)
			if (err != nil) != tc.fails || tc.o.leaderNamespace != tc.want || tc.o.namespace != tc.own {
				t.Errorf("%s\nfindNamespaces(): %q, %q, %v", tc.reason, tc.o.leaderNamespace, tc.o.namespace, err)
			}
		})
	}
}

// known is an API server's resources by group and version.
type known map[string][]string

func (k known) ServerResourcesForGroupVersion(groupVersion string) (*metav1.APIResourceList, error) {
	names, ok := k[groupVersion]
	if !ok {
		return nil, apierrors.NewNotFound(schema.GroupResource{}, groupVersion)
	}
	list := &metav1.APIResourceList{GroupVersion: groupVersion}
	for _, name := range names {
		list.APIResources = append(list.APIResources, metav1.APIResource{Name: name})
	}
	return list, nil
}

func TestPreflight(t *testing.T) {
	d := known{
		"discovery.liqo.io/v1alpha1": {"foreignclusters"},
		"brokering.liqo.io/v1alpha1": {"providers"},
		"v1":                         {"nodes"},
	}
	const apply = "kubectl apply -k 'https://github.com/capacitorset/liqo-broker//deploy?ref=main'"
	cases := map[string]struct {
		reason string
		need   need
		err    string
	}{
		"Granted": {reason: "What exists and is granted passes.", need: need{version: "v1", resource: "nodes", verbs: []string{"get"}}},
		"NotOurs": {
			reason: "A missing CRD of Liqo names the cure.", need: need{group: "sharing.liqo.io", version: "v1alpha1", resource: "resourceoffers"},
			err: "the API server does not know resourceoffers.sharing.liqo.io: install Liqo v0.9.4 first (liqoctl install)",
		},
		"NotOursOfOne": {
			reason: "So does one of Liqo 1.x.", need: need{group: "authentication.liqo.io", version: "v1beta1", resource: "resourceslices"},
			err: "the API server does not know resourceslices.authentication.liqo.io: install Liqo v1.2.0 first (liqoctl install)",
		},
		"Ours": {
			reason: "A missing CRD of ours names the cure.", need: need{group: "brokering.liqo.io", version: "v1alpha1", resource: "consumers"},
			err: "the API server does not know consumers.brokering.liqo.io: install it with: " + apply,
		},
		"Forbidden": {
			reason: "A refused right names the cure.", need: need{version: "v1", resource: "nodes", verbs: []string{"get", "patch"}},
			err: "the broker may not patch nodes: grant it with: " + apply,
		},
		"Named": {
			reason: "A right to one object names it.", need: need{version: "v1", resource: "nodes", name: "one", verbs: []string{"patch"}},
			err: "the broker may not patch nodes one: grant it with: " + apply,
		},
		"Sub": {
			reason: "A subresource is named.", need: need{group: "brokering.liqo.io", version: "v1alpha1", resource: "providers",
				subresource: "status", verbs: []string{"patch"}},
			err: "the broker may not patch providers/status.brokering.liqo.io: grant it with: " + apply,
		},
		"Catalog": {
			reason: "A folder of its own grants it.", need: need{version: "v1", resource: "nodes", verbs: []string{"patch"}, ofCatalog: true},
			err: "the broker may not patch nodes: grant it with: " + strings.Replace(apply, "deploy?", "deploy/catalog?", 1),
		},
		"Down": {
			reason: "A failed question is not taken for a yes.", need: need{version: "v1", resource: "nodes", verbs: []string{"fail"}},
			err: "ask the API server whether the broker may fail nodes: boom",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c := fake.NewClientBuilder().WithScheme(liqotest.Scheme(t)).WithInterceptorFuncs(interceptor.Funcs{
				Create: func(_ context.Context, _ client.WithWatch, o client.Object, _ ...client.CreateOption) error {
					review := o.(*authorizationv1.SelfSubjectAccessReview)
					if review.Spec.ResourceAttributes.Verb == "fail" {
						return errors.New("boom")
					}
					review.Status.Allowed = review.Spec.ResourceAttributes.Verb == "get"
					return nil
				},
			}).Build()
			got := ""
			if err := preflight(t.Context(), d, c, []need{tc.need}); err != nil {
				got = err.Error()
			}
			if got != tc.err {
				t.Errorf("%s\npreflight(): %q, want %q", tc.reason, got, tc.err)
			}
		})
	}
}

// TestPluginServesBeforeAllElse starts a daemon whose API server is stuck: Liqo
// must reach the resource plugin nevertheless. When the API server then turns out
// to know no CRD, the daemon ends and says which.
// reviews are the audiences for which tokens were to be.
type reviews struct{ audiences []string }

func (r *reviews) Create(_ context.Context, o client.Object, _ ...client.CreateOption) error {
	r.audiences = o.(*authenticationv1.TokenReview).Spec.Audiences
	return nil
}

// TestTokensAreForTheBroker checks for whom tokens have to be that the HTTP API takes.
func TestTokensAreForTheBroker(t *testing.T) {
	audiences, err := newCommand().Flags().GetStringSlice("api-audience")
	if err != nil {
		t.Fatal(err)
	}
	var asked reviews
	config := brokerConfig{options: options{apiAudiences: audiences}}
	if _, err := config.reviewer(&asked).Review(t.Context(), "token", delegatedauth.Right{Verb: "get", Path: "/"}); err != nil {
		t.Fatal(err)
	}
	if want := []string{"liqo-broker"}; !slices.Equal(asked.audiences, want) {
		t.Errorf("a token counts for the audiences %q, want %q", asked.audiences, want)
	}
}

// elsewhere is a listener whose callers have an address that is nobody's.
type elsewhere struct{ net.Listener }

func (e elsewhere) Accept() (net.Conn, error) {
	c, err := e.Listener.Accept()
	return fromElsewhere{c}, err
}

type fromElsewhere struct{ net.Conn }

func (fromElsewhere) RemoteAddr() net.Addr { return &net.TCPAddr{IP: net.IPv4(192, 0, 2, 1), Port: 1} }

// TestPluginHearsNoStrangers asks the resource plugin from an address that is not known to be Liqo's, and from one that is allowed.
func TestPluginHearsNoStrangers(t *testing.T) {
	server := httptest.NewServer(http.NotFoundHandler())
	defer server.Close()
	for name, tc := range map[string]struct {
		reason   string
		allow    []netip.Prefix
		patience time.Duration
		want     codes.Code
	}{
		"Stranger": {"Pods of peers have a route to the port.", nil, time.Second, codes.DeadlineExceeded},
		"Allowed":  {"The operator knows the address.", []netip.Prefix{netip.MustParsePrefix("192.0.2.0/24")}, time.Minute, codes.OK},
	} {
		t.Run(name, func(t *testing.T) {
			b, err := newBroker(brokerConfig{
				options: options{orchestrator: true, pluginAllow: tc.allow},
				mapping: defaultMapping, rest: &rest.Config{Host: server.URL}, log: logr.Discard(),
			})
			if err != nil {
				t.Fatalf("newBroker(): %v", err)
			}
			listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			running, stop := context.WithCancel(t.Context())
			done := make(chan error, 1)
			go func() { done <- b.runPlugin(running, elsewhere{listener}) }()
			defer func() {
				stop()
				<-done
			}()
			conn, err := grpc.NewClient(listener.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()))
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = conn.Close() }()
			ctx, cancel := context.WithTimeout(t.Context(), tc.patience)
			defer cancel()
			_, err = healthv1.NewHealthClient(conn).Check(ctx, &healthv1.HealthCheckRequest{}, grpc.WaitForReady(true))
			if status.Code(err) != tc.want {
				t.Errorf("%s\nthe resource plugin answers %v, want %s", tc.reason, err, tc.want)
			}
		})
	}
}

// TestPluginOfLines holds that the port of the resource plugin closes once it is known that Liqo asks none, and not before.
func TestPluginOfLines(t *testing.T) {
	server := httptest.NewServer(http.NotFoundHandler())
	defer server.Close()
	for _, of := range lines.All() {
		b, err := newBroker(brokerConfig{
			options: options{orchestrator: true}, mapping: defaultMapping, rest: &rest.Config{Host: server.URL}, log: logr.Discard(),
		})
		if err != nil {
			t.Fatalf("newBroker(): %v", err)
		}
		listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		running, stop := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- b.runPlugin(running, listener) }()
		answers := func() error {
			conn, err := grpc.NewClient(listener.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()))
			if err != nil {
				return err
			}
			defer func() { _ = conn.Close() }()
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			_, err = healthv1.NewHealthClient(conn).Check(ctx, &healthv1.HealthCheckRequest{})
			return err
		}
		if err := answers(); err != nil {
			t.Errorf("before it is known which Liqo runs: %v", err)
		}
		b.line.Set(of)
		if of.HasPlugin() {
			if err := answers(); err != nil {
				t.Errorf("with Liqo %s: %v", of.Name(), err)
			}
			stop()
		}
		if err := <-done; err != nil {
			t.Errorf("with Liqo %s, runPlugin() = %v", of.Name(), err)
		}
		if err := answers(); err == nil {
			t.Errorf("with Liqo %s, the port is open still", of.Name())
		}
		stop()
	}
}

func TestPluginServesBeforeAllElse(t *testing.T) {
	stuck := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		<-stuck
		http.NotFound(w, r)
	}))
	defer server.Close()
	unstick := sync.OnceFunc(func() { close(stuck) })
	defer unstick() // Before the server closes, which waits for its calls.
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := listener.Addr().String()
	if err := listener.Close(); err != nil {
		t.Fatal(err)
	}
	b, err := newBroker(brokerConfig{
		options: options{
			orchestrator: true, anonymousToggle: true,
			pluginAddress: address, apiAddress: "127.0.0.1:0", metricsAddress: "0", healthAddress: "0",
		},
		mapping: defaultMapping, rest: &rest.Config{Host: server.URL}, log: logr.Discard(),
	})
	if err != nil {
		t.Fatalf("newBroker(): %v", err)
	}
	done := make(chan error, 1)
	go func() { done <- b.run(t.Context()) }()

	conn, err := grpc.NewClient(address, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if _, err := healthv1.NewHealthClient(conn).Check(ctx, &healthv1.HealthCheckRequest{}, grpc.WaitForReady(true)); err != nil {
		t.Errorf("the resource plugin does not serve: %v", err)
	}
	unstick()
	want := lines.ErrNone.Error()
	if err := <-done; err == nil || err.Error() != want {
		t.Errorf("run(): %v, want %s", err, want)
	}
}

func TestCachedPodKeepsWhatIsRead(t *testing.T) {
	requests := func(cpu string) corev1.ResourceRequirements {
		return corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu)}}
	}
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name: "web", Labels: map[string]string{"app": "web"}, Annotations: map[string]string{"a": "b", giveback.AnnotationGiveBack: "Never"},
		},
		Spec: corev1.PodSpec{
			NodeName: "n", Tolerations: []corev1.Toleration{{Key: "k"}},
			Affinity:   &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{}, PodAffinity: &corev1.PodAffinity{}},
			Containers: []corev1.Container{{Name: "web", Resources: requests("1")}, {Name: "log", Resources: requests("500m")}},
		},
		Status: corev1.PodStatus{Phase: corev1.PodRunning, Reason: "why", PodIP: "10.0.0.1", Conditions: []corev1.PodCondition{
			{Type: corev1.PodScheduled, Status: corev1.ConditionTrue}, {Type: corev1.PodInitialized, Status: corev1.ConditionFalse},
			{Type: corev1.PodReady, Status: corev1.ConditionTrue},
		}},
	}
	all := requests("1500m")
	all.Requests[corev1.ResourcePods] = resource.MustParse("1")
	want := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name: "web", Labels: map[string]string{"app": "web"}, Annotations: map[string]string{giveback.AnnotationGiveBack: "Never"},
		},
		Spec: corev1.PodSpec{
			NodeName: "n", Tolerations: []corev1.Toleration{{Key: "k"}},
			Containers: []corev1.Container{{Resources: all}},
		},
		Status: corev1.PodStatus{Phase: corev1.PodRunning, Reason: "why", PodIP: "10.0.0.1", Conditions: []corev1.PodCondition{
			{Type: corev1.PodScheduled, Status: corev1.ConditionTrue}, {Type: corev1.PodReady, Status: corev1.ConditionTrue},
		}},
	}
	strip := cached.Pod(&liqo.Compactor{}, giveback.AnnotationGiveBack)
	got, err := strip(pod)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("a pod that is bound: -want +got\n%s", diff)
	}
	absurd := pod.DeepCopy()
	absurd.Spec.Containers = slices.Repeat([]corev1.Container{{Resources: requests("1e2147483647")}}, 3)
	if got, err = strip(absurd); err != nil { // It must not take minutes.
		t.Fatal(err)
	}
	if cpu := got.(*corev1.Pod).Spec.Containers[0].Resources.Requests.Cpu(); cpu.CmpInt64(1<<60) != 0 {
		t.Errorf("a pod that requests what nobody can compute with: %v", cpu)
	}
	pod.Spec.NodeName, want.Spec.NodeName = "", ""
	want.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{}}
	if got, err = strip(pod); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("a pod that waits: -want +got\n%s", diff)
	}
}
