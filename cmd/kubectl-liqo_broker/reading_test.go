// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/meta/testrestmapper"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/capacitorset/liqo-broker/pkg/api/connectorv1alpha1"
	"github.com/capacitorset/liqo-broker/pkg/api/v1alpha1"
	"github.com/capacitorset/liqo-broker/pkg/liqo/line"
	v09 "github.com/capacitorset/liqo-broker/pkg/liqo/v09"
	"github.com/capacitorset/liqo-broker/pkg/program"
	"github.com/capacitorset/liqo-broker/pkg/trade/registry/discovery"
	"github.com/capacitorset/liqo-broker/test/golden"
)

var now = time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC)

// cli is the plugin at a cluster of objects in memory.
type cli struct {
	client      client.WithWatch
	out, errOut bytes.Buffer
	log         string // Of each container.
	// others are other clusters, by the names by which a command line knows them.
	others map[string]client.Client
	// typed is what somebody types at a terminal; without it there is none. The network says that there are the registries in found.
	typed string
	found []discovery.Found
	asked *discovery.Resolver
}

func newCLI(t *testing.T, objects ...client.Object) *cli {
	t.Helper()
	return &cli{client: newFake(t, objects...)}
}

func newFake(t *testing.T, objects ...client.Object) client.WithWatch {
	t.Helper()
	return newFakeOf(t, v09.Line{}, objects...)
}

// newFakeOf returns a cluster with a line of Liqo.
func newFakeOf(t *testing.T, of line.Line, objects ...client.Object) client.WithWatch {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		clientgoscheme.AddToScheme, v1alpha1.AddToScheme, connectorv1alpha1.AddToScheme, of.AddToScheme,
	} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	nameOf := func(o client.Object) []string { return []string{o.GetName()} } // The index that every API server has.
	return fake.NewClientBuilder().WithScheme(scheme).WithRESTMapper(testrestmapper.TestOnlyStaticRESTMapper(scheme)).WithObjects(objects...).
		WithIndex(&corev1.ConfigMap{}, "metadata.name", nameOf).WithIndex(&rbacv1.RoleBinding{}, "metadata.name", nameOf).Build()
}

// run runs a command line, and returns what it has written.
func (c *cli) run(t *testing.T, line string) (out, errOut string, err error) {
	t.Helper()
	return c.runArgs(t, strings.Fields(line))
}

func (c *cli) runArgs(t *testing.T, args []string) (out, errOut string, err error) {
	t.Helper()
	c.out.Reset()
	c.errOut.Reset()
	root := c.root(t)
	root.SetArgs(args)
	err = root.ExecuteContext(t.Context())
	return c.out.String(), c.errOut.String(), err
}

// root returns the plugin's commands, which reach the cluster in memory.
func (c *cli) root(t *testing.T) *cobra.Command {
	t.Helper()
	return c.rootTo(t, genericiooptions.IOStreams{In: strings.NewReader(c.typed), Out: &c.out, ErrOut: &c.errOut})
}

// rootTo returns them with streams of their own.
func (c *cli) rootTo(t *testing.T, streams genericiooptions.IOStreams) *cobra.Command {
	t.Helper()
	root := newCommand(streams)
	for _, child := range root.Commands() { // Those that reach a cluster are replaced.
		root.RemoveCommand(child)
	}
	t.Setenv("KUBECONFIG", filepath.Join(t.TempDir(), "none"))
	root.ResetFlags()
	s := &session{IOStreams: streams}
	s.to.addFlags(root.PersistentFlags())
	s.reach = func() (client.Client, error) { return c.client, nil }
	s.reachAt = func(name string) (client.Client, error) {
		other, is := c.others[name]
		if !is {
			return nil, program.Usage(fmt.Errorf("%q is no cluster", name))
		}
		return other, nil
	}
	r := newReading(s)
	r.asConnector = s.reach
	r.kubernetes = func(context.Context) string { return "v1.34.0" }
	r.logs = func(_ context.Context, pod client.ObjectKey, container string, _ bool, _ int64) (io.ReadCloser, error) {
		return io.NopCloser(strings.NewReader(fmt.Sprintf("log of %s %s\n%s\n", pod, container, c.log))), nil
	}
	r.now, r.pause = func() time.Time { return now }, 10*time.Millisecond
	r.terminal = func() bool { return c.typed != "" }
	r.local = func(context.Context) ([]discovery.Found, error) { return c.found, nil }
	r.inDomain = func(_ context.Context, resolver *discovery.Resolver, _ string) ([]discovery.Found, error) {
		c.asked = resolver
		return c.found, nil
	}
	s.addCommands(root, r)
	return root
}

func ago(d time.Duration) metav1.Time { return metav1.NewTime(now.Add(-d)) }

func resources(cpu, memory string) corev1.ResourceList {
	return corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu), corev1.ResourceMemory: resource.MustParse(memory)}
}

func condition(kind string, status metav1.ConditionStatus, reason, message string) metav1.Condition {
	return metav1.Condition{Type: kind, Status: status, Reason: reason, Message: message, LastTransitionTime: ago(time.Hour)}
}

func provider(id, name string, conditions ...metav1.Condition) *v1alpha1.Provider {
	p := &v1alpha1.Provider{ObjectMeta: metav1.ObjectMeta{Name: id, CreationTimestamp: ago(50 * time.Hour)}}
	p.Status.ClusterName, p.Status.Conditions = name, conditions
	return p
}

func consumer(id, name string, conditions ...metav1.Condition) *v1alpha1.Consumer {
	c := &v1alpha1.Consumer{ObjectMeta: metav1.ObjectMeta{Name: id, CreationTimestamp: ago(26 * time.Hour)}}
	c.Status.ClusterName, c.Status.Conditions, c.Status.Mode, c.Status.Nodes = name, conditions, v1alpha1.ModeOrchestrated, v1alpha1.NodesOne
	return c
}

// federation is a broker with two providers that offer something, one that does not, and two consumers.
func federation() []client.Object {
	ready := condition(v1alpha1.ConditionReady, metav1.ConditionTrue, v1alpha1.ReasonOffering, "Workloads can be placed on the provider")
	reachable := condition(v1alpha1.ConditionReachable, metav1.ConditionTrue, v1alpha1.ReasonNodeReady,
		"A virtual node of the cluster is ready")
	milan := provider("11111111-aaaa", "milan", ready, reachable)
	milan.Status.Offered, milan.Status.Used, milan.Status.Free = resources("8", "16Gi"), resources("1500m", "512Mi"),
		resources("6500m", "15872Mi")
	milan.Status.LargestPod = resources("4", "8Gi")
	kpiOf := func(name string, value v1alpha1.Number, unit string, expires time.Duration) v1alpha1.KPI {
		return v1alpha1.KPI{
			Name: name, KPIValue: v1alpha1.KPIValue{Value: value, Unit: unit, MeasuredTime: ago(time.Minute), ExpirationTime: ago(-expires)},
		}
	}
	milan.Status.KPIs = []v1alpha1.KPI{
		kpiOf("roundTripTime", "12.5", "ms", time.Hour), kpiOf("availability24h", "0.9987", "ratio", time.Hour),
		kpiOf("priceCPU", "0.02", "EUR", -time.Second),
	}
	turin := provider("22222222-bbbb", "turin", ready, reachable)
	turin.Status.Offered, turin.Status.Free = resources("2", "4Gi"), resources("2", "4Gi")
	down := provider("22222222-cccc", "oslo\x1b[31m\u202e",
		condition(v1alpha1.ConditionReady, metav1.ConditionFalse, v1alpha1.ReasonNodeNotReady, "Not ready: virtual node liqo-oslo\x1b[0m"),
		condition(v1alpha1.ConditionReachable, metav1.ConditionFalse, v1alpha1.ReasonNodesNotReady, "No virtual node of the cluster is ready"))
	rome := consumer("33333333-dddd", "rome",
		condition(v1alpha1.ConditionReady, metav1.ConditionTrue, v1alpha1.ReasonOffering, "Offering 10 CPU and 20Gi memory"))
	rome.Status.Offered, rome.Status.Used, rome.Status.Granted = resources("10", "20Gi"), resources("1500m", "512Mi"), resources("10", "20Gi")
	paris := consumer("44444444-eeee", "paris",
		condition(v1alpha1.ConditionReady, metav1.ConditionFalse, v1alpha1.ReasonSuspended, "The cluster is suspended"))
	paris.Spec.Scheduling = v1alpha1.ConsumerSuspended
	return []client.Object{milan, turin, down, rome, paris}
}

// TestPrints compares what commands print for the federation with golden files.
func TestPrints(t *testing.T) {
	for name, line := range map[string]string{
		"providers.txt": "providers", "providers_wide.txt": "providers -o wide", "provider.yaml": "providers tur -o yaml",
		"provider_name.txt": "providers -o name", "consumers.txt": "consumers", "consumers_wide.txt": "consumers -o wide",
	} {
		t.Run(name, func(t *testing.T) {
			out, errOut, err := newCLI(t, federation()...).run(t, line)
			if err != nil || errOut != "" {
				t.Fatalf("%v; %s", err, errOut)
			}
			if strings.ContainsAny(out, "\x1b\u202e") {
				t.Errorf("control characters in %q", out)
			}
			golden.Check(t, name, out)
		})
	}
}

func TestNobodyThere(t *testing.T) {
	for line, says := range map[string]string{"providers": "No cluster provides yet", "consumers": "No cluster consumes yet"} {
		out, errOut, err := newCLI(t).run(t, line)
		if err != nil || out != "" || !strings.Contains(errOut, says) {
			t.Errorf("%s: %q, %q, %v", line, out, errOut, err)
		}
	}
}

// TestFinds names providers in all ways, and in some that must be refused.
func TestFinds(t *testing.T) {
	for argument, want := range map[string]struct {
		means string
		says  string
		code  int
	}{
		"milan":         {means: "11111111-aaaa"},
		"mi":            {means: "11111111-aaaa"},
		"22222222-bbbb": {means: "22222222-bbbb"},
		"22222222-b":    {means: "22222222-bbbb"},
		"2222":          {says: `"2222" can mean several clusters: oslo?[31m? (22222222-cccc), turin (22222222-bbbb)`, code: program.ExitUsage},
		"athens":        {says: `no cluster is called "athens": there are milan (11111111-aaaa), oslo?[31m? (22222222-cccc), turin (22222222-bbbb)`, code: program.ExitFailure},
	} {
		out, _, err := newCLI(t, federation()...).run(t, "providers -o name "+argument)
		if want.says != "" {
			if err == nil || err.Error() != want.says || program.ExitCode(err) != want.code {
				t.Errorf("%s: %v", argument, err)
			}
			continue
		}
		if err != nil || out != "provider.brokering.liqo.io/"+want.means+"\n" {
			t.Errorf("%s: %q, %v", argument, out, err)
		}
	}
}

func TestCompletes(t *testing.T) {
	for line, want := range map[string]string{
		"__complete drain m":           "milan\t11111111-aaaa\n",
		"__complete drain 2":           "22222222-cccc\toslo?[31m?\n22222222-bbbb\tturin\n",
		"__complete suspend ":          "paris\t44444444-eeee\nrome\t33333333-dddd\n",
		"__complete drain milan ":      "",
		"__complete providers milan t": "turin\t22222222-bbbb\n",
	} {
		words := strings.Split(line, " ")
		c := newCLI(t, federation()...)
		out, _, err := c.runArgs(t, words)
		if got, _, _ := strings.Cut(out, ":4\n"); err != nil || got != want {
			t.Errorf("%s: %q, %v", line, got, err)
		}
	}
}

// TestSets sets spec.scheduling of providers and consumers.
func TestSets(t *testing.T) {
	scheduling := func(c *cli) string {
		var p v1alpha1.Provider
		var consumer v1alpha1.Consumer
		if err := errors.Join(c.client.Get(t.Context(), client.ObjectKey{Name: "11111111-aaaa"}, &p),
			c.client.Get(t.Context(), client.ObjectKey{Name: "33333333-dddd"}, &consumer)); err != nil {
			t.Fatal(err)
		}
		return string(p.Spec.Scheduling) + "/" + string(consumer.Spec.Scheduling)
	}
	c := newCLI(t, federation()...)
	for _, step := range []struct{ line, prints, hints, leaves string }{
		{"cordon milan --dry-run=server", "provider milan (11111111-aaaa) cordoned (server dry run)\n", "", "/"},
		{"drain milan --dry-run=client", "provider milan (11111111-aaaa) to be drained (dry run)\n", "cannot be said: read what Liqo calls", "/"},
		{"enable milan", "provider milan (11111111-aaaa) is already enabled\n", "", "/"},
		{"enable milan --dry-run", "provider milan (11111111-aaaa) is already enabled (server dry run)\n", "", "/"},
		{"cordon milan", "provider milan (11111111-aaaa) cordoned\n", "kubectl liqo-broker enable 11111111-aaaa\n", "Cordoned/"},
		{"drain 1111 --wait=false", "provider milan (11111111-aaaa) to be drained\n", "kubectl liqo-broker enable 11111111-aaaa\n", "Drained/"},
		{"drain milan --wait=false", "provider milan (11111111-aaaa) is already to be drained\n", "", "Drained/"},
		{"enable milan", "provider milan (11111111-aaaa) enabled\n", "where policies choose it", "Active/"},
		{"cordon milan", "provider milan (11111111-aaaa) cordoned\n", "kubectl liqo-broker enable 11111111-aaaa\n", "Cordoned/"},
		{"uncordon milan", "provider milan (11111111-aaaa) enabled\n", "where policies choose it", "Active/"},
		{"suspend rome", "consumer rome (33333333-dddd) suspended\n", "kubectl liqo-broker resume 33333333-dddd\n", "Active/Suspended"},
		{"resume rome", "consumer rome (33333333-dddd) resumed\n", "its waiting pods go on", "Active/Active"},
	} {
		out, errOut, err := c.run(t, step.line)
		if err != nil || out != step.prints || !strings.Contains(errOut, step.hints) || (errOut == "") != (step.hints == "") {
			t.Errorf("%s: %q, %q, %v", step.line, out, errOut, err)
		}
		if is := scheduling(c); is != step.leaves {
			t.Errorf("%s leaves %s instead of %s", step.line, is, step.leaves)
		}
	}
}

func TestUsage(t *testing.T) {
	for line, says := range map[string]string{
		"cordon":                           "accepts 1 arg(s), received 0: see kubectl liqo-broker cordon --help",
		"drain milan turin":                "accepts 1 arg(s), received 2: see kubectl liqo-broker drain --help",
		"drain milan --timeout=-1s":        "--timeout must not be negative",
		"cordon milan --dry-run=yes":       `invalid argument "yes" for "--dry-run" flag: it must be none, client or server`,
		"providers -o xml":                 "--output=xml is none of json, yaml, name, wide, jsonpath=, go-template=, custom-columns=",
		"providers -o jsonpath={.items":    "--output=jsonpath={.items: unclosed action",
		"consumers -o custom-columns=NAME": `--output=custom-columns=NAME: "NAME" is not HEADER:.path`,
		"providers -l a==,=":               "--selector=a==,=: found '=', expected: identifier after ','",
		"providers -w -o yaml":             "--watch prints tables or names, and no yaml",
		"consumers --bogus":                "unknown flag: --bogus",
		"-v":                               "unknown shorthand flag: 'v' in -v",
	} {
		_, _, err := newCLI(t, federation()...).run(t, line)
		if err == nil || err.Error() != says || program.ExitCode(err) != program.ExitUsage {
			t.Errorf("%s: %v, exit code %d", line, err, program.ExitCode(err))
		}
	}
}

// TestMistyped gives every command that has others below it a word that is none of them: nothing may seem to be done.
func TestMistyped(t *testing.T) {
	type mistake struct{ at, word, meant string }
	lines := map[string]mistake{
		"drian milan":            {"", "drian", ": did you mean drain? See"},
		"drian milan --cascade":  {"", "drian", ": did you mean drain? See"},
		"policy chek cheapest":   {" policy", "chek", ": did you mean check? See"},
		"completion bsh":         {" completion", "bsh", ": did you mean bash or fish or zsh? See"},
		"help statsu":            {"", "statsu", ": did you mean status? See"},
		"help policy chek":       {" policy", "chek", ": did you mean check? See"},
		"contracts shwo nightly": {" contracts", "shwo", ": did you mean show? See"},
	}
	root := newCLI(t).root(t)
	for _, command := range append(below(root), root) {
		if command.HasSubCommands() {
			at := strings.TrimPrefix(command.CommandPath(), root.CommandPath())
			lines[at+" zzzzzz"] = mistake{at, "zzzzzz", ": see"}
		}
	}
	for line, m := range lines {
		path := root.CommandPath() + m.at
		says := fmt.Sprintf("unknown command %q for %q%s %s --help", m.word, path, m.meant, path)
		out, errOut, err := newCLI(t).run(t, line)
		if err == nil || err.Error() != says || program.ExitCode(err) != program.ExitUsage || out+errOut != "" {
			t.Errorf("%s: %v, exit code %d, and prints %q", line, err, program.ExitCode(err), out+errOut)
		}
	}
	for _, line := range []string{"", "policy", "completion", "help policy check", "help where"} {
		if out, _, err := newCLI(t).run(t, line); err != nil || !strings.Contains(out, "Usage:") {
			t.Errorf("%q: %v, and prints %q", line, err, out)
		}
	}
}

// TestFaults makes each command meet a cluster that it cannot use.
func TestFaults(t *testing.T) {
	resource := schema.GroupResource{Group: v1alpha1.GroupVersion.Group, Resource: "providers"}
	for _, fault := range []struct {
		err  error
		says string
	}{
		{
			&meta.NoKindMatchError{GroupKind: schema.GroupKind{Group: resource.Group, Kind: "Provider"}},
			"there is no broker on this cluster: it knows no objects of brokering.liqo.io. Choose",
		},
		{apierrors.NewForbidden(resource, "", errors.New("no role")), "you lack a right on this cluster: list "},
		{apierrors.NewUnauthorized("no token"), "this cluster does not accept your credentials: list "},
		{&url.Error{Op: "Get", URL: "https://example", Err: errors.New("connection refused")}, "this cluster cannot be reached: Get"},
		{context.Canceled, "interrupted"},
	} {
		for _, line := range []string{"providers", "consumers", "cordon milan", "suspend rome", "status", "where", "explain cheapest"} {
			c := &cli{client: interceptor.NewClient(newFake(t, federation()...), interceptor.Funcs{
				List: func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) error {
					return fault.err
				},
			})}
			out, _, err := c.run(t, line)
			if err == nil || !strings.HasPrefix(err.Error(), fault.says) || out != "" || program.ExitCode(err) != program.ExitFailure ||
				strings.Contains(err.Error(), "\n") {
				t.Errorf("%s at %v: %q, %v", line, fault.err, out, err)
			}
		}
	}
}
