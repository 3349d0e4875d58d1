// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/capacitorset/liqo-broker/test/lab/build"
	"github.com/capacitorset/liqo-broker/test/lab/cache"
)

// followDelay is the time between two looks at a log that is followed.
const followDelay = 300 * time.Millisecond

// buildAll builds what the cache lacks.
func buildAll(cmd *cobra.Command, kubernetesLine, liqoLine string, report func(subject, deed string)) (build.Artifacts, error) {
	source, err := build.FindSource()
	if err != nil {
		return build.Artifacts{}, err
	}
	dir, err := cache.User()
	if err != nil {
		return build.Artifacts{}, err
	}
	if err := os.MkdirAll(dir.Path(), 0o755); err != nil {
		return build.Artifacts{}, fmt.Errorf("make the cache: %w", err)
	}
	b := build.Builder{
		Source: source, Cache: dir, Log: filepath.Join(dir.Path(), "build.log"),
		Started: func(what string) { report(what, "is being built; this takes minutes the first time") },
	}
	return b.All(cmd.Context(), kubernetesLine, liqoLine)
}

// printLog copies a file and, if it is followed, what is added to it until the context ends.
func printLog(ctx context.Context, out io.Writer, path string, follow bool) error {
	file, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("print log: %w", err)
	}
	defer file.Close()
	for {
		if _, err := io.Copy(out, file); err != nil {
			return fmt.Errorf("print log: %w", err)
		}
		if !follow {
			return nil
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(followDelay):
		}
	}
}
