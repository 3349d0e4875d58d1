// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"net/netip"
	"slices"
	"strings"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
	"sigs.k8s.io/yaml"

	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
	"github.com/capacitorset/liqo-broker/pkg/core/transit"
	"github.com/capacitorset/liqo-broker/pkg/liqo"
	v1 "github.com/capacitorset/liqo-broker/pkg/liqo/v1"
	"github.com/capacitorset/liqo-broker/pkg/liqo/v1/report"
	"github.com/capacitorset/liqo-broker/pkg/transit/reports"
	"github.com/capacitorset/liqo-broker/test/admission"
)

// installedPolicy returns a policy of a name, as it is installed with a folder below deploy.
func installedPolicy(t *testing.T, folder, name string) admissionregistrationv1.ValidatingAdmissionPolicySpec {
	t.Helper()
	built, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), "../../deploy/"+folder)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range built.Resources() {
		if r.GetKind() != "ValidatingAdmissionPolicy" || r.GetName() != name {
			continue
		}
		var p admissionregistrationv1.ValidatingAdmissionPolicy
		if err := yaml.Unmarshal([]byte(r.MustYaml()), &p); err != nil {
			t.Fatal(err)
		}
		return p.Spec
	}
	t.Fatalf("deploy/%s has no policy %s", folder, name)
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

// refusalsOf returns why a policy refuses what the program in a namespace of its name does to an object, in a namespace with labels.
func refusalsOf(
	t *testing.T, program string, policy *admissionregistrationv1.ValidatingAdmissionPolicySpec, resource string, in map[string]string,
	before, after map[string]any,
) []string {
	t.Helper()
	operation := "UPDATE"
	switch {
	case before == nil:
		operation = "CREATE"
	case after == nil:
		operation = "DELETE"
	}
	orNull := func(o map[string]any) any {
		if o == nil {
			return nil
		}
		return o
	}
	variables := map[string]any{}
	resource, subresource, _ := strings.Cut(resource, "/")
	input := map[string]any{
		"object": orNull(after), "oldObject": orNull(before), "variables": variables,
		"request": map[string]any{
			"operation": operation, "resource": map[string]any{"resource": resource}, "subResource": subresource,
			"userInfo": map[string]any{"username": "system:serviceaccount:" + program + ":" + program},
		},
		"namespaceObject": asObject(t, map[string]any{"metadata": map[string]any{"labels": in}}),
	}
	for _, c := range policy.MatchConditions {
		if !admission.Holds(t, c.Expression, input) {
			t.Fatal("the policy is not asked")
		}
	}
	for _, v := range policy.Variables {
		variables[v.Name] = admission.Evaluate(t, v.Expression, input)
	}
	var refusals []string
	for _, v := range policy.Validations {
		if !admission.Holds(t, v.Expression, input) {
			refusals = append(refusals, v.Message)
		}
	}
	return refusals
}

// written is what a program does to an object, which is nil before it is made and after it is deleted, in a namespace with labels.
type written struct {
	reason   string
	resource string
	in       map[string]string
	old, new map[string]any
	refused  bool
}

// checkPolicy holds what a policy refuses that is installed with a program.
func checkPolicy(t *testing.T, program, name string, cases map[string]written) {
	t.Helper()
	policy := installedPolicy(t, strings.TrimPrefix(program, "liqo-broker-"), name)
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			refusals := refusalsOf(t, program, &policy, tc.resource, tc.in, tc.old, tc.new)
			if got := len(refusals) > 0; got != tc.refused {
				t.Errorf("%s refused with %q, want refused: %t", tc.reason, strings.Join(refusals, "; "), tc.refused)
			}
		})
	}
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
	cases := map[string]written{
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
	checkPolicy(t, transitName, "transit.brokering.liqo.io", cases)
}

// consumer returns one that peers.
func consumer() *liqo.Peer {
	return &liqo.Peer{Identity: cluster.Identity{ID: "c"}, Tenant: "liqo-tenant-c", Permit: liqo.Permit{Name: "c", UID: "permit-of-c"}}
}

// TestReportsPolicy holds what of roles the transit may make, and that it reports nothing itself.
func TestReportsPolicy(t *testing.T) {
	const maps, roles, bindings = "configmaps", "roles", "rolebindings"
	tenant := map[string]string{"liqo.io/remote-cluster-id": "c", "liqo.io/tenant-namespace": "true"}
	twin := map[string]string{"liqo.io/remote-cluster-id": "c"}
	cm, role, binding := reports.Forge(consumer())
	nothing := map[string]any(nil)
	changed := func(o client.Object, by func(map[string]any)) map[string]any {
		all := asObject(t, o)
		by(all)
		return all
	}
	rule := func(key string, value any) map[string]any {
		return changed(role, func(all map[string]any) { all["rules"].([]any)[0].(map[string]any)[key] = value })
	}
	subject := func(key string, value any) map[string]any {
		return changed(binding, func(all map[string]any) { all["subjects"].([]any)[0].(map[string]any)[key] = value })
	}
	ref := func(key string, value any) map[string]any {
		return changed(binding, func(all map[string]any) { all["roleRef"].(map[string]any)[key] = value })
	}
	called := func(o client.Object, name string) map[string]any {
		return changed(o, func(all map[string]any) { all["metadata"].(map[string]any)["name"] = name })
	}
	unlabelled := func(o client.Object) map[string]any {
		return changed(o, func(all map[string]any) { delete(all["metadata"].(map[string]any), "labels") })
	}
	more := func(key string, o client.Object) map[string]any {
		return changed(o, func(all map[string]any) { list := all[key].([]any); all[key] = append(list, list[0]) })
	}
	data := func(data map[string]any) map[string]any {
		return changed(cm, func(all map[string]any) { all["data"] = data })
	}
	cases := map[string]written{
		"Empty":   {"It makes what a consumer reports into.", maps, tenant, nothing, asObject(t, cm), false},
		"Role":    {"And what lets it.", roles, tenant, nothing, asObject(t, role), false},
		"Binding": {"And whom.", bindings, tenant, nothing, asObject(t, binding), false},
		"Healed":  {"And heals it.", roles, tenant, rule("verbs", []any{"*"}), asObject(t, role), false},

		"Elsewhere": {"Only where consumers report.", roles, twin, nothing, asObject(t, role), true},
		"Nobodys": {
			"And not where nobody does.", bindings, map[string]string{"liqo.io/tenant-namespace": "true"}, nothing, subject("name", ""), true,
		},
		"Name":         {"Nothing else.", roles, tenant, nothing, called(role, "admin"), true},
		"NameOfMap":    {"Of no kind.", maps, tenant, nothing, called(cm, "other"), true},
		"Unlabelled":   {"It is known as the transit's.", roles, tenant, nothing, unlabelled(role), true},
		"Taken":        {"What is somebody else's stays.", roles, tenant, unlabelled(role), asObject(t, role), true},
		"Deleted":      {"It deletes nothing.", maps, tenant, asObject(t, cm), nothing, true},
		"Reports":      {"It reports nothing.", maps, tenant, nothing, data(map[string]any{"report": "x"}), true},
		"ReportsLater": {"Nor later.", maps, tenant, data(map[string]any{"report": "x"}), asObject(t, cm), true},
		"Other":        {"Nor anything else.", maps, tenant, nothing, data(map[string]any{"other": ""}), true},
		"Binary": {"In whatever form.", maps, tenant, nothing, changed(cm, func(all map[string]any) {
			all["binaryData"] = map[string]any{"x": "AA=="}
		}), true},
		"Verbs":       {"It gives no other right.", roles, tenant, nothing, rule("verbs", []any{"get", "list"}), true},
		"Names":       {"To nothing else.", roles, tenant, nothing, rule("resourceNames", []any{}), true},
		"Resources":   {"Of no other kind.", roles, tenant, nothing, rule("resources", []any{"secrets"}), true},
		"Groups":      {"Of no other group.", roles, tenant, nothing, rule("apiGroups", []any{"*"}), true},
		"Rules":       {"And nothing besides.", roles, tenant, nothing, more("rules", role), true},
		"Kind":        {"It gives it to no group.", bindings, tenant, nothing, subject("kind", "Group"), true},
		"User":        {"To no other cluster.", bindings, tenant, nothing, subject("name", "p"), true},
		"Users":       {"And to nobody besides.", bindings, tenant, nothing, more("subjects", binding), true},
		"ClusterRole": {"It binds nobody to another role.", bindings, tenant, nothing, ref("kind", "ClusterRole"), true},
		"OtherRole":   {"Of whatever name.", bindings, tenant, nothing, ref("name", "admin"), true},
	}
	checkPolicy(t, transitName, "transit-reports.brokering.liqo.io", cases)
}

// TestReportPolicy holds that who reports writes no more than the text of a report.
func TestReportPolicy(t *testing.T) {
	policy := installedPolicy(t, "transit", "reports.brokering.liqo.io")
	named := policy.MatchConstraints.ResourceRules[0]
	written := []admissionregistrationv1.OperationType{"UPDATE"}
	if !slices.Equal(named.ResourceNames, []string{report.Name}) || !slices.Equal(named.Operations, written) {
		t.Errorf("the policy is about %v", named)
	}
	before, _, _ := reports.Forge(consumer())
	cases := map[string]struct {
		reason  string
		by      func(*corev1.ConfigMap)
		refused bool
	}{
		"Report": {"A report is written.", func(c *corev1.ConfigMap) { c.Data[report.Key] = strings.Repeat("x", report.MaxBytes) }, false},
		"Gone":   {"Or taken back.", func(c *corev1.ConfigMap) { c.Data = nil }, false},
		"TooLong": {"Not one that nobody reads.", func(c *corev1.ConfigMap) {
			c.Data[report.Key] = strings.Repeat("x", report.MaxBytes+1)
		}, true},
		"Bytes":     {"Counted in bytes.", func(c *corev1.ConfigMap) { c.Data[report.Key] = strings.Repeat("Ω", report.MaxBytes/2+1) }, true},
		"Other":     {"Nothing besides.", func(c *corev1.ConfigMap) { c.Data["other"] = "" }, true},
		"Binary":    {"In whatever form.", func(c *corev1.ConfigMap) { c.BinaryData = map[string][]byte{"x": {1}} }, true},
		"Finalizer": {"The namespace can be deleted.", func(c *corev1.ConfigMap) { c.Finalizers = []string{"example.com/x"} }, true},
		"Label":     {"It stays what the transit knows.", func(c *corev1.ConfigMap) { c.Labels = nil }, true},
		"Labels": {"Nobody finds it by a label who reads ConfigMaps of others.", func(c *corev1.ConfigMap) {
			c.Labels["example.com/dashboard"] = "1"
		}, true},
		"Owner": {"It goes with nothing else.", func(c *corev1.ConfigMap) {
			c.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "Namespace", Name: "x", UID: "x", BlockOwnerDeletion: new(true)}}
		}, true},
		"Peering": {"Nor with another peering than that in which it was made.", func(c *corev1.ConfigMap) {
			c.OwnerReferences[0].UID = "another"
		}, true},
		"Orphan": {"Kubernetes may take the owner away.", func(c *corev1.ConfigMap) { c.OwnerReferences = nil }, false},
		"Fixed":  {"Nor is it closed to later reports.", func(c *corev1.ConfigMap) { c.Immutable = new(true) }, true},
		"Notes":  {"Nothing is written beside it.", func(c *corev1.ConfigMap) { c.Annotations = map[string]string{"a": "b"} }, true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			after := before.DeepCopy()
			tc.by(after)
			refusals := refusalsOf(t, transitName, &policy, "configmaps", nil, asObject(t, before), asObject(t, after))
			if got := len(refusals) > 0; got != tc.refused {
				t.Errorf("%s refused with %q, want refused: %t", tc.reason, strings.Join(refusals, "; "), tc.refused)
			}
		})
	}
}
