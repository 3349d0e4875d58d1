// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package reports_test

import (
	"context"
	"net/netip"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	testingclock "k8s.io/utils/clock/testing"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/capacitorset/liqo-broker/pkg/api/v1alpha1"
	"github.com/capacitorset/liqo-broker/pkg/controller/reports"
	"github.com/capacitorset/liqo-broker/pkg/liqo"
	v1 "github.com/capacitorset/liqo-broker/pkg/liqo/v1"
	"github.com/capacitorset/liqo-broker/pkg/liqo/v1/api"
	"github.com/capacitorset/liqo-broker/pkg/liqo/v1/transittest"
	"github.com/capacitorset/liqo-broker/pkg/snapshot"
	"github.com/capacitorset/liqo-broker/test/watches"
)

// network returns one more Configuration of provider p, made at a second; pods is empty while Liqo has not decided.
func network(name string, second int64, pods string) *api.Configuration {
	c := &api.Configuration{ObjectMeta: metav1.ObjectMeta{
		Namespace: transittest.Tenant("p"), Name: name, CreationTimestamp: metav1.Unix(second, 0),
		Labels: map[string]string{liqo.LabelRemoteClusterID: "p"},
	}}
	if pods != "" {
		c.Status.Remote = &api.ClusterNetworks{CIDR: api.CIDRs{Pod: []string{pods}}}
	}
	return c
}

// TestSeveralNetworks holds that the oldest Configuration of a provider is the one that is granted, whatever becomes of the others.
func TestSeveralNetworks(t *testing.T) {
	const right, wrong = "10.1.0.0/16", "10.2.0.0/16"
	cases := map[string]struct {
		reason string
		all    []*api.Configuration
		want   string
	}{
		"Oldest":    {"What is made later does not count.", []*api.Configuration{network("a", 20, wrong), network("b", 10, right)}, right},
		"SameTime":  {"Of the same second, the name decides.", []*api.Configuration{network("b", 10, wrong), network("a", 10, right)}, right},
		"Undecided": {"Nor while nothing is known of the oldest.", []*api.Configuration{network("a", 20, wrong), network("b", 10, "")}, ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			if err := w.Delete(t.Context(), network("p", 0, "")); err != nil {
				t.Fatal(err)
			}
			for _, c := range tc.all {
				if err := w.Create(t.Context(), c); err != nil {
					t.Fatal(err)
				}
			}
			view, is := w.views("c").Granted["p"]
			if is != (tc.want != "") || is && view.Prefix != netip.MustParsePrefix(tc.want) {
				t.Errorf("%s It is granted %v", tc.reason, view)
			}
		})
	}
}

// TestNetworks tells people once of several networks, and again when there are others, or the provider is another one.
func TestNetworks(t *testing.T) {
	w := newWorld(t)
	networks := reports.NewNetworks(reports.Config{
		Client: w, Reader: snapshot.New(v1.Line{}, w, transittest.Own, nil), Recorder: w.events,
	})
	look := func(reason, want string) {
		t.Helper()
		if _, err := networks.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKey{Name: "p"}}); err != nil {
			t.Fatal(err)
		}
		said := ""
		if len(w.events.Events) > 0 {
			said = <-w.events.Events
		}
		if (said == "") != (want == "") || !strings.Contains(said, want) {
			t.Errorf("%s People are told %q", reason, said)
		}
	}
	made := func(c *api.Configuration) {
		t.Helper()
		if err := w.Create(t.Context(), c); err != nil {
			t.Fatal(err)
		}
	}
	look("There is one.", "")
	other := network("other", 5, "")
	other.Labels[liqo.LabelRemoteClusterID] = "q"
	made(other)
	look("One that leads elsewhere is none.", "")
	made(network("later", 9_000, ""))
	look("There are two.", "SeveralNetworks Liqo has 2 Configurations of the cluster, of which the oldest counts, p: delete the others, later")
	look("People know it.", "")
	made(network("latest", 9_001, ""))
	look("There are three.", "delete the others, later, latest")
	p := provider("p")
	if err := w.Delete(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	look("It is no provider any more.", "")
	if err := w.Create(t.Context(), provider("p")); err != nil {
		t.Fatal(err)
	}
	look("Of what comes again nobody was told.", "delete the others")
}

// TestNetworksSetup looks at a provider when it comes, and when one of its Configurations comes, goes or leads elsewhere.
func TestNetworksSetup(t *testing.T) {
	w := newWorld(t)
	looked := make(chan string, 10)
	noting := interceptor.NewClient(w.WithWatch, interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, options ...client.GetOption) error {
			if _, is := o.(*v1alpha1.Provider); is {
				looked <- key.Name
			}
			return c.Get(ctx, key, o, options...)
		},
	})
	c, p := network("p", 1, ""), provider("p")
	happened := watches.Start(t, w.Scheme(), func(mgr ctrl.Manager) error {
		return reports.Setup(mgr, reports.Config{
			Client: noting, Told: w, Reader: snapshot.New(v1.Line{}, w, transittest.Own, nil), Recorder: w.events,
			Clock: testingclock.NewFakePassiveClock(w.now),
		})
	}, c, p, &corev1.ConfigMap{})
	elsewhere := watches.Changed(c, func(c *api.Configuration) { c.Labels[liqo.LabelRemoteClusterID] = "q" })
	for _, step := range []struct {
		reason        string
		before, after client.Object
		looked        bool
	}{
		{"It comes.", nil, c, true},
		{"It leads elsewhere.", c, elsewhere, true},
		{"It goes.", c, nil, true},
		{"What else becomes of it does not matter.", c, watches.Changed(c, func(c *api.Configuration) { c.Generation++ }), false},
		{"The provider comes.", nil, p, true},
		{"What becomes of it does not matter, either.", p, watches.Changed(p, func(p *v1alpha1.Provider) { p.Generation++ }), false},
	} {
		happened.Happens(step.before, step.after)
		happened.Happens(nil, provider("last"))
		var got []string
		for name := range looked {
			if name == "last" {
				break
			}
			got = append(got, name)
		}
		if want := slices.Repeat([]string{"p"}, map[bool]int{true: 1}[step.looked]); !slices.Equal(got, want) {
			t.Errorf("%s It looks at %v", step.reason, got)
		}
	}
}
