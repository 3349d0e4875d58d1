// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capacitorset/liqo-broker/pkg/api/v1alpha1"
	"github.com/capacitorset/liqo-broker/test/federation"
	"github.com/capacitorset/liqo-broker/test/walk"
)

// byLiqoctl has the clusters peer, unless they do.
func byLiqoctl(t *testing.T) {
	t.Helper()
	if err := fed.PeerAll(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// TestFrontDoor takes clusters that run nothing but Liqo to a federation, and to a workload that is offloaded, reached, explained and
// drained, and back to Liqo as it was, with the commands of the README and of the tutorials. All the while no Secret of namespace liqo is
// anywhere but at home. At last the clusters get their broker from the federation of the tests, which sets up what the README does and
// nothing else. It is the first of the journeys, so that a new lab is what it wants; of another one it removes the broker.
func TestFrontDoor(t *testing.T) {
	needs(t, federation.JoinPeers)
	ctx := t.Context()
	secrets := watchTwinSecrets(t)
	if err := fed.HideAPI(ctx); err != nil {
		t.Fatal(err)
	}
	// The pages say nothing of images that nobody has published: they have the names that the pages take for granted.
	if err := fed.LoadImages(ctx, releaseTag(t)); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	mustPlugin(t, fed.Broker, "uninstall")
	mustPlugin(t, fed.Consumer, "unprepare")
	t.Logf("removed in %.1f s", time.Since(began).Seconds())
	stockEverywhere(t)

	byReadme := map[*federation.Cluster]map[string]string{}
	t.Run("Plugin", func(t *testing.T) {
		// Killed twice on the way, and finished by the third run.
		for _, step := range []string{"[5/", "[9/"} {
			killAt(t, fed.Broker, step, "install")
		}
		r := read(t, "README.md", "TestFrontDoor", placeholders(t, "shop"))
		first := read(t, "docs/tutorials/first-pod.md", "TestFrontDoor", placeholders(t, "first"))
		first.InsteadOf(r, "kubectl liqo-broker install")
		if out := mustPlugin(t, fed.Broker, "install"); strings.Contains(out, "done in") {
			t.Errorf("installed twice, the second time changes something:\n%s", out)
		}
		first.InsteadOf(r, "kubectl liqo-broker join")
		mustPlugin(t, fed.Broker, "join", "--provider", fed.ProviderB.Lab.KubeconfigPath())
		again := mustPlugin(t, fed.Broker, "join", "--provider", fed.ProviderA.Lab.KubeconfigPath(),
			"--consumer", fed.Consumer.Lab.KubeconfigPath(), "--direct")
		if strings.Contains(again, "done in") {
			t.Errorf("joined twice, the second time changes something:\n%s", again)
		}
		eventually(t, time.Minute, fed.CheckOffer)
		var consumer v1alpha1.Provider
		if err := fed.Broker.Get(ctx, client.ObjectKey{Name: string(fed.Consumer.ID)}, &consumer); err != nil {
			t.Fatal(err)
		}
		if consumer.EffectiveScheduling() != v1alpha1.SchedulingDrained {
			t.Errorf("the consumer provides, and nobody has asked it to: %+v", consumer.Spec)
		}
		first.Next("kubectl get nodes")
		tested := first.InsteadOf(r, "kubectl liqo-broker test")
		if !serves.MatchString(tested) || strings.Contains(tested, "! ") {
			t.Errorf("the test of the network says\n%s", tested)
		}
		t.Log(tested)
		r.Next("kubectl liqo-broker status")
		r.Next("kubectl liqo-broker diagnose")
		for _, c := range fed.Clusters() {
			var err error
			if byReadme[c], err = fed.SetUp(ctx, c); err != nil {
				t.Fatal(err)
			}
		}
		r.Next("kubectl --namespace liqo delete secret auth-token")

		made := first.Begin("kubectl create namespace first")
		r.Next("kubectl create namespace shop")
		made()
		pods := copies(t, "shop", 2)
		checkAddresses(t, pods)
		where := r.Next("kubectl liqo-broker where shop")
		for _, pod := range pods {
			if !strings.Contains(where, pod.Name) || !strings.Contains(where, pod.Address[fed.Consumer.Name]) ||
				!strings.Contains(where, pod.RunsOn.Name) && !strings.Contains(where, string(pod.RunsOn.ID)) {
				t.Errorf("pod %s at %s of %s is not in\n%s", pod.Name, pod.Address[fed.Consumer.Name], pod.RunsOn.Name, where)
			}
		}
		explained := r.Next("kubectl liqo-broker explain shop")
		for _, provider := range fed.Providers() {
			if !strings.Contains(explained, provider.Name) {
				t.Errorf("nothing is explained of %s:\n%s", provider.Name, explained)
			}
		}
		first.Next("kubectl liqo-broker where first")
		first.Next("kubectl liqo-broker explain first")
		drain := drainAsked(t, r)
		deleted := first.Begin("kubectl delete namespace first")
		if where := r.Next("kubectl liqo-broker where shop"); strings.Contains(where, fed.ProviderA.Name) {
			t.Errorf("a pod is still on the provider that is drained:\n%s", where)
		}
		checkAddresses(t, copies(t, "shop", 2, fed.ProviderB))
		drain.InsteadOf(r, "kubectl liqo-broker enable PROVIDER")
		drain.Next("kubectl --namespace default delete pod asks")
		drain.End()

		deleted()
		r.Next("kubectl delete namespace shop")
		first.Next("kubectl liqo-broker unprepare")
		first.InsteadOf(r, "kubectl liqo-broker uninstall")
		r.End()
		first.End()
		stockEverywhere(t)
	})
	t.Run("ByHand", func(t *testing.T) {
		byLiqoctl(t)
		r := read(t, "docs/install.md", "TestFrontDoor", nil)
		r.Next("kubectl apply -k deploy")
		if policies := "kubectl apply -k deploy/admission"; withPolicies(t) {
			r.Next(policies)
		} else {
			r.Skip(policies)
		}
		r.Next("kubectl patch clusterrole")
		brokerByHand(r)
		r.Next("kubectl patch clusterrole")
		r.Values = arrived(t)
		r.Next("kubectl get services -A")
		r.Next("sed s/REMOTE_IPAM/")
		r.Next("kubectl get virtualnodes")
		r.End()
		completeAndLeave(t)
	})
	t.Run("Helm", func(t *testing.T) {
		byLiqoctl(t)
		r := read(t, "docs/helm.md", "TestFrontDoor", nil, "https://helm.liqo.io/", serveLiqosCharts(t))
		r.Next("kubectl apply -f deploy/broker/namespace.yaml")
		r.Next("helm repo add liqo")
		byHand := read(t, "docs/install.md", "TestFrontDoor", nil)
		byHand.Skip("kubectl apply -k deploy", "kubectl apply -k deploy/admission", "kubectl patch clusterrole")
		brokerByHand(byHand)
		r.Values = arrived(t)
		r.Next("helm repo add liqo")
		byHand.Values = r.Values
		byHand.Skip("kubectl patch clusterrole", "kubectl get services -A", "sed s/REMOTE_IPAM/")
		byHand.Next("kubectl get virtualnodes")
		complete(t)
		r.Next("kubectl liqo-broker unprepare")
		r.Next("kubectl liqo-broker uninstall")
		r.End()
		stockEverywhere(t)
	})
	t.Run("Federation", func(t *testing.T) {
		installed(t)
		// Who asks the API from other clusters applies these of deploy/examples.
		if err := fed.HideAPI(ctx); err != nil {
			t.Fatal(err)
		}
		for _, c := range fed.Clusters() {
			eventually(t, time.Minute, func(ctx context.Context) error { return fed.AsSetUp(ctx, c, byReadme[c]) })
		}
		if err := fed.ExposeAPI(ctx); err != nil {
			t.Fatal(err)
		}
	})
	secrets.none(t)
}

// serves matches what a test of the network says of a Service whose pods are asked at random: in one of 79 tests it leaves out one of the
// four, which are asked one by one as well.
var serves = regexp.MustCompile(`The Service answered 20 of 20 requests, from [34] of 4 pods\.`)

// TestFrontDoor1 does what the pages say to who has Liqo 1.x, from clusters that do not know each other to a workload that is reached,
// explained and moved, and back: by the commands of the README, and by Helm. There is a second provider, so that what is drained can go
// somewhere.
func TestFrontDoor1(t *testing.T) {
	needs(t, federation.LiqoctlPeers)
	ctx := t.Context()
	if err := fed.LoadImages(ctx, releaseTag(t)); err != nil {
		t.Fatal(err)
	}
	if err := fed.Peer(ctx, fed.Broker, fed.ProviderB); err != nil {
		t.Fatal(err)
	}
	// What a demo has left, or a walk before this one, is not of those who read the pages.
	if err := fed.HideAPI(ctx); err != nil {
		t.Fatal(err)
	}
	for _, namespace := range []string{federation.DemoNamespace, "shop"} {
		if err := fed.Remove(ctx, namespace); err != nil {
			t.Fatal(err)
		}
	}
	without := func(t *testing.T) {
		t.Helper()
		mustPlugin(t, fed.Consumer, "unprepare")
		mustPlugin(t, fed.Broker, "uninstall", "--force")
	}
	// Of some of it Liqo lets go only when it has looked.
	gone := func(t *testing.T, butFor *regexp.Regexp) {
		t.Helper()
		eventually(t, time.Minute, func(ctx context.Context) error {
			return errors.Join(onlyLeft(ctx, fed.Broker, butFor), onlyLeft(ctx, fed.Consumer, nil))
		})
	}

	t.Run("Plugin", func(t *testing.T) {
		// In.
		without(t)
		r := read(t, "README.md", "TestFrontDoor", placeholders(t, "shop"))
		here := read(t, "README.md", "TestFrontDoor1", placeholders(t, "shop"), "liqoctl peer", "liqoctl peer --gw-server-service-type NodePort")
		r.Next("kubectl liqo-broker install")
		here.Next("kubectl liqo-broker join")
		r.Skip("kubectl liqo-broker join")
		if tested := r.Next("kubectl liqo-broker test"); !serves.MatchString(tested) {
			t.Errorf("the test of the network says\n%s", tested)
		}
		r.Next("kubectl liqo-broker status")
		r.Next("kubectl liqo-broker diagnose")
		r.Skip("kubectl --namespace liqo delete secret auth-token")

		// A workload, where it is and why, and elsewhere.
		here.Next("kubectl create namespace shop")
		r.Skip("kubectl create namespace shop")
		pods := copies(t, "shop", 2)
		checkAddresses(t, pods)
		where := r.Next("kubectl liqo-broker where shop")
		for _, pod := range pods {
			if !strings.Contains(where, pod.Name) || !strings.Contains(where, pod.Address[fed.Consumer.Name]) {
				t.Errorf("pod %s at %s is not in\n%s", pod.Name, pod.Address[fed.Consumer.Name], where)
			}
		}
		explained := r.Next("kubectl liqo-broker explain shop")
		for _, provider := range fed.Providers() {
			if !strings.Contains(explained, provider.Name) {
				t.Errorf("nothing is explained of %s:\n%s", provider.Name, explained)
			}
		}
		if drained := r.Next("kubectl liqo-broker drain PROVIDER"); !strings.Contains(drained, " drained\n") {
			t.Errorf("it does not say that the provider is drained:\n%s", drained)
		}
		if where := r.Next("kubectl liqo-broker where shop"); strings.Contains(where, fed.ProviderA.Name) {
			t.Errorf("a pod is still on the provider that is drained:\n%s", where)
		}
		checkAddresses(t, copies(t, "shop", 2, fed.ProviderB))
		r.Next("kubectl liqo-broker enable PROVIDER")

		// Out.
		r.Next("kubectl delete namespace shop")
		r.Next("kubectl liqo-broker uninstall")
		r.End()
		here.End()
		gone(t, nil)
	})
	// Charts bring all of it twice: there are two ways to leave, and by Helm alone some of it is kept for who comes back.
	t.Run("Helm", func(t *testing.T) {
		without(t)
		r := byCharts(t)
		r.Next("kubectl liqo-broker unprepare")
		r.Next("kubectl liqo-broker uninstall --force")
		gone(t, nil)

		r = byCharts(t)
		r.Skip("kubectl liqo-broker unprepare", "kubectl liqo-broker uninstall --force")
		r.Next("kubectl annotate foreignclusters")
		r.Next("helm uninstall liqo-broker --namespace")
		r.End()
		// The chart keeps its kinds, and does not bring the namespace.
		gone(t, regexp.MustCompile(`^(CustomResourceDefinition /|Namespace /liqo-broker:|\w+ liqo-broker/)`))
		without(t)
		gone(t, nil)
	})
}

// byCharts has a broker and a consumer with Liqo 1.x by their charts, as docs/helm.md says, and pods that the consumer reaches. It returns
// who reads the page, and has come to how one leaves.
func byCharts(t *testing.T) *walk.Reader {
	t.Helper()
	r := read(t, "docs/helm.md", "TestFrontDoor1", placeholders(t, ""))
	said := r.Next("helm install liqo-broker deploy/chart")
	if strings.Contains(said, "done in") {
		t.Errorf("the plugin changes something of what Helm has installed:\n%s", said)
	}
	// Clusters that have peered before were granted something by Liqo.
	for _, takeOver := range regexp.MustCompile(`kubectl (patch resourceslices\S* .*)`).FindAllStringSubmatch(said, -1) {
		if _, err := fed.Broker.Kubectl(t.Context(), strings.Fields(strings.ReplaceAll(takeOver[1], "'", ""))...); err != nil {
			t.Fatal(err)
		}
	}
	r.Next("kubectl -n liqo-broker-transit get firewallconfigurations")
	for _, peering := range [][2]*federation.Cluster{{fed.Broker, fed.ProviderA}, {fed.Broker, fed.ProviderB}, {fed.Consumer, fed.Broker}} {
		if err := fed.Peer(t.Context(), peering[0], peering[1]); err != nil {
			t.Fatal(err)
		}
	}
	r.Next("kubectl apply -f deploy/agent/namespace.yaml")
	eventually(t, 3*time.Minute, fed.CheckOffer)
	if tested := mustPlugin(t, fed.Consumer, "test"); !serves.MatchString(tested) {
		t.Errorf("the test of the network says\n%s", tested)
	}
	return r
}

// drainAsked drains provider-a by the tutorial, in the place of the README: somebody asks a Service on it meanwhile, and no request is
// lost. The reader has what comes after that.
func drainAsked(t *testing.T, readme *walk.Reader) *walk.Reader {
	t.Helper()
	r := read(t, "docs/tutorials/drain.md", "TestFrontDoor", placeholders(t, "first"), "--image=curlimages/curl", "--image=lab.local/tools:1",
		`{"port": 80}`, `{"port": 8080}`, "--target-port=80", "--target-port=8080")
	walk.KubectlAtEnd(t, fed.Consumer, "delete", "pod", "asks", "--namespace=default", "--ignore-not-found", "--now")
	r.Next("kubectl --namespace first patch deployment web")
	r.Next("kubectl --namespace default run asks")
	// The command waits until no pod is left.
	if drained := r.InsteadOf(readme, "kubectl liqo-broker drain PROVIDER"); !strings.Contains(drained, " drained\n") {
		t.Errorf("it does not say that the provider is drained:\n%s", drained)
	}
	counted := r.Next("kubectl --namespace default logs asks")
	if t.Log(counted); !strings.Contains(counted, " asked, 0 lost") {
		t.Errorf("requests are lost while a provider is drained: %s", counted)
	}
	if where := r.Next("kubectl liqo-broker where first"); strings.Contains(where, fed.ProviderA.Name) {
		t.Errorf("a pod is still on the provider that is drained:\n%s", where)
	}
	return r
}

// brokerByHand gives virtual nodes our virtual kubelet, and offers namespace liqo.
func brokerByHand(r *walk.Reader) {
	r.Next("kubectl get virtualnodes")
	r.Next("kubectl apply -f deploy/liqo/namespaceoffloading.yaml")
}

// arrived waits until the Service of the broker has arrived at the consumer, and returns what stands for what in the pages.
func arrived(t *testing.T) map[string]string {
	t.Helper()
	eventually(t, 2*time.Minute, func(ctx context.Context) error {
		_, err := fed.ReflectedNetworkManager(ctx)
		return err
	})
	return placeholders(t, "")
}

// complete fails the test unless the plugin finds nothing to do for an installation, and the consumer is offered what there is.
func complete(t *testing.T) {
	t.Helper()
	for c, args := range map[*federation.Cluster][]string{fed.Broker: {"install"}, fed.Consumer: {"prepare", "--broker=" + fed.Broker.Name}} {
		if out := mustPlugin(t, c, append(args, "--dry-run")...); strings.Contains(out, "would") {
			t.Errorf("%s is not as the plugin installs it:\n%s", c.Name, out)
		}
	}
	eventually(t, 2*time.Minute, fed.CheckOffer)
}

// completeAndLeave does so, and has the plugin remove what was done by hand.
func completeAndLeave(t *testing.T) {
	t.Helper()
	complete(t)
	mustPlugin(t, fed.Consumer, "unprepare")
	mustPlugin(t, fed.Broker, "uninstall")
	stockEverywhere(t)
}

// releaseTag returns the tag that the manifests give the images.
func releaseTag(t *testing.T) string {
	t.Helper()
	patch, err := os.ReadFile(filepath.Join(root, "patches/liqo-install/controller-manager-broker.json"))
	if err != nil {
		t.Fatal(err)
	}
	found := regexp.MustCompile(`/liqo-broker-vk:([^"]+)"`).FindSubmatch(patch)
	if found == nil {
		t.Fatal("the patch of the controller manager has no image of ours")
	}
	return string(found[1])
}

// stockEverywhere fails the test unless the broker and the consumer are as clusters that never had a broker.
func stockEverywhere(t *testing.T) {
	t.Helper()
	for _, c := range []*federation.Cluster{fed.Broker, fed.Consumer} {
		if diff := cmp.Diff(stockLiqo(t, fed.ProviderA), stockLiqo(t, c)); diff != "" {
			t.Errorf("Liqo of %s is not as on a cluster without a broker (-there, +here):\n%s", c.Name, diff)
		}
		nothingLeft(t, c)
	}
}

// TestInstallRefuses runs commands of the plugin where they must not work: each says in one line what is missing. A provider needs
// none, and is found well.
func TestInstallRefuses(t *testing.T) {
	together(t, v1alpha1.ModeOrchestrated)
	const namespace = "front-door"
	deploy(t, namespace, "web", 1)
	copies(t, namespace, 1)
	for name, tc := range map[string]struct {
		on   *federation.Cluster
		args []string
		want string
	}{
		"NoRights":    {fed.ProviderA, []string{"install", "--dry-run", "--as=nobody"}, "requirement: you"},
		"NoCluster":   {fed.ProviderA, []string{"install", "--dry-run", "--server=https://127.0.0.1:1"}, "connect"},
		"NoBroker":    {fed.ProviderA, []string{"prepare", "--dry-run", "--broker=nobody"}, "no peer of this cluster is the broker"},
		"InUse":       {fed.Broker, []string{"uninstall", "--dry-run"}, "consumers still use this broker"},
		"NotConsumer": {fed.Broker, []string{"unprepare", "--dry-run"}, "this cluster is a broker"},
		"Consumer":    {fed.Consumer, []string{"upgrade", "--dry-run"}, "this cluster is no broker, but a consumer of " + fed.Broker.Name},
		"Provider":    {fed.ProviderA, []string{"upgrade", "--dry-run"}, "this cluster is no broker: install makes it one"},
		"AlsoBroker":  {fed.Consumer, []string{"install", "--dry-run"}, "with --also-broker it becomes a broker besides"},
		"NoBrokers":   {fed.Consumer, []string{"uninstall", "--dry-run"}, "run unprepare"},
		"Mode":        {fed.ProviderA, []string{"install", "--dry-run", "--modes=nonsense"}, "Unsupported value"},
		"Elsewhere":   {fed.Consumer, []string{"explain", namespace}, "is a consumer: its broker " + fed.Broker.Name},
		"OnProvider":  {fed.ProviderA, []string{"providers"}, "only provides: this is asked on the broker"},
		"Mistyped":    {fed.Broker, []string{"drian", fed.ProviderA.Name}, "did you mean drain?"},
		"Nowhere":     {fed.Consumer, []string{"where", "nowhere"}, `there is no namespace "nowhere"`},
	} {
		t.Run(name, func(t *testing.T) {
			if name == "NotConsumer" {
				needs(t, federation.PreparedBrokers)
			}
			out, err := plugin(t.Context(), tc.on, tc.args...)
			if err == nil || !strings.Contains(out, tc.want) {
				t.Errorf("%v: %v, want %q in\n%s", tc.args, err, tc.want, out)
			}
		})
	}
	if out := mustPlugin(t, fed.ProviderA, "diagnose"); !strings.Contains(out, "This cluster is: provider") {
		t.Errorf("diagnose does not call a provider one:\n%s", out)
	}
}

// pluginCommand is a command of the plugin, for a cluster.
func pluginCommand(ctx context.Context, c *federation.Cluster, args ...string) *exec.Cmd {
	return exec.CommandContext(ctx, filepath.Join("..", "..", "bin", "kubectl-liqo_broker"),
		append([]string{"--kubeconfig=" + c.Lab.KubeconfigPath()}, args...)...)
}

// plugin runs it, and returns all that it prints.
func plugin(ctx context.Context, c *federation.Cluster, args ...string) (string, error) {
	out, err := pluginCommand(ctx, c, args...).CombinedOutput()
	return string(out), err
}

func mustPlugin(t *testing.T, c *federation.Cluster, args ...string) string {
	t.Helper()
	out, err := plugin(t.Context(), c, args...)
	if err != nil {
		t.Fatalf("kubectl liqo-broker %v on %s: %v\n%s", args, c.Name, err, out)
	}
	return out
}

// killAt runs a command of the plugin, and kills it when it says that it begins a step.
func killAt(t *testing.T, c *federation.Cluster, step string, args ...string) {
	t.Helper()
	command := pluginCommand(t.Context(), c, args...)
	out, err := command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	killed := false
	for lines := bufio.NewScanner(out); lines.Scan(); {
		if strings.HasPrefix(lines.Text(), step) && !killed {
			killed = true
			if err := command.Process.Kill(); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := command.Wait(); !killed || err == nil {
		t.Fatalf("%v was not killed at step %s: %v", args, step, err)
	}
}

// liqoState is what an installation of a broker changes of Liqo, without what differs between clusters.
type liqoState struct {
	Deployments map[string][]container
	Ports       []corev1.ServicePort
	Rules       []rbacv1.PolicyRule
	Kubelets    []string
}

type container struct {
	Name, Image string
	Flags       []string
	Lifecycle   *corev1.Lifecycle
}

// stockLiqo returns that of a cluster.
func stockLiqo(t *testing.T, c *federation.Cluster) liqoState {
	t.Helper()
	state := liqoState{Deployments: map[string][]container{}}
	var deployments appsv1.DeploymentList
	if err := c.List(t.Context(), &deployments); err != nil {
		t.Fatal(err)
	}
	for i := range deployments.Items {
		d := &deployments.Items[i]
		for _, in := range append(slices.Clone(d.Spec.Template.Spec.InitContainers), d.Spec.Template.Spec.Containers...) {
			switch {
			case d.Namespace == "liqo":
				state.Deployments[d.Name] = append(state.Deployments[d.Name], container{in.Name, in.Image, flagsOf(in.Args), in.Lifecycle})
			case strings.HasPrefix(d.Name, "vk-liqo-") && !slices.Contains(state.Kubelets, in.Image):
				state.Kubelets = append(state.Kubelets, in.Image)
			}
		}
	}
	// A provider has no virtual kubelet: what Liqo would give to one.
	if len(state.Kubelets) == 0 {
		image, err := c.KubeletImage(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		state.Kubelets = []string{image}
	}
	var service corev1.Service
	var role rbacv1.ClusterRole
	err := errors.Join(
		c.Get(t.Context(), client.ObjectKey{Namespace: "liqo", Name: "liqo-network-manager"}, &service),
		c.Get(t.Context(), client.ObjectKey{Name: "liqo-virtual-kubelet-local"}, &role))
	if err != nil {
		t.Fatal(err)
	}
	state.Ports, state.Rules = service.Spec.Ports, role.Rules
	return state
}

// flagsOf returns the flags of a command line, without values that name a cluster.
func flagsOf(args []string) []string {
	var flags []string
	for _, arg := range args {
		name, value, _ := strings.Cut(arg, "=")
		switch name {
		case "--kubelet-image", "--kubelet-extra-args", "--resource-plugin-address":
			flags = append(flags, name+"="+value)
		default:
			flags = append(flags, name)
		}
	}
	return flags
}

// nothingLeft fails the test for each object of a cluster that says it is the broker's.
func nothingLeft(t *testing.T, c *federation.Cluster) {
	t.Helper()
	if err := onlyLeft(t.Context(), c, nil); err != nil {
		t.Error(err)
	}
}

// onlyLeft returns an error that names each object of a cluster which says it is the broker's, but for what may be left; nil is nothing.
func onlyLeft(ctx context.Context, c *federation.Cluster, mayBe *regexp.Regexp) error {
	var errs []error
	kinds := []schema.GroupVersionKind{
		{Version: "v1", Kind: "Namespace"}, {Version: "v1", Kind: "Node"}, {Version: "v1", Kind: "ConfigMap"}, {Version: "v1", Kind: "Service"},
		{Version: "v1", Kind: "Secret"}, {Version: "v1", Kind: "ServiceAccount"}, {Version: "v1", Kind: "ResourceQuota"},
		{Version: "v1", Kind: "Pod"},
		{Group: "apps", Version: "v1", Kind: "Deployment"}, {Group: "coordination.k8s.io", Version: "v1", Kind: "Lease"},
		{Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "ClusterRole"},
		{Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "ClusterRoleBinding"},
		{Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "Role"},
		{Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "RoleBinding"},
		{Group: "networking.k8s.io", Version: "v1", Kind: "NetworkPolicy"},
		{Group: "admissionregistration.k8s.io", Version: "v1", Kind: "MutatingWebhookConfiguration"},
		{Group: "admissionregistration.k8s.io", Version: "v1", Kind: "ValidatingWebhookConfiguration"},
		{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"},
		schema.FromAPIVersionAndKind(c.OffloadingAPI(), "NamespaceOffloading"),
		schema.FromAPIVersionAndKind(c.Traits().ShadowPods, "VirtualNode"),
	}
	for _, kind := range append(kinds, c.Traits().Kinds...) {
		objects := &metav1.PartialObjectMetadataList{}
		objects.SetGroupVersionKind(kind)
		if err := c.List(ctx, objects); err != nil {
			return err
		}
		for i := range objects.Items {
			mark := markOf(&objects.Items[i], c == fed.Broker)
			left := fmt.Sprintf("%s %s: %s", kind.Kind, client.ObjectKeyFromObject(&objects.Items[i]), mark)
			if mark != "" && (mayBe == nil || !mayBe.MatchString(left)) {
				errs = append(errs, fmt.Errorf("%s still has %s", c.Name, left))
			}
		}
	}
	return errors.Join(errs...)
}

// markOf returns what of an object says that it is the broker's; empty if nothing does. On other clusters Liqo itself names what stands
// for the cluster "broker" like that.
func markOf(object *metav1.PartialObjectMetadata, onBroker bool) string {
	if strings.Contains(object.Name, "brokering.liqo.io") || onBroker && strings.Contains(object.Name, "liqo-broker") {
		return "its name"
	}
	for key := range object.Labels {
		if strings.HasPrefix(key, "brokering.liqo.io/") {
			return "label " + key
		}
	}
	for key := range object.Annotations {
		if strings.HasPrefix(key, "brokering.liqo.io/") {
			return "annotation " + key
		}
	}
	return ""
}

// leaks are the Secrets that were seen in twins of namespace liqo.
type leaks struct {
	mu   sync.Mutex
	seen []string
}

// watchTwinSecrets follows the Secrets of all clusters but the broker until the test ends.
func watchTwinSecrets(t *testing.T) *leaks {
	t.Helper()
	l := &leaks{}
	for _, c := range []*federation.Cluster{fed.Consumer, fed.ProviderA, fed.ProviderB} {
		follow(t, c, &corev1.SecretList{}, func(o client.Object) {
			if strings.HasPrefix(o.GetNamespace(), "liqo-broker-") {
				l.seen = append(l.seen, fmt.Sprintf("%s on %s", client.ObjectKeyFromObject(o), c.Name))
			}
		}, &l.mu)
	}
	return l
}

// none fails the test for each Secret that was seen.
func (l *leaks) none(t *testing.T) {
	t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, secret := range l.seen {
		t.Errorf("Secret %s left the broker", secret)
	}
}
