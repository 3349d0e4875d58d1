// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capacitorset/liqo-broker/pkg/api/connectorv1alpha1"
	"github.com/capacitorset/liqo-broker/pkg/program"
	"github.com/capacitorset/liqo-broker/pkg/sheet"
	"github.com/capacitorset/liqo-broker/pkg/trade/core/offer"
	"github.com/capacitorset/liqo-broker/pkg/trade/desk"
	"github.com/capacitorset/liqo-broker/pkg/trade/show"
	"github.com/capacitorset/liqo-broker/pkg/version"
)

// tradeCommands returns the commands of a cluster that trades.
func (r *reading) tradeCommands() []*cobra.Command {
	return []*cobra.Command{r.registryCommand(), r.catalogCommand(), r.offersCommand(), r.buyCommand(), r.contractsCommand()}
}

// trades says which cluster does not trade, if that is what an error means.
func (r *reading) trades(err error) error {
	if meta.IsNoMatchError(err) {
		return fmt.Errorf("%s does not trade: it has no connector. See %s", r.where(),
			version.Document("docs/trade/README.md"))
	}
	return r.clear(err)
}

func (r *reading) registryCommand() *cobra.Command {
	var out output
	command := &cobra.Command{
		Use:     "registry",
		Aliases: []string{"registries"},
		Short:   "List the registries that this cluster uses, and how it stands with them",
		Long: "List the registries that this cluster uses: whether they have let it in, whether it follows what they show, and why not.\n" +
			"The plugin calls no registry: it reads what the connector has written into this cluster.",
		Example:           "  kubectl liqo-broker registry -o wide",
		Args:              usage(cobra.NoArgs),
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(command *cobra.Command, _ []string) error {
			c, err := r.open()
			if err != nil {
				return err
			}
			var list connectorv1alpha1.RegistryList
			if err := listed("registries", c.List(command.Context(), &list)); err != nil {
				return r.trades(err)
			}
			sortByName(list.Items, func(o *connectorv1alpha1.Registry) string { return o.Name })
			if err := sortBy(&out, list.Items); err != nil {
				return err
			}
			if len(list.Items) == 0 && out.isText() {
				fmt.Fprintln(r.ErrOut, "This cluster uses no registry yet. Join one with: kubectl liqo-broker registry join")
				return nil
			}
			return out.objects(r.Out, c.Scheme(), &list, show.Registries(r.now(), list.Items))
		},
	}
	out.addFlags(command, formatJSON, formatYAML, formatName, formatWide)
	command.AddCommand(r.registryJoinCommand())
	return command
}

func (r *reading) catalogCommand() *cobra.Command {
	var out output
	command := &cobra.Command{
		Use:   "catalog",
		Short: "List who sells, as it was seen last",
		Long: "List the parties that sell, as this cluster has seen it last. What a party has not signed itself is not shown. Names are\n" +
			"what parties call themselves: who it is, its party ID says (-o wide).",
		Example:           "  kubectl liqo-broker catalog -o wide",
		Args:              usage(cobra.NoArgs),
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(command *cobra.Command, _ []string) error {
			c, err := r.open()
			if err != nil {
				return err
			}
			m, err := r.seen(command.Context(), c)
			if err != nil {
				return r.trades(err)
			}
			// What is known, in the order and the form that are asked for.
			sellers := m.Sellers(r.now())
			if err := sortBy(&out, sellers); err != nil {
				return err
			}
			if done, err := out.value(r.Out, sellers); done || err != nil {
				return err
			}
			r.remark(m)
			if len(sellers) == 0 {
				fmt.Fprintln(r.ErrOut, "Nobody sells anything that this cluster has seen. See: kubectl liqo-broker registry")
				return nil
			}
			return out.table(r.Out, show.Sellers(sellers))
		},
	}
	out.addFlags(command, formatJSON, formatYAML, formatWide)
	return command
}

func (r *reading) offersCommand() *cobra.Command {
	var out output
	var need need
	own := false
	command := &cobra.Command{
		Use:   "offers",
		Short: "List what can be bought, the best first, or what this cluster offers itself",
		Long: "List the plans that can be bought for a need, in the order in which the connector would buy them. What nobody asks for does " +
			"not count.\nA price is for what is asked for, which a plan with a range gives exactly, and another one at least.\n\n" +
			"With --own: the offers of this cluster, whether registries list them, and what is left of their plans.",
		Example: "  kubectl liqo-broker offers --cpu 8 --memory 32Gi --region eu-north --max-price '0.5 EUR/h'\n" +
			"  kubectl liqo-broker offers --filter 'offer.labels[\"disk\"] == \"nvme\"'\n  kubectl liqo-broker offers --own",
		Args:              usage(cobra.NoArgs),
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(command *cobra.Command, _ []string) error {
			filter, err := need.filter()
			if err != nil {
				return err
			}
			matcher, err := filter.Compile()
			if err != nil {
				return program.Usage(err)
			}
			c, err := r.open()
			if err != nil {
				return err
			}
			// What is one's own comes from this cluster's Offers, and what others sell from what registries have shown.
			if own {
				return r.trades(r.ownOffers(command.Context(), c, &out))
			}
			m, err := r.seen(command.Context(), c)
			if err != nil {
				return r.trades(err)
			}
			plans := m.Find(matcher, r.now())
			if err := sortBy(&out, plans); err != nil {
				return err
			}
			// For programs an empty list is an answer; people are told in words.
			if done, err := out.value(r.Out, plans); done || err != nil {
				return err
			}
			r.remark(m)
			if len(plans) == 0 {
				fmt.Fprintln(r.ErrOut, "Nothing that this cluster has seen fits.")
				return nil
			}
			return out.table(r.Out, show.PlansForSale(r.now(), plans))
		},
	}
	out.addFlags(command, formatJSON, formatYAML, formatWide)
	need.addFlags(command.Flags())
	command.Flags().BoolVar(&own, "own", false, "the offers of this cluster")
	return command
}

// ownOffers prints the offers of this cluster.
func (r *reading) ownOffers(ctx context.Context, c client.Client, out *output) error {
	var list connectorv1alpha1.OfferList
	if err := listed("offers", c.List(ctx, &list)); err != nil {
		return err
	}
	sortByName(list.Items, func(o *connectorv1alpha1.Offer) string { return o.Name })
	if err := sortBy(out, list.Items); err != nil {
		return err
	}
	if len(list.Items) == 0 && out.isText() {
		fmt.Fprintln(r.ErrOut, "This cluster offers nothing: make an Offer, as in "+
			version.Document("deploy/examples/trade/offer.yaml"))
		return nil
	}
	return out.objects(r.Out, c.Scheme(), &list, show.OwnOffers(r.now(), list.Items))
}

func sortByName[T any](items []T, name func(*T) string) {
	slices.SortFunc(items, func(a, b T) int { return strings.Compare(name(&a), name(&b)) })
}

// need is what somebody looks for, as the command line says it.
type need struct {
	cpu, memory, pods string
	others            map[string]string
	duration          time.Duration
	maxPrice          string
	regions, arches   []string
	sellers           []string
	expression        string
}

func (n *need) addFlags(flags *pflag.FlagSet) {
	n.addResources(flags)
	flags.DurationVar(&n.duration, "for", 0, "for how long, such as 720h")
	flags.StringVar(&n.maxPrice, "max-price", "", "the most that it may cost, such as '0.5 EUR/h'; a period is min, h, d, w, mo or y")
	flags.StringSliceVar(&n.regions, "region", nil, "a region in which it may be; may be repeated")
	flags.StringSliceVar(&n.arches, "architecture", nil, "an architecture that the nodes may have, such as amd64; may be repeated")
	flags.StringSliceVar(&n.sellers, "seller", nil, "the ID of a party that may sell; may be repeated")
	flags.StringVar(&n.expression, "filter", "", "an expression in CEL about offer and plan")
}

// addResources adds the flags of an amount.
func (n *need) addResources(flags *pflag.FlagSet) {
	flags.StringVar(&n.cpu, "cpu", "", "cores, at least, such as 8 or 500m")
	flags.StringVar(&n.memory, "memory", "", "memory, at least, such as 32Gi")
	flags.StringVar(&n.pods, "pods", "", "pods, at least")
	flags.StringToStringVar(&n.others, "resource", nil, "another resource, at least, such as nvidia.com/gpu=1; may be repeated")
}

// resources returns what is needed. The error names the flag.
func (n *need) resources() (offer.Resources, error) {
	needed := offer.Resources{}
	for _, of := range []struct{ name, text string }{{"cpu", n.cpu}, {"memory", n.memory}, {"pods", n.pods}} {
		if of.text == "" {
			continue
		}
		quantity, err := offer.ParseQuantity(of.text)
		if err != nil {
			return nil, program.Usage(fmt.Errorf("--%s: %w", of.name, err))
		}
		needed[of.name] = quantity
	}
	// What has no flag of its own.
	for _, name := range slices.Sorted(maps.Keys(n.others)) {
		quantity, err := offer.ParseQuantity(n.others[name])
		if err == nil {
			err = offer.Resources{name: quantity}.Check()
		}
		switch {
		case slices.Contains([]string{"cpu", "memory", "pods"}, name):
			return nil, program.Usage(fmt.Errorf("--resource %s: say it by --%s", name, name))
		case err != nil:
			return nil, program.Usage(fmt.Errorf("--resource %.80q: %w", name, err))
		}
		needed[name] = quantity
	}
	return needed, nil
}

// price returns the most that is paid; nil for anything.
func (n *need) price() (*offer.Price, error) {
	if n.maxPrice == "" {
		return nil, nil //nolint:nilnil // Anything is an answer.
	}
	price, err := show.ParsePrice(n.maxPrice)
	if err != nil {
		return nil, program.Usage(fmt.Errorf("--max-price: %w", err))
	}
	return &price, nil
}

// filter returns what offers have to be.
func (n *need) filter() (offer.Filter, error) {
	needed, err := n.resources()
	if err != nil {
		return offer.Filter{}, err
	}
	most, err := n.price()
	if err != nil {
		return offer.Filter{}, err
	}
	return offer.Filter{
		Resources: needed, MaxPrice: most, Duration: offer.Duration(n.duration), Regions: n.regions, Architectures: n.arches, Parties: n.sellers,
		Expression: n.expression,
	}, nil
}

// seen reads the catalog, and verifies it.
func (r *reading) seen(ctx context.Context, c client.Client) (*desk.Catalog, error) {
	return desk.ReadCatalog(ctx, c, r.now())
}

// remark says what of a catalog is not shown.
func (r *reading) remark(m *desk.Catalog) {
	if m.LeftOut > 0 {
		fmt.Fprintf(r.ErrOut, "%d parties or offers are not shown: they are over, or not what their owners have signed.\n", m.LeftOut)
	}
}

// errNotReady is the end of a wait that was too long: what was ordered goes on.
var errNotReady = program.WithCode(errors.New("it is not ready yet"), exitUnhealthy)

// conditionText says how far something is.
func conditionText(conditions []metav1.Condition) string {
	ready := meta.FindStatusCondition(conditions, connectorv1alpha1.ConditionReady)
	if ready == nil {
		return "waits for the connector"
	}
	return sheet.Sentence(ready.Reason + ": " + ready.Message)
}
