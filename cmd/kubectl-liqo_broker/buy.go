// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capacitorset/liqo-broker/pkg/api/connectorv1alpha1"
	"github.com/capacitorset/liqo-broker/pkg/program"
	"github.com/capacitorset/liqo-broker/pkg/trade/desk"
	"github.com/capacitorset/liqo-broker/pkg/trade/show"
)

// lookedEvery is how often the plugin looks at what it waits for.
const lookedEvery = time.Second

// purchasing is what the command buy was told.
type purchasing struct {
	need

	name     string
	maxTotal string
	renew    bool
	wait     bool
	timeout  time.Duration
}

func (r *reading) buyCommand() *cobra.Command {
	var p purchasing
	command := &cobra.Command{
		Use:   "buy [PARTY/OFFER/PLAN]",
		Short: "Buy capacity: what is needed, wherever it is cheapest, or a plan of one seller",
		Long: "Buy capacity by a contract. It comes as a virtual node, and is gone at the end of the contract.\n\n" +
			"Without an argument, a CapacityRequest says what is needed: the connector buys the cheapest plan that fits, and looks for another " +
			"one if that\nfails. With PARTY/OFFER/PLAN, as kubectl liqo-broker offers prints it, a Purchase names what is bought.\n\n" +
			"Whoever buys pays: --dry-run shows what would be bought now, and writes nothing. If it cannot be used yet when --wait has " +
			"waited for\n--timeout, the exit code is 3: it goes on.",
		Example: "  kubectl liqo-broker buy --name nightly --cpu 8 --memory 32Gi --pods 50 --for 720h --region eu-north --max-price '0.1 " +
			"EUR/h' --wait\n  kubectl liqo-broker buy --name render abcde/compute/small --for 24h",
		Args:              usage(cobra.MaximumNArgs(1)),
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(command *cobra.Command, args []string) error {
			if err := p.checkArguments(args); err != nil {
				return err
			}
			c, err := r.openTarget(command.Context())
			if err != nil {
				return err
			}
			return r.trades(r.buy(command.Context(), c, &p, args))
		},
	}
	flags := command.Flags()
	p.addFlags(flags)
	flags.StringVar(&p.name, "name", "", "name of the CapacityRequest or Purchase; it is needed")
	flags.StringVar(&p.maxTotal, "max-total", "", "the most that it may cost in all, such as '100 EUR'")
	flags.BoolVar(&p.renew, "renew", false, "renew the contract by --for each time before it ends, for what --max-price and --max-total allow")
	r.dryRun.add(command)
	flags.BoolVar(&p.wait, "wait", false, "wait until the capacity can be used, or the contract is over")
	flags.DurationVar(&p.timeout, "timeout", 5*time.Minute, "for how long --wait waits")
	return command
}

// checkArguments returns what is wrong with the command line.
func (p *purchasing) checkArguments(args []string) error {
	switch {
	case p.name == "":
		return program.Usage(errors.New("--name is needed: it is how you end what you buy"))
	case p.duration < time.Minute:
		return program.Usage(errors.New("--for is needed, and at least 1m"))
	case len(args) == 0 && (p.cpu == "" || p.memory == "" || p.pods == ""):
		return program.Usage(errors.New("--cpu, --memory and --pods are needed, or PARTY/OFFER/PLAN"))
	case len(args) > 0 && (p.regions != nil || p.arches != nil || p.sellers != nil || p.expression != ""):
		return program.Usage(
			errors.New("--region, --architecture, --seller and --filter are for what is looked for: PARTY/OFFER/PLAN is found already"),
		)
	}
	return nil
}

// buy writes the object, says what that means, and waits if that is wanted.
func (r *reading) buy(ctx context.Context, c client.Client, p *purchasing, args []string) error {
	m, err := r.seen(ctx, c)
	if err != nil {
		return err
	}
	order, err := p.order(m, args)
	if err != nil {
		return err
	}
	object, kind := order.Object(), strings.ToLower(order.Kind())
	if err := c.Create(ctx, object); err != nil {
		return fmt.Errorf("create %s %s: %w", kind, p.name, err)
	}
	fmt.Fprintf(r.Out, "%s %s created%s\n", kind, p.name, r.dryRun.mark())
	if r.dryRun != dryRunNone {
		return r.wouldBuy(m, order)
	}
	if !p.wait {
		fmt.Fprintf(r.ErrOut, "See how far it is: kubectl liqo-broker contracts. End it with: kubectl delete %s %s\n", kind, p.name)
		return nil
	}
	// Who stops waiting goes on buying.
	fmt.Fprintf(r.ErrOut, "It goes on when you stop waiting. End it with: kubectl delete %s %s\n", kind, p.name)
	return r.awaited(ctx, c, object, p.timeout)
}

// wouldBuy prints which plans fit now.
func (r *reading) wouldBuy(m *desk.Catalog, order *desk.Order) error {
	plans, err := m.Would(order, r.now())
	if err != nil {
		return program.Usage(err)
	}
	if len(plans) == 0 {
		fmt.Fprintln(r.ErrOut, "Nothing that this cluster has seen fits now.")
		return nil
	}
	var out output
	return out.table(r.Out, show.PlansForSale(r.now(), plans[:min(len(plans), 5)]))
}

// order returns what is ordered: with an argument a plan, and else what is needed.
func (p *purchasing) order(m *desk.Catalog, args []string) (*desk.Order, error) {
	order := &desk.Order{Name: p.name, Renew: p.renew}
	if len(args) > 0 {
		plan, err := m.Reference(args[0])
		if err != nil {
			return nil, meant(err)
		}
		order.Plan = &plan
	}
	var err error
	if order.Need, err = p.filter(); err != nil {
		return nil, err
	}
	// A filter that is wrong buys nothing.
	if _, err := order.Need.Compile(); err != nil {
		return nil, program.Usage(err)
	}
	if p.maxTotal != "" {
		if order.MaxTotal, err = desk.ParseMoney(p.maxTotal); err != nil {
			return nil, program.Usage(fmt.Errorf("--max-total: %w", err))
		}
	}
	return order, nil
}

// meant returns an error about what people have written as one about the command line.
func meant(err error) error {
	if errors.Is(err, desk.ErrUnclear) {
		return program.Usage(err)
	}
	return err
}

// over are the reasons for which nothing more happens by itself.
var over = []string{
	connectorv1alpha1.ReasonEnded, connectorv1alpha1.ReasonRejected, connectorv1alpha1.ReasonExpired, connectorv1alpha1.ReasonFailed,
	connectorv1alpha1.ReasonInvalidRequest, connectorv1alpha1.ReasonEndedEarly, connectorv1alpha1.ReasonNotSetUp,
}

// awaited waits until what was bought can be used, and says what it waits for.
func (r *reading) awaited(ctx context.Context, c client.Client, object client.Object, timeout time.Duration) error {
	said := ""
	err := wait.PollUntilContextTimeout(ctx, lookedEvery, timeout, true, func(ctx context.Context) (bool, error) {
		if err := c.Get(ctx, client.ObjectKeyFromObject(object), object); err != nil {
			return false, err
		}
		var conditions []metav1.Condition
		switch o := object.(type) {
		case *connectorv1alpha1.CapacityRequest:
			conditions = o.Status.Conditions
		case *connectorv1alpha1.Purchase:
			conditions = o.Status.Conditions
		}
		if text := conditionText(conditions); text != said {
			said = text
			fmt.Fprintln(r.ErrOut, text)
		}
		ready := meta.FindStatusCondition(conditions, connectorv1alpha1.ConditionReady)
		switch {
		case ready == nil:
			return false, nil
		case ready.Status == metav1.ConditionTrue:
			return true, nil
		case slices.Contains(over, ready.Reason):
			return false, fmt.Errorf("%s was not bought: %s", object.GetName(), said)
		}
		return false, nil
	})
	if wait.Interrupted(err) && ctx.Err() == nil {
		return fmt.Errorf("%s after %s: %w: %s", object.GetName(), timeout, errNotReady, said)
	}
	return err
}
