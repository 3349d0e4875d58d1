// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package endpoints

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capacitorset/liqo-broker/pkg/liqo"
	"github.com/capacitorset/liqo-broker/pkg/liqo/v1/api"
	"github.com/capacitorset/liqo-broker/pkg/liqo/v1/transittest"
)

// reconciler returns one that opens so many addresses of a consumer.
func reconciler(w *transittest.World, most int) *Reconciler {
	return New(Config{
		Client: w, Live: w, Kept: NewKept(1 << 20), Own: transittest.Own, MaxAddresses: most, Clock: clock.RealClock{},
	})
}

func look(t *testing.T, r *Reconciler) error {
	t.Helper()
	_, err := r.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKey{Name: "c"}})
	return err
}

func run(t *testing.T, w *transittest.World) error {
	t.Helper()
	return look(t, reconciler(w, 1000))
}

func done(t *testing.T, w *transittest.World) {
	t.Helper()
	if err := run(t, w); err != nil {
		t.Fatal(err)
	}
}

func opened(t *testing.T, w *transittest.World) []string {
	t.Helper()
	var all api.IPList
	if err := w.List(t.Context(), &all, client.InNamespace(transittest.Twin)); err != nil {
		t.Fatal(err)
	}
	var ips []string
	for i := range all.Items {
		ips = append(ips, all.Items[i].Spec.IP)
	}
	return ips
}

func companions(t *testing.T, w *transittest.World) []discoveryv1.EndpointSlice {
	t.Helper()
	var all discoveryv1.EndpointSliceList
	if err := w.List(t.Context(), &all, client.MatchingLabels{discoveryv1.LabelManagedBy: liqo.BrokerManaged}); err != nil {
		t.Fatal(err)
	}
	return all.Items
}

func told(t *testing.T, w *transittest.World) []string {
	t.Helper()
	var addresses []string
	for _, c := range companions(t, w) {
		for i := range c.Endpoints {
			addresses = append(addresses, c.Endpoints[i].Addresses...)
		}
	}
	slices.Sort(addresses)
	return addresses
}

func TestReconcile(t *testing.T) {
	own := transittest.Endpoints("own", "10.200.0.9")
	own.Labels[liqo.LabelManagedBy] = ""
	foreign := transittest.Endpoints("foreign", "10.200.0.9")
	foreign.Labels[api.LabelOriginCluster] = "d"
	cases := map[string]struct {
		reason  string
		objects []client.Object
		gone    []client.Object
		want    []string
	}{
		"Told": {
			"Providers are told the consumer's own pods, and no other address.",
			[]client.Object{transittest.Endpoints("web-1", "10.200.0.2", "10.201.0.1", "10.69.0.1"), transittest.Endpoints("web-2", "10.200.0.3")},
			nil, []string{"10.200.0.2", "10.200.0.3"},
		},
		"Not of the consumer": {"What the broker's own Services have, or another cluster, is not.", []client.Object{own, foreign}, nil, nil},
		"Not offloaded": {
			"Of a namespace that is nowhere else nothing is.", []client.Object{transittest.Endpoints("web-1", "10.200.0.2")},
			[]client.Object{transittest.Made(&api.NamespaceOffloading{}, transittest.Twin, liqo.OffloadingName, nil)}, nil,
		},
		"No network": {
			"Nor of a consumer to which there is no network.", []client.Object{transittest.Endpoints("web-1", "10.200.0.2")},
			[]client.Object{transittest.Made(&api.Configuration{}, transittest.Tenant("c"), "c", nil)}, nil,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			w := transittest.New(t, tc.objects...)
			for _, o := range tc.gone {
				if err := w.Delete(t.Context(), o); err != nil {
					t.Fatal(err)
				}
			}
			done(t, w)
			if diff := cmp.Diff(tc.want, told(t, w)) + cmp.Diff(tc.want, opened(t, w)); diff != "" {
				t.Errorf("%s: %s", tc.reason, diff)
			}
			w.Writes = 0
			if done(t, w); w.Writes != 0 {
				t.Errorf("%s: %d writes without a reason", tc.reason, w.Writes)
			}
		})
	}
}

func TestCompanion(t *testing.T) {
	w := transittest.New(t, transittest.Endpoints("web-1", "10.200.0.2"))
	done(t, w)
	c := companions(t, w)[0]
	if c.Labels[discoveryv1.LabelServiceName] != "web" || c.Endpoints[0].NodeName != nil || *c.Ports[0].Port != 8080 {
		t.Errorf("it is not of the same Service, or names a node: %+v", c)
	}
	if len(c.OwnerReferences) != 1 || c.OwnerReferences[0].UID != "uid-of-web-1" {
		t.Errorf("it does not go with the slice beside which it is: %v", c.OwnerReferences)
	}
	var ips api.IPList
	if err := w.List(t.Context(), &ips, client.InNamespace(transittest.Twin)); err != nil {
		t.Fatal(err)
	}
	// Liqo deletes Services and EndpointSlices that are called as an IP.
	if name := ips.Items[0].Name; len(validation.IsDNS1123Label(name)) == 0 || name == c.Name {
		t.Errorf("a Service or the companion may be called %s", name)
	}
}

func TestWithdrawn(t *testing.T) {
	w := transittest.New(t, transittest.Endpoints("web-1", "10.200.0.2", "10.200.0.3"), transittest.Endpoints("web-2", "10.200.0.3"))
	done(t, w)
	less := transittest.Endpoints("web-1", "10.200.0.4")
	is := &discoveryv1.EndpointSlice{}
	if err := w.Get(t.Context(), client.ObjectKeyFromObject(less), is); err != nil {
		t.Fatal(err)
	}
	is.Endpoints = less.Endpoints
	if err := errors.Join(w.Update(t.Context(), is), w.Delete(t.Context(), transittest.Endpoints("web-2"))); err != nil {
		t.Fatal(err)
	}
	done(t, w)
	if got := told(t, w); !slices.Equal(got, []string{"10.200.0.4"}) || !slices.Equal(opened(t, w), got) {
		t.Errorf("providers are told %v, and %v is opened", got, opened(t, w))
	}
}

func TestHealed(t *testing.T) {
	w := transittest.New(t, transittest.Endpoints("web-1", "10.200.0.2"))
	done(t, w)
	c := companions(t, w)[0]
	c.Endpoints[0].Addresses = []string{"10.201.0.1"}
	delete(c.Labels, discoveryv1.LabelServiceName)
	var ips api.IPList
	if err := errors.Join(w.Update(t.Context(), &c), w.List(t.Context(), &ips, client.InNamespace(transittest.Twin))); err != nil {
		t.Fatal(err)
	}
	ips.Items[0].Spec.IP = "10.201.0.1"
	if err := w.Update(t.Context(), &ips.Items[0]); err != nil {
		t.Fatal(err)
	}
	done(t, w)
	done(t, w) // What was deleted is made.
	if got := told(t, w); !slices.Equal(got, []string{"10.200.0.2"}) || !slices.Equal(opened(t, w), got) ||
		companions(t, w)[0].Labels[discoveryv1.LabelServiceName] != "web" {
		t.Errorf("providers are told %v, and %v is opened", got, opened(t, w))
	}
}

// TestOthersStay holds that what only looks like ours is left alone: a consumer that is a broker has companions too, and they arrive here.
func TestOthersStay(t *testing.T) {
	theirs := transittest.Endpoints("liqo-broker-0123456789abcdef", "10.200.0.2")
	theirs.Labels[liqo.LabelBrokerManaged] = liqo.BrokerManaged
	anothers := transittest.Endpoints("liqo-broker-fedcba9876543210", "10.200.0.3")
	anothers.Labels[liqo.LabelBrokerManaged], anothers.Labels[api.LabelOriginCluster] = liqo.BrokerManaged, "d"
	ip := transittest.Made(&api.IP{Spec: api.IPSpec{IP: "10.69.0.7"}}, transittest.Twin, "web-1", nil)
	w := transittest.New(t, theirs, anothers, ip)
	done(t, w)
	for _, o := range []client.Object{theirs, anothers, ip} {
		if err := w.Get(t.Context(), client.ObjectKeyFromObject(o), o); err != nil {
			t.Error(err)
		}
	}
	if got := told(t, w); !slices.Equal(got, []string{"10.200.0.2"}) {
		t.Errorf("what a broker tells of its consumer is told on as %v", got)
	}
}

// TestTaken holds that a slice which somebody else has made stays.
func TestTaken(t *testing.T) {
	w := transittest.New(t, transittest.Endpoints("web-1", "10.200.0.2"))
	done(t, w)
	taken := companions(t, w)[0]
	taken.Labels, taken.Endpoints = map[string]string{"of": "somebody"}, nil
	if err := w.Update(t.Context(), &taken); err != nil {
		t.Fatal(err)
	}
	if err := run(t, w); err == nil || !strings.Contains(err.Error(), taken.Name) {
		t.Errorf("nobody is told that the name is taken: %v", err)
	}
	if err := w.Get(t.Context(), client.ObjectKeyFromObject(&taken), &taken); err != nil || len(taken.Endpoints) > 0 {
		t.Errorf("what somebody else has made is changed: %v, %v", taken.Endpoints, err)
	}
}

// TestTakenCloses holds that a consumer which takes the name of what is to be written has no more addresses opened than one that does not:
// those that it names now, and those of which providers are told still.
func TestTakenCloses(t *testing.T) {
	cases := map[string]struct {
		reason string
		// taken is what the consumer has Liqo call so, given what is beside its slice, and besides are addresses that it always names.
		taken   func(companion string) string
		besides []string
		want    []string
	}{
		"EndpointSlice": {"A slice has any name.", func(companion string) string { return companion }, nil, []string{"10.200.0.1", "10.200.0.9"}},
		"IP": {
			"The IP of a pod is called as that is.", func(string) string { return "liqo-broker-10-200-9-9.ip" }, []string{"10.200.9.9"},
			[]string{"10.200.0.1", "10.200.0.9"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			w := transittest.New(t, transittest.Endpoints("web-1", "10.200.0.1"))
			done(t, w)
			taken := tc.taken(companions(t, w)[0].Name)
			w.Fail = func(o client.Object) error {
				if o.GetName() == taken {
					return errTaken
				}
				return nil
			}
			for _, address := range []string{"10.200.0.2", "10.200.0.3", "10.200.0.4", "10.200.0.9"} {
				var is discoveryv1.EndpointSlice
				if err := w.Get(t.Context(), client.ObjectKey{Namespace: transittest.Twin, Name: "web-1"}, &is); err != nil {
					t.Fatal(err)
				}
				is.Endpoints = transittest.Endpoints("web-1", append([]string{address}, tc.besides...)...).Endpoints
				if err := w.Update(t.Context(), &is); err != nil {
					t.Fatal(err)
				}
				if err := run(t, w); !errors.Is(err, errTaken) {
					t.Fatalf("%s: nobody is told that the name is taken: %v", tc.reason, err)
				}
			}
			got := opened(t, w)
			if slices.Sort(got); !slices.Equal(got, tc.want) {
				t.Errorf("%s: %v is opened, want %v", tc.reason, got, tc.want)
			}
		})
	}
}

var errTaken = errors.New("the name is taken")

func TestNoTwin(t *testing.T) {
	w := transittest.New(t, transittest.Endpoints("web-1", "10.200.0.2"))
	var ns corev1.Namespace
	if err := w.Get(t.Context(), client.ObjectKey{Name: transittest.Twin}, &ns); err != nil {
		t.Fatal(err)
	}
	ns.Annotations = nil
	if err := w.Update(t.Context(), &ns); err != nil {
		t.Fatal(err)
	}
	if done(t, w); len(opened(t, w)) > 0 || len(told(t, w)) > 0 {
		t.Error("endpoints in a namespace that nobody offloads here are opened")
	}
}
