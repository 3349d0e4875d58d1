// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capacitorset/liqo-broker/pkg/api/v1alpha1"
	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
	"github.com/capacitorset/liqo-broker/pkg/program"
	"github.com/capacitorset/liqo-broker/pkg/sheet"
)

// A setting is a command that sets spec.scheduling of one cluster.
type setting struct {
	verb, short string
	// kind is how the object is called in what is printed, and done what the cluster then is.
	kind, done string
	value      string
	// next says what happens then; "ID" in it is the ID of the cluster.
	next string
	// more says more of the command in its help, and empties is whether the command waits until no pod is left.
	more    string
	empties bool
}

// previewed says in the help what a dry run prints.
const previewed = "With --dry-run it prints which pods would move at once, which later and where they could go, and which would stay, " +
	"and why."

var providerSettings = []setting{
	{
		verb: "cordon", short: "Let no new pods come to a provider; those that are there stay", kind: "provider", done: "cordoned",
		value: string(v1alpha1.SchedulingCordoned),
		next:  "No new pods come to it, and those that are there stay. Let new ones come again with: kubectl liqo-broker enable ID",
	},
	{
		verb: "drain", short: "Let no new pods come to a provider, and move those that are there", kind: "provider", done: "to be drained",
		value: string(v1alpha1.SchedulingDrained),
		next: "Its pods move to other providers, a few at a time, also when nobody waits for it. " +
			"Take it back with: kubectl liqo-broker enable ID",
		more: "The command waits until no pod is left, and prints how many are and why those stay that do. Pods go on moving when it is\n" +
			"interrupted. If pods are left after --timeout, the exit code is 3.\n" + previewed,
		empties: true,
	},
	{
		verb: "enable", short: "Let pods come to a provider that was cordoned or drained", kind: "provider", done: "enabled",
		value: string(v1alpha1.SchedulingActive),
		next:  "New pods come to it where policies choose it. Those that have left do not return by themselves.",
	},
}

var consumerSettings = []setting{
	{
		verb: "suspend", short: "Give a consumer nothing new; it keeps what it uses", kind: "consumer", done: "suspended",
		value: string(v1alpha1.ConsumerSuspended),
		next:  "It keeps what it uses, and its new pods wait. Let them go on with: kubectl liqo-broker resume ID",
	},
	{
		verb: "resume", short: "Offer a consumer again what there is for it", kind: "consumer", done: "resumed",
		value: string(v1alpha1.ConsumerActive),
		next:  "It is offered what there is for it, and its waiting pods go on.",
	},
}

func (r *reading) settingCommands() []*cobra.Command {
	var all []*cobra.Command
	for _, s := range providerSettings {
		all = append(all, r.settingCommand(s, "PROVIDER", r.providerNames, func(id cluster.ID) (client.Object, *string) {
			p := &v1alpha1.Provider{}
			p.Name = string(id)
			return p, (*string)(&p.Spec.Scheduling)
		}))
	}
	for _, s := range consumerSettings {
		all = append(all, r.settingCommand(s, "CONSUMER", r.consumerNames, func(id cluster.ID) (client.Object, *string) {
			c := &v1alpha1.Consumer{}
			c.Name = string(id)
			return c, (*string)(&c.Spec.Scheduling)
		}))
	}
	return all
}

// settingCommand returns a command. The object of a cluster comes with its field that is set.
func (r *reading) settingCommand(
	s setting, argument string, names identities, object func(cluster.ID) (client.Object, *string),
) *cobra.Command {
	var empty emptying
	var out output
	long := s.short + ".\n\n" + argument + " is a name, a cluster ID, or the beginning of one of both that means one cluster only."
	if s.more != "" {
		long += "\n\n" + s.more
	}
	command := &cobra.Command{
		Use:               s.verb + " " + argument,
		Short:             s.short,
		Long:              long,
		Example:           fmt.Sprintf("  kubectl liqo-broker %s milan", s.verb),
		Args:              usage(cobra.ExactArgs(1)),
		ValidArgsFunction: r.complete(names, 1),
		RunE: func(command *cobra.Command, args []string) error {
			if err := empty.check(); err != nil {
				return err
			}
			if r.dryRun == dryRunNone && !out.isText() {
				return program.Usage(errors.New("--output is for what --dry-run prints"))
			}
			c, err := r.openTarget(command.Context())
			if err != nil {
				return err
			}
			// What programs read is the preview alone.
			says := r.Out
			if !out.isText() {
				says = r.ErrOut
			}
			found, err := r.set(command.Context(), c, s, names, object, args[0], says)
			switch {
			case err != nil || !s.empties:
			case r.dryRun != dryRunNone:
				err = r.printDrain(command.Context(), c, found.ID, &out)
			case empty.wait:
				err = r.emptied(command.Context(), c, found, empty.timeout)
			}
			return r.clear(err)
		},
	}
	if s.empties {
		empty.add(command)
		out.addFlags(command, formatJSON, formatYAML)
	}
	r.dryRun.add(command)
	return command
}

// set sets the field of the cluster that a text means, which it returns, and says what it has done, and what happens next.
func (r *reading) set(
	ctx context.Context, c client.Client, s setting, names identities, object func(cluster.ID) (client.Object, *string), text string,
	says io.Writer,
) (found cluster.Identity, err error) {
	all, err := names(ctx, c)
	if err != nil {
		return found, err
	}
	if found, err = find(all, text); err != nil {
		return found, err
	}
	o, is := object(found.ID)
	if err := c.Get(ctx, types.NamespacedName{Name: string(found.ID)}, o); err != nil {
		return found, fmt.Errorf("get %s %s: %w", s.kind, found.ID, err)
	}
	called := s.kind + " " + sheet.Plain(found.String())
	if *is == s.value || *is == "" && s.value == string(v1alpha1.SchedulingActive) {
		fmt.Fprintf(says, "%s is already %s%s\n", called, s.done, r.dryRun.mark())
		return found, nil
	}
	patch, err := json.Marshal(map[string]any{"spec": map[string]any{"scheduling": s.value}})
	if err != nil {
		return found, err
	}
	if err := c.Patch(ctx, o, client.RawPatch(types.MergePatchType, patch)); err != nil {
		return found, fmt.Errorf("patch %s %s: %w", s.kind, found.ID, err)
	}
	fmt.Fprintf(says, "%s %s%s\n", called, s.done, r.dryRun.mark())
	if r.dryRun == dryRunNone {
		fmt.Fprintln(r.ErrOut, next(s.next, found.ID))
	}
	return found, nil
}

// next returns a sentence, with the ID where it has room for one.
func next(sentence string, id cluster.ID) string {
	return strings.ReplaceAll(sentence, "ID", string(id))
}
