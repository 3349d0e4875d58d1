// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
	"github.com/capacitorset/liqo-broker/pkg/install"
	"github.com/capacitorset/liqo-broker/pkg/program"
	"github.com/capacitorset/liqo-broker/pkg/sheet"
	"github.com/capacitorset/liqo-broker/pkg/trial"
)

// trialNamespace is the namespace of tests. Names that begin like those of this project are not offloaded.
const trialNamespace = "broker-test"

// cleaning is how long a test that was interrupted still takes to begin to remove what it has made.
const cleaning = 10 * time.Second

// trying are the flags of test.
type trying struct {
	out    output
	broker string
	image  string
	trial  trial.Config
	keep   bool
}

// errUnanswered is the end of a test in which not all was well.
var errUnanswered = program.WithCode(errors.New("not all is as it should be"), exitUnhealthy)

func (s *session) testCommand() *cobra.Command {
	var t trying
	command := &cobra.Command{
		Use:   "test",
		Short: "Run pods at a broker, ask them from this consumer, and take them away again",
		Long: "Run some pods at the broker of this cluster, which is its consumer; ask each of them, and a Service of them, from a pod at\n" +
			"home; print where they ran, by which path they were reached and how they answered; and remove all of it.\n\n" +
			"It makes the namespace " + trialNamespace + ", which must not be there, or be of an earlier test. Its pods run the image\n" +
			"liqo-broker-network-manager as nobody and without rights; consumer and providers pull it. With something that is not as it should\n" +
			"be, the exit code is 3.",
		Example: "  kubectl liqo-broker test\n  kubectl liqo-broker test --pods 10 --keep",
		Args:    usage(cobra.NoArgs),
		RunE:    func(command *cobra.Command, _ []string) error { return s.test(command.Context(), &t) },
	}
	s.dryRun.add(command)
	t.out.addFlags(command, formatJSON, formatYAML)
	flags := command.Flags()
	flags.StringVar(&t.broker, "broker", "", "the broker: its name, or the beginning of its cluster ID; not needed if there is only one")
	flags.StringVar(&t.image, "image", "", "the image of the pods (default liqo-broker-network-manager, from where our other images are)")
	flags.IntVar(&t.trial.Pods, "pods", 4, fmt.Sprintf("how many pods to run, up to %d", trial.MaxPods))
	flags.IntVar(&t.trial.Asks, "asks", 20, "how often to ask each pod")
	flags.DurationVar(&t.trial.Timeout, "timeout", install.DefaultTimeout, "for how long each step may wait")
	flags.BoolVar(&t.keep, "keep", false, "leave the namespace there, to look at it")
	return command
}

// test runs a trial on the consumer that this cluster is.
func (s *session) test(ctx context.Context, t *trying) (err error) {
	if t.trial.Pods < 1 || t.trial.Pods > trial.MaxPods || t.trial.Asks < 1 || t.trial.Timeout <= 0 {
		return program.Usage(fmt.Errorf("--pods must be from 1 to %d, and --asks and --timeout positive", trial.MaxPods))
	}
	c, err := s.open()
	if err != nil {
		return err
	}
	// Which cluster it is, and of which broker.
	installer, err := install.New(c, install.Options{}, s.ErrOut)
	if err != nil {
		return err
	}
	setup, err := installer.Look(ctx)
	if err != nil {
		return s.clear(err)
	}
	fmt.Fprintln(s.ErrOut, target(s.to.context(), &setup))
	broker, err := brokerOf(&setup, t.broker)
	if err != nil {
		return err
	}
	if t.image == "" {
		if t.image, err = installer.ProbeImage(ctx, &setup); err != nil {
			return s.clear(err)
		}
	}
	t.trial.Client, t.trial.Liqo, t.trial.Own, t.trial.Broker = c, setup.Liqo(), setup.Own, broker
	t.trial.Namespace, t.trial.Image = trialNamespace, t.image
	t.trial.Say = func(what string) { fmt.Fprintln(s.ErrOut, sheet.Plain(what)) }
	if s.dryRun != dryRunNone {
		return s.wouldTest(ctx, &t.trial)
	}

	// What was made is removed again, also of a test that was interrupted: then nobody waits until it is gone.
	if !t.keep {
		defer func() { err = errors.Join(err, s.tidy(ctx, &t.trial)) }()
	}
	result, err := trial.Run(ctx, &t.trial)
	if err != nil {
		return s.clear(err)
	}
	if done, err := t.out.value(s.Out, result); done || err != nil {
		return errors.Join(err, verdict(result))
	}
	if err := t.out.table(s.Out, result.Table()); err != nil {
		return err
	}
	fmt.Fprintln(s.Out, result.Summary())
	return verdict(result)
}

// verdict is the error of a result in which not all is well.
func verdict(result *trial.Result) error {
	if len(result.Problems) > 0 {
		return errUnanswered
	}
	return nil
}

// tidy removes what a test has made, unless it was not its own.
func (s *session) tidy(ctx context.Context, cfg *trial.Config) error {
	if ctx.Err() != nil {
		last, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleaning)
		defer cancel()
		ctx = last
	}
	err := trial.Clean(ctx, cfg)
	switch {
	case errors.Is(err, trial.ErrTaken):
		return nil // Whoever makes the namespace has said so.
	case err != nil:
		return fmt.Errorf("to remove it later: kubectl delete namespace %s: %w", cfg.Namespace, s.clear(err))
	}
	fmt.Fprintf(s.ErrOut, "Namespace %s is removed.\n", cfg.Namespace)
	return nil
}

// wouldTest says what a test would make. Nothing of it can be tried: the namespace is not there.
func (s *session) wouldTest(ctx context.Context, cfg *trial.Config) error {
	for _, o := range cfg.Objects() {
		gvk, err := cfg.Client.GroupVersionKindFor(o)
		if err != nil {
			return fmt.Errorf("name what would be made: %w", err)
		}
		if o.GetNamespace() == "" {
			if err := client.IgnoreAlreadyExists(cfg.Client.Create(ctx, o)); err != nil {
				return s.clear(err)
			}
		}
		fmt.Fprintf(s.Out, "%s/%s would be created, and removed again%s\n", gvk.Kind, o.GetName(), s.dryRun.mark())
	}
	return nil
}

// brokerOf returns the broker of a consumer that is meant.
func brokerOf(setup *install.Setup, wanted string) (cluster.Identity, error) {
	if len(setup.Brokers) == 0 {
		return cluster.Identity{}, errors.New("this cluster is no consumer of a broker: prepare makes it one, or join from the broker")
	}
	if wanted == "" && len(setup.Brokers) == 1 {
		return setup.Brokers[0], nil
	}
	if wanted == "" {
		return cluster.Identity{}, program.Usage(errors.New("this cluster has more than one broker: say which one with --broker"))
	}
	return find(setup.Brokers, wanted)
}
