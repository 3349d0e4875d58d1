// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package firewall

import (
	"context"
	"encoding/json"
	"errors"
	"net/netip"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	v1 "github.com/capacitorset/liqo-broker/pkg/liqo/v1"
	"github.com/capacitorset/liqo-broker/pkg/liqo/v1/api"
	"github.com/capacitorset/liqo-broker/pkg/liqo/v1/transittest"
)

const namespace = "liqo-broker"

func reconciler(w *transittest.World, allowed ...netip.Prefix) *Reconciler {
	return New(Config{Client: w, Own: transittest.Own, Namespace: namespace, Liqo: transittest.Liqo, Allowed: allowed})
}

func run(t *testing.T, w *transittest.World) {
	t.Helper()
	if _, err := reconciler(w).Reconcile(t.Context(), ctrl.Request{}); err != nil {
		t.Fatal(err)
	}
}

func tables(t *testing.T, w *transittest.World) map[string]*api.FirewallConfiguration {
	t.Helper()
	var all api.FirewallConfigurationList
	if err := w.List(t.Context(), &all); err != nil {
		t.Fatal(err)
	}
	by := map[string]*api.FirewallConfiguration{}
	for i := range all.Items {
		by[all.Items[i].Namespace+"/"+all.Items[i].Name] = &all.Items[i]
	}
	return by
}

func text(t *testing.T, o any) string {
	t.Helper()
	data, err := json.Marshal(o)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func drops(t *testing.T, o any, what string) bool {
	t.Helper()
	return strings.Contains(text(t, o), `"name":"drop-`+what+`"`)
}

func key(id string) string { return transittest.Tenant(id) + "/" + v1.TransitFirewall }

func TestReconcile(t *testing.T) {
	w := transittest.New(t)
	run(t, w)
	are := tables(t, w)
	all, c, p := are[namespace+"/"+v1.TransitFirewall], are[key("c")], are[key("p")]
	if len(are) != 4 || all == nil || c == nil || p == nil || are[key("q")] == nil {
		t.Fatalf("there are %d tables, want one for all and one for each of three peers", len(are))
	}
	for _, want := range []struct {
		reason, what string
		in           *api.FirewallConfiguration
	}{
		{"own Services, and what is around, nobody reaches", "10.71.0.0-10.199.255.255", all},
		{"own pods are not reached by opened addresses either", "10.201.0.0-10.201.255.255", all},
		{"and nobody sends as one of them, or as this cluster", "10.100.0.0-10.199.255.255", all},
		{"a consumer reaches the provider that it was granted, and no other one", "0.0.0.0-10.68.255.255", c},
		{"and its answers and the API server, and nothing else that is opened", "10.70.0.1", c},
		{"and no consumers", "10.70.0.3-169.254.17.255", c},
		{"and sends as itself alone", "10.100.0.0-10.199.255.255", c},
		{"wherever others are", "10.201.0.0-255.255.255.255", c},
		{"a provider reaches no pods by their own addresses, but what is opened", "0.0.0.0-10.69.255.255", p},
		{"and nothing behind", "10.71.0.0-169.254.17.255", p},
	} {
		if !drops(t, want.in, want.what) {
			t.Errorf("%s: %s is not dropped\n%s", want.reason, want.what, text(t, want.in))
		}
	}
	for _, label := range []string{`"networking.liqo.io/firewall-unique":"c"`, `"networking.liqo.io/firewall-category":"gateway"`} {
		if !strings.Contains(text(t, c), label) {
			t.Errorf("Liqo does not know by %s where it is in force", label)
		}
	}
	if !strings.Contains(text(t, all), `"networking.liqo.io/firewall-subcategory":"all-gateways"`) {
		t.Error("Liqo does not keep that of all in all gateways")
	}
	if !strings.Contains(text(t, c), `"dev":{"value":"liqo-tunnel","position":"in"}`) {
		t.Error("it drops what does not come from the peer")
	}

	// Nothing new is nothing written.
	w.Writes = 0
	if run(t, w); w.Writes != 0 {
		t.Errorf("%d writes without a reason", w.Writes)
	}
}

// TestChains holds where packets are dropped: by destination before it is translated, and by source after that is.
func TestChains(t *testing.T) {
	w := transittest.New(t)
	run(t, w)
	for name, table := range tables(t, w) {
		for i := range table.Spec.Table.Chains {
			chain := &table.Spec.Table.Chains[i]
			want, at, priority := api.PositionDestination, api.HookPrerouting, int32(-300)
			switch *chain.Name {
			case "leaving":
				want, at, priority = api.PositionSource, api.HookPostrouting, 150
			case "forwarded":
				at, priority = api.HookForward, 0
			}
			if *chain.Hook != at || *chain.Priority != priority || len(chain.Rules.Filter) == 0 {
				t.Errorf("%s: chain %s is at %s, %d, with %d rules", name, *chain.Name, *chain.Hook, *chain.Priority, len(chain.Rules.Filter))
			}
			for _, rule := range chain.Rules.Filter {
				if rule.Match[1].IP.Position != want {
					t.Errorf("%s: chain %s drops by %s", name, *chain.Name, rule.Match[1].IP.Position)
				}
			}
		}
	}
}

// TestNewPeer holds that nothing of a peer passes before its own table is there, and that one that is there is enough.
func TestNewPeer(t *testing.T) {
	w := transittest.New(t)
	boom := errors.New("boom")
	failing := func(o client.Object) error {
		if o.GetNamespace() == transittest.Tenant("c") {
			return boom
		}
		return nil
	}
	w.Fail = failing
	everywhere, rest := namespace+"/"+v1.TransitFirewall, "10.100.0.0-255.255.255.255" // All that is behind the last of peers that send.
	_, err := reconciler(w).Reconcile(t.Context(), ctrl.Request{})
	if are := tables(t, w); !errors.Is(err, boom) || !drops(t, are[everywhere], rest) {
		t.Errorf("what comes from a peer without a table passes: %v\n%s", err, text(t, are[everywhere]))
	}
	w.Fail = nil
	run(t, w)
	if are := tables(t, w); drops(t, are[everywhere], rest) {
		t.Errorf("a peer with a table is nobody\n%s", text(t, are[everywhere]))
	}
	// One that cannot be changed.
	edited := tables(t, w)[key("c")]
	edited.Spec.Table.Chains = edited.Spec.Table.Chains[:1]
	if err := w.Update(t.Context(), edited); err != nil {
		t.Fatal(err)
	}
	w.Fail = failing
	_, err = reconciler(w).Reconcile(t.Context(), ctrl.Request{})
	if are := tables(t, w); !errors.Is(err, boom) || drops(t, are[everywhere], rest) {
		t.Errorf("what comes from a peer with a table does not pass: %v\n%s", err, text(t, are[everywhere]))
	}
}

func TestHealed(t *testing.T) {
	cases := map[string]struct {
		reason string
		edit   func(*api.FirewallConfiguration)
	}{
		"Rules": {"Rules that somebody removed come back.", func(f *api.FirewallConfiguration) { f.Spec.Table.Chains[0].Rules.Filter = nil }},
		"Action": {"One that lets packets pass drops them again.", func(f *api.FirewallConfiguration) {
			f.Spec.Table.Chains[0].Rules.Filter[0].Action = api.ActionAccept
		}},
		"Where": {"It is in force where it was again.", func(f *api.FirewallConfiguration) { delete(f.Labels, api.LabelFirewallUnique) }},
		"Elsewhere": {"And not elsewhere besides.", func(f *api.FirewallConfiguration) {
			f.Labels[api.LabelFirewallSubcategory] = api.FirewallAllGateways
		}},
		"Unknown": {"One that was made unknown is known again.", func(f *api.FirewallConfiguration) {
			delete(f.Labels, "app.kubernetes.io/managed-by")
			f.Spec.Table.Chains = nil
		}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			w := transittest.New(t)
			run(t, w)
			want := tables(t, w)[key("c")]
			edited := want.DeepCopy()
			tc.edit(edited)
			if err := w.Update(t.Context(), edited); err != nil {
				t.Fatal(err)
			}
			run(t, w)
			got := tables(t, w)[key("c")]
			if text(t, got.Spec) != text(t, want.Spec) || text(t, got.Labels) != text(t, want.Labels) {
				t.Errorf("%s\n%s", tc.reason, text(t, got))
			}
		})
	}
}

func TestOthersStay(t *testing.T) {
	liqos := transittest.Made(&api.FirewallConfiguration{}, transittest.Tenant("c"), "c-remap-podcidr", nil)
	alike := transittest.Made(&api.FirewallConfiguration{}, "x", "liqo-broker-other", nil)
	gone := transittest.Made(&api.FirewallConfiguration{}, transittest.Tenant("gone"), v1.TransitFirewall,
		map[string]string{"app.kubernetes.io/managed-by": "liqo-broker"})
	w := transittest.New(t, liqos, alike, gone)
	run(t, w)
	are := tables(t, w)
	if are["liqo-tenant-c/c-remap-podcidr"] == nil || are["x/liqo-broker-other"] == nil {
		t.Error("what others keep is gone")
	}
	if are[key("gone")] != nil {
		t.Error("that of a peer that is gone is there")
	}
}

// TestUndecided holds that what is in force stays while Liqo has lost its network, or has none yet.
func TestUndecided(t *testing.T) {
	w := transittest.New(t)
	run(t, w)
	lost := transittest.Made(&api.Network{}, transittest.Liqo, "external", nil)
	if err := w.Delete(t.Context(), lost); err != nil {
		t.Fatal(err)
	}
	w.Writes = 0
	result, err := reconciler(w).Reconcile(t.Context(), ctrl.Request{})
	if err != nil || result.RequeueAfter == 0 || w.Writes != 0 {
		t.Errorf("%v, %v, %d writes", result, err, w.Writes)
	}
}

// TestOneFails holds that a peer whose table cannot be written leaves no other one open.
func TestOneFails(t *testing.T) {
	w := transittest.New(t)
	boom := errors.New("boom")
	w.Fail = func(o client.Object) error {
		if o.GetNamespace() == transittest.Tenant("c") {
			return boom
		}
		return nil
	}
	if _, err := reconciler(w).Reconcile(t.Context(), ctrl.Request{}); !errors.Is(err, boom) {
		t.Errorf("nobody is told: %v", err)
	}
	if are := tables(t, w); len(are) != 3 || are[key("c")] != nil {
		t.Errorf("%d tables are there, want all but one", len(are))
	}
}

// TestBehind has a cache that does not know yet what was written: Liqo refuses to have it made, and that is no failure. It is one if
// another object has the table.
func TestBehind(t *testing.T) {
	w := transittest.New(t)
	run(t, w)
	held, is := w.Client.(client.WithWatch)
	if !is {
		t.Fatalf("%T watches nothing", w.Client)
	}
	refuse := func(o client.Object) error {
		return apierrors.NewForbidden(schema.GroupResource{Resource: "firewallconfigurations"}, o.GetName(),
			errors.New(`admission webhook denied the request: table name liqo-broker-transit already used`))
	}
	behind := interceptor.NewClient(held, interceptor.Funcs{
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
			if _, is := list.(*api.FirewallConfigurationList); is {
				return nil
			}
			return c.List(ctx, list, options...)
		},
		Create: func(_ context.Context, _ client.WithWatch, o client.Object, _ ...client.CreateOption) error {
			return refuse(o)
		},
	})
	r := New(Config{Client: behind, Own: transittest.Own, Namespace: namespace, Liqo: transittest.Liqo})
	before := tables(t, w)
	if _, err := r.Reconcile(t.Context(), ctrl.Request{}); err != nil {
		t.Errorf("what is there is written again, with an error: %v", err)
	}
	if after := tables(t, w); text(t, after[key("c")].Spec) != text(t, before[key("c")].Spec) {
		t.Errorf("it has become %s", text(t, after[key("c")]))
	}
	if err := w.Delete(t.Context(), before[key("c")]); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Reconcile(t.Context(), ctrl.Request{}); !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "already used") {
		t.Errorf("another object has the table, and nobody is told: %v", err)
	}
}

// TestPeersOpenNothing holds that what a peer writes into its tenant namespace does not count as Liqo's.
func TestPeersOpenNothing(t *testing.T) {
	ip := transittest.Made(&api.IP{Status: api.IPStatus{IP: "10.70.0.77"}}, transittest.Tenant("c"), "x",
		map[string]string{api.LabelIPType: api.IPTypeProxy})
	network := transittest.Made(&api.Network{Status: api.NetworkStatus{CIDR: "10.0.0.0/8"}}, transittest.Tenant("c"), "x",
		map[string]string{api.LabelNetworkType: api.NetworkTypeExternal})
	with, without := transittest.New(t, ip, network), transittest.New(t)
	run(t, with)
	run(t, without)
	if text(t, tables(t, with)[key("c")].Spec) != text(t, tables(t, without)[key("c")].Spec) {
		t.Error("a consumer has opened an address to itself")
	}
}

// TestIPv6 holds that an external network of IPv6 beside the one of IPv4 changes nothing.
func TestIPv6(t *testing.T) {
	network := transittest.Made(&api.Network{Status: api.NetworkStatus{CIDR: "fd00::/64"}}, transittest.Liqo, "z",
		map[string]string{api.LabelNetworkType: api.NetworkTypeExternal})
	with, without := transittest.New(t, network), transittest.New(t)
	run(t, with)
	run(t, without)
	for name, want := range tables(t, without) {
		if got := tables(t, with)[name]; got == nil || text(t, got.Spec) != text(t, want.Spec) {
			t.Errorf("%s has become %s", name, text(t, got))
		}
	}
}

// TestAllowed holds that what people allow passes, in all tables.
func TestAllowed(t *testing.T) {
	w := transittest.New(t)
	if _, err := reconciler(w, netip.MustParsePrefix("10.201.0.0/16")).Reconcile(t.Context(), ctrl.Request{}); err != nil {
		t.Fatal(err)
	}
	for name, f := range tables(t, w) {
		if !strings.Contains(text(t, f), `-10.200.255.255"`) && !strings.Contains(text(t, f), `"drop-10.202.0.0-`) {
			t.Errorf("%s drops what people allow, or all behind it: %s", name, text(t, f))
		}
	}
}
