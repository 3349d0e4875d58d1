// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"slices"
	"strings"

	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capacitorset/liqo-broker/pkg/api/v1alpha1"
	"github.com/capacitorset/liqo-broker/pkg/cached"
	"github.com/capacitorset/liqo-broker/pkg/controller/inventory"
	"github.com/capacitorset/liqo-broker/pkg/httpapi"
	"github.com/capacitorset/liqo-broker/pkg/liqo"
	"github.com/capacitorset/liqo-broker/pkg/liqo/line"
	"github.com/capacitorset/liqo-broker/pkg/liqo/lines"
	"github.com/capacitorset/liqo-broker/pkg/liqo/v1/api"
	"github.com/capacitorset/liqo-broker/pkg/liqo/v1/report"
	"github.com/capacitorset/liqo-broker/pkg/remoteipam"
	"github.com/capacitorset/liqo-broker/pkg/remoteipam/broker/callers"
	"github.com/capacitorset/liqo-broker/pkg/version"
)

// need is a resource that the broker uses, and how.
type need struct {
	group, version, resource, subresource string
	namespace                             string // Empty for all.
	name                                  string // Empty for all.
	verbs                                 []string
	// ofCatalog tells that a catalog with Liqo 1.x needs it, which is installed by a folder of its own.
	ofCatalog bool
}

func (n need) String() string {
	name := n.resource
	if n.subresource != "" {
		name += "/" + n.subresource
	}
	if n.group != "" {
		name += "." + n.group
	}
	if n.name != "" {
		name += " " + n.name
	}
	if n.namespace != "" {
		name += " in namespace " + n.namespace
	}
	return name
}

// inventoryExample grants what is needed of the Cluster Inventory API.
const inventoryExample = "deploy/examples/cluster-inventory.yaml"

// grant is what lets the broker use the resource.
func (n need) grant() string {
	if n.group == inventory.GroupVersion.Group {
		return "see " + inventoryExample
	}
	if n.ofCatalog {
		return "grant it with: kubectl apply " + version.Applied("deploy/catalog")
	}
	return "grant it with: kubectl apply " + version.Applied("deploy")
}

// cure is what installs the resource, if it does not exist.
func (n need) cure() string {
	if n.group == inventory.GroupVersion.Group {
		return "install the definitions of the Cluster Inventory API first, or leave out --cluster-inventory-namespace"
	}
	if strings.HasSuffix(n.group, ".liqo.io") && n.version == api.Beta {
		return "install Liqo v1.2.0 first (liqoctl install)"
	}
	if strings.HasSuffix(n.group, ".liqo.io") && n.group != v1alpha1.Group {
		return "install Liqo v0.9.4 first (liqoctl install)"
	}
	return "install it with: kubectl apply " + version.Applied("deploy")
}

// hooks returns how the API server knows what answers about objects.
func hooks() []need {
	of := func(resource string) need {
		return need{
			group: "admissionregistration.k8s.io", version: "v1", resource: resource, name: webhookConfiguration, verbs: []string{"get", "patch"},
		}
	}
	return []need{of("mutatingwebhookconfigurations"), of("validatingwebhookconfigurations")}
}

// knows returns by what the broker knows peers, with a line of Liqo.
func knows(with line.Line) []need {
	read := []string{"get", "list", "watch"}
	if with.HasPlugin() {
		return []need{
			{group: "discovery.liqo.io", version: "v1alpha1", resource: "foreignclusters", verbs: read},
			{group: "net.liqo.io", version: "v1alpha1", resource: "tunnelendpoints", verbs: read},
			{version: "v1", resource: "namespaces", verbs: read},
			{version: "v1", resource: "configmaps", name: remoteipam.AnnouncementName, verbs: []string{"get"}},
		}
	}
	return []need{
		{group: api.CoreGroup, version: api.Beta, resource: "foreignclusters", verbs: read},
		{group: api.NetworkingGroup, version: api.Beta, resource: "configurations", verbs: read},
	}
}

// usesOfLiqo returns what the broker uses of Liqo, with one of its lines, to stand between consumers and providers.
func usesOfLiqo(with line.Line) []need {
	read := []string{"get", "list", "watch"}
	if with.HasPlugin() {
		const alpha = "v1alpha1"
		return []need{
			{group: "sharing.liqo.io", version: alpha, resource: "resourceoffers", verbs: read},
			{group: "offloading.liqo.io", version: alpha, resource: "namespaceoffloadings", verbs: append(read[:3:3], "create", "patch")},
			{group: "virtualkubelet.liqo.io", version: alpha, resource: "shadowpods", verbs: read},
			{version: "v1", resource: "configmaps", name: remoteipam.DirectName, verbs: []string{"get"}},
		}
	}
	return []need{
		{group: api.AuthenticationGroup, version: api.Beta, resource: "resourceslices", verbs: read},
		{group: api.AuthenticationGroup, version: api.Beta, resource: "resourceslices", subresource: "status", verbs: []string{"patch"}},
		{group: api.AuthenticationGroup, version: api.Beta, resource: "tenants", verbs: read},
		{group: api.AuthenticationGroup, version: api.Beta, resource: "identities", verbs: read},
		{group: api.NetworkingGroup, version: api.Beta, resource: "connections", verbs: read},
		{group: api.OffloadingGroup, version: api.Beta, resource: "namespaceoffloadings", verbs: append(read[:3:3], "create", "patch")},
		{group: api.OffloadingGroup, version: api.Beta, resource: "shadowpods", verbs: read},
		{version: "v1", resource: "configmaps", name: report.Name, verbs: read},
		{version: "v1", resource: "namespaces", verbs: read},
	}
}

// needs returns what the broker uses in its modes, with a line of Liqo. deploy/broker grants the same.
func needs(o *options, with line.Line) []need {
	read := []string{"get", "list", "watch"}
	const alpha = "v1alpha1"
	all := []need{
		{group: "authentication.k8s.io", version: "v1", resource: "tokenreviews", verbs: []string{"create"}},
		{group: "authorization.k8s.io", version: "v1", resource: "subjectaccessreviews", verbs: []string{"create"}},
	}
	// How it knows peers, is asked about objects, and is known by people.
	all = append(all, knows(with)...)
	if o.isAsked(with) {
		all = append(all, hooks()...)
	}
	if o.tlsCertFile == "" && o.namespace != "" {
		all = append(all, need{
			version: "v1", resource: "configmaps", namespace: o.namespace, name: httpapi.CAName, verbs: []string{"get", "patch"},
		})
	}
	// What it does as a broker.
	if o.brokers() {
		all = append(all, usesOfLiqo(with)...)
		all = append(all,
			need{version: "v1", resource: "configmaps", namespace: o.liqoNamespace, name: liqo.IdentityName, verbs: []string{"get"}},
			need{version: "v1", resource: "nodes", verbs: append(read[:3:3], "patch")},
			need{version: "v1", resource: "pods", verbs: append(read[:3:3], "delete")},
			need{version: "v1", resource: "pods", subresource: "status", verbs: []string{"patch"}},
			need{version: "v1", resource: "events", verbs: []string{"create", "patch"}},
			need{version: "v1", resource: "events", namespace: cached.NamespaceOfEvents, verbs: []string{"list", "watch"}},
			need{group: v1alpha1.Group, version: alpha, resource: "providers", verbs: append(read[:3:3], "create", "patch")},
			need{group: v1alpha1.Group, version: alpha, resource: "providers", subresource: "status", verbs: []string{"patch"}},
			need{group: v1alpha1.Group, version: alpha, resource: "consumers", verbs: append(read[:3:3], "create", "patch")},
			need{group: v1alpha1.Group, version: alpha, resource: "consumers", subresource: "status", verbs: []string{"patch"}},
			need{group: v1alpha1.Group, version: alpha, resource: "placementpolicies", verbs: read},
			need{group: v1alpha1.Group, version: alpha, resource: "placementpolicies", subresource: "status", verbs: []string{"patch"}},
			need{group: v1alpha1.Group, version: alpha, resource: "placementdecisions", verbs: append(read[:3:3], "create", "update", "delete")},
			need{group: v1alpha1.Group, version: alpha, resource: "providerhistories", verbs: append(read[:3:3], "create", "update")},
			need{group: v1alpha1.Group, version: alpha, resource: "providerqueries", verbs: read},
			need{group: v1alpha1.Group, version: alpha, resource: "providerqueries", subresource: "status", verbs: []string{"patch"}},
			need{version: "v1", resource: "configmaps", namespace: callers.AuthoritiesNamespace, name: callers.AuthoritiesName, verbs: read},
		)
	}
	if o.inventoryNamespace != "" {
		shared := inventory.GroupVersion
		for resource, verbs := range map[string][]string{
			"clusterprofiles": append(read[:3:3], "create", "patch"), "placementdecisions": append(read[:3:3], "create", "patch", "delete"),
		} {
			all = append(all, need{
				group: shared.Group, version: shared.Version, namespace: o.inventoryNamespace, resource: resource, verbs: verbs,
			})
		}
		all = append(all, need{
			group: shared.Group, version: shared.Version, namespace: o.inventoryNamespace,
			resource: "clusterprofiles", subresource: "status", verbs: []string{"patch"},
		})
	}
	if o.leaderElect {
		all = append(all, need{
			group: "coordination.k8s.io", version: "v1", resource: "leases", namespace: o.leaderNamespace,
			verbs: []string{"get", "create", "update"},
		})
	}
	for i := range all {
		all[i].ofCatalog = !o.isAsked(with)
	}
	return all
}

// preflight finds out whether the API server has the resources that the broker
// uses, and allows their use. Otherwise a controller would wait for them forever.
func preflight(ctx context.Context, d lines.Discoverer, c client.Client, needs []need) error {
	for _, n := range needs {
		groupVersion := schema.GroupVersion{Group: n.group, Version: n.version}.String()
		list, err := d.ServerResourcesForGroupVersion(groupVersion)
		if err != nil && !apierrors.IsNotFound(err) {
			return fmt.Errorf("ask the API server for its resources in %s: %w", groupVersion, err)
		}
		known := func(r metav1.APIResource) bool { return r.Name == n.resource }
		if err != nil || !slices.ContainsFunc(list.APIResources, known) {
			return fmt.Errorf("the API server does not know %s: %s", n, n.cure())
		}
		for _, verb := range n.verbs {
			review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{
				ResourceAttributes: &authorizationv1.ResourceAttributes{
					Group: n.group, Resource: n.resource, Subresource: n.subresource, Namespace: n.namespace, Name: n.name, Verb: verb,
				},
			}}
			if err := c.Create(ctx, review); err != nil {
				return fmt.Errorf("ask the API server whether the broker may %s %s: %w", verb, n, err)
			}
			if !review.Status.Allowed {
				return fmt.Errorf("the broker may not %s %s: %s", verb, n, n.grant())
			}
		}
	}
	return nil
}
