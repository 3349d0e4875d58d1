// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/capacitorset/liqo-broker/pkg/probe"
	"github.com/capacitorset/liqo-broker/pkg/program"
)

const (
	// maxTimes bounds how often one run asks each target.
	maxTimes = 1000
	// maxMessage is how long Kubernetes lets that message be, in bytes.
	maxMessage = 4096
)

// newProbeCommand returns what the pods of `kubectl liqo-broker test` run. It is in this image, which is the smallest that a broker needs.
func newProbeCommand() *cobra.Command {
	command := &cobra.Command{Use: "probe", Short: "Be a pod of a test of the network: ask, or answer"}
	var listen string
	serve := &cobra.Command{
		Use: "serve", Short: "Answer over HTTP who this is", Args: program.NoArguments,
		RunE: func(command *cobra.Command, _ []string) error {
			l, err := new(net.ListenConfig).Listen(command.Context(), "tcp", listen)
			if err != nil {
				return err
			}
			return probe.Serve(command.Context(), l)
		},
	}
	serve.Flags().StringVar(&listen, "listen", ":"+strconv.Itoa(probe.Port), "address that answers")
	var a asking
	ask := &cobra.Command{
		Use: "ask [POD]=HOST:PORT...", Short: "Ask pods over HTTP who they are, and write how they answered",
		Args: program.Arguments(cobra.RangeArgs(1, probe.MaxTargets)),
		RunE: a.run,
	}
	ask.Flags().IntVar(&a.times, "times", 20, "how often to ask each, once it has answered")
	ask.Flags().DurationVar(&a.within, "within", time.Minute, "within what time each has to answer for the first time")
	ask.Flags().StringVar(&a.to, "to", "/dev/termination-log", "the file that gets the answers, as JSON")
	command.AddCommand(serve, ask)
	return command
}

// asking is the parsed command line of ask.
type asking struct {
	times  int
	within time.Duration
	to     string
}

func (a *asking) run(command *cobra.Command, args []string) error {
	if a.times < 1 || a.times > maxTimes {
		return program.Usage(fmt.Errorf("--times=%d: must be from 1 to %d", a.times, maxTimes))
	}
	targets := make([]probe.Target, len(args))
	for i, arg := range args {
		var err error
		if targets[i], err = probe.ParseTarget(arg); err != nil {
			return program.Usage(err)
		}
	}
	answers, err := probe.Ask(command.Context(), targets, a.times, a.within)
	if err != nil {
		return err
	}
	message, err := json.Marshal(answers)
	if err != nil {
		return fmt.Errorf("write the answers: %w", err)
	}
	if len(message) > maxMessage {
		for i := range answers {
			answers[i].Reason = "" // That they failed is what counts.
		}
		if message, err = json.Marshal(answers); err != nil {
			return fmt.Errorf("write the answers: %w", err)
		}
	}
	if len(message) > maxMessage {
		return errors.New("the answers do not fit into the message of a container's end: ask fewer at a time")
	}
	if err := os.WriteFile(a.to, message, 0o600); err != nil {
		return fmt.Errorf("write the answers: %w", err)
	}
	return nil
}
