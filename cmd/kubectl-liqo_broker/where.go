// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
	"github.com/capacitorset/liqo-broker/pkg/liqo"
	"github.com/capacitorset/liqo-broker/pkg/liqo/line"
	"github.com/capacitorset/liqo-broker/pkg/overview"
	"github.com/capacitorset/liqo-broker/pkg/program"
)

func (r *reading) whereCommand() *cobra.Command {
	var out output
	var all bool
	command := &cobra.Command{
		Use:   "where [NAMESPACE]",
		Short: "Show where pods run: on the broker of all consumers, on a consumer its own",
		Long: "Show where pods run that are there.\n\n" +
			"On a broker: the pods of all consumers, or those of a namespace by its name on the broker or on its consumer, and the " +
			"provider of each.\nOn a consumer: the pods of a namespace that run on virtual nodes of a broker, with the provider, if the broker " +
			"shows it, and the path:\ndirect, or relay through the broker.",
		Example:           "  kubectl liqo-broker where\n  kubectl liqo-broker where shop -o wide",
		Args:              usage(cobra.MaximumNArgs(1)),
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(command *cobra.Command, args []string) error {
			namespace, err := r.namespace(args, all)
			if err != nil {
				return err
			}
			c, err := r.open()
			if err != nil {
				return err
			}
			seen, err := r.placed(command.Context(), c, namespace, all)
			if err != nil {
				return r.clear(err)
			}
			if err := sortBy(&out, seen.pods); err != nil {
				return err
			}
			// For programs an empty list is an answer; people are told in words.
			if done, err := out.value(r.Out, seen.pods); done || err != nil {
				return err
			}
			if len(seen.pods) > 0 {
				err = out.table(r.Out, overview.Pods(r.now(), seen.pods, seen.broker))
			} else {
				fmt.Fprintln(r.ErrOut, seen.none())
			}
			for _, home := range seen.home {
				fmt.Fprintf(r.ErrOut, "%s\n%s\n", home.What, home.Do)
			}
			return err
		},
	}
	out.addFlags(command, formatJSON, formatYAML, formatWide)
	command.Flags().BoolVarP(&all, "all-namespaces", "A", false, "the pods of all namespaces, as on a broker without NAMESPACE")
	return command
}

// namespace returns the namespace that the command line names; empty if it names none.
func (r *reading) namespace(args []string, all bool) (string, error) {
	named := r.to.overrides.Context.Namespace
	switch {
	case len(args) > 0 && named != "" && args[0] != named:
		return "", program.Usage(fmt.Errorf("NAMESPACE is %q and --namespace is %q", args[0], named))
	case all && (len(args) > 0 || named != ""):
		return "", program.Usage(errors.New("--all-namespaces and a namespace exclude each other"))
	case len(args) > 0:
		return args[0], nil
	default:
		return named, nil
	}
}

// sight is what was seen of pods, and where it was looked.
type sight struct {
	pods []overview.Placed
	// broker is whether the cluster is a broker's, and namespace the only one that was looked at; empty for all.
	broker    bool
	namespace string
	// home is what is at home on a consumer, and should not be.
	home []overview.Finding
}

// none says where no pods are.
func (s *sight) none() string {
	switch {
	case s.broker && s.namespace == "":
		return "No consumer has pods here."
	case s.broker:
		return fmt.Sprintf("No pods are in namespace %s of a consumer. For all namespaces: kubectl liqo-broker where -A", s.namespace)
	case s.namespace == "":
		return "No pod of this cluster is at a broker."
	default:
		return fmt.Sprintf("No pod of namespace %s is at a broker. For all namespaces: kubectl liqo-broker where -A", s.namespace)
	}
}

// placed returns where pods are.
func (r *reading) placed(ctx context.Context, c client.Client, namespace string, all bool) (*sight, error) {
	var on overview.OnBroker
	providers, err := r.providers(ctx, c)
	switch {
	case meta.IsNoMatchError(err):
		return r.placedOnConsumer(ctx, c, namespace, all)
	case err != nil:
		return nil, err
	}

	// All that is needed to say whose pods these are, and where.
	var namespaces corev1.NamespaceList
	var nodes corev1.NodeList
	var found corev1.PodList
	group, inGroup := errgroup.WithContext(ctx)
	group.Go(func() error {
		consumers, err := r.consumers(inGroup, c)
		if err == nil {
			on.Consumers = consumers.Items
		}
		return err
	})
	group.Go(func() error {
		return listed("namespaces", c.List(inGroup, &namespaces, twins()))
	})
	group.Go(func() error { return listed("nodes", c.List(inGroup, &nodes, virtualNodes())) })
	group.Go(func() error {
		return listed("pods", c.List(inGroup, &found, client.MatchingLabelsSelector{Selector: liqo.ShadowPodSelector()}))
	})
	if err := group.Wait(); err != nil {
		return nil, err
	}
	on.Providers, on.Namespaces, on.Nodes, on.Pods = providers.Items, namespaces.Items, nodes.Items, found.Items
	if !on.Has(namespace) {
		return nil, fmt.Errorf("no namespace of a consumer is called %q, here or at its consumer. For all that have pods: "+
			"kubectl liqo-broker where -A", namespace)
	}
	return &sight{pods: on.Placed(namespace), broker: true, namespace: namespace}, nil
}

func (r *reading) placedOnConsumer(ctx context.Context, c client.Client, namespace string, all bool) (*sight, error) {
	if namespace == "" && !all {
		usual, _, err := r.to.config().Namespace()
		if err != nil {
			return nil, fmt.Errorf("read the kubeconfig: %w", err)
		}
		namespace = usual
	}
	var nodes corev1.NodeList
	if err := c.List(ctx, &nodes, virtualNodes()); err != nil {
		return nil, listed("nodes", err)
	}
	of, ways, err := waysOf(ctx, c)
	if err != nil {
		return nil, err
	}
	if !slices.ContainsFunc(nodes.Items, func(n corev1.Node) bool { return ways.IsOfBroker(&n) }) {
		return nil, r.usesNone(ways)
	}
	if err := exists(ctx, c, namespace); err != nil {
		return nil, err
	}
	var pods corev1.PodList
	if err := c.List(ctx, &pods, client.InNamespace(namespace)); err != nil {
		return nil, listed("pods", err)
	}
	peers, err := identitiesOf(ctx, c, of) // Who may not read them sees IDs.
	if err != nil && !apierrors.IsForbidden(err) {
		return nil, err
	}
	// What should be at the broker too, and is not: whose rights do not reach that far is not told.
	var namespaces corev1.NamespaceList
	offloadings, err := line.Offloadings(ctx, c, of, client.InNamespace(namespace))
	if err := errors.Join(err, c.List(ctx, &namespaces)); err != nil && !apierrors.IsForbidden(err) {
		return nil, listed("offloaded namespaces", err)
	}
	return &sight{
		pods: overview.OnConsumer(ways, nodes.Items, pods.Items, peers), namespace: namespace,
		home: overview.AtHome(namespaces.Items, offloadings, nodes.Items, pods.Items),
	}, nil
}

// waysOf returns the line of Liqo that runs on a cluster, and how the cluster reaches its pods at brokers.
func waysOf(ctx context.Context, c client.Client) (line.Line, *liqo.Ways, error) {
	of, err := lineOf(c)
	if err != nil {
		return nil, nil, err
	}
	own, err := of.OwnIdentity(ctx, c, liqo.DefaultNamespace)
	if err != nil {
		own = cluster.Identity{} // What the cluster cannot prove to be its own does not count.
	}
	ways, err := of.Reader(c, own.ID).Ways(ctx)
	return of, &ways, err
}

// identitiesOf returns what the records of Liqo say that peers are called.
func identitiesOf(ctx context.Context, c client.Client, of line.Line) ([]cluster.Identity, error) {
	peers, err := of.Reader(c, "").Peers(ctx)
	all := make([]cluster.Identity, len(peers))
	for i := range peers {
		all[i] = peers[i].Identity
	}
	return all, err
}

// usesNone says that a cluster has no node of a broker, given how it reaches pods at those that it has.
func (r *reading) usesNone(ways *liqo.Ways) error {
	what, do := overview.NoBroker(ways, r.where())
	if do != "" {
		return fmt.Errorf("%s: %s", what, do)
	}
	return errors.New(what)
}

// exists returns an error if there is no namespace of a name: the API server lists the pods of such a one as well, and finds none. Who may
// not read namespaces is believed; all namespaces, whose name is empty, are there.
func exists(ctx context.Context, c client.Client, namespace string) error {
	if namespace == "" {
		return nil
	}
	err := c.Get(ctx, client.ObjectKey{Name: namespace}, &corev1.Namespace{})
	switch {
	case apierrors.IsForbidden(err):
		return nil
	case apierrors.IsNotFound(err):
		return fmt.Errorf("there is no namespace %q: see kubectl get namespaces, or kubectl liqo-broker where -A", namespace)
	case err != nil:
		return fmt.Errorf("get namespace %s: %w", namespace, err)
	default:
		return nil
	}
}

func virtualNodes() client.ListOption {
	return client.MatchingLabels{liqo.LabelNodeType: liqo.NodeTypeVirtual}
}

func twins() client.ListOption { return client.MatchingLabelsSelector{Selector: liqo.TwinSelector()} }

// listed wraps the error of listing objects.
func listed(what string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("list %s: %w", what, err)
}
