// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/capacitorset/liqo-broker/test/lab"
	"github.com/capacitorset/liqo-broker/test/lab/build"
	"github.com/capacitorset/liqo-broker/test/lab/node"
	"github.com/capacitorset/liqo-broker/test/lab/topology"
)

// options are the flags that all commands have.
type options struct{ dir string }

func newCommand() *cobra.Command {
	o := &options{dir: lab.DefaultDir}
	if dir := os.Getenv("LIQO_BROKER_LAB"); dir != "" {
		o.dir = dir
	}
	root := &cobra.Command{
		Use:           "lab",
		Short:         "Real Kubernetes clusters with real Liqo on this machine",
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	root.PersistentFlags().StringVar(&o.dir, "state", o.dir, "folder of the lab (environment: LIQO_BROKER_LAB)")
	root.AddCommand(
		newUp(o), newDown(o), newStatus(o), newKubeconfig(o), newExec(o), newLoad(o), newLogs(o),
		newBuild(), newPeer(o), newUnpeer(o), newHost(o), newLink(o),
	)
	return root
}

// cluster opens the lab and returns one cluster of it.
func (o *options) cluster(name string) (*lab.Cluster, error) {
	l, err := lab.Open(o.dir)
	if err != nil {
		return nil, err
	}
	return l.Cluster(name)
}

// progress prints what is done, and when.
func progress() func(subject, deed string) {
	start := time.Now()
	return func(subject, deed string) {
		fmt.Fprintf(os.Stderr, "%6.1fs  %-11s %s\n", time.Since(start).Seconds(), subject, deed)
	}
}

func newUp(o *options) *cobra.Command {
	var clusters, images, settings []string
	up, liqo := lab.Options{Kubernetes: build.DefaultKubernetes}, build.DefaultLiqo
	topologyName := "overlapping"
	cmd := &cobra.Command{
		Use:   "up",
		Short: "Make the clusters, install Liqo and peer them",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			all, err := topology.Named(topologyName)
			if err != nil {
				return fmt.Errorf("--topology: %w", err)
			}
			if up.Topology, err = all.Select(clusters...); err != nil {
				return fmt.Errorf("--clusters: %w", err)
			}
			if up.LiqoSettings, err = parseSettings(settings, up.Topology); err != nil {
				return fmt.Errorf("--liqo-set: %w", err)
			}
			if err := lab.Check(o.dir, up.Topology); err != nil {
				return err
			}
			up.Dir, up.Images, up.Progress = o.dir, images, progress()
			if up.Artifacts, err = buildAll(cmd, up.Kubernetes, liqo, up.Progress); err != nil {
				return err
			}
			up.Progress("builds", "are in the cache")
			if _, err := lab.Up(cmd.Context(), up); err != nil {
				return err
			}
			up.Progress("lab", "is up: lab kubeconfig CLUSTER prints the path of a kubeconfig")
			return nil
		},
	}
	f := cmd.Flags()
	f.StringVar(&up.Kubernetes, "kubernetes", up.Kubernetes, "line of Kubernetes: v1.37, v1.34 or v1.28")
	f.StringVar(&liqo, "liqo", liqo, "line of Liqo: 0.9 or 1.2")
	f.StringSliceVar(&clusters, "clusters", nil, "only these clusters (default: all)")
	f.StringVar(&topologyName, "topology", topologyName, topology.Usage)
	f.StringArrayVar(&images, "image", nil, "archive with images that all clusters get (repeatable)")
	f.StringArrayVar(&settings, "liqo-set", nil,
		"CLUSTER:KEY=VALUE, a setting of Liqo's Helm chart in one cluster, or in all with * as CLUSTER (repeatable)")
	f.BoolVar(&up.WithoutLiqo, "without-liqo", false, "only make the clusters")
	f.BoolVar(&up.WithoutPeerings, "without-peerings", false, "leave the peerings of the topology to somebody else")
	return cmd
}

// parseSettings reads CLUSTER:KEY=VALUE.
func parseSettings(settings []string, t topology.Topology) (map[string][]string, error) {
	byCluster := map[string][]string{}
	for _, setting := range settings {
		name, value, found := strings.Cut(setting, ":")
		if !found || !strings.Contains(value, "=") {
			return nil, fmt.Errorf("%q is not CLUSTER:KEY=VALUE", setting)
		}
		names := []string{name}
		if name == "*" {
			names = t.Names()
		}
		for _, name := range names {
			if _, err := t.Cluster(name); err != nil {
				return nil, err
			}
			byCluster[name] = append(byCluster[name], value)
		}
	}
	return byCluster, nil
}

func newBuild() *cobra.Command {
	line, liqo := build.DefaultKubernetes, build.DefaultLiqo
	cmd := &cobra.Command{
		Use:   "build",
		Short: "Build what a lab runs into the cache, and print the folder of Kubernetes' programs",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			report := progress()
			artifacts, err := buildAll(cmd, line, liqo, report)
			if err != nil {
				return err
			}
			report("builds", "are in the cache")
			_, err = fmt.Fprintln(cmd.OutOrStdout(), artifacts.Kubernetes)
			return err
		},
	}
	cmd.Flags().StringVar(&line, "kubernetes", line, "line of Kubernetes: v1.37, v1.34 or v1.28")
	cmd.Flags().StringVar(&liqo, "liqo", liqo, "line of Liqo: 0.9 or 1.2")
	return cmd
}

func newDown(o *options) *cobra.Command {
	return &cobra.Command{
		Use:   "down",
		Short: "Remove the lab, whatever state it is in",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			report := progress()
			if err := lab.Down(cmd.Context(), o.dir); err != nil {
				return err
			}
			report("lab", "is gone")
			return nil
		},
	}
}

func newStatus(o *options) *cobra.Command {
	return &cobra.Command{
		Use:   "status",
		Short: "Show the clusters, their pods and their peerings",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			l, err := lab.Open(o.dir)
			if err != nil {
				return err
			}
			broken := false
			table := tabwriter.NewWriter(cmd.OutOrStdout(), 0, 0, 3, ' ', 0)
			fmt.Fprintln(table, "CLUSTER\tLINK\tPODS\tNODES\tUSES")
			for _, s := range l.Status(cmd.Context()) {
				if s.Problem != "" {
					broken = true
					fmt.Fprintf(table, "%s\t%s\n", s.Name, s.Problem)
					continue
				}
				fmt.Fprintf(table, "%s\t%s\t%d/%d\t%s\t%s\n", s.Name, describeLink(s), s.PodsReady, s.Pods, strings.Join(s.Nodes, " "),
					strings.Join(s.Peers, " "))
			}
			if err := table.Flush(); err != nil {
				return err
			}
			if broken {
				return errors.New("the lab is not whole: `lab down` removes it")
			}
			return nil
		},
	}
}

func newKubeconfig(o *options) *cobra.Command {
	return &cobra.Command{
		Use:   "kubeconfig CLUSTER",
		Short: "Print the path of the administrator's kubeconfig",
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := o.cluster(args[0])
			if err != nil {
				return err
			}
			fmt.Fprintln(cmd.OutOrStdout(), c.KubeconfigPath())
			return nil
		},
	}
}

func newExec(o *options) *cobra.Command {
	return &cobra.Command{
		Use:   "exec CLUSTER -- PROGRAM [ARGUMENT...]",
		Short: "Run a program in the node of a cluster; kubectl, ctr and ip are there",
		Args:  cobra.MinimumNArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := o.cluster(args[0])
			if err != nil {
				return err
			}
			err = c.Exec(cmd.Context(), node.Command{Args: args[1:], Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr})
			if code, failed := node.IsExit(err); failed {
				return programError{code: max(code, 1)}
			}
			return err
		},
	}
}

// programError is the failure of a program that exec ran, with its exit code.
type programError struct{ code int }

func (e programError) Error() string { return fmt.Sprintf("the program ended with code %d", e.code) }

func newLoad(o *options) *cobra.Command {
	return &cobra.Command{
		Use:   "load CLUSTER IMAGE.tar",
		Short: "Add the images of a docker-archive to a cluster",
		Args:  cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := o.cluster(args[0])
			if err != nil {
				return err
			}
			archive, err := os.Open(args[1])
			if err != nil {
				return fmt.Errorf("load images: %w", err)
			}
			defer archive.Close()
			names, err := c.Load(cmd.Context(), archive, "")
			for _, name := range names {
				fmt.Fprintln(cmd.OutOrStdout(), name)
			}
			return err
		},
	}
}

func newLogs(o *options) *cobra.Command {
	var follow bool
	cmd := &cobra.Command{
		Use:   "logs CLUSTER COMPONENT",
		Short: "Print the log of a component: kubelet, kube-apiserver, containerd, etcd, init, liqo-install, ...",
		Args:  cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := o.cluster(args[0])
			if err != nil {
				return err
			}
			return printLog(cmd.Context(), cmd.OutOrStdout(), c.LogPath(args[1]), follow)
		},
	}
	cmd.Flags().BoolVarP(&follow, "follow", "f", false, "go on printing what is added")
	return cmd
}

func newPeer(o *options) *cobra.Command {
	return &cobra.Command{
		Use:   "peer CONSUMER PROVIDER",
		Short: "Let one cluster use the resources of another",
		Args:  cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			l, err := lab.Open(o.dir)
			if err != nil {
				return err
			}
			return l.Peer(cmd.Context(), topology.Peering{Consumer: args[0], Provider: args[1]})
		},
	}
}

func newHost(o *options) *cobra.Command {
	return &cobra.Command{
		Use:   "host NAME ADDRESS FOLDER",
		Short: "Add a machine outside of all clusters, which sees a folder of this one as /opt/host",
		Args:  cobra.ExactArgs(3),
		RunE: func(cmd *cobra.Command, args []string) error {
			l, err := lab.Open(o.dir)
			if err != nil {
				return err
			}
			address, err := netip.ParseAddr(args[1])
			if err != nil {
				return err
			}
			folder, err := filepath.Abs(args[2])
			if err != nil {
				return err
			}
			return l.AddHost(cmd.Context(), args[0], address, folder)
		},
	}
}

func newUnpeer(o *options) *cobra.Command {
	return &cobra.Command{
		Use:   "unpeer CONSUMER PROVIDER",
		Short: "End a peering",
		Args:  cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			l, err := lab.Open(o.dir)
			if err != nil {
				return err
			}
			return l.Unpeer(cmd.Context(), topology.Peering{Consumer: args[0], Provider: args[1]})
		},
	}
}

func newLink(o *options) *cobra.Command {
	return &cobra.Command{
		Use:   "link CLUSTER [CLUSTER] down|up",
		Short: "Cut a cluster off from the others, or only from one other, or connect it again",
		Args:  cobra.RangeArgs(2, 3),
		RunE: func(cmd *cobra.Command, args []string) error {
			clusters, state := args[:len(args)-1], args[len(args)-1]
			if state != "up" && state != "down" {
				return fmt.Errorf("%q is neither up nor down", state)
			}
			l, err := lab.Open(o.dir)
			if err != nil {
				return err
			}
			if len(clusters) == 2 {
				return l.SetLink(cmd.Context(), clusters[0], clusters[1], state == "up")
			}
			c, err := l.Cluster(clusters[0])
			if err != nil {
				return err
			}
			return c.SetLink(state == "up")
		},
	}
}

// describeLink says how a cluster is connected: up, cut, or cut from some.
func describeLink(s lab.ClusterStatus) string {
	switch {
	case !s.LinkUp:
		return "cut"
	case len(s.CutFrom) > 0:
		return "cut from " + strings.Join(s.CutFrom, " ")
	}
	return "up"
}
