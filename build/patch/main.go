// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

// Patch makes patched copies of Go modules, for a go.mod that replaces the modules by them.
//
// It reads the head of each patch for the module it belongs to, copies that module out of the module cache, and applies the patch. It knows
// nothing of what the patches do, and of who builds with the copies.
//
//	go run ./build/patch -patches patches -out .build/patched
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, os.Args[1:])
	stop()
	if err != nil {
		if !errors.Is(err, flag.ErrHelp) {
			fmt.Fprintln(os.Stderr, "patch:", err)
		}
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("patch", flag.ContinueOnError)
	root := flags.String("root", ".", "the folder of go.mod")
	patches := flags.String("patches", "patches", "the folder of the patches, below the root")
	out := flags.String("out", ".build/patched", "the folder to write, below the root unless it is absolute; what it holds is replaced")
	if err := flags.Parse(args); err != nil {
		return err
	}
	return Build(ctx, *root, *patches, *out)
}
