// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capacitorset/liqo-broker/pkg/install"
	"github.com/capacitorset/liqo-broker/pkg/program"
	"github.com/capacitorset/liqo-broker/pkg/sheet"
	"github.com/capacitorset/liqo-broker/pkg/version"
)

// installing is what such a command does to a cluster that it has looked at.
type installing func(*install.Installer, context.Context, *install.Setup) error

// installation is a command that changes the installation of a cluster.
type installation struct {
	use, short, long string
	// examples are the flags with which it is shown; an empty text shows it without any.
	examples []string
	do       installing
	// flags are those that it has besides the ones of all.
	flags func(*cobra.Command, *install.Options)
	// done says what comes next; doneOne does so if one broker is named.
	done, doneOne string
}

// addInstallation adds the commands that install and remove.
func addInstallation(parent *cobra.Command, s *session) {
	for _, c := range []installation{
		{
			use: "install", short: "Make this cluster a broker",
			long: "Make this cluster, which runs Liqo, a broker: the daemon, its rules, the patches of Liqo and of the virtual kubelets " +
				"that exist, and the offer of the remote IPAM; with Liqo 1.x, of which nothing is patched, the transit, the daemon and its rules. " +
				"What is there already stays; an interrupted run is finished by the next one.",
			examples: []string{"", "--dry-run=server", "--modes orchestrator --registry registry.example/liqo-broker"},
			do:       (*install.Installer).Install,
			flags: func(c *cobra.Command, o *install.Options) {
				imageFlags(c, o)
				exportFlag(c, o)
				pullFlag(c, o)
				modeFlags(c, o)
				c.Flags().BoolVar(&o.AlsoBroker, "also-broker", false, "make a broker also of a cluster that is the consumer of another one")
			},
			done: "This cluster is a broker. Peer it with providers and consumers, and run \"kubectl liqo-broker prepare\" on each consumer.",
		},
		{
			use: "upgrade", short: "Bring a broker to the version of this plugin",
			long: "Bring a broker to the version of this plugin. It takes the steps of install, which change only what is different, and makes no " +
				"cluster a broker that is none.",
			examples: []string{"--dry-run=server", ""},
			do:       (*install.Installer).Upgrade, flags: func(c *cobra.Command, o *install.Options) { imageFlags(c, o); modeFlags(c, o) },
			done: "The broker is up to date. Run \"kubectl liqo-broker prepare\" on each consumer, for its virtual kubelets or its agent.",
		},
		{
			use: "uninstall", short: "Make a broker a cluster with nothing but Liqo again",
			long: "Remove the broker, its objects with it, and what was changed of Liqo. What consumers have here must be gone first. A cluster " +
				"that trades keeps what its trade needs; one that is no broker, but a consumer or trades, is left alone.",
			examples: []string{"--dry-run=server", ""},
			do:       (*install.Installer).Uninstall,
			flags: func(c *cobra.Command, o *install.Options) {
				c.Flags().BoolVar(&o.Force, "force", false,
					"remove the broker although consumers use it: what runs goes on, and nobody places new pods")
			},
			done: "Nothing of the broker is left, but for what trade needs where this cluster trades.",
		},
		// On its consumers.
		{
			use: "prepare", short: "Make this cluster the consumer of a broker",
			long: "Make this cluster, which runs Liqo and peers with a broker, its consumer: Liqo gets the broker's virtual kubelet, " +
				"which asks the broker's remote IPAM for addresses; with Liqo 1.x, the agent runs, which reads the credentials at that broker.",
			examples: []string{"", "--broker frankfurt --dry-run=server"},
			do:       (*install.Installer).Prepare,
			flags: func(c *cobra.Command, o *install.Options) {
				imageFlags(c, o)
				exportFlag(c, o)
				pullFlag(c, o)
				c.Flags().StringVar(&o.Broker, "broker", "",
					"the peer that is the broker: its name, or the beginning of its cluster ID; not needed if there is only one")
			},
			done: "This cluster is a consumer. Offload a namespace to the broker as to any Liqo cluster.",
		},
		{
			use: "unprepare", short: "Make a consumer a cluster with nothing but Liqo again",
			long: "Give Liqo its own virtual kubelet back. Pods that run stay, and those at providers are no longer reached through the " +
				"broker. With Liqo 1.x, remove the agent; what it has listed stays, and pods are reached by it. With --broker, a consumer of " +
				"several brokers leaves one of them. A cluster that trades keeps our virtual kubelet, which its guard needs.",
			examples: []string{"", "--broker frankfurt"},
			do:       (*install.Installer).Unprepare,
			flags: func(c *cobra.Command, o *install.Options) {
				c.Flags().StringVar(&o.Broker, "broker", "", "the broker to leave: its name, or the beginning of its cluster ID (default all)")
			},
			done: "This cluster is no consumer of a broker any more.", doneOne: "This cluster is no consumer of that broker any more.",
		},
		{
			use: "guard", short: "Keep the peers of this cluster in bounds",
			long: "Keep the peers in bounds that contracts bring to this cluster, which runs Liqo 0.9 and a connector: the guard, its rules, our " +
				"virtual kubelet, and Liqo asking the connector what to offer. Without it nothing is bought or sold. A broker has the guard already. " +
				"With Liqo 1.x it is for any cluster whose peers are to be kept in bounds, without a connector: the guard and its rules.",
			examples: []string{"", "--pull-secret ci/registry"},
			do:       (*install.Installer).Guard, flags: func(c *cobra.Command, o *install.Options) {
				imageFlags(c, o)
				exportFlag(c, o)
				pullFlag(c, o)
			},
			done: "This cluster is guarded. If it has a connector, that buys and sells from now on.",
		},
		{
			use: "unguard", short: "Take the guard from a cluster that does not trade any more",
			long: "Remove the guard and its rules, and give Liqo its own virtual kubelet back. The connector must be gone, and the cluster " +
				"neither a broker nor, with Liqo 0.9, a consumer of one.",
			examples: []string{"--dry-run=server", ""},
			do:       (*install.Installer).Unguard,
			done:     "Nothing of the guard is left.",
		},
	} {
		parent.AddCommand(s.installationCommand(c))
	}
}

func (s *session) installationCommand(c installation) *cobra.Command {
	var options install.Options
	// The command, with the flags that all of these have and its own.
	examples := make([]string, 0, len(c.examples))
	for _, flags := range c.examples {
		examples = append(examples, strings.TrimSpace("kubectl liqo-broker "+c.use+" "+flags))
	}
	command := &cobra.Command{
		Use: c.use, Short: c.short, Long: c.long, Example: "  " + strings.Join(examples, "\n  "), Args: usage(cobra.NoArgs),
	}
	s.dryRun.add(command)
	command.Flags().DurationVar(&options.Timeout, "timeout", install.DefaultTimeout, "for how long each step may wait")
	if c.flags != nil {
		c.flags(command, &options)
	}
	// What it does: change the cluster, and say what comes next.
	command.RunE = func(cmd *cobra.Command, _ []string) error {
		options.DryRun, options.Tried = s.dryRun != dryRunNone, s.dryRun == dryRunServer
		if err := options.Validate(); err != nil {
			return program.Usage(err)
		}
		if err := s.change(cmd.Context(), options, c.do); err != nil {
			return err
		}
		switch {
		case options.DryRun:
			fmt.Fprintf(s.Out, "Nothing was changed%s.\n", s.dryRun.mark())
			return nil
		case options.Export != "":
			fmt.Fprintf(s.Out, "Nothing was changed. %s has the files: %s says how a repository applies them.\n", options.Export,
				version.Document("docs/gitops.md"))
			return nil
		}
		if c.doneOne != "" && options.Broker != "" {
			c.done = c.doneOne
		}
		fmt.Fprintln(s.Out, c.done)
		return nil
	}
	return command
}

// change says which cluster it is, and changes it.
func (s *session) change(ctx context.Context, options install.Options, do installing) error {
	cluster, err := s.open()
	if err != nil {
		return err
	}
	installer, err := install.New(cluster, options, s.Out)
	if err != nil {
		return err
	}
	setup, err := installer.Look(ctx)
	if err != nil {
		return s.clear(err)
	}
	fmt.Fprintln(s.Out, target(s.to.context(), &setup))
	return s.clear(do(installer, ctx, &setup))
}

// openTarget is open of a command that changes something: it says, beside what the command prints, which cluster that is. What its user may
// not see is left out.
func (s *session) openTarget(ctx context.Context) (client.Client, error) {
	c, err := s.open()
	if err != nil {
		return nil, err
	}
	installer, err := install.New(c, install.Options{}, io.Discard)
	if err != nil {
		return nil, err
	}
	setup, err := installer.Look(ctx)
	line := whichCluster(s.to.context(), &setup)
	switch {
	case err == nil:
		fmt.Fprintln(s.ErrOut, target(s.to.context(), &setup))
	case line != thisCluster:
		fmt.Fprintln(s.ErrOut, line)
	}
	return c, nil
}

// thisCluster is how a cluster is called of which nothing is known.
const thisCluster = "On this cluster"

// target says in a line which cluster it is that is about to be changed, by what context or kubeconfig, which may be empty, and what it is.
func target(by string, setup *install.Setup) string {
	return whichCluster(by, setup) + ": " + cmp.Or(strings.Join(setup.Roles(), " and "), "Liqo alone")
}

// whichCluster is target without what the cluster is.
func whichCluster(by string, setup *install.Setup) string {
	line := thisCluster
	if setup.Own.ID != "" {
		line = "On cluster " + sheet.Plain(setup.Own.String())
	}
	if by != "" {
		line += fmt.Sprintf(", by context %q", by)
	}
	return line
}

// imageFlags adds the flags of what brings images.
func imageFlags(c *cobra.Command, o *install.Options) {
	c.Flags().StringVar(&o.Registry, "registry", "",
		"where the images are: what stands before the last slash of their names (default that of the release)")
	c.Flags().StringVar(&o.Tag, "tag", "", "the tag of the images (default that of the release)")
	c.Flags().BoolVar(&o.Downgrade, "downgrade", false, "let older images take the place of newer ones")
	c.Flags().BoolVar(&o.LiqoUnsupported, "liqo-unsupported", false,
		"go on with another Liqo 0.9 than "+install.LiqoVersion+", or another 1.x than "+install.Liqo1Version+", which nobody has tried")
}

// pullFlag adds the flag that says with what private images are pulled.
func pullFlag(c *cobra.Command, o *install.Options) {
	c.Flags().StringVar(&o.PullSecret, "pull-secret", "",
		"NAMESPACE/NAME of a Secret with which the images are pulled: it is copied to where our pods are (default as it is)")
}

// exportFlag adds the flag of what can write files in the place of changes.
func exportFlag(c *cobra.Command, o *install.Options) {
	c.Flags().StringVar(&o.Export, "export", "",
		"write what would be applied as files into this folder, for a repository of manifests, and change nothing")
}

func modeFlags(c *cobra.Command, o *install.Options) {
	c.Flags().StringSliceVar(&o.Modes, "modes", nil,
		"modes of the broker: catalog, orchestrator, aggregator (default those that it has, or all)")
}
