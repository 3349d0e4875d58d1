// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"
	appsv1 "k8s.io/api/apps/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/capacitorset/liqo-broker/pkg/api/connectorv1alpha1"
	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
	v09 "github.com/capacitorset/liqo-broker/pkg/liqo/v09"
	"github.com/capacitorset/liqo-broker/pkg/liqo/v09/liqotest"
)

// reads are the commands that change nothing in a cluster, each with a line that looks at all that it looks at. POLICY is a file.
var reads = map[string]string{
	"providers": "providers", "consumers": "consumers", "status": "status", "where": "where", "explain": "explain cheapest",
	"policy": "policy", "policy check": "policy check POLICY", "diagnose": "diagnose", "registry": "registry", "catalog": "catalog",
	"offers": "offers", "contracts": "contracts", "contracts show": "contracts show nightly",
	"version": "version", "ui": "ui --open not#a-route", "help": "help", "completion": "completion", "completion bash": "completion bash",
	"completion fish": "completion fish", "completion powershell": "completion powershell", "completion zsh": "completion zsh",
	"contracts export": "contracts export --month 2026-01",
}

// ofOurs is the image that Liqo uses on a cluster that is a broker, a consumer, or trades.
const ofOurs = "example.com/liqo-broker-vk:v1"

// changes are the others, each with a line that changes the cluster of everything. An installation that is undone is one of which there is
// something.
var changes = map[string]struct {
	line    string
	objects []client.Object
}{
	"install":           {line: "install"},
	"upgrade":           {line: "upgrade", objects: []client.Object{deployed("liqo-broker", "liqo-broker", "example.com/liqo-broker:v0.0.1")}},
	"uninstall":         {line: "uninstall", objects: installed(ofOurs)},
	"prepare":           {line: "prepare", objects: []client.Object{arrived()}},
	"unprepare":         {line: "unprepare", objects: installed(ofOurs)},
	"guard":             {line: "guard", objects: []client.Object{deployed("liqo-broker-connector", "liqo-broker-connector", "connector:v1")}},
	"unguard":           {line: "unguard", objects: installed(ofOurs)},
	"join":              {line: "join --provider turin", objects: brokerAlone()},
	"test":              {line: "test --pods 1 --keep", objects: consumingMilan()},
	"cordon":            {line: "cordon milan"},
	"drain":             {line: "drain milan --wait=false"},
	"enable":            {line: "enable athens"},
	"suspend":           {line: "suspend rome"},
	"resume":            {line: "resume paris"},
	"registry join":     {line: "registry join " + invited},
	"buy":               {line: "buy --name more --cpu 2 --memory 4Gi --pods 1 --for 24h"},
	"contracts end":     {line: "contracts end nightly"},
	"contracts resize":  {line: "contracts resize nightly --cpu 4 --plan large"},
	"contracts renew":   {line: "contracts renew nightly --until 2027-01-01T00:00:00Z"},
	"contracts approve": {line: "contracts approve s-1"},
	"contracts refuse":  {line: "contracts refuse s-1"},
	"contracts suspend": {line: "contracts suspend s-1"},
	"contracts resume":  {line: "contracts resume s-2"},
}

// arrived is what a broker offers to its consumers.
func arrived() client.Object {
	namespace := v09.TwinNameOfLiqo(cluster.Identity{ID: "11111111-aaaa", Name: "milan"})
	return &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "liqo-network-manager"}}
}

// brokerAlone is Liqo on a broker.
func brokerAlone() []client.Object {
	return append(append(installed("liqo/virtual-kubelet:v0.9.4"), daemon(1, 1)),
		liqotest.Liqo(cluster.Identity{ID: "22222222-bbbb", Name: "bern"}, "secret")...)
}

// consumingMilan is Liqo on a consumer of milan.
func consumingMilan() []client.Object {
	manager := deployed("liqo", "liqo-controller-manager", "liqo/controller-manager:v0.9.4", "--kubelet-image="+ofOurs,
		"--kubelet-extra-args=--remote-ipam=server="+arrived().GetName()+"."+arrived().GetNamespace()+".svc.cluster.local")
	return []client.Object{manager, named("33333333-dddd", "rome")}
}

func deployed(namespace, name, image string, args ...string) *appsv1.Deployment {
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	d.Spec.Template.Spec.Containers = []corev1.Container{{Name: name, Image: image, Args: args}}
	return d
}

// installed is Liqo with an image of virtual kubelets.
func installed(image string) []client.Object {
	return []client.Object{
		deployed("liqo", "liqo-controller-manager", "liqo/controller-manager:v0.9.4", "--kubelet-image="+image),
		deployed("liqo", "liqo-gateway", "liqo/gateway:v0.9.4"), deployed("liqo", "liqo-network-manager", "liqo/network-manager:v0.9.4"),
	}
}

// everything is a cluster with Liqo, a broker's objects, and contracts, and has what a line needs besides.
func everything(t *testing.T, besides ...client.Object) []client.Object {
	t.Helper()
	const peer = `{"metadata": {"name": "milan"}, "spec": {
		"peeringType": "OutOfBand", "clusterIdentity": {"clusterID": "11111111-aaaa", "clusterName": "milan"}}}`
	milan := &v09.ForeignCluster{}
	if err := json.Unmarshal([]byte(peer), milan); err != nil {
		t.Fatal(err)
	}
	cordoned := provider("55555555-ffff", "athens")
	cordoned.Spec.Scheduling = "Cordoned"
	all := append(federation(), market(t)...)
	for _, object := range market(t) {
		if sale, is := object.(*connectorv1alpha1.Sale); is {
			sale.Name, sale.Spec.Suspended = "s-2", true
			all = append(all, sale)
		}
	}
	if !slices.ContainsFunc(besides, func(o client.Object) bool { return o.GetNamespace() == "liqo" }) {
		all = append(all, installed("liqo/virtual-kubelet:v0.9.4")...)
	}
	return append(append(all, besides...), milan, cordoned,
		&rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "liqo-virtual-kubelet-local"}},
		&corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "liqo", Name: "liqo-network-manager"}})
}

var turin = cluster.Identity{ID: "44444444-eeee", Name: "turin"}

// writes counts what a cluster was told to write and to keep, and what it was told to try.
type writes struct{ kept, tried int }

func (w *writes) count(dryRun []string) {
	if len(dryRun) > 0 {
		w.tried++
		return
	}
	w.kept++
}

// counting returns a cluster of everything that counts, and lets its caller do everything.
func (w *writes) counting(t *testing.T, besides ...client.Object) *cli {
	t.Helper()
	t.Helper()
	return &cli{client: interceptor.NewClient(newFake(t, everything(t, besides...)...), interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, o client.Object, options ...client.CreateOption) error {
			if review, is := o.(*authorizationv1.SelfSubjectAccessReview); is {
				review.Status.Allowed = true
				return nil
			}
			w.count((&client.CreateOptions{}).ApplyOptions(options).DryRun)
			return c.Create(ctx, o, options...)
		},
		Update: func(ctx context.Context, c client.WithWatch, o client.Object, options ...client.UpdateOption) error {
			w.count((&client.UpdateOptions{}).ApplyOptions(options).DryRun)
			return c.Update(ctx, o, options...)
		},
		Patch: func(ctx context.Context, c client.WithWatch, o client.Object, patch client.Patch, options ...client.PatchOption) error {
			w.count((&client.PatchOptions{}).ApplyOptions(options).DryRun)
			return c.Patch(ctx, o, patch, options...)
		},
		Delete: func(ctx context.Context, c client.WithWatch, o client.Object, options ...client.DeleteOption) error {
			w.count((&client.DeleteOptions{}).ApplyOptions(options).DryRun)
			return c.Delete(ctx, o, options...)
		},
	})}
}

// contents returns all objects of a cluster, of whatever kind.
func contents(t *testing.T, c client.Client) map[string]any {
	t.Helper()
	t.Helper()
	all := map[string]any{}
	for kind := range c.Scheme().AllKnownTypes() {
		if made, err := c.Scheme().New(kind); err != nil || strings.HasSuffix(kind.Kind, "List") {
			continue
		} else if _, object := made.(client.Object); !object {
			continue
		}
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
		if err := c.List(t.Context(), list); err != nil {
			t.Fatal(err)
		}
		for i := range list.Items {
			o := &list.Items[i]
			all[kind.String()+" "+o.GetNamespace()+"/"+o.GetName()] = o.Object
		}
	}
	if len(all) < 10 {
		t.Fatalf("only %v are found", slices.Sorted(maps.Keys(all)))
	}
	return all
}

// TestDryRun goes through all commands: each is known as one that reads, or has the flag --dry-run, with which it changes nothing though it
// would without. A new command belongs into one of the two tables.
func TestDryRun(t *testing.T) {
	install, _, err := newCLI(t).root(t).Find([]string{"install"})
	if err != nil {
		t.Fatal(err)
	}
	flag := install.Flags().Lookup("dry-run")
	left := append(slices.Collect(maps.Keys(reads)), slices.Collect(maps.Keys(changes))...)
	for _, command := range below(newCLI(t).root(t)) {
		name := strings.TrimPrefix(command.CommandPath(), command.Root().CommandPath()+" ")
		left = slices.DeleteFunc(left, func(known string) bool { return known == name })
		has := command.Flags().Lookup("dry-run")
		line, isReading := reads[name]
		changing, isChanging := changes[name]
		switch {
		case isReading && (isChanging || has != nil):
			t.Errorf("%s reads, and has a flag --dry-run", name)
		case isReading:
			t.Run(name, func(t *testing.T) { changesNothing(t, line) })
		case has == nil:
			t.Errorf("%s is not known as a command that reads, and has no flag --dry-run", name)
		case !isChanging:
			t.Errorf("%s has a flag --dry-run, and the test no line that tries it", name)
		case has.Usage != flag.Usage || has.NoOptDefVal != "server" || has.DefValue != "none":
			t.Errorf("the flag --dry-run of %s is another one", name)
		default:
			t.Run(name, func(t *testing.T) { triesOnly(t, changing.line, changing.objects) })
		}
	}
	if len(left) > 0 {
		t.Errorf("no commands are called %v", left)
	}
}

// below returns the commands below a command, and those below them.
func below(command *cobra.Command) []*cobra.Command {
	var all []*cobra.Command
	for _, child := range command.Commands() {
		all = append(append(all, child), below(child)...)
	}
	return all
}

// changesNothing runs a command that reads. What it finds does not matter.
func changesNothing(t *testing.T, line string) {
	t.Helper()
	policy := filepath.Join(t.TempDir(), "policy.yaml")
	if err := os.WriteFile(policy, []byte(header+"metadata: {name: all}\nspec: {appliesTo: {scope: Default}}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	var w writes
	at := w.counting(t)
	before := contents(t, at.client)
	out, errOut, err := at.run(t, strings.ReplaceAll(line, "POLICY", policy))
	if diff := cmp.Diff(before, contents(t, at.client)); diff != "" || w.kept > 0 {
		t.Errorf("%s writes %d times (-before, +after):\n%s\n%s%s%v", line, w.kept, diff, out, errOut, err)
	}
}

// triesOnly runs a command that changes something with each kind of dry run, and without.
func triesOnly(t *testing.T, line string, objects []client.Object) {
	t.Helper()
	installs := !strings.Contains(line, " ")
	waits := installs || strings.HasPrefix(line, "join ") || strings.HasPrefix(line, "test ")
	for _, tc := range []struct {
		flag, mark string
		keeps      bool
		tries      bool
	}{
		{flag: " --dry-run=client", mark: " (dry run)"},
		{flag: " --dry-run=server", mark: " (server dry run)", tries: true},
		{flag: "", keeps: true},
	} {
		var w writes
		at := w.counting(t, objects...)
		other := append(liqotest.Liqo(turin, "secret"), installed("liqo/virtual-kubelet:v0.9.4")...)
		at.others = map[string]client.Client{turin.Name: newFake(t, other...)}
		before := contents(t, at.client)
		limit := ""
		if tc.keeps && waits {
			limit = " --timeout=1ms" // Nobody brings about here what an installation waits for.
		}
		out, errOut, err := at.run(t, line+tc.flag+limit)
		if err != nil && limit == "" {
			t.Errorf("%s%s: %v", line, tc.flag, err)
		}
		diff := cmp.Diff(before, contents(t, at.client))
		if (diff != "") != tc.keeps || (w.kept > 0) != tc.keeps {
			t.Errorf("%s%s writes %d times (-before, +after):\n%s\n%s%s", line, tc.flag, w.kept, diff, out, errOut)
		}
		if tc.tries && w.tried == 0 {
			t.Errorf("%s%s asks the API server nothing", line, tc.flag)
		}
		if installs && strings.Contains(out, "\n        @@ ") != tc.tries {
			t.Errorf("%s%s shows what becomes otherwise, or does not where it should:\n%s", line, tc.flag, out)
		}
		if strings.Contains(out, "dry run)") == tc.keeps || !strings.Contains(out, tc.mark) {
			t.Errorf("%s%s prints no %q, or what it should not:\n%s", line, tc.flag, tc.mark, out)
		}
	}
}
