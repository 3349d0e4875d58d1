// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"strings"

	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capacitorset/liqo-broker/pkg/api/v1alpha1"
)

// need is a resource that the broker uses, and how.
type need struct {
	group, resource, subresource string
	verbs                        []string
}

func (n need) String() string {
	name := n.resource
	if n.subresource != "" {
		name += "/" + n.subresource
	}
	if n.group != "" {
		name += "." + n.group
	}
	return name
}

// cure is what installs the resource, if it does not exist.
func (n need) cure() string {
	if strings.HasSuffix(n.group, ".liqo.io") && n.group != v1alpha1.Group {
		return "install Liqo v0.9.4 first (liqoctl install)"
	}
	return "install it with: kubectl apply -k deploy/"
}

// needs returns what the broker uses in its modes. deploy/broker grants the same.
func needs(o *options) []need {
	read := []string{"get", "list", "watch"}
	all := []need{{group: "discovery.liqo.io", resource: "foreignclusters", verbs: read}}
	if o.brokers() {
		all = append(all,
			need{group: "sharing.liqo.io", resource: "resourceoffers", verbs: read},
			need{group: "offloading.liqo.io", resource: "namespaceoffloadings", verbs: append(read[:3:3], "create", "patch")},
			need{group: "virtualkubelet.liqo.io", resource: "shadowpods", verbs: read},
			need{resource: "namespaces", verbs: read},
			need{resource: "nodes", verbs: append(read[:3:3], "patch")},
			need{resource: "pods", verbs: append(read[:3:3], "delete")},
			need{resource: "events", verbs: []string{"create", "patch"}},
			need{group: v1alpha1.Group, resource: "providers", verbs: append(read[:3:3], "create", "patch")},
			need{group: v1alpha1.Group, resource: "providers", subresource: "status", verbs: []string{"patch"}},
			need{group: v1alpha1.Group, resource: "consumers", verbs: append(read[:3:3], "create", "patch")},
			need{group: v1alpha1.Group, resource: "consumers", subresource: "status", verbs: []string{"patch"}},
		)
	}
	if o.orchestrator && !o.anonymousToggle {
		all = append(all,
			need{group: "authentication.k8s.io", resource: "tokenreviews", verbs: []string{"create"}},
			need{group: "authorization.k8s.io", resource: "subjectaccessreviews", verbs: []string{"create"}},
		)
	}
	return all
}

// preflight finds out whether the API server has the resources that the broker
// uses, and allows their use. Otherwise a controller would wait for them forever.
func preflight(ctx context.Context, c client.Client, needs []need) error {
	for _, n := range needs {
		_, err := c.RESTMapper().ResourcesFor(schema.GroupVersionResource{Group: n.group, Resource: n.resource})
		if meta.IsNoMatchError(err) {
			return fmt.Errorf("the API server does not know %s: %s", n, n.cure())
		}
		if err != nil {
			return fmt.Errorf("find %s at the API server: %w", n, err)
		}
		for _, verb := range n.verbs {
			review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{
				ResourceAttributes: &authorizationv1.ResourceAttributes{
					Group: n.group, Resource: n.resource, Subresource: n.subresource, Verb: verb,
				},
			}}
			if err := c.Create(ctx, review); err != nil {
				return fmt.Errorf("ask the API server whether the broker may %s %s: %w", verb, n, err)
			}
			if !review.Status.Allowed {
				return fmt.Errorf("the broker may not %s %s: grant it with: kubectl apply -k deploy/", verb, n)
			}
		}
	}
	return nil
}
