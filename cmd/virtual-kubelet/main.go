// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

// Command virtual-kubelet takes the place of Liqo's virtual kubelet in clusters
// that use a broker, or are one. It takes the same flags, and --remote-ipam.
package main

import (
	"github.com/spf13/cobra"
	"github.com/virtual-kubelet/virtual-kubelet/log"
	"github.com/virtual-kubelet/virtual-kubelet/log/klogv2"
	"k8s.io/klog/v2"

	"github.com/capacitorset/liqo-broker/cmd/virtual-kubelet/internal/virtualkubelet"
	"github.com/capacitorset/liqo-broker/pkg/program"
)

func main() { program.Main("virtual-kubelet", newCommand().ExecuteContext) }

func newCommand() *cobra.Command {
	options := virtualkubelet.NewOptions()
	command := &cobra.Command{
		Use:           "virtual-kubelet",
		Short:         "Liqo's virtual kubelet, for clusters that use a liqo-broker",
		Args:          program.NoArguments,
		SilenceUsage:  true,
		SilenceErrors: true,
		RunE: func(command *cobra.Command, _ []string) error {
			// Liqo's packages log to klog; so does everything of ours in this process.
			ctx := log.WithLogger(command.Context(), klogv2.New(nil))
			return virtualkubelet.Run(ctx, options, klog.Background())
		},
	}
	program.ExplainFlags(command)
	options.AddFlags(command.Flags())
	return command
}
