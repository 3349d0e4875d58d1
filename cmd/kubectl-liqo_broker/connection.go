// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"
	"k8s.io/client-go/rest"
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

// rest returns how to reach the API server.
func (c *connection) rest() (*rest.Config, error) {
	config, err := c.config().ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("read the kubeconfig: %w", err)
	}
	config.QPS, config.Burst = 50, 300 // As kubectl has it: one person asks, and many questions at once.
	return config, nil
}

// limit bounds how long each request takes, unless its flag says how long.
func (c *connection) limit(to time.Duration) {
	if c.overrides.Timeout == "" || c.overrides.Timeout == "0" {
		c.overrides.Timeout = to.String()
	}
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

// to returns the connection to another cluster, by the name of a context of the same kubeconfig or by the path of another one.
func (c *connection) to(name string) (*connection, error) {
	other := &connection{kubeconfig: c.kubeconfig}
	known, err := c.config().RawConfig()
	if err != nil {
		return nil, fmt.Errorf("read the kubeconfig: %w", err)
	}
	if _, is := known.Contexts[name]; is {
		other.overrides.CurrentContext = name
		return other, nil
	}
	if info, err := os.Stat(name); err != nil || info.IsDir() {
		return nil, fmt.Errorf("%q is neither a context of the kubeconfig nor the path of a kubeconfig; its contexts are: %s", name,
			cmp.Or(strings.Join(slices.Sorted(maps.Keys(known.Contexts)), ", "), "none"))
	}
	other.kubeconfig = name
	return other, nil
}

// way returns by which kubeconfig and which context of it a name leads to another cluster, as flags take them; empty is the usual one.
func (c *connection) way(name string) (kubeconfig, context string) {
	other, err := c.to(name)
	if err != nil {
		return "", ""
	}
	return other.kubeconfig, other.overrides.CurrentContext
}
