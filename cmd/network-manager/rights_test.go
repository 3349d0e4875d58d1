// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/yaml"

	"github.com/capacitorset/liqo-broker/pkg/daemon"
	v1 "github.com/capacitorset/liqo-broker/pkg/liqo/v1"
	"github.com/capacitorset/liqo-broker/pkg/liqo/v1/api"
	"github.com/capacitorset/liqo-broker/pkg/liqo/v1/report"
)

// rights are verbs by resources, with their group and, where they are only of some objects, the names.
type rights map[string][]string

// add notes verbs for some kinds.
func (r rights) add(t *testing.T, verbs []string, kinds ...client.Object) {
	t.Helper()
	scheme, err := daemon.Kinds(v1.Line{}.AddToScheme)
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range kinds {
		kind, err := apiutil.GVKForObject(o, scheme)
		if err != nil {
			t.Fatal(err)
		}
		plural, _ := meta.UnsafeGuessKindToResource(kind)
		key := plural.GroupResource().String()
		r[key] = slices.Compact(slices.Sorted(slices.Values(append(r[key], verbs...))))
	}
}

// grantedTo returns the rights that a folder below deploy gives, by namespace.
func grantedTo(t *testing.T, folder string) map[string]rights {
	t.Helper()
	manifest, err := os.ReadFile("../../deploy/" + folder + "/rbac.yaml")
	if err != nil {
		t.Fatal(err)
	}
	granted := map[string]rights{}
	for document := range strings.SplitSeq(string(manifest), "\n---\n") {
		var role rbacv1.ClusterRole // A Role has the same fields.
		if err := yaml.Unmarshal([]byte(document), &role); err != nil {
			t.Fatal(err)
		}
		if role.Kind != "ClusterRole" && role.Kind != "Role" {
			continue
		}
		all := rights{}
		for _, rule := range role.Rules {
			for _, group := range rule.APIGroups {
				for _, resource := range rule.Resources {
					key := resource
					if group != "" {
						key += "." + group
					}
					if len(rule.ResourceNames) > 0 {
						key += " " + strings.Join(rule.ResourceNames, ",")
					}
					all[key] = slices.Sorted(slices.Values(append(all[key], rule.Verbs...)))
				}
			}
		}
		granted[role.Namespace] = all
	}
	return granted
}

// TestRights compares what deploy/agent and deploy/transit grant with what the programs do: they must start with it, and have no right that
// they do not use.
func TestRights(t *testing.T) {
	read, kinds := []string{"get", "list", "watch"}, v1.Line{}.Kinds()
	// The transit reads peers, and what they may; it writes tables, addresses and endpoints.
	transit := rights{}
	transit.add(t, read, slices.Concat(kinds.Peering, []client.Object{
		kinds.Record, kinds.Offer, kinds.Network, kinds.OwnNetwork, kinds.Offloading, &corev1.Namespace{},
		&api.FirewallConfiguration{}, &api.IP{}, &discoveryv1.EndpointSlice{},
	})...)
	transit.add(t, []string{"create", "delete"}, &api.FirewallConfiguration{}, &api.IP{}, &discoveryv1.EndpointSlice{})
	transit.add(t, []string{"patch"}, &api.FirewallConfiguration{}, &discoveryv1.EndpointSlice{})
	// Into a ConfigMap consumers report; it lets each write its own.
	for of, verb := range map[string]string{
		"configmaps": "update", "roles.rbac.authorization.k8s.io": "patch", "rolebindings.rbac.authorization.k8s.io": "patch",
	} {
		transit[of] = []string{"create"}
		transit[of+" "+report.Name] = slices.Sorted(slices.Values(append(slices.Clone(read), verb)))
	}
	// The agent reads what becomes of views, tunnels, and where brokers have told of its credentials; it lists views, and ends virtual
	// kubelets and what Liqo has mapped pods by.
	agent := rights{}
	agent.add(t, read, slices.Concat(v1.ViewKinds(), kinds.Tunnels, []client.Object{
		v1.NewConfiguration(), &api.Identity{}, &api.IP{}, &corev1.Pod{},
	})...)
	agent.add(t, []string{"patch"}, v1.NewConfiguration())
	agent.add(t, []string{"delete"}, &corev1.Pod{}, &api.IP{})

	for folder, of := range map[string]struct {
		name       string
		everywhere rights
	}{"transit": {transitName, transit}, "agent": {agentName, agent}} {
		needed := map[string]rights{
			"": of.everywhere,
			// What Liqo calls the cluster, and by which lease a replica leads.
			"liqo": {"configmaps liqo-clusterid-configmap": {"get"}},
			of.name: {
				"leases.coordination.k8s.io": {"create", "get", "update"}, "events": {"create", "patch"},
			},
		}
		if diff := cmp.Diff(needed, grantedTo(t, folder)); diff != "" {
			t.Errorf("deploy/%s/rbac.yaml: -needed +granted, by namespace\n%s", folder, diff)
		}
	}
}
