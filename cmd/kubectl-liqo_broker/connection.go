// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"github.com/spf13/pflag"
	"k8s.io/client-go/tools/clientcmd"
)

// connection says which cluster is meant, by the flags that kubectl has for that and by the kubeconfig. It takes the place of cli-runtime's
// ConfigFlags, with which the whole of kustomize would come into the program.
type connection struct {
	kubeconfig string
	overrides  clientcmd.ConfigOverrides
}

// addFlags adds its flags.
func (c *connection) addFlags(flags *pflag.FlagSet) {
	flags.StringVar(&c.kubeconfig, clientcmd.RecommendedConfigPathFlag, "", "Path to the kubeconfig file to use for CLI requests.")
	names := clientcmd.RecommendedConfigOverrideFlags("")
	names.ClusterOverrideFlags.APIServer.ShortName = "s"
	none := clientcmd.FlagInfo{} // kubectl has it no more, or never had it.
	names.AuthOverrideFlags.Username, names.AuthOverrideFlags.Password, names.ClusterOverrideFlags.ProxyURL = none, none, none
	clientcmd.BindOverrideFlags(&c.overrides, flags, names)
}

// config returns what the flags and the kubeconfig say.
func (c *connection) config() clientcmd.ClientConfig {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.DefaultClientConfig = &clientcmd.DefaultClientConfig
	rules.ExplicitPath = c.kubeconfig
	overrides := c.overrides
	overrides.ClusterDefaults = clientcmd.ClusterDefaults // So that what needs no cluster needs no kubeconfig.
	return clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, &overrides)
}

// context returns the name of the context that is used; empty if that cannot be said.
func (c *connection) context() string {
	config, err := c.config().RawConfig()
	switch {
	case err != nil:
		return ""
	case c.overrides.CurrentContext != "":
		return c.overrides.CurrentContext
	default:
		return config.CurrentContext
	}
}
