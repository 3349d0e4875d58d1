// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"net/url"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capacitorset/liqo-broker/pkg/api/connectorv1alpha1"
	"github.com/capacitorset/liqo-broker/pkg/api/v1alpha1"
	"github.com/capacitorset/liqo-broker/pkg/install"
	"github.com/capacitorset/liqo-broker/pkg/liqo/line"
	"github.com/capacitorset/liqo-broker/pkg/liqo/lines"
	"github.com/capacitorset/liqo-broker/pkg/program"
	"github.com/capacitorset/liqo-broker/pkg/version"
)

// session is one run of the plugin: how it reaches the cluster, and where it writes.
type session struct {
	genericiooptions.IOStreams
	to connection
	// dryRun is the flag of the command that runs, if it has one.
	dryRun dryRun
	// reach returns a client of the cluster.
	reach func() (client.Client, error)
	// reachAt returns one of another cluster, by the name of a context or the path of a kubeconfig.
	reachAt func(name string) (client.Client, error)
}

func newCommand(streams genericiooptions.IOStreams) *cobra.Command {
	s := &session{IOStreams: streams}
	s.reach, s.reachAt = s.client, s.clientAt
	command := &cobra.Command{
		Use:           "kubectl-liqo_broker",
		Short:         "Install, watch and leave a broker of Liqo clusters",
		Version:       version.String(),
		SilenceUsage:  true,
		SilenceErrors: true,
		// The name that users type.
		Annotations: map[string]string{cobra.CommandDisplayNameAnnotation: "kubectl liqo-broker"},
	}
	command.SetIn(streams.In)
	command.SetOut(streams.Out)
	command.SetErr(streams.ErrOut)
	command.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return program.Usage(err) })
	s.to.addFlags(command.PersistentFlags())
	s.addCommands(command, newReading(s))
	return command
}

// exitCodes says what the exit codes of all commands mean.
const exitCodes = "0 all is well, 1 it failed, 2 the command line cannot be understood, 3 it was done, and what it looked at is not as " +
	"it should be."

// addCommands adds all commands.
func (s *session) addCommands(root *cobra.Command, r *reading) {
	root.Flags().Bool("version", false, "version of the plugin") // Without -v, which is kubectl's flag of how much is logged.
	addInstallation(root, s)
	root.AddCommand(s.joinCommand(), s.testCommand())
	root.AddCommand(r.commands()...)
	program.Strict(root, exitCodes)
}

// open returns the client of the cluster by which a command reads and writes: it keeps what --dry-run says, whatever the command does.
func (s *session) open() (client.Client, error) {
	c, err := s.reach()
	if err != nil {
		return nil, err
	}
	return s.dryRun.of(c), nil
}

// config returns how to reach the API server.
func (s *session) config() (*rest.Config, error) { return s.to.rest() }

// client returns a client of the cluster for all kinds that the plugin knows.
func (s *session) client() (client.Client, error) { return s.clientAs("") }

// clientAs returns one that asks as a user whom the API server lets it be; empty is who is in the kubeconfig.
func (s *session) clientAs(user string) (client.Client, error) {
	config, err := s.config()
	if err != nil {
		return nil, err
	}
	if user != "" {
		config.Impersonate = rest.ImpersonationConfig{UserName: user}
	}
	return clientOf(config)
}

// clientAt returns a client of another cluster, by the name of a context or the path of a kubeconfig.
func (s *session) clientAt(name string) (client.Client, error) {
	to, err := s.to.to(name)
	if err != nil {
		return nil, program.Usage(err)
	}
	config, err := to.rest()
	if err != nil {
		return nil, fmt.Errorf("cluster %q: %w", name, err)
	}
	return clientOf(config)
}

// clientOf returns a client for all kinds that the plugin knows.
func clientOf(config *rest.Config) (client.Client, error) {
	scheme, err := kinds()
	if err != nil {
		return nil, err
	}
	c, err := client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		return nil, fmt.Errorf("reach the cluster: %w", err)
	}
	return c, nil
}

// kinds returns all kinds that the plugin knows.
func kinds() (*runtime.Scheme, error) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		clientgoscheme.AddToScheme, v1alpha1.AddToScheme, connectorv1alpha1.AddToScheme, lines.AddToScheme,
	} {
		if err := add(scheme); err != nil {
			return nil, fmt.Errorf("register kinds: %w", err)
		}
	}
	return scheme, nil
}

// lineOf returns the line of Liqo that runs on a cluster. The error may be lines.ErrNone.
func lineOf(c client.Client) (line.Line, error) { return lines.FindMapped(c.RESTMapper()) }

// clear returns an error of the API server, or of the way to it, as one sentence that says what to do.
func (s *session) clear(err error) error {
	unreachable := &url.Error{}
	switch {
	case err == nil:
		return nil
	case install.Begun(err):
		return err // It names the step, and says how to go on.
	case errors.As(err, new(*elsewhereError)):
		return err
	case errors.Is(err, lines.ErrNone):
		return fmt.Errorf("there is no broker on %s: it has no Liqo. Choose another cluster with --context", s.where())
	case meta.IsNoMatchError(err):
		return fmt.Errorf("there is no broker on %s: it knows no objects of %s. Choose another cluster with --context, or install a broker "+
			"with: kubectl liqo-broker install; on a consumer: kubectl liqo-broker diagnose",
			s.where(), v1alpha1.GroupVersion.Group)
	case apierrors.IsForbidden(err):
		return fmt.Errorf("you lack a right on %s: %w", s.where(), err)
	case apierrors.IsUnauthorized(err):
		return fmt.Errorf("%s does not accept your credentials: %w", s.where(), err)
	case errors.Is(err, context.Canceled):
		return errors.New("interrupted")
	case errors.As(err, &unreachable):
		return fmt.Errorf("%s cannot be reached: %w", s.where(), unreachable)
	default:
		return err
	}
}

// where says in a sentence which cluster is meant.
func (s *session) where() string {
	name := s.to.context()
	if name == "" {
		return "this cluster"
	}
	return fmt.Sprintf("the cluster of context %q", name)
}
