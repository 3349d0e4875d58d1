// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capacitorset/liqo-broker/pkg/api/v1alpha1"
	"github.com/capacitorset/liqo-broker/pkg/controller/reports"
	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
	"github.com/capacitorset/liqo-broker/pkg/core/grant"
	"github.com/capacitorset/liqo-broker/pkg/liqo"
	"github.com/capacitorset/liqo-broker/pkg/liqo/line"
	"github.com/capacitorset/liqo-broker/pkg/overview"
)

func (r *reading) explainCommand() *cobra.Command {
	var out output
	command := &cobra.Command{
		Use:   "explain POLICY|NAMESPACE|NAMESPACE/POD",
		Short: "Say why pods run where they do, and what excludes each other provider",
		Long: "Say why pods run where they do, and what excludes each other provider, as the placement decisions have it: of a placement " +
			"policy, of a\nconsumer's namespace, by its name on the broker or on the consumer, or of a pod in such a namespace. What has " +
			"the name is found out;\nof several all are explained. It is for the cluster of the broker.",
		Example:           "  kubectl liqo-broker explain cheapest\n  kubectl liqo-broker explain shop\n  kubectl liqo-broker explain shop/web-1",
		Args:              usage(cobra.ExactArgs(1)),
		ValidArgsFunction: r.completing(1, policiesAndNamespaces),
		RunE: func(command *cobra.Command, args []string) error {
			c, err := r.open()
			if err != nil {
				return err
			}
			placements, err := r.placements(command.Context(), c)
			if err != nil {
				return r.clear(r.onBroker(command.Context(), c, err))
			}
			if !placements.Liqo.HasPlugin() {
				// Who may not see that is told the rest.
				if placements.Heard, err = r.heard(command.Context(), c, placements, args[0]); err != nil {
					fmt.Fprintf(r.ErrOut, "Which providers consumers have told that they reach cannot be said: %v\n", err)
				}
			}
			explained := placements.Explain(r.now(), args[0])
			if !explained.Found() {
				return fmt.Errorf("no placement policy, and no namespace or pod of a consumer, is called %q: see kubectl get placementpolicies, or "+
					"kubectl liqo-broker where", args[0])
			}
			if done, err := out.value(r.Out, explained); done || err != nil {
				return err
			}
			return explained.Print(r.Out, func(table *metav1.Table) error { return out.table(r.Out, table) })
		},
	}
	out.addFlags(command, formatJSON, formatYAML)
	return command
}

// placements reads all that there is of placement, the kinds side by side.
func (r *reading) placements(ctx context.Context, c client.Client) (*overview.Placements, error) {
	var (
		policies   v1alpha1.PlacementPolicyList
		decisions  v1alpha1.PlacementDecisionList
		namespaces corev1.NamespaceList
		nodes      corev1.NodeList
		pods       corev1.PodList
		p          overview.Placements
	)
	providers, err := r.providers(ctx, c)
	if err != nil {
		return nil, err
	}
	consumers, err := r.consumers(ctx, c)
	if err != nil {
		return nil, err
	}
	of, err := lineOf(c)
	if err != nil {
		return nil, err
	}
	// All that there is, side by side.
	kinds := of.Kinds()
	shadows := kinds.Shadows()
	p.Liqo = of
	group, ctx := errgroup.WithContext(ctx)
	for _, read := range []struct {
		what    string
		list    client.ObjectList
		options []client.ListOption
	}{
		{"placement policies", &policies, nil},
		{"placement decisions", &decisions, nil},
		{"shadow pods", shadows, nil},
		{"namespaces", &namespaces, []client.ListOption{twins()}},
		{"nodes", &nodes, []client.ListOption{virtualNodes()}},
		{"pods", &pods, []client.ListOption{client.MatchingLabelsSelector{Selector: liqo.ShadowPodSelector()}}},
	} {
		group.Go(func() error { return listed(read.what, c.List(ctx, read.list, read.options...)) })
	}
	group.Go(func() (err error) {
		p.Offloadings, err = line.Offloadings(ctx, c, of)
		return err
	})
	if err := group.Wait(); err != nil {
		return nil, err
	}
	p.OnBroker = overview.OnBroker{
		Providers: providers.Items, Consumers: consumers.Items, Namespaces: namespaces.Items, Nodes: nodes.Items, Pods: pods.Items,
	}
	p.Policies, p.Decisions, p.Shadows = policies.Items, decisions.Items, shadows.Items
	return &p, nil
}

// heard returns what was heard of the agents of the consumers whose namespaces are explained, with Liqo 1.x.
func (r *reading) heard(ctx context.Context, c client.Client, p *overview.Placements, name string) (map[cluster.ID]grant.Heard, error) {
	own, err := p.Liqo.OwnIdentity(ctx, c, liqo.DefaultNamespace)
	if err != nil {
		return nil, err
	}
	return reports.Uncached(ctx, c, own.ID, r.now(), p.Asked(name))
}

// policiesAndNamespaces offers the names of policies and of consumers' namespaces.
func policiesAndNamespaces(ctx context.Context, c client.Client, begun string) ([]cobra.Completion, error) {
	var policies v1alpha1.PlacementPolicyList
	var namespaces corev1.NamespaceList
	err := errors.Join(c.List(ctx, &policies), c.List(ctx, &namespaces, twins()))
	if err != nil {
		return nil, err
	}
	var names []cobra.Completion
	for i := range policies.Items {
		names = append(names, policies.Items[i].Name+"\tpolicy")
	}
	for i := range namespaces.Items {
		if _, twin := liqo.TwinOf(&namespaces.Items[i]); twin {
			names = append(names, namespaces.Items[i].Name+"\tnamespace")
		}
	}
	return slices.DeleteFunc(names, func(name cobra.Completion) bool { return !strings.HasPrefix(name, begun) }), nil
}
