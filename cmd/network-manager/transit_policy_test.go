// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"net/netip"
	"strings"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
	"sigs.k8s.io/yaml"

	"github.com/capacitorset/liqo-broker/pkg/core/transit"
	"github.com/capacitorset/liqo-broker/pkg/liqo"
	v1 "github.com/capacitorset/liqo-broker/pkg/liqo/v1"
	"github.com/capacitorset/liqo-broker/test/admission"
)

// transitPolicy returns the policy that bounds the account of the transit, as it is installed.
func transitPolicy(t *testing.T) admissionregistrationv1.ValidatingAdmissionPolicySpec {
	t.Helper()
	built, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), "../../deploy/transit")
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range built.Resources() {
		if r.GetKind() != "ValidatingAdmissionPolicy" {
			continue
		}
		var p admissionregistrationv1.ValidatingAdmissionPolicy
		if err := yaml.Unmarshal([]byte(r.MustYaml()), &p); err != nil {
			t.Fatal(err)
		}
		return p.Spec
	}
	t.Fatal("deploy/transit has no policy")
	return admissionregistrationv1.ValidatingAdmissionPolicySpec{}
}

// asObject returns an object as the API server gives it to a policy; nil for none.
func asObject(t *testing.T, o any) map[string]any {
	t.Helper()
	text, err := json.Marshal(o)
	if err != nil {
		t.Fatal(err)
	}
	var all map[string]any
	if err := json.Unmarshal(text, &all); err != nil {
		t.Fatal(err)
	}
	return all
}

func TestTransitPolicy(t *testing.T) {
	const tables, ips, slices = "firewallconfigurations", "ips", "endpointslices"
	table := v1.ForgeFirewall("liqo-broker-transit", transit.Rules{Arriving: []transit.Range{
		{From: netip.MustParseAddr("10.0.0.0"), To: netip.MustParseAddr("10.0.0.9")},
	}})
	ip := v1.ForgeIP("web-c", netip.MustParseAddr("10.200.0.2"))
	slice := &discoveryv1.EndpointSlice{Endpoints: []discoveryv1.Endpoint{{Addresses: []string{"10.200.0.2"}}}}
	slice.Name, slice.Labels = "liqo-broker-0123", map[string]string{liqo.LabelBrokerManaged: liqo.BrokerManaged}
	twin := map[string]string{"liqo.io/remote-cluster-id": "c"}
	tenant := map[string]string{"liqo.io/remote-cluster-id": "c", "liqo.io/tenant-namespace": "true"}
	own, nothing := map[string]string{"kubernetes.io/metadata.name": "default"}, map[string]any(nil)

	set := func(o any, value any, path ...string) map[string]any {
		all := asObject(t, o)
		at := all
		for _, key := range path[:len(path)-1] {
			if list, is := at[key].([]any); is {
				at = list[0].(map[string]any)
				continue
			}
			at = at[key].(map[string]any)
		}
		at[path[len(path)-1]] = value
		return all
	}
	theirs := set(slice, "shadowendpointslice", "metadata", "labels", "liqo.io/managed-by")
	chain := func(key string, value any) map[string]any {
		all := asObject(t, table)
		all["spec"].(map[string]any)["table"].(map[string]any)["chains"].([]any)[0].(map[string]any)[key] = value
		return all
	}
	endpoint := func(key string, value any) map[string]any {
		all := asObject(t, slice)
		all["endpoints"].([]any)[0].(map[string]any)[key] = value
		return all
	}
	accepts := map[string]any{"filterRules": []any{map[string]any{"action": "accept"}}}
	unlabelled := set(table, map[string]any{}, "metadata", "labels")
	cases := map[string]struct {
		reason   string
		resource string
		in       map[string]string
		old, new map[string]any
		refused  bool
	}{
		"Table":        {"It makes tables in its own namespace.", tables, own, nothing, asObject(t, table), false},
		"TableOfPeer":  {"And in those of peers.", tables, tenant, nothing, asObject(t, table), false},
		"TableHealed":  {"And makes one its own again.", tables, tenant, unlabelled, asObject(t, table), false},
		"TableGone":    {"And deletes them.", tables, tenant, asObject(t, table), nothing, false},
		"IP":           {"It opens addresses in the namespace of a consumer.", ips, twin, nothing, asObject(t, ip), false},
		"IPGone":       {"And closes them.", ips, twin, asObject(t, ip), nothing, false},
		"Slice":        {"It tells of endpoints there.", slices, twin, nothing, asObject(t, slice), false},
		"SliceChanged": {"And tells of others.", slices, twin, asObject(t, slice), asObject(t, slice), false},

		"Name":         {"What others keep is not its own.", tables, tenant, nothing, set(table, "c-remap-podcidr", "metadata", "name"), true},
		"Other":        {"Also with the same beginning.", tables, tenant, nothing, set(table, "liqo-broker-x", "metadata", "name"), true},
		"Unlabelled":   {"Nor without the label.", tables, tenant, nothing, unlabelled, true},
		"UnlabelledIP": {"Of whatever kind.", ips, twin, nothing, set(ip, map[string]any{}, "metadata", "labels"), true},
		"OthersGone":   {"It deletes nothing of others.", tables, tenant, set(table, "x", "metadata", "name"), nothing, true},
		"NAT":          {"It translates nothing.", tables, tenant, nothing, chain("type", "nat"), true},
		"Accept":       {"It lets nothing through.", tables, tenant, nothing, chain("rules", accepts), true},
		"DropAll":      {"It does not drop whatever it does not name.", tables, tenant, nothing, chain("policy", "drop"), true},
		"Nodes": {
			"It does nothing on nodes.", tables, tenant, nothing,
			set(table, "fabric", "metadata", "labels", "networking.liqo.io/firewall-category"), true,
		},
		"IPElsewhere":    {"It opens nothing in the namespaces of peers.", ips, tenant, nothing, asObject(t, ip), true},
		"IPOwn":          {"Nor in those of this cluster.", ips, own, nothing, asObject(t, ip), true},
		"IPService":      {"It has Liqo make no Services.", ips, twin, nothing, set(ip, map[string]any{}, "spec", "serviceTemplate"), true},
		"IPNetwork":      {"Nor take an address elsewhere.", ips, twin, nothing, set(ip, map[string]any{}, "spec", "networkRef"), true},
		"IPMasquerade":   {"Nor hide who comes.", ips, twin, nothing, set(ip, true, "spec", "masquerade"), true},
		"IPName":         {"Nor take the name of a Service.", ips, twin, nothing, set(ip, "liqo-broker-x", "metadata", "name"), true},
		"SliceElsewhere": {"It tells of no endpoints elsewhere.", slices, own, nothing, asObject(t, slice), true},
		"SliceTaken":     {"It takes none of a consumer.", slices, twin, theirs, asObject(t, slice), true},
		"SliceDeleted":   {"And deletes none.", slices, twin, theirs, nothing, true},
		"Node":           {"It says of none on which node it is.", slices, twin, nothing, endpoint("nodeName", "n"), true},
		"Target":         {"Nor which pod.", slices, twin, nothing, endpoint("targetRef", map[string]any{"kind": "Pod"}), true},
	}
	policy := transitPolicy(t)
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			operation := "UPDATE"
			switch {
			case tc.old == nil:
				operation = "CREATE"
			case tc.new == nil:
				operation = "DELETE"
			}
			orNull := func(o map[string]any) any {
				if o == nil {
					return nil
				}
				return o
			}
			input := map[string]any{
				"object": orNull(tc.new), "oldObject": orNull(tc.old),
				"request": map[string]any{
					"operation": operation, "resource": map[string]any{"resource": tc.resource},
					"userInfo": map[string]any{"username": "system:serviceaccount:liqo-broker-transit:liqo-broker-transit"},
				},
				"namespaceObject": asObject(t, map[string]any{"metadata": map[string]any{"labels": tc.in}}),
			}
			if !admission.Holds(t, policy.MatchConditions[0].Expression, input) {
				t.Fatal("the policy is not asked")
			}
			var refusals []string
			for _, v := range policy.Validations {
				if !admission.Holds(t, v.Expression, input) {
					refusals = append(refusals, v.Message)
				}
			}
			if got := len(refusals) > 0; got != tc.refused {
				t.Errorf("%s refused with %q, want refused: %t", tc.reason, strings.Join(refusals, "; "), tc.refused)
			}
		})
	}
}
