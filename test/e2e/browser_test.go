// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"cmp"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capacitorset/liqo-broker/pkg/api/v1alpha1"
	"github.com/capacitorset/liqo-broker/pkg/shown/apiv1"
	"github.com/capacitorset/liqo-broker/test/federation"
	"github.com/capacitorset/liqo-broker/test/walk"
	"github.com/capacitorset/liqo-broker/test/webpage"
)

// TestBrowser opens the page in a browser. It shows where pods are; a drain does what was foreseen; and a tunnel that breaks is shown
// broken soon after the broker knows of it, and mended when it is. The browser complains of nothing, and asks nobody else.
func TestBrowser(t *testing.T) {
	const namespace = "browser"
	start(t, v1alpha1.ModeOrchestrated)
	deploy(t, namespace, federation.Web, 4)
	pods := copies(t, namespace, 4)
	p := webpage.Open(t, servePage(t))
	b := webpage.Browse(t, servePage(t))

	// Where pods are, and by which path: three steps from the first screen.
	b.See("Overview")
	for _, provider := range fed.Providers() {
		b.Go("/workloads?provider=" + string(provider.ID) + "&namespace=" + namespace)
		text := b.See(provider.Name)
		for _, pod := range pods {
			if on := pod.RunsOn == provider; strings.Contains(text, pod.Name) != on {
				t.Errorf("pod %s, on %s, is among those at %s: %t\n%s", pod.Name, pod.RunsOn.Name, provider.Name, !on, text)
			}
		}
	}

	a := fed.ProviderA
	if direct() {
		turnsToTheRelay(t, p, b, a, pods)
	}

	// A drain: what is foreseen is shown, and then is what happens.
	foreseen := webpage.Ask[apiv1.DrainPreview](p, http.MethodGet, "/api/v1/providers/"+string(a.ID)+"/drain", nil)
	stays := map[string]bool{}
	for _, pod := range foreseen.Pods {
		stays[pod.Pod] = pod.Verdict == "Stays"
	}
	b.Go("/providers/" + string(a.ID))
	b.Press("Drain")
	b.See(foreseen.Message)
	b.Press("Drain")
	defer mustPlugin(t, fed.Broker, "enable", a.Name)
	b.See("Drained", 20*time.Second)
	eventually(t, 3*time.Minute, func(ctx context.Context) error {
		now, err := fed.Copies(ctx, namespace)
		if err != nil {
			return err
		}
		for _, pod := range now {
			if pod.RunsOn == a && !stays[pod.Name] {
				err = errors.Join(err, fmt.Errorf("pod %s has not left, as was foreseen", pod.Name))
			}
		}
		return err
	})
	for _, pod := range pods {
		if _, told := stays[pod.Name]; told != (pod.RunsOn == a) {
			t.Errorf("of pod %s, on %s, it was told what a drain does: %t", pod.Name, pod.RunsOn.Name, told)
		}
	}
	mustPlugin(t, fed.Broker, "enable", a.Name)

	// A tunnel that breaks.
	b.Go("/providers/" + string(a.ID))
	events := p.Stream("links")
	linked := func(is bool) {
		t.Helper()
		webpage.Until(events, func(_ string, e apiv1.Event) bool {
			return e.Link != nil && e.Link.To.ID == string(a.ID) && e.Link.Kind == "Broker" && e.Link.Connected == is
		})
	}
	linked(true)
	mend, err := fed.Cut(t.Context(), fed.Broker, a)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := mend(); err != nil {
			t.Error(err)
		}
	}()
	linked(false)
	within(t, "a tunnel that is down", func(soon time.Duration) { b.See("down", soon) })
	if err := mend(); err != nil {
		t.Fatal(err)
	}
	linked(true)
	within(t, "a tunnel that is up again", func(soon time.Duration) { b.SeeNot("down", soon) })
	webpage.Until(p.Stream("providers"), func(_ string, e apiv1.Event) bool {
		return e.Provider != nil && e.Provider.ID == string(a.ID) && e.Provider.Ready
	})
	b.Ends()
}

// turnsToTheRelay breaks the tunnel by which a consumer reaches pods directly. The page of one of them shows that it is reached by the
// relay, and directly again when the tunnel is back.
func turnsToTheRelay(t *testing.T, p *webpage.Page, b *webpage.Browser, provider *federation.Cluster, pods []federation.Copy) {
	t.Helper()
	there := slices.IndexFunc(pods, func(pod federation.Copy) bool { return pod.RunsOn == provider })
	if there < 0 {
		t.Fatalf("no pod is on %s", provider.Name)
	}
	events, key := p.Stream("workloads"), ""
	reached := func(by federation.Path) {
		t.Helper()
		webpage.Until(events, func(_ string, e apiv1.Event) bool {
			if e.Workload == nil || e.Workload.Pod != pods[there].Name || e.Workload.Path != string(by) {
				return false
			}
			key = e.Key
			return true
		})
	}
	reached(federation.PathDirect)
	b.Go("/workloads/" + url.PathEscape(key))
	b.See(string(federation.PathDirect))
	b.SeeNot(string(federation.PathRelay))
	mend, err := fed.Cut(t.Context(), fed.Consumer, provider)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := mend(); err != nil {
			t.Error(err)
		}
	}()
	reached(federation.PathRelay)
	within(t, "a pod that is reached by the relay", func(soon time.Duration) { b.See(string(federation.PathRelay), soon) })
	if err := mend(); err != nil {
		t.Fatal(err)
	}
	reached(federation.PathDirect)
	within(t, "a pod that is reached directly again", func(soon time.Duration) { b.SeeNot(string(federation.PathRelay), soon) })
}

// soonVariable says how soon the page must show what the API says, as 5s.
const soonVariable = "LIQO_BROKER_UI_SOON"

// within notes how long it takes until the page shows something that the API says. That must be soon, where that is measured; elsewhere
// other programs take the time.
func within(t *testing.T, what string, see func(soon time.Duration)) {
	t.Helper()
	soon := 20 * time.Second
	if text := os.Getenv(soonVariable); text != "" {
		var err error
		if soon, err = time.ParseDuration(text); err != nil {
			t.Fatal(err)
		}
	}
	began := time.Now()
	see(soon)
	t.Logf("%s is shown %.2f s after the API has told it", what, time.Since(began).Seconds())
}

// TestBrowserTrial writes a policy in the page, and then another one in its place. What the trial says of each consumer is what is decided
// when it is applied there.
func TestBrowserTrial(t *testing.T) {
	start(t, v1alpha1.ModeOrchestrated)
	price(t, fed.ProviderA, "0.02")
	price(t, fed.ProviderB, "0.03")
	walk.KubectlAtEnd(t, fed.Broker, "delete", "placementpolicy", "cheapest", "--ignore-not-found")
	p := webpage.Open(t, servePage(t))
	b := webpage.Browse(t, servePage(t))
	b.See("Overview")
	b.Go("/policies/new")
	policy := fmt.Sprintf(cheapest, fed.Consumer.ID, time.Second)
	for _, turn := range []struct{ in, out *federation.Cluster }{{fed.ProviderA, fed.ProviderB}, {fed.ProviderB, fed.ProviderA}} {
		b.Write("Policy as YAML", policy)
		b.See("goes out " + turn.out.Name)
		trial := webpage.Ask[apiv1.PolicyTrial](p, http.MethodPost, "/api/v1/policies/try", map[string]string{"policy": policy})
		b.Press("Apply")
		b.See("Cancel") // It is tried, and can then be applied.
		b.Press("Apply")
		b.See("is applied")
		chosen(t, "cheapest", turn.in)
		if len(trial.Consumers) != 1 {
			t.Fatalf("it is tried for %d consumers", len(trial.Consumers))
		}
		for _, tried := range trial.Consumers {
			_, decision, err := decided(t.Context(), "cheapest")
			if err != nil {
				t.Fatal(err)
			}
			var would []string
			for _, provider := range tried.Decision.Providers {
				if provider.Chosen {
					would = append(would, provider.ID)
				}
			}
			slices.Sort(would)
			if is := choiceIn(decision); tried.Decision.Consumer.ID != string(fed.Consumer.ID) || !slices.Equal(is, would) {
				t.Errorf("for %s it would choose %v, and has chosen %v", tried.Decision.Consumer.ID, would, is)
			}
		}
		// The next text of the same name chooses the dearest.
		policy = strings.Replace(policy, "priceCPU: -10", "priceCPU: 10", 1)
		b.Go("/policies/cheapest/edit")
		b.See("stays " + turn.in.Name)
	}
	b.Ends()
}

// TestBrowserFaults has the page open while the API server stands still, and while it is killed. The page says so soon, keeps what it has,
// and goes on without being loaded again.
func TestBrowserFaults(t *testing.T) {
	const stale = 30 * time.Second
	start(t, v1alpha1.ModeOrchestrated)
	b := webpage.Browse(t, servePage(t))
	b.Go("/providers")
	shownOnce(t, b)
	end, err := fed.Broker.FreezeAPIServer()
	if err != nil {
		t.Fatal(err)
	}
	for _, provider := range fed.Providers() {
		b.See("stale since", stale)
		b.See(provider.Name)
	}
	if err := end(); err != nil {
		t.Fatal(err)
	}
	shownOnce(t, b)
	if err := fed.Broker.KillAPIServer(t.Context()); err != nil {
		t.Fatal(err)
	}
	eventually(t, time.Minute, func(ctx context.Context) error {
		_, err := plugin(ctx, fed.Broker, "cordon", fed.ProviderA.Name)
		return err
	})
	b.See("Cordoned", stale)
	mustPlugin(t, fed.Broker, "enable", fed.ProviderA.Name)
	b.SeeNot("Cordoned", stale)
	shownOnce(t, b)
	b.Ends("status of 50", "ERR_INCOMPLETE_CHUNKED_ENCODING")
}

// TestBrowserHosted opens the page that the daemon itself serves, with the token of a service account that may see all and change nothing,
// as docs/ui.md says. The page outlives the daemon, and a token that does not count any more.
func TestBrowserHosted(t *testing.T) {
	const namespace, account = "liqo-broker", "observer"
	start(t, v1alpha1.ModeOrchestrated)
	serveByDaemon(t)
	examples(t, "observer.yaml", "observer-account.yaml")
	token := func() string {
		t.Helper()
		token, err := fed.Broker.Token(t.Context(), namespace, account, "liqo-broker")
		if err != nil {
			t.Fatal(err)
		}
		return token
	}
	forward := exec.CommandContext(t.Context(), fed.Broker.Lab.KubectlPath(), "--kubeconfig="+fed.Broker.Lab.KubeconfigPath(),
		"port-forward", "--namespace="+namespace, "service/liqo-broker", ":8000")
	port := regexp.MustCompile(`^Forwarding from 127\.0\.0\.1:(\d+) `).FindStringSubmatch(readLine(t, forward))
	if port == nil {
		t.Fatal("kubectl port-forward says no port")
	}

	// It asks for a token, and takes one that counts.
	b := webpage.Browse(t, "https://localhost:"+port[1]+"/ui/")
	b.See("This page needs a token")
	b.Write("Token", "made-up")
	b.Press("Go on")
	b.See("does not count")
	b.Write("Token", token())
	b.Press("Go on")
	b.See(account)
	b.See("until ") // When it expires.

	// It shows all, and changes nothing.
	b.Go("/providers/" + string(fed.ProviderA.ID))
	b.See("Ready")
	b.See("You may not update providers.brokering.liqo.io.")
	b.Go("/activity")
	b.See("as long as the cluster keeps them")
	changesNothing(t, b)
	b.Go("/providers")
	shownOnce(t, b)

	// The daemon is killed, and comes again.
	end, err := fed.Daemon().Kill(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	b.See("stale since", 30*time.Second)
	if err := end(); err != nil {
		t.Fatal(err)
	}
	shownOnce(t, b)

	// The account is another one of the same name: the token counts no more.
	for _, deed := range [][]string{{"delete", "serviceaccount", account}, {"create", "serviceaccount", account}} {
		if _, err := fed.Broker.Kubectl(t.Context(), append(deed, "--namespace="+namespace)...); err != nil {
			t.Fatal(err)
		}
	}
	b.See("does not count", time.Minute)
	b.Write("Token", token())
	b.Press("Go on")
	shownOnce(t, b)
	b.Ends("status of 401", "status of 50", "net::ERR_")
}

// TestBrowserAudited has somebody change all that the page of a broker changes: in the API server's audit log each change, and the dry run
// before it, stands under the name of that person, and under no other's. Who has the rights of docs/ui.md to see and no others sees all
// screens, and changes nothing with any button.
func TestBrowserAudited(t *testing.T) {
	const namespace, ada, viewer, observers = "audited", "ada@example.org", "viewer@example.org", "liqo-broker-observers"
	start(t, v1alpha1.ModeOrchestrated)
	examples(t, "observer.yaml")
	deploy(t, namespace, federation.Web, 1)
	pod := copies(t, namespace, 1)[0]
	a, consumer := fed.ProviderA, fed.Consumer
	const active = `--patch={"spec": {"scheduling": "Active"}}`
	walk.KubectlAtEnd(t, fed.Broker, "patch", "provider", string(a.ID), "--type=merge", active)
	walk.KubectlAtEnd(t, fed.Broker, "patch", "consumer", string(consumer.ID), "--type=merge", active)
	walk.KubectlAtEnd(t, fed.Broker, "delete", "placementpolicy", namespace, "--ignore-not-found")
	began := time.Now()

	t.Run("Changes", func(t *testing.T) {
		const binding = "e2e-ada"
		walk.KubectlAtEnd(t, fed.Broker, "delete", "clusterrolebinding", binding, "--ignore-not-found")
		if _, err := fed.Broker.Kubectl(t.Context(), "create", "clusterrolebinding", binding, "--clusterrole=admin", "--user="+ada); err != nil {
			t.Fatal(err)
		}
		b := webpage.Browse(t, webpage.Serve(t, person(t, ada, observers)))
		b.See("Overview")
		b.See(ada)
		b.Go("/providers/" + string(a.ID))
		does(b, "Cordon", a.Name+" is Cordoned.")
		does(b, "Enable", a.Name+" is Active.")
		b.Go("/consumers/" + string(consumer.ID))
		does(b, "Suspend", consumer.Name+" is Suspended.")
		does(b, "Resume", consumer.Name+" is Active.")
		b.Go("/policies/new")
		b.Write("Policy as YAML", strings.Replace(fmt.Sprintf(cheapest, consumer.ID, time.Second), "name: cheapest", "name: "+namespace, 1))
		b.See("It is new: " + namespace + ".")
		does(b, "Apply", namespace+" is applied.")

		want := map[deed]int{}
		for _, dry := range []bool{true, false} {
			want[deed{"patch", "providers", string(a.ID), dry}] = 2
			want[deed{"patch", "consumers", string(consumer.ID), dry}] = 2
			want[deed{"patch", "placementpolicies", namespace, dry}] = 1
		}
		// What is done is written down a moment later.
		eventually(t, 20*time.Second, func(context.Context) error {
			got, err := deeds(began)
			if err != nil {
				return err
			}
			for done, times := range want {
				if n := got[ada][done]; n != times {
					return fmt.Errorf("%+v stands %d times under the name of %s, want %d", done, n, ada, times)
				}
			}
			return nil
		})
		got, err := deeds(began)
		if err != nil {
			t.Fatal(err)
		}
		for who, all := range got {
			for done := range all {
				switch {
				case who == ada && done.Dry && done.Resource == "placementpolicies":
					// Texts are tried while they are written.
				case who == ada && want[done] == 0:
					t.Errorf("under the name of %s stands what nobody has done: %+v", ada, done)
				case who != ada && want[done] > 0:
					t.Errorf("%+v stands under the name of %s, too", done, who)
				}
			}
		}

		// For her the same buttons work that nobody else can use.
		b.Go("/providers/" + string(a.ID))
		b.SeeNot("Reading what is there")
		if opened := b.PressEach(); !slices.Equal(opened, []string{"Cordon", "Drain"}) {
			t.Errorf("of the buttons about a provider %q work", opened)
		}
		b.Ends()
	})

	t.Run("Sees", func(t *testing.T) {
		shown := webpage.Until(webpage.Open(t, servePage(t)).Stream("workloads"), func(_ string, e apiv1.Event) bool {
			return e.Workload != nil && e.Workload.Pod == pod.Name
		})
		b := webpage.Browse(t, webpage.Serve(t, person(t, viewer, observers)))
		b.See("Overview")
		b.See(viewer)
		b.Go("/providers/" + string(a.ID))
		b.See("You may not patch providers.brokering.liqo.io.")
		changesNothing(t, b, "/workloads/"+url.PathEscape(shown.Key), "/policies/"+namespace, "/policies/"+namespace+"/edit")
		b.Ends()
		got, err := deeds(began)
		if err != nil {
			t.Fatal(err)
		}
		if len(got[viewer]) > 0 {
			t.Errorf("%s has written %v", viewer, got[viewer])
		}
	})

	t.Run("SeesSome", func(t *testing.T) {
		const some, binding = "some@example.org", "e2e-some"
		walk.KubectlAtEnd(t, fed.Broker, "delete", "clusterrolebinding", binding, "--ignore-not-found")
		if _, err := fed.Broker.Kubectl(t.Context(), "create", "clusterrolebinding", binding, "--clusterrole=view", "--user="+some); err != nil {
			t.Fatal(err)
		}
		b := webpage.Browse(t, webpage.Serve(t, person(t, some)))
		b.See(some)
		b.Go("/consumers/" + string(consumer.ID))
		b.See("You may not patch consumers.brokering.liqo.io.")
		for route, right := range map[string]string{"/providers": "list foreignclusters", "/workloads": "list nodes"} {
			b.Go(route)
			b.See(right)
		}
		b.Ends()
	})
}

// deed is what somebody has written, or tried to.
type deed struct {
	Verb, Resource, Name string
	Dry                  bool
}

// deeds returns what people have written at the broker since a time, by the names under which it stands in the API server's audit log, and
// how often. What was refused, and what programs have written, is not among it.
func deeds(since time.Time) (map[string]map[deed]int, error) {
	writes, err := fed.Broker.Writes(since)
	if err != nil {
		return nil, err
	}
	all := map[string]map[deed]int{}
	for i := range writes {
		w := &writes[i]
		who := cmp.Or(w.As, w.User)
		if strings.HasPrefix(who, "system:") || w.Code >= http.StatusMultipleChoices {
			continue
		}
		if all[who] == nil {
			all[who] = map[deed]int{}
		}
		all[who][deed{w.Verb, w.Resource, w.Name, w.Dry}]++
	}
	return all, nil
}

// does presses a button, waits until that was tried, does it, and waits until the page says so.
func does(b *webpage.Browser, button, says string) {
	b.Press(button)
	b.See("Cancel")
	b.Press(button)
	b.See(says)
	b.SeeNot("Cancel")
}

// changesNothing goes to all screens of a broker's page, and to some more, and presses each button. The test fails if a right is missing to
// see something, if there is no such screen, or if a button changes something, or tries to.
func changesNothing(t *testing.T, b *webpage.Browser, more ...string) {
	t.Helper()
	provider, consumer := "/providers/"+string(fed.ProviderA.ID), "/consumers/"+string(fed.Consumer.ID)
	routes := []string{
		"/", "/map", "/providers", provider, provider + "/drain", "/consumers", consumer, "/workloads", "/policies", "/policies/new", "/activity",
	}
	lacks := regexp.MustCompile(`You may not (get|list|watch|see) .*|There is (nothing at this address|no such) .*`)
	b.See("live")
	for _, route := range append(routes, more...) {
		b.Go(route)
		var text string
		for _, waits := range []string{"Reading what is there", "Planning what it would do", "Asking …"} {
			text = b.SeeNot(waits)
		}
		if said := lacks.FindString(text); said != "" {
			t.Errorf("%s says: %s", route, said)
		}
		if opened := b.PressEach(); len(opened) > 0 {
			t.Errorf("%s has buttons that change something: %q", route, opened)
		}
	}
	tries := regexp.MustCompile(`^POST /(session|api/v1/policies/try)$`)
	for _, asked := range b.Asked() {
		if !tries.MatchString(asked) {
			t.Errorf("the page asks %s", asked)
		}
	}
}

// examples applies examples of deploy to the broker until the test ends.
func examples(t *testing.T, names ...string) {
	t.Helper()
	for _, name := range names {
		file := "--filename=" + filepath.Join("..", "..", "deploy", "examples", name)
		walk.KubectlAtEnd(t, fed.Broker, "delete", file, "--ignore-not-found")
		if _, err := fed.Broker.Kubectl(t.Context(), "apply", file); err != nil {
			t.Fatal(err)
		}
	}
}

// person has the broker's cluster sign a certificate of somebody with a name, in groups, as people ask for one, and returns the path of
// their kubeconfig.
func person(t *testing.T, name string, groups ...string) string {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	who := pkix.Name{CommonName: name, Organization: groups}
	asked, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{Subject: who}, key)
	if err != nil {
		t.Fatal(err)
	}
	request := &certificatesv1.CertificateSigningRequest{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "e2e-person-"},
		Spec: certificatesv1.CertificateSigningRequestSpec{
			Request:    pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: asked}),
			SignerName: certificatesv1.KubeAPIServerClientSignerName, ExpirationSeconds: new(int32(time.Hour / time.Second)),
			Usages: []certificatesv1.KeyUsage{certificatesv1.UsageClientAuth},
		},
	}
	if err := fed.Broker.Create(t.Context(), request); err != nil {
		t.Fatal(err)
	}
	walk.KubectlAtEnd(t, fed.Broker, "delete", "certificatesigningrequest", request.Name, "--ignore-not-found")
	if _, err := fed.Broker.Kubectl(t.Context(), "certificate", "approve", request.Name); err != nil {
		t.Fatal(err)
	}
	eventually(t, time.Minute, func(ctx context.Context) error {
		err := fed.Broker.Get(ctx, client.ObjectKeyFromObject(request), request)
		if err == nil && len(request.Status.Certificate) == 0 {
			err = fmt.Errorf("there is no certificate of %s yet: %+v", name, request.Status.Conditions)
		}
		return err
	})
	config, err := clientcmd.LoadFromFile(fed.Broker.Lab.KubeconfigPath())
	if err != nil {
		t.Fatal(err)
	}
	for user := range config.AuthInfos {
		config.AuthInfos[user] = &clientcmdapi.AuthInfo{
			ClientCertificateData: request.Status.Certificate,
			ClientKeyData:         pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: private}),
		}
	}
	path := filepath.Join(t.TempDir(), "kubeconfig")
	if err := clientcmd.WriteToFile(*config, path); err != nil {
		t.Fatal(err)
	}
	return path
}

// serveByDaemon has the daemon serve the page until the test ends.
func serveByDaemon(t *testing.T) {
	t.Helper()
	const namespace, name, path = "liqo-broker", "liqo-broker", "/spec/template/spec/containers/0/args/"
	patch := func(ctx context.Context, patch string) error {
		if _, err := fed.Broker.Kubectl(ctx, "patch", "deployment", name, "--namespace="+namespace, "--type=json", "--patch="+patch); err != nil {
			return err
		}
		if _, err := fed.Broker.Kubectl(ctx, "rollout", "status", "deployment/"+name, "--namespace="+namespace, "--timeout=2m"); err != nil {
			return err
		}
		// The node may send callers to the pod that was there before, for a moment.
		return federation.Until(ctx, time.Minute, func(ctx context.Context) error {
			token, err := fed.APIToken(ctx)
			if err != nil {
				return err
			}
			_, _, err = fed.AskAPI(ctx, token, "/api/clusters")
			return err
		})
	}
	var deployment appsv1.Deployment
	if err := fed.Broker.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: name}, &deployment); err != nil {
		t.Fatal(err)
	}
	before := len(deployment.Spec.Template.Spec.Containers[0].Args)
	walk.AtEnd(t, func(ctx context.Context) error {
		return patch(ctx, fmt.Sprintf(`[{"op": "remove", "path": "%s%d"}]`, path, before))
	})
	if err := patch(t.Context(), fmt.Sprintf(`[{"op": "add", "path": "%s-", "value": "--ui"}]`, path)); err != nil {
		t.Fatal(err)
	}
}

// shownOnce fails unless the page with all providers is live soon, and has each of them once.
func shownOnce(t *testing.T, b *webpage.Browser) {
	t.Helper()
	text := b.See("live", 2*time.Minute)
	for _, provider := range fed.Providers() {
		if n := len(regexp.MustCompile(`(?m)^`+provider.Name+`\s*$`).FindAllString(text, -1)); n != 1 {
			t.Errorf("%s is shown %d times:\n%s", provider.Name, n, text)
		}
	}
}

// servePage serves the page of the broker by the plugin, and returns the link that opens it.
func servePage(t *testing.T) string {
	t.Helper()
	return webpage.Serve(t, fed.Broker.Lab.KubeconfigPath())
}

// picturesVariable names the folder into which TestPictures writes.
const picturesVariable = "LIQO_BROKER_PICTURES"

// TestPictures takes pictures of the page for the README, in both themes.
func TestPictures(t *testing.T) {
	to := os.Getenv(picturesVariable)
	if to == "" {
		t.Fatalf("%s does not say where pictures go: run make ui-pictures", picturesVariable)
	}
	const namespace = "shop"
	start(t, v1alpha1.ModeOrchestrated)
	deploy(t, namespace, federation.Web, 6)
	copies(t, namespace, 6)
	b := webpage.Browse(t, servePage(t))
	for route, text := range map[string]string{"/map": fed.Consumer.Name, "/": "Capacity"} {
		b.Go(route)
		b.See(text)
		for _, scheme := range []string{"light", "dark"} {
			b.Colours(scheme)
			name := cmp.Or(strings.TrimPrefix(route, "/"), "overview")
			b.Picture(filepath.Join(to, fmt.Sprintf("page-%s-%s.png", name, scheme)))
		}
	}
	b.Ends()
}
