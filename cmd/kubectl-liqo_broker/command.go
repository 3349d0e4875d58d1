// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capacitorset/liqo-broker/pkg/api/v1alpha1"
	"github.com/capacitorset/liqo-broker/pkg/liqo"
	"github.com/capacitorset/liqo-broker/pkg/version"
)

// session is one run of the plugin: how it reaches the cluster, and where it writes.
type session struct {
	genericiooptions.IOStreams
	to connection
}

func newCommand(streams genericiooptions.IOStreams) *cobra.Command {
	s := &session{IOStreams: streams}
	command := &cobra.Command{
		Use:           "kubectl-liqo_broker",
		Short:         "Install, watch and leave a broker of Liqo clusters",
		Version:       version.String(),
		Args:          cobra.NoArgs,
		SilenceUsage:  true,
		SilenceErrors: true,
		// The name that users type.
		Annotations: map[string]string{cobra.CommandDisplayNameAnnotation: "kubectl liqo-broker"},
	}
	command.SetIn(streams.In)
	command.SetOut(streams.Out)
	command.SetErr(streams.ErrOut)
	command.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return usageError{err} })
	s.to.add(command.PersistentFlags())
	addInstallation(command, s)
	command.AddCommand(newReading(s).commands()...)
	return command
}

// config returns how to reach the API server.
func (s *session) config() (*rest.Config, error) {
	config, err := s.to.config().ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("read the kubeconfig: %w", err)
	}
	return config, nil
}

// client returns a client of the cluster for all kinds that the plugin knows.
func (s *session) client() (client.Client, error) {
	config, err := s.config()
	if err != nil {
		return nil, err
	}
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, v1alpha1.AddToScheme, liqo.AddToScheme} {
		if err := add(scheme); err != nil {
			return nil, fmt.Errorf("register kinds: %w", err)
		}
	}
	c, err := client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		return nil, fmt.Errorf("reach the cluster: %w", err)
	}
	return c, nil
}
